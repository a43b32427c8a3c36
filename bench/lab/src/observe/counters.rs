//! Hardware counters for the threads of a process: cycles, instructions, cache misses.
//!
//! The kernel counts separately for each task, which adds some 0.3 to 0.5 µs to each context switch
//! of a counted task. So counters are not used for values that `/proc` also has: faults, switches,
//! migrations. Threads that start later are counted with the thread that started them.

use std::io;
use std::time::Duration;

use perf_event::events::{self, Event};
use perf_event::{Builder, Counter, ReadFormat};

use super::series::{Counted, Hardware};

pub(super) struct Counters {
    groups: Vec<CounterGroup>,
    counted: Counted,
}

impl Counters {
    /// Opens counters for the threads `tids` of one process. `None` if counting is impossible: on a
    /// virtual machine without counters, without permission, or with too many threads.
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
            // A thread may have ended in between.
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

    /// The counts since opening, including those of ended threads.
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

/// The counters of one thread and of the threads it starts, scheduled together: the first event,
/// and those of the others that the processor supports.
struct CounterGroup {
    leader: Counter,
    others: [Option<Counter>; EVENT_COUNT - 1],
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
        let others = others.map(|event| build(event).build_with_group(&mut leader).ok());
        Ok(CounterGroup { leader, others })
    }

    /// The counts, extrapolated if the counters were time-shared with others.
    fn read(&mut self) -> Option<[Option<u64>; EVENT_COUNT]> {
        let counts = self.leader.read_group().ok()?;
        let (enabled, running) = (counts.time_enabled()?, counts.time_running()?);
        let count =
            |counter: &Counter| Some(scaled(counts.get(counter)?.value(), enabled, running));
        let [one, other] = self.others.each_ref().map(|it| it.as_ref().and_then(count));
        Some([count(&self.leader), one, other])
    }
}

fn scaled(value: u64, enabled: Duration, running: Duration) -> u64 {
    match running {
        Duration::ZERO => 0,
        running if running >= enabled => value,
        running => (value as f64 * enabled.div_duration_f64(running)) as u64,
    }
}

fn is_gone(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ESRCH)
}

const EVENT_COUNT: usize = 3;
/// Each thread takes three descriptors.
const COUNTED_THREADS_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::super::sampler::thread_cpu_ns;
    use super::*;

    /// Kernel events replace those of the processor, which a virtual machine lacks.
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
        // The task clock, in ns, is in the place of the cycles; meanwhile this thread only waits.
        assert!(after.cycles - before.cycles >= BURNT_NS, "{before:?} {after:?}");
    }

    #[test]
    fn counters_shared_in_time_are_extrapolated() {
        let after =
            |running_ns| scaled(100, Duration::from_nanos(1000), Duration::from_nanos(running_ns));
        assert_eq!([250, 1000, 0].map(after), [400, 100, 0]);
    }

    #[test]
    fn an_ended_thread_is_left_out() {
        assert!(Counters::of(&[i32::MAX as u32], SOFTWARE).is_none());
    }
}
