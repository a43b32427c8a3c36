//! TLS between processes of the real executable.

#[path = "../../../../kit/tests/support/own_host.rs"]
mod own_host;
mod secure;
#[path = "../../../../kit/tests/support/secured.rs"]
mod secured;
#[path = "../../../../kit/tests/support/mod.rs"]
mod support;
