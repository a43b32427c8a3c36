//! Each mismatch is reported once: on stderr, or only to the program's own `tracing` subscriber.
//! The program is this binary again, in the role of `program`.

#[path = "itself/mod.rs"]
mod itself;

use std::process::{Command, Output};
use std::time::Duration;

use myelin_shm::event::Event;
use myelin_shm::node::{Node, NodeOptions};
use myelin_shm::topic::{PublisherQos, Reliability, SubscriberQos, Topic};
use tracing::field::{Field, Visit};
use tracing::span;

const ROLE: &str = "MYELIN_TEST_ROLE";
const WATCHDOG: Duration = Duration::from_secs(60);

fn run(role: &str) -> (String, String) {
    let mut command: Command = itself::itself();
    command.args(["--exact", "program", "--nocapture"]).env(ROLE, role);
    let Output { status, stdout, stderr } = command.output().unwrap();
    let (stdout, stderr) = (String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap());
    assert!(status.success(), "{stdout}\n{stderr}");
    (stdout, stderr)
}

fn lines<'a>(text: &'a str, beginning: &str) -> Vec<&'a str> {
    text.lines().filter_map(|line| line.strip_prefix(beginning)).collect()
}

/// In the order in which they occur.
fn check(said: &[&str]) {
    let [depth, reliability, transient_local, refused] = said else { panic!("{said:#?}") };
    let settings = "a subscriber (requests a publisher that waits, depth 9, transient local 1) here, \
                    a publisher (does not wait for slow subscribers, depth 2, transient local 0)";
    for line in [depth, reliability, transient_local] {
        assert!(line.contains("topic \"t\"") && line.contains(settings), "{line}");
    }
    assert!(depth.contains("set the publisher's depth to 9"), "{depth}");
    assert!(reliability.contains("make the publisher reliable"), "{reliability}");
    assert!(
        transient_local.contains("set the publisher's transient_local to 1 "),
        "{transient_local}"
    );
    assert!(refused.contains("raise publishers_max"), "{refused}");
    assert!(
        refused.contains("(does not wait for slow subscribers, depth 3, transient local 0)"),
        "{refused}"
    );
}

#[test]
fn a_mismatch_is_reported_once_on_stderr() {
    let (_, stderr) = run("plain");
    check(&lines(&stderr, "myelin: "));
}

#[test]
fn with_a_tracing_subscriber_nothing_is_written_to_stderr() {
    let (stdout, stderr) = run("tracing");
    assert!(lines(&stderr, "myelin: ").is_empty(), "{stderr}");
    check(&lines(&stdout, "WARN myelin "));
}

/// Does nothing when it is run as a test.
#[test]
fn program() {
    let Ok(role) = std::env::var(ROLE) else { return };
    if role == "tracing" {
        tracing::subscriber::set_global_default(Lines).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = Some(folder.path().to_owned());
    let node = Node::open(NodeOptions { runtime_dir: folder, ..NodeOptions::default() }).unwrap();
    let topic = Topic { name: "t".into(), type_name: "T".into(), type_hash: 1 };
    let reliability = Reliability::Reliable;
    let qos = SubscriberQos {
        depth: 9,
        reliability,
        transient_local: 1,
        publishers_max: 1,
        ..Default::default()
    };
    let subscriber = node.subscriber(topic.clone(), qos).unwrap();
    let publisher = |depth| {
        node.publisher(topic.clone(), PublisherQos { depth, ..Default::default() }).unwrap()
    };
    let _first = publisher(2);
    assert!(subscriber.wait_for_match(1, WATCHDOG));
    let second = publisher(3);
    let refused = second.events();
    assert!(matches!(refused[..], [Event::Refused { .. }]), "{refused:?}");
}

/// Writes each event to stdout, on a line of its own.
struct Lines;

impl tracing::Subscriber for Lines {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut line = format!("{} {}", event.metadata().level(), event.metadata().target());
        event.record(&mut Fields(&mut line));
        println!("{line}");
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

struct Fields<'a>(&'a mut String);

impl Visit for Fields<'_> {
    fn record_str(&mut self, _: &Field, value: &str) {
        self.0.push(' ');
        self.0.push_str(value);
    }

    fn record_debug(&mut self, _: &Field, value: &dyn std::fmt::Debug) {
        self.0.push_str(&format!(" {value:?}"));
    }
}
