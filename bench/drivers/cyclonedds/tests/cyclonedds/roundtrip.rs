//! Ping and pong through the line protocol over the real middleware, and what is left on the host
//! afterwards, also when somebody was killed. Skips, with a line that says so, what is not
//! installed.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use crate::{library_version, own_host};
use myelin_bench_kit::Reason;
use myelin_bench_kit::protocol::{Description, Done, Event};
use myelin_bench_kit::samples::SampleFile;
use serde_json::{Value, json};
use tempfile::TempDir;

#[test]
fn udp() {
    let _host = own_host::enter();
    for payload_bytes in [0, 1003, 1 << 20] {
        round_trip("cyclonedds.udp", payload_bytes);
    }
}

#[test]
fn iceoryx() {
    let _host = own_host::enter();
    for payload_bytes in [0, 1003, 1 << 20] {
        with_daemon("cyclonedds.iceoryx", payload_bytes);
    }
}

#[test]
fn iceoryx_copy() {
    let _host = own_host::enter();
    for payload_bytes in [0, 1003] {
        with_daemon("cyclonedds.iceoryx-copy", payload_bytes);
    }
}

#[test]
fn the_version_is_that_of_the_library_that_runs() {
    library_version::is_that_of_the_library_that_runs(Path::new(crate::EXECUTABLE), "libddsc.so");
}

#[test]
fn a_missing_other_side_is_a_timeout() {
    let _host = own_host::enter();
    let run = Run::new("cyclonedds.udp", 0);
    if !run.is_installed() {
        return;
    }
    let ping = run.start_with("ping", |prepare| prepare["match_timeout_ns"] = json!(50_000_000));
    assert!(ping.hear_error().contains("timeout: 0 of 1 writers for this side"));
}

#[test]
fn a_missing_daemon_is_an_error() {
    let _host = own_host::enter();
    let run = Run::new("cyclonedds.iceoryx", 0);
    if run.is_installed() {
        assert!(run.start("ping").hear_error().contains("RouDi"));
    }
}

#[test]
fn a_second_daemon_names_the_first() {
    let _host = own_host::enter();
    let run = Run::new("cyclonedds.iceoryx", 0);
    if !run.is_installed() {
        return;
    }
    let mut first = run.start("daemon");
    let pid = first.hear_ready()[0];
    let second = Run::new("cyclonedds.iceoryx", 0);
    assert!(second.start("daemon").hear_error().contains(&format!("(pid {pid})")));
    clean();
    assert!(is_alive(pid), "neither the second nor clean may touch the first");
    assert!(!leftovers().is_empty(), "nor what is the first's");
    first.stop();
    assert_eq!(leftovers(), [""; 0]);
}

#[test]
fn pools_that_do_not_fit() {
    let _host = own_host::enter();
    let run = Run::new("cyclonedds.iceoryx", 1024);
    if !run.is_installed() {
        return;
    }
    let pools = json!({ "pools": [{ "bytes": 1024, "count": 100 }] });
    let daemon = run.start_with("daemon", |prepare| prepare["options"] = pools);
    assert!(daemon.hear_error().contains("needs chunks of 1096 B"));
    assert_eq!(leftovers(), [""; 0]);
}

#[test]
fn a_killed_daemon_is_reported_and_leaves_nothing() {
    let _host = own_host::enter();
    let run = Run::new("cyclonedds.iceoryx", 0);
    if !run.is_installed() {
        return;
    }
    let mut daemon = run.start("daemon");
    kill(daemon.hear_ready()[0]);
    assert!(daemon.hear_error().contains("killed by signal 9"));
    assert_eq!(leftovers(), [""; 0]);
}

#[test]
fn a_killed_supervisor_takes_the_daemon_along() {
    let _host = own_host::enter();
    let run = Run::new("cyclonedds.iceoryx", 0);
    if !run.is_installed() {
        return;
    }
    let mut supervisor = run.start("daemon");
    let daemon = supervisor.hear_ready()[0];
    kill(supervisor.child.id());
    assert_eq!(supervisor.child.wait().unwrap().signal(), Some(libc::SIGKILL));
    wait_until("RouDi has ended", || !is_alive(daemon));
    clean();
    assert_eq!(leftovers(), [""; 0]);
}

#[test]
fn killed_roles_leave_nothing() {
    let _host = own_host::enter();
    let run = Run::new("cyclonedds.iceoryx", 0);
    if !run.is_installed() {
        return;
    }
    let mut daemon = run.start("daemon");
    daemon.hear_ready();
    let (mut pong, mut ping) = (run.start("pong"), run.start("ping"));
    pong.hear_ready();
    ping.hear_ready();
    for role in [&mut ping, &mut pong] {
        kill(role.child.id());
        role.child.wait().unwrap();
    }
    daemon.stop();
    assert_eq!(leftovers(), [""; 0]);
}

/// The whole of a run with RouDi.
fn with_daemon(system: &str, payload_bytes: u64) {
    let run = Run::new(system, payload_bytes);
    if !run.is_installed() {
        return;
    }
    let mut daemon = run.start("daemon");
    assert_eq!(daemon.hear_ready().len(), 1);
    round_trip(system, payload_bytes);
    daemon.stop();
    assert_eq!(leftovers(), [""; 0]);
}

/// Messages there and back, every one of them once and whole.
fn round_trip(system: &str, payload_bytes: u64) {
    let run = Run::new(system, payload_bytes);
    if !run.is_installed() {
        return;
    }
    let (mut pong, mut ping) = (run.start("pong"), run.start("ping"));
    pong.hear_ready();
    ping.hear_ready();
    for role in [&mut pong, &mut ping] {
        role.say(&json!({ "start": { "at_ns": 0 } }));
    }
    let ping_done = ping.hear_done();
    ping.say(&json!("stop"));
    let pong_done = pong.stop();
    assert!(ping.child.wait().unwrap().success());
    for done in [&ping_done, &pong_done] {
        let bad = [done.lost, done.duplicates, done.out_of_order, done.corrupt];
        assert_eq!((done.sent, done.received, bad), (MESSAGES, MESSAGES, [0; 4]), "{system}");
    }
}

/// One run of the bench: a folder, and what its processes are told.
struct Run {
    folder: TempDir,
    prepare: Value,
}

impl Run {
    fn new(system: &str, payload_bytes: u64) -> Run {
        let folder = tempfile::tempdir().unwrap();
        // Runs at the same time have names and domains of their own.
        let name = folder.path().file_name().unwrap().to_str().unwrap();
        let name: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
        let domain = 100 + name.bytes().map(u32::from).sum::<u32>() % 100;
        let prepare = json!({
            "protocol": 1, "system": system, "role": "ping", "run": format!("test-{name}"),
            "domain": domain, "payload_bytes": payload_bytes, "messages": MESSAGES,
            "duration_ns": 0, "warmup_messages": 10, "rate_hz": null,
            "reply_timeout_ns": 5_000_000_000u64, "match_timeout_ns": 10_000_000_000u64,
            "record_every": 1, "samples": null, "directory": folder.path(),
            "lock_memory": false, "seed": 1,
        });
        Run { folder, prepare }
    }

    /// Whether the system can run here; says so if not.
    fn is_installed(&self) -> bool {
        let output = Command::new(DRIVER).arg("describe").output().unwrap();
        let description: Description = serde_json::from_slice(&output.stdout).unwrap();
        let name = self.prepare["system"].as_str().unwrap();
        let system = description.systems.iter().find(|system| system.name == name).unwrap();
        if let Some(missing) = &system.missing {
            println!("skipped: {name}: {missing}");
        }
        system.missing.is_none()
    }

    fn start(&self, role: &str) -> Process {
        self.start_with(role, |_| {})
    }

    fn start_with(&self, role: &str, change: impl FnOnce(&mut Value)) -> Process {
        let mut prepare = self.prepare.clone();
        prepare["role"] = json!(role);
        if role != "daemon" {
            let path = self.folder.path().join(role);
            let mut options = File::options();
            let file = options.read(true).write(true).create_new(true).open(&path).unwrap();
            SampleFile::create(&file, MESSAGES).unwrap();
            prepare["samples"] = json!(path);
        }
        change(&mut prepare);
        let mut command = Command::new(DRIVER);
        command.arg("run").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut process = Process { child, output };
        process.say(&json!({ "prepare": prepare }));
        process
    }
}

/// A driver that plays a role.
struct Process {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Process {
    fn say(&mut self, command: &Value) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{command}").unwrap();
    }

    fn hear(&mut self) -> Event {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    /// The processes that the driver has started.
    fn hear_ready(&mut self) -> Vec<u32> {
        match self.hear() {
            Event::Ready(ready) => ready.pids,
            event => panic!("{event:?}"),
        }
    }

    fn hear_done(&mut self) -> Done {
        match self.hear() {
            Event::Done(done) => done,
            event => panic!("{event:?}"),
        }
    }

    fn hear_error(mut self) -> String {
        let event = self.hear();
        assert!(!self.child.wait().unwrap().success());
        match event {
            Event::Error(Reason { message, .. }) => message,
            event => panic!("{event:?}"),
        }
    }

    fn stop(&mut self) -> Done {
        self.say(&json!("stop"));
        let done = self.hear_done();
        assert!(self.child.wait().unwrap().success());
        done
    }
}

/// A test that failed must not leave its processes behind.
impl Drop for Process {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

fn clean() {
    assert!(Command::new(DRIVER).arg("clean").status().unwrap().success());
}

/// What iceoryx has in /dev/shm and /tmp of this test: names.
fn leftovers() -> Vec<String> {
    let group = Command::new("id").arg("-gn").output().unwrap();
    let group = String::from_utf8(group.stdout).unwrap();
    let names = |folder: &str| {
        let entries = Path::new(folder).read_dir().unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect::<Vec<_>>()
    };
    let shared = names("/dev/shm").into_iter();
    let shared = shared.filter(|name| name == "iceoryx_mgmt" || name == group.trim());
    let temporary = names("/tmp").into_iter();
    let temporary = temporary
        .filter(|name| ["iceoryx_", "iox-", "roudi"].iter().any(|start| name.starts_with(start)));
    shared.chain(temporary).collect()
}

fn kill(pid: u32) {
    // SAFETY: kill has no preconditions; the process is this test's own.
    assert_eq!(unsafe { libc::kill(pid as libc::pid_t, libc::SIGKILL) }, 0);
}

/// Whether a process runs; one that waits for its parent to take notice of its end does not.
fn is_alive(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    !status.is_empty() && !status.contains("\nState:\tZ")
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_secs(10);
    while !condition() {
        assert!(Instant::now() < until, "not so after 10 s: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

const DRIVER: &str = env!("CARGO_BIN_EXE_myelin-driver-cyclonedds");
const MESSAGES: u64 = 100;
