//! The published tables in `report.md`.

use super::super::markdown::{escape, grid, print};
use super::super::view::View;
use super::{Beside, Comparison, ComparisonRow, Gap, REMARK, comparisons};

/// The section; nothing of a report without cells.
pub(in crate::report) fn markdown(view: &View) -> String {
    let all = comparisons(view);
    if all.is_empty() {
        return String::new();
    }
    let parts: String = all.iter().map(part).collect();
    format!("## Published figures beside these\n\n{REMARK}\n\n{parts}")
}

fn part(beside: &Beside) -> String {
    let mut text = format!("### {}\n\n", escape(&beside.title));
    text += &beside.tables.iter().map(table).collect::<String>();
    if !beside.tables.is_empty() {
        text += "Doubts about the published figures:\n\n";
        let doubts = beside.doubts.iter().map(|doubt| format!("- {}\n", escape(doubt)));
        text += &(doubts.collect::<String>() + "\n");
    }
    if !beside.gaps.is_empty() {
        text += "Not measured in this folder:\n\n";
        let gap = |Gap { what, command }: &Gap| format!("- {}: `{command}`\n", escape(what));
        text += &(beside.gaps.iter().map(gap).collect::<String>() + "\n");
    }
    text
}

fn table(comparison: &Comparison) -> String {
    let (caption, published) = (escape(&comparison.caption), comparison.published);
    let text = format!("#### {caption}\n\n{}\n\n", escape(&published.remark));
    if comparison.rows.is_empty() {
        return text + &comparison.tables.iter().map(print).collect::<String>();
    }
    let pairs = published.pairs.iter().map(|pair| format!("{pair}: published → here"));
    let heads =
        published.labels.iter().cloned().chain(pairs).chain(published.alone.iter().cloned());
    let heads: Vec<_> = heads.collect();
    let heads: Vec<_> = heads.iter().map(String::as_str).collect();
    text + &grid(&heads, comparison.rows.iter().map(row))
}

fn row(row: &ComparisonRow) -> Vec<String> {
    let pairs = row.pairs.iter().map(|(published, here)| format!("{published} → {here}"));
    row.labels.iter().cloned().chain(pairs).chain(row.alone.iter().cloned()).collect()
}
