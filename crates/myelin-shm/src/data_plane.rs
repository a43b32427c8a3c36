//! Publishing and taking: `docs/explanation/shared-memory.md` sections 3 to 7. Nothing here waits
//! for another process, except a reliable publisher for its subscribers.

pub mod arena;
#[cfg(all(test, not(any(loom, miri))))]
mod crash;
pub mod observer;
pub mod publication;
pub(crate) mod publisher_cursor;
pub(crate) mod raw_sample;
pub(crate) mod reader;
pub(crate) mod ready_list;
pub mod reclaim;
pub mod remote_publisher;
pub(crate) mod remote_subscriber;
pub mod ring;
pub mod subscription;
pub(crate) mod writer;
