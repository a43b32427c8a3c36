//! A simulated middleware: it delivers with the delays, stalls, loss, duplicates, reordering and
//! corruption of the scenario ([`Options`]). So the bench's results can be compared with the truth
//! ([`expected`], [`Options::delay_ns_at`]).
//!
//! Ping simulates the whole round trip inside its own process. Pong is a real process that opens,
//! idles until it is stopped, and answers nothing: its sample file stays empty and its counts are
//! zero.
//!
//! ```text
//! options ─▶ fate      the fate of each message, and the counts that follow from it
//!        └─▶ delay     the delay of each message
//!              └─▶ simulate      publisher and subscriber on a virtual or the real clock
//! ```
//! In publish runs ping simulates the publish call, and pong's subscribers know what was published
//! and take it. Streams work in the same way, at the time when a message is due; in one process,
//! ping calls the receivers. Across hosts messages do travel (`across`, over a `wire`), between
//! clocks with a known difference.

mod across;
mod delay;
mod driver;
mod fan;
mod fate;
mod options;
mod route;
mod simulate;
mod stream;
mod wire;

pub use driver::Synthetic;
pub use fate::{Expected, Fate, expected, expected_of_stream};
pub use options::{Options, Time};
