//! A published report, read from `bench/published/*.toml`: rows of figures, and what they describe.
//! A row is compared with our cells that its key columns name.

use std::sync::LazyLock;

use myelin_bench_kit::protocol::Topology;
use serde::{Deserialize, Serialize};

use super::super::format;
use super::super::view::{Entry, Group, Latency, View};

/// A published report.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedReport {
    /// What was measured, on which machine.
    pub(super) title: String,
    /// Doubts from reading or repeating the experiment.
    pub(super) doubts: Vec<String>,
    pub(super) notes: String,
    pub(super) experiments: Vec<Experiment>,
}

/// A published experiment that one of our scenarios repeats.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Experiment {
    pub of: Of,
    /// Our scenarios, the best counterpart first.
    pub scenarios: Vec<String>,
    /// What is missing if none of them was measured.
    pub what: String,
    /// The first one names the configurations that should be measured.
    pub tables: Vec<PublishedTable>,
}

/// How to find our groups that repeat an [`Experiment`].
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Of {
    BackToBack,
    Paced,
    Modules,
    Frames,
}

/// A table of published figures.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(in crate::report) struct PublishedTable {
    /// `{scenario}` is replaced by ours.
    pub caption: String,
    /// What the figures are.
    pub remark: String,
    /// Headings of the first columns, which identify a row. `here` names our counterpart and is no
    /// column.
    pub labels: Vec<String>,
    /// Headings of figures with two columns: published and measured here.
    pub pairs: Vec<String>,
    /// Whether it is about two hosts; absent: about either.
    pub across_hosts: Option<bool>,
    /// The first measured system of these is shown beside every row.
    pub first_of: Option<Vec<String>>,
    /// Names of labels, keys and metrics; of systems, if each row is another metric.
    columns: Vec<String>,
    rows: Vec<Vec<PublishedValue>>,
}

/// A value of a row; a text in place of a figure says that there is none.
#[derive(Debug, Deserialize, Serialize)]
#[serde(untagged)]
pub(in crate::report) enum PublishedValue {
    Number(f64),
    Text(String),
    Names(Vec<String>),
}

/// A row of a [`PublishedTable`].
#[derive(Clone, Copy)]
pub(in crate::report) struct PublishedRow<'t> {
    pub table: &'t PublishedTable,
    values: &'t [PublishedValue],
}

impl Experiment {
    /// Our groups that repeat it, those of its scenarios first; of modules all, otherwise one.
    pub(super) fn groups<'v, 'a>(&self, view: &'v View<'a>) -> Vec<&'v Group<'a>> {
        let place = |group: &Group| self.scenarios.iter().position(|name| name == group.scenario);
        let mut groups: Vec<_> =
            view.groups.iter().filter(|it| self.is_of(it, place(it).is_some())).collect();
        groups.sort_by_key(|group| place(group).unwrap_or(usize::MAX));
        if self.of != Of::Modules {
            groups.truncate(1);
        }
        groups
    }

    fn is_of(&self, group: &Group, is_named: bool) -> bool {
        let (params, is_round_trip) = (group.params(), group.metric == Latency::RoundTrip);
        match self.of {
            Of::BackToBack => is_named && is_round_trip && params.rate_hz.is_none(),
            Of::Paced => is_named && is_round_trip && params.rate_hz.is_some(),
            Of::Modules => format::is_one_to_one(group.workload, params) && self.has_row_of(group),
            Of::Frames => group.entries.iter().any(|entry| entry.cell.params.frame.is_some()),
        }
    }

    fn has_row_of(&self, group: &Group) -> bool {
        let mut rows = self.tables.iter().flat_map(PublishedTable::rows);
        rows.any(|row| group.entries.iter().any(|entry| row.is_of(entry)))
    }
}

impl PublishedTable {
    pub(in crate::report) fn rows(&self) -> impl Iterator<Item = PublishedRow<'_>> {
        self.rows.iter().map(|values| PublishedRow { table: self, values })
    }

    /// Whether a row names our counterpart.
    pub(super) fn says_here(&self) -> bool {
        self.labels.last().is_some_and(|label| label == "here")
    }

    fn labelled(&self) -> usize {
        self.labels.len() - usize::from(self.says_here())
    }
}

impl<'t> PublishedRow<'t> {
    fn get(&self, column: &str) -> Option<&'t PublishedValue> {
        self.values.get(self.table.columns.iter().position(|name| name == column)?)
    }

    pub(in crate::report) fn number(&self, column: &str) -> Option<f64> {
        let PublishedValue::Number(value) = self.get(column)? else { return None };
        Some(*value)
    }

    pub(in crate::report) fn text(&self, column: &str) -> Option<&'t str> {
        let PublishedValue::Text(text) = self.get(column)? else { return None };
        Some(text)
    }

    pub(in crate::report) fn payload(&self) -> Option<u64> {
        self.number("payload_B").map(|bytes| bytes as u64)
    }

    /// Our systems to show beside the row; all of them if it names none.
    pub(super) fn systems(&self) -> Option<Vec<&'t str>> {
        let names = match (&self.table.first_of, self.get("system")) {
            (Some(names), _) | (None, Some(PublishedValue::Names(names))) => names,
            (None, _) => return Some(vec![self.text("system")?]),
        };
        Some(names.iter().map(String::as_str).collect())
    }

    /// The values that identify the row, as text.
    pub(super) fn labels(&self) -> Vec<String> {
        let label = |(column, value): (&String, &PublishedValue)| match (column.as_str(), value) {
            ("payload_B", PublishedValue::Number(bytes)) => format::bytes(*bytes as u64),
            ("rate_Hz", PublishedValue::Number(rate)) => format::rate(Some(*rate)),
            (_, PublishedValue::Number(weight)) => format!("{weight:.2}"),
            (_, PublishedValue::Text(text)) => text.replace("half_rtt", "round_trip"),
            (_, PublishedValue::Names(names)) => names.join(", "),
        };
        self.table.columns.iter().zip(self.values).take(self.table.labelled()).map(label).collect()
    }

    /// Its figures, with their columns.
    pub(super) fn figures(&self) -> impl Iterator<Item = (&'t str, &'t PublishedValue)> {
        let named = self.table.columns.iter().map(String::as_str).zip(self.values);
        named.skip(self.table.labelled()).filter(|(column, _)| !KEYS.contains(column))
    }

    /// Whether a cell matches the row, with any system.
    pub(super) fn is_of(&self, entry: &Entry) -> bool {
        let (cell, params) = (entry.cell, &entry.cell.params);
        let is_across = entry.system.topology == Topology::TwoHosts;
        self.payload().is_none_or(|it| it == params.payload_bytes)
            && self.number("rate_Hz").is_none_or(|it| Some(it) == params.rate_hz)
            && self.text("frame").is_none_or(|it| Some(it) == params.frame.as_deref())
            && self.text("tuning").is_none_or(|it| it == cell.tuning.name())
            && self.table.across_hosts.is_none_or(|it| it == is_across)
    }
}

/// CyberRT's published figures for one host and for two; each row is a module of a car.
pub(in crate::report) fn modules() -> impl Iterator<Item = &'static PublishedTable> {
    let experiments = REPORTS.iter().flat_map(|report| &report.experiments);
    experiments.filter(|it| it.of == Of::Modules).flat_map(|it| &it.tables)
}

/// The reports built into this program.
pub(super) static REPORTS: LazyLock<[PublishedReport; 5]> = LazyLock::new(|| {
    [
        include_str!("../../../../published/cyclonedds-orin.toml"),
        include_str!("../../../../published/cyberrt-apollo10.toml"),
        include_str!("../../../../published/image-ros2-libxr.toml"),
        include_str!("../../../../published/horus-0.2.toml"),
        include_str!("../../../../published/ecal-6.toml"),
    ]
    .map(|text| toml::from_str(text).expect("a test reads the published figures"))
});

/// Columns that select our cells, and the part of a cell to show; they are no figures.
const KEYS: [&str; 6] = ["system", "tuning", "payload_B", "rate_Hz", "frame", "copied_by"];
