//! Every written message is read unchanged; all other bytes are an error that names its field.

use myelin_ros::cdr::{self, Cdr};
use myelin_ros::geometry_msgs::{Quaternion, Vector3};
use myelin_ros::sensor_msgs::{Image, Imu, PointCloud2, PointField};
use myelin_ros::std_msgs::{Header, String as RosString, Time};
use myelin_ros::{RosNode, Text};
use proptest::prelude::*;

fn written<'a>(message: &impl Cdr<'a>) -> Vec<u8> {
    // A loan may contain any bytes before.
    let mut bytes = vec![0xaa; cdr::encoded_bytes(message).unwrap()];
    assert_eq!(cdr::encode(message, &mut bytes).unwrap(), bytes.len());
    assert_eq!(bytes.len() % 4, 0);
    bytes
}

/// `bytes` with every number of `sizes` bytes at its place reversed: the output of a machine with
/// the other byte order. `places` are `(offset from behind the header, bytes)`.
fn big_endian(mut bytes: Vec<u8>, places: &[(usize, usize)]) -> Vec<u8> {
    bytes[1] = 0;
    for (at, size) in places {
        bytes[4 + at..4 + at + size].reverse();
    }
    bytes
}

prop_compose! {
    fn text()(text in "[^\0]{0,12}") -> String { text }
}

prop_compose! {
    fn time()(sec: i32, nanosec: u32) -> Time { Time { sec, nanosec } }
}

fn number() -> impl Strategy<Value = f64> {
    prop_oneof![proptest::num::f64::ANY.prop_filter("equal to itself", |n| !n.is_nan()), Just(0.0)]
}

fn octets() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..200)
}

fn covariance() -> impl Strategy<Value = [f64; 9]> {
    proptest::collection::vec(number(), 9).prop_map(|numbers| numbers.try_into().unwrap())
}

proptest! {
    #[test]
    fn strings(text in text()) {
        let message = RosString { data: Text::new(&text) };
        let bytes = written(&message);
        prop_assert_eq!(cdr::decode::<RosString>(&bytes).unwrap(), message);
    }

    #[test]
    fn images(
        stamp in time(), frame in text(), encoding in text(), size: [u32; 3], data in octets(),
    ) {
        let [height, width, step] = size;
        let header = Header { stamp, frame_id: Text::new(&frame) };
        let (encoding, data) = (Text::new(&encoding), &*data);
        let message = Image { header, height, width, encoding, is_bigendian: 1, step, data };
        let bytes = written(&message);
        let read: Image = cdr::decode(&bytes).unwrap();
        prop_assert!(bytes.as_ptr_range().contains(&read.data.as_ptr()) || data.is_empty());
        prop_assert_eq!(read, message);
    }

    #[test]
    fn point_clouds(
        stamp in time(), frame in text(), names in proptest::collection::vec(text(), 0..6),
        field: (u32, u8, u32), size: [u32; 4], data in octets(), flags: [bool; 2],
    ) {
        let [height, width, point_step, row_step] = size;
        let [is_bigendian, is_dense] = flags;
        let (offset, datatype, count) = field;
        let fields: Vec<PointField> =
            names.iter().map(|name| PointField { name: name.into(), offset, datatype, count }).collect();
        let header = Header { stamp, frame_id: Text::new(&frame) };
        let message = PointCloud2 {
            header, height, width, fields, is_bigendian, point_step,
            row_step, data: &data, is_dense,
        };
        let bytes = written(&message);
        prop_assert_eq!(cdr::decode::<PointCloud2>(&bytes).unwrap(), message);
    }

    #[test]
    fn imus(
        stamp in time(), frame in text(), turn in [number(), number(), number(), number()],
        rates in [number(), number(), number()], forces in [number(), number(), number()],
        covariances in [covariance(), covariance(), covariance()],
    ) {
        let vector = |[x, y, z]: [f64; 3]| Vector3 { x, y, z };
        let [x, y, z, w] = turn;
        let message = Imu {
            header: Header { stamp, frame_id: Text::new(&frame) },
            orientation: Quaternion { x, y, z, w },
            orientation_covariance: covariances[0],
            angular_velocity: vector(rates),
            angular_velocity_covariance: covariances[1],
            linear_acceleration: vector(forces),
            linear_acceleration_covariance: covariances[2],
        };
        let bytes = written(&message);
        prop_assert_eq!(cdr::decode::<Imu>(&bytes).unwrap(), message);
    }

    /// If it is cut off anywhere, the error names a field, unless only padding is missing.
    #[test]
    fn truncated(frame in text(), encoding in text(), data in octets(), keep in 0.0..1.0) {
        let header = Header { frame_id: Text::new(&frame), ..Header::default() };
        let message = Image { header, encoding: Text::new(&encoding), data: &data, ..Image::default() };
        let bytes = written(&message);
        let padding = usize::from(bytes[3]);
        let keep = (keep * bytes.len() as f64) as usize;
        let read = cdr::decode::<Image>(&bytes[..keep]);
        if keep >= bytes.len() - padding {
            prop_assert_eq!(read.unwrap(), message);
        } else {
            prop_assert!(!read.unwrap_err().field().is_empty());
        }
    }

    /// Any bytes are a message or an error.
    #[test]
    fn hostile(big_endian: bool, body in proptest::collection::vec(any::<u8>(), 0..300)) {
        let bytes = [&[0, u8::from(!big_endian), 0, 0], &body[..]].concat();
        let _ = cdr::decode::<RosString>(&bytes);
        let _ = cdr::decode::<Image>(&bytes);
        let _ = cdr::decode::<Imu>(&bytes);
        let _ = cdr::decode::<Vec<Vec<u64>>>(&bytes);
        if let Ok(cloud) = cdr::decode::<PointCloud2>(&bytes) {
            prop_assert!(cloud.fields.len() <= body.len());
        }
    }

    /// One byte of a message is changed: the result is a message or an error, also deep inside.
    #[test]
    fn flipped(at in 4_usize.., to: u8) {
        let fields = [PointField { name: "x".into(), offset: 0, datatype: 7, count: 1 }];
        let header = Header { frame_id: "lidar".into(), ..Header::default() };
        let mut bytes = written(&PointCloud2 {
            header, fields: fields.to_vec(), data: &[1; 50], ..PointCloud2::default()
        });
        let length = bytes.len();
        bytes[4 + at % (length - 4)] = to;
        let _ = cdr::decode::<PointCloud2>(&bytes);
    }
}

#[test]
fn big_endian_is_read() {
    let header = Header { stamp: Time { sec: -2, nanosec: 7 }, frame_id: "abc".into() };
    let image = Image {
        header,
        height: 2,
        width: 3,
        encoding: "mono8".into(),
        step: 3,
        data: &[9; 6],
        ..Image::default()
    };
    let places = [(0, 4), (4, 4), (8, 4), (16, 4), (20, 4), (24, 4), (36, 4), (40, 4)];
    assert_eq!(cdr::decode::<Image>(&big_endian(written(&image), &places)).unwrap(), image);

    let point = Vector3 { x: 1.5, y: -2.0, z: 1e300 };
    let bytes = big_endian(written(&point), &[(0, 8), (8, 8), (16, 8)]);
    assert_eq!(cdr::decode::<Vector3>(&bytes).unwrap(), point);
}

#[test]
fn errors_name_the_field_the_place_and_the_reason() {
    let image = written(&Image { encoding: "rgb8".into(), data: &[1; 100], ..Image::default() });
    let read = |bytes: &[u8]| cdr::decode::<Image>(bytes).unwrap_err().to_string();
    let with = |at: usize, what: &[u8]| {
        let mut bytes = image.clone();
        bytes[at..at + what.len()].copy_from_slice(what);
        read(&bytes)
    };
    assert_eq!(read(&[]), "(header) at byte 0: 4 B are needed and 0 B are left");
    assert_eq!(
        read(&image[..10]),
        "header.stamp.nanosec at byte 8: 4 B are needed and 2 B are left"
    );
    assert_eq!(read(&image[..60]), "data at byte 48: 100 B are needed and 12 B are left");
    let too_many = "data at byte 48: 4294967295 B are needed and 100 B are left";
    assert_eq!(with(44, &[0xff; 4]), too_many);
    assert_eq!(with(16, b"x"), "header.frame_id at byte 17: the string does not end with a NUL");
    assert!(with(1, &[7]).starts_with("(header) at byte 0: encoding 0x0007 is not plain CDR"));

    let text = written(&RosString { data: "aé".into() });
    let mut latin = text.clone();
    latin[9] = b'x';
    let error = cdr::decode::<RosString>(&latin).unwrap_err();
    assert_eq!(error.to_string(), "data at byte 12: the string is not UTF-8");

    let mut cloud = written(&PointCloud2::default());
    let last = cloud.len() - usize::from(cloud[3]) - 1;
    cloud[last] = 2;
    let error = cdr::decode::<PointCloud2>(&cloud).unwrap_err().to_string();
    assert!(error.starts_with("is_dense at byte") && error.ends_with("not 2"), "{error}");
}

#[test]
fn values_without_a_cdr_encoding_name_the_field() {
    let header = Header { frame_id: "front\0camera".into(), ..Header::default() };
    let error = cdr::encoded_bytes(&Image { header, ..Image::default() }).unwrap_err();
    assert_eq!(error.field(), "header.frame_id");
    assert!(error.to_string().contains("NUL"), "{error}");
}

/// A sample's memory still belongs to its publisher: a publisher that writes to it after `decode`
/// has looked must not cause a `str` or a `String` that is not UTF-8.
#[test]
fn a_string_changed_by_its_publisher_stays_valid() {
    let folder = tempfile::tempdir().unwrap();
    let node = myelin::Node::builder("test").runtime_dir(folder.path()).open().unwrap();
    let topic = node.ros_topic::<Image>("image").unwrap();
    let mut subscriber = topic.subscriber().unwrap();
    let publisher = topic.into_bytes().publisher().unwrap();
    assert!(publisher.wait_for_match(1, WATCHDOG));

    // So long that it lies in shared memory and not in the ring.
    let image = Image { encoding: "rgb8".into(), data: &[1; 500], ..Image::default() };
    let bytes = written(&image);
    let at = bytes.windows(4).position(|window| window == b"rgb8").unwrap();
    let mut loan = publisher.loan(bytes.len()).unwrap();
    loan.copy_from_slice(&bytes);
    let encoding = loan[at..].as_mut_ptr();
    loan.publish().unwrap();

    let sample = subscriber.receive(WATCHDOG).unwrap().expect("it was published");
    let seen = sample.decode().unwrap();
    assert_eq!(seen.encoding, "rgb8");
    // SAFETY: the publisher's own mapping of the slot, which lives as long as the publisher.
    unsafe { encoding.write_volatile(0xff) };
    let text = seen.encoding.to_string();
    assert!(std::str::from_utf8(text.as_bytes()).is_ok(), "{:x?}", text.as_bytes());
    assert_eq!(text, "\u{fffd}gb8");
    assert_eq!(format!("{:?}", seen.encoding), "\"\u{fffd}gb8\"");
    assert_eq!(seen.encoding.as_bytes(), b"\xffgb8");
    assert!(seen.encoding.to_utf8().is_err());
    assert_ne!(seen.encoding, "rgb8");
    let again = sample.decode().unwrap_err().to_string();
    assert!(again.ends_with("the string is not UTF-8"), "{again}");
}

#[test]
fn an_empty_string_without_its_nul_is_read() {
    assert_eq!(cdr::decode::<RosString>(&[0, 1, 0, 0, 0, 0, 0, 0]).unwrap().data, "");
}

const WATCHDOG: std::time::Duration = std::time::Duration::from_secs(60);
