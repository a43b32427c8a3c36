//! A middleware that does not exist: it delivers with the delays, stalls, loss, duplicates,
//! reordering and corruption that the scenario asks for ([`Options`]). What the bench then reports
//! can be compared with what is known to be true ([`expected`], [`Options::delay_ns_at`]).
//!
//! Ping simulates the whole round trip inside its own process. Pong is a real process that opens,
//! idles until it is told to stop, and answers nothing: its sample file stays empty and its counts
//! are zero.
//!
//! ```text
//! options ─▶ fate      what becomes of each message, and the counts that follow from it
//!        └─▶ delay     how long each takes
//!              └─▶ simulate      publisher and subscriber on a virtual or the real clock
//! ```
//! Of publish runs, ping simulates the publish call, and pong's subscribers take what they know to have
//! been published. Of streams likewise, when it is due; in one process, ping calls the receivers.
//! Across hosts messages do travel (`across`, over a `wire`), between clocks that are known to differ.

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
