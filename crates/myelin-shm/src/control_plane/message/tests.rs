//! Encoded messages are decoded, and nothing else is.

use super::*;
use proptest::prelude::*;

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
