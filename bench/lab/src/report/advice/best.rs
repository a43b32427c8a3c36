//! The best configuration for each payload and rate: of all, and of each middleware.

use super::super::document::{Column, Part, Table, TableCell, Tone};
use super::super::format;
use super::super::table::not_told_from;
use super::super::view::{Entry, View, distinct};
use super::Place;
use crate::advise::choice::{Choice, NoChoice, Told};
use crate::stats::RUNS_MIN;

pub(super) fn best(view: &View, places: &[Place]) -> Vec<Part> {
    let heads = ["best", "p50, µs", "p99, µs", "CPU", "memory", "cannot be told from"];
    let cells = |place: &Place| match place.choose(&view.options.budget, |_| true) {
        Ok((entry, choice, ties)) => chosen(entry, &choice, &ties),
        Err(why) => vec![none(why)],
    };
    parts(places, |scenario, topology, places| {
        let columns = heads.iter().enumerate().map(|(at, head)| (Column::new(*head, ""), at));
        let rows = places.iter().map(|place| (place.name(), cells(place)));
        let caption = "the best within the budget, for each payload and rate";
        Part {
            title: format!("Best configuration: {scenario}, {topology}"),
            lines: few_runs(places).into_iter().collect(),
            tables: vec![Table::new(caption, columns.collect(), rows, |cells, at| {
                cells.get(*at).cloned().unwrap_or_default()
            })],
            ..Part::default()
        }
    })
}

fn chosen(entry: &Entry, choice: &Choice, ties: &[&Entry]) -> Vec<TableCell> {
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
    let figure = |us: Option<f64>, interval: Option<[f64; 2]>| {
        let interval = interval.map(format::interval_us).unwrap_or_default();
        TableCell::plain(format::us_or_dash(us)).small(interval)
    };
    let others = match names.len() {
        0 => String::new(),
        1 => names[0].clone(),
        number => format!("{} and {} more", names[0], number - 1),
    };
    vec![
        TableCell::plain(entry.configuration()).small(small.collect::<Vec<_>>().join("; ")),
        figure(entry.typical_p50(), entry.p50_interval()),
        figure(entry.typical_p99(), entry.p99_interval()),
        TableCell::plain(format!("{} %", format::cpu_percent(entry.cell.cpu_percent))),
        TableCell::plain(format!("{} MB", format::megabytes(entry.cell.pss_bytes))),
        TableCell::plain(others).small(cheaper.unwrap_or_default()).title(names.join(", ")),
    ]
}

/// Whoever is bound to a middleware chooses among its configurations alone.
pub(super) fn families(view: &View, places: &[Place]) -> Vec<Part> {
    let budget = &view.options.budget;
    parts(places, |scenario, topology, places| {
        let entries = || places.iter().flat_map(|place| &place.entries);
        let families = distinct(entries().map(|entry| entry.system.family()));
        let columns = families.into_iter().map(|family| (Column::new(family, ""), family));
        let rows = places.iter().map(|place| (place.name(), place));
        let caption = "configuration and its p99 in µs (p50 where that is withheld)";
        let cell = |place: &&&Place, family: &&str| match place
            .choose(budget, |entry| entry.system.family() == *family)
        {
            Ok((entry, _, ties)) => best_of_family(entry, &ties),
            Err(NoChoice::NothingValid) => TableCell::absent(),
            Err(why) => none(why),
        };
        Part {
            title: format!("Best of each middleware: {scenario}, {topology}"),
            tables: vec![Table::new(caption, columns.collect(), rows, cell)],
            is_detail: true,
            ..Part::default()
        }
    })
}

fn best_of_family(entry: &Entry, ties: &[&Entry]) -> TableCell {
    let short = |entry: &Entry| format!("{} {}", entry.system.variant(), entry.cell.tuning);
    let names = ties.iter().map(|tie| tie.configuration()).collect::<Vec<_>>().join(", ");
    TableCell::plain(short(entry))
        .side(format::us_or_dash(entry.typical_p99().or(entry.typical_p50())))
        .small(not_told_from(ties, short))
        .title(names)
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
    TableCell::plain(main).tone(Tone::Faint)
}
