//! A process as `/proc` shows it, at one moment.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// A process that takes part in a topic, or may.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// The name of its program, as the kernel has it.
    pub name: String,
    /// The state of its first thread: `R`, `S`, `D`, `T` (stopped), `t` (halted by a debugger).
    pub state: char,
    /// The process that traces it: a debugger, strace.
    pub tracer: Option<(u32, String)>,
    /// How many files are open, and may be.
    pub files: Option<(u64, u64)>,
    /// Whether it has loaded CycloneDDS; `None` if that cannot be read.
    pub has_network: Option<bool>,
    /// How long its control groups kept it from running so far, if one of them has a CPU limit.
    pub throttled: Option<Throttled>,
    /// Its threads by number.
    pub threads: BTreeMap<u32, Thread>,
}

/// A CPU limit of a control group.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Throttled {
    /// The control group's folder.
    pub group: String,
    /// How long it has stood still so far.
    pub ns: u64,
}

/// A thread.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Thread {
    /// Its name.
    pub name: String,
    /// How long it has run.
    pub cpu_ns: u64,
    /// How long it could run, and waited for a CPU.
    pub run_delay_ns: u64,
    /// How often it lost its CPU to another thread.
    pub involuntary: u64,
    /// The scheduling class: 0 `SCHED_OTHER`, 1 `SCHED_FIFO`, 2 `SCHED_RR` …
    pub policy: u32,
    /// The kernel's function in which it sleeps, if it says so.
    pub waits_in: Option<String>,
}

impl Process {
    /// Reads it; `None` if there is none, or nothing of it can be read.
    pub fn read(pid: u32) -> Option<Process> {
        let folder = Path::new("/proc").join(pid.to_string());
        let text = |name: &str| fs::read_to_string(folder.join(name)).ok();
        let stat_text = text("stat")?;
        let (name, fields) = stat(&stat_text)?;
        let status = text("status").unwrap_or_default();
        let tracer = number(&status, "TracerPid:").filter(|thread| *thread > 0).map(tracer);
        let files = text("limits").and_then(|limits| {
            let limit = number(&limits, "Max open files").unwrap_or(u64::MAX);
            Some((fs::read_dir(folder.join("fd")).ok()?.count() as u64, limit))
        });
        Some(Process {
            pid,
            name,
            state: fields.first()?.chars().next()?,
            tracer,
            files,
            has_network: text("maps").map(|maps| maps.contains("libddsc")),
            throttled: text("cgroup").and_then(|groups| throttled(&groups)),
            threads: threads(&folder),
        })
    }

    /// Whether it is stopped by a signal.
    pub fn is_stopped(&self) -> bool {
        self.state == 'T'
    }

    /// Whether it has as many open files as it may.
    pub fn is_out_of_files(&self) -> bool {
        self.files.is_some_and(|(open, limit)| open >= limit)
    }
}

/// Number and name of the process of a thread that traces another one.
fn tracer(thread: u64) -> (u32, String) {
    let text = |pid: u64, name: &str| fs::read_to_string(format!("/proc/{pid}/{name}"));
    let status = text(thread, "status").unwrap_or_default();
    let pid = number(&status, "Tgid:").unwrap_or(thread);
    (pid as u32, text(pid, "comm").unwrap_or_default().trim_end().to_owned())
}

/// Name and fields, from the state on, of a `stat` file.
fn stat(text: &str) -> Option<(String, Vec<&str>)> {
    let (before, after) = text.rsplit_once(')')?;
    let (_, name) = before.split_once('(')?;
    Some((name.to_owned(), after.split_whitespace().collect()))
}

/// The first number after a name.
fn number(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()?.parse().ok()
}

fn threads(folder: &Path) -> BTreeMap<u32, Thread> {
    let entries = fs::read_dir(folder.join("task")).into_iter().flatten().flatten();
    let read = |entry: fs::DirEntry| {
        let tid = entry.file_name().to_str()?.parse().ok()?;
        let text = |name: &str| fs::read_to_string(entry.path().join(name)).ok();
        let stat_text = text("stat")?;
        let (name, fields) = stat(&stat_text)?;
        let times = text("schedstat").unwrap_or_default();
        let mut times = times.split_whitespace().map(|word| word.parse().unwrap_or(0));
        let status = text("status").unwrap_or_default();
        let waits_in = text("wchan").filter(|name| !name.is_empty() && name != "0");
        let thread = Thread {
            name,
            cpu_ns: times.next().unwrap_or(0),
            run_delay_ns: times.next().unwrap_or(0),
            involuntary: number(&status, "nonvoluntary_ctxt_switches:").unwrap_or(0),
            policy: fields.get(POLICY_FIELD).and_then(|word| word.parse().ok()).unwrap_or(0),
            waits_in,
        };
        Some((tid, thread))
    };
    entries.take(THREADS_MAX).filter_map(read).collect()
}

/// The time for which the control groups of a process, as `/proc/PID/cgroup` lists them, stood
/// still for their CPU limits.
fn throttled(groups: &str) -> Option<Throttled> {
    groups.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let is_cpu = controllers.split(',').any(|name| name == "cpu");
        if !controllers.is_empty() && !is_cpu {
            return None;
        }
        let root = if is_cpu { "/sys/fs/cgroup/cpu" } else { "/sys/fs/cgroup" };
        let mut folder = Path::new(root).join(path.trim_start_matches('/'));
        let mut most: Option<Throttled> = None;
        while folder.starts_with(root) {
            let stat = fs::read_to_string(folder.join("cpu.stat")).unwrap_or_default();
            let ns = number(&stat, "throttled_usec")
                .map(|us| us * 1_000)
                .or_else(|| number(&stat, "throttled_time"));
            if let Some(ns) = ns.filter(|ns| most.as_ref().is_none_or(|most| *ns > most.ns)) {
                most = Some(Throttled { group: folder.display().to_string(), ns });
            }
            if !folder.pop() {
                break;
            }
        }
        most
    })
}

/// The 41st field, of which the first three are name, number and state.
const POLICY_FIELD: usize = 38;
/// More threads are not looked at.
const THREADS_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_read() {
        let this = Process::read(std::process::id()).unwrap();
        let (open, limit) = this.files.unwrap();
        assert!(open > 2 && limit >= open, "{this:?}");
        assert!(!this.is_stopped() && !this.is_out_of_files());
        assert_eq!(this.has_network, Some(false));
        assert!(this.threads.values().any(|thread| thread.cpu_ns > 0), "{this:?}");
        assert_eq!(Process::read(u32::MAX), None);
    }

    #[test]
    fn a_name_may_contain_anything() {
        let (name, fields) = stat("12 (a) b (c)) T 1 2\n").unwrap();
        assert_eq!((&*name, fields[0]), ("a) b (c)", "T"));
    }
}
