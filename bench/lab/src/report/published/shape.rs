//! What CycloneDDS's rows by size come to: gains, growth, the best configurations.
//!
//! Published and measured figures go through the same functions; published ones have no intervals.

use super::super::table;
use super::super::view::{Entry, Group};
use super::super::words;
use super::cyclonedds::{Configuration, CycloneddsOrin};
use super::{Comparison, ComparisonRow, dash};
use crate::stats::verdict::Verdict;
use crate::summary::Percentile;

/// Gains and tiers at these sizes, and the growth up to the largest of all published.
pub(super) fn comparisons(
    published: &CycloneddsOrin,
    group: &Group,
    payloads: &[u64],
) -> [Comparison; 3] {
    let shape = Shape { published, group };
    [shape.gains(payloads), shape.growth(), shape.tiers(payloads)]
}

struct Shape<'v, 'a> {
    published: &'v CycloneddsOrin,
    group: &'v Group<'a>,
}

impl<'a> Shape<'_, 'a> {
    fn theirs(&self, of: Configuration, payload: u64) -> Option<f64> {
        self.published.median(of, payload)
    }

    fn ours(&self, of: Configuration, payload: u64) -> Option<&Entry<'a>> {
        let entry = self.group.entry(of.system(), of.tuning, payload);
        entry.filter(|entry| entry.fault().is_none())
    }

    fn gains(&self, payloads: &[u64]) -> Comparison {
        let [udp_default, udp_tuned, shm_default, shm_tuned] = Configuration::ALL;
        let columns = [
            ("shm over udp, default", shm_default, udp_default),
            ("shm over udp, tuned", shm_tuned, udp_tuned),
            ("tuned over default, udp", udp_tuned, udp_default),
            ("tuned over default, shm", shm_tuned, shm_default),
        ];
        let row = |&payload: &u64| {
            let pair = |(_, subject, reference)| {
                let theirs = self.theirs(subject, payload).zip(self.theirs(reference, payload));
                let theirs = theirs.map(|(subject, reference)| change(subject / reference));
                let ours = self.ours(subject, payload).zip(self.ours(reference, payload));
                let ours =
                    ours.and_then(|(subject, reference)| self.group.verdict(subject, reference));
                (theirs.unwrap_or_else(dash), ours.map_or_else(dash, gain))
            };
            let pairs = columns.map(pair).into();
            ComparisonRow { labels: vec![words::bytes(payload)], pairs, alone: vec![] }
        };
        Comparison {
            caption: format!("Gains in per cent by size ({})", self.group.scenario),
            remark: "Change of p50, below zero is faster: p50 of the first over that of the second, \
                     less one. Of ours with the 95 % interval; ≈ no difference, ? too noisy or too \
                     few runs to tell. Where round trips on one core \
                     and across cores are mixed here, p50 is that across cores, here and in the two \
                     tables that follow.",
            labels: vec!["payload"],
            pairs: columns.map(|(head, ..)| head.to_owned()).into(),
            rows: payloads.iter().map(row).collect(),
            ..Comparison::default()
        }
    }

    fn growth(&self) -> Comparison {
        let sizes = self.published.payloads();
        let Some((&large, smaller)) = sizes.split_last() else { return Comparison::default() };
        // Nothing, the smallest message that is something, and 1 KiB.
        let starts: Vec<u64> = smaller
            .iter()
            .enumerate()
            .filter(|&(place, &size)| place < 2 || size == 1 << 10)
            .map(|(_, &size)| size)
            .collect();
        let row = |of: Configuration| {
            let pair = |&small: &u64| {
                let theirs = self.theirs(of, large).zip(self.theirs(of, small));
                let theirs = theirs.map(|(large, small)| words::factor(large / small));
                let ours = self.ours(of, large).zip(self.ours(of, small));
                let ours =
                    ours.and_then(|(large, small)| large.pair(small, Percentile::P50)?.ratio());
                (theirs.unwrap_or_else(dash), ours.map_or_else(dash, words::ratio))
            };
            let labels = vec![of.system().to_owned(), of.tuning.to_owned()];
            ComparisonRow { labels, pairs: starts.iter().map(pair).collect(), alone: vec![] }
        };
        let head =
            |&small: &u64| format!("from {} to {}", words::bytes(small), words::bytes(large));
        Comparison {
            caption: format!("Growth with size ({})", self.group.scenario),
            remark: "p50 of the larger over p50 of the smaller; of ours with the 95 % interval. \
                     64 B is the smallest size measured that is not empty.",
            labels: vec!["system", "tuning"],
            pairs: starts.iter().map(head).collect(),
            rows: Configuration::ALL.map(row).into(),
            ..Comparison::default()
        }
    }

    fn tiers(&self, payloads: &[u64]) -> Comparison {
        let known = |of: &dyn Fn(Configuration) -> Option<f64>| {
            Configuration::ALL.into_iter().filter_map(|it| Some((it, of(it)?))).collect()
        };
        let row = |&payload: &u64| {
            let slower = |it: &Contender, leader: &Contender| {
                let (Some(it), Some(leader)) =
                    (self.ours(it.0, payload), self.ours(leader.0, payload))
                else {
                    return false;
                };
                self.group.verdict(it, leader).is_some_and(|it| it.kind.is_significant())
            };
            let theirs = known(&|it| self.theirs(it, payload));
            let theirs = tiers(theirs, |it, leader| it.1 > leader.1);
            let ours = known(&|it| self.ours(it, payload)?.typical_p50());
            let ours = tiers(ours, slower);
            let mut pairs = vec![(best(&theirs), best(&ours))];
            pairs
                .extend((0..TIERS.len()).map(|place| (names(&theirs, place), names(&ours, place))));
            ComparisonRow { labels: vec![words::bytes(payload)], pairs, alone: vec![] }
        };
        let heads = ["best, p50"].into_iter().chain(TIERS);
        Comparison {
            caption: format!("Best configuration and tiers by size ({})", self.group.scenario),
            remark: "The four configurations by p50. A tier is its fastest and all that cannot be \
                     told from it; of published figures, which have no runs, those of one value.",
            labels: vec!["payload"],
            pairs: heads.map(str::to_owned).collect(),
            rows: payloads.iter().map(row).collect(),
            ..Comparison::default()
        }
    }
}

fn change(ratio: f64) -> String {
    words::change_percent(ratio - 1.0)
}

/// As [`change`], with what may be said of it: `−47 % [−50 %, −44 %]`.
fn gain(verdict: Verdict) -> String {
    let bounds = verdict.ratio.interval.map(|ends| {
        let [most, least] = ends.map(change);
        format!(" [{most}, {least}]")
    });
    table::change(verdict).main + &bounds.unwrap_or_default()
}

/// From the fastest to the slowest, those together that are not slower than the fastest of them.
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
    best.map_or_else(dash, |(it, p50)| format!("{} {}", it.name(), words::us(*p50)))
}

fn names(tiers: &[Tier], place: usize) -> String {
    let names = |tier: &Tier| tier.iter().map(|(it, _)| it.name()).collect::<Vec<_>>().join(", ");
    tiers.get(place).map_or_else(dash, names)
}

/// With its median.
type Contender = (Configuration, f64);
type Tier = Vec<Contender>;

const TIERS: [&str; 4] = ["fastest tier", "second", "third", "fourth"];

#[cfg(test)]
mod tests {
    use super::*;

    fn in_tiers(medians: [f64; 4], told: f64) -> Vec<Vec<String>> {
        let contenders = Configuration::ALL.into_iter().zip(medians).collect();
        let found = tiers(contenders, |it, leader| it.1 > leader.1 + told);
        found.iter().map(|tier| tier.iter().map(|(it, _)| it.name()).collect()).collect()
    }

    #[test]
    fn a_tier_is_what_cannot_be_told_from_its_fastest() {
        let found = in_tiers([90.0, 52.0, 94.0, 48.0], 4.0);
        assert_eq!(found, [["shm tuned", "udp tuned"], ["udp default", "shm default"]]);
        // The second is not told from the first, nor the third from the second, but from the first.
        let found = in_tiers([10.0, 11.5, 13.0, 14.5], 2.0);
        assert_eq!(found, [["udp default", "udp tuned"], ["shm default", "shm tuned"]]);
    }

    #[test]
    fn what_is_published_goes_by_value() {
        let found = in_tiers([24.0, 78.0, 24.0, 148.0], 0.0);
        let expected: [&[&str]; 3] =
            [&["udp default", "shm default"], &["udp tuned"], &["shm tuned"]];
        assert_eq!(found, expected);
    }
}
