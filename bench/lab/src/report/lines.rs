//! Verdicts as sentences: one for each comparison that a reader may want to quote.

use serde::{Serialize, Serializer};

use super::view::{Entry, Group, View, tuning_rank};
use super::words;
use crate::stats::verdict::{Kind, Verdict};

/// One comparison in words.
#[derive(Serialize)]
pub(super) struct Line {
    /// `cyclonedds.iceoryx, 64 KiB, tuned`.
    pub subject: String,
    /// `p50 91.2 µs [88.1, 95.0]`.
    pub median: String,
    /// What the subject was compared with, and what came of it; absent if nothing was there.
    pub outcome: Option<Outcome>,
    /// `1.5× [1.4, 1.6] the floor (os.futex)`: a primitive that waits in the same manner.
    pub floor: Option<String>,
    /// What to bear in mind: bimodal figures, a reference that cannot be used.
    pub caution: Option<String>,
    /// Whether the line belongs to the few that open a report.
    pub headline: bool,
}

/// The end of a sentence.
#[derive(Serialize)]
pub(super) struct Outcome {
    #[serde(serialize_with = "in_words")]
    pub verdict: Verdict,
    /// `1.4× [1.3, 1.5] lower than`.
    pub finding: String,
    pub reference: String,
}

impl Line {
    /// The whole sentence.
    pub(super) fn text(&self) -> String {
        let mut text = format!("{}: {}", self.subject, self.median);
        if let Some(outcome) = &self.outcome {
            text += &format!(", {} {}", outcome.finding, outcome.reference);
        }
        for part in [&self.floor, &self.caution].into_iter().flatten() {
            text += &format!("; {part}");
        }
        text
    }
}

fn in_words<S: Serializer>(verdict: &Verdict, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(verdict.words())
}

/// Every sentence the analysis supports, the headlines of each group first.
pub(super) fn lines(view: &View) -> Vec<Line> {
    // A flood's latency is the depth of a queue: which is lower says nothing.
    let groups = view.groups.iter().filter(|group| group.is_steady());
    groups
        .flat_map(|group| {
            let mut lines = of_group(group);
            // Of schedules, the first speaks for its scenario.
            for line in lines.iter_mut().filter(|_| group.is_flow() && !view.leads(group)) {
                line.headline = false;
            }
            lines.sort_by_key(|line| !line.headline);
            lines
        })
        .collect()
}

fn of_group(group: &Group) -> Vec<Line> {
    let ends = group.ends();
    let mut lines = Vec::new();
    for &payload in &group.payloads {
        let at_end = ends.contains(&payload);
        for tuning in &group.tunings {
            let lone = group.peers().count() == 1;
            lines.extend(group.peers().filter_map(|system| {
                let subject = group.entry(system.name, tuning, payload)?;
                let reference = group.reference(system);
                let reference = reference.and_then(|peer| group.entry(peer.name, tuning, payload));
                let headline = at_end && (reference.is_some() || lone);
                line(group, subject, reference, headline)
            }));
        }
    }
    for &payload in &group.payloads {
        lines.extend(group.peers().flat_map(|system| {
            let tunings = group.tunings.iter().filter(|tuning| tuning_rank(tuning) > 0);
            tunings.filter_map(move |tuning| {
                let subject = group.entry(system.name, tuning, payload)?;
                let reference = group.entry(system.name, "default", payload)?;
                line(group, subject, Some(reference), payload == group.payloads[0])
            })
        }));
    }
    lines
}

fn line(group: &Group, subject: &Entry, reference: Option<&Entry>, headline: bool) -> Option<Line> {
    let median = subject.p50().filter(|_| subject.cell.valid)?;
    let spread = Some(subject.spread()).filter(|spread| !spread.is_empty());
    let spread = spread.map(|spread| format!(" {spread}"));
    let outcome = reference.and_then(|reference| {
        let verdict = group.verdict(subject, reference)?;
        let reference = rival(subject, reference);
        Some(Outcome { verdict, finding: finding(verdict), reference })
    });
    Some(Line {
        subject: match group.is_flow() && !group.point.is_empty() {
            true => format!("{}, {}", subject.name(), group.point),
            false => subject.name(),
        },
        median: format!("p50 {} µs{}", words::us(median), spread.unwrap_or_default()),
        outcome,
        floor: group.over_floor(subject).map(|over| over.text()),
        caution: caution(subject, reference),
        headline,
    })
}

/// Names the reference by what tells it from the subject.
fn rival(subject: &Entry, reference: &Entry) -> String {
    match subject.system.name == reference.system.name {
        true => reference.cell.tuning.clone(),
        false => reference.system.name.to_owned(),
    }
}

fn caution(subject: &Entry, reference: Option<&Entry>) -> Option<String> {
    if let Some((reached, asked)) = subject.short_of_rate() {
        return Some(words::reached(reached, asked));
    }
    if subject.is_bimodal() {
        return Some(format!("bimodal: {}", words::placements(subject.cell)));
    }
    let reference = reference?;
    let why = reference.fault()?;
    Some(format!("not compared with {}, which is {why} here", rival(subject, reference)))
}

/// The verdict up to the name of the reference.
pub(super) fn finding(verdict: Verdict) -> String {
    let (ratio, direction) = match verdict.ratio.value > 1.0 {
        true => (verdict.ratio, "higher"),
        false => (verdict.ratio.inverse(), "lower"),
    };
    let text = words::ratio(ratio);
    let doubt = if ratio.interval.is_some() { "" } else { ", no interval" };
    match verdict.kind {
        Kind::Better | Kind::Worse => format!("{text} {direction} than"),
        Kind::NoDifference => format!("no difference ({text} {direction}) from"),
        Kind::TooNoisy => format!("{} ({text} {direction}{doubt}) to tell from", verdict.words()),
    }
}
