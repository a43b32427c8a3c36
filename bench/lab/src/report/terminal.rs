//! Tables for a terminal of a given width, with or without colour.

use std::ops::Range;

use super::document::{Finding, Part, Section, Standing, Table, TableCell, Tone, superscript};
use super::table::figures;
use super::view::View;
use super::{validity, verdicts};

/// What the terminal can show.
#[derive(Clone, Copy, Debug)]
pub struct Screen {
    /// Columns; wider tables are broken into blocks that fit.
    pub width: usize,
    /// Whether to use escape sequences for colour, bold, faint and struck-out text.
    pub colour: bool,
}

impl Default for Screen {
    fn default() -> Self {
        Self { width: 100, colour: false }
    }
}

/// The tables of every group, then scorecard, advice, verdicts and doubts.
pub(super) fn render(view: &View, extras: [&Section; 2], screen: Screen) -> String {
    let figures: String = figures(view).iter().map(|it| part(it, screen)).collect();
    let (verdicts, validity) = (verdicts::section(view), validity::section(view));
    let sections = extras.into_iter().chain([&verdicts, &validity]);
    let sections: String = sections.map(|it| section(it, screen)).collect();
    (figures + &sections).trim_end().to_owned() + "\n"
}

/// A section; empty if it has no parts.
pub(crate) fn section(section: &Section, screen: Screen) -> String {
    if section.parts.is_empty() {
        return String::new();
    }
    let mut text = screen.wrap(section.title, BOLD);
    let shown = section.parts.iter().filter(|part| !part.is_detail);
    text.extend(shown.map(|it| part(it, screen)));
    if section.parts.iter().any(|part| part.is_detail) {
        text += &(screen.wrap("The report has more.", "") + "\n");
    }
    text
}

/// A part, with an empty line below it and below each of its tables.
fn part(part: &Part, screen: Screen) -> String {
    let mut text = screen.wrap(&part.title, BOLD) + &findings(&part.findings, screen);
    text += &screen.wrap(&part.remark, DIM);
    text.extend(part.lines.iter().map(|line| screen.wrap(line, "")));
    text.extend(part.tables.iter().map(|table| print(table, screen) + "\n"));
    if part.tables.is_empty() { text + "\n" } else { text }
}

fn findings(findings: &[Finding], screen: Screen) -> String {
    let mut text = String::new();
    for finding in findings {
        let (sign, style) = look(finding.standing);
        text += &screen.wrap(&format!("{sign} {}", finding.sentence()), style);
        for particular in finding.particulars.iter().take(PARTICULARS_MAX) {
            text += &screen.wrap(&format!("          {particular}"), DIM);
        }
        if let Some(more) = finding.particulars.len().checked_sub(PARTICULARS_MAX + 1) {
            text += &screen.wrap(&format!("          and {} more: see the report", more + 1), DIM);
        }
    }
    text
}

/// A table in as many blocks as the width requires; columns under one heading stay together.
pub(crate) fn print(table: &Table, screen: Screen) -> String {
    let grid = Grid::new(table, screen);
    let blocks = grid.blocks().into_iter().map(|block| grid.block(block));
    let mut text = screen.wrap(&table.caption, DIM) + &blocks.collect::<Vec<_>>().join("\n");
    for (place, note) in table.notes.iter().enumerate() {
        text += &screen.wrap(&format!("{} {note}", superscript(place + 1)), DIM);
    }
    text
}

/// A table with the widths of its columns on a screen.
struct Grid<'t> {
    table: &'t Table,
    screen: Screen,
    label_width: usize,
    widths: Vec<usize>,
    /// Widths of the second figures.
    side_widths: Vec<usize>,
    /// Neighbouring columns under one heading.
    spans: Vec<Range<usize>>,
}

impl<'t> Grid<'t> {
    fn new(table: &'t Table, screen: Screen) -> Self {
        let of_column = |at: usize, of: fn(&TableCell) -> usize| {
            table.rows.iter().map(|row| of(&row.cells[at])).max().unwrap_or(0)
        };
        let side_widths = (0..table.columns.len()).map(|at| of_column(at, |it| width(&it.side)));
        let side_widths: Vec<usize> = side_widths.collect();
        let widths =
            table.columns.iter().zip(&side_widths).enumerate().map(|(at, (column, side))| {
                let figures = of_column(at, |it| width(&main(it))) + side + usize::from(*side > 0);
                figures.max(of_column(at, |it| width(&it.small))).max(width(&column.head))
            });
        let widths = widths.collect();
        let label_width = table.rows.iter().map(|row| width(&row.label)).max().unwrap_or(0);
        let mut grid = Self { table, screen, label_width, widths, side_widths, spans: Vec::new() };
        grid.span();
        grid
    }

    fn room(&self) -> usize {
        self.screen.width.saturating_sub(self.label_width)
    }

    fn heading(&self, span: &Range<usize>) -> &'t str {
        &self.table.columns[span.start].group
    }

    /// If the columns under a heading are too wide for the screen, the heading is repeated over
    /// several spans.
    fn span(&mut self) {
        for at in 0..self.widths.len() {
            let joined = self.spans.last().map(|last| last.start..at + 1).filter(|joined| {
                let is_same = self.heading(joined) == self.table.columns[at].group;
                is_same && self.width(joined) + GAP.len() <= self.room()
            });
            match joined {
                Some(joined) => {
                    *self.spans.last_mut().expect("a span was joined to the last one") = joined
                }
                None => self.spans.push(at..at + 1),
            }
        }
        for span in &self.spans {
            let lacking = width(self.heading(span)).saturating_sub(self.width(span));
            self.widths[span.end - 1] += lacking;
        }
    }

    fn width(&self, span: &Range<usize>) -> usize {
        self.widths[span.clone()].iter().sum::<usize>() + GAP.len() * (span.len() - 1)
    }

    fn blocks(&self) -> Vec<&[Range<usize>]> {
        let mut blocks = Vec::new();
        let (mut start, mut used) = (0, 0);
        for (place, span) in self.spans.iter().enumerate() {
            let needed = GAP.len() + self.width(span);
            if place > start && used + needed > self.room() {
                blocks.push(&self.spans[start..place]);
                (start, used) = (place, 0);
            }
            used += needed;
        }
        blocks.push(&self.spans[start..]);
        blocks
    }

    fn block(&self, block: &[Range<usize>]) -> String {
        let heads = block.iter().map(|span| match (self.heading(span), self.width(span)) {
            (heading, width) if span.len() == 1 => format!("{heading:>width$}"),
            (heading, width) => format!("{heading:<width$}"),
        });
        let columns: Vec<usize> = block.iter().cloned().flatten().collect();
        let under = |of: &dyn Fn(usize) -> String| self.line("", columns.iter().map(|&at| of(at)));
        let aligned = |text: &str, at: usize| format!("{text:>width$}", width = self.widths[at]);
        let names = under(&|at| aligned(&self.table.columns[at].head, at));
        let mut text = self.screen.paint(self.line("", heads).trim_end(), BOLD) + "\n";
        if !names.trim().is_empty() {
            text += &format!("{}\n", names.trim_end());
        }
        text += &(self.screen.paint(&"─".repeat(width(&names)), DIM) + "\n");
        for row in &self.table.rows {
            if columns.iter().all(|&at| row.cells[at].main.is_empty()) {
                continue;
            }
            let figures = columns.iter().map(|&at| self.figures(&row.cells[at], at));
            text += &format!("{}\n", self.line(&row.label, figures).trim_end());
            let small = under(&|at| aligned(&row.cells[at].small, at));
            if !small.trim().is_empty() {
                text += &(self.screen.paint(small.trim_end(), DIM) + "\n");
            }
        }
        text
    }

    fn line(&self, label: &str, columns: impl Iterator<Item = String>) -> String {
        let label = format!("{label:>width$}", width = self.label_width);
        columns.fold(label, |line, column| line + GAP + &column)
    }

    fn figures(&self, cell: &TableCell, at: usize) -> String {
        let side = match self.side_widths[at] {
            0 => String::new(),
            side_width => format!(" {:>side_width$}", cell.side),
        };
        let main = main(cell);
        let padding = " ".repeat(self.widths[at].saturating_sub(width(&main) + width(&side)));
        let screen = self.screen;
        match cell.tone {
            Tone::Better => padding + &screen.paint(&main, GREEN) + &side,
            Tone::Worse => padding + &screen.paint(&main, RED) + &side,
            Tone::Invalid => padding + &screen.paint(&(main + &side), STRUCK),
            Tone::Faint => padding + &screen.paint(&(main + &side), DIM),
            Tone::Plain | Tone::Minor => padding + &main + &side,
        }
    }
}

fn main(cell: &TableCell) -> String {
    let crossed = if cell.tone == Tone::Invalid { "✗" } else { "" };
    format!("{crossed}{}{}", cell.main, cell.mark.map(superscript).unwrap_or_default())
}

impl Screen {
    pub(crate) fn paint(self, text: &str, style: &str) -> String {
        match self.colour && !style.is_empty() {
            true => format!("\x1b[{style}m{text}\x1b[0m"),
            false => text.to_owned(),
        }
    }

    /// Breaks text at spaces; further lines are indented like the first, plus two columns. An empty
    /// text gives no lines.
    pub(crate) fn wrap(self, text: &str, style: &str) -> String {
        if text.is_empty() {
            return String::new();
        }
        let indent = text.len() - text.trim_start().len();
        let mut lines = vec![" ".repeat(indent)];
        // A no-break space does not break a line.
        for word in text.split([' ', '\n']).filter(|word| !word.is_empty()) {
            let line = lines.last_mut().expect("there is always a line");
            let blank = line.trim().is_empty();
            if !blank && width(line) + 1 + width(word) > self.width {
                lines.push(format!("{}{word}", " ".repeat(indent + 2)));
            } else {
                line.push_str(if blank { "" } else { " " });
                line.push_str(word);
            }
        }
        lines.iter().map(|line| self.paint(line, style) + "\n").collect()
    }
}

/// The sign of a finding, and its style; the words of checks have the same width.
fn look(standing: Standing) -> (&'static str, &'static str) {
    match standing {
        Standing::Good => ("good   ", GREEN),
        Standing::Caution => ("caution", YELLOW),
        Standing::Bad => ("bad    ", RED),
        Standing::Better => ("+", GREEN),
        Standing::Worse => ("-", RED),
        Standing::NoDifference => ("=", ""),
        Standing::TooNoisy | Standing::TooFewRuns => ("?", ""),
        Standing::NotCompared => ("·", ""),
    }
}

/// Width of a text in columns; every character printed here is one column wide.
fn width(text: &str) -> usize {
    text.chars().count()
}

/// Lines of detail below one check; the page shows all of them.
const PARTICULARS_MAX: usize = 6;

const GAP: &str = "   ";

pub(crate) const BOLD: &str = "1";
pub(crate) const DIM: &str = "2";
const STRUCK: &str = "9;31";
pub(crate) const RED: &str = "31";
pub(crate) const GREEN: &str = "32";
pub(crate) const YELLOW: &str = "33";
