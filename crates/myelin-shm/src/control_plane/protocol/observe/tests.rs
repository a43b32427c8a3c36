//! Valid and invalid requests and answers of a peer.

use super::*;
use crate::control_plane::protocol::Input;
use crate::control_plane::protocol::hostile::{LINK, Met, PEER, PUBLISHER};

fn topic(name: &str) -> Topic {
    Topic { name: name.into(), type_name: "T".into(), type_hash: 7 }
}

/// A node with an observer of the peer's publisher.
fn observing() -> Met {
    let mut met = Met::new();
    let observer = met.protocol.new_observer();
    let request = met.handle(Input::ObserverMade { observer, topic: topic("a") });
    assert_eq!(request, [ControlMessage::Observe { publisher: PUBLISHER, from: 0 }]);
    met
}

fn part(has_ring: bool, numbers: &[u32], is_last: bool) -> ControlMessage {
    let size = |number: &u32| SegmentSize { number: *number, slots: 4, slot_bytes: 128 };
    let segments = numbers.iter().map(size).collect();
    ControlMessage::Observed { publisher: PUBLISHER, has_ring, segments, is_last }
}

#[test]
fn a_publisher_is_asked_for_once_and_again_for_what_is_missing() {
    let mut met = observing();
    let observer = met.protocol.new_observer();
    assert!(met.handle(Input::ObserverMade { observer, topic: topic("b") }).is_empty());
    let observer = met.protocol.new_observer();
    let topic = topic("a");
    assert!(met.handle(Input::ObserverMade { observer, topic }).is_empty(), "it is being asked");
    assert!(met.protocol.is_awaiting_rings(observer));
    assert!(met.receives(part(true, &[0, 1], false)).is_empty());
    let again = met.receives(part(false, &[2], true));
    assert_eq!(
        again,
        [ControlMessage::Observe { publisher: PUBLISHER, from: 0 }],
        "for the second one"
    );
    assert!(met.receives(part(true, &[0, 1, 2], true)).is_empty());
    assert!(!met.protocol.is_awaiting_rings(observer));
    let missing = |met: &mut Met, from| met.handle(Input::Observe { publisher: PUBLISHER, from });
    assert_eq!(missing(&mut met, 3), [ControlMessage::Observe { publisher: PUBLISHER, from: 3 }]);
    assert!(missing(&mut met, 5).is_empty() && missing(&mut met, 4).is_empty());
    let next = met.receives(part(false, &[3], true));
    assert_eq!(next, [ControlMessage::Observe { publisher: PUBLISHER, from: 4 }], "both in one");
    assert!(met.is_linked());
}

#[test]
fn answers_that_cannot_be_end_the_link() {
    let other = PEER | 7;
    let of_other = ControlMessage::Observed {
        publisher: other,
        has_ring: false,
        segments: Vec::new(),
        is_last: true,
    };
    for (answers, what) in [
        (vec![of_other], "of a publisher that was not asked for"),
        (vec![part(true, &[], false), part(true, &[], true)], "two rings"),
        (vec![part(true, &[1], false), part(false, &[1], true)], "a segment twice"),
        (vec![part(true, &[1, 0], true)], "another order"),
        (vec![part(false, &[SEGMENTS_MAX], true)], "a number that cannot be"),
        (vec![part(true, &[], false), part(false, &[], false)], "an empty part"),
        (vec![part(true, &[], true), part(false, &[0], true)], "an answer without a request"),
    ] {
        let mut met = observing();
        for answer in answers {
            assert!(met.is_linked(), "{what}");
            met.receives(answer);
        }
        assert!(!met.is_linked(), "{what}");
    }
}

#[test]
fn an_answer_comes_in_parts_and_ends_with_the_publisher() {
    let mut met = Met::new();
    let publisher = met.makes_publisher();
    let numbers = 0..2 * MESSAGE_SEGMENTS_MAX as u32;
    for number in numbers.clone() {
        let size = SegmentSize { number, slots: 1, slot_bytes: 128 };
        met.handle(Input::Grown { publisher, size, segment: () });
    }
    let parts = |met: &mut Met, from| -> Vec<_> {
        let all = met.receives(ControlMessage::Observe { publisher, from }).into_iter();
        all.map(|message| {
            let descriptors = message.descriptors();
            let ControlMessage::Observed { has_ring, segments, is_last, .. } = message else {
                panic!()
            };
            assert_eq!(descriptors, usize::from(has_ring) + segments.len());
            let numbers: Vec<u32> = segments.iter().map(|it| it.number).collect();
            (has_ring, numbers, is_last)
        })
        .collect()
    };
    let [(true, first, false), (false, second, false), (false, third, true)] =
        &parts(&mut met, 0)[..]
    else {
        panic!("in three parts")
    };
    assert_eq!(first.len(), MESSAGE_SEGMENTS_MAX - 1, "the ring is a descriptor, too");
    assert_eq!([&first[..], second, third].concat(), numbers.collect::<Vec<_>>());
    assert_eq!(parts(&mut met, 63), [(false, vec![63], true)]);
    assert_eq!(parts(&mut met, 64), [(false, vec![], true)]);
    met.handle(Input::Dropped { id: publisher });
    assert_eq!(parts(&mut met, 0), [(false, vec![], true)]);
}

#[test]
fn a_peer_that_asks_again_before_it_was_answered_is_dropped() {
    for publishers in [1, 2] {
        let mut met = Met::with_peer_that_reads(false);
        let publisher = met.makes_publisher(); // the peer has not read the announcement
        let other = if publishers == 1 { publisher } else { met.makes_publisher() };
        assert!(met.receives(ControlMessage::Observe { publisher, from: 0 }).is_empty());
        assert!(met.is_linked());
        for _ in 0..1_000_000 {
            met.receives(ControlMessage::Observe { publisher: other, from: 0 });
        }
        assert!(!met.is_linked());
    }
}

#[test]
fn a_peer_may_ask_only_for_publishers_of_the_node() {
    let mut met = Met::new();
    met.receives(ControlMessage::Observe { publisher: PUBLISHER, from: 0 });
    assert!(!met.is_linked());
}

#[test]
fn requests_for_publishers_that_come_and_go_cost_no_memory() {
    let mut met = observing();
    for number in 3..1_000 {
        let endpoint = PEER | number;
        let record =
            crate::control_plane::protocol::hostile::record_of(Kind::Publisher, topic("a"));
        met.receives(ControlMessage::Announced { endpoint, record });
        met.receives(ControlMessage::Retracted { endpoint });
    }
    assert!(met.is_linked());
    let requests = &met.protocol.links[&LINK].greeted().unwrap().requests;
    assert_eq!(requests.publishers().collect::<Vec<_>>(), [PUBLISHER]);
}

#[test]
fn a_publisher_that_could_not_be_mapped_is_asked_for_again() {
    let mut met = observing();
    met.receives(part(true, &[], true));
    for _ in 0..3 {
        met.handle(Input::NotObserved { publisher: PUBLISHER });
    }
    assert_eq!(met.protocol.due_ns(), Some(AGAIN_NS));
    assert_eq!(met.protocol.timers.len(), 1);
    let actions = met.protocol.handle(AGAIN_NS, Input::Tick);
    assert!(matches!(
        actions[..],
        [Action::Send { message: ControlMessage::Observe { publisher: PUBLISHER, from: 0 }, .. }]
    ));
    met.receives(part(true, &[], true));
    met.handle(Input::NotObserved { publisher: PUBLISHER });
    met.receives(ControlMessage::Retracted { endpoint: PUBLISHER });
    assert_eq!(met.protocol.due_ns(), None);
}
