//! What the kernel does meanwhile: a trace of ftrace with scheduler and interrupts, on the clock of the
//! samples. It has an instance of its own, so traces of others go on undisturbed.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use crate::root::Root;

/// A trace in progress. Dropping it removes it.
#[derive(Debug)]
pub struct KernelTrace {
    instance: PathBuf,
}

impl KernelTrace {
    /// Begins a trace. It keeps the last moments of each CPU.
    ///
    /// # Errors
    /// What is missing, and the command that provides it.
    pub fn start(root: &Root) -> Result<Self, String> {
        let instances = root.path(TRACEFS).join("instances");
        remove_those_of_the_dead(&instances, root);
        let instance = instances.join(format!("{PREFIX}{}", std::process::id()));
        match fs::create_dir(&instance) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(why(&error)),
            _ => {}
        }
        let trace = KernelTrace { instance };
        trace.configure().map_err(|error| format!("{TRACEFS}: {error}"))?;
        Ok(trace)
    }

    fn configure(&self) -> io::Result<()> {
        let write = |file: &str, text: &str| fs::write(self.instance.join(file), text);
        write("tracing_on", "0")?;
        write("trace_clock", "mono")?;
        write("buffer_size_kb", BUFFER_KB)?;
        // Not every kernel has all of them.
        let enabled = EVENTS.iter().filter(|event| {
            let file = format!("events/{event}/enable");
            self.instance.join(&file).exists() && write(&file, "1").is_ok()
        });
        if enabled.count() == 0 {
            return Err(io::Error::other("this kernel has no events of its scheduler to trace"));
        }
        write("tracing_on", "1")
    }

    /// Ends the trace; what it holds stays.
    pub fn stop(&self) {
        // If it fails, the trace goes on and holds later moments; its times show that.
        let _ = fs::write(self.instance.join("tracing_on"), "0");
    }

    /// Writes what the trace holds to a file.
    ///
    /// # Errors
    /// The file cannot be made or written.
    pub fn save(&self, path: &Path) -> io::Result<()> {
        io::copy(&mut File::open(self.instance.join("trace"))?, &mut File::create(path)?)?;
        Ok(())
    }
}

impl Drop for KernelTrace {
    fn drop(&mut self) {
        self.stop();
        // An instance cannot be removed while somebody reads it; the next trace removes it then.
        let _ = fs::remove_dir(&self.instance);
    }
}

fn why(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => format!(
            "{TRACEFS} is not mounted or this kernel has no ftrace; as root: mount -t tracefs \
             tracefs {TRACEFS}"
        ),
        ErrorKind::PermissionDenied => format!("{TRACEFS} may not be written: run this as root"),
        _ => format!("{TRACEFS}: {error}"),
    }
}

/// A killed process leaves its instance behind.
fn remove_those_of_the_dead(instances: &Path, root: &Root) {
    for entry in fs::read_dir(instances).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.parse::<u32>().ok());
        if pid.is_some_and(|pid| !root.path(&format!("/proc/{pid}")).exists()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

const TRACEFS: &str = "/sys/kernel/tracing";
const PREFIX: &str = "myelin-";
/// Of each CPU: a second of a busy scheduler.
const BUFFER_KB: &str = "8192";
const EVENTS: &[&str] = &[
    "sched/sched_switch",
    "sched/sched_waking",
    "sched/sched_wakeup",
    "sched/sched_migrate_task",
    "irq",
    "irq_vectors",
    "timer/hrtimer_expire_entry",
    "power/cpu_idle",
    "nmi",
];

#[cfg(test)]
mod tests {
    use super::*;

    /// An instance such as the kernel makes, which a test has to make beforehand.
    fn tracefs() -> (tempfile::TempDir, Root, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        let instances = root.path(TRACEFS).join("instances");
        let own = instances.join(format!("{PREFIX}{}", std::process::id()));
        fs::create_dir_all(own.join("events/sched/sched_switch")).unwrap();
        fs::write(own.join("events/sched/sched_switch/enable"), "0").unwrap();
        fs::write(own.join("trace"), "what happened\n").unwrap();
        fs::create_dir(instances.join(format!("{PREFIX}4194305"))).unwrap();
        fs::create_dir(instances.join("of-somebody-else")).unwrap();
        (folder, root, own)
    }

    #[test]
    fn a_trace_is_on_the_clock_of_the_samples_until_it_is_stopped_and_can_be_kept() {
        let (folder, root, own) = tracefs();
        let trace = KernelTrace::start(&root).unwrap();
        let read = |file: &str| fs::read_to_string(own.join(file)).unwrap();
        assert_eq!((&*read("tracing_on"), &*read("trace_clock")), ("1", "mono"));
        assert_eq!(read("events/sched/sched_switch/enable"), "1");
        let instances = own.parent().unwrap();
        assert!(!instances.join(format!("{PREFIX}4194305")).exists(), "no such process");
        assert!(instances.join("of-somebody-else").exists());
        trace.stop();
        assert_eq!(read("tracing_on"), "0");
        let kept = folder.path().join("kept.txt");
        trace.save(&kept).unwrap();
        assert_eq!(fs::read_to_string(kept).unwrap(), "what happened\n");
    }

    #[test]
    fn what_is_missing_is_named_with_its_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let missing = KernelTrace::start(&Root::at(folder.path())).unwrap_err();
        assert!(missing.contains("mount -t tracefs"), "{missing}");
        let (_folder, root, own) = tracefs();
        fs::remove_dir_all(own.join("events")).unwrap();
        let no_events = KernelTrace::start(&root).unwrap_err();
        assert!(no_events.contains("no events"), "{no_events}");
    }
}
