//! LCM between processes of the real executable, and what is said where it is not. One program: each that is linked costs a second.

#[path = "../../../../kit/tests/support/many.rs"]
mod many;
mod missing;
#[path = "../../../../kit/tests/support/own_host.rs"]
mod own_host;
#[path = "../../../packages.rs"]
mod packages;
#[path = "../../../probe.rs"]
#[allow(dead_code)]
mod probe;
#[path = "../../../../kit/tests/support/mod.rs"]
mod support;
mod two_processes;
