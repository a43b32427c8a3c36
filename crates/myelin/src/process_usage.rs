//! What the processes of nodes use, as the kernel counts it.

use std::collections::BTreeMap;

use crate::clock::now;

/// What a process uses.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ProcessUsage {
    /// Of one core, since the last look at it.
    pub(crate) cpu_percent: Option<f64>,
    pub(crate) memory_bytes: u64,
    pub(crate) threads: u32,
    /// Whether a signal or a debugger has stopped it.
    pub(crate) is_stopped: bool,
}

/// The processes that were looked at last.
#[derive(Debug)]
pub(crate) struct ProcessUsages {
    looks: BTreeMap<u32, Look>,
    /// Whether `/proc` has the process numbers of this process's namespace.
    can_look: bool,
    page_bytes: u64,
}

/// A look at a process.
#[derive(Clone, Copy, Debug)]
struct Look {
    at_ns: u64,
    /// The time that its threads have run, those that have ended included.
    ran_ns: Option<u64>,
    stat: Stat,
}

/// What `/proc/PID/stat` has of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stat {
    state: u8,
    threads: u32,
    /// In ticks since the host started: a number is used again for a process of another time.
    start: u64,
    memory_pages: u64,
}

impl ProcessUsages {
    pub(crate) fn new() -> ProcessUsages {
        let own = std::fs::read_link("/proc/self").ok();
        let own = own.as_deref().and_then(|own| own.to_str()?.parse::<u32>().ok());
        let can_look = own == Some(std::process::id());
        let page_bytes = rustix::param::page_size() as u64;
        ProcessUsages { looks: BTreeMap::new(), can_look, page_bytes }
    }

    /// Looks at processes, and forgets the others. It has no entry for a process that has gone.
    pub(crate) fn look(&mut self, pids: impl Iterator<Item = u32>) -> BTreeMap<u32, ProcessUsage> {
        let pids = pids.filter(|pid| self.can_look && *pid != 0);
        let before = std::mem::take(&mut self.looks);
        self.looks = pids.filter_map(|pid| Some((pid, Look::at(pid)?))).collect();
        let usage =
            |(pid, look): (&u32, &Look)| (*pid, look.usage(before.get(pid), self.page_bytes));
        self.looks.iter().map(usage).collect()
    }
}

impl Look {
    fn at(pid: u32) -> Option<Look> {
        // The time first: if the process after it is the one of the last look, so is the time.
        let ran_ns = ran_ns(pid);
        let at_ns = now();
        let stat = Stat::parse(&std::fs::read(format!("/proc/{pid}/stat")).ok()?)?;
        Some(Look { at_ns, ran_ns, stat })
    }

    fn usage(&self, before: Option<&Look>, page_bytes: u64) -> ProcessUsage {
        let before = before.filter(|before| before.stat.start == self.stat.start);
        let cpu_percent = before.and_then(|before| {
            let ran = self.ran_ns?.checked_sub(before.ran_ns?)?;
            let passed = self.at_ns.checked_sub(before.at_ns).filter(|passed| *passed > 0)?;
            Some(100.0 * ran as f64 / passed as f64)
        });
        ProcessUsage {
            cpu_percent,
            memory_bytes: self.stat.memory_pages.saturating_mul(page_bytes),
            threads: self.stat.threads,
            is_stopped: matches!(self.stat.state, b'T' | b't'),
        }
    }
}

impl Stat {
    /// The name of the program, in parentheses, may have spaces and parentheses itself.
    fn parse(line: &[u8]) -> Option<Stat> {
        let name_end = line.iter().rposition(|byte| *byte == b')')?;
        let rest = std::str::from_utf8(&line[name_end + 1..]).ok()?;
        let mut fields = rest.split_ascii_whitespace();
        // Numbered as in proc_pid_stat(5): the state is 3, threads 20, start 22, resident pages 24.
        let state = *fields.next()?.as_bytes().first()?;
        let threads = fields.nth(16)?.parse().ok()?;
        let start = fields.nth(1)?.parse().ok()?;
        let memory_pages = fields.nth(1)?.parse().ok()?;
        Some(Stat { state, threads, start, memory_pages })
    }
}

/// The time that a process has run, by its CPU clock. `/proc` counts it in steps of 10 ms.
fn ran_ns(pid: u32) -> Option<u64> {
    let mut clock = 0;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: both write only to their second argument, plain data of the right type.
    let is_read = unsafe {
        libc::clock_getcpuclockid(pid.try_into().ok()?, &mut clock) == 0
            && libc::clock_gettime(clock, &mut time) == 0
    };
    is_read.then(|| time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &[u8] =
        b"42 (a) (b c) T 1 42 42 0 -1 4194560 100 0 0 0 12 3 0 0 20 0 7 0 99 5000 1234 \
        18446744073709551615 1 1 0 0 0";

    #[test]
    fn the_stat_of_a_process_is_read_whatever_its_name() {
        let stat = Stat { state: b'T', threads: 7, start: 99, memory_pages: 1_234 };
        assert_eq!(Stat::parse(LINE), Some(stat));
        for end in 0..LINE.len() {
            if let Some(cut) = Stat::parse(&LINE[..end]) {
                assert_eq!((cut.threads, cut.start), (7, 99), "cut at {end}");
            }
        }
        assert_eq!(Stat::parse(b"42 (\xff) S x"), None);
    }

    #[test]
    fn cpu_time_of_a_number_that_is_used_again_is_not_known() {
        let look = |at_ns, ran_ns, start| {
            let stat = Stat { state: b'S', threads: 1, start, memory_pages: 2 };
            Look { at_ns, ran_ns: Some(ran_ns), stat }
        };
        let usage = look(2_000, 700, 1).usage(Some(&look(1_000, 200, 1)), 4_096);
        assert_eq!((usage.cpu_percent, usage.memory_bytes), (Some(50.0), 8_192));
        assert_eq!(look(2_000, 700, 2).usage(Some(&look(1_000, 200, 1)), 1).cpu_percent, None);
        assert_eq!(look(2_000, 100, 1).usage(Some(&look(1_000, 200, 1)), 1).cpu_percent, None);
        assert_eq!(look(1_000, 700, 1).usage(Some(&look(1_000, 200, 1)), 1).cpu_percent, None);
        assert_eq!(look(2_000, 700, 1).usage(None, 1).cpu_percent, None);
    }

    #[test]
    fn this_process_is_seen_and_no_other_is_remembered() {
        let (own, mut usages) = (std::process::id(), ProcessUsages::new());
        if !usages.can_look {
            return;
        }
        let first = usages.look([own, 0, u32::MAX].into_iter());
        assert_eq!(first.keys().copied().collect::<Vec<_>>(), [own]);
        assert!(first[&own].memory_bytes > 0 && first[&own].threads > 0);
        assert_eq!((first[&own].cpu_percent, first[&own].is_stopped), (None, false));
        let begin = now();
        while now() < begin + 1_000_000 {}
        assert!(usages.look([own].into_iter())[&own].cpu_percent > Some(0.0));
        assert!(usages.look(std::iter::empty()).is_empty() && usages.looks.is_empty());
    }
}
