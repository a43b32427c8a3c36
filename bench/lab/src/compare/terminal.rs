//! A comparison as a text for a terminal: what else differs, how many verdicts of each kind, then
//! what is worse and what is better.

use super::document::{FigureText, Found, full};
use super::{CellComparison, Comparison, FolderInfo};
use crate::report::Screen;
use crate::report::document::{Column, Table, TableCell};
use crate::report::format::{self, plural};
use crate::report::terminal::{BOLD, DIM, GREEN, RED, YELLOW, print};
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
    let (lasting, session) = comparison.environment();
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
    if !session.is_empty() {
        text += &screen.wrap(&format!("  of the session: {}", session.join("; ")), DIM);
    }
    text
}

fn or_dash(text: &str) -> &str {
    if text.is_empty() { format::WITHHELD } else { text }
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

fn differing(comparison: &Comparison, screen: Screen) -> String {
    let worse = comparison.rows(|verdict| verdict == Some(Kind::Worse));
    let mut better = comparison.rows(|verdict| verdict == Some(Kind::Better));
    better.reverse();
    let tables = [("Worse in B, worst first", worse), ("Better in B, best first", better)];
    let filled = tables.into_iter().filter(|(_, rows)| !rows.is_empty());
    let tables = filled
        .map(|(caption, rows)| format!("\n{}", print(&table(caption, comparison, &rows), screen)));
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
    let is_other = |verdict: Option<Kind>| !verdict.is_some_and(Kind::is_significant);
    let others = comparison.figures(is_other);
    if others.is_empty() {
        return String::new();
    }
    if all {
        let caption = "The rest: = no difference, ? too noisy, · no verdict";
        return format!(
            "\n{}",
            print(&table(caption, comparison, &comparison.rows(is_other)), screen)
        );
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

fn table(caption: &str, comparison: &Comparison, rows: &[FigureText]) -> Table {
    let mut notes: Vec<String> = Vec::new();
    let heads = ["", "A", "B", "B/A [95 %]", "p"].iter().enumerate();
    let columns = heads.map(|(place, head)| (Column::new("", *head), place)).collect();
    let rows = rows.iter().map(|row| {
        (format!("{}  {}", row.cell, row.figure), cells(row, mark(&mut notes, &row.note)))
    });
    let common = comparison.common().map(|common| format!(" ({common})")).unwrap_or_default();
    let table = Table::new(format!("{caption}{common}"), columns, rows, |cells, place| {
        cells[*place].clone()
    });
    Table { notes, ..table }
}

/// The place of a note, from 1; none of an empty one.
fn mark(notes: &mut Vec<String>, note: &str) -> Option<usize> {
    if !note.is_empty() && !notes.iter().any(|known| known == note) {
        notes.push(note.to_owned());
    }
    Some(1 + notes.iter().position(|known| known == note)?)
}

fn cells(row: &FigureText, mark: Option<usize>) -> [TableCell; 5] {
    let plain = |text: &str| TableCell::plain(or_dash(text));
    let sign = match row.kind {
        Some(Kind::Better | Kind::Worse) => "",
        Some(Kind::NoDifference) => "=",
        Some(Kind::TooNoisy) => "?",
        None => "·",
    };
    let sign = TableCell { mark, ..TableCell::plain(sign) };
    let ratio = plain(&row.ratio).side(&row.interval).tone(row.kind);
    [sign, plain(&row.a), plain(&row.b), ratio, plain(&row.p)]
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
