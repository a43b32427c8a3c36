//! What CycloneDDS's rows by size come to: gains, growth, the best configurations.
//!
//! Published and measured figures go through the same functions; published ones have no intervals.

use super::super::table;
use super::super::verdict::{self, Estimate, Verdict};
use super::super::view::Group;
use super::super::words;
use super::data::Table;
use super::{ComparisonRow, dash};

/// Published rows by size, and ours.
pub(super) struct Shape<'v, 'a> {
    pub published: &'v Table,
    pub group: &'v Group<'a>,
}

impl Shape<'_, '_> {
    /// Medians of the whole round trip: published, ours.
    fn estimates(&self, of: Configuration, payload: u64) -> [Option<Estimate>; 2] {
        let is_it = |row: &super::data::Row| {
            (row.text("system"), row.text("tuning")) == (Some(of.0), Some(of.1))
                && row.payload() == Some(payload)
        };
        let half = self.published.rows().find(is_it).and_then(|row| row.number("half_median_us"));
        let theirs = half.map(|half| Estimate { value: 2.0 * half, interval: None });
        [theirs, self.group.entry(of.0, of.1, payload).and_then(|entry| entry.estimate().ok())]
    }

    /// What `words` say of a subject and its reference, published and ours.
    fn pair(
        &self,
        subject: (Configuration, u64),
        reference: (Configuration, u64),
        words: [fn(Verdict) -> String; 2],
    ) -> (String, String) {
        let subjects = self.estimates(subject.0, subject.1);
        let references = self.estimates(reference.0, reference.1);
        let [theirs, ours] = [0, 1].map(|side| {
            let verdict = verdict::compare(subjects[side]?, references[side]?);
            verdict.map(words[side])
        });
        (theirs.unwrap_or_else(dash), ours.unwrap_or_else(dash))
    }

    /// Of shared memory over UDP, and of tuned over default.
    pub(super) fn gains(&self, payloads: &[u64]) -> Vec<ComparisonRow> {
        let [udp, udp_tuned, shm, shm_tuned] = CONFIGURATIONS;
        let columns = [(shm, udp), (shm_tuned, udp_tuned), (udp_tuned, udp), (shm_tuned, shm)];
        let row = |&payload: &u64| {
            let pair = |(subject, reference)| {
                self.pair((subject, payload), (reference, payload), [change, gain])
            };
            let pairs = columns.map(pair).into();
            ComparisonRow { labels: vec![words::bytes(payload)], pairs, alone: vec![] }
        };
        payloads.iter().map(row).collect()
    }

    pub(super) fn growth(&self) -> Vec<ComparisonRow> {
        let row = |of: Configuration| {
            let pair = |small| self.pair((of, small), (of, LARGEST), [factor, factor]);
            let labels = vec![of.0.to_owned(), of.1.to_owned()];
            ComparisonRow { labels, pairs: SMALLER.map(pair).into(), alone: vec![] }
        };
        CONFIGURATIONS.map(row).into()
    }

    pub(super) fn tiers(&self, payloads: &[u64]) -> Vec<ComparisonRow> {
        let row = |&payload: &u64| {
            let [theirs, ours] = [0, 1].map(|side| {
                let found = CONFIGURATIONS.map(|it| Some((it, self.estimates(it, payload)[side]?)));
                tiers(found.into_iter().flatten().collect())
            });
            let places = (0..CONFIGURATIONS.len()).map(|at| (names(&theirs, at), names(&ours, at)));
            let pairs = [(best(&theirs), best(&ours))].into_iter().chain(places).collect();
            ComparisonRow { labels: vec![words::bytes(payload)], pairs, alone: vec![] }
        };
        payloads.iter().map(row).collect()
    }
}

/// `shm tuned`.
fn name((system, tuning): Configuration) -> String {
    let transport = if system == "cyclonedds.udp" { "udp" } else { "shm" };
    format!("{transport} {tuning}")
}

fn change(verdict: Verdict) -> String {
    words::change_percent(1.0 / verdict.ratio - 1.0)
}

/// As [`change`], with what may be said of it: `−47 % [−50 %, −44 %]`.
fn gain(verdict: Verdict) -> String {
    let bounds = verdict.interval.map(|[low, high]| {
        let [most, least] = [high, low].map(|ratio| words::change_percent(1.0 / ratio - 1.0));
        format!(" [{most}, {least}]")
    });
    table::change(verdict).main + &bounds.unwrap_or_default()
}

fn factor(verdict: Verdict) -> String {
    let bounds = verdict.interval.map(|ends| format!(" {}", words::factor_interval(ends)));
    words::factor(verdict.ratio) + &bounds.unwrap_or_default()
}

/// From the fastest to the slowest, those together that cannot be told from the fastest of them.
fn tiers(mut contenders: Vec<(Configuration, Estimate)>) -> Vec<Tier> {
    contenders.sort_by(|a, b| a.1.value.total_cmp(&b.1.value));
    let mut tiers: Vec<Tier> = Vec::new();
    for contender in contenders {
        match tiers.last_mut() {
            Some(tier) if !is_slower(contender.1, tier[0].1) => tier.push(contender),
            _ => tiers.push(vec![contender]),
        }
    }
    tiers
}

fn is_slower(estimate: Estimate, leader: Estimate) -> bool {
    match verdict::compare(estimate, leader) {
        Some(verdict) if verdict.interval.is_some() => verdict.kind.is_significant(),
        _ => estimate.value > leader.value,
    }
}

fn best(tiers: &[Tier]) -> String {
    let best = tiers.first().and_then(|tier| tier.first());
    best.map_or_else(dash, |(it, estimate)| format!("{} {}", name(*it), words::us(estimate.value)))
}

fn names(tiers: &[Tier], place: usize) -> String {
    let names = |tier: &Tier| tier.iter().map(|(it, _)| name(*it)).collect::<Vec<_>>().join(", ");
    tiers.get(place).map_or_else(dash, names)
}

/// System and tuning.
type Configuration = (&'static str, &'static str);

type Tier = Vec<(Configuration, Estimate)>;

/// Those that were published by size.
pub(super) const CONFIGURATIONS: [Configuration; 4] = [
    ("cyclonedds.udp", "default"),
    ("cyclonedds.udp", "tuned"),
    ("cyclonedds.iceoryx", "default"),
    ("cyclonedds.iceoryx", "tuned"),
];

/// Growth is from nothing, from the smallest message that is something, and from 1 KiB.
const SMALLER: [u64; 3] = [0, 64, 1 << 10];
const LARGEST: u64 = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn in_tiers(estimates: [(f64, Option<[f64; 2]>); 4]) -> Vec<Vec<String>> {
        let estimates = estimates.map(|(value, interval)| Estimate { value, interval });
        let found = tiers(CONFIGURATIONS.into_iter().zip(estimates).collect());
        found.iter().map(|tier| tier.iter().map(|(it, _)| name(*it)).collect()).collect()
    }

    #[test]
    fn intervals_that_overlap_make_a_tier() {
        let found = in_tiers([
            (90.0, Some([85.0, 95.0])),
            (52.0, Some([49.5, 55.0])),
            (94.0, Some([93.0, 99.0])),
            (48.0, Some([46.0, 50.0])),
        ]);
        assert_eq!(found, [["shm tuned", "udp tuned"], ["udp default", "shm default"]]);
    }

    #[test]
    fn a_tier_is_what_cannot_be_told_from_its_fastest() {
        // Each overlaps the next; the third is slower than the first.
        let found = in_tiers([
            (10.0, Some([9.0, 11.0])),
            (11.5, Some([10.5, 12.5])),
            (13.0, Some([12.0, 14.0])),
            (14.5, Some([13.5, 15.5])),
        ]);
        assert_eq!(found, [["udp default", "udp tuned"], ["shm default", "shm tuned"]]);
    }

    #[test]
    fn without_intervals_it_goes_by_value() {
        let found = in_tiers([(24.0, None), (78.0, None), (24.0, None), (148.0, None)]);
        let expected: [&[&str]; 3] =
            [&["udp default", "shm default"], &["udp tuned"], &["shm tuned"]];
        assert_eq!(found, expected);
    }
}
