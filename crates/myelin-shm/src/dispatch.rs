//! Callbacks: `docs/explanation/shared-memory.md` section 13.

pub mod callback;
pub(crate) mod dispatcher;
pub mod handlers;
mod local_callbacks;
