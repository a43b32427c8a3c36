//! The content of a comparison, without a format: `terminal` and `html` print it.

use serde::Serialize;

use super::environment::{Aspect, Difference};
use super::judge::{self, FigureComparison};
use super::{CellComparison, CellName, Comparison, Unit};
use crate::report::format;
use crate::stats::interval::RUNS_MIN;
use crate::stats::verdict::Kind;

/// A figure of a cell as text; fields are empty if there is no value.
#[derive(Serialize)]
pub(super) struct FigureText {
    pub cell: String,
    pub figure: &'static str,
    pub unit: &'static str,
    pub a: String,
    pub b: String,
    pub ratio: String,
    pub interval: String,
    pub p: String,
    pub verdict: &'static str,
    /// A remark for the reader.
    pub note: String,
    #[serde(skip)]
    pub kind: Option<Kind>,
}

/// A figure with its cell.
pub type Found<'a> = (&'a CellComparison, &'a FigureComparison);

impl Comparison {
    /// The guaranteed error rate, and the number of comparisons it covers.
    pub(super) fn rate_in_words(&self) -> String {
        let asked = self.runs_to_tell_any;
        let immaterial = "a step of the clock or 0.5 MB";
        match self.unit {
            Unit::Run if self.comparisons == 0 => {
                let more = judge::more_runs(&self.cells, asked);
                format!("too few runs to test anything; {more}")
            }
            Unit::Run => {
                let runs = [self.runs_least, asked];
                format::error_rate("pairs of folders", self.comparisons, immaterial, runs)
            }
            Unit::Session => format!(
                "If nothing differs, at most {:.0} in 100 such comparisons show any “worse” or \
                 “better”: a step-down permutation test of the sessions keeps this family-wise error \
                 rate over {}. A change below 2 % or below {immaterial} counts as no difference.",
                100.0 * self.error_rate,
                format::plural(self.comparisons, "comparison"),
            ),
        }
    }

    /// Why verdicts on one session of each side are no more than a hint.
    pub(super) fn hint_in_words(&self) -> Option<String> {
        (self.unit == Unit::Run).then(|| {
            format!(
                "a hint, because the machine may have changed between the two, which the runs of a \
                 session do not show; compare {RUNS_MIN} of each, by --with"
            )
        })
    }

    /// How primitives of the operating system differ, if they do.
    pub(super) fn floor_in_words(&self) -> Option<String> {
        let (worse, better) = (self.floor.worse, self.floor.better);
        (worse + better > 0).then(|| {
            format!(
                "{worse} figures of bare primitives of the operating system are worse and {better} \
                 are better. The machine itself changed, which may affect the other cells, too"
            )
        })
    }

    /// The figures with a wanted verdict; the largest increase first.
    pub fn figures(&self, wanted: impl Fn(Option<Kind>) -> bool) -> Vec<Found<'_>> {
        let all = self.cells.iter().flat_map(|cell| cell.figures.iter().map(move |it| (cell, it)));
        let mut found: Vec<_> = all.filter(|(_, it)| wanted(it.verdict)).collect();
        found.sort_by(|(_, a), (_, b)| by_how_much(b).total_cmp(&by_how_much(a)));
        found
    }

    /// The circumstances that all cells share, if they do; they are shown once instead of in each
    /// name.
    pub(super) fn common(&self) -> Option<&str> {
        let first = &self.cells.first()?.name.circumstances;
        let is_same = |cell: &CellComparison| cell.name.circumstances == *first;
        self.cells.iter().all(is_same).then_some(first)
    }

    /// The part of a cell's name that distinguishes it from the others.
    pub(super) fn label(&self, cell: &CellComparison) -> String {
        if self.common().is_some() { cell.name.name.clone() } else { full(&cell.name) }
    }

    /// Lasting differences of the environment, and texts for differences between any two sessions.
    pub(super) fn environment(&self) -> (Vec<&Difference>, Vec<String>) {
        let (session, lasting): (Vec<_>, Vec<_>) =
            self.environment.iter().partition(|it| it.of == Aspect::Session);
        let session = session.iter().map(|it| format!("{} {} → {}", it.what, it.a, it.b));
        (lasting, session.collect())
    }

    /// Like [`figures`](Self::figures), as text.
    pub(super) fn rows(&self, wanted: impl Fn(Option<Kind>) -> bool) -> Vec<FigureText> {
        self.figures(wanted).into_iter().map(|(cell, it)| self.row(cell, it)).collect()
    }

    pub(super) fn row(&self, cell: &CellComparison, it: &FigureComparison) -> FigureText {
        let text = |value: Option<f64>| {
            value.map(|value| it.figure.compared_text(value)).unwrap_or_default()
        };
        let remarks = cell.remarks.iter().filter(|_| it.how.across.is_some()).cloned();
        FigureText {
            cell: self.label(cell),
            figure: it.how.words,
            unit: it.how.unit,
            a: text(it.a),
            b: text(it.b),
            ratio: it.ratio.map(format::factor).unwrap_or_default(),
            interval: it.interval.map(format::factor_interval).unwrap_or_default(),
            p: it.p_adjusted.map(probability).unwrap_or_default(),
            verdict: it.verdict.map_or("none", Kind::words),
            note: remarks.chain(it.reason.clone()).collect::<Vec<_>>().join("; "),
            kind: it.verdict,
        }
    }
}

/// `0.012`, `<0.001`.
fn probability(p: f64) -> String {
    if p < 0.0005 { "<0.001".to_owned() } else { format!("{p:.3}") }
}

pub(super) fn full(name: &CellName) -> String {
    format!("{}, {}", name.name, name.circumstances)
}

/// The ratio, for sorting. A figure that is infinite on one side has none.
fn by_how_much(figure: &FigureComparison) -> f64 {
    figure.ratio.unwrap_or(match figure.verdict {
        Some(Kind::Worse) => f64::INFINITY,
        Some(Kind::Better) => 0.0,
        _ => 1.0,
    })
}
