//! What the processor counts for the threads of a process: cycles, instructions, cache misses.
//!
//! The kernel keeps the counts apart for each task: each context switch of a task that is counted
//! costs it some 0.3 to 0.5 µs more. So nothing is counted here that `/proc` tells as well: faults,
//! switches, migrations. Threads begun later are counted with the one that began them.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd};

use perf_event::events::{self, Event};
use perf_event::{Builder, Counter, ReadFormat};

use super::series::{Counted, Hardware};

pub(super) struct Counters {
    groups: Vec<CounterGroup>,
    counted: Counted,
}

impl Counters {
    /// Counts for the threads `tids` of one process. `None` where there is nothing to count with: a
    /// virtual machine without counters, no right to, or more threads than there is room for.
    pub(super) fn open(tids: &[u32]) -> Option<Self> {
        const EVENTS: [events::Hardware; EVENT_COUNT] = [
            events::Hardware::CPU_CYCLES,
            events::Hardware::INSTRUCTIONS,
            events::Hardware::CACHE_MISSES,
        ];
        Self::of(tids, EVENTS)
    }

    fn of<E: Event + Copy>(tids: &[u32], events: [E; EVENT_COUNT]) -> Option<Self> {
        let open = |counted| -> io::Result<Vec<CounterGroup>> {
            let opened = tids.iter().map(|tid| CounterGroup::open(*tid, events, counted));
            // A thread may have ended since.
            opened.filter(|group| !group.as_ref().is_err_and(is_gone)).collect()
        };
        let groups = |counted| open(counted).ok().filter(|groups| !groups.is_empty());
        if tids.len() > COUNTED_THREADS_MAX {
            return None;
        }
        [Counted::UserAndKernel, Counted::User]
            .into_iter()
            .find_map(|counted| Some(Counters { groups: groups(counted)?, counted }))
    }

    pub(super) fn counted(&self) -> Counted {
        self.counted
    }

    /// The counts since they were opened, threads that have ended included.
    pub(super) fn read(&mut self) -> Option<Hardware> {
        let mut sum = [Some(0); EVENT_COUNT];
        for group in &mut self.groups {
            let counts = group.read()?;
            for (sum, count) in sum.iter_mut().zip(counts) {
                *sum = sum.zip(count).map(|(sum, count)| sum + count);
            }
        }
        let [cycles, instructions, cache_misses] = sum;
        Some(Hardware { cycles: cycles?, instructions, cache_misses })
    }
}

/// The counters of one thread and of those it begins, scheduled together.
struct CounterGroup {
    leader: File,
    /// Open for as long as they are to count.
    _members: Vec<Counter>,
    /// Which events they are: of the first, the leader is one.
    has: [bool; EVENT_COUNT],
}

impl CounterGroup {
    fn open<E: Event + Copy>(
        tid: u32,
        events: [E; EVENT_COUNT],
        counted: Counted,
    ) -> io::Result<Self> {
        let build = |event: E| {
            let mut builder = Builder::new(event);
            let times = ReadFormat::TOTAL_TIME_ENABLED | ReadFormat::TOTAL_TIME_RUNNING;
            builder.observe_pid(tid as libc::pid_t).any_cpu().enabled(true);
            builder.inherit(true).inherit_thread(true).read_format(ReadFormat::GROUP | times);
            builder.exclude_kernel(counted == Counted::User);
            builder
        };
        let [first, others @ ..] = events;
        let mut leader = build(first).build()?;
        let mut has = [true; EVENT_COUNT];
        let mut members = Vec::new();
        for (event, has) in others.into_iter().zip(&mut has[1..]) {
            let member = build(event).build_with_group(&mut leader);
            *has = member.is_ok();
            members.extend(member.ok());
        }
        // SAFETY: the leader gives up its descriptor, which nobody else owns.
        let leader = unsafe { OwnedFd::from_raw_fd(leader.into_raw_fd()) };
        Ok(CounterGroup { leader: leader.into(), _members: members, has })
    }

    /// The counts, extrapolated if the counters had to be shared with others in time.
    fn read(&mut self) -> Option<[Option<u64>; EVENT_COUNT]> {
        // perf_event_open(2): number, ns enabled, ns running, then value and id of each.
        let mut bytes = [0; 8 * (3 + 2 * EVENT_COUNT)];
        let length = self.leader.read(&mut bytes).ok()?;
        let mut words = bytes[..length]
            .chunks_exact(8)
            .map(|word| u64::from_ne_bytes(word.try_into().expect("eight bytes")));
        let (_, enabled, running) = (words.next()?, words.next()?, words.next()?);
        let mut counts = [None; EVENT_COUNT];
        for (count, _) in counts.iter_mut().zip(self.has).filter(|(_, has)| *has) {
            let (value, _id) = (words.next()?, words.next()?);
            *count = Some(scaled(value, enabled, running));
        }
        Some(counts)
    }
}

fn scaled(value: u64, enabled_ns: u64, running_ns: u64) -> u64 {
    match running_ns {
        0 => 0,
        running if running >= enabled_ns => value,
        running => (value as f64 * enabled_ns as f64 / running as f64) as u64,
    }
}

fn is_gone(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ESRCH)
}

const EVENT_COUNT: usize = 3;
/// Each takes three descriptors.
const COUNTED_THREADS_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::super::sampler::thread_cpu_ns;
    use super::*;

    /// Events of the kernel stand in for those of the processor, which a virtual machine lacks.
    const SOFTWARE: [events::Software; EVENT_COUNT] = [
        events::Software::TASK_CLOCK,
        events::Software::PAGE_FAULTS,
        events::Software::CONTEXT_SWITCHES,
    ];

    const BURNT_NS: u64 = 30_000_000;

    #[test]
    fn threads_begun_later_are_counted_too() {
        let this_thread = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        let Some(mut counters) = Counters::of(&[this_thread], SOFTWARE) else {
            eprintln!("not tested: this user may not count (kernel.perf_event_paranoid)");
            return;
        };
        let before = counters.read().unwrap();
        std::thread::spawn(|| while thread_cpu_ns() < BURNT_NS {}).join().unwrap();
        let after = counters.read().unwrap();
        // The task clock, in ns, stands where cycles do; this thread only waits meanwhile.
        assert!(after.cycles - before.cycles >= BURNT_NS, "{before:?} {after:?}");
    }

    #[test]
    fn counters_shared_in_time_are_extrapolated() {
        assert_eq!(scaled(100, 1000, 250), 400);
        assert_eq!(scaled(100, 1000, 1000), 100);
        assert_eq!(scaled(100, 1000, 0), 0);
    }

    #[test]
    fn a_thread_that_is_gone_is_left_out() {
        assert!(Counters::of(&[i32::MAX as u32], SOFTWARE).is_none());
    }
}
