//! The answer at a glance: what was measured, whether it is valid, one picture of each scenario,
//! and at most [`SENTENCES_MAX`] sentences. Page, terminal and Markdown begin with it.
//!
//! This module, `picture` and `sentences` know no output format; `terminal` and the templates of
//! page and Markdown print it.

mod axis;
mod picture;
mod sentences;
mod terminal;

use serde::Serialize;

use super::document::{Finding, Standing};
use super::format;
use super::validity::{CELLS, MESSAGES, MISSING, RECORDS, REMARKS, checks};
use super::view::View;
use crate::lists::{distinct, few, unmeasured};
use crate::machine::Machine;
pub(super) use axis::Axis;
use picture::Picture;
use sentences::Sentence;
pub(super) use terminal::render;

#[derive(Serialize)]
pub(super) struct Glance<'a> {
    /// `Round trips of 18 systems`.
    pub title: String,
    /// Scenarios, hosts of the processes, and the machine.
    pub circumstances: String,
    pub trust: Trust,
    /// One for each scenario, in plan order.
    pub pictures: Vec<Picture<'a>>,
    pub sentences: Vec<Sentence>,
}

/// Whether the figures are valid.
#[derive(Serialize)]
pub(super) struct Trust {
    pub level: Standing,
    pub sign: &'static str,
    /// The verdict in a few words.
    pub verdict: &'static str,
    /// `112 of 112 cells valid; 2 483 100 sent: all answered once, in order, unaltered`.
    pub finding: String,
    /// Doubts about the figures, most serious first.
    pub doubts: Vec<String>,
    /// Number of doubts that make the verdict a bad one.
    pub serious: usize,
    /// Systems that were asked for and could not run, those of a driver together as `fastdds.*`, and
    /// why, with what to install.
    pub unmeasured: Vec<(String, String)>,
}

impl<'a> Glance<'a> {
    pub(super) fn new(view: &'a View<'a>) -> Self {
        let pictures = picture::pictures(view);
        let sentences = pictures.first().map(|first| sentences::of(view, first));
        let kinds = view.scenarios().len();
        let noun = if view.is_imported() { "application" } else { "system" };
        let systems = format::plural(systems(view), noun);
        let title = match pictures.first() {
            Some(first) if kinds == 1 => format!("{} of {systems}", first.what),
            _ => format!("{} with {systems}", format::plural(kinds, "scenario")),
        };
        let point =
            pictures.first().filter(|_| kinds == 1).map(|first| first.circumstances.clone());
        let scenarios = view.scenarios().join(", ");
        let machine = machine(&view.analysis.summary.host);
        let parts = [Some(scenarios), point.filter(|it| !it.is_empty()), Some(machine)];
        Self {
            title,
            circumstances: parts.into_iter().flatten().collect::<Vec<_>>().join(" · "),
            trust: Trust::new(view),
            pictures,
            sentences: sentences.unwrap_or_default(),
        }
    }
}

impl Trust {
    fn new(view: &View) -> Self {
        let checks = checks(view);
        let opens = |check: &&Finding| OPENING.contains(&&*check.subject);
        let finding = checks.iter().filter(opens).map(|check| match &*check.subject {
            CELLS => check.text.replace(" valid", " cells valid"),
            _ => check.text.clone(),
        });
        let finding = finding.collect::<Vec<_>>().join("; ");
        let is_doubt = |it: &&Finding| {
            it.standing != Standing::Good && ![MESSAGES, MISSING].contains(&&*it.subject)
        };
        let mut doubts: Vec<&Finding> = checks.iter().filter(is_doubt).collect();
        doubts.sort_by_key(|check| std::cmp::Reverse(check.standing));
        let is_broken =
            |it: &Finding| it.standing == Standing::Bad && BREAKING.contains(&&*it.subject);
        let level = checks.iter().map(|check| check.standing).max().unwrap_or(Standing::Good);
        let (sign, verdict) = match level {
            Standing::Bad if checks.iter().any(is_broken) => (
                "✗",
                "Not all figures can be \
                                                                    trusted",
            ),
            Standing::Bad => ("✗", "Read the figures with care"),
            _ => ("✔", "The figures can be trusted"),
        };
        let serious = doubts.iter().filter(|check| check.standing == Standing::Bad).count();
        let doubts = doubts.into_iter().map(doubt).collect();
        let systems = view.analysis.summary.systems.iter();
        let missing = unmeasured(systems.map(|it| (&*it.name, it.missing.as_deref())));
        let unmeasured =
            missing.into_iter().map(|(names, reason)| (names, reason.to_owned())).collect();
        Self { level, sign, verdict, finding, doubts, serious, unmeasured }
    }
}

/// A finding with its most important names.
fn doubt(check: &Finding) -> String {
    match &*check.subject {
        REMARKS | RECORDS | CELLS if !check.particulars.is_empty() => {
            format!("{}: {}", check.sentence(), few(&check.particulars, PARTICULARS_MAX))
        }
        _ => check.sentence(),
    }
}

/// The machine in one line: processor, CPUs, distribution, kernel.
fn machine(host: &Machine) -> String {
    let kind = if host.hypervisor.is_some() { "virtual CPUs" } else { "CPUs" };
    let processors = match host.identity.cpus {
        0 => host.identity.cpu_model.clone(),
        cpus => format!("{}, {cpus} {kind}", host.identity.cpu_model),
    };
    // Without the code name of the distribution.
    let os = host.os.split(" (").next().unwrap_or_default().to_owned();
    let kernel = host.identity.kernel.splitn(3, '.').take(2).collect::<Vec<_>>().join(".");
    let kernel = if kernel.is_empty() { kernel } else { format!("Linux {kernel}") };
    let parts = [processors, os, kernel];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}

/// Number of systems under test.
fn systems(view: &View) -> usize {
    let number = |is_floor: bool| {
        let entries = view.entries().filter(move |entry| entry.system.floor == is_floor);
        distinct(entries.map(|entry| entry.system.name)).len()
    };
    match number(false) {
        0 => number(true),
        peers => peers,
    }
}

/// Checks whose findings are shown first, good or bad.
const OPENING: [&str; 2] = [CELLS, MESSAGES];

/// Checks that, if bad, mean that figures are missing or wrong.
const BREAKING: [&str; 2] = [CELLS, RECORDS];

/// For one kind of doubt.
const PARTICULARS_MAX: usize = 2;

/// Nobody reads more.
pub(super) const SENTENCES_MAX: usize = 5;
