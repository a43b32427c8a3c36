//! The difference page: one file that needs nothing else, by the template `assets/compare.html`.
//! Its tables can be read without scripts; `assets/compare.js` draws the plots from the JSON inside
//! it.

use minijinja::context;
use serde::Serialize;

use super::environment::Part;
use super::judge::FigureComparison;
use super::shift::ShiftPoint;
use super::terminal::{full, note, probability};
use super::{CellComparison, Comparison};
use crate::report::html::{essentials, rendered};
use crate::report::metrics::{COMPARED, Compared};
use crate::report::plots::embedded;
use crate::report::words;
use crate::stats::verdict::Kind;

/// The whole file.
pub fn page(comparison: &Comparison) -> String {
    let (session, lasting): (Vec<_>, Vec<_>) =
        comparison.environment.iter().partition(|it| it.of == Part::Session);
    let session = session.iter().map(|it| format!("{} {} → {}", it.what, it.a, it.b));
    let is_different = |kind: Option<Kind>| kind.is_some_and(Kind::is_significant);
    let rows = |wanted: &dyn Fn(Option<Kind>) -> bool| -> Vec<TableRow> {
        let found = comparison.figures(wanted);
        found.into_iter().map(|(cell, it)| TableRow::new(comparison, cell, it)).collect()
    };
    let names = |cells: &[super::CellName]| cells.iter().map(full).collect::<Vec<_>>();
    let context = context! {
        a => comparison.a,
        b => comparison.b,
        common => comparison.common().unwrap_or_default(),
        is_same => lasting.is_empty(),
        environment => lasting,
        session => session.collect::<Vec<_>>(),
        host_facts => comparison.host_facts,
        verdicts => comparison.verdicts,
        rate => comparison.rate_in_words(),
        floor => comparison.floor_in_words().unwrap_or_default(),
        no_longer_valid => comparison.no_longer_valid().map(|it| full(&it.name)).collect::<Vec<_>>(),
        differing => rows(&is_different),
        others => rows(&|kind| !is_different(kind)),
        alone => [("A", names(&comparison.only_in_a)), ("B", names(&comparison.only_in_b))],
        data => data(comparison),
        css => concat!(include_str!("../report/assets/report.css"), include_str!("assets/compare.css")),
        js => concat!(
            include_str!("../report/assets/scales.js"),
            include_str!("../report/assets/drawing.js"),
            include_str!("assets/compare.js"),
        ),
        ..essentials()
    };
    rendered("compare.html", include_str!("assets/compare.html"), context)
}

/// A row of a table.
#[derive(Serialize)]
struct TableRow {
    cell: String,
    figure: &'static str,
    unit: &'static str,
    a: String,
    b: String,
    ratio: String,
    interval: String,
    p: String,
    verdict: &'static str,
    note: String,
}

impl TableRow {
    fn new(comparison: &Comparison, cell: &CellComparison, it: &FigureComparison) -> Self {
        let text =
            |value: Option<f64>| value.map(|value| it.figure.text(value)).unwrap_or_default();
        Self {
            cell: comparison.label(cell),
            figure: it.figure.words,
            unit: it.figure.unit,
            a: text(it.a),
            b: text(it.b),
            ratio: it.ratio.map(words::factor).unwrap_or_default(),
            interval: it.interval.map(words::factor_interval).unwrap_or_default(),
            p: it.p_adjusted.map(probability).unwrap_or_default(),
            verdict: it.verdict.map_or("none", Kind::words),
            note: note(cell, it).unwrap_or_default(),
        }
    }
}

/// What the plots are drawn from.
#[derive(Serialize)]
struct Data<'a> {
    figures: Vec<PlotFigure>,
    cells: Vec<PlotCell<'a>>,
}

#[derive(Serialize)]
struct PlotFigure {
    figure: &'static Compared,
    words: &'static str,
    unit: &'static str,
}

#[derive(Serialize)]
struct PlotCell<'a> {
    name: String,
    figures: Vec<PlotRatio>,
    shift: &'a [ShiftPoint],
}

/// A figure of a cell, as a sign and a line.
#[derive(Serialize)]
struct PlotRatio {
    figure: &'static Compared,
    ratio: Option<f64>,
    interval: Option<[f64; 2]>,
    verdict: &'static str,
    a_text: String,
    b_text: String,
    p_text: String,
    note: String,
}

fn data(comparison: &Comparison) -> String {
    let figure =
        |figure: &'static Compared| PlotFigure { figure, words: figure.words, unit: figure.unit };
    embedded(&Data {
        figures: COMPARED.iter().map(figure).collect(),
        cells: comparison.cells.iter().map(|cell| plot_cell(comparison, cell)).collect(),
    })
}

fn plot_cell<'a>(comparison: &Comparison, cell: &'a CellComparison) -> PlotCell<'a> {
    PlotCell {
        name: comparison.label(cell),
        figures: cell.figures.iter().map(|it| plot_ratio(comparison, cell, it)).collect(),
        shift: &cell.shift,
    }
}

fn plot_ratio(comparison: &Comparison, cell: &CellComparison, it: &FigureComparison) -> PlotRatio {
    let row = TableRow::new(comparison, cell, it);
    PlotRatio {
        figure: it.figure,
        ratio: it.ratio,
        interval: it.interval,
        verdict: row.verdict,
        a_text: row.a,
        b_text: row.b,
        p_text: row.p,
        note: row.note,
    }
}
