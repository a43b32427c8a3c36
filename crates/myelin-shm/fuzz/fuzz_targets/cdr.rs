//! ROS 2 messages from the network: an error, or a message that is read again as it was written, if
//! it can be written.
#![no_main]

use myelin_ros::cdr::{self, Cdr};
use myelin_ros::sensor_msgs::{Image, Imu, PointCloud2};
use myelin_ros::std_msgs;

/// Bytes are compared, because not every number is equal to itself, and padding may be anything. A
/// message that was read may have a NUL in a text, which cannot be written.
fn written<'a>(message: &impl Cdr<'a>) -> Option<Vec<u8>> {
    let mut bytes = vec![0; cdr::encoded_bytes(message).ok()?];
    cdr::encode(message, &mut bytes).ok()?;
    Some(bytes)
}

macro_rules! check {
    ($bytes:expr, $($message:ty),*) => {$(
        if let Some(bytes) = cdr::decode::<$message>($bytes).ok().and_then(|it| written(&it)) {
            let again: $message = cdr::decode(&bytes).expect("it has been written");
            assert_eq!(written(&again).expect("it has been"), bytes);
        }
    )*};
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    check!(bytes, std_msgs::String, std_msgs::Header, Image, Imu, PointCloud2);
});
