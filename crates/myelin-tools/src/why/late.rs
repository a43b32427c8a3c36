//! Why samples come or are taken late: the time that a program computes, waits for a CPU, or stands
//! still for a limit.

use super::finding::Finding;
use super::process::{Process, Thread};
use super::publishing::debugger;
use super::snapshot::{End, Program, Snapshot};
use crate::numbers::time;
use crate::spread::Spread;

/// Publishers that publish unevenly, and subscribers that lose samples, with the cause.
pub fn judge(seen: &Snapshot) -> Vec<Finding> {
    let publishers = seen.of_kind(true).filter_map(|it| uneven(seen, it));
    let subscribers = seen.of_kind(false).filter_map(|it| losing(seen, it));
    subscribers.chain(publishers).take(FINDINGS_MAX).collect()
}

/// How a program spent its time, in shares of the interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Use {
    /// Its thread that ran or waited for a CPU most.
    pub thread: String,
    /// Where that one sleeps.
    pub waits_in: Option<String>,
    /// Its scheduling class.
    pub policy: u32,
    /// Running.
    pub runs: f64,
    /// Ready to run, without a CPU.
    pub waits: f64,
    /// How often it lost its CPU to another thread.
    pub involuntary: u64,
    /// Standing still for a limit of its control group, and the group.
    pub throttled: Option<(String, f64)>,
}

impl Use {
    /// Between the two looks at its process.
    pub fn of(program: &Program, interval_s: f64) -> Option<Use> {
        let (before, now) = program.process.as_ref()?;
        let interval_ns = interval_s.max(1e-3) * 1e9;
        let share = |new: u64, old: u64| new.saturating_sub(old) as f64 / interval_ns;
        let since = |tid: &u32, thread: &Thread| {
            let before = before.threads.get(tid).cloned().unwrap_or_default();
            let runs = share(thread.cpu_ns, before.cpu_ns);
            let waits = share(thread.run_delay_ns, before.run_delay_ns);
            (runs, waits, thread.involuntary.saturating_sub(before.involuntary))
        };
        let threads = now.threads.iter().map(|(tid, thread)| (since(tid, thread), thread));
        let ((runs, waits, involuntary), thread) =
            threads.max_by(|((a, b, _), _), ((c, d, _), _)| (a + b).total_cmp(&(c + d)))?;
        Some(Use {
            thread: thread.name.clone(),
            waits_in: thread.waits_in.clone(),
            policy: thread.policy,
            runs,
            waits,
            involuntary,
            throttled: throttled(before, now, interval_ns),
        })
    }
}

impl Use {
    /// Whether its busiest thread would compute all the time, if it had a CPU to itself.
    pub fn is_busy(&self) -> bool {
        self.runs + self.waits > BUSY
    }

    /// For a sentence: `its thread "on_scan" computes 88 % of the time`.
    pub fn text(&self) -> String {
        let Use { thread, runs, waits, .. } = self;
        let mut text = format!("its thread {thread:?} computes {} of the time", percent(*runs));
        if *waits > 0.1 {
            text += &format!(" and waits for a CPU {}", percent(*waits));
        }
        text
    }
}

fn throttled(before: &Process, now: &Process, interval_ns: f64) -> Option<(String, f64)> {
    let now = now.throttled.as_ref()?;
    let old = before.throttled.as_ref().map_or(0, |it| it.ns);
    let share = now.ns.saturating_sub(old) as f64 / interval_ns;
    (share > 0.01).then(|| (now.group.clone(), share))
}

fn losing(seen: &Snapshot, subscriber: &End) -> Option<Finding> {
    // Who keeps one sample wants the newest: what it skips is no fault.
    let (new, _) = subscriber.lost().filter(|(new, _)| *new > 0 && subscriber.info.depth > 1)?;
    let what = format!("loses {}", seen.losses(new));
    Some(cause(seen, subscriber, &what, STARVED))
}

fn uneven(seen: &Snapshot, publisher: &End) -> Option<Finding> {
    let periods = seen.rates.get(&publisher.info.id)?.period?;
    if !is_uneven(&periods) {
        return None;
    }
    let what = format!(
        "publishes {:?} unevenly: {} between two samples at most, and {} at p50",
        seen.topic,
        time(periods.max),
        time(periods.p50),
    );
    // A gap has its cause in the CPU if the thread waited for one so long.
    let gap_s = (periods.max - periods.p50) as f64 / 1e9;
    let starved = (gap_s / seen.interval_s.max(1e-3)).min(STARVED);
    Some(cause(seen, publisher, &what, starved))
}

/// Whether a gap is much longer than the usual time between two samples.
fn is_uneven(periods: &Spread) -> bool {
    let Spread { count, p50, max, .. } = *periods;
    count >= COUNT_MIN && max > p50.saturating_mul(5) / 2 && max - p50 > GAP_NS_MIN
}

/// `starved` is the share of the time without a CPU that explains it.
fn cause(seen: &Snapshot, end: &End, what: &str, starved: f64) -> Finding {
    let program = &end.program;
    let (label, pid, node) = (program.label(), program.pid, &program.name);
    let publishes = end.info.is_publisher;
    let Some(spent) = Use::of(program, seen.interval_s) else {
        let id = if publishes { "publisher_uneven" } else { "subscriber_late" };
        let found = format!("{label} {what}");
        let change = format!("run myelin why --late {} where {node} runs", seen.topic);
        return Finding::change(id, found, change).of(node, pid);
    };
    if let Some((group, share)) = &spent.throttled {
        let found = format!(
            "{label} {what}: the CPU limit of its control group {group} made it stand still for {} of \
             the time",
            percent(*share)
        );
        let change = "raise the limit: CPUQuota= of its unit, docker update --cpus, limits.cpu";
        return Finding::change("cpu_throttled", found, change.to_owned()).of(node, pid);
    }
    if spent.waits > starved && spent.waits > spent.runs / 2.0 {
        let taker = match &seen.busiest {
            Some((program, share)) => {
                format!("; {} took {} of a core", program.label(), percent(*share))
            }
            None => String::new(),
        };
        let found = format!(
            "{label} {what}: its thread {:?} waited for a CPU {} of the time{taker}",
            spent.thread,
            percent(spent.waits),
        );
        let command = format!("sudo chrt --fifo --all-tasks --pid 50 {pid}");
        return Finding::command("cpu_starved", found, command).of(node, pid);
    }
    if spent.is_busy() {
        let found = format!("{label} {what}: {}", spent.text());
        let (id, change) = match publishes {
            true => (
                "publisher_slow",
                "make the loop that publishes faster, or move its work to another thread"
                    .to_owned(),
            ),
            false => (
                "subscriber_slow",
                format!(
                    "make what {node} does with a sample faster, or move it to another thread; if \
                     only the newest sample counts: topic.depth(1)"
                ),
            ),
        };
        return Finding::change(id, found, change).of(node, pid);
    }
    let place = spent.waits_in.map(|name| format!(" (in the kernel: {name})")).unwrap_or_default();
    let (id, found) = match publishes {
        true => (
            "publisher_waits",
            format!(
                "{label} {what}: it neither computes nor waits for a CPU, so it waits for something{place}"
            ),
        ),
        false => (
            "subscriber_waits",
            format!(
                "{label} {what}: it neither computes nor waits for a CPU, so it sleeps or waits for something else between its takes{place}"
            ),
        ),
    };
    match pid {
        0 => Finding::change(id, found, format!("look at what {node} waits for")),
        pid => Finding::command(id, found, debugger(pid)),
    }
    .of(node, pid)
}

/// A share for people.
fn percent(share: f64) -> String {
    format!("{:.0} %", (share * 100.0).min(100.0))
}

/// A thread that computes this share of the time has no rest to speak of.
const BUSY: f64 = 0.8;
/// The share of the time without a CPU that counts as starved.
const STARVED: f64 = 0.15;
/// Fewer samples say nothing of a period.
const COUNT_MIN: u64 = 5;
/// The wake-up of a thread of a busy machine may take as long.
const GAP_NS_MIN: u64 = 5_000_000;
const FINDINGS_MAX: usize = 8;
