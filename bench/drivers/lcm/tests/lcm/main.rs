//! LCM between processes of the real executable, and the driver's message without LCM. One program,
//! because each one takes a second to link.

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
