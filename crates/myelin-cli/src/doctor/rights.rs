//! Rights that this user lacks: to lock memory, to real-time priority, to keep cores awake.

use std::fs::File;
use std::io;

use super::finding::{Finding, State};
use super::host::{Host, Judged, Unknown, reason};

/// Whether memory may be locked against page faults.
pub fn memlock(host: &Host) -> Judged {
    let limit = soft_limit(host, "Max locked memory")?;
    let text = match limit {
        None => "no limit".to_owned(),
        Some(bytes) => format!("at most {bytes} bytes may be locked"),
    };
    let allowed = limit.is_none() || has_capability(host, CAP_IPC_LOCK);
    let text =
        if limit.is_some() && allowed { format!("{text}; CAP_IPC_LOCK lifts it") } else { text };
    let finding = Finding::new(if allowed { State::Ok } else { State::Costs }, text)
        .value("memlock_bytes", limit)
        .value("may_lock_memory", allowed);
    if allowed {
        return Ok(finding);
    }
    let what =
        "memory that was not locked and touched beforehand costs a page fault at its first use";
    let finding = match &host.measured {
        Some(measured) => {
            let us = measured.first_touch_us;
            finding.measures(format!("{what}: {us:.2} µs each (p50), and far more from disk"), us)
        }
        None => finding.expects(what, None, "mlock(2)"),
    };
    Ok(finding.mend(
        "sudo prlimit --memlock=unlimited --pid $$",
        Some(in_limits_d("memlock", "unlimited")),
    ))
}

/// Whether threads may have a real-time priority.
pub fn rtprio(host: &Host) -> Judged {
    let limit = soft_limit(host, "Max realtime priority")?;
    let capable = has_capability(host, CAP_SYS_NICE);
    let granted = capable || limit.is_none_or(|limit| limit >= PRIORITY);
    let refused = host.measured.as_ref().and_then(|measured| measured.fifo_refused.clone());
    let highest = limit.map_or("unlimited".to_owned(), |limit| limit.to_string());
    let text = match (capable, &refused) {
        (_, Some(why)) => format!("SCHED_FIFO {PRIORITY} was refused: {why}"),
        (true, _) => format!("limit {highest}; CAP_SYS_NICE lifts it"),
        (false, _) => format!("limit {highest}"),
    };
    let allowed = granted && refused.is_none();
    let finding = Finding::new(if allowed { State::Ok } else { State::Costs }, text)
        .value("rtprio_max", limit)
        .value("may_use_fifo", allowed);
    if allowed {
        return Ok(finding);
    }
    let what = "without SCHED_FIFO a thread waits while others run on its CPU";
    let finding = match &host.measured {
        Some(measured) => {
            let (us, time_s) = (measured.gap.longest_us, measured.gap.spun_s);
            let what = format!(
                "{what}: a thread that spun for {time_s:.1} s was interrupted for {us:.0} µs at \
                 most"
            );
            finding.measures(what, us)
        }
        None => finding.expects(what, None, "sched(7)"),
    };
    if granted {
        let text = "refused although the limit or the capability allows it: the cause is a cgroup \
                    without cpu.rt_runtime_us (RT_GROUP_SCHED) or a container's filter; run \
                    outside of it";
        return Ok(finding.remark(text));
    }
    Ok(finding.mend("sudo prlimit --rtprio=99 --pid $$", Some(in_limits_d("rtprio", "99"))))
}

/// Whether this user may keep idle cores awake.
pub fn cpu_dma_latency(host: &Host) -> Judged {
    let path = "/dev/cpu_dma_latency";
    // Opening the file without writing makes no request to the kernel.
    let error = match File::options().write(true).open(host.root.path(path)) {
        Ok(_) => {
            let text = "this user may hold it to keep idle cores awake";
            return Ok(Finding::new(State::Ok, text).value("writable", true));
        }
        Err(error) => error,
    };
    let state = match error.kind() {
        io::ErrorKind::NotFound => State::Note,
        _ => State::Costs,
    };
    let finding = Finding::new(state, format!("cannot be written: {}", reason(&error)))
        .value("writable", false)
        .expects(
            "programs of this user cannot keep idle cores awake while they need it; see idle_states",
            None,
            "kernel: power/pm_qos_interface",
        );
    Ok(match state {
        State::Note => finding
            .remark("in a container: docker run --device /dev/cpu_dma_latency; else CONFIG_PM"),
        _ => finding
            .mend(
                &format!("sudo chmod 666 {path}"),
                Some(
                    "echo 'KERNEL==\"cpu_dma_latency\", MODE=\"0666\"' \
                     | sudo tee /etc/udev/rules.d/60-myelin.rules"
                        .to_owned(),
                ),
            )
            .remark("any user may then make idle cores take more power"),
    })
}

/// A soft limit of this process; `None` is unlimited.
fn soft_limit(host: &Host, name: &str) -> Result<Option<u64>, Unknown> {
    let path = "/proc/self/limits";
    let limits = host.root.text(path)?;
    let rest = limits.lines().find_map(|line| line.strip_prefix(name));
    let word = rest.and_then(|rest| rest.split_whitespace().next());
    match word {
        Some("unlimited") => Ok(None),
        word => word
            .and_then(|word| word.parse().ok())
            .map(Some)
            .ok_or_else(|| Unknown(format!("{path} has no readable line \"{name}\""))),
    }
}

/// See capabilities(7); false if it cannot be read.
fn has_capability(host: &Host, bit: u32) -> bool {
    let status = host.root.text("/proc/self/status").unwrap_or_default();
    let set = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let set = set.and_then(|set| u64::from_str_radix(set.trim(), 16).ok());
    set.is_some_and(|set| set >> bit & 1 == 1)
}

/// The command that grants this user a limit at every login.
fn in_limits_d(item: &str, value: &str) -> String {
    format!(
        "echo \"$USER - {item} {value}\" | sudo tee /etc/security/limits.d/60-myelin-{item}.conf"
    )
}

const CAP_IPC_LOCK: u32 = 14;
const CAP_SYS_NICE: u32 = 23;
/// The priority of `tuned` runs; see `myelin bench`.
pub const PRIORITY: u64 = 80;
