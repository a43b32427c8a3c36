//! A process of the robot: publishers and subscribers, each a thread, as its words say.
//!
//! `pub:TOPIC:TYPE:HZ:OPTIONS` and `sub:TOPIC:TYPE:OPTIONS`; options are separated by commas. With
//! `lock:` it then locks all memory that it maps.

use std::hint::black_box;
use std::io::Read;
use std::thread;
use std::time::{Duration, Instant};

use myelin::{Matching, Node, Payload, PlainData, Topic};

/// What a lidar publishes: more than a cell of a ring can hold.
#[derive(Clone, Copy, PlainData)]
#[repr(C)]
struct Scan {
    stamp_ns: u64,
    ranges: [f32; 60],
}

/// The same, as another program has it.
#[derive(Clone, Copy, PlainData)]
#[repr(C)]
struct OldScan {
    stamp_ns: u32,
    ring: u32,
    ranges: [f32; 60],
}

/// Runs until standard input ends.
pub fn run(words: &str) {
    let words: Vec<_> = words.split_whitespace().collect();
    let node = Node::new(words[0]).expect("a node");
    for word in words[1..].iter().filter(|word| **word != "lock:") {
        let parts: Vec<_> = word.split(':').collect();
        match parts[2] {
            "scan" => open::<Scan>(&node, &parts, Scan { stamp_ns: 0, ranges: [1.0; 60] }),
            "old-scan" => {
                open::<OldScan>(&node, &parts, OldScan { stamp_ns: 0, ring: 0, ranges: [1.0; 60] });
            }
            _ => open::<f64>(&node, &parts, 1.0),
        }
    }
    if words.contains(&"lock:") {
        // SAFETY: no preconditions.
        assert_eq!(unsafe { libc::mlockall(libc::MCL_FUTURE) }, 0);
    }
    println!("ready");
    let _ = std::io::stdin().read(&mut [0]);
}

fn open<T: Payload<View = T> + Copy + Send + 'static>(node: &Node, parts: &[&str], value: T) {
    let options: Vec<_> = parts.last().expect("there are some").split(',').collect();
    let has = |name: &str| options.contains(&name);
    let number =
        |name: &str| options.iter().find_map(|it| it.strip_prefix(name)?.parse::<u64>().ok());
    let mut topic: Topic<T> = node.topic(parts[1]);
    if has("rxo") {
        topic = topic.matching(Matching::RequestedOffered);
    }
    if has("reliable") {
        topic = topic.reliable(Duration::from_secs(1));
    }
    if let Some(depth) = number("depth") {
        topic = topic.depth(depth as u32);
    }
    if parts[0] == "pub" {
        let period = Duration::from_secs(1) / parts[3].parse::<u32>().expect("a rate");
        let count = number("count").unwrap_or(u64::MAX);
        let publisher = topic.publisher_builder().timestamps(true).open().expect("a publisher");
        thread::spawn(move || {
            let mut due = Instant::now();
            for _ in 0..count {
                publisher.publish_copy(&value).expect("it publishes");
                due += period;
                thread::sleep(due.saturating_duration_since(Instant::now()));
            }
            loop {
                thread::park();
            }
        });
        return;
    }
    let mut subscriber = topic.subscriber().expect("a subscriber");
    let (spin_ms, sleep_ms) = (number("spin").unwrap_or(0), number("sleep").unwrap_or(0));
    let holds = has("hold");
    thread::Builder::new()
        .name(format!("on_{}", parts[1]))
        .spawn(move || {
            let mut held = Vec::new();
            loop {
                let Ok(sample) = subscriber.receive(Duration::MAX) else {
                    thread::sleep(Duration::from_millis(10));
                    continue;
                };
                let begun = Instant::now();
                while begun.elapsed() < Duration::from_millis(spin_ms) {
                    black_box(begun);
                }
                thread::sleep(Duration::from_millis(sleep_ms));
                held.extend(sample.filter(|_| holds));
            }
        })
        .expect("a thread");
}
