//! What CycloneDDS's rows by size come to: gains and growth.
//!
//! Of published figures there are no runs, hence neither intervals nor verdicts: they go by their values.

use super::super::format;
use super::super::table;
use super::super::view::{Entry, Group};
use super::data::PublishedTable;
use super::{RowBeside, dash};
use crate::scenario::Tuning;
use crate::stats::verdict::Verdict;

/// Published rows by size, and ours.
pub(super) struct Shape<'v, 'a> {
    pub published: &'v PublishedTable,
    pub group: &'v Group<'a>,
}

impl<'a> Shape<'_, 'a> {
    /// The median of the whole round trip, in µs.
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

    /// One median over another, published and here.
    fn ratio(&self, of: [(Configuration, u64); 2]) -> (Option<f64>, Option<Verdict>) {
        let [subject, reference] = of.map(|(it, payload)| self.theirs(it, payload));
        let theirs = subject.zip(reference).map(|(subject, reference)| subject / reference);
        let [subject, reference] = of.map(|(it, payload)| self.ours(it, payload));
        let ours = subject.zip(reference).and_then(|(it, other)| self.group.verdict(it, other));
        (theirs, ours)
    }

    /// Of shared memory over UDP, and of tuned over default.
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
}

fn change(ratio: f64) -> String {
    format::change_percent(ratio - 1.0)
}

/// As [`change`], with what may be said of it: `−47 % [−50 %, −44 %]`.
fn gain(verdict: Verdict) -> String {
    let bounds = verdict.ratio.interval.map(|ends| {
        let [most, least] = ends.map(change);
        format!(" [{most}, {least}]")
    });
    table::change(verdict).main + &bounds.unwrap_or_default()
}

/// System and tuning.
type Configuration = (&'static str, Tuning);

/// Those that were published by size.
pub(super) const CONFIGURATIONS: [Configuration; 4] = [
    ("cyclonedds.udp", Tuning::Default),
    ("cyclonedds.udp", Tuning::Tuned),
    ("cyclonedds.iceoryx", Tuning::Default),
    ("cyclonedds.iceoryx", Tuning::Tuned),
];

/// Growth is from nothing, from the smallest message that is something, and from 1 KiB.
const SMALLER: [u64; 3] = [0, 64, 1 << 10];
const LARGEST: u64 = 64 << 10;
