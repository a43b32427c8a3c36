//! The trend on a terminal: what moved, then a line for each figure.

use super::{FigureHistory, Trend};
use crate::report::Screen;
use crate::report::format::plural;
use crate::report::terminal::{BOLD, DIM, GREEN, RED, YELLOW};
use crate::stats::verdict::Kind;

/// The text for a terminal. `all` prints every figure of each cell, not only the first and those
/// that moved.
pub fn render(trend: &Trend, screen: Screen, all: bool) -> String {
    let mut text = screen.wrap(&title(trend), BOLD);
    let states = trend.states();
    if states.len() > 1 {
        for (at, state) in few(&states) {
            let session = &trend.sessions[*at];
            let line = format!("{:>4}  {}  {state}  {}", at + 1, session.minute(), session.folder);
            text += &screen.wrap(&line, DIM);
        }
    }
    text.extend(trend.foreign().map(|it| screen.wrap(&format!("! {it}"), YELLOW)));
    text += &screen.wrap(&trend.tested, "");
    let mut left_out = 0;
    for (scenario, cells) in trend.scenarios() {
        text += &format!("\n{}", screen.wrap(scenario, BOLD));
        let labels: Vec<String> = cells.iter().map(|&at| trend.label(at)).collect();
        let label_width = labels.iter().map(|it| it.chars().count()).max().unwrap_or(0);
        for (&at, label) in cells.iter().zip(&labels) {
            let figures = trend.cells[at].figures.iter().enumerate();
            let (shown, others): (Vec<_>, Vec<_>) = figures
                .partition(|(place, it)| all || *place == 0 || trend.verdict(at, it).is_some());
            left_out += others.len();
            for (place, figure) in shown {
                let verdict = trend.verdict(at, figure);
                let label = if place == 0 { label.as_str() } else { "" };
                text += &line(label, label_width, figure, verdict, screen);
            }
        }
    }
    if left_out > 0 {
        text += &screen.wrap(&format!("\n{}: --verbose", plural(left_out, "further figure")), DIM);
    }
    text
}

/// `12 sessions, 2026-11-01 to 2026-11-29`.
pub(super) fn title(trend: &Trend) -> String {
    let day = |at: usize| trend.sessions[at].minute().chars().take(10).collect::<String>();
    let number = plural(trend.sessions.len(), "session");
    match trend.sessions.len() {
        0 => number,
        all => format!("{number}, {} to {}", day(0), day(all - 1)),
    }
}

/// The first and the last ones, if there are many.
fn few<T>(all: &[T]) -> impl Iterator<Item = &T> {
    let skipped = all.len().saturating_sub(STATES_MAX);
    all[..1].iter().chain(&all[(1 + skipped).min(all.len())..])
}

/// A figure: in one line with its cell, or in a line below it if the screen is narrow.
fn line(
    label: &str,
    label_width: usize,
    figure: &FigureHistory,
    verdict: Option<Kind>,
    screen: Screen,
) -> String {
    let change = figure.change().unwrap_or_default();
    let figures = format!("{:<6} {:>10} {change:>7}", figure.how.words, figure.last_text());
    let word = verdict.map(|it| format!("  {}", it.words())).unwrap_or_default();
    let taken = figures.chars().count() + word.chars().count() + 2;
    let is_narrow = label_width + 2 + taken + SPARK_MIN > screen.width;
    let indent = if is_narrow { 2 } else { label_width + 2 };
    let room = screen.width.saturating_sub(indent + taken).min(SPARK_MAX);
    let style = match verdict {
        Some(Kind::Worse) => RED,
        Some(Kind::Better) => GREEN,
        _ => "",
    };
    let spark = sparkline(&figure.shares(), room);
    let figures = screen.paint(&format!("{figures}  {spark}{word}"), style) + "\n";
    match is_narrow {
        true => screen.wrap(label, "") + "  " + &figures,
        false => format!("{label:<indent$}{figures}"),
    }
}

/// The latest values, one character each; a space where there is none.
fn sparkline(shares: &[Option<f64>], room: usize) -> String {
    let level = |share: f64| LEVELS[((share * LEVELS.len() as f64) as usize).min(LEVELS.len() - 1)];
    let latest = &shares[shares.len().saturating_sub(room)..];
    latest.iter().map(|share| share.map_or(' ', level)).collect()
}

const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// A shorter line shows nothing.
const SPARK_MIN: usize = 8;
const SPARK_MAX: usize = 30;
const STATES_MAX: usize = 12;
