//! Callbacks: `docs/shared-memory.md` section 13.

#[cfg(not(loom))]
pub mod callback;
#[cfg(not(loom))]
pub(crate) mod dispatcher;
pub mod handlers;
