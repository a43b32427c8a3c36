//! The test of stationarity against simulated runs of known kinds. All seeds are fixed.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::*;

/// Factor on a latency, as a function of the finished fraction of the run.
type Shape = fn(f64) -> f64;

/// A run of skewed latencies around 20 µs. `memory` is the correlation of neighbours.
fn run(seed: u64, len: usize, deviation: f64, memory: f64, shape: Shape) -> Vec<i64> {
    let mut random = StdRng::seed_from_u64(seed);
    let mut normal = || {
        let (radius, turn): (f64, f64) = (random.random(), random.random());
        (-2.0 * (1.0 - radius).ln()).sqrt() * (std::f64::consts::TAU * turn).cos()
    };
    let mut state = normal();
    let one = |index: usize| {
        state = memory * state + (1.0 - memory * memory).sqrt() * normal();
        let factor = shape(index as f64 / len as f64) * (deviation * state).exp();
        (20_000.0 * factor) as i64
    };
    (0..len).map(one).collect()
}

fn accused(runs: u64, judge: impl Fn(u64) -> Option<Drift>) -> u64 {
    (0..runs).filter(|seed| judge(*seed).is_some()).count() as u64
}

fn series(values: &[i64]) -> Vec<f64> {
    values.iter().map(|value| *value as f64).collect()
}

fn steady(_: f64) -> f64 {
    1.0
}

#[test]
fn independent_noise_is_flagged_in_at_most_one_percent() {
    // With ten latencies a part and a deviation of e, a change of 10 % between the thirds is
    // common. So the rank tests alone must hold.
    let judge = |seed| drift(&run(seed, 300, 1.0, 0.0, steady), 1);
    let false_alarms = accused(2000, judge);
    assert!((1..=20).contains(&false_alarms), "{false_alarms} of 2000");
}

#[test]
fn each_test_alone_keeps_its_half_of_the_false_alarms() {
    let series = |seed| series(&run(seed, PARTS, 1.0, 0.0, steady));
    let trends = (0..4000).filter(|seed| mann_kendall_z(&series(*seed)).abs() > Z_MAX).count();
    let steps = (0..4000).filter(|seed| pettitt_p(&series(*seed)) < EACH_TEST).count();
    assert!((8..=30).contains(&trends), "{trends} of 4000, 20 expected");
    assert!((1..=25).contains(&steps), "{steps} of 4000; the approximation is from above");
}

#[test]
fn short_correlated_noise_is_flagged_as_rarely() {
    // The memory is 10 latencies, a part is 100.
    let judge = |seed| drift(&run(seed, 3000, 1.0, 0.9, steady), 1);
    let false_alarms = accused(300, judge);
    assert!(false_alarms <= 6, "{false_alarms} of 300, 2 expected");
}

#[test]
fn long_correlated_noise_is_flagged_as_often_as_documented() {
    let judge = |seed| drift(&run(seed, 3000, 1.0, 0.99, steady), 1);
    let alarms = accused(200, judge);
    assert!((5..=35).contains(&alarms), "{alarms} of 200, 16 expected");
}

#[test]
fn a_drift_a_decay_and_a_step_are_found() {
    let shapes: [(&str, Shape); 5] = [
        ("drift by 30 %", |at| 1.0 + 0.3 * at),
        ("drift down", |at| 1.0 - 0.25 * at),
        ("a warm-up too short by half of the run", |at| 1.0 + (-6.0 * at).exp()),
        ("step up in the middle", |at| if at < 0.5 { 1.0 } else { 1.3 }),
        ("step down at three tenths", |at| if at < 0.3 { 1.3 } else { 1.0 }),
    ];
    for (name, shape) in shapes {
        let found = accused(50, |seed| drift(&run(seed, 3000, 0.3, 0.5, shape), 1));
        assert!(found >= 49, "{name}: {found} of 50");
    }
}

#[test]
fn a_step_in_the_middle_needs_pettitt_and_a_drift_does_not() {
    // Two levels, each with a falling trend: half of all pairs contradict the rise.
    let at = |part: usize| part as f64;
    let step: Vec<f64> =
        (0..PARTS).map(|part| if part < 15 { -at(part) } else { 90.0 - at(part) }).collect();
    assert!(mann_kendall_z(&step).abs() < Z_MAX && pettitt_p(&step) < EACH_TEST);
    let drift: Vec<f64> = (0..PARTS).map(at).collect();
    assert!(mann_kendall_z(&drift) > 7.0);
}

#[test]
fn immaterial_changes_count_as_settled() {
    let small = |at: f64| 1.0 + 0.05 * at;
    assert_eq!(accused(50, |seed| drift(&run(seed, 3000, 0.3, 0.0, small), 1)), 0);
    // On a clock with steps of 15 ns, 10 ns to 20 ns is one step.
    let ticks: Vec<i64> = (0..3000).map(|at| if at < 1500 { 10 } else { 20 }).collect();
    assert_eq!(drift(&ticks, 15), None);
    assert_eq!(drift(&ticks, 1), Some(Drift { from_ns: 10.0, to_ns: 20.0 }));
}

#[test]
fn a_passing_pulse_is_not_a_drift() {
    let pulse = |at: f64| if (0.4..0.6).contains(&at) { 3.0 } else { 1.0 };
    assert_eq!(accused(50, |seed| drift(&run(seed, 3000, 0.3, 0.0, pulse), 1)), 0);
}

#[test]
fn ties_reduce_the_variance_by_kendalls_formula() {
    // Ten values in two ordered groups of five ties: S = 25, Var = (2250 - 2 * 300) / 18.
    let series = [1.0, 1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0, 2.0];
    let expected = 24.0 / (1650.0f64 / 18.0).sqrt();
    assert!((mann_kendall_z(&series) - expected).abs() < 1e-12);
    assert!((pettitt_p(&series) - 2.0 * (-6.0 * 625.0 / 1100.0f64).exp()).abs() < 1e-12);
    assert_eq!(mann_kendall_z(&[7.0; 30]), 0.0);
    assert_eq!(pettitt_p(&[7.0; 30]), 1.0);
}

#[test]
fn few_latencies_have_no_verdict() {
    let rising: Vec<i64> = (1..=300).collect();
    assert_eq!(drift(&rising[..299], 0), None);
    assert_eq!(drift(&rising, 0), Some(Drift { from_ns: 50.5, to_ns: 250.5 }));
    assert_eq!(drift(&[], 0), None);
}
