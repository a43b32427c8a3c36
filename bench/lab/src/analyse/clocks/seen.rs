//! What a report says of the clocks: of a run, and of the runs of a cell together.

use super::{Clocks, Comparison};
use crate::analyse::judged::JudgedRun;
use crate::analyse::messages::Message;
use crate::run::RunSamples;
use crate::scenario::Kind;
use crate::summary::ClockFigures;

/// Of one run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// `None` of one clock, and of two that could not be compared.
    pub figures: Option<ClockFigures>,
    /// Why figures that cross the two clocks cannot be believed.
    pub trouble: Vec<String>,
}

impl Clocks {
    /// Of the run with these samples, pong's stamps on ping's clock.
    pub(crate) fn seen(&self, samples: &RunSamples) -> Seen {
        match self {
            Clocks::One => Seen::default(),
            Clocks::Unknown(unknown) => {
                Seen { trouble: vec![unknown.to_string()], ..Seen::default() }
            }
            Clocks::Compared { comparison, error_ns } => {
                let begin_ns = samples.ping.first().map_or(0, |first| first.publish_entry_ns);
                let changes = comparison.changes();
                Seen {
                    figures: Some(figures_of(comparison, *error_ns)),
                    trouble: changes.iter().map(|change| change.words(begin_ns)).collect(),
                }
            }
        }
    }
}

fn figures_of(comparison: &Comparison, error_ns: f64) -> ClockFigures {
    let at_ns = comparison.middle_ns();
    let (drift_ppm, drift_error_ppm) = comparison.drift_ppm();
    ClockFigures {
        offset_us: comparison.offset_at(at_ns).0 as f64 / 1e3,
        at_s: at_ns as f64 * 1e-9,
        drift_ppm,
        drift_error_ppm,
        error_us: error_ns / 1e3,
        exchanges: comparison.exchanges as u64,
        least_delay_us: comparison.least_delay_ns as f64 / 1e3,
        negative: 0,
    }
}

/// Of the runs together: the error of the worst, offset and drift of the first.
pub(in crate::analyse) fn figures(runs: &[&JudgedRun]) -> Option<ClockFigures> {
    let all = || runs.iter().filter_map(|run| run.clocks.figures.as_ref());
    let largest = all().map(|figures| figures.error_us).reduce(f64::max)?;
    let least = all().map(|figures| figures.least_delay_us).reduce(f64::min)?;
    let one_ways = runs.iter().flat_map(|run| run.messages.taken(Message::one_way));
    Some(ClockFigures {
        error_us: largest,
        least_delay_us: least,
        exchanges: all().map(|figures| figures.exchanges).sum(),
        negative: one_ways.filter(|way_ns| *way_ns < 0).count() as u64,
        ..all().next()?.clone()
    })
}

/// What a reader of a cell's figures must know.
pub(in crate::analyse) fn remarks(runs: &[&JudgedRun], kind: Kind) -> Vec<String> {
    let mut remarks = Vec::new();
    // Of what goes one way it is why the run is not valid.
    for run in runs.iter().filter(|_| kind == Kind::Roundtrip) {
        let number = run.number();
        let one = |trouble: &String| {
            format!(
                "run {number}: one-way figures left out, round trips are not concerned: {trouble}"
            )
        };
        remarks.extend(run.clocks.trouble.iter().map(one));
    }
    if let Some(figures) = figures(runs) {
        remarks.extend(negative(&figures, runs));
    }
    remarks
}

fn negative(figures: &ClockFigures, runs: &[&JudgedRun]) -> Option<String> {
    let least_ns = runs.iter().flat_map(|run| run.messages.taken(Message::one_way)).min()?;
    (figures.negative > 0).then(|| {
        format!(
            "{} one-way latencies are below zero, the least {:.1} µs: the clocks are known to \
             ± {:.1} µs alone",
            figures.negative,
            least_ns as f64 / 1e3,
            figures.error_us
        )
    })
}
