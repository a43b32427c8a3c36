//! Figures derived from CycloneDDS's rows by size (gains, growth, the best configurations), and the
//! resources that round trips use.
//!
//! Published figures come without runs, so they have neither intervals nor verdicts: only their
//! values are compared.

use super::super::format;
use super::super::table;
use super::super::view::{Entry, Group};
use super::data::PublishedTable;
use super::{RowBeside, dash, struck};
use crate::scenario::Tuning;
use crate::stats::verdict::Verdict;
use crate::summary::ProcessUse;

/// Published rows by size, and ours.
pub(super) struct Shape<'v, 'a> {
    pub published: &'v PublishedTable,
    pub group: &'v Group<'a>,
}

impl<'a> Shape<'_, 'a> {
    /// The published median of the whole round trip, in µs.
    fn theirs(&self, of: Configuration, payload: u64) -> Option<f64> {
        let is_it = |row: &super::data::PublishedRow| {
            (row.text("system"), row.text("tuning")) == (Some(of.0), Some(of.1.name()))
                && row.payload() == Some(payload)
        };
        let half = self.published.rows().find(is_it)?.number("half_median_us")?;
        Some(2.0 * half)
    }

    fn ours(&self, of: Configuration, payload: u64) -> Option<&Entry<'a>> {
        let entry = self.group.entry(of.0, of.1, payload);
        entry.filter(|entry| entry.fault().is_none())
    }

    /// The ratio of two medians, published and here.
    fn ratio(&self, of: [(Configuration, u64); 2]) -> (Option<f64>, Option<Verdict>) {
        let [subject, reference] = of.map(|(it, payload)| self.theirs(it, payload));
        let theirs = subject.zip(reference).map(|(subject, reference)| subject / reference);
        let [subject, reference] = of.map(|(it, payload)| self.ours(it, payload));
        let ours = subject.zip(reference).and_then(|(it, other)| self.group.verdict(it, other));
        (theirs, ours)
    }

    /// Gains of shared memory over UDP, and of tuned over default.
    pub(super) fn gains(&self, payloads: &[u64]) -> Vec<RowBeside> {
        let [udp, udp_tuned, shm, shm_tuned] = CONFIGURATIONS;
        let columns = [(shm, udp), (shm_tuned, udp_tuned), (udp_tuned, udp), (shm_tuned, shm)];
        let row = |&payload: &u64| {
            let pair = |(subject, reference)| {
                let (theirs, ours) = self.ratio([(subject, payload), (reference, payload)]);
                (theirs.map_or_else(dash, change), ours.map_or_else(dash, gain))
            };
            let pairs = columns.map(pair).into();
            RowBeside { labels: vec![format::bytes(payload)], pairs, alone: vec![] }
        };
        payloads.iter().map(row).collect()
    }

    pub(super) fn growth(&self) -> Vec<RowBeside> {
        let row = |of: Configuration| {
            let pair = |small| {
                let (theirs, ours) = self.ratio([(of, LARGEST), (of, small)]);
                let ours = ours.map_or_else(dash, |verdict| format::ratio(verdict.ratio));
                (theirs.map_or_else(dash, format::factor), ours)
            };
            let labels = vec![of.0.to_owned(), of.1.to_string()];
            RowBeside { labels, pairs: SMALLER.map(pair).into(), alone: vec![] }
        };
        CONFIGURATIONS.map(row).into()
    }

    pub(super) fn tiers(&self, payloads: &[u64]) -> Vec<RowBeside> {
        let known = |of: &dyn Fn(Configuration) -> Option<f64>| {
            CONFIGURATIONS.into_iter().filter_map(|it| Some((it, of(it)?))).collect()
        };
        let row = |&payload: &u64| {
            let slower = |it: &Contender, leader: &Contender| {
                let both = self.ours(it.0, payload).zip(self.ours(leader.0, payload));
                let verdict = both.and_then(|(it, leader)| self.group.verdict(it, leader));
                verdict.is_some_and(|it| it.kind.is_significant())
            };
            let theirs = known(&|it| self.theirs(it, payload));
            let theirs = tiers(theirs, |it, leader| it.1 > leader.1);
            let ours = known(&|it| self.ours(it, payload)?.typical_p50());
            let ours = tiers(ours, slower);
            let places = (0..CONFIGURATIONS.len()).map(|at| (names(&theirs, at), names(&ours, at)));
            let pairs = [(best(&theirs), best(&ours))].into_iter().chain(places).collect();
            RowBeside { labels: vec![format::bytes(payload)], pairs, alone: vec![] }
        };
        payloads.iter().map(row).collect()
    }
}

/// `shm tuned`.
fn name((system, tuning): Configuration) -> String {
    let transport = if system == "cyclonedds.udp" { "udp" } else { "shm" };
    format!("{transport} {tuning}")
}

fn change(ratio: f64) -> String {
    format::change_percent(ratio - 1.0)
}

/// Like [`change`], with the interval: `−47 % [−50 %, −44 %]`.
fn gain(verdict: Verdict) -> String {
    let bounds = verdict.ratio.interval.map(|ends| {
        let [most, least] = ends.map(change);
        format!(" [{most}, {least}]")
    });
    table::change(verdict).main + &bounds.unwrap_or_default()
}

/// Memory by process, CPU by thread, and context switches, for each measured configuration and
/// size. Only memory and voluntary switches were published, and only at one ping a second; they are
/// in ddsperf's table.
pub(super) fn resources(group: &Group) -> Vec<RowBeside> {
    let entries = CONFIGURATIONS.into_iter().flat_map(|(system, tuning)| {
        group.payloads.iter().filter_map(move |&size| group.entry(system, tuning, size))
    });
    entries.map(row).collect()
}

fn row(entry: &Entry) -> RowBeside {
    let cell = entry.cell;
    let labels = vec![entry.system.name.to_owned(), cell.tuning.to_string(), entry.size()];
    let of = |role: &'static str| cell.processes.iter().filter(move |it| is_of(it, role));
    let any = |role, text: String| if of(role).count() > 0 { text } else { dash() };
    let resident = |role| any(role, format::megabytes(of(role).map(|it| it.rss_bytes).sum()));
    let cpu = |role| {
        let total = format::cpu_percent(of(role).map(|it| it.cpu_percent).sum());
        let threads: Vec<_> = of(role).flat_map(threads).collect();
        let colon = if threads.is_empty() { "" } else { ": " };
        any(role, total + colon + &threads.join(", "))
    };
    let roles = ["ping", "pong", DAEMON];
    let switches = [cell.voluntary_switches_per_s, cell.involuntary_switches_per_s];
    let figures = roles.map(resident).into_iter().chain(roles.map(cpu));
    let figures = figures.chain(switches.map(format::amount));
    RowBeside { labels, pairs: vec![], alone: figures.map(|text| struck(entry, text)).collect() }
}

fn is_of(process: &ProcessUse, role: &str) -> bool {
    match role {
        DAEMON => !["ping", "pong"].contains(&process.role.as_str()),
        _ => process.role == role,
    }
}

/// `recvUC 18.2`, `main 7.02`: threads that use at least a hundredth of a core.
fn threads(process: &ProcessUse) -> impl Iterator<Item = String> {
    let busy = process.threads.iter().filter(|thread| thread.cpu_percent >= BUSY_PERCENT);
    busy.map(|it| format!("{} {}", it.name, format::cpu_percent(it.cpu_percent)))
}

/// From the fastest to the slowest; a tier holds all that are not slower than its fastest, beyond
/// noise.
fn tiers(
    mut contenders: Vec<Contender>,
    is_slower: impl Fn(&Contender, &Contender) -> bool,
) -> Vec<Tier> {
    contenders.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut tiers: Vec<Tier> = Vec::new();
    for contender in contenders {
        match tiers.last_mut() {
            Some(tier) if !is_slower(&contender, &tier[0]) => tier.push(contender),
            _ => tiers.push(vec![contender]),
        }
    }
    tiers
}

fn best(tiers: &[Tier]) -> String {
    let best = tiers.first().and_then(|tier| tier.first());
    best.map_or_else(dash, |(it, p50)| format!("{} {}", name(*it), format::us(*p50)))
}

fn names(tiers: &[Tier], place: usize) -> String {
    let names = |tier: &Tier| tier.iter().map(|(it, _)| name(*it)).collect::<Vec<_>>().join(", ");
    tiers.get(place).map_or_else(dash, names)
}

/// System and tuning.
type Configuration = (&'static str, Tuning);

/// A configuration with its median.
type Contender = (Configuration, f64);
type Tier = Vec<Contender>;

/// Configurations that were published by size.
const CONFIGURATIONS: [Configuration; 4] = [
    ("cyclonedds.udp", Tuning::Default),
    ("cyclonedds.udp", Tuning::Tuned),
    ("cyclonedds.iceoryx", Tuning::Default),
    ("cyclonedds.iceoryx", Tuning::Tuned),
];

/// Growth is relative to an empty message, the smallest non-empty one, and 1 KiB.
const SMALLER: [u64; 3] = [0, 64, 1 << 10];
const LARGEST: u64 = 64 << 10;

/// Stands for all roles other than the two ends.
const DAEMON: &str = "daemon";

/// Threads below this are not named.
const BUSY_PERCENT: f64 = 1.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn in_tiers(medians: [f64; 4], told: f64) -> Vec<Vec<String>> {
        let contenders = CONFIGURATIONS.into_iter().zip(medians).collect();
        let found = tiers(contenders, |it, leader| it.1 > leader.1 + told);
        found.iter().map(|tier| tier.iter().map(|(it, _)| name(*it)).collect()).collect()
    }

    #[test]
    fn a_tier_has_the_systems_without_a_difference_to_its_fastest() {
        let found = in_tiers([90.0, 52.0, 94.0, 48.0], 4.0);
        assert_eq!(found, [["shm tuned", "udp tuned"], ["udp default", "shm default"]]);
        // The second cannot be distinguished from the first, nor the third from the second; but the
        // third can be distinguished from the first.
        let found = in_tiers([10.0, 11.5, 13.0, 14.5], 2.0);
        assert_eq!(found, [["udp default", "udp tuned"], ["shm default", "shm tuned"]]);
    }

    #[test]
    fn published_tiers_group_equal_medians() {
        let found = in_tiers([24.0, 78.0, 24.0, 148.0], 0.0);
        let expected: [&[&str]; 3] =
            [&["udp default", "shm default"], &["udp tuned"], &["shm tuned"]];
        assert_eq!(found, expected);
    }
}
