//! Both ends of a stream report what was injected, in two processes and in one.

use std::path::Path;

use crate::support::many_to_many::every_message_arrives;
use crate::support::{Pair, Process, Solo, prepare};
use myelin_bench_kit::arrivals::Schedule;
use myelin_bench_kit::protocol::{Arrivals, Done, Prepare, Role, Workload};
use myelin_bench_kit::samples::{CORRUPT, OUT_OF_ORDER, Record};
use myelin_driver_synthetic::{Expected, Fate, Options, expected_of_stream};
use serde_json::{Value, json};

const EXECUTABLE: &str = env!("CARGO_BIN_EXE_myelin-driver-synthetic");

/// Both ends' counts and records.
struct Ran {
    ping: Done,
    pong: Done,
    pings: Vec<Record>,
    pongs: Vec<Record>,
}

fn in_two_processes(prepare: &Prepare) -> Ran {
    let mut pair = Pair::open(Path::new(EXECUTABLE), prepare, prepare.messages.max(100));
    let at_ns = myelin_bench_kit::clock::monotonic_ns();
    for process in [&mut pair.ping, &mut pair.pong] {
        process.say(&myelin_bench_kit::protocol::Command::Start { at_ns });
    }
    let ping = pair.ping.expect_done();
    let pong = pair.pong.expect_done();
    for process in [&mut pair.ping, &mut pair.pong] {
        process.say(&myelin_bench_kit::protocol::Command::Stop);
        assert!(process.expect_end().success());
    }
    let (pings, pongs) = (pair.ping_samples.records(), pair.pong_samples.records());
    Ran { ping, pong, pings, pongs }
}

fn in_one_process(prepare: &Prepare) -> Ran {
    let prepare = Prepare { system: "synthetic.call".into(), ..prepare.clone() };
    let mut solo = Solo::open(Path::new(EXECUTABLE), &prepare, prepare.messages);
    let (ping, pong) = solo.finish();
    let (pings, pongs) = (solo.ping_samples.records(), solo.pong_samples.records());
    Ran { ping, pong, pings, pongs }
}

fn with(table: Value, messages: u64) -> Prepare {
    let Value::Object(options) = table else { panic!("a table") };
    let (workload, rate_hz) = (Workload::Stream, Some(1000.0));
    let reply_timeout_ns = 1_000_000_000;
    let plain = prepare("synthetic", Role::Ping);
    Prepare { options, messages, workload, rate_hz, reply_timeout_ns, ..plain }
}

#[test]
fn injected_one_way_delays_are_recovered_exactly() {
    let messages = 20_000;
    let table = json!({"write_ns": 1500, "read_ns": 700});
    for run in [in_two_processes, in_one_process] {
        let ran = run(&with(table.clone(), messages));
        assert_eq!((ran.ping.sent, ran.pong.received, ran.pong.lost), (messages, messages, 0));
        let options = Options::default();
        let mut delays: Vec<u64> = Vec::new();
        for (ping, pong) in ran.pings.iter().zip(&ran.pongs) {
            assert_eq!((ping.id, ping.intended_ns), (pong.id, ping.publish_entry_ns));
            assert_eq!(pong.wake_ns, if ran.ping.pong.is_some() { 0 } else { pong.wake_ns });
            delays.push(pong.take_return_ns - ping.publish_entry_ns);
        }
        delays.sort_unstable();
        for (index, delay_ns) in delays.iter().enumerate() {
            let quantile = (index as f64 + 0.5) / messages as f64;
            assert_eq!(*delay_ns, options.delay_ns_at(quantile), "quantile {quantile}");
        }
    }
}

#[test]
fn write_and_read_times_are_recovered_separately() {
    let ran = in_two_processes(&with(json!({"write_ns": 1500, "read_ns": 700}), 1000));
    assert!(ran.pings.iter().all(|ping| ping.publish_return_ns - ping.publish_entry_ns == 1500));
    assert!(ran.pongs.iter().all(|pong| pong.take_return_ns - pong.wake_ns == 700));
}

#[test]
fn every_fault_is_counted_and_recorded_with_its_message() {
    let table = json!({
        "lose_every": 50, "reorder_every": 70, "duplicate_every": 30, "corrupt_every": 45,
        "stall_every": 33, "stall_ms": 0.4,
    });
    let options: Options = serde_json::from_value(table.clone()).unwrap();
    let messages = 5_001; // the last one is not lost
    let counts = expected_of_stream(messages, &options);
    assert!(counts.lost > 0 && counts.out_of_order > 0 && counts.corrupt > 0);
    for payload_bytes in [0, 64, 5000] {
        for run in [in_two_processes, in_one_process] {
            let prepare = Prepare { payload_bytes, ..with(table.clone(), messages) };
            let ran = run(&prepare);
            assert_counts(&ran, &counts);
            assert_records(&ran, &counts, &options);
        }
    }
}

fn assert_counts(ran: &Ran, counts: &Expected) {
    let pong = &ran.pong;
    assert_eq!(
        (ran.ping.sent, pong.received, pong.lost),
        (counts.sent, counts.received, counts.lost)
    );
    assert_eq!((pong.duplicates, pong.out_of_order), (counts.duplicates, counts.out_of_order));
    assert_eq!(pong.corrupt, counts.corrupt);
}

fn assert_records(ran: &Ran, counts: &Expected, options: &Options) {
    let flagged = |flag| ran.pongs.iter().filter(|pong| pong.flags & flag != 0).count() as u64;
    assert_eq!((flagged(CORRUPT), flagged(OUT_OF_ORDER)), (counts.corrupt, counts.out_of_order));
    for (id, pong) in (0..).zip(&ran.pongs) {
        let fate = Fate::of(id, options);
        assert_eq!(pong.take_return_ns == 0, fate == Fate::Lost, "{id}");
        assert_eq!(pong.duplicates == 1, fate == Fate::Duplicated, "{id}");
        assert_eq!(pong.flags & CORRUPT != 0, fate == Fate::Corrupted, "{id}");
    }
}

/// A blocked publisher sends the following messages late. A benchmark without coordinated omission
/// must show that, and here the delay is known to the nanosecond.
#[test]
fn a_stall_delays_the_publisher_and_later_messages() {
    let delay_us = json!([[0.0, 10.0], [1.0, 10.0]]);
    let table = json!({"stall_every": 500, "stall_ms": 50.0, "delay_us": delay_us});
    let prepare = with(table, 2000);
    // In one process the call lasts until the message has been delivered.
    for (ran, call_ns) in [(in_two_processes(&prepare), 0), (in_one_process(&prepare), DELAY_NS)] {
        assert_eq!((ran.pings.len(), ran.pongs.len()), (2000, 2000));
        for (id, late_ns) in (0..).zip(lateness(2000, 500, 50_000_000, call_ns)) {
            let (ping, pong) = (&ran.pings[id], &ran.pongs[id]);
            assert_eq!(ping.publish_entry_ns - ping.intended_ns, late_ns, "{id}");
            let stall_ns = if (id + 1) % 500 == 0 { 50_000_000 } else { 0 };
            let latency_ns = late_ns + DELAY_NS + stall_ns;
            assert_eq!(pong.take_return_ns - ping.intended_ns, latency_ns, "{id}");
        }
    }
}

/// On the real clock nothing arrives early.
#[test]
fn a_stall_on_the_real_clock_delays_later_messages() {
    let delay_us = json!([[0.0, 10.0], [1.0, 10.0]]);
    let table =
        json!({"clock": "real", "stall_every": 100, "stall_ms": 20.0, "delay_us": delay_us});
    let ran = in_one_process(&with(table, 400));
    assert_eq!((ran.pings.len(), ran.pongs.len()), (400, 400));
    for (id, late_ns) in (0..).zip(lateness(400, 100, 20_000_000, DELAY_NS)) {
        let (ping, pong) = (&ran.pings[id], &ran.pongs[id]);
        assert!(ping.publish_entry_ns - ping.intended_ns >= late_ns, "{id}: {late_ns}");
        assert!(pong.take_return_ns - ping.intended_ns >= late_ns + DELAY_NS, "{id}: {late_ns}");
    }
}

/// How late each message of a stream at 1 kHz is sent, if every `every`-th blocks the publisher for
/// `stall_ns`.
fn lateness(messages: u64, every: u64, stall_ns: u64, call_ns: u64) -> Vec<u64> {
    let mut free_ns = 0;
    let send = |id: u64| {
        let intended_ns = id * 1_000_000;
        let entry_ns = intended_ns.max(free_ns);
        let stalled = (id + 1).is_multiple_of(every);
        free_ns = entry_ns + call_ns + if stalled { stall_ns } else { 0 };
        entry_ns - intended_ns
    };
    (0..messages).map(send).collect()
}

const DELAY_NS: u64 = 10_000;

#[test]
fn several_subscribers_and_topics_get_all_messages() {
    for (subscribers, topics) in [(3, 1), (1, 7), (2, 1000)] {
        let prepare = Prepare { subscribers, topics, ..with(json!({}), 500) };
        every_message_arrives(Path::new(EXECUTABLE), &prepare);
    }
}

#[test]
fn frames_arrive_and_damage_is_detected() {
    for run in [in_two_processes, in_one_process] {
        let image = with(json!({"corrupt_every": 7}), 70);
        let image = Prepare { workload: Workload::Image, payload_bytes: 30_000, ..image };
        let ran = run(&image);
        assert_eq!((ran.pong.received, ran.pong.corrupt), (70, 10));
    }
}

#[test]
fn both_ends_follow_the_schedule() {
    let arrivals = Arrivals {
        jitter_percent: 5.0,
        drift_ppm_per_s: 10_000.0,
        missing_one_in: 10,
        period_factor: 1.3,
    };
    let prepare = Prepare { arrivals, ..with(json!({}), 3000) };
    let ran = in_two_processes(&prepare);
    let schedule = Schedule::new(&prepare).unwrap();
    let origin_ns = ran.ping.begin_ns - schedule.begin_ns();
    let measured = schedule.skip(prepare.warmup_messages as usize);
    for (ping, at_ns) in ran.pings.iter().zip(measured) {
        assert_eq!(ping.intended_ns, origin_ns + at_ns);
    }
    assert_eq!((ran.ping.sent, ran.pong.received, ran.pong.lost), (3000, 3000, 0));
    assert_eq!(ran.pings.len(), 3000);
}

#[test]
fn a_duration_ends_both_ends() {
    let ran = in_two_processes(&Prepare { duration_ns: 50_000_000, ..with(json!({}), 0) });
    assert_eq!((ran.ping.sent, ran.pong.received), (50, 50));
}

#[test]
fn a_lost_last_message_is_counted_in_one_process() {
    let last = with(json!({"lose_every": 50}), 50);
    let [two, one] = [in_two_processes(&last), in_one_process(&last)];
    assert_eq!((two.ping.sent, two.pong.received, two.pong.lost), (50, 49, 0));
    assert_eq!((one.ping.sent, one.pong.received, one.pong.lost), (50, 49, 1));
}

#[test]
fn publish_calls_take_the_configured_time() {
    let table = json!({"write_ns": 300, "write_per_subscriber_ns": 40});
    for subscribers in [0, 1, 4] {
        let prepare =
            Prepare { workload: Workload::Publish, subscribers, ..with(table.clone(), 50) };
        let ran = in_one_process(&prepare);
        assert_eq!(ran.pong.received, 50 * u64::from(subscribers));
        let call_ns = 300 + 40 * u64::from(subscribers);
        assert!(ran.pings.iter().all(|r| r.publish_return_ns - r.publish_entry_ns == call_ns));
    }
}

#[test]
fn invalid_options_are_refused_before_the_run() {
    let real = with(json!({"clock": "real"}), 10);
    assert_eq!(Process::refusal(Path::new(EXECUTABLE), &real)[2], "clock");
    let without = Prepare { rate_hz: None, ..with(json!({}), 10) };
    assert!(
        Process::refusal(Path::new(EXECUTABLE), &without)[0]
            .starts_with("rate_hz: a subscriber of synthetic takes")
    );
    let arrivals = Arrivals { jitter_percent: -1.0, ..Arrivals::default() };
    let odd = Prepare { arrivals, ..with(json!({}), 10) };
    assert!(
        Process::refusal(Path::new(EXECUTABLE), &odd)[0].starts_with("arrivals.jitter_percent: -1")
    );
}
