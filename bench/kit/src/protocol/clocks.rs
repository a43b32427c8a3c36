//! What the two hosts' clocks say of each other and of themselves.

use serde::{Deserialize, Serialize};

/// A question to the other host's clock and its answer: four stamps in ns, the outer two of the
/// clock of ping's host, the inner two of pong's (as NTP's, RFC 5905 section 8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchange {
    /// Before the question was sent.
    pub asked_ns: u64,
    /// After the other side had received it.
    pub heard_ns: u64,
    /// Before the other side sent the answer.
    pub answered_ns: u64,
    /// After the answer was received.
    pub returned_ns: u64,
}

impl Exchange {
    /// Its time on the way, there and back; of clocks that go back it may be negative.
    pub fn delay_ns(&self) -> i64 {
        let away_ns = self.returned_ns.wrapping_sub(self.asked_ns) as i64;
        away_ns.wrapping_sub(self.answered_ns.wrapping_sub(self.heard_ns) as i64)
    }
}

/// How a host's clocks are kept, by its own account, at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keeping {
    /// The clock of the run.
    pub monotonic_ns: u64,
    /// `CLOCK_REALTIME` at that moment.
    pub wall_ns: u64,
    /// Within so long both were read.
    pub width_ns: u64,
    /// Whether the kernel holds the wall clock for synchronised (`STA_UNSYNC` of adjtimex(2) is not
    /// set).
    pub is_synchronised: bool,
    /// How wrong the kernel allows that it is (`maxerror`).
    pub error_max_ns: u64,
    /// What the clock of the run is, by boot and time namespace: processes that name the same share
    /// it. Absent of one that is not CLOCK_MONOTONIC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<String>,
    /// What ptp4l says; absent where it does not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ptp: Option<Ptp>,
}

/// What PTP says of a host (linuxptp's `TIME_STATUS_NP`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ptp {
    /// Identity of the clock that all follow.
    pub grandmaster: String,
    /// What this host's clock was ahead of it, when PTP last looked.
    pub offset_ns: i64,
}
