//! Verdicts as sentences: one for each comparison that a reader may want to quote. What all of them
//! rest on is `verdicts`.

use super::document::{Finding, Part, Section};
use super::view::{Entry, Group, View, tuning_rank};
use super::words;
use crate::stats::verdict::{Kind, Verdict};

/// Every sentence the analysis supports, the headlines of each group first; the others are details.
pub(super) fn section(view: &View) -> Section {
    // A flood's latency is the depth of a queue: which is lower says nothing.
    let groups = view.groups.iter().filter(|group| group.is_steady());
    let lines = groups.flat_map(|group| {
        // Of schedules, the first speaks for its scenario.
        let leads = !group.is_flow() || view.leads(group);
        of_group(group)
            .into_iter()
            .map(move |line| Line { headline: line.headline && leads, ..line })
    });
    let (headlines, further): (Vec<Line>, Vec<Line>) = lines.partition(|line| line.headline);
    let findings = |lines: Vec<Line>| lines.into_iter().map(|line| line.finding).collect();
    let further_title = words::plural(further.len(), "further comparison");
    let parts = [
        Part { findings: findings(headlines), remark: view.verdicts.promise(), ..Part::default() },
        Part {
            title: further_title,
            findings: findings(further),
            is_detail: true,
            ..Part::default()
        },
    ];
    Section {
        id: "verdicts",
        title: "Verdicts",
        remark: String::new(),
        parts: parts.into_iter().filter(|part| !part.findings.is_empty()).collect(),
    }
}

/// One comparison.
struct Line {
    /// Whether it belongs to the few that open a report.
    headline: bool,
    finding: Finding,
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
    let verdict = reference.and_then(|reference| group.verdict(subject, reference));
    let floor = group.over_floor(subject).map(|over| over.text());
    let further = [floor, caution(subject, reference)].into_iter().flatten();
    let further: String = further.map(|part| format!("; {part}")).collect();
    let median = format!("p50 {} µs{}", words::us(median), spread.unwrap_or_default());
    let text = match verdict.zip(reference) {
        Some((verdict, reference)) => {
            let rest = format!(" {}{further}", rival(subject, reference));
            [format!("{median}, "), outcome(verdict), rest]
        }
        None => [median, String::new(), further],
    };
    let subject = match group.is_flow() && !group.point.is_empty() {
        true => format!("{}, {}", subject.name(), group.point),
        false => subject.name(),
    };
    let finding = Finding { standing: verdict.into(), subject, text, particulars: Vec::new() };
    Some(Line { headline, finding })
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
pub(super) fn outcome(verdict: Verdict) -> String {
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
