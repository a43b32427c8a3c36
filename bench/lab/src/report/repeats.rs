//! Whether cells were repeated often enough and had settled, in words.

use super::validity::{Check, Level};
use super::view::{Entry, View};
use super::words;
use crate::analyse::bootstrap::RUNS_MIN;
use crate::analyse::steady;
use crate::summary::Repeats;

/// A line for each number of runs after which cells of `entries` had to be left with an interval of
/// the median that is wider than asked.
pub(super) fn wide(entries: &[Entry]) -> Vec<String> {
    let wide: Vec<(usize, String)> = entries
        .iter()
        .filter_map(|entry| Some((entry, entry.cell.repeats.filter(|repeats| !repeats.is_narrow)?)))
        .map(|(entry, repeats)| (made(entry), format!("{} {}", entry.name(), width(repeats))))
        .collect();
    let mut numbers: Vec<usize> = wide.iter().map(|(runs, _)| *runs).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let line = |number: usize| {
        let same = wide.iter().filter(|(runs, _)| *runs == number);
        let cells: Vec<&str> = same.map(|(_, cell)| cell.as_str()).collect();
        let runs = words::plural(number, "run");
        format!("interval of the median wider than asked after {runs}: {}", cells.join("; "))
    };
    numbers.into_iter().map(line).collect()
}

/// How many runs there were, and whether they were enough.
pub(super) fn check(view: &View) -> Check {
    let runs = || view.entries().filter(|entry| entry.cell.valid).map(|entry| entry.cell.runs);
    let (least, most) = (runs().min().unwrap_or(0), runs().max().unwrap_or(0));
    let number = match least == most {
        true => words::plural(least as usize, "run"),
        false => format!("{least} to {most} runs"),
    };
    let enough = |runs: u32| runs as usize >= RUNS_MIN;
    let (level, consequence) = match least {
        _ if enough(least) => (Level::Good, "intervals are 95 % bootstraps over runs"),
        _ if enough(most) => (Level::Caution, "cells with fewer than 5 have no interval"),
        _ => (Level::Caution, "fewer than 5: no intervals, hence no verdicts"),
    };
    let particulars: Vec<String> =
        (view.groups.iter().map(|group| (group.title(), &group.entries)))
            .chain(view.fans.iter().map(|fan| (fan.title(), &fan.entries)))
            .flat_map(|(title, entries)| {
                wide(entries).into_iter().map(move |line| format!("{title}: {line}"))
            })
            .collect();
    let asking = view.entries().filter_map(|entry| entry.cell.repeats);
    let (asked, narrow) = asking.fold((0, 0), |(asked, narrow), repeats| {
        (asked + 1, narrow + usize::from(repeats.is_narrow))
    });
    let reached = match asked {
        0 => String::new(),
        _ => format!("; {narrow} of {asked} intervals of medians as narrow as asked"),
    };
    let level = if narrow < asked { Level::Caution } else { level };
    let finding = format!("{number} of each cell; {consequence}{reached}");
    Check { level, title: "Repeats", finding, particulars }
}

/// Whether runs went on drifting until their end. The remarks say from where to where.
pub(super) fn steadiness(view: &View) -> Check {
    let drifting = view.entries().filter(|entry| entry.cell.unsettled_runs > 0);
    let line = |entry: &Entry| {
        let (unsettled, all) = (entry.cell.unsettled_runs, entry.cell.runs);
        format!("{} ({}): {unsettled} of {all}", entry.name(), entry.circumstances())
    };
    let particulars: Vec<String> = drifting.map(line).collect();
    let sum = |of: fn(&Entry) -> u32| view.entries().map(of).sum::<u32>() as usize;
    let (all, unsettled) = (sum(|entry| entry.cell.runs), sum(|entry| entry.cell.unsettled_runs));
    let tested = sum(|entry| if is_tested(entry) { entry.cell.runs } else { 0 });
    let runs = words::plural(tested, "run");
    let (level, mut finding) = match unsettled {
        0 if tested == 0 => (Level::Caution, "not known".to_owned()),
        0 => (Level::Good, format!("no drift or step in {runs}")),
        some => (Level::Caution, format!("{some} of {runs} never settled: see the remarks")),
    };
    if tested < all {
        finding += &format!("; {} too short to tell", words::plural(all - tested, "run"));
    }
    Check { level, title: "Steady state", finding, particulars }
}

/// Whether its runs are long enough to tell; those of a cell are about as long as each other.
fn is_tested(entry: &Entry) -> bool {
    let samples = entry.cell.samples / u64::from(entry.cell.runs).max(1);
    steady::can_tell(entry.cell.workload, samples)
}

/// Runs made, invalid ones included, as the limit counts them.
fn made(entry: &Entry) -> usize {
    entry.detail.runs.len()
}

fn width(repeats: Repeats) -> String {
    let asked = repeats.asked_percent;
    match repeats.reached_percent {
        Some(reached) => format!("{reached:.1} % (asked: {asked} %)"),
        None => format!("has none (asked: {asked} %)"),
    }
}
