//! How a subscriber or a wait set sleeps, and how a publisher wakes it: `docs/shared-memory.md` sections
//! 10, 12 and 14.

pub mod bell;
#[cfg(not(loom))]
pub mod interrupt;
#[cfg(not(loom))]
mod predict;
#[cfg(not(loom))]
mod set_descriptor;
#[cfg(not(loom))]
pub(crate) mod strategy;
#[cfg(not(loom))]
pub mod tasks;
#[cfg(not(loom))]
pub mod wait;
#[cfg(not(loom))]
pub mod wait_set;
#[cfg(not(loom))]
pub(crate) mod wake_fd;
#[cfg(not(loom))]
pub mod wake_table;
