//! A comparison as sections for a terminal: other differences, the number of verdicts of each kind,
//! worse figures, better figures.

use super::document::{FigureText, Found, full};
use super::{Comparison, FolderInfo, Unit};
use crate::lists::grouped;
use crate::report::Screen;
use crate::report::document::{Column, Finding, Part, Section, Standing, Table, TableCell};
use crate::report::format::{self, plural};
use crate::report::terminal::{YELLOW, section};
use crate::stats::verdict::Kind;

/// The text for a terminal. `all` lists every figure, not only those that differ.
pub fn render(comparison: &Comparison, screen: Screen, all: bool) -> String {
    let mut text = folder("A", &comparison.a, screen) + &folder("B", &comparison.b, screen) + "\n";
    text.extend(sections(comparison, all).iter().map(|it| section(it, screen)));
    text.trim_end().to_owned() + "\n"
}

pub(super) fn sections(comparison: &Comparison, all: bool) -> [Section; 2] {
    [environment(comparison), verdicts(comparison, all)]
}

fn folder(name: &str, info: &FolderInfo, screen: Screen) -> String {
    let sessions = info.sessions.join(", ");
    let mut text = screen.wrap(&format!("{name}: {sessions} ({})", info.command), "");
    for note in &info.notes {
        text += &screen.wrap(&format!("   {name}: {note}"), YELLOW);
    }
    text
}

fn finding(standing: Standing, subject: impl Into<String>, text: String) -> Finding {
    Finding { standing, subject: subject.into(), text, particulars: Vec::new() }
}

fn environment(comparison: &Comparison) -> Section {
    let (lasting, session) = comparison.environment();
    let same = format!(
        "no known difference: {} facts about the host, versions, scenarios and configuration are \
         the same",
        comparison.host_facts
    );
    let part = Part {
        lines: if lasting.is_empty() { vec![same] } else { Vec::new() },
        findings: (lasting.iter())
            .map(|it| (&it.what, format!("{} → {}", or_dash(&it.a), or_dash(&it.b))))
            .map(|(what, change)| finding(Standing::Caution, what, change))
            .collect(),
        remark: match session.is_empty() {
            true => String::new(),
            false => format!("between the sessions: {}", session.join("; ")),
        },
        ..Part::default()
    };
    let parts = vec![part];
    Section { id: "environment", title: "Environment", remark: String::new(), parts }
}

fn or_dash(text: &str) -> &str {
    if text.is_empty() { format::WITHHELD } else { text }
}

fn verdicts(comparison: &Comparison, all: bool) -> Section {
    let counts = comparison.verdicts;
    let standing = match (comparison.is_worse(), counts.better) {
        (true, _) => Standing::Worse,
        (false, 1..) => Standing::Better,
        _ => Standing::NoDifference,
    };
    let figures: usize = comparison.cells.iter().map(|cell| cell.figures.len()).sum();
    let cells = plural(comparison.cells.len(), "cell");
    let subject = format!("{} of {cells}", plural(figures, "figure"));
    let said = format!(
        "{} worse, {} better, {} no difference, {} too noisy or too few runs, {} without a verdict",
        counts.worse, counts.better, counts.no_difference, counts.too_noisy, counts.no_verdict
    );
    let floor = comparison.floor_in_words();
    let floor = floor.map(|text| finding(Standing::Caution, "the floor moved", text));
    let hint = comparison.hint_in_words();
    let hint = hint.map(|text| finding(Standing::Caution, "one session each", text));
    let gone = comparison.no_longer_valid();
    let gone = gone.map(|cell| finding(Standing::Bad, "no longer valid in B", full(&cell.name)));
    let unanswered = comparison.unanswered().join("; ");
    let unanswered = (!unanswered.is_empty())
        .then(|| finding(Standing::Caution, "not everything of A was compared", unanswered));
    let is_other = |verdict: Option<Kind>| !verdict.is_some_and(Kind::is_significant);
    let others = comparison.figures(is_other);
    let more = (!all && !others.is_empty()).then(|| reasons(&others));
    let figures = Part {
        findings: std::iter::once(finding(standing, subject, said))
            .chain(hint)
            .chain(floor)
            .chain(gone)
            .chain(unanswered)
            .collect(),
        remark: format!(
            "{}. {}",
            comparison.rate_in_words().trim_end_matches('.'),
            legend(comparison.unit)
        ),
        tables: tables(comparison, all),
        ..Part::default()
    };
    let more = more.map(|lines| Part { lines, ..Part::default() });
    let parts = std::iter::once(figures).chain(more).chain(alone(comparison)).collect();
    Section { id: "verdicts", title: "Verdicts", remark: String::new(), parts }
}

/// The tables of differing figures; with `all`, also of the others.
fn tables(comparison: &Comparison, all: bool) -> Vec<Table> {
    let worse = comparison.rows(|verdict| verdict == Some(Kind::Worse));
    let mut better = comparison.rows(|verdict| verdict == Some(Kind::Better));
    better.reverse();
    let rest = |verdict: Option<Kind>| all && !verdict.is_some_and(Kind::is_significant);
    let tables = [
        ("Worse in B, worst first", worse),
        ("Better in B, best first", better),
        (
            "The rest: = no difference, ? too noisy or too few runs, · no verdict",
            comparison.rows(rest),
        ),
    ];
    let filled = tables.into_iter().filter(|(_, rows)| !rows.is_empty());
    filled.map(|(caption, rows)| table(caption, comparison, &rows)).collect()
}

/// The reasons why figures have no verdict or no definite one, each once, with the number of
/// figures.
fn reasons(figures: &[Found]) -> Vec<String> {
    let reasons = figures.iter().filter_map(|(_, it)| Some((it.reason.as_deref()?, ())));
    let mut counted = grouped(reasons);
    counted.sort_by_key(|(_, same)| std::cmp::Reverse(same.len()));
    let shown = counted.iter().take(REASONS_MAX);
    let shown = shown.map(|(reason, same)| format!("{}: {reason}", plural(same.len(), "figure")));
    let more = counted.len().checked_sub(REASONS_MAX + 1);
    let more = more.map(|more| format!("and {}", plural(more + 1, "other reason")));
    let all = format!("{} more: --all lists them", figures.len());
    shown.chain(more).chain([all]).collect()
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

/// The number of a note, from 1; none for an empty note.
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

/// Cells that only one folder has.
fn alone(comparison: &Comparison) -> impl Iterator<Item = Part> {
    let sides = [("A", &comparison.only_in_a), ("B", &comparison.only_in_b)];
    let filled = sides.into_iter().filter(|(_, cells)| !cells.is_empty());
    filled.map(|(side, cells)| {
        let count = plural(cells.len(), "cell");
        let shown = cells.iter().take(ALONE_MAX).map(|cell| format!("  {}", full(cell)));
        let more = cells.len().checked_sub(ALONE_MAX + 1);
        let more = more.map(|more| format!("  and {} more; --json has them", more + 1));
        Part {
            title: format!("only in {side}, and not compared: {count}"),
            lines: shown.chain(more).collect(),
            ..Part::default()
        }
    })
}

fn legend(unit: Unit) -> String {
    let units = match unit {
        Unit::Run => "runs",
        Unit::Session => "sessions",
    };
    format!(
        "A and B are medians of the {units}: latencies and CPU for each message in µs, memory in MB \
         (PSS). The interval of B/A is a bootstrap over {units} for each figure alone; p is corrected \
         for the number of figures."
    )
}

const REASONS_MAX: usize = 6;
const ALONE_MAX: usize = 12;
