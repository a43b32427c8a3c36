//! How far a session is, and when it will be over.

use std::time::Instant;

use indicatif::ProgressBar;

use super::PARTS;
use crate::plan::size::{Durations, words};

/// How far a session is, in time: runs of one cell may last a hundred times as long as another's.
#[derive(Clone)]
pub(super) struct Eta {
    begin: Instant,
    durations: Durations,
    /// Cells of the runs to come, the one in progress not among them.
    left: Vec<usize>,
    now: Option<usize>,
    pub(super) done: usize,
    done_s: f64,
}

impl Eta {
    pub(super) fn new(durations: Durations) -> Self {
        let begin = Instant::now();
        Eta { begin, durations, left: Vec::new(), now: None, done: 0, done_s: 0.0 }
    }

    pub(super) fn made_before(&mut self, cell: usize, seconds: f64) {
        self.durations.learn(cell, seconds);
        self.done += 1;
        self.done_s += seconds;
    }

    pub(super) fn add(&mut self, cells: impl Iterator<Item = usize>) {
        self.left.extend(cells);
    }

    pub(super) fn begin(&mut self, cell: usize) {
        if let Some(place) = self.left.iter().position(|left| *left == cell) {
            self.left.swap_remove(place);
        }
        self.now = Some(cell);
    }

    pub(super) fn finish(&mut self, cell: usize, seconds: f64) {
        self.made_before(cell, seconds);
        self.now = None;
    }

    pub(super) fn all(&self) -> usize {
        self.done + self.left.len() + usize::from(self.now.is_some())
    }

    /// Tenths of the runs that are over.
    pub(super) fn tenth(&self) -> usize {
        self.done * 10 / self.all().max(1)
    }

    /// Seconds left, if the run in progress is done to `part`.
    pub(super) fn left_s(&self, part: f64) -> f64 {
        let now = self.now.map_or(0.0, |cell| self.durations.of(cell) * (1.0 - part));
        now + self.left.iter().map(|cell| self.durations.of(*cell)).sum::<f64>()
    }

    pub(super) fn words(&self, part: f64) -> String {
        let (done, left) = (words(self.begin.elapsed().as_secs_f64()), words(self.left_s(part)));
        format!("{}/{} runs, {done} done, {left} left", self.done, self.all())
    }

    /// Draws that, with what is to be said of the run in progress.
    pub(super) fn show(&self, bar: &ProgressBar, part: f64, run: &str) {
        bar.set_position((PARTS as f64 * self.part_done(part)) as u64);
        bar.set_prefix(self.words(part) + run);
        bar.force_draw();
    }

    /// 0 to 1.
    pub(super) fn part_done(&self, part: f64) -> f64 {
        let done = self.done_s + self.now.map_or(0.0, |cell| self.durations.of(cell) * part);
        done / (done + self.left_s(part)).max(f64::MIN_POSITIVE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;
    use crate::registry::SystemDriver;
    use crate::scenario::Scenario;

    /// Two cells whose runs are expected to last 1.4 s and 10.4 s.
    fn eta() -> Eta {
        let text = r#"{"name": "a.x", "about": "", "wait": "block", "transport": "kernel"}"#;
        let system = serde_json::from_str(text).unwrap();
        let entry = SystemDriver { system, executable: "myelin-driver-a".into() };
        let mut scenario = Scenario::load("quick").unwrap();
        let workload = &mut scenario.workload;
        (workload.payload_bytes, workload.rate_hz) = (vec![64], vec![Some(100.0), Some(10.0)]);
        (workload.messages, workload.duration_s, workload.warmup_messages) = (100, 0.0, 0);
        workload.warmup_s = 0.0;
        scenario.plan.tunings.truncate(1);
        Eta::new(Durations::new(&Plan::new(vec![(scenario, vec![entry])], 1, String::new())))
    }

    fn is_near(one: f64, other: f64) -> bool {
        (one - other).abs() < 1e-9
    }

    #[test]
    fn time_left_is_that_of_each_run_and_grows_with_further_blocks() {
        let mut eta = eta();
        eta.left.extend([0, 1]);
        assert!(is_near(eta.left_s(0.0), 11.8));
        eta.begin(1);
        assert!(is_near(eta.left_s(0.5), 5.2 + 1.4));
        assert!(is_near(eta.part_done(0.5), 5.2 / 11.8));
        eta.finish(1, 20.8);
        assert!(is_near(eta.left_s(0.0), 2.8), "the other is expected to be as slow");
        eta.begin(0);
        eta.finish(0, 1.2);
        assert!(is_near(eta.left_s(0.0), 0.0) && is_near(eta.part_done(0.0), 1.0));
        assert_eq!((eta.done, eta.all(), eta.tenth()), (2, 2, 10));
        eta.left.push(1);
        assert!(is_near(eta.left_s(0.0), 20.8), "as long as the last of its kind");
        assert!(is_near(eta.part_done(0.0), 22.0 / 42.8));
        assert_eq!((eta.all(), eta.tenth()), (3, 6));
    }

    #[test]
    fn what_an_earlier_session_made_counts_as_done() {
        let mut eta = eta();
        eta.made_before(1, 30.0);
        eta.left.extend([1, 1]);
        assert!(is_near(eta.left_s(0.0), 60.0) && is_near(eta.part_done(0.0), 1.0 / 3.0));
        assert_eq!((eta.done, eta.all(), eta.tenth()), (1, 3, 3));
    }
}
