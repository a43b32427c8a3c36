//! LCM between processes of the real executable.

#[path = "../../../../kit/tests/support/many.rs"]
mod many;
#[path = "../../../../kit/tests/support/own_host.rs"]
mod own_host;
#[path = "../../../../kit/tests/support/mod.rs"]
mod support;
mod two_processes;
