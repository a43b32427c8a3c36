//! What is done with every input of the hostile tests and of the fuzz target `values`.

use myelin_value::{EncodeErrorKind, Encoding, Schema, Type, Value, encode_json};

/// Reads a sample by a schema, both from these bytes: the first byte chooses the schema, or says
/// that it is in the bytes too, up to the first byte 0.
pub fn read(bytes: &[u8]) {
    let Some((choice, rest)) = bytes.split_first() else { return };
    let own = rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len());
    let (text, sample) = (&rest[..own], rest.get(own + 1..).unwrap_or_default());
    match choice % 8 {
        0 => read_by(&Schema::new(Schema::LAYOUT, "", text), sample),
        1 => read_by(&Schema::new(Schema::ROS2MSG, "p/Main", text), sample),
        2 => read_by(&Schema::layout(LAYOUT), rest),
        3 => read_by(&Schema::layout(HEADER_SLICE), rest),
        _ => {
            // Nothing behind a wrong header is looked at.
            let header = [&[0, choice / 8 % 2, 0, 0], rest].concat();
            read_by(&Schema::new(Schema::ROS2MSG, "p/Main", MESSAGE), &header);
        }
    }
}

fn read_by(schema: &Schema<'_>, sample: &[u8]) {
    let Ok(ty) = schema.parse() else { return };
    let _ = (ty.to_string(), format!("{ty:?}"));
    // The other way round: an input that is not of this type.
    for json in [serde_json::json!({}), serde_json::json!([[], {}]), serde_json::json!("0")] {
        let _ = encode_json(&ty, &json);
    }
    // A sample of plain data has to have its length; then the rest can be looked at.
    let mut sample = sample.to_vec();
    if ty.encoding() == Encoding::Plain && ty.bytes_min() < 4096 {
        match ty.bytes() {
            Some(bytes) => sample.resize(bytes, 0xa5),
            None => sample.resize(sample.len().max(ty.bytes_min()), 0xa5),
        }
    }
    let Ok(value) = Value::new(&ty, &sample) else { return };
    parts(&value, 0);
    let _ = value.to_lines(3);
    for path in ["a", "names[2]", "points[1].x", "slice[0].a", "a.b[0].c"] {
        let _ = value.get(path).and_then(|part| part.to_json(2));
    }
    if let Ok(text) = value.to_json(usize::MAX) {
        read_back(&ty, &text);
    }
}

/// Looks at every part in every way.
fn parts(value: &Value<'_>, depth: usize) {
    let _ = (value.as_bool(), value.as_i64(), value.as_u64(), value.as_f64(), value.as_string());
    if let (Ok(slice), Ok(bytes)) = (value.as_slice(), value.as_bytes()) {
        let product: usize = slice.shape.iter().product();
        assert_eq!(product * slice.element.bytes(), bytes.len());
    }
    if let Ok(fields) = value.fields() {
        for (name, field) in fields.flatten() {
            parts(&field, depth + 1);
            let same = value.field(name).expect("its iterator has found it");
            assert_eq!(format!("{same:?}"), format!("{field:?}"));
        }
    }
    if let Ok(elements) = value.elements() {
        for (index, element) in elements.flatten().enumerate().take(5) {
            parts(&element, depth + 1);
            let same = value.element(index).expect("its iterator has found it");
            assert_eq!(format!("{same:?}"), format!("{element:?}"));
        }
    }
    assert!(depth < 64);
}

/// What was read completely is written again, unless its strings cannot be: those that are not
/// UTF-8 have become longer, and those with a NUL are not written in CDR.
fn read_back(ty: &Type, text: &str) {
    let json = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let sample = match encode_json(ty, &json) {
        Ok(sample) => sample,
        Err(error) => {
            let kind = &error.kind;
            let is_string =
                matches!(kind, EncodeErrorKind::Nul | EncodeErrorKind::BadLength { .. });
            assert!(
                is_string && (text.contains('\u{fffd}') || text.contains("\\u0000")),
                "{error}"
            );
            return;
        }
    };
    let again = Value::new(ty, &sample).and_then(|value| value.to_json(usize::MAX));
    assert_eq!(again.as_deref(), Ok(text));
}

const LAYOUT: &str = "S{a: [f32; 2] @0, names: BoundedVec<u16, 3>{length: u64 @0, elements: \
    [u16; 3] @8} 14 @8, text: FixedString<5>{length: [u8; 4] @0, bytes: [u8; 5] @4} 9 @22, \
    flag: Bool @31, big: u128 @32, points: [P{x: i8 @0, y: Opaque{?} 2 @2} 4; 2] @48} 56";

const HEADER_SLICE: &str = "(H{a: u8 @0} 1, [P{a: [u8; 2] @0, b: f32 @2} 6] @1)";

const MESSAGE: &str = "\
Point[] points
string[] names
bool a
float64[] d
Empty[<=3] e
string<=4 s
Inner[2] inner
=====
MSG: p/Point
float32 x
float32 y
=====
MSG: p/Empty
=====
MSG: p/Inner
uint8 tag
float64 value
string text
int64[3] three
";
