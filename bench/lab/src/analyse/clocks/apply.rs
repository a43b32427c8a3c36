//! Converts pong's stamps to ping's clock before anything else reads them.

use myelin_bench_kit::protocol::ClockDiscipline;
use myelin_bench_kit::samples::Record;

use super::ClockMap;
use crate::record::RunSamples;
use crate::summary::ClockFigures;

/// The relation of the clocks at the two ends of a run. By default both ends read one clock, on one
/// host or in its namespaces.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clocks {
    /// Whether each end had its own clock.
    pub are_two: bool,
    /// Largest error bound of a stamp, if two clocks could be compared.
    pub error_ns: Option<f64>,
    /// Present when `error_ns` is.
    pub figures: Option<ClockFigures>,
    /// Reasons why figures from both clocks are not valid.
    pub trouble: Vec<String>,
}

/// Whether both ends read the clock of one machine, before and after. Hosts that are namespaces of
/// one machine share its clock, so nothing needs estimating.
fn are_one(clock_discipline: &[[ClockDiscipline; 2]]) -> bool {
    let same =
        |[ping, pong]: &[ClockDiscipline; 2]| ping.clock.is_some() && ping.clock == pong.clock;
    !clock_discipline.is_empty() && clock_discipline.iter().all(same)
}

/// Converts pong's stamps of a run across hosts to ping's clock, if pong had another one. Without
/// an estimate they stay unchanged and must not be compared with ping's.
pub(crate) fn apply(samples: &mut RunSamples, clock_discipline: &[[ClockDiscipline; 2]]) -> Clocks {
    if are_one(clock_discipline) {
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
    // A stamp of 0 was not taken.
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
