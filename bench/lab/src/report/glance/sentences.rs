//! The result of the first picture in at most five sentences.
//!
//! A sentence is left out if it has nothing to say. It states a difference only where the verdict
//! does; otherwise it says that the systems cannot be distinguished.

use myelin_bench_kit::protocol::{Transport, Wait};

use super::SENTENCES_MAX;
use super::axis::Tick;
use super::picture::{Curves, Drawing, Mark, Picture, Ranking, WaitClass};
use crate::lists::distinct;
use crate::report::format;
use crate::report::view::{Entry, View};
use crate::scenario::Tuning;
use crate::stats::verdict::{Kind, Verdict};
use crate::summary::Percentile;

/// The highlighted first words of a sentence, and the rest.
pub(super) type Sentence = (String, String);

pub(super) fn of(view: &View, picture: &Picture) -> Vec<Sentence> {
    let mut sentences = Vec::new();
    match &picture.drawing {
        Drawing::Ranking(ranking) => {
            sentences.extend(first(view, picture, ranking));
            if !picture.quantity.is_rate {
                sentences.extend(shared_memory(view, ranking));
                sentences.extend(tuning(view, ranking));
                sentences.extend(polling(view, picture, ranking));
            }
        }
        Drawing::Curves(panels) => {
            sentences.extend(panels.last().and_then(|panel| along(picture, panel)));
            sentences.extend(panels.last().and_then(growth));
        }
    }
    sentences.truncate(SENTENCES_MAX - 1);
    sentences.extend(beware(view, picture));
    sentences
}

/// The leader of the largest section, or of the first of several, and how far behind the best of
/// each other family is.
fn first(view: &View, picture: &Picture, ranking: &Ranking) -> Option<Sentence> {
    let sections = ranking.sections.iter().rev();
    let section = sections.max_by_key(|section| families(section, 0).len())?;
    let best = families(section, 0);
    let (leader, others) = best.split_first()?;
    let rate = picture.quantity.is_rate;
    let rivals = section.rows.iter().filter_map(|row| row.mark(0));
    let rivals = rivals.filter(|mark| mark.entry.index != leader.entry.index);
    let verdicts = rivals.map(|rival| (rival, beside(view, rival, leader)));
    let is_tied = |verdict: &Option<Verdict>| !verdict.is_some_and(|it| it.kind.is_significant());
    let tied: Vec<_> = verdicts.filter(|(_, verdict)| is_tied(verdict)).collect();
    let names = std::iter::once(leader).chain(tied.iter().map(|(mark, _)| mark));
    let mut named: Vec<String> = names.take(TIED_MAX).map(|mark| mark.name()).collect();
    let more = tied.len() + 1 - named.len();
    named.extend((more > 0).then(|| format!("{more} more")));
    let whom = enumerated(&named);
    let label = &ranking.panels[0];
    let lacks_runs = tied.iter().any(|(_, verdict)| verdict.is_some_and(|it| it.lacks_runs));
    let lead = match (tied.is_empty(), rate) {
        _ if section.rows.len() == 1 && leader.entry.cell.params.imported => format!("{whom}:"),
        _ if section.rows.len() == 1 => format!("Among {}, only {whom} was measured.", section.who),
        (true, false) => format!("{whom} is the fastest of {}.", section.who),
        (true, true) => format!("{whom} has the highest rate of {}.", section.who),
        (false, _) if lacks_runs => {
            format!("{whom} lead the {}; too few runs to rank them.", section.who)
        }
        (false, _) => format!("{whom} lead the {}, with no significant difference.", section.who),
    };
    let floor = section.first_floor().zip(section.floor.as_ref());
    let floor = floor.map(|(floor, name)| {
        format!(", {} the floor ({name})", format::factor(leader.low / floor))
    });
    let behind = match others {
        [] => of_other_kinds(picture, ranking, section, leader),
        others => listed(picture, others, BEHIND_MAX),
    };
    let behind = if behind.is_empty() { behind } else { format!("; {behind}") };
    let unit = if rate { " messages a second" } else { " µs" };
    let rest = format!(
        "{label}: {}{unit}{}{behind}.",
        picture.quantity.exact(leader.low),
        floor.unwrap_or_default(),
    );
    Some((lead, rest))
}

/// The best of the other families that wait in another way, but like the leader leave the cores to
/// others.
fn of_other_kinds(
    picture: &Picture,
    ranking: &Ranking,
    section: &WaitClass,
    leader: &Mark,
) -> String {
    let topology = leader.entry.system.topology;
    let is_other = |it: &&WaitClass| it.wait != section.wait && it.wait != Wait::Poll;
    let kinds = ranking.sections.iter().filter(is_other);
    let mut marks: Vec<_> = kinds.flat_map(|kind| families(kind, 0)).collect();
    marks.retain(|mark| {
        let system = &mark.entry.system;
        system.family() != leader.entry.system.family() && system.topology == topology
    });
    marks.sort_by(|a, b| picture.quantity.order(a.low, b.low));
    let listed = listed(picture, &marks, BEHIND_MAX);
    if listed.is_empty() { listed } else { format!("systems that wait in another way: {listed}") }
}

/// The best of each family in a panel, in the order of the section's rows.
fn families<'a, 's>(section: &'s WaitClass<'a>, panel: usize) -> Vec<&'s Mark<'a>> {
    let mut best: Vec<&Mark> = Vec::new();
    for mark in section.rows.iter().filter_map(|row| row.mark(panel)) {
        if best.iter().all(|known| known.entry.system.family() != mark.entry.system.family()) {
            best.push(mark);
        }
    }
    best
}

fn beside(view: &View, mark: &Mark, other: &Mark) -> Option<Verdict> {
    view.verdicts.of(mark.entry, other.entry, Percentile::P50)
}

/// What families gain by shared memory over their own network stack, at the first and the last
/// point.
fn shared_memory(view: &View, ranking: &Ranking) -> Option<Sentence> {
    let ends = distinct([0, ranking.panels.len() - 1]);
    let mut gains: Vec<String> = Vec::new();
    for section in &ranking.sections {
        let families = distinct(section.rows.iter().map(|row| row.system.family())).into_iter();
        gains.extend(families.filter_map(|family| gain_of_family(view, &ends, section, family)));
    }
    gains.truncate(OTHERS_MAX);
    let labels: Vec<&str> = ends.iter().map(|&at| ranking.panels[at].as_str()).collect();
    let separator = if labels.iter().any(|label| label.contains(',')) { "; " } else { ", " };
    let labels = labels.join(separator);
    let lead = format!("Shared memory instead of the network stack saves ({labels}):");
    (!gains.is_empty()).then(|| (lead, format!("{}.", gains.join("; "))))
}

/// `cyclonedds 5.0 %, 21 %`.
fn gain_of_family(
    view: &View,
    ends: &[usize],
    section: &WaitClass,
    family: &str,
) -> Option<String> {
    let over = |transport: Transport| {
        let mut systems = section.rows.iter().filter(|row| row.system.family() == family);
        systems.find(|row| row.system.transport == transport)
    };
    let (shared, network) = (over(Transport::SharedMemory)?, over(Transport::Loopback)?);
    let gain = |&panel: &usize| {
        let (shared, network) = (shared.mark(panel)?, network.mark(panel)?);
        Some(change(beside(view, shared, network)?))
    };
    let parts: Option<Vec<String>> = ends.iter().map(gain).collect();
    Some(format!("{family} {}", distinct(parts?).join(", ")))
}

/// The tuned cells compared with those at default settings.
fn tuning(view: &View, ranking: &Ranking) -> Option<Sentence> {
    let mut verdicts: Vec<(Verdict, &Mark)> = Vec::new();
    for row in ranking.sections.iter().flat_map(|section| &section.rows) {
        let marks = row.marks.first()?;
        let of = |tuning| marks.iter().find(|mark| mark.tuning == tuning);
        if let (Some(before), Some(after)) = (of(Tuning::Default), of(Tuning::Tuned)) {
            verdicts.extend(beside(view, after, before).map(|verdict| (verdict, after)));
        }
    }
    let total = verdicts.len();
    let of = |kind: Kind| verdicts.iter().filter(move |(verdict, _)| verdict.kind == kind);
    let (better, worse) = (of(Kind::Better).count(), of(Kind::Worse).count());
    let best = of(Kind::Better).min_by(|a, b| a.0.ratio.value.total_cmp(&b.0.ratio.value));
    let label = &ranking.panels[0];
    let rest = match best {
        _ if total == 0 => return None,
        None if worse == 0 => {
            format!("change no median at {label} significantly ({total} compared).")
        }
        best => {
            let most = best.map(|(verdict, mark)| {
                format!(" (at most {}: {})", percent_less(*verdict), mark.entry.system.name)
            });
            let slower = match worse {
                0 => String::new(),
                _ => format!(" and raise that of {worse}"),
            };
            let others =
                if total > better + worse { "; the other changes are not significant" } else { "" };
            format!(
                "lower the median of {better} of {total} systems at {label}{}{slower}{others}.",
                most.unwrap_or_default()
            )
        }
    };
    Some(("Pinning and real-time priority".to_owned(), rest))
}

/// What polling gains over sleeping, and its cost.
fn polling(view: &View, picture: &Picture, ranking: &Ranking) -> Option<Sentence> {
    let of = |wait: Wait| ranking.sections.iter().find(|section| section.wait == wait);
    let (sleeping, polling) = (of(Wait::Block)?, of(Wait::Poll)?);
    let (sleeping, polling) = (families(sleeping, 0), families(polling, 0));
    let verdict = beside(view, polling.first()?, sleeping.first()?)?;
    let listed = listed(picture, &polling, OTHERS_MAX);
    let lead = format!(
        "Polling (costs a core): {} as fast:",
        format::factor(verdict.ratio.inverse().value)
    );
    (verdict.kind == Kind::Better).then(|| (lead, format!("{listed}.")))
}

/// For curves: the leaders at both ends.
fn along(picture: &Picture, panel: &Curves) -> Option<Sentence> {
    let at = |value: f64| {
        let here = panel.curves.iter().filter(|curve| !curve.is_floor).filter_map(move |curve| {
            curve
                .marks
                .iter()
                .find(|(x, mark)| x.value == value && mark.entry.short_of_rate().is_none())
        });
        let mut marks: Vec<&Mark> = here.map(|(_, mark)| mark).collect();
        marks.sort_by(|a, b| a.low.total_cmp(&b.low));
        if picture.quantity.is_rate {
            marks.reverse();
        }
        marks
    };
    let unit = if picture.quantity.is_rate { "messages a second" } else { "µs" };
    let side = |Tick { value, label, .. }: &Tick| {
        let listed = listed(picture, &at(*value), LISTED_ALONG);
        (!listed.is_empty()).then(|| format!("at {label} {listed}"))
    };
    // Only if there is a leader: a rate may be too high for all systems.
    let parts: Vec<String> = panel.values.iter().filter_map(side).collect();
    let parts = distinct([parts.first(), parts.last()].into_iter().flatten().cloned());
    let lead = if picture.quantity.is_rate { "The highest rates are" } else { "The fastest are" };
    (!parts.is_empty()).then(|| (lead.to_owned(), format!("{} ({unit}).", parts.join("; "))))
}

/// For curves against size: systems whose latency does not grow.
fn growth(panel: &Curves) -> Option<Sentence> {
    if panel.parameter != "payload" || panel.curves.len() < 2 {
        return None;
    }
    let factors = panel.curves.iter().filter(|curve| !curve.is_floor).filter_map(|curve| {
        let (first, last) = (curve.marks.first()?, curve.marks.last()?);
        let is_whole = curve.marks.len() == panel.values.len();
        is_whole.then_some((last.1.low / first.1.low, curve.system))
    });
    let mut factors: Vec<(f64, &str)> = factors.collect();
    factors.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (least, most) = (factors.first()?, factors.last()?);
    let [first, last] = [panel.values.first()?, panel.values.last()?].map(|it| &it.label);
    let rest = format!(
        "{} for {}, {} for {}.",
        format::factor(least.0),
        least.1,
        format::factor(most.0),
        most.1
    );
    let lead = format!("From {first} to {last} latency grows by");
    (factors.len() > 1).then_some((lead, rest))
}

/// The most serious problem that a ranking of medians does not show.
fn beware(view: &View, picture: &Picture) -> Option<Sentence> {
    let entries = || {
        let own = view.entries().filter(|entry| entry.cell.scenario == picture.scenario);
        own.filter(|entry| entry.cell.valid && !entry.system.floor)
    };
    let steady = || entries().filter(|entry| entry.is_steady());
    let lost = steady()
        .filter(|entry| entry.cell.is_lossy())
        .max_by(|a, b| a.loss_percent().unwrap_or(0.0).total_cmp(&b.loss_percent().unwrap_or(0.0)));
    let short: Vec<&Entry> = entries().filter(|entry| entry.short_of_rate().is_some()).collect();
    let stalls = steady().filter_map(|entry| {
        let (p50, p99) = (entry.typical_p50()?, entry.typical_p99()?);
        let p99 = Some(p99).filter(|p99| p99.is_finite())?;
        (p99 > STALL_RATIO * p50 && p99 > STALL_US).then_some((p99 / p50, p99, entry))
    });
    let stall = stalls.max_by(|a, b| a.0.total_cmp(&b.0));
    let mut parts = Vec::new();
    if let Some(entry) = lost {
        let all = steady().filter(|other| other.cell.is_lossy()).count();
        parts.push(format!(
            "{} loses {} % of its messages ({}{})",
            full_name(entry),
            format::percent(entry.loss_percent().unwrap_or(0.0)),
            format::or_dash(entry.cell.lost, format::count),
            and_others(all, ["loses some", "lose some"])
        ));
    }
    if let Some(entry) = short.first() {
        let (reached, asked) = entry.short_of_rate()?;
        let more = and_others(short.len(), ["falls short", "fall short"]);
        parts.push(format!("{} {}{more}", full_name(entry), format::reached(reached, asked)));
    }
    if let Some((ratio, p99, entry)) = stall {
        parts.push(format!(
            "1 % of the messages of {} take {} or more, {} their median",
            full_name(entry),
            with_unit(p99),
            format::factor(ratio)
        ));
    }
    (!parts.is_empty()).then(|| ("Beware:".to_owned(), format!("{}.", parts.join("; "))))
}

/// `; 3 other cells lose some, too`, if there are other cells.
fn and_others(all: usize, [one, several]: [&str; 2]) -> String {
    match all {
        ..=1 => String::new(),
        2 => format!("; 1 other cell {one}, too"),
        _ => format!("; {} {several}, too", format::plural(all - 1, "other cell")),
    }
}

/// The name with the rate, if there is one.
fn full_name(entry: &Entry) -> String {
    match entry.cell.params.rate_hz {
        Some(_) => format!("{}, {}", entry.name(), format::rate(entry.cell.params.rate_hz)),
        None => entry.name(),
    }
}

/// `3144 µs`, `121 ms`.
fn with_unit(us: f64) -> String {
    let figure = format::brief_us(us);
    if figure.ends_with('s') { figure } else { format!("{figure} µs") }
}

/// The saved part of the time: `5.0 %`, `3.1 % more`, or that no difference can be shown.
fn change(verdict: Verdict) -> String {
    match verdict.kind {
        Kind::Better => percent_less(verdict),
        Kind::Worse => format!("{} more", percent_of(verdict.ratio.value - 1.0)),
        Kind::NoDifference => "nothing".to_owned(),
        Kind::TooNoisy if verdict.lacks_runs => "too few runs".to_owned(),
        Kind::TooNoisy => "noise".to_owned(),
    }
}

fn percent_less(verdict: Verdict) -> String {
    percent_of(1.0 - verdict.ratio.value)
}

fn percent_of(fraction: f64) -> String {
    let signed = format::change_percent(fraction);
    signed.trim_start_matches(['+', '−', '±']).replace(' ', "\u{a0}")
}

/// The first of these marks, with their figures: `os.pipe 9.41, os.udp 12.0`.
fn listed(picture: &Picture, marks: &[&Mark], most: usize) -> String {
    let one = |mark: &&Mark| format!("{} {}", mark.name(), picture.quantity.exact(mark.low));
    marks.iter().take(most).map(one).collect::<Vec<_>>().join(", ")
}

/// `a, b and c`.
fn enumerated(names: &[String]) -> String {
    match names {
        [all @ .., last] if !all.is_empty() => format!("{} and {last}", all.join(", ")),
        _ => names.concat(),
    }
}

/// Number of systems that one sentence names beside the first.
const OTHERS_MAX: usize = 4;
const BEHIND_MAX: usize = 3;
const TIED_MAX: usize = 3;
const LISTED_ALONG: usize = 3;

/// A tail deserves a warning if it is this many times the median, and this many µs.
const STALL_RATIO: f64 = 20.0;
const STALL_US: f64 = 1000.0;
