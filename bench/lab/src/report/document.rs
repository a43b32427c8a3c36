//! The content of a report without a format: `terminal` and the templates of page and Markdown
//! print it.

use serde::{Serialize, Serializer};

use super::format;
use crate::stats::verdict::{Kind, Verdict};

/// A section; the page gives each an HTML id.
#[derive(Serialize)]
pub(crate) struct Section {
    pub id: &'static str,
    pub title: &'static str,
    /// What the reader needs to know to read the section.
    pub remark: String,
    pub parts: Vec<Part>,
}

/// Findings, sentences, then tables, below a heading.
#[derive(Default, Serialize)]
pub(crate) struct Part {
    /// May be empty.
    pub title: String,
    pub findings: Vec<Finding>,
    /// A remark that holds for all findings; may be empty.
    pub remark: String,
    pub lines: Vec<String>,
    pub tables: Vec<Table>,
    /// Whether to show it only on the page, folded, and in Markdown. On a terminal it would scroll
    /// away the main results.
    pub is_detail: bool,
}

/// The result of an examination: a verdict on a cell, or a check of the records.
#[derive(Serialize)]
pub(crate) struct Finding {
    pub standing: Standing,
    pub subject: String,
    pub text: String,
    /// Details, one line each.
    pub particulars: Vec<String>,
}

impl Finding {
    pub(super) fn sentence(&self) -> String {
        format!("{}: {}", self.subject, self.text)
    }
}

/// How good a finding is; the most serious check has the highest value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Standing {
    Good,
    Caution,
    Bad,
    Better,
    Worse,
    NoDifference,
    TooNoisy,
    TooFewRuns,
    NotCompared,
}

impl Standing {
    /// The standing of a figure that is worse the higher it is.
    pub(super) fn of(value: f64, caution: f64, bad: f64) -> Self {
        match value {
            v if v >= bad => Self::Bad,
            v if v >= caution => Self::Caution,
            _ => Self::Good,
        }
    }
}

impl From<Option<Verdict>> for Standing {
    fn from(verdict: Option<Verdict>) -> Self {
        let Some(verdict) = verdict else { return Self::NotCompared };
        match verdict.kind {
            Kind::Better => Self::Better,
            Kind::Worse => Self::Worse,
            Kind::NoDifference => Self::NoDifference,
            Kind::TooNoisy if verdict.lacks_runs => Self::TooFewRuns,
            Kind::TooNoisy => Self::TooNoisy,
        }
    }
}

/// A table in which one heading can cover several columns.
#[derive(Serialize)]
pub(crate) struct Table {
    pub caption: String,
    #[serde(serialize_with = "spanned")]
    pub columns: Vec<Column>,
    pub rows: Vec<Row>,
    /// Footnotes; a cell refers to its note by the number of the note, from 1.
    pub notes: Vec<String>,
}

impl Table {
    /// A table with the cell that `cell` returns for each row and column.
    pub(crate) fn new<R, C>(
        caption: impl Into<String>,
        columns: Vec<(Column, C)>,
        rows: impl IntoIterator<Item = (String, R)>,
        mut cell: impl FnMut(&R, &C) -> TableCell,
    ) -> Self {
        let mut cells = |row| columns.iter().map(|(_, column)| cell(&row, column)).collect();
        let rows = rows.into_iter().map(|(label, row)| Row { label, cells: cells(row) });
        let (caption, rows, notes) = (caption.into(), rows.collect(), Vec::new());
        Table { caption, columns: columns.into_iter().map(|it| it.0).collect(), rows, notes }
    }
}

/// A column, and the heading that it shares with its neighbours.
pub(crate) struct Column {
    pub group: String,
    pub head: String,
}

impl Column {
    pub(crate) fn new(group: impl Into<String>, head: impl Into<String>) -> Self {
        Column { group: group.into(), head: head.into() }
    }
}

/// A row: one payload, or a figure across payloads.
#[derive(Serialize)]
pub(crate) struct Row {
    pub label: String,
    pub cells: Vec<TableCell>,
}

#[derive(Clone, Default, Serialize)]
pub(crate) struct TableCell {
    /// The figure; the median unless the heading says otherwise.
    pub main: String,
    /// A second figure, smaller: the 99th percentile.
    pub side: String,
    /// In small type below: the interval, or a name.
    pub small: String,
    pub tone: Tone,
    pub mark: Option<usize>,
    /// A longer text, shown on request.
    pub title: String,
}

impl TableCell {
    pub(crate) fn plain(main: impl Into<String>) -> Self {
        Self { main: main.into(), ..Self::default() }
    }

    /// A latency with its interval over runs below it, if they are known.
    pub(super) fn us(us: Option<f64>, interval: Option<[f64; 2]>) -> Self {
        let interval = interval.map(format::interval_us).unwrap_or_default();
        Self::plain(format::us_or_dash(us)).small(interval)
    }

    /// A cell without a measurement.
    pub(super) fn absent() -> Self {
        Self::default().title("not measured")
    }

    pub(crate) fn side(self, side: impl Into<String>) -> Self {
        Self { side: side.into(), ..self }
    }

    pub(crate) fn small(self, small: impl Into<String>) -> Self {
        Self { small: small.into(), ..self }
    }

    pub(crate) fn tone(self, tone: impl Into<Tone>) -> Self {
        Self { tone: tone.into(), ..self }
    }

    pub(crate) fn title(self, title: impl Into<String>) -> Self {
        Self { title: title.into(), ..self }
    }

    /// Strikes the cell out unless `is_valid`.
    pub(super) fn valid(self, is_valid: bool) -> Self {
        if is_valid { self } else { self.tone(Tone::Invalid) }
    }
}

/// How a cell stands out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Tone {
    #[default]
    Plain,
    Better,
    Worse,
    Invalid,
    /// Context, not a result: the floor, or the reason why something is missing.
    Faint,
    /// A figure beside the main one.
    Minor,
}

impl From<Option<Kind>> for Tone {
    fn from(kind: Option<Kind>) -> Self {
        match kind {
            Some(Kind::Better) => Self::Better,
            Some(Kind::Worse) => Self::Worse,
            Some(Kind::NoDifference | Kind::TooNoisy) | None => Self::Plain,
        }
    }
}

/// Serialises columns as heading, number of columns below it (0 except for the first of them), and
/// head.
fn spanned<S: Serializer>(columns: &[Column], serializer: S) -> Result<S::Ok, S::Error> {
    let runs = columns.chunk_by(|one, next| one.group == next.group);
    let spanned = runs.flat_map(|run| {
        let span = move |place| if place == 0 { run.len() } else { 0 };
        run.iter().enumerate().map(move |(place, it)| (&it.group, span(place), &it.head))
    });
    serializer.collect_seq(spanned)
}

/// The mark of a footnote.
pub(super) fn superscript(number: usize) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let digit = |digit: char| digit.to_digit(10).map(|value| DIGITS[value as usize]);
    number.to_string().chars().filter_map(digit).collect()
}
