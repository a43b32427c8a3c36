//! Fast DDS between processes of the real executable. One program: each that is linked costs a second.

mod across_hosts;
#[path = "../../../../kit/tests/support/library_version.rs"]
mod library_version;
#[path = "../../../../kit/tests/support/own_host.rs"]
mod own_host;
mod round_trips;
mod streams;
#[path = "../../../../kit/tests/support/mod.rs"]
mod support;
