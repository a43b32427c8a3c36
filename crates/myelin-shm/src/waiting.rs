//! How a subscriber or a wait set sleeps, and how a publisher wakes it:
//! `docs/explanation/shared-memory.md` sections 10, 12 and 14.

pub mod cancel;
pub(crate) mod event_fd;
pub mod interrupt;
pub mod notify;
mod predict;
pub mod remote_wake_table;
pub(crate) mod set_descriptor;
pub mod sleep;
pub(crate) mod strategy;
pub(crate) mod subscriber_descriptor;
pub mod wait;
pub(crate) mod wake_pipe;
pub mod wake_table;
