//! What a report says, without a format: `terminal`, `markdown` and the templates of the page each
//! print it.

use serde::{Serialize, Serializer};

/// A section; the page gives each an id of its own.
#[derive(Serialize)]
pub(super) struct Section {
    pub id: &'static str,
    pub title: &'static str,
    /// What the reader has to know to read it.
    pub remark: String,
    pub parts: Vec<Part>,
}

/// Sentences, then tables, below a heading.
#[derive(Default, Serialize)]
pub(super) struct Part {
    /// May be empty.
    pub title: String,
    pub lines: Vec<String>,
    pub tables: Vec<Table>,
    /// What is doubtful in the tables, a line each.
    pub cautions: Vec<String>,
    /// Left to the page and the Markdown: a terminal would scroll away what matters. The page folds
    /// it.
    pub is_detail: bool,
}

/// A table with one heading above several columns.
#[derive(Serialize)]
pub(crate) struct Table {
    pub caption: String,
    #[serde(serialize_with = "spanned")]
    pub columns: Vec<Column>,
    pub rows: Vec<Row>,
    /// Footnotes; a cell's mark is the place of its note, from 1.
    pub notes: Vec<String>,
}

/// A column and the heading it shares with its neighbours.
pub(crate) struct Column {
    pub group: String,
    pub head: String,
}

/// A row: one payload, or a figure across payloads.
#[derive(Serialize)]
pub(crate) struct Row {
    pub label: String,
    pub cells: Vec<TableCell>,
}

/// What stands in one place of the table.
#[derive(Clone, Default, Serialize)]
pub(crate) struct TableCell {
    /// The figure: the median, where nothing else is said.
    pub main: String,
    /// A second figure, smaller: the 99th percentile.
    pub side: String,
    /// In small type below: the interval, or a name.
    pub small: String,
    pub tone: Tone,
    pub mark: Option<usize>,
    /// The long form, for those who ask.
    pub title: String,
}

/// How a cell is set off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Tone {
    #[default]
    Plain,
    Better,
    Worse,
    Invalid,
    /// Context, not a result: the floor, or the reason why something is not there.
    Faint,
    /// A figure beside the one that matters.
    Minor,
}

/// Columns as heading, columns below it (0 but for the first of them), and head.
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
