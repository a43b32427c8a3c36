//! Tables for people: columns of text, which fit a width if there is one.

use crate::text::shortened;

/// A table with a headline. Its last column is not padded.
#[derive(Clone, Debug)]
pub struct Table {
    rows: Vec<Vec<String>>,
    /// The columns that numbers fill.
    right: Vec<usize>,
}

impl Table {
    /// With these headings; `right` are the columns of numbers.
    pub fn new(headings: &[&str], right: &[usize]) -> Table {
        let rows = vec![headings.iter().map(|it| (*it).to_owned()).collect()];
        Table { rows, right: right.to_vec() }
    }

    /// Adds a row.
    pub fn add(&mut self, row: Vec<String>) {
        self.rows.push(row);
    }

    /// The lines. If they are wider than `width`, the text in column `flexible` loses its middle.
    pub fn text(&self, flexible: usize, width: Option<usize>) -> String {
        let columns = self.rows[0].len();
        let of = |row: &Vec<String>, at: usize| row.get(at).map_or(0, |it| it.chars().count());
        let mut widths: Vec<usize> = (0..columns)
            .map(|at| self.rows.iter().map(|it| of(it, at)).max().unwrap_or(0))
            .collect();
        let all = widths.iter().sum::<usize>() + SPACE.len() * (columns - 1);
        if let Some(over) = width.and_then(|width| all.checked_sub(width)) {
            let least = widths[flexible].min(FLEXIBLE_MIN);
            widths[flexible] = widths[flexible].saturating_sub(over).max(least);
        }
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (at, width) in widths.iter().enumerate() {
                let cell = shortened(row.get(at).map_or("", |it| it), *width);
                line += if at > 0 { SPACE } else { "" };
                line += &match self.right.contains(&at) {
                    true => format!("{cell:>width$}"),
                    false => format!("{cell:<width$}"),
                };
            }
            text += line.trim_end();
            text.push('\n');
        }
        text
    }
}

const SPACE: &str = "  ";
const FLEXIBLE_MIN: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_fits_its_width() {
        let mut table = Table::new(&["TOPIC", "TYPE", "PUB"], &[2]);
        table.add(vec!["/chatter".into(), "a_rather_long_package/msg/Type".into(), "1".into()]);
        assert_eq!(table.text(1, None).lines().map(str::len).max(), Some(45));
        let text = table.text(1, Some(40));
        assert_eq!(text.lines().map(str::len).max(), Some(40), "{text}");
        assert!(text.contains("a_rather_lon..ge/msg/Type"), "{text}");
    }
}
