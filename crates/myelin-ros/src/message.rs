//! The types of ROS 2 topics.

use crate::cdr::Cdr;

/// A ROS 2 message type. Implement it for your own, with [`cdr_struct!`](crate::cdr_struct):
///
/// ```
/// use myelin_ros::{Message, std_msgs::Header};
///
/// myelin_ros::cdr_struct! {
///     /// `my_robot_msgs/msg/Gripper`
///     struct Gripper<'a> { header: Header<'a>, opening: f32 }
/// }
///
/// impl Message for Gripper<'_> {
///     const TYPE: &'static str = "my_robot_msgs/msg/Gripper";
///     type View<'a> = Gripper<'a>;
/// }
/// ```
pub trait Message {
    /// Its name in ROS 2: `package/msg/Type`.
    const TYPE: &'static str;

    /// The type that is written and read: the type itself, with the lifetime of the sample that
    /// strings and data are borrowed from.
    type View<'a>: Cdr<'a>;
}

/// A message that is mostly one field of bytes, `data`, which can be filled in the loan.
pub trait Bulk: Message {
    /// The size of `data` according to its other fields.
    fn data_bytes(message: &Self::View<'_>) -> u64;
}
