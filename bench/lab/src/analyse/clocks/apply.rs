//! Pong's stamps, brought to ping's clock before anything else looks at them, and what a report says of
//! the clocks.

use myelin_bench_kit::protocol::Keeping;
use myelin_bench_kit::samples::Record;

use super::ClockMap;
use crate::analyse::judged::JudgedRun;
use crate::analyse::messages::Message;
use crate::run::RunSamples;
use crate::scenario::Kind;
use crate::summary::ClockFigures;

/// How the clocks of a run's two ends stand to each other. By default they are one, on one host or in
/// namespaces of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clocks {
    /// Whether the ends had clocks of their own.
    pub are_two: bool,
    /// Of two that could be compared: the largest bound of the error of a stamp.
    pub error_ns: Option<f64>,
    /// As `error_ns`.
    pub figures: Option<ClockFigures>,
    /// Why figures that cross the two clocks cannot be believed.
    pub trouble: Vec<String>,
}

/// Whether both ends read the clock of one machine, before and after: hosts that are namespaces of
/// it share its clock, and nothing need be estimated.
fn are_one(keeping: &[[Keeping; 2]]) -> bool {
    let same = |[ping, pong]: &[Keeping; 2]| ping.clock.is_some() && ping.clock == pong.clock;
    !keeping.is_empty() && keeping.iter().all(same)
}

/// Of a run across hosts: brings pong's stamps to ping's clock, if theirs was another's. Where nothing
/// is known of it they are left as they are, and must not be compared with ping's.
pub(crate) fn apply(samples: &mut RunSamples, keeping: &[[Keeping; 2]]) -> Clocks {
    if are_one(keeping) {
        return Clocks::default();
    }
    let map = match ClockMap::of(&samples.exchanges) {
        Ok(map) => map,
        Err(unknown) => {
            return Clocks { are_two: true, trouble: vec![unknown], ..Clocks::default() };
        }
    };
    let mut error_ns = 0.0;
    for record in &mut samples.pong {
        translate(record, &map, &mut error_ns);
    }
    if samples.pong.is_empty() {
        error_ns = map.offset_at(map.middle_ns()).1;
    }
    let begin_ns = samples.ping.first().map_or(0, |first| first.publish_entry_ns);
    Clocks {
        are_two: true,
        error_ns: Some(error_ns),
        figures: Some(figures_of(&map, error_ns)),
        trouble: map.changes().iter().map(|change| change.words(begin_ns)).collect(),
    }
}

fn translate(record: &mut Record, map: &ClockMap, largest_ns: &mut f64) {
    let stamps = [
        &mut record.publish_entry_ns,
        &mut record.publish_return_ns,
        &mut record.wake_ns,
        &mut record.take_return_ns,
    ];
    // 0 says that it was not taken.
    for stamp in stamps.into_iter().filter(|stamp| **stamp != 0) {
        let (at_ns, error_ns) = map.to_ping(*stamp);
        *stamp = at_ns.max(1);
        *largest_ns = largest_ns.max(error_ns);
    }
}

fn figures_of(map: &ClockMap, error_ns: f64) -> ClockFigures {
    let at_ns = map.middle_ns();
    let (drift_ppm, drift_error_ppm) = map.drift_ppm();
    ClockFigures {
        offset_us: map.offset_at(at_ns).0 as f64 / 1e3,
        at_s: at_ns as f64 * 1e-9,
        drift_ppm,
        drift_error_ppm,
        error_us: error_ns / 1e3,
        exchanges: map.exchanges as u64,
        least_delay_us: map.least_delay_ns as f64 / 1e3,
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
