//! The content of message `n`: the twin of `tests/peers/pattern.h`.

use std::cell::OnceCell;

use myelin::PlainData;
use myelin_ros::Text;
use myelin_ros::geometry_msgs::{Quaternion, Vector3};
use myelin_ros::sensor_msgs::{Image, Imu, PointCloud2, PointField};
use myelin_ros::std_msgs::{Header, String as RosString, Time};

/// The data that messages of a number borrow.
pub struct Pattern {
    n: u32,
    text: String,
    /// As many as an image has.
    octets: OnceCell<Vec<u8>>,
}

impl Pattern {
    pub fn new(n: u32) -> Pattern {
        Pattern { n, text: format!("message {n}"), octets: OnceCell::new() }
    }

    fn octets(&self) -> &[u8] {
        let octet = |i: usize| (self.n as usize * 31 + i * 7 + (i >> 8)) as u8;
        self.octets.get_or_init(|| (0..IMAGE_BYTES).map(octet).collect())
    }

    pub fn string(&self) -> RosString<'_> {
        RosString { data: Text::new(&self.text) }
    }

    pub fn image(&self) -> Image<'_> {
        Image {
            header: self.header(),
            height: HEIGHT,
            width: WIDTH,
            encoding: Text::new("rgb8"),
            is_bigendian: 0,
            step: WIDTH * 3,
            data: self.octets(),
        }
    }

    pub fn cloud(&self) -> PointCloud2<'_> {
        PointCloud2 {
            header: self.header(),
            height: 1,
            width: POINTS,
            fields: FIELDS.to_vec(),
            is_bigendian: false,
            point_step: POINT_STEP,
            row_step: POINT_STEP * POINTS,
            data: &self.octets()[..(POINT_STEP * POINTS) as usize],
            is_dense: self.n.is_multiple_of(2),
        }
    }

    pub fn imu(&self) -> Imu<'_> {
        let [x, y, z, w] = reals(self.n, 0);
        let vector = |[x, y, z]: [f64; 3]| Vector3 { x, y, z };
        Imu {
            header: self.header(),
            orientation: Quaternion { x, y, z, w },
            orientation_covariance: reals(self.n, 10),
            angular_velocity: vector(reals(self.n, 20)),
            angular_velocity_covariance: reals(self.n, 30),
            linear_acceleration: vector(reals(self.n, 40)),
            linear_acceleration_covariance: reals(self.n, 50),
        }
    }

    pub fn path(&self) -> Path<'_> {
        let distances = (0..self.n % 5).map(|i| real(self.n, i)).collect();
        let poses = (0..self.n % 4).map(|i| Pose::new(self.n + i)).collect();
        Path { name: Text::new(&self.text), distances, poses }
    }

    fn header(&self) -> Header<'static> {
        let stamp = Time { sec: (1_700_000_000 + self.n) as i32, nanosec: self.n };
        Header { stamp, frame_id: Text::new(&"abcdefgh"[..self.n as usize % 9]) }
    }
}

myelin_ros::cdr_struct! {
    /// `robot::Pose` of types.idl: as plain data, and as a part of [`Path`].
    #[derive(Clone, Copy, Debug, PartialEq, PlainData)]
    #[repr(C)]
    pub struct Pose {
        stamp_ns: u64,
        position: [f64; 3],
        quality: i32,
        pub number: u32,
    }
}

impl Pose {
    pub fn new(n: u32) -> Pose {
        let stamp_ns = 10_000_000_000 * u64::from(n) + 1;
        Pose { stamp_ns, position: reals(n, 0), quality: -(n as i32), number: n }
    }

    /// `robot::Poses`.
    pub fn several(n: u32) -> Vec<Pose> {
        (n..n + 1 + n % 4).map(Pose::new).collect()
    }
}

myelin_ros::cdr_struct! {
    /// `robot::Path` of types.idl.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Path<'a> {
        pub name: Text<'a>,
        distances: Vec<f64>,
        poses: Vec<Pose>,
    }
}

/// The `n` of a text.
pub fn number_of(text: Text<'_>) -> u32 {
    let text = text.to_string();
    text.strip_prefix("message ").and_then(|number| number.parse().ok()).unwrap_or(u32::MAX)
}

fn real(n: u32, i: u32) -> f64 {
    1000.0 * f64::from(n) + f64::from(i) + 0.25
}

fn reals<const N: usize>(n: u32, from: u32) -> [f64; N] {
    std::array::from_fn(|i| real(n, from + i as u32))
}

const WIDTH: u32 = 1440;
const HEIGHT: u32 = 1080;
const IMAGE_BYTES: usize = (WIDTH * 3 * HEIGHT) as usize;
const POINTS: u32 = 65536;
const POINT_STEP: u32 = 16;

const FIELDS: [PointField<'static>; 4] = [
    PointField { name: Text::new("x"), offset: 0, datatype: PointField::FLOAT32, count: 1 },
    PointField { name: Text::new("y"), offset: 4, datatype: PointField::FLOAT32, count: 1 },
    PointField { name: Text::new("z"), offset: 8, datatype: PointField::FLOAT32, count: 1 },
    PointField { name: Text::new("intensity"), offset: 12, datatype: PointField::UINT8, count: 1 },
];
