//! The comparison page: one file that needs no other, from the template `assets/compare.html`. Its
//! tables are readable without scripts; `assets/compare.js` draws the plots from the JSON inside
//! it.

use minijinja::context;
use serde_json::{Value, json};

use super::document::{FigureText, full};
use super::{CellComparison, CellName, Comparison};
use crate::report::html::{essentials, rendered};
use crate::report::plots::embedded;
use crate::stats::verdict::Kind;
use crate::summary::Metric;

/// The whole page.
pub fn page(comparison: &Comparison) -> String {
    let (lasting, session) = comparison.environment();
    let is_different = |kind: Option<Kind>| kind.is_some_and(Kind::is_significant);
    let names = |cells: &[CellName]| cells.iter().map(full).collect::<Vec<_>>();
    let context = context! {
        a => comparison.a,
        b => comparison.b,
        common => comparison.common().unwrap_or_default(),
        is_same => lasting.is_empty(),
        environment => lasting,
        session,
        host_facts => comparison.host_facts,
        verdicts => comparison.verdicts,
        rate => comparison.rate_in_words(),
        hint => comparison.hint_in_words().unwrap_or_default(),
        floor => comparison.floor_in_words().unwrap_or_default(),
        no_longer_valid => comparison.no_longer_valid().map(|it| full(&it.name)).collect::<Vec<_>>(),
        differing => comparison.rows(is_different),
        others => comparison.rows(|kind| !is_different(kind)),
        alone => [("A", names(&comparison.only_in_a)), ("B", names(&comparison.only_in_b))],
        data => embedded(&data(comparison)),
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

/// The data of the plots.
fn data(comparison: &Comparison) -> Value {
    let figures = Metric::compared()
        .map(|(metric, it)| json!({ "figure": metric.name, "words": it.words, "unit": it.unit }));
    let cells = comparison.cells.iter().map(|cell| plot_cell(comparison, cell));
    json!({ "figures": figures.collect::<Vec<_>>(), "cells": cells.collect::<Vec<_>>() })
}

fn plot_cell(comparison: &Comparison, cell: &CellComparison) -> Value {
    let figures = cell.figures.iter().map(|it| {
        let FigureText { a, b, p, verdict, note, .. } = comparison.row(cell, it);
        json!({
            "figure": it.figure,
            "ratio": it.ratio,
            "interval": it.interval,
            "verdict": verdict,
            "a_text": a,
            "b_text": b,
            "p_text": p,
            "note": note,
        })
    });
    json!({
        "name": comparison.label(cell),
        "figures": figures.collect::<Vec<_>>(),
        "shift": cell.shift,
    })
}
