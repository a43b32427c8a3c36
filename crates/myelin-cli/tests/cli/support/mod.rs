//! Running the real command, and looking for what it might leave behind.

#![allow(dead_code)]

#[path = "../../../../../bench/kit/tests/support/own_host.rs"]
pub mod own_host;
pub mod pty;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Once;
use std::time::{Duration, Instant};

/// `myelin …`
pub fn myelin(arguments: &[&str]) -> Command {
    // Tests in the background of a script, and by `nohup`, ignore some of these; the command would, too.
    static HEED: Once = Once::new();
    HEED.call_once(|| {
        for number in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT] {
            // SAFETY: no handler is set, so nothing of this process runs in one.
            unsafe { libc::signal(number, libc::SIG_DFL) };
        }
    });
    let mut command = Command::new(env!("CARGO_BIN_EXE_myelin"));
    command.args(arguments);
    command
}

/// `myelin bench …`, with the drivers built beside it.
pub fn bench(arguments: &[&str]) -> Command {
    let mut command = myelin(&["bench"]);
    command.args(arguments).env(TEST, this_test());
    command
}

/// Runs to the end.
pub fn finish(command: &mut Command) -> Output {
    command.output().expect("myelin starts")
}

/// Starts with its output kept in pipes.
pub fn start(command: &mut Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("myelin starts")
}

/// Its output on standard error.
pub fn complaint(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A scenario file with one cell per system: `runs` runs of `seconds` each.
pub fn scenario(folder: &Path, systems: &[&str], payload: u64, seconds: f64, runs: u32) -> String {
    let path = folder.join("scenario.toml");
    let text = format!(
        "name = \"test\"\nabout = \"a test\"\n\n[workload]\nkind = \"roundtrip\"\n\
         payload_bytes = [{payload}]\nduration_s = {seconds}\nwarmup_messages = 50\n\
         reply_timeout_ms = 200\nrecord_every = 100\n\n[plan]\nsystems = {systems:?}\n\
         tunings = [\"default\"]\ntopology = \"two-processes\"\nruns = {runs}\n"
    );
    fs::write(&path, text).expect("a scenario file");
    path.to_string_lossy().into_owned()
}

/// `summary.json` of a results folder.
pub fn summary(folder: &Path) -> serde_json::Value {
    let text = fs::read_to_string(folder.join("summary.json")).expect("summary.json");
    serde_json::from_str(&text).expect("summary.json is JSON")
}

/// The lines of `runs.jsonl`.
pub fn runs(folder: &Path) -> Vec<serde_json::Value> {
    let text = fs::read_to_string(folder.join("runs.jsonl")).unwrap_or_default();
    let complete = text.rfind('\n').map_or(0, |at| at + 1);
    text[..complete].lines().map(|line| serde_json::from_str(line).expect("a run")).collect()
}

/// Waits for a condition under a watchdog.
pub fn wait_for<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(Instant::now() < deadline, "waited a minute for: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether a system is installed here; says so if not.
pub fn has_system(name: &str) -> bool {
    let output = finish(&mut bench(&["list", "systems"]));
    let list = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = list.lines().find(|line| line.split_whitespace().next() == Some(name));
    let line = line.unwrap_or_else(|| panic!("no system {name} in:\n{list}"));
    let installed = !line.contains("not installed");
    if !installed {
        println!("skipped: {}", line.trim());
    }
    installed
}

/// The process of `lab` (or of one of its children) whose command line contains all of `words`.
pub fn process_of(lab: u32, words: &[&str]) -> Option<u32> {
    descendants(lab).into_iter().find(|pid| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        words.iter().all(|word| line.contains(word))
    })
}

/// Sends a signal.
pub fn signal(pid: u32, signal: i32) {
    // SAFETY: kill with integers only.
    assert_eq!(unsafe { libc::kill(pid as i32, signal) }, 0, "kill {pid}");
}

fn descendants(root: u32) -> Vec<u32> {
    let mut found = vec![root];
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        found.extend(processes().filter(|pid| parent_of(*pid) == Some(parent)));
        next += 1;
    }
    found.split_off(1)
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").expect("/proc").flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn parent_of(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(')').next()?.split_whitespace().nth(1)?.parse().ok()
}

/// Possible leftovers of a run: files in the folders of this test (see [`own_host::enter`]), and
/// processes.
#[derive(Debug, PartialEq, Eq)]
pub struct Traces {
    segments: BTreeSet<PathBuf>,
    files: BTreeSet<PathBuf>,
    processes: BTreeSet<String>,
}

impl Traces {
    /// The current state.
    pub fn look() -> Self {
        let list = |folder: &str| -> BTreeSet<PathBuf> {
            fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
        };
        let is_left = |pid: &u32| is_of_this_test(*pid) && !is_dead(*pid);
        let name = |pid| {
            let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            format!("{pid} {}", name.trim())
        };
        let of_a_run = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
            ["roudi", "iox", "iceoryx", "myelin"].iter().any(|word| name.contains(word))
        };
        Traces {
            segments: list("/dev/shm"),
            files: list("/tmp").into_iter().filter(of_a_run).collect(),
            processes: processes().filter(is_left).map(name).collect(),
        }
    }

    /// Nothing new has stayed since; objects that are just ending get a moment.
    pub fn assert_unchanged(&self) {
        let deadline = Instant::now() + Duration::from_secs(15);
        while Traces::look() != *self && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(Traces::look(), *self);
    }
}

/// Whether `bench` has started it, directly or indirectly: other sessions may be running.
fn is_of_this_test(pid: u32) -> bool {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let own = format!("{TEST}={}", this_test());
    environment.split(|byte| *byte == 0).any(|variable| variable == own.as_bytes())
}

fn is_dead(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(')').next().unwrap_or("").split_whitespace().next();
    matches!(state, None | Some("Z" | "X"))
}

/// The thread of a test has its name.
fn this_test() -> String {
    let thread = std::thread::current();
    format!("{}-{}", std::process::id(), thread.name().unwrap_or_default())
}

/// Names the test in the environment of all processes that it starts.
const TEST: &str = "MYELIN_TEST";
