//! Encoded messages are decoded, and nothing else is.

use super::*;
use crate::control_plane::protocol::hostile::record_of;
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

fn limit() -> impl Strategy<Value = Option<Duration>> {
    proptest::option::of(any::<u64>().prop_map(Duration::from_nanos))
}

fn qos() -> impl Strategy<Value = AnnouncedQos> {
    let reliability = prop_oneof![Just(Reliability::BestEffort), Just(Reliability::Reliable)];
    let limits = [limit(), limit(), limit()];
    let flags = any::<(bool, bool)>();
    (any::<u32>(), reliability, any::<u32>(), limits, flags).prop_map(
        |(depth, reliability, transient_local, [deadline, liveliness, lifespan], flags)| {
            let (resends, is_alive_by_topic) = flags;
            AnnouncedQos {
                depth,
                reliability,
                resends,
                transient_local,
                deadline,
                liveliness,
                is_alive_by_topic,
                lifespan,
            }
        },
    )
}

fn attributes() -> impl Strategy<Value = Attributes> {
    let value = proptest::collection::vec(any::<u8>(), 0..400);
    proptest::collection::vec(("[a-z.ä]{1,30}", value), 0..40).prop_map(|some| {
        let mut attributes = Attributes::default();
        for (name, value) in some {
            let _ = attributes.insert(&name, &value); // as many as fit
        }
        attributes
    })
}

fn node_record() -> impl Strategy<Value = NodeRecord> {
    let text = || "[^\\pC]{0,60}";
    let texts = (text(), text(), text(), text(), text(), text());
    (texts, attributes()).prop_map(|(texts, attributes)| {
        let (name, namespace, program, host, language, version) = texts;
        NodeRecord { name, namespace, program, host, language, version, attributes }
    })
}

fn endpoint_record() -> impl Strategy<Value = EndpointRecord> {
    let kind = prop_oneof![Just(Kind::Publisher), Just(Kind::Subscriber)];
    let matching = prop_oneof![Just(Matching::Exact), Just(Matching::RequestedOffered)];
    (kind, topic(), qos(), matching, any::<u64>(), attributes()).prop_map(
        |(kind, topic, qos, matching, created_ns, attributes)| EndpointRecord {
            kind,
            topic,
            qos,
            matching,
            created_ns,
            attributes,
        },
    )
}

fn mismatch() -> impl Strategy<Value = Mismatch> {
    let setting = proptest::sample::select(&SETTINGS[..]);
    (setting, "\\PC{0,60}", "\\PC{0,60}").prop_map(|(setting, offered, requested)| Mismatch {
        setting,
        offered,
        requested,
        is_refusal: true,
    })
}

fn state() -> impl Strategy<Value = MatchState> {
    prop_oneof![
        Just(MatchState::Pending),
        Just(MatchState::Matched),
        ("\\PC{0,60}", proptest::option::of(mismatch()))
            .prop_map(|(reason, mismatch)| MatchState::Refused { reason, mismatch }),
    ]
}

fn match_info() -> impl Strategy<Value = MatchInfo> {
    let info = |(endpoint, other, state)| MatchInfo { endpoint, other, state };
    (any::<u64>(), any::<u64>(), state()).prop_map(info)
}

fn message() -> impl Strategy<Value = ControlMessage> {
    let pair =
        || any::<(u64, u64)>().prop_map(|(publisher, subscriber)| Pair { publisher, subscriber });
    let part = proptest::collection::vec(any::<u8>(), 0..=MESSAGE_SCHEMA_BYTES_MAX);
    prop_oneof![
        (any::<u64>(), node_record())
            .prop_map(|(node, record)| ControlMessage::Hello { node, record }),
        Just(ControlMessage::Ready),
        Just(ControlMessage::Leaving),
        (any::<u64>(), endpoint_record())
            .prop_map(|(endpoint, record)| ControlMessage::Announced { endpoint, record }),
        any::<u64>().prop_map(|endpoint| ControlMessage::Retracted { endpoint }),
        pair().prop_map(|pair| ControlMessage::Offer { pair }),
        pair().prop_map(|pair| ControlMessage::RequestOffer { pair }),
        (any::<u64>(), proptest::collection::vec(segment(), 1..=MESSAGE_SEGMENTS_MAX))
            .prop_map(|(publisher, segments)| ControlMessage::Segments { publisher, segments }),
        (pair(), any::<(u32, bool)>()).prop_map(|(pair, (connection, wake_pipe))| {
            ControlMessage::Accept { pair, connection, wake_pipe }
        }),
        (pair(), any::<u64>()).prop_map(|(pair, start)| ControlMessage::Matched { pair, start }),
        (pair(), "\\PC{0,60}")
            .prop_map(|(pair, reason)| ControlMessage::Withdrawn { pair, reason }),
        (pair(), "\\PC{0,60}").prop_map(|(pair, reason)| ControlMessage::Declined { pair, reason }),
        any::<u64>().prop_map(|type_hash| ControlMessage::QuerySchema { type_hash }),
        any::<u64>().prop_map(|from| ControlMessage::Query { from }),
        proptest::collection::vec(any::<u64>(), 1..=MESSAGE_SEGMENTS_MAX)
            .prop_map(|endpoints| ControlMessage::Counted { endpoints }),
        proptest::collection::vec(match_info(), 1..=3)
            .prop_map(|matches| ControlMessage::MatchesReported { matches }),
        (any::<u64>(), "[a-z2-]{0,32}", part, any::<bool>()).prop_map(
            |(type_hash, encoding, part, is_last)| ControlMessage::Schema {
                type_hash,
                encoding,
                part,
                is_last
            }
        ),
        any::<bool>().prop_map(|is_complete| ControlMessage::Answered { is_complete }),
        any::<(u64, u32)>()
            .prop_map(|(publisher, from)| ControlMessage::Observe { publisher, from }),
        observed(),
    ]
}

fn observed() -> impl Strategy<Value = ControlMessage> {
    let segments = proptest::collection::vec(segment(), 0..MESSAGE_SEGMENTS_MAX);
    (any::<u64>(), any::<bool>(), segments, any::<bool>()).prop_map(
        |(publisher, has_ring, segments, is_last)| ControlMessage::Observed {
            publisher,
            has_ring,
            segments,
            is_last,
        },
    )
}

proptest! {
    #[test]
    fn messages_are_decoded_as_encoded(message in message()) {
        let bytes = message.encode();
        prop_assert!(bytes.len() <= MESSAGE_BYTES_MAX);
        prop_assert_eq!(ControlMessage::decode(&bytes).unwrap(), message);
    }

    #[test]
    fn a_truncated_or_extended_message_is_refused(message in message(), cut in any::<usize>()) {
        let mut bytes = message.encode();
        prop_assert!(ControlMessage::decode(&bytes[..cut % bytes.len()]).is_err());
        bytes.push(0);
        prop_assert!(ControlMessage::decode(&bytes).is_err());
    }

    #[test]
    fn random_bytes_are_an_error_or_a_message_that_encodes_to_them(
        mut bytes in proptest::collection::vec(any::<u8>(), 0..MESSAGE_BYTES_MAX),
        kind in 0u8..22,
    ) {
        if let Some(first) = bytes.first_mut() {
            *first = kind;
        }
        if let Ok(message) = ControlMessage::decode(&bytes) {
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
        if let Ok(message) = ControlMessage::decode(&bytes) {
            prop_assert_eq!(message.encode(), bytes);
        }
    }
}

#[test]
fn a_greeting_of_another_version_is_an_error_with_the_version() {
    let mut bytes = ControlMessage::Hello { node: 1, record: NodeRecord::default() }.encode();
    bytes[9..17].copy_from_slice(&77u64.to_le_bytes());
    let error = ControlMessage::decode(&bytes).unwrap_err();
    assert!(matches!(error, Error::LayoutVersion { theirs: 77, .. }), "{error}");
}

#[test]
fn a_long_reason_is_cut_between_characters() {
    let reason = "ä".repeat(200);
    let message = ControlMessage::Declined { pair: Pair { publisher: 1, subscriber: 2 }, reason };
    let Ok(ControlMessage::Declined { reason, .. }) = ControlMessage::decode(&message.encode())
    else {
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
    let kinds: std::collections::BTreeSet<u8> = examples.iter().map(ControlMessage::kind).collect();
    assert_eq!(Vec::from_iter(kinds), Vec::from_iter(1..21), "an example of each kind");
    let memory = crate::layout::lines();
    lines.extend(memory.into_iter().map(|line| format!("{VERSION} memory {line}")));
    let registry = Registry::new(std::path::Path::new("/folder"), 3, Some(7));
    let socket = registry.socket_path(0xab_cdef << 24 | 5);
    lines.insert(format!("{VERSION} socket {}", socket.display()));
    let list = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("wire.txt");
    kept_list::check(&list, &lines);
}

#[cfg(not(any(miri, loom)))]
fn one_of_each_kind() -> Vec<ControlMessage> {
    let topic = || Topic { name: "camera/ä".into(), type_name: "[u8]".into(), type_hash: 0x0708 };
    let mut attributes = Attributes::default();
    attributes.insert("gid", &[7, 0, 255]).unwrap();
    let publishing = EndpointRecord {
        kind: Kind::Publisher,
        topic: topic(),
        qos: AnnouncedQos {
            depth: 16,
            reliability: Reliability::Reliable,
            resends: true,
            transient_local: 4,
            deadline: Some(Duration::from_millis(20)),
            liveliness: None,
            is_alive_by_topic: true,
            lifespan: Some(Duration::from_secs(1)),
        },
        matching: Matching::RequestedOffered,
        created_ns: 0x0102_0304,
        attributes: attributes.clone(),
    };
    let subscribing = record_of(Kind::Subscriber, topic());
    let mismatch = Mismatch {
        setting: Setting::Deadline,
        offered: "none".into(),
        requested: "20ms".into(),
        is_refusal: true,
    };
    let record = NodeRecord {
        name: "viewer".into(),
        namespace: "/left".into(),
        program: "view".into(),
        host: "robot".into(),
        language: "C++".into(),
        version: "0.1.0".into(),
        attributes,
    };
    let (publisher, subscriber, reason) = (0x0102_0304_0506, 0x1112_1314_1516, "no".to_owned());
    let pair = Pair { publisher, subscriber };
    let (endpoint, other) = (publisher, subscriber);
    let segments = vec![
        SegmentSize { number: 1, slots: 8, slot_bytes: 4096 },
        SegmentSize { number: 2, slots: 4, slot_bytes: 1 << 33 },
    ];
    let reported = |state| ControlMessage::MatchesReported {
        matches: vec![MatchInfo { endpoint, other, state }],
    };
    vec![
        ControlMessage::Hello { node: 0xab_cdef << 24, record },
        ControlMessage::Ready,
        ControlMessage::Announced { endpoint: publisher, record: publishing },
        ControlMessage::Announced { endpoint: subscriber, record: subscribing },
        ControlMessage::Retracted { endpoint: publisher },
        ControlMessage::Offer { pair },
        ControlMessage::Segments { publisher, segments: segments.clone() },
        ControlMessage::Accept { pair, connection: 6, wake_pipe: true },
        ControlMessage::Matched { pair, start: 77 },
        ControlMessage::Withdrawn { pair, reason: reason.clone() },
        ControlMessage::Declined { pair, reason: reason.clone() },
        ControlMessage::Leaving,
        ControlMessage::RequestOffer { pair },
        ControlMessage::Query { from: publisher },
        ControlMessage::Counted { endpoints: vec![endpoint, other] },
        ControlMessage::QuerySchema { type_hash: 0x0708 },
        reported(MatchState::Pending),
        reported(MatchState::Matched),
        reported(MatchState::Refused { reason: reason.clone(), mismatch: None }),
        reported(MatchState::Refused { reason, mismatch: Some(mismatch) }),
        ControlMessage::Schema {
            type_hash: 0x0708,
            encoding: "myelin-layout".into(),
            part: b"u8".to_vec(),
            is_last: true,
        },
        ControlMessage::Answered { is_complete: true },
        ControlMessage::Observe { publisher, from: 3 },
        ControlMessage::Observed { publisher, has_ring: true, segments, is_last: true },
    ]
}

#[test]
fn the_longest_records_fit_into_a_message() {
    let long = "x".repeat(NAME_BYTES_MAX);
    let mut attributes = Attributes::default();
    for number in 0..ATTRIBUTES_MAX {
        attributes.insert(&format!("{number:02}"), &[0; 30]).unwrap();
    }
    assert!(attributes.insert("00", &[0; 31]).is_err(), "1,024 bytes are full");
    let record = NodeRecord {
        name: long.clone(),
        namespace: long.clone(),
        program: long.clone(),
        host: long.clone(),
        language: long.clone(),
        version: long.clone(),
        attributes: attributes.clone(),
    };
    let hello = ControlMessage::Hello { node: 1, record };
    assert_eq!(ControlMessage::decode(&hello.encode()).unwrap(), hello);
    let topic = Topic { name: long.clone(), type_name: long, type_hash: 1 };
    let record = EndpointRecord { attributes, ..record_of(Kind::Publisher, topic) };
    let announced = ControlMessage::Announced { endpoint: 1, record };
    assert_eq!(ControlMessage::decode(&announced.encode()).unwrap(), announced);
}

#[test]
fn attributes_that_a_node_cannot_have_are_refused() {
    let topic = Topic { name: "a".into(), type_name: String::new(), type_hash: 1 };
    let record = record_of(Kind::Publisher, topic);
    let head = ControlMessage::Announced { endpoint: 1, record }.encode();
    let head = &head[..head.len() - 1]; // the last byte is the number of attributes
    let one = |name: &str, bytes: usize| {
        let mut one = vec![name.len() as u8];
        one.extend(name.as_bytes());
        one.extend((bytes as u16).to_le_bytes());
        one.extend(vec![0; bytes]);
        one
    };
    let decode = |some: &[Vec<u8>]| {
        let all = [head, &[some.len() as u8], &some.concat()].concat();
        ControlMessage::decode(&all)
    };
    assert!(decode(&[one("a", 3), one("b", 0)]).is_ok());
    for (some, what) in [
        (vec![one("b", 0), one("a", 0)], "another order"),
        (vec![one("a", 0), one("a", 0)], "twice the same"),
        (vec![one("", 0)], "no name"),
        (vec![one(&"x".repeat(65), 0)], "a long name"),
        (vec![one("a", 1_024)], "too many bytes"),
        ((0..33).map(|number| one(&format!("{number:02}"), 0)).collect(), "too many"),
    ] {
        assert!(decode(&some).is_err(), "{what}");
    }
    let mut lying = head.to_vec();
    lying.extend([1, 1, b'a', 0xff, 0xff, 7]);
    assert!(ControlMessage::decode(&lying).is_err(), "more bytes than there are");
}

#[test]
fn a_message_has_as_many_matches_as_fit() {
    let info = |other, state| MatchInfo { endpoint: 1, other, state };
    let refused = |other| {
        let text = || "x".repeat(2 * NAME_BYTES_MAX);
        let mismatch = Mismatch {
            setting: Setting::Type,
            offered: text(),
            requested: text(),
            is_refusal: true,
        };
        info(other, MatchState::Refused { reason: text(), mismatch: Some(mismatch) })
    };
    let long: Vec<_> = (0..100).map(refused).collect();
    let short: Vec<_> = (0..1_000).map(|other| info(other, MatchState::Matched)).collect();
    for (matches, expected) in [(&long, 3), (&short, 180)] {
        let count = fitting_matches(matches);
        assert_eq!(count, expected);
        let of = |count| ControlMessage::MatchesReported { matches: matches[..count].to_vec() };
        let bytes = of(count).encode();
        assert!(bytes.len() <= MESSAGE_BYTES_MAX);
        assert!(bytes.len() + bytes.len() / count > MESSAGE_BYTES_MAX, "there is room for more");
        assert!(ControlMessage::decode(&bytes).is_ok());
    }
    assert_eq!(fitting_matches(&[]), 0);
    assert!(ControlMessage::decode(&[15, 0]).is_err(), "no match at all");
}
