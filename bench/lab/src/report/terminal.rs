//! Tables for a terminal, of a given width, with or without colour.

use super::document::{
    Column, Finding, Part, Row, Section, Standing, Table, TableCell, Tone, superscript,
};
use super::table::figures;
use super::view::View;
use super::{comparisons, validity};

/// What the terminal is able to show.
#[derive(Clone, Copy, Debug)]
pub struct Screen {
    /// Columns; tables are broken into blocks that fit.
    pub width: usize,
    /// Whether escape sequences may be used for colour, bold, faint and struck-out text.
    pub colour: bool,
}

impl Default for Screen {
    fn default() -> Self {
        Self { width: 100, colour: false }
    }
}

/// The tables of every group, then verdicts and doubts.
pub(super) fn render(view: &View, screen: Screen) -> String {
    let mut text: String = figures(view).iter().map(|part| figure(part, screen)).collect();
    text += &section(view.scorecard(), screen);
    text += &section(view.advice(), screen);
    text += &section(&comparisons::section(view), screen);
    text += &section(&validity::section(view), screen);
    text.trim_end().to_owned() + "\n"
}

fn figure(part: &Part, screen: Screen) -> String {
    let mut text = match part.title.is_empty() {
        true => String::new(),
        false => screen.paint(&part.title, BOLD) + "\n\n",
    };
    for table in &part.tables {
        text += &(print(table, screen) + "\n");
    }
    for caution in &part.cautions {
        text += &screen.wrap(caution, YELLOW);
    }
    if part.cautions.is_empty() { text } else { text + "\n" }
}

/// Nothing without parts.
fn section(section: &Section, screen: Screen) -> String {
    if section.parts.is_empty() {
        return String::new();
    }
    let mut text = screen.wrap(section.title, BOLD);
    for part in section.parts.iter().filter(|part| !part.is_detail) {
        if !part.title.is_empty() {
            text += &screen.wrap(&part.title, BOLD);
        }
        text += &findings(&part.findings, screen);
        if !part.remark.is_empty() {
            text += &screen.wrap(&part.remark, DIM);
        }
        text.extend(part.lines.iter().map(|line| screen.wrap(line, "")));
        text.extend(part.tables.iter().map(|table| print(table, screen)));
        text.push('\n');
    }
    if section.parts.iter().any(|part| part.is_detail) {
        text += &(screen.wrap("More of this is in the report.", "") + "\n");
    }
    text
}

fn findings(findings: &[Finding], screen: Screen) -> String {
    let mut text = String::new();
    for finding in findings {
        let line = format!("{} {}", sign(finding.standing), finding.sentence());
        text += &screen.wrap(&line, style_of(finding.standing));
        for particular in finding.particulars.iter().take(PARTICULARS_MAX) {
            text += &screen.wrap(&format!("          {particular}"), DIM);
        }
        if let Some(more) = finding.particulars.len().checked_sub(PARTICULARS_MAX + 1) {
            text += &screen.wrap(&format!("          and {} more: see the report", more + 1), DIM);
        }
    }
    text
}

/// A table in as many blocks as the width demands; columns under one heading stay together.
pub(crate) fn print(table: &Table, screen: Screen) -> String {
    let label_width = table.rows.iter().map(|row| width(&row.label)).max().unwrap_or(0);
    let mut text = screen.wrap(&table.caption, DIM);
    let room = screen.width.saturating_sub(label_width);
    for (place, block) in blocks(&spans(table, room), room).into_iter().enumerate() {
        text += if place > 0 { "\n" } else { "" };
        text += &print_block(table, block, label_width, screen);
    }
    for (place, note) in table.notes.iter().enumerate() {
        text += &screen.wrap(&format!("{} {note}", superscript(place + 1)), DIM);
    }
    text
}

fn print_block(table: &Table, block: &[Span], label_width: usize, screen: Screen) -> String {
    let mut heads = " ".repeat(label_width);
    let mut names = " ".repeat(label_width);
    for span in block {
        heads += GAP;
        heads += &match span.columns.len() {
            1 => format!("{:>width$}", span.heading, width = span.width()),
            _ => format!("{:<width$}", span.heading, width = span.width()),
        };
        for layout in &span.columns {
            names += &format!("{GAP}{:>width$}", layout.head, width = layout.width);
        }
    }
    let mut text = screen.paint(heads.trim_end(), BOLD) + "\n";
    if !names.trim().is_empty() {
        text += &format!("{}\n", names.trim_end());
    }
    text += &screen.paint(&"─".repeat(names.chars().count()), DIM);
    text.push('\n');
    let shown = || block.iter().flat_map(|span| &span.columns);
    let is_blank = |row: &Row| shown().all(|layout| row.cells[layout.index].main.is_empty());
    for row in table.rows.iter().filter(|row| !is_blank(row)) {
        text += &print_row(row, block, label_width, screen);
    }
    text
}

fn print_row(row: &Row, block: &[Span], label_width: usize, screen: Screen) -> String {
    let mut first = format!("{:>label_width$}", row.label);
    let mut second = " ".repeat(label_width);
    for layout in block.iter().flat_map(|span| &span.columns) {
        let cell = &row.cells[layout.index];
        first += GAP;
        first += &layout.figures(cell, screen);
        second += &format!("{GAP}{:>width$}", cell.small, width = layout.width);
    }
    let mut text = first.trim_end().to_owned() + "\n";
    if !second.trim().is_empty() {
        text += &screen.paint(second.trim_end(), DIM);
        text.push('\n');
    }
    text
}

/// Neighbouring columns under one heading.
struct Span {
    heading: String,
    columns: Vec<Layout>,
}

impl Span {
    fn width(&self) -> usize {
        let columns: usize = self.columns.iter().map(|column| column.width).sum();
        columns + GAP.len() * self.columns.len().saturating_sub(1)
    }
}

/// Widths of one column.
struct Layout {
    index: usize,
    head: String,
    width: usize,
    side_width: usize,
}

impl Layout {
    fn new(table: &Table, index: usize, column: &Column) -> Self {
        let cells = || table.rows.iter().map(|row| &row.cells[index]);
        let widest = |of: fn(&TableCell) -> usize| cells().map(of).max().unwrap_or(0);
        let side_width = widest(|cell| width(&cell.side));
        let figures = widest(|cell| width(&main(cell))) + side_width + usize::from(side_width > 0);
        let width = figures.max(widest(|cell| width(&cell.small))).max(width(&column.head));
        Self { index, head: column.head.clone(), width, side_width }
    }

    fn figures(&self, cell: &TableCell, screen: Screen) -> String {
        let side = match self.side_width {
            0 => String::new(),
            side_width => format!(" {:>side_width$}", cell.side),
        };
        let room = self.width - width(&side);
        let main = main(cell);
        let padding = " ".repeat(room.saturating_sub(width(&main)));
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

/// Columns under their headings; a heading too wide for the screen is repeated over several spans.
fn spans(table: &Table, room: usize) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    for (index, column) in table.columns.iter().enumerate() {
        let layout = Layout::new(table, index, column);
        let fits = |span: &&mut Span| {
            span.heading == column.group && 2 * GAP.len() + span.width() + layout.width <= room
        };
        match spans.last_mut().filter(fits) {
            Some(span) => span.columns.push(layout),
            None => spans.push(Span { heading: column.group.clone(), columns: vec![layout] }),
        }
    }
    for span in &mut spans {
        let lacking = width(&span.heading).saturating_sub(span.width());
        if let Some(last) = span.columns.last_mut() {
            last.width += lacking;
        }
    }
    spans
}

fn blocks(spans: &[Span], room: usize) -> Vec<&[Span]> {
    let mut blocks = Vec::new();
    let (mut start, mut used) = (0, 0);
    for (place, span) in spans.iter().enumerate() {
        let needed = GAP.len() + span.width();
        if place > start && used + needed > room {
            blocks.push(&spans[start..place]);
            (start, used) = (place, 0);
        }
        used += needed;
    }
    blocks.push(&spans[start..]);
    blocks
}

impl Screen {
    pub(crate) fn paint(self, text: &str, style: &str) -> String {
        match self.colour && !style.is_empty() {
            true => format!("\x1b[{style}m{text}\x1b[0m"),
            false => text.to_owned(),
        }
    }

    /// Breaks text at spaces; what follows the first line is indented like it, and by two more.
    pub(crate) fn wrap(self, text: &str, style: &str) -> String {
        let indent = text.len() - text.trim_start().len();
        let mut lines = vec![" ".repeat(indent)];
        // Not at a no-break space.
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

/// Words of checks are as long as the longest.
fn sign(standing: Standing) -> &'static str {
    match standing {
        Standing::Good => "good   ",
        Standing::Caution => "caution",
        Standing::Bad => "bad    ",
        Standing::Better => "+",
        Standing::Worse => "-",
        Standing::NoDifference => "=",
        Standing::TooNoisy | Standing::TooFewRuns => "?",
        Standing::NotCompared => "·",
    }
}

fn style_of(standing: Standing) -> &'static str {
    match standing {
        Standing::Good | Standing::Better => GREEN,
        Standing::Caution => YELLOW,
        Standing::Bad | Standing::Worse => RED,
        _ => "",
    }
}

/// Columns a text takes; everything printed here is one column wide per character.
fn width(text: &str) -> usize {
    text.chars().count()
}

/// Lines of detail under one item of validity; the page has them all.
const PARTICULARS_MAX: usize = 6;

const GAP: &str = "   ";

pub(crate) const BOLD: &str = "1";
pub(crate) const DIM: &str = "2";
const STRUCK: &str = "9;31";
pub(crate) const RED: &str = "31";
pub(crate) const GREEN: &str = "32";
pub(crate) const YELLOW: &str = "33";
