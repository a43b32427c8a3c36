//! Parts that all tables share: footnotes, and the cell of a latency.

use super::document::{TableCell, Tone};
use super::view::{Entry, Group};
use super::{format, validity};

/// The cell of a latency: median and 99th percentile, and how it compares with the reference.
pub(super) fn latency(group: &Group, entry: &Entry, notes: &mut Notes) -> TableCell {
    let latency = entry.latency();
    let name = entry.name();
    let mark = notes.invalid(entry).or_else(|| {
        let short = entry.short_of_rate();
        let short = short.map(|(got, asked)| format!("{name}: {}", format::reached(got, asked)));
        let bimodal = || format!("bimodal: {name}: {}", format::placements(entry.cell));
        let note = short.or_else(|| entry.is_bimodal().then(bimodal));
        note.map(|note| notes.add(note))
    });
    let reference = group.reference(entry.system);
    let reference = reference.and_then(|system| {
        group.entry(system.name, entry.cell.tuning, entry.cell.params.payload_bytes)
    });
    let verdict = reference.and_then(|reference| group.verdict(entry, reference));
    let sentence = verdict.zip(reference).map(|(verdict, reference)| {
        format!(": {} {}", format::outcome(verdict), reference.system.name)
    });
    let tone: Tone = verdict.map(|verdict| verdict.kind).into();
    TableCell { mark, ..TableCell::plain(format::us_or_dash(entry.p50())) }
        .side(format::us_or_dash(latency.and_then(|latency| latency.p99)))
        .small(entry.spread())
        .tone(tone)
        .valid(entry.cell.valid)
        .title(format!("{name}{}", sentence.unwrap_or_default()))
}

/// Footnotes in the order of their marks.
#[derive(Default)]
pub(super) struct Notes(pub Vec<String>);

impl Notes {
    pub(super) fn add(&mut self, note: String) -> usize {
        self.0.push(note);
        self.0.len()
    }

    /// The footnote with the reasons why a cell is invalid.
    pub(super) fn invalid(&mut self, entry: &Entry) -> Option<usize> {
        let note = || format!("invalid: {}: {}", entry.name(), validity::reasons(entry));
        (!entry.cell.valid).then(|| self.add(note()))
    }
}
