//! The figures of one cell side by side, and the verdicts on all of them.
//!
//! `stats::verdict` makes the verdicts; all figures are one family of tests.

use serde::Serialize;

use super::{CellComparison, CellName, Unit};
use crate::report::entry::Entry;
use crate::report::format;
use crate::stats::interval::RUNS_MIN;
use crate::stats::permutation::runs_to_tell_any;
use crate::stats::verdict::{Kind, Pair, RATIO_EQUAL, test_results, test_results_of_sessions};
use crate::stats::{median, of_medians};
use crate::summary::{Cell, Compared, Metric, RUN_QUANTILES, RunFigures};

/// A figure of a cell in both folders. Its name ends in the unit.
#[derive(Clone, Debug, Serialize)]
pub struct FigureComparison {
    /// The compared figure.
    pub figure: &'static Metric,
    /// How it is compared.
    #[serde(skip)]
    pub how: Compared,
    /// Median of the runs of A; null if no run has the figure, or if it is infinite: half of the
    /// runs lost too many messages for this percentile.
    pub a: Option<f64>,
    /// Median of the runs of B.
    pub b: Option<f64>,
    /// The ratio B / A: above 1, B is worse.
    pub ratio: Option<f64>,
    /// 95 % bootstrap interval of the ratio over runs, for this comparison alone; null with fewer
    /// than five runs on either side.
    pub interval: Option<[f64; 2]>,
    /// Permutation test over runs, for this comparison alone; null if nothing was tested.
    pub p: Option<f64>,
    /// Like `p`, adjusted for all comparisons together.
    pub p_adjusted: Option<f64>,
    /// Null if nothing was tested.
    pub verdict: Option<Kind>,
    /// Why there is no verdict, or no definite one.
    pub reason: Option<String>,
    /// Whether the figure can be tested by the runs of A, but not by those of B: they are invalid or
    /// too few, fell short of the rate, or have too few messages.
    pub lacking_in_b: bool,
    /// Only for one-way latencies across hosts, in the figure's unit: a difference up to this may
    /// come from the clocks, those of A and of B together. Absent with one clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_error: Option<f64>,
    /// The figure of each valid run of A.
    pub runs_a: Vec<f64>,
    /// The figure of each valid run of B.
    pub runs_b: Vec<f64>,
}

/// Puts the figures of a cell side by side; [`family`] adds the verdicts.
pub(super) fn cell(a: Entry, b: Entry) -> CellComparison {
    let (across, remark) = placing(&a, &b);
    let figures = Metric::compared().filter(|(_, how)| (how.is_of)(a.cell));
    let figures = figures.map(|(figure, how)| {
        let is_latency = how.across.is_some();
        let name = how.across.filter(|_| across).unwrap_or(figure.name);
        let across = across && is_latency;
        let runs = [&a, &b].map(|entry| values(entry, name));
        let too_few = || too_few(&runs, across);
        let unusable = unusable(&a, &b, how, name);
        let reason = unusable.or_else(too_few).or_else(|| no_ratio(&runs));
        let is_lacking = |entry: &Entry, runs: &[f64]| {
            let is_bad = |entry: &Entry| entry.short_of_rate().is_some() || withheld(entry, name);
            !entry.cell.valid || runs.len() < RUNS_MIN || (is_latency && is_bad(entry))
        };
        let lacking_in_b = is_lacking(&b, &runs[1]) && !is_lacking(&a, &runs[0]);
        let errors = [&a, &b].into_iter().filter_map(Entry::clock_error_us);
        let clock_error = errors.reduce(|one, other| one + other);
        let [in_a, in_b] = runs.each_ref().map(|runs| median(runs.clone()));
        let is_finite = in_a.is_none_or(f64::is_finite);
        let ratio = in_a.zip(in_b).map(|(a, b)| b / a).filter(|_| is_finite);
        let are_finite = runs.iter().flatten().all(|value| value.is_finite());
        let [runs_a, runs_b] = runs;
        let interval = of_medians(&runs_a, &runs_b, |a, b| b / a).filter(|_| are_finite);
        FigureComparison {
            figure,
            how,
            a: in_a,
            b: in_b,
            ratio: ratio.filter(|ratio| ratio.is_finite()),
            interval: interval.filter(|ends| ends.iter().all(|end| end.is_finite())),
            p: None,
            p_adjusted: None,
            verdict: None,
            reason,
            lacking_in_b,
            clock_error: clock_error.filter(|_| is_latency),
            runs_a,
            runs_b,
        }
    });
    CellComparison {
        name: CellName::of(&a),
        floor: a.system.floor,
        no_longer_valid: a.cell.valid && !b.cell.valid,
        figures: figures.collect(),
        shift: match a.is_steady() && a.cell.valid && b.cell.valid {
            true => shift(&runs(&a), &runs(&b)),
            false => Vec::new(),
        },
        remarks: remark.into_iter().collect(),
    }
}

/// Tests all figures that can be tested and adds the verdicts; returns the number of tests.
/// `clock_step_ns` is the coarser resolution of the two hosts' clocks.
pub(super) fn family(cells: &mut [CellComparison], unit: Unit, clock_step_ns: u64) -> usize {
    let figures = cells.iter().flat_map(|cell| &cell.figures);
    let figures = figures.filter(|it| it.reason.is_none());
    let tested: Vec<Pair> = figures.map(|figure| pair(figure, clock_step_ns)).collect();
    let more = more_runs(cells, runs_asked(cells, unit));
    let test_results = match unit {
        Unit::Run => test_results(&tested),
        Unit::Session => test_results_of_sessions(&tested),
    };
    let mut left = test_results.into_iter().zip(&tested);
    let figures = cells.iter_mut().flat_map(|cell| &mut cell.figures);
    for figure in figures {
        match &mut figure.reason {
            None => {
                let (chance, pair) = left.next().expect("a chance for each that was tested");
                figure.p = chance.map(|chance| chance.p);
                figure.p_adjusted = chance.map(|chance| chance.p_adjusted);
                let (a, b) = (&pair.reference, &pair.subject);
                let interval = || figure.interval.or_else(|| of_medians(a, b, |a, b| b / a));
                figure.verdict = pair.judged(chance, interval).map(|verdict| verdict.kind);
                explain(figure, tested.len(), unit, &more);
            }
            Some(reason) if reason.starts_with(TOO_FEW) => {
                let (a, b) = (figure.runs_a.len(), figure.runs_b.len());
                *reason += &format!(": {a} and {b}; {more}");
            }
            Some(_) => {}
        }
    }
    tested.len()
}

fn pair(figure: &FigureComparison, clock_step_ns: u64) -> Pair {
    Pair {
        subject: figure.runs_b.clone(),
        reference: figure.runs_a.clone(),
        immaterial: match figure.how.across {
            Some(_) => clock_step_ns as f64 / 1e3,
            None => figure.how.immaterial,
        },
        error: figure.clock_error.unwrap_or(0.0),
    }
    .bounded()
}

/// The number of runs to recommend: enough for every figure of these cells.
pub(super) fn runs_asked(cells: &[CellComparison], unit: Unit) -> usize {
    if unit == Unit::Session {
        return RUNS_MIN; // The figures of a session are divided together.
    }
    let figures: usize = cells.iter().map(|cell| cell.figures.len()).sum();
    runs_to_tell_any(figures.max(1)).max(RUNS_MIN)
}

/// How to get so many runs of each cell.
pub(super) fn more_runs(cells: &[CellComparison], runs: usize) -> String {
    match cells.iter().all(|cell| cell.name.params.imported) {
        true => format!("import {runs} traces on each side"),
        false => format!("--runs {runs}"),
    }
}

/// The least number of runs behind a tested figure; 0 if nothing was tested.
pub(super) fn runs_least(cells: &[CellComparison]) -> usize {
    let tested = cells.iter().flat_map(|cell| &cell.figures).filter(|it| it.p.is_some());
    tested.map(|it| it.runs_a.len().min(it.runs_b.len())).min().unwrap_or(0)
}

/// Adds a reason if the runs do not overlap, but are too few for so many comparisons.
fn explain(figure: &mut FigureComparison, number: usize, unit: Unit, more: &str) {
    if figure.verdict != Some(Kind::TooNoisy) || !are_apart(&figure.runs_a, &figure.runs_b) {
        return;
    }
    let (a, b) = (figure.runs_a.len(), figure.runs_b.len());
    let (units, remedy) = match unit {
        Unit::Run => ("runs", more),
        Unit::Session => ("sessions", "measure more"),
    };
    figure.reason = Some(format!(
        "the {units} of A and B do not overlap, but with {number} comparisons, {a} and {b} {units} \
         are too few to rule out chance; {remedy}"
    ));
}

/// Whether all runs of one side lie outside the range of the other.
fn are_apart(a: &[f64], b: &[f64]) -> bool {
    let ends = |runs: &[f64]| {
        let low = runs.iter().copied().fold(f64::INFINITY, f64::min);
        (low, runs.iter().copied().fold(f64::NEG_INFINITY, f64::max))
    };
    let (a, b) = (ends(a), ends(b));
    a.1 < b.0 || b.1 < a.0
}

fn too_few([a, b]: &[Vec<f64>; 2], across: bool) -> Option<String> {
    let which = if across { " with messages across cores" } else { "" };
    (a.len().min(b.len()) < RUNS_MIN).then(|| format!("{TOO_FEW}{which}"))
}

fn no_ratio(runs: &[Vec<f64>; 2]) -> Option<String> {
    let any_nothing = runs.iter().flatten().any(|value| *value <= 0.0);
    any_nothing.then(|| "not above zero in every run: it has no ratio".to_owned())
}

/// The valid runs of a cell.
fn runs<'a>(entry: &Entry<'a>) -> Vec<&'a RunFigures> {
    entry.detail.runs.iter().filter(|run| run.valid).collect()
}

fn values(entry: &Entry, name: &str) -> Vec<f64> {
    runs(entry).iter().filter_map(|run| run.get(name)).collect()
}

/// Why a figure must not be compared, independently of its runs.
fn unusable(a: &Entry, b: &Entry, how: Compared, figure: &str) -> Option<String> {
    let sides = [("A", a), ("B", b)];
    let invalid: Vec<_> = sides.iter().filter(|(_, it)| !it.cell.valid).map(|it| it.0).collect();
    if !invalid.is_empty() {
        return Some(format!("invalid in {}", invalid.join(" and ")));
    }
    // What follows is of latencies.
    how.across?;
    let short = sides.iter().find_map(|(name, entry)| {
        let (reached, asked) = entry.short_of_rate()?;
        Some(format!("{name} {}", format::reached(reached, asked)))
    });
    short.or_else(|| {
        let (name, _) = sides.iter().find(|(_, entry)| withheld(entry, figure))?;
        let what = how.words;
        Some(format!(
            "withheld: fewer than ten messages of a run in {name} lie beyond the \
                      {what}"
        ))
    })
}

/// Whether a run has too few messages for the figure. The other runs do not stand for it: under a
/// limit of time the slowest runs have the fewest.
fn withheld(entry: &Entry, figure: &str) -> bool {
    let runs = runs(entry);
    let lacks = |run: &&RunFigures| run.should_have(figure) && run.get(figure).is_none();
    runs.len() >= RUNS_MIN && runs.iter().any(lacks)
}

/// The placement of the messages' ends: whether to compare latencies across cores only, and a
/// remark. A median over messages on one core and across cores depends on their shares. A shift of
/// the shares changes neither of the two latencies.
fn placing(a: &Entry, b: &Entry) -> (bool, Option<String>) {
    let shares = [a, b].map(|entry| share_on_one_core(entry.cell));
    let [Some(in_a), Some(in_b)] = shares else { return (false, None) };
    let are_unlike = [a, b].iter().any(|entry| unlike_placements(entry.cell));
    let shifted = (in_a - in_b).abs();
    let across = a.is_mixed() || b.is_mixed() || (are_unlike && shifted > SHARE_SHIFTED);
    let shown = across || (are_unlike && shifted > SHARE_REMARKED);
    let share = format::share_percent;
    let text = || {
        let kept = if across { "; p50 and p99 count only messages across cores" } else { "" };
        let (in_a, in_b) = (share(in_a), share(in_b));
        format!("{in_a} of the messages of A ran on one core, and {in_b} of B{kept}")
    };
    (across, shown.then(text))
}

/// Share of the messages on one core; `None` without data on placements.
fn share_on_one_core(cell: &Cell) -> Option<f64> {
    let of_one_core = cell.placements.iter().find(|placement| placement.same_cpu);
    (!cell.placements.is_empty()).then(|| of_one_core.map_or(0.0, |placement| placement.share))
}

/// Whether the two placements have different latencies; true if that is unknown because one is
/// absent or rare.
fn unlike_placements(cell: &Cell) -> bool {
    let medians: Vec<f64> = cell.placements.iter().filter_map(|it| it.p50()).collect();
    match medians[..] {
        [one, other] => one.max(other) > one.min(other) * RATIO_EQUAL,
        _ => true,
    }
}

/// One quantile of the shift function.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ShiftPoint {
    /// 0 to 1.
    pub quantile: f64,
    /// Median over the runs of A of each run's own quantile.
    pub a_us: f64,
    /// B minus A.
    pub difference_us: f64,
    /// 95 % bootstrap interval over runs, for this quantile alone; null with fewer than five runs.
    pub interval_us: Option<[f64; 2]>,
}

/// The shift function: how far each part of the distribution has moved (Doksum, "Empirical
/// probability plots and statistical inference for nonlinear models", Annals of Statistics 2, 1974;
/// over repeats as by Rousselet and Wilcox, 2019). It ends with the last quantile that every run of
/// both sides supports.
fn shift(a: &[&RunFigures], b: &[&RunFigures]) -> Vec<ShiftPoint> {
    let at = |place: usize| {
        let of = |runs: &[&RunFigures]| -> Option<Vec<f64>> {
            runs.iter().map(|run| run.curve_us.get(place).copied()).collect()
        };
        let (a, b) = (of(a)?, of(b)?);
        let a_us = median(a.clone())?;
        Some(ShiftPoint {
            quantile: RUN_QUANTILES[place],
            a_us,
            difference_us: median(b.clone())? - a_us,
            interval_us: of_medians(&a, &b, |a, b| b - a),
        })
    };
    (0..RUN_QUANTILES.len()).map_while(at).collect()
}

/// Placeholder for a reason that is worded when the number of comparisons is known.
const TOO_FEW: &str = "too few runs";
/// A larger shift of the shares is another mixture: 10 of 100 messages.
const SHARE_SHIFTED: f64 = 0.1;
/// A larger shift gets a remark: one of 100 messages determines p99.
const SHARE_REMARKED: f64 = 0.005;
