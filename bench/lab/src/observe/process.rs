//! CPU, switches, faults and memory of one process.

use std::collections::BTreeMap;
use std::path::Path;

use procfs::process::{MMPermissions, MMapPath, MemoryMap, Process};

use super::ProcessObservation;

#[derive(Default)]
pub(super) struct ProcessSnapshot {
    cpu_ns: u64,
    threads: BTreeMap<i32, (String, u64)>,
    user_ticks: u64,
    system_ticks: u64,
    voluntary: u64,
    involuntary: u64,
    faults: u64,
}

impl ProcessSnapshot {
    /// A snapshot of a process; `None` if it has ended.
    pub(super) fn take(pid: u32) -> Option<Self> {
        let process = Process::new(i32::try_from(pid).ok()?).ok()?;
        let stat = process.stat().ok()?;
        let mut snapshot = ProcessSnapshot {
            cpu_ns: cpu_ns(pid)?,
            user_ticks: stat.utime,
            system_ticks: stat.stime,
            faults: stat.minflt + stat.majflt,
            ..Self::default()
        };
        for task in process.tasks().ok()?.flatten() {
            // A thread may end at any moment and is then not counted. Without CONFIG_SCHED_INFO the
            // kernel has no CPU times of threads.
            if let (Ok(schedule), Ok(stat)) = (task.schedstat(), task.stat()) {
                snapshot.threads.insert(task.tid, (stat.comm, schedule.sum_exec_runtime));
            }
            if let Ok(status) = task.status() {
                snapshot.voluntary += status.voluntary_ctxt_switches.unwrap_or(0);
                snapshot.involuntary += status.nonvoluntary_ctxt_switches.unwrap_or(0);
            }
        }
        Some(snapshot)
    }

    pub(super) fn involuntary_until(&self, later: &ProcessSnapshot) -> u64 {
        later.involuntary.saturating_sub(self.involuntary)
    }

    pub(super) fn until(&self, later: &ProcessSnapshot, name: &str) -> ProcessObservation {
        let used = |tid: &i32, after: u64| {
            after.saturating_sub(self.threads.get(tid).map_or(0, |(_, before)| *before))
        };
        let threads: Vec<(String, u64)> = (later.threads.iter())
            .map(|(tid, (name, after))| (name.clone(), used(tid, *after)))
            .collect();
        let user = later.user_ticks - self.user_ticks;
        let system = later.system_ticks - self.system_ticks;
        let enough = user + system >= TICKS_MIN;
        ProcessObservation {
            name: name.into(),
            cpu_ns: later.cpu_ns.saturating_sub(self.cpu_ns),
            user_share: enough.then(|| user as f64 / (user + system) as f64),
            voluntary_switches: later.voluntary.saturating_sub(self.voluntary),
            involuntary_switches: self.involuntary_until(later),
            page_faults: later.faults - self.faults,
            threads,
            ..ProcessObservation::default()
        }
    }
}

/// CPU time of all threads of a process, including ended ones, in nanoseconds. The id of the clock
/// is made as in glibc's clock_getcpuclockid(3).
pub(crate) fn cpu_ns(pid: u32) -> Option<u64> {
    let clock = (!(pid as libc::clockid_t)) << 3 | CPUCLOCK_SCHED;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec; an unknown clock returns an error.
    let status = unsafe { libc::clock_gettime(clock, &mut time) };
    (status == 0).then(|| time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// The memory of a process.
#[derive(Default)]
pub struct Memory {
    /// Resident bytes without the bench's own samples.
    pub rss_bytes: u64,
    pub pss_bytes: u64,
    /// Resident and proportional bytes of the bench's own samples. The driver touches all of their
    /// pages before it is ready.
    pub samples: (u64, u64),
    /// Mapped bytes of shared segments (`/dev/shm`, memfd, System V), by device and inode.
    pub shared: BTreeMap<(u64, u64), u64>,
}

impl Memory {
    /// `None` if the process has ended.
    pub fn of(pid: u32) -> Option<Self> {
        let maps =
            Process::new(i32::try_from(pid).ok()?).and_then(|process| process.smaps()).ok()?;
        let mut memory = Memory::default();
        for map in &maps {
            let bytes = |key: &str| map.extension.map.get(key).copied().unwrap_or(0);
            if is_sample_file(map) {
                memory.samples.0 += bytes("Rss");
                memory.samples.1 += bytes("Pss");
                continue;
            }
            memory.rss_bytes += bytes("Rss");
            memory.pss_bytes += bytes("Pss");
            if is_shared_segment(map) {
                let device = (map.dev.0 as u64) << 32 | map.dev.1 as u64;
                *memory.shared.entry((device, map.inode)).or_default() +=
                    map.address.1 - map.address.0;
            }
        }
        Some(memory)
    }
}

fn is_shared_segment(map: &MemoryMap) -> bool {
    let kept_in_memory = |path: &Path| {
        let path = path.to_string_lossy();
        path.starts_with("/dev/shm/") || path.starts_with("/memfd:") || path.starts_with("/SYSV")
    };
    map.perms.contains(MMPermissions::SHARED)
        && match &map.pathname {
            MMapPath::Path(path) => kept_in_memory(path),
            MMapPath::Vsys(_) => true,
            _ => false,
        }
}

fn is_sample_file(map: &MemoryMap) -> bool {
    matches!(&map.pathname, MMapPath::Path(path) if path.to_string_lossy().contains(SAMPLES_NAME))
}

/// Name of the memfd with the samples of a run.
pub const SAMPLES_NAME: &str = "myelin-bench-samples";
/// The kernel's number for a clock of the scheduler's CPU times.
const CPUCLOCK_SCHED: libc::clockid_t = 2;
/// With fewer ticks than this user and system time cannot be distinguished.
const TICKS_MIN: u64 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_of_this_process_is_seen_by_thread_and_in_sum() {
        let pid = std::process::id();
        let before = ProcessSnapshot::take(pid).unwrap();
        let mut sum = 0u64;
        for value in 0..20_000_000u64 {
            sum = std::hint::black_box(sum.wrapping_add(value));
        }
        let seen = before.until(&ProcessSnapshot::take(pid).unwrap(), "self");
        assert!(seen.cpu_ns > 1_000_000);
        let busiest = seen.threads.iter().map(|(_, used)| *used).max().unwrap();
        assert!(busiest > 1_000_000 && busiest <= seen.cpu_ns + 1_000_000);
    }

    #[test]
    fn an_ended_process_is_no_error() {
        assert!(ProcessSnapshot::take(u32::MAX).is_none());
        assert!(Memory::of(i32::MAX as u32).is_none());
    }

    #[test]
    fn memory_of_this_process_counts_its_shared_segment() {
        let name = c"myelin-observe-test";
        let file = rustix::fs::memfd_create(name, rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        rustix::fs::ftruncate(&file, 1 << 20).unwrap();
        // SAFETY: a fresh mapping of a file that nobody else has; unmapped below.
        let map = unsafe {
            use rustix::mm::{MapFlags, ProtFlags, mmap};
            let access = ProtFlags::READ | ProtFlags::WRITE;
            mmap(std::ptr::null_mut(), 1 << 20, access, MapFlags::SHARED, &file, 0).unwrap()
        };
        let memory = Memory::of(std::process::id()).unwrap();
        assert!(memory.shared.values().any(|bytes| *bytes == 1 << 20));
        assert!(memory.rss_bytes >= memory.pss_bytes && memory.pss_bytes > 0);
        // SAFETY: mapped above with this size; not used from here on.
        unsafe { rustix::mm::munmap(map, 1 << 20).unwrap() };
    }
}
