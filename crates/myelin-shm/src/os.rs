//! The functions of the kernel that this crate uses.

pub(crate) mod descriptor;
pub(crate) mod fork;
pub(crate) mod latency_guard;
pub(crate) mod memory;
pub(crate) mod poll;
pub(crate) mod prefetch;
pub mod segment;
pub mod thread;
