//! Myelin's shared-memory route: sealed segments with one writer each, a ring for each publisher,
//! announcements instead of locks, wake-up words for sleepers, sockets for discovery.
//!
//! | module | contents |
//! |---|---|
//! | `data_plane` | publishing and taking: rings, slots, announcements |
//! | `counters` | what endpoints count, for every node of their domain |
//! | `control_plane` | discovery and matching: links between nodes, and which endpoints are matched since when |
//! | `waiting` | how a subscriber or a wait set sleeps, and how a publisher wakes it |
//! | `dispatch` | callbacks: a topic's handlers, in the publisher's thread or in their own |
//! | `os` | memory, descriptors, `fork`, `epoll` |
//!
//! `docs/explanation/shared-memory.md` is the design; this crate implements it, without a
//! convenient API. Users take the crate `myelin`.

#[cfg(not(all(target_os = "linux", target_pointer_width = "64", target_endian = "little")))]
compile_error!("myelin-shm runs on 64-bit little-endian Linux");

#[cfg(test)]
extern crate self as myelin_shm; // code shared with the tests uses this name

pub mod callback;
mod control_plane;
pub mod counters;
pub mod data_plane;
pub mod dispatch;
mod endpoint;
pub mod error;
pub mod event;
pub mod fnv;
pub mod layout;
pub mod limits;
mod listener;
pub mod node;
pub mod os;
pub mod record;
mod sync;
pub mod tasks;
pub mod topic;
mod user_code;
pub mod wait_set;
pub mod waiting;
mod warnings;

pub use control_plane::leftovers;
pub use error::Error;
#[cfg(loom)]
pub use sync::{Step, leave_out, set_few};
pub use warnings::warn;

/// For the fuzz target `messages`: any bytes from another process are an error, or a message that
/// encodes to the same bytes; and no messages of a peer make a node store more about it than the
/// limits allow.
#[cfg(fuzzing)]
pub fn fuzz_message(bytes: &[u8]) {
    if let Ok(message) = control_plane::message::ControlMessage::decode(bytes) {
        assert_eq!(message.encode(), bytes);
    }
    control_plane::protocol::hostile::talk(bytes);
}
