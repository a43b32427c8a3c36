//! The floor: the cost of primitives of the operating system between two processes. Nothing built
//! on them can be faster, so the lab shows every result beside these.
//!
//! ```text
//! spin, futex, eventfd ─▶ slots ─▶ segment      bytes in shared memory; they differ in the wake-up
//!                           └────▶ handover     the word with which a slot changes hands
//! stream, datagram ─▶ limit                     bytes through the kernel; waits are limited
//! oneway ─▶ slots                               the same for streams, which have no answers
//! call                                          one process: a function is called
//! all others ─▶ peer                            how the two find each other, and notice death
//! tcp, udp ─▶ network_path                               the same across hosts
//! ```
//! `README.md` describes the systems.

#![deny(unsafe_op_in_unsafe_fn)]

#[cfg(not(loom))]
mod call;
#[cfg(not(loom))]
mod datagram;
#[cfg(not(loom))]
mod eventfd;
#[cfg(not(loom))]
mod futex;
mod handover;
#[cfg(not(loom))]
pub mod limit;
#[cfg(not(loom))]
mod network_path;
#[cfg(not(loom))]
mod oneway;
#[cfg(not(loom))]
mod peer;
#[cfg(not(loom))]
mod segment;
#[cfg(not(loom))]
mod slots;
#[cfg(not(loom))]
mod spin;
#[cfg(not(loom))]
mod stream;
#[cfg(not(loom))]
mod systems;

#[cfg(not(loom))]
pub use systems::{Encrypted, Os};
