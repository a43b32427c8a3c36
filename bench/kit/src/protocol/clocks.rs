//! The two hosts' clocks: their exchanges, and the state of each by its own account.

use serde::{Deserialize, Serialize};

/// A request to the other host's clock and its answer. It has four stamps in ns: the outer two from
/// the clock of ping's host, the inner two from that of pong's (as in NTP, RFC 5905 section 8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchange {
    /// Before the request was sent.
    pub asked_ns: u64,
    /// After the other side had received it.
    pub heard_ns: u64,
    /// Before the other side sent the answer.
    pub answered_ns: u64,
    /// After the answer was received.
    pub returned_ns: u64,
}

impl Exchange {
    /// The time on the way, there and back; negative if a clock went back.
    pub fn delay_ns(&self) -> i64 {
        let away_ns = self.returned_ns.wrapping_sub(self.asked_ns) as i64;
        away_ns.wrapping_sub(self.answered_ns.wrapping_sub(self.heard_ns) as i64)
    }
}

/// How a host's clocks are synchronised at one moment, by its own account.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockDiscipline {
    /// The clock of the run.
    pub monotonic_ns: u64,
    /// `CLOCK_REALTIME` at that moment.
    pub wall_ns: u64,
    /// The interval within which both were read.
    pub width_ns: u64,
    /// Whether the kernel considers the wall clock synchronised (`STA_UNSYNC` of adjtimex(2) is not
    /// set).
    pub is_synchronised: bool,
    /// The kernel's bound of its error (`maxerror`).
    pub error_max_ns: u64,
    /// Identity of the run's clock, from boot and time namespace: processes with the same value
    /// share the clock. Absent for clocks other than CLOCK_MONOTONIC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<String>,
    /// State of ptp4l; absent if it does not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ptp: Option<Ptp>,
}

/// State of PTP on a host (linuxptp's `TIME_STATUS_NP`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ptp {
    /// Identity of the grandmaster clock.
    pub grandmaster: String,
    /// Offset of this host's clock, ahead of the grandmaster, at PTP's last update.
    pub offset_ns: i64,
}
