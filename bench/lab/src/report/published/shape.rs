//! What CycloneDDS's rows by size come to: gains, growth, the best configurations.
//!
//! Published and measured figures go through the same functions; published ones have no intervals.

use super::super::table;
use super::super::verdict::{self, Estimate, Verdict};
use super::super::view::Group;
use super::super::words;
use super::cyclonedds::{Configuration, CycloneddsOrin};
use super::{Comparison, ComparisonRow, dash};

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

impl Shape<'_, '_> {
    fn theirs(&self, of: Configuration, payload: u64) -> Option<Estimate> {
        self.published.estimate(of, payload)
    }

    fn ours(&self, of: Configuration, payload: u64) -> Option<Estimate> {
        self.group.entry(of.system(), of.tuning, payload)?.estimate().ok()
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
                let theirs =
                    compared(self.theirs(subject, payload), self.theirs(reference, payload));
                let ours = compared(self.ours(subject, payload), self.ours(reference, payload));
                (theirs.map_or_else(dash, change), ours.map_or_else(dash, gain))
            };
            let pairs = columns.map(pair).into();
            ComparisonRow { labels: vec![words::bytes(payload)], pairs, alone: vec![] }
        };
        Comparison {
            caption: format!("Gains in per cent by size ({})", self.group.scenario),
            remark: "Change of p50, below zero is faster: p50 of the first over that of the second, \
                     less one. Of ours with the bounds that the intervals leave; ≈ no \
                     difference, ? too noisy or too few runs to tell. Where round trips on one core \
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
                let theirs = compared(self.theirs(of, small), self.theirs(of, large));
                let ours = compared(self.ours(of, small), self.ours(of, large));
                let theirs = theirs.map(|it| words::factor(it.ratio));
                (theirs.unwrap_or_else(dash), ours.map_or_else(dash, factor))
            };
            let labels = vec![of.system().to_owned(), of.tuning.to_owned()];
            ComparisonRow { labels, pairs: starts.iter().map(pair).collect(), alone: vec![] }
        };
        let head =
            |&small: &u64| format!("from {} to {}", words::bytes(small), words::bytes(large));
        Comparison {
            caption: format!("Growth with size ({})", self.group.scenario),
            remark: "p50 of the larger over p50 of the smaller; of ours with the bounds that the \
                     intervals leave. 64 B is the smallest size measured that is not empty.",
            labels: vec!["system", "tuning"],
            pairs: starts.iter().map(head).collect(),
            rows: Configuration::ALL.map(row).into(),
            ..Comparison::default()
        }
    }

    fn tiers(&self, payloads: &[u64]) -> Comparison {
        let ranked = |of: &dyn Fn(Configuration) -> Option<Estimate>| {
            tiers(Configuration::ALL.into_iter().filter_map(|it| Some((it, of(it)?))).collect())
        };
        let row = |&payload: &u64| {
            let theirs = ranked(&|it| self.theirs(it, payload));
            let ours = ranked(&|it| self.ours(it, payload));
            let mut pairs = vec![(best(&theirs), best(&ours))];
            pairs
                .extend((0..TIERS.len()).map(|place| (names(&theirs, place), names(&ours, place))));
            ComparisonRow { labels: vec![words::bytes(payload)], pairs, alone: vec![] }
        };
        let heads = ["best, p50"].into_iter().chain(TIERS);
        Comparison {
            caption: format!("Best configuration and tiers by size ({})", self.group.scenario),
            remark: "The four configurations by p50. A tier is its fastest and all that cannot be \
                     told from it: intervals that overlap, or less than 2 % between them. \
                     Without intervals, as of published figures and of fewer than five runs, those \
                     of the same value are a tier.",
            labels: vec!["payload"],
            pairs: heads.map(str::to_owned).collect(),
            rows: payloads.iter().map(row).collect(),
            ..Comparison::default()
        }
    }
}

fn compared(subject: Option<Estimate>, reference: Option<Estimate>) -> Option<Verdict> {
    verdict::compare(subject?, reference?)
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
    best.map_or_else(dash, |(it, estimate)| format!("{} {}", it.name(), words::us(estimate.value)))
}

fn names(tiers: &[Tier], place: usize) -> String {
    let names = |tier: &Tier| tier.iter().map(|(it, _)| it.name()).collect::<Vec<_>>().join(", ");
    tiers.get(place).map_or_else(dash, names)
}

type Tier = Vec<(Configuration, Estimate)>;

const TIERS: [&str; 4] = ["fastest tier", "second", "third", "fourth"];

#[cfg(test)]
mod tests {
    use super::*;

    fn in_tiers(estimates: [(f64, Option<[f64; 2]>); 4]) -> Vec<Vec<String>> {
        let estimates = estimates.map(|(value, interval)| Estimate { value, interval });
        let found = tiers(Configuration::ALL.into_iter().zip(estimates).collect());
        found.iter().map(|tier| tier.iter().map(|(it, _)| it.name()).collect()).collect()
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
