//! Whatever the schema and the bytes are, the result is a value or an error: no panic, and no more
//! memory or time than the limits allow. The fuzz target `values` has the same handler.

use std::fmt::Write;

use myelin_value::limits::{DEPTH_MAX, SCHEMA_BYTES_MAX};
use myelin_value::{
    EncodeErrorKind, ReadErrorKind, Schema, SchemaErrorKind, Type, Value, encode_json,
};
use proptest::prelude::*;
use serde_json::json;

use crate::hostile_input::read;

/// Pieces of schemas, so that random ones get far.
const PIECES: [&str; 40] = [
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    ": ",
    " @",
    "@0",
    "@4",
    "@8",
    ", ",
    "; ",
    "; 2]",
    "u8",
    "f64",
    "Bool",
    "u128",
    "()",
    "A{",
    "a: ",
    "b: ",
    "} 8",
    "} 16",
    "{?} 3",
    "FixedString<2>",
    "\n",
    "=====\n",
    "MSG: p/A\n",
    "MSG: p/B\n",
    "A a\n",
    "p/B[] b\n",
    "B[3] c\n",
    "string<=3 s\n",
    "uint8[] d\n",
    "float64 x",
    "int32 X=3\n",
    "# comment",
    "[<=2]",
    "string",
];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        read(&bytes);
    }

    /// Lengths in a sample are mostly small, so that there is something behind them.
    #[test]
    fn any_sample(
        choice: u8, bytes in proptest::collection::vec(prop_oneof![3 => 0..4_u8, 1 => any::<u8>()], 0..200),
    ) {
        read(&[&[choice / 8 * 8 + 2 + choice % 6], &bytes[..]].concat());
    }

    #[test]
    fn any_schema(
        choice in 0..2_u8,
        pieces in proptest::collection::vec(proptest::sample::select(&PIECES[..]), 0..40),
        sample in proptest::collection::vec(0..4_u8, 0..60),
    ) {
        read(&[&[choice], pieces.concat().as_bytes(), &[0, 0, 1, 0, 0], &sample].concat());
    }
}

fn layout(text: &str) -> Result<Type, SchemaErrorKind> {
    Schema::layout(text).parse().map_err(|error| error.kind)
}

fn message(text: &str) -> Result<Type, SchemaErrorKind> {
    Schema::new(Schema::ROS2MSG, "p/Main", text).parse().map_err(|error| error.kind)
}

#[test]
fn a_deep_type_is_refused() {
    let arrays = |depth| format!("{}u8{}", "[".repeat(depth), "; 1]".repeat(depth));
    assert!(layout(&arrays(DEPTH_MAX - 1)).is_ok());
    assert_eq!(layout(&arrays(DEPTH_MAX)), Err(SchemaErrorKind::TooDeep));
    assert_eq!(layout(&"[".repeat(SCHEMA_BYTES_MAX)), Err(SchemaErrorKind::TooDeep));
    assert_eq!(layout(&"[".repeat(SCHEMA_BYTES_MAX + 1)), Err(SchemaErrorKind::TooLong));
    assert_eq!(layout(&"A{a: ".repeat(13_000)), Err(SchemaErrorKind::TooDeep));
    let chain = |depth: usize, last: &str| {
        let mut text = "M0 m\n".to_owned();
        for at in 0..depth {
            let _ = write!(text, "=====\nMSG: p/M{at}\nM{} m\n", at + 1);
        }
        text + "=====\nMSG: p/M" + &depth.to_string() + "\n" + last
    };
    assert!(message(&chain(DEPTH_MAX - 3, "uint8 x")).is_ok());
    assert_eq!(message(&chain(DEPTH_MAX - 2, "uint8 x")), Err(SchemaErrorKind::TooDeep));
    assert_eq!(message(&chain(2_000, "uint8 x")), Err(SchemaErrorKind::TooDeep));
    let cycle = SchemaErrorKind::Cycle("p/M1".to_owned());
    assert_eq!(message(&chain(3, "M1[] x")), Err(cycle));
    assert_eq!(message("Main[] x"), Err(SchemaErrorKind::Cycle("p/Main".to_owned())));
    // A definition that was resolved before is used deeper.
    let mut text = "M40 first\nM0 second\n".to_owned();
    for at in 0..DEPTH_MAX {
        let _ = write!(text, "=====\nMSG: p/M{at}\nM{} m\n", at + 1);
    }
    let _ = write!(text, "=====\nMSG: p/M{DEPTH_MAX}\nuint8 x");
    assert_eq!(message(&text), Err(SchemaErrorKind::TooDeep));
}

#[test]
fn a_type_that_multiplies_is_refused() {
    let mut text = "M0[] a\nM0[] b\n".to_owned();
    for at in 0..30 {
        let _ = write!(text, "=====\nMSG: p/M{at}\nM{0}[] a\nM{0}[] b\n", at + 1);
    }
    text += "=====\nMSG: p/M30\nuint8 x";
    assert_eq!(message(&text), Err(SchemaErrorKind::TooManyNodes));
    // Fixed arrays multiply bytes.
    let mut text = "M0[1000] a\n".to_owned();
    for at in 0..9 {
        let _ = write!(text, "=====\nMSG: p/M{at}\nM{}[1000] a\n", at + 1);
    }
    text += "=====\nMSG: p/M9\nuint8 x";
    assert_eq!(message(&text), Err(SchemaErrorKind::TooLarge));
    assert_eq!(layout("[[u8; 4294967296]; 4294967296]"), Err(SchemaErrorKind::TooLarge));
    assert_eq!(layout("[u128; 18446744073709551615]"), Err(SchemaErrorKind::TooLarge));
    let text = "BoundedVec<u8, 18446744073709551615>{length: u64 @0, elements: \
                [u8; 18446744073709551615] @8} 7";
    assert_eq!(layout(text), Err(SchemaErrorKind::TooLarge));
    assert_eq!(layout("A{?} 18446744073709551615"), Err(SchemaErrorKind::TooLarge));
    assert_eq!(layout("A{a: u8 @18446744073709551615} 1"), outside(usize::MAX, 1));
    // Elements without bytes would have no end.
    assert_eq!(layout("[(); 18446744073709551615]"), Err(SchemaErrorKind::NoBytes));
    assert_eq!(layout("[[[u8; 0]; 3]; 3]"), Err(SchemaErrorKind::NoBytes));
    assert_eq!(layout("[()]"), Err(SchemaErrorKind::NoBytes));
    assert_eq!(message("uint8[0] a"), Err(SchemaErrorKind::NoElements));
}

fn outside(end: usize, bytes: usize) -> Result<Type, SchemaErrorKind> {
    Err(SchemaErrorKind::Outside { end, bytes })
}

#[test]
fn a_schema_that_lies_is_refused_where_it_does() {
    assert_eq!(layout("A{a: u32 @0} 3"), outside(4, 3));
    let overlap = Err(SchemaErrorKind::Overlap("b".to_owned()));
    assert_eq!(layout("A{a: u32 @0, b: u32 @3} 8"), overlap);
    let twice = |name: &str| Err(SchemaErrorKind::Twice(name.to_owned()));
    assert_eq!(layout("A{a: u8 @0, a: u8 @1} 2"), twice("a"));
    assert_eq!(message("uint8 a\nuint8 a"), twice("a"));
    assert_eq!(message("uint8 a\n=====\nMSG: p/msg/Main\n"), twice("p/Main"));
    let unknown = |name: &str| Err(SchemaErrorKind::UnknownType(name.to_owned()));
    assert_eq!(layout("A{a: f16 @0} 2"), unknown("f16"));
    assert_eq!(message("Unknown[] a"), unknown("Unknown"));
    assert_eq!(message("time a"), unknown("time"));
    assert_eq!(message("wstring a"), Err(SchemaErrorKind::Unsupported));
    assert_eq!(layout("A{} 0 -> B{} 0"), Err(SchemaErrorKind::Unsupported));
    assert_eq!(layout("u8 u8"), Err(SchemaErrorKind::Expected("the end")));
    let bad_name = |name: &str| Err(SchemaErrorKind::BadName(name.to_owned()));
    for name in ["a.b", "a[0]", "a\"", "a\\", ""] {
        assert_eq!(layout(&format!("A{{{name}: u8 @0}} 1")), bad_name(name));
    }
    assert_eq!(layout("A\u{1b}[2J{a: u8 @0} 1"), bad_name("A?[2J"));
    assert_eq!(message("uint8 a-b"), bad_name("a-b"));
    assert_eq!(message("uint8 a\n=====\nMSG: p/\u{7}"), bad_name("p/?"));
    assert!(matches!(
        layout(&format!("{}{{}} 0", "A".repeat(256))),
        Err(SchemaErrorKind::BadName(_))
    ));
    for text in ["uint8", "uint8[ a", "uint8[x] a", "uint8[-1] a", "string<=+3 a", "---", "====\nx"]
    {
        assert!(matches!(message(text), Err(SchemaErrorKind::Expected(_))), "{text}");
    }
    for text in [
        "",
        "[",
        "[u8",
        "[u8;",
        "[u8; 3",
        "(u8",
        "(u8, [u8])",
        "A{",
        "A{a",
        "A{a: u8",
        "A{?",
        "A{a: u8 @0",
        "A{a: u8 @0}",
        "A{a: u8 @-1} 1",
        "[u8; 99999999999999999999]",
    ] {
        let error = layout(text).unwrap_err();
        let is_expected = matches!(error, SchemaErrorKind::Expected(_))
            || matches!(&error, SchemaErrorKind::UnknownType(name) if name.is_empty());
        assert!(is_expected, "{text}: {error:?}");
    }
    let not_text = Schema::new(Schema::LAYOUT, "", &[0xff]).parse().unwrap_err();
    assert_eq!(not_text.kind, SchemaErrorKind::NotUtf8);
    let place = Schema::new("ros2msg", "p/Main", "\nA a\n===\nMSG: p/A\n\nuint8 b =\nB b\n");
    let error = place.parse().unwrap_err().to_string();
    assert_eq!(error, "line 7, in p/A: there is no type \"B\"");
    let error = Schema::layout("A{a: u8 @0, b: u9 @1} 2").parse().unwrap_err().to_string();
    assert_eq!(error, "byte 15 of the layout: there is no type \"u9\"");
    let error = Schema::new("ros2idl", "", "").parse().unwrap_err().to_string();
    let advice = "there is no reader for this; read the samples as bytes";
    assert_eq!(error, format!("encoding \"ros2idl\": {advice}"));
}

#[test]
fn a_length_that_lies_costs_nothing() {
    let ty = message("string[] names\nuint8[4000000000] all").unwrap();
    let sample = [0, 1, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];
    let value = Value::new(&ty, &sample).unwrap();
    let short = |at, needed, left| ReadErrorKind::TooShort { at, needed, left };
    let error = value.to_json(1).unwrap_err();
    assert_eq!((&*error.path, error.kind), ("names", short(8, 4 * 0xffff_ffff, 4)));
    let error = value.get("all[3999999999]").unwrap_err();
    assert_eq!((&*error.path, error.kind), ("names", short(8, 4 * 0xffff_ffff, 4)));
    let error = encode_json(&ty, &json!({})).unwrap_err();
    assert_eq!(error.kind, EncodeErrorKind::TooLong);
    let ty = layout("[A{a: [u8; 1073741824] @0} 1073741824]").unwrap();
    let error = encode_json(&ty, &json!([{}, {}])).unwrap_err();
    assert_eq!((&*error.path, error.kind), ("[1]", EncodeErrorKind::TooLong));
}
