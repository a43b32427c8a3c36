//! The floor: what bare primitives of the operating system cost between two processes. Nothing
//! built on them can be faster, so every result of the lab is drawn beside these.
//!
//! ```text
//! spin, futex, eventfd ─▶ slots ─▶ segment      bytes in shared memory; they differ in the wake-up
//!                           └────▶ handover     the word with which a slot changes hands
//! stream, datagram ─▶ limit                     bytes through the kernel, waits end in time
//! oneway ─▶ slots                               the same for streams, which nobody answers
//! call                                          one process: a function is called
//! all else ─▶ peer                              how the two find each other, and notice death
//! tcp, udp ─▶ way                               the same across hosts
//! ```
//! Streams have one publisher, one subscriber and one topic. In shared memory they have room for
//! their depth, and a writer without a free slot drops its message or waits, as asked. Pipes, TCP
//! and UNIX sockets are reliable: the kernel makes the writer wait, and its buffer, in bytes, is
//! the depth. UDP is best effort: what does not fit into the socket's buffer is lost; only a
//! message of more parts than that holds waits for credits of its reader.
//!
//! Pong makes everything (memory, pipes, sockets) and hands it to ping as file descriptors, so
//! nothing has a name in the file system and nothing can be left behind. Across hosts, which UDP
//! and TCP can, each side makes its own sockets.

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
mod limit;
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
mod way;

#[cfg(not(loom))]
pub use systems::Os;
