//! Killed nodes are noticed, and nothing of them is left.

use std::ops::RangeInclusive;
use std::time::{Duration, Instant};
use std::{fs, thread};

use crate::host::Host;
use crate::node::{Node, Rmw, WATCHDOG};
use crate::talk::{numbers, on_a_host};

#[test]
fn a_killed_node_leaves_the_graph() {
    on_a_host("kill::a_killed_node_leaves_the_graph", || {
        let start = |words| Node::start(&Host::Same, Rmw::Myelin, words);
        let watcher = start(&["watch", "watcher"]);
        let bystander = start(&["pub", "bystander", "Imu"]);
        let listener = start(&["sub", "listener", "Imu", "String"]);
        let graph = |line: &str| {
            watcher.wait_for(line, |seen| seen == line);
        };
        for _ in 0..3 {
            let victim = start(&["pub", "victim", "String"]);
            graph("graph bystander,listener,victim,watcher 1");
            numbers(&listener, "String", 5);
            victim.kill();
            graph("graph bystander,listener,watcher 0");
            numbers(&listener, "Imu", 5);
        }
        for node in [listener, bystander, watcher] {
            node.kill();
        }
        // The next process finds the leftovers of the dead one, and removes them.
        let next = start(&["watch", "next"]);
        assert_eq!(next.line(), "graph next 0");
        let left: Vec<_> =
            files("/dev/shm").into_iter().filter(|it| it.contains("myelin")).collect();
        assert_eq!(left.len(), 1, "its own alone: {left:?}");
        next.end();
    });
}

/// The number of kills is `MYELIN_ROS_KILLS`; `make test-long` takes 2,000.
#[test]
fn a_kill_storm_leaves_nothing_and_disturbs_no_other_node() {
    on_a_host("kill::a_kill_storm_leaves_nothing_and_disturbs_no_other_node", || {
        let kills = std::env::var("MYELIN_ROS_KILLS").unwrap_or_else(|_| "10".to_owned());
        let start = |words| Node::start(&Host::Same, Rmw::Myelin, words);
        let watcher = start(&["watch", "watcher"]);
        let bystander = start(&["pub", "bystander", "Imu"]);
        let listener = start(&["sub", "listener", "Imu"]);
        // The victims are its clients: each has a topic of replies of its own.
        let server = start(&["count", "server"]);
        let alone = "graph bystander,listener,server,watcher 0";
        watcher.wait_for(alone, |seen| seen == alone);
        numbers(&listener, "Imu", 5);
        let before = [&bystander, &listener, &server].map(Node::holds);
        let storm = Node::start(&Host::Same, Rmw::Myelin, &["storm", "storm", &kills]);
        println!("{}", storm.wait_for("killed", |line| line.starts_with("killed")));
        watcher.wait_for(alone, |seen| seen == alone);
        let heard = heard(&listener, "Imu");
        println!("the bystanders' messages {} to {}", heard.start(), heard.end());
        // Each node notices the last deaths by itself.
        let begun = Instant::now();
        loop {
            let after = [&bystander, &listener, &server].map(Node::holds);
            if after == before {
                break;
            }
            assert!(begun.elapsed() < WATCHDOG, "descriptors and threads: {before:?}, {after:?}");
            thread::sleep(Duration::from_millis(10));
        }
        for node in [storm, listener, bystander, server, watcher] {
            node.end();
        }
        let next = start(&["watch", "next"]);
        assert_eq!(next.line(), "graph next 0");
        let left: Vec<_> =
            files("/dev/shm").into_iter().filter(|it| it.contains("myelin")).collect();
        assert_eq!(left.len(), 1, "its own alone: {left:?}");
        next.end();
    });
}

/// The numbers of the messages that have come meanwhile. None is missing: they are kept for longer
/// than a busy machine holds up a node.
fn heard(listener: &Node, kind: &str) -> RangeInclusive<u32> {
    let mut lines = vec![listener.line()];
    lines.extend(listener.lines());
    let number = |line: &String| line.strip_prefix(kind).unwrap().trim().parse().unwrap();
    let numbers: Vec<u32> = lines.iter().map(number).collect();
    let lost: Vec<_> = numbers.windows(2).filter(|pair| pair[1] != pair[0] + 1).collect();
    assert!(lost.is_empty(), "between {lost:?}, of {} messages", numbers.len());
    numbers[0]..=numbers[numbers.len() - 1]
}

/// All files below a folder.
fn files(folder: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path().to_string_lossy().into_owned();
        match entry.file_type().unwrap().is_dir() {
            true => found.extend(files(&path)),
            false => found.push(path),
        }
    }
    found
}
