//! The duration of a plan: estimated before it starts, improved with every run.

use super::{CellPlan, Plan};
use crate::lists::plural;
use crate::scenario::Kind;

impl Plan {
    /// The number of runs and their duration, as far as known beforehand.
    pub fn size(&self) -> String {
        let durations = Durations::new(self);
        let planned: f64 = self.runs.iter().map(|run| durations.of(run.cell)).sum();
        let runs = self.runs.len() as u32;
        let size = format!("{}, about {}", plural(runs as usize, "run"), words(planned));
        let most: u32 = self.runs_at_most().map(|(_, runs)| runs).sum();
        if most <= runs {
            return size;
        }
        let seconds = |(cell, runs): (usize, u32)| durations.of(cell) * f64::from(runs);
        let longest: f64 = self.runs_at_most().map(seconds).sum();
        format!(
            "{size}; up to {}, {}, if intervals stay wide",
            plural(most as usize, "run"),
            words(longest)
        )
    }

    /// The warm-up of each scenario; it is fixed before the scenario starts.
    pub fn warm_ups(&self) -> Vec<String> {
        let of = |scenario: &crate::scenario::Scenario| {
            let (name, messages) = (&scenario.name, scenario.workload.warmup_messages);
            let rates = scenario.workload.rate_hz.iter().map(|rate| match rate {
                Some(rate) => format!("{} at {rate} Hz", short(messages as f64 / rate)),
                None => "back to back".into(),
            });
            let warmup_s = scenario.workload.warmup_s;
            match messages {
                _ if warmup_s > 0.0 => {
                    format!("{name}: warm-up {} before each run", short(warmup_s))
                }
                0 => format!("{name}: no warm-up"),
                _ => {
                    let rates = rates.collect::<Vec<_>>().join(", ");
                    let messages = plural(messages as usize, "message");
                    format!("{name}: warm-up {messages} before each run: {rates}")
                }
            }
        };
        self.scenarios.iter().map(of).collect()
    }

    /// Expected seconds of a run of `cell`: from its rate, or from a guess where messages go back
    /// to back.
    fn seconds_expected(&self, cell: &CellPlan) -> f64 {
        let workload = &self.scenarios[cell.scenario].workload;
        let guess = 1.0 / (MESSAGE_S + BYTE_S * cell.payload_bytes as f64);
        let measured = workload.seconds_at_most(cell.rate_hz.or(Some(guess)));
        let search_s = if workload.kind == Kind::Flood { SEARCH_S } else { 0.0 };
        let daemon_s = self.system(cell).filter(|system| system.daemon).map_or(0.0, |_| DAEMON_S);
        RUN_OVERHEAD_S + daemon_s + search_s + measured.unwrap_or(0.0)
    }
}

/// How long the runs of each cell take: an estimate until the first run is made.
#[derive(Clone, Debug, Default)]
pub struct Durations {
    expected_s: Vec<f64>,
    /// Total seconds of the runs made, and their number.
    made: Vec<(f64, u32)>,
}

impl Durations {
    /// Starts with the estimates alone.
    pub fn new(plan: &Plan) -> Self {
        let expected_s: Vec<f64> =
            plan.cells.iter().map(|cell| plan.seconds_expected(cell)).collect();
        Durations { made: vec![(0.0, 0); expected_s.len()], expected_s }
    }

    /// Records that a run of `cell` took `seconds`.
    pub fn learn(&mut self, cell: usize, seconds: f64) {
        let (sum, count) = &mut self.made[cell];
        *sum += seconds;
        *count += 1;
    }

    /// Seconds of a run of `cell`: the mean of its runs so far. A cell without runs has its
    /// estimate, corrected by the runs of the other cells.
    pub fn of(&self, cell: usize) -> f64 {
        match self.made[cell] {
            (_, 0) => self.expected_s[cell] * self.correction(),
            (sum, count) => sum / f64::from(count),
        }
    }

    fn correction(&self) -> f64 {
        let pairs = self.made.iter().zip(&self.expected_s);
        let (made, expected) =
            pairs.fold((0.0, 0.0), |(made, expected), ((sum, count), of_one)| {
                (made + sum, expected + of_one * f64::from(*count))
            });
        if expected > 0.0 { made / expected } else { 1.0 }
    }
}

/// A duration as text: `40 s`, `12 min`, `2.5 h`.
pub(crate) fn words(seconds: f64) -> String {
    match seconds {
        s if s < 90.0 => format!("{s:.0} s"),
        s if s < 5_400.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3_600.0),
    }
}

/// Like [`words`], with three digits below ten seconds.
fn short(seconds: f64) -> String {
    if seconds < 9.5 { format!("{} s", (seconds * 1e3).round() / 1e3) } else { words(seconds) }
}

/// Time to start, match and stop the processes and to store the samples.
const RUN_OVERHEAD_S: f64 = 0.2;
/// Time to start a daemon, wait for its answer and stop it.
const DAEMON_S: f64 = 0.5;
/// Time in which a flood searches for its rate, in addition to the measured time.
const SEARCH_S: f64 = 5.0;
/// A round trip back to back, by way of the scheduler (no side polls).
const MESSAGE_S: f64 = 50e-6;
/// One byte of such a message: written, copied in and out, and checked, at both ends.
const BYTE_S: f64 = 2e-9;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::SystemDriver;
    use crate::scenario::{Precision, Scenario};

    fn plan(change: impl FnOnce(&mut Scenario, &mut SystemDriver)) -> Plan {
        let mut entry = SystemDriver::named("a.x");
        let mut scenario = Scenario::load("quick").unwrap();
        let workload = &mut scenario.workload;
        (workload.payload_bytes, workload.rate_hz) = (vec![64], vec![Some(10.0)]);
        (workload.messages, workload.duration_s, workload.warmup_messages) = (96, 0.0, 10);
        workload.warmup_s = 0.0;
        (scenario.plan.runs, scenario.plan.tunings) = (6, scenario.plan.tunings[..1].to_vec());
        change(&mut scenario, &mut entry);
        Plan::new(vec![(scenario, vec![entry])], 1, String::new())
    }

    #[test]
    fn the_estimate_includes_warm_up_start_and_repeats() {
        // 106 messages at 10 Hz plus 0.2 s, six times.
        assert_eq!(plan(|_, _| ()).size(), "6 runs, about 65 s");
        let daemon = plan(|_, entry| entry.system.daemon = true);
        assert_eq!(daemon.size(), "6 runs, about 68 s");
        let wide = plan(|scenario, _| {
            scenario.plan.precision = Some(Precision { interval_percent: 5.0, runs_max: 60 });
        });
        assert_eq!(
            wide.size(),
            "6 runs, about 65 s; up to 60 runs, 11 min, if intervals stay wide"
        );
        let unpaced = plan(|scenario, _| scenario.workload.rate_hz = vec![None]);
        assert_eq!(unpaced.size(), "6 runs, about 1 s");
    }

    #[test]
    fn the_warm_up_is_stated_in_messages_and_seconds() {
        let stated = |rates: Vec<Option<f64>>, messages| {
            let plan = plan(|scenario, _| {
                scenario.workload.rate_hz = rates;
                scenario.workload.warmup_messages = messages;
            });
            plan.warm_ups().join("\n")
        };
        assert_eq!(
            stated(vec![Some(30.0), Some(1000.0), None], 500),
            "quick: warm-up 500 messages before each run: 17 s at 30 Hz, 0.5 s at 1000 Hz, back to \
             back"
        );
        assert_eq!(stated(vec![None], 0), "quick: no warm-up");
    }

    #[test]
    fn finished_runs_correct_the_estimate() {
        let plan = plan(|scenario, _| scenario.workload.payload_bytes = vec![0, 64, 128]);
        let mut durations = Durations::new(&plan);
        assert!((durations.of(0) - 10.8).abs() < 1e-9);
        durations.learn(0, 20.0);
        durations.learn(0, 24.0);
        assert!((durations.of(0) - 22.0).abs() < 1e-9);
        assert!((durations.of(1) - 22.0).abs() < 1e-9, "twice as slow, as the others are");
        durations.learn(1, 10.8);
        assert!((durations.of(2) - 10.8 * 54.8 / 32.4).abs() < 1e-9);
    }
}
