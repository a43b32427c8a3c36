//! The analysis as a reader sees it: cells sorted into groups that can be compared, each with its
//! floor, references and payload sizes.

use std::rc::Rc;

use myelin_bench_kit::protocol::{Topology, Transport, Wait, Workload};

use super::entry::traits;
pub(super) use super::entry::{ComparisonClass, Configuration, Entry, Latency, Traits, WaitStyle};
use super::family::Verdicts;
use super::parameter::Parameter;
use super::{Options, format};
use crate::lists::{ascending, distinct, grouped};
use crate::scenario::Tuning;
use crate::stats::verdict::{Ratio, Verdict};
use crate::summary::{Analysis, Cell, Params, Percentile, SystemInfo};

/// A sorted analysis.
pub(super) struct View<'a> {
    pub analysis: &'a Analysis,
    pub options: Options,
    pub groups: Vec<Group<'a>>,
    /// Publish runs.
    pub publish_groups: Vec<Group<'a>>,
    /// Shared by all groups and publish_groups.
    pub verdicts: Rc<Verdicts>,
}

/// Cells that differ only in system, tuning and payload. Streams and images on one host may also
/// differ in topology, which is a property of the system; publish runs in the number of
/// subscribers.
pub(super) struct Group<'a> {
    /// Unique within the report, usable as an HTML id.
    pub id: String,
    pub scenario: &'a str,
    /// Topology, rate and subscribers in words.
    pub circumstances: String,
    /// The values that set it apart from the other groups of its scenario: rate, schedule, module,
    /// numbers of publishers, subscribers and topics; empty if it is the only one.
    pub point: String,
    pub workload: Workload,
    pub metric: Latency,
    /// In plan order.
    pub entries: Vec<Entry<'a>>,
    /// Ascending.
    pub payloads: Vec<u64>,
    /// Ascending; a single number except for publish runs.
    pub subscribers: Vec<u32>,
    /// Duration of reading the clock; 0 if unknown.
    pub clock_read_ns: f64,
    /// Ascending.
    pub tunings: Vec<Tuning>,
    /// Floor first, then in the order of the summary.
    pub systems: Vec<Traits<'a>>,
    /// Shared by all groups.
    pub verdicts: Rc<Verdicts>,
}

impl<'a> View<'a> {
    pub(super) fn new(analysis: &'a Analysis, options: Options) -> Self {
        let cells = analysis.summary.cells.iter().enumerate();
        let all = grouped(cells.map(|(index, cell)| (group_key(cell), index))).into_iter();
        let all = all.map(|(_, indices)| Group::new(analysis, &indices));
        let (mut publish_groups, mut groups): (Vec<Group>, Vec<Group>) =
            all.partition(Group::is_fan);
        let points: Vec<String> = groups.iter().map(|group| point(group, &groups)).collect();
        for (group, point) in groups.iter_mut().zip(points) {
            group.point = point;
        }
        let together = groups.iter().chain(&publish_groups).map(|group| group.entries.as_slice());
        let verdicts = Rc::new(Verdicts::new(together));
        for group in groups.iter_mut().chain(&mut publish_groups) {
            group.verdicts = verdicts.clone();
        }
        Self { analysis, options, groups, publish_groups, verdicts }
    }

    /// Whether there are one-way workloads: streams, images, floods, start-ups.
    pub(super) fn has_one_way(&self) -> bool {
        self.groups.iter().any(|group| group.workload.is_one_way())
    }

    /// Whether all messages are imported from traces of applications, so that nothing is known of
    /// the machine.
    pub(super) fn is_imported(&self) -> bool {
        let mut groups = self.all().peekable();
        groups.peek().is_some() && groups.all(|group| group.params().imported)
    }

    /// Whether this group is the first of its scenario, whose verdicts open a report.
    pub(super) fn leads(&self, group: &Group) -> bool {
        let first = self.groups.iter().find(|other| other.scenario == group.scenario);
        first.is_some_and(|first| first.id == group.id)
    }

    /// The groups, then the publish_groups.
    pub(super) fn all(&self) -> impl Iterator<Item = &Group<'a>> {
        self.groups.iter().chain(&self.publish_groups)
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = &Entry<'a>> {
        self.all().flat_map(|group| &group.entries)
    }

    /// Names of the scenarios, each once, in plan order.
    pub(super) fn scenarios(&self) -> Vec<&'a str> {
        distinct(self.analysis.summary.cells.iter().map(|cell| cell.scenario.as_str()))
    }

    pub(super) fn tunings(&self) -> Vec<Tuning> {
        distinct(self.all().flat_map(|group| &group.tunings).copied())
    }

    pub(super) fn missing(&self) -> impl Iterator<Item = (&'a SystemInfo, &'a str)> {
        let systems = self.analysis.summary.systems.iter();
        systems.filter_map(|system| Some((system, system.missing.as_deref()?)))
    }
}

pub(super) struct OverFloor<'g, 'a> {
    pub ratio: Ratio,
    pub floor: &'g Entry<'a>,
}

impl OverFloor<'_, '_> {
    /// `1.5× [1.4, 1.6] the floor (os.futex)`.
    pub(super) fn text(&self) -> String {
        format!("{} the floor ({})", format::ratio(self.ratio), self.floor.floor_name())
    }
}

impl<'a> Group<'a> {
    fn new(analysis: &'a Analysis, indices: &[usize]) -> Self {
        let cells = || indices.iter().map(|&index| &analysis.summary.cells[index]);
        let one_way = cells().all(|cell| cell.round_trip_us.is_none());
        let first = cells().next().expect("a group is made of at least one cell");
        let metric = Latency::of(first.workload, one_way);
        let entries = indices.iter().map(|&index| Entry::new(analysis, index, metric)).collect();
        let payloads = ascending(cells().map(|cell| cell.params.payload_bytes));
        let subscribers = ascending(cells().map(|cell| cell.params.subscribers));
        let tunings = ascending(cells().map(|cell| cell.tuning));
        let mut systems = distinct(cells().map(|cell| traits(&analysis.summary.systems, cell)));
        let listed = &analysis.summary.systems;
        systems.sort_by_key(|system| {
            (!system.floor, listed.iter().position(|info| info.name == system.name))
        });
        let topologies = distinct(cells().map(|cell| cell.topology.name())).join(" and ");
        let (kind, params) = match first.workload {
            // The rows of the table are numbers of subscribers.
            Workload::Publish => ("fan", &Params { subscribers: 1, ..first.params.clone() }),
            _ => ("group", &first.params),
        };
        Self {
            id: format!("{kind}-{}", indices[0]),
            scenario: &first.scenario,
            circumstances: format::circumstances(&topologies, first.workload, params),
            point: String::new(),
            workload: first.workload,
            metric,
            entries,
            payloads,
            subscribers,
            clock_read_ns: analysis.summary.host.clock_read_ns,
            tunings,
            systems,
            verdicts: Rc::default(),
        }
    }

    /// The verdict on the median of a cell against another; `None` if they must not be compared.
    pub(super) fn verdict(&self, subject: &Entry, reference: &Entry) -> Option<Verdict> {
        self.verdicts.of(subject, reference, Percentile::P50)
    }

    /// The parameters that all its cells share.
    pub(super) fn params(&self) -> &'a Params {
        &self.entries.first().expect("a group is made of at least one cell").cell.params
    }

    /// Whether it is a publish run, which allows any number of subscribers.
    pub(super) fn is_fan(&self) -> bool {
        self.workload == Workload::Publish
    }

    /// Whether it is about streams or images, whose ends may be in one process or in two.
    pub(super) fn is_flow(&self) -> bool {
        matches!(self.workload, Workload::Stream | Workload::Image | Workload::Replay)
    }

    /// Whether its latencies can be compared and drawn.
    pub(super) fn is_steady(&self) -> bool {
        self.entries.iter().all(Entry::is_steady)
    }

    /// Whether a reader can choose among its systems. Applications whose traces were imported are no
    /// alternatives, and nothing is known of what they cost.
    pub(super) fn is_chosen_from(&self) -> bool {
        self.is_steady() && !self.params().imported
    }

    /// `roundtrip-sizes · two processes · back to back`.
    pub(super) fn title(&self) -> String {
        let parts = [self.scenario, self.circumstances.as_str()];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ")
    }

    /// The points that are rows of its tables.
    pub(super) fn points(&self) -> impl Iterator<Item = Point> {
        let of_payload = |&payload| self.subscribers.iter().map(move |&number| (payload, number));
        self.payloads.iter().flat_map(of_payload)
    }

    pub(super) fn at(&self, point: Point) -> impl Iterator<Item = &Entry<'a>> {
        self.entries.iter().filter(move |entry| {
            (entry.cell.params.payload_bytes, entry.cell.params.subscribers) == point
        })
    }

    /// The label of a row: a size, or `8 subscribers`, with the payload if there are several.
    pub(super) fn label(&self, (payload, number): Point) -> String {
        match (self.is_fan(), self.payloads.len()) {
            (false, _) => self.size(payload),
            (true, 1) => format::plural(number as usize, "subscriber"),
            (true, _) => {
                format!("{}, {}", self.size(payload), format::plural(number as usize, "subscriber"))
            }
        }
    }

    /// The columns of its tables: these systems at every tuning.
    pub(super) fn configurations<'s>(
        &self,
        systems: &'s [Traits<'a>],
    ) -> impl Iterator<Item = Configuration<'a>> + use<'_, 's, 'a> {
        systems.iter().flat_map(|system| self.tunings.iter().map(move |tuning| (*system, *tuning)))
    }

    pub(super) fn entry(&self, system: &str, tuning: Tuning, payload: u64) -> Option<&Entry<'a>> {
        self.entries.iter().find(|entry| {
            entry.system.name == system
                && entry.cell.tuning == tuning
                && entry.cell.params.payload_bytes == payload
        })
    }

    /// The systems under test: all except the floor.
    pub(super) fn peers(&self) -> impl Iterator<Item = Traits<'a>> {
        self.systems.iter().copied().filter(|system| !system.floor)
    }

    /// The system against which a system's gain is measured: the one of the same driver over the
    /// network stack, else the first one over the network stack, else the first one. It has the
    /// same way of waiting and the same topology.
    pub(super) fn reference(&self, system: Traits) -> Option<Traits<'a>> {
        let equals: Vec<_> = self
            .peers()
            .filter(|peer| peer.comparison_class() == system.comparison_class())
            .collect();
        let networked = || equals.iter().filter(|peer| peer.transport == Transport::Loopback);
        let anchor = networked().next().or(equals.first())?;
        let family = networked()
            .find(|peer| peer.family() == system.family() && peer.name != system.name)
            .filter(|_| system.transport != Transport::Loopback);
        let reference = family.unwrap_or(anchor);
        (reference.name != system.name).then_some(*reference)
    }

    /// The floor at this tuning and payload: the first primitive in the driver's list that waits in
    /// exactly the same way, if its cell is valid. It need not be the fastest, since the least of
    /// several results is biased towards low values. If no primitive spins before it sleeps, a
    /// sleeping one is the floor of such a system. If none predicts, a polling one is, since a
    /// predicting system spins when its message comes.
    pub(super) fn floor(&self, tuning: Tuning, payload: u64, wait: Wait) -> Option<&Entry<'a>> {
        let first = |wait: Wait| self.systems.iter().find(|it| it.floor && it.wait == wait);
        let likest = match wait {
            Wait::Adaptive => Wait::Block,
            Wait::Predictive => Wait::Poll,
            _ => wait,
        };
        let name = first(wait).or_else(|| first(likest))?.name;
        self.entry(name, tuning, payload).filter(|entry| entry.cell.valid)
    }

    /// The ratio of the entry's median to the floor's, and the floor; `None` for the floor itself.
    pub(super) fn over_floor(&self, entry: &Entry) -> Option<OverFloor<'_, 'a>> {
        let cell = entry.cell;
        let floor = self.floor(cell.tuning, cell.params.payload_bytes, entry.system.wait)?;
        let verdict = self.verdict(entry, floor).filter(|_| !entry.system.floor)?;
        Some(OverFloor { ratio: verdict.ratio, floor })
    }

    /// The tested configurations with the lowest median at this payload, among systems with the
    /// same way of waiting: the lowest one, and all that cannot be distinguished from it.
    pub(super) fn best(&self, payload: u64, comparison_class: ComparisonClass) -> Vec<&Entry<'a>> {
        let contenders = || {
            let eligible = self.entries.iter().filter(|entry| {
                !entry.system.floor
                    && entry.system.comparison_class() == comparison_class
                    && entry.cell.params.payload_bytes == payload
            });
            let may = eligible.filter(|entry| entry.fault().is_none());
            may.filter_map(|entry| Some((entry.typical_p50()?, entry)))
        };
        let best = contenders().min_by(|a, b| a.0.total_cmp(&b.0));
        let Some((_, best)) = best else { return Vec::new() };
        let is_tied = |entry: &&Entry| {
            let verdict = self.verdict(entry, best);
            entry.index != best.index && verdict.is_some_and(|it| !it.kind.is_significant())
        };
        std::iter::once(best).chain(contenders().map(|it| it.1).filter(is_tied)).collect()
    }

    pub(super) fn waits(&self) -> Vec<Wait> {
        distinct(self.peers().map(|peer| peer.wait))
    }

    pub(super) fn size(&self, payload: u64) -> String {
        let of = |entry: &&Entry| entry.cell.params.payload_bytes == payload;
        self.entries.iter().find(of).map_or_else(|| format::bytes(payload), Entry::size)
    }

    pub(super) fn ends(&self) -> Vec<u64> {
        let ends = [self.payloads.first(), self.payloads.last()];
        distinct(ends.into_iter().flatten().copied())
    }
}

/// What the cells of a group have in common.
fn group_key(cell: &Cell) -> GroupKey<'_> {
    let mut params = Parameter::Payload.rest(&cell.params);
    // Numbers of subscribers of publish runs are the rows of one table.
    if cell.workload == Workload::Publish {
        params.subscribers = 1;
    }
    // One-way workloads are compared across topologies, but two hosts not with one.
    let topology = match cell.topology {
        Topology::OneProcess if cell.workload.is_one_way() => Topology::TwoProcesses,
        topology => topology,
    };
    (&cell.scenario, cell.workload, topology, params)
}

type GroupKey<'a> = (&'a str, Workload, Topology, Params);

fn point(group: &Group, all: &[Group]) -> String {
    let siblings = all.iter().filter(|other| other.scenario == group.scenario);
    let siblings: Vec<&Params> = siblings.map(Group::params).collect();
    if siblings.len() == 1 {
        return String::new();
    }
    let is_rated = group.workload != Workload::Startup;
    format::point(group.params(), [false, is_rated], siblings).join(", ")
}

/// A row of a table: a payload and a number of subscribers.
pub(super) type Point = (u64, u32);
