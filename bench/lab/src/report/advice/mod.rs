//! Advice: for each payload, rate and topology the best configuration within the budget, the size
//! from which shared memory pays, what tuning gains, and the files to use it. What is chosen is
//! `advise`'s to say; here cells become its candidates, and its answers tables.

mod best;
mod crossovers;
mod gains;

use std::path::Path;

use super::document::{Part, Section};
use super::view::{Entry, Group, View, distinct};
use super::{Error, format};
use crate::advise::choice::{Budget, Candidate, Choice, NoChoice, choose};
use crate::advise::files::{Advised, File, MARK, files};
use crate::record::write_whole;
use crate::stats::verdict::Kind;

/// Of everything that has a steady latency.
pub(super) fn section(view: &View) -> Section {
    let mut parts = Vec::new();
    let places = places(view);
    parts.extend(best::best(view, &places));
    parts.extend(best::families(view, &places));
    parts.extend(crossovers::crossovers(view));
    parts.extend(gains::gains(view));
    if !parts.is_empty() {
        parts.push(file_list(view, &places));
    }
    Section { id: "advice", title: "Advice", remark: remark(&view.options.budget), parts }
}

/// A payload at a rate, in one topology of one scenario.
struct Place<'v, 'a> {
    group: &'v Group<'a>,
    topology: &'a str,
    payload: u64,
    /// Systems under test, at any tuning.
    entries: Vec<&'v Entry<'a>>,
}

impl<'v, 'a> Place<'v, 'a> {
    /// `64 KiB, 100 Hz`, with what else sets it apart.
    fn name(&self) -> String {
        let size = self.group.size(self.payload);
        match self.group.point.is_empty() {
            true => format!("{size}, {}", format::rate(self.group.params().rate_hz)),
            false => format!("{size}, {}", self.group.point),
        }
    }

    /// The best of those that `accepts` lets compete, and those that cannot be told from it.
    fn choose(
        &self,
        budget: &Budget,
        accepts: impl Fn(&Entry) -> bool,
    ) -> Result<(&'v Entry<'a>, Choice, Vec<&'v Entry<'a>>), NoChoice> {
        let usable = self.entries.iter().copied().filter(|entry| accepts(entry));
        let (entries, candidates): (Vec<_>, Vec<_>) =
            usable.filter_map(|entry| Some((entry, candidate(entry)?))).unzip();
        let is_higher = |at, place: usize, than: usize| {
            let verdict = self.group.verdicts.of(entries[place], entries[than], at);
            verdict.is_some_and(|verdict| verdict.kind == Kind::Worse)
        };
        let choice = choose(&candidates, budget, is_higher)?;
        let ties = choice.ties.iter().map(|place| entries[*place]).collect();
        Ok((entries[choice.best], choice, ties))
    }
}

fn places<'v, 'a>(view: &'v View<'a>) -> Vec<Place<'v, 'a>> {
    let mut places = Vec::new();
    for group in view.groups.iter().filter(|group| group.is_steady()) {
        let peers = || group.entries.iter().filter(|entry| !entry.system.floor);
        for topology in distinct(peers().map(|entry| entry.cell.topology.name())) {
            for &payload in &group.payloads {
                let ours = |entry: &&Entry| {
                    entry.cell.topology.name() == topology
                        && entry.cell.params.payload_bytes == payload
                };
                let entries: Vec<_> = peers().filter(ours).collect();
                if !entries.is_empty() {
                    places.push(Place { group, topology, payload, entries });
                }
            }
        }
    }
    places
}

fn remark(budget: &Budget) -> String {
    let cpu = budget.cpu_percent.map(|most| format!("{most} % of a core"));
    let memory = budget.memory_bytes.map(|most| format!("{} of memory", format::bytes(most)));
    let limits: Vec<String> = cpu.into_iter().chain(memory).collect();
    let budget = match limits.is_empty() {
        true => "No budget was given".to_owned(),
        false => format!("Budget: {}, of all processes with their daemons", limits.join(" and ")),
    };
    format!("{budget}. {REMARK}")
}

/// `None` of what is invalid or fell short of its rate.
fn candidate(entry: &Entry) -> Option<Candidate> {
    entry.fault().is_none().then_some(())?;
    Some(Candidate {
        p50: entry.typical_p50()?,
        p99: entry.typical_p99(),
        cpu_percent: entry.cell.cpu_percent,
        memory_bytes: entry.cell.pss_bytes,
        lost: entry.cell.lost,
    })
}

/// The configurations to write files for: the best of each middleware at each place.
fn advised<'v, 'a>(view: &'v View<'a>, places: &[Place<'v, 'a>]) -> Vec<Advised<'v>> {
    let mut advised = Vec::new();
    for place in places {
        for family in distinct(place.entries.iter().map(|entry| entry.system.family())) {
            let best = place.choose(&view.options.budget, |entry| entry.system.family() == family);
            let Ok((entry, ..)) = best else { continue };
            advised.push(Advised {
                system: entry.system.name,
                tuning: entry.cell.tuning,
                transport: entry.system.transport,
                params: &entry.cell.params,
                point: place.name(),
                configuration: &entry.detail.configuration,
                pinned: entry.detail.pinned,
            });
        }
    }
    advised
}

fn file_list(view: &View, places: &[Place]) -> Part {
    let (files, failures) = files(&advised(view, places), &view.analysis.summary.host);
    let line = |file: &File| format!("advice/{}: {}. {}", file.name, file.about, file.usage);
    Part {
        title: "Files to use it".to_owned(),
        lines: files.iter().map(line).chain(failures).collect(),
        ..Part::default()
    }
}

/// Writes the files; of those there, whatever an earlier report has written and this does not is
/// removed.
pub(super) fn write(view: &View, directory: &Path) -> Result<(), Error> {
    let (files, _) = files(&advised(view, &places(view)), &view.analysis.summary.host);
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| Error::Write { path, source }
    };
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_ours = std::fs::read_to_string(&path).is_ok_and(|text| text.contains(MARK));
        if is_ours && files.iter().all(|file| entry.file_name() != *file.name) {
            std::fs::remove_file(&path).map_err(failed(&path))?;
        }
    }
    if files.is_empty() {
        return Ok(());
    }
    std::fs::create_dir_all(directory).map_err(failed(directory))?;
    for file in &files {
        let path = directory.join(&file.name);
        write_whole(&path, file.text.as_bytes()).map_err(failed(&path))?;
    }
    Ok(())
}

const REMARK: &str = "Of what lost nothing, was valid and kept its rate, the lowest p99 is advised; \
where others cannot be told from it by their runs, the lowest p50 of these. \
Systems that sleep, poll or are called compete: what polling costs is in the CPU. Systems in one \
process and in two do not. Of what goes back to back, the CPU is that of an endless loop: ask a \
budget of scenarios with a rate. All of it is of this host. Another budget: myelin bench report DIR \
--cpu-budget PERCENT --memory-budget MIB.";
