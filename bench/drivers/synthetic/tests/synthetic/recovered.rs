//! The kit reports what was injected: through the real executable, and for random options in one
//! process.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use crate::support::{Pair, Process, Samples, prepare};
use myelin_bench_kit::protocol::{Done, Prepare, Role};
use myelin_bench_kit::samples::{CORRUPT, LATE, OUT_OF_ORDER, Record, SampleFile};
use myelin_bench_kit::{Driver, Error, Reason};
use myelin_driver_synthetic::{Expected, Fate, Options, Synthetic, expected};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

const EXECUTABLE: &str = env!("CARGO_BIN_EXE_myelin-driver-synthetic");

#[test]
fn injected_percentiles_are_recovered_exactly() {
    let messages = 20_000;
    let prepare = with(json!({}), messages);
    let (done, records) = run(&prepare);
    assert_counts(&done, &expected(messages, &Options::default()));
    let mut delays: Vec<u64> = records.iter().map(round_trip_ns).collect();
    delays.sort_unstable();
    let options = Options::default();
    for (index, delay_ns) in delays.iter().enumerate() {
        let quantile = (index as f64 + 0.5) / messages as f64;
        assert_eq!(*delay_ns, options.delay_ns_at(quantile), "quantile {quantile}");
    }
    for (quantile, us) in [(0.5, 20.0), (0.9, 40.0), (0.99, 80.0), (0.999, 200.0)] {
        let found_us = delays[(quantile * messages as f64).ceil() as usize - 1] as f64 / 1e3;
        assert!((found_us - us).abs() <= (us * 0.01).max(1.0), "{quantile}: {found_us} for {us}");
    }
}

#[test]
fn every_fault_is_recovered_with_its_message() {
    let table = json!({
        "lose_every": 50, "reorder_every": 70, "duplicate_every": 30, "corrupt_every": 45,
        "stall_every": 33, "stall_ms": 3.5, "write_ns": 1500, "read_ns": 700,
    });
    let messages = 5_000;
    let prepare = with(table.clone(), messages);
    let options: Options = serde_json::from_value(table).unwrap();
    let (done, records) = run(&prepare);
    let counts = expected(messages, &options);
    assert!(counts.lost > 0 && counts.late > 0 && counts.stalled > 0);
    assert_counts(&done, &counts);
    assert_records(&records, &counts, &options);
    for record in records.iter().filter(|record| is_in_time(record)) {
        assert_eq!(record.publish_return_ns - record.publish_entry_ns, 1500);
        assert_eq!(record.take_return_ns - record.wake_ns, 700);
    }
}

#[test]
fn on_the_real_clock_no_message_is_early() {
    let table = json!({"clock": "real", "delay_us": [[0, 30], [1, 60]], "duplicate_every": 10});
    let options: Options = serde_json::from_value(table.clone()).unwrap();
    let (done, records) = run(&with(table, 500));
    assert_counts(&done, &expected(500, &options));
    let mut delays: Vec<u64> = records.iter().map(round_trip_ns).collect();
    delays.sort_unstable();
    for (index, delay_ns) in delays.iter().enumerate() {
        assert!(*delay_ns >= options.delay_ns_at((index as f64 + 0.5) / 500.0));
    }
}

#[test]
fn a_wrong_option_is_named() {
    let wrong = [
        (json!({"lose_evry": 3}), "lose_evry", "unknown field `lose_evry`"),
        (json!({"lose_every": -3}), "lose_every", "lose_every: invalid value"),
        (json!({"clock": "sun"}), "clock", "unknown variant `sun`"),
        (json!({"delay_us": [[0, 5], [1, 2]]}), "delay_us", "delay_us: expected"),
        (json!({"stall_ms": 1e8}), "stall_ms", "miss the limit"),
    ];
    for (table, key_expected, text) in wrong {
        let samples = Samples::new(1);
        let prepare = Prepare { samples: Some(samples.path()), ..with(table, 1) };
        let Reason { message, key, .. } = Synthetic.check(&prepare).unwrap_err().into_reason();
        assert!(message.contains(text), "{message}");
        assert_eq!(key, key_expected);
        let mut process = Process::start(Path::new(EXECUTABLE), &prepare);
        assert_eq!(process.expect_error()[2], key_expected);
        assert!(!process.expect_end().success());
    }
}

/// Runs the executable through the protocol.
fn run(prepare: &Prepare) -> (Done, Vec<Record>) {
    let mut pair = Pair::open(Path::new(EXECUTABLE), prepare, prepare.messages);
    let (ping, pong) = pair.finish();
    assert_eq!((pong.sent, pong.received), (0, 0));
    assert_eq!(pair.pong_samples.records(), []);
    (ping, pair.ping_samples.records())
}

fn with(table: Value, messages: u64) -> Prepare {
    let Value::Object(options) = table else { panic!("a table") };
    let reply_timeout_ns = 1_000_000_000;
    Prepare { options, messages, reply_timeout_ns, ..prepare("synthetic", Role::Ping) }
}

fn assert_counts(done: &Done, counts: &Expected) {
    assert_eq!(done.sent, counts.sent);
    assert_eq!(done.received, counts.received);
    assert_eq!(done.lost, counts.lost);
    assert_eq!(done.duplicates, counts.duplicates);
    assert_eq!(done.out_of_order, counts.out_of_order);
    assert_eq!(done.corrupt, counts.corrupt);
}

/// Asserts that each record shows the fate of its message.
fn assert_records(records: &[Record], counts: &Expected, options: &Options) {
    assert_eq!(records.len() as u64, counts.sent);
    let flagged = |flag| records.iter().filter(|record| record.flags & flag != 0).count() as u64;
    assert_eq!(flagged(OUT_OF_ORDER), counts.out_of_order);
    for (id, record) in (0..).zip(records) {
        assert_eq!(record.id, id);
        let fate = Fate::of(id, options);
        assert_eq!(record.take_return_ns == 0, fate == Fate::Lost, "{record:?}");
        assert_eq!(record.flags & LATE != 0, fate == Fate::Reordered, "{record:?}");
        assert_eq!(record.flags & CORRUPT != 0, fate == Fate::Corrupted, "{record:?}");
        assert_eq!(record.duplicates, u16::from(fate == Fate::Duplicated), "{record:?}");
    }
    let most_ns = options.delay_ns_at(1.0);
    let stalled = |record: &&Record| is_in_time(record) && round_trip_ns(record) > most_ns;
    if options.stall_ns() > most_ns {
        assert_eq!(records.iter().filter(stalled).count() as u64, counts.stalled);
    }
}

fn is_in_time(record: &Record) -> bool {
    record.take_return_ns != 0 && record.flags & LATE == 0
}

fn round_trip_ns(record: &Record) -> u64 {
    record.take_return_ns - record.publish_entry_ns
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn counts_and_records_are_as_expected(
        messages in 1u64..300,
        warmup_messages in 0u64..4,
        payload_bytes in 0u64..100,
        every in prop::array::uniform5(0u64..12),
        seed: u64,
        rate_hz in prop::option::of(10.0f64..1e5),
    ) {
        let [lose_every, reorder_every, duplicate_every, corrupt_every, stall_every] = every;
        let table = json!({
            "lose_every": lose_every, "reorder_every": reorder_every, "stall_ms": 1.0,
            "duplicate_every": duplicate_every, "corrupt_every": corrupt_every,
            "stall_every": stall_every,
        });
        let options: Options = serde_json::from_value(table.clone()).unwrap();
        let prepare = Prepare {
            payload_bytes, warmup_messages, seed, rate_hz, ..with(table, messages)
        };
        let counts = expected(messages, &options);
        match run_here(&prepare) {
            Ok((done, records)) => {
                prop_assert!(!counts.gives_up);
                assert_counts(&done, &counts);
                assert_records(&records, &counts, &options);
            }
            Err(error) => prop_assert!(counts.gives_up, "{error}"),
        }
    }
}

/// A run in this process.
fn run_here(prepare: &Prepare) -> Result<(Done, Vec<Record>), Error> {
    let samples = Samples::new(prepare.messages);
    let mut file = SampleFile::open(&samples.path()).unwrap();
    let mut link = Synthetic.open(prepare).unwrap();
    let done = link.ping(prepare, &mut file, 0, &AtomicBool::new(false))?;
    Ok((done, samples.records()))
}

#[test]
fn all_options_have_a_default() {
    let none: Options = serde_json::from_value(Value::Object(Map::new())).unwrap();
    assert_eq!(none, Options::default());
}
