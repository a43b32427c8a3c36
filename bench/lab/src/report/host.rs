//! The machine in words.

use super::format;
use crate::machine::Machine;

/// The machine in one line.
pub(super) fn line(host: &Machine) -> String {
    let place = host
        .hypervisor
        .as_ref()
        .map_or_else(|| "bare metal".to_owned(), |hypervisor| format!("virtual ({hypervisor})"));
    let parts = [
        host.cpu_model.clone(),
        format!("{} CPUs", host.cpus),
        place,
        format!("{} of memory", format::bytes(host.memory_bytes)),
        host.os.clone(),
        format!("Linux {}", host.kernel),
    ];
    let said: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    said.join(" · ")
}

/// As [`line`], in fewer words: processor, CPUs, distribution, kernel.
pub(super) fn brief(host: &Machine) -> String {
    let kind = if host.hypervisor.is_some() { "virtual CPUs" } else { "CPUs" };
    let processors = format!("{}, {} {kind}", host.cpu_model, host.cpus);
    // Without the name that a distribution gives its number.
    let os = host.os.split(" (").next().unwrap_or_default().to_owned();
    let kernel = host.kernel.splitn(3, '.').take(2).collect::<Vec<_>>().join(".");
    let parts = [processors, os, format!("Linux {kernel}")];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}

/// Everything known of the machine: what, value.
pub(crate) fn rows(host: &Machine) -> Vec<(&'static str, String)> {
    let text = |value: &Option<String>| value.clone().unwrap_or_else(unknown);
    let state =
        |state: &crate::machine::IdleState| format!("{} {} µs", state.name, state.latency_us);
    let idle_states = host.idle_states.iter().map(state).collect::<Vec<_>>().join(", ");
    let bytes = |value: Option<u64>| value.map(format::bytes);
    let mut rows = vec![
        ("processor", host.cpu_model.clone()),
        ("CPUs online", host.cpus.to_string()),
        ("architecture", host.architecture.clone()),
        ("hypervisor", host.hypervisor.clone().unwrap_or_else(|| "none".to_owned())),
        ("memory", format::bytes(host.memory_bytes)),
        ("distribution", host.os.clone()),
        ("kernel", host.kernel.clone()),
        ("preemption", text(&host.preemption)),
        ("kernel command line", host.kernel_command_line.clone()),
        ("clock source", host.clocksource.clone()),
        ("clock reading", format!("{:.1} ns", host.clock_read_ns)),
        ("smallest clock step", format!("{} ns", host.clock_step_ns)),
        ("frequency governor", text(&host.governor)),
        ("idle driver", text(&host.idle_driver)),
        ("idle governor", text(&host.idle_governor)),
        ("idle states", if idle_states.is_empty() { unknown() } else { idle_states }),
        ("idle cores can be kept awake", yes(host.can_hold_awake)),
        (
            "real-time throttling",
            match host.rt_runtime_us {
                Some(-1) => "none".to_owned(),
                Some(us) => format!("{us} µs of each period"),
                None => unknown(),
            },
        ),
        ("lockable memory", bytes(host.memlock_bytes).unwrap_or_else(|| "unlimited".to_owned())),
        ("largest socket buffer", bytes(host.socket_buffer_max_bytes).unwrap_or_else(unknown)),
        ("transparent huge pages", text(&host.huge_pages)),
        ("CPUs busy before the start", format!("{:.0} %", host.busy_percent)),
        (
            "loopback traffic of others",
            format!("{:.0} packets a second", host.loopback_packets_per_s),
        ),
        (
            "steal while measuring",
            host.steal_percent.map_or_else(unknown, |percent| format!("{percent:.2} %")),
        ),
    ];
    rows.extend(host.others.iter().map(|other| {
        let whose = if other.role == "ping" { "ping's host" } else { "pong's host" };
        (whose, format!("{}: {}", other.name, line(&other.host)))
    }));
    rows
}

fn yes(value: bool) -> String {
    if value { "yes" } else { "no" }.to_owned()
}

fn unknown() -> String {
    "unknown".to_owned()
}
