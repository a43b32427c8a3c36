//! `myelin play` with real subscribers, as text, and on a pseudo-terminal.

use std::path::{Path, PathBuf};
use std::time::Duration;

use myelin::{Node, Subscriber};
use myelin_bag::{MessageHead, Options, Schema, TopicFormat, Writer};
use serde_json::Value as Json;

use crate::support::pty::Session;
use crate::support::{complaint, finish, signal, start, wait_for};
use crate::topic::Domain;

/// A file with a number each 100 ms from 1 s on, on the topic `number`, and one message on `word`.
fn recording(folder: &Path, count: u64) -> PathBuf {
    let path = folder.join("run.mcap");
    let mut writer = Writer::create(&path, Options::default()).unwrap();
    let mut add = |name: &str, layout: &str| {
        let format = TopicFormat::new(&Schema::layout(layout));
        let schema = writer.add_schema(&format.schema().as_schema()).unwrap();
        (writer.add_channel(&format.channel(name, schema)).unwrap(), format)
    };
    let (number, numbers) = add("number", "u64");
    let (word, words) = add("word", "[u8]");
    let head = |channel, ns| {
        let (log_ns, publish_ns) = (ns, ns);
        MessageHead { channel, sequence: 0, log_ns, publish_ns }
    };
    let mut scratch = Vec::new();
    writer.write(&head(word, 1_000_000_000), &words.message(b"hi", &mut scratch)).unwrap();
    for at in 0..count {
        let sample = at.to_ne_bytes();
        let message = numbers.message(&sample, &mut scratch);
        writer.write(&head(number, 1_000_000_000 + at * 100_000_000), &message).unwrap();
    }
    writer.finish().unwrap();
    path
}

fn numbers(node: &Node, name: &str) -> Subscriber<u64> {
    node.topic::<u64>(name).depth(256).subscriber().unwrap()
}

fn next(subscriber: &mut Subscriber<u64>) -> u64 {
    **subscriber.receive(Duration::from_secs(60)).unwrap().as_ref().expect("a sample")
}

#[test]
fn a_recording_is_published_and_summed_up() {
    let domain = Domain::new();
    let folder = tempfile::tempdir().unwrap();
    let path = recording(folder.path(), 20);
    let node = domain.node("robot");
    let mut subscriber = numbers(&node, "renamed");
    let path = path.to_str().unwrap();
    let words = ["play", path, "--rate", "1000", "--remap", "number:=renamed", "--json"];
    let json: Json = serde_json::from_str(&domain.says(&words)).unwrap();
    assert_eq!((&json["messages"], &json["topics"]), (&21.into(), &2.into()), "{json}");
    assert_eq!((&json["is_complete"], &json["repeats"]), (&true.into(), &0.into()), "{json}");
    assert!(json["lateness_us"]["p99"].as_f64() >= json["lateness_us"]["p50"].as_f64(), "{json}");
    assert_eq!(
        (0..20).map(|_| next(&mut subscriber)).collect::<Vec<_>>(),
        (0..20).collect::<Vec<_>>()
    );

    let words = ["play", path, "-r", "x1000", "--start", "0.5s", "--end", "@1.8", "-x", "word"];
    let output = finish(&mut domain.myelin(&words));
    assert_eq!(output.status.code(), Some(0), "{}", complaint(&output));
    assert!(output.stdout.is_empty());
    let said = complaint(&output);
    assert!(
        said.starts_with("3 messages of 1 topic in ") && said.contains("late by p50"),
        "{said}"
    );
}

#[test]
fn mistakes_are_named_in_one_line() {
    let domain = Domain::new();
    let folder = tempfile::tempdir().unwrap();
    let path = recording(folder.path(), 2);
    let path = path.to_str().unwrap();
    let text = folder.path().join("notes.mcap");
    std::fs::write(&text, "no recording").unwrap();
    let empty = folder.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let none = folder.path().join("none.mcap");
    for (words, status, said) in [
        (
            &["--topic", "nubmer", path][..],
            3,
            "there is no topic \"nubmer\" in the recording; did you mean \"number\"?",
        ),
        (&["--topic", "x/*", path], 3, "no topic matches \"x/*\" in the recording"),
        (&["--exclude", "*", path], 3, "nothing is left to be played"),
        (&["--wait-for", "wrod", path], 3, "did you mean \"word\"?"),
        (&["--start", "1h", path], 2, "--start is at or behind the end: the recording lasts 0.1 s"),
        (&["--start", "soon", path], 2, "is not a time"),
        (&["--rate", "0", path], 2, "use a number above 0"),
        (&["--clock", "inf", path], 2, "use a number of Hz above 0"),
        (&["--remap", "a:b", path], 2, "FROM:=TO"),
        (&[], 2, "required"),
        (&[none.to_str().unwrap()], 3, "none.mcap: "),
        (&[empty.to_str().unwrap()], 3, "there is no file *.mcap in this folder"),
        (&[text.to_str().unwrap()], 1, "notes.mcap: this is not an MCAP file"),
    ] {
        let output = finish(&mut domain.myelin(&[&["play"], words].concat()));
        let complaint = complaint(&output);
        assert_eq!(output.status.code(), Some(status), "{words:?}: {complaint}");
        assert!(complaint.contains(said), "{words:?}: {complaint}");
        assert!(output.stdout.is_empty() && !complaint.contains("panicked"), "{complaint}");
    }
}

#[test]
fn a_broken_file_is_played_as_far_as_it_goes() {
    let domain = Domain::new();
    let folder = tempfile::tempdir().unwrap();
    let path = recording(folder.path(), 500);
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.set_len(file.metadata().unwrap().len() / 3).unwrap();
    let output =
        finish(&mut domain.myelin(&["play", path.to_str().unwrap(), "-r", "1e6", "--json"]));
    assert_eq!(output.status.code(), Some(0), "{}", complaint(&output));
    assert!(complaint(&output).contains("run.mcap: the file is broken:"), "{}", complaint(&output));
    let json: Json = serde_json::from_slice(&output.stdout).unwrap();
    assert!((1..500).contains(&json["messages"].as_u64().unwrap()), "{json}");
}

#[test]
fn an_endless_one_waits_for_its_subscriber_and_ends_with_ctrl_c() {
    let domain = Domain::new();
    let folder = tempfile::tempdir().unwrap();
    let path = recording(folder.path(), 5);
    let path = path.to_str().unwrap();
    let words = ["play", path, "--loop", "-r", "100", "--wait-for", "number", "--json"];
    let process = start(&mut domain.myelin(&words));
    let node = domain.node("robot");
    let mut subscriber = numbers(&node, "number");
    let seen: Vec<u64> = (0..12).map(|_| next(&mut subscriber)).collect();
    assert_eq!(seen, [0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1]);
    signal(process.id(), libc::SIGINT);
    let output = process.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", complaint(&output));
    let json: Json = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["is_complete"], false, "{json}");
    assert!(json["repeats"].as_u64() >= Some(2), "{json}");
}

#[test]
fn keys_pause_step_seek_and_change_the_rate() {
    let domain = Domain::new();
    let folder = tempfile::tempdir().unwrap();
    let path = recording(folder.path(), 300);
    let node = domain.node("robot");
    let mut subscriber = numbers(&node, "number");
    let mut command = domain.myelin(&["play", path.to_str().unwrap(), "--paused", "-t", "number"]);
    let mut session = Session::start(command.env("TERM", "xterm"), 24, 80);
    session.wait("the begin", |it| it.contains("paused  0.0/29.9 s x1"));
    session.press("s");
    assert_eq!(next(&mut subscriber), 0);
    session.press("\x1b[C"); // right
    assert_eq!(next(&mut subscriber), 1);
    session.wait("the second message", |it| it.contains("0.1/29.9 s") && it.contains("2 messages"));
    session.press("25");
    session.wait("what is typed", |it| it.contains("go to 25_ s"));
    session.press("\r");
    session.wait("the place", |it| it.contains("25.0/29.9 s"));
    session.press("s");
    assert_eq!(next(&mut subscriber), 250);
    session.press("\x1b[D"); // left
    session.wait("five seconds before", |it| it.contains("20.0/29.9 s"));
    session.press("s");
    assert_eq!(next(&mut subscriber), 200);
    session.press("++");
    session.wait("the rate", |it| it.contains(" x4 "));
    session.press("-");
    session.wait("the rate", |it| it.contains(" x2 "));
    session.press(" ");
    session.wait("it to play", |it| it.contains("playing"));
    assert_eq!(next(&mut subscriber), 201);
    session.press(" ");
    session.wait("it to pause", |it| it.contains("paused"));
    session.press("q");
    assert_eq!(session.finish_with("messages of 1 topic").code(), Some(0));
}

#[test]
fn a_narrow_terminal_has_one_line_and_is_as_before_after_ctrl_c() {
    let domain = Domain::new();
    let folder = tempfile::tempdir().unwrap();
    let path = recording(folder.path(), 300);
    let mut command = domain.myelin(&["play", path.to_str().unwrap(), "--paused"]);
    let mut session = Session::start(command.env("TERM", "xterm"), 10, 40);
    let text = session.wait("the begin", |it| it.contains("paused  0.0/29.9 s x1"));
    assert_eq!(text.trim_end().lines().count(), 1, "{text}");
    session.press("\x03");
    assert_eq!(session.finish().code(), Some(0));
}

#[test]
fn a_simple_terminal_gets_no_line() {
    let domain = Domain::new();
    let folder = tempfile::tempdir().unwrap();
    let path = recording(folder.path(), 3);
    let mut command = domain.myelin(&["play", path.to_str().unwrap(), "-r", "1000"]);
    let mut session = Session::start(command.env("TERM", "dumb"), 10, 80);
    assert_eq!(session.finish_with("late by").code(), Some(0));
    assert!(!session.raw().contains('\x1b'), "{:?}", session.raw());
}

#[test]
fn clocks_follow() {
    let domain = Domain::new();
    let folder = tempfile::tempdir().unwrap();
    let path = recording(folder.path(), 20);
    let clock = domain.node("robot").simulated_clock().unwrap();
    let words = ["play", path.to_str().unwrap(), "-r", "10", "--clock", "1000", "--paused"];
    let process = start(&mut domain.myelin(&words));
    wait_for("the time", || (clock.now() == 1_000_000_000).then_some(()));
    signal(process.id(), libc::SIGTERM);
    assert_eq!(process.wait_with_output().unwrap().status.code(), Some(0));
}
