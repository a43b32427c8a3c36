//! Between two network namespaces messages really travel. The clocks differ by an offset that the
//! driver injects or the kernel makes, and readings of pong's clock show that.

use std::path::Path;
use std::process::Command as Program;

use crate::support::hosts::{ADDRESSES, Hosts};
use crate::support::{Process, Samples, prepare};
use myelin_bench_kit::clock::Shift;
use myelin_bench_kit::protocol::{Command, Done, Exchange, Prepare, Role, Workload};
use myelin_bench_kit::samples::Record;
use serde_json::{Value, json};

const EXECUTABLE: &str = env!("CARGO_BIN_EXE_myelin-driver-synthetic");
const OFFSET_NS: i64 = 1_500_000_000;
const DRIFT_PPM: f64 = 80.0;

/// The result of a run.
struct Ran {
    ping: Done,
    pong: Done,
    pings: Vec<Record>,
    pongs: Vec<Record>,
    exchanges: Vec<Exchange>,
}

/// A run in the lab's order; `program` starts the processes on the host of a role.
fn run(hosts: &Hosts, prepare: &Prepare, program: impl Fn(Role) -> Program) -> Ran {
    let (ping_samples, pong_samples) = (Samples::new(1000), Samples::new(1000));
    let start = |host, role, samples: Option<&Samples>| {
        let network = Some(hosts.network(host));
        let index = u32::from(role == Role::Clock && host == Role::Pong);
        let samples = samples.map(Samples::path);
        let prepare = Prepare { role, network, index, samples, ..prepare.clone() };
        Process::start_by(program(host), &prepare)
    };
    let mut clocks = [Role::Ping, Role::Pong].map(|host| start(host, Role::Clock, None));
    for clock in &mut clocks {
        clock.expect_ready();
        // In the past on any clock.
        clock.say(&Command::Start { at_ns: 0 });
    }
    let mut pong = start(Role::Pong, Role::Pong, Some(&pong_samples));
    let mut ping = start(Role::Ping, Role::Ping, Some(&ping_samples));
    for process in [&mut pong, &mut ping] {
        process.expect_ready();
        process.say(&Command::Start { at_ns: 0 });
    }
    let ping_done = ping.expect_done();
    pong.say(&Command::Stop);
    let pong_done = pong.expect_done();
    ping.say(&Command::Stop);
    assert!(ping.expect_end().success() && pong.expect_end().success());
    let exchanges = clocks.each_mut().map(|clock| {
        clock.say(&Command::Stop);
        let exchanges = clock.expect_done().exchanges;
        assert!(clock.expect_end().success());
        exchanges
    });
    assert!(exchanges[1].is_empty(), "one side asks");
    Ran {
        ping: ping_done,
        pong: pong_done,
        pings: ping_samples.records(),
        pongs: pong_samples.records(),
        exchanges: exchanges[0].clone(),
    }
}

fn with(table: Value, workload: Workload) -> Prepare {
    let Value::Object(options) = table else { panic!("a table") };
    let rate_hz = Some(200.0);
    let plain = prepare("synthetic", Role::Ping);
    Prepare { options, workload, rate_hz, messages: 100, payload_bytes: 3000, ..plain }
}

/// With `shift` as the difference of the clocks, no request is answered before it was sent.
fn assert_possible(exchanges: &[Exchange], shift: Shift) {
    assert!(exchanges.len() > 100, "{} exchanges", exchanges.len());
    for exchange in exchanges {
        assert!(shift.apply(exchange.asked_ns) <= exchange.heard_ns + 1, "{exchange:?}");
        assert!(exchange.answered_ns <= shift.apply(exchange.returned_ns) + 1, "{exchange:?}");
    }
}

#[test]
fn a_round_trip_has_its_delay_and_pong_a_shifted_clock() {
    let Some(hosts) = Hosts::new(ADDRESSES) else { return };
    let table = json!({
        "clock_offset_us": OFFSET_NS as f64 * 1e-3, "clock_drift_ppm": DRIFT_PPM,
        "delay_us": [[0, 20000], [1, 20000]], "write_ns": 1500,
    });
    let program = |host| hosts.program(host, Path::new(EXECUTABLE));
    let ran = run(&hosts, &with(table, Workload::Roundtrip), program);
    assert_eq!((ran.ping.sent, ran.ping.lost, ran.ping.corrupt), (100, 0, 0));
    let shift = Shift::new(OFFSET_NS, DRIFT_PPM).unwrap();
    assert_possible(&ran.exchanges, shift);
    assert_eq!((ran.pings.len(), ran.pongs.len()), (100, 100));
    for (ping, pong) in ran.pings.iter().zip(&ran.pongs) {
        assert!(ping.take_return_ns >= ping.publish_entry_ns + 20_000_000);
        assert!(shift.apply(ping.publish_entry_ns) <= pong.take_return_ns + 1);
        assert!(pong.publish_return_ns <= shift.apply(ping.take_return_ns) + 1);
    }
}

#[test]
fn a_stream_adds_its_delay_to_the_network_time() {
    let Some(hosts) = Hosts::new(ADDRESSES) else { return };
    let table = json!({
        "clock_offset_us": -OFFSET_NS as f64 * 1e-3, "clock_drift_ppm": -DRIFT_PPM,
        "delay_us": [[0, 3000], [1, 3000]], "duplicate_every": 10, "lose_every": 25,
    });
    let program = |host| hosts.program(host, Path::new(EXECUTABLE));
    let ran = run(&hosts, &with(table, Workload::Stream), program);
    // The last message is lost: nothing shows that it was sent.
    assert_eq!((ran.ping.sent, ran.pong.received, ran.pong.lost), (100, 96, 3));
    assert_eq!((ran.pong.duplicates, ran.pong.corrupt), (8, 0));
    let shift = Shift::new(-OFFSET_NS, -DRIFT_PPM).unwrap();
    assert_possible(&ran.exchanges, shift);
    for pong in ran.pongs.iter().filter(|pong| pong.take_return_ns != 0) {
        let ping = &ran.pings[pong.id as usize];
        assert!(pong.take_return_ns >= shift.apply(ping.publish_entry_ns + 3_000_000 - 1));
    }
}

/// A real `CLOCK_MONOTONIC` with another origin, as another host has it.
#[test]
fn a_time_namespace_offset_is_measured() {
    let Some(hosts) = Hosts::new(ADDRESSES) else { return };
    let program = |host| match host {
        Role::Ping => hosts.program(host, Path::new(EXECUTABLE)),
        _ => {
            let mut program = hosts.program(host, Path::new("unshare"));
            program.args(["--time", "--monotonic", "5", "--fork", "--kill-child", EXECUTABLE]);
            program
        }
    };
    let table = json!({"delay_us": [[0, 1000], [1, 1000]]});
    let ran = run(&hosts, &with(table, Workload::Stream), program);
    assert_eq!((ran.ping.sent, ran.pong.received, ran.pong.lost), (100, 100, 0));
    assert_possible(&ran.exchanges, Shift::new(5_000_000_000, 0.0).unwrap());
}

#[test]
fn options_not_simulated_across_hosts_are_refused_by_name() {
    let Some(hosts) = Hosts::new(ADDRESSES) else { return };
    let refused = [
        (json!({"lose_every": 3}), Workload::Roundtrip, 1, "lose_every"),
        (json!({"clock_drift_ppm": 2000}), Workload::Stream, 1, "clock_drift_ppm"),
        (json!({}), Workload::Publish, 1, ""),
        (json!({}), Workload::Stream, 2, ""),
    ];
    for (table, workload, subscribers, key) in refused {
        let network = Some(hosts.network(Role::Ping));
        let samples = Samples::new(1);
        let samples = Some(samples.path());
        let prepare = Prepare { network, samples, subscribers, ..with(table, workload) };
        let mut process = Process::start(Path::new(EXECUTABLE), &prepare);
        assert_eq!(process.expect_error()[2], key, "{workload:?}");
        assert!(!process.expect_end().success());
    }
}
