//! What a report says about the clocks of two hosts, over the runs of a cell.

use super::judged::JudgedRun;
use crate::scenario::Kind;
use crate::summary::ClockFigures;

/// Figures of several runs: the largest error, offset and drift of the first run.
pub(super) fn figures(runs: &[&JudgedRun<'_>]) -> Option<ClockFigures> {
    let all = || runs.iter().filter_map(|run| run.clocks.figures.as_ref());
    let largest = all().map(|figures| figures.error_us).reduce(f64::max)?;
    let least = all().map(|figures| figures.least_delay_us).reduce(f64::min)?;
    let one_ways = runs.iter().flat_map(|run| run.quantities.one_way.iter().copied());
    Some(ClockFigures {
        error_us: largest,
        least_delay_us: least,
        exchanges: all().map(|figures| figures.exchanges).sum(),
        negative: one_ways.filter(|way_ns| *way_ns < 0).count() as u64,
        ..all().next()?.clone()
    })
}

/// Remarks on the clocks for the reader of a cell's figures.
pub(super) fn remarks(runs: &[&JudgedRun<'_>], kind: Kind) -> Vec<String> {
    let mut remarks = Vec::new();
    // Trouble makes a run of a one-way workload invalid, which says the same.
    for run in runs.iter().filter(|_| kind == Kind::Roundtrip) {
        let number = run.number();
        let one = |trouble: &String| {
            format!(
                "run {number}: one-way figures left out (round trips are not affected): {trouble}"
            )
        };
        remarks.extend(run.clocks.trouble.iter().map(one));
    }
    if let Some(figures) = figures(runs) {
        remarks.extend(negative(&figures, runs));
    }
    remarks
}

fn negative(figures: &ClockFigures, runs: &[&JudgedRun<'_>]) -> Option<String> {
    let least_ns = runs.iter().flat_map(|run| run.quantities.one_way.iter().copied()).min()?;
    (figures.negative > 0).then(|| {
        format!(
            "{} one-way latencies are below zero, the least {:.1} µs: the clocks are known only to \
             ± {:.1} µs",
            figures.negative,
            least_ns as f64 / 1e3,
            figures.error_us
        )
    })
}
