//! The trend as one page that needs no other, from the template `assets/trend.html`. It has no
//! scripts.

use minijinja::{Value, context};
use serde::Serialize;

use super::terminal::title;
use super::{FigureHistory, Trend};
use crate::report::html::rendered;

/// The whole page.
pub fn page(trend: &Trend) -> String {
    let context = context! {
        title => title(trend),
        css => concat!(include_str!("../report/assets/report.css"), include_str!("assets/trend.css")),
        version => env!("CARGO_PKG_VERSION"),
        ..content(trend)
    };
    rendered("trend.html", include_str!("assets/trend.html"), context)
}

/// A cell with its figures.
#[derive(Serialize)]
struct Row {
    name: String,
    is_floor: bool,
    figures: Vec<Curve>,
}

/// A figure as it is drawn: places are per cent of the picture, from the left and from the top.
#[derive(Serialize)]
struct Curve {
    words: &'static str,
    last: String,
    change: String,
    /// `better`, `worse`, or empty.
    verdict: &'static str,
    dots: Vec<Dot>,
}

#[derive(Serialize)]
struct Dot {
    x: f64,
    y: f64,
    title: String,
}

/// What page and Markdown have in common.
pub(super) fn content(trend: &Trend) -> Value {
    let scenarios: Vec<(&str, Vec<Row>)> = trend
        .scenarios()
        .into_iter()
        .map(|(scenario, cells)| (scenario, cells.into_iter().map(|at| row(trend, at)).collect()))
        .collect();
    let moved: Vec<(String, Curve)> = trend
        .moved
        .iter()
        .filter_map(|moved| {
            let cell = &trend.cells[moved.cell];
            let figure = cell.figures.iter().find(|it| it.figure.name == moved.figure)?;
            let name = format!("{}, {}", cell.name.scenario, trend.label(moved.cell));
            Some((name, curve(trend, moved.cell, figure)))
        })
        .collect();
    context! {
        sessions => trend.sessions,
        states => trend.states(),
        since => trend.since.map(|at| place(trend, at) - place(trend, 1) / 2.0),
        tested => trend.tested,
        foreign => trend.foreign(),
        scenarios,
        moved,
    }
}

fn row(trend: &Trend, at: usize) -> Row {
    let cell = &trend.cells[at];
    Row {
        name: trend.label(at),
        is_floor: cell.floor,
        figures: cell.figures.iter().map(|figure| curve(trend, at, figure)).collect(),
    }
}

fn curve(trend: &Trend, at: usize, figure: &FigureHistory) -> Curve {
    let shares = figure.shares();
    let dots = trend.sessions.iter().zip(&figure.values).zip(&shares).enumerate();
    let dots = dots.filter_map(|(session, ((it, value), share))| {
        let text = figure.figure.compared_text((*value)?);
        Some(Dot {
            x: place(trend, session),
            y: 100.0 * (1.0 - (*share)?),
            title: format!("{text} {}, {}, {}", figure.how.unit, it.label(), it.folder),
        })
    });
    Curve {
        words: figure.how.words,
        last: figure.last_text(),
        change: figure.change().unwrap_or_default(),
        verdict: trend.verdict(at, figure).map_or("", |kind| kind.words()),
        dots: dots.collect(),
    }
}

/// The place of a session; all are equally far apart, whenever they were made.
fn place(trend: &Trend, session: usize) -> f64 {
    100.0 * session as f64 / (trend.sessions.len().max(2) - 1) as f64
}
