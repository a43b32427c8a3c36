//! Twenty nodes for a long time: images, services and parameters, and no resource grows.

use std::thread;
use std::time::{Duration, Instant};

use crate::host::{Host, on_own_host_for};
use crate::library::library;
use crate::node::{Node, Rmw, WATCHDOG};

const NODES: usize = 20;
/// Python's own memory comes to rest in the first minute.
const MEMORY_FROM_S: usize = 60;
/// Each of CycloneDDS's two receiving threads of a node fills a buffer of 1 MiB page by page, in
/// some five minutes: a long soak checks memory after that.
const BUFFERS_KIB: usize = NODES * 2 * 1024;
const FILLED_S: usize = 600;
/// A busy machine holds up a subscriber, and once its publisher's memory grows by a segment, which
/// it keeps: eight images of 230 kB, in the memory of both.
const SEGMENT_KIB: usize = 2 * 8 * 240;

/// A node's report of each second: how much it has received from the previous node in the ring.
#[derive(Clone, Copy, Debug)]
struct Told {
    nodes: usize,
    images: usize,
    answers: usize,
    parameters: usize,
}

impl Told {
    fn by(node: &Node) -> Told {
        let line = node.wait_for("soak", |line| line.starts_with("soak "));
        let numbers: Vec<usize> =
            line.split(' ').skip(1).map(|number| number.parse().unwrap()).collect();
        let [nodes, images, answers, parameters] = numbers[..] else { panic!("{line}") };
        Told { nodes, images, answers, parameters }
    }

    fn is_beyond(&self, before: &Told) -> bool {
        let is_more = self.images > before.images && self.answers > before.answers;
        is_more && self.parameters > before.parameters
    }
}

/// `MYELIN_ROS_SOAK_S` seconds; `make test-long` takes three minutes.
#[test]
fn a_soak_leaves_memory_descriptors_and_threads_as_they_are() {
    if library().is_none() {
        return;
    }
    let seconds = std::env::var("MYELIN_ROS_SOAK_S").unwrap_or_else(|_| "3".to_owned());
    let seconds: usize = seconds.parse().unwrap();
    let test = "soak::a_soak_leaves_memory_descriptors_and_threads_as_they_are";
    on_own_host_for(Duration::from_secs(seconds as u64), test, || {
        let start = |number: usize| {
            let (name, number) = (format!("soak{number}"), number.to_string());
            let words = ["soak", &name, &number, &NODES.to_string()];
            Node::start(&Host::Same, Rmw::Myelin, &words)
        };
        let nodes: Vec<Node> = (0..NODES).map(start).collect();
        let nothing = Told { nodes: 0, images: 0, answers: 0, parameters: 0 };
        let have_met = |node: &Node| {
            let mut told = Told::by(node);
            while told.nodes < NODES || !told.is_beyond(&nothing) {
                told = Told::by(node);
            }
            told
        };
        let first: Vec<Told> = nodes.iter().map(have_met).collect();
        let (warm, filling_kib) = match seconds {
            s if s > 2 * FILLED_S => (FILLED_S, 0),
            s if s > MEMORY_FROM_S => (MEMORY_FROM_S, BUFFERS_KIB),
            _ => (0, 0),
        };
        let rest = seconds - warm;
        tell(&nodes, warm);
        let before = Held::by(&nodes);
        let (_, least_kib) = tell(&nodes, rest / 2);
        let (last, least_kib_after) = tell(&nodes, rest - rest / 2);
        for (number, (last, first)) in last.iter().zip(&first).enumerate() {
            assert!(last.is_beyond(first), "node {number}: {first:?}, {last:?}");
        }
        let begun = Instant::now();
        let mut after = Held::by(&nodes);
        // A link that is made again briefly has the descriptors of both.
        while !after.is_no_more_than(&before) {
            assert!(begun.elapsed() < WATCHDOG, "{before:?}, {after:?}");
            thread::sleep(Duration::from_millis(10));
            after = Held::by(&nodes);
        }
        let memory = format!("{least_kib} KiB, then {least_kib_after} KiB");
        println!("{NODES} nodes, {seconds} s: {before:?}, {after:?}; {memory}; {:?}", last[0]);
        if warm > 0 {
            let segments = after.descriptors.saturating_sub(before.descriptors);
            let most_kib = least_kib + least_kib / 100 + filling_kib + segments * SEGMENT_KIB;
            assert!(least_kib_after <= most_kib, "more memory than {most_kib} KiB: {memory}");
        }
        nodes.into_iter().for_each(Node::end);
    });
}

/// Waits for so many reports of each node; returns the last reports, and the smallest total memory
/// meanwhile.
fn tell(nodes: &[Node], seconds: usize) -> (Vec<Told>, usize) {
    let (mut last, mut least_kib) = (Vec::new(), usize::MAX);
    for _ in 0..seconds {
        last = nodes.iter().map(Told::by).collect();
        least_kib = least_kib.min(nodes.iter().map(Node::memory_kib).sum());
    }
    (last, least_kib)
}

/// The resources of all nodes.
#[derive(Debug)]
struct Held {
    descriptors: usize,
    threads: usize,
}

impl Held {
    fn by(nodes: &[Node]) -> Held {
        let mut held = Held { descriptors: 0, threads: 0 };
        for node in nodes {
            let [descriptors, threads] = node.holds();
            held.descriptors += descriptors;
            held.threads += threads;
        }
        held
    }

    /// Except for one segment of each node's publisher of images.
    fn is_no_more_than(&self, before: &Held) -> bool {
        self.descriptors <= before.descriptors + NODES && self.threads <= before.threads
    }
}
