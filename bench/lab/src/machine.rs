//! The machine's fingerprint: every property of it that can change a latency.

use std::fmt;
use std::time::Duration;

use myelin_bench_kit::clock;
use procfs::Current as _;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cgroup::{CpuQuota, Throttling};
use crate::root::Root;
use crate::tuning::LatencyGuard;

/// What a results folder knows about its machine. Absent values could not be read.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
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
    /// How often a quota held up the runs; absent before the first run, and if it was not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttling: Option<Throttling>,
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
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct OtherHost {
    /// The role that runs on it: `ping` or `pong`.
    pub role: String,
    /// Its name in `--hosts`.
    pub name: String,
    /// Its fingerprint.
    pub host: Machine,
}

/// One idle state of a CPU.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
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
            cpu_quota: CpuQuota::read(root),
            throttling: None,
            busy_percent,
            loopback_packets_per_s,
            steal_percent: None,
            others: Vec::new(),
        }
    }

    /// A machine of which nothing is known but that name.
    pub fn unknown(name: &str) -> Self {
        let identity = Identity { cpu_model: name.into(), ..Identity::default() };
        Machine { identity, ..Machine::default() }
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
        let limited = self.cpu_quota.map(|quota| self.limited(quota));
        let alone = self.has_one_cpu().then(|| {
            "one CPU for all processes: a process that spins waits for the time slice of the other"
                .to_owned()
        });
        alone.into_iter().chain(limited).chain(busy).chain(loud).collect()
    }

    /// Whether figures from here say more about the machine than about the systems.
    pub fn is_unfit(&self) -> bool {
        self.has_one_cpu() || self.is_held_up() || self.busy_percent > BUSY_PERCENT_UNFIT
    }

    /// Whether a CPU quota held up the runs, or may have.
    fn is_held_up(&self) -> bool {
        self.cpu_quota.is_some() && self.throttling.is_none_or(|it| it.is_any())
    }

    fn limited(&self, CpuQuota { quota_us, period_us }: CpuQuota) -> String {
        let limit = format!("{quota_us} of each {period_us} µs");
        let remedy = "run without it (systemd's CPUQuota, docker's --cpus)";
        match self.throttling {
            None => format!(
                "a CPU quota gives {limit}: processes stand still for the rest, which is measured \
                 too; {remedy}"
            ),
            Some(it) if it.is_any() => {
                let Throttling { periods, throttled_periods, .. } = it;
                format!(
                    "a CPU quota ({limit}) held up the runs in {throttled_periods} of {periods} \
                     periods; {remedy}"
                )
            }
            Some(_) => format!("a CPU quota ({limit}) held up no run"),
        }
    }

    fn has_one_cpu(&self) -> bool {
        self.cpus_allowed == Some(1)
    }
}

/// The number of CPUs in the affinity of this process, which cpusets limit, too.
fn cpus_allowed() -> Option<u32> {
    rustix::thread::sched_getaffinity(None).ok().map(|cpus| cpus.count())
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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

    /// Whether figures of the two must not be pooled: other machines, or another kernel.
    pub fn differs(&self, other: &Identity) -> bool {
        self.kernel != other.kernel || self.is_another(other)
    }

    /// Whether they are two machines. Machines of the same make are distinguished if both have a
    /// machine id.
    pub fn is_another(&self, other: &Identity) -> bool {
        let both = self.machine.as_ref().zip(other.machine.as_ref());
        (&self.cpu_model, self.cpus) != (&other.cpu_model, other.cpus)
            || both.is_some_and(|(one, two)| one != two)
    }

    /// A name for files of this machine: 16 hexadecimal digits, the same with every kernel.
    pub fn key(&self) -> String {
        let make = || hash(format!("{}\n{}", self.cpu_model, self.cpus).bytes());
        self.machine.clone().unwrap_or_else(make)
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Identity { cpu_model, cpus, kernel, machine } = self;
        write!(formatter, "{cpu_model}, {cpus} CPUs, Linux {kernel}")?;
        machine.as_ref().map_or(Ok(()), |machine| write!(formatter, ", machine {machine}"))
    }
}

/// A hash of the 128 random bits with a key of ours. It is stable across
/// versions of this program, and too short to recover the id.
fn digest(id: &str) -> Option<String> {
    let id = id.trim();
    // Container images have an empty id, or a word that says that it is still to be made.
    let is_one = id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_one.then(|| hash(b"myelin bench".iter().copied().chain(id.bytes())))
}

/// FNV-1a (Fowler, Noll, Vo), as 16 hexadecimal digits.
fn hash(bytes: impl Iterator<Item = u8>) -> String {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME);
    format!("{:016x}", bytes.fold(FNV_BASIS, step))
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
    fn a_quota_that_held_nothing_up_does_not_spoil_figures() {
        let with = |throttling| Machine {
            cpu_quota: Some(CpuQuota { quota_us: 20_000, period_us: 100_000 }),
            throttling,
            ..Machine::default()
        };
        let before = with(None);
        assert!(before.is_unfit());
        assert!(before.disturbances()[0].contains("gives 20000 of each 100000 µs: processes"));
        let counted = |throttled_periods| {
            let throttled_us = throttled_periods * 80_000;
            with(Some(Throttling { periods: 78, throttled_periods, throttled_us }))
        };
        assert!(!counted(0).is_unfit());
        assert!(counted(0).disturbances()[0].ends_with(") held up no run"));
        assert!(counted(73).is_unfit());
        assert!(counted(73).disturbances()[0].contains("held up the runs in 73 of 78 periods"));
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
