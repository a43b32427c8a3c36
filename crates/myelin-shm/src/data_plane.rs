//! Publishing and taking: `docs/explanation/shared-memory.md` sections 3 to 7. Nothing here waits
//! for another process, except a reliable publisher for its subscribers.

pub mod arena;
#[cfg(all(test, not(any(loom, miri))))]
mod crash;
pub(crate) mod incoming;
pub mod publication;
pub(crate) mod reader;
pub(crate) mod ready;
pub mod reclaim;
pub(crate) mod remote_subscriber;
pub mod ring;
pub mod source;
pub mod subscription;
pub(crate) mod taken;
pub(crate) mod writer;
