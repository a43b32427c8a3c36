//! The glance on a terminal: one screen for one scenario.

use std::fmt::Display;

use console::truncate_str;

use super::Glance;
use super::axis::{Axis, Tick};
use super::picture::{Curves, Drawing, Mark, Picture, RankedSystem, Ranking, WaitClass, thinned};
use crate::report::document::Standing;
use crate::report::format;
use crate::report::terminal::{BOLD, DIM, GREEN, RED, Screen, YELLOW};

pub(in crate::report) fn render(glance: &Glance, screen: Screen) -> String {
    let whole = printed(glance, screen, 0);
    match whole.lines().count().saturating_sub(LINES_MAX) {
        // A narrower screen has fewer lines, too.
        excess if excess > 0 && glance.pictures.len() == 1 && screen.width >= WIDTH_MAX => {
            printed(glance, screen, excess + 1)
        }
        _ => whole,
    }
}

/// The text, without `left_out` rows of the largest section.
fn printed(glance: &Glance, screen: Screen, left_out: usize) -> String {
    let mut text = screen.wrap(&glance.title, BOLD);
    text += &screen.wrap(&glance.circumstances, DIM);
    let has_several = glance.pictures.len() > 1;
    for (place, picture) in glance.pictures.iter().enumerate() {
        if has_several {
            text += &format!("\n{}", screen.wrap(picture.scenario, BOLD));
        }
        text += &match &picture.drawing {
            Drawing::Ranking(ranking) => ranked(picture, ranking, screen, left_out),
            Drawing::Curves(panels) => {
                panels.iter().map(|panel| curves(picture, panel, screen)).collect()
            }
        };
        // The signs are explained once, below the first picture.
        if place == 0 {
            text.push('\n');
            text.extend(
                glance.sentences.iter().map(|it| screen.wrap(&format!("{} {}", it.0, it.1), "")),
            );
        }
    }
    if has_several {
        text.push('\n');
    }
    text + &trust(glance, screen)
}

fn trust(glance: &Glance, screen: Screen) -> String {
    let trust = &glance.trust;
    let style = if trust.level == Standing::Bad { RED } else { GREEN };
    let verdict = format!("{} {}: {}", trust.sign, trust.verdict, trust.finding);
    let mut text = screen.wrap(&verdict, style);
    let (serious, minor) = trust.doubts.split_at(trust.serious);
    for doubt in serious {
        text += &screen.wrap(&format!("! {}", cut(doubt, SERIOUS_MAX)), YELLOW);
    }
    let missing = (!trust.unmeasured.is_empty()).then(|| not_measured(&trust.unmeasured));
    let has_room = serious.is_empty() || missing.is_none();
    let note = minor.first().filter(|_| has_room);
    let note = note.map(|doubt| format!("Note: {}", cut(doubt, DOUBT_MAX)));
    let more = match minor.len() - usize::from(note.is_some()) {
        0 => None,
        more => Some(format!("And {more} more: --verbose.")),
    };
    let rest = [missing, note, more].into_iter().flatten().collect::<Vec<_>>().join(" ");
    if !rest.is_empty() {
        text += &screen.wrap(&format!("! {rest}"), YELLOW);
    }
    text
}

/// The systems that could not run, with what to install as long as that is short. The command at the
/// end has it all.
fn not_measured(systems: &[(String, String)]) -> String {
    let mut text = "Not measured: ".to_owned();
    let mut left = MISSING_MAX;
    let named = systems.iter().map(|(names, reason)| {
        let length = names.chars().count() + reason.chars().count();
        match left.checked_sub(length) {
            Some(rest) => {
                left = rest;
                format!("{names}: {reason}")
            }
            None => names.clone(),
        }
    });
    text += &named.collect::<Vec<_>>().join("; ");
    let lacks = systems.iter().any(|(_, reason)| !text.contains(reason));
    text + if lacks { "; how to: myelin bench list systems." } else { "." }
}

/// The text as a sentence, without the words beyond so many characters.
fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => {
            let whole = text[..end].rsplit_once(' ').map_or(&text[..end], |(whole, _)| whole);
            format!("{} …", whole.trim_end_matches([',', ';', ':']))
        }
        None => format!("{text}."),
    }
}

/// A ranking in columns: names, a line for the first panel, figures of all panels, costs of the
/// first.
fn ranked(picture: &Picture, ranking: &Ranking, screen: Screen, left_out: usize) -> String {
    if ranking.sections.is_empty() {
        return screen.wrap("Nothing is complete yet.", DIM);
    }
    let layout = Layout::new(ranking, screen);
    let mut text = screen.paint(&layout.heads(picture), BOLD) + "\n";
    let largest = ranking.sections.iter().map(|section| section.rows.len()).max();
    for section in &ranking.sections {
        text += &(screen.paint(&layout.section(section), DIM) + "\n");
        let is_largest = Some(section.rows.len()) == largest;
        let left_out = if is_largest { left_out.min(section.rows.len()) } else { 0 };
        for row in &section.rows[..section.rows.len() - left_out] {
            text += &(layout.row(section, row) + "\n");
        }
        if left_out > 0 {
            let width = layout.label_width;
            text += &format!("{:>width$}: --verbose\n", format!("… and {left_out} slower"));
        }
    }
    let further = ranking.further + ranking.panels.len() - layout.heads.len();
    if further > 0 {
        let further = format::plural(further, "further point");
        text += &screen.wrap(&format!("{further}: --verbose"), DIM);
    }
    text
}

struct Layout {
    label_width: usize,
    /// Width of the line in columns; 0 if there is no room for a line.
    line_width: usize,
    /// Labels of the panels for which there is room, each in as many lines as it needs.
    heads: Vec<Vec<String>>,
    /// Width of two figures and their heading.
    panel_width: usize,
    /// Whether there is room for CPU and memory.
    has_costs: bool,
    /// Width of the screen.
    width: usize,
    axis: Axis,
}

impl Layout {
    fn new(ranking: &Ranking, screen: Screen) -> Self {
        let rows = || ranking.sections.iter().flat_map(|section| &section.rows);
        let names = widest(rows().map(|row| row.system.name)) + 2;
        let label_width = names.min(screen.width.saturating_sub(PANEL_WIDTH)).max(LABEL_MIN);
        let are_short = ranking.panels.iter().all(|panel| panel.chars().count() < PANEL_WIDTH);
        let separator = if are_short { "\n" } else { ", " };
        let heads =
            ranking.panels.iter().map(|it| it.split(separator).map(str::to_owned).collect());
        let mut heads: Vec<Vec<String>> = heads.collect();
        let panel_width = PANEL_WIDTH.max(widest(heads.iter().flatten().map(String::as_str)) + 1);
        let costs = rows().filter_map(|row| row.mark(0)).flat_map(|it| [&it.cpu, &it.memory]);
        let is_known = costs.into_iter().any(|cost| cost != format::WITHHELD);
        let has_costs = is_known && label_width + panel_width + COST_WIDTH <= screen.width;
        let cost_width = if has_costs { COST_WIDTH } else { 0 };
        let room = WIDTH_MAX.min(screen.width).saturating_sub(label_width + cost_width);
        heads.truncate((room / panel_width).max(1));
        let room = room.saturating_sub(heads.len() * panel_width + GAP);
        let marks = rows().filter_map(|row| row.mark(0)).flat_map(|mark| mark.ends);
        let floors = ranking.sections.iter().filter_map(WaitClass::first_floor);
        let axis = Axis::new(marks.chain(floors));
        let line_width = if room >= LINE_MIN { room } else { 0 };
        let width = screen.width;
        Self { label_width, line_width, heads, panel_width, has_costs, width, axis }
    }

    fn heads(&self, picture: &Picture) -> String {
        let quantity = picture.quantity;
        let tuning = match picture.tunings.as_slice() {
            [_, .., last] => format!(", {last}"),
            _ => String::new(),
        };
        let axis = format!(" ● {} ━ {}", quantity.low, quantity.high);
        let width = if self.line_width > 0 { self.line_width + GAP } else { 0 };
        let axis = [axis.clone() + &tuning, axis, String::new()];
        let axis = axis.iter().find(|it| it.chars().count() <= width).expect("the last is empty");
        let axis = pad(axis, width);
        let line = |below: usize| {
            let head = |lines: &Vec<String>| match lines.len().checked_sub(below + 1) {
                Some(at) => (lines[at].clone(), self.panel_width),
                None => (String::new(), self.panel_width),
            };
            let heads = self.heads.iter().map(head);
            let cost = [("CPU µs", FIGURE_WIDTH), ("MB", MEMORY_WIDTH)];
            let cost = cost.map(|(head, width)| (head.to_owned(), width));
            let cost = cost.into_iter().filter(|_| self.has_costs);
            match below {
                0 => aligned(pad("", self.label_width) + &axis, heads.chain(cost)),
                _ => aligned(pad("", self.label_width + axis.chars().count()), heads),
            }
        };
        let depth = self.heads.iter().map(Vec::len).max().unwrap_or(1);
        (0..depth).rev().map(line).collect::<Vec<_>>().join("\n")
    }

    fn section(&self, section: &WaitClass) -> String {
        let floor = section.floor.as_ref().map(|name| format!(" · floor {name}"));
        let whole = self.titled(section, format!("{}{}", section.title, floor.unwrap_or_default()));
        if whole.chars().count() <= self.width {
            return whole;
        }
        self.titled(section, section.title.to_owned())
    }

    /// The title of a section, and the figures of its floor.
    fn titled(&self, section: &WaitClass, title: String) -> String {
        let taken = title.chars().count().saturating_sub(self.label_width);
        let line = self.line(section, None).chars().skip(taken).collect::<String>();
        let left = pad(&title, self.label_width) + &line;
        // Without a line, the title uses the width of the columns.
        let widths = self.label_width + self.line(section, None).chars().count();
        let mut excess = left.chars().count().saturating_sub(widths);
        let floors = section.floors.iter().take(self.heads.len()).flat_map(|floor| {
            let figure = floor.as_ref().map_or("", |(_, figure)| figure);
            [(figure, self.panel_width - FIGURE_WIDTH), ("", FIGURE_WIDTH)]
        });
        let cells = floors.map(|(figure, width)| {
            let least = if figure.is_empty() { 0 } else { figure.chars().count() + 1 };
            let taken = excess.min(width.saturating_sub(least));
            excess -= taken;
            (figure, width - taken)
        });
        aligned(left, cells)
    }

    fn row(&self, section: &WaitClass, row: &RankedSystem) -> String {
        let label = truncate_str(row.system.name, self.label_width.saturating_sub(1), "…");
        let label = format!("{label:>width$}", width = self.label_width);
        let panels = (0..self.heads.len()).flat_map(|panel| {
            let mark = row.mark(panel).map(|mark| mark.figures.each_ref().map(String::as_str));
            let [low, high] = mark.unwrap_or([format::WITHHELD, ""]);
            [(low, self.panel_width - FIGURE_WIDTH), (high, FIGURE_WIDTH)]
        });
        let cost = row
            .mark(0)
            .filter(|_| self.has_costs)
            .map(|it| [(&*it.cpu, FIGURE_WIDTH), (&*it.memory, MEMORY_WIDTH)]);
        let cells = panels.chain(cost.into_iter().flatten());
        aligned(label + &self.line(section, row.mark(0)), cells)
    }

    /// The line, one column wider for a space in front. Empty if there is no room.
    fn line(&self, section: &WaitClass, mark: Option<&Mark>) -> String {
        let Some(last) = self.line_width.checked_sub(1) else { return String::new() };
        let mut line = vec![' '; self.line_width];
        let place = |value: f64| (self.axis.share(value) * last as f64).round() as usize;
        if let Some(floor) = section.first_floor() {
            line[place(floor)] = '┊';
        }
        if let Some(mark) = mark {
            let [from, to] = mark.ends.map(place);
            line[from.min(to)..=from.max(to)].fill('━');
            line[from] = '●';
        }
        std::iter::once(' ').chain(line).collect()
    }
}

/// A table of medians: systems by values of the parameter.
fn curves(picture: &Picture, panel: &Curves, screen: Screen) -> String {
    let label_width = widest(panel.curves.iter().map(|curve| curve.system)) + 2;
    let room = WIDTH_MAX.min(screen.width).saturating_sub(label_width) / COLUMN_WIDTH;
    let values: Vec<&Tick> = thinned(&panel.values, room).collect();
    let unit = if picture.quantity.is_rate { "" } else { ", µs" };
    let title =
        format!("{} against {}{unit}: {}", picture.quantity.low, panel.parameter, panel.title);
    let mut text = screen.wrap(&title, DIM);
    let heads = values.iter().map(|it| (&it.label, COLUMN_WIDTH));
    text += &(screen.paint(&aligned(pad("", label_width), heads), BOLD) + "\n");
    for curve in &panel.curves {
        let figures = values.iter().map(|value| {
            let mark = curve.marks.iter().find(|(x, _)| x.value == value.value);
            let figure = mark.map(|(_, mark)| format!("{}{}", mark.figures[0], sign(mark)));
            (figure.unwrap_or_default(), COLUMN_WIDTH)
        });
        let line = aligned(format!("{:>label_width$}", curve.system), figures);
        let style = if curve.is_floor { DIM } else { "" };
        text += &(screen.paint(&line, style) + "\n");
    }
    let used = SIGNS.iter().filter(|(sign, _)| text.contains(sign));
    let legend: Vec<String> = used.map(|(sign, words)| format!("{sign} {words}")).collect();
    text + &screen.wrap(&legend.join(" · "), DIM)
}

/// The sign of a cell whose latency is not the whole result; see [`SIGNS`].
fn sign(mark: &Mark) -> &'static str {
    match (mark.entry.short_of_rate().is_some(), mark.is_lossy()) {
        (true, _) => SIGNS[0].0,
        (false, true) => SIGNS[1].0,
        (false, false) => "",
    }
}

/// A text at the left, and right-aligned texts in columns of the given widths.
fn aligned<T: Display>(left: String, cells: impl IntoIterator<Item = (T, usize)>) -> String {
    let line =
        cells.into_iter().fold(left, |line, (text, width)| line + &format!("{text:>width$}"));
    line.trim_end().to_owned()
}

fn widest<'a>(texts: impl Iterator<Item = &'a str>) -> usize {
    texts.map(|text| text.chars().count()).max().unwrap_or(0)
}

fn pad(text: &str, width: usize) -> String {
    format!("{text:<width$}")
}

/// The signs and their meaning.
const SIGNS: [(&str, &str); 2] = [("*", "short of its rate"), ("†", "some messages lost")];
/// Width of a screen.
const WIDTH_MAX: usize = 100;
const FIGURE_WIDTH: usize = 7;
/// Two figures.
const PANEL_WIDTH: usize = 2 * FIGURE_WIDTH;
const MEMORY_WIDTH: usize = 6;
const COST_WIDTH: usize = FIGURE_WIDTH + MEMORY_WIDTH;
const COLUMN_WIDTH: usize = 9;
const GAP: usize = 1;
/// A shorter name says nothing.
const LABEL_MIN: usize = 8;
/// A shorter line shows nothing.
const LINE_MIN: usize = 12;
/// Characters of the systems that could not run, with their reasons.
const MISSING_MAX: usize = 160;
/// Characters of a doubt that makes the verdict bad.
const SERIOUS_MAX: usize = 94;
/// Characters of one doubt.
const DOUBT_MAX: usize = 80;
/// One screen, with room for the path of the report below.
const LINES_MAX: usize = 39;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_to_install_is_named_as_long_as_there_is_room() {
        let named = |systems: &[(&str, &str)]| {
            let owned = systems.iter().map(|(names, why)| ((*names).into(), (*why).into()));
            not_measured(&owned.collect::<Vec<_>>())
        };
        let apt = "not installed: apt-get install libzmq3-dev";
        let one = named(&[("zeromq.*", apt)]);
        assert_eq!(one, format!("Not measured: zeromq.*: {apt}."));
        let long = "build it ".repeat(MISSING_MAX);
        let all = named(&[("ecal.*", &long), ("zeromq.*", apt)]);
        let expected =
            format!("Not measured: ecal.*; zeromq.*: {apt}; how to: myelin bench list systems.");
        assert_eq!(all, expected);
    }

    #[test]
    fn a_doubt_is_cut_between_words() {
        assert_eq!(cut("p99 of 8 cells withheld", DOUBT_MAX), "p99 of 8 cells withheld.");
        let long = format!("{}, or only one run", "x".repeat(DOUBT_MAX - 8));
        assert_eq!(cut(&long, DOUBT_MAX), format!("{}, or …", "x".repeat(DOUBT_MAX - 8)));
    }
}
