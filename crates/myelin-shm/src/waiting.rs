//! How a subscriber or a wait set sleeps, and how a publisher wakes it:
//! `docs/explanation/shared-memory.md` sections 10, 12 and 14.

pub mod cancel;
pub mod interrupt;
pub mod notify;
mod predict;
pub(crate) mod set_descriptor;
pub mod sleep;
pub(crate) mod strategy;
pub(crate) mod subscriber_descriptor;
pub mod wait;
pub mod wake_table;
