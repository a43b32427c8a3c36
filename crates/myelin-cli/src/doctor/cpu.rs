//! Causes in the processor: frequency, hyperthreads, the clock, and time stolen by a hypervisor.

use super::finding::{Basis, Cost, Finding, State};
use super::host::{Host, Judged, Unknown};

/// The frequency governor of every CPU.
pub fn governor(host: &Host) -> Judged {
    let cpus = host.cpus()?;
    let folder = |cpu: usize| format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq");
    let governed: Vec<usize> = cpus.into_iter().filter(|cpu| host.has(&folder(*cpu))).collect();
    if governed.is_empty() && host.is_guest() {
        let text = "this guest has no frequency control: the hypervisor's host sets the frequency";
        return Ok(Finding::new(State::Note, text)
            .remark("set the governor `performance` on the host of this guest"));
    }
    let Some(&first) = governed.first() else {
        return Err(Unknown(
            "no cpufreq driver: the firmware sets the frequency, or it is fixed".into(),
        ));
    };
    let mut slow = Vec::new();
    for cpu in &governed {
        let governor = host.root.text(&format!("{}/scaling_governor", folder(*cpu)))?;
        let preference = format!("{}/energy_performance_preference", folder(*cpu));
        let prefers_speed = host.root.line(&preference).is_some_and(|what| what == "performance");
        if governor != "performance" && !prefers_speed {
            slow.push(governor);
        }
    }
    let values = |finding: Finding| {
        let all = finding.value("cpus", governed.len()).value("cpus_slow", slow.len());
        match slow.first() {
            Some(governor) => all.value("governor", governor.as_str()),
            None => all,
        }
    };
    let Some(name) = slow.first() else {
        let text = format!("performance on {} CPUs", governed.len());
        return Ok(values(Finding::new(State::Ok, text)));
    };
    let text = format!("`{name}` on {} of {} CPUs", slow.len(), governed.len());
    let least = host.root.number::<u64>(&format!("{}/scaling_min_freq", folder(first))).ok();
    let most = host.root.number::<u64>(&format!("{}/cpuinfo_max_freq", folder(first))).ok();
    let mut finding = values(Finding::new(State::Costs, text));
    let cost = match least.zip(most) {
        Some((least, most)) if least > 0 && most > 0 => {
            finding = finding.value("frequency_min_khz", least).value("frequency_max_khz", most);
            let ratio = most as f64 / least as f64;
            let (least, most) = (least / 1_000, most / 1_000);
            format!(
                "after a pause, code runs up to {ratio:.1} times slower, at {least} MHz instead of \
                 {most} MHz, until the governor raises the frequency"
            )
        }
        _ => "after a pause, code runs slower until the governor raises the frequency".to_owned(),
    };
    let files = "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor";
    Ok(finding.expects(cost, None, "cpufreq's own minimum and maximum of CPU 0").mend(
        &format!("echo performance | sudo tee {files}"),
        Some(at_boot("governor", files, "performance")),
    ))
}

/// The time that the hypervisor gave to others while something here wanted to run.
pub fn steal(host: &Host) -> Judged {
    let measured = host.measured.as_ref().ok_or_else(|| Unknown(NOT_MEASURED.into()))?;
    let percent = measured
        .steal_percent
        .ok_or_else(|| Unknown("/proc/stat has no steal time to read".into()))?;
    let text = format!("{percent:.1} % of all CPU time in {:.1} s", measured.took_s);
    if percent <= STEAL_PERCENT_MAX {
        return Ok(Finding::new(State::Ok, text).value("steal_percent", percent));
    }
    let what = format!("{percent:.1} % of CPU time went to other guests while work waited here");
    let mut finding = Finding::new(State::Costs, text).value("steal_percent", percent).remark(
        "no setting in this guest helps: give it dedicated CPUs on the hypervisor, or less work",
    );
    finding.cost = Some(Cost {
        basis: Basis::Measured,
        what,
        amount_us: None,
        amount_percent: Some(percent),
        source: None,
    });
    Ok(finding)
}

/// Whether two CPUs share a core.
pub fn smt(host: &Host) -> Judged {
    let active = host.root.number::<u8>("/sys/devices/system/cpu/smt/active")? == 1;
    let control = host.root.line("/sys/devices/system/cpu/smt/control").unwrap_or_default();
    if !active {
        let text = match control.as_str() {
            "" => "no two CPUs share a core".to_owned(),
            control => format!("no two CPUs share a core ({control})"),
        };
        return Ok(Finding::new(State::Ok, text).value("smt_active", false));
    }
    let siblings = host.root.text("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list")?;
    let text = format!("CPUs share cores: {siblings}, and so on");
    Ok(Finding::new(State::Note, text)
        .value("smt_active", true)
        .value("siblings", siblings)
        .expects(
            "a busy sibling takes part of the core: keep it idle, or pin two partners to different \
             cores",
            None,
            "not measured: it depends on what the sibling does",
        )
        .mend("echo off | sudo tee /sys/devices/system/cpu/smt/control", None)
        .remark("permanently: the kernel parameter nosmt"))
}

/// The clock source of the kernel.
pub fn clocksource(host: &Host) -> Judged {
    let folder = "/sys/devices/system/clocksource/clocksource0";
    let source = host.root.text(&format!("{folder}/current_clocksource"))?;
    let read_ns = host.measured.as_ref().map(|measured| measured.clock_read_ns);
    let slow = SLOW_CLOCKS.contains(&source.as_str());
    let text = match read_ns {
        Some(ns) => format!("{source}, {ns:.0} ns to read"),
        None => source.clone(),
    };
    let finding = Finding::new(if slow { State::Costs } else { State::Ok }, text)
        .value("clocksource", source.as_str());
    if !slow {
        return Ok(finding);
    }
    let finding = match read_ns {
        Some(ns) => {
            finding.measures(format!("each reading of the clock takes {ns:.0} ns"), ns / 1e3)
        }
        None => finding.expects(
            "each reading of the clock is a system call and an access to a device",
            None,
            "clock_gettime has no vDSO path for this source; not measured",
        ),
    };
    let others = host.root.line(&format!("{folder}/available_clocksource")).unwrap_or_default();
    let better = others.split(' ').find(|name| !SLOW_CLOCKS.contains(name) && !name.is_empty());
    Ok(match better {
        Some(better) => finding
            .mend(&format!("echo {better} | sudo tee {folder}/current_clocksource"), None)
            .remark(format!("permanently: the kernel parameter clocksource={better}")),
        None => finding.remark("this machine offers no other; `dmesg | grep -i tsc` may say why"),
    })
}

/// The command that makes systemd write `value` into `files` at every boot.
pub fn at_boot(name: &str, files: &str, value: &str) -> String {
    format!("echo 'w {files} - - - - {value}' | sudo tee /etc/tmpfiles.d/myelin-{name}.conf")
}

/// Why there is no measurement for a folder that represents a machine.
pub const NOT_MEASURED: &str = "not measured";
/// Three ticks of a second on two CPUs; a quiet neighbour takes less.
const STEAL_PERCENT_MAX: f64 = 1.0;
/// Clock sources that the vDSO cannot read.
const SLOW_CLOCKS: [&str; 4] = ["hpet", "acpi_pm", "jiffies", "refined-jiffies"];
