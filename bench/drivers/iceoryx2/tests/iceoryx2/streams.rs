//! Streams of several publishers, subscribers and topics, reliable and best effort, with both
//! systems through the real executable; and what they leave behind.

use std::path::Path;

use crate::own_host::alone;
use crate::support::many_to_many::{
    Processes, a_best_effort_publisher_goes_on, a_reliable_publisher_waits, every_message_arrives,
};
use crate::support::streams::at_rate;
use myelin_bench_kit::protocol::{Prepare, Reliability};

const SYSTEMS: [&str; 2] = ["iceoryx2.poll", "iceoryx2.event"];

#[test]
fn all_messages_of_several_publishers_and_topics_arrive() {
    let _alone = alone();
    for system in SYSTEMS {
        // The depth is the length of the stream, so that a busy machine loses nothing, either.
        let plain = Prepare { messages: 100, depth: 128, ..at_rate(system) };
        for (publishers, subscribers, topics) in [(1, 3, 1), (3, 1, 1), (2, 2, 5)] {
            let prepare = Prepare { publishers, subscribers, topics, ..plain.clone() };
            every_message_arrives(executable(), &prepare);
        }
    }
}

/// Not a thousand topics, which take 40 s to make in a debug build on a busy machine.
#[test]
fn messages_of_many_topics_all_arrive() {
    let _alone = alone();
    for system in SYSTEMS {
        // The depth is the number of messages of a topic, including warm-up and last message: best
        // effort would overwrite what a busy machine has not taken.
        let (topics, messages, depth) = (60, 120, 4);
        let match_timeout_ns = 50_000_000_000;
        let plain = at_rate(system);
        let many = Prepare { topics, messages, depth, match_timeout_ns, ..plain };
        every_message_arrives(executable(), &many);
    }
}

#[test]
fn a_reliable_publisher_waits_for_its_slowest_subscriber() {
    let _alone = alone();
    for system in SYSTEMS {
        let flood = Prepare { rate_hz: Some(100_000.0), messages: 3000, ..at_rate(system) };
        for (publishers, subscribers, topics) in [(1, 1, 1), (2, 2, 1), (1, 2, 3)] {
            let prepare = Prepare { publishers, subscribers, topics, ..flood.clone() };
            a_reliable_publisher_waits(executable(), &prepare);
        }
        let reliability = Reliability::Reliable;
        let large = Prepare { payload_bytes: 10 << 20, messages: 20, reliability, ..flood };
        every_message_arrives(executable(), &large);
    }
}

#[test]
fn a_best_effort_publisher_does_not_wait() {
    let _alone = alone();
    for system in SYSTEMS {
        let flood = Prepare { rate_hz: Some(100_000.0), messages: 3000, ..at_rate(system) };
        a_best_effort_publisher_goes_on(executable(), &Prepare { depth: 4, ..flood });
    }
}

#[test]
fn a_reliable_publisher_gives_up_after_its_time_limit() {
    let _alone = alone();
    let prepare = Prepare {
        reliability: Reliability::Reliable,
        reply_timeout_ns: 300_000_000,
        rate_hz: Some(100_000.0),
        messages: 3000,
        ..at_rate("iceoryx2.event")
    };
    let mut processes = Processes::open(executable(), &prepare);
    processes.pongs[0].pause();
    processes.pings[0].go();
    let [message, ..] = processes.pings[0].expect_error();
    assert!(message.starts_with("pong takes no messages"), "{message}");
    processes.pongs[0].resume();
}

fn executable() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_myelin-driver-iceoryx2"))
}
