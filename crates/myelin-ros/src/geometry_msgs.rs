//! `geometry_msgs`: the parts of an IMU's message.

use crate::cdr_struct;
use crate::message::Message;

cdr_struct! {
    /// `geometry_msgs/msg/Vector3`.
    #[derive(Clone, Copy, Debug, Default, PartialEq)]
    pub struct Vector3 {
        /// Forward.
        pub x: f64,
        /// To the left.
        pub y: f64,
        /// Up.
        pub z: f64,
    }
}

impl Message for Vector3 {
    const TYPE: &'static str = "geometry_msgs/msg/Vector3";
    type View<'a> = Vector3;
}

cdr_struct! {
    /// `geometry_msgs/msg/Quaternion`: a rotation; by default none.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct Quaternion {
        /// The first of the vector part.
        pub x: f64,
        /// The second.
        pub y: f64,
        /// The third.
        pub z: f64,
        /// The scalar part.
        pub w: f64,
    }
}

impl Message for Quaternion {
    const TYPE: &'static str = "geometry_msgs/msg/Quaternion";
    type View<'a> = Quaternion;
}

impl Default for Quaternion {
    fn default() -> Self {
        Quaternion { x: 0.0, y: 0.0, z: 0.0, w: 1.0 }
    }
}
