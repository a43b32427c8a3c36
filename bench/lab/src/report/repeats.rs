//! Whether cells were repeated often enough and had settled, in words.

use super::document::{Finding, Standing};
use super::format;
use super::validity;
use super::view::{Entry, View};
use crate::analyse::steady;
use crate::stats::{LEVEL_PERCENT_MIN, RUNS_MIN, level_percent};

/// A line for each number of runs after which cells of `entries` had to be left with an interval of
/// the median that is wider than asked.
pub(super) fn wide(entries: &[Entry]) -> Vec<String> {
    let cell = |entry: &Entry| {
        let repeats = entry.cell.repeats.filter(|repeats| !repeats.is_narrow)?;
        let asked = repeats.asked_percent;
        let width = match repeats.reached_percent {
            Some(reached) => format!("{reached:.1} % (asked: {asked} %)"),
            None => format!("has none (asked: {asked} %)"),
        };
        // Runs made, invalid ones included, as the limit counts them.
        Some((entry.detail.runs.len(), format!("{} {width}", entry.name())))
    };
    let mut wide: Vec<(usize, String)> = entries.iter().filter_map(cell).collect();
    wide.sort_by_key(|(runs, _)| *runs);
    let line = |same: &[(usize, String)]| {
        let runs = format::plural(same[0].0, "run");
        let cells: Vec<&str> = same.iter().map(|(_, cell)| cell.as_str()).collect();
        format!("interval of the median wider than asked after {runs}: {}", cells.join("; "))
    };
    wide.chunk_by(|one, next| one.0 == next.0).map(line).collect()
}

/// How many runs there were, and whether they were enough.
pub(super) fn check(view: &View) -> Finding {
    let runs = || view.entries().filter(|entry| entry.cell.valid).map(|entry| entry.cell.runs);
    let (least, most) = (runs().min().unwrap_or(0), runs().max().unwrap_or(0));
    let number = match least == most {
        true => format::plural(least as usize, "run"),
        false => format!("{least} to {most} runs"),
    };
    let enough = |runs: u32| runs as usize >= RUNS_MIN;
    let (level, consequence) = match least {
        _ if enough(least) => (Standing::Good, levels([least, most])),
        _ if enough(most) => (Standing::Caution, "cells with fewer than 5 have no interval".into()),
        _ => (Standing::Caution, "fewer than 5: no intervals, hence no verdicts".into()),
    };
    let lines = view.all().flat_map(|group| {
        wide(&group.entries).into_iter().map(|line| format!("{}: {line}", group.title()))
    });
    let particulars: Vec<String> = lines.collect();
    let asking = view.entries().filter_map(|entry| entry.cell.repeats);
    let (asked, narrow) = asking.fold((0, 0), |(asked, narrow), repeats| {
        (asked + 1, narrow + usize::from(repeats.is_narrow))
    });
    let reached = match asked {
        0 => String::new(),
        _ => format!("; {narrow} of {asked} intervals of medians as narrow as asked"),
    };
    let level = if narrow < asked { Standing::Caution } else { level };
    let finding = format!("{number} of each cell; {consequence}{reached}");
    validity::check(level, "Repeats", finding, particulars)
}

/// In how many of a hundred cases the intervals cover, of these numbers of runs and between.
fn levels(runs: [u32; 2]) -> String {
    let [least, most] = runs.map(|runs| level_percent(runs as usize).unwrap_or(LEVEL_PERCENT_MIN));
    match least == most {
        true => format!("intervals over runs of {least:.2} %"),
        false => format!("intervals over runs of at least {LEVEL_PERCENT_MIN} %"),
    }
}

/// Whether runs went on drifting until their end. On some machines one in six does whatever it
/// runs; that is a doubt where a cell's median rests on such runs, half of its own or more.
pub(super) fn steadiness(view: &View) -> Finding {
    let mut drifting: Vec<&Entry> =
        view.entries().filter(|entry| entry.cell.unsettled_runs > 0).collect();
    drifting.sort_by(|a, b| unsettled_share(b).total_cmp(&unsettled_share(a)));
    let resting = drifting.iter().filter(|entry| unsettled_share(entry) >= 0.5).count();
    let mut particulars: Vec<String> =
        drifting.iter().take(CELLS_SHOWN).map(|entry| unsettled(entry)).collect();
    if let Some(more @ 1..) = drifting.len().checked_sub(CELLS_SHOWN) {
        let cells = format::plural(more, "more cell");
        particulars.push(format!("and {cells}: unsettled_runs in summary.csv"));
    }
    let sum = |of: fn(&Entry) -> u32| view.entries().map(of).sum::<u32>() as usize;
    let (all, unsettled) = (sum(|entry| entry.cell.runs), sum(|entry| entry.cell.unsettled_runs));
    let tested = sum(|entry| if is_tested(entry) { entry.cell.runs } else { 0 });
    let runs = format::plural(tested, "run");
    let (level, mut finding) = match unsettled {
        0 if tested == 0 => (Standing::Caution, "not known".to_owned()),
        0 => (Standing::Good, format!("no drift or step in {runs}")),
        some => {
            let cells = format::plural(drifting.len(), "cell");
            let finding = format!("{some} of {runs} never settled, in {cells}");
            match resting {
                0 => (Standing::Good, finding + ", fewer than half of the runs of each"),
                number => {
                    let cells = format::plural(number, "cell");
                    (Standing::Caution, format!("{finding}; half or more of the runs of {cells}"))
                }
            }
        }
    };
    if tested < all {
        finding += &format!("; {} too short to tell", format::plural(all - tested, "run"));
    }
    validity::check(level, "Steady state", finding, particulars)
}

/// Of the runs of a cell.
fn unsettled_share(entry: &Entry) -> f64 {
    f64::from(entry.cell.unsettled_runs) / f64::from(entry.cell.runs.max(1))
}

/// `os.pipe, 64 B, default (quick): 2 of 5 runs; run 3 never settled: median drifted from …`.
fn unsettled(entry: &Entry) -> String {
    let (number, all) = (entry.cell.unsettled_runs, entry.cell.runs);
    let first = entry.cell.notes.iter().find(|note| steady::is_remark(note));
    let first = first.map(|note| format!("; {note}")).unwrap_or_default();
    format!("{} ({}): {number} of {all} runs{first}", entry.name(), entry.circumstances())
}

/// Whether its runs are long enough to tell; those of a cell are about as long as each other.
fn is_tested(entry: &Entry) -> bool {
    let samples = entry.cell.samples / u64::from(entry.cell.runs).max(1);
    steady::can_tell(entry.cell.workload, samples)
}

/// Cells with unsettled runs that are named.
const CELLS_SHOWN: usize = 5;
