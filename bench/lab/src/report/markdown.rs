//! `report.md`: the report as a code host renders it. Without HTML, which some of them show as text.

use super::comparisons;
use super::document::{Finding, Part, Section, Standing, Table, TableCell, Tone, superscript};
use super::glance::{self, Glance};
use super::host;
use super::published;
use super::table::figures;
use super::validity::checks;
use super::view::View;

/// The whole file.
pub(super) fn render(view: &View) -> String {
    let summary = &view.analysis.summary;
    let mut text = glance::markdown(&Glance::new(view));
    text += &verdicts(view);
    text += &validity(view);
    text += "## Figures\n\nEvery latency is a whole round trip unless it says otherwise.\n\n";
    text.extend(figures(view).iter().map(part));
    text += &section(view.scorecard());
    text += &section(view.advice());
    text += &published::markdown(view);
    text += &format!("## How to repeat\n\n```sh\n{}\n```\n\n", summary.command);
    text += "## Host\n\n";
    let rows = host::rows(&summary.host).into_iter();
    text += &grid(&["what", "value"], rows.map(|(name, value)| vec![name.to_owned(), value]));
    text
}

/// Nothing without parts.
fn section(section: &Section) -> String {
    let parts: String = section.parts.iter().map(part).collect();
    match parts.is_empty() {
        true => parts,
        false => format!("## {}\n\n{}\n\n{parts}", section.title, escape(&section.remark)),
    }
}

fn part(part: &Part) -> String {
    let mut text = String::new();
    if !part.title.is_empty() {
        text += &format!("### {}\n\n", escape(&part.title));
    }
    text.extend(part.findings.iter().map(bullet));
    text.extend(part.lines.iter().map(|line| format!("- {}\n", escape(line))));
    text += if part.findings.is_empty() && part.lines.is_empty() { "" } else { "\n" };
    if !part.remark.is_empty() {
        text += &format!("{}\n\n", escape(&part.remark));
    }
    text.extend(part.tables.iter().map(print));
    text.extend(part.cautions.iter().map(|line| format!("{}\n\n", escape(line))));
    text
}

fn verdicts(view: &View) -> String {
    let verdicts = comparisons::section(view);
    let has_headlines = verdicts.parts.first().is_some_and(|part| !part.is_detail);
    let nothing = if has_headlines { "" } else { "Nothing to compare.\n\n" };
    let parts: String = verdicts.parts.iter().map(part).collect();
    format!("## {}\n\n{nothing}{parts}", verdicts.title)
}

fn bullet(finding: &Finding) -> String {
    let sign = sign(finding.standing);
    let gap = if sign.is_empty() { "" } else { " " };
    format!("- {sign}{gap}{}\n", escape(&finding.sentence()))
}

fn sign(standing: Standing) -> &'static str {
    match standing {
        Standing::Good | Standing::Better => "🟢",
        Standing::Caution => "🟡",
        Standing::Bad | Standing::Worse => "🔴",
        _ => "",
    }
}

fn validity(view: &View) -> String {
    let rows = checks(view).into_iter().map(|it| {
        let level = format!("{} {}", sign(it.standing), it.standing.words());
        let particulars = it.particulars.iter().map(|line| format!(" · {}", escape(line)));
        let finding = escape(&it.text.concat()) + &particulars.collect::<String>();
        vec![level, it.subject, finding]
    });
    format!("## Validity\n\n{}", raw_grid(&["", "what", "finding"], rows))
}

pub(super) fn print(table: &Table) -> String {
    let heads = table.columns.iter().map(|column| match column.head.is_empty() {
        true => escape(&column.group),
        false => format!("{}, {}", escape(&column.group), escape(&column.head)),
    });
    let mut lines: Vec<Vec<String>> = vec![std::iter::once(String::new()).chain(heads).collect()];
    lines.extend(table.rows.iter().map(|row| {
        std::iter::once(escape(&row.label)).chain(row.cells.iter().map(cell)).collect()
    }));
    if lines[0].len() > COLUMNS_MAX.max(lines.len()) {
        let columns = 0..lines[0].len();
        lines = columns.map(|at| lines.iter().map(|line| line[at].clone()).collect()).collect();
    }
    let heads: Vec<_> = lines[0].iter().map(String::as_str).collect();
    let rows = lines[1..].iter().cloned();
    let mut text = format!("{}\n\n{}", escape(&table.caption), raw_grid(&heads, rows));
    for (place, note) in table.notes.iter().enumerate() {
        text += &format!("{} {}  \n", superscript(place + 1), escape(note));
    }
    if !table.notes.is_empty() {
        text.push('\n');
    }
    text
}

fn cell(cell: &TableCell) -> String {
    let mark = cell.mark.map(superscript).unwrap_or_default();
    let side = if cell.side.is_empty() { String::new() } else { format!(" · {}", cell.side) };
    let main = match cell.tone {
        Tone::Invalid => format!("~~{}{}~~{mark}", escape(&cell.main), escape(&side)),
        Tone::Better | Tone::Worse => format!("**{}**{mark}{}", escape(&cell.main), escape(&side)),
        Tone::Plain | Tone::Faint | Tone::Minor => {
            format!("{}{mark}{}", escape(&cell.main), escape(&side))
        }
    };
    match cell.small.is_empty() {
        true => main,
        false => format!("{main}; {}", escape(&cell.small)),
    }
}

pub(super) fn grid(heads: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    raw_grid(heads, rows.map(|row| row.iter().map(|text| escape(text)).collect()))
}

/// A table of cells that are Markdown already.
fn raw_grid(heads: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let heads: Vec<_> = heads.iter().map(|head| (*head).to_owned()).collect();
    let rule = vec!["---".to_owned(); heads.len()];
    let rows: String = rows.map(|row| line(&row)).collect();
    format!("{}{}{rows}\n", line(&heads), line(&rule))
}

/// Keeps text from being taken for markup.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '\n' => escaped.push(' '),
            '|' | '*' | '_' | '`' | '~' | '\\' => escaped.extend(['\\', character]),
            _ => escaped.push(character),
        }
    }
    escaped
}

/// Of a table; one with more, and fewer rows, is turned on its side.
const COLUMNS_MAX: usize = 16;
