//! The wire of Myelin's shared-memory route: sealed segments with one writer each, a ring for each
//! publisher, announcements instead of locks, bells for sleepers, sockets for discovery.
//!
//! `docs/shared-memory.md` is the design; this crate is its text in code, without API sugar. Users
//! take the crate `myelin`.

#![cfg_attr(loom, allow(dead_code, unused_imports))]

#[cfg(not(all(target_os = "linux", target_pointer_width = "64", target_endian = "little")))]
compile_error!("myelin-shm runs on 64-bit little-endian Linux");

pub mod arena;
pub mod bell;
pub mod error;
pub mod layout;
pub mod limits;
pub mod places;
pub mod reclaim;
pub mod ring;
mod sync;
pub mod topic;

#[cfg(not(loom))]
mod attendant;
#[cfg(not(loom))]
pub mod callback;
#[cfg(not(loom))]
mod descriptor;
#[cfg(not(loom))]
mod endpoint;
#[cfg(not(loom))]
pub mod event;
#[cfg(not(loom))]
mod folder;
#[cfg(not(loom))]
mod fork;
#[cfg(not(loom))]
mod incoming;
#[cfg(not(loom))]
mod latency_guard;
#[cfg(not(loom))]
pub mod leftovers;
#[cfg(not(loom))]
mod link;
#[cfg(not(loom))]
mod local;
#[cfg(not(loom))]
mod matching;
#[cfg(not(loom))]
mod memory;
#[cfg(not(loom))]
mod message;
#[cfg(not(loom))]
pub mod node;
#[cfg(not(loom))]
mod peers;
#[cfg(not(loom))]
mod poll;
#[cfg(not(loom))]
mod predict;
#[cfg(not(loom))]
pub mod publication;
#[cfg(not(loom))]
mod reader;
#[cfg(not(loom))]
mod registry;
#[cfg(not(loom))]
pub mod segment;
#[cfg(not(loom))]
pub mod source;
#[cfg(not(loom))]
mod stage;
#[cfg(not(loom))]
mod stand_in;
#[cfg(not(loom))]
mod state;
#[cfg(not(loom))]
mod strategy;
#[cfg(not(loom))]
mod subscriber_view;
#[cfg(not(loom))]
pub mod subscription;
#[cfg(not(loom))]
mod taken;
#[cfg(not(loom))]
mod vigil;
#[cfg(not(loom))]
pub mod wait;
#[cfg(not(loom))]
pub mod wait_set;
#[cfg(not(loom))]
mod wake_fd;
#[cfg(not(loom))]
pub mod wake_table;
#[cfg(not(loom))]
mod writer;

pub use error::Error;

/// For the fuzz target `messages`: whatever another process sends is an error, or a message that is
/// sent as the same bytes.
#[cfg(fuzzing)]
pub fn fuzz_message(bytes: &[u8]) {
    if let Ok(message) = message::Message::decode(bytes) {
        assert_eq!(message.encode(), bytes);
    }
}
