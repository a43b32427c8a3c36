//! The trend of each figure over many sessions: what it was, when, at which version, and whether it
//! moved.
//!
//! Whether a figure moved is the test of `compare`: the sessions from a change on against those
//! before it. The change is named by the user, or follows from commits and versions; it is never
//! chosen by looking at figures, which would find a change in any noise.

mod page;
mod terminal;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Result;
use chrono::{DateTime, SecondsFormat, Utc};
use minijinja::context;
use serde::Serialize;

use crate::compare::{self, CellHistory, Comparison, FigureComparison, FigureHistory, Side};
use crate::input_error::InputError;
use crate::lists::distinct;
use crate::machine::Identity;
use crate::report::format::{change_percent, plural};
use crate::report::html::rendered;
use crate::stats::interval::RUNS_MIN;
use crate::stats::median;
use crate::stats::verdict::{Kind, RATIO_EQUAL};
pub use page::page;
pub use terminal::render as terminal;

/// The figures of sessions in the order of time. `report --json` prints it.
#[derive(Clone, Debug, Serialize)]
pub struct Trend {
    /// Version of this layout: [`SCHEMA`].
    pub schema: u32,
    /// In the order of time.
    pub sessions: Vec<Session>,
    /// The first session after the change, by its index; null if the sessions show no change that
    /// could be tested.
    pub since: Option<usize>,
    /// What was tested, or why nothing was.
    pub tested: String,
    /// Cells of all sessions.
    pub cells: Vec<CellHistory>,
    /// The figures that moved, by cell and figure, the largest increase first.
    pub moved: Vec<Moved>,
}

/// A results folder.
#[derive(Clone, Debug, Serialize)]
pub struct Session {
    /// The name, as the user gave it.
    pub folder: String,
    /// When it began: RFC 3339, UTC. For a folder that does not say, when its plan was written.
    pub begun: String,
    /// `git describe` of the folder that it was started in; null outside of a repository.
    pub commit: Option<String>,
    /// Versions of the systems that have one, by name.
    pub versions: BTreeMap<String, String>,
    /// The machine.
    pub machine: Identity,
}

/// A figure that is better or worse after the change than before.
#[derive(Clone, Debug, Serialize)]
pub struct Moved {
    /// Index in [`Trend::cells`].
    pub cell: usize,
    /// The figure's name, which ends in the unit.
    pub figure: &'static str,
    /// The median of the sessions before.
    pub before: Option<f64>,
    /// The median of the sessions after.
    pub after: Option<f64>,
    /// Better or worse.
    pub verdict: Kind,
}

/// Reads and analyses the folders; `since` is the name of the first one after a change.
pub fn read(folders: &[PathBuf], since: Option<&Path>) -> Result<Trend> {
    let sides = folders.iter().map(|folder| compare::side(folder)).collect::<Result<Vec<_>>>()?;
    let mut sides: Vec<(Session, Side)> =
        sides.into_iter().map(|side| (Session::of(&side), side)).collect();
    sides.sort_by(|(a, _), (b, _)| a.begun.cmp(&b.begun));
    let (sessions, sides): (Vec<Session>, Vec<Side>) = sides.into_iter().unzip();
    let at = since.map(|since| first_after(&sessions, since)).transpose()?;
    Trend::new(sessions, sides, at)
}

/// The trend of sessions in the order of time; `since` is the index of the first one after a change.
pub fn of(sides: Vec<Side>, since: Option<usize>) -> Result<Trend> {
    let sessions = sides.iter().map(Session::of).collect();
    Trend::new(sessions, sides, since)
}

/// The index of the session that the user names.
fn first_after(sessions: &[Session], since: &Path) -> Result<usize, InputError> {
    let since = since.to_string_lossy();
    let plain = |name: &str| name.trim_end_matches('/').to_owned();
    let found = sessions.iter().position(|it| plain(&it.folder) == plain(&since));
    match found {
        Some(0) => Err(InputError::new(format!("--since {since}: it is the first session"))
            .remedy("name the first session after a change, which has sessions before it")),
        Some(at) => Ok(at),
        None => {
            let known = sessions.iter().map(|it| it.folder.as_str());
            Err(InputError::unknown("results folder", &since, known)
                .remedy("--since names one of the folders of the line"))
        }
    }
}

impl Trend {
    fn new(sessions: Vec<Session>, sides: Vec<Side>, since: Option<usize>) -> Result<Self> {
        let cells = compare::history(&sides);
        let number = sessions.len();
        let since = match since {
            Some(at) => Ok(at),
            None => change(&sessions),
        };
        let too_few = |at: usize| {
            let (before, after) = (at, number - at);
            (before.min(after) < RUNS_MIN).then(|| {
                format!("{before} before and {after} from then on; it takes {RUNS_MIN} of each")
            })
        };
        let mut trend = Trend {
            schema: SCHEMA,
            sessions,
            since: since.as_ref().ok().copied(),
            tested: String::new(),
            cells,
            moved: Vec::new(),
        };
        trend.tested = match since {
            Err(reason) => format!("No test of what moved: {reason}."),
            Ok(at) => {
                let first = trend.sessions[at].label();
                match too_few(at) {
                    Some(few) => format!("No test of what moved since {first}: {few}."),
                    None => trend.test(at, sides)?,
                }
            }
        };
        Ok(trend)
    }

    /// Compares the sessions from `at` on with those before; returns what was tested.
    fn test(&mut self, at: usize, mut sides: Vec<Side>) -> Result<String> {
        let after = sides.split_off(at);
        let (before_number, after_number) = (sides.len(), after.len());
        let comparison = compare::sessions(sides, after)?;
        let found = comparison.figures(|kind| kind.is_some_and(Kind::is_significant));
        let moved = found.into_iter().filter_map(|(cell, figure)| {
            let at = self.cells.iter().position(|it| it.name == cell.name)?;
            let FigureComparison { figure, a, b, verdict, .. } = figure;
            Some(Moved {
                cell: at,
                figure: figure.name,
                before: *a,
                after: *b,
                verdict: (*verdict)?,
            })
        });
        self.moved = moved.collect();
        Ok(self.tested_in_words(&comparison, before_number, after_number, at))
    }

    fn tested_in_words(
        &self,
        comparison: &Comparison,
        before: usize,
        after: usize,
        at: usize,
    ) -> String {
        let moved = self.moved.len();
        let worse = self.moved.iter().filter(|it| it.verdict == Kind::Worse).count();
        let found = match moved {
            0 => "nothing moved".to_owned(),
            _ => format!("{} worse, {} better", worse, moved - worse),
        };
        format!(
            "The {after} sessions since {} against the {before} before: {found} of {}. If nothing \
             changed, at most {:.0} in 100 such tests show any.",
            self.sessions[at].label(),
            plural(comparison.comparisons, "figure"),
            100.0 * comparison.error_rate
        )
    }

    /// Machines that are not that of the first session.
    fn foreign(&self) -> Option<String> {
        let first = &self.sessions.first()?.machine;
        let others = self.sessions.iter().filter(|it| it.machine.differs(first));
        let others: Vec<&str> = others.map(|it| it.folder.as_str()).collect();
        let names = others.join(", ");
        (!others.is_empty()).then(|| {
            format!("Other machine or kernel than {first}: {names}; figures of machines differ.")
        })
    }

    /// What the commits and versions of the sessions are, if not the same in all.
    fn states(&self) -> Vec<(usize, String)> {
        let mut shown: Vec<(usize, String)> = Vec::new();
        for (at, session) in self.sessions.iter().enumerate() {
            let before = &self.sessions[..at];
            let is_new = before.last().is_none_or(|last| !last.is_like(session));
            if is_new {
                let known =
                    |system: &str| before.iter().rev().find_map(|it| it.versions.get(system));
                let changed = session.versions.iter().filter(|(system, version)| {
                    known(system).is_some_and(|known| known != *version)
                });
                let changed = distinct(changed.map(|(system, version)| {
                    let driver = system.split('.').next().unwrap_or(system);
                    format!("{driver} {version}")
                }));
                let parts: Vec<String> = session.commit.iter().cloned().chain(changed).collect();
                shown.push((at, parts.join(", ")));
            }
        }
        shown
    }

    fn verdict(&self, cell: usize, figure: &FigureHistory) -> Option<Kind> {
        let name = figure.figure.name;
        let found = self.moved.iter().find(|it| it.cell == cell && it.figure == name);
        found.map(|it| it.verdict)
    }

    /// The scenarios with the indices of their cells.
    fn scenarios(&self) -> Vec<(&str, Vec<usize>)> {
        let cells = self.cells.iter().zip(0..);
        crate::lists::grouped(cells.map(|(cell, at)| (cell.name.scenario.as_str(), at)))
    }

    /// The name of a cell, with what its scenario does not share.
    fn label(&self, at: usize) -> String {
        let name = &self.cells[at].name;
        let mut others = self.cells.iter().filter(|it| it.name.scenario == name.scenario);
        match others.all(|it| it.name.circumstances == name.circumstances) {
            true => name.name.clone(),
            false => format!("{}, {}", name.name, name.circumstances),
        }
    }
}

impl Session {
    fn of(side: &Side) -> Self {
        let systems = side.analysis.summary.systems.iter();
        let versions = systems.filter(|it| !it.version.is_empty());
        Session {
            folder: side.name.clone(),
            begun: side.plan.begun.clone().unwrap_or_else(|| written(Path::new(&side.name))),
            commit: side.plan.commit.clone(),
            versions: versions.map(|it| (it.name.clone(), it.version.clone())).collect(),
            machine: side.analysis.summary.host.identity.clone(),
        }
    }

    /// Whether commit and versions are the same; a system that one of them lacks says nothing.
    fn is_like(&self, other: &Session) -> bool {
        let mut common = self
            .versions
            .iter()
            .filter_map(|(system, version)| Some((version, other.versions.get(system)?)));
        self.commit == other.commit && common.all(|(one, two)| one == two)
    }

    /// `2026-11-29 05:12 (v0.1.0-3-g1a2b)`.
    fn label(&self) -> String {
        let commit = self.commit.as_ref().map(|commit| format!(" ({commit})"));
        self.minute() + &commit.unwrap_or_default()
    }

    /// `2026-11-29 05:12`.
    fn minute(&self) -> String {
        self.begun.chars().take(16).collect::<String>().replace('T', " ")
    }
}

/// When the plan of a folder was written; empty if that is unknown.
fn written(folder: &Path) -> String {
    let time = std::fs::metadata(folder.join("plan.json")).and_then(|data| data.modified());
    let text = |time| DateTime::<Utc>::from(time).to_rfc3339_opts(SecondsFormat::Secs, true);
    time.map(text).unwrap_or_default()
}

/// The first session after a change: that from which on commit and versions are those of the last
/// one, if they are enough for a test; otherwise the least number of sessions that is.
fn change(sessions: &[Session]) -> Result<usize, String> {
    let number = sessions.len();
    let last = sessions.last().ok_or("there is no session")?;
    let alike = sessions.iter().rev().take_while(|it| it.is_like(last)).count();
    if alike == number {
        return Err("commit and versions are the same in all sessions; --since names the first \
                    one after a change"
            .to_owned());
    }
    if number < 2 * RUNS_MIN {
        return Err(format!(
            "it takes {RUNS_MIN} sessions before a change and {RUNS_MIN} after it, and there are {number}"
        ));
    }
    Ok(number - alike.clamp(RUNS_MIN, number - RUNS_MIN))
}

impl FigureHistory {
    /// The last value.
    fn last(&self) -> Option<f64> {
        self.values.last().copied().flatten()
    }

    /// The last value with its unit; a dash if there is none.
    fn last_text(&self) -> String {
        let unit = self.how.unit.split(' ').next().unwrap_or_default();
        let text = self.last().map(|value| format!("{} {unit}", self.figure.compared_text(value)));
        text.unwrap_or_else(|| crate::report::format::WITHHELD.to_owned())
    }

    /// The last value against the median of all before it.
    fn change(&self) -> Option<String> {
        let (last, before) = self.values.split_last()?;
        let before = median(before.iter().flatten().copied().collect())?;
        (before > 0.0).then_some(change_percent((*last)? / before - 1.0))
    }

    /// Where each value lies between the lowest and the highest, 0 to 1. The range is at least
    /// [`RATIO_EQUAL`] wide, so that noise looks flat.
    fn shares(&self) -> Vec<Option<f64>> {
        let known = || self.values.iter().flatten().copied();
        let low = known().fold(f64::INFINITY, f64::min);
        let high = known().fold(0.0, f64::max);
        let spare = (low * RATIO_EQUAL - high).max(0.0) / 2.0;
        let (low, high) = (low - spare, high + spare);
        let share = |value: f64| if high > low { (value - low) / (high - low) } else { 0.5 };
        self.values.iter().map(|value| value.map(share)).collect()
    }
}

/// The trend as Markdown.
pub fn markdown(trend: &Trend) -> String {
    let context = context! { title => terminal::title(trend), ..page::content(trend) };
    rendered("trend.md", include_str!("trend/assets/trend.md.jinja"), context)
}

/// [`Trend::schema`].
pub const SCHEMA: u32 = 1;
