//! `myelin record` on publishers of the test's own domain.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use myelin::{Node, PlainData, Publisher};
use myelin_bag::{Item, MessageHead, Scanner};
use serde_json::Value;
use tempfile::TempDir;

use crate::support::pty::Session;
use crate::support::{complaint, finish, myelin, signal, wait_for};

#[derive(Clone, Copy, PlainData)]
#[repr(C)]
struct Battery {
    voltage: f64,
}

struct Domain {
    folder: TempDir,
    node: Node,
}

impl Domain {
    fn new() -> Domain {
        let folder = tempfile::tempdir().unwrap();
        let node = Node::builder("talker").runtime_dir(folder.path()).open().unwrap();
        Domain { folder, node }
    }

    fn topic(&self, name: &str) -> Publisher<[u8]> {
        self.node.topic::<[u8]>(name).depth(1_000).publisher().unwrap()
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("run.mcap")
    }

    fn record(&self, arguments: &[&str]) -> Command {
        let mut command = myelin(&["record", "--json", "--output"]);
        command.arg(self.file()).args(arguments).env("MYELIN_RUNTIME_DIR", self.folder.path());
        command
    }
}

/// A recorder that runs.
struct Run(Option<Child>);

impl Run {
    fn start(command: &mut Command) -> Run {
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Run(Some(command.spawn().expect("myelin starts")))
    }

    fn signal(&self, number: i32) {
        signal(self.0.as_ref().expect("it runs").id(), number);
    }

    /// Its status, the summary and its complaints.
    fn finish(&mut self) -> (Option<i32>, Value, String) {
        let output = self.0.take().expect("it runs").wait_with_output().unwrap();
        let text = String::from_utf8(output.stdout.clone()).unwrap();
        let summary = text.lines().last().map(|it| serde_json::from_str(it).expect("JSON"));
        (output.status.code(), summary.unwrap_or_default(), complaint(&output))
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The messages of a topic, and whether the file is complete.
fn messages(file: &Path, topic: &str) -> (Vec<(MessageHead, Vec<u8>)>, bool) {
    let mut scanner = Scanner::new(File::open(file).unwrap()).unwrap();
    let mut messages = Vec::new();
    while let Some(item) = scanner.next().unwrap() {
        if let Item::Message { head, channel, data, .. } = item
            && channel.topic == topic
        {
            messages.push((head, data.to_vec()));
        }
    }
    let report = scanner.report();
    (messages, report.is_complete && report.is_lossless())
}

/// Waits until the file has so many bytes.
fn wait_for_bytes(file: &Path, bytes: u64) {
    wait_for("messages in the file", || {
        std::fs::metadata(file).ok().filter(|it| it.len() >= bytes)
    });
}

#[test]
fn the_end_by_a_signal_completes_the_file() {
    for number in [libc::SIGINT, libc::SIGTERM] {
        let domain = Domain::new();
        let (data, other) = (domain.topic("data"), domain.topic("other"));
        let mut run = Run::start(&mut domain.record(&["data"]));
        assert!(data.wait_for_match(1, std::time::Duration::from_secs(60)));
        for number in 0..50_u8 {
            data.publish_copy(&[number; 10]).unwrap();
            other.publish_copy(&[number; 10]).unwrap();
        }
        run.signal(number);
        let (status, summary, complaints) = run.finish();
        assert_eq!(status, Some(0), "{complaints}");
        let (messages, is_complete) = messages(&domain.file(), "data");
        assert!(is_complete);
        assert_eq!(messages.len(), 50, "what was published before is taken: {summary}");
        assert_eq!((&summary["messages"], &summary["end"]), (&50.into(), &"stopped".into()));
        assert_eq!(summary["lost"]["publisher_ring"], 0);
        assert_eq!(summary["by_topic"][0]["topic"], "data");
        assert_eq!(summary["by_topic"].as_array().unwrap().len(), 1);
        assert_eq!(summary["files"][0], domain.file().to_str().unwrap());
    }
}

#[test]
fn a_second_signal_at_once_is_safe() {
    let domain = Domain::new();
    let data = domain.topic("data");
    let mut run = Run::start(&mut domain.record(&[]));
    assert!(data.wait_for_match(1, std::time::Duration::from_secs(60)));
    for number in 0..200_u8 {
        data.publish_copy(&vec![number; 50_000]).unwrap();
    }
    run.signal(libc::SIGINT);
    run.signal(libc::SIGINT);
    let (status, summary, complaints) = run.finish();
    assert_eq!(status, Some(0), "{complaints}");
    let (messages, is_complete) = messages(&domain.file(), "data");
    assert!(is_complete);
    let lost = &summary["lost"];
    let lost = ["publisher_ring", "recorder", "disk"].map(|it| lost[it].as_u64().unwrap());
    assert_eq!(messages.len() as u64 + lost.iter().sum::<u64>(), 200, "{summary}");
}

#[test]
fn a_killed_recorder_leaves_what_was_written() {
    let domain = Domain::new();
    let data = domain.topic("data");
    let mut run = Run::start(&mut domain.record(&[]));
    assert!(data.wait_for_match(1, std::time::Duration::from_secs(60)));
    for number in 0..20_u8 {
        data.publish_copy(&vec![number; 50_000]).unwrap();
    }
    wait_for_bytes(&domain.file(), 20 * 50_000);
    run.signal(libc::SIGKILL);
    run.0.take().unwrap().wait().unwrap();
    let (messages, is_complete) = messages(&domain.file(), "data");
    assert!(!is_complete && messages.len() == 20);
    assert!(messages.iter().enumerate().all(|(at, it)| it.1[100] == at as u8));
}

#[test]
fn a_limit_of_the_files_size_ends_it_cleanly() {
    let domain = Domain::new();
    let data = domain.topic("data");
    let mut command = Command::new("sh");
    // In blocks of 512 or 1,024 bytes, by the shell.
    command.args(["-c", "ulimit -f 2000; exec \"$0\" \"$@\""]).arg(env!("CARGO_BIN_EXE_myelin"));
    command.args(["record", "--json", "--output"]).arg(domain.file());
    command.env("MYELIN_RUNTIME_DIR", domain.folder.path());
    let mut run = Run::start(&mut command);
    assert!(data.wait_for_match(1, std::time::Duration::from_secs(60)));
    for number in 0..100_u8 {
        data.publish_copy(&vec![number; 50_000]).unwrap();
    }
    let (status, summary, complaints) = run.finish();
    assert_eq!((status, &summary["end"]), (Some(1), &"failed".into()), "{complaints}");
    assert!(complaints.contains("a limit of the file's size"), "{complaints}");
    let (messages, is_complete) = messages(&domain.file(), "data");
    assert!(is_complete && messages.len() > 10);
    assert_eq!(messages.len(), summary["messages"].as_u64().unwrap() as usize);
    assert!(summary["lost"]["disk"].as_u64() > Some(0), "{summary}");
}

#[test]
fn mistakes_have_one_line_and_a_status() {
    let domain = Domain::new();
    let _camera = domain.topic("camera/left");
    let run = |arguments: &[&str]| {
        let output = finish(&mut domain.record(arguments));
        (output.status.code(), complaint(&output))
    };
    for (arguments, word) in [
        (&["--max-rate", "camera/left"][..], "TOPIC=HZ"),
        (&["--max-rate", "camera/left=0"], "TOPIC=HZ"),
        (&["--split-size", "many"], "500MB"),
        (&["--split-time", "0s"], "above 0"),
        (&["--keep-free", "1GB", "--delete-oldest"], "--split-size"),
        (&["--delete-oldest"], "--keep-free"),
        (&["--count", "0"], "0"),
        (&["--ring", "9s", "--on", "voltage"], "TOPIC: CONDITION"),
        (&["--on-rate", "voltage=5"], "--ring"),
    ] {
        let (status, complaints) = run(arguments);
        assert_eq!(status, Some(2), "{arguments:?}: {complaints}");
        assert!(complaints.contains(word), "{arguments:?}: {complaints}");
    }
    assert!(!domain.file().exists());

    let (status, complaints) = run(&["camera/lfet", "--duration", "50ms"]);
    assert_eq!(status, Some(3), "{complaints}");
    assert!(complaints.contains("did you mean \"camera/left\"?"), "{complaints}");
    let (status, complaints) = run(&[]);
    assert_eq!(status, Some(2), "{complaints}");
    assert!(complaints.contains("run.mcap exists; name another file"), "{complaints}");
    let mut nowhere = myelin(&["record", "--output", "/nowhere/run.mcap"]);
    let output = finish(nowhere.env("MYELIN_RUNTIME_DIR", domain.folder.path()));
    assert_eq!(output.status.code(), Some(3));
    assert!(complaint(&output).contains("/nowhere/run.mcap: there is no such folder"));
    // Nobody may write here, not even root.
    let mut forbidden = myelin(&["record", "--output", "/proc/version"]);
    let output = finish(forbidden.env("MYELIN_RUNTIME_DIR", domain.folder.path()));
    assert_ne!(output.status.code(), Some(0));
    assert!(complaint(&output).contains("/proc/version"), "{}", complaint(&output));
}

#[test]
fn it_ends_by_itself_after_a_count_or_a_time() {
    let domain = Domain::new();
    let data = domain.topic("data");
    let mut run = Run::start(&mut domain.record(&["--count", "5"]));
    assert!(data.wait_for_match(1, std::time::Duration::from_secs(60)));
    for number in 0..9_u8 {
        data.publish_copy(&[number]).unwrap();
    }
    let (status, summary, complaints) = run.finish();
    assert_eq!((status, &summary["end"]), (Some(0), &"count".into()), "{complaints}");
    assert_eq!(messages(&domain.file(), "data").0.len(), 5);
    std::fs::remove_file(domain.file()).unwrap();
    let output = finish(&mut domain.record(&["--duration", "10ms"]));
    assert_eq!(output.status.code(), Some(0), "{}", complaint(&output));
    assert!(messages(&domain.file(), "data").1);
}

#[test]
fn a_terminal_has_a_line_that_fits() {
    let domain = Domain::new();
    let data = domain.topic("data");
    for columns in [80, 40] {
        let folder = domain.folder.path().join(columns.to_string());
        std::fs::create_dir(&folder).unwrap();
        let mut command = myelin(&["record", "--output"]);
        command.arg(&folder).env("MYELIN_RUNTIME_DIR", domain.folder.path());
        let mut session = Session::start(command.env("TERM", "xterm"), 24, columns);
        assert!(data.wait_for_match(1, std::time::Duration::from_secs(60)));
        data.publish_copy(&[1]).unwrap();
        let text = session.wait("a line", |it| it.contains("0 lost"));
        assert_eq!(text.trim().lines().count(), 1, "{text}");
        assert_eq!(text.contains(" free"), columns == 80, "{text}");
        session.press("\x03");
        let status = session.finish_with("nothing was lost");
        assert_eq!(status.code(), Some(0), "{}", session.text());
        let text = session.text();
        assert!(text.contains("1 message of 1 topic in") && !text.contains("0 lost"), "{text}");
        // The default name has the date.
        let name = std::fs::read_dir(&folder).unwrap().next().unwrap().unwrap().file_name();
        let name = name.to_str().unwrap();
        assert!(name.starts_with("recording_2") && name.ends_with(".mcap"), "{name}");
    }
}

#[test]
fn a_flight_recorder_writes_what_came_before_a_trigger() {
    let domain = Domain::new();
    let data = domain.topic("data");
    let battery = domain.node.topic::<Battery>("battery").publisher().unwrap();
    let faults = domain.folder.path().join("faults/");
    std::fs::create_dir(&faults).unwrap();
    let mut command =
        myelin(&["record", "--json", "--ring", "60s", "--on", "battery: voltage < 22"]);
    command.arg("--output").arg(faults.join("run.mcap"));
    let mut run = Run::start(command.env("MYELIN_RUNTIME_DIR", domain.folder.path()));
    assert!(data.wait_for_match(1, std::time::Duration::from_secs(60)));
    assert!(battery.wait_for_match(1, std::time::Duration::from_secs(60)));
    for number in 0..10_u8 {
        data.publish_copy(&[number; 10]).unwrap();
    }
    battery.publish_copy(&Battery { voltage: 24.0 }).unwrap();
    battery.publish_copy(&Battery { voltage: 21.5 }).unwrap();
    let first = faults.join("run_0000.mcap");
    wait_for("the file", || {
        // Before its first chunk it has not even the magic bytes.
        let is_begun = std::fs::metadata(&first).is_ok_and(|it| it.len() >= 8);
        is_begun
            .then(|| messages(&first, "data"))
            .filter(|(messages, whole)| *whole && messages.len() == 10)
    });
    let mut trigger = myelin(&["record", "--trigger"]);
    let output = finish(trigger.env("MYELIN_RUNTIME_DIR", domain.folder.path()));
    assert_eq!(output.status.code(), Some(0), "{}", complaint(&output));
    wait_for("another file", || faults.join("run_0001.mcap").exists().then_some(()));
    run.signal(libc::SIGINT);
    let output = run.0.take().unwrap().wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", complaint(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("\"saved\"") && text.contains("battery: voltage < 22"), "{text}");
    assert!(!faults.join(".myelin-ring").exists(), "what is kept goes with the end");
    let mut trigger = myelin(&["record", "--trigger"]);
    let output = finish(trigger.env("MYELIN_RUNTIME_DIR", domain.folder.path()));
    assert_eq!(output.status.code(), Some(3), "{}", complaint(&output));
}
