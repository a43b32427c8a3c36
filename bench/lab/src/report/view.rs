//! The analysis as a reader meets it: cells sorted into groups that may be compared, with the
//! floor, the references and the payload sizes of each.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use myelin_bench_kit::protocol::{Topology, Transport, Wait, Workload};

use super::document::Section;
use super::entry::traits;
pub(super) use super::entry::{Entry, Kin, Latency, Manner, Traits};
use super::fan::Fan;
use super::verdicts::Verdicts;
use super::{Options, advice, format, scorecard};
use crate::stats::verdict::{Ratio, Verdict};
use crate::summary::{Analysis, Cell, Params, Percentile, SystemInfo};

/// An analysis, sorted.
pub(super) struct View<'a> {
    pub analysis: &'a Analysis,
    pub options: Options,
    pub groups: Vec<Group<'a>>,
    /// What was published without an answer.
    pub fans: Vec<Fan<'a>>,
    /// Of all groups and fans.
    pub verdicts: Rc<Verdicts>,
    scorecard: OnceCell<Section>,
    advice: OnceCell<Section>,
}

/// Cells that differ in system, tuning and payload alone; of streams and images on one host in
/// topology, too, which is each system's own.
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
    /// In the order of [`tuning_rank`].
    pub tunings: Vec<&'a str>,
    /// Floor first, then as listed in the summary.
    pub systems: Vec<Traits<'a>>,
    /// Of all groups.
    pub verdicts: Rc<Verdicts>,
}

impl<'a> View<'a> {
    pub(super) fn new(analysis: &'a Analysis, options: Options) -> Self {
        let mut keyed: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        let cells = &analysis.summary.cells;
        for index in 0..cells.len() {
            let first = (0..index).find(|&other| comparable(&cells[other], &cells[index]));
            keyed.entry(first.unwrap_or(index)).or_default().push(index);
        }
        let is_fan = |indices: &Vec<usize>| cells[indices[0]].workload == Workload::Publish;
        let (fans, groups): (Vec<_>, Vec<_>) = keyed.into_values().partition(is_fan);
        let groups = groups.iter().map(|indices| Group::new(analysis, indices));
        let mut groups: Vec<_> = groups.collect();
        let points: Vec<String> = groups.iter().map(|group| point(group, &groups)).collect();
        for (group, point) in groups.iter_mut().zip(points) {
            group.point = point;
        }
        let fans = fans.iter().map(|indices| Fan::new(analysis, indices));
        let fans: Vec<Fan> = fans.collect();
        let together = groups.iter().map(|group| group.entries.as_slice());
        let together = together.chain(fans.iter().map(|fan| fan.entries.as_slice()));
        let verdicts = Rc::new(Verdicts::new(together));
        for group in &mut groups {
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

    /// See [`scorecard`].
    pub(super) fn scorecard(&self) -> &Section {
        self.scorecard.get_or_init(|| scorecard::section(self))
    }

    /// See [`advice`].
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

    /// All cells, in the order of the groups, then of the fans.
    pub(super) fn entries(&self) -> impl Iterator<Item = &Entry<'a>> {
        let groups = self.groups.iter().flat_map(|group| &group.entries);
        groups.chain(self.fans.iter().flat_map(|fan| &fan.entries))
    }

    /// Names of the scenarios, each once, in plan order.
    pub(super) fn scenarios(&self) -> Vec<&'a str> {
        distinct(self.analysis.summary.cells.iter().map(|cell| cell.scenario.as_str()))
    }

    /// Tunings of all groups, each once.
    pub(super) fn tunings(&self) -> Vec<&'a str> {
        let groups = self.groups.iter().map(|group| &group.tunings);
        distinct(groups.chain(self.fans.iter().map(|fan| &fan.tunings)).flatten().copied())
    }

    /// Systems that could not run.
    pub(super) fn missing(&self) -> impl Iterator<Item = (&'a SystemInfo, &'a str)> {
        let systems = self.analysis.summary.systems.iter();
        systems.filter_map(|system| Some((system, system.missing.as_deref()?)))
    }
}

/// See [`Group::over_floor`].
pub(super) struct OverFloor<'g, 'a> {
    pub ratio: Ratio,
    pub floor: &'g Entry<'a>,
}

impl OverFloor<'_, '_> {
    /// `1.5× [1.4, 1.6] the floor (os.futex)`.
    pub(super) fn text(&self) -> String {
        format!("{} the floor ({})", format::ratio(self.ratio), self.floor.floor_name())
    }

    /// `1.5× [1.4, 1.6] os.futex`.
    pub(super) fn short(&self) -> String {
        format!("{} {}", format::ratio(self.ratio), self.floor.floor_name())
    }
}

impl<'a> Group<'a> {
    fn new(analysis: &'a Analysis, indices: &[usize]) -> Self {
        let cells = || indices.iter().map(|&index| &analysis.summary.cells[index]);
        let one_way = cells().all(|cell| cell.round_trip_us.is_none());
        let first = cells().next().expect("a group is made of at least one cell");
        let metric = Latency::of(first.workload, one_way);
        let entries = indices.iter().map(|&index| Entry::new(analysis, index, metric)).collect();
        let mut payloads = distinct(cells().map(|cell| cell.params.payload_bytes));
        payloads.sort_unstable();
        let mut tunings = distinct(cells().map(|cell| cell.tuning.as_str()));
        tunings.sort_by_key(|tuning| tuning_rank(tuning));
        let mut systems = distinct(cells().map(|cell| traits(&analysis.summary.systems, cell)));
        let listed = &analysis.summary.systems;
        systems.sort_by_key(|system| {
            (!system.floor, listed.iter().position(|info| info.name == system.name))
        });
        let topologies = distinct(cells().map(|cell| cell.topology.name())).join(" and ");
        Self {
            id: format!("group-{}", indices[0]),
            scenario: &first.scenario,
            circumstances: format::circumstances(&topologies, first.workload, &first.params),
            point: String::new(),
            workload: first.workload,
            metric,
            entries,
            payloads,
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
    pub(super) fn floor(&self, tuning: &str, payload: u64, wait: Wait) -> Option<&Entry<'a>> {
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
        let floor = self.floor(&cell.tuning, cell.params.payload_bytes, entry.system.wait)?;
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

    /// The manners in which systems under test wait.
    pub(super) fn waits(&self) -> Vec<Wait> {
        distinct(self.peers().map(|peer| peer.wait))
    }

    /// A payload as tables name it.
    pub(super) fn size(&self, payload: u64) -> String {
        let of = |entry: &&Entry| entry.cell.params.payload_bytes == payload;
        self.entries.iter().find(of).map_or_else(|| format::bytes(payload), Entry::size)
    }

    /// Smallest and largest payload.
    pub(super) fn ends(&self) -> Vec<u64> {
        let ends = [self.payloads.first(), self.payloads.last()];
        distinct(ends.into_iter().flatten().copied())
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

/// What two hosts do is not compared with what one does.
fn is_across(cell: &Cell) -> bool {
    cell.topology == Topology::TwoHosts
}

fn comparable(a: &Cell, b: &Cell) -> bool {
    a.scenario == b.scenario
        && (a.topology == b.topology || a.workload.is_one_way() && ![a, b].into_iter().any(is_across))
        && a.workload == b.workload
        && a.params.rate_hz == b.params.rate_hz
        && a.params.touch == b.params.touch
        && a.params.arrivals == b.params.arrivals
        && a.params.module == b.params.module
        && (a.params.publishers, a.params.topics) == (b.params.publishers, b.params.topics)
        // Of what is published without an answer they are the rows of one table.
        && (a.params.subscribers == b.params.subscribers || a.workload == Workload::Publish)
}

/// See [`Group::point`].
fn point(group: &Group, all: &[Group]) -> String {
    let params = group.params();
    let kin = || all.iter().filter(|other| other.scenario == group.scenario);
    if kin().count() == 1 {
        return String::new();
    }
    let mut words: Vec<String> = params.module.iter().cloned().collect();
    if group.workload != Workload::Startup {
        words.push(format::rate(params.rate_hz));
    }
    words.extend(params.arrivals.clone());
    for (place, (number, noun)) in format::counts(params).into_iter().enumerate() {
        let numbers = distinct(kin().map(|other| format::counts(other.params())[place].0));
        if numbers.len() > 1 {
            words.push(format::plural(number as usize, noun));
        }
    }
    words.join(", ")
}

const TUNINGS: [&str; 3] = ["default", "tuned", "awake"];
