//! Discovery and matching: `docs/shared-memory.md` sections 7 and 8. What a node knows is `state`; its
//! thread (`event_loop`) and the calls of its handles change it, under one lock.

pub(crate) mod endpoints;
pub(crate) mod event_loop;
pub mod leftovers;
pub(crate) mod link;
pub(crate) mod matching;
pub(crate) mod message;
pub(crate) mod peers;
pub(crate) mod proxy;
pub(crate) mod qos_monitor;
pub(crate) mod registry;
pub(crate) mod rendezvous;
pub(crate) mod state;
