//! Every type, to each middleware and back, on one host and on two.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Duration;

use myelin::Node;

use crate::host::{Host, on_own_host};
use crate::kind::{ALL, IMAGE, Kind, POSE, Quality, STRING};
use crate::peer::{Middleware, PREAMBLE, Peer, WATCHDOG};

#[test]
fn with_cyclonedds_on_one_host() {
    every_type("talk::with_cyclonedds_on_one_host", Middleware::CycloneDds, || Host::Same);
}

#[test]
fn with_fastdds_on_one_host() {
    every_type("talk::with_fastdds_on_one_host", Middleware::FastDds, || Host::Same);
}

#[test]
fn with_cyclonedds_on_another_host() {
    every_type("talk::with_cyclonedds_on_another_host", Middleware::CycloneDds, Host::other);
}

#[test]
fn with_fastdds_on_another_host() {
    every_type("talk::with_fastdds_on_another_host", Middleware::FastDds, Host::other);
}

#[test]
fn with_ros_2_on_one_host() {
    every_type("talk::with_ros_2_on_one_host", Middleware::Ros2, || Host::Same);
}

#[test]
fn with_ros_2_on_another_host() {
    every_type("talk::with_ros_2_on_another_host", Middleware::Ros2, Host::other);
}

/// Our publisher serves a node of ours by TCP, until a DDS program comes: then DDS serves both.
#[test]
fn a_dds_program_beside_a_node_with_the_lane() {
    let (test, middleware) =
        ("talk::a_dds_program_beside_a_node_with_the_lane", Middleware::CycloneDds);
    if middleware.program().is_none() {
        return;
    }
    on_own_host(test, || {
        if std::env::var_os(TAKER).is_some() {
            return take_images();
        }
        let host = Host::other();
        let publisher = (IMAGE.publisher)(&node(&host), Quality::Reliable);
        let mut taker = host.command(&std::env::current_exe().unwrap());
        taker.args([test, "--exact", "--nocapture"]).env(TAKER, "1").stdout(Stdio::piped());
        let mut taker = taker.spawn().unwrap();
        let mut taken = BufReader::new(taker.stdout.take().unwrap()).lines();
        publisher.wait_for_match(1);
        let mut next = 0;
        let mut publish = || {
            publisher.publish(next);
            let taken = taken.find_map(|line| line.unwrap().strip_prefix("took ")?.parse().ok());
            assert_eq!(taken, Some(next));
            next += 1;
            next - 1
        };
        for round in 0..2 {
            let before = tcp_segments();
            while tcp_segments() - before < SEGMENTS_OF_IMAGES {
                assert!(publish() < IMAGES_MAX, "round {round}: the images go by UDP");
            }
            let count = IMAGE.count.to_string();
            let words = words("sub", &IMAGE, &count, Quality::Reliable);
            let peer = Peer::start(&host, middleware, &words);
            assert_eq!(peer.line(), "matched 1");
            publisher.wait_for_match(2);
            for _ in 0..IMAGE.count {
                let number = publish();
                assert_eq!(peer.line(), format!("got {number}"));
            }
            assert_eq!(peer.line_so_far(), None);
            peer.end();
        }
        taker.kill().unwrap();
        taker.wait().unwrap();
    });
}

/// Until it is killed.
fn take_images() {
    let node = Node::builder("taker").domain(0).network(true).open().unwrap();
    let mut subscriber = (IMAGE.subscriber)(&node, Quality::Reliable);
    while let Some(number) = subscriber.receive(WATCHDOG).unwrap() {
        println!("took {number}");
    }
}

/// How many segments this host has sent by TCP.
fn tcp_segments() -> u64 {
    let text = std::fs::read_to_string("/proc/self/net/snmp").unwrap();
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Tcp: "));
    let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
    let mut pairs = names.split(' ').zip(values.split(' '));
    pairs.find(|(name, _)| *name == "OutSegs").unwrap().1.parse().unwrap()
}

fn every_type(test: &str, middleware: Middleware, host: fn() -> Host) {
    if middleware.program().is_none() {
        return;
    }
    on_own_host(test, || {
        let host = host();
        let node = node(&host);
        let speaks = |kind: &Kind| middleware != Middleware::Ros2 || kind.is_ros();
        for kind in ALL.into_iter().filter(speaks) {
            println!("{}", kind.name);
            to_them(&node, &host, middleware, &kind);
            from_them(&node, &host, middleware, &kind);
        }
        for kind in [STRING, POSE].into_iter().filter(speaks) {
            println!("{}, best effort", kind.name);
            to_them_best_effort(&node, &host, middleware, &kind);
            from_them_best_effort(&node, &host, middleware, &kind);
        }
        for kind in [STRING, IMAGE] {
            println!("{}, late", kind.name);
            to_them_late(&node, &host, middleware, &kind);
            from_them_late(&node, &host, middleware, &kind);
        }
    });
}

/// A node of ours, on this host.
pub fn node(host: &Host) -> Node {
    let node = Node::builder("interop").domain(0).network(true).interface(host.interface());
    match host {
        Host::Same => node.peers(["127.0.0.1"]).open().unwrap(),
        Host::Other(_) => node.open().unwrap(),
    }
}

/// The words of a peer: `role` is `pub` or `sub`.
pub fn words<'a>(role: &'a str, kind: &Kind, count: &'a str, quality: Quality) -> Vec<&'a str> {
    [&[role, kind.name, kind.dds_topic, count], quality.words()].concat()
}

fn to_them(node: &Node, host: &Host, middleware: Middleware, kind: &Kind) {
    let publisher = (kind.publisher)(node, Quality::Reliable);
    let count = kind.count.to_string();
    let peer = Peer::start(host, middleware, &words("sub", kind, &count, Quality::Reliable));
    assert_eq!(peer.line(), "matched 1");
    publisher.wait_for_match(1);
    (0..kind.count).for_each(|n| publisher.publish(n));
    for n in 0..kind.count {
        assert_eq!(peer.line(), format!("got {n}"));
    }
    peer.end();
}

fn from_them(node: &Node, host: &Host, middleware: Middleware, kind: &Kind) {
    let mut subscriber = (kind.subscriber)(node, Quality::Reliable);
    let count = kind.count.to_string();
    let mut peer = Peer::start(host, middleware, &words("pub", kind, &count, Quality::Reliable));
    let mut next = || subscriber.receive(WATCHDOG).unwrap().expect("none came");
    peer.begin(|| assert_eq!(next(), PREAMBLE));
    let numbers = std::iter::repeat_with(next).skip_while(|n| *n == PREAMBLE);
    assert!(numbers.take(kind.count as usize).eq(0..kind.count));
    assert_eq!(peer.line(), format!("published {count}"));
    peer.end();
    assert_eq!(subscriber.receive(Duration::ZERO).unwrap(), None);
}

fn to_them_best_effort(node: &Node, host: &Host, middleware: Middleware, kind: &Kind) {
    let publisher = (kind.publisher)(node, Quality::BestEffort);
    let peer = Peer::start(host, middleware, &words("sub", kind, "10", Quality::BestEffort));
    assert_eq!(peer.line(), "matched 1");
    publisher.wait_for_match(1);
    let mut got = Vec::new();
    for n in 0.. {
        publisher.publish(n);
        std::thread::sleep(PERIOD);
        got.extend(std::iter::from_fn(|| peer.line_so_far()));
        if got.len() == 10 {
            break;
        }
        assert!(PERIOD * n < WATCHDOG, "{got:?} alone");
    }
    let numbers = got.iter().map(|line| line.strip_prefix("got ").unwrap().parse::<u32>().unwrap());
    assert!(numbers.is_sorted_by(|one, next| one < next), "{got:?}");
    peer.end();
}

fn from_them_best_effort(node: &Node, host: &Host, middleware: Middleware, kind: &Kind) {
    let mut subscriber = (kind.subscriber)(node, Quality::BestEffort);
    let count = u32::MAX.to_string();
    // Publishes until it is dropped.
    let _peer = Peer::start(host, middleware, &words("pub", kind, &count, Quality::BestEffort));
    let mut next = || subscriber.receive(WATCHDOG).unwrap().expect("none came");
    let numbers: Vec<u32> = (0..10).map(|_| next()).collect();
    assert!(numbers.is_sorted_by(|one, next| one < next), "{numbers:?}");
}

fn to_them_late(node: &Node, host: &Host, middleware: Middleware, kind: &Kind) {
    let publisher = (kind.publisher)(node, Quality::History);
    (0..kind.count).for_each(|n| publisher.publish(n));
    let count = kind.count.to_string();
    let peer = Peer::start(host, middleware, &words("sub", kind, &count, Quality::History));
    assert_eq!(peer.line(), "matched 1");
    for n in 0..kind.count {
        assert_eq!(peer.line(), format!("got {n}"));
    }
    peer.end();
}

fn from_them_late(node: &Node, host: &Host, middleware: Middleware, kind: &Kind) {
    let count = kind.count.to_string();
    let peer = Peer::start(host, middleware, &words("pub", kind, &count, Quality::History));
    assert_eq!(peer.line(), format!("published {count}"));
    let mut subscriber = (kind.subscriber)(node, Quality::History);
    for n in 0..kind.count {
        assert_eq!(subscriber.receive(WATCHDOG).unwrap(), Some(n));
    }
    peer.end();
}

const PERIOD: Duration = Duration::from_millis(5);
/// Of three images, and more than a connection needs for all else.
const SEGMENTS_OF_IMAGES: u64 = 10_000;
const IMAGES_MAX: u32 = 200;
const TAKER: &str = "MYELIN_INTEROP_TAKER";
