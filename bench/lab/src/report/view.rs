//! The analysis as a reader meets it: cells sorted into groups that may be compared, with the
//! floor, the references and the payload sizes of each.

use std::cell::OnceCell;
use std::rc::Rc;

use myelin_bench_kit::protocol::{Topology, Transport, Wait, Workload};

use super::document::Section;
use super::entry::traits;
pub(super) use super::entry::{Configuration, Entry, Kin, Latency, Manner, Traits};
use super::sweep::Parameter;
use super::verdicts::Verdicts;
use super::{Options, advice, format, scorecard};
use crate::lists::{ascending, distinct, grouped};
use crate::scenario::Tuning;
use crate::stats::verdict::{Ratio, Verdict};
use crate::summary::{Analysis, Cell, Params, Percentile, SystemInfo};

/// An analysis, sorted.
pub(super) struct View<'a> {
    pub analysis: &'a Analysis,
    pub options: Options,
    pub groups: Vec<Group<'a>>,
    /// What was published without an answer.
    pub fans: Vec<Group<'a>>,
    /// Of all groups and fans.
    pub verdicts: Rc<Verdicts>,
    scorecard: OnceCell<Section>,
    advice: OnceCell<Section>,
}

/// Cells that differ in system, tuning and payload alone; of streams and images on one host in
/// topology, too, which is each system's own; of what is published without an answer in the number of
/// subscribers.
pub(super) struct Group<'a> {
    /// Unique within the report, fit for an HTML id.
    pub id: String,
    pub scenario: &'a str,
    /// Topology, rate, subscribers in words.
    pub circumstances: String,
    /// What sets it apart from the other groups of its scenario: rate, schedule, module, numbers of
    /// publishers, subscribers and topics; empty if it is the only one.
    pub point: String,
    pub workload: Workload,
    pub metric: Latency,
    /// In plan order.
    pub entries: Vec<Entry<'a>>,
    /// Ascending.
    pub payloads: Vec<u64>,
    /// Ascending; one number, unless nobody answers.
    pub subscribers: Vec<u32>,
    /// What a clock read costs; 0 if that is not known.
    pub clock_read_ns: f64,
    /// Ascending.
    pub tunings: Vec<Tuning>,
    /// Floor first, then as listed in the summary.
    pub systems: Vec<Traits<'a>>,
    /// Of all groups.
    pub verdicts: Rc<Verdicts>,
}

impl<'a> View<'a> {
    pub(super) fn new(analysis: &'a Analysis, options: Options) -> Self {
        let cells = analysis.summary.cells.iter().enumerate();
        let all = grouped(cells.map(|(index, cell)| (group_key(cell), index))).into_iter();
        let all = all.map(|(_, indices)| Group::new(analysis, &indices));
        let (mut fans, mut groups): (Vec<Group>, Vec<Group>) = all.partition(Group::is_fan);
        let points: Vec<String> = groups.iter().map(|group| point(group, &groups)).collect();
        for (group, point) in groups.iter_mut().zip(points) {
            group.point = point;
        }
        let together = groups.iter().chain(&fans).map(|group| group.entries.as_slice());
        let verdicts = Rc::new(Verdicts::new(together));
        for group in groups.iter_mut().chain(&mut fans) {
            group.verdicts = verdicts.clone();
        }
        Self {
            analysis,
            options,
            groups,
            fans,
            verdicts,
            scorecard: OnceCell::new(),
            advice: OnceCell::new(),
        }
    }

    pub(super) fn scorecard(&self) -> &Section {
        self.scorecard.get_or_init(|| scorecard::section(self))
    }

    pub(super) fn advice(&self) -> &Section {
        self.advice.get_or_init(|| advice::section(self))
    }

    /// Whether anything goes one way: streams, images, floods, start-ups.
    pub(super) fn has_one_way(&self) -> bool {
        self.groups.iter().any(|group| group.workload.is_one_way())
    }

    /// Whether this group is the first of its scenario: the one whose verdicts open a report.
    pub(super) fn leads(&self, group: &Group) -> bool {
        let first = self.groups.iter().find(|other| other.scenario == group.scenario);
        first.is_some_and(|first| first.id == group.id)
    }

    /// The groups, then the fans.
    pub(super) fn all(&self) -> impl Iterator<Item = &Group<'a>> {
        self.groups.iter().chain(&self.fans)
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
            // Subscribers are rows.
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

    /// What may be said of the median of a cell beside another; `None` if they may not be compared.
    pub(super) fn verdict(&self, subject: &Entry, reference: &Entry) -> Option<Verdict> {
        self.verdicts.of(subject, reference, Percentile::P50)
    }

    /// The parameters that all its cells share.
    pub(super) fn params(&self) -> &'a Params {
        &self.entries.first().expect("a group is made of at least one cell").cell.params
    }

    /// Whether nobody answers, so that there may be any number of subscribers.
    pub(super) fn is_fan(&self) -> bool {
        self.workload == Workload::Publish
    }

    /// Whether it is of streams or images: one way, in one process and in two.
    pub(super) fn is_flow(&self) -> bool {
        matches!(self.workload, Workload::Stream | Workload::Image)
    }

    /// Whether its latencies may be compared and drawn.
    pub(super) fn is_steady(&self) -> bool {
        self.entries.iter().all(Entry::is_steady)
    }

    /// `roundtrip-sizes · two processes · back to back`.
    pub(super) fn title(&self) -> String {
        format!("{} · {}", self.scenario, self.circumstances)
    }

    /// What the rows of its tables are of.
    pub(super) fn points(&self) -> impl Iterator<Item = Point> {
        let of_payload = |&payload| self.subscribers.iter().map(move |&number| (payload, number));
        self.payloads.iter().flat_map(of_payload)
    }

    pub(super) fn at(&self, point: Point) -> impl Iterator<Item = &Entry<'a>> {
        self.entries.iter().filter(move |entry| {
            (entry.cell.params.payload_bytes, entry.cell.params.subscribers) == point
        })
    }

    /// What a row is called: a size, or `8 subscribers`, with the payload where there are several.
    pub(super) fn label(&self, (payload, number): Point) -> String {
        match (self.is_fan(), self.payloads.len()) {
            (false, _) => self.size(payload),
            (true, 1) => format::plural(number as usize, "subscriber"),
            (true, _) => {
                format!("{}, {}", self.size(payload), format::plural(number as usize, "subscriber"))
            }
        }
    }

    /// What the columns of its tables are of: these systems at every tuning.
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

    /// The systems under test: all but the floor.
    pub(super) fn peers(&self) -> impl Iterator<Item = Traits<'a>> {
        self.systems.iter().copied().filter(|system| !system.floor)
    }

    /// What a system's gain is measured against: the system of the same driver that goes through
    /// the network stack, else the first of all that does, else the first of all; never one that
    /// waits in another manner, or lives elsewhere.
    pub(super) fn reference(&self, system: Traits) -> Option<Traits<'a>> {
        let equals: Vec<_> = self.peers().filter(|peer| peer.kin() == system.kin()).collect();
        let networked = || equals.iter().filter(|peer| peer.transport == Transport::Loopback);
        let anchor = networked().next().or(equals.first())?;
        let family = networked()
            .find(|peer| peer.family() == system.family() && peer.name != system.name)
            .filter(|_| system.transport != Transport::Loopback);
        let reference = family.unwrap_or(anchor);
        (reference.name != system.name).then_some(*reference)
    }

    /// A primitive of the operating system at this tuning and payload: of those that wait in the very
    /// same manner the first in the driver's list, whichever is the fastest here, for the least of
    /// several is less than any of them; if its cell is of use. A system that spins before it sleeps
    /// is measured by one that sleeps if no primitive does as it does, and one that predicts, which
    /// spins when its message comes, by one that polls.
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

    /// How many times the floor's median the entry's is, and the floor; `None` of the floor itself.
    pub(super) fn over_floor(&self, entry: &Entry) -> Option<OverFloor<'_, 'a>> {
        let cell = entry.cell;
        let floor = self.floor(cell.tuning, cell.params.payload_bytes, entry.system.wait)?;
        let verdict = self.verdict(entry, floor).filter(|_| !entry.system.floor)?;
        Some(OverFloor { ratio: verdict.ratio, floor })
    }

    /// The configurations under test with the lowest median at this payload, among those that wait
    /// alike: the lowest, and all that cannot be told from it.
    pub(super) fn best(&self, payload: u64, kin: Kin) -> Vec<&Entry<'a>> {
        let contenders = || {
            let eligible = self.entries.iter().filter(|entry| {
                !entry.system.floor
                    && entry.system.kin() == kin
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
    // Of what is published without an answer they are the rows of one table.
    if cell.workload == Workload::Publish {
        params.subscribers = 1;
    }
    // What goes one way is compared wherever its ends live, but not two hosts with one.
    let topology = match cell.topology {
        Topology::OneProcess if cell.workload.is_one_way() => Topology::TwoProcesses,
        topology => topology,
    };
    (&cell.scenario, cell.workload, topology, params)
}

type GroupKey<'a> = (&'a str, Workload, Topology, Params);

fn point(group: &Group, all: &[Group]) -> String {
    let kin = all.iter().filter(|other| other.scenario == group.scenario);
    let kin: Vec<&Params> = kin.map(Group::params).collect();
    if kin.len() == 1 {
        return String::new();
    }
    let is_rated = group.workload != Workload::Startup;
    format::point(group.params(), [false, is_rated], kin).join(", ")
}

/// What a row of tables is of: a payload and a number of subscribers.
pub(super) type Point = (u64, u32);
