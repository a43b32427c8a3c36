//! The sentences of a report, one for each comparison that a reader may want to quote.

use super::document::{Finding, Part, Section};
use super::format;
use super::view::{Entry, Group, View};
use crate::scenario::Tuning;

/// Every sentence that the analysis supports: first the few that open a report, then the others as
/// details.
pub(super) fn section(view: &View) -> Section {
    let mut headlines = Part { remark: view.verdicts.promise(), ..Part::default() };
    let mut further = Part { is_detail: true, ..Part::default() };
    // A flood's latency is the depth of a queue, so a lower one means nothing.
    for group in view.groups.iter().filter(|group| group.is_steady()) {
        // The first of several schedules represents its scenario.
        let leads = !group.is_flow() || view.leads(group);
        for (is_headline, finding) in of_group(group) {
            let part = if is_headline && leads { &mut headlines } else { &mut further };
            part.findings.push(finding);
        }
    }
    further.title = format::plural(further.findings.len(), "further comparison");
    let parts = [headlines, further].into_iter().filter(|part| !part.findings.is_empty());
    Section { id: "verdicts", title: "Verdicts", remark: String::new(), parts: parts.collect() }
}

/// Findings, and whether they may open a report.
fn of_group(group: &Group) -> Vec<(bool, Finding)> {
    let ends = group.ends();
    let mut lines = Vec::new();
    for &payload in &group.payloads {
        let at_end = ends.contains(&payload);
        for &tuning in &group.tunings {
            let lone = group.peers().count() == 1;
            lines.extend(group.peers().filter_map(|system| {
                let subject = group.entry(system.name, tuning, payload)?;
                let reference = group.reference(system);
                let reference = reference.and_then(|peer| group.entry(peer.name, tuning, payload));
                let headline = at_end && (reference.is_some() || lone);
                Some((headline, finding(group, subject, reference)?))
            }));
        }
    }
    for &payload in &group.payloads {
        lines.extend(group.peers().flat_map(|system| {
            let tunings = group.tunings.iter().filter(|tuning| **tuning != Tuning::Default);
            tunings.filter_map(move |&tuning| {
                let subject = group.entry(system.name, tuning, payload)?;
                let reference = group.entry(system.name, Tuning::Default, payload)?;
                let headline = payload == group.payloads[0];
                Some((headline, finding(group, subject, Some(reference))?))
            })
        }));
    }
    lines
}

fn finding(group: &Group, subject: &Entry, reference: Option<&Entry>) -> Option<Finding> {
    let median = subject.p50().filter(|_| subject.cell.valid)?;
    let verdict = reference.and_then(|reference| group.verdict(subject, reference));
    let floor = group.over_floor(subject).map(|over| over.text());
    let further = [floor, caution(subject, reference)].into_iter().flatten();
    let further: String = further.map(|part| format!("; {part}")).collect();
    let median = format!("p50 {} µs {}", format::us(median), subject.spread());
    let median = median.trim_end();
    let told = verdict.zip(reference).map(|(verdict, reference)| {
        format!(", {} {}", format::outcome(verdict), rival(subject, reference))
    });
    let text = format!("{median}{}{further}", told.unwrap_or_default());
    let subject = match group.is_flow() && !group.point.is_empty() && !group.params().imported {
        true => format!("{}, {}", subject.name(), group.point),
        false => subject.name(),
    };
    Some(Finding { standing: verdict.into(), subject, text, particulars: Vec::new() })
}

/// Names the reference by its difference from the subject.
fn rival(subject: &Entry, reference: &Entry) -> String {
    match subject.system.name == reference.system.name {
        true => reference.cell.tuning.to_string(),
        false => reference.system.name.to_owned(),
    }
}

fn caution(subject: &Entry, reference: Option<&Entry>) -> Option<String> {
    if let Some((reached, asked)) = subject.short_of_rate() {
        return Some(format::reached(reached, asked));
    }
    if subject.is_bimodal() {
        return Some(format!("bimodal: {}", format::placements(subject.cell)));
    }
    let reference = reference?;
    let why = reference.fault()?;
    Some(format!("not compared with {}, which is {why} here", rival(subject, reference)))
}
