//! A comparison as a comment on a merge request, from the template `assets/compare.md.jinja`.

use minijinja::context;

use super::{Comparison, terminal};
use crate::report::html::rendered;

/// The comparison as code hosts render it. `all` lists every figure, not only those that differ.
pub fn markdown(comparison: &Comparison, all: bool) -> String {
    let counts = comparison.verdicts;
    let context = context! {
        title => format!("Bench: {} worse, {} better", counts.worse, counts.better),
        sides => [("A", &comparison.a), ("B", &comparison.b)],
        sections => terminal::sections(comparison, all),
    };
    rendered("compare.md", include_str!("assets/compare.md.jinja"), context)
}
