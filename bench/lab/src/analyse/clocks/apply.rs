//! Pong's stamps, brought to ping's clock: before anything else looks at them.

use myelin_bench_kit::protocol::Keeping;
use myelin_bench_kit::samples::Record;

use super::{Comparison, Unknown};
use crate::run::RunSamples;

/// How the clocks of a run's two ends stand to each other.
#[derive(Clone, Debug, Default)]
pub(crate) enum Clocks {
    /// They are one, on one host or in namespaces of it.
    #[default]
    One,
    /// They are two hosts', and were compared.
    Compared {
        /// The map from one to the other.
        comparison: Box<Comparison>,
        /// The largest bound of the error of a stamp, in ns.
        error_ns: f64,
    },
    /// They are two hosts', and nothing that crosses them can be known.
    Unknown(Unknown),
}

impl Clocks {
    /// Whether the ends had clocks of their own.
    pub(crate) fn are_two(&self) -> bool {
        !matches!(self, Clocks::One)
    }

    /// The error of whatever crosses the two clocks, in ns; `None` of one clock.
    pub(crate) fn error_ns(&self) -> Option<f64> {
        match self {
            Clocks::Compared { error_ns, .. } => Some(*error_ns),
            _ => None,
        }
    }
}

/// Whether both ends read the clock of one machine, before and after: hosts that are namespaces of
/// it share its clock, and nothing need be estimated.
fn are_one(keeping: &[[Keeping; 2]]) -> bool {
    let same = |[ping, pong]: &[Keeping; 2]| ping.clock.is_some() && ping.clock == pong.clock;
    !keeping.is_empty() && keeping.iter().all(same)
}

/// Of a run across hosts: brings pong's stamps to ping's clock, if theirs was another's. Where nothing is known of it they
/// are left as they are, and must not be compared with ping's.
pub(crate) fn apply(samples: &mut RunSamples, keeping: &[[Keeping; 2]]) -> Clocks {
    if are_one(keeping) {
        return Clocks::One;
    }
    let comparison = match Comparison::of(&samples.exchanges) {
        Ok(comparison) => comparison,
        Err(unknown) => return Clocks::Unknown(unknown),
    };
    let mut error_ns = 0.0;
    for record in &mut samples.pong {
        translate(record, &comparison, &mut error_ns);
    }
    if samples.pong.is_empty() {
        error_ns = comparison.offset_at(comparison.middle_ns()).1;
    }
    Clocks::Compared { comparison: Box::new(comparison), error_ns }
}

fn translate(record: &mut Record, comparison: &Comparison, largest_ns: &mut f64) {
    let stamps = [
        &mut record.publish_entry_ns,
        &mut record.publish_return_ns,
        &mut record.wake_ns,
        &mut record.take_return_ns,
    ];
    for stamp in stamps {
        if *stamp == 0 {
            continue; // not taken
        }
        let (at_ns, error_ns) = comparison.to_ping(*stamp);
        // 0 would say that it was not taken.
        *stamp = at_ns.max(1);
        *largest_ns = largest_ns.max(error_ns);
    }
}
