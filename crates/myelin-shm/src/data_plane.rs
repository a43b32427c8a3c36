//! Publishing and taking: `docs/shared-memory.md` sections 3 to 7. Nothing in here waits for another
//! process, but a reliable publisher for its subscribers.

pub mod arena;
#[cfg(not(loom))]
pub(crate) mod incoming;
pub mod layout;
#[cfg(not(loom))]
pub mod publication;
#[cfg(not(loom))]
pub(crate) mod reader;
pub mod reclaim;
#[cfg(not(loom))]
pub(crate) mod remote_subscriber;
pub mod ring;
#[cfg(not(loom))]
pub mod source;
#[cfg(not(loom))]
pub mod subscription;
#[cfg(not(loom))]
pub(crate) mod taken;
#[cfg(not(loom))]
pub(crate) mod writer;
