//! Runs beside a load.

use myelin_bench_kit::protocol::Done;
use myelin_bench_kit::samples::Record;

use super::super::load::{figures, remarks};
use super::*;
use crate::input_error::Source;
use crate::machine::Machine;
use crate::plan::Plan;
use crate::record::LoadRecord;
use crate::registry::SystemDriver;

const SCENARIO: &str = "name = \"x\"\n[workload]\nkind = \"stream\"\npayload_bytes = [64]\n\
    rate_hz = [1000]\nduration_s = 1\n\
    loads = [{ name = \"images\", payload_bytes = 4096, rate_hz = 20 }]\n\
    [plan]\nsystems = [\"a.b\"]\ntunings = [\"default\"]\nruns = 1\n";

/// A stream of a second at this rate: each message is taken `latency_ns` after it was due, except
/// the last `lost`.
fn stream(rate_hz: u64, latency_ns: u64, lost: u64) -> (LoadRecord, RunSamples) {
    let period_ns = 1_000_000_000 / rate_hz;
    let sent = |id| Record {
        id,
        intended_ns: BEGIN_NS + id * period_ns,
        publish_entry_ns: BEGIN_NS + id * period_ns + 50,
        publish_return_ns: BEGIN_NS + id * period_ns + 90,
        ..Record::default()
    };
    let taken = |id| Record {
        id,
        take_return_ns: BEGIN_NS + id * period_ns + latency_ns,
        ..Record::default()
    };
    let received = rate_hz - lost;
    let ping = Done {
        sent: rate_hz,
        begin_ns: BEGIN_NS,
        end_ns: BEGIN_NS + (rate_hz - 1) * period_ns,
        cpu_ns: Some(rate_hz * 3_000),
        ..Done::default()
    };
    let pong = Done { received, cpu_ns: Some(rate_hz * 4_000), ..Done::default() };
    let samples = RunSamples {
        ping: (0..rate_hz).map(sent).collect(),
        pong: (0..received).map(taken).collect(),
        ..RunSamples::default()
    };
    (LoadRecord { ping, pong }, samples)
}

/// Judges a run beside a load after `spoil`.
fn judged<T>(
    lost: u64,
    spoil: impl FnOnce(&mut RunRecord, &mut RunSamples),
    see: impl FnOnce(Case<'_>, &JudgedRun<'_>) -> T,
) -> T {
    let scenario = Scenario::parse(Source::new("x.toml", SCENARIO)).unwrap();
    let entry = SystemDriver::named("a.b");
    let plan = Plan::new(vec![(scenario, vec![entry])], 0, String::new());
    let (own, mut samples) = stream(1000, 30_000, 0);
    let (load, of_load) = stream(20, 90_000_000, lost);
    samples.load = Some(Box::new(of_load));
    let mut record = RunRecord {
        ping: Some(own.ping),
        pong: Some(own.pong),
        load: Some(load),
        observation: Some(Observation { wall_ns: 1_000_000_000, ..Observation::default() }),
        ..RunRecord::default()
    };
    spoil(&mut record, &mut samples);
    let host = Machine::default();
    let case = Case::of(&plan, 1, &host).unwrap();
    // Neither a borrowed load nor one of its own may be lost.
    let borrowed = Recorded::new(record.clone(), Cow::Borrowed(&samples), case);
    let borrowed = run(&borrowed, case).faults;
    let recorded = Recorded::new(record, Cow::Owned(samples), case);
    let judged = run(&recorded, case);
    assert_eq!(judged.faults, borrowed);
    see(case, &judged)
}

#[test]
fn the_figures_of_a_load_are_its_own() {
    judged(
        2,
        |_, _| {},
        |case, run| {
            assert_eq!(run.faults, Vec::<String>::new());
            assert_eq!(run.latency.len(), 1000, "without those of the load");
            assert_eq!((run.counts.sent, run.counts.lost), (1000, 0));
            let found = figures(case, &[run]).unwrap();
            assert_eq!((found.sent, found.received, found.lost), (20, 18, 2));
            assert_eq!((found.sent_per_s, found.received_per_s), (Some(20.0), Some(18.0)));
            assert_eq!(found.cpu_us_per_message, Some(7.0));
            assert_eq!(found.one_way_us.unwrap().p50, Some(90_000.0));
            assert_eq!(remarks(&[run]), ["2 messages of the load lost"]);
        },
    );
    let twice = judged(2, |_, _| {}, |case, run| figures(case, &[run, run]).unwrap());
    assert_eq!((twice.sent, twice.received_per_s), (40, Some(18.0)));
}

#[test]
fn a_run_whose_load_is_not_as_asked_is_not_valid() {
    type Spoil = fn(&mut RunRecord, &mut RunSamples);
    let cases: [(&str, Spoil); 5] = [
        ("the load: no message was taken", |record, samples| {
            record.load.as_mut().unwrap().pong.received = 0;
            samples.load.as_mut().unwrap().pong.clear();
        }),
        ("the load: 1 payloads differ", |record, _| {
            record.load.as_mut().unwrap().pong.corrupt = 1;
        }),
        ("the load: 1 messages that were taken were never sent", |_, samples| {
            samples.load.as_mut().unwrap().pong[3].id = 5000;
        }),
        ("only 45 % of the measured time", |record, _| {
            record.load.as_mut().unwrap().ping.end_ns = BEGIN_NS + 400_000_000;
        }),
        (INCOMPLETE, |record, _| record.load = None),
    ];
    for (expected, spoil) in cases {
        let found = judged(0, spoil, |_, run| run.faults.join("; "));
        assert!(found.contains(expected), "{expected:?} is not in {found:?}");
    }
}

const BEGIN_NS: u64 = 5_000_000_000;
