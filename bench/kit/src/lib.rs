//! What every driver of `myelin bench` links: the clock, the sample file, the line protocol and the
//! measuring loop, so that every system is timed by the same code.
//!
//! A driver supplies a [`Driver`]: which systems it can run and how to open their two ends. The kit
//! supplies the program: `fn main() -> ExitCode { myelin_bench_kit::main(&MyDriver) }`. C and C++
//! drivers do the same through `include/myelin_bench_kit.h`.
//!
//! ```text
//! lab ──JSON line on stdin──▶ session ─▶ pingpong, fan ─▶ Publisher / Subscriber (the adaptor)
//! lab ◀─JSON line on stdout── session         └─▶ sample file (memory the lab has mapped too)
//! ```

#![deny(unsafe_op_in_unsafe_fn)]

pub mod capi;
pub mod clock;
pub mod driver;
pub mod fan;
pub mod message;
pub mod pingpong;
pub mod process;
pub mod protocol;
pub mod samples;
mod session;
mod transfer;

pub use clock::Clock;
pub use driver::{
    CallSource, Daemon, Driver, Error, Fan, Link, Publisher, Receiver, Stream, Subscriber,
};
pub use session::main;
