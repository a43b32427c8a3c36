//! The synthetic driver's processes, whose faults are known. One program: each that is linked costs a second.

mod across_hosts;
mod recovered;
mod streams;
#[path = "../../../../kit/tests/support/mod.rs"]
mod support;
