//! The library in every driver of `myelin bench`: the clock, the sample file, the line protocol and
//! the measuring loops. So the same code times every system.
//!
//! A driver supplies a [`Driver`]: which systems it can run and how to open their two ends. The kit
//! supplies the program: `fn main() -> ExitCode { myelin_bench_kit::main(&MyDriver) }`. C and C++
//! drivers do the same through `include/myelin_bench_kit.h`.
//!
//! ```text
//! lab ──JSON line on stdin──▶ session ─▶ a workload ─▶ Publisher / Subscriber (the adaptor)
//! lab ◀─JSON line on stdout── session        └─▶ sample file (memory the lab has mapped too)
//!
//! workloads  pingpong      round trips; callback_pong: pong's end if the system calls it
//!            fan           publish; calls: the same with callbacks in one process
//!            stream        streams, images and replays between processes; one_process: within one
//!              ├─ due          when messages are due: arrivals at a rate, trace as recorded
//!              ├─ outgoing     fills, stamps and publishes
//!              ├─ pace         waits until messages are due
//!              └─ accounting   what has arrived: numbers, sequence_window, copies
//!            flood         as fast as possible, and the highest rate without loss
//!            startup       from nothing to the first message
//! across hosts  clock_exchange     reads the other host's clock
//!               clock_discipline   how this host's clock is synchronised
//! ```

#![deny(unsafe_op_in_unsafe_fn)]

mod accounting;
pub mod arrivals;
mod call_slots;
mod callback_pong;
mod calls;
pub mod capi;
mod check;
pub mod clock;
mod clock_discipline;
mod clock_exchange;
mod copies;
pub mod driver;
pub mod due;
mod enclave;
mod error;
pub mod fan;
pub mod flood;
pub mod loopback;
pub mod message;
pub mod network;
pub mod numbers;
mod one_process;
mod outgoing;
mod pace;
mod part;
pub mod pingpong;
pub mod process;
pub mod protocol;
pub mod run_folder;
pub mod samples;
mod sequence_window;
mod session;
mod startup;
pub mod stream;
pub mod trace;
mod transfer;

pub use call_slots::CallSlots;
pub use check::check;
pub use clock::Clock;
pub use driver::{
    Answerer, Call, CallSource, Daemon, Driver, Fan, Link, Publisher, Receiver, RoundTrip, Stream,
    Subscriber,
};
pub use error::{Error, Reason};
pub use session::{act, main};
