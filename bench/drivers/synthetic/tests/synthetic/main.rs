//! The synthetic driver's processes, whose faults are known. One program, because each one takes a
//! second to link.

mod across_hosts;
mod recovered;
mod streams;
#[path = "../../../../kit/tests/support/mod.rs"]
mod support;
