//! The preparation for low latency before a run: CPUs, scheduling class, idle states; and whether
//! this process has permission for it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::Command;

use myelin_bench_kit::protocol::{Role, Wait};
use serde::{Deserialize, Serialize};

use crate::input_error::InputError;
use crate::root::Root;
use crate::scenario::{Tuning, TuningChoice};

/// The CPUs of `tuned`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cpus {
    /// CPU of ping.
    pub ping: usize,
    /// CPU of pong.
    pub pong: usize,
}

impl Cpus {
    /// The user's choice, completed from the topology: two cores of one package, never two threads
    /// of one core. The highest numbers come first, because interrupts tend to use the lowest.
    pub fn choose(choice: &TuningChoice) -> Result<Self, InputError> {
        let allowed = allowed_cpus();
        for (key, cpu) in [("ping_cpu", choice.ping_cpu), ("pong_cpu", choice.pong_cpu)] {
            if let Some(cpu) = cpu.filter(|cpu| !allowed.contains(cpu)) {
                let text = format!("tuning.{key}: this process may not use CPU {cpu}");
                return Err(InputError::new(text).remedy(format!("it may use {allowed:?}")));
            }
        }
        let all: Vec<(usize, (i64, i64))> =
            allowed.iter().map(|cpu| (*cpu, core_of(*cpu))).collect();
        let partner = |taken: usize| {
            let elsewhere = |(_, core): &&(usize, (i64, i64))| *core != core_of(taken);
            all.iter().rev().find(elsewhere).map(|(cpu, _)| *cpu)
        };
        let pair = match (choice.ping_cpu, choice.pong_cpu) {
            (Some(ping), Some(pong)) => Some((ping, pong)),
            (Some(ping), None) => partner(ping).map(|pong| (ping, pong)),
            (None, Some(pong)) => partner(pong).map(|ping| (ping, pong)),
            (None, None) => pick(&all),
        };
        let one_core = || InputError::new("`tuned` needs two cores, but this host has one");
        pair.map(|(ping, pong)| Cpus { ping, pong }).ok_or_else(one_core)
    }

    /// The CPU of a role; daemons are not pinned.
    pub fn of(self, role: Role) -> Option<usize> {
        match role {
            Role::Ping => Some(self.ping),
            Role::Pong => Some(self.pong),
            Role::Daemon | Role::Clock => None,
        }
    }
}

/// The settings of one process at its start.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Settings {
    /// CPU to pin the process to.
    pub cpu: Option<usize>,
    /// Priority of SCHED_FIFO.
    pub priority: Option<u32>,
    /// Whether to set a timer slack of 1 ns instead of 50 µs.
    pub exact_timers: bool,
}

impl Settings {
    /// The settings of `tuning` for a role of a system that waits by `wait`.
    pub fn of(tuning: Tuning, role: Role, wait: Wait, cpus: Option<Cpus>, priority: u32) -> Self {
        let cpu = cpus.and_then(|cpus| cpus.of(role));
        if tuning == Tuning::Default || cpu.is_none() {
            return Settings::default();
        }
        let priority = (fifo_remark(wait).is_none()).then_some(priority);
        Settings { cpu, priority, exact_timers: true }
    }

    /// Applies the settings between fork and exec, so that every thread of the driver inherits
    /// them, including the middleware's.
    pub fn apply_to(self, command: &mut Command) {
        // SAFETY: only async-signal-safe calls (raw system calls) between fork and exec.
        unsafe {
            command.pre_exec(move || self.apply());
        }
    }

    fn apply(self) -> std::io::Result<()> {
        if let Some(cpu) = self.cpu {
            pin_this_thread(cpu)?;
        }
        if let Some(priority) = self.priority {
            set_fifo(priority)?;
        }
        if self.exact_timers {
            // SAFETY: prctl takes only integers here.
            check(unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) })?;
        }
        Ok(())
    }
}

/// Why SCHED_FIFO is left out for a system with this `wait`; `None` if it is not left out.
pub fn fifo_remark(wait: Wait) -> Option<String> {
    let runtime = Root::machine().number("/proc/sys/kernel/sched_rt_runtime_us").unwrap_or(-1);
    (wait == Wait::Poll && runtime >= 0).then(|| {
        format!(
            "tuned without SCHED_FIFO: under it, the kernel stops a thread that spins without end \
             after {runtime} µs of each second (kernel.sched_rt_runtime_us; -1 lifts the limit)"
        )
    })
}

/// Why a tuning is not available here, with the missing capability; `None` if it is.
pub fn unavailable(tuning: Tuning, choice: &TuningChoice) -> Option<String> {
    if tuning == Tuning::Default {
        return None;
    }
    if let Err(error) = Cpus::choose(choice) {
        return Some(error.to_string());
    }
    let priority = choice.priority;
    // In a separate thread, so that the lab itself keeps its scheduling class.
    let fifo = std::thread::spawn(move || set_fifo(priority)).join();
    if !matches!(fifo, Ok(Ok(()))) {
        return Some(format!(
            "SCHED_FIFO {priority} is not permitted: needs CAP_SYS_NICE (run as root) or \
             `ulimit -r {priority}`"
        ));
    }
    if !may_lock_memory() {
        return Some(
            "memory cannot be locked: needs CAP_IPC_LOCK (run as root) or `ulimit -l unlimited`"
                .into(),
        );
    }
    if tuning == Tuning::Awake && !has_idle_driver() {
        return Some(
            "this kernel has no cpuidle driver, so nothing here keeps a core from sleeping: \
                     the hypervisor or the firmware decides"
                .into(),
        );
    }
    match LatencyGuard::hold() {
        Err(error) if tuning == Tuning::Awake => Some(format!(
            "/dev/cpu_dma_latency cannot be held at 0 ({error}): needs write permission on it \
             (run as root) and a kernel with CONFIG_PM"
        )),
        _ => None,
    }
}

/// Keeps idle cores out of sleep states while it exists. The kernel ends that when the process
/// ends, for any reason. See Documentation/power/pm_qos_interface.rst.
pub struct LatencyGuard {
    _file: File,
}

impl LatencyGuard {
    /// Requests a wake-up latency of 0 µs.
    pub fn hold() -> std::io::Result<Self> {
        let mut file = File::options().write(true).open("/dev/cpu_dma_latency")?;
        file.write_all(&0i32.to_ne_bytes())?;
        Ok(LatencyGuard { _file: file })
    }
}

/// Two CPUs on different cores, in one package if possible.
fn pick(cpus: &[(usize, (i64, i64))]) -> Option<(usize, usize)> {
    let mut cores: BTreeMap<(i64, i64), usize> = BTreeMap::new();
    for (cpu, core) in cpus {
        cores.entry(*core).or_insert(*cpu);
    }
    let mut packages: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
    for ((package, _), cpu) in cores {
        packages.entry(package).or_default().push(cpu);
    }
    let mut chosen = packages.values().max_by_key(|cpus| cpus.len())?.clone();
    chosen.sort_unstable();
    match chosen[..] {
        [.., other, one] => Some((one, other)),
        _ => None,
    }
}

fn has_idle_driver() -> bool {
    let driver = Root::machine().text("/sys/devices/system/cpu/cpuidle/current_driver");
    driver.is_ok_and(|driver| driver != "none")
}

fn core_of(cpu: usize) -> (i64, i64) {
    let folder = format!("/sys/devices/system/cpu/cpu{cpu}/topology");
    let read = |what| Root::machine().number(&format!("{folder}/{what}"));
    (read("physical_package_id").unwrap_or(0), read("core_id").unwrap_or(cpu as i64))
}

fn allowed_cpus() -> Vec<usize> {
    let set = rustix::thread::sched_getaffinity(None).unwrap_or_else(|_| {
        let mut first = rustix::thread::CpuSet::new();
        first.set(0);
        first
    });
    (0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect()
}

/// Pins the calling thread to a CPU.
pub fn pin_this_thread(cpu: usize) -> std::io::Result<()> {
    let mut set = rustix::thread::CpuSet::new();
    set.set(cpu);
    Ok(rustix::thread::sched_setaffinity(None, &set)?)
}

/// Gives the calling thread SCHED_FIFO.
pub fn set_fifo(priority: u32) -> std::io::Result<()> {
    let parameter = libc::sched_param { sched_priority: priority as libc::c_int };
    // SAFETY: `parameter` is valid; 0 is the calling thread.
    check(unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameter) })
}

fn may_lock_memory() -> bool {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Memlock);
    limit.current.is_none() || has_capability(CAP_IPC_LOCK)
}

fn has_capability(bit: u32) -> bool {
    let status = procfs::process::Process::myself().and_then(|process| process.status());
    status.is_ok_and(|status| status.capeff >> bit & 1 == 1)
}

/// The error of a failed system call.
pub(crate) fn check(status: libc::c_int) -> std::io::Result<()> {
    if status < 0 { Err(std::io::Error::last_os_error()) } else { Ok(()) }
}

/// See capabilities(7).
const CAP_IPC_LOCK: u32 = 14;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_cores_of_one_package_are_picked() {
        let flat = [(0, (0, 0)), (1, (0, 1))];
        assert_eq!(pick(&flat), Some((1, 0)));
        let siblings = [(0, (0, 0)), (1, (0, 1)), (2, (0, 0)), (3, (0, 1))];
        assert_eq!(pick(&siblings), Some((1, 0)));
        let packages = [(0, (0, 0)), (1, (1, 0)), (2, (1, 1))];
        assert_eq!(pick(&packages), Some((2, 1)));
        assert_eq!(pick(&[(0, (0, 0)), (1, (0, 0))]), None);
        assert_eq!(pick(&[]), None);
    }

    #[test]
    fn default_tuning_does_not_change_the_process() {
        let cpus = Some(Cpus { ping: 1, pong: 0 });
        let settings = Settings::of(Tuning::Default, Role::Ping, Wait::Block, cpus, 80);
        assert!(settings.cpu.is_none() && settings.priority.is_none() && !settings.exact_timers);
        let settings = Settings::of(Tuning::Tuned, Role::Ping, Wait::Block, cpus, 80);
        assert_eq!((settings.cpu, settings.priority), (Some(1), Some(80)));
        let daemon = Settings::of(Tuning::Tuned, Role::Daemon, Wait::Block, cpus, 80);
        assert!(daemon.cpu.is_none() && daemon.priority.is_none());
    }
}
