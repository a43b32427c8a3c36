//! Parts of the report that are the same sentences and tables in every format.

use serde::Serialize;

use super::html::TableOnPage;
use super::markdown;
use super::table::Table;
use super::terminal::{self, Screen};

/// A section; the page gives each an id of its own.
pub(super) struct Section {
    pub id: &'static str,
    pub title: &'static str,
    /// What the reader has to know to read it.
    pub remark: String,
    pub parts: Vec<Part>,
}

/// Sentences, then tables, below a heading.
#[derive(Default)]
pub(super) struct Part {
    /// May be empty.
    pub title: String,
    pub lines: Vec<String>,
    pub tables: Vec<Table>,
    /// Left to the page and the Markdown: a terminal would scroll away what matters.
    pub is_detail: bool,
}

impl Section {
    /// As a text; nothing without parts.
    pub(super) fn terminal(&self, screen: Screen) -> String {
        if self.parts.is_empty() {
            return String::new();
        }
        let mut text = terminal::heading(self.title, screen);
        for part in self.parts.iter().filter(|part| !part.is_detail) {
            if !part.title.is_empty() {
                text += &terminal::heading(&part.title, screen);
            }
            for line in &part.lines {
                text += &terminal::line(line, screen);
            }
            for table in &part.tables {
                text += &terminal::print(table, screen);
            }
            text.push('\n');
        }
        let hidden = self.parts.iter().filter(|part| part.is_detail).count();
        if hidden > 0 {
            text += &terminal::line("More of this is in the report.", screen);
            text.push('\n');
        }
        text
    }

    /// As Markdown; nothing without parts.
    pub(super) fn markdown(&self) -> String {
        if self.parts.is_empty() {
            return String::new();
        }
        let mut text = format!("## {}\n\n{}\n\n", self.title, markdown::escape(&self.remark));
        for part in &self.parts {
            if !part.title.is_empty() {
                text += &format!("### {}\n\n", markdown::escape(&part.title));
            }
            for line in &part.lines {
                text += &format!("- {}\n", markdown::escape(line));
            }
            text += if part.lines.is_empty() { "" } else { "\n" };
            text += &part.tables.iter().map(markdown::print).collect::<String>();
        }
        text
    }
}

/// A section as `assets/sections.html` wants it.
#[derive(Serialize)]
pub(super) struct OnPage {
    id: &'static str,
    title: &'static str,
    remark: String,
    parts: Vec<PartOnPage>,
}

#[derive(Serialize)]
struct PartOnPage {
    title: String,
    is_folded: bool,
    lines: Vec<String>,
    tables: Vec<TableOnPage>,
}

impl OnPage {
    pub(super) fn new(section: &Section) -> Self {
        let part = |part: &Part| PartOnPage {
            title: part.title.clone(),
            is_folded: part.is_detail,
            lines: part.lines.clone(),
            tables: part.tables.iter().map(TableOnPage::new).collect(),
        };
        let remark = section.remark.clone();
        Self {
            id: section.id,
            title: section.title,
            remark,
            parts: section.parts.iter().map(part).collect(),
        }
    }
}
