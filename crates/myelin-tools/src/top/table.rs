//! Tables: their columns, and which rows are shown in which order. The selected row stays selected
//! while rows move.

use std::cmp::Ordering;
use std::ops::Range;

use super::snapshot::{NodeRow, TopicRow};
use super::text;
use crate::names;

/// A column of a table. The first one of a table is the name.
pub struct Column<R> {
    /// The heading.
    pub title: &'static str,
    /// What the option `--sort` calls it.
    pub name: &'static str,
    /// The key that sorts by it.
    pub key: char,
    /// Its characters, without the space in front.
    pub width: usize,
    /// In a narrow terminal the columns with the largest number are left out.
    pub rank: u8,
    /// What is shown.
    pub cell: fn(&R) -> String,
    /// What it is sorted by; `None` comes last.
    pub value: fn(&R) -> Option<f64>,
}

/// A row of a table.
pub trait Row: Sized + 'static {
    /// What stays the same while its figures change.
    type Key: Clone + PartialEq;
    /// The columns.
    const COLUMNS: &'static [Column<Self>];
    /// See [`Key`](Self::Key).
    fn key(&self) -> Self::Key;
    /// Its name.
    fn name(&self) -> &str;
}

impl Row for TopicRow {
    type Key = String; // Its name on the wire.

    const COLUMNS: &'static [Column<TopicRow>] = &[
        column("TOPIC", "name", 'n', 14, 0, |it| it.name.clone(), |_| None),
        column("PUB/SUB", "ends", 'e', 8, 5, endpoints, |it| {
            Some((it.publishers.len() + it.subscribers.len()) as f64)
        }),
        column("RATE/s", "rate", 'r', 7, 1, |it| text::number_or_dash(it.rate_hz), |it| it.rate_hz),
        column("BYTES/s", "bw", 'b', 8, 4, bandwidth, |it| it.bytes_per_s),
        column(
            "P50",
            "p50",
            'l',
            6,
            6,
            |it| latency(it, |of| of.p50),
            |it| Some(it.latency_us?.p50),
        ),
        column(
            "P99",
            "p99",
            'L',
            6,
            3,
            |it| latency(it, |of| of.p99),
            |it| Some(it.latency_us?.p99),
        ),
        column("LOST", "lost", 'x', 5, 2, |it| text::count(it.lost), |it| Some(it.lost as f64)),
        column("HELD", "held", 'h', 5, 7, |it| text::count(it.held), |it| Some(it.held as f64)),
        column(
            "MEM",
            "mem",
            'm',
            5,
            8,
            |it| text::number(it.memory_bytes as f64),
            |it| Some(it.memory_bytes as f64),
        ),
    ];

    fn key(&self) -> String {
        self.wire_name.clone()
    }

    fn name(&self) -> &str {
        &self.name
    }
}

impl Row for NodeRow {
    type Key = (u64, String);

    const COLUMNS: &'static [Column<NodeRow>] = &[
        column("NODE", "name", 'n', 14, 0, |it| it.name.clone(), |_| None),
        column("PID", "pid", 'p', 7, 4, pid, |it| Some(f64::from(it.pid))),
        column(
            "CPU%",
            "cpu",
            'c',
            5,
            1,
            |it| text::number_or_dash(it.cpu_percent),
            |it| it.cpu_percent,
        ),
        column("MEM", "mem", 'm', 5, 2, |it| text::number_or_dash(memory(it)), memory),
        column("THR", "threads", 't', 4, 3, |it| text::number_or_dash(threads(it)), threads),
        column(
            "PUB",
            "pub",
            'u',
            4,
            5,
            |it| it.publishers.to_string(),
            |it| Some(it.publishers as f64),
        ),
        column(
            "SUB",
            "sub",
            's',
            4,
            6,
            |it| it.subscribers.to_string(),
            |it| Some(it.subscribers as f64),
        ),
        column("STATE", "state", 'x', 7, 7, state, |it| {
            Some(f64::from(u8::from(it.is_silent || it.is_stopped)))
        }),
    ];

    fn key(&self) -> (u64, String) {
        (self.node, self.name.clone())
    }

    fn name(&self) -> &str {
        &self.name
    }
}

/// Which rows of a table are shown, in which order, and which one is selected.
#[derive(Clone, Debug)]
pub struct Table<R: Row> {
    /// The index of the column that it is sorted by.
    sorted_by: usize,
    is_reverse: bool,
    /// Indices of the rows that pass the filter.
    order: Vec<usize>,
    /// The selected row, and where it is in `order`.
    selected: Option<R::Key>,
    at: usize,
    /// The first row on the screen.
    first: usize,
}

impl<R: Row> Table<R> {
    /// Sorted by the column of this name, if there is one.
    pub fn new(sort: Option<&str>) -> Table<R> {
        let of_name = |name| R::COLUMNS.iter().position(|it| it.name == name);
        let sorted_by = sort.and_then(of_name).unwrap_or(0);
        let (order, selected) = (Vec::new(), None);
        Table { sorted_by, is_reverse: false, order, selected, at: 0, first: 0 }
    }

    /// The column that it is sorted by.
    pub fn sorted_by(&self) -> &'static Column<R> {
        &R::COLUMNS[self.sorted_by]
    }

    /// Sorts by the column with this key; in reverse if it is sorted by that already. False if
    /// there is no such column.
    pub fn sort_by(&mut self, key: char) -> bool {
        let Some(column) = R::COLUMNS.iter().position(|it| it.key == key) else { return false };
        self.is_reverse = column == self.sorted_by && !self.is_reverse;
        self.sorted_by = column;
        true
    }

    /// Puts these rows in order. The selected one stays selected; if it has gone, the row at its
    /// place is selected.
    pub fn arrange(&mut self, rows: &[R], filter: &str) {
        let filter = Filter::new(filter);
        self.order.clear();
        self.order.extend((0..rows.len()).filter(|&index| filter.passes(rows[index].name())));
        let mut order = std::mem::take(&mut self.order);
        order.sort_by(|&one, &two| self.compare(&rows[one], &rows[two]));
        self.order = order;
        let selected = self.selected.as_ref();
        let place = self.order.iter().position(|&it| Some(&rows[it].key()) == selected);
        self.at = place.unwrap_or(self.at).min(self.order.len().saturating_sub(1));
        self.select(rows, self.at);
    }

    /// Numbers fall and names rise; equal ones come by name.
    fn compare(&self, one: &R, two: &R) -> Ordering {
        let value = self.sorted_by().value;
        let by_value = match (value(one), value(two)) {
            (Some(one), Some(two)) => {
                let falling = two.total_cmp(&one);
                if self.is_reverse { falling.reverse() } else { falling }
            }
            (one, two) => two.is_some().cmp(&one.is_some()),
        };
        let by_name = one.name().cmp(two.name());
        let is_by_name = self.sorted_by == 0 && self.is_reverse;
        by_value.then(if is_by_name { by_name.reverse() } else { by_name })
    }

    /// Selects the row that is `by` rows further down, as far as there are rows.
    pub fn move_by(&mut self, rows: &[R], by: isize) {
        let last = self.order.len().saturating_sub(1);
        self.select(rows, self.at.saturating_add_signed(by).min(last));
    }

    fn select(&mut self, rows: &[R], at: usize) {
        self.at = at;
        self.selected = self.order.get(at).map(|&index| rows[index].key());
    }

    /// The selected row.
    pub fn selected<'a>(&self, rows: &'a [R]) -> Option<&'a R> {
        self.order.get(self.at).map(|&index| &rows[index])
    }

    /// Where the selected row is among those that pass the filter.
    pub fn at(&self) -> usize {
        self.at
    }

    /// How many rows pass the filter.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether no row passes the filter.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// All rows that pass the filter, in order.
    pub fn rows<'a>(&self, rows: &'a [R]) -> impl Iterator<Item = &'a R> {
        self.order.iter().map(|&index| &rows[index])
    }

    /// Scrolls so that the selected row is among `height` visible ones, and gives these.
    pub fn visible(&mut self, height: usize) -> Range<usize> {
        let lowest = (self.at + 1).saturating_sub(height).min(self.order.len());
        let highest = self.order.len().saturating_sub(height);
        self.first = self.first.clamp(lowest, self.at.max(lowest)).min(highest.max(lowest));
        self.first..(self.first + height).min(self.order.len())
    }

    /// The rows of a range of [`visible`](Table::visible).
    pub fn slice<'a>(&self, rows: &'a [R], range: Range<usize>) -> impl Iterator<Item = &'a R> {
        self.order[range].iter().map(|&index| &rows[index])
    }
}

/// A text that is in a name, or a pattern with `*` and `?` of the whole name. Upper and lower case
/// are the same.
struct Filter(String);

impl Filter {
    fn new(text: &str) -> Filter {
        Filter(text.to_lowercase())
    }

    fn passes(&self, name: &str) -> bool {
        let name = || name.to_lowercase();
        match &self.0 {
            it if it.is_empty() => true,
            it if names::is_pattern(it) => {
                let name = name();
                names::is_match(it, &name) || names::is_match(it, name.trim_start_matches('/'))
            }
            it => name().contains(it),
        }
    }
}

/// The columns that fit into a line, with their widths; the name has what is left.
pub fn layout<R: Row>(limit: usize) -> Vec<(&'static Column<R>, usize)> {
    let mut kept: Vec<&'static Column<R>> = R::COLUMNS.iter().collect();
    let taken = |kept: &[&Column<R>]| kept.iter().map(|it| it.width + 1).sum::<usize>() - 1;
    while kept.len() > 1 && taken(&kept) > limit {
        let last = (0..kept.len()).max_by_key(|&index| kept[index].rank);
        kept.remove(last.unwrap_or_default());
    }
    let free = limit.saturating_sub(taken(&kept));
    let width = |it: &Column<R>| if it.rank == 0 { (it.width + free).min(limit) } else { it.width };
    kept.into_iter().map(|it| (it, width(it))).collect()
}

/// The width of a table with all columns and with names of so many characters.
pub fn width<R: Row>(name: usize) -> usize {
    let others: usize = R::COLUMNS[1..].iter().map(|it| it.width + 1).sum();
    others + name.max(R::COLUMNS[0].width)
}

/// A line of a table.
pub fn line<R: Row>(
    layout: &[(&'static Column<R>, usize)],
    cell: impl Fn(&Column<R>) -> String,
) -> String {
    let cells = layout.iter().enumerate().map(|(index, (column, width))| match index {
        0 => text::left(&cell(column), *width),
        _ => text::right(&cell(column), *width),
    });
    cells.collect::<Vec<_>>().join(" ")
}

const fn column<R>(
    title: &'static str,
    name: &'static str,
    key: char,
    width: usize,
    rank: u8,
    cell: fn(&R) -> String,
    value: fn(&R) -> Option<f64>,
) -> Column<R> {
    Column { title, name, key, width, rank, cell, value }
}

fn endpoints(topic: &TopicRow) -> String {
    let refused = if topic.refused > 0 { "!" } else { "" };
    format!("{}/{}{refused}", topic.publishers.len(), topic.subscribers.len())
}

fn bandwidth(topic: &TopicRow) -> String {
    text::number_or_dash(topic.bytes_per_s)
}

fn latency(topic: &TopicRow, of: fn(&super::snapshot::Latency) -> f64) -> String {
    topic.latency_us.map_or_else(|| "-".to_owned(), |it| text::duration(of(&it) * 1e3))
}

fn pid(node: &NodeRow) -> String {
    if node.pid == 0 { "-".to_owned() } else { node.pid.to_string() }
}

fn memory(node: &NodeRow) -> Option<f64> {
    node.memory_bytes.map(|bytes| bytes as f64)
}

fn threads(node: &NodeRow) -> Option<f64> {
    node.threads.map(f64::from)
}

fn state(node: &NodeRow) -> String {
    let state = match () {
        () if node.is_stopped => "stopped",
        () if node.is_silent => "silent",
        () => "",
    };
    state.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topics(rates: &[(&str, Option<f64>)]) -> Vec<TopicRow> {
        let row = |&(name, rate_hz): &(&str, Option<f64>)| TopicRow {
            name: name.to_owned(),
            wire_name: name.to_owned(),
            rate_hz,
            ..TopicRow::default()
        };
        rates.iter().map(row).collect()
    }

    fn shown(table: &Table<TopicRow>, rows: &[TopicRow]) -> Vec<String> {
        table.rows(rows).map(|it| it.name.clone()).collect()
    }

    #[test]
    fn rows_are_sorted_by_any_column_both_ways() {
        let rows = topics(&[("b", Some(1.0)), ("c", None), ("a", Some(30.0)), ("d", Some(1.0))]);
        let mut table = Table::new(Some("rate"));
        table.arrange(&rows, "");
        assert_eq!(shown(&table, &rows), ["a", "b", "d", "c"]);
        assert!(table.sort_by('r'));
        table.arrange(&rows, "");
        assert_eq!(shown(&table, &rows), ["b", "d", "a", "c"], "the unknown stay last");
        assert!(table.sort_by('n') && !table.sort_by('z'));
        table.arrange(&rows, "");
        assert_eq!(shown(&table, &rows), ["a", "b", "c", "d"]);
        table.sort_by('n');
        table.arrange(&rows, "");
        assert_eq!(shown(&table, &rows), ["d", "c", "b", "a"]);
    }

    #[test]
    fn the_selected_row_stays_selected_while_rows_move() {
        let mut table = Table::new(Some("rate"));
        let rows = topics(&[("a", Some(3.0)), ("b", Some(2.0)), ("c", Some(1.0))]);
        table.arrange(&rows, "");
        table.move_by(&rows, 1);
        assert_eq!(table.selected(&rows).unwrap().name, "b");
        let rows = topics(&[("a", Some(3.0)), ("b", Some(9.0)), ("c", Some(4.0))]);
        table.arrange(&rows, "");
        assert_eq!((table.selected(&rows).unwrap().name.as_str(), table.at()), ("b", 0));

        // It goes; the row at its place is selected. The last place moves up.
        let rows = topics(&[("a", Some(3.0)), ("c", Some(4.0))]);
        table.arrange(&rows, "");
        assert_eq!(table.selected(&rows).unwrap().name, "c");
        table.move_by(&rows, 10);
        assert_eq!(table.selected(&rows).unwrap().name, "a");
        table.arrange(&rows, "c");
        assert_eq!(table.selected(&rows).unwrap().name, "c");
        table.arrange(&rows, "x");
        assert!(table.selected(&rows).is_none() && table.is_empty());
        table.move_by(&rows, -1);
        table.arrange(&rows, "");
        assert!(table.selected(&rows).is_some());
    }

    #[test]
    fn filters_are_parts_of_names_or_patterns() {
        let rows = topics(&[("/camera/left", None), ("camera/right", None), ("imu", None)]);
        let mut table: Table<TopicRow> = Table::new(None);
        for (filter, expected) in [
            ("CAM", 2),
            ("camera/*", 2),
            ("/camera/*", 1),
            ("*mu", 1),
            ("im?", 1),
            ("m?", 0),
            ("", 3),
        ] {
            table.arrange(&rows, filter);
            assert_eq!(table.len(), expected, "{filter}");
        }
    }

    #[test]
    fn the_selected_row_is_visible() {
        let names: Vec<_> = (0..100).map(|index| format!("{index:03}")).collect();
        let names: Vec<_> = names.iter().map(|it| (it.as_str(), None)).collect();
        let rows = topics(&names);
        let mut table = Table::new(None);
        table.arrange(&rows, "");
        assert_eq!(table.visible(10), 0..10);
        table.move_by(&rows, 12);
        assert_eq!(table.visible(10), 3..13);
        table.move_by(&rows, -1);
        assert_eq!(table.visible(10), 3..13, "it scrolls no more than it has to");
        table.move_by(&rows, 1000);
        assert_eq!(table.visible(10), 90..100);
        assert_eq!(table.visible(200), 0..100);
        assert_eq!(table.visible(0), 100..100);
        table.arrange(&rows, "09");
        assert_eq!(table.visible(20), 0..11);
    }

    #[test]
    fn headings_fit_with_the_mark_of_sorting() {
        fn check<R: Row>() {
            assert!(R::COLUMNS.iter().all(|it| it.title.len() < it.width));
        }
        check::<TopicRow>();
        check::<NodeRow>();
    }

    #[test]
    fn narrow_terminals_keep_the_columns_that_matter_most() {
        fn titles<R: Row>(limit: usize) -> Vec<&'static str> {
            layout::<R>(limit).iter().map(|(column, _)| column.title).collect()
        }
        let all: Vec<_> = TopicRow::COLUMNS.iter().map(|it| it.title).collect();
        assert_eq!(titles::<TopicRow>(78), all);
        assert_eq!(titles::<TopicRow>(38), ["TOPIC", "RATE/s", "P99", "LOST"]);
        assert_eq!(titles::<TopicRow>(5), ["TOPIC"]);
        let all: Vec<_> = NodeRow::COLUMNS.iter().map(|it| it.title).collect();
        assert_eq!(titles::<NodeRow>(78), all);
        assert_eq!(titles::<NodeRow>(38), ["NODE", "CPU%", "MEM", "THR"]);
        for limit in 0..200 {
            let taken: usize = layout::<TopicRow>(limit).iter().map(|(_, width)| width + 1).sum();
            assert!(taken <= limit + 1, "{limit}");
        }
    }
}
