//! `myelin topic hz`, `bw` and `delay` on publishers of another process, which publish when the test
//! says so. Counts are compared, not times.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use myelin::{Node, PlainData};
use serde_json::Value;

use crate::support::{complaint, finish, myelin, signal, start, wait_for};

#[derive(Clone, Copy, PlainData)]
#[repr(C)]
struct Stamped {
    stamp_ns: u64,
    number: u64,
    body: [u64; 30],
}

/// Publishes what its standard input asks for: `count period_us` in each line. Answers each line
/// with one of its own. Run as a process of its own by [`Publisher`].
#[test]
#[ignore = "a process of other tests"]
fn publisher_process() {
    let Ok(options) = std::env::var(PUBLISHER) else { return };
    let mut words = options.split(' ');
    let mut next = || words.next().expect("folder topic depth");
    let node = Node::builder("talker").runtime_dir(next()).open().unwrap();
    let topic = node.topic::<Stamped>(next()).depth(next().parse().unwrap());
    let publisher = topic.publisher().unwrap();
    println!("\nready");
    let mut number = 0;
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        let (count, period_us) = line.split_once(' ').unwrap();
        let (count, period_us): (u64, u64) = (count.parse().unwrap(), period_us.parse().unwrap());
        let begin = Instant::now();
        for at in 0..count {
            let due = Duration::from_micros(at * period_us);
            std::thread::sleep(due.saturating_sub(begin.elapsed()));
            let stamp_ns = myelin::now();
            publisher.publish_copy(&Stamped { stamp_ns, number, body: [0; 30] }).unwrap();
            number += 1;
        }
        println!("\npublished {count}");
    }
}

const PUBLISHER: &str = "MYELIN_TEST_PUBLISHER";

/// A process that publishes.
struct Publisher {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Publisher {
    fn start(folder: &Path, topic: &str, depth: u32, timestamps: bool) -> Publisher {
        let options = format!("{} {topic} {depth}", folder.display());
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "rates::publisher_process", "--ignored", "--nocapture"]);
        command.env("MYELIN_TIMESTAMPS", if timestamps { "1" } else { "0" });
        command.env(PUBLISHER, options).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut publisher = Publisher { child, input, output };
        publisher.read("ready");
        publisher
    }

    fn publish(&mut self, count: u64, period_us: u64) {
        writeln!(self.input, "{count} {period_us}").unwrap();
        self.read("published");
    }

    fn read(&mut self, word: &str) {
        let mut line = String::new();
        while !line.starts_with(word) {
            line.clear();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "the publisher has ended");
        }
    }

    fn signal(&self, number: i32) {
        signal(self.child.id(), number);
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `myelin topic …` with JSON lines.
struct Tool {
    child: Child,
    lines: BufReader<ChildStdout>,
    seen: Vec<Value>,
}

impl Tool {
    /// Starts it, and waits for its first line: now it looks.
    fn start(folder: &Path, arguments: &[&str]) -> Tool {
        let mut command = tool(folder, arguments);
        command.args(["--json", "--interval", "20ms"]);
        let mut child = start(&mut command);
        let lines = BufReader::new(child.stdout.take().unwrap());
        let mut tool = Tool { child, lines, seen: Vec::new() };
        tool.until("the first line", |_| true);
        tool
    }

    fn next(&mut self) -> Option<Value> {
        let mut line = String::new();
        let read = self.lines.read_line(&mut line).unwrap();
        (read > 0).then(|| serde_json::from_str(&line).expect("JSON"))
    }

    /// Reads until a line is as expected.
    fn until(&mut self, what: &str, is_expected: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let Some(line) = self.next() else {
                let mut text = String::new();
                self.child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
                panic!("it ended before {what}: {text}");
            };
            if is_expected(&line) {
                return line;
            }
            assert!(Instant::now() < deadline, "no {what}; the last line: {line}");
            self.seen.push(line);
        }
    }

    /// Ends it as Ctrl-C does. Its summary: the last lines.
    fn interrupt(mut self) -> Vec<Value> {
        signal(self.child.id(), libc::SIGINT);
        let mut summary = Vec::new();
        while let Some(line) = self.next() {
            if line["summary"] == true {
                summary.push(line);
            }
        }
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
        summary
    }
}

impl Drop for Tool {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn tool(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = myelin(&["topic"]);
    command.args(arguments).arg("--runtime-dir").arg(folder);
    command
}

#[test]
fn every_sample_counts_for_the_rate_whether_seen_or_not() {
    let folder = tempfile::tempdir().unwrap();
    let mut deep = Publisher::start(folder.path(), "deep", 1_000, true);
    // At a depth of 1 nobody sees all.
    let mut flat = Publisher::start(folder.path(), "flat", 1, true);
    let mut hz = Tool::start(folder.path(), &["hz", "deep", "fl*"]);
    deep.publish(500, 100);
    flat.publish(500, 100);
    flat.publish(1, 0);
    hz.until("all of deep", |line| line["topic"] == "deep" && line["samples"] == 500);
    hz.until("something of flat", |line| line["topic"] == "flat" && line["samples"] != 0);
    let summary = hz.interrupt();
    let of = |topic: &str| summary.iter().find(|line| line["topic"] == topic).unwrap();
    let (deep, flat) = (of("deep"), of("flat"));
    assert_eq!((&deep["samples"], &deep["missed_by_tool"]), (&500.into(), &0.into()), "{deep}");
    assert_eq!(deep["node"], "talker");
    assert!(deep["period_p50_us"].as_f64().unwrap() > 0.0, "{deep}");
    assert_eq!(flat["samples"], 501, "{flat}");
    assert!(flat["missed_by_tool"].as_u64().unwrap() > 0, "{flat}");
    for line in [deep, flat] {
        let rate_hz = line["rate_hz"].as_f64().unwrap();
        assert!(rate_hz > 0.0 && rate_hz <= 10_100.0, "at most one in 100 us: {line}");
    }
}

#[test]
fn bandwidth_is_that_of_the_sizes() {
    let folder = tempfile::tempdir().unwrap();
    let mut publisher = Publisher::start(folder.path(), "imu", 1_000, true);
    let mut bw = Tool::start(folder.path(), &["bw", "imu"]);
    publisher.publish(200, 100);
    let line = bw.until("all", |line| line["samples"] == 200);
    assert_eq!((&line["size_min_bytes"], &line["size_max_bytes"]), (&256.into(), &256.into()));
    let (bytes, hz) = (line["bytes_per_s"].as_f64().unwrap(), line["rate_hz"].as_f64().unwrap());
    assert!((bytes / hz - 256.0).abs() < 0.01, "{line}");
}

#[test]
fn a_publisher_without_timestamps_has_a_rate_and_no_periods() {
    let folder = tempfile::tempdir().unwrap();
    let mut publisher = Publisher::start(folder.path(), "imu", 8, false);
    let mut hz = Tool::start(folder.path(), &["hz", "imu"]);
    publisher.publish(300, 100);
    hz.until("a rate", |line| line["rate_hz"].as_f64().is_some_and(|hz| hz > 0.0));
    let summary = hz.interrupt();
    let line = &summary[0];
    assert_eq!(line["has_timestamps"], false);
    assert!(line["period_p50_us"].is_null() && line["gaps"].is_null(), "{line}");
    assert!(line["rate_hz"].as_f64().unwrap() > 0.0, "{line}");
}

#[test]
fn a_stopped_publisher_is_silent_and_one_that_starts_again_is_followed() {
    let folder = tempfile::tempdir().unwrap();
    let mut first = Publisher::start(folder.path(), "imu", 100, true);
    let mut hz = Tool::start(folder.path(), &["hz", "imu"]);
    first.publish(100, 100);
    let line = hz.until("a rate", |line| line["samples"] == 100);
    let id = line["publisher"].clone();
    first.signal(libc::SIGSTOP);
    let line = hz.until("silence", |line| line["silent_s"].as_f64().is_some_and(|s| s >= 1.0));
    assert!(line["rate_hz"].is_null() && line["period_p50_us"].is_null(), "{line}");
    first.signal(libc::SIGKILL);
    hz.until("its end", |line| line["has_gone"] == true && line["publisher"] == id);
    hz.until("nobody", |line| line["publishers"] == 0);
    let mut second = Publisher::start(folder.path(), "imu", 100, true);
    second.publish(50, 100);
    let line = hz.until("the new one", |line| line["samples"] == 50);
    assert_ne!(line["publisher"], id);
    assert_eq!(hz.interrupt().len(), 2, "the summary has both");
}

#[test]
fn the_delay_of_a_subscriber_is_split_at_its_wake_up() {
    let folder = tempfile::tempdir().unwrap();
    let mut publisher = Publisher::start(folder.path(), "imu", 100, true);
    let arguments = ["delay", "imu", "--subscribe", "--stamp", "stamp_ns"];
    let mut delay = Tool::start(folder.path(), &arguments);
    publisher.publish(100, 100);
    // Those before its subscriber was matched are missed.
    let count = |line: &Value, key: &str| line[key].as_u64().unwrap();
    let all = |line: &Value| count(line, "samples") + count(line, "missed_by_tool") == 100;
    let line = delay.until("all", |line| all(line) && count(line, "samples") > 0);
    assert_eq!((&line["stamp_clock"], &line["stamps_of_future"]), (&"monotonic".into(), &0.into()));
    let parts = ["stamp_to_publish", "publish_to_wake", "wake_to_take"];
    let max = |part: &str| line[format!("{part}_max_us")].as_f64().unwrap();
    let sum: f64 = parts.into_iter().map(max).sum();
    assert!(max("delay") > 0.0 && max("delay") <= sum + 0.2, "{line}");
}

#[test]
fn subscribers_measure_their_delays_themselves() {
    let folder = tempfile::tempdir().unwrap();
    let node = Node::builder("viewer").runtime_dir(folder.path()).open().unwrap();
    let mut subscriber = node.topic::<Stamped>("imu").depth(100).subscriber().unwrap();
    let mut publisher = Publisher::start(folder.path(), "imu", 100, true);
    assert!(subscriber.wait_for_match(1, Duration::from_secs(60)));
    let mut delay = Tool::start(folder.path(), &["delay", "imu"]);
    publisher.publish(50, 10);
    for _ in 0..50 {
        assert!(subscriber.receive(Duration::from_secs(60)).unwrap().is_some());
    }
    let line = delay.until("its takes", |line| line["taken"] == 50);
    assert_eq!((&line["node"], &line["lost"]), (&"viewer".into(), &0.into()));
    assert!(line["measured"].as_u64().unwrap() > 0, "{line}");
    let of = |key: &str| line[key].as_f64().unwrap();
    assert!(of("delay_p50_us") > 0.0 && of("delay_p50_us") <= of("delay_max_us"), "{line}");
    let summary = delay.interrupt();
    assert_eq!(summary[0]["taken"], 50, "{summary:?}");
}

#[test]
fn stamps_are_read_without_a_subscriber() {
    let folder = tempfile::tempdir().unwrap();
    let mut publisher = Publisher::start(folder.path(), "imu", 100, true);
    let mut delay = Tool::start(folder.path(), &["delay", "imu", "--stamp", "stamp_ns"]);
    // Each of their payloads is soon overwritten, so some stamps may be gone.
    let mut line = Value::Null;
    for _ in 0..100 {
        publisher.publish(1, 0);
        line = delay.until("a line", |_| true);
    }
    assert!(line["samples"].as_u64().unwrap() > 0, "{line}");
    assert!(line["publish_to_wake_p50_us"].is_null(), "{line}");
    assert_eq!(line["stamp_clock"], "monotonic");
    drop(delay);
    let mut wrong = start(&mut tool(folder.path(), &["delay", "imu", "--stamp", "stamp"]));
    let status = wait_for("the error", || {
        publisher.publish(1, 0);
        wrong.try_wait().unwrap()
    });
    let mut text = String::new();
    wrong.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(status.code(), Some(1), "{text}");
    assert!(text.contains("stamp_ns"), "it names the field that there is: {text}");
}

#[test]
fn a_time_without_a_sample_ends_it() {
    let folder = tempfile::tempdir().unwrap();
    let _publisher = Publisher::start(folder.path(), "camera/left", 8, true);
    let quiet = finish(&mut tool(folder.path(), &["hz", "camera/left", "--timeout", "100ms"]));
    assert_eq!(quiet.status.code(), Some(3), "{}", complaint(&quiet));
    assert!(complaint(&quiet).contains("no sample of camera/left came"));
    for wrong in [&["hz"][..], &["hz", "x", "--interval", "0"], &["hz", "x", "--count", "0"]] {
        assert_eq!(finish(&mut tool(folder.path(), wrong)).status.code(), Some(2), "{wrong:?}");
    }
}

#[test]
fn topics_that_are_not_there_yet_are_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let node = Node::builder("test").runtime_dir(folder.path()).open().unwrap();
    let tools = [&["hz"][..], &["bw"], &["delay", "--subscribe"]].map(|words| {
        let command = &mut tool(folder.path(), words);
        start(command.args(["later/*", "--wait", "-n", "1", "--json", "--interval", "20ms"]))
    });
    wait_for("the tools to look", || {
        let nodes = node.graph().unwrap().nodes;
        (nodes.iter().filter(|it| it.name.starts_with("myelin topic")).count() == 3).then_some(())
    });
    let _publisher = Publisher::start(folder.path(), "later/imu", 8, true);
    for tool in tools {
        let output = tool.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", complaint(&output));
        let line: Value =
            serde_json::from_slice(output.stdout.split(|it| *it == b'\n').next().unwrap()).unwrap();
        assert_eq!(line["topic"], "later/imu");
    }
}

#[test]
fn waiting_for_a_topic_costs_hardly_any_cpu() {
    let folder = tempfile::tempdir().unwrap();
    let _node = Node::builder("test").runtime_dir(folder.path()).open().unwrap();
    let tools = [&["hz"][..], &["bw"], &["delay"]].map(|words| {
        let command = &mut tool(folder.path(), words);
        start(command.args(["later", "--wait", "--interval", "50ms", "--duration", "1s"]))
    });
    for tool in tools {
        let (mut status, mut usage) = (0, std::mem::MaybeUninit::<libc::rusage>::zeroed());
        let pid = tool.id() as i32;
        // SAFETY: the child is ours, nobody else waits for it, and both places are written to.
        assert_eq!(unsafe { libc::wait4(pid, &mut status, 0, usage.as_mut_ptr()) }, pid);
        // SAFETY: zeroed, and written by `wait4`.
        let usage = unsafe { usage.assume_init() };
        let cpu_ms =
            [usage.ru_utime, usage.ru_stime].map(|it| it.tv_sec * 1_000 + it.tv_usec / 1_000);
        assert_eq!(libc::WEXITSTATUS(status), 0);
        assert!(
            cpu_ms.iter().sum::<i64>() < 500,
            "of a second in which nothing came: {cpu_ms:?} ms"
        );
    }
}

#[test]
fn once_a_count_and_a_duration_end_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut publisher = Publisher::start(folder.path(), "imu", 100, true);
    publisher.publish(10, 0);
    let lines = |arguments: &[&str]| {
        let output = finish(tool(folder.path(), arguments).args(["--interval", "10ms"]));
        assert_eq!(output.status.code(), Some(0), "{}", complaint(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(lines(&["hz", "imu", "--once", "--json"]).lines().count(), 1);
    let counted = lines(&["hz", "imu", "--count", "3", "--json"]);
    assert_eq!(counted.lines().count(), 3 + 1, "three lines and the summary: {counted}");
    let text = lines(&["hz", "imu", "--duration", "50ms"]);
    assert!(text.starts_with("topic") && text.contains("\nsummary:\n"), "{text}");
}

/// A terminal of 40 columns, and its other end.
fn terminal() -> (std::fs::File, OwnedFd) {
    let size = libc::winsize { ws_row: 24, ws_col: 40, ws_xpixel: 0, ws_ypixel: 0 };
    let (mut master, mut slave) = (0, 0);
    let null = std::ptr::null_mut();
    // SAFETY: openpty writes two descriptors, and reads a size.
    let done = unsafe { libc::openpty(&mut master, &mut slave, null, null.cast(), &size) };
    assert_eq!(done, 0);
    // SAFETY: both are new, and belong to nobody else.
    unsafe { (std::fs::File::from_raw_fd(master), OwnedFd::from_raw_fd(slave)) }
}

#[test]
fn a_terminal_of_40_columns_is_drawn_in_place_and_a_dumb_one_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let topic = "a/topic/with/quite/a/long/name";
    let mut publisher = Publisher::start(folder.path(), topic, 100, true);
    publisher.publish(10, 0);
    for (kind, is_in_place) in [("xterm", true), ("dumb", false)] {
        let (mut master, slave) = terminal();
        let mut command = tool(folder.path(), &["hz", topic, "--interval", "10ms", "-n", "5"]);
        command.env("TERM", kind).stdout(Stdio::from(slave));
        let mut child = command.spawn().unwrap();
        drop(command); // it has the other end
        let mut raw = Vec::new();
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = master.read(&mut buffer) {
            raw.extend_from_slice(&buffer[..count]);
        }
        assert_eq!(child.wait().unwrap().code(), Some(0));
        let text = String::from_utf8(raw.clone()).unwrap();
        assert_eq!(text.contains('\x1b'), is_in_place, "{text:?}");
        let mut screen = vt100::Parser::new(24.try_into().unwrap(), 40.try_into().unwrap(), 0);
        screen.process(&raw);
        let seen = screen.screen().contents();
        let begins = seen.lines().filter(|line| line.starts_with("a/topic")).count();
        assert_eq!(begins, if is_in_place { 2 } else { 6 }, "reports and the summary: {seen}");
        let mut lines = text.split("\r\n").map(|line| line.trim_start_matches(is_of_escape));
        assert!(lines.all(|line| line.chars().count() <= 40), "{text:?}");
    }
}

fn is_of_escape(it: char) -> bool {
    matches!(it, '\x1b' | '[' | '0'..='9' | 'A' | 'J' | '\r')
}
