//! The floor between processes of the real executable. One program, because each one takes a second
//! to link.

mod across_hosts;
#[path = "../../../../kit/tests/support/own_host.rs"]
mod own_host;
mod streams;
#[path = "../../../../kit/tests/support/mod.rs"]
mod support;
mod two_processes;
