//! How reports write the figures of [`METRICS`], and which of them appear in plots ([`PLOTTED`]).

use myelin_bench_kit::protocol::Workload;
use serde::Serialize;

use super::entry::Entry;
use super::format;
use crate::summary::{Cell, Distribution, METRICS, Metric, Summary, Value};

impl Metric {
    /// The metric's columns in `summary.csv` with a cell's values; empty for not measured or
    /// withheld, `inf` for infinite.
    fn columns(&self, cell: &Cell) -> Vec<(String, String)> {
        let optional = |value: Option<f64>| value.map(|it| it.to_string()).unwrap_or_default();
        let part = |end: &str, value| (format!("{}_{end}", self.name), optional(value));
        match (self.of)(cell) {
            Value::Text(text) => vec![(self.name.to_owned(), text)],
            Value::Number(value) => vec![(self.name.to_owned(), optional(value))],
            Value::Interval(ends) => {
                vec![part("low", ends.map(|it| it[0])), part("high", ends.map(|it| it[1]))]
            }
            Value::Distribution(found) => {
                PERCENTILES.map(|(name, of)| part(name, found.and_then(of))).into()
            }
            Value::OfRuns => Vec::new(),
        }
    }

    /// Whether any of these cells has the metric.
    fn is_of(&self, cells: &[Cell]) -> bool {
        self.of_some.is_none_or(|has| cells.iter().any(has))
    }

    /// The metric as a table shows it, for a distribution its median; `None` if it was not
    /// measured.
    pub(super) fn text(&self, cell: &Cell) -> Option<String> {
        match (self.of)(cell) {
            Value::Text(text) => Some(text),
            Value::Number(value) => value.map(|value| self.written(value)),
            Value::Interval(ends) => ends.map(format::interval_us),
            Value::Distribution(found) => found.map(|it| format::us_or_dash(it.p50)),
            Value::OfRuns => None,
        }
    }

    /// Whether the metric has percentiles.
    pub(super) fn is_distribution(&self) -> bool {
        matches!((self.of)(&Cell::default()), Value::Distribution(_))
    }

    /// The 99th percentile of a distribution.
    pub(super) fn p99(&self, cell: &Cell) -> Option<f64> {
        match (self.of)(cell) {
            Value::Distribution(found) => found?.p99,
            _ => None,
        }
    }

    /// The value in the form of the unit at the end of the metric's name.
    fn written(&self, value: f64) -> String {
        let ends = |end: &str| self.name.ends_with(end);
        match () {
            () if ends("_us") || ends("us_per_message") => format::us(value),
            () if ends("_percent") => format::cpu_percent(value),
            () if ends("_share") => format::share_percent(value),
            () if ends("_bytes") => format::bytes(value as u64),
            () if ends("_per_s") || ends("_ms") || ends("_faults") => format::amount(value),
            () => format::count(value as u64),
        }
    }

    /// A figure of single runs, in the unit of its comparison.
    pub(crate) fn compared_text(&self, value: f64) -> String {
        if self.name.ends_with("_bytes") {
            format::megabytes(value as u64)
        } else {
            format::us(value)
        }
    }
}

type Part = fn(Distribution) -> Option<f64>;
const PERCENTILES: [(&str, Part); 7] = [
    ("min", |distribution| Some(distribution.min)),
    ("mean", |distribution| Some(distribution.mean)),
    ("p50", |distribution| distribution.p50),
    ("p90", |distribution| distribution.p90),
    ("p99", |distribution| distribution.p99),
    ("p999", |distribution| distribution.p999),
    ("max", |distribution| Some(distribution.max)),
];

/// `summary.csv`: one row for each cell, one flat column for each figure, units in the names. Empty
/// means not measured or withheld; `summary.json` distinguishes the two.
pub(super) fn csv(summary: &Summary) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let written = write(summary, &mut writer);
    let bytes = written.and_then(|()| Ok(writer.into_inner().map_err(|e| e.into_error())?));
    let bytes = bytes.expect("writing to memory does not fail");
    String::from_utf8(bytes).expect("every field is text")
}

/// `topics.csv`: one row for each cell and topic of a replayed recording; empty without any.
pub(super) fn topics_csv(summary: &Summary) -> String {
    let rows = summary.cells.iter().flat_map(|cell| cell.by_topic.iter().map(move |it| (cell, it)));
    let mut writer = csv::Writer::from_writer(Vec::new());
    for (cell, topic) in rows {
        let row = TopicRow {
            scenario: &cell.scenario,
            system: &cell.system,
            tuning: cell.tuning.name(),
            topology: cell.topology.name(),
            subscribers: cell.params.subscribers,
            runs: cell.runs,
            valid: cell.valid,
            topic: &topic.topic,
            rate_hz: topic.rate_hz,
            payload_bytes: topic.payload_bytes,
            payload_bytes_max: topic.payload_bytes_max,
            sent: topic.sent,
            received: topic.received,
            lost: topic.lost,
            one_way_us_min: topic.one_way_us.map(|of| of.min),
            one_way_us_mean: topic.one_way_us.map(|of| of.mean),
            one_way_us_p50: topic.one_way_us.and_then(|of| of.p50),
            one_way_us_p90: topic.one_way_us.and_then(|of| of.p90),
            one_way_us_p99: topic.one_way_us.and_then(|of| of.p99),
            one_way_us_p999: topic.one_way_us.and_then(|of| of.p999),
            one_way_us_max: topic.one_way_us.map(|of| of.max),
        };
        writer.serialize(row).expect("every field is a scalar");
    }
    let bytes = writer.into_inner().expect("writing to memory does not fail");
    String::from_utf8(bytes).expect("every field is text")
}

/// The columns of `topics.csv`.
#[derive(Serialize)]
struct TopicRow<'a> {
    scenario: &'a str,
    system: &'a str,
    tuning: &'a str,
    topology: &'a str,
    subscribers: u32,
    runs: u32,
    valid: bool,
    topic: &'a str,
    rate_hz: f64,
    payload_bytes: u64,
    payload_bytes_max: u64,
    sent: u64,
    received: u64,
    lost: u64,
    one_way_us_min: Option<f64>,
    one_way_us_mean: Option<f64>,
    one_way_us_p50: Option<f64>,
    one_way_us_p90: Option<f64>,
    one_way_us_p99: Option<f64>,
    one_way_us_p999: Option<f64>,
    one_way_us_max: Option<f64>,
}

/// Leaves out columns that are the same for every cell.
fn write(summary: &Summary, writer: &mut csv::Writer<Vec<u8>>) -> Result<(), csv::Error> {
    let metrics: Vec<&Metric> = METRICS.iter().filter(|it| it.is_of(&summary.cells)).collect();
    let columns = |cell: &Cell| metrics.iter().flat_map(|it| it.columns(cell)).unzip();
    let (heads, _): (Vec<String>, Vec<String>) = columns(&Cell::default());
    writer.write_record(heads)?;
    for cell in &summary.cells {
        let (_, fields): (Vec<String>, Vec<String>) = columns(cell);
        writer.write_record(fields)?;
    }
    Ok(())
}

/// A figure that plots draw against a parameter: its name in the page's scripts, its name in
/// published reports (if they have it), and its value.
pub(super) type Plotted = (&'static str, &'static str, fn(&Entry) -> Option<f64>);

/// In the order of the page's document.
pub(super) static PLOTTED: &[Plotted] = &[
    ("p50", "latency_us", |entry| plotted(entry)?.p50),
    ("p99", "", |entry| plotted(entry)?.p99),
    ("p999", "", |entry| plotted(entry)?.p999),
    ("cpu", "cpu_percent", |entry| entry.cell.cpu_percent),
    ("memory", "memory_MB", memory_mb),
    ("lost", "loss_percent", |entry| entry.loss_percent()),
    ("taken", "", |entry| flood(entry)?.taken_per_s),
    ("lossless", "", |entry| flood(entry)?.lossless_per_s),
    ("bytes", "", |entry| {
        let bytes = entry.cell.params.payload_bytes as f64 / 1e6;
        flood(entry)?.taken_per_s.map(|rate| rate * bytes)
    }),
    ("cpu_us", "", |entry| entry.cell.cpu_us_per_message),
];

fn is_flood(cell: &Cell) -> bool {
    cell.workload == Workload::Flood
}

fn flood<'a>(entry: &Entry<'a>) -> Option<&'a Cell> {
    Some(entry.cell).filter(|cell| is_flood(cell))
}

/// The latency; none for a flood, whose latency is the depth of a queue.
fn plotted<'a>(entry: &Entry<'a>) -> Option<&'a Distribution> {
    entry.latency().filter(|_| !is_flood(entry.cell))
}

/// Every process has memory, so zero means that it was not read.
pub(super) fn memory_mb(entry: &Entry) -> Option<f64> {
    entry.cell.pss_bytes.filter(|bytes| *bytes > 0).map(|bytes| bytes as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::{Better, OverRuns};

    /// A table of figures in `docs/reference/results.md`.
    fn markdown(head: &str, row: impl Fn(&Metric) -> Option<String>) -> String {
        let bars = head.chars().filter(|letter| *letter == '|').count() - 1;
        let line = format!("|{}\n", "---|".repeat(bars));
        format!("{head}\n{line}{}", METRICS.iter().filter_map(row).collect::<String>())
    }

    fn better(metric: &Metric) -> String {
        match metric.better {
            Better::Neither => String::new(),
            better => format!("{better:?}").to_lowercase(),
        }
    }

    fn column(metric: &Metric) -> Option<String> {
        let columns = match (metric.of)(&Cell::default()) {
            Value::OfRuns => return None,
            Value::Distribution(_) => format!("`{}_…`", metric.name),
            _ => {
                let columns = metric.columns(&Cell::default()).into_iter();
                format!("`{}`", columns.map(|it| it.0).collect::<Vec<_>>().join("`, `"))
            }
        };
        let over = match metric.over_runs {
            OverRuns::Cell => String::new(),
            over => format!("{over:?}").to_lowercase(),
        };
        Some(format!("| {columns} | {} | {over} | {} |\n", metric.about, better(metric)))
    }

    fn of_runs(metric: &Metric) -> Option<String> {
        let is_single = metric.over_runs == OverRuns::Single;
        let row = || format!("| `{}` | {} | {} |\n", metric.name, metric.about, better(metric));
        is_single.then(row)
    }

    #[test]
    fn the_guide_has_every_figure() {
        let kept = include_str!("../../../../docs/reference/results.md");
        for table in [
            markdown("| column | what | of the runs | better |", column),
            markdown("| metric | what | better |", of_runs),
        ] {
            assert!(kept.contains(&table), "keep this in docs/reference/results.md:\n{table}");
        }
    }
}
