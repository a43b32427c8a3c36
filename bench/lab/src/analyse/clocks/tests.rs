use myelin_bench_kit::clock::Shift;
use myelin_bench_kit::protocol::{ClockDiscipline, Exchange};
use myelin_bench_kit::samples::Record;
use proptest::prelude::*;

use super::*;
use crate::record::RunSamples;

/// The reading of a clock, as a function of ping's.
type Truth<'a> = &'a dyn Fn(u64) -> u64;

/// An exchange asked at `at_ns` and answered at once, with the given delays.
fn exchange(at_ns: u64, away_ns: u64, back_ns: u64, truth: Truth<'_>) -> Exchange {
    let there_ns = at_ns + away_ns;
    let left_ns = there_ns + 300;
    Exchange {
        asked_ns: at_ns,
        heard_ns: truth(there_ns),
        answered_ns: truth(left_ns),
        returned_ns: left_ns + back_ns,
    }
}

/// Calls [`exchange`] every 100 ms, with 30 to 90 µs each way.
fn asked(seconds: u64, truth: Truth<'_>) -> Vec<Exchange> {
    let way_ns = |number: u64, salt: u64| 30_000 + (number * 7919 + salt) % 101 * 600;
    let one = |number| {
        let at_ns = BEGIN_NS + number * 100_000_000;
        exchange(at_ns, way_ns(number, 17), way_ns(number * 3, 5), truth)
    };
    (0..10 * seconds).map(one).collect()
}

const BEGIN_NS: u64 = 40_000_000_000_000;

fn assert_bounded(map: &ClockMap, truth: Truth<'_>, at_ns: u64) -> f64 {
    let (offset_ns, error_ns) = map.offset_at(at_ns);
    let wrong_ns = (truth(at_ns) as i64 - at_ns as i64 - offset_ns) as f64;
    assert!(wrong_ns.abs() <= error_ns, "wrong by {wrong_ns} ns, said {error_ns}, at {at_ns}");
    error_ns
}

#[test]
fn offset_and_drift_are_found_within_half_of_the_least_delay() {
    let shift = Shift::new(1_500_000_000, 80.0).unwrap();
    let truth = |at_ns| shift.apply(at_ns);
    let map = ClockMap::of(&asked(20, &truth)).unwrap();
    assert_eq!((map.exchanges, map.changes()), (200, vec![]));
    for step in 0..200 {
        let error_ns = assert_bounded(&map, &truth, BEGIN_NS + step * 100_000_000);
        assert!(error_ns < map.least_delay_ns as f64 / 2.0 + 5_000.0, "{error_ns} ns");
    }
    let (drift_ppm, drift_error_ppm) = map.drift_ppm();
    assert!((drift_ppm - 80.0).abs() <= drift_error_ppm, "{drift_ppm} ± {drift_error_ppm}");
    assert!(drift_error_ppm < 10.0, "{drift_error_ppm}");
}

#[test]
fn a_step_is_found_with_its_time_and_its_size() {
    let stepped_ns = BEGIN_NS + 4_030_000_000;
    for step_ns in [2_000_000_i64, -2_000_000, 3_600_000_000_000] {
        let truth = |at_ns: u64| {
            let step_ns = if at_ns >= stepped_ns { step_ns } else { 0 };
            (at_ns + 5_000_000_000).saturating_add_signed(step_ns)
        };
        let map = ClockMap::of(&asked(10, &truth)).unwrap();
        let changes = map.changes();
        assert_eq!(changes.len(), 1, "{changes:?}");
        let change = changes[0];
        assert!(change.is_step(), "{change:?}");
        assert!((change.step_ns - step_ns as f64).abs() <= change.error_ns, "{change:?}");
        assert!(change.at_ns.abs_diff(stepped_ns) <= 100_000_000, "{change:?}");
        for at_ns in [BEGIN_NS, BEGIN_NS + 3_900_000_000, BEGIN_NS + 4_200_000_000] {
            assert_bounded(&map, &truth, at_ns);
            let (found_ns, error_ns) = map.to_ping(truth(at_ns));
            assert!(found_ns.abs_diff(at_ns) as f64 <= error_ns + 1.0);
        }
    }
}

#[test]
fn a_change_of_rate_is_not_a_step() {
    let changed_ns = BEGIN_NS + 5_000_000_000;
    let truth = |at_ns: u64| at_ns + at_ns.saturating_sub(changed_ns) / 2_500; // 400 ppm
    let map = ClockMap::of(&asked(10, &truth)).unwrap();
    let changes = map.changes();
    assert!(!changes.is_empty(), "it is no constant pace");
    assert!(!changes.iter().any(Change::is_step), "{changes:?}");
}

#[test]
fn without_answers_there_is_no_estimate() {
    let why = |exchanges: &[Exchange]| ClockMap::of(exchanges).unwrap_err();
    let truth = |at_ns| at_ns;
    let few = &asked(1, &truth)[..EXCHANGES_MIN - 1];
    assert!(why(few).contains("answered 9 times, fewer than 10"), "{}", why(few));
    let broken: Vec<Exchange> = asked(1, &truth)
        .into_iter()
        .map(|it| Exchange { heard_ns: it.answered_ns, answered_ns: it.heard_ns, ..it })
        .collect();
    assert!(why(&broken).contains("answered 0 times"), "{}", why(&broken));
    let unrest = |at_ns: u64| at_ns + (at_ns / 300_000_000 % 2) * 1_000_000;
    assert!(why(&asked(20, &unrest)).contains("clocks changed more than"));
}

#[test]
fn pongs_stamps_are_mapped_to_pings_clock_and_missing_ones_stay_missing() {
    let shift = Shift::new(-3_000_000_000, -40.0).unwrap();
    let at_ns = BEGIN_NS + 1_000_000_000;
    let taken = Record { id: 7, take_return_ns: shift.apply(at_ns), ..Record::default() };
    let mut samples = RunSamples {
        ping: vec![taken],
        pong: vec![taken, Record::default()],
        exchanges: asked(3, &|at_ns| shift.apply(at_ns)),
        load: None,
    };
    let before = samples.clone();
    let clocks = apply(&mut samples, &[]);
    let error_ns = clocks.error_ns.unwrap();
    assert_eq!((&samples.ping, samples.pong[1]), (&before.ping, Record::default()));
    let found = samples.pong[0];
    assert!((found.take_return_ns as f64 - at_ns as f64).abs() <= error_ns, "{found:?}");
    assert_eq!(Record { take_return_ns: 0, ..found }, Record { take_return_ns: 0, ..taken });
    samples.exchanges.clear();
    let clocks = apply(&mut samples, &[]);
    assert!(clocks.are_two && clocks.error_ns.is_none() && !clocks.trouble.is_empty());
}

#[test]
fn namespaces_of_one_machine_have_one_clock() {
    let clock_discipline = |names: [Option<&str>; 2]| {
        let of = |name: Option<&str>| ClockDiscipline {
            clock: name.map(str::to_owned),
            ..ClockDiscipline::default()
        };
        vec![names.map(of); 2]
    };
    let exchanges = asked(3, &|at_ns| at_ns);
    let taken = Record { id: 7, take_return_ns: BEGIN_NS, ..Record::default() };
    let applied = |names| {
        let (ping, pong, exchanges) = (vec![taken], vec![taken], exchanges.clone());
        let mut samples = RunSamples { ping, pong, exchanges, load: None };
        let clocks = apply(&mut samples, &clock_discipline(names));
        (clocks, samples.pong[0].take_return_ns)
    };
    let (clocks, at_ns) = applied([Some("boot time:1"); 2]);
    assert!(!clocks.are_two && clocks.error_ns.is_none());
    assert_eq!(at_ns, BEGIN_NS, "as it was stamped");
    let (clocks, at_ns) = applied([Some("boot time:1"), Some("boot time:2")]);
    assert!(clocks.are_two && clocks.error_ns.is_some(), "time namespaces: {at_ns}");
    assert!(applied([Some("a"), Some("b")]).0.are_two, "two machines");
    assert!(applied([None; 2]).0.are_two, "shifted clocks, and records of earlier versions");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_truth_is_always_within_the_stated_error(
        offset_ns in -10_000_000_000_000i64..20_000_000_000_000,
        drift_ppm in -500.0f64..500.0,
        ways in prop::collection::vec((1_000u64..200_000_000, 1_000u64..200_000_000), 10..120),
        quick in prop::collection::vec(any::<bool>(), 120),
        spacing_ns in 1_000_000u64..20_000_000_000,
        looked in prop::collection::vec(-0.2f64..1.2, 20),
    ) {
        let shift = Shift::new(offset_ns, drift_ppm).unwrap();
        let truth = |at_ns| shift.apply(at_ns);
        let mut at_ns = BEGIN_NS;
        let mut exchanges = Vec::new();
        for ((away_ns, back_ns), quick) in ways.iter().zip(&quick) {
            let scale = if *quick { 1000 } else { 1 };
            exchanges.push(exchange(at_ns, away_ns / scale, back_ns / scale, &truth));
            at_ns += spacing_ns + away_ns + back_ns;
        }
        let map = ClockMap::of(&exchanges).unwrap();
        prop_assert_eq!(map.changes(), vec![]);
        let (found_ppm, error_ppm) = map.drift_ppm();
        // Drift of pong's clock against ping's, as injected.
        prop_assert!((found_ppm - drift_ppm).abs() <= error_ppm, "{} ± {}", found_ppm, error_ppm);
        for part in looked {
            let at_ns = BEGIN_NS.saturating_add_signed((part * (at_ns - BEGIN_NS) as f64) as i64);
            let (found_ns, error_ns) = map.offset_at(at_ns);
            let wrong_ns = (shift.offset_at(at_ns) - found_ns) as f64;
            prop_assert!(wrong_ns.abs() <= error_ns, "wrong by {} of {}", wrong_ns, error_ns);
            let (ping_ns, error_ns) = map.to_ping(shift.apply(at_ns));
            let wrong_ns = ping_ns as f64 - at_ns as f64;
            prop_assert!(wrong_ns.abs() <= error_ns + 1.0, "wrong by {} of {}", wrong_ns, error_ns);
        }
    }

    /// The test holds for every wander of the pace within the limit.
    #[test]
    fn a_wandering_oscillator_is_within_the_stated_error(
        drift_ppm in -100.0f64..100.0,
        phase in 0.0f64..6.3,
        period_s in 1.0f64..60.0,
        ways in prop::collection::vec((20_000u64..80_000, 20_000u64..80_000), 100..300),
    ) {
        // The derivative of amplitude × sin (t × w) is at most amplitude × w.
        let w = std::f64::consts::TAU / (period_s * 1e9);
        let amplitude_ns = 0.99 * WANDER / w;
        let truth = |at_ns: u64| {
            let since = (at_ns - BEGIN_NS) as f64;
            let wander_ns = amplitude_ns * (since * w + phase).sin();
            let beyond_ns = (since * drift_ppm * 1e-6 + wander_ns).round() as i64;
            (at_ns + 1_000_000_000).saturating_add_signed(beyond_ns)
        };
        let one = |(number, (away_ns, back_ns)): (u64, &(u64, u64))| {
            exchange(BEGIN_NS + number * 100_000_000, *away_ns, *back_ns, &truth)
        };
        let exchanges: Vec<Exchange> = (0..).zip(&ways).map(one).collect();
        let map = ClockMap::of(&exchanges).unwrap();
        prop_assert_eq!(map.changes(), vec![]);
        for number in 0..ways.len() as u64 {
            let at_ns = BEGIN_NS + number * 100_000_000 + 37_000_000;
            let (found_ns, error_ns) = map.offset_at(at_ns);
            let wrong_ns = (truth(at_ns) as i64 - at_ns as i64 - found_ns) as f64;
            prop_assert!(wrong_ns.abs() <= error_ns, "wrong by {} of {}", wrong_ns, error_ns);
        }
    }
}
