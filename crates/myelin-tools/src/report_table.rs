//! Tables of reports, which come again and again: a narrow terminal shows their first columns, and
//! rows have notes.

use crate::text::printable;

/// A table with a line for each row. Its first column takes what room is left.
#[derive(Clone, Debug, Default)]
pub struct ReportTable {
    header: Vec<&'static str>,
    rows: Vec<Row>,
}

#[derive(Clone, Debug)]
enum Row {
    Cells(Vec<String>),
    Note(String),
}

impl ReportTable {
    /// A table with these columns, the most important first: a narrow terminal shows the first ones.
    pub fn new(header: &[&'static str]) -> ReportTable {
        ReportTable { header: header.to_vec(), rows: Vec::new() }
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
        let first = widths[0];
        let mut left = room.saturating_sub(first.min(FIRST_MIN));
        let mut kept = 1;
        while kept < widths.len() && widths[kept] + GAP <= left {
            left -= widths[kept] + GAP;
            kept += 1;
        }
        widths.truncate(kept);
        let others: usize = widths[1..].iter().map(|width| width + GAP).sum();
        widths[0] = first.min(room.saturating_sub(others)).max(1);
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
            let mut line = format!("{:<1$}", cut(cells[0], widths[0]), widths[0]);
            for (cell, width) in cells[1..].iter().zip(&widths[1..]) {
                line += &format!("{:>1$}", cell, width + GAP);
            }
            line.trim_end().to_owned()
        };
        let header = with_header.then(|| line(&self.header));
        let rows = self.rows.iter().map(|row| match row {
            Row::Cells(cells) => line(&cells.iter().map(String::as_str).collect::<Vec<_>>()),
            Row::Note(text) => cut(&format!("  {text}"), room),
        });
        header.into_iter().chain(rows).collect()
    }
}

/// At most so many characters of a text; a cut is marked.
fn cut(text: &str, room: usize) -> String {
    if text.chars().count() <= room {
        return text.to_owned();
    }
    let kept: String = text.chars().take(room.saturating_sub(1)).collect();
    kept + "…"
}

/// A duration with three or four digits and its unit.
pub fn time(ns: u64) -> String {
    let ns = ns as f64;
    match ns {
        _ if ns < 1e3 => format!("{ns} ns"),
        _ if ns < 999.5e3 => format!("{} us", digits(ns / 1e3)),
        _ if ns < 999.5e6 => format!("{} ms", digits(ns / 1e6)),
        _ => format!("{} s", digits(ns / 1e9)),
    }
}

/// A number of bytes with its unit.
pub fn bytes(bytes: f64) -> String {
    match bytes {
        _ if bytes < 1e3 => format!("{bytes:.0} B"),
        _ if bytes < 999.5e3 => format!("{} kB", digits(bytes / 1e3)),
        _ if bytes < 999.5e6 => format!("{} MB", digits(bytes / 1e6)),
        _ => format!("{} GB", digits(bytes / 1e9)),
    }
}

/// A rate in Hz, with four digits.
pub fn rate(hz: f64) -> String {
    match hz {
        _ if hz < 9.9995 => format!("{hz:.3}"),
        _ if hz < 99.995 => format!("{hz:.2}"),
        _ if hz < 99_999.5 => format!("{hz:.1}"),
        _ => format!("{hz:.0}"),
    }
}

/// What is not known.
pub fn or_dash<T>(value: Option<T>, show: impl Fn(T) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), show)
}

fn digits(number: f64) -> String {
    match number {
        _ if number < 9.995 => format!("{number:.2}"),
        _ if number < 99.95 => format!("{number:.1}"),
        _ => format!("{number:.0}"),
    }
}

const GAP: usize = 2;
/// How narrow the first column may become before another one is left out.
const FIRST_MIN: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_table_has_fewer_columns_and_no_long_line() {
        let mut table = ReportTable::new(&["topic", "Hz", "p50", "p99", "max", "jitter"]);
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
        assert!(
            narrow[1].starts_with("camera/left") && narrow[1].contains("33.3 ms"),
            "{narrow:?}"
        );
        let wide = table.lines(None, false);
        assert!(wide[0].ends_with("1 ms") && wide[0].starts_with("camera/left/image/compressed "));
    }

    #[test]
    fn numbers_have_units_and_few_digits() {
        assert_eq!(
            [0, 999, 1_000, 12_340, 999_600].map(time),
            ["0 ns", "999 ns", "1.00 us", "12.3 us", "1.00 ms"]
        );
        assert_eq!([1_500_000_000, 90_000_000_000].map(time), ["1.50 s", "90.0 s"]);
        assert_eq!([8.0, 8_000.0, 2.5e9].map(bytes), ["8 B", "8.00 kB", "2.50 GB"]);
        assert_eq!(
            [0.05, 30.0, 1000.0, 250_000.0].map(rate),
            ["0.050", "30.00", "1000.0", "250000"]
        );
    }
}
