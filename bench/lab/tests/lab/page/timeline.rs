//! Timelines of a fixture's cells, derived from their figures: messages over time, parts, the
//! slowest messages.

use myelin_bench_lab::summary::*;

/// Adds all of these to every cell.
pub fn enrich(analysis: &mut Analysis) {
    let Analysis { summary, details } = analysis;
    for (place, (cell, detail)) in summary.cells.iter().zip(details).enumerate() {
        let latency = cell.round_trip_us.or(cell.one_way_us).unwrap();
        detail.even_us = (0..195).map(|step| latency.mean * even(step)).collect();
        detail.timeline = Some(timeline(latency.mean, place));
        detail.series = Some(series(place));
        detail.stages = Some(stages(cell, latency.mean));
        detail.slowest = (0..10).map(|rank| slow(latency.mean, rank)).collect();
    }
}

fn even(step: u32) -> f64 {
    0.5 + f64::from(step) / 150.0 + if step > 120 { 0.8 } else { 0.0 }
}

/// Six seconds, with one window without p50, a stall in the middle, and a cut of the link.
fn timeline(mean: f64, place: usize) -> Timeline {
    let windows = (0..WINDOWS).map(|at| {
        let level = mean * (1.0 + 0.02 * f64::from((at + place as u32) % 9));
        Window {
            rate_per_s: 300.0 + 20.0 * f64::from(at),
            p50_us: (at != 5).then_some(level),
            p99_us: (at % 2 == 0).then_some(1.7 * level),
            max_us: Some(if at == WINDOWS / 2 { 40.0 * level } else { 3.0 * level }),
        }
    });
    let row = |us: f64| (12.0 * (us * 1e3).log10()) as u16;
    let fields = (0..60u16).flat_map(|column| {
        [(mean, 40 + u32::from(column)), (3.0 * mean, 1 + u32::from(column % 4))]
            .map(|(us, count)| Bin { column, row: row(us), count })
    });
    Timeline {
        run: 1 + place as u32 % 3,
        duration_s: 6.0,
        observed_from_s: Some(-0.75),
        windows: windows.collect(),
        cut_s: Some([2.5, 3.75]),
        map: HeatMap { columns: 60, fields: fields.collect() },
    }
}

/// Number of windows in a timeline.
pub const WINDOWS: u32 = 30;

/// Forty observations, beginning before the first message.
fn series(place: usize) -> ObservedColumns {
    let column = |of: fn(u32) -> f64| (0..40).map(of).collect::<Vec<_>>();
    let wanted = place as f64 % 7.0;
    ObservedColumns {
        t_s: column(|at| 0.1 * f64::from(at + 1)),
        cpu_percent: column(|at| 20.0 + f64::from(at)).iter().map(|it| it + wanted).collect(),
        runqueue_wait_percent: column(|at| f64::from(at % 5)),
        pss_bytes: (0..40).map(|at| (at != 2).then_some((9 << 20) + (at << 18))).collect(),
        switches_per_s: column(|_| 1000.0),
        faults_per_s: column(|_| 0.0),
        ..ObservedColumns::default()
    }
}

/// A system without loans has neither loan nor fill; one without a separate wake has a combined
/// wake and take. Back to back there is no lateness.
fn stages(cell: &Cell, mean: f64) -> Stages {
    let is_way = cell.round_trip_us.is_none();
    let within = |stage, share: f64, slow: f64| StageMean {
        stage,
        is_before: false,
        mean_us: share * mean,
        slow_us: cell.wake_us.map(|_| slow * mean),
    };
    let mut parts = Vec::new();
    if cell.params.rate_hz.is_some() {
        parts.push(StageMean { is_before: !is_way, ..within(Stage::Lateness, 0.1, 0.3) });
    }
    if cell.system.contains("loan") {
        parts.push(within(Stage::Loan, 0.05, 0.1));
        parts.push(within(Stage::Fill, 0.02, 0.02));
    }
    parts.push(within(Stage::Publish, 0.2, 0.3));
    match cell.wake_us {
        Some(_) => parts.extend([within(Stage::Wake, 0.3, 2.5), within(Stage::Take, 0.05, 0.05)]),
        None => parts.push(within(Stage::WakeAndTake, 0.35, 2.0)),
    }
    Stages { messages: cell.samples, slow_messages: cell.samples / 100, parts }
}

fn slow(mean: f64, rank: u32) -> SlowMessage {
    let us = mean * 60.0 / f64::from(rank + 1);
    SlowMessage {
        run: 1 + rank % 3,
        id: 1000 + u64::from(rank),
        at_s: 0.25 * f64::from(rank),
        us,
        cpus: vec![0, 1, 0],
        parts: vec![(Stage::Publish, 0.1 * us), (Stage::Wake, 0.7 * us), (Stage::Take, 0.2 * us)],
        around: (rank != 3).then_some(Around {
            span_s: 0.1,
            cpu_percent: 31.0 + f64::from(rank),
            runqueue_wait_percent: 12.5,
            switches_per_s: 1500.0,
            faults_per_s: 0.0,
            migrations_per_s: Some(20.0),
            steal_percent: None,
        }),
    }
}
