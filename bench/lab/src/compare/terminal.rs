//! A comparison as a text for a terminal: what else differs, how many verdicts of each kind, then
//! what is worse and what is better.

use super::environment::{Difference, Part};
use super::judge::FigureComparison;
use super::{CellComparison, CellName, Comparison, FolderInfo};
use crate::report::Screen;
use crate::report::document::{Column, Row, Table, TableCell, Tone};
use crate::report::terminal::{BOLD, DIM, GREEN, RED, YELLOW, print};
use crate::report::words::{self, plural};
use crate::stats::verdict::Kind;

/// The text. `all` lists every figure, not only those that differ.
pub fn render(comparison: &Comparison, screen: Screen, all: bool) -> String {
    let mut text = folder("A", &comparison.a, screen) + &folder("B", &comparison.b, screen);
    text += &heading("Environment", screen);
    text += &environment(comparison, screen);
    text += &heading("Verdicts", screen);
    text += &verdicts(comparison, screen);
    text += &differing(comparison, screen);
    text += &invalid(comparison, screen);
    text += &rest(comparison, screen, all);
    text + &alone(comparison, screen)
}

fn heading(title: &str, screen: Screen) -> String {
    format!("\n{}\n", screen.paint(title, BOLD))
}

fn folder(name: &str, info: &FolderInfo, screen: Screen) -> String {
    let mut text = screen.wrap(&format!("{name}: {} ({})", info.folder, info.command), "");
    for note in &info.notes {
        text += &screen.wrap(&format!("   {name}: {note}"), YELLOW);
    }
    text
}

fn environment(comparison: &Comparison, screen: Screen) -> String {
    let passing = |it: &&Difference| it.of == Part::Session;
    let lasting: Vec<_> = comparison.environment.iter().filter(|it| !passing(it)).collect();
    let mut text = String::new();
    if lasting.is_empty() {
        let facts = comparison.host_facts;
        let line = format!(
            "the same, as far as is known: {facts} facts of the host, versions, scenarios, \
             configuration"
        );
        text += &screen.wrap(&line, "");
    }
    for it in lasting {
        let line = format!("  {}: {} → {}", it.what, or_dash(&it.a), or_dash(&it.b));
        text += &screen.wrap(&line, YELLOW);
    }
    let passing = comparison.environment.iter().filter(passing);
    let passing: Vec<_> = passing.map(|it| format!("{} {} → {}", it.what, it.a, it.b)).collect();
    if !passing.is_empty() {
        text += &screen.wrap(&format!("  of the session: {}", passing.join("; ")), DIM);
    }
    text
}

fn or_dash(text: &str) -> &str {
    if text.is_empty() { words::WITHHELD } else { text }
}

fn verdicts(comparison: &Comparison, screen: Screen) -> String {
    let style = match (comparison.is_worse(), comparison.verdicts.better) {
        (true, _) => RED,
        (false, 1..) => GREEN,
        _ => "",
    };
    let mut text = screen.wrap(&comparison.counts(), style);
    text += &screen.wrap(&comparison.rate_in_words(), DIM);
    text += &screen.wrap(LEGEND, DIM);
    if let Some(line) = comparison.floor_in_words() {
        text += &screen.wrap(&line, YELLOW);
    }
    text
}

impl Comparison {
    /// `1 worse, 0 better, …; 8 figures of 2 cells`.
    pub(super) fn counts(&self) -> String {
        let counts = self.verdicts;
        let figures: usize = self.cells.iter().map(|cell| cell.figures.len()).sum();
        format!(
            "{} worse, {} better, {} no difference, {} too noisy, {} without a verdict: {} of {}",
            counts.worse,
            counts.better,
            counts.no_difference,
            counts.too_noisy,
            counts.no_verdict,
            plural(figures, "figure"),
            plural(self.cells.len(), "cell")
        )
    }

    /// What is promised, and over how many comparisons.
    pub(super) fn rate_in_words(&self) -> String {
        let asked = self.runs_to_tell_any;
        if self.comparisons == 0 {
            return format!("nothing could be tested; it takes {asked} runs: --runs {asked}");
        }
        let runs = [self.runs_least, asked];
        let immaterial = "a step of the clock or 0.5 MB";
        words::error_rate("folders that do not differ", self.comparisons, immaterial, runs)
    }

    /// That bare primitives of the operating system differ, if they do.
    pub(super) fn floor_in_words(&self) -> Option<String> {
        let (worse, better) = (self.floor.worse, self.floor.better);
        (worse + better > 0).then(|| {
            format!(
                "The floor moved: of bare primitives of the operating system, {worse} worse and \
                 {better} better. That is the machine, and may be so in the other cells"
            )
        })
    }

    /// The figures that are wanted, those that are the most higher first.
    pub fn figures(&self, wanted: impl Fn(Option<Kind>) -> bool) -> Vec<Found<'_>> {
        let all = self.cells.iter().flat_map(|cell| cell.figures.iter().map(move |it| (cell, it)));
        let mut found: Vec<_> = all.filter(|(_, it)| wanted(it.verdict)).collect();
        found.sort_by(|(_, a), (_, b)| b.ratio.unwrap_or(1.0).total_cmp(&a.ratio.unwrap_or(1.0)));
        found
    }

    /// The circumstances that all cells share, if they do: said once, not in each name.
    pub(super) fn common(&self) -> Option<&str> {
        let first = &self.cells.first()?.name.circumstances;
        let is_same = |cell: &CellComparison| cell.name.circumstances == *first;
        self.cells.iter().all(is_same).then_some(first)
    }

    /// What tells a cell from the others.
    pub(super) fn label(&self, cell: &CellComparison) -> String {
        if self.common().is_some() { cell.name.name.clone() } else { full(&cell.name) }
    }
}

/// A figure with its cell.
pub type Found<'a> = (&'a CellComparison, &'a FigureComparison);

fn differing(comparison: &Comparison, screen: Screen) -> String {
    let worse = comparison.figures(|verdict| verdict == Some(Kind::Worse));
    let mut better = comparison.figures(|verdict| verdict == Some(Kind::Better));
    better.reverse();
    let tables = [("Worse in B, worst first", worse), ("Better in B, best first", better)];
    let filled = tables.into_iter().filter(|(_, found)| !found.is_empty());
    let tables = filled.map(|(caption, found)| {
        format!("\n{}", print(&table(caption, comparison, &found), screen))
    });
    tables.collect()
}

fn invalid(comparison: &Comparison, screen: Screen) -> String {
    let line = |cell: &CellComparison| {
        screen.wrap(&format!("no longer valid in B: {}", full(&cell.name)), RED)
    };
    comparison.no_longer_valid().map(line).collect()
}

/// What does not differ: in a line, or one by one.
fn rest(comparison: &Comparison, screen: Screen, all: bool) -> String {
    let others = comparison.figures(|verdict| !verdict.is_some_and(Kind::is_significant));
    if others.is_empty() {
        return String::new();
    }
    if all {
        let caption = "The rest: = no difference, ? too noisy, · no verdict";
        return format!("\n{}", print(&table(caption, comparison, &others), screen));
    }
    let mut text = reasons(&others, screen);
    text += &screen.wrap(&format!("{} more: --all lists them", others.len()), DIM);
    text
}

/// The reasons why figures have no verdict, or none that decides, each once.
fn reasons(figures: &[Found], screen: Screen) -> String {
    let mut counted: Vec<(&str, usize)> = Vec::new();
    for reason in figures.iter().filter_map(|(_, it)| it.reason.as_deref()) {
        match counted.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, number)) => *number += 1,
            None => counted.push((reason, 1)),
        }
    }
    counted.sort_by_key(|(_, number)| std::cmp::Reverse(*number));
    let shown = counted.iter().take(REASONS_MAX);
    let shown = shown.map(|(reason, number)| {
        screen.wrap(&format!("{}: {reason}", plural(*number, "figure")), YELLOW)
    });
    let mut text: String = shown.collect();
    if let Some(more) = counted.len().checked_sub(REASONS_MAX + 1) {
        text += &screen.wrap(&format!("and {}", plural(more + 1, "other reason")), YELLOW);
    }
    text
}

fn table(caption: &str, comparison: &Comparison, figures: &[Found]) -> Table {
    let heads = ["", "A", "B", "B/A [95 %]", "p"];
    let column = |head: &str| Column { group: String::new(), head: head.to_owned() };
    let mut notes: Vec<String> = Vec::new();
    let rows = figures.iter().map(|(cell, figure)| Row {
        label: format!("{}  {}", comparison.label(cell), figure.figure.words),
        cells: cells(figure, note(cell, figure).map(|text| mark(&mut notes, text))),
    });
    let common = comparison.common().map(|common| format!(" ({common})")).unwrap_or_default();
    Table {
        rows: rows.collect(),
        caption: format!("{caption}{common}"),
        columns: heads.map(column).into(),
        notes,
    }
}

/// What must be borne in mind of a figure.
pub(super) fn note(cell: &CellComparison, figure: &FigureComparison) -> Option<String> {
    let remarks = cell.remarks.iter().filter(|_| figure.figure.is_latency).cloned();
    let all: Vec<String> = remarks.chain(figure.reason.clone()).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

fn mark(notes: &mut Vec<String>, text: String) -> usize {
    let known = notes.iter().position(|note| *note == text);
    let place = known.unwrap_or(notes.len());
    if known.is_none() {
        notes.push(text);
    }
    place + 1
}

fn cells(figure: &FigureComparison, mark: Option<usize>) -> Vec<TableCell> {
    let plain = |text: Option<String>| TableCell {
        main: text.unwrap_or_else(|| words::WITHHELD.to_owned()),
        ..TableCell::default()
    };
    let value = |value: Option<f64>| plain(value.map(|value| figure.figure.text(value)));
    let (sign, tone) = match figure.verdict {
        Some(Kind::Better) => ("", Tone::Better),
        Some(Kind::Worse) => ("", Tone::Worse),
        Some(Kind::NoDifference) => ("=", Tone::Plain),
        Some(Kind::TooNoisy) => ("?", Tone::Plain),
        None => ("·", Tone::Plain),
    };
    let ratio = TableCell {
        side: figure.interval.map(words::factor_interval).unwrap_or_default(),
        tone,
        ..plain(figure.ratio.map(words::factor))
    };
    vec![
        TableCell { mark, ..plain(Some(sign.to_owned())) },
        value(figure.a),
        value(figure.b),
        ratio,
        plain(figure.p_adjusted.map(probability)),
    ]
}

/// `0.012`, `<0.001`.
pub(super) fn probability(p: f64) -> String {
    if p < 0.0005 { "<0.001".to_owned() } else { format!("{p:.3}") }
}

pub(super) fn full(name: &CellName) -> String {
    format!("{}, {}", name.name, name.circumstances)
}

/// Cells that one folder lacks.
fn alone(comparison: &Comparison, screen: Screen) -> String {
    let sides = [("A", &comparison.only_in_a), ("B", &comparison.only_in_b)];
    let filled = sides.into_iter().filter(|(_, cells)| !cells.is_empty());
    let mut text = String::new();
    for (side, cells) in filled {
        let count = plural(cells.len(), "cell");
        text += &screen.wrap(&format!("only in {side}, and not compared: {count}"), BOLD);
        for cell in cells.iter().take(ALONE_MAX) {
            text += &screen.wrap(&format!("  {}", full(cell)), DIM);
        }
        if let Some(more) = cells.len().checked_sub(ALONE_MAX + 1) {
            text += &screen.wrap(&format!("  and {} more; --json has them", more + 1), DIM);
        }
    }
    text
}

const LEGEND: &str = "A and B are medians of the runs: latencies and CPU for each message in µs, \
                      memory in MB (PSS). The interval of B/A is a bootstrap over runs, of each \
                      figure alone; p is corrected for their number.";
const REASONS_MAX: usize = 6;
const ALONE_MAX: usize = 12;
