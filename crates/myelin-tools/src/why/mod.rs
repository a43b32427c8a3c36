//! `myelin why`: from a topic that is silent or late to what is wrong, in the order in which a person
//! would look. `collect` looks, and makes a [`Snapshot`] of what it saw; the judgements are functions
//! of the snapshot alone, each in a file of its subject.

mod collect;
mod elsewhere;
mod finding;
mod late;
mod matching;
mod presence;
mod process;
mod publishing;
mod snapshot;
mod stillness;
mod taking;
#[cfg(test)]
mod tests;
mod types;

use std::time::Duration;

use serde::Serialize;

pub use finding::{Finding, Fix, wrapped};
use late::Use;
use snapshot::{End, Snapshot};

use crate::numbers::time;
use crate::session::Place;
use crate::spread::Spread;
use crate::text::{counted, printable};
use crate::{Error, names, timestamps};

/// What to look at.
#[derive(Clone, Debug)]
pub struct Options {
    /// The topic, as [`select`](crate::select) understands it.
    pub topic: String,
    /// How long to wait at most for a sample.
    pub within: Duration,
    /// Whether to look for causes of lateness.
    pub late: bool,
}

/// The answer.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The topic.
    pub topic: String,
    /// Whether anything is wrong.
    pub wrong: bool,
    /// What is wrong, the cause first.
    pub findings: Vec<Finding>,
    /// The publishers and subscribers, as far as they are known.
    pub ends: Vec<EndReport>,
    /// Samples a second, of all publishers of this host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_hz: Option<f64>,
}

/// A publisher or subscriber of the answer.
#[derive(Clone, Debug, Default, Serialize)]
pub struct EndReport {
    /// `publisher` or `subscriber`.
    pub kind: &'static str,
    /// Its node.
    pub node: String,
    /// Its process; absent if it is not visible.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The language of its library.
    #[serde(skip)]
    pub language: String,
    /// Samples a second that a publisher publishes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_hz: Option<f64>,
    /// Samples a second that a subscriber loses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost_hz: Option<f64>,
    /// Samples a second that a subscriber takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub taken_hz: Option<f64>,
    /// With `--late`: the time between two samples, half are shorter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period_p50_us: Option<f64>,
    /// 99 % are shorter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period_p99_us: Option<f64>,
    /// The longest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period_max_us: Option<f64>,
    /// With `--late`: whether a publisher adds timestamps; otherwise it has no periods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub has_timestamps: Option<bool>,
    /// The busiest thread of its process: running, in per cent of a core.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_percent: Option<f64>,
    /// Ready to run, without a CPU, in per cent of the time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_wait_percent: Option<f64>,
    /// How often it lost its CPU to another thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preemptions: Option<u64>,
    /// Its scheduling class: `other`, `fifo`, `rr` …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduling: Option<&'static str>,
}

/// Looks, and says what is wrong.
///
/// # Errors
/// [`Error::NotFound`] if there is no such topic, and nothing like it. Those of
/// [`Session::open`](crate::session::Session::open), but for a folder without room, which is a
/// finding.
pub fn look(place: &Place, options: &Options) -> Result<Report, Error> {
    let seen = match collect::collect(place, options) {
        Err(Error::Library(myelin::Error::NoSpace { path })) => {
            return Ok(no_room(&options.topic, &path));
        }
        seen => seen?,
    };
    let findings = judge(&seen, options.late);
    let is_unknown = findings.first().is_some_and(|first| first.id == "no_publisher");
    if seen.ends.is_empty() && is_unknown {
        return Err(Error::NotFound(unknown(&seen)));
    }
    let ends = seen.ends.iter().map(|end| EndReport::of(&seen, end, options.late)).collect();
    let (topic, rate_hz) = (seen.topic.clone(), seen.rate_hz().map(tenth));
    Ok(Report { topic, wrong: !findings.is_empty(), findings, ends, rate_hz })
}

/// All that is wrong, in the order in which a person would look.
fn judge(seen: &Snapshot, late: bool) -> Vec<Finding> {
    let mut findings = presence::judge(seen);
    findings.extend(matching::judge(seen));
    let taking = taking::judge(seen);
    let publishing = publishing::judge(seen);
    // A publisher that waits for a subscriber that stands still is not the cause.
    let waits = |finding: &Finding| finding.id == "publisher_idle" && is_waited_for(seen);
    let is_still = |finding: &Finding| finding.id.starts_with("subscriber_");
    if taking.iter().any(is_still) && publishing.iter().any(waits) {
        findings.extend(taking);
        return findings;
    }
    findings.extend(publishing);
    let lateness = |finding: &Finding| finding.id == "subscriber_late";
    findings.extend(taking.into_iter().filter(|finding| !(late && lateness(finding))));
    if late {
        findings.extend(late::judge(seen));
    }
    findings
}

/// Whether a publisher waits for slow subscribers that ask for it.
fn is_waited_for(seen: &Snapshot) -> bool {
    let is_reliable = |publishers| seen.of_kind(publishers).any(|end| end.info.reliable);
    is_reliable(true) && is_reliable(false)
}

fn unknown(seen: &Snapshot) -> String {
    let names = || seen.others.iter().map(|it| &*it.name);
    let near = names::nearest(&seen.topic, names());
    let near = near.map(|name| format!("; the nearest is {name:?}")).unwrap_or_default();
    format!(
        "there is no topic {:?} in domain {}, nor in another place that can be seen{near}; `myelin topic \
         list` lists those that are there",
        seen.topic, seen.place.domain
    )
}

fn no_room(topic: &str, path: &std::path::Path) -> Report {
    let found = format!("no program can meet another one: there is no room in {}", path.display());
    let folder = path.parent().unwrap_or(path);
    let command = format!("df -h -i {}", folder.display());
    let findings = vec![Finding::command("shm_full", found, command)];
    Report { topic: topic.to_owned(), wrong: true, findings, ends: Vec::new(), rate_hz: None }
}

impl Report {
    /// For people: the cause first; without one, what works.
    pub fn text(&self) -> String {
        let mut text: String = self.findings.iter().map(Finding::text).collect();
        if self.findings.is_empty() {
            text += &self.works();
        }
        if self.ends.iter().any(|end| end.cpu_percent.is_some() || end.has_timestamps.is_some()) {
            text.push('\n');
            text.extend(self.ends.iter().map(EndReport::text));
        }
        text
    }

    fn works(&self) -> String {
        let names = |kind: &str| {
            let of_kind = self.ends.iter().filter(|end| end.kind == kind);
            let names: Vec<_> = of_kind.map(|end| printable(&end.node)).collect();
            match names.len() {
                0..=3 => names.join(", "),
                count => format!("{}, ... ({count})", names[..3].join(", ")),
            }
        };
        let takers = self.ends.iter().filter(|end| end.kind == "subscriber").count();
        let takers = counted(takers, "subscriber");
        let rate = self.rate_hz.map(|hz| format!("{hz} Hz ")).unwrap_or_default();
        wrapped(
            "",
            &format!(
                "samples of {:?} arrive: {rate}from {}, taken by {takers}: {}",
                self.topic,
                names("publisher"),
                names("subscriber"),
            ),
        )
    }
}

impl EndReport {
    fn of(seen: &Snapshot, end: &End, late: bool) -> EndReport {
        let interval_s = seen.interval_s.max(1e-3);
        let hz = |(new, _): (u64, u64)| tenth(new as f64 / interval_s);
        let mut report = EndReport {
            kind: if end.info.is_publisher { "publisher" } else { "subscriber" },
            node: end.program.name.clone(),
            pid: (end.program.pid != 0).then_some(end.program.pid),
            rate_hz: end.published().map(hz),
            lost_hz: end.lost().map(hz),
            taken_hz: end.taken().map(hz),
            ..EndReport::default()
        };
        if !late {
            return report;
        }
        if let Some(rate) = seen.rates.get(&end.info.id) {
            let us = |of: fn(Spread) -> u64| rate.period.map(|it| tenth(of(it) as f64 / 1e3));
            (report.period_p50_us, report.period_p99_us) = (us(|it| it.p50), us(|it| it.p99));
            report.period_max_us = us(|it| it.max);
            report.has_timestamps = Some(rate.has_times);
            report.language.clone_from(&end.program.language);
        }
        if let Some(spent) = Use::of(&end.program, seen.interval_s) {
            report.cpu_percent = Some(tenth(spent.runs * 100.0));
            report.cpu_wait_percent = Some(tenth(spent.waits * 100.0));
            report.preemptions = Some(spent.involuntary);
            let classes = ["other", "fifo", "rr", "batch", "iso", "idle", "deadline"];
            report.scheduling = classes.get(spent.policy as usize).copied();
        }
        report
    }

    /// Two lines: what it does, and what its process does.
    fn text(&self) -> String {
        let mut facts = Vec::new();
        if let Some(hz) = self.rate_hz {
            facts.push(format!("{hz} Hz"));
        }
        if let (Some(p50), Some(p99), Some(max)) =
            (self.period_p50_us, self.period_p99_us, self.period_max_us)
        {
            let [p50, p99, max] = [p50, p99, max].map(|us| time((us * 1e3) as u64));
            facts.push(format!("period p50 {p50}, p99 {p99}, longest {max}"));
        }
        if self.has_timestamps == Some(false) {
            let to_add = timestamps::to_add(&self.language);
            facts.push(format!("period not known, as it adds no timestamps: {to_add}"));
        }
        if let Some(hz) = self.taken_hz {
            facts.push(format!("takes {hz} samples a second"));
        }
        if let Some(hz) = self.lost_hz {
            facts.push(format!("loses {hz} samples a second"));
        }
        if let (Some(cpu), Some(wait)) = (self.cpu_percent, self.cpu_wait_percent) {
            facts.push(format!("computes {cpu:.0} %, waits for a CPU {wait:.0} %"));
        }
        if let Some(class) = self.scheduling {
            facts.push(format!("SCHED_{}", class.to_uppercase()));
        }
        let name = format!("{:<11}{}", self.kind, printable(&self.node));
        let pid = self.pid.map(|pid| format!(" (process {pid})")).unwrap_or_default();
        format!("{name}{pid}\n{}", wrapped("           ", &facts.join("; ")))
    }
}

/// A number for people, with one digit behind the point.
fn tenth(number: f64) -> f64 {
    (number * 10.0).round() / 10.0
}
