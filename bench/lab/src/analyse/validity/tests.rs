//! Valid runs, each spoiled in one way.

use myelin_bench_kit::fan::SILENT;

use super::*;
use crate::input_error::Source;
use crate::machine::Machine;
use crate::plan::{CellPlan, Plan};
use crate::registry::SystemDriver;
use crate::scenario::{ArrivalsCase, Scenario};

struct Judgeable {
    scenario: Scenario,
    plan: CellPlan,
    record: RunRecord,
    samples: RunSamples,
    system: System,
    clock_error_ns: Option<u64>,
}

type Spoil<'a> = &'a dyn Fn(&mut Judgeable);

const SCENARIO: &str = "name = \"x\"\n[workload]\nkind = \"roundtrip\"\npayload_bytes = [64]\n\
    rate_hz = [1000]\nmessages = 1000\nwarmup_messages = 100\n[plan]\nsystems = [\"a.b\"]\n\
    tunings = [\"default\"]\nruns = 1\n";

/// A thousand round trips over the loopback interface.
fn good() -> Judgeable {
    let scenario = Scenario::parse(Source::new("x.toml", SCENARIO)).unwrap();
    let mut entry = SystemDriver::named("a.b");
    entry.system.transport = Transport::Loopback;
    let system = entry.system.clone();
    let mut plan = Plan::new(vec![(scenario, vec![entry])], 0, String::new());
    let counts = Done { sent: 1000, received: 1000, end_ns: 1_000_000_000, ..Done::default() };
    let observation = Observation {
        wall_ns: 1_000_000_000,
        loopback_packets: 2200,
        loopback_bytes: 400_000,
        ..Observation::default()
    };
    let answered = Record { take_return_ns: 1, take_cpu: 1, ..Record::default() };
    Judgeable {
        scenario: plan.scenarios.remove(0),
        plan: plan.cells.remove(0),
        record: RunRecord {
            ping: Some(counts.clone()),
            pong: Some(counts),
            pinned: Some([1, 0]),
            observation: Some(observation),
            ..RunRecord::default()
        },
        samples: RunSamples {
            ping: vec![answered; 1000],
            pong: vec![Record { take_cpu: 0, ..answered }; 1000],
            ..RunSamples::default()
        },
        system,
        clock_error_ns: Some(0),
    }
}

impl Judgeable {
    fn with<T>(&self, judge: impl FnOnce(&Evidence<'_>) -> T) -> T {
        let Judgeable { scenario, plan, record, samples, system, clock_error_ns } = self;
        let host = &Machine::default();
        let case = Case { plan, scenario, system, host };
        judge(&Evidence { case, record, samples, clock_error_ns: *clock_error_ns })
    }

    fn pong(&mut self) -> &mut Done {
        self.record.pong.as_mut().unwrap()
    }

    fn observation(&mut self) -> &mut Observation {
        self.record.observation.as_mut().unwrap()
    }
}

fn judge(run: &Judgeable) -> String {
    run.with(faults).join("; ")
}

/// Each case has the expected finding, empty if the run stays valid, and the change to a valid run.
fn spoiled(good: fn() -> Judgeable, cases: &[(&str, Spoil)]) {
    assert_eq!(judge(&good()), "");
    for (expected, spoil) in cases {
        let mut run = good();
        spoil(&mut run);
        let found = judge(&run);
        let is_as_expected = found.contains(expected) && expected.is_empty() == found.is_empty();
        assert!(is_as_expected, "{expected:?} is not what is found: {found:?}");
    }
}

#[test]
fn each_fault_is_found_and_named() {
    let observed = |run: &mut Judgeable, packets, bytes| {
        let observation = run.observation();
        (observation.loopback_packets, observation.loopback_bytes) = (packets, bytes);
    };
    spoiled(
        good,
        &[
            ("killed", &|run| run.record.failure = Some("pong was killed by signal 9".into())),
            ("receives its own messages", &|run| run.pong().received = 500),
            ("pong did not send them", &|run| run.samples.pong[7].take_return_ns = 3),
            ("differ from what was sent", &|run| run.pong().corrupt = 1),
            ("≠ received", &|run| run.record.ping.as_mut().unwrap().received = 999),
            ("reached 500", &|run| run.record.ping.as_mut().unwrap().end_ns = 1_999_000_000),
            ("ping ran on CPU 0", &|run| run.samples.ping[500].take_cpu = 0),
            ("did not use the loopback", &|run| observed(run, 10, 400_000)),
            ("went over the network stack", &|run| run.system.transport = Transport::Kernel),
            ("no segment", &|run| {
                run.system.transport = Transport::SharedMemory;
                observed(run, 0, 0);
            }),
            ("a CPU quota held it up in 73 of 78 periods, for 5840 ms", &|run| {
                let counted =
                    Throttling { periods: 78, throttled_periods: 73, throttled_us: 5_840_000 };
                run.observation().throttling = Some(counted);
            }),
            ("", &|run| {
                let counted = Throttling { periods: 78, ..Throttling::default() };
                run.observation().throttling = Some(counted);
            }),
        ],
    );
}

/// A thousand messages to two subscribers; one of them missed a hundred.
fn good_publish() -> Judgeable {
    let mut run = good();
    (run.scenario.workload.kind, run.plan.subscribers) = (Workload::Publish, 2);
    run.record.ping.as_mut().unwrap().received = 0;
    run.pong().received = 1900;
    let call =
        Record { publish_entry_ns: 5, publish_return_ns: 9, publish_cpu: 1, ..Record::default() };
    run.samples = RunSamples { ping: vec![call; 1000], ..RunSamples::default() };
    run
}

#[test]
fn publish_loss_is_a_result_and_impossible_counts_are_faults() {
    spoiled(
        good_publish,
        &[
            ("some came from another publisher", &|run| run.pong().received = 2001),
            ("1 of 2 subscribers took nothing", &|run| {
                run.pong().more.insert(SILENT.into(), 1);
            }),
            ("999 calls recorded", &|run| run.samples.ping.truncate(999)),
            ("nothing was published", &|run| run.record.ping.as_mut().unwrap().sent = 0),
            ("ping ran on CPU 0", &|run| run.samples.ping[500].publish_cpu = 0),
            ("differ from what was sent", &|run| run.pong().corrupt = 1),
        ],
    );
}

/// 2,200 messages of 72 bytes. A datagram of 24 bytes has 52 with its headers.
#[test]
fn small_network_traffic_is_allowed_for_shared_memory_but_not_payloads() {
    let over = |run: &mut Judgeable, packets, bytes| {
        run.system.transport = Transport::SharedMemory;
        let observation = run.observation();
        observation.ping_and_pong_share_memory = true;
        (observation.loopback_packets, observation.loopback_bytes) = (packets, bytes);
    };
    spoiled(
        good,
        &[
            ("", &|run| over(run, 400, 400_000)),
            ("", &|run| over(run, 2200, 2200 * 52)),
            ("went over the network stack", &|run| over(run, 2200, 2200 * 100)),
        ],
    );
}

/// Ten messages at 10 Hz; the last one was lost.
fn good_stream() -> Judgeable {
    let mut run = good();
    run.scenario.workload.kind = Workload::Stream;
    run.system.wait = Wait::Block;
    let observation = run.observation();
    (observation.loopback_packets, observation.loopback_bytes) = (600, 60_000);
    run.system.transport = Transport::Loopback;
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
    run.samples = RunSamples { ping, pong, ..RunSamples::default() };
    let counts = Done { sent: 1000, end_ns: 1_000_000_000, ..Done::default() };
    run.record.ping = Some(counts);
    run.record.pong = Some(Done { received: 999, ..Done::default() });
    run
}

#[test]
fn a_stream_may_lose_messages_but_not_take_foreign_ones() {
    spoiled(
        good_stream,
        &[
            ("no message was taken", &|run| run.pong().received = 0),
            ("999 messages taken recorded ≠ 998 counted", &|run| run.pong().received = 998),
            ("1 messages that were taken were never sent", &|run| run.samples.pong[7].id = 5000),
            ("1 messages were taken before they were sent", &|run| {
                run.samples.pong[7].take_return_ns = 9;
            }),
            ("999 calls recorded ≠ 1000 counted", &|run| run.samples.ping.truncate(999)),
            ("some came from another publisher", &|run| run.pong().received = 1001),
            ("ping ran on CPU 0", &|run| run.samples.ping[3].publish_cpu = 0),
            ("pong ran on CPU 1", &|run| run.samples.pong[3].take_cpu = 1),
            ("differ from what was sent", &|run| run.pong().corrupt = 1),
            ("did not use the loopback", &|run| run.observation().loopback_packets = 5),
        ],
    );
}

#[test]
fn two_clocks_may_disagree_within_their_error() {
    let mut stream = good_stream();
    stream.samples.pong[7].take_return_ns = stream.samples.ping[7].publish_entry_ns - 50;
    let mut round_trip = good();
    round_trip.samples.ping[7].publish_entry_ns = 41;
    round_trip.samples.ping[7].take_return_ns = 100;
    for (mut run, fault) in
        [(stream, "before they were sent"), (round_trip, "pong did not send them")]
    {
        for (error_ns, is_fault) in
            [(Some(0), true), (Some(39), true), (Some(50), false), (None, false)]
        {
            run.clock_error_ns = error_ns;
            assert_eq!(judge(&run).contains(fault), is_fault, "{error_ns:?}: {}", judge(&run));
        }
    }
}

fn good_in_one_process() -> Judgeable {
    let mut run = good_stream();
    run.system.topology = Topology::OneProcess;
    run.system.transport = Transport::Process;
    run.system.wait = Wait::Callback;
    run.observation().loopback_packets = 0;
    run
}

#[test]
fn a_system_in_one_process_needs_no_segment_and_no_network() {
    spoiled(
        good_in_one_process,
        &[
            // A callback may run in the publisher's thread.
            ("", &|run| run.samples.pong.iter_mut().for_each(|it| it.take_cpu = 1)),
            ("pong ran on CPU 5", &|run| run.samples.pong[3].take_cpu = 5),
            ("went over the network stack", &|run| {
                let observation = run.observation();
                (observation.loopback_packets, observation.loopback_bytes) = (4000, 400_000);
            }),
            ("no segment", &|run| run.system.transport = Transport::SharedMemory),
            ("", &|run| {
                run.system.transport = Transport::SharedMemory;
                run.observation().shared_bytes = 4096;
            }),
            // A segment that one process has mapped does not connect two.
            ("no segment", &|run| {
                run.system.transport = Transport::SharedMemory;
                run.system.topology = Topology::TwoProcesses;
                run.observation().shared_bytes = 4096;
            }),
        ],
    );
}

#[test]
fn an_uneven_schedule_is_judged_as_a_whole() {
    let mut run = good_stream();
    let arrivals = Arrivals { missing_one_in: 10, ..Arrivals::default() };
    run.plan.arrivals = Some(ArrivalsCase { name: "uneven".into(), arrivals });
    assert_eq!(judge(&run), "");
    assert_eq!(run.with(saturation), None);
    for (place, record) in run.samples.ping.iter_mut().enumerate() {
        record.publish_entry_ns += place as u64 * 2_000_000;
    }
    for (pong, ping) in run.samples.pong.iter_mut().zip(&run.samples.ping) {
        pong.take_return_ns = ping.publish_entry_ns + 70;
    }
    assert_eq!(judge(&run), "", "latencies count from when messages were due");
    let said = run.with(saturation).unwrap_or_default();
    assert!(said.contains("for a schedule of 99.900 s"), "{said}");
    run.scenario.workload.kind = Workload::Image;
    assert!(judge(&run).contains("for a schedule of 99.900 s"), "{}", judge(&run));
}

#[test]
fn across_hosts_every_transport_must_use_the_link() {
    let over_link = |run: &mut Judgeable, transport, bytes| {
        run.system.transport = transport;
        let observation = run.observation();
        (observation.link, observation.loopback_bytes) = (Some("eth0".into()), bytes);
        observation.loopback_packets = 30;
    };
    let fault = "did not use the link between the hosts: 30 packets and 60000 bytes over eth0 for";
    spoiled(
        good,
        &[
            ("", &|run| over_link(run, Transport::Loopback, 400_000)),
            (fault, &|run| over_link(run, Transport::Loopback, 60_000)),
            ("", &|run| over_link(run, Transport::SharedMemory, 400_000)),
            (fault, &|run| over_link(run, Transport::SharedMemory, 60_000)),
        ],
    );
}
