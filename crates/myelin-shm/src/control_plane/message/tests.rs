//! Encoded messages are decoded, and nothing else is.

use super::*;
#[cfg(not(any(miri, loom)))]
use crate::control_plane::registry::Registry;
use proptest::prelude::*;

#[cfg(not(any(miri, loom)))]
#[path = "../../../../myelin/tests/support/kept_list.rs"]
mod kept_list;

fn topic() -> impl Strategy<Value = Topic> {
    ("[a-z/ä]{1,100}", "[A-Za-z:]{0,255}", any::<u64>())
        .prop_map(|(name, type_name, type_hash)| Topic { name, type_name, type_hash })
}

fn segment() -> impl Strategy<Value = SegmentSize> {
    any::<(u32, u32, u64)>().prop_map(|(number, slots, slot_bytes)| SegmentSize {
        number,
        slots,
        slot_bytes,
    })
}

fn qos() -> impl Strategy<Value = AnnouncedQos> {
    let reliability = prop_oneof![Just(Reliability::BestEffort), Just(Reliability::Reliable)];
    (any::<u32>(), reliability, any::<u32>())
        .prop_map(|(depth, reliability, history)| AnnouncedQos { depth, reliability, history })
}

fn counters() -> impl Strategy<Value = Counters> {
    prop_oneof![
        any::<(u64, u64)>().prop_map(|(published, memory_bytes)| {
            Counters::Publisher { published, memory_bytes }
        }),
        any::<(u64, u64, u64)>().prop_map(|(lost, held, memory_bytes)| {
            Counters::Subscriber { lost, held, memory_bytes }
        }),
    ]
}

fn state() -> impl Strategy<Value = MatchState> {
    prop_oneof![
        Just(MatchState::Pending),
        Just(MatchState::Matched),
        "\\PC{0,60}".prop_map(|reason| MatchState::Refused { reason }),
    ]
}

fn message() -> impl Strategy<Value = Message> {
    let pair = any::<(u64, u64)>();
    prop_oneof![
        (any::<u64>(), "\\PC{0,60}").prop_map(|(node, name)| Message::Hello { node, name }),
        Just(Message::Ready),
        Just(Message::Leaving),
        (any::<u64>(), topic(), qos()).prop_map(|(publisher, topic, qos)| Message::Published {
            publisher,
            topic,
            qos
        }),
        (any::<u64>(), topic(), qos()).prop_map(|(subscriber, topic, qos)| Message::Subscribed {
            subscriber,
            topic,
            qos
        }),
        any::<u64>().prop_map(|publisher| Message::Unpublished { publisher }),
        any::<u64>().prop_map(|subscriber| Message::Unsubscribed { subscriber }),
        pair.prop_map(|(publisher, subscriber)| Message::Offer { publisher, subscriber }),
        pair.prop_map(|(publisher, subscriber)| Message::Ask { publisher, subscriber }),
        (any::<u64>(), proptest::collection::vec(segment(), 1..=MESSAGE_SEGMENTS_MAX))
            .prop_map(|(publisher, segments)| Message::Segments { publisher, segments }),
        (any::<(u64, u64, u32, bool)>()).prop_map(
            |(publisher, subscriber, connection, wake_end)| {
                Message::Accept { publisher, subscriber, connection, wake_end }
            }
        ),
        any::<(u64, u64, u64)>().prop_map(|(publisher, subscriber, start)| {
            Message::Matched { publisher, subscriber, start }
        }),
        (any::<u64>(), any::<u64>(), "\\PC{0,60}").prop_map(|(publisher, subscriber, reason)| {
            Message::Withdrawn { publisher, subscriber, reason }
        }),
        (any::<u64>(), any::<u64>(), "\\PC{0,60}").prop_map(|(publisher, subscriber, reason)| {
            Message::Declined { publisher, subscriber, reason }
        }),
        Just(Message::Query),
        (any::<u64>(), counters())
            .prop_map(|(endpoint, counters)| Message::Counted { endpoint, counters }),
        (any::<u64>(), any::<u64>(), state())
            .prop_map(|(endpoint, other, state)| Message::MatchTold { endpoint, other, state }),
        (any::<u64>(), "\\PC{0,60}", any::<bool>())
            .prop_map(|(type_hash, text, is_last)| Message::Layout { type_hash, text, is_last }),
        any::<bool>().prop_map(|is_complete| Message::Answered { is_complete }),
    ]
}

proptest! {
    #[test]
    fn messages_are_decoded_as_encoded(message in message()) {
        let bytes = message.encode();
        prop_assert!(bytes.len() <= MESSAGE_BYTES_MAX);
        prop_assert_eq!(Message::decode(&bytes).unwrap(), message);
    }

    #[test]
    fn a_truncated_or_extended_message_is_refused(message in message(), cut in any::<usize>()) {
        let mut bytes = message.encode();
        prop_assert!(Message::decode(&bytes[..cut % bytes.len()]).is_err());
        bytes.push(0);
        prop_assert!(Message::decode(&bytes).is_err());
    }

    #[test]
    fn random_bytes_are_an_error_or_a_message_that_encodes_to_them(
        mut bytes in proptest::collection::vec(any::<u8>(), 0..MESSAGE_BYTES_MAX),
        kind in 0u8..21,
    ) {
        if let Some(first) = bytes.first_mut() {
            *first = kind;
        }
        if let Ok(message) = Message::decode(&bytes) {
            prop_assert_eq!(message.encode(), bytes);
        }
    }

    #[test]
    fn one_changed_byte_never_panics(
        message in message(), at in any::<usize>(), to in any::<u8>(),
    ) {
        let mut bytes = message.encode();
        let at = at % bytes.len();
        bytes[at] = to;
        if let Ok(message) = Message::decode(&bytes) {
            prop_assert_eq!(message.encode(), bytes);
        }
    }
}

#[test]
fn a_greeting_of_another_version_is_an_error_with_the_version() {
    let mut bytes = Message::Hello { node: 1, name: String::new() }.encode();
    bytes[9..17].copy_from_slice(&77u64.to_le_bytes());
    let error = Message::decode(&bytes).unwrap_err();
    assert!(matches!(error, Error::LayoutVersion { theirs: 77, .. }), "{error}");
}

#[test]
fn a_long_reason_is_cut_between_characters() {
    let reason = "ä".repeat(200);
    let message = Message::Declined { publisher: 1, subscriber: 2, reason };
    let Ok(Message::Declined { reason, .. }) = Message::decode(&message.encode()) else {
        panic!("it is a message");
    };
    assert_eq!(reason, "ä".repeat(127));
}

/// All programs with 0.1 match each other (docs/reference/compatibility.md). A change of what they
/// share raises [`VERSION`], which changes each line, and so needs a minor release.
#[cfg(not(any(miri, loom)))]
#[test]
fn nodes_of_0_1_understand_these_bytes() {
    let mut lines = std::collections::BTreeSet::new();
    let examples = one_of_each_kind();
    for message in &examples {
        let hex: String = message.encode().iter().map(|byte| format!("{byte:02x}")).collect();
        let (text, descriptors) = (format!("{message:?}"), message.descriptors());
        let name = text.split([' ', '{']).next().unwrap();
        lines.insert(format!("{VERSION} message {name}, {descriptors} descriptors: {hex}"));
    }
    let kinds: std::collections::BTreeSet<u8> = examples.iter().map(Message::kind).collect();
    assert_eq!(Vec::from_iter(kinds), Vec::from_iter(1..20), "an example of each kind");
    let memory = crate::data_plane::layout::lines();
    lines.extend(memory.into_iter().map(|line| format!("{VERSION} memory {line}")));
    let registry = Registry::new(std::path::Path::new("/folder"), 3, Some(7));
    let socket = registry.socket_path(0xab_cdef << 24 | 5);
    lines.insert(format!("{VERSION} socket {}", socket.display()));
    let list = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("wire.txt");
    kept_list::check(&list, &lines);
}

#[cfg(not(any(miri, loom)))]
fn one_of_each_kind() -> Vec<Message> {
    let topic = || Topic { name: "camera/ä".into(), type_name: "[u8]".into(), type_hash: 0x0708 };
    let qos = |reliability| AnnouncedQos { depth: 16, reliability, history: 4 };
    let (publisher, subscriber, reason) = (0x0102_0304_0506, 0x1112_1314_1516, "no".to_owned());
    let (endpoint, other) = (publisher, subscriber);
    let segments = vec![
        SegmentSize { number: 1, slots: 8, slot_bytes: 4096 },
        SegmentSize { number: 2, slots: 4, slot_bytes: 1 << 33 },
    ];
    let of_publisher = Counters::Publisher { published: 9, memory_bytes: 8192 };
    let of_subscriber = Counters::Subscriber { lost: 2, held: 3, memory_bytes: 4096 };
    let told = |state| Message::MatchTold { endpoint, other, state };
    vec![
        Message::Hello { node: 0xab_cdef << 24, name: "viewer".into() },
        Message::Ready,
        Message::Published { publisher, topic: topic(), qos: qos(Reliability::Reliable) },
        Message::Subscribed { subscriber, topic: topic(), qos: qos(Reliability::BestEffort) },
        Message::Unpublished { publisher },
        Message::Unsubscribed { subscriber },
        Message::Offer { publisher, subscriber },
        Message::Segments { publisher, segments },
        Message::Accept { publisher, subscriber, connection: 6, wake_end: true },
        Message::Matched { publisher, subscriber, start: 77 },
        Message::Withdrawn { publisher, subscriber, reason: reason.clone() },
        Message::Declined { publisher, subscriber, reason: reason.clone() },
        Message::Leaving,
        Message::Ask { publisher, subscriber },
        Message::Query,
        Message::Counted { endpoint, counters: of_publisher },
        Message::Counted { endpoint, counters: of_subscriber },
        told(MatchState::Pending),
        told(MatchState::Matched),
        told(MatchState::Refused { reason }),
        Message::Layout { type_hash: 0x0708, text: "u8".into(), is_last: true },
        Message::Answered { is_complete: true },
    ]
}
