//! How the figures of [`METRICS`] are written, and which of them stand where: [`PAGE`] in the summary
//! table of the page, [`COMPARED`] in comparisons of folders, [`PLOTTED`] in plots.

use myelin_bench_kit::protocol::Workload;
use serde::Serialize;

use super::entry::Entry;
use super::format;
use crate::summary::{Cell, Distribution, METRICS, Metric, Percentile, RunPoint, Value};

impl Metric {
    /// By its name; one that does not exist is a mistake in a table of this file.
    pub(super) fn named(name: &str) -> &'static Metric {
        let found = METRICS.iter().find(|metric| metric.name == name);
        found.unwrap_or_else(|| panic!("no metric {name}"))
    }

    /// Its columns in `summary.csv`.
    pub(super) fn columns(&self) -> Vec<String> {
        let with = |ends: &[&str]| ends.iter().map(|end| format!("{}_{end}", self.name)).collect();
        match (self.of)(&Cell::default()) {
            Value::Text(_) | Value::Number(_) => vec![self.name.to_owned()],
            Value::Interval(_) => with(&["low", "high"]),
            Value::Distribution(_) => with(&PERCENTILES.map(|(percentile, _)| percentile)),
        }
    }

    /// What stands in [`Metric::columns`]; empty is not measured, or withheld.
    pub(super) fn fields(&self, cell: &Cell) -> Vec<String> {
        let optional = |value: Option<f64>| value.map(|it| it.to_string()).unwrap_or_default();
        match (self.of)(cell) {
            Value::Text(text) => vec![text],
            Value::Number(value) => vec![optional(value)],
            Value::Interval(ends) => [0, 1].map(|end| optional(ends.map(|it| it[end]))).into(),
            Value::Distribution(found) => {
                PERCENTILES.map(|(_, percentile)| optional(found.and_then(percentile))).into()
            }
        }
    }

    /// Whether any of these cells has it.
    pub(super) fn is_of(&self, cells: &[Cell]) -> bool {
        self.of_some.is_none_or(|has| cells.iter().any(has))
    }

    /// As a table writes it, the median of a distribution; `None` if it was not measured.
    pub(super) fn text(&self, cell: &Cell) -> Option<String> {
        match (self.of)(cell) {
            Value::Text(text) => Some(text),
            Value::Number(value) => value.map(|value| self.written(value)),
            Value::Interval(ends) => ends.map(format::interval_us),
            Value::Distribution(found) => found.map(|it| format::us_or_dash(it.p50)),
        }
    }

    /// Whether it has percentiles.
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

    /// By the unit that its name ends in.
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

/// A column of the summary table of the page.
pub(super) struct PageColumn {
    pub head: &'static str,
    pub shows: Shows,
    /// Whether only what goes one way has it.
    pub is_one_way: bool,
    /// What else a reader may ask of the figure.
    pub title: Option<fn(&Cell) -> String>,
}

/// What stands in a column.
pub(super) enum Shows {
    /// By its name.
    Metric(&'static str),
    /// What it is; `None` if it was not measured.
    Text(&'static str, fn(&Entry) -> Option<String>),
}

impl PageColumn {
    /// What the heading says to those who ask.
    pub(super) fn about(&self) -> String {
        match self.shows {
            Shows::Text(about, _) => about.to_owned(),
            Shows::Metric(name) => {
                let metric = Metric::named(name);
                let median = if metric.is_distribution() { "; median" } else { "" };
                format!("{}{median}", metric.about)
            }
        }
    }

    const fn one_way(self) -> Self {
        PageColumn { is_one_way: true, ..self }
    }

    const fn titled(self, title: fn(&Cell) -> String) -> Self {
        PageColumn { title: Some(title), ..self }
    }
}

/// The summary table, behind the percentiles of the latency.
pub(super) static PAGE: &[PageColumn] = &[
    column("write_us", "write µs"),
    column("read_us", "read µs"),
    column("wake_us", "wake µs"),
    column("throughput_per_s", "per second"),
    column("lost", "lost").titled(|cell| {
        format!(
            "sent {}, duplicates {}, out of order {}, corrupt {}",
            cell.sent, cell.duplicates, cell.out_of_order, cell.corrupt
        )
    }),
    column("cpu_us_per_message", "CPU µs/msg")
        .titled(|cell| format!("{} % of a core", format::cpu_percent(cell.cpu_percent))),
    column("voluntary_switches_per_s", "switches/s")
        .titled(|cell| format!("and {:.0} involuntary", cell.involuntary_switches_per_s)),
    column("page_faults", "faults"),
    column("pss_bytes", "PSS").titled(|cell| {
        format!("RSS, shared pages counted for each: {}", format::bytes(cell.rss_bytes))
    }),
    column("shared_bytes", "shared"),
    column("startup_ms", "start ms"),
    text_column("runs × n", "runs, and figures in each of them", |entry| {
        let (runs, samples) = (entry.cell.runs, entry.cell.samples);
        Some(format!("{runs} × {}", format::count(samples / u64::from(runs.max(1)))))
    }),
    text_column(
        "naive p99.9 µs",
        "from the stamp instead of the time the message was due: what a publisher that is held up \
         does not show; of streams with a rate",
        |entry| {
            let cell = entry.cell;
            let has_rate = cell.workload == Workload::Stream && cell.params.rate_hz.is_some();
            let naive = cell.service_us.filter(|_| has_rate)?;
            Some(format::us_or_dash(naive.p999))
        },
    )
    .one_way(),
    text_column(
        "late p99 µs",
        "behind the schedule when the loan is asked for; 99th percentile",
        |entry| Some(format::us_or_dash(entry.cell.lateness_us?.p99)),
    )
    .one_way(),
    column("lateness_us", "late µs").one_way(),
    column("loan_us", "loan µs").one_way(),
    column("fill_us", "fill µs").one_way(),
    column("memcpy_us", "memcpy µs").one_way(),
    column("stream_copy_us", "streaming µs").one_way(),
    column("cpu_percent", "CPU %").one_way(),
    column("receiver_cpu_percent", "receiver %").one_way(),
    text_column("lost %", "of the messages that were to be taken", |entry| {
        entry.loss_percent().map(format::percent)
    })
    .one_way(),
    text_column(
        "QoS, depth",
        "what the system was set to: reliability, and messages kept for one who lags",
        |entry| Some(format::qos(&entry.cell.params)),
    )
    .one_way(),
];

const fn column(metric: &'static str, head: &'static str) -> PageColumn {
    PageColumn { head, shows: Shows::Metric(metric), is_one_way: false, title: None }
}

const fn text_column(
    head: &'static str,
    about: &'static str,
    of: fn(&Entry) -> Option<String>,
) -> PageColumn {
    PageColumn { head, shows: Shows::Text(about, of), is_one_way: false, title: None }
}

/// A figure that each run has of its own, by which folders are compared. Lower is better.
#[derive(Debug)]
pub struct Compared {
    /// As JSON names it, with its unit.
    pub name: &'static str,
    /// As a heading.
    pub words: &'static str,
    /// The unit of what [`Compared::text`] writes.
    pub unit: &'static str,
    /// Whether it is a latency of messages, which depends on where the two ends ran.
    pub(crate) is_latency: bool,
    /// Of one run; of messages across cores alone, if the flag says so.
    pub(crate) of: fn(&RunPoint, bool) -> Option<f64>,
    /// Whether cells of this kind have it.
    pub(crate) is_of: fn(&Entry) -> bool,
    /// A difference up to this is none, whatever part of the whole it is; of latencies a step of the
    /// clock instead.
    immaterial: f64,
}

impl Compared {
    /// A value without its unit.
    pub fn text(&self, value: f64) -> String {
        match self.name {
            "pss_bytes" => format::megabytes(value as u64),
            _ => format::us(value),
        }
    }

    /// A difference up to this is none, whatever part of the whole it is.
    pub(crate) fn immaterial(&self, clock_step_ns: u64) -> f64 {
        if self.is_latency { clock_step_ns as f64 / 1e3 } else { self.immaterial }
    }
}

impl Serialize for Compared {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name)
    }
}

/// In the order of reports.
pub static COMPARED: [Compared; 5] = [
    latency("p50_us", "p50", |run, across| run.latency(Percentile::P50, across)),
    latency("p99_us", "p99", |run, across| run.latency(Percentile::P99, across)),
    Compared {
        name: "first_sample_us",
        words: "first sample",
        of: |run, _| run.first_sample_us,
        is_of: is_startup,
        ..ANY
    },
    // Not per cent of a core: that is as much as there is back to back, however much is done with
    // it, and falls where a rate is not reached. It means nothing where only the first message counts.
    Compared {
        name: "cpu_us_per_message",
        words: "CPU",
        unit: "µs for each message",
        of: |run, _| run.cpu_us_per_message,
        is_of: |entry| !is_startup(entry),
        ..ANY
    },
    // Proportional memory shares out the pages of the C library and the like among all who map them,
    // so it moves when other programs start and end: by 0.13 MB between ten sessions of two small
    // processes on a busy machine.
    Compared {
        name: "pss_bytes",
        words: "memory",
        unit: "MB (PSS)",
        of: |run, _| run.pss_bytes.map(|bytes| bytes as f64),
        immaterial: 500e3,
        ..ANY
    },
];

fn is_startup(entry: &Entry) -> bool {
    entry.cell.workload == Workload::Startup
}

const ANY: Compared = Compared {
    name: "",
    words: "",
    unit: "µs",
    is_latency: false,
    of: |_, _| None,
    is_of: |_| true,
    immaterial: 0.0,
};

/// Of cells whose latency says something; that of a flood is the depth of a queue.
const fn latency(
    name: &'static str,
    words: &'static str,
    of: fn(&RunPoint, bool) -> Option<f64>,
) -> Compared {
    Compared { name, words, is_latency: true, of, is_of: |entry| entry.is_steady(), ..ANY }
}

/// A figure that plots draw against a parameter.
pub(super) struct Plotted {
    /// As the page's scripts name it.
    pub key: &'static str,
    pub of: fn(&Entry) -> Option<f64>,
    /// As published reports name it.
    pub published: Option<&'static str>,
}

/// In the order of the page's document.
pub(super) static PLOTTED: &[Plotted] = &[
    drawn("p50", |entry| plotted(entry)?.p50).published("latency_us"),
    drawn("p99", |entry| plotted(entry)?.p99),
    drawn("p999", |entry| plotted(entry)?.p999),
    drawn("cpu", |entry| Some(entry.cell.cpu_percent)).published("cpu_percent"),
    drawn("memory", memory_mb).published("memory_MB"),
    drawn("lost", |entry| entry.loss_percent()).published("loss_percent"),
    drawn("taken", |entry| flood(entry)?.taken_per_s),
    drawn("lossless", |entry| flood(entry)?.lossless_per_s),
    drawn("bytes", |entry| {
        let bytes = entry.cell.params.payload_bytes as f64 / 1e6;
        flood(entry)?.taken_per_s.map(|rate| rate * bytes)
    }),
    drawn("cpu_us", |entry| Some(entry.cell.cpu_us_per_message)),
];

impl Plotted {
    const fn published(self, metric: &'static str) -> Self {
        Plotted { published: Some(metric), ..self }
    }
}

const fn drawn(key: &'static str, of: fn(&Entry) -> Option<f64>) -> Plotted {
    Plotted { key, of, published: None }
}

fn is_flood(cell: &Cell) -> bool {
    cell.workload == Workload::Flood
}

fn flood<'a>(entry: &Entry<'a>) -> Option<&'a Cell> {
    Some(entry.cell).filter(|cell| is_flood(cell))
}

/// The latency; of a flood it is the depth of a queue.
fn plotted<'a>(entry: &Entry<'a>) -> Option<&'a Distribution> {
    entry.latency().filter(|_| !is_flood(entry.cell))
}

/// No process is without memory: at zero nobody has looked.
pub(super) fn memory_mb(entry: &Entry) -> Option<f64> {
    (entry.cell.pss_bytes > 0).then(|| entry.cell.pss_bytes as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::{Better, OverRuns};

    /// The table of figures as `docs/results.md` has it.
    fn markdown() -> String {
        let row = |metric: &Metric| {
            let columns = match (metric.of)(&Cell::default()) {
                Value::Distribution(_) => format!("`{}_…`", metric.name),
                _ => format!("`{}`", metric.columns().join("`, `")),
            };
            let over = match metric.over_runs {
                OverRuns::Cell => String::new(),
                over => format!("{over:?}").to_lowercase(),
            };
            let better = match metric.better {
                Better::Neither => String::new(),
                better => format!("{better:?}").to_lowercase(),
            };
            format!("| {columns} | {} | {over} | {better} |\n", metric.about)
        };
        let head = "| column | what | of the runs | better |\n|---|---|---|---|\n";
        head.to_owned() + &METRICS.iter().map(row).collect::<String>()
    }

    #[test]
    fn the_guide_has_every_figure() {
        let kept = include_str!("../../../../docs/results.md");
        let table = markdown();
        assert!(kept.contains(&table), "keep this in docs/results.md:\n{table}");
    }

    #[test]
    fn tables_name_figures_that_exist() {
        for column in PAGE {
            if let Shows::Metric(name) = column.shows {
                assert_eq!(Metric::named(name).name, name);
            }
        }
    }
}
