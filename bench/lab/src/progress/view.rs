//! What the live view shows, as lines of text for a screen of a given size.
//!
//! ```text
//! last runs                                        p50 µs   p99 µs    CPU %     lost
//!   os.pipe default 64B 2/3                          9.41     31.2     88.1        0
//! ! os.udp default 64B 1/3                           19.0     77.0     91.0        3
//!
//! ▸ quick os.udp default 64B, run 2 of 3
//!   p50 19.2 µs  p99 80.1 µs  of each round trip  lost 0 of 8192  messages 9000 of 20 000
//!   CPU ping 44.10 %  pong 46.20 %
//!   [████████████░░░░░░░░░░░░░░░░░░]  41 %  4/9 runs  12 s done, 17 s left
//! ```

use std::collections::VecDeque;

use myelin_bench_kit::protocol::Workload;

use super::look::Figures;
use crate::plan::size::words;
use crate::report::words::{count, cpu_percent, us_or_dash};
use crate::summary::Cell;

/// Which run it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Title {
    /// The scenario.
    pub scenario: String,
    /// System, tuning and parameter point.
    pub cell: String,
    /// Which of the cell's runs, from 1.
    pub run: u32,
    /// How many are planned.
    pub runs: u32,
}

/// What a run has yielded.
#[derive(Clone, Debug, PartialEq)]
pub struct Finished {
    /// `None` where it was withheld.
    pub p50_us: Option<f64>,
    /// See `p50_us`.
    pub p99_us: Option<f64>,
    /// All processes; 100 is one core. `None` of a run that failed.
    pub cpu_percent: Option<f64>,
    /// Messages.
    pub lost: u64,
    /// Whether it may be believed.
    pub verdict: Verdict,
}

impl Finished {
    /// Of a cell with one run, which may have failed.
    pub fn of(cell: &Cell, has_failed: bool) -> Self {
        let latency = match cell.workload {
            Workload::Roundtrip => &cell.round_trip_us,
            Workload::Publish => &cell.write_us,
            _ => &cell.one_way_us,
        };
        Finished {
            p50_us: latency.and_then(|latency| latency.p50),
            p99_us: latency.and_then(|latency| latency.p99),
            cpu_percent: (!has_failed).then_some(cell.cpu_percent),
            lost: cell.lost,
            verdict: match (has_failed, cell.valid) {
                (true, _) => Verdict::Failed,
                (false, true) => Verdict::Valid,
                (false, false) => Verdict::Invalid,
            },
        }
    }
}

/// Whether a run may be believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may.
    Valid,
    /// It may not.
    Invalid,
    /// It did not come to its end.
    Failed,
}

/// How far a session is.
#[derive(Clone, Debug, Default)]
pub(super) struct Time {
    pub(super) runs: usize,
    pub(super) runs_all: usize,
    /// 0 to 1.
    pub(super) part: f64,
    pub(super) elapsed_s: f64,
    pub(super) left_s: f64,
}

/// All there is to be shown.
#[derive(Default)]
pub(super) struct State {
    now: Option<Title>,
    pub(super) figures: Option<Figures>,
    /// The latest last.
    finished: VecDeque<(Title, Finished)>,
    pub(super) time: Time,
}

impl State {
    pub(super) fn begin(&mut self, title: Title) {
        (self.now, self.figures) = (Some(title), None);
    }

    /// The run in progress is over.
    pub(super) fn finish(&mut self, finished: Option<Finished>) {
        self.figures = None;
        self.finished.extend(self.now.take().zip(finished));
        let old = self.finished.len().saturating_sub(FINISHED_MAX);
        self.finished.drain(..old);
    }
}

/// How a line is to be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tone {
    Plain,
    Heading,
    Now,
    Bad,
}

/// A line, which fits into a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) text: String,
    pub(super) tone: Tone,
}

/// The lines of a screen with so many rows and columns. Where there is little room, how far it is
/// and which run it is stay longest.
pub(super) fn lines(state: &State, rows: usize, columns: usize) -> Vec<Line> {
    let fitting = |text: String, tone| Line { text: fit(&text, columns), tone };
    let bar = bar(&state.time, columns);
    let mut now = Vec::new();
    if let Some(title) = &state.now {
        let Title { scenario, cell, run, runs } = title;
        let text = format!("▸ {scenario} {cell}, run {run} of {runs}");
        now.push(fitting(text, Tone::Now));
        let figures = state.figures.as_ref().map(|figures| figure_lines(figures, columns));
        let figures = figures.into_iter().flatten();
        now.extend(figures.map(|text| fitting(text, Tone::Plain)));
    }
    now.truncate(rows.saturating_sub(bar.len()));
    let room = rows.saturating_sub(now.len() + bar.len() + 1);
    let mut all = table(&state.finished, room, columns);
    if !all.is_empty() {
        all.push(fitting(String::new(), Tone::Plain));
    }
    all.extend(now);
    all.extend(bar.into_iter().map(|text| fitting(text, Tone::Plain)));
    all.truncate(rows);
    all
}

fn figure_lines(figures: &Figures, columns: usize) -> Vec<String> {
    let us = |value: Option<f64>| match value {
        Some(_) => format!("{} µs", us_or_dash(value)),
        None => us_or_dash(value),
    };
    let mut latency = vec![
        format!("p50 {}", us(figures.p50_us)),
        format!("p99 {}", us(figures.p99_us)),
        format!("of each {}", figures.of),
    ];
    if let Some((looked, lost)) = figures.lost {
        latency.push(format!("lost {} of {}", count(lost), count(looked)));
    }
    latency.push(match (figures.is_warming_up, figures.messages_all) {
        (true, _) => "warming up".to_owned(),
        (false, 0) => format!("messages {}", count(figures.messages)),
        (false, all) => format!("messages {} of {}", count(figures.messages), count(all)),
    });
    let mut cpu: Vec<String> = (figures.cpu_percent.iter())
        .map(|(name, percent)| format!("{name} {} %", cpu_percent(*percent)))
        .collect();
    if let Some(first) = cpu.first_mut() {
        first.insert_str(0, "CPU ");
    }
    let mut lines = wrap(&latency, columns.saturating_sub(INDENT.len()));
    lines.extend(wrap(&cpu, columns.saturating_sub(INDENT.len())));
    lines.into_iter().map(|line| format!("{INDENT}{line}")).collect()
}

fn bar(time: &Time, columns: usize) -> Vec<String> {
    let parts = [
        format!("{:>3.0} %", 100.0 * time.part),
        format!("{}/{} runs", time.runs, time.runs_all),
        format!("{} done, {} left", words(time.elapsed_s), words(time.left_s)),
    ];
    let mut lines = wrap(&parts, columns.saturating_sub(INDENT.len()));
    let used: usize = lines.iter().map(|line| width(line)).max().unwrap_or(0);
    // Indent, brackets, and the gap between bar and words.
    let room = columns.saturating_sub(used + INDENT.len() + 2 + GAP.len()).min(BAR_MAX);
    if room >= BAR_MIN && lines.len() == 1 {
        let full = (time.part * room as f64).round() as usize;
        let (full, rest) = ("█".repeat(full.min(room)), room - full.min(room));
        lines[0].insert_str(0, &format!("[{full}{}]{GAP}", "░".repeat(rest)));
    }
    lines.into_iter().map(|line| format!("{INDENT}{line}")).collect()
}

/// The last of `finished` that `room` rows hold, below a heading; nothing where not even one does.
fn table(finished: &VecDeque<(Title, Finished)>, room: usize, columns: usize) -> Vec<Line> {
    let shown = finished.len().min(room.saturating_sub(1));
    if shown == 0 {
        return Vec::new();
    }
    let is_wide = columns >= WIDE;
    let numbers = |p50: &str, p99: &str, cpu: &str, lost: &str| match is_wide {
        true => format!(" {p50:>8} {p99:>8} {cpu:>8} {lost:>8}"),
        false => format!(" {p50:>7} {p99:>7}"),
    };
    let heading = numbers("p50 µs", "p99 µs", "CPU %", "lost");
    let finished = finished.iter().skip(finished.len() - shown);
    let named: Vec<(String, &Finished)> = finished
        .map(|(title, finished)| {
            let mark = if finished.verdict == Verdict::Valid { " " } else { "!" };
            let Title { cell, run, runs, .. } = title;
            (format!("{mark} {cell} {run}/{runs}"), finished)
        })
        .collect();
    let longest = named.iter().map(|(name, _)| width(name)).max().unwrap_or(0);
    let room = longest.max(width(HEADING)).min(columns.saturating_sub(width(&heading)));
    let line = |name: &str, numbers: &str, tone| {
        // The end of a name tells runs of one system apart.
        let name = fit_end(name, room);
        let text = format!("{name}{}{numbers}", " ".repeat(room.saturating_sub(width(&name))));
        Line { text: fit(&text, columns), tone }
    };
    let mut lines = vec![line(HEADING, &heading, Tone::Heading)];
    lines.extend(named.iter().map(|(name, finished)| match finished.verdict {
        Verdict::Failed => line(name, &numbers("failed", "", "", ""), Tone::Bad),
        verdict => {
            let tone = if verdict == Verdict::Valid { Tone::Plain } else { Tone::Bad };
            let [p50, p99] = [finished.p50_us, finished.p99_us].map(us_or_dash);
            let cpu = finished.cpu_percent.map(cpu_percent).unwrap_or_default();
            line(name, &numbers(&p50, &p99, &cpu, &count(finished.lost)), tone)
        }
    }));
    lines
}

/// `parts` with gaps between, over as many lines as that takes.
fn wrap(parts: &[String], columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in parts {
        match lines.last_mut() {
            Some(line) if width(line) + GAP.len() + width(part) <= columns => {
                line.push_str(GAP);
                line.push_str(part);
            }
            _ => lines.push(part.trim_start().to_owned()),
        }
    }
    lines
}

/// Cut off where it is too long.
fn fit(text: &str, columns: usize) -> String {
    console::truncate_str(text, columns, "…").into_owned()
}

/// As [`fit`], cut in the middle.
fn fit_end(text: &str, columns: usize) -> String {
    let (wide, tail) = (width(text), columns * 2 / 3);
    if wide <= columns {
        return text.to_owned();
    }
    let end: String = text.chars().skip(text.chars().count() - tail).collect();
    format!("{}{end}", fit(text, columns - tail))
}

fn width(text: &str) -> usize {
    console::measure_text_width(text)
}

const HEADING: &str = "last runs";
const INDENT: &str = "  ";
const GAP: &str = "  ";
/// Runs in the table.
const FINISHED_MAX: usize = 8;
/// From so many columns on the table has all its figures.
const WIDE: usize = 60;
const BAR_MAX: usize = 30;
const BAR_MIN: usize = 8;

#[cfg(test)]
mod tests;
