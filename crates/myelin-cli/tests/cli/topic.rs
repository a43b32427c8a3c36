//! `myelin topic` on a running robot: nodes of this test, and the command as the user starts it.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use myelin::{Node, PlainData};
use serde_json::Value as Json;
use tempfile::TempDir;

use crate::support::{complaint, finish, myelin, signal, wait_for};

#[derive(Clone, Copy, PlainData)]
#[repr(C)]
struct Imu {
    stamp_ns: u64,
    acceleration: [f64; 3],
}

#[derive(Clone, Copy, PlainData)]
#[repr(C)]
struct Header {
    width: u32,
    height: u32,
}

/// A domain of a test's own.
pub struct Domain(TempDir);

impl Domain {
    pub fn new() -> Domain {
        Domain(tempfile::tempdir().unwrap())
    }

    pub fn node(&self, name: &str) -> Node {
        Node::builder(name).runtime_dir(self.0.path()).open().unwrap()
    }

    /// `myelin …` in this domain.
    pub fn myelin(&self, words: &[&str]) -> Command {
        let mut command = myelin(words);
        command.env("MYELIN_RUNTIME_DIR", self.0.path());
        for variable in ["MYELIN_DOMAIN", "MYELIN_NETWORK", "LC_ALL", "LANG"] {
            command.env_remove(variable);
        }
        command
    }

    /// Its output; it has to end well.
    pub fn says(&self, words: &[&str]) -> String {
        let output = finish(&mut self.myelin(words));
        assert_eq!(output.status.code(), Some(0), "{words:?}: {}", complaint(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    /// The one line of complaint with which it ends, and its status.
    fn refuses(&self, words: &[&str]) -> (i32, String) {
        let output = finish(&mut self.myelin(words));
        let complaint = complaint(&output);
        assert_eq!(complaint.trim_end().lines().count(), 1, "{words:?}: {complaint}");
        (output.status.code().unwrap(), complaint)
    }

    fn start(&self, words: &[&str]) -> Running {
        let mut command = self.myelin(words);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Running { child, lines }
    }
}

/// A command that runs; killed when dropped.
struct Running {
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
}

impl Running {
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// After Ctrl-C: the rest of its output, and its complaints; it has to end well.
    fn interrupt(mut self) -> (String, String) {
        signal(self.child.id(), libc::SIGINT);
        let (mut output, mut complaints) = (String::new(), String::new());
        self.lines.read_to_string(&mut output).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut complaints).unwrap();
        let status = self.child.wait().unwrap();
        assert_eq!(status.code(), Some(0), "{complaints}");
        (output, complaints)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn json_lines(text: &str) -> Vec<Json> {
    text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

const WATCHDOG: Duration = Duration::from_secs(60);
const STRING: &[u8] = b"string data\n";

/// As `rmw_myelin` makes them.
fn chatter(node: &Node) -> myelin::Topic<[u8]> {
    let topic = node.topic::<[u8]>("rt/chatter").dds_cdr("std_msgs::msg::dds_::String_");
    topic.schema("ros2msg", STRING).transient_local(1)
}

#[test]
fn topics_are_listed_and_described() {
    let domain = Domain::new();
    let node = domain.node("driver");
    let imu = node.topic::<Imu>("imu/front").publisher().unwrap();
    imu.publish_copy(&Imu { stamp_ns: 1, acceleration: [0.0; 3] }).unwrap();
    let _imu = node.topic::<Imu>("imu/front").subscriber().unwrap();
    let other = domain.node("listener");
    // Both sides open at once, so that the types are not known before.
    let _chatter = (chatter(&node).publisher().unwrap(), chatter(&other).subscriber().unwrap());
    let asks_for_more = chatter(&other).deadline(Duration::from_millis(5));
    let asks_for_more = asks_for_more.matching(myelin::Matching::RequestedOffered);
    let _refused = asks_for_more.subscriber().unwrap();
    let _service = node.service::<f64, f64>("square").unwrap();

    let table = domain.says(&["topic", "list"]);
    let rows: Vec<Vec<&str>> = table.lines().map(|it| it.split_whitespace().collect()).collect();
    let expected: [&[&str]; 3] = [
        &["topic", "pub", "sub", "refused", "type"],
        &["/chatter", "1", "2", "1", "std_msgs/msg/String"],
        &["imu/front", "1", "1", "0", "Imu"],
    ];
    assert_eq!(rows, expected, "{table}");
    assert!(domain.says(&["topic", "list", "--all"]).contains("square"));
    let one = json_lines(&domain.says(&["topic", "list", "--json", "chatter"]));
    assert_eq!(one.len(), 1);
    assert_eq!(
        (&one[0]["topic"], &one[0]["wire_name"]),
        (&"/chatter".into(), &"rt/chatter".into())
    );
    assert_eq!((&one[0]["subscribers"], &one[0]["refused"]), (&2.into(), &1.into()));
    assert_eq!(domain.says(&["topic", "list", "imu/*"]).lines().count(), 2);

    let text = domain.says(&["topic", "info", "imu/front"]);
    for part in
        ["stamp_ns: u64", "acceleration: [f64; 3]", "1 publisher", "published 1", "matched driver"]
    {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }
    let text = domain.says(&["topic", "info", "chatter"]);
    for part in ["/chatter", "ros2msg", "data: string", "deadline 5 ms", "refused listener: "] {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }
    let info = json_lines(&domain.says(&["topic", "info", "chatter", "imu/*", "--json"]));
    assert_eq!(info.len(), 2);
    assert_eq!(info[1]["publishers"][0]["published"], 1);
    assert_eq!(info[1]["publishers"][0]["pid"], std::process::id());
    let states: Vec<&str> = info[0]["publishers"][0]["matches"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["state"].as_str().unwrap())
        .collect();
    assert!(states.contains(&"matched") && states.contains(&"refused"), "{states:?}");
}

#[test]
fn a_stopped_node_is_named() {
    let domain = Domain::new();
    let words = ["topic", "pub", "speed", "1", "--type", "f64", "--rate", "100", "--wait", "0"];
    let publisher = domain.start(&words);
    domain.says(&["topic", "echo", "speed", "--wait", "--once"]);
    signal(publisher.child.id(), libc::SIGSTOP);
    wait_for("the stop of all threads", || is_stopped(publisher.child.id()).then_some(()));
    let output = finish(&mut domain.myelin(&["topic", "list"]));
    assert_eq!(output.status.code(), Some(0), "{}", complaint(&output));
    let process = format!("(process {}) does not answer", publisher.child.id());
    assert!(complaint(&output).contains(&process), "{}", complaint(&output));
}

fn is_stopped(pid: u32) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    threads.flatten().all(|thread| {
        let state = std::fs::read_to_string(thread.path().join("stat")).unwrap();
        state.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('T'))
    })
}

#[test]
fn samples_of_every_kind_are_echoed() {
    let domain = Domain::new();
    let node = domain.node("driver");
    let imu = node.topic::<Imu>("imu").transient_local(1).publisher().unwrap();
    imu.publish_copy(&Imu { stamp_ns: 7, acceleration: [0.0, -1.5, 9.81] }).unwrap();
    let image = node.topic::<(Header, [u16])>("image").transient_local(1).publisher().unwrap();
    let mut loan = image.loan(300).unwrap();
    *loan.header_mut() = Header { width: 20, height: 15 };
    loan.slice_mut().fill(7);
    loan.publish().unwrap();
    let string = chatter(&node).publisher().unwrap();
    string.publish_copy(b"\0\x01\0\0\x08\0\0\0hi \x1b[2J\0").unwrap();
    let bytes = node.topic::<[u8]>("bytes").transient_local(1).publisher().unwrap();
    bytes.publish_copy(b"{\"a\": {\"b\": [1, 2.5]}}").unwrap();

    let echo = |words: &[&str]| domain.says(&[&["topic", "echo", "--once"], words].concat());
    assert_eq!(echo(&["imu"]), "stamp_ns: 7\nacceleration: [0.0, -1.5, 9.81]\n---\n");
    assert_eq!(echo(&["imu", "--field", "acceleration[2]"]), "9.81\n");
    let two = echo(&["imu", "-f", "stamp_ns", "-f", "acceleration[1]"]);
    assert_eq!(two, "stamp_ns: 7  acceleration[1]: -1.5\n");
    let csv = echo(&["imu", "--csv"]);
    assert_eq!(csv, "published_ns,sequence,stamp_ns,acceleration\n,0,7,\"[0.0, -1.5, 9.81]\"\n");
    let json = json_lines(&echo(&["imu", "--json"]));
    assert_eq!(json[0]["value"]["acceleration"][1], -1.5);
    assert_eq!((&json[0]["topic"], &json[0]["missed_before"]), (&"imu".into(), &0.into()));
    let json = json_lines(&echo(&["imu", "--json", "--field", "stamp_ns"]));
    assert_eq!(json[0]["fields"]["stamp_ns"], 7);

    let text = echo(&["image"]);
    assert!(text.contains("width: 20") && text.contains("{\"...\": 300}"), "{text}");
    assert!(!echo(&["image", "--full"]).contains("..."));
    // A terminal obeys nothing of it.
    assert_eq!(echo(&["chatter"]), "data: \"hi \\u001b[2J\"\n---\n");
    assert_eq!(echo(&["/chatter", "--subscribe", "--field", "data"]), "\"hi \\u001b[2J\"\n");
    assert!(echo(&["bytes"]).starts_with("0000  7b 22 61"));
    assert_eq!(echo(&["bytes", "--as", "text"]), "{\"a\": {\"b\": [1, 2.5]}}\n---\n");
    assert_eq!(echo(&["bytes", "--as", "json", "--field", "a.b[1]"]), "2.5\n");
    let all = echo(&["*"]);
    for part in ["# /chatter", "# imu", "# image", "# bytes"] {
        assert!(all.contains(part), "no {part} in\n{all}");
    }
}

#[test]
fn a_schema_says_that_samples_are_json() {
    let domain = Domain::new();
    let topic = domain.node("planner").topic::<[u8]>("state").schema("jsonschema", b"{}");
    let publisher = topic.transient_local(1).publisher().unwrap();
    publisher.publish_copy(b"{\"mode\": \"auto\", \"speed\": 2}").unwrap();
    let echo =
        |words: &[&str]| domain.says(&[&["topic", "echo", "--once", "state"], words].concat());
    assert_eq!(echo(&[]), "{\"mode\":\"auto\",\"speed\":2}\n---\n");
    assert_eq!(echo(&["--filter", "mode == 'auto' && speed >= 2", "-f", "speed"]), "2\n");
}

#[test]
fn a_descriptor_says_how_messages_of_protocol_buffers_are_read() {
    // A FileDescriptorSet: fields of Protocol Buffers, each with its number and its bytes.
    let part = |number: u8, body: &[u8]| [&[number << 3 | 2, body.len() as u8], body].concat();
    let field = |name: &str, number: u8, label: u8, ty: u8| {
        let numbers = [3 << 3, number, 4 << 3, label, 5 << 3, ty];
        part(2, &[&part(1, name.as_bytes())[..], &numbers].concat())
    };
    let (optional, repeated, float, uint32) = (1, 3, 2, 13);
    let fields = [field("voltage", 1, optional, float), field("cells", 2, repeated, uint32)];
    let message = [part(1, b"Battery"), fields.concat()].concat();
    let file = [part(1, b"battery.proto"), part(2, b"robot"), part(4, &message)].concat();
    let set = part(1, &[file, part(12, b"proto3")].concat());

    let domain = Domain::new();
    let node = domain.node("driver");
    let topic = node.topic::<[u8]>("battery").dds_cdr("robot.Battery").schema("protobuf", &set);
    let topic = topic.transient_local(1);
    let publisher = topic.publisher().unwrap();
    publisher.publish_copy(b"\x0d\0\0\xc0\x3f\x12\x02\x03\x04").unwrap();
    let echo =
        |words: &[&str]| domain.says(&[&["topic", "echo", "--once", "battery"], words].concat());
    let line = &json_lines(&echo(&["--json"]))[0];
    assert_eq!(line["value"], serde_json::json!({ "voltage": 1.5, "cells": [3, 4] }));
    assert_eq!(echo(&["--filter", "voltage > 1", "-f", "cells[1]"]), "4\n");
    let text = domain.says(&["topic", "info", "battery"]);
    for part in ["robot.Battery  (protobuf", "voltage: float", "cells: [uint32]"] {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }
    drop(publisher);
    let mut subscriber = topic.subscriber().unwrap();
    domain.says(&["topic", "pub", "battery", "{voltage: 2}"]);
    let sample = subscriber.receive(WATCHDOG).unwrap().expect("it was published");
    assert_eq!(&sample[..], b"\x0d\0\0\0\x40");
    let (status, complaint) = domain.refuses(&["topic", "pub", "battery", "{volts: 2}"]);
    assert!(status == 2 && complaint.contains("volts"), "{complaint}");
}

/// The publisher dies, comes back, and comes back with another type.
#[test]
fn a_publisher_is_followed_through_death_and_change() {
    let domain = Domain::new();
    let publish = |value: &str, ty: &str| {
        domain
            .start(&["topic", "pub", "speed", value, "--type", ty, "--rate", "200", "--wait", "0"])
    };
    let first = publish("1.5", "f64");
    let mut echo = domain.start(&["topic", "echo", "speed", "--wait"]);
    assert_eq!((echo.line(), echo.line()), ("1.5".into(), "---".into()));
    first.kill();
    let second = publish("2.5", "f64");
    while echo.line() != "2.5" {}
    second.kill();
    let third = publish("{x: 3}", "Speed{x: u32 @0} 4");
    while echo.line() != "x: 3" {}
    let (said, _) = third.interrupt();
    assert!(said.starts_with("speed: published "), "{said}");
    let (_, complaints) = echo.interrupt();
    assert!(complaints.contains("speed: its type was f64, and is now Speed"), "{complaints}");

    // What was asked for is not in the new type.
    let first = publish("{x: 3}", "Speed{x: u32 @0} 4");
    let mut echo = domain.start(&["topic", "echo", "speed", "--field", "x", "--wait"]);
    assert_eq!(echo.line(), "3");
    first.kill();
    let _second = publish("{y: 3}", "Speed{y: u32 @0} 4");
    let status = wait_for("the end of echo", || echo.child.try_wait().unwrap());
    let mut complaints = String::new();
    echo.child.stderr.take().unwrap().read_to_string(&mut complaints).unwrap();
    assert_eq!(status.code(), Some(1), "{complaints}");
    assert!(complaints.contains("there is no field \"x\""), "{complaints}");
}

#[test]
fn samples_are_filtered_counted_and_thinned() {
    let domain = Domain::new();
    let mut publisher =
        domain.start(&["topic", "pub", "count", "-", "--type", "u64", "--wait", "0"]);
    let mut input = publisher.child.stdin.take().unwrap();
    let mut echo = domain.start(&[
        "topic",
        "echo",
        "count",
        "--wait",
        "--filter",
        "value_of > 1",
        "--timeout",
        "20s",
    ]);
    // A scalar has no fields.
    writeln!(input, "1").unwrap();
    let status = wait_for("the end of echo", || echo.child.try_wait().unwrap());
    let mut complaints = String::new();
    echo.child.stderr.take().unwrap().read_to_string(&mut complaints).unwrap();
    assert_eq!(status.code(), Some(2), "{complaints}");
    assert!(complaints.contains("filter, character 1"), "{complaints}");
    drop(input);
    assert_eq!(publisher.line(), "count: published 1 sample to 0 subscribers");

    let node = domain.node("driver");
    let publisher = node.topic::<Imu>("imu").depth(1000).publisher().unwrap();
    let mut echo = domain.start(&[
        "topic",
        "echo",
        "imu",
        "-n",
        "3",
        "-f",
        "stamp_ns",
        "--filter",
        "acceleration[0] > 1.5",
    ]);
    let mut every = domain.start(&["topic", "echo", "imu", "--every", "1h", "--json"]);
    let publish = |stamp_ns: u64, x: f64| {
        publisher.publish_copy(&Imu { stamp_ns, acceleration: [x, 0.0, 0.0] }).unwrap();
    };
    // Until both look; nobody counts as matched.
    let mut sent = 0;
    let status = wait_for("the end of echo", || {
        publish(sent, (sent % 4) as f64);
        sent += 1;
        echo.child.try_wait().unwrap()
    });
    assert_eq!(status.code(), Some(0));
    let stamps: Vec<u64> = (0..3).map(|_| echo.line().parse().unwrap()).collect();
    assert!(stamps.iter().all(|it| it % 4 >= 2), "{stamps:?}");
    assert!(echo.line().is_empty());
    let first: Json = serde_json::from_str(&every.line()).unwrap();
    assert!(first["value"]["stamp_ns"].is_number());
    let (rest, _) = every.interrupt();
    assert_eq!(rest, "");
}

/// Images whose memory is used again before anybody looks.
#[test]
fn payloads_that_are_gone_are_counted() {
    let domain = Domain::new();
    let node = domain.node("camera");
    let publisher = node.topic::<[u8]>("image").publisher().unwrap();
    let mut echo = domain.start(&["topic", "echo", "image", "--json"]);
    let (sender, seen) = std::sync::mpsc::channel();
    let mut lines = std::mem::replace(&mut echo.lines, unread());
    std::thread::spawn(move || {
        let mut line = String::new();
        while lines.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
            let _ = sender.send(std::mem::take(&mut line));
        }
    });
    let image = vec![7; 4096];
    // Bursts of which the ring has only the end, until a whole one is seen.
    let seen: Vec<Json> = wait_for("an image behind missing ones", || {
        for _ in 0..20 {
            publisher.publish_copy(&image).unwrap();
        }
        let line = seen.recv_timeout(Duration::from_millis(20)).ok()?;
        let json: Json = serde_json::from_str(&line).unwrap();
        (json["missed_before"].as_u64() > Some(0)).then(|| vec![json])
    });
    assert_eq!(seen[0]["value"].as_array().unwrap().len(), 4096);
    let (_, complaints) = echo.interrupt();
    assert!(complaints.contains("image: "), "{complaints}");
    assert!(complaints.contains("--subscribe") || complaints.contains("missed"), "{complaints}");
}

/// A pipe whose other end is closed.
fn unread() -> BufReader<std::process::ChildStdout> {
    let child = Command::new("true").stdout(Stdio::piped()).spawn();
    let mut child = child.unwrap();
    let output = child.stdout.take().unwrap();
    child.wait().unwrap();
    BufReader::new(output)
}

#[test]
fn values_are_published_and_checked() {
    let domain = Domain::new();
    let node = domain.node("listener");
    let mut imu =
        node.topic::<Imu>("imu").depth(64).reliable(Duration::from_secs(60)).subscriber().unwrap();
    let said = domain.says(&["topic", "pub", "imu", "{stamp_ns: 5, acceleration: [1, 2, 3]}"]);
    assert_eq!(said, "imu: published 1 sample to 1 subscriber\n");
    let sample = imu.receive(WATCHDOG).unwrap().expect("it waits for the match");
    assert_eq!((sample.stamp_ns, sample.acceleration), (5, [1.0, 2.0, 3.0]));
    drop(sample);

    let file = domain.0.path().join("values.yaml");
    std::fs::write(&file, "stamp_ns: 1\n---\nstamp_ns: 2\n").unwrap();
    let at_file = format!("@{}", file.display());
    let said =
        domain.says(&["topic", "pub", "imu", &at_file, "--count", "3", "--rate", "500", "--json"]);
    assert_eq!(json_lines(&said)[0]["published"], 3);
    let mut stamps = |count: usize| -> Vec<u64> {
        (0..count).map(|_| imu.receive(WATCHDOG).unwrap().expect("published").stamp_ns).collect()
    };
    assert_eq!(stamps(3), [1, 2, 1]);
    let mut publisher = domain.start(&["topic", "pub", "imu", "-"]);
    let mut input = publisher.child.stdin.take().unwrap();
    input.write_all(b"{\"stamp_ns\": 3}\n\n{stamp_ns: 4}\n").unwrap();
    drop(input);
    assert_eq!(publisher.line(), "imu: published 2 samples to 1 subscriber");
    assert_eq!(stamps(2), [3, 4]);

    // As ROS 2 nodes ask.
    let reliable = chatter(&node).reliable_keep_last().matching(myelin::Matching::RequestedOffered);
    let mut strings = reliable.subscriber().unwrap();
    domain.says(&["topic", "pub", "chatter", "data: hello"]);
    assert_eq!(
        &strings.receive(WATCHDOG).unwrap().unwrap()[..14],
        b"\0\x01\0\x02\x06\0\0\0hello\0"
    );

    for (words, status, parts) in [
        (
            &["imu", "{stamp: 5}"][..],
            2,
            &["no field \"stamp\"", "did you mean \"stamp_ns\"", "topic info imu"][..],
        ),
        (
            &["imu", "{acceleration: [1, up, 3]}"],
            2,
            &["acceleration[1]: a f64 is needed, not a string"],
        ),
        (&["imu", "{\"stamp_ns\": "], 2, &["not JSON: EOF"]),
        (&["imu", "@/no/such/file"], 1, &["/no/such/file: No such file"]),
        (&["imuu", "{}"], 3, &["did you mean \"imu\"", "--type"]),
        (&["new", "1", "--type", "Imm"], 2, &["did you mean \"Imu\"", "layout"]),
        (
            &["new", "1", "--type", "f64", "--wait-limit", "50ms"],
            3,
            &["0 of 1 subscriber within", "--wait 0"],
        ),
    ] {
        let (code, complaint) = domain.refuses(&[&["topic", "pub"], words].concat());
        assert_eq!(code, status, "{words:?}: {complaint}");
        for part in parts {
            assert!(complaint.contains(part), "no {part:?} in {complaint}");
        }
    }
    // Of a type that the domain has, on a topic that is new.
    let said =
        domain.says(&["topic", "pub", "imu2", "{stamp_ns: 1}", "--type", "Imu", "--wait", "0"]);
    assert_eq!(said, "imu2: published 1 sample to 0 subscribers\n");
}

#[test]
fn what_an_option_names_and_is_not_there_is_said() {
    let domain = Domain::new();
    let node = domain.node("driver");
    let _imu = node.topic::<Imu>("imu").publisher().unwrap();
    for (words, status, part) in [
        (&["imu", "--filter", "stamp_ns >"][..], 2, "filter, character 11"),
        (&["imu", "--filter", "stamp > 1"], 2, "there are stamp_ns, acceleration"),
        (&["imu", "--field", "acceleration[3]"], 2, "the length is 3"),
        (&["imu", "--timeout", "10ms"], 3, "nothing came within 10ms"),
    ] {
        let (code, complaint) = domain.refuses(&[&["topic", "echo"], words].concat());
        assert_eq!(code, status, "{words:?}: {complaint}");
        assert!(complaint.contains(part), "no {part:?} in {complaint}");
    }
    let empty = finish(&mut domain.myelin(&["topic", "list", "--domain", "9"]));
    assert_eq!((empty.status.code(), &empty.stdout[..]), (Some(0), &b""[..]));
    assert!(complaint(&empty).contains("no topics in domain 9. Nodes"), "{}", complaint(&empty));
}

#[test]
fn a_reader_that_goes_while_nothing_comes_ends_it() {
    let domain = Domain::new();
    let node = domain.node("driver");
    let topic = node.topic::<u64>("count").transient_local(1);
    let publisher = topic.publisher().unwrap();
    publisher.publish_copy(&1).unwrap();
    let mut echo = domain.start(&["topic", "echo", "count"]);
    assert_eq!((echo.line(), echo.line()), ("1".into(), "---".into()));
    echo.lines = unread();
    let status = wait_for("the end of echo", || echo.child.try_wait().unwrap());
    assert_eq!(status.code(), Some(0));
}

#[test]
fn names_complete_from_what_runs() {
    let domain = Domain::new();
    let node = domain.node("driver");
    let _endpoints = (
        node.topic::<Imu>("imu/front").publisher().unwrap(),
        node.topic::<Imu>("imu/rear").publisher().unwrap(),
        chatter(&node).publisher().unwrap(),
        node.service::<f64, f64>("square").unwrap(),
    );
    let complete = |words: &[&str]| -> Vec<String> {
        let mut command = domain.myelin(&[&["--"], words].concat());
        command.env("MYELIN_COMPLETE", "bash").env("_CLAP_IFS", "\n");
        command.env("_CLAP_COMPLETE_INDEX", (words.len() - 1).to_string());
        let output = finish(&mut command);
        assert_eq!(output.status.code(), Some(0), "{}", complaint(&output));
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
    };
    assert_eq!(complete(&["myelin", "topic", "echo", "im"]), ["imu/front", "imu/rear"]);
    assert_eq!(complete(&["myelin", "topic", "info", "/c"]), ["/chatter"]);
    assert_eq!(complete(&["myelin", "topic", "pub", "imu/r"]), ["imu/rear"]);
    assert_eq!(complete(&["myelin", "why", "imu/r"]), ["imu/rear"]);
    assert_eq!(complete(&["myelin", "node", "info", "d"]), ["driver"]);
    assert_eq!(complete(&["myelin", "service", "call", "s"]), ["square"]);
    let fields = complete(&["myelin", "topic", "echo", "imu/rear", "--field", "s"]);
    assert_eq!(fields, ["stamp_ns"]);
    assert_eq!(complete(&["myelin", "topic", "echo", "--domain", "3", "im"]), [""; 0]);

    // In a shell, by the script that packages install.
    let script = "source <(\"$0\" completions bash); COMP_WORDS=(myelin topic echo imu/f); COMP_CWORD=3
        PATH=$(dirname \"$0\"):$PATH; _clap_complete_myelin myelin imu/f echo; printf '%s\\n' \"${COMPREPLY[@]}\"";
    let mut bash = Command::new("bash");
    bash.args(["-c", script, env!("CARGO_BIN_EXE_myelin")]);
    let Ok(output) = bash.env("MYELIN_RUNTIME_DIR", domain.0.path()).output() else {
        println!("left out: bash: not installed");
        return;
    };
    assert_eq!(
        String::from_utf8_lossy(&output.stdout).trim_end(),
        "imu/front",
        "{}",
        complaint(&output)
    );
}
