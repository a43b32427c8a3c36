//! Tables for people: a narrow terminal shows their first columns, and rows have notes.

use crate::text::{printable, shortened};

/// A table with a line for each row. Its first column takes what room is left.
#[derive(Clone, Debug, Default)]
pub struct Table {
    header: Vec<&'static str>,
    rows: Vec<Row>,
    /// Whether the last column is a text, which is cut before a column is left out.
    has_text: bool,
}

#[derive(Clone, Debug)]
enum Row {
    Cells(Vec<String>),
    Note(String),
}

impl Table {
    /// A table with these columns, the most important first: a narrow terminal shows the first ones.
    pub fn new(header: &[&'static str]) -> Table {
        Table { header: header.to_vec(), ..Table::default() }
    }

    /// The same, and the last column is a text: it is cut where room is short.
    pub fn with_text(header: &[&'static str]) -> Table {
        Table { has_text: true, ..Table::new(header) }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let cells: Vec<_> = cells.into_iter().map(|it| printable(&it).into_owned()).collect();
        assert_eq!(cells.len(), self.header.len(), "a cell for each column");
        self.rows.push(Row::Cells(cells));
    }

    /// Adds a line about the row above it.
    pub fn note(&mut self, text: impl Into<String>) {
        self.rows.push(Row::Note(printable(&text.into()).into_owned()));
    }

    /// How many columns fit into so many characters, and the width of each.
    fn widths(&self, room: usize) -> Vec<usize> {
        let cells = self.rows.iter().filter_map(|row| match row {
            Row::Cells(cells) => Some(cells),
            Row::Note(_) => None,
        });
        let mut widths: Vec<usize> = self.header.iter().map(|it| it.chars().count()).collect();
        for cells in cells {
            for (width, cell) in widths.iter_mut().zip(cells) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let (first, last) = (widths[0], widths.len() - 1);
        let text = widths[last];
        if self.has_text {
            widths[last] = text.min(TEXT_MIN);
        }
        let mut left = room.saturating_sub(first.min(FIRST_MIN));
        let mut kept = 1;
        while kept < widths.len() && widths[kept] + GAP <= left {
            left -= widths[kept] + GAP;
            kept += 1;
        }
        widths.truncate(kept);
        let others: usize = widths[1..].iter().map(|width| width + GAP).sum();
        widths[0] = first.min(room.saturating_sub(others)).max(1);
        if self.has_text && kept > last {
            let free = room.saturating_sub(widths[0] + others);
            widths[last] = text.min(widths[last].saturating_add(free));
        }
        widths
    }

    /// All of it, as wide as `room`.
    pub fn text(&self, room: Option<usize>) -> String {
        self.lines(room, true).iter().map(|line| format!("{line}\n")).collect()
    }

    /// Its lines, none longer than `room` characters, with or without the header.
    pub fn lines(&self, room: Option<usize>, with_header: bool) -> Vec<String> {
        let room = room.unwrap_or(usize::MAX);
        let widths = self.widths(room);
        let line = |cells: &[&str]| {
            let mut line = String::new();
            for (at, (cell, width)) in cells.iter().zip(&widths).enumerate() {
                let is_text = at == 0 || self.has_text && at + 1 == cells.len();
                let cell = shortened(cell, *width);
                line += &" ".repeat(if at == 0 { 0 } else { GAP });
                line += &match is_text {
                    true => format!("{cell:<width$}"),
                    false => format!("{cell:>width$}"),
                };
            }
            line.trim_end().to_owned()
        };
        let header = with_header.then(|| line(&self.header));
        let rows = self.rows.iter().map(|row| match row {
            Row::Cells(cells) => line(&cells.iter().map(String::as_str).collect::<Vec<_>>()),
            Row::Note(text) => shortened_end(&format!("  {text}"), room),
        });
        header.into_iter().chain(rows).collect()
    }
}

/// At most so many characters of a sentence, whose begin says most.
fn shortened_end(text: &str, characters: usize) -> String {
    if text.chars().count() <= characters {
        return text.to_owned();
    }
    text.chars().take(characters.saturating_sub(2)).chain("..".chars()).take(characters).collect()
}

const GAP: usize = 2;
/// How narrow the first column may become before another one is left out.
const FIRST_MIN: usize = 16;
/// How narrow the text in the last column may become.
const TEXT_MIN: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_table_has_fewer_columns_and_no_long_line() {
        let mut table = Table::new(&["topic", "Hz", "p50", "p99", "max", "jitter"]);
        table.row(
            ["camera/left/image/compressed", "30.0", "33.3 ms", "35 ms", "40 ms", "1 ms"]
                .map(String::from),
        );
        table.note("missed by this tool: 12, counted in the rate, and this note is long");
        for room in 1..120 {
            for line in table.lines(Some(room), true) {
                assert!(line.chars().count() <= room.max(1), "{room}: {line:?}");
            }
        }
        let narrow = table.lines(Some(40), true);
        assert!(narrow[1].starts_with("camera/") && narrow[1].contains("33.3 ms"), "{narrow:?}");
        let wide = table.lines(None, false);
        assert!(wide[0].ends_with("1 ms") && wide[0].starts_with("camera/left/image/compressed "));
    }

    #[test]
    fn a_text_at_the_end_takes_the_room_that_is_left() {
        let mut table = Table::with_text(&["topic", "pub", "type"]);
        table.row(["/chatter", "1", "a_rather_long_package/msg/Type"].map(String::from));
        assert_eq!(table.lines(None, false), ["/chatter    1  a_rather_long_package/msg/Type"]);
        assert_eq!(table.lines(Some(32), false), ["/chatter    1  a_rather..sg/Type"]);
        assert_eq!(table.lines(Some(20), false), ["/chatter    1"]);
    }
}
