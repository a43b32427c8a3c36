//! The lab's thread that observes a run: it wakes up ten times a second, reads, and sleeps.
//!
//! The thread runs under SCHED_IDLE, so an observed process takes the CPU from it as soon as it
//! wakes up. It also avoids CPUs to which real-time threads are pinned, if there are others. Its
//! cost is its own CPU time. It measures that around each expensive reading and in total, and keeps
//! it below [`COST_PERCENT_MAX`].

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use myelin_bench_kit::clock;
use rustix::thread::{CpuSet, Pid};

use super::budget;
use super::procfile::{Page, ProcFile, numbers, rest_of_line};
use super::series::{Loopback, Moment, ObservedProcess, Series};
use super::watched::Watched;

/// A run under observation. If dropped without [`Sampler::stop`], it ends by itself.
pub struct Sampler {
    stop: Sender<()>,
    thread: Option<JoinHandle<Observer>>,
}

impl Sampler {
    /// Begins to observe `processes`, given by name and id, and a network interface. The first
    /// reading is complete when it returns; counts start from there.
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
        // Fails at once if the thread could not be started.
        let _ = beginning.recv();
        Sampler { stop, thread }
    }

    /// Reads everything a last time, and returns all observations. Without memory for a thread
    /// there are no moments.
    pub fn stop(self) -> Series {
        drop(self.stop);
        // The caller makes the last reading, so that it need not wait for an idle-class thread.
        let observer = self.thread.and_then(|thread| thread.join().ok());
        observer.map(Observer::end).unwrap_or_default()
    }
}

/// The expensive readings, made as often as the budget allows.
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
    /// Cost of the last reading.
    cost_ns: u64,
    /// Tick of the last reading.
    tick: u64,
}

struct Observer {
    page: Page,
    processes: Vec<Watched>,
    /// How many more threads can be observed.
    room: usize,
    costly: Vec<Costly>,
    loopback: Option<ProcFile>,
    /// The start of its line in the file: the name and a colon.
    interface: String,
    last_loopback: [u64; 2],
    stat: Option<ProcFile>,
    last_steal: u64,
    /// CPU time of the observing thread when it began.
    cpu_begin_ns: u64,
    /// Cost of the last reading of all values that are read at every tick.
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
            // The network namespace of ping, which need not be the lab's.
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
        // Sets the base for later readings, and measures their costs.
        let mut first = Moment::default();
        for index in 0..this.costly.len() {
            this.read_costly(index, 0, &mut first);
        }
        come_last();
        this.cpu_begin_ns = thread_cpu_ns();
        this.series.begin_ns = clock::monotonic_ns();
        this
    }

    /// Observes until it is stopped or the receiver is gone.
    fn watch(&mut self, stopped: &Receiver<()>) {
        let mut tick = 1;
        // Up to the last reading: waking up for the end of the run comes later.
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
            // Missed ticks are not made up for.
            let passed = (clock::monotonic_ns() - self.series.begin_ns) / TICK_NS;
            tick = passed.max(tick) + 1;
        }
    }

    fn look(&mut self, tick: u64) {
        if self.spent_ns() + self.base_cost_ns <= limit_ns(tick) {
            self.read(tick, false);
        }
    }

    /// The last reading, which is neither part of the run nor of its cost.
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
                // The first reading is before all moments and is not stored.
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

/// Budget up to a tick.
fn limit_ns(tick: u64) -> u64 {
    tick * (TICK_NS as f64 * COST_PERCENT_MAX / 100.0) as u64
}

pub(crate) fn thread_cpu_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn cpus() -> u32 {
    // SAFETY: the call takes no pointers.
    let online = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    u32::try_from(online).unwrap_or(1).max(1)
}

/// Lowers this thread's priority so that it runs only on idle CPUs. Undoing that needs privileges.
pub(crate) fn come_last() {
    let parameter = libc::sched_param { sched_priority: 0 };
    // SAFETY: the parameter is valid for the call. If it fails, the thread stays an ordinary one.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &parameter) };
}

/// Moves this thread away from CPUs to which one of `threads` is pinned under SCHED_FIFO, unless no
/// other CPU is left.
pub(crate) fn stay_off_real_time_cpus(threads: impl Iterator<Item = u32>) {
    let Ok(mut own) = rustix::thread::sched_getaffinity(None) else {
        return;
    };
    for tid in threads {
        let task = i32::try_from(tid).ok().and_then(Pid::from_raw);
        // SAFETY: the call takes no pointers; an unknown thread returns an error.
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
/// CPU budget of observing, in per cent of a core. Together with the live view (`progress::viewer`)
/// it stays below 0.5, even if a reading in a short run costs more than the one before.
pub const COST_PERCENT_MAX: f64 = 0.32;
/// Planned cost of a tick: below the limit, as costs vary.
const AIM_NS: u64 = TICK_NS / 10_000 * 28;
/// Cost of a wake-up, up to the first reading and after the last.
const WAKE_COST_NS: u64 = 10_000;
const TICKS_PER_RESCAN: u64 = 10;
/// Each thread takes two descriptors, and a process usually has 1024.
const THREADS_MAX: usize = 200;

#[cfg(test)]
mod tests;
