//! What the kernel offers, as this crate uses it.

pub(crate) mod descriptor;
pub(crate) mod fork;
pub(crate) mod latency_guard;
pub(crate) mod memory;
pub(crate) mod poll;
pub mod segment;
pub mod thread;
