//! `sensor_msgs`: camera images, point clouds, inertial measurements. Fields as in ROS 2.

use crate::cdr::Text;
use crate::cdr_struct;
use crate::geometry_msgs::{Quaternion, Vector3};
use crate::message::{Bulk, Message};
use crate::std_msgs::Header;

cdr_struct! {
    /// `sensor_msgs/msg/Image`: a camera's frame, not compressed.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct Image<'a> {
        /// When it was taken; the frame is the camera's, x to the right, y down, z forward.
        pub header: Header<'a>,
        /// Rows.
        pub height: u32,
        /// Columns.
        pub width: u32,
        /// The format of a pixel: `rgb8`, `bgr8`, `mono8`, `16UC1`, … (in `image_encodings.hpp`).
        pub encoding: Text<'a>,
        /// 1 if numbers of several bytes begin with the highest byte, otherwise 0.
        pub is_bigendian: u8,
        /// Bytes of a row.
        pub step: u32,
        /// The pixels, `step` × `height` bytes.
        pub data: &'a [u8],
    }
}

impl Message for Image<'_> {
    const TYPE: &'static str = "sensor_msgs/msg/Image";
    type View<'a> = Image<'a>;
}

impl Bulk for Image<'_> {
    /// `step` × `height`.
    fn data_bytes(image: &Image<'_>) -> u64 {
        u64::from(image.step) * u64::from(image.height)
    }
}

cdr_struct! {
    /// `sensor_msgs/msg/PointField`: one number of each point of a [`PointCloud2`].
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct PointField<'a> {
        /// `x`, `y`, `z`, `intensity`, `rgb`, …
        pub name: Text<'a>,
        /// Its first byte in a point.
        pub offset: u32,
        /// Its type: [`FLOAT32`](Self::FLOAT32) and so on.
        pub datatype: u8,
        /// The number of values.
        pub count: u32,
    }
}

impl PointField<'_> {
    /// `i8`.
    pub const INT8: u8 = 1;
    /// `u8`.
    pub const UINT8: u8 = 2;
    /// `i16`.
    pub const INT16: u8 = 3;
    /// `u16`.
    pub const UINT16: u8 = 4;
    /// `i32`.
    pub const INT32: u8 = 5;
    /// `u32`.
    pub const UINT32: u8 = 6;
    /// `f32`.
    pub const FLOAT32: u8 = 7;
    /// `f64`.
    pub const FLOAT64: u8 = 8;
}

impl Message for PointField<'_> {
    const TYPE: &'static str = "sensor_msgs/msg/PointField";
    type View<'a> = PointField<'a>;
}

cdr_struct! {
    /// `sensor_msgs/msg/PointCloud2`: points of a lidar or a depth camera.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct PointCloud2<'a> {
        /// When they were measured; the frame is the coordinates'.
        pub header: Header<'a>,
        /// Rows; 1 if the points are in no order.
        pub height: u32,
        /// Points of a row.
        pub width: u32,
        /// The fields of a point: the only part of all these messages that is allocated.
        pub fields: Vec<PointField<'a>>,
        /// Whether numbers of several bytes begin with the highest byte.
        pub is_bigendian: bool,
        /// Bytes of a point.
        pub point_step: u32,
        /// Bytes of a row.
        pub row_step: u32,
        /// The points, `row_step` × `height` bytes.
        pub data: &'a [u8],
        /// Whether all points are valid.
        pub is_dense: bool,
    }
}

impl Message for PointCloud2<'_> {
    const TYPE: &'static str = "sensor_msgs/msg/PointCloud2";
    type View<'a> = PointCloud2<'a>;
}

impl Bulk for PointCloud2<'_> {
    /// `row_step` × `height`.
    fn data_bytes(cloud: &PointCloud2<'_>) -> u64 {
        u64::from(cloud.row_step) * u64::from(cloud.height)
    }
}

cdr_struct! {
    /// `sensor_msgs/msg/Imu`. A covariance is a matrix in row-major order: all zeros if it is
    /// unknown; its first element is −1 if there is no such measurement.
    #[derive(Clone, Debug, Default, PartialEq)]
    pub struct Imu<'a> {
        /// When it was measured, and in what frame.
        pub header: Header<'a>,
        /// The orientation.
        pub orientation: Quaternion,
        /// About x, y and z.
        pub orientation_covariance: [f64; 9],
        /// In rad/s.
        pub angular_velocity: Vector3,
        /// About x, y and z.
        pub angular_velocity_covariance: [f64; 9],
        /// In m/s².
        pub linear_acceleration: Vector3,
        /// Along x, y and z.
        pub linear_acceleration_covariance: [f64; 9],
    }
}

impl Message for Imu<'_> {
    const TYPE: &'static str = "sensor_msgs/msg/Imu";
    type View<'a> = Imu<'a>;
}
