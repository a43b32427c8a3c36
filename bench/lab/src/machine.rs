//! The machine's fingerprint: every property of it that can change a latency.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use myelin_bench_kit::clock;
use procfs::Current as _;
use serde::{Deserialize, Serialize};

use crate::root::Root;
use crate::tuning::LatencyGuard;

/// What a results folder knows about its machine. Absent values could not be read.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Machine {
    /// Identifies the machine.
    #[serde(flatten)]
    pub identity: Identity,
    /// Machine architecture, for instance `x86_64`.
    pub architecture: String,
    /// Hypervisor flag or DMI vendor; null on bare metal.
    pub hypervisor: Option<String>,
    /// Main memory.
    pub memory_bytes: u64,
    /// Pretty name of the distribution.
    pub os: String,
    /// Preemption model of the kernel, if it says so.
    pub preemption: Option<String>,
    /// `/proc/cmdline`, without device names and addresses.
    pub kernel_command_line: String,
    /// The kernel's clock source, for instance `tsc`.
    pub clocksource: String,
    /// Duration of reading CLOCK_MONOTONIC.
    pub clock_read_ns: f64,
    /// Smallest observed step of CLOCK_MONOTONIC.
    pub clock_step_ns: u64,
    /// Frequency governor of CPU 0.
    pub governor: Option<String>,
    /// cpuidle driver, for instance `intel_idle` or `haltpoll`.
    pub idle_driver: Option<String>,
    /// cpuidle governor.
    pub idle_governor: Option<String>,
    /// Idle states of CPU 0 in order: name and exit latency.
    pub idle_states: Vec<IdleState>,
    /// Whether `/dev/cpu_dma_latency` can be opened, as the `awake` tuning needs.
    pub can_hold_awake: bool,
    /// `kernel.sched_rt_runtime_us`; -1 is no throttling.
    pub rt_runtime_us: Option<i64>,
    /// `ulimit -l`; null is unlimited.
    pub memlock_bytes: Option<u64>,
    /// `net.core.rmem_max`.
    pub socket_buffer_max_bytes: Option<u64>,
    /// Transparent huge pages setting.
    pub huge_pages: Option<String>,
    /// CPUs that this process may use; absent in older folders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus_allowed: Option<u32>,
    /// The least CPU time of a cgroup of this process, if there is a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_quota: Option<CpuQuota>,
    /// Utilisation of all CPUs before the session, in per cent.
    #[serde(default)]
    pub busy_percent: f64,
    /// Loopback packets per second of other programs, before the session.
    #[serde(default)]
    pub loopback_packets_per_s: f64,
    /// Steal time while measuring, in per cent of all CPUs; absent before the first run.
    pub steal_percent: Option<f64>,
    /// Other machines on which runs across hosts were measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<OtherHost>,
}

/// A host of runs across hosts that is not the lab's machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OtherHost {
    /// The role that runs on it: `ping` or `pong`.
    pub role: String,
    /// Its name in `--hosts`.
    pub name: String,
    /// Its fingerprint.
    pub host: Machine,
}

/// A limit of CPU time: processes that have used it up stand still until the period ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuQuota {
    /// The time on all CPUs together.
    pub quota_us: u64,
    /// Of each period.
    pub period_us: u64,
}

/// One idle state of a CPU.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct IdleState {
    /// Name given by the driver.
    pub name: String,
    /// Exit latency stated by the driver.
    pub latency_us: u64,
}

impl Machine {
    /// Reads the properties of this machine, and watches other activity on it for [`AMBIENT_TIME`].
    pub fn read() -> Self {
        let root = &Root::machine();
        let line = |path: &str| root.line(path);
        let (busy_percent, loopback_packets_per_s) = ambient();
        let clock = clock::calibrate();
        let memlock = rustix::process::getrlimit(rustix::process::Resource::Memlock);
        let uname = rustix::system::uname();
        let text = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
        Machine {
            identity: Identity::read(root),
            architecture: text(uname.machine()),
            hypervisor: hypervisor(root),
            memory_bytes: procfs::Meminfo::current().map_or(0, |memory| memory.mem_total),
            os: os_name(root),
            preemption: preemption(&text(uname.version())),
            kernel_command_line: kernel_command_line(root),
            clocksource: line("/sys/devices/system/clocksource/clocksource0/current_clocksource")
                .unwrap_or_default(),
            clock_read_ns: clock.read_ns,
            clock_step_ns: clock.step_ns,
            governor: line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            idle_driver: line("/sys/devices/system/cpu/cpuidle/current_driver"),
            idle_governor: line("/sys/devices/system/cpu/cpuidle/current_governor_ro"),
            idle_states: idle_states(root, 0),
            can_hold_awake: LatencyGuard::hold().is_ok(),
            rt_runtime_us: root.number("/proc/sys/kernel/sched_rt_runtime_us").ok(),
            memlock_bytes: memlock.current,
            socket_buffer_max_bytes: root.number("/proc/sys/net/core/rmem_max").ok(),
            huge_pages: line("/sys/kernel/mm/transparent_hugepage/enabled"),
            cpus_allowed: cpus_allowed(),
            cpu_quota: cpu_quota(root),
            busy_percent,
            loopback_packets_per_s,
            steal_percent: None,
            others: Vec::new(),
        }
    }

    /// Remarks for the report on other activity of this machine.
    pub fn disturbances(&self) -> Vec<String> {
        let busy = (self.busy_percent > BUSY_PERCENT_MAX).then(|| {
            let percent = self.busy_percent;
            format!(
                "the CPUs were {percent:.0} % busy before the start: other work affects the figures"
            )
        });
        let loud = (self.loopback_packets_per_s > BACKGROUND_PACKETS_PER_S).then(|| {
            let packets = self.loopback_packets_per_s;
            format!("other programs send {packets:.0} packets a second over the loopback interface")
        });
        let limited = self.cpu_quota.map(|CpuQuota { quota_us, period_us }| {
            format!(
                "a CPU quota gives {quota_us} of each {period_us} µs: processes stand still for the rest, \
                 which is measured too; run without it (systemd's CPUQuota, docker's --cpus)"
            )
        });
        let alone = self.has_one_cpu().then(|| {
            "one CPU for all processes: a process that spins waits for the time slice of the other"
                .to_owned()
        });
        alone.into_iter().chain(limited).chain(busy).chain(loud).collect()
    }

    /// Whether figures from here say more about the machine than about the systems.
    pub fn is_unfit(&self) -> bool {
        self.has_one_cpu() || self.cpu_quota.is_some() || self.busy_percent > BUSY_PERCENT_UNFIT
    }

    fn has_one_cpu(&self) -> bool {
        self.cpus_allowed == Some(1)
    }
}

/// The number of CPUs in the affinity of this process, which cpusets limit, too.
fn cpus_allowed() -> Option<u32> {
    rustix::thread::sched_getaffinity(None).ok().map(|cpus| cpus.count())
}

/// The tightest quota of the cgroups of this process, versions 1 and 2.
pub fn cpu_quota(root: &Root) -> Option<CpuQuota> {
    let of_folder = |folder: &str| {
        let line = |name: &str| root.line(&format!("{folder}/{name}"));
        let both = line("cpu.max")
            .or_else(|| Some(line("cpu.cfs_quota_us")? + " " + &line("cpu.cfs_period_us")?))?;
        let (quota, period) = both.split_once(' ')?;
        // Without a limit, the quota is `max` or -1.
        let (quota_us, period_us) = (quota.parse().ok()?, period.parse().ok()?);
        (period_us > 0).then_some(CpuQuota { quota_us, period_us })
    };
    let groups = root.line("/proc/self/cgroup")?;
    let quotas = groups.lines().flat_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, group) = (fields.next().unwrap_or(""), fields.next().unwrap_or(""));
        let hierarchy = match controllers {
            "" => Some("/sys/fs/cgroup".to_owned()),
            all => all.split(',').any(|it| it == "cpu").then(|| format!("/sys/fs/cgroup/{all}")),
        };
        let groups = Path::new(group).ancestors().map(|it| it.display().to_string());
        let folders = hierarchy.into_iter().flat_map(move |hierarchy| {
            groups.clone().map(move |group| hierarchy.clone() + group.trim_end_matches('/'))
        });
        folders.filter_map(|folder| of_folder(&folder)).collect::<Vec<_>>()
    });
    quotas.min_by(|a, b| (a.quota_us * b.period_us).cmp(&(b.quota_us * a.period_us)))
}

/// CPU use in per cent, and loopback packets per second.
fn ambient() -> (f64, f64) {
    let look = || {
        let stats =
            <procfs::KernelStats as procfs::CurrentSI>::current().ok().map(|stats| stats.total);
        let idle = stats.as_ref().map_or(0, |cpu| cpu.idle + cpu.iowait.unwrap_or(0));
        let used = stats.map_or(0, |cpu| cpu.user + cpu.nice + cpu.system);
        let loopback = procfs::net::dev_status().ok().and_then(|mut all| all.remove("lo"));
        (used as f64, idle as f64, loopback.map_or(0, |lo| lo.recv_packets) as f64)
    };
    let before = look();
    std::thread::sleep(AMBIENT_TIME);
    let after = look();
    let (used, idle, packets) = (after.0 - before.0, after.1 - before.1, after.2 - before.2);
    (100.0 * used / (used + idle).max(1.0), packets / AMBIENT_TIME.as_secs_f64())
}

/// The DMI vendor of a virtual machine, as seen from its processor's flags; `None` on bare metal.
pub fn hypervisor(root: &Root) -> Option<String> {
    let processors = root.line("/proc/cpuinfo")?;
    let flags = processors.lines().find(|line| line.starts_with("flags"))?;
    let guest = flags.split_whitespace().any(|flag| flag == "hypervisor");
    let vendor = || root.line("/sys/class/dmi/id/sys_vendor");
    guest.then(|| vendor().unwrap_or_else(|| "unnamed hypervisor".into()))
}

/// The idle states of a CPU in order of depth; none if it has no cpuidle driver.
pub fn idle_states(root: &Root, cpu: usize) -> Vec<IdleState> {
    (0..IDLE_STATES_MAX)
        .map_while(|state| {
            let folder = format!("/sys/devices/system/cpu/cpu{cpu}/cpuidle/state{state}");
            let read = |what: &str| root.line(&format!("{folder}/{what}"));
            let latency_us = read("latency")?.parse().ok()?;
            Some(IdleState { name: read("name")?, latency_us })
        })
        .collect()
}

/// The preemption model in the output of `uname -v`: `#1 SMP PREEMPT_DYNAMIC …`.
pub fn preemption(version: &str) -> Option<String> {
    let word = version.split(' ').find(|word| word.starts_with("PREEMPT"))?;
    Some(word.to_string())
}

fn os_name(root: &Root) -> String {
    let release = root.line("/etc/os-release").unwrap_or_default();
    let pretty = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    pretty.unwrap_or("Linux").trim_matches('"').into()
}

/// The command line without arguments for init and without addresses and devices.
fn kernel_command_line(root: &Root) -> String {
    let whole = root.line("/proc/cmdline").unwrap_or_default();
    let kernel = whole.split(" -- ").next().unwrap_or("");
    let telling = |word: &&str| {
        !["root=", "rdinit=", "init=", "ip=", "console=", "BOOT_IMAGE=", "UUID"]
            .iter()
            .any(|private| word.contains(private))
    };
    kernel.split(' ').filter(telling).collect::<Vec<_>>().join(" ")
}

/// Identity of the machine of a run; it is in each line of `runs.jsonl`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// `model name` of the first processor.
    pub cpu_model: String,
    /// Online CPUs.
    pub cpus: u32,
    /// `uname -r`.
    pub kernel: String,
    /// A 64-bit hash of `/etc/machine-id`, as 16 hexadecimal digits, so that the id itself stays
    /// private; absent if there is no id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
}

impl Identity {
    /// Identity of this machine.
    pub fn read(root: &Root) -> Self {
        let cpu_info = procfs::CpuInfo::current().ok();
        let model = cpu_info.as_ref().and_then(|info| info.get_info(0)?.get("model name").copied());
        Identity {
            cpu_model: model.unwrap_or_default().into(),
            cpus: cpu_info.as_ref().map_or(1, |info| info.num_cores() as u32),
            kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
            machine: root.line("/etc/machine-id").and_then(|id| digest(&id)),
        }
    }

    /// Whether figures of the two must not be pooled: other machines, or another kernel. Machines
    /// of the same make are distinguished if both have a machine id.
    pub fn differs(&self, other: &Identity) -> bool {
        let both = self.machine.as_ref().zip(other.machine.as_ref());
        (&self.cpu_model, self.cpus, &self.kernel) != (&other.cpu_model, other.cpus, &other.kernel)
            || both.is_some_and(|(one, two)| one != two)
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Identity { cpu_model, cpus, kernel, machine } = self;
        write!(formatter, "{cpu_model}, {cpus} CPUs, Linux {kernel}")?;
        machine.as_ref().map_or(Ok(()), |machine| write!(formatter, ", machine {machine}"))
    }
}

/// FNV-1a (Fowler, Noll, Vo) of the 128 random bits with a key of ours. It is stable across
/// versions of this program, and too short to recover the id.
fn digest(id: &str) -> Option<String> {
    let id = id.trim();
    // Container images have an empty id, or a word that says that it is still to be made.
    let is_one = id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    let hash = b"myelin bench"
        .iter()
        .copied()
        .chain(id.bytes())
        .fold(FNV_BASIS, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME));
    is_one.then(|| format!("{hash:016x}"))
}

/// How long the machine is watched before a session.
pub const AMBIENT_TIME: Duration = Duration::from_millis(500);
/// Other programs may always send this many loopback packets per second: discovery, heartbeats.
pub const BACKGROUND_PACKETS_PER_S: f64 = 500.0;
const BUSY_PERCENT_MAX: f64 = 10.0;
const BUSY_PERCENT_UNFIT: f64 = 50.0;
/// The kernel's CPUIDLE_STATE_MAX.
const IDLE_STATES_MAX: u32 = 10;
const FNV_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_a_fingerprint() {
        let host = Machine::read();
        assert!(host.identity.cpus >= 1 && host.memory_bytes > 0);
        assert!(host.clock_read_ns > 0.0);
        assert!(
            !host.identity.kernel.is_empty() && !host.os.is_empty() && !host.clocksource.is_empty()
        );
    }

    #[test]
    fn the_tightest_cpu_quota_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let found = || cpu_quota(&Root::at(folder.path())).map(|it| (it.quota_us, it.period_us));
        assert_eq!(found(), None);
        write("proc/self/cgroup", "2:cpu,cpuacct:/robot/arm\n1:memory:/\n0::/robot\n");
        write("sys/fs/cgroup/robot/cpu.max", "max 100000\n");
        write("sys/fs/cgroup/cpu,cpuacct/robot/arm/cpu.cfs_quota_us", "-1\n");
        write("sys/fs/cgroup/cpu,cpuacct/robot/arm/cpu.cfs_period_us", "100000\n");
        assert_eq!(found(), None);
        write("sys/fs/cgroup/cpu.max", "150000 100000\n");
        assert_eq!(found(), Some((150_000, 100_000)));
        write("sys/fs/cgroup/cpu,cpuacct/robot/cpu.cfs_quota_us", "20000\n");
        write("sys/fs/cgroup/cpu,cpuacct/robot/cpu.cfs_period_us", "100000\n");
        assert_eq!(found(), Some((20_000, 100_000)));
        let machine =
            Machine { cpu_quota: cpu_quota(&Root::at(folder.path())), ..Machine::default() };
        let said = machine.disturbances();
        assert!(said[0].contains("gives 20000 of each 100000 µs"), "{said:?}");
    }

    #[test]
    fn the_preemption_model_is_found() {
        let model = preemption("#1 SMP PREEMPT_DYNAMIC Thu Jan 1");
        assert_eq!(model.as_deref(), Some("PREEMPT_DYNAMIC"));
        assert_eq!(preemption("#1 SMP Thu Jan 1"), None);
    }

    #[test]
    fn machine_ids_are_distinguished_but_not_stored() {
        let id = "0123456789abcdef0123456789abcdef";
        let digest_of = |id: &str| digest(id).unwrap();
        assert_ne!(digest_of(id), digest_of("0123456789abcdef0123456789abcdee"));
        assert_eq!(digest_of(id), digest_of(&format!("{id}\n")));
        assert!(!id.contains(&digest_of(id)));
        assert_eq!(digest("uninitialized"), None);
    }

    #[test]
    fn a_machine_without_an_id_is_identified_by_its_hardware() {
        let machine = |id: Option<&str>, kernel: &str| Identity {
            cpu_model: "a".into(),
            cpus: 2,
            kernel: kernel.into(),
            machine: id.map(str::to_owned),
        };
        assert!(!machine(None, "6.1").differs(&machine(Some("1"), "6.1")));
        assert!(machine(Some("2"), "6.1").differs(&machine(Some("1"), "6.1")));
        assert!(machine(None, "6.2").differs(&machine(None, "6.1")));
    }
}
