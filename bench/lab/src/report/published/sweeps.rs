//! CyberRT's sweeps against size and against rate. It published the sweeps as pictures; the modules
//! that lie on them are known as figures, and stand above ours.

use myelin_bench_kit::protocol::Topology;

use super::super::table::{Column, Row, Table, TableCell, Tone, absent};
use super::super::view::{Entry, Traits, View, distinct};
use super::super::words;
use super::modules::{CyberRt, Module, plain};
use super::{Beside, Comparison, struck};

/// CPU, memory, latency and loss of all systems that were measured along each of the sweeps.
pub(super) fn add(beside: &mut Beside, view: &View, published: &CyberRt) {
    for (scenario, along) in [("sizes-100hz", "size"), ("rates-1mb", "rate")] {
        match Sweep::of(view, scenario) {
            Some(sweep) => {
                let tables = METRICS.map(|metric| sweep.table(metric, published));
                beside.tables.push(Comparison {
                    caption: format!("CPU, memory, latency, loss against {along} ({scenario})"),
                    remark: REMARK,
                    tables: tables.into(),
                    ..Comparison::default()
                });
            }
            None => {
                let what = format!("CPU, memory, latency and loss against {along}");
                beside.not_measured(&what, scenario);
            }
        }
    }
}

/// The cells of a scenario, on one host and across two, at its first tuning.
struct Sweep<'v, 'a> {
    entries: Vec<&'v Entry<'a>>,
    /// The floor last.
    systems: Vec<Traits<'a>>,
    /// Payload and rate, ascending.
    points: Vec<(u64, f64)>,
}

/// One table.
#[derive(Clone, Copy)]
struct Metric {
    caption: &'static str,
    theirs: fn(&Module) -> String,
    /// The figure, and one beside it.
    ours: fn(&Entry) -> Option<(String, String)>,
}

impl<'v, 'a> Sweep<'v, 'a> {
    fn of(view: &'v View<'a>, scenario: &str) -> Option<Self> {
        // As it is run on one host, and across two.
        let is_named = |name: &str| name.strip_suffix(ACROSS).unwrap_or(name) == scenario;
        let is_it = |group: &&super::Group| is_named(group.scenario) && group.is_flow();
        let groups = || view.groups.iter().filter(is_it);
        let tuning = *groups().next()?.tunings.first()?;
        let entries = groups().flat_map(|group| &group.entries);
        let entries: Vec<&Entry> = entries.filter(|entry| entry.cell.tuning == tuning).collect();
        let mut systems = distinct(groups().flat_map(|group| group.systems.iter().copied()));
        systems.sort_by_key(|system| system.floor);
        let mut points = distinct(entries.iter().filter_map(|entry| point(entry)));
        points.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        Some(Self { entries, systems, points })
    }

    fn table(&self, metric: Metric, published: &CyberRt) -> Table {
        let theirs = [
            ("CyberRT 10.0 across processes, published", &published.across_processes_platform1),
            ("CyberRT 10.0 across hosts, published", &published.across_hosts_platform1),
        ];
        let theirs = theirs.into_iter().map(|(label, modules)| {
            let cell = |&(payload, rate): &(u64, f64)| {
                let is_here =
                    |it: &&Module| it.payload_bytes() == Some(payload) && it.rate_hz == rate;
                modules.rows.iter().find(is_here).map_or_else(unpublished, |module| TableCell {
                    main: (metric.theirs)(module),
                    tone: Tone::Minor,
                    title: module.module.clone(),
                    ..TableCell::default()
                })
            };
            Row { label: label.to_owned(), cells: self.points.iter().map(cell).collect() }
        });
        let ours = self.systems.iter().map(|system| {
            let cell = |&at: &(u64, f64)| {
                let is_it = |it: &&&Entry| it.system == *system && point(it) == Some(at);
                self.entries.iter().find(is_it).map_or_else(absent, |it| measured(metric, it))
            };
            let place = if system.topology == Topology::TwoHosts { ", across hosts" } else { "" };
            let label = format!("{}{place}", system.label());
            Row { label, cells: self.points.iter().map(cell).collect() }
        });
        let column = |&(payload, rate): &(u64, f64)| Column {
            group: words::bytes(payload),
            head: words::rate(Some(rate)),
        };
        Table {
            caption: metric.caption.to_owned(),
            columns: self.points.iter().map(column).collect(),
            rows: theirs.chain(ours).collect(),
            notes: vec![],
        }
    }
}

fn point(entry: &Entry) -> Option<(u64, f64)> {
    Some((entry.cell.params.payload_bytes, entry.cell.params.rate_hz?))
}

fn measured(metric: Metric, entry: &Entry) -> TableCell {
    let Some((main, side)) = (metric.ours)(entry) else { return absent() };
    TableCell {
        main: struck(Some(entry), main),
        side,
        tone: match () {
            () if !entry.cell.valid => Tone::Invalid,
            () if entry.system.floor => Tone::Faint,
            () => Tone::Plain,
        },
        title: entry.name(),
        ..TableCell::default()
    }
}

fn unpublished() -> TableCell {
    TableCell { title: "not published as a figure".to_owned(), ..TableCell::default() }
}

const METRICS: [Metric; 4] = [
    Metric {
        caption: "latency one way, µs: mean, and of ours p50",
        theirs: |module| plain(module.latency_us),
        ours: |entry| Some((words::us(entry.latency()?.mean), words::us_or_dash(entry.p50()))),
    },
    Metric {
        caption: "CPU, % of a core",
        theirs: |module| plain(module.cpu_percent),
        ours: |entry| Some((words::cpu_percent(entry.cell.cpu_percent), String::new())),
    },
    Metric {
        caption: "memory, MB: RSS of all processes together",
        theirs: |module| plain(module.memory_mb),
        ours: |entry| Some((words::megabytes(entry.cell.rss_bytes), String::new())),
    },
    Metric {
        caption: "lost, %",
        theirs: |module| words::percent(module.loss_percent),
        ours: |entry| Some((words::percent(entry.loss_percent()?), String::new())),
    },
];

/// Ends the name of a scenario that is another's, across hosts.
const ACROSS: &str = "-hosts";

const REMARK: &str = "One way, from the time a message was due; each system at the first tuning \
measured, the floor last. An empty place: CyberRT's figure was not published, or ours not measured.";
