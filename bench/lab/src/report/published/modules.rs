//! Published figures of the modules of a self-driving car beside the measured ones: Apollo's
//! CyberRT.
//!
//! Its latency is a mean, so ours stands beside it, and the median next to that. What was published
//! of two hosts stands beside what was measured across two, and is listed in any case: no published
//! row is without a place.

use myelin_bench_kit::protocol::Topology;
use serde::Deserialize;

use super::super::view::{Entry, Group, View};
use super::super::words;
use super::{Beside, Comparison, ComparisonRow, Published, dash, struck, sweeps};

/// `bench/published/cyberrt-apollo10.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CyberRt {
    /// Short name of the report.
    pub id: String,
    /// What was published.
    pub title: String,
    /// What it was measured on, numbered: `1: …; 2: …`.
    pub platform: String,
    /// What was measured.
    pub systems: Vec<String>,
    /// What we found on reading or repeating the experiment.
    pub doubts: Vec<String>,
    /// Circumstances.
    pub notes: String,
    /// Publisher and subscriber on one host, on the first platform.
    pub across_processes_platform1: Published<Module>,
    /// Publisher and subscriber on two hosts, on the first platform.
    pub across_hosts_platform1: Published<Module>,
}

/// A row: what one module of the car sends, and what that came to. The latency is a mean.
#[derive(Debug, Deserialize)]
#[allow(missing_docs)] // The names say it all, units included.
pub struct Module {
    pub module: String,
    pub payload: String,
    #[serde(rename = "rate_Hz")]
    pub rate_hz: f64,
    pub cpu_percent: f64,
    pub latency_us: f64,
    pub loss_percent: f64,
    #[serde(rename = "memory_MB")]
    pub memory_mb: f64,
    /// Shared memory set aside; across hosts there is none.
    #[serde(default, rename = "arena_MB")]
    pub arena_mb: Option<f64>,
}

impl CyberRt {
    /// The figures this program was built with.
    pub fn load() -> Self {
        toml::from_str(include_str!("../../../../published/cyberrt-apollo10.toml"))
            .expect("a test reads the published figures")
    }
}

impl Module {
    /// `64 KB` as the bytes that the scenarios send; `None` if it is written otherwise.
    pub fn payload_bytes(&self) -> Option<u64> {
        let (number, unit) = self.payload.split_once(' ')?;
        let scale = match unit {
            "KB" => 1 << 10,
            "MB" => 1 << 20,
            _ => return None,
        };
        Some(number.parse::<u64>().ok()? * scale)
    }
}

/// The modules, if any was measured, and the sweeps against size and rate.
pub(super) fn beside(view: &View) -> Beside {
    let published = CyberRt::load();
    let CyberRt { title, doubts, notes, .. } = &published;
    let mut beside = Beside::new(title.clone(), doubts, notes);
    let is_module = |group: &&Group| group.is_flow() && group.params().module.is_some();
    let groups: Vec<&Group> = view.groups.iter().filter(is_module).collect();
    if groups.is_empty() {
        beside.not_measured("the four modules of a car", "modules");
    } else {
        let table = |what, remark, of: &Published<Module>, is_across| {
            let measured = |row| measured_beside(row, &groups, is_across);
            comparison(&published, what, remark, of.rows.iter().flat_map(measured).collect())
        };
        let (here, across) =
            (&published.across_processes_platform1, &published.across_hosts_platform1);
        beside.tables.push(table("across processes", HERE, here, false));
        beside.tables.push(table("across hosts", ELSEWHERE, across, true));
    }
    sweeps::add(&mut beside, view, &published);
    beside
}

fn comparison(
    published: &CyberRt,
    what: &str,
    remark: &'static str,
    rows: Vec<ComparisonRow>,
) -> Comparison {
    let platform = published.platform.split("; ").next().unwrap_or_default();
    let pairs = ["CPU %", "latency, mean", "p50", "lost %", "memory, MB", "shared, MB"];
    Comparison {
        caption: format!("Modules {what}, on platform {platform}"),
        remark,
        labels: vec!["module", "payload", "rate", "here"],
        pairs: pairs.map(str::to_owned).into(),
        rows,
        ..Comparison::default()
    }
}

/// A row for each system that was measured with this payload and rate, on one host or across two.
fn measured_beside(row: &Module, groups: &[&Group], is_across: bool) -> Vec<ComparisonRow> {
    let sends_so = |group: &&&Group| group.params().rate_hz == Some(row.rate_hz);
    let entries = groups.iter().filter(sends_so).flat_map(|group| measured(row, group));
    let entries = entries.filter(|entry| is_across_hosts(entry) == is_across);
    let rows: Vec<_> = entries.map(|entry| compared(row, Ok(entry))).collect();
    match (rows.is_empty(), is_across) {
        (false, _) => rows,
        (true, true) => vec![compared(row, Err("not measured: two hosts"))],
        (true, false) => vec![compared(row, Err("not measured"))],
    }
}

/// Whether its ends were on two hosts.
pub(super) fn is_across_hosts(entry: &Entry) -> bool {
    entry.system.topology == Topology::TwoHosts
}

/// At the first of the group's tunings; the floor last.
fn measured<'v, 'a>(row: &Module, group: &'v Group<'a>) -> Vec<&'v Entry<'a>> {
    let Some(payload) = row.payload_bytes() else { return Vec::new() };
    let tuning = group.tunings.first();
    let is_it = |entry: &&Entry| {
        entry.cell.params.payload_bytes == payload && Some(&entry.cell.tuning.as_str()) == tuning
    };
    let mut entries: Vec<_> = group.entries.iter().filter(is_it).collect();
    let rank = |entry: &Entry| group.systems.iter().position(|system| *system == entry.system);
    entries.sort_by_key(|entry| (entry.system.floor, rank(entry)));
    entries
}

fn compared(row: &Module, here: Result<&Entry, &str>) -> ComparisonRow {
    let entry = here.ok();
    let latency = entry.and_then(Entry::latency);
    let of = |figure: fn(&Entry) -> Option<String>| {
        struck(entry, entry.and_then(figure).unwrap_or_else(dash))
    };
    ComparisonRow {
        labels: vec![
            row.module.clone(),
            row.payload.clone(),
            words::rate(Some(row.rate_hz)),
            here.map_or_else(str::to_owned, Entry::configuration),
        ],
        pairs: vec![
            (plain(row.cpu_percent), of(|entry| Some(words::cpu_percent(entry.cell.cpu_percent)))),
            (plain(row.latency_us), of(|entry| Some(words::us(entry.latency()?.mean)))),
            (dash(), latency.map_or_else(dash, |_| of(|it| Some(words::us_or_dash(it.p50()))))),
            (words::percent(row.loss_percent), of(|it| it.loss_percent().map(words::percent))),
            (plain(row.memory_mb), of(|it| Some(words::megabytes(it.cell.rss_bytes)))),
            (
                row.arena_mb.map_or_else(dash, plain),
                of(|it| Some(words::megabytes(it.cell.shared_bytes))),
            ),
        ],
        alone: vec![],
    }
}

/// As it was published.
pub(super) fn plain(value: f64) -> String {
    value.to_string()
}

const HERE: &str = "One way. Published is CyberRT 10.0, whose latency is a mean; ours is from the \
time a message was due. Memory here is the RSS of all processes together, shared is what they have \
mapped in shared segments. Each system at the first tuning measured.";

const ELSEWHERE: &str = "One way, from one host to another, which topology = \"two-hosts\" \
measures. CPU and memory are of the processes of both hosts together.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_modules_are_read() {
        let published = CyberRt::load();
        let both = [&published.across_processes_platform1, &published.across_hosts_platform1];
        for table in both {
            assert_eq!(table.rows.len(), 4);
            let sizes: Vec<_> = table.rows.iter().map(Module::payload_bytes).collect();
            assert_eq!(sizes, [64 << 10, 64 << 10, 1 << 20, 10 << 20].map(Some));
        }
        assert_eq!(both[0].rows[3].arena_mb, Some(1024.0));
        assert_eq!(both[1].rows[3].arena_mb, None);
        assert_eq!(published.doubts.len(), 2);
    }
}
