//! ROS 2 messages on Myelin's topics. On one host they are written and read in place, in shared
//! memory. On the network they have the bytes, names and settings that ROS 2 nodes and other DDS
//! programs understand.
//!
//! ```
//! use myelin_ros::{RosNode, sensor_msgs::Image, std_msgs::{Header, Time}};
//! # use std::time::Duration;
//! # fn main() -> Result<(), myelin_ros::Error> {
//! # let folder = tempfile::tempdir().unwrap();
//! # let node = myelin::Node::builder("doc").runtime_dir(folder.path()).open()?;
//! # if false {
//! let node = myelin::Node::builder("camera").network(true).open()?;
//! # }
//! let images = node.ros_topic::<Image>("camera/image")?;
//! let publisher = images.publisher()?;
//! let mut subscriber = images.subscriber()?; // also elsewhere, and in ROS 2
//! # publisher.wait_for_match(1, Duration::from_secs(60));
//!
//! let mut pixels = publisher.loan(&Image {
//!     header: Header { stamp: Time::now(), frame_id: "camera".into() },
//!     height: 1080,
//!     width: 1440,
//!     encoding: "rgb8".into(),
//!     step: 1440 * 3,
//!     ..Image::default()
//! })?;
//! pixels.fill(128); // in shared memory
//! pixels.publish()?;
//!
//! if let Some(sample) = subscriber.receive(Duration::from_secs(1))? {
//!     let image = sample.decode()?; // borrows `data` from shared memory
//!     assert_eq!(image.encoding, "rgb8");
//!     assert_eq!((image.width, image.data.len()), (1440, 4_665_600));
//! }
//! # Ok(()) }
//! ```
//!
//! | of ROS 2 | here |
//! |---|---|
//! | messages | [`std_msgs`], [`geometry_msgs`], [`sensor_msgs`]; your own: [`Message`] |
//! | names | [`dds_topic`], [`dds_type`] |
//! | quality of service | [`RosNode::ros_topic`]: the default; [`Topic::sensor_data`] |
//! | `rosidl`'s serialisation | [`cdr`], also for DDS types that are not ROS 2's |
//!
//! The guide is `docs/how-to/ros2.md`.

pub mod cdr;
pub mod geometry_msgs;
mod message;
mod names;
pub mod sensor_msgs;
pub mod std_msgs;
mod topic;

pub use cdr::Text;
pub use message::{Bulk, Message};
pub use names::{NameError, dds_topic, dds_type};
pub use topic::{Loan, Publisher, RosNode, Sample, Subscriber, Topic};

/// Errors of a topic of messages.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The name of a topic or a type is not valid.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A message that cannot be written; nothing was published.
    #[error("{message}: {source}")]
    Encode {
        /// Its type.
        message: &'static str,
        /// The field, and what is wrong with it.
        source: cdr::EncodeError,
    },
    /// A sample that is not a message of the topic's type.
    #[error("not a {message}: {source}")]
    Decode {
        /// The topic's type.
        message: &'static str,
        /// The field, and what is wrong with it.
        source: cdr::DecodeError,
    },
    /// An error of the topic itself.
    #[error(transparent)]
    Topic(#[from] myelin::Error),
}
