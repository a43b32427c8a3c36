//! The picture of a scenario: a ranking of systems or, if a parameter takes many values, latency
//! against it. Positions are per cent of an axis, so the picture fits any width.

use std::cmp::Ordering;

use myelin_bench_kit::protocol::{Topology, Wait, Workload};
use serde::{Serialize, Serializer};

use super::axis::{Axis, Tick, tidy};
use crate::lists::{ascending, distinct};
use crate::report::format;
use crate::report::metrics::memory_mb;
use crate::report::parameter::Parameter;
use crate::report::view::{Entry, Group, Traits, View};
use crate::scenario::Tuning;
use crate::summary::Params;

#[derive(Serialize)]
pub(in crate::report) struct Picture<'a> {
    pub scenario: &'a str,
    /// The workload, for example `Round trips`.
    pub what: &'static str,
    /// Topology and rate, as far as all cells share them.
    pub circumstances: String,
    pub quantity: Quantity,
    /// In the order in which they are drawn.
    pub tunings: Vec<Tuning>,
    #[serde(flatten)]
    pub drawing: Drawing<'a>,
}

/// The quantity drawn on the logarithmic axis.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
pub(in crate::report) struct Quantity {
    /// Names of the ends of a line.
    pub low: &'static str,
    pub high: &'static str,
    pub unit: &'static str,
    /// Whether the largest value comes first.
    pub is_rate: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
pub(in crate::report) enum Drawing<'a> {
    Ranking(Ranking<'a>),
    Curves(Vec<Curves<'a>>),
}

/// Systems ranked by their results at the first point.
#[derive(Serialize)]
pub(in crate::report) struct Ranking<'a> {
    /// Labels of the points: a payload, a rate, a module.
    pub panels: Vec<String>,
    /// Number of points without a panel.
    pub further: usize,
    pub sections: Vec<WaitClass<'a>>,
    /// Systems whose messages partly stayed on one core; the picture shows only messages across
    /// cores.
    pub across_cores: Vec<String>,
    /// Shared by all panels, so that they can be compared.
    axis: Axis,
    ticks: Vec<Tick>,
}

/// Systems with the same way of waiting.
#[derive(Serialize)]
pub(in crate::report) struct WaitClass<'a> {
    pub title: String,
    /// The title as part of a sentence: `systems that sleep`.
    pub who: &'static str,
    pub wait: Wait,
    /// For each panel, the result of the primitive that waits in this way, at the ranking tuning,
    /// and the same as text.
    pub floors: Vec<Option<(f64, String)>>,
    /// Name of the floor; the same in all panels.
    pub floor: Option<String>,
    pub rows: Vec<RankedSystem<'a>>,
}

/// A system of the ranking.
#[derive(Serialize)]
pub(in crate::report) struct RankedSystem<'a> {
    #[serde(serialize_with = "by_name")]
    pub system: Traits<'a>,
    /// The tuning that ranks.
    tuning: Tuning,
    /// For each panel, a mark per tuning.
    pub marks: Vec<Vec<Mark<'a>>>,
}

/// The result of one cell.
#[derive(Serialize)]
pub(in crate::report) struct Mark<'a> {
    #[serde(skip)]
    pub entry: &'a Entry<'a>,
    pub tuning: Tuning,
    pub low: f64,
    /// From the low end to the high one; both are the low one if the high one was withheld. An
    /// infinite one is drawn to the edge.
    pub ends: [f64; 2],
    /// Both ends in at most six characters; a dash for a withheld value.
    pub figures: [String; 2],
    /// CPU of all processes per message, in µs; a dash if that has no meaning.
    pub cpu: String,
    /// Memory of all processes, in MB; empty if unknown.
    pub memory: String,
    /// `tuned: p50 54.0 µs [53.1, 55.2], p99 81.9 µs [80.1, 90.3]`.
    title: String,
    /// Remarks that messages were lost or that the rate was not reached.
    doubts: Vec<String>,
    /// Interval of each end; none for a mixed cell, whose interval does not belong to the drawn
    /// value.
    intervals: Vec<[f64; 2]>,
}

/// Curves of systems against one parameter, at one tuning.
#[derive(Serialize)]
pub(in crate::report) struct Curves<'a> {
    /// The values that set the panel apart, and the tuning.
    pub title: String,
    pub parameter: &'static str,
    /// Ascending.
    pub values: Vec<Tick>,
    /// The lowest on average first; for rates the highest.
    pub curves: Vec<Curve<'a>>,
    axis: Axis,
    ticks: Vec<Tick>,
    /// The values that have room for a label.
    across: Vec<Tick>,
}

/// One system, with a mark for each measured value, ascending.
#[derive(Serialize)]
pub(in crate::report) struct Curve<'a> {
    pub system: &'a str,
    pub is_floor: bool,
    pub marks: Vec<(Tick, Mark<'a>)>,
}

fn by_name<S: Serializer>(system: &Traits, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(system.name)
}

pub(super) fn pictures<'a>(view: &'a View<'a>) -> Vec<Picture<'a>> {
    let of = |scenario| {
        let entries = view.entries().filter(move |entry| entry.cell.scenario == scenario);
        picture(view, scenario, entries.collect())
    };
    view.scenarios().into_iter().filter_map(of).collect()
}

fn picture<'a>(
    view: &'a View<'a>,
    scenario: &'a str,
    entries: Vec<&'a Entry<'a>>,
) -> Option<Picture<'a>> {
    let workload = entries.first()?.cell.workload;
    let quantity = Quantity::of(workload);
    let tunings = ascending(entries.iter().map(|entry| entry.cell.tuning));
    let points = points(&entries);
    let drawing = match points.len() > PANELS_MAX {
        true => curves(quantity, &entries, &tunings).map(Drawing::Curves),
        false => None,
    };
    let drawing = drawing.unwrap_or_else(|| {
        let drawn = &points[..points.len().min(PANELS_MAX)];
        let tuning = tunings.last().copied().unwrap_or_default();
        let has_peers = entries.iter().any(|entry| !entry.system.floor);
        let ranked = Ranked { view, quantity, entries: &entries, points: drawn, tuning, has_peers };
        let (sections, axis) = ranked.sections();
        let panels = drawn.iter().map(|point| label(point, &points)).collect();
        let (further, ticks) =
            (points.len() - drawn.len(), axis.ticks(|value| quantity.round(value)));
        let across_cores = across_cores(&sections);
        Drawing::Ranking(Ranking { panels, further, sections, across_cores, axis, ticks })
    });
    Some(Picture {
        scenario,
        what: what(workload, entries.first()?.cell.params.imported),
        circumstances: common(view, scenario),
        quantity,
        tunings,
        drawing,
    })
}

fn across_cores(sections: &[WaitClass]) -> Vec<String> {
    let rows = sections.iter().flat_map(|section| &section.rows);
    let is_mixed = |row: &&RankedSystem| row.marks.iter().flatten().any(|it| it.entry.is_mixed());
    distinct(rows.filter(is_mixed).map(|row| row.system.name.to_owned()))
}

impl Quantity {
    fn of(workload: Workload) -> Self {
        let (low, high, unit, is_rate) = match workload {
            Workload::Flood => ("without loss", "taken", "messages a second", true),
            Workload::Startup => ("mean", "slowest", "µs", false),
            _ => ("p50", "p99", "µs", false),
        };
        Self { low, high, unit, is_rate }
    }

    fn mark<'a>(self, entry: &'a Entry<'a>) -> Option<Mark<'a>> {
        let cell = entry.cell;
        let (low, high) = match cell.workload {
            Workload::Flood => (cell.lossless_per_s.or(cell.taken_per_s)?, cell.taken_per_s),
            Workload::Startup => {
                let first = cell.first_sample_us.as_ref()?;
                (first.mean, Some(first.max))
            }
            _ => (entry.typical_p50()?, entry.typical_p99()),
        };
        let brief_high = high.map(|high| self.brief(high));
        let is_drawn = entry.is_steady() && !entry.is_mixed();
        let intervals = [entry.p50_interval(), entry.p99_interval()];
        (cell.valid && low > 0.0 && low.is_finite()).then(|| Mark {
            entry,
            tuning: cell.tuning,
            low,
            ends: [low, high.unwrap_or(low)],
            figures: [self.brief(low), brief_high.unwrap_or_else(|| format::WITHHELD.to_owned())],
            // The only message of a start-up has no such figure.
            cpu: match cell.workload {
                Workload::Startup => format::WITHHELD.to_owned(),
                _ => format::or_dash(cell.cpu_us_per_message, format::brief_us),
            },
            memory: format::or_dash(memory_mb(entry), |it| format!("{it:.0}")),
            title: self.title(entry, low, high),
            doubts: doubts(entry),
            intervals: intervals.into_iter().flatten().filter(|_| is_drawn).collect(),
        })
    }

    fn title(self, entry: &Entry, low: f64, high: Option<f64>) -> String {
        let end = |name: &str, value: f64, interval: Option<[f64; 2]>| {
            let interval = interval.filter(|_| entry.is_steady());
            let interval = interval.map(|ends| format!(" {}", format::interval_us(ends)));
            let interval = interval.unwrap_or_default();
            format!("{name} {} {}{interval}", self.exact(value), self.unit)
        };
        let high = high.map(|high| end(self.high, high, entry.p99_interval()));
        let ends = [Some(end(self.low, low, entry.p50_interval())), high];
        let ends: Vec<String> = ends.into_iter().flatten().collect();
        format!("{}: {}", entry.cell.tuning, ends.join(", "))
    }

    /// A value in at most six characters: like [`format::brief_us`], for rates `12 k` or `1.2 M`.
    pub(super) fn brief(self, value: f64) -> String {
        match value {
            v if !self.is_rate => format::brief_us(v),
            v if v >= 1e6 => format!("{:.1} M", v / 1e6),
            v if v >= 1e4 => format!("{:.0} k", v / 1e3),
            v => format::amount(v),
        }
    }

    /// A value with all known digits.
    pub(super) fn exact(self, value: f64) -> String {
        if self.is_rate { format::amount(value) } else { format::us(value) }
    }

    /// A value on an axis: `0.1 µs`, `100 µs`, `10 ms`, `2 s`; `100 k` for rates.
    pub(super) fn round(self, value: f64) -> String {
        let (value, unit) = match value {
            v if self.is_rate && v >= 1e6 => (v / 1e6, " M"),
            v if self.is_rate && v >= 1e3 => (v / 1e3, " k"),
            v if self.is_rate => (v, ""),
            v if v >= 1e6 => (v / 1e6, " s"),
            v if v >= 1e3 => (v / 1e3, " ms"),
            v if v < 1.0 => (v * 1e3, " ns"),
            v => (v, " µs"),
        };
        format!("{}{unit}", tidy(value))
    }

    /// Orders the better of two values first.
    pub(super) fn order(self, a: f64, b: f64) -> Ordering {
        if self.is_rate { b.total_cmp(&a) } else { a.total_cmp(&b) }
    }
}

impl Mark<'_> {
    /// Whether messages were lost although the workload should lose none.
    pub(super) fn is_lossy(&self) -> bool {
        self.entry.loss().is_some()
    }

    /// The name of the system, and how much it lost.
    pub(super) fn name(&self) -> String {
        let loss = self.entry.loss().map(|loss| format!(" ({loss})"));
        self.entry.system.name.to_owned() + &loss.unwrap_or_default()
    }
}

fn doubts(entry: &Entry) -> Vec<String> {
    let short = entry.short_of_rate().map(|(reached, asked)| format::reached(reached, asked));
    short.into_iter().chain(entry.loss()).collect()
}

fn what(workload: Workload, is_imported: bool) -> &'static str {
    match workload {
        _ if is_imported => "Traces",
        Workload::Roundtrip => "Round trips",
        Workload::Stream => "Streams",
        Workload::Image => "Images",
        Workload::Publish => "Publish calls",
        Workload::Flood => "Floods",
        Workload::Startup => "Start-ups",
        Workload::Replay => "Replays",
    }
}

/// What all groups of a scenario share, in words.
fn common(view: &View, scenario: &str) -> String {
    let groups = view.all().filter(|group| group.scenario == scenario);
    let all: Vec<&str> = groups.map(|group| group.circumstances.as_str()).collect();
    let first = all.first().copied().unwrap_or_default().split(" · ");
    let is_common = |part: &&str| all.iter().all(|other| other.split(" · ").any(|it| it == *part));
    first.filter(is_common).collect::<Vec<_>>().join(" · ")
}

/// Parameter points in plan order, without the fields that only describe a system.
fn points(entries: &[&Entry]) -> Vec<Params> {
    distinct(entries.iter().map(|entry| entry.cell.params.point()))
}

/// The values that set a point apart from the others.
fn label(params: &Params, all: &[Params]) -> String {
    let differs = |of: fn(&Params) -> String| distinct(all.iter().map(of)).len() > 1;
    let is_rated = differs(|params| format::rate(params.rate_hz));
    let words = format::point(params, [!is_rated || differs(format::size), is_rated], all);
    if words.is_empty() { "all messages".to_owned() } else { words.join(", ") }
}

/// The ranked cells of a scenario, with the tuning that ranks.
struct Ranked<'v, 'a> {
    view: &'a View<'a>,
    quantity: Quantity,
    entries: &'v [&'a Entry<'a>],
    points: &'v [Params],
    tuning: Tuning,
    /// Whether there are other systems than floors. If not, the floors are ranked themselves.
    has_peers: bool,
}

impl<'a> Ranked<'_, 'a> {
    fn sections(&self) -> (Vec<WaitClass<'a>>, Axis) {
        let shown = || self.entries.iter().filter(|it| !(self.has_peers && it.system.floor));
        let mut wait_styles = distinct(shown().map(|it| (it.system.topology, it.system.wait)));
        wait_styles.sort_by_key(|&(topology, wait)| (topology as u8, wait_style(wait).0));
        let section = |wait_style: (Topology, Wait)| {
            let own = shown().filter(|it| (it.system.topology, it.system.wait) == wait_style);
            self.section(wait_style, &own.copied().collect::<Vec<_>>())
        };
        let sections = wait_styles.into_iter().map(section);
        let sections: Vec<_> = sections.filter(|section| !section.rows.is_empty()).collect();
        let rows = sections.iter().flat_map(|section| &section.rows);
        let marks = rows.flat_map(|row| row.marks.iter().flatten()).flat_map(|mark| mark.ends);
        let floors = sections.iter().flat_map(|section| section.floors.iter().flatten());
        let axis = Axis::new(marks.chain(floors.map(|floor| floor.0))).with_room();
        (sections, axis)
    }

    fn section(&self, (topology, wait): (Topology, Wait), own: &[&'a Entry<'a>]) -> WaitClass<'a> {
        let mut rows: Vec<RankedSystem> =
            systems(own).map(|system| self.row(system, own)).collect();
        rows.retain(|row| row.marks.iter().any(|marks| !marks.is_empty()));
        rows.sort_by(|a, b| match (a.rank(), b.rank()) {
            (Some(a), Some(b)) => self.quantity.order(a, b),
            (a, b) => b.is_some().cmp(&a.is_some()),
        });
        let floors: Vec<_> = self.points.iter().map(|point| self.floor(point, wait)).collect();
        let named = floors.iter().flatten().next().map(|entry| entry.system.name);
        let of_named = |floor: &Option<&Entry>| {
            let same = floor.filter(|entry| Some(entry.system.name) == named);
            let value = same.and_then(Entry::typical_p50).filter(|it| it.is_finite())?;
            Some((value, self.quantity.brief(value)))
        };
        let (_, mut title, mut who) = wait_style(wait);
        if own.first().is_some_and(|entry| entry.cell.params.imported) {
            (title, who) = ("imported traces", "applications");
        }
        let place = if topology == Topology::OneProcess { ", in one process" } else { "" };
        WaitClass {
            title: format!("{title}{place}"),
            who,
            wait,
            floors: floors.iter().map(of_named).collect(),
            floor: named.map(str::to_owned),
            rows,
        }
    }

    fn row(&self, system: Traits<'a>, own: &[&'a Entry<'a>]) -> RankedSystem<'a> {
        let at = |wanted: &Params| {
            let is_here = |entry: &&&Entry| {
                entry.system.name == system.name && entry.cell.params.point() == *wanted
            };
            let here = own.iter().filter(is_here);
            let mut marks: Vec<_> = here.filter_map(|it| self.quantity.mark(it)).collect();
            marks.sort_by_key(|mark| mark.tuning);
            marks
        };
        RankedSystem { system, tuning: self.tuning, marks: self.points.iter().map(at).collect() }
    }

    /// The result at a point of the primitive that waits in this way.
    fn floor(&self, wanted: &Params, wait: Wait) -> Option<&'a Entry<'a>> {
        let scenario = self.entries.first()?.cell.scenario.as_str();
        let is_here = |group: &&Group| {
            let mut points = group.entries.iter().map(|entry| entry.cell.params.point());
            group.scenario == scenario && points.any(|it| it == *wanted)
        };
        let group = self.view.groups.iter().find(is_here)?;
        let is_fit = self.has_peers && group.is_steady();
        group.floor(self.tuning, wanted.payload_bytes, wait).filter(|_| is_fit)
    }
}

impl WaitClass<'_> {
    /// The floor of the first panel.
    pub(super) fn first_floor(&self) -> Option<f64> {
        self.floors.first()?.as_ref().map(|floor| floor.0)
    }
}

impl<'a> RankedSystem<'a> {
    /// The value for ranking: from the first panel in which the system has one.
    fn rank(&self) -> Option<f64> {
        (0..self.marks.len()).find_map(|panel| self.mark(panel)).map(|mark| mark.low)
    }

    /// The mark in a panel, at the ranking tuning.
    pub(in crate::report) fn mark(&self, panel: usize) -> Option<&Mark<'a>> {
        self.marks.get(panel)?.iter().find(|mark| mark.tuning == self.tuning)
    }
}

/// At most `most` values: every second, third and so on if there are more; always the last one.
pub(super) fn thinned(values: &[Tick], most: usize) -> impl Iterator<Item = &Tick> {
    let step = values.len().div_ceil(most.max(1)).max(1);
    let last = values.len().saturating_sub(1);
    let is_shown = move |at: usize| (last - at).is_multiple_of(step);
    values.iter().enumerate().filter(move |(at, _)| is_shown(*at)).map(|(_, it)| it)
}

/// Curves against the parameter with the most values. `None` if no parameter has three, or if no
/// panel has a curve, as when a session ended early.
fn curves<'a>(
    quantity: Quantity,
    entries: &[&'a Entry<'a>],
    tunings: &[Tuning],
) -> Option<Vec<Curves<'a>>> {
    let number = |parameter: &Parameter| {
        distinct(entries.iter().filter_map(|entry| parameter.of(&entry.cell.params))).len()
    };
    let parameter = Parameter::ALL.into_iter().rev().max_by_key(number)?;
    if number(&parameter) < 3 {
        return None;
    }
    let rest = |entry: &Entry| parameter.rest(&entry.cell.params);
    let rests = distinct(entries.iter().map(|entry| rest(entry)));
    // Of many panels only the first and the last; the plots show the others.
    let ends = distinct([rests.first(), rests.last()].into_iter().flatten());
    let at = |wanted: &Params, tuning: Tuning| {
        let is_here = |entry: &&&Entry| entry.cell.tuning == tuning && rest(entry) == *wanted;
        let own: Vec<&Entry> = entries.iter().filter(is_here).copied().collect();
        let label = if ends.len() > 1 { label(wanted, &rests) } else { String::new() };
        let parts = [label.as_str(), tuning.name()].into_iter().filter(|part| !part.is_empty());
        let title = parts.collect::<Vec<_>>().join(", ");
        panel(title, quantity, parameter, &own)
    };
    let panels = ends.iter().flat_map(|wanted| tunings.iter().map(move |tuning| (wanted, *tuning)));
    let panels = panels.map(|(wanted, tuning)| at(wanted, tuning));
    let panels = panels.filter(|panel| !panel.curves.is_empty()).take(PANELS_MAX);
    Some(panels.collect()).filter(|panels: &Vec<_>| !panels.is_empty())
}

fn panel<'a>(
    title: String,
    quantity: Quantity,
    parameter: Parameter,
    own: &[&'a Entry<'a>],
) -> Curves<'a> {
    let values = values(parameter, own);
    let curves = lines(quantity, parameter, own, &values);
    let marks = curves.iter().flat_map(|curve| &curve.marks);
    let axis = Axis::new(marks.map(|(_, mark)| mark.low)).with_room();
    Curves {
        title,
        parameter: parameter.name(),
        across: thinned(&values, LABELS_MAX).cloned().collect(),
        values,
        ticks: axis.ticks(|value| quantity.round(value)),
        axis,
        curves,
    }
}

/// The values of the parameter in these cells, ascending.
fn values(parameter: Parameter, own: &[&Entry]) -> Vec<Tick> {
    let values = parameter.values(own.iter().copied());
    // A logarithmic axis has no zero.
    let axis = Axis::new(values.iter().map(|(value, _)| value.max(LEAST))).with_room();
    let tick = |(value, label): (f64, String)| Tick { value, at: axis.at(value.max(LEAST)), label };
    values.into_iter().map(tick).collect()
}

/// A curve for each measured system, the best on average first.
fn lines<'a>(
    quantity: Quantity,
    parameter: Parameter,
    own: &[&'a Entry<'a>],
    values: &[Tick],
) -> Vec<Curve<'a>> {
    let curve = |system: Traits<'a>| {
        let entries = own.iter().filter(|entry| entry.system.name == system.name);
        let mark = |entry: &&'a Entry<'a>| {
            let value = parameter.of(&entry.cell.params)?;
            let value = values.iter().find(|it| it.value == value)?;
            Some((value.clone(), quantity.mark(entry)?))
        };
        let mut marks: Vec<_> = entries.filter_map(mark).collect();
        marks.sort_by(|a, b| a.0.value.total_cmp(&b.0.value));
        Curve { system: system.name, is_floor: system.floor, marks }
    };
    let mut curves: Vec<Curve> = systems(own).map(curve).collect();
    curves.retain(|curve| !curve.marks.is_empty());
    let mean_ln = |curve: &Curve| {
        let sum: f64 = curve.marks.iter().map(|(_, mark)| mark.low.ln()).sum();
        sum / curve.marks.len() as f64
    };
    curves.sort_by(|a, b| quantity.order(mean_ln(a), mean_ln(b)));
    curves
}

/// Each system once, in plan order.
fn systems<'a>(own: &[&'a Entry<'a>]) -> impl Iterator<Item = Traits<'a>> {
    let names = distinct(own.iter().map(|entry| entry.system.name)).into_iter();
    names.filter_map(|name| own.iter().map(|it| it.system).find(|system| system.name == name))
}

/// Position, title and words of the section for a way of waiting. Sections that leave cores to
/// others come first.
fn wait_style(wait: Wait) -> (u8, &'static str, &'static str) {
    match wait {
        Wait::None => (0, "simulated", "simulated systems"),
        Wait::Block => (0, "sleep until woken", "systems that sleep"),
        Wait::Callback => (1, "call a function", "systems that call a function"),
        Wait::Adaptive => (2, "spin, then sleep", "systems that spin before they sleep"),
        Wait::Predictive => (3, "predict, spin when a message is due", "systems that predict"),
        Wait::Poll => (4, "poll (costs a core)", "systems that poll"),
    }
}

/// Number of points side by side; with more, a curve is drawn.
const PANELS_MAX: usize = 4;
/// Represents 0 on a logarithmic axis.
const LEAST: f64 = 1.0;
/// Labels of an axis.
const LABELS_MAX: usize = 8;
