//! A series made by hand, and the expected figures.

use super::super::part::over_runs;
use super::*;
use crate::observe::series::{ObservedProcess, ProportionalMemory, Switches, ThreadMoment};
use crate::summary::OverRuns;

const TICK_NS: u64 = 100_000_000;

fn look(process: u32, cpu_ms: u64) -> ProcessMoment {
    let cpu_ns = cpu_ms * 1_000_000;
    let thread = ThreadMoment { thread: 0, cpu_ns, wait_ns: 5_000_000, slices: 7 };
    ProcessMoment { process, cpu_ns, threads: vec![thread], ..ProcessMoment::default() }
}

fn series(moments: Vec<Moment>) -> Series {
    let process = |name: &str| ObservedProcess { name: name.into(), threads: vec!["main".into()] };
    Series {
        processes: vec![process("ping"), process("pong")],
        cpus: 2,
        ticks_per_s: 100,
        cost_percent: 0.3,
        moments,
        ..Series::default()
    }
}

/// Three moments of two processes. The expensive values of ping were read at the second, those of
/// pong at the third.
fn example() -> Series {
    let looks = [(10, 50), (20, 60), (30, 70)];
    let mut moments: Vec<Moment> = (1..)
        .zip(looks)
        .map(|(tick, (ping, pong))| Moment {
            at_ns: tick * TICK_NS,
            processes: vec![look(0, ping), look(1, pong)],
            ..Moment::default()
        })
        .collect();
    let memory = |mib: u64| Some(ProportionalMemory { pss_bytes: mib << 20, ..Default::default() });
    let switches =
        |migrations| Some(Switches { voluntary: 1, involuntary: 1, migrations: Some(migrations) });
    moments[0].processes[1].memory = memory(8);
    moments[1].processes[0].memory = memory(4);
    moments[2].processes[1].memory = memory(5);
    moments[1].processes[0].switches = switches(6);
    moments[2].processes[1].switches = switches(30);
    moments[1].steal_ticks = Some(4);
    series(moments)
}

fn rounded(column: &[f64]) -> Vec<i64> {
    column.iter().map(|value| value.round() as i64).collect()
}

fn rounded_or_none(column: &[Option<f64>]) -> Vec<Option<i64>> {
    column.iter().map(|value| value.map(|value| value.round() as i64)).collect()
}

#[test]
fn columns_are_rates_between_observations() {
    let found = columns_of(&example());
    assert_eq!(found.t_s.len(), 3);
    assert_eq!(rounded(&found.cpu_percent), [60, 80, 100]);
    assert_eq!(rounded(&found.runqueue_wait_percent), [10, 10, 10]);
    assert_eq!(rounded(&found.switches_per_s), [140, 140, 140]);
    // Ping's memory is unknown at first.
    assert_eq!(found.pss_bytes, [None, Some(12 << 20), Some(9 << 20)]);
    // Ping has 6 in 0.2 s, pong 30 in 0.3 s.
    assert_eq!(rounded_or_none(&found.migrations_per_s), [Some(130), Some(130), Some(100)]);
    // 40 ms of 2 CPUs in 0.2 s; not read after that.
    assert_eq!(rounded_or_none(&found.steal_percent), [Some(10), Some(10), None]);
}

#[test]
fn figures_are_sums_over_runs_and_peaks_of_runs() {
    let (one, mut other) = (example(), example());
    let hardware = |cycles| Some(Hardware { cycles, ..Hardware::default() });
    other.moments[0].processes[0].hardware = hardware(1000);
    other.moments[2].processes[1].hardware = hardware(500);
    other.moments[1].processes[0].memory.as_mut().unwrap().pss_bytes = 90 << 20;
    let runs = [(&one, 100.0), (&other, 300.0)];
    let sum = |of: &dyn Fn((&Series, f64)) -> Option<Part>| {
        over_runs(OverRuns::Sum, &runs.into_iter().filter_map(of).collect::<Vec<_>>())
    };
    let wait = sum(&|(series, _)| Some(runqueue_wait_percent(series)));
    assert_eq!(wait.map(f64::round), Some(10.0));
    assert_eq!(sum(&|(series, _)| migrations_per_s(series)).map(f64::round), Some(120.0));
    assert_eq!(runs.map(|(series, _)| pss_peak_bytes(series)), [Some(12 << 20), Some(98 << 20)]);
    // Only the run with counters counts.
    assert_eq!(
        sum(&|(series, messages)| super::hardware(series, |it| Some(it.cycles), messages)),
        Some(5.0)
    );
    assert_eq!(
        sum(&|(series, messages)| super::hardware(series, |it| it.instructions, messages)),
        None
    );
}

#[test]
fn unknown_values_are_empty() {
    let mut bare = example();
    for moment in &mut bare.moments {
        moment.steal_ticks = None;
        moment.processes.retain(|seen| seen.process == 0);
        moment.processes[0].memory = None;
        moment.processes[0].switches = None;
    }
    bare.processes.truncate(1);
    let found = columns_of(&bare);
    assert_eq!(rounded(&found.cpu_percent), [10, 20, 30]);
    assert!(found.pss_bytes.is_empty());
    assert!(found.migrations_per_s.is_empty() && found.steal_percent.is_empty());
    assert!(migrations_per_s(&bare).is_none());
    assert_eq!(pss_peak_bytes(&bare), None);
}

#[test]
fn a_last_row_that_is_too_short_is_left_out_of_columns() {
    let mut cut = example();
    cut.moments[2].at_ns = 2 * TICK_NS + 1_000_000;
    let found = columns_of(&cut);
    assert_eq!((found.t_s.len(), found.cpu_percent.len(), found.pss_bytes.len()), (2, 2, 2));
    assert_eq!(found.migrations_per_s.len(), 2);
    cut.moments.drain(..2);
    assert_eq!(columns_of(&cut).t_s.len(), 1);
}

#[test]
fn without_live_processes_memory_is_absent() {
    let mut dead = example();
    dead.moments[2].processes.clear();
    let found = columns_of(&dead);
    assert_eq!(found.pss_bytes, [None, Some(12 << 20), None]);
    assert_eq!(rounded(&found.cpu_percent), [60, 80, 0]);
}
