//! Plain data: Rust's own layout of derived types is the oracle.

use myelin::{Bool, BoundedVec, DynamicType, FixedString, HeaderSlice, Layout, PlainData};
use myelin_value::{Encoding, Kind, Primitive, ReadErrorKind, Schema, Type, Value, encode_json};
use serde_json::json;

#[derive(Clone, Copy, PlainData)]
#[repr(C)]
struct Point(f32, f32);

#[derive(Clone, Copy, PlainData)]
#[repr(C)]
struct Scan {
    huge: u128,
    negative: i128,
    stamp_ns: u64,
    corners: [[Point; 2]; 3],
    path: BoundedVec<Point, 3>,
    name: FixedString<11>,
    is_last: Bool,
    small: [i8; 3],
    level: i8,
    height: i16,
    width: u16,
    size: usize,
    gain: f64,
    nothing: [u64; 0],
    offset: isize,
    _pad: [u8; 8],
}

fn type_of<T: PlainData>() -> Type {
    Schema::layout(&T::layout()).parse().unwrap()
}

fn bytes_of<T: PlainData>(value: &T) -> &[u8] {
    // SAFETY: plain data has no padding.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) }
}

fn scan() -> Scan {
    Scan {
        huge: u128::MAX - 1,
        negative: i128::MIN,
        stamp_ns: u64::MAX,
        corners: [0.0, 1.0, 2.0].map(|it| [Point(it, 0.5), Point(-it, 1e9)]),
        path: BoundedVec::from_slice(&[Point(7.0, 8.0)]).unwrap(),
        name: FixedString::new("gripper é").unwrap(),
        is_last: Bool::TRUE,
        small: [-128, 0, 127],
        level: -1,
        height: -300,
        width: 65_000,
        size: 1 << 60,
        gain: -0.1,
        nothing: [],
        offset: -1,
        _pad: [0; 8],
    }
}

#[test]
fn each_field_has_the_value_that_rust_wrote() {
    let (ty, scan) = (type_of::<Scan>(), scan());
    assert_eq!(ty.bytes(), Some(size_of::<Scan>()));
    let value = Value::new(&ty, bytes_of(&scan)).unwrap();
    let get = |path| value.get(path).unwrap();
    assert_eq!(get("stamp_ns").as_u64().unwrap(), u64::MAX);
    assert_eq!(get("corners[1][0].0").as_f64().unwrap(), 1.0);
    assert_eq!(get("corners[2][1].1").as_f64().unwrap(), 1e9);
    assert_eq!(get("path").len().unwrap(), 1);
    assert_eq!(get("path[0].1").as_f64().unwrap(), 8.0);
    assert_eq!(get("name").as_string().unwrap(), "gripper é");
    assert_eq!(get("name").as_bytes().unwrap(), "gripper é".as_bytes());
    assert!(get("is_last").as_bool().unwrap());
    assert_eq!(get("small[0]").as_i64().unwrap(), -128);
    assert_eq!(get("level").as_i64().unwrap(), -1);
    assert_eq!(get("height").as_i64().unwrap(), -300);
    assert_eq!(get("width").as_i64().unwrap(), 65_000);
    assert_eq!(get("size").as_u64().unwrap(), 1 << 60);
    assert_eq!(get("gain").as_f64().unwrap(), -0.1);
    assert_eq!(get("nothing").len().unwrap(), 0);
    assert_eq!(get("offset").as_i64().unwrap(), -1);
    assert_eq!(get("").ty(), &ty);
    let names = value.fields().unwrap().map(|field| field.unwrap().0);
    assert_eq!(names.take(2).collect::<Vec<_>>(), ["huge", "negative"]);
}

#[test]
fn json_is_read_back_to_the_same_bytes() {
    let (ty, scan) = (type_of::<Scan>(), scan());
    let text = Value::new(&ty, bytes_of(&scan)).unwrap().to_json(usize::MAX).unwrap();
    assert_eq!(
        text,
        "{\"huge\": \"340282366920938463463374607431768211454\", \
         \"negative\": \"-170141183460469231731687303715884105728\", \
         \"stamp_ns\": 18446744073709551615, \
         \"corners\": [[{\"0\": 0.0, \"1\": 0.5}, {\"0\": -0.0, \"1\": 1000000000.0}], \
         [{\"0\": 1.0, \"1\": 0.5}, {\"0\": -1.0, \"1\": 1000000000.0}], \
         [{\"0\": 2.0, \"1\": 0.5}, {\"0\": -2.0, \"1\": 1000000000.0}]], \
         \"path\": [{\"0\": 7.0, \"1\": 8.0}], \"name\": \"gripper é\", \"is_last\": true, \
         \"small\": [-128, 0, 127], \"level\": -1, \"height\": -300, \"width\": 65000, \
         \"size\": 1152921504606846976, \"gain\": -0.1, \"nothing\": [], \"offset\": -1, \
         \"_pad\": [0, 0, 0, 0, 0, 0, 0, 0]}"
    );
    let json = serde_json::from_str(&text).unwrap();
    assert_eq!(encode_json(&ty, &json).unwrap(), bytes_of(&scan));
}

#[test]
fn lengths_of_a_faulty_peer_are_read_as_the_library_reads_them() {
    let ty = type_of::<Scan>();
    let mut bytes = bytes_of(&scan()).to_vec();
    let path = Value::new(&ty, &bytes).unwrap().get("path").unwrap();
    let path_at = path.as_bytes().unwrap().as_ptr().addr() - bytes.as_ptr().addr() - 8;
    bytes[path_at..path_at + 8].fill(0xff);
    let value = Value::new(&ty, &bytes).unwrap();
    assert_eq!(value.get("path").unwrap().len().unwrap(), 3);
    let name_at = path_at + 8 + 3 * 8;
    bytes[name_at..name_at + 4].fill(0xff);
    let value = Value::new(&ty, &bytes).unwrap();
    assert_eq!(value.get("name").unwrap().len().unwrap(), 11);
    bytes[name_at + 4] = 0xff;
    let value = Value::new(&ty, &bytes).unwrap();
    let error = value.get("name").unwrap().as_string().unwrap_err();
    assert_eq!(error.kind, ReadErrorKind::BadUtf8);
    assert!(value.to_json(1).unwrap().contains("\"name\": \"�ripper é"));
}

#[test]
fn slices_and_headers_with_a_slice() {
    let point = Layout::structure(
        "Point",
        &[("0", &Layout::scalar("f32").unwrap(), 0), ("1", &Layout::scalar("f32").unwrap(), 4)],
        8,
        4,
    )
    .unwrap();
    let points = [Point(1.0, 2.0), Point(3.0, 4.0)];
    let elements: Vec<u8> = points.iter().flat_map(|it| bytes_of(it).to_vec()).collect();

    let slice = DynamicType::slice(&point).unwrap();
    let ty = Schema::layout(slice.layout()).parse().unwrap();
    let value = Value::new(&ty, &elements).unwrap();
    assert_eq!(value.len().unwrap(), 2);
    assert_eq!(value.get("[1].0").unwrap().as_f64().unwrap(), 3.0);
    let json = json!([{ "0": 1, "1": 2 }, { "0": 3, "1": 4 }]);
    assert_eq!(encode_json(&ty, &json).unwrap(), elements);
    assert_eq!(Value::new(&ty, &[]).unwrap().to_json(9).unwrap(), "[]");
    let error = Value::new(&ty, &elements[1..]).unwrap_err().to_string();
    let rule = "a [Point] has 0 B and then elements of 8 B";
    assert_eq!(error, format!("a length of 15 is not possible; {rule}"));

    let both = DynamicType::header_slice(&Layout::scalar("u16").unwrap(), &point).unwrap();
    let ty = Schema::layout(both.layout()).parse().unwrap();
    assert_eq!(ty.to_string(), both.type_name());
    let offset = HeaderSlice::<u16, Point>::SLICE_OFFSET;
    let sample = [&[7, 0], &vec![0; offset - 2][..], &elements].concat();
    let value = Value::new(&ty, &sample).unwrap();
    assert_eq!(value.get("header").unwrap().as_u64().unwrap(), 7);
    assert_eq!(value.get("slice[1].1").unwrap().as_f64().unwrap(), 4.0);
    assert_eq!(value.as_bytes().unwrap(), sample);
    let text = value.to_json(1).unwrap();
    assert_eq!(text, r#"{"header": 7, "slice": [{"0": 1.0, "1": 2.0}, {"...": 2}]}"#);
    let json = serde_json::from_str(&value.to_json(2).unwrap()).unwrap();
    assert_eq!(encode_json(&ty, &json).unwrap(), sample);
    assert_eq!(encode_json(&ty, &json!({})).unwrap(), vec![0; offset]);
    assert!(Value::new(&ty, &sample[..3]).is_err());
}

#[test]
fn numbers_are_not_copied() {
    let (ty, scan) = (type_of::<[[f32; 2]; 3]>(), [[1.0_f32, 2.0], [3.0, 4.0], [5.0, 6.0]]);
    let bytes = bytes_of(&scan);
    let slice = Value::new(&ty, bytes).unwrap().as_slice().unwrap();
    assert_eq!((slice.element, &slice.shape[..]), (Primitive::F32, &[3, 2][..]));
    assert_eq!(slice.bytes.as_ptr_range(), bytes.as_ptr_range());
    let ty = type_of::<Scan>();
    let zeros = [0; size_of::<Scan>()];
    let value = Value::new(&ty, &zeros).unwrap();
    let error = value.get("corners").unwrap().as_slice().unwrap_err().to_string();
    assert_eq!(error, "this is a [[Point; 2]; 3], not numbers");
    // Of plain data, structs have their bytes in one piece.
    assert_eq!(value.get("corners").unwrap().as_bytes().unwrap().len(), 48);
    assert_eq!(value.get("corners[0][1]").unwrap().as_bytes().unwrap().len(), 8);
}

#[test]
fn a_type_made_by_hand_is_bytes() {
    let ty = type_of::<[myelin::Pod<[u16; 2]>; 2]>();
    assert!(matches!(ty.kind(), Kind::Array { element, length: 2 }
        if matches!(element.kind(), Kind::Opaque { .. })));
    let sample = [1, 2, 3, 0xff, 5, 6, 7, 8];
    let value = Value::new(&ty, &sample).unwrap();
    assert_eq!(value.get("[1]").unwrap().as_bytes().unwrap(), &sample[4..]);
    assert_eq!(value.to_json(9).unwrap(), r#"["010203ff", "05060708"]"#);
    assert_eq!(encode_json(&ty, &json!(["010203FF", "05060708"])).unwrap(), sample);
    let error = |json| encode_json(&ty, &json).unwrap_err().to_string();
    assert_eq!(error(json!(["01", ""])), "[0]: 8 hexadecimal digits are needed, not 2");
    assert_eq!(
        error(json!(["0102030g", ""])),
        "[0]: a string of hexadecimal digits is needed, not another string"
    );
}

#[test]
fn padding_is_zero_and_skipped() {
    let ty = Schema::layout("Gap{a: u8 @1, b: u16 @4} 8").parse().unwrap();
    let sample = encode_json(&ty, &json!({ "a": 255, "b": 65_535 })).unwrap();
    assert_eq!(sample, [0, 255, 0, 0, 255, 255, 0, 0]);
    let value = Value::new(&ty, &[9, 1, 9, 9, 2, 0, 9, 9]).unwrap();
    assert_eq!(value.to_json(1).unwrap(), r#"{"a": 1, "b": 2}"#);
}

#[test]
fn wrong_paths_name_what_is_near() {
    let ty = Schema::layout("Pose{position: P{x: f64 @0} 8 @0, points: [u8; 4] @8} 12");
    let ty = ty.parse().unwrap();
    let value = Value::new(&ty, &[0; 12]).unwrap();
    let error = |path| value.get(path).unwrap_err().to_string();
    let hint = "there is no field \"positoin\"; did you mean \"position\"?";
    assert_eq!(error("positoin.x"), hint);
    assert_eq!(error("position.y"), "position: there is no field \"y\"");
    assert_eq!(error("points[4]"), "points: there is no element 4, the length is 4");
    assert_eq!(error("points.x"), "points: this is a [u8; 4], not a struct");
    assert_eq!(error("position[0]"), "position: this is a P, not an array or a sequence");
    let paths = [".", "a..b", "[", "[]", "points[+1]", "points[1", "position.", "points[0]x"];
    for path in paths.into_iter().chain(["points[99999999999999999999]", "..", "points.[0]"]) {
        let kind = value.get(path).unwrap_err().kind;
        let is_expected = match kind {
            ReadErrorKind::BadPath(_) => true,
            ReadErrorKind::NoField { .. } => path.starts_with('a'),
            _ => false,
        };
        assert!(is_expected, "{path}: {kind:?}");
    }
    let wrong = value.get("points[0]").unwrap().as_bool().unwrap_err().to_string();
    assert_eq!(wrong, "this is a u8, not a truth value");
}

#[test]
fn wrong_json_names_the_field() {
    let ty = type_of::<Scan>();
    let error = |json| encode_json(&ty, &json).unwrap_err().to_string();
    let hint = "there is no field \"stamp\"; did you mean \"stamp_ns\"?";
    assert_eq!(error(json!({ "stamp": 1 })), hint);
    assert_eq!(error(json!({ "level": 128 })), "level: 128 does not fit into i8");
    assert_eq!(error(json!({ "width": -1 })), "width: -1 does not fit into u16");
    assert_eq!(error(json!({ "stamp_ns": 1.5 })), "stamp_ns: a u64 is needed, not a fraction");
    let far = error(json!({ "corners": [[{ "0": 1e300 }, {}], [{}, {}], [{}, {}]] }));
    assert!(far.starts_with("corners[0][0].0: 1000000"), "{far}");
    assert!(far.ends_with("does not fit into f32"), "{far}");
    assert_eq!(error(json!({ "corners": [] })), "corners: 3 elements are needed, not 0");
    let path = json!({ "path": [{}, {}, {}, {}] });
    assert_eq!(error(path), "path: at most 3 elements are needed, not 4");
    let name = json!({ "name": "twelve bytes" });
    assert_eq!(error(name), "name: at most 11 B are needed, not 12");
    assert_eq!(error(json!({ "is_last": 1 })), "is_last: a bool is needed, not a whole number");
    assert_eq!(error(json!({ "gain": null })), "gain: a f64 is needed, not null");
    assert_eq!(error(json!([])), "a Scan is needed, not a list");
    // What `to_json` cut is not taken for a value.
    let cut = json!({ "small": [1, 2, { "...": 3 }] });
    assert_eq!(error(cut), "small[2]: a i8 is needed, not an object");
}

#[test]
fn a_misspelt_name_is_no_struct_of_the_library() {
    // Each differs in one place from what `FixedString` and `BoundedVec` have.
    for layout in [
        "FixedString<3>{length: [u8; 4] @0, bytes: [u8; 2] @4} 6",
        "FixedString<2>{length: [u8; 4] @0, bytes: [i8; 2] @4} 6",
        "FixedString<2>{length: [u8; 4] @0, byte: [u8; 2] @4} 6",
        "FixedString<2>{length: [u8; 4] @0, bytes: [u8; 2] @4} 8",
        "Text<2>{length: [u8; 4] @0, bytes: [u8; 2] @4} 6",
        "BoundedVec<u64, 1>{length: u64 @0, elements: [u64; 1] @8} 24",
        "BoundedVec<u64, 2>{length: u64 @0, elements: [u64; 1] @8} 16",
        "BoundedVec<u64, 1>{length: i64 @0, elements: [u64; 1] @8} 16",
    ] {
        let ty = Schema::layout(layout).parse().unwrap();
        assert!(matches!(ty.kind(), Kind::Struct { .. }), "{layout}");
    }
    assert_eq!(type_of::<FixedString<2>>().kind(), &Kind::String { bound: Some(2) });
    assert_eq!(type_of::<()>().encoding(), Encoding::Plain);
}
