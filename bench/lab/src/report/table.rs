//! The tables of sizes, free of any format: terminal, Markdown and page print the same ones.
//!
//! Rows are payloads, columns are systems × tunings: the layout in which users of RoundtripPing
//! write down their results.

use myelin_bench_kit::protocol::{Wait, Workload};

use super::document::{Column, Part, Row, Table, TableCell, Tone};
use super::view::{Entry, Group, Kin, Manner, Traits, View, distinct};
use super::{comparisons, fan, flow, format, repeats, validity};
use crate::stats::verdict::{Kind, Verdict};

/// The tables of every group, of scenarios with several of them, and of publish runs.
pub(super) fn figures(view: &View) -> Vec<Part> {
    let part = |title, tables, entries: &[Entry]| Part {
        title,
        tables,
        cautions: repeats::wide(entries),
        ..Part::default()
    };
    let groups = view.groups.iter().map(|it| part(it.title(), tables(it), &it.entries));
    let overviews = part(String::new(), flow::overviews(view), &[]);
    let fans = view.fans.iter().map(|it| part(it.title(), fan::tables(it), &it.entries));
    groups.chain([overviews]).chain(fans).collect()
}

/// Every table of a group that has something to show.
pub(super) fn tables(group: &Group) -> Vec<Table> {
    if !matches!(group.workload, Workload::Roundtrip | Workload::Publish) {
        return flow::tables(group);
    }
    let tables = [latencies(group), changes(group), best(group)];
    tables.into_iter().filter(|table| !table.columns.is_empty()).collect()
}

/// Medians and 99th percentiles of every configuration, the floor last.
fn latencies(group: &Group) -> Table {
    let peers: Vec<_> = group.peers().collect();
    let shown = if peers.is_empty() { &group.systems } else { &peers };
    let columns: Vec<_> = pairs(shown, &group.tunings)
        .filter(|(system, tuning)| is_used(group, *system, tuning))
        .collect();
    let floors: Vec<_> = group
        .waits()
        .into_iter()
        .flat_map(|wait| group.tunings.iter().map(move |&tuning| (wait, tuning)))
        .filter(|(wait, tuning)| {
            group.payloads.iter().any(|&payload| group.floor(tuning, payload, *wait).is_some())
        })
        .collect();
    let mut notes = Notes::default();
    let mut rows: Vec<_> = group
        .payloads
        .iter()
        .map(|&payload| {
            let measured = columns.iter().map(|(system, tuning)| {
                let entry = group.entry(system.name, tuning, payload);
                entry.map_or_else(absent, |entry| latency(group, entry, &mut notes))
            });
            let measured: Vec<_> = measured.collect();
            let floor = floors.iter().map(|(wait, tuning)| {
                group.floor(tuning, payload, *wait).map_or_else(absent, floor_cell)
            });
            let cells = measured.into_iter().chain(floor).collect();
            Row { label: group.size(payload), cells }
        })
        .collect();
    rows.extend(growth(group, &columns, floors.len()));
    let heads = columns.iter().map(|(system, tuning)| column(&system.label(), tuning));
    let floor_heads = floors
        .iter()
        .map(|(wait, tuning)| column(&format!("floor that {}", format::wait(*wait)), tuning));
    Table {
        caption: caption(group),
        columns: heads.chain(floor_heads).collect(),
        rows,
        notes: notes.0,
    }
}

fn caption(group: &Group) -> String {
    let growth = match group.ends()[..] {
        [small, large] => {
            format!("; growth: p50 of {} over that of {}", group.size(large), group.size(small))
        }
        _ => String::new(),
    };
    format!(
        "{}, µs: p50, p99 and [interval of p50, of at least 93.75 %]{growth}",
        group.metric.words()
    )
}

/// Largest payload over smallest, by configuration.
fn growth(group: &Group, columns: &[(Traits, &str)], floors: usize) -> Option<Row> {
    let [small, large] = group.ends()[..] else { return None };
    let ratio = |(system, tuning): &(Traits, &str)| {
        let entry = |payload| group.entry(system.name, tuning, payload);
        let p50 = |payload| entry(payload).filter(|it| it.fault().is_none())?.typical_p50();
        Some(p50(large)? / p50(small)?)
    };
    let cell = |column| {
        TableCell::plain(ratio(column).map_or_else(|| format::WITHHELD.to_owned(), format::factor))
    };
    let blank = std::iter::repeat_with(TableCell::default).take(floors);
    Some(Row { label: "growth".to_owned(), cells: columns.iter().map(cell).chain(blank).collect() })
}

/// The gain of one system over another at the same tuning, and of tunings over the default.
fn changes(group: &Group) -> Table {
    let peers: Vec<_> = group.peers().collect();
    let mut columns: Vec<(String, String, Pair)> = Vec::new();
    for system in &peers {
        let Some(reference) = group.reference(*system) else { continue };
        for &tuning in &group.tunings {
            let pair = [(system.name, tuning), (reference.name, tuning)];
            let heading = format!("over {}", reference.name);
            columns.push((heading, format!("{} {tuning}", system.short(&peers)), pair));
        }
    }
    for &tuning in group.tunings.iter().filter(|tuning| **tuning != "default") {
        for system in &peers {
            let pair = [(system.name, tuning), (system.name, "default")];
            let heading = format!("{tuning} over default");
            columns.push((heading, system.short(&peers).to_owned(), pair));
        }
    }
    let verdict = |[subject, reference]: Pair, payload| {
        let subject = group.entry(subject.0, subject.1, payload)?;
        group.verdict(subject, group.entry(reference.0, reference.1, payload)?)
    };
    columns
        .retain(|(_, _, pair)| group.payloads.iter().any(|&size| verdict(*pair, size).is_some()));
    let why_not = |pair: Pair, payload| {
        pair.iter().find_map(|(system, tuning)| group.entry(system, tuning, payload)?.fault())
    };
    let row = |&payload: &u64| Row {
        label: group.size(payload),
        cells: columns
            .iter()
            .map(|(_, _, pair)| match verdict(*pair, payload) {
                Some(verdict) => change(verdict),
                None => why_not(*pair, payload).map_or_else(absent, void),
            })
            .collect(),
    };
    Table {
        caption:
            "change of p50: below zero is faster; ≈ no difference, ? too noisy or too few runs \
                  to tell"
                .to_owned(),
        rows: group.payloads.iter().map(row).collect(),
        columns: columns.into_iter().map(|(group, head, _)| Column { group, head }).collect(),
        notes: vec![],
    }
}

/// The configuration with the lowest median for each payload, among those that wait alike.
fn best(group: &Group) -> Table {
    let contenders = |kin: &Kin| {
        let ours = |entry: &&Entry| !entry.system.floor && entry.system.kin() == *kin;
        group.entries.iter().filter(ours).count()
    };
    let mut kins: Vec<Kin> = distinct(group.peers().map(Traits::kin));
    kins.retain(|kin| contenders(kin) > group.payloads.len());
    kins.sort_by_key(|kin| kin.manner == Manner::Polls);
    let row = |&payload: &u64| Row {
        label: group.size(payload),
        cells: kins.iter().map(|&kin| best_cell(group, &group.best(payload, kin))).collect(),
    };
    let head = |kin: &Kin| {
        let mut same = group.peers().filter(|peer| peer.kin() == *kin);
        let manner = match kin.manner {
            Manner::Polls => "among systems that poll",
            Manner::Sleeps if same.any(|peer| peer.wait == Wait::Adaptive) => {
                "among systems that sleep, some after spinning"
            }
            Manner::Sleeps => "among systems that sleep",
            Manner::IsCalled => "among systems that are called",
        };
        column("lowest p50", manner)
    };
    Table {
        caption: "best configuration by payload, among systems that wait alike; below it: times the floor".to_owned(),
        columns: kins.iter().map(head).collect(),
        rows: group.payloads.iter().map(row).collect(),
        notes: vec![],
    }
}

fn best_cell(group: &Group, best: &[&Entry]) -> TableCell {
    let Some((first, tied)) = best.split_first() else { return absent() };
    let over_floor = group.over_floor(first).map(|over| over.short());
    let names = tied.iter().map(|entry| entry.configuration()).collect::<Vec<_>>().join(", ");
    let ties = match tied.len() {
        0 => String::new(),
        1 => format!("not told from {names}"),
        number => format!("not told from {number} others"),
    };
    TableCell {
        main: first.configuration(),
        side: format::us_or_dash(first.typical_p50()),
        small: [over_floor.unwrap_or_default(), ties]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join("; "),
        title: if names.is_empty() { names } else { format!("not told from {names}") },
        ..TableCell::default()
    }
}

pub(super) fn latency(group: &Group, entry: &Entry, notes: &mut Notes) -> TableCell {
    let latency = entry.latency();
    let name = entry.name();
    let mark = if !entry.cell.valid {
        Some(notes.add(format!("invalid: {name}: {}", validity::reasons(entry))))
    } else if let Some((reached, asked)) = entry.short_of_rate() {
        Some(notes.add(format!("{name}: {}", format::reached(reached, asked))))
    } else if entry.is_bimodal() {
        Some(notes.add(format!("bimodal: {name}: {}", format::placements(entry.cell))))
    } else {
        None
    };
    let reference = group.reference(entry.system);
    let reference = reference.and_then(|system| {
        group.entry(system.name, &entry.cell.tuning, entry.cell.params.payload_bytes)
    });
    let verdict = reference.and_then(|reference| group.verdict(entry, reference));
    let sentence = verdict.zip(reference).map(|(verdict, reference)| {
        format!(": {} {}", comparisons::outcome(verdict), reference.system.name)
    });
    TableCell {
        main: format::us_or_dash(entry.p50()),
        side: format::us_or_dash(latency.and_then(|latency| latency.p99)),
        small: entry.spread(),
        tone: match entry.cell.valid {
            true => verdict.map(|verdict| verdict.kind).into(),
            false => Tone::Invalid,
        },
        mark,
        title: format!("{name}{}", sentence.unwrap_or_default()),
    }
}

fn floor_cell(entry: &Entry) -> TableCell {
    TableCell {
        main: format::us_or_dash(entry.typical_p50()),
        side: format::us_or_dash(entry.typical_p99()),
        small: entry.floor_name(),
        tone: Tone::Faint,
        title: entry.name(),
        ..TableCell::default()
    }
}

pub(super) fn change(verdict: Verdict) -> TableCell {
    let change = format::change_percent(verdict.ratio.value - 1.0);
    let main = match verdict.kind {
        Kind::Better | Kind::Worse => change,
        Kind::NoDifference => format!("≈ {change}"),
        Kind::TooNoisy => format!("? {change}"),
    };
    let tone = Some(verdict.kind).into();
    TableCell { tone, title: verdict.words().to_owned(), ..TableCell::plain(main) }
}

/// Stands where a comparison would, and says why there is none.
fn void(why: &str) -> TableCell {
    let title = format!("not compared: {why}");
    TableCell { tone: Tone::Faint, title, ..TableCell::plain(why) }
}

/// Stands where nothing was measured.
pub(super) fn absent() -> TableCell {
    TableCell { title: "not measured".to_owned(), ..TableCell::default() }
}

fn column(group: &str, head: &str) -> Column {
    Column { group: group.to_owned(), head: head.to_owned() }
}

fn pairs<'a, 't>(
    systems: &'t [Traits<'a>],
    tunings: &'t [&'a str],
) -> impl Iterator<Item = (Traits<'a>, &'a str)> + 't {
    systems.iter().flat_map(move |&system| tunings.iter().map(move |&tuning| (system, tuning)))
}

fn is_used(group: &Group, system: Traits, tuning: &str) -> bool {
    group.entries.iter().any(|e| e.system.name == system.name && e.cell.tuning == tuning)
}

/// Footnotes in the order of their marks.
#[derive(Default)]
pub(super) struct Notes(pub Vec<String>);

impl Notes {
    pub(super) fn add(&mut self, note: String) -> usize {
        self.0.push(note);
        self.0.len()
    }
}

/// Subject and reference, each a system and a tuning.
type Pair<'a> = [(&'a str, &'a str); 2];
