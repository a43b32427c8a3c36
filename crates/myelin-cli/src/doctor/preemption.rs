//! The preemption model: how long a system call of one thread may keep another one waiting.

use std::collections::HashMap;
use std::io::Read;

use flate2::read::GzDecoder;
use myelin_bench_lab::machine::preemption as word_of_version;
use myelin_bench_lab::root::Root;

use super::finding::{Finding, State};
use super::host::{Host, Judged, Unknown};

/// `rt`, `full`, `lazy`, `voluntary` or `none`.
pub fn preemption(host: &Host) -> Judged {
    let model = Model::read(&host.root)?;
    let text = format!("{} ({})", model.name, model.told_by);
    let fine = ["rt", "full"].contains(&model.name.as_str());
    let finding = Finding::new(if fine { State::Ok } else { State::Costs }, text)
        .value("model", model.name.as_str())
        .value("switchable", model.switchable);
    if fine {
        return Ok(finding);
    }
    let when = match model.name.as_str() {
        "lazy" => {
            "an ordinary thread in the kernel is preempted only at the next tick, but at once for \
             a thread under SCHED_FIFO"
        }
        _ => {
            "a thread that is woken waits until a system call of another thread on its CPU ends \
              or yields"
        }
    };
    let finding = finding.expects(
        when,
        None,
        "no figure: it depends on the system calls of other threads (kernel/Kconfig.preempt)",
    );
    if !model.switchable {
        // A different kernel is more than a command.
        let finding = Finding { state: State::Note, ..finding };
        return Ok(finding.remark("needs a kernel built with PREEMPT_DYNAMIC or PREEMPT_RT"));
    }
    let switch = "/sys/kernel/debug/sched/preempt";
    let command = if host.has(switch) {
        format!("echo full | sudo tee {switch}")
    } else {
        format!("sudo sh -c 'mount -t debugfs none /sys/kernel/debug; echo full >{switch}'")
    };
    Ok(finding.mend(&command, None).remark("permanently: the kernel parameter preempt=full"))
}

struct Model {
    name: String,
    told_by: &'static str,
    /// Whether the running kernel can change it.
    switchable: bool,
}

impl Model {
    fn read(root: &Root) -> Result<Self, Unknown> {
        let model = |name: &str, told_by, switchable| {
            Ok(Model { name: name.to_owned(), told_by, switchable })
        };
        if root.line("/sys/kernel/realtime").is_some_and(|value| value == "1") {
            return model("rt", "/sys/kernel/realtime", false);
        }
        let switch = root.line("/sys/kernel/debug/sched/preempt");
        if let Some(chosen) = switch.as_deref().and_then(in_brackets) {
            return model(chosen, "/sys/kernel/debug/sched/preempt", true);
        }
        let version = root.text("/proc/version")?;
        match word_of_version(&version).as_deref() {
            Some("PREEMPT_RT") => return model("rt", "/proc/version", false),
            Some("PREEMPT") => return model("full", "/proc/version", false),
            Some("PREEMPT_LAZY") => return model("lazy", "/proc/version", false),
            Some("PREEMPT_DYNAMIC") => {}
            _ => {
                let config = KernelConfig::read(root)?;
                let name = if config.has("PREEMPT_VOLUNTARY") { "voluntary" } else { "none" };
                return model(name, "kernel configuration", false);
            }
        }
        let command_line = root.line("/proc/cmdline").unwrap_or_default();
        let mut wanted = command_line.split(' ').filter_map(|word| word.strip_prefix("preempt="));
        if let Some(chosen) = wanted.next_back() {
            return model(chosen, "/proc/cmdline; PREEMPT_DYNAMIC", true);
        }
        let config = KernelConfig::read(root)?;
        let name = [
            ("PREEMPT_NONE", "none"),
            ("PREEMPT_VOLUNTARY", "voluntary"),
            ("PREEMPT_LAZY", "lazy"),
            ("PREEMPT", "full"),
        ]
        .into_iter()
        .find(|(option, _)| config.has(option))
        .map(|(_, name)| name)
        .ok_or_else(|| Unknown("the kernel configuration names no preemption model".into()))?;
        model(name, "the kernel's default; PREEMPT_DYNAMIC", true)
    }
}

/// The options that a kernel was built with.
pub struct KernelConfig(HashMap<String, String>);

impl KernelConfig {
    /// From `/proc/config.gz`, or the file of this release in `/boot`.
    pub fn read(root: &Root) -> Result<Self, Unknown> {
        let release = root.line("/proc/sys/kernel/osrelease").unwrap_or_default();
        let text = match std::fs::File::open(root.path("/proc/config.gz")) {
            Ok(file) => {
                let mut text = String::new();
                let mut plain = GzDecoder::new(file).take(CONFIG_BYTES_MAX);
                let broken = |error| Unknown(format!("/proc/config.gz: {error}"));
                plain.read_to_string(&mut text).map_err(broken)?;
                text
            }
            Err(_) => root
                .text(&format!("/boot/config-{release}"))
                .map_err(|error| Unknown(format!("no /proc/config.gz, and {error}")))?,
        };
        let option = |line: &str| {
            let (name, value) = line.strip_prefix("CONFIG_")?.split_once('=')?;
            Some((name.to_owned(), value.to_owned()))
        };
        Ok(KernelConfig(text.lines().filter_map(option).collect()))
    }

    /// Whether an option, without its `CONFIG_`, is built in.
    pub fn has(&self, option: &str) -> bool {
        self.0.get(option).is_some_and(|value| value == "y")
    }
}

/// The chosen value of a list such as `none voluntary (full)` or `always [madvise] never`.
pub fn in_brackets(list: &str) -> Option<&str> {
    let begin = list.find(['(', '['])? + 1;
    let end = list[begin..].find([')', ']'])? + begin;
    Some(&list[begin..end])
}

/// Ten times the largest configuration of a distribution.
const CONFIG_BYTES_MAX: u64 = 4 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_in_brackets_is_read() {
        assert_eq!(in_brackets("none voluntary (full) lazy"), Some("full"));
        assert_eq!(in_brackets("always [madvise] never"), Some("madvise"));
        assert_eq!(in_brackets("always madvise"), None);
        assert_eq!(in_brackets(") ("), None);
    }
}
