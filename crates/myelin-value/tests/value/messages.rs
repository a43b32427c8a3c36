//! ROS 2 messages: the bytes of `myelin-ros` and of two Python packages are the oracle.

use myelin_ros::cdr;
use myelin_ros::geometry_msgs::Quaternion;
use myelin_ros::sensor_msgs::{Image, Imu, PointCloud2, PointField};
use myelin_ros::std_msgs::{Header, Time};
use myelin_value::{Primitive, ReadErrorKind, Schema, Type, Value, encode_json};
use serde_json::json;

/// Everything that a message can have, as rosbag2 and `rosbags` concatenate definitions.
const ALL: &str = "\
# Everything that a message can have.
uint8 KIND_A=1
string LABEL=\"a # b\"
std_msgs/Header header
bool flag
byte octet
char letter
int8 small
float64 wide
uint16 half 7  # a default value
int64 big
float32 single
uint64 huge
string<=10 short \"x\"
string[] names
string<=5[<=3] tags
float64[3] fixed
float64[] empty
uint8[] data
bool[<=4] flags
Point[] points
Point[2] corners
Inner[<=2] inner
std_msgs/Empty nothing
int16[] halves
geometry_msgs/msg/Quaternion q
================================================================================
MSG: std_msgs/Header
builtin_interfaces/Time stamp
string frame_id
================================================================================
MSG: builtin_interfaces/Time
int32 sec
uint32 nanosec
================================================================================
MSG: test_msgs/Point
float32 x
float32 y
================================================================================
MSG: test_msgs/Inner
uint8 tag
float64 value
string text
================================================================================
MSG: std_msgs/Empty
================================================================================
MSG: geometry_msgs/Quaternion
float64 x 0
float64 y 0
float64 z 0
float64 w 1
";

/// A message of `ALL`, by `serialize_cdr` of the Python package rosbags 0.11.9 and, with the same
/// result, by `mcap_ros2._dynamic.serialize_dynamic` of mcap-ros2-support 0.6.0.
const LITTLE_ENDIAN: &str = "\
    00010000fbffffff07000000040000006d617000016441fd00000000000000000000f83fffff000000000000\
    0000000000000080000080be00000000ffffffffffffffff03000000c3a90000030000000100000000000000\
    030000006162000006000000c3bc6ec3af00000001000000020000007400000000000000000000000000f03f\
    000000000000004000000000000008400000000003000000010203000300000001000100020000000000803f\
    0000004000004040000080400000a0400000c0400000e0400000004102000000010000000000000000000440\
    03000000696e000200000000000004c0010000000000000003000000ffff0200fdff00000000000000000000\
    0000000000000000000000000000000000000000000000000000f03f";

/// The same with the other byte order, by rosbags 0.11.9 (`little_endian=False`).
const BIG_ENDIAN: &str = "\
    00000000fffffffb00000007000000046d617000016441fd000000003ff8000000000000ffff000000000000\
    8000000000000000be80000000000000ffffffffffffffff00000003c3a90000000000030000000100000000\
    000000036162000000000006c3bc6ec3af000000000000010000000274000000000000003ff0000000000000\
    400000000000000040080000000000000000000000000003010203000000000301000100000000023f800000\
    40000000404000004080000040a0000040c0000040e000004100000000000002010000004004000000000000\
    00000003696e0002c004000000000000000000010000000000000003ffff0002fffd00000000000000000000\
    00000000000000000000000000000000000000003ff0000000000000";

const ALL_JSON: &str = r#"{"header": {"stamp": {"sec": -5, "nanosec": 7}, "frame_id": "map"},
    "flag": true, "octet": 100, "letter": 65, "small": -3, "wide": 1.5, "half": 65535,
    "big": -9223372036854775808, "single": -0.25, "huge": 18446744073709551615, "short": "é",
    "names": ["", "ab", "ünï"], "tags": ["t"], "fixed": [1.0, 2.0, 3.0], "empty": [],
    "data": [1, 2, 3], "flags": [true, false, true],
    "points": [{"x": 1.0, "y": 2.0}, {"x": 3.0, "y": 4.0}],
    "corners": [{"x": 5.0, "y": 6.0}, {"x": 7.0, "y": 8.0}],
    "inner": [{"tag": 1, "value": 2.5, "text": "in"}, {"tag": 2, "value": -2.5, "text": ""}],
    "nothing": {}, "halves": [-1, 2, -3], "q": {"x": 0.0, "y": 0.0, "z": 0.0, "w": 1.0}}"#;

fn type_of(name: &str, text: &str) -> Type {
    Schema::new(Schema::ROS2MSG, name, text).parse().unwrap()
}

fn from_hexadecimal(digits: &str) -> Vec<u8> {
    let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
    (0..digits.len()).step_by(2).map(byte).collect()
}

#[test]
fn every_kind_of_field_in_both_byte_orders() {
    let ty = type_of("test_msgs/msg/All", ALL);
    let json: serde_json::Value = serde_json::from_str(ALL_JSON).unwrap();
    for sample in [LITTLE_ENDIAN, BIG_ENDIAN].map(from_hexadecimal) {
        let value = Value::new(&ty, &sample).unwrap();
        let read: serde_json::Value =
            serde_json::from_str(&value.to_json(usize::MAX).unwrap()).unwrap();
        assert_eq!(read, json);
        assert_eq!(value.get("inner[1].value").unwrap().as_f64().unwrap(), -2.5);
        assert_eq!(value.get("points[1].y").unwrap().as_f64().unwrap(), 4.0);
        assert_eq!(value.get("q.w").unwrap().as_f64().unwrap(), 1.0);
        let halves = value.get("halves").unwrap().as_slice().unwrap();
        let first = if halves.big_endian { i16::from_be_bytes } else { i16::from_le_bytes };
        let numbers: Vec<_> = halves.bytes.as_chunks().0.iter().map(|it| first(*it)).collect();
        assert_eq!((halves.element, numbers), (Primitive::I16, vec![-1, 2, -3]));
    }
    assert_eq!(encode_json(&ty, &json).unwrap(), from_hexadecimal(LITTLE_ENDIAN));
}

#[test]
fn a_half_of_a_service_names_the_types_of_its_package() {
    let ty = type_of("p/srv/Get_Response", "Point[] points\n===\nMSG: p/Point\nint16 x\n");
    let sample = encode_json(&ty, &json!({ "points": [{ "x": 1 }, { "x": -2 }] })).unwrap();
    let value = Value::new(&ty, &sample).unwrap();
    assert_eq!(value.get("points[1].x").unwrap().as_i64().unwrap(), -2);
}

#[test]
fn a_message_without_fields_is_a_byte() {
    // As rosbags 0.11.9 and mcap-ros2-support 0.6.0 write it.
    let ty = type_of("std_msgs/msg/Empty", "");
    assert_eq!(encode_json(&ty, &json!({})).unwrap()[..5], from_hexadecimal("0001000300"));
    let text = "std_msgs/Empty e\nuint8 x\n===\nMSG: std_msgs/Empty\n";
    let ty = type_of("test_msgs/msg/Both", text);
    let value = from_hexadecimal("000100000007");
    assert_eq!(Value::new(&ty, &value).unwrap().get("x").unwrap().as_u64().unwrap(), 7);
}

const HEADER: &str = "\
================================================================================
MSG: std_msgs/Header
builtin_interfaces/Time stamp
string frame_id
================================================================================
MSG: builtin_interfaces/Time
int32 sec
uint32 nanosec
";

fn written<'a>(message: &impl cdr::Cdr<'a>) -> Vec<u8> {
    let mut bytes = vec![0; cdr::encoded_bytes(message).unwrap()];
    cdr::encode(message, &mut bytes).unwrap();
    bytes
}

#[test]
fn point_clouds_of_myelin_ros() {
    let text = format!(
        "std_msgs/Header header\nuint32 height\nuint32 width\nPointField[] fields\n\
         bool is_bigendian\nuint32 point_step\nuint32 row_step\nuint8[] data\nbool is_dense\n\
         {HEADER}====\nMSG: sensor_msgs/PointField\nuint8 FLOAT32=7\nstring name\nuint32 offset\n\
         uint8 datatype\nuint32 count\n"
    );
    let ty = type_of("sensor_msgs/msg/PointCloud2", &text);
    let field = |name, offset| PointField { name, offset, datatype: 7, count: 1 };
    let data: Vec<u8> = (0..33).collect();
    let cloud = PointCloud2 {
        header: Header { stamp: Time { sec: 1, nanosec: 2 }, frame_id: "lidar".into() },
        fields: vec![field("x".into(), 0), field("intensity".into(), 4)],
        height: 1,
        data: &data,
        is_dense: true,
        ..PointCloud2::default()
    };
    let sample = written(&cloud);
    let value = Value::new(&ty, &sample).unwrap();
    assert_eq!(value.get("fields[1].name").unwrap().as_string().unwrap(), "intensity");
    assert_eq!(value.get("fields[1].offset").unwrap().as_u64().unwrap(), 4);
    let read = value.get("data").unwrap().as_bytes().unwrap();
    assert_eq!(read, data);
    assert!(sample.as_ptr_range().contains(&read.as_ptr()));
    assert!(value.get("is_dense").unwrap().as_bool().unwrap());
    let json = serde_json::from_str(&value.to_json(usize::MAX).unwrap()).unwrap();
    assert_eq!(encode_json(&ty, &json).unwrap(), sample);
    assert_eq!(
        value.to_lines(3).unwrap(),
        "\
header:
  stamp:
    sec: 1
    nanosec: 2
  frame_id: \"lid...\"
height: 1
width: 0
fields:
- name: \"x\"
  offset: 0
  datatype: 7
  count: 1
- name: \"int...\"
  offset: 4
  datatype: 7
  count: 1
is_bigendian: false
point_step: 0
row_step: 0
data: [0, 1, 2, {\"...\": 33}]
is_dense: true
"
    );
}

#[test]
fn missing_fields_are_those_of_an_empty_message() {
    let vector = "====\nMSG: geometry_msgs/Vector3\nfloat64 x\nfloat64 y\nfloat64 z\n";
    let imu = format!(
        "std_msgs/Header header\ngeometry_msgs/Quaternion orientation\n\
         float64[9] orientation_covariance\ngeometry_msgs/Vector3 angular_velocity\n\
         float64[9] angular_velocity_covariance\ngeometry_msgs/Vector3 linear_acceleration\n\
         float64[9] linear_acceleration_covariance\n{HEADER}{vector}====\n\
         MSG: geometry_msgs/Quaternion\nfloat64 x 0\nfloat64 y 0\nfloat64 z 0\nfloat64 w 1\n"
    );
    let ty = type_of("sensor_msgs/msg/Imu", &imu);
    // In ROS 2 and in myelin-ros, no rotation is the default.
    assert_eq!(Imu::default().orientation.w, 1.0);
    assert_eq!(encode_json(&ty, &json!({})).unwrap(), written(&Imu::default()));
    let json = json!({ "orientation": { "x": 1 } });
    let orientation = Quaternion { x: 1.0, ..Quaternion::default() };
    assert_eq!(encode_json(&ty, &json).unwrap(), written(&Imu { orientation, ..Imu::default() }));
    let image = format!(
        "std_msgs/Header header\nuint32 height\nuint32 width\nstring encoding\n\
         uint8 is_bigendian\nuint32 step\nuint8[] data\n{HEADER}"
    );
    let ty = type_of("sensor_msgs/msg/Image", &image);
    assert_eq!(encode_json(&ty, &json!({})).unwrap(), written(&Image::default()));
}

#[test]
fn definitions_in_other_spellings() {
    let plain = type_of(
        "p/Main",
        "std_msgs/Header header\nq/A a\n====\nMSG: std_msgs/Header\nuint32 seq\n\
         ====\nMSG: q/A\nq/B[2] b\n====\nMSG: q/B\nfloat64 x\n",
    );
    let spelt = "\r\n  # comment\r\nHeader\theader# one\r\n q/msg/A   a \r\nint8 X = 3\r\n======\r\n\
         MSG: std_msgs/msg/Header\r\nuint32 seq\r\n====\r\nMSG:q/B\r\nfloat64 x\r\n\
         ====\r\nMSG: q/A\r\nB[2] b";
    assert_eq!(type_of("p/msg/Main", spelt), plain);
    // `B` is of the package of the message that names it.
    let text = "B b\n====\nMSG: q/B\nuint8 x\n";
    assert!(Schema::new(Schema::ROS2MSG, "p/Main", text).parse().is_err());
    assert!(Schema::new(Schema::ROS2MSG, "q/Main", text).parse().is_ok());
}

#[test]
fn default_values_are_those_of_the_definition() {
    let text = "string a \"x # y\" # comment\nstring b 'z'\nstring c plain\nbool d true\nint8 e -3\n\
                uint64 f 18446744073709551615\nfloat32 g .5\nint32[] h [1, -2]\nuint8[2] i [3, 4]\n\
                string[<=2] j ['k', \"l\"]\nuint8 m 256\nuint8[2] n [1]\nbool o maybe\nA p\nA[2] q\n\
                ===\nMSG: p/A\nfloat64 r 1\nfloat64 s\n";
    let ty = type_of("p/Main", text);
    let sample = encode_json(&ty, &json!({ "p": { "s": 2 } })).unwrap();
    assert_eq!(
        Value::new(&ty, &sample).unwrap().to_json(9).unwrap(),
        "{\"a\": \"x # y\", \"b\": \"z\", \"c\": \"plain\", \"d\": true, \"e\": -3, \
         \"f\": 18446744073709551615, \"g\": 0.5, \"h\": [1, -2], \"i\": [3, 4], \
         \"j\": [\"k\", \"l\"], \"m\": 0, \"n\": [0, 0], \"o\": false, \
         \"p\": {\"r\": 1.0, \"s\": 2.0}, \
         \"q\": [{\"r\": 1.0, \"s\": 0.0}, {\"r\": 1.0, \"s\": 0.0}]}"
    );
}

#[test]
fn broken_samples_name_the_field() {
    let ty = type_of("test_msgs/msg/All", ALL);
    let sample = from_hexadecimal(LITTLE_ENDIAN);
    let mut cut = 0;
    for end in 0..sample.len() {
        let Err(error) = Value::new(&ty, &sample[..end]).and_then(|it| it.to_json(9)) else {
            panic!("{end} of {} B are enough", sample.len())
        };
        cut += usize::from(end > 4 && error.path.is_empty());
    }
    assert_eq!(cut, 0, "errors without a field");
    let error = |sample: &[u8]| Value::new(&ty, sample).unwrap().to_json(9).unwrap_err();
    let text = error(&sample[..18]).to_string();
    assert_eq!(text, "header.frame_id: 4 B are needed at byte 16, and 2 B are left");
    let changed = |at: usize, byte| {
        let mut sample = sample.clone();
        sample[at] = byte;
        error(&sample)
    };
    assert_eq!(changed(19, 1).to_string(), "header.frame_id: the string does not end with a NUL");
    assert_eq!(changed(20, 2).kind, ReadErrorKind::BadBool(2));
    let text = changed(15, 0xff).to_string();
    assert!(text.starts_with("header.frame_id: 4278190084 B are needed at byte 16"), "{text}");
    let text = Value::new(&ty, &[0, 7, 0, 0]).unwrap_err().to_string();
    assert_eq!(text, "encoding 0x0007 is not plain CDR (0x0000, 0x0001)");
}

/// The skipped part is named, not the wanted one.
#[test]
fn broken_parts_that_are_skipped_are_named() {
    let ty = type_of("test_msgs/msg/All", ALL);
    let sample = from_hexadecimal(LITTLE_ENDIAN);
    let path_of = |sample: &[u8], path| {
        let error = Value::new(&ty, sample).unwrap().get(path).unwrap_err();
        assert!(matches!(error.kind, ReadErrorKind::TooShort { .. }), "{error}");
        error.path
    };
    // 8 B are there of `wide`, which needs padding before; then not even these.
    assert_eq!(path_of(&sample[..34], "q.w"), "wide");
    assert_eq!(path_of(&sample[..30], "q.w"), "wide");
    let mut lying = sample.clone();
    lying[15] = 0xff;
    assert_eq!(path_of(&lying, "flag"), "header.frame_id");
    let name_at = sample.windows(3).position(|it| it == b"ab\0").unwrap();
    lying = sample.clone();
    lying[name_at - 1] = 0xff;
    assert_eq!(path_of(&lying, "names[2]"), "names[1]");
    let value = Value::new(&ty, &lying).unwrap();
    let names: Vec<_> = value.get("names").unwrap().elements().unwrap().collect();
    assert_eq!(names.len(), 3);
    assert_eq!(names[2].as_ref().unwrap_err().path, "[1]");
    let fields: Vec<_> = value.fields().unwrap().collect();
    let (last, before) = fields.split_last().unwrap();
    assert_eq!(last.as_ref().unwrap_err().path, "names[1]");
    assert_eq!(before.last().unwrap().as_ref().unwrap().0, "names");
}

#[test]
fn bounds_hold_in_both_directions() {
    let ty = type_of("a/b", "string<=2 text\nuint8[<=2] data\n");
    let sample = from_hexadecimal("00010000 04000000 61626300 00000000".replace(' ', "").as_str());
    let error = Value::new(&ty, &sample).unwrap().to_json(9).unwrap_err().to_string();
    assert_eq!(error, "text: a length of 3 is not possible; the bound is 2");
    let sample = from_hexadecimal("0001000001000000000000000300000001020300");
    let error = Value::new(&ty, &sample).unwrap().to_json(9).unwrap_err().to_string();
    assert_eq!(error, "data: a length of 3 is not possible; the bound is 2");
    let error = |json| encode_json(&ty, &json).unwrap_err().to_string();
    assert_eq!(error(json!({ "text": "abc" })), "text: at most 2 B are needed, not 3");
    let three = json!({ "data": [1, 2, 3] });
    assert_eq!(error(three), "data: at most 2 elements are needed, not 3");
    let nul = json!({ "text": "\0" });
    assert_eq!(error(nul), "text: the string has a NUL in it, which ends a string in CDR");
}

#[test]
fn arrays_are_written_from_bytes() {
    use myelin_value::{Input, Item, Scalar, encode};
    use std::borrow::Cow;

    enum Object {
        Image,
        Nothing,
        Pixels(&'static [u8]),
        Width(u32),
    }
    impl Input<'static> for Object {
        fn item(self) -> Item<'static, Object> {
            match self {
                Object::Image => Item::Map(vec![
                    (Cow::Borrowed("pixels"), Object::Pixels(&[1, 0, 2, 0, 3, 0])),
                    (Cow::Borrowed("width"), Object::Width(3)),
                ]),
                Object::Nothing => Item::Map(vec![(Cow::Borrowed("pixels"), Object::Pixels(&[]))]),
                Object::Pixels(bytes) => Item::Bytes(bytes.into()),
                Object::Width(width) => Item::Scalar(Scalar::Unsigned(width.into())),
            }
        }
    }
    let same = json!({ "pixels": [1, 2, 3], "width": 3 });
    for fields in ["uint16[] pixels", "uint16[3] pixels", "uint16[<=3] pixels"] {
        let ty = type_of("a/b", &format!("uint8 width\n{fields}\n"));
        assert_eq!(encode(&ty, Object::Image).unwrap(), encode_json(&ty, &same).unwrap());
    }
    // There is no padding before no numbers.
    let ty = type_of("a/b", "float64[] pixels");
    assert_eq!(encode(&ty, Object::Nothing).unwrap(), encode_json(&ty, &json!({})).unwrap());
    let error = |fields| encode(&type_of("a/b", fields), Object::Image).unwrap_err().to_string();
    let four = "uint8 width\nuint16[4] pixels";
    assert_eq!(error(four), "pixels: 8 B are needed, not 6");
    let odd = "uint8 width\nuint32[] pixels";
    assert_eq!(error(odd), "pixels: elements of 4 B are needed, not 6");
    let truth = "uint8 width\nbool[] pixels";
    assert_eq!(error(truth), "pixels: 0 or 1 for each truth value is needed, not other bytes");
    let names = "uint8 width\nstring[] pixels";
    assert_eq!(error(names), "pixels: a list of string is needed, not bytes");
}
