//! Runs that are right, spoiled in one way each.

use myelin_bench_kit::fan::SILENT;

use super::*;
use crate::plan::RunPlan;

struct Case {
    workload: Workload,
    record: RunRecord,
    samples: RunSamples,
    system: System,
    arrivals: Arrivals,
    clock_error_ns: Option<u64>,
}

type Spoil<'a> = &'a dyn Fn(&mut Case);

fn good() -> Case {
    let counts = Done { sent: 1000, received: 1000, end_ns: 1_000_000_000, ..Done::default() };
    let observation = Observation {
        wall_ns: 1_000_000_000,
        loopback_packets: 2200,
        loopback_bytes: 400_000,
        ..Observation::default()
    };
    let answered = Record { take_return_ns: 1, take_cpu: 1, ..Record::default() };
    Case {
        workload: Workload::Roundtrip,
        record: RunRecord {
            plan: RunPlan { order: 0, cell: 0, repeat: 0 },
            failure: None,
            notes: Vec::new(),
            ping: Some(counts.clone()),
            pong: Some(counts),
            startup_ms: 1.0,
            first_sample_ms: None,
            daemon_ms: None,
            cut: None,
            keeping: Vec::new(),
            pinned: Some([1, 0]),
            observation: Some(observation),
            host: None,
            directory: String::new(),
        },
        samples: RunSamples {
            ping: vec![answered; 1000],
            pong: vec![Record { take_cpu: 0, ..answered }; 1000],
            ..RunSamples::default()
        },
        system: serde_json::from_str(
            r#"{"name": "a.b", "about": "", "wait": "block", "transport": "loopback"}"#,
        )
        .unwrap(),
        arrivals: Arrivals::default(),
        clock_error_ns: Some(0),
    }
}

fn judge(case: &Case) -> String {
    faults(&evidence(case)).join("; ")
}

fn evidence(case: &Case) -> Evidence<'_> {
    Evidence {
        record: &case.record,
        samples: &case.samples,
        system: &case.system,
        payload_bytes: 64,
        rate_hz: Some(1000.0),
        arrivals: case.arrivals,
        warmup_messages: 100,
        record_every: 1,
        workload: case.workload,
        subscribers: if case.workload == Workload::Publish { 2 } else { 1 },
        publishers: 1,
        clock_error_ns: case.clock_error_ns,
        others_packets_per_s: 0.0,
    }
}

#[test]
fn a_good_run_has_no_faults() {
    assert_eq!(judge(&good()), "");
}

#[test]
fn each_fault_is_found_and_named() {
    let observed = |case: &mut Case, packets, bytes| {
        let observation = case.record.observation.as_mut().unwrap();
        (observation.loopback_packets, observation.loopback_bytes) = (packets, bytes);
    };
    let ping = |case: &mut Case| case.record.ping.take().unwrap();
    let cases: [(&str, Spoil); 10] = [
        ("killed", &|case| case.record.failure = Some("pong was killed by signal 9".into())),
        ("hears itself", &|case| case.record.pong.as_mut().unwrap().received = 500),
        ("not its own", &|case| case.samples.pong[7].take_return_ns = 3),
        ("were not as sent", &|case| case.record.pong.as_mut().unwrap().corrupt = 1),
        ("≠ received", &|case| {
            case.record.ping = Some(Done { received: 999, ..ping(case) });
        }),
        ("reached 500", &|case| {
            case.record.ping = Some(Done { end_ns: 1_999_000_000, ..ping(case) });
        }),
        ("ping ran on CPU 0", &|case| case.samples.ping[500].take_cpu = 0),
        ("did not use the loopback", &|case| observed(case, 10, 400_000)),
        ("went over the network stack", &|case| {
            case.system.transport = Transport::Kernel;
        }),
        ("no segment", &|case| {
            case.system.transport = Transport::SharedMemory;
            observed(case, 0, 0);
        }),
    ];
    for (expected, spoil) in cases {
        let mut case = good();
        spoil(&mut case);
        let found = judge(&case);
        assert!(found.contains(expected), "{expected:?} not in {found:?}");
    }
}

/// A thousand messages to two subscribers, of which one missed a hundred.
fn good_publish() -> Case {
    let mut case = good();
    case.workload = Workload::Publish;
    case.record.ping.as_mut().unwrap().received = 0;
    case.record.pong.as_mut().unwrap().received = 1900;
    let call =
        Record { publish_entry_ns: 5, publish_return_ns: 9, publish_cpu: 1, ..Record::default() };
    case.samples = RunSamples { ping: vec![call; 1000], pong: Vec::new(), ..RunSamples::default() };
    case
}

#[test]
fn loss_is_a_result_of_a_publish_run_and_what_cannot_be_is_a_fault() {
    assert_eq!(judge(&good_publish()), "");
    let cases: [(&str, Spoil); 6] = [
        ("hear something else", &|case| case.record.pong.as_mut().unwrap().received = 2001),
        ("1 of 2 subscribers took nothing", &|case| {
            let more = &mut case.record.pong.as_mut().unwrap().more;
            more.insert(SILENT.into(), 1);
        }),
        ("999 calls recorded", &|case| case.samples.ping.truncate(999)),
        ("nothing was published", &|case| case.record.ping.as_mut().unwrap().sent = 0),
        ("ping ran on CPU 0", &|case| case.samples.ping[500].publish_cpu = 0),
        ("were not as sent", &|case| case.record.pong.as_mut().unwrap().corrupt = 1),
    ];
    for (expected, spoil) in cases {
        let mut case = good_publish();
        spoil(&mut case);
        let found = judge(&case);
        assert!(found.contains(expected), "{expected:?} not in {found:?}");
    }
}

#[test]
fn heartbeats_at_a_slow_rate_are_no_evidence() {
    let mut case = good();
    case.system.transport = Transport::SharedMemory;
    let observation = case.record.observation.as_mut().unwrap();
    observation.ping_and_pong_share_memory = true;
    observation.loopback_packets = 400;
    assert_eq!(judge(&case), "");
}

/// Ten messages at 10 Hz, of which the last was lost.
fn good_stream() -> Case {
    let mut case = good();
    case.workload = Workload::Stream;
    case.system.wait = Wait::Block;
    let observation = case.record.observation.as_mut().unwrap();
    (observation.loopback_packets, observation.loopback_bytes) = (600, 60_000);
    case.system.transport = Transport::Loopback;
    let sent = |id| Record {
        id,
        intended_ns: id * 100_000_000,
        publish_entry_ns: id * 100_000_000 + 50,
        publish_return_ns: id * 100_000_000 + 90,
        publish_cpu: 1,
        ..Record::default()
    };
    let taken = |sent: &Record| Record {
        id: sent.id,
        take_return_ns: sent.publish_entry_ns + 70,
        take_cpu: 0,
        ..Record::default()
    };
    let ping: Vec<Record> = (0..1000).map(sent).collect();
    let pong = ping[..999].iter().map(taken).collect();
    case.samples = RunSamples { ping, pong, ..RunSamples::default() };
    let counts = Done { sent: 1000, end_ns: 1_000_000_000, ..Done::default() };
    case.record.ping = Some(counts);
    case.record.pong = Some(Done { received: 999, ..Done::default() });
    case
}

#[test]
fn a_stream_may_lose_and_must_be_its_own() {
    assert_eq!(judge(&good_stream()), "");
    let cases: [(&str, Spoil); 10] = [
        ("no message was taken", &|case| case.record.pong.as_mut().unwrap().received = 0),
        ("999 messages taken recorded ≠ 998 counted", &|case| {
            case.record.pong.as_mut().unwrap().received = 998;
        }),
        ("1 messages taken were never sent", &|case| case.samples.pong[7].id = 5000),
        ("1 messages were taken before they were sent", &|case| {
            case.samples.pong[7].take_return_ns = 9;
        }),
        ("999 calls recorded ≠ 1000 counted", &|case| case.samples.ping.truncate(999)),
        ("hear something else", &|case| case.record.pong.as_mut().unwrap().received = 1001),
        ("ping ran on CPU 0", &|case| case.samples.ping[3].publish_cpu = 0),
        ("pong ran on CPU 1", &|case| case.samples.pong[3].take_cpu = 1),
        ("were not as sent", &|case| case.record.pong.as_mut().unwrap().corrupt = 1),
        ("did not use the loopback", &|case| {
            case.record.observation.as_mut().unwrap().loopback_packets = 5;
        }),
    ];
    for (expected, spoil) in cases {
        let mut case = good_stream();
        spoil(&mut case);
        let found = judge(&case);
        assert!(found.contains(expected), "{expected:?} not in {found:?}");
    }
}

#[test]
fn two_clocks_may_disagree_within_their_error() {
    let mut stream = good_stream();
    stream.samples.pong[7].take_return_ns = stream.samples.ping[7].publish_entry_ns - 50;
    let mut round_trip = good();
    round_trip.samples.ping[7].publish_entry_ns = 41;
    round_trip.samples.ping[7].take_return_ns = 100;
    for (mut case, fault) in [(stream, "before they were sent"), (round_trip, "not its own")] {
        for (error_ns, is_fault) in
            [(Some(0), true), (Some(39), true), (Some(50), false), (None, false)]
        {
            case.clock_error_ns = error_ns;
            assert_eq!(judge(&case).contains(fault), is_fault, "{error_ns:?}: {}", judge(&case));
        }
    }
}

#[test]
fn a_system_in_one_process_needs_no_segment_and_no_network() {
    let mut case = good_stream();
    case.system.topology = Topology::OneProcess;
    case.system.transport = Transport::Process;
    case.system.wait = Wait::Callback;
    case.record.observation.as_mut().unwrap().loopback_packets = 0;
    assert_eq!(judge(&case), "");
    for record in &mut case.samples.pong {
        record.take_cpu = 1;
    }
    assert_eq!(judge(&case), "", "a callback may run in the publisher's thread");
    case.samples.pong[3].take_cpu = 5;
    assert!(judge(&case).contains("pong ran on CPU 5"));
    case.samples.pong[3].take_cpu = 1;
    case.record.observation.as_mut().unwrap().loopback_packets = 4000;
    assert!(judge(&case).contains("went over the network stack"));
}

#[test]
fn shared_memory_within_one_process_is_a_segment_of_that_process() {
    let mut case = good_stream();
    case.system.transport = Transport::SharedMemory;
    case.record.observation.as_mut().unwrap().loopback_packets = 0;
    assert!(judge(&case).contains("no segment"));
    case.system.topology = Topology::OneProcess;
    case.record.observation.as_mut().unwrap().shared_bytes = 4096;
    assert_eq!(judge(&case), "");
}

#[test]
fn an_uneven_schedule_is_kept_or_missed_as_a_whole() {
    let mut case = good_stream();
    case.arrivals = Arrivals { missing_one_in: 10, ..Arrivals::default() };
    assert_eq!(judge(&case), "");
    assert_eq!(saturation(&evidence(&case)), None);
    for (place, record) in case.samples.ping.iter_mut().enumerate() {
        record.publish_entry_ns += place as u64 * 2_000_000;
    }
    for (pong, ping) in case.samples.pong.iter_mut().zip(&case.samples.ping) {
        pong.take_return_ns = ping.publish_entry_ns + 70;
    }
    assert_eq!(judge(&case), "", "latencies count from when messages were due");
    let said = saturation(&evidence(&case)).unwrap_or_default();
    assert!(said.contains("over a schedule of 99.900 s"), "{said}");
    case.workload = Workload::Image;
    assert!(judge(&case).contains("over a schedule of 99.900 s"), "{}", judge(&case));
}

#[test]
fn across_hosts_messages_travel_over_the_link_whatever_they_do_on_one() {
    let over_link = |transport, bytes| {
        let mut case = good();
        case.system.transport = transport;
        let observation = case.record.observation.as_mut().unwrap();
        (observation.link, observation.loopback_bytes) = (Some("eth0".into()), bytes);
        observation.loopback_packets = 30;
        judge(&case)
    };
    for transport in [Transport::Loopback, Transport::SharedMemory] {
        assert_eq!(over_link(transport, 400_000), "");
        let fault = over_link(transport, 60_000);
        assert!(fault.starts_with("did not use the link between the hosts: 30 packets and 60000"));
        assert!(fault.contains("over eth0 for"), "{fault}");
    }
}
