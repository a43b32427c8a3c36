//! One observed process: its cheap and its expensive values, and its threads with their scheduler
//! accounts.

use procfs::FromRead as _;
use procfs::process::Stat;

use super::counters::Counters;
use super::process::{Memory, cpu_ns};
use super::procfile::{Page, ProcFile, numbers, value};
use super::series::{Counted, Hardware, ProcessMoment, ProportionalMemory, Switches, ThreadMoment};

/// A process, with its last readings.
pub(super) struct Watched {
    pid: u32,
    /// Index in [`super::series::Series::processes`].
    index: u32,
    stat: Option<ProcFile>,
    rollup: Option<ProcFile>,
    counters: Option<Counters>,
    threads: Vec<Thread>,
    /// Names of all threads seen, by [`super::series::ThreadMoment::thread`].
    names: Vec<String>,
    threads_at_scan: i64,
    /// Resident and proportional bytes of the bench's own samples, which are constant.
    samples: (u64, u64),
    page_bytes: u64,
    last_cpu_ns: u64,
    last_faults: u64,
    last_hardware: Hardware,
    left_out: u32,
}

impl Watched {
    /// Opens all files and reads the initial counts. `room` is the number of threads that can be
    /// observed; it is reduced by those of this process.
    pub(super) fn begin(pid: u32, index: u32, room: &mut usize, page: &mut Page) -> Self {
        let mut this = Watched {
            pid,
            index,
            stat: ProcFile::open(&format!("/proc/{pid}/stat")),
            rollup: ProcFile::open(&format!("/proc/{pid}/smaps_rollup")),
            counters: None,
            threads: Vec::new(),
            names: Vec::new(),
            threads_at_scan: 0,
            samples: Memory::of(pid).unwrap_or_default().samples,
            page_bytes: rustix::param::page_size() as u64,
            last_cpu_ns: 0,
            last_faults: 0,
            last_hardware: Hardware::default(),
            left_out: 0,
        };
        this.scan(room);
        if this.left_out == 0 {
            this.counters = Counters::open(&this.tids().collect::<Vec<_>>());
        }
        this.read(page, room, false);
        this.switches(page);
        this.hardware();
        this
    }

    /// The values that are read at every moment; `None` after the process has ended. `rescan`
    /// searches for new threads even if their number has not changed.
    pub(super) fn read(
        &mut self,
        page: &mut Page,
        room: &mut usize,
        rescan: bool,
    ) -> Option<ProcessMoment> {
        let stat = self.stat.as_ref().and_then(|file| Stat::from_read(file.read(page)?).ok());
        // An ended process may be a zombie until it is waited for.
        let Some(stat) = stat.filter(|stat| !matches!(stat.state, 'Z' | 'X')) else {
            self.end(room);
            return None;
        };
        if rescan || stat.num_threads != self.threads_at_scan {
            self.scan(room);
        }
        let (now_cpu_ns, faults) = (cpu_ns(self.pid)?, stat.minflt + stat.majflt);
        let mut moment = ProcessMoment {
            process: self.index,
            cpu_ns: now_cpu_ns.saturating_sub(self.last_cpu_ns),
            threads: Vec::with_capacity(self.threads.len()),
            faults: faults.saturating_sub(self.last_faults),
            rss_bytes: (stat.rss * self.page_bytes).saturating_sub(self.samples.0),
            ..ProcessMoment::default()
        };
        self.last_cpu_ns = now_cpu_ns;
        self.last_faults = faults;
        self.threads.retain_mut(|thread| match thread.read(page) {
            Some(seen) => {
                if (seen.cpu_ns, seen.wait_ns, seen.slices) != (0, 0, 0) {
                    moment.threads.push(seen);
                }
                true
            }
            None => {
                *room += 1;
                false
            }
        });
        Some(moment)
    }

    /// Expensive: walks all page tables, under the read lock of the memory map.
    pub(super) fn memory(&self, page: &mut Page) -> Option<ProportionalMemory> {
        let text = self.rollup.as_ref()?.read(page)?;
        let bytes = |key: &[u8]| Some((value(text, key)? * 1024).saturating_sub(self.samples.1));
        Some(ProportionalMemory { pss_bytes: bytes(b"Pss:")?, shared_bytes: bytes(b"Pss_Shmem:") })
    }

    /// Expensive: the kernel composes a page of text for each thread.
    pub(super) fn switches(&mut self, page: &mut Page) -> Option<Switches> {
        let mut sum = None;
        for thread in &mut self.threads {
            thread.add_switches(page, &mut sum);
        }
        sum
    }

    /// Expensive: interrupts each CPU that runs one of the threads.
    pub(super) fn hardware(&mut self) -> Option<Hardware> {
        let now = self.counters.as_mut()?.read()?;
        let last = std::mem::replace(&mut self.last_hardware, now);
        let since = |now: Option<u64>, last: Option<u64>| {
            now.map(|now| now.saturating_sub(last.unwrap_or(0)))
        };
        Some(Hardware {
            cycles: now.cycles.saturating_sub(last.cycles),
            instructions: since(now.instructions, last.instructions),
            cache_misses: since(now.cache_misses, last.cache_misses),
        })
    }

    pub(super) fn counted(&self) -> Option<Counted> {
        self.counters.as_ref().map(Counters::counted)
    }

    pub(super) fn has_ended(&self) -> bool {
        self.stat.is_none()
    }

    /// Number of threads beyond the limit.
    pub(super) fn left_out(&self) -> u32 {
        self.left_out
    }

    pub(super) fn tids(&self) -> impl Iterator<Item = u32> {
        self.threads.iter().map(|thread| thread.tid)
    }

    /// The names of all threads seen. Read late, since many threads set their name after their
    /// start.
    pub(super) fn take_names(&mut self) -> Vec<String> {
        for thread in &self.threads {
            if let Some(name) = name_of(self.pid, thread.tid) {
                self.names[thread.index as usize] = name;
            }
        }
        std::mem::take(&mut self.names)
    }

    fn end(&mut self, room: &mut usize) {
        *room += self.threads.len();
        self.threads.clear();
        self.stat = None;
        self.rollup = None;
    }

    /// Opens the files of new threads. Ended threads are noticed when they are read.
    fn scan(&mut self, room: &mut usize) {
        let entries = std::fs::read_dir(format!("/proc/{}/task", self.pid));
        self.threads_at_scan = 0;
        self.left_out = 0;
        for entry in entries.into_iter().flatten().flatten() {
            let Some(tid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            self.threads_at_scan += 1;
            if self.threads.iter().any(|thread| thread.tid == tid) {
                continue;
            }
            if *room == 0 || self.names.len() == NAMES_MAX {
                self.left_out += 1;
                continue;
            }
            let index = self.names.len() as u32;
            if let Some(thread) = Thread::open(self.pid, tid, index) {
                *room -= 1;
                self.threads.push(thread);
                self.names.push(name_of(self.pid, tid).unwrap_or_default());
            }
        }
    }
}

fn name_of(pid: u32, tid: u32) -> Option<String> {
    let name = std::fs::read(format!("/proc/{pid}/task/{tid}/comm")).ok()?;
    Some(String::from_utf8_lossy(&name).trim_end().to_owned())
}

/// A thread, with its last readings.
struct Thread {
    tid: u32,
    /// Index in [`super::series::ObservedProcess::threads`].
    index: u32,
    /// Nanoseconds run, nanoseconds waited in a run queue, number of times it got a CPU.
    schedstat: ProcFile,
    last: [u64; 3],
    /// `sched`; on kernels before 6.15 without CONFIG_SCHED_DEBUG, `status`.
    switches: Option<ProcFile>,
    last_switches: Switches,
}

impl Thread {
    /// Its counts start at the thread's birth. `None` if it has ended, or if too many files are
    /// open.
    fn open(pid: u32, tid: u32, index: u32) -> Option<Self> {
        let open = |name| ProcFile::open(&format!("/proc/{pid}/task/{tid}/{name}"));
        Some(Thread {
            tid,
            index,
            schedstat: open("schedstat")?,
            last: [0; 3],
            switches: open("sched").or_else(|| open("status")),
            last_switches: Switches::default(),
        })
    }

    /// Changes since the last reading; `None` after it has ended.
    fn read(&mut self, page: &mut Page) -> Option<ThreadMoment> {
        let now: [u64; 3] = numbers(self.schedstat.read(page)?)?;
        let [cpu_ns, wait_ns, slices] = [0, 1, 2].map(|at| now[at].saturating_sub(self.last[at]));
        self.last = now;
        Some(ThreadMoment { thread: self.index, cpu_ns, wait_ns, slices })
    }

    /// Adds the changes since the last reading to `sum`; nothing after it has ended.
    fn add_switches(&mut self, page: &mut Page, sum: &mut Option<Switches>) {
        let text = self.switches.as_ref().and_then(|file| file.read(page));
        let Some(now) = text.and_then(switches_of) else { return };
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

/// The counts in the text of `sched` or `status`, which have different names for them; only `sched`
/// has migrations.
fn switches_of(text: &[u8]) -> Option<Switches> {
    let either = |names: [&str; 2]| names.iter().find_map(|name| value(text, name.as_bytes()));
    Some(Switches {
        voluntary: either(["nr_voluntary_switches", "voluntary_ctxt_switches"])?,
        involuntary: either(["nr_involuntary_switches", "nonvoluntary_ctxt_switches"])?,
        migrations: value(text, b"se.nr_migrations"),
    })
}

/// Limit of a process's named threads in a series: a process that starts a thread for each message
/// would fill the memory with names.
const NAMES_MAX: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_proc_sched_migrations_are_absent() {
        let seen = switches_of(&std::fs::read("/proc/self/status").unwrap()).unwrap();
        assert!(seen.voluntary + seen.involuntary > 0 && seen.migrations.is_none(), "{seen:?}");
    }
}
