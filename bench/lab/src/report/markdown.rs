//! `report.md`: the report as a code host renders it, by the template `assets/report.md.jinja`.

use minijinja::context;

use super::html::{rendered, told};
use super::table::figures;
use super::view::View;

pub(super) fn render(view: &View) -> String {
    let context = context! { figures => figures(view), ..told(view) };
    rendered("report.md", include_str!("assets/report.md.jinja"), context)
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
