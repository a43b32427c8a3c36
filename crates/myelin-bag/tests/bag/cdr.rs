//! Plain data, read as messages of ROS 2.

use std::mem::{offset_of, size_of};

use crate::support::{Disk, output, python};
use myelin_bag::{
    Channel, MessageHead, Options, PlainCdr, Schema, TopicFormat, UnfitReason, Writer,
};
use myelin_value::Value;
use serde_json::{Value as Json, json};

#[repr(C)]
struct Inner {
    kind: u16,
    value: f64,
}

#[repr(C)]
struct Sample {
    id: u8,
    stamp: u64,
    is_ok: u8,
    gains: [f32; 3],
    inner: [Inner; 2],
    mode: i16,
}

const INNER: &str = "Inner{kind: u16 @0, value: f64 @8} 16";

/// As `derive(Payload)` writes it.
fn layout() -> String {
    let (stamp, is_ok) = (offset_of!(Sample, stamp), offset_of!(Sample, is_ok));
    let (gains, inner, mode) =
        (offset_of!(Sample, gains), offset_of!(Sample, inner), offset_of!(Sample, mode));
    let bytes = size_of::<Sample>();
    assert_eq!((offset_of!(Inner, kind), offset_of!(Inner, value), size_of::<Inner>()), (0, 8, 16));
    format!(
        "Sample{{id: u8 @{}, stamp: u64 @{stamp}, isOK: Bool @{is_ok}, gains: [f32; 3] @{gains}, \
         inner: [{INNER}; 2] @{inner}, mode: i16 @{mode}}} {bytes}",
        offset_of!(Sample, id),
    )
}

/// Numbers at the offsets that the compiler chose; each hole is zero.
fn sample() -> Vec<u8> {
    let mut bytes = vec![0; size_of::<Sample>()];
    let mut put = |at: usize, number: &[u8]| bytes[at..at + number.len()].copy_from_slice(number);
    put(offset_of!(Sample, id), &[7]);
    put(offset_of!(Sample, stamp), &u64::MAX.to_le_bytes());
    put(offset_of!(Sample, is_ok), &[1]);
    for (number, gain) in [0.5_f32, -1.0, 2.0].into_iter().enumerate() {
        put(offset_of!(Sample, gains) + number * 4, &gain.to_le_bytes());
    }
    for (number, (kind, value)) in [(1_u16, 1.25_f64), (2, 2.5)].into_iter().enumerate() {
        put(offset_of!(Sample, inner) + number * 16, &kind.to_le_bytes());
        put(offset_of!(Sample, inner) + number * 16 + 8, &value.to_le_bytes());
    }
    put(offset_of!(Sample, mode), &(-3_i16).to_le_bytes());
    bytes
}

fn cdr(layout: &str) -> PlainCdr {
    let ty = Schema::layout(layout).parse().expect("a layout");
    PlainCdr::new(&ty).unwrap_or_else(|unfit| panic!("{layout}: {unfit}"))
}

#[test]
fn holes_become_fields() {
    let cdr = cdr(&layout());
    assert_eq!(cdr.schema().name, "myelin/msg/Sample");
    let text = std::str::from_utf8(&cdr.schema().text).expect("text");
    assert_eq!(
        text,
        "\
uint8 id
uint8[7] padding0
uint64 stamp
bool is_ok
uint8[3] padding1
float32[3] gains
myelin/Inner[2] inner
int16 mode
uint8[6] padding2
================================================================================
MSG: myelin/Inner
uint16 kind
uint8[6] padding0
float64 value
"
    );
    let json = by_myelin_value(&cdr, &sample());
    assert_eq!(json["stamp"], json!(u64::MAX));
    assert_eq!(json["inner"][1]["value"], json!(2.5));
    assert_eq!(json["mode"], json!(-3));
}

/// What Myelin's own reader of messages makes of a sample's message.
fn by_myelin_value(cdr: &PlainCdr, sample: &[u8]) -> Json {
    let message = cdr.message(sample, &mut vec![0xff; 12]).concat();
    let ty = cdr.schema().as_schema().parse().expect("a definition of messages");
    let value = Value::new(&ty, &message).expect("a header of CDR");
    serde_json::from_str(&value.to_json(usize::MAX).expect("a message")).expect("JSON")
}

#[test]
fn names_are_as_ros_2_wants_them() {
    let cdr = cdr("robot::Arm<f64>{0: u8 @0, theX__: u8 @1, the_x: u8 @2, padding0: u8 @3, \
                   \u{e9}: f32 @8, type: [u8; 0] @12, s: () @12, raw: Foo{?} 3 @12} 16");
    assert_eq!(cdr.schema().name, "myelin/msg/RobotArmF64");
    let text = std::str::from_utf8(&cdr.schema().text).expect("text");
    assert_eq!(
        text,
        "\
uint8 field_0
uint8 the_x
uint8 the_x_2
uint8 padding0
uint8[4] padding0_2
float32 field
uint8[3] raw
uint8[1] padding1
"
    );
}

#[test]
fn two_types_of_one_name_are_two_messages() {
    let cdr = cdr("A{x: P{v: u8 @0} 1 @0, y: P{v: i8 @0} 1 @1, z: P{v: u8 @0} 1 @2} 3");
    let text = std::str::from_utf8(&cdr.schema().text).expect("text");
    assert!(text.starts_with("myelin/P x\nmyelin/P2 y\nmyelin/P z\n"), "{text}");
    assert_eq!(text.matches("MSG:").count(), 2);
}

#[test]
fn what_does_not_fit_is_refused() {
    for (layout, path, reason) in [
        ("i128", "", UnfitReason::NoSuchNumber("i128")),
        ("A{a: B{b: u128 @0} 16 @0} 16", "a.b", UnfitReason::NoSuchNumber("u128")),
        ("A{a: u8 @0, b: u32 @1} 5", "b", UnfitReason::Misaligned { align: 4, offset: 1 }),
        ("[A{a: u64 @0, b: u8 @8} 9; 2]", "", UnfitReason::Misaligned { align: 8, offset: 9 }),
        ("A{x: B{v: f64 @0} 8 @4} 12", "x", UnfitReason::Misaligned { align: 8, offset: 4 }),
        ("[A{a: u64 @0, b: u8 @8} 9]", "", UnfitReason::Misaligned { align: 8, offset: 9 }),
        (
            "(A{a: u8 @0, b: u16 @1} 3, [u8] @3)",
            "b",
            UnfitReason::Misaligned { align: 2, offset: 1 },
        ),
        ("()", "", UnfitReason::NoBytes),
    ] {
        let ty = Schema::layout(layout).parse().unwrap_or_else(|error| panic!("{layout}: {error}"));
        let unfit = PlainCdr::new(&ty).expect_err(layout);
        assert_eq!((unfit.path.as_str(), &unfit.reason), (path, &reason), "{layout}");
    }
    let ty = Schema::new("ros2msg", "a/msg/B", "uint8 a").parse().expect("a message");
    assert_eq!(PlainCdr::new(&ty).expect_err("CDR").reason, UnfitReason::NotPlain);
}

#[test]
fn samples_that_are_no_cdr_are_written_as_they_are() {
    let mut length = Vec::new();
    let layout = "A{a: B{b: u128 @0} 16 @0} 16";
    let format = TopicFormat::new(&Schema::layout(layout));
    assert_eq!(format.not_cdr(), Some("a.b: messages of ROS 2 have no u128"));
    assert_eq!(format.channel("a", 1).encoding, "x-myelin");
    let schema = format.schema();
    assert_eq!((schema.encoding.as_str(), schema.name.as_str()), ("myelin-layout", "A"));
    assert_eq!(schema.text, layout.as_bytes());
    assert_eq!(format.message(&[5; 16], &mut length).concat(), [5; 16]);

    let broken = TopicFormat::new(&Schema::layout("A{"));
    assert_eq!(broken.channel("a", 1).encoding, "x-myelin");
    assert!(broken.not_cdr().expect("a reason").contains("byte 2 of the layout"));

    let other = TopicFormat::new(&Schema::new("protobuf", "a.B", &[1, 2]));
    assert_eq!(other.channel("a", 1).encoding, "x-myelin");
    let ros = TopicFormat::new(&Schema::new("ros2msg", "a/msg/B", "uint8 a"));
    assert_eq!((ros.channel("/a", 1).encoding, ros.not_cdr()), ("cdr".to_owned(), None));
    assert_eq!(ros.message(&[0, 1, 0, 0, 7], &mut length).concat(), [0, 1, 0, 0, 7]);
}

/// Topics of every shape: layout, sample, and values without the padding.
fn topics() -> Vec<(String, Vec<u8>, Json)> {
    let inner = |kind: u16, value: f64| {
        let mut bytes = vec![0; 16];
        bytes[..2].copy_from_slice(&kind.to_le_bytes());
        bytes[8..].copy_from_slice(&value.to_le_bytes());
        bytes
    };
    let text = [&[3, 0, 0, 0][..], b"abc\0\0"].concat();
    let slice_of = "(Image{width: u16 @0, is_big: Bool @2} 4";
    vec![
        (
            layout(),
            sample(),
            json!({
                "id": 7, "stamp": u64::MAX, "is_ok": true, "gains": [0.5, -1.0, 2.0],
                "inner": [{"kind": 1, "value": 1.25}, {"kind": 2, "value": 2.5}], "mode": -3,
            }),
        ),
        ("f64".into(), 0.5_f64.to_le_bytes().into(), json!({"data": 0.5})),
        ("[[u16; 2]; 2]".into(), vec![1, 0, 2, 0, 3, 0, 4, 0], json!({"data": [1, 2, 3, 4]})),
        (
            "A{name: FixedString<5>{length: [u8; 4] @0, bytes: [u8; 5] @4} 9 @0, end: u8 @9} 10"
                .into(),
            [&text[..], &[9]].concat(),
            json!({"name": {"length": [3, 0, 0, 0], "bytes": [97, 98, 99, 0, 0]}, "end": 9}),
        ),
        (
            "A{l: BoundedVec<u32, 2>{length: u64 @0, elements: [u32; 2] @8} 16 @0} 16".into(),
            [&[1, 0, 0, 0, 0, 0, 0, 0][..], &[5, 0, 0, 0, 0, 0, 0, 0]].concat(),
            json!({"l": {"length": 1, "elements": [5, 0]}}),
        ),
        ("[u8]".into(), vec![1, 2, 3], json!({"data": [1, 2, 3]})),
        (
            format!("[{INNER}]"),
            [inner(3, 0.25), inner(4, -0.5)].concat(),
            json!({"data": [{"kind": 3, "value": 0.25}, {"kind": 4, "value": -0.5}]}),
        ),
        (format!("[{INNER}]"), vec![], json!({"data": []})),
        (
            format!("{slice_of}, [f64] @8)"),
            [&[2, 0, 1, 0, 0, 0, 0, 0][..], &1.5_f64.to_le_bytes()].concat(),
            json!({"header": {"width": 2, "is_big": true}, "slice": [1.5]}),
        ),
        (
            "(A{a: u8 @0} 1, [u32] @4)".into(),
            vec![9, 0, 0, 0, 1, 0, 0, 0],
            json!({"header": {"a": 9}, "slice": [1]}),
        ),
        (
            "[[u8; 3]]".into(),
            vec![1, 2, 3, 4, 5, 6],
            json!({"data": [{"data": [1, 2, 3]}, {"data": [4, 5, 6]}]}),
        ),
    ]
}

#[test]
fn myelin_value_reads_every_shape() {
    for (layout, sample, values) in topics() {
        let read = without_padding(by_myelin_value(&cdr(&layout), &sample));
        assert_eq!(read, values, "{layout}");
    }
}

#[test]
fn python_reads_every_shape() {
    let Some(mut command) = python("read.py") else { return };
    let disk = Disk::new(usize::MAX);
    let mut writer = Writer::new(disk.clone(), Options::default()).expect("endless space");
    for (number, (layout, sample, _)) in (0..).zip(topics()) {
        let cdr = cdr(&layout);
        let schema = writer.add_schema(&cdr.schema().as_schema()).expect("a schema");
        let (topic, encoding) = (format!("/topic{number}"), "cdr".to_owned());
        let channel = Channel { schema, topic, encoding, ..Channel::default() };
        let channel = writer.add_channel(&channel).expect("a channel");
        let head = MessageHead { channel, sequence: 0, log_ns: number, publish_ns: number };
        writer.write(&head, &cdr.message(&sample, &mut Vec::new())).expect("endless space");
    }
    writer.finish().expect("endless space");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("run.mcap");
    std::fs::write(&path, disk.bytes()).expect("space");
    let read = output(command.arg("values").arg(&path));
    assert_eq!(read.lines().count(), topics().len());
    for (line, (layout, _, values)) in read.lines().zip(topics()) {
        let read = serde_json::from_str(line).expect("JSON");
        assert_eq!(without_padding(read), values, "{layout}");
    }
}

fn without_padding(value: Json) -> Json {
    match value {
        Json::Object(fields) => {
            let named = fields.into_iter().filter(|(name, _)| !name.starts_with("padding"));
            named.map(|(name, value)| (name, without_padding(value))).collect()
        }
        Json::Array(values) => values.into_iter().map(without_padding).collect(),
        other => other,
    }
}
