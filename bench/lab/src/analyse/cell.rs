//! One cell of the summary: its valid runs pooled.

use std::collections::BTreeMap;

use myelin_bench_kit::protocol::{Done, System, Topology, Transport};

use super::clocks::{self, Clocks};
use super::distribution::{Sorted, us};
use super::messages::Messages;
use super::series::{Series, seconds};
use super::totals::{Totals, exchange_cpu_ns, sum};
use super::validity::{Evidence, faults, saturation};
use super::{
    across, course, cut, flood, observed, publish, repeats, slowest, stages, start, steady, stream,
};
use crate::machine::Machine;
use crate::plan::CellPlan;
use crate::record::RunRecord;
use crate::run::RunSamples;
use crate::run::spec::waits;
use crate::scenario::{Kind, Scenario, frame_name};
use crate::stats::{level_percent, median};
use crate::summary::{
    Cell, CurvePoint, CutFigures, Detail, Distribution, Params, Pinned, Placement, RUN_QUANTILES,
    RunPoint, Second,
};

/// One run of a cell, judged.
pub struct JudgedRun {
    pub(super) record: RunRecord,
    pub(super) series: Series,
    pub(super) messages: Messages,
    seconds: Vec<Second>,
    faults: Vec<String>,
    /// That a stream fell short of its rate.
    saturation: Option<String>,
    /// Ping's; of a publish run, ping's and pong's together.
    pub(super) counts: Done,
    pub(super) settling: steady::Settling,
    pub(super) clocks: clocks::Seen,
    cut: Option<CutFigures>,
}

impl JudgedRun {
    /// Derives and judges. Pong's stamps are on ping's clock, as far as `clocks` know it.
    pub(crate) fn new(
        record: RunRecord,
        samples: &RunSamples,
        clocks: &Clocks,
        plan: &CellPlan,
        system: &System,
        scenario: &Scenario,
        host: &Machine,
    ) -> Self {
        let workload = &scenario.workload;
        let kind = workload.kind;
        let has_rate = plan.rate_hz.is_some();
        let evidence = Evidence {
            record: &record,
            samples,
            system,
            payload_bytes: plan.payload_bytes,
            rate_hz: plan.rate_hz,
            arrivals: plan.arrivals.as_ref().map(|case| case.arrivals).unwrap_or_default(),
            warmup_messages: workload.warmup_at(plan.rate_hz),
            record_every: workload.record_every,
            workload: workload.kind,
            subscribers: plan.subscribers,
            publishers: plan.publishers,
            clock_error_ns: match clocks {
                Clocks::One => Some(0),
                two => two.error_ns().map(|error_ns| error_ns.ceil() as u64),
            },
            others_packets_per_s: host.loopback_packets_per_s,
        };
        let (mut faults, saturation) = (faults(&evidence), saturation(&evidence));
        let mut series = match kind {
            Kind::Roundtrip => Series::of(samples, system.loans, has_rate),
            // A publish call is not timed in parts.
            Kind::Publish => Series::of(samples, false, has_rate),
            Kind::Startup => start::series(&record),
            _ => stream::series(samples, has_rate, kind == Kind::Image),
        };
        let mut messages = Messages::of(samples, kind, system.loans, has_rate);
        let mut in_order = steady::in_order(samples, kind, has_rate);
        let seen = clocks.seen(samples);
        if clocks.are_two() {
            series = series.without_placements();
        }
        if !seen.trouble.is_empty() {
            if kind.is_one_way() && kind != Kind::Startup {
                faults.extend(seen.trouble.iter().cloned());
            }
            // What is marked as invalid may be shown, but nothing that nobody knows.
            if kind == Kind::Roundtrip || seen.figures.is_none() {
                series = series.without_other_clock();
                messages = messages.without_other_clock(kind);
                in_order.retain(|_| !kind.is_one_way());
            }
        }
        // When a message that went one way was taken, is not known then either.
        let is_known = kind == Kind::Roundtrip || !clocks.are_two() || seen.figures.is_some();
        let cut = record.cut.filter(|_| is_known);
        JudgedRun {
            series,
            messages,
            seconds: seconds(&samples.ping, workload.record_every),
            settling: steady::settling(&in_order, host.clock_step_ns),
            clocks: seen,
            cut: cut.and_then(|it| cut::figures(it, samples, kind, workload.record_every)),
            counts: match kind {
                Kind::Roundtrip => record.ping.clone().unwrap_or_default(),
                Kind::Startup => start::counts(&record),
                _ => publish::counts(&record, plan.subscribers),
            },
            record,
            faults,
            saturation,
        }
    }

    /// What percentiles are of: round trips, publish calls, or one-way latencies.
    pub(super) fn latency(&self, kind: Kind) -> &Sorted {
        match kind {
            Kind::Roundtrip => &self.series.round_trip,
            Kind::Publish => &self.series.write,
            _ => &self.series.one_way,
        }
    }

    /// Whether it may be believed.
    pub(super) fn is_valid(&self) -> bool {
        self.faults.is_empty()
    }

    /// What the cut of the link did in it.
    pub(super) fn cut(&self) -> Option<CutFigures> {
        self.cut
    }

    fn point(&self, kind: Kind) -> RunPoint {
        let at = |quantile| self.latency(kind).supported(quantile).map(us);
        let across = Sorted::new(self.series.cross_cpu.clone());
        let observed = self.record.observation.as_ref();
        RunPoint {
            order: self.record.plan.order,
            p50_us: at(0.5),
            p99_us: at(0.99),
            valid: self.is_valid(),
            curve_us: RUN_QUANTILES.into_iter().map_while(at).collect(),
            cross_p50_us: across.supported(0.5).map(us),
            cross_p99_us: across.supported(0.99).map(us),
            first_sample_us: self.record.first_sample_ms.map(|ms| ms * 1e3),
            cpu_us_per_message: observed
                .filter(|_| self.counts.sent > 0)
                .map(|seen| exchange_cpu_ns(&self.record, seen) / 1e3 / self.counts.sent as f64),
            pss_bytes: observed.map(|seen| sum(seen, |process| process.pss_bytes)),
        }
    }
}

/// Pools the runs of a cell. Figures come from the valid runs, or, if there are none, from the
/// others, and the cell is marked.
pub fn pool(
    plan: &CellPlan,
    scenario: &Scenario,
    system: &System,
    runs: &[JudgedRun],
    configuration: BTreeMap<String, String>,
) -> (Cell, Detail) {
    let kind = scenario.workload.kind;
    let any_valid = runs.iter().any(JudgedRun::is_valid);
    let used = used(runs);
    let latencies: Vec<&Sorted> = used.iter().map(|run| run.latency(kind)).collect();
    let round_trips: Vec<&Sorted> = used.iter().map(|run| &run.series.round_trip).collect();
    let round_trip = Sorted::pooled(round_trips.iter().copied());
    let pooled = |series: fn(&Series) -> &Vec<i64>| {
        Sorted::of_runs(used.iter().map(|run| series(&run.series).as_slice())).distribution()
    };
    let writes = || used.iter().map(|run| &run.series.write);
    let latency = Sorted::pooled(latencies.iter().copied());
    let warmup_messages = scenario.workload.warmup_at(plan.rate_hz);
    let total = Totals::of(&used, warmup_messages * u64::from(plan.publishers));
    let is_stream = kind.is_one_way();
    // The last message ends a run one period early.
    let unsent_s = plan.rate_hz.map_or(0.0, |rate_hz| used.len() as f64 / rate_hz);
    let directions = if kind == Kind::Roundtrip { 2.0 } else { 1.0 };
    let interval_of = |wanted: bool, quantile| match wanted {
        true => latency.interval(&latencies, quantile),
        false => None,
    };
    let one_ways = Sorted::pooled(used.iter().map(|run| &run.series.one_way));
    let cell = Cell {
        scenario: scenario.name.clone(),
        workload: kind,
        system: system.name.clone(),
        tuning: plan.tuning.name().into(),
        topology: plan.topology.name().into(),
        params: Params {
            payload_bytes: plan.payload_bytes,
            rate_hz: plan.rate_hz,
            wait: waits(system, kind),
            subscribers: plan.subscribers,
            touch: scenario.workload.touch,
            frame: plan.frame.map(frame_name),
            arrivals: plan.arrivals.as_ref().map(|case| case.name.clone()),
            publishers: plan.publishers,
            topics: plan.topics,
            reliability: is_stream.then_some(plan.reliability),
            depth: is_stream.then_some(scenario.workload.depth),
            module: plan.module.clone(),
        },
        messages_asked: scenario.workload.messages,
        duration_asked_s: scenario.workload.duration_s,
        runs: used.len() as u32,
        samples: latency.len() as u64,
        round_trip_us: round_trip.distribution(),
        one_way_us: one_ways.distribution().filter(|_| kind != Kind::Startup),
        service_us: Sorted::pooled(used.iter().map(|run| &run.series.service)).distribution(),
        write_us: Sorted::pooled(writes()).distribution(),
        read_us: pooled(|series| &series.read),
        wake_us: pooled(|series| &series.wake),
        throughput_per_s: total
            .per_second(total.exchanges(kind, plan.publishers), total.measured_s + unsent_s),
        taken_per_s: flood::taken_per_s(&used),
        lossless_per_s: flood::lossless_per_s(&used),
        cpu_us_per_message: total.exchange_cpu_us / (total.counts.sent as f64).max(1.0),
        cpu_percent: match is_stream {
            true => 100.0 * total.per_second(total.exchange_cpu_us * 1e-6, total.measured_s),
            false => 100.0 * total.per_second(total.cpu_us * 1e-6, total.observed_s),
        },
        receiver_cpu_percent: total.receiver_cpu_percent().filter(|_| is_stream),
        rss_bytes: total.largest(|observed| sum(observed, |process| process.rss_bytes)),
        pss_bytes: total.largest(|observed| sum(observed, |process| process.pss_bytes)),
        shared_bytes: total.largest(|observed| observed.shared_bytes),
        voluntary_switches_per_s: total.rate(|process| process.voluntary_switches),
        involuntary_switches_per_s: total.rate(|process| process.involuntary_switches),
        page_faults: total.sum(|process| process.page_faults) / total.runs(),
        startup_ms: median(used.iter().map(|run| run.record.startup_ms).collect()).unwrap_or(0.0),
        matched_us: start::matched(&used, kind),
        first_sample_us: start::first_sample(&used, kind),
        daemon_ms: start::daemon_ms(&used),
        sent: total.counts.sent,
        received: total.counts.received,
        lost: total.counts.lost,
        duplicates: total.counts.duplicates,
        out_of_order: total.counts.out_of_order,
        corrupt: total.counts.corrupt,
        valid: any_valid,
        invalid_reasons: reasons(runs),
        round_trip_p50_interval_us: interval_of(kind == Kind::Roundtrip, 0.5),
        round_trip_p99_interval_us: interval_of(kind == Kind::Roundtrip, 0.99),
        round_trip_p999_interval_us: interval_of(kind == Kind::Roundtrip, 0.999),
        write_p50_interval_us: interval_of(kind == Kind::Publish, 0.5),
        one_way_p50_interval_us: interval_of(is_stream, 0.5),
        one_way_p99_interval_us: interval_of(is_stream, 0.99),
        one_way_p999_interval_us: interval_of(is_stream, 0.999),
        interval_level_percent: level_percent(used.len()),
        repeats: repeats::of(runs, scenario),
        unsettled_runs: steady::remarks(&used).len() as u32,
        further_subscriber: None,
        placements: match system.transport {
            // Where nothing travels it does not matter where the ends are.
            Transport::None => Vec::new(),
            _ if plan.topology == Topology::TwoHosts => Vec::new(),
            _ => placements(&used, is_stream),
        },
        lateness_us: pooled(|series| &series.lateness),
        loan_us: pooled(|series| &series.loan),
        fill_us: pooled(|series| &series.fill),
        memcpy_us: pooled(|series| &series.memcpy),
        stream_copy_us: pooled(|series| &series.stream_copy),
        processes: total.processes(),
        loopback_bytes_per_byte: total.loopback_bytes
            / (directions * total.messages * (plan.payload_bytes + 8) as f64).max(1.0),
        loopback_packets_per_message: total.loopback_packets
            / (directions * total.messages).max(1.0),
        observed: observed::figures(&used, warmup_messages),
        notes: [
            notes(runs, &used, kind, total.steal_percent()),
            steady::remarks(&used),
            clocks::remarks(&used, kind),
            across::remarks(&used, total.counts.lost, plan, scenario),
        ]
        .concat(),
        clock: clocks::figures(&used),
        cuts: used.iter().filter_map(|run| run.cut).collect(),
    };
    let detail = Detail {
        name: plan.name(&scenario.name),
        histogram: latency.histogram(),
        curve: curve(&latency, &latencies),
        even_us: even(&latency),
        runs: runs.iter().map(|run| run.point(kind)).collect(),
        seconds: used
            .first()
            .map(|run| run.seconds.clone())
            .filter(|rows| rows.len() > 1)
            .unwrap_or_default(),
        series: used.first().copied().and_then(observed::columns),
        course: used.first().and_then(|run| course::of(run, scenario.workload.record_every)),
        stages: stages::of(&used),
        slowest: slowest::of(&used),
        configuration,
        pinned: used.iter().find_map(|run| {
            let cpus = run.record.pinned?;
            Some(Pinned { cpus, priority: scenario.tuning.priority })
        }),
    };
    (cell, detail)
}

/// The runs that figures come from.
pub(super) fn used(runs: &[JudgedRun]) -> Vec<&JudgedRun> {
    let any_valid = runs.iter().any(JudgedRun::is_valid);
    let counts = |run: &&JudgedRun| run.is_valid() == any_valid && run.record.failure.is_none();
    runs.iter().filter(counts).collect()
}

fn reasons(runs: &[JudgedRun]) -> Vec<String> {
    let of = |run: &JudgedRun| {
        let number = run.record.plan.repeat + 1;
        run.faults.iter().map(|fault| format!("run {number}: {fault}")).collect::<Vec<_>>()
    };
    match runs.is_empty() {
        true => vec!["no run of this cell was made".into()],
        false => runs.iter().flat_map(of).collect(),
    }
}

fn notes(runs: &[JudgedRun], used: &[&JudgedRun], kind: Kind, steal_percent: f64) -> Vec<String> {
    let (what, loss) = match kind {
        Kind::Roundtrip => ("round trips", "messages lost; they have no round trip"),
        Kind::Publish => ("publish calls", "messages not taken by a subscriber that was to"),
        _ => ("latencies", "messages lost; they have no latency"),
    };
    let mut notes: Vec<String> = Vec::new();
    for note in runs.iter().flat_map(|run| &run.record.notes) {
        if !notes.contains(note) {
            notes.push(note.clone());
        }
    }
    if steal_percent > STEAL_PERCENT_MAX {
        notes.push(format!("the hypervisor took {steal_percent:.1} % of the CPUs meanwhile"));
    }
    let lost: u64 = used.iter().map(|run| run.counts.lost).sum();
    let lateness = used.iter().flat_map(|run| run.series.lateness.iter().copied()).max();
    if let Some(late_ns) = lateness.filter(|late_ns| *late_ns > LATE_NS_MAX) {
        let from = match kind {
            Kind::Stream => "the time a message was due",
            _ => "the actual sending",
        };
        let late_us = us(late_ns);
        notes.push(format!("sent up to {late_us:.0} µs behind schedule; {what} count from {from}"));
    }
    let saturated = used.iter().filter_map(|run| run.saturation.as_ref());
    notes.extend(saturated.take(1).map(|run| format!("saturated: {run}")));
    if lost > 0 {
        notes.push(format!("{lost} {loss}"));
    }
    notes
}

/// The two placements, if either occurred; the order is same CPU first.
fn placements(runs: &[&JudgedRun], is_stream: bool) -> Vec<Placement> {
    let gather = |of: fn(&Series) -> &Vec<i64>| {
        Sorted::of_runs(runs.iter().map(|run| of(&run.series).as_slice()))
    };
    let sides =
        [(true, gather(|series| &series.same_cpu)), (false, gather(|series| &series.cross_cpu))];
    let all: usize = sides.iter().map(|(_, values)| values.len()).sum();
    let placement = |(same_cpu, values): (bool, Sorted)| {
        let share = values.len() as f64 / all as f64;
        let latency: Option<Distribution> = Some(values.distribution()?);
        let (round_trip_us, one_way_us) = if is_stream { (None, latency) } else { (latency, None) };
        Some(Placement { same_cpu, share, round_trip_us, one_way_us })
    };
    sides.into_iter().filter_map(placement).collect()
}

/// Points evenly spaced in −log10(1 − quantile), the axis they are drawn on.
fn curve(pooled: &Sorted, runs: &[&Sorted]) -> Vec<CurvePoint> {
    (0..=CURVE_NINES_MAX * CURVE_POINTS_PER_NINE)
        .map(|step| 1.0 - 10f64.powf(-f64::from(step) / f64::from(CURVE_POINTS_PER_NINE)))
        .map_while(|quantile| {
            let value = us(pooled.supported(quantile)?);
            let of_runs = runs.iter().filter_map(|run| run.quantile(quantile)).map(us);
            let (low_us, high_us) =
                of_runs.fold((value, value), |(low, high), run| (low.min(run), high.max(run)));
            Some(CurvePoint { quantile, us: value, low_us, high_us })
        })
        .collect()
}

/// Points evenly spaced in the quantile.
fn even(pooled: &Sorted) -> Vec<f64> {
    let quantiles = (0..EVEN_POINTS).map(|step| (f64::from(step) + 0.5) / f64::from(EVEN_POINTS));
    quantiles.map_while(|quantile| pooled.supported(quantile).map(us)).collect()
}

/// Sending later than this is remarked.
const LATE_NS_MAX: i64 = 1_000_000;
const CURVE_NINES_MAX: u32 = 6;
const CURVE_POINTS_PER_NINE: u32 = 20;
const EVEN_POINTS: u32 = 200;
/// More stolen time than this is remarked; one tick of the kernel in a short run is 2 %.
const STEAL_PERCENT_MAX: f64 = 5.0;
