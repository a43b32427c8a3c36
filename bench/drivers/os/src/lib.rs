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
//! tcp, udp ─▶ way                               the same across hosts
//! ```
//! Streams have one publisher, one subscriber and one topic. In shared memory they have room for
//! their depth; without a free slot a writer drops its message or waits, depending on the
//! reliability. Pipes, TCP and UNIX sockets are reliable: the kernel makes the writer wait, and the
//! depth is the size of its buffer in bytes. UDP is best effort: messages that do not fit into the
//! socket's buffer are lost. Only a message with more parts than fit into the buffer waits for
//! credits of its reader.
//!
//! Pong makes everything (memory, pipes, sockets) and passes it to ping as file descriptors. So
//! nothing has a name in the file system, and nothing can be left behind. Across hosts, which UDP
//! and TCP support, each side makes its own sockets.

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
