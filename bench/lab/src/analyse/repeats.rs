//! Whether a cell has been repeated often enough: how wide the interval of its median is.

use super::distribution::{Sorted, us};
use super::judged::JudgedRun;
use crate::scenario::Scenario;
use crate::summary::Repeats;

/// How far the valid runs of a cell determine its median; `None` if the scenario does not ask.
pub(super) fn of(runs: &[JudgedRun], scenario: &Scenario) -> Option<Repeats> {
    let asked_percent = scenario.plan.precision?.interval_percent;
    let valid = runs.iter().filter(|run| run.is_valid());
    let latencies: Vec<&Sorted> = valid.map(|run| &run.latency).collect();
    let reached_percent = width_percent(&latencies);
    let is_narrow = reached_percent.is_some_and(|reached| reached <= asked_percent);
    Some(Repeats { asked_percent, reached_percent, is_narrow })
}

/// The interval of the median over `runs`, in per cent of that of all their messages; `None` where there
/// is no interval, or the median has too few samples.
fn width_percent(runs: &[&Sorted]) -> Option<f64> {
    let pooled = Sorted::pooled(runs.iter().copied());
    let median = us(pooled.supported(0.5)?);
    let [low, high] = pooled.interval(runs, 0.5)?;
    (median > 0.0).then(|| 100.0 * (high - low) / median)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_width_is_in_per_cent_of_the_median_and_needs_five_runs() {
        let run = |offset: i64| Sorted::new((0..100).map(|at| 100_000 + offset + at).collect());
        let same: Vec<Sorted> = (0..5).map(|_| run(0)).collect();
        let width = |runs: &[Sorted]| width_percent(&runs.iter().collect::<Vec<_>>());
        assert_eq!(width(&same), Some(0.0));
        assert_eq!(width(&same[1..]), None);
        let apart: Vec<Sorted> = (0..5).map(|at| run(at * 10_000)).collect();
        let found = width(&apart).unwrap();
        assert!((20.0..40.0).contains(&found), "of 100 to 140 µs: {found} %");
        let tiny: Vec<Sorted> = (0..5).map(|_| Sorted::new(vec![5_000])).collect();
        assert_eq!(width(&tiny), None, "five samples bear no median");
        let negative: Vec<Sorted> = (0..5).map(|_| Sorted::new(vec![-5_000; 100])).collect();
        assert_eq!(width(&negative), None);
    }
}
