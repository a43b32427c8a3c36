//! Advice: the best configuration within the budget for each payload, rate and topology, the size
//! from which shared memory pays, the gains of tuning, and the files to use it. `advise` makes the
//! choice; this module turns cells into its candidates and its answers into tables.

use std::path::Path;

use myelin_bench_kit::protocol::Transport;

use super::document::{Column, Part, Section, Table, TableCell, Tone};
use super::table::{not_told_from, told};
use super::view::{Entry, Group, Traits, View};
use super::{format, written};
use crate::advise::files::{Advised, File, MARK, files};
use crate::advise::{Budget, Candidate, Choice, DecidedBy, NoChoice, choose};
use crate::lists::{distinct, grouped};
use crate::scenario::Tuning;
use crate::stats::verdict::{Kind, Verdict};
use crate::summary::Percentile;

/// The section about all cells with a steady latency.
pub(super) fn section(view: &View) -> Section {
    let mut parts = Vec::new();
    let places = places(view);
    parts.extend(best(view, &places));
    parts.extend(families(view, &places));
    parts.extend(crossovers(view));
    parts.extend(gains(view));
    if !parts.is_empty() {
        parts.push(file_list(view, &places));
    }
    Section { id: "advice", title: "Advice", remark: remark(&view.options.budget), parts }
}

/// A payload at a rate, in one topology of one scenario.
struct Place<'v, 'a> {
    group: &'v Group<'a>,
    topology: &'a str,
    payload: u64,
    /// Systems under test, at every tuning.
    entries: Vec<&'v Entry<'a>>,
}

impl<'v, 'a> Place<'v, 'a> {
    /// `64 KiB, 100 Hz`, and the values that set it apart from other places.
    fn name(&self) -> String {
        let size = self.group.size(self.payload);
        match self.group.point.is_empty() {
            true => format!("{size}, {}", format::rate(self.group.params().rate_hz)),
            false => format!("{size}, {}", self.group.point),
        }
    }

    /// The best of the entries that `accepts` admits, and those that cannot be distinguished from
    /// it.
    fn choose(
        &self,
        budget: &Budget,
        accepts: impl Fn(&Entry) -> bool,
    ) -> Result<(&'v Entry<'a>, Choice, Vec<&'v Entry<'a>>), NoChoice> {
        let usable = self.entries.iter().copied().filter(|entry| accepts(entry));
        let (entries, candidates): (Vec<_>, Vec<_>) =
            usable.filter_map(|entry| Some((entry, candidate(entry)?))).unzip();
        let is_higher = |at, place: usize, than: usize| {
            let verdict = self.group.verdicts.of(entries[place], entries[than], at);
            verdict.is_some_and(|verdict| verdict.kind == Kind::Worse)
        };
        let choice = choose(&candidates, budget, is_higher)?;
        let ties = choice.ties.iter().map(|place| entries[*place]).collect();
        Ok((entries[choice.best], choice, ties))
    }
}

fn places<'v, 'a>(view: &'v View<'a>) -> Vec<Place<'v, 'a>> {
    let mut places = Vec::new();
    for group in view.groups.iter().filter(|group| group.is_chosen_from()) {
        let peers = || group.entries.iter().filter(|entry| !entry.system.floor);
        for topology in distinct(peers().map(|entry| entry.cell.topology.name())) {
            for &payload in &group.payloads {
                let ours = |entry: &&Entry| {
                    entry.cell.topology.name() == topology
                        && entry.cell.params.payload_bytes == payload
                };
                let entries: Vec<_> = peers().filter(ours).collect();
                if !entries.is_empty() {
                    places.push(Place { group, topology, payload, entries });
                }
            }
        }
    }
    places
}

fn remark(budget: &Budget) -> String {
    let cpu = budget.cpu_percent.map(|most| format!("{most} % of a core"));
    let memory = budget.memory_bytes.map(|most| format!("{} of memory", format::bytes(most)));
    let limits: Vec<String> = cpu.into_iter().chain(memory).collect();
    let budget = match limits.is_empty() {
        true => "No budget was given".to_owned(),
        false => format!("Budget: {}, of all processes with their daemons", limits.join(" and ")),
    };
    format!("{budget}. {REMARK}")
}

/// The candidate for an entry; `None` if it is invalid or fell short of its rate.
fn candidate(entry: &Entry) -> Option<Candidate> {
    entry.fault().is_none().then_some(())?;
    Some(Candidate {
        p50: entry.typical_p50()?,
        p99: entry.typical_p99().filter(|_| entry.has_in_each_run(Percentile::P99)),
        cpu_percent: entry.cell.cpu_percent,
        memory_bytes: entry.cell.pss_bytes,
        lost: entry.cell.lost.unwrap_or(0),
    })
}

/// The configurations to write files for: the best of each middleware at each place.
fn advised<'v, 'a>(view: &'v View<'a>, places: &[Place<'v, 'a>]) -> Vec<Advised<'v>> {
    let mut advised = Vec::new();
    for place in places {
        for family in distinct(place.entries.iter().map(|entry| entry.system.family())) {
            let best = place.choose(&view.options.budget, |entry| entry.system.family() == family);
            let Ok((entry, ..)) = best else { continue };
            advised.push(Advised {
                system: entry.system.name,
                tuning: entry.cell.tuning,
                transport: entry.system.transport,
                params: &entry.cell.params,
                point: place.name(),
                configuration: &entry.detail.configuration,
                pinned: entry.detail.pinned,
            });
        }
    }
    advised
}

fn file_list(view: &View, places: &[Place]) -> Part {
    let files = files(&advised(view, places), &view.analysis.summary.host);
    let line = |file: &File| format!("advice/{}: {}. {}", file.name, file.about, file.usage);
    Part {
        title: "Files for these configurations".to_owned(),
        lines: files.iter().map(line).collect(),
        ..Part::default()
    }
}

/// Writes the files; removes files of earlier reports that this report does not write.
pub(super) fn write(view: &View, directory: &Path) -> anyhow::Result<()> {
    let files = files(&advised(view, &places(view)), &view.analysis.summary.host);
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_ours = std::fs::read_to_string(&path).is_ok_and(|text| text.contains(MARK));
        if is_ours && files.iter().all(|file| entry.file_name() != *file.name) {
            written(&path, std::fs::remove_file(&path))?;
        }
    }
    if files.is_empty() {
        return Ok(());
    }
    written(directory, std::fs::create_dir_all(directory))?;
    for file in &files {
        super::write(&directory.join(&file.name), file.text.as_bytes())?;
    }
    Ok(())
}

/// The best configuration of all middleware for each payload and rate.
fn best(view: &View, places: &[Place]) -> Vec<Part> {
    let heads = ["best", "p50, µs", "p99, µs", "CPU", "memory", "no significant difference to"];
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
            tables: vec![Table::new(caption, columns.collect(), rows, |cells, at| {
                cells.get(*at).cloned().unwrap_or_default()
            })],
            ..Part::default()
        }
    })
}

fn chosen(entry: &Entry, choice: &Choice, ties: &[&Entry]) -> Vec<TableCell> {
    let told = match choice.by {
        DecidedBy::Alone => "the only one",
        DecidedBy::P99 => "by p99",
        DecidedBy::P50 => "by p50",
        DecidedBy::Nothing => "lowest p50, tied",
    };
    let qos = format::qos(&entry.cell.params);
    let small = [told.to_owned(), qos].into_iter().filter(|part| !part.is_empty());
    let names: Vec<String> = ties.iter().map(|tie| tie.configuration()).collect();
    let cost = |entry: &Entry| entry.cell.cpu_percent.unwrap_or(f64::INFINITY);
    let cheapest = ties.iter().min_by(|a, b| cost(a).total_cmp(&cost(b)));
    let cheaper = cheapest.filter(|tie| cost(tie) < cost(entry));
    let cheaper = cheaper.map(|tie| format!("least CPU: {}", tie.configuration()));
    let others = match names.len() {
        0 => String::new(),
        1 => names[0].clone(),
        number => format!("{} and {} more", names[0], number - 1),
    };
    vec![
        TableCell::plain(entry.configuration()).small(small.collect::<Vec<_>>().join("; ")),
        TableCell::us(entry.typical_p50(), entry.p50_interval()),
        TableCell::us(entry.typical_p99(), entry.p99_interval()),
        TableCell::plain(format::or_dash(entry.cell.cpu_percent, format::cpu_percent) + " %"),
        TableCell::plain(format::or_dash(entry.cell.pss_bytes, format::megabytes) + " MB"),
        TableCell::plain(others).small(cheaper.unwrap_or_default()).title(names.join(", ")),
    ]
}

/// The best configuration of each middleware, for users who cannot change theirs.
fn families(view: &View, places: &[Place]) -> Vec<Part> {
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
    let places = places.iter().map(|place| ((place.group.scenario, place.topology), place));
    let part = |((scenario, topology), places): ((&str, &str), Vec<_>)| {
        make(scenario, &topology.replace('-', " "), &places)
    };
    grouped(places).into_iter().map(part).collect()
}

/// Cell of a table where no configuration can be chosen.
fn none(why: NoChoice) -> TableCell {
    let main = match why {
        NoChoice::NothingValid => "no valid one kept its rate",
        NoChoice::AllLost => "all lost messages",
        NoChoice::OverBudget => "none within the budget",
    };
    TableCell::plain(main).tone(Tone::Faint)
}

/// The size from which shared memory pays against the network stack of the same middleware: the
/// smallest measured size from which on its median is lower at every size, beyond noise.
fn crossovers(view: &View) -> Vec<Part> {
    let part = |group: &Group| {
        let row = |(shared, network): (Traits, Traits)| {
            let told = |tuning: &Tuning| told_by_size(group, [shared.name, network.name], *tuning);
            let told: Vec<_> = group.tunings.iter().map(told).collect();
            let is_told = told.iter().any(|sizes| sizes.len() > 1);
            is_told.then(|| (label((shared, network)), told))
        };
        let rows: Vec<_> = pairs(group).into_iter().filter_map(row).collect();
        let columns = group.tunings.iter().enumerate();
        let columns =
            columns.map(|(place, tuning)| (Column::new(tuning.name(), ""), place)).collect();
        let caption = "the smallest measured payload from which p50 is significantly lower; below \
                       it: the largest payload at which p50 is significantly higher";
        (!rows.is_empty()).then(|| Part {
            title: format!("Where shared memory begins to pay: {}", group.title()),
            tables: vec![Table::new(caption, columns, rows, |told, place| {
                begin(group, &told[*place])
            })],
            ..Part::default()
        })
    };
    view.groups.iter().filter(|group| group.is_steady()).filter_map(part).collect()
}

/// Pairs of a system over shared memory and one of the same middleware over the network stack, with
/// the same topology and wait. The label says where their reliability differs.
fn pairs<'a>(group: &Group<'a>) -> Vec<(Traits<'a>, Traits<'a>)> {
    let over = |transport| group.peers().filter(move |peer| peer.transport == transport);
    let alike = |a: Traits, b: Traits| {
        let way = |system: Traits| {
            (system.comparison_class().topology, system.comparison_class().wait_style)
        };
        a.family() == b.family() && way(a) == way(b)
    };
    let pairs = over(Transport::SharedMemory).flat_map(|shared| {
        let networks = over(Transport::Loopback).filter(move |network| alike(shared, *network));
        networks.map(move |network| (shared, network))
    });
    pairs.collect()
}

fn label((shared, network): (Traits, Traits)) -> String {
    let promise = |system: Traits| match system.reliability {
        Some(reliability) if shared.reliability != network.reliability => {
            format!(" ({})", format::reliability(reliability))
        }
        _ => String::new(),
    };
    let name = |system: Traits| format!("{}{}", system.variant(), promise(system));
    format!("{}: {} over {}", shared.family(), name(shared), name(network))
}

/// The verdicts on the medians of the two, at the sizes at which they can be compared.
fn told_by_size(group: &Group, [shared, network]: [&str; 2], tuning: Tuning) -> Vec<(u64, Kind)> {
    let told = |&payload: &u64| {
        let entry = |system: &str| group.entry(system, tuning, payload);
        Some((payload, group.verdict(entry(shared)?, entry(network)?)?.kind))
    };
    group.payloads.iter().filter_map(told).collect()
}

fn begin(group: &Group, sizes: &[(u64, Kind)]) -> TableCell {
    if sizes.len() < 2 {
        return TableCell::absent();
    }
    let pays = sizes.iter().rev().take_while(|(_, kind)| *kind == Kind::Better).count();
    let (before, paying) = sizes.split_at(sizes.len() - pays);
    let is_worse = |(_, kind): &&(u64, Kind)| *kind == Kind::Worse;
    let last_worse = before.iter().rev().find(is_worse);
    let main = match (paying.first(), before.last()) {
        (Some(_), None) => "at all sizes".to_owned(),
        (Some((payload, _)), _) => format!("from {}", group.size(*payload)),
        (None, Some((_, Kind::Worse))) => "not at the largest".to_owned(),
        (None, _) => "no clear result".to_owned(),
    };
    let small = match last_worse {
        Some((payload, _)) => format!("slower up to {}", group.size(*payload)),
        None if pays > 0 && !before.is_empty() => "below it no clear result".to_owned(),
        None => String::new(),
    };
    TableCell::plain(main).small(small)
}

/// p50 and p99 of each tuning against the earlier ones.
fn gains(view: &View) -> Vec<Part> {
    let groups = view.groups.iter().filter(|group| group.is_steady() && group.tunings.len() > 1);
    let part = |group: &Group| {
        let at = [("p50", Percentile::P50), ("p99", Percentile::P99)];
        let columns = steps(&group.tunings).into_iter().flat_map(|[from, to]| {
            at.map(|(head, at)| (Column::new(format!("{from} → {to}"), head), (from, to, at)))
        });
        let rows = group.peers().flat_map(|system| {
            let label = move |payload| format!("{}, {}", system.name, group.size(payload));
            group.payloads.iter().map(move |&payload| (label(payload), (system.name, payload)))
        });
        let caption = "how many times lower, with the 95 % interval; ≈ no difference, ? too noisy \
                       or too few runs; below 1 it is slower";
        let mut table =
            Table::new(caption, columns.collect(), rows, |(system, payload), (from, to, at)| {
                let entry = |tuning: &Tuning| group.entry(system, *tuning, *payload);
                let verdict = entry(to).zip(entry(from));
                let verdict = verdict.and_then(|(to, from)| group.verdicts.of(to, from, *at));
                verdict.map_or_else(TableCell::absent, gain)
            });
        table.rows.retain(|row| row.cells.iter().any(|cell| !cell.main.is_empty()));
        (!table.rows.is_empty()).then(|| Part {
            title: format!("What tuning gains: {}", group.title()),
            tables: vec![table],
            is_detail: true,
            ..Part::default()
        })
    };
    groups.filter_map(part).collect()
}

/// From each tuning to the later ones: default → tuned, tuned → awake, default → awake.
fn steps(tunings: &[Tuning]) -> Vec<[Tuning; 2]> {
    let to = |(place, to): (usize, &Tuning)| {
        let to = *to;
        tunings[..place].iter().rev().map(move |from| [*from, to])
    };
    tunings.iter().enumerate().flat_map(to).collect()
}

fn gain(verdict: Verdict) -> TableCell {
    let ratio = verdict.ratio.inverse();
    let factor = format::factor(ratio.value);
    let small = ratio.interval.map(format::factor_interval).unwrap_or_default();
    TableCell::plain(told(verdict.kind, factor)).tone(Some(verdict.kind)).small(small)
}

const REMARK: &str = "The advice takes the lowest p99 of the configurations that were valid, kept \
their rate and lost nothing. If others have no significant difference to it, it takes the lowest \
p50 of these. Systems that sleep, poll or call a callback are compared with each other, because \
the CPU figure contains the cost of polling. One process and two processes are not compared. Back \
to back, the CPU is that of an endless loop, so use a CPU budget only with scenarios that have a \
rate. The advice is for this host only. For another budget: myelin bench report DIR --cpu-budget \
PERCENT --memory-budget MIB.";
