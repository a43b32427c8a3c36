//! The best configuration for each payload and rate: of all, and of each middleware.

use super::super::document::{Part, Row, Table, TableCell, Tone};
use super::super::format;
use super::super::table::absent;
use super::super::view::{Entry, View, distinct};
use super::{Place, plain_columns};
use crate::advise::choice::{Choice, NoChoice, Told};
use crate::stats::RUNS_MIN;

pub(super) fn best(view: &View, places: &[Place]) -> Vec<Part> {
    let budget = &view.options.budget;
    let heads = ["best", "p50, µs", "p99, µs", "CPU", "memory", "cannot be told from"];
    let row = |place: &Place| {
        let cells = match place.choose(budget, |_| true) {
            Ok((entry, choice, ties)) => chosen(entry, &choice, &ties),
            Err(why) => vec![none(why)],
        };
        let blank = std::iter::repeat_with(TableCell::default);
        Row {
            label: place.name(),
            cells: cells.into_iter().chain(blank).take(heads.len()).collect(),
        }
    };
    parts(places, |scenario, topology, places| Part {
        title: format!("Best configuration: {scenario}, {topology}"),
        lines: few_runs(places).into_iter().collect(),
        tables: vec![Table {
            caption: "the best within the budget, for each payload and rate".to_owned(),
            columns: plain_columns(&heads),
            rows: places.iter().map(|place| row(place)).collect(),
            notes: vec![],
        }],
        ..Part::default()
    })
}

fn chosen(entry: &Entry, choice: &Choice, ties: &[&Entry]) -> Vec<TableCell> {
    let text = |main: String| TableCell { main, ..TableCell::default() };
    let told = match choice.by {
        Told::Alone => "the only one",
        Told::P99 => "by p99",
        Told::P50 => "by p50",
        Told::Nothing => "lowest p50, not told",
    };
    let qos = format::qos(&entry.cell.params);
    let small = [told.to_owned(), qos].into_iter().filter(|part| !part.is_empty());
    let names: Vec<String> = ties.iter().map(|tie| tie.configuration()).collect();
    let cost = |entry: &Entry| entry.cell.cpu_percent;
    let cheapest = ties.iter().min_by(|a, b| cost(a).total_cmp(&cost(b)));
    let cheaper = cheapest.filter(|tie| cost(tie) < cost(entry));
    let cheaper = cheaper.map(|tie| format!("least CPU: {}", tie.configuration()));
    vec![
        TableCell {
            main: entry.configuration(),
            small: small.collect::<Vec<_>>().join("; "),
            ..TableCell::default()
        },
        TableCell {
            main: format::us_or_dash(entry.typical_p50()),
            small: entry.p50_interval().map(format::interval_us).unwrap_or_default(),
            ..TableCell::default()
        },
        TableCell {
            main: format::us_or_dash(entry.typical_p99()),
            small: entry.p99_interval().map(format::interval_us).unwrap_or_default(),
            ..TableCell::default()
        },
        text(format!("{} %", format::cpu_percent(entry.cell.cpu_percent))),
        text(format!("{} MB", format::megabytes(entry.cell.pss_bytes))),
        TableCell {
            main: match names.len() {
                0 => String::new(),
                1 => names[0].clone(),
                number => format!("{} and {} more", names[0], number - 1),
            },
            small: cheaper.unwrap_or_default(),
            title: names.join(", "),
            ..TableCell::default()
        },
    ]
}

/// Whoever is bound to a middleware chooses among its configurations alone.
pub(super) fn families(view: &View, places: &[Place]) -> Vec<Part> {
    let budget = &view.options.budget;
    parts(places, |scenario, topology, places| {
        let entries = || places.iter().flat_map(|place| &place.entries);
        let families = distinct(entries().map(|entry| entry.system.family()));
        let cell = |place: &Place, family: &str| match place
            .choose(budget, |entry| entry.system.family() == family)
        {
            Ok((entry, _, ties)) => TableCell {
                main: short(entry),
                side: format::us_or_dash(entry.typical_p99().or(entry.typical_p50())),
                small: match ties.len() {
                    0 => String::new(),
                    1 => format!("not told from {}", short(ties[0])),
                    number => format!("not told from {number} others"),
                },
                title: ties.iter().map(|tie| tie.configuration()).collect::<Vec<_>>().join(", "),
                ..TableCell::default()
            },
            Err(NoChoice::NothingValid) => absent(),
            Err(why) => none(why),
        };
        let row = |place: &&Place| Row {
            label: place.name(),
            cells: families.iter().map(|family| cell(place, family)).collect(),
        };
        Part {
            title: format!("Best of each middleware: {scenario}, {topology}"),
            tables: vec![Table {
                caption: "configuration and its p99 in µs (p50 where that is withheld)".to_owned(),
                columns: plain_columns(&families),
                rows: places.iter().map(row).collect(),
                notes: vec![],
            }],
            is_detail: true,
            ..Part::default()
        }
    })
}

/// One part for each scenario and topology.
fn parts<'v, 'a>(
    places: &[Place<'v, 'a>],
    make: impl Fn(&str, &str, &[&Place<'v, 'a>]) -> Part,
) -> Vec<Part> {
    let keys = distinct(places.iter().map(|place| (place.group.scenario, place.topology)));
    let part = |(scenario, topology): (&str, &str)| {
        let ours = |place: &&Place| (place.group.scenario, place.topology) == (scenario, topology);
        let ours: Vec<_> = places.iter().filter(ours).collect();
        make(scenario, &topology.replace('-', " "), &ours)
    };
    keys.into_iter().map(part).collect()
}

/// What is to be said of cells with fewer runs than an interval takes.
fn few_runs(places: &[&Place]) -> Option<String> {
    let runs = places.iter().flat_map(|place| &place.entries).map(|entry| entry.cell.runs);
    let fewest = runs.min().filter(|fewest| (*fewest as usize) < RUNS_MIN)?;
    Some(format!(
        "Some cells have {}: below {RUNS_MIN} there is no interval, so they cannot be told from \
         others, and the lowest median is named without any certainty.",
        format::plural(fewest as usize, "run")
    ))
}

/// Stands where there is no configuration to choose.
fn none(why: NoChoice) -> TableCell {
    let main = match why {
        NoChoice::NothingValid => "none kept its rate validly",
        NoChoice::AllLost => "all lost messages",
        NoChoice::OverBudget => "none within the budget",
    };
    TableCell { main: main.to_owned(), tone: Tone::Faint, ..TableCell::default() }
}

/// Without the middleware's name.
fn short(entry: &Entry) -> String {
    let name = entry.system.name.split_once('.').map_or(entry.system.name, |(_, rest)| rest);
    format!("{name} {}", entry.cell.tuning)
}
