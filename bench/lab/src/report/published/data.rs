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
    /// The first one has the figures from which others are derived.
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
    Sweep,
}

/// A table of published figures, or a table derived from one.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(in crate::report) struct PublishedTable {
    /// `{scenario}` and `{rate}` are replaced by ours.
    pub caption: String,
    /// What the figures are, and how they are derived.
    pub remark: String,
    /// Headings of the first columns, which identify a row. `here` names our counterpart and is no
    /// column.
    pub labels: Vec<String>,
    /// Headings of figures with two columns: published and measured here.
    #[serde(default)]
    pub pairs: Vec<String>,
    /// Headings of unpublished figures.
    #[serde(default)]
    pub alone: Vec<String>,
    /// How its rows are derived, unless they are published rows beside ours.
    pub made_of: Option<MadeOf>,
    /// Whether it is about two hosts; absent: about either.
    pub across_hosts: Option<bool>,
    /// The first measured system of these is shown beside every row.
    pub first_of: Option<Vec<String>>,
    /// Names of labels, keys and metrics; of systems, if each row is another metric.
    #[serde(default)]
    columns: Vec<String>,
    #[serde(default)]
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

/// Tables derived from the figures of others, or from ours.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(in crate::report) enum MadeOf {
    Gains,
    Growth,
    Tiers,
    Resources,
    Scores,
    Sweep,
}

/// A row of a [`PublishedTable`].
#[derive(Clone, Copy)]
pub(in crate::report) struct PublishedRow<'t> {
    pub table: &'t PublishedTable,
    values: &'t [PublishedValue],
}

impl Experiment {
    /// Our groups that repeat it: all of them for modules and sweeps, otherwise the first.
    pub(super) fn groups<'v, 'a>(&self, view: &'v View<'a>) -> Vec<&'v Group<'a>> {
        let all = || view.groups.iter().filter(|group| self.is_of(group));
        let named = |name| all().filter(move |group| group.scenario == name);
        let mut groups: Vec<_> = match self.of {
            Of::Modules | Of::Frames => all().collect(),
            _ => self.scenarios.iter().flat_map(named).collect(),
        };
        if !matches!(self.of, Of::Modules | Of::Sweep) {
            groups.truncate(1);
        }
        groups
    }

    fn is_of(&self, group: &Group) -> bool {
        let (params, is_round_trip) = (group.params(), group.metric == Latency::RoundTrip);
        match self.of {
            Of::BackToBack => is_round_trip && params.rate_hz.is_none(),
            Of::Paced => is_round_trip && params.rate_hz.is_some(),
            Of::Modules => group.is_flow() && params.module.is_some(),
            Of::Frames => group.entries.iter().any(|entry| entry.cell.params.frame.is_some()),
            Of::Sweep => group.is_flow(),
        }
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
