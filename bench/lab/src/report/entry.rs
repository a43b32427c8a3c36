//! A cell with its system and details, and how it may be described and compared.

use std::sync::LazyLock;

use myelin_bench_kit::protocol::{Reliability, Topology, Transport, Wait, Workload};

use super::format;
use crate::scenario::Tuning;
use crate::stats::verdict::{Pair, RATIO_EQUAL};
use crate::summary::{
    Analysis, Cell, Detail, Distribution, Params, Percentile, Placement, RunFigures, SystemInfo,
    is_steady,
};

/// A cell of the summary with its system and details.
#[derive(Clone, Copy)]
pub(crate) struct Entry<'a> {
    /// Index in the summary.
    pub index: usize,
    pub cell: &'a Cell,
    pub detail: &'a Detail,
    pub system: Traits<'a>,
    metric: Latency,
    clock_step_us: f64,
}

/// What comparisons need to know about a system.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Traits<'a> {
    pub name: &'a str,
    pub wait: Wait,
    pub transport: Transport,
    pub topology: Topology,
    pub floor: bool,
    /// The requested reliability; only for one-way workloads.
    pub reliability: Option<Reliability>,
}

/// A system at a tuning: the subject of a table's column.
pub(super) type Configuration<'a> = (Traits<'a>, Tuning);

/// Key of systems that are compared with each other. They have the same topology and reliability,
/// and wait in the same way: keeping a core busy, sleeping, or being called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ComparisonClass {
    pub topology: Topology,
    pub wait_style: WaitStyle,
    pub reliability: Option<Reliability>,
}

/// How a receiving end gets its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitStyle {
    Sleeps,
    Polls,
    IsCalled,
}

/// The latency in the columns of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Latency {
    RoundTrip,
    OneWay,
    Publish,
    /// Time to the first sample of a start-up.
    FirstSample,
}

impl<'a> Entry<'a> {
    pub(crate) fn new(analysis: &'a Analysis, index: usize, metric: Latency) -> Self {
        let cell = &analysis.summary.cells[index];
        let detail = analysis.details.get(index).unwrap_or(&NO_DETAIL);
        let system = traits(&analysis.summary.systems, cell);
        let clock_step_us = analysis.summary.host.clock_step_ns as f64 / 1e3;
        Self { index, cell, detail, system, metric, clock_step_us }
    }

    /// The latency that the group compares.
    pub(super) fn latency(&self) -> Option<&'a Distribution> {
        match self.metric {
            Latency::RoundTrip => self.cell.round_trip_us.as_ref(),
            Latency::OneWay => self.cell.one_way_us.as_ref(),
            Latency::Publish => self.cell.write_us.as_ref(),
            Latency::FirstSample => self.cell.first_sample_us.as_ref(),
        }
    }

    pub(super) fn p50(&self) -> Option<f64> {
        self.latency()?.p50
    }

    /// The intervals over runs of p50, p99 and p99.9, if they are known.
    pub(super) fn intervals(&self) -> [Option<[f64; 2]>; 3] {
        let cell = self.cell;
        match self.metric {
            Latency::RoundTrip => [
                cell.round_trip_p50_interval_us,
                cell.round_trip_p99_interval_us,
                cell.round_trip_p999_interval_us,
            ],
            Latency::OneWay => [
                cell.one_way_p50_interval_us,
                cell.one_way_p99_interval_us,
                cell.one_way_p999_interval_us,
            ],
            Latency::Publish => [cell.write_p50_interval_us, None, None],
            Latency::FirstSample => [None; 3],
        }
    }

    pub(super) fn p50_interval(&self) -> Option<[f64; 2]> {
        self.intervals()[0]
    }

    pub(super) fn p99_interval(&self) -> Option<[f64; 2]> {
        self.intervals()[1]
    }

    /// Why its latency must not be compared; `None` if it may be.
    pub(super) fn fault(&self) -> Option<&'static str> {
        match () {
            () if !self.cell.valid => Some("invalid"),
            () if self.short_of_rate().is_some() => Some("short of its rate"),
            () if self.typical_p50().is_some_and(f64::is_infinite) => Some("without most messages"),
            () if self.typical_p50().is_none() && self.is_steady() => Some("withheld"),
            () => None,
        }
    }

    /// Its runs and those of a reference; `None` if either must not be compared. It is also `None`
    /// if the difference could come from the clocks of two hosts, or from different shares of two
    /// unlike placements: the next run could have either. Floods are compared by their rates, which
    /// a single clock measures.
    pub(super) fn pair(&self, reference: &Entry, at: Percentile) -> Option<Pair> {
        let is_flood = self.cell.workload == Workload::Flood;
        let may = |entry: &Entry| entry.fault().is_none() && (!is_flood || at == Percentile::P50);
        let error =
            |entry: &Entry| entry.clock_error_us().unwrap_or(0.0) + entry.between_placements(at);
        let latency = |value: f64| if is_flood { 0.0 } else { value };
        let pair = (may(self) && may(reference)).then(|| Pair {
            subject: self.runs(at),
            reference: reference.runs(at),
            immaterial: latency(self.clock_step_us),
            error: latency(error(self) + error(reference)),
        });
        pair.map(Pair::bounded)
    }

    /// One latency for each valid run; none at all if a run has too few messages for it, because the
    /// others do not stand for it: under a limit of time the slowest runs have the fewest. Where two unlike placements are mixed, only messages across
    /// cores count. For floods it is the time per message at the rate that ranks them.
    fn runs(&self, at: Percentile) -> Vec<f64> {
        let (is_mixed, is_lossless) = (self.is_mixed(), self.cell.lossless_per_s.is_some());
        let figure = at.figure(is_mixed);
        // No lossless rate was found, or nothing was taken: treated as one message a second.
        let each = |rate: f64| 1e6 / rate.max(1.0);
        let latency = |run: &RunFigures| match (self.cell.workload, at) {
            (Workload::Flood, _) if is_lossless => {
                Some(each(run.get("lossless_per_s").unwrap_or(0.0)))
            }
            (Workload::Flood, _) => run.get("taken_per_s").map(each),
            (Workload::Startup, Percentile::P50) => run.get("first_sample_us"),
            _ => run.get(figure),
        };
        let valid = || self.detail.runs.iter().filter(|run| run.valid);
        let lacks = |run: &RunFigures| run.should_have(figure) && latency(run).is_none();
        if self.is_steady() && valid().any(lacks) {
            return Vec::new();
        }
        valid().filter_map(latency).collect()
    }

    /// Whether each valid run has the percentile, so that the runs can be compared by it.
    pub(super) fn has_in_each_run(&self, at: Percentile) -> bool {
        !self.runs(at).is_empty()
    }

    fn between_placements(&self, at: Percentile) -> f64 {
        let [low, high] = self.placement_ends(at);
        // Both placements have their part of the lost messages.
        let high = if high.is_finite() { high } else { low };
        if self.is_mixed() { (high - low).max(0.0) } else { 0.0 }
    }

    /// Error of a latency whose ends were stamped by the clocks of two hosts; `None` for one clock,
    /// as in a whole round trip.
    pub(crate) fn clock_error_us(&self) -> Option<f64> {
        let crosses = self.metric == Latency::OneWay;
        self.cell.clock.as_ref().filter(|_| crosses).map(|clock| clock.error_us)
    }

    /// The interval of the median over runs and the error of the clocks: `[88.1, 95.0] ± 31.2`;
    /// empty without both.
    pub(super) fn spread(&self) -> String {
        let interval = self.p50_interval().map(format::interval_us);
        let error = self.clock_error_us().map(format::plus_minus_us);
        interval.into_iter().chain(error).collect::<Vec<_>>().join(" ")
    }

    /// Whether its latency describes the system.
    pub(crate) fn is_steady(&self) -> bool {
        is_steady(self.cell)
    }

    /// The reached and the requested rate of a stream that fell behind: its latency grows as long
    /// as it runs. A named schedule may deviate from its rate.
    pub(crate) fn short_of_rate(&self) -> Option<(f64, f64)> {
        let params = &self.cell.params;
        let has_rate = matches!(self.cell.workload, Workload::Stream | Workload::Replay);
        let is_even = has_rate && params.arrivals.is_none();
        let asked = params.rate_hz.filter(|_| is_even)?;
        let reached = self.cell.throughput_per_s?;
        (reached < asked * (1.0 - RATE_TOLERANCE)).then_some((reached, asked))
    }

    /// Share of the due messages that were not taken, in per cent; `None` if none were due.
    pub(super) fn loss_percent(&self) -> Option<f64> {
        self.cell.loss_percent()
    }

    /// `1.8 % lost`; `None` if nothing was lost, or if the workload is about what is lost.
    pub(super) fn loss(&self) -> Option<String> {
        let percent = self.loss_percent().filter(|_| self.is_steady() && self.cell.is_lossy())?;
        Some(format!("{} % lost", format::percent(percent)))
    }

    /// Whether there are round trips in both placements: on one core and across cores.
    pub(super) fn is_bimodal(&self) -> bool {
        let counts = |placement: &&Placement| placement.share >= SHARE_COUNTS;
        self.cell.placements.iter().filter(counts).count() > 1
    }

    /// Whether the median depends on the shares of two unlike placements. If one placement
    /// dominates, the median is close to the median of that placement.
    pub(crate) fn is_mixed(&self) -> bool {
        let mut placements = self.cell.placements.iter();
        let dominated = placements.any(|placement| placement.share >= SHARE_DOMINATES);
        let [low, high] = self.placement_ends(Percentile::P50);
        self.is_bimodal() && !dominated && high > low * RATIO_EQUAL
    }

    /// The lowest and the highest value of the placements.
    fn placement_ends(&self, at: Percentile) -> [f64; 2] {
        let latencies = self.cell.placements.iter().filter_map(Placement::latency);
        let found = latencies.filter_map(|latency| match at {
            Percentile::P50 => latency.p50,
            Percentile::P99 => latency.p99,
        });
        found.fold([f64::INFINITY, 0.0], |[low, high], us| [low.min(us), high.max(us)])
    }

    /// The latency; if placements are mixed, that of the messages across cores.
    fn typical(&self) -> Option<&'a Distribution> {
        let mut placements = self.cell.placements.iter();
        match self.is_mixed() {
            true => placements.find(|placement| !placement.same_cpu)?.latency(),
            false => self.latency(),
        }
    }

    pub(super) fn typical_p50(&self) -> Option<f64> {
        self.typical()?.p50
    }

    pub(super) fn typical_p99(&self) -> Option<f64> {
        self.typical()?.p99
    }

    /// The name, with the placement that the floor is measured in.
    pub(super) fn floor_name(&self) -> String {
        let note = if self.is_mixed() { ", cross" } else { "" };
        format!("{}{note}", self.system.name)
    }

    /// Scenario and rate, and which parts of a message are not touched.
    pub(crate) fn circumstances(&self) -> String {
        let (params, workload) = (&self.cell.params, self.cell.workload);
        let plain = Params::default();
        let others = workload.is_one_way().then_some(&plain);
        let words = std::iter::once(self.cell.scenario.clone());
        let words =
            words.chain(format::point(params, [false, workload != Workload::Startup], others));
        let touch = format::touch(params.touch).map(str::to_owned);
        words.chain(touch).collect::<Vec<_>>().join(", ")
    }

    /// `64 KiB`, or `1440x1080 rgb8` for a frame.
    pub(super) fn size(&self) -> String {
        format::size(&self.cell.params)
    }

    pub(super) fn configured(&self) -> Configuration<'a> {
        (self.system, self.cell.tuning)
    }

    /// `cyclonedds.udp tuned`.
    pub(super) fn configuration(&self) -> String {
        if self.cell.params.imported {
            return self.system.name.to_owned();
        }
        format!("{} {}", self.system.name, self.cell.tuning)
    }

    /// `cyclonedds.udp, 64 KiB, tuned`, and how it waits unless it sleeps.
    pub(crate) fn name(&self) -> String {
        let params = &self.cell.params;
        if params.imported {
            let parts = [Some(self.system.name.to_owned()), params.module.clone()];
            return parts.into_iter().flatten().collect::<Vec<_>>().join(", ");
        }
        let payload = self.size();
        let fan = match self.metric {
            Latency::Publish => {
                format!(", {}", format::plural(params.subscribers as usize, "subscriber"))
            }
            Latency::RoundTrip | Latency::OneWay | Latency::FirstSample => String::new(),
        };
        format!("{}, {payload}{fan}, {}", self.system.label(), self.cell.tuning)
    }
}

impl Traits<'_> {
    pub(super) fn comparison_class(self) -> ComparisonClass {
        let wait_style = match self.wait {
            Wait::Poll => WaitStyle::Polls,
            Wait::Callback => WaitStyle::IsCalled,
            Wait::Block | Wait::Adaptive | Wait::Predictive | Wait::None => WaitStyle::Sleeps,
        };
        ComparisonClass { topology: self.topology, wait_style, reliability: self.reliability }
    }

    /// The name without that of the driver, if all shown systems share the driver.
    pub(super) fn short(&self, peers: &[Self]) -> &str {
        let common = peers.iter().all(|peer| peer.family() == self.family());
        if common { self.variant() } else { self.name }
    }

    /// The name without that of the driver.
    pub(super) fn variant(&self) -> &str {
        self.name.split_once('.').map_or(self.name, |(_, rest)| rest)
    }

    /// The name, and how it waits unless it sleeps.
    pub(super) fn label(self) -> String {
        match format::wait_remark(self.wait) {
            "" => self.name.to_owned(),
            remark => format!("{} ({remark})", self.name),
        }
    }

    /// How it waits and where its ends run, if that sets it apart.
    pub(super) fn note(self) -> &'static str {
        match (self.topology, self.wait) {
            (Topology::OneProcess, Wait::Callback) => "callback, one process",
            (Topology::OneProcess, _) => "one process",
            (Topology::TwoProcesses | Topology::TwoHosts, wait) => format::wait_remark(wait),
        }
    }

    pub(super) fn family(&self) -> &str {
        self.name.split('.').next().unwrap_or(self.name)
    }
}

impl Latency {
    /// The latency to compare for this workload; `one_way` says that the cells have no round trips.
    pub(crate) fn of(workload: Workload, one_way: bool) -> Self {
        match workload {
            Workload::Startup => Latency::FirstSample,
            Workload::Publish => Latency::Publish,
            _ if one_way => Latency::OneWay,
            _ => Latency::RoundTrip,
        }
    }

    pub(super) fn words(self) -> &'static str {
        match self {
            Latency::RoundTrip => "whole round trip",
            Latency::OneWay => "one-way latency",
            Latency::Publish => "publish call",
            Latency::FirstSample => "from a process's start to its first sample",
        }
    }

    /// The measured events, in the plural.
    pub(super) fn noun(self) -> &'static str {
        match self {
            Latency::RoundTrip => "round trips",
            Latency::OneWay => "messages",
            Latency::Publish => "publish calls",
            Latency::FirstSample => "runs",
        }
    }
}

/// The traits of the system of a cell.
pub(super) fn traits<'a>(systems: &'a [SystemInfo], cell: &'a Cell) -> Traits<'a> {
    let known = systems.iter().find(|system| system.name == cell.system);
    Traits {
        name: &cell.system,
        wait: known.map_or(Wait::None, |system| system.wait),
        transport: known.map_or(Transport::None, |system| system.transport),
        // Two hosts are a property of the cell, not of the system.
        topology: match cell.topology {
            Topology::TwoHosts => Topology::TwoHosts,
            _ => known.map(|system| system.topology).unwrap_or_default(),
        },
        floor: known.is_some_and(|system| system.floor),
        reliability: cell.params.reliability,
    }
}

static NO_DETAIL: LazyLock<Detail> = LazyLock::new(Detail::default);

/// A stream is short of its rate if it misses it by more than this; a run of another kind is then
/// invalid.
pub(super) const RATE_TOLERANCE: f64 = 0.01;

/// A placement with a smaller share of the round trips does not make a cell bimodal.
const SHARE_COUNTS: f64 = 0.05;

/// A placement with at least this share determines the median. The median then lies between the
/// 17th and the 67th percentile of the placement, in the bulk of its distribution.
const SHARE_DOMINATES: f64 = 0.75;
