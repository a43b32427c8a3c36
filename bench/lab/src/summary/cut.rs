//! What is said of a link that was cut.

use serde::{Deserialize, Serialize};

/// What a cut of the link between the hosts did in one run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CutFigures {
    /// When the link went down, in seconds from the first measured message.
    pub at_s: f64,
    /// How long it was down.
    pub for_s: f64,
    /// The longest time without a message taken that the cut is a part of; null if nothing was taken
    /// before it, or nothing after.
    pub silent_s: Option<f64>,
    /// Messages sent while it was down.
    pub sent: u64,
    /// Those of them that were never taken.
    pub lost: u64,
    /// Those of them that were taken when it was up again.
    pub late: u64,
}
