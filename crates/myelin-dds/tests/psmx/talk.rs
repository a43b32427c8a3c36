//! Written samples are taken: all types, by waitset and by listener, with loans and without.

use std::fs;

use crate::host::takes_no_signals;
use crate::peer::{Exchange, MYELIN, Peer};
use crate::plug_in::on_a_host;

#[test]
fn all_types_pass_with_loans_and_without() {
    on_a_host("talk::all_types_pass_with_loans_and_without", || {
        for (number, way) in ["", "loans", "listener", "listener loans"].iter().enumerate() {
            for of in ["Small", "Image", "Text", "Keyed"] {
                let topic = format!("{of}{number}");
                let subscriber = Peer::shared(&format!("sub {of} {topic} all {way}"));
                let mut publisher = Peer::shared(&format!("pub {of} {topic} all {way}"));
                publisher.matched(1);
                let before = bytes_over_network();
                publisher.write(1, 40);
                let is_lent = of == "Image" && way.contains("loans");
                subscriber.takes(1..=40, if is_lent { "shared" } else { "own" });
                if of == "Image" {
                    let over_network = bytes_over_network() - before;
                    assert!(over_network < 1 << 20, "{over_network} B of 40 MiB by the network");
                }
                publisher.end();
                subscriber.end();
            }
        }
    });
}

#[test]
fn its_thread_takes_no_signals() {
    on_a_host("talk::its_thread_takes_no_signals", || {
        let subscriber = Peer::shared("sub Small topic");
        let publisher = Peer::shared("pub Small topic");
        publisher.matched(1);
        takes_no_signals(subscriber.process(), "psmx_myelin");
        publisher.end();
        subscriber.end();
    });
}

/// Bytes that the host's only interface has received.
fn bytes_over_network() -> u64 {
    let devices = fs::read_to_string("/proc/net/dev").unwrap();
    let lo = devices.lines().find_map(|line| line.trim().strip_prefix("lo:")).unwrap();
    lo.split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn a_late_subscriber_gets_the_history() {
    on_a_host("talk::a_late_subscriber_gets_the_history", || {
        for of in ["Small", "Image", "Text"] {
            let mut publisher = Peer::shared(&format!("pub {of} {of} late depth=5"));
            publisher.write(1, 10);
            let late = Peer::shared(&format!("sub {of} {of} late depth=5"));
            late.takes(6..=10, "own");
            let fresh = Peer::shared(&format!("sub {of} {of} depth=5"));
            fresh.matched(1);
            publisher.matched(2);
            publisher.write(11, 1);
            late.takes([11], "own");
            fresh.takes([11], "own");
            for peer in [publisher, late, fresh] {
                peer.end();
            }
        }
    });
}

#[test]
fn domains_and_partitions_are_apart() {
    on_a_host("talk::domains_and_partitions_are_apart", || {
        let places = ["", "partition=a", "partition=b", "domain=1", "domain=1 partition=a"];
        let mut all: Vec<_> = (1..)
            .zip(places)
            .map(|(number, place)| {
                let subscriber = Peer::shared(&format!("sub Small topic {place} all"));
                let publisher = Peer::shared(&format!("pub Small topic {place} all"));
                publisher.matched(1);
                (number, publisher, subscriber)
            })
            .collect();
        for (number, publisher, _) in &mut all {
            publisher.write(*number, 1);
        }
        for (number, publisher, subscriber) in all {
            subscriber.takes([number], "own");
            publisher.end();
            subscriber.end();
        }
    });
}

#[test]
fn several_partitions_and_patterns_use_the_network() {
    on_a_host("talk::several_partitions_and_patterns_use_the_network", || {
        let subscriber = Peer::networked(MYELIN, "sub Text topic partition=a* all");
        let mut publisher = Peer::shared("pub Text topic partition=abc all");
        publisher.matched(1);
        publisher.write(1, 10);
        subscriber.takes(1..=10, "own");
        publisher.end();
        subscriber.end();
    });
}

#[test]
fn instances_are_disposed() {
    on_a_host("talk::instances_are_disposed", || {
        let subscriber = Peer::shared("sub Keyed topic");
        let mut publisher = Peer::shared("pub Keyed topic");
        publisher.matched(1);
        // Fewer instances than a reader can hold, and a reader with a depth of one.
        publisher.write(1, 99);
        subscriber.takes(1..=99, "own");
        assert_eq!(publisher.ask("dispose 7"), "Success");
        assert_eq!(subscriber.line(), "gone 7");
        publisher.end();
        subscriber.end();
    });
}

#[test]
fn programs_with_and_without_the_plug_in_match() {
    on_a_host("talk::programs_with_and_without_the_plug_in_match", || {
        let with = Peer::shared("sub Text topic all");
        let without = Peer::networked(Exchange::None, "sub Text topic all");
        let publishers = [Peer::shared, |words: &str| Peer::networked(Exchange::None, words)];
        for start in publishers {
            let mut publisher = start("pub Text topic all");
            publisher.matched(2);
            publisher.write(1, 50);
            with.takes(1..=50, "own");
            without.takes(1..=50, "own");
            publisher.end();
        }
        with.end();
        without.end();
    });
}

#[test]
fn a_reader_that_requests_more_than_offered_does_not_match() {
    on_a_host("talk::a_reader_that_requests_more_than_offered_does_not_match", || {
        let reliable = Peer::shared("sub Small topic");
        let mut unreliable = Peer::shared("pub Small topic best-effort all");
        let witness = Peer::shared("sub Small topic best-effort all");
        unreliable.matched(1);
        unreliable.write(1, 5);
        witness.takes(1..=5, "own");
        let mut publisher = Peer::shared("pub Small topic all");
        publisher.matched(2);
        publisher.write(100, 1);
        reliable.takes([100], "own");
        for peer in [publisher, unreliable, witness, reliable] {
            peer.end();
        }
    });
}

#[test]
fn a_reliable_publisher_waits_for_a_reader_that_is_full() {
    on_a_host("talk::a_reliable_publisher_waits_for_a_reader_that_is_full", || {
        for of in ["Small", "Image", "Text"] {
            let mut subscriber = Peer::shared(&format!("sub {of} {of} all limit=10"));
            let mut publisher = Peer::shared(&format!("pub {of} {of} all"));
            publisher.matched(1);
            subscriber.tell("stop");
            assert_eq!(subscriber.line(), "stopped");
            publisher.tell("write 1 400");
            subscriber.tell("go");
            subscriber.takes(1..=400, "own");
            assert_eq!(publisher.line(), "done Success");
            publisher.end();
            subscriber.end();
        }
    });
}

#[test]
fn samples_of_a_deleted_writer_keep_its_handle() {
    on_a_host("talk::samples_of_a_deleted_writer_keep_its_handle", || {
        for of in ["Small", "Image", "Text"] {
            // More than the reader stores at once: DDS reports that the writer has gone before the
            // rest is stored.
            let mut subscriber =
                Peer::shared(&format!("sub {of} {of} all limit=10 loans one-writer"));
            let mut publisher = Peer::shared(&format!("pub {of} {of} all"));
            publisher.matched(1);
            // DDS may never find a writer that has gone before it was found.
            subscriber.matched(1);
            subscriber.tell("stop");
            assert_eq!(subscriber.line(), "stopped");
            publisher.write(1, 40);
            publisher.end();
            subscriber.matched(0);
            subscriber.tell("go");
            subscriber.takes(1..=40, if of == "Image" { "shared" } else { "own" });
            subscriber.end();
        }
    });
}

#[test]
fn samples_of_a_writer_arrive_though_dds_never_announced_it() {
    let name = "talk::samples_of_a_writer_arrive_though_dds_never_announced_it";
    on_a_host(name, || {
        let mut subscriber = Peer::shared("sub Small topic all one-writer beside=other");
        // The delivering thread is in a listener, and takes nothing.
        let mut other = Peer::shared("pub Small other all");
        other.matched(1);
        subscriber.tell("stop");
        assert_eq!(subscriber.line(), "stopped");
        other.write(0, 1);
        assert_eq!(subscriber.line(), "called");
        let mut publisher = Peer::shared("pub Small topic all");
        publisher.matched(1);
        subscriber.matched(1);
        publisher.write(1, 40);
        publisher.end();
        assert_eq!(subscriber.line(), "lost");
        subscriber.tell("go");
        subscriber.takes(1..=40, "own");
        other.end();
        subscriber.end();
    });
}

/// rmw_cyclonedds requests less memory than it writes, until this is fixed.
#[test]
fn types_with_the_header_inside_pass() {
    on_a_host("talk::types_with_the_header_inside_pass", || {
        for (writer, reader) in
            ["broken", "mended"].iter().flat_map(|a| ["broken", "mended"].map(|b| (*a, b)))
        {
            for way in ["", " late"] {
                let subscriber = Peer::start_program("header", MYELIN, &format!("sub {reader}"));
                let words = format!("pub {writer}{way}");
                let publisher = Peer::start_program("header", MYELIN, &words);
                assert_eq!(subscriber.line(), "took all", "from {words} to {reader}");
                subscriber.end();
                publisher.end();
            }
        }
    });
}
