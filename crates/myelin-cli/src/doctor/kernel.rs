//! Causes in the kernel's settings: limits of CPU time, throttling of real-time threads, limits of socket buffers.

use myelin_bench_lab::cgroup::CpuQuota;

use super::finding::{Finding, State};
use super::host::{Host, Judged};
use super::preemption::KernelConfig;

/// Whether a cgroup limits the CPU time of this process.
pub fn cpu_quota(host: &Host) -> Judged {
    let Some(CpuQuota { quota_us, period_us }) = CpuQuota::read(&host.root) else {
        return Ok(Finding::new(State::Ok, "no cgroup of this process limits its CPU time"));
    };
    Ok(Finding::new(State::Costs, format!("{quota_us} µs of each {period_us} µs"))
        .value("quota_us", quota_us)
        .value("period_us", period_us)
        .expects(
            "processes that have used it up, on all CPUs together, stand still until the period ends",
            Some(period_us as f64),
            "the quota's period (kernel: scheduler/sched-bwc)",
        )
        .remark(
            "start without the quota: systemd's CPUQuota, docker's --cpus, Kubernetes's limits.cpu",
        ))
}

/// Whether a thread under SCHED_FIFO or SCHED_RR that does not sleep is stopped for some time.
pub fn rt_throttling(host: &Host) -> Judged {
    let runtime_us: i64 = host.root.number("/proc/sys/kernel/sched_rt_runtime_us")?;
    let period_us: i64 = host.root.number("/proc/sys/kernel/sched_rt_period_us")?;
    let values = |finding: Finding| {
        finding.value("sched_rt_runtime_us", runtime_us).value("sched_rt_period_us", period_us)
    };
    if runtime_us < 0 || runtime_us >= period_us {
        return Ok(values(Finding::new(State::Ok, "real-time threads are not throttled")));
    }
    let pause_us = period_us - runtime_us;
    let text = format!("real-time threads get {runtime_us} µs of each {period_us} µs");
    if has_fair_server(host) {
        let text = format!(
            "{text}; this kernel throttles by its fair server, only while ordinary threads wait"
        );
        return Ok(values(Finding::new(State::Note, text)).expects(
            "a thread that spins under SCHED_FIFO shares its CPU with ordinary threads that are \
             ready there: give it its own CPU",
            None,
            "Linux 6.12 and newer without RT_GROUP_SCHED",
        ));
    }
    Ok(values(Finding::new(State::Costs, text))
        .expects(
            format!(
                "a thread that spins under SCHED_FIFO or SCHED_RR is stopped for {pause_us} µs of \
                 each {period_us} µs; a thread that sleeps between samples is not affected"
            ),
            Some(pause_us as f64),
            "the limits themselves (kernel: scheduler/sched-rt-group)",
        )
        .mend(
            "sudo sysctl -w kernel.sched_rt_runtime_us=-1",
            Some(in_sysctl_d("rt", &["kernel.sched_rt_runtime_us=-1"])),
        )
        .remark("a real-time thread that never sleeps then keeps its CPU for ever"))
}

/// The limits of the socket buffers that a DDS may request.
pub fn socket_buffers(host: &Host) -> Judged {
    let receive: u64 = host.root.number("/proc/sys/net/core/rmem_max")?;
    let send: u64 = host.root.number("/proc/sys/net/core/wmem_max")?;
    let text = format!("rmem_max {}, wmem_max {}", size(receive), size(send));
    let state = if receive < DDS_RECEIVE_BYTES || send < DDS_SEND_BYTES {
        State::Costs
    } else if receive < LARGE_SAMPLE_BYTES {
        State::Note
    } else {
        State::Ok
    };
    let finding =
        Finding::new(state, text).value("rmem_max_bytes", receive).value("wmem_max_bytes", send);
    if state == State::Ok {
        return Ok(finding);
    }
    let largest = size(receive);
    Ok(finding
        .expects(
            format!(
                "samples above {largest} sent by UDP overflow the receiver's buffer: samples are \
                 lost, or sent again with a delay; shared memory is not affected"
            ),
            None,
            "ROS 2 guide \"DDS tuning\"; CycloneDDS asks for 1 MiB unless configured",
        )
        .mend(
            &format!("sudo sysctl -w {} {}", BUFFER_SETTINGS[0], BUFFER_SETTINGS[1]),
            Some(in_sysctl_d("net", &BUFFER_SETTINGS)),
        )
        .remark("limits, not allocations: the DDS must ask for more in its own configuration too"))
}

/// From Linux 6.12 on the fair server replaces throttling, except for groups.
fn has_fair_server(host: &Host) -> bool {
    let release = host.root.line("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split(['.', '-']).map(|part| part.parse::<u32>().unwrap_or(0));
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    let groups = KernelConfig::read(&host.root).map(|config| config.has("RT_GROUP_SCHED"));
    version >= (6, 12) && matches!(groups, Ok(false))
}

/// The command that makes settings of sysctl survive a reboot.
fn in_sysctl_d(name: &str, settings: &[&str]) -> String {
    let lines = settings.join("\\n");
    format!("printf '{lines}\\n' | sudo tee /etc/sysctl.d/60-myelin-{name}.conf")
}

/// A number of bytes for people.
pub fn size(bytes: u64) -> String {
    match bytes {
        0..1_048_576 => format!("{} KiB", bytes >> 10),
        1_048_576..1_073_741_824 => format!("{} MiB", bytes >> 20),
        _ => format!("{:.1} GiB", bytes as f64 / (1u64 << 30) as f64),
    }
}

/// The largest possible value, recommended by the ROS 2 guide for CycloneDDS.
const BUFFER_SETTINGS: [&str; 2] = ["net.core.rmem_max=2147483647", "net.core.wmem_max=2147483647"];
/// CycloneDDS's default request.
const DDS_RECEIVE_BYTES: u64 = 1 << 20;
/// CycloneDDS's default request.
const DDS_SEND_BYTES: u64 = 64 << 10;
/// A sample of 10 MiB with some room: cameras and lidars send such samples.
const LARGE_SAMPLE_BYTES: u64 = 16 << 20;
