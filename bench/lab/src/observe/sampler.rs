//! The thread of the lab that observes a run: wakes up ten times a second, looks, sleeps.
//!
//! It runs under SCHED_IDLE, so whoever is observed takes the CPU from it at once when he wakes up;
//! and it stays off the CPUs that real-time threads are pinned to, if there are others. What it costs
//! is its own CPU time, which it measures around each costly reading and over all, and keeps below
//! [`COST_PERCENT_MAX`].

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use myelin_bench_kit::clock;
use rustix::thread::{CpuSet, Pid};

use super::budget;
use super::procfile::{Page, ProcFile, numbers, rest_of_line};
use super::series::{Loopback, Moment, ObservedProcess, Series};
use super::watched::Watched;

/// A run under observation. Dropped without [`Sampler::stop`], it ends by itself.
pub struct Sampler {
    stop: Sender<()>,
    thread: Option<JoinHandle<Observer>>,
}

impl Sampler {
    /// Begins to observe `processes`, given by name and id, and a network interface. When it returns,
    /// the first reading has been done: what follows counts.
    pub fn start(processes: Vec<(String, u32)>, interface: &str) -> Self {
        let interface = format!("{interface}:");
        let (stop, stopped) = mpsc::channel();
        let (begun, beginning) = mpsc::channel();
        let observe = move || {
            let mut observer = Observer::begin(&processes, interface);
            let _ = begun.send(());
            observer.watch(&stopped);
            observer
        };
        let thread = std::thread::Builder::new().name("observer".into()).spawn(observe).ok();
        // Fails at once if there is no thread.
        let _ = beginning.recv();
        Sampler { stop, thread }
    }

    /// Looks a last time at everything, and yields what was seen. Without moments if there is no
    /// memory for a thread.
    pub fn stop(self) -> Series {
        drop(self.stop);
        // The last look is the caller's: nobody waits for a thread that comes last.
        let observer = self.thread.and_then(|thread| thread.join().ok());
        observer.map(Observer::end).unwrap_or_default()
    }
}

/// What is costly to read, and read as often as the budget allows.
#[derive(Clone, Copy)]
enum What {
    Memory(usize),
    Switches(usize),
    Hardware(usize),
    Loopback,
    Steal,
}

struct Costly {
    what: What,
    /// Of the last reading.
    cost_ns: u64,
    /// When that was, in ticks.
    tick: u64,
}

struct Observer {
    page: Page,
    processes: Vec<Watched>,
    /// How many more threads there is room for.
    room: usize,
    costly: Vec<Costly>,
    loopback: Option<ProcFile>,
    /// As the file has it: the name and a colon.
    interface: String,
    last_loopback: [u64; 2],
    stat: Option<ProcFile>,
    last_steal: u64,
    /// CPU time of the observing thread when it began to watch.
    cpu_begin_ns: u64,
    /// Of the last look at all that is read at every tick.
    base_cost_ns: u64,
    series: Series,
}

impl Observer {
    fn begin(processes: &[(String, u32)], interface: String) -> Self {
        let mut page = [0; size_of::<Page>()];
        let mut room = THREADS_MAX;
        let watched: Vec<Watched> = (0..)
            .zip(processes)
            .map(|(index, (_, pid))| Watched::begin(*pid, index, &mut room, &mut page))
            .collect();
        stay_off_real_time_cpus(watched.iter().flat_map(Watched::tids));
        let of_process = |index| [What::Memory(index), What::Switches(index)];
        let counted = |index: &usize| watched[*index].counted().is_some();
        let costly = (0..watched.len())
            .flat_map(of_process)
            .chain((0..watched.len()).filter(counted).map(What::Hardware))
            .chain([What::Loopback, What::Steal])
            .map(|what| Costly { what, cost_ns: 0, tick: 0 })
            .collect();
        let ping = processes.iter().find(|(name, _)| name == "ping").or(processes.first());
        let observed = |(name, _): &(String, u32)| ObservedProcess {
            name: name.clone(),
            ..ObservedProcess::default()
        };
        let mut this = Observer {
            page,
            room,
            costly,
            // Of the network namespace that ping is in, which need not be the lab's.
            loopback: ping.and_then(|(_, pid)| ProcFile::open(&format!("/proc/{pid}/net/dev"))),
            interface,
            last_loopback: [0; 2],
            stat: ProcFile::open("/proc/stat"),
            last_steal: 0,
            cpu_begin_ns: 0,
            base_cost_ns: 0,
            series: Series {
                processes: processes.iter().map(observed).collect(),
                cpus: cpus(),
                ticks_per_s: rustix::param::clock_ticks_per_second(),
                counted: watched.iter().find_map(Watched::counted),
                ..Series::default()
            },
            processes: watched,
        };
        // Sets what later readings are compared with, and tells what they cost.
        let mut first = Moment::default();
        for index in 0..this.costly.len() {
            this.read_costly(index, 0, &mut first);
        }
        come_last();
        this.cpu_begin_ns = thread_cpu_ns();
        this.series.begin_ns = clock::monotonic_ns();
        this
    }

    /// Until it is told to stop, or nobody is left to tell it.
    fn watch(&mut self, stopped: &Receiver<()>) {
        let mut tick = 1;
        // Until the last look: the wake-up by which the run's end is told comes behind it.
        let mut spent_ns = 0;
        loop {
            let due_ns = self.series.begin_ns + tick * TICK_NS;
            let left = Duration::from_nanos(due_ns.saturating_sub(clock::monotonic_ns()));
            if stopped.recv_timeout(left) != Err(RecvTimeoutError::Timeout) {
                let wall_ns = clock::monotonic_ns() - self.series.begin_ns;
                self.series.cost_percent = 100.0 * spent_ns as f64 / wall_ns.max(1) as f64;
                return;
            }
            self.look(tick);
            spent_ns = self.spent_ns();
            // What was missed is not made up for.
            let passed = (clock::monotonic_ns() - self.series.begin_ns) / TICK_NS;
            tick = passed.max(tick) + 1;
        }
    }

    fn look(&mut self, tick: u64) {
        if self.spent_ns() + self.base_cost_ns <= limit_ns(tick) {
            self.read(tick, false);
        }
    }

    /// The last look, which is not part of the run any more, nor of its cost.
    fn end(mut self) -> Series {
        self.read(0, true);
        for (seen, process) in self.series.processes.iter_mut().zip(&mut self.processes) {
            seen.threads = process.take_names();
        }
        self.series
    }

    fn read(&mut self, tick: u64, is_last: bool) {
        let begin_ns = thread_cpu_ns();
        let at_ns = clock::monotonic_ns() - self.series.begin_ns;
        let mut moment = Moment { at_ns, ..Moment::default() };
        let rescan = is_last || tick.is_multiple_of(TICKS_PER_RESCAN);
        let (page, room) = (&mut self.page, &mut self.room);
        let living = self.processes.iter_mut().filter(|process| !process.has_ended());
        moment.processes.extend(living.filter_map(|process| process.read(page, room, rescan)));
        let left_out = self.processes.iter().map(Watched::left_out).sum();
        self.series.threads_left_out = self.series.threads_left_out.max(left_out);
        self.base_cost_ns = thread_cpu_ns() - begin_ns + WAKE_COST_NS;
        let costs = self.costly.iter().map(|costly| costly.cost_ns);
        let share = budget::share_ns(costs, AIM_NS.saturating_sub(self.base_cost_ns));
        for index in 0..self.costly.len() {
            let Costly { cost_ns, tick: last, .. } = self.costly[index];
            let is_due = tick - last.min(tick) >= budget::period_ticks(cost_ns, share);
            if is_last || (is_due && self.spent_ns() + cost_ns <= limit_ns(tick)) {
                self.read_costly(index, tick, &mut moment);
            }
        }
        self.series.moments.push(moment);
    }

    fn read_costly(&mut self, index: usize, tick: u64, moment: &mut Moment) {
        let begin_ns = thread_cpu_ns();
        let what = self.costly[index].what;
        match what {
            What::Loopback => moment.loopback = self.read_loopback(),
            What::Steal => moment.steal_ticks = self.read_steal(),
            What::Memory(process) | What::Switches(process) | What::Hardware(process) => {
                let watched = &mut self.processes[process];
                let seen =
                    moment.processes.iter_mut().find(|seen| seen.process as usize == process);
                // Of the first reading, before all moments, nothing is kept.
                let mut unseen = Default::default();
                let seen = seen.unwrap_or(&mut unseen);
                match what {
                    _ if watched.has_ended() => {}
                    What::Memory(_) => seen.memory = watched.memory(&mut self.page),
                    What::Switches(_) => seen.switches = watched.switches(&mut self.page),
                    _ => seen.hardware = watched.hardware(),
                }
            }
        }
        self.costly[index].cost_ns = thread_cpu_ns() - begin_ns;
        self.costly[index].tick = tick;
    }

    fn read_loopback(&mut self) -> Option<Loopback> {
        let text = self.loopback.as_ref()?.read(&mut self.page)?;
        let now: [u64; 2] = numbers(rest_of_line(text, self.interface.as_bytes())?)?;
        let last = std::mem::replace(&mut self.last_loopback, now);
        let [bytes, packets] = [0, 1].map(|at| now[at].saturating_sub(last[at]));
        Some(Loopback { bytes, packets })
    }

    fn read_steal(&mut self) -> Option<u64> {
        let text = self.stat.as_ref()?.read(&mut self.page)?;
        // user, nice, system, idle, iowait, irq, softirq, steal
        let [.., now] = numbers::<8>(rest_of_line(text, b"cpu ")?)?;
        let last = std::mem::replace(&mut self.last_steal, now);
        Some(now.saturating_sub(last))
    }

    fn spent_ns(&self) -> u64 {
        thread_cpu_ns() - self.cpu_begin_ns
    }
}

/// What may be spent until a tick.
fn limit_ns(tick: u64) -> u64 {
    tick * (TICK_NS as f64 * COST_PERCENT_MAX / 100.0) as u64
}

pub(crate) fn thread_cpu_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn cpus() -> u32 {
    // SAFETY: a call without pointers.
    let online = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    u32::try_from(online).unwrap_or(1).max(1)
}

/// Has this thread run only where nobody else wants to. There is no way back without privileges.
pub(crate) fn come_last() {
    let parameter = libc::sched_param { sched_priority: 0 };
    // SAFETY: the parameter is valid for the call. If it fails, the thread stays an ordinary one.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &parameter) };
}

/// Leaves the CPUs alone to which one of `threads` is pinned under SCHED_FIFO, unless no other is
/// left.
pub(crate) fn stay_off_real_time_cpus(threads: impl Iterator<Item = u32>) {
    let Ok(mut own) = rustix::thread::sched_getaffinity(None) else {
        return;
    };
    for tid in threads {
        let task = i32::try_from(tid).ok().and_then(Pid::from_raw);
        // SAFETY: a call without pointers; an unknown thread is an error.
        let policy = unsafe { libc::sched_getscheduler(tid as libc::pid_t) };
        if policy & !libc::SCHED_RESET_ON_FORK != libc::SCHED_FIFO || task.is_none() {
            continue;
        }
        if let Ok(theirs) = rustix::thread::sched_getaffinity(task)
            && theirs.count() == 1
        {
            (0..CpuSet::MAX_CPU).filter(|cpu| theirs.is_set(*cpu)).for_each(|cpu| own.unset(cpu));
        }
    }
    if own.count() > 0 {
        let _ = rustix::thread::sched_setaffinity(None, &own);
    }
}

pub const TICK_NS: u64 = 100_000_000;
/// What observing may cost, in per cent of a core. With the live view (`progress::viewer`) it stays
/// below 0.5, also where a reading of a short run turns out costlier than the one before.
pub const COST_PERCENT_MAX: f64 = 0.32;
/// What a tick is planned to cost: less than the most, as costs vary.
const AIM_NS: u64 = TICK_NS / 10_000 * 28;
/// Of a wake-up, until the first reading and after the last.
const WAKE_COST_NS: u64 = 10_000;
const TICKS_PER_RESCAN: u64 = 10;
/// Each thread takes two descriptors, of the 1024 that a process has as a rule.
const THREADS_MAX: usize = 200;

#[cfg(test)]
mod tests;
