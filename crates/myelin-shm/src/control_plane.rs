//! Discovery and matching: `docs/explanation/shared-memory.md` sections 7 and 8. `protocol` makes
//! all decisions and performs no action. A node's thread (`event_loop`) and the calls of its
//! handles report events to it, and `reactor` performs the actions that it decides, under one lock.

mod announcement;
pub(crate) mod directory;
mod endpoints;
pub(crate) mod event_loop;
pub mod leftovers;
mod link;
pub(crate) mod message;
pub(crate) mod protocol;
pub(crate) mod proxy;
mod qos_monitor;
pub(crate) mod reactor;
pub(crate) mod registry;
mod rendezvous;
