use super::*;
use crate::protocol::{Arrivals, PROTOCOL, Role};
use proptest::prelude::*;

fn prepare(rate_hz: Option<f64>, messages: u64, arrivals: Arrivals, seed: u64) -> Prepare {
    let text = format!(
        r#"{{"protocol": {PROTOCOL}, "system": "s", "role": "ping", "run": "r", "domain": 0,
            "payload_bytes": 0, "messages": {messages}, "duration_ns": 0, "warmup_messages": 10,
            "rate_hz": null, "reply_timeout_ns": 1, "match_timeout_ns": 1, "record_every": 1,
            "samples": null, "directory": ".", "lock_memory": false, "seed": {seed}}}"#
    );
    let plain: Prepare = serde_json::from_str(&text).unwrap();
    assert_eq!(plain.role, Role::Ping);
    Prepare { rate_hz, arrivals, ..plain }
}

/// Times of the measured part, relative to its beginning.
fn times(prepare: &Prepare) -> Vec<f64> {
    let schedule = Schedule::new(prepare).unwrap();
    let begin_ns = schedule.begin_ns() as f64;
    let measured = schedule.skip(prepare.warmup_messages as usize);
    measured.map(|at_ns| at_ns as f64 - begin_ns).collect()
}

fn distances(times: &[f64]) -> Vec<f64> {
    times.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn plain() -> Arrivals {
    Arrivals::default()
}

#[test]
fn an_even_schedule_has_multiples_of_the_period() {
    let prepare = prepare(Some(1e6), 100, plain(), 1);
    let all: Vec<u64> = Schedule::new(&prepare).unwrap().collect();
    assert_eq!(all, (0..110).map(|place| place * 1000).collect::<Vec<_>>());
    assert_eq!(Schedule::new(&prepare).unwrap().begin_ns(), 10_000);
    assert!(Schedule::new(&Prepare { rate_hz: None, ..prepare }).is_none());
}

#[test]
fn a_duration_ends_the_schedule() {
    let by_time = Prepare { duration_ns: 10_000, ..prepare(Some(1e6), 0, plain(), 1) };
    assert_eq!(times(&by_time).len(), 10);
    assert_eq!(times(&Prepare { messages: 4, ..by_time }).len(), 4);
}

#[test]
fn jitter_has_its_deviation_and_is_cut_off_at_half_a_period() {
    for (percent, expected) in [(5.0, 0.05), (20.0, 0.199), (1000.0, 0.49)] {
        let jitter = Arrivals { jitter_percent: percent, ..plain() };
        let times = times(&prepare(Some(1e6), 50_000, jitter, 3));
        let moved = |(place, at): (usize, &f64)| at / 1000.0 - place as f64;
        let moved: Vec<f64> = times.iter().enumerate().map(moved).collect();
        let sigma = mean(&moved.iter().map(|by| by * by).collect::<Vec<_>>()).sqrt();
        assert!(mean(&moved).abs() < 0.01, "{percent}: {}", mean(&moved));
        assert!((sigma - expected).abs() < 0.02 * expected, "{percent}: {sigma}");
        assert!(moved.iter().all(|by| by.abs() <= 0.501), "{percent}");
    }
}

#[test]
fn drift_changes_the_period_by_ppm_per_second() {
    let drift = Arrivals { drift_ppm_per_s: 10_000.0, ..plain() };
    let times = times(&prepare(Some(1000.0), 5000, drift, 1));
    for (at, distance) in times.iter().zip(distances(&times)) {
        let expected = 1e6 * (1.0 + 0.01 * at * 1e-9);
        assert!((distance - expected).abs() < 2.0, "{at}: {distance}");
    }
}

#[test]
fn every_nth_message_is_missing() {
    let missing = Arrivals { missing_one_in: 10, ..plain() };
    let times = times(&prepare(Some(1e6), 50_000, missing, 5));
    assert_eq!(times.len(), 50_000, "what is missing is not counted");
    let places = times.last().unwrap() / 1000.0 + 1.0;
    let share = 1.0 - times.len() as f64 / places;
    assert!((share - 0.1).abs() < 0.005, "{share}");
    assert!(distances(&times).iter().all(|distance| distance % 1000.0 == 0.0));
}

#[test]
fn the_warm_up_has_no_gaps_and_no_drift() {
    let arrivals = Arrivals { missing_one_in: 1, drift_ppm_per_s: 1e6, ..plain() };
    let by_time = Prepare { duration_ns: 1_000_000, ..prepare(Some(1e6), 0, arrivals, 5) };
    let all: Vec<u64> = Schedule::new(&by_time).unwrap().collect();
    assert_eq!(all, (0..10).map(|place| place * 1000).collect::<Vec<_>>());
}

#[test]
fn the_period_changes_at_the_middle() {
    let factor = Arrivals { period_factor: 1.5, ..plain() };
    let by_number = prepare(Some(1e6), 100, factor, 1);
    let distances = distances(&times(&by_number));
    assert_eq!(distances[..50], [1000.0; 50]);
    assert_eq!(distances[50..], [1500.0; 49]);
    let by_time = Prepare { messages: 0, duration_ns: 100_000, ..by_number };
    let times = times(&by_time);
    assert_eq!((times[50], times[51], times.len()), (50_000.0, 51_500.0, 84));
}

#[test]
fn invalid_values_are_refused_with_their_key() {
    let refused = |rate_hz, arrivals| {
        let error = check(&prepare(rate_hz, 1, arrivals, 1)).unwrap_err();
        assert!(!error.remedy.is_empty());
        error.into_reason().message
    };
    assert!(refused(Some(0.0), plain()).starts_with("rate_hz"));
    assert!(refused(Some(f64::NAN), plain()).starts_with("rate_hz"));
    let jitter = Arrivals { jitter_percent: -1.0, ..plain() };
    assert!(refused(Some(1.0), jitter).starts_with("arrivals.jitter_percent"));
    let drift = Arrivals { drift_ppm_per_s: f64::INFINITY, ..plain() };
    assert!(refused(Some(1.0), drift).starts_with("arrivals.drift_ppm_per_s"));
    let factor = Arrivals { period_factor: 2.0, ..plain() };
    assert!(refused(None, factor).starts_with("arrivals: a schedule needs rate_hz"));
    assert!(check(&prepare(None, 1, plain(), 1)).is_ok());
}

proptest! {
    #[test]
    fn one_seed_gives_one_schedule_whose_times_never_fall(
        seed: u64, rate_hz in 1.0..1e6, jitter_percent in 0.0..100.0,
        drift_ppm_per_s in -1e6..1e6, missing_one_in in 0u32..20, period_factor in 0.0..3.0,
    ) {
        let arrivals = Arrivals { jitter_percent, drift_ppm_per_s, missing_one_in, period_factor };
        let of = |seed| {
            let prepare = prepare(Some(rate_hz), 200, arrivals, seed);
            // If every message is missing, the iterator never ends.
            let enough = if missing_one_in == 1 { 10 } else { 210 };
            Schedule::new(&prepare).unwrap().take(enough).collect::<Vec<u64>>()
        };
        let times = of(seed);
        prop_assert_eq!(&times, &of(seed));
        prop_assert!(times.is_sorted());
        if jitter_percent > 1.0 {
            prop_assert_ne!(times, of(seed.wrapping_add(1)));
        }
    }
}
