//! The glance on a terminal: one screen for one scenario.

use super::Glance;
use super::axis::Axis;
use super::picture::{Curves, Drawing, Mark, Picture, Ranking, Section};
use crate::report::terminal::{BOLD, DIM, GREEN, RED, Screen, YELLOW};
use crate::report::validity::Level;
use crate::report::words;

/// The whole of it.
pub(in crate::report) fn render(glance: &Glance, screen: Screen) -> String {
    let whole = printed(glance, screen, 0);
    match whole.lines().count().saturating_sub(LINES_MAX) {
        excess if excess > 0 && glance.pictures.len() == 1 => printed(glance, screen, excess + 1),
        _ => whole,
    }
}

/// Without so many rows of the largest section.
fn printed(glance: &Glance, screen: Screen, left_out: usize) -> String {
    let mut text = screen.wrap(&glance.title, BOLD);
    text += &screen.wrap(&glance.circumstances, DIM);
    for picture in &glance.pictures {
        if glance.pictures.len() > 1 {
            text += &format!("\n{}", screen.wrap(picture.scenario, BOLD));
        }
        text += &match &picture.drawing {
            Drawing::Ranking(ranking) => {
                Layout { left_out, ..Layout::new(picture, ranking, screen) }.print()
            }
            Drawing::Curves(panels) => {
                panels.iter().map(|panel| curves(picture, panel, screen)).collect()
            }
        };
    }
    text.push('\n');
    for sentence in &glance.sentences {
        text += &screen.wrap(&sentence.text(), "");
    }
    text + &trust(glance, screen)
}

fn trust(glance: &Glance, screen: Screen) -> String {
    let trust = &glance.trust;
    let style = if trust.level == Level::Bad { RED } else { GREEN };
    let verdict = format!("{} {}: {}", trust.sign(), trust.words(), trust.finding);
    let mut text = screen.wrap(&verdict, style);
    let shown: Vec<String> = trust.to_know.iter().take(TO_KNOW_MAX).map(|it| cut(it)).collect();
    let more = match trust.to_know.len().saturating_sub(TO_KNOW_MAX) {
        0 => String::new(),
        more => format!(" And {more} more: --verbose."),
    };
    if !shown.is_empty() {
        text += &screen.wrap(&format!("! To know: {}.{more}", shown.join(". ")), YELLOW);
    }
    text
}

fn cut(text: &str) -> String {
    match text.chars().count() > DOUBT_MAX {
        true => text.chars().take(DOUBT_MAX - 1).chain(['…']).collect(),
        false => text.to_owned(),
    }
}

/// A ranking in columns: names, a line for the first panel, figures of all, cost of the first.
struct Layout<'p, 'a> {
    picture: &'p Picture<'a>,
    ranking: &'p Ranking<'a>,
    screen: Screen,
    label_width: usize,
    /// Columns of the line; 0 if there is no room for one.
    line_width: usize,
    axis: Axis,
    /// Rows of the largest section that there is no room for.
    left_out: usize,
}

impl<'p, 'a> Layout<'p, 'a> {
    fn new(picture: &'p Picture<'a>, ranking: &'p Ranking<'a>, screen: Screen) -> Self {
        let rows = || ranking.sections.iter().flat_map(|section| &section.rows);
        let label_width = rows().map(|row| row.system.name.chars().count()).max().unwrap_or(0) + 2;
        let figures = ranking.panels.len() * PANEL_WIDTH + COST_WIDTH;
        let room = WIDTH_MAX.min(screen.width).saturating_sub(label_width + figures + GAP);
        let marks = rows().filter_map(|row| row.mark(0));
        let ends = marks.flat_map(|mark| [mark.low, mark.high.unwrap_or(mark.low)]);
        let floors = ranking.sections.iter().filter_map(|section| *section.floors.first()?);
        let axis = Axis::new(ends.chain(floors));
        let line_width = if room >= LINE_MIN { room } else { 0 };
        Self { picture, ranking, screen, label_width, line_width, axis, left_out: 0 }
    }

    fn print(&self) -> String {
        let mut text = self.heads();
        let largest = self.ranking.sections.iter().map(|section| section.rows.len()).max();
        for section in &self.ranking.sections {
            let is_largest = Some(section.rows.len()) == largest;
            let left_out = if is_largest { self.left_out.min(section.rows.len()) } else { 0 };
            text += &self.section(section, section.rows.len() - left_out);
            if left_out > 0 {
                let width = self.label_width;
                text += &format!("{:>width$}: --verbose\n", format!("… and {left_out} slower"));
            }
        }
        text
    }

    fn heads(&self) -> String {
        let quantity = self.picture.quantity;
        let tuning = match self.picture.tunings.as_slice() {
            [.., last] if self.picture.tunings.len() > 1 => format!(", {last}"),
            _ => String::new(),
        };
        let axis = format!("● {} ━ {}{tuning}", quantity.low, quantity.high);
        let mut text = pad("", self.label_width);
        if self.line_width > 0 {
            text += &format!(" {}", pad(&axis, self.line_width));
        }
        for panel in &self.ranking.panels {
            text += &format!("{:>PANEL_WIDTH$}", panel.label);
        }
        text += &format!("{:>7}{:>6}", "CPU µs", "MB");
        self.screen.paint(&text, BOLD) + "\n"
    }

    fn section(&self, section: &Section, rows: usize) -> String {
        let floor = section.floor.as_ref().map(|name| format!(" · floor {name}"));
        let title = format!("{}{}", section.title, floor.unwrap_or_default());
        let axis_floor = section.floors.first().copied().flatten();
        let mut head = pad(&title, self.label_width);
        let taken = title.chars().count().saturating_sub(self.label_width);
        if self.line_width > 0 {
            let line = self.line(None, axis_floor);
            head += &line.chars().skip(taken).collect::<String>();
        }
        for floor in &section.floors {
            let floor = floor.map(|floor| self.picture.quantity.brief(floor)).unwrap_or_default();
            head += &format!("{floor:>7}{:>7}", "");
        }
        let mut text = self.screen.paint(head.trim_end(), DIM) + "\n";
        for row in &section.rows[..rows] {
            let mut line = format!("{:>width$}", row.system.name, width = self.label_width);
            if self.line_width > 0 {
                line += &self.line(row.mark(0), axis_floor);
            }
            for panel in 0..self.ranking.panels.len() {
                let ends = row.mark(panel).map(|mark| self.picture.quantity.ends(mark));
                let [low, high] = ends.unwrap_or_else(|| [words::WITHHELD, ""].map(str::to_owned));
                line += &format!("{low:>7}{high:>7}");
            }
            if let Some(mark) = row.mark(0) {
                line += &format!("{:>7}{:>6}", mark.cpu(), mark.memory());
            }
            text += &(line.trim_end().to_owned() + "\n");
        }
        text
    }

    /// One place wider than the line: a space comes first.
    fn line(&self, mark: Option<&Mark>, floor: Option<f64>) -> String {
        let mut line = vec![' '; self.line_width];
        let last = (self.line_width - 1) as f64;
        let place = |value: f64| (self.axis.share(value) * last).round() as usize;
        if let Some(floor) = floor {
            line[place(floor)] = '┊';
        }
        if let Some(mark) = mark {
            let (from, to) = (place(mark.low), place(mark.high.unwrap_or(mark.low)));
            for at in &mut line[from.min(to)..=from.max(to)] {
                *at = '━';
            }
            line[from] = '●';
        }
        std::iter::once(' ').chain(line).collect()
    }
}

/// A table of medians: systems by values of the parameter.
fn curves(picture: &Picture, panel: &Curves, screen: Screen) -> String {
    let shown = panel.curves.iter();
    let label_width = shown.map(|curve| curve.system.chars().count()).max().unwrap_or(0) + 2;
    let room = (WIDTH_MAX.min(screen.width) - label_width) / COLUMN_WIDTH;
    let values: Vec<&(f64, String)> = panel.labelled(room).collect();
    let unit = if picture.quantity.is_rate { "" } else { ", µs" };
    let title =
        format!("{} against {}{unit}: {}", picture.quantity.low, panel.parameter, panel.title());
    let mut text = screen.wrap(&title, DIM);
    let mut heads = pad("", label_width);
    for (_, label) in &values {
        heads += &format!("{label:>COLUMN_WIDTH$}");
    }
    text += &(screen.paint(heads.trim_end(), BOLD) + "\n");
    let mut marked = Marked::default();
    for curve in &panel.curves {
        let mut line = format!("{:>label_width$}", curve.system);
        for (value, _) in &values {
            let mark = curve.marks.iter().find(|(x, _)| x == value).map(|(_, mark)| mark);
            let figure = mark.map_or_else(String::new, |mark| {
                let sign = marked.sign(mark);
                format!("{}{sign}", picture.quantity.brief(mark.low))
            });
            line += &format!("{figure:>COLUMN_WIDTH$}");
        }
        let style = if curve.is_floor { DIM } else { "" };
        text += &(screen.paint(line.trim_end(), style) + "\n");
    }
    text + &marked.legend(screen)
}

/// What signs stand for that were used.
#[derive(Default)]
struct Marked {
    is_short: bool,
    is_lost: bool,
}

impl Marked {
    fn sign(&mut self, mark: &Mark) -> &'static str {
        let (short, lost) = (mark.entry.short_of_rate().is_some(), mark.is_lossy());
        self.is_short |= short;
        self.is_lost |= lost && !short;
        match (short, lost) {
            (true, _) => "*",
            (false, true) => "†",
            (false, false) => "",
        }
    }

    fn legend(&self, screen: Screen) -> String {
        let parts =
            [(self.is_short, "* short of its rate"), (self.is_lost, "† some messages lost")];
        let parts: Vec<&str> = parts.iter().filter(|part| part.0).map(|part| part.1).collect();
        if parts.is_empty() { String::new() } else { screen.wrap(&parts.join(" · "), DIM) }
    }
}

fn pad(text: &str, width: usize) -> String {
    let lacking = width.saturating_sub(text.chars().count());
    format!("{text}{}", " ".repeat(lacking))
}

/// A screen.
const WIDTH_MAX: usize = 100;
/// Two figures.
const PANEL_WIDTH: usize = 14;
const COST_WIDTH: usize = 13;
const COLUMN_WIDTH: usize = 9;
const GAP: usize = 1;
/// A line that is shorter says nothing.
const LINE_MIN: usize = 16;
const TO_KNOW_MAX: usize = 2;
/// Characters of one doubt.
const DOUBT_MAX: usize = 80;
/// One screen, with the path of the report below it.
const LINES_MAX: usize = 39;
