//! Differences between two results folders other than the results. Read them first.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use super::{Side, entry};
use crate::report::format::{WITHHELD, plural};
use crate::report::html::host_rows;

/// Something that differs between the folders.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The part of the environment.
    pub of: Aspect,
    /// For instance `kernel`, `cyclonedds.udp, version`, `quick, workload.messages`.
    pub what: String,
    /// The value in A.
    pub a: String,
    /// The value in B.
    pub b: String,
}

/// The parts of an environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Aspect {
    /// The machine and its settings.
    Host,
    /// Versions and traits of systems.
    System,
    /// The requested measurement.
    Scenario,
    /// The configuration that a driver wrote for its system, line by line.
    Configuration,
    /// Values that differ between any two sessions: the seed, the commit, measurements of the machine
    /// before the runs.
    Session,
}

/// Every difference, the most important first; `both` has the indices of the common cells.
pub(super) fn differences(a: &Side, b: &Side, both: &[[usize; 2]]) -> Vec<Difference> {
    let mut found = of_hosts(a, b);
    let [systems_a, systems_b] = [a, b].map(|side| &side.analysis.summary.systems);
    found.extend(of_named(Aspect::System, systems_a, systems_b, |system| &system.name));
    let [scenarios_a, scenarios_b] = [a, b].map(|side| &side.plan.scenarios);
    found.extend(of_named(Aspect::Scenario, scenarios_a, scenarios_b, |scenario| &scenario.name));
    found.extend(of_configurations(a, b, both));
    let seeds = [a, b].map(|side| side.plan.seed.to_string());
    found.extend(difference(Aspect::Session, "seed".to_owned(), seeds));
    let commits = [a, b].map(|side| side.plan.commit.clone().unwrap_or_default());
    found.extend(difference(Aspect::Session, "commit".to_owned(), commits));
    found.sort_by_key(|difference| difference.of);
    found
}

/// The differences that any two cells of the same name would have, without those of any two
/// sessions.
pub(super) fn lasting(a: &Side, b: &Side) -> Vec<Difference> {
    let mut found = differences(a, b, &[]);
    found.retain(|difference| difference.of != Aspect::Session);
    found
}

/// Number of known facts about either machine.
pub(super) fn host_facts(side: &Side) -> usize {
    host_rows(&side.analysis.summary.host).len()
}

fn difference(of: Aspect, what: String, [a, b]: [String; 2]) -> Option<Difference> {
    (a != b).then_some(Difference { of, what, a, b })
}

fn of_hosts(a: &Side, b: &Side) -> Vec<Difference> {
    let [a, b] = [a, b].map(|side| host_rows(&side.analysis.summary.host));
    let rows = a.into_iter().zip(b);
    let differing = rows.filter_map(|((what, a), (_, b))| {
        let of = if PASSING.contains(&&*what) { Aspect::Session } else { Aspect::Host };
        difference(of, what, [a, b])
    });
    differing.collect()
}

/// Differences between entries of the same name on both sides; lists are compared as a whole.
fn of_named<T: Serialize>(of: Aspect, a: &[T], b: &[T], name: fn(&T) -> &str) -> Vec<Difference> {
    let mut found = Vec::new();
    for one in a {
        let Some(other) = b.iter().find(|other| name(other) == name(one)) else { continue };
        let [in_a, in_b] = [one, other].map(|it| {
            let mut facts = BTreeMap::new();
            leaves(
                String::new(),
                serde_json::to_value(it).expect("plain data serialises"),
                &mut facts,
            );
            facts
        });
        let paths: BTreeSet<&String> = in_a.keys().chain(in_b.keys()).collect();
        for path in paths {
            let fact = |facts: &BTreeMap<String, String>| {
                facts.get(path).map_or_else(|| WITHHELD.to_owned(), String::clone)
            };
            let what = format!("{}, {path}", name(one));
            found.extend(difference(of, what, [fact(&in_a), fact(&in_b)]));
        }
    }
    // The description of a system may change with its driver, without a change in what it does.
    found.retain(|difference| !difference.what.ends_with(", about"));
    found
}

/// The leaves of a JSON document, by path.
fn leaves(path: String, value: Value, found: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                let path = if path.is_empty() { key } else { format!("{path}.{key}") };
                leaves(path, value, found);
            }
        }
        Value::String(text) => drop(found.insert(path, text)),
        Value::Null => {}
        other => drop(found.insert(path, other.to_string())),
    }
}

/// Configuration lines that only one side has, by system and file.
fn of_configurations(a: &Side, b: &Side, both: &[[usize; 2]]) -> Vec<Difference> {
    let mut found: Vec<Difference> = Vec::new();
    for &[in_a, in_b] in both {
        let [one, other] = [entry(&a.analysis, in_a), entry(&b.analysis, in_b)];
        for (file, text) in &one.detail.configuration {
            let Some(other) = other.detail.configuration.get(file) else { continue };
            let what = format!("{}, {file}", one.cell.system);
            let lines = [unlike(text, other), unlike(other, text)];
            let new = difference(Aspect::Configuration, what, lines);
            found.extend(new.filter(|new| !found.contains(new)));
        }
    }
    found
}

/// The lines of `text` that `other` lacks; only the first ones if there are many.
fn unlike(text: &str, other: &str) -> String {
    // Lines of a single session, which uses a domain of its own and its own socket names.
    let is_own = |line: &str| line.contains("<Domain Id=") || line.contains("/myelin-");
    let known: Vec<&str> = other.lines().map(str::trim).collect();
    let lines = text.lines().map(str::trim).filter(|line| !is_own(line) && !known.contains(line));
    let lines: Vec<&str> = lines.collect();
    let shown = lines[..lines.len().min(LINES_MAX)].join(" | ");
    match lines.len().checked_sub(LINES_MAX + 1) {
        Some(more) => format!("{shown} | and {}", plural(more + 1, "more line")),
        None => shown,
    }
}

/// Measured rows of the host, which differ between any two sessions.
const PASSING: [&str; 5] = [
    "clock reading",
    "smallest clock step",
    "CPUs busy before the start",
    "loopback traffic of others",
    "steal while measuring",
];
const LINES_MAX: usize = 3;
