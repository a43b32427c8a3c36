//! The analysis as a reader meets it: cells sorted into groups that may be compared, with the
//! floor, the references and the payload sizes of each.

use std::collections::BTreeMap;

use myelin_bench_kit::protocol::{Transport, Wait};

use super::verdict::{self, Estimate, Verdict};
use super::words;
use crate::summary::{Analysis, Cell, Detail, Distribution, Placement, SystemInfo};

/// An analysis, sorted.
pub(super) struct View<'a> {
    pub analysis: &'a Analysis,
    pub groups: Vec<Group<'a>>,
}

/// Cells that differ in system, tuning and payload alone.
pub(super) struct Group<'a> {
    /// Unique within the report, fit for an HTML id.
    pub id: String,
    pub scenario: &'a str,
    /// Topology, rate, subscribers in words.
    pub circumstances: String,
    pub metric: Metric,
    /// In plan order.
    pub entries: Vec<Entry<'a>>,
    /// Ascending.
    pub payloads: Vec<u64>,
    /// In the order of [`tuning_rank`].
    pub tunings: Vec<&'a str>,
    /// Floor first, then as listed in the summary.
    pub systems: Vec<Traits<'a>>,
}

/// A cell with all that belongs to it.
#[derive(Clone, Copy)]
pub(super) struct Entry<'a> {
    /// Place in the summary.
    pub index: usize,
    pub cell: &'a Cell,
    pub detail: &'a Detail,
    pub system: Traits<'a>,
    metric: Metric,
}

/// What comparisons need to know of a system.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Traits<'a> {
    pub name: &'a str,
    pub wait: Wait,
    pub transport: Transport,
    pub floor: bool,
}

/// What the latency columns of a group hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Metric {
    RoundTrip,
    OneWay,
}

impl<'a> View<'a> {
    pub(super) fn new(analysis: &'a Analysis) -> Self {
        let mut keyed: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        let cells = &analysis.summary.cells;
        for index in 0..cells.len() {
            let first = (0..index).find(|&other| comparable(&cells[other], &cells[index]));
            keyed.entry(first.unwrap_or(index)).or_default().push(index);
        }
        let group = |indices: Vec<usize>| Group::new(analysis, &indices);
        Self { analysis, groups: keyed.into_values().map(group).collect() }
    }

    /// All cells, in the order of the groups.
    pub(super) fn entries(&self) -> impl Iterator<Item = &Entry<'a>> {
        self.groups.iter().flat_map(|group| &group.entries)
    }

    /// Names of the scenarios, each once, in plan order.
    pub(super) fn scenarios(&self) -> Vec<&'a str> {
        distinct(self.groups.iter().map(|group| group.scenario))
    }

    /// Tunings of all groups, each once.
    pub(super) fn tunings(&self) -> Vec<&'a str> {
        distinct(self.groups.iter().flat_map(|group| group.tunings.iter().copied()))
    }

    /// Systems that could not run.
    pub(super) fn missing(&self) -> impl Iterator<Item = (&'a SystemInfo, &'a str)> {
        let systems = self.analysis.summary.systems.iter();
        systems.filter_map(|system| Some((system, system.missing.as_deref()?)))
    }
}

impl<'a> Group<'a> {
    fn new(analysis: &'a Analysis, indices: &[usize]) -> Self {
        let cells = || indices.iter().map(|&index| &analysis.summary.cells[index]);
        let one_way = cells().all(|cell| cell.round_trip_us.is_none());
        let metric = if one_way { Metric::OneWay } else { Metric::RoundTrip };
        let entries = indices.iter().map(|&index| Entry::new(analysis, index, metric)).collect();
        let mut payloads = distinct(cells().map(|cell| cell.params.payload_bytes));
        payloads.sort_unstable();
        let mut tunings = distinct(cells().map(|cell| cell.tuning.as_str()));
        tunings.sort_by_key(|tuning| tuning_rank(tuning));
        let mut systems =
            distinct(cells().map(|cell| traits(&analysis.summary.systems, &cell.system)));
        let listed = &analysis.summary.systems;
        systems.sort_by_key(|system| {
            (!system.floor, listed.iter().position(|info| info.name == system.name))
        });
        let first = cells().next().expect("a group is made of at least one cell");
        Self {
            id: format!("group-{}", indices[0]),
            scenario: &first.scenario,
            circumstances: words::circumstances(&first.topology, &first.params),
            metric,
            entries,
            payloads,
            tunings,
            systems,
        }
    }

    /// `roundtrip-sizes · two processes · back to back`.
    pub(super) fn title(&self) -> String {
        format!("{} · {}", self.scenario, self.circumstances)
    }

    pub(super) fn entry(&self, system: &str, tuning: &str, payload: u64) -> Option<&Entry<'a>> {
        self.entries.iter().find(|entry| {
            entry.system.name == system
                && entry.cell.tuning == tuning
                && entry.cell.params.payload_bytes == payload
        })
    }

    /// The systems under test: all but the floor.
    pub(super) fn peers(&self) -> impl Iterator<Item = Traits<'a>> {
        self.systems.iter().copied().filter(|system| !system.floor)
    }

    /// What a system's gain is measured against: the system of the same driver that goes through
    /// the network stack, else the first of all that does, else the first of all; never one that
    /// waits in another manner.
    pub(super) fn reference(&self, system: Traits) -> Option<Traits<'a>> {
        let equals: Vec<_> = self.peers().filter(|peer| peer.polls() == system.polls()).collect();
        let networked = || equals.iter().filter(|peer| peer.transport == Transport::Loopback);
        let anchor = networked().next().or(equals.first())?;
        let family = networked()
            .find(|peer| peer.family() == system.family() && peer.name != system.name)
            .filter(|_| system.transport != Transport::Loopback);
        let reference = family.unwrap_or(anchor);
        (reference.name != system.name).then_some(*reference)
    }

    /// The fastest usable primitive of the operating system at this tuning and payload, among
    /// those that wait in the very same manner; a system that spins before it sleeps is measured by
    /// those that sleep if no primitive does as it does.
    pub(super) fn floor(&self, tuning: &str, payload: u64, wait: Wait) -> Option<&Entry<'a>> {
        let fastest = |wait: Wait| {
            let eligible = self.entries.iter().filter(|entry| {
                entry.system.floor
                    && entry.system.wait == wait
                    && entry.cell.tuning == tuning
                    && entry.cell.params.payload_bytes == payload
                    && entry.cell.valid
            });
            let by_median = eligible.filter_map(|entry| Some((entry.typical_p50()?, entry)));
            by_median.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, entry)| entry)
        };
        fastest(wait).or_else(|| fastest(Wait::Block).filter(|_| wait == Wait::Adaptive))
    }

    /// The configurations under test with the lowest median at this payload, among those that wait
    /// in the same manner: the lowest, and all that cannot be told from it.
    pub(super) fn best(&self, payload: u64, polls: bool) -> Vec<&Entry<'a>> {
        let contenders = || {
            let eligible = self.entries.iter().filter(|entry| {
                !entry.system.floor
                    && entry.system.polls() == polls
                    && entry.cell.params.payload_bytes == payload
            });
            eligible.filter_map(|entry| Some((entry.estimate().ok()?.value, entry)))
        };
        let best = contenders().min_by(|a, b| a.0.total_cmp(&b.0));
        let Some((_, best)) = best else { return Vec::new() };
        let is_tied = |entry: &&Entry| {
            entry.index != best.index
                && entry.against(best).is_some_and(|verdict| {
                    verdict.interval.is_some() && !verdict.kind.is_significant()
                })
        };
        std::iter::once(best).chain(contenders().map(|it| it.1).filter(is_tied)).collect()
    }

    /// The manners in which systems under test wait.
    pub(super) fn waits(&self) -> Vec<Wait> {
        distinct(self.peers().map(|peer| peer.wait))
    }

    /// Smallest and largest payload.
    pub(super) fn ends(&self) -> Vec<u64> {
        let ends = [self.payloads.first(), self.payloads.last()];
        distinct(ends.into_iter().flatten().copied())
    }
}

impl<'a> Entry<'a> {
    fn new(analysis: &'a Analysis, index: usize, metric: Metric) -> Self {
        let cell = &analysis.summary.cells[index];
        let detail = analysis.details.get(index).unwrap_or(&NO_DETAIL);
        let system = traits(&analysis.summary.systems, &cell.system);
        Self { index, cell, detail, system, metric }
    }

    /// The latency that the group compares.
    pub(super) fn latency(&self) -> Option<&'a Distribution> {
        match self.metric {
            Metric::RoundTrip => self.cell.round_trip_us.as_ref(),
            Metric::OneWay => self.cell.one_way_us.as_ref(),
        }
    }

    pub(super) fn p50(&self) -> Option<f64> {
        words::median(self.latency())
    }

    /// The interval of the median over runs, where one is known.
    pub(super) fn p50_interval(&self) -> Option<[f64; 2]> {
        self.cell.round_trip_p50_interval_us.filter(|_| self.metric == Metric::RoundTrip)
    }

    /// As [`Entry::p50_interval`], of the 99th percentile.
    pub(super) fn p99_interval(&self) -> Option<[f64; 2]> {
        self.cell.round_trip_p99_interval_us.filter(|_| self.metric == Metric::RoundTrip)
    }

    /// The median if it may be compared; else why not. Where two unlike placements are mixed it is
    /// that of the round trips across cores, and the interval spans both, for the next run may be
    /// either.
    pub(super) fn estimate(&self) -> Result<Estimate, &'static str> {
        if !self.cell.valid {
            return Err("invalid");
        }
        let value = self.typical_p50().ok_or("withheld")?;
        let interval = self.p50_interval().map(|[low, high]| match self.is_mixed() {
            true => [
                self.placement_p50s().fold(low, f64::min),
                self.placement_p50s().fold(high, f64::max),
            ],
            false => [low, high],
        });
        Ok(Estimate { value, interval })
    }

    pub(super) fn against(&self, reference: &Entry) -> Option<Verdict> {
        verdict::compare(self.estimate().ok()?, reference.estimate().ok()?)
    }

    /// Whether there are round trips of both placements, on one core and across cores.
    pub(super) fn is_bimodal(&self) -> bool {
        let counts = |placement: &&Placement| placement.share >= SHARE_COUNTS;
        self.cell.placements.iter().filter(counts).count() > 1
    }

    /// Whether the median is an accident of the shares of two unlike placements. If one placement
    /// dominates, the median is the dominant one's, not far from its own median.
    pub(super) fn is_mixed(&self) -> bool {
        let mut placements = self.cell.placements.iter();
        let dominated = placements.any(|placement| placement.share >= SHARE_DOMINATES);
        let low = self.placement_p50s().fold(f64::INFINITY, f64::min);
        let high = self.placement_p50s().fold(0.0, f64::max);
        self.is_bimodal() && !dominated && high > low * verdict::RATIO_EQUAL
    }

    fn placement_p50s(&self) -> impl Iterator<Item = f64> {
        self.cell.placements.iter().filter_map(|placement| placement.round_trip_us.p50)
    }

    /// The median; of the round trips across cores, if placements are mixed.
    pub(super) fn typical_p50(&self) -> Option<f64> {
        let across = || self.cell.placements.iter().find(|placement| !placement.same_cpu);
        match self.is_mixed() {
            true => across()?.round_trip_us.p50,
            false => self.p50(),
        }
    }

    /// As [`Entry::typical_p50`], of the 99th percentile.
    pub(super) fn typical_p99(&self) -> Option<f64> {
        let across = || self.cell.placements.iter().find(|placement| !placement.same_cpu);
        match self.is_mixed() {
            true => across()?.round_trip_us.p99,
            false => self.latency()?.p99,
        }
    }

    /// The name, with the placement that a floor is taken of.
    pub(super) fn floor_name(&self) -> String {
        let note = if self.is_mixed() { ", cross" } else { "" };
        format!("{}{note}", self.system.name)
    }

    /// Scenario and rate.
    pub(super) fn circumstances(&self) -> String {
        format!("{}, {}", self.cell.scenario, words::rate(self.cell.params.rate_hz))
    }

    /// `cyclonedds.udp tuned`.
    pub(super) fn configuration(&self) -> String {
        format!("{} {}", self.system.name, self.cell.tuning)
    }

    /// `cyclonedds.udp, 64 KiB, tuned`, and how it waits unless it simply sleeps.
    pub(super) fn name(&self) -> String {
        let payload = words::bytes(self.cell.params.payload_bytes);
        format!("{}, {payload}, {}", self.system.label(), self.cell.tuning)
    }
}

impl Traits<'_> {
    /// Whether its subscriber keeps a core busy: such systems are compared with their like only.
    pub(super) fn polls(self) -> bool {
        self.wait == Wait::Poll
    }

    /// The name without that of the driver, if the driver is common to all that are shown.
    pub(super) fn short(&self, peers: &[Self]) -> &str {
        let common = peers.iter().all(|peer| peer.family() == self.family());
        let rest = self.name.split_once('.').map(|(_, rest)| rest);
        rest.filter(|_| common).unwrap_or(self.name)
    }

    /// The name, and how it waits unless it simply sleeps.
    pub(super) fn label(self) -> String {
        match words::wait_remark(self.wait) {
            "" => self.name.to_owned(),
            remark => format!("{} ({remark})", self.name),
        }
    }

    fn family(&self) -> &str {
        self.name.split('.').next().unwrap_or(self.name)
    }
}

impl Metric {
    /// In words, as a heading.
    pub(super) fn words(self) -> &'static str {
        match self {
            Metric::RoundTrip => "whole round trip",
            Metric::OneWay => "one-way latency",
        }
    }
}

/// The order in which tunings are shown.
pub(super) fn tuning_rank(tuning: &str) -> usize {
    TUNINGS.iter().position(|known| *known == tuning).unwrap_or(TUNINGS.len())
}

/// The first of each, in order.
pub(super) fn distinct<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    items.fold(Vec::new(), |mut seen, item| {
        if !seen.contains(&item) {
            seen.push(item);
        }
        seen
    })
}

fn traits<'a>(systems: &'a [SystemInfo], name: &'a str) -> Traits<'a> {
    let known = systems.iter().find(|system| system.name == name);
    Traits {
        name,
        wait: known.map_or(Wait::None, |system| system.wait),
        transport: known.map_or(Transport::None, |system| system.transport),
        floor: known.is_some_and(|system| system.floor),
    }
}

fn comparable(a: &Cell, b: &Cell) -> bool {
    a.scenario == b.scenario
        && a.topology == b.topology
        && a.params.rate_hz == b.params.rate_hz
        && a.params.subscribers == b.params.subscribers
}

static NO_DETAIL: Detail = Detail {
    curve: Vec::new(),
    runs: Vec::new(),
    seconds: Vec::new(),
    configuration: BTreeMap::new(),
};

const TUNINGS: [&str; 3] = ["default", "tuned", "awake"];

/// A placement below this part of the round trips does not make a cell bimodal.
const SHARE_COUNTS: f64 = 0.05;

/// From this part on, a placement determines the median: it is then the placement's own 17th to
/// 67th percentile at worst, inside its body.
const SHARE_DOMINATES: f64 = 0.75;
