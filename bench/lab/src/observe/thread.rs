//! One thread that is observed: its account with the scheduler.

use super::procfile::{Page, ProcFile, numbers, value};
use super::series::{Switches, ThreadMoment};

/// A thread, with what was read of it last.
pub(super) struct Thread {
    pub(super) tid: u32,
    /// Index in [`super::series::ObservedProcess::threads`].
    index: u32,
    /// Nanoseconds run, nanoseconds waited in a run queue, times it was given a CPU.
    schedstat: ProcFile,
    last: [u64; 3],
    switches: Option<SwitchFile>,
    last_switches: Switches,
}

impl Thread {
    /// Counts from the thread's birth. `None` if it is gone, or no more files can be opened.
    pub(super) fn open(pid: u32, tid: u32, index: u32) -> Option<Self> {
        Some(Thread {
            tid,
            index,
            schedstat: ProcFile::open(&format!("/proc/{pid}/task/{tid}/schedstat"))?,
            last: [0; 3],
            switches: FILES.into_iter().find_map(|file| SwitchFile::open(pid, tid, file)),
            last_switches: Switches::default(),
        })
    }

    pub(super) fn index(&self) -> usize {
        self.index as usize
    }

    /// What happened since the last time; `None` once it has ended.
    pub(super) fn read(&mut self, page: &mut Page) -> Option<ThreadMoment> {
        let now: [u64; 3] = numbers(self.schedstat.read(page)?)?;
        let [cpu_ns, wait_ns, slices] = [0, 1, 2].map(|at| now[at].saturating_sub(self.last[at]));
        self.last = now;
        Some(ThreadMoment { thread: self.index, cpu_ns, wait_ns, slices })
    }

    /// Adds to `sum` what happened since the last time. Nothing once it has ended.
    pub(super) fn add_switches(&mut self, page: &mut Page, sum: &mut Option<Switches>) {
        let Some(now) = self.switches.as_ref().and_then(|file| file.read(page)) else {
            return;
        };
        let last = std::mem::replace(&mut self.last_switches, now);
        let before = sum.unwrap_or_default();
        let migrations = now.migrations.map(|migrations| {
            let more = migrations.saturating_sub(last.migrations.unwrap_or(0));
            before.migrations.unwrap_or(0) + more
        });
        *sum = Some(Switches {
            voluntary: before.voluntary + now.voluntary.saturating_sub(last.voluntary),
            involuntary: before.involuntary + now.involuntary.saturating_sub(last.involuntary),
            migrations,
        });
    }
}

/// Where the kernel tells voluntary switches from others, and by which names.
struct SwitchFile {
    file: ProcFile,
    names: [&'static str; 2],
}

impl SwitchFile {
    fn open(pid: u32, tid: u32, (name, names): NameAndKeys) -> Option<Self> {
        let file = ProcFile::open(&format!("/proc/{pid}/task/{tid}/{name}"))?;
        Some(SwitchFile { file, names })
    }

    fn read(&self, page: &mut Page) -> Option<Switches> {
        let text = self.file.read(page)?;
        let [voluntary, involuntary] = self.names.map(|name| value(text, name.as_bytes()));
        let migrations = value(text, b"se.nr_migrations");
        Some(Switches { voluntary: voluntary?, involuntary: involuntary?, migrations })
    }
}

type NameAndKeys = (&'static str, [&'static str; 2]);

/// The first has migrations, too. It is missing from kernels before 6.15 without CONFIG_SCHED_DEBUG.
const FILES: [NameAndKeys; 2] = [
    ("sched", ["nr_voluntary_switches", "nr_involuntary_switches"]),
    ("status", ["voluntary_ctxt_switches", "nonvoluntary_ctxt_switches"]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_sched_there_are_switches_and_no_migrations() {
        let own = std::process::id();
        let [_, status] = FILES;
        let file = SwitchFile::open(own, own, status).unwrap();
        let seen = file.read(&mut [0; size_of::<Page>()]).unwrap();
        assert!(seen.voluntary + seen.involuntary > 0 && seen.migrations.is_none(), "{seen:?}");
    }
}
