//! How ROS 2 calls its topics and types in DDS.
//!
//! From <https://design.ros2.org/articles/topic_and_service_names.html>, and as the source of `rmw`
//! (`validate_full_topic_name.c`) and of `rmw_cyclonedds_cpp` (`type_name.cpp`) has it:
//!
//! | | ROS 2 | DDS |
//! |---|---|---|
//! | topic | `chatter`, `/chatter` | `rt/chatter` |
//! | in a namespace | `/robot1/camera/image` | `rt/robot1/camera/image` |
//! | type | `std_msgs/msg/String` | `std_msgs::msg::dds_::String_` |

/// A name that is not valid in ROS 2.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} is not the name of a ROS 2 {what}: {rule}")]
pub struct NameError {
    name: String,
    what: &'static str,
    rule: &'static str,
}

/// The DDS name of a ROS 2 topic. A name without a leading slash belongs to the root namespace: a
/// node of Myelin is in no other, and nothing is remapped.
///
/// # Errors
/// [`NameError`] with the rule that the name breaks.
///
/// ```
/// assert_eq!(myelin_ros::dds_topic("camera/image")?, "rt/camera/image");
/// assert!(myelin_ros::dds_topic("~/image").is_err());
/// # Ok::<(), myelin_ros::NameError>(())
/// ```
pub fn dds_topic(ros_topic: &str) -> Result<String, NameError> {
    let error = |rule| NameError { name: ros_topic.to_owned(), what: "topic", rule };
    let relative = ros_topic.strip_prefix('/').unwrap_or(ros_topic);
    if relative.is_empty() {
        return Err(error("it must not be empty"));
    }
    if ros_topic.contains(['~', '{', '}']) {
        return Err(error("Myelin substitutes nothing; write it out, with its namespace"));
    }
    if relative.ends_with('/') {
        return Err(error("it must not end with a slash"));
    }
    if !relative.bytes().all(|byte| is_word(byte) || byte == b'/') {
        return Err(error(
            "it has letters a to z and A to Z, digits, underscores and slashes only",
        ));
    }
    if relative.split('/').any(str::is_empty) {
        return Err(error("it must not have one slash after the other"));
    }
    if relative.split('/').any(begins_with_digit) {
        return Err(error("no part of it may begin with a digit"));
    }
    if relative.len() > TOPIC_BYTES_MAX {
        return Err(error("it must not be longer than 246 characters, without the leading slash"));
    }
    Ok(format!("rt/{relative}"))
}

/// The DDS name of a ROS 2 message type, given as `package/msg/Type`.
///
/// # Errors
/// [`NameError`] if it is not of that form.
///
/// ```
/// let name = myelin_ros::dds_type("sensor_msgs/msg/Image")?;
/// assert_eq!(name, "sensor_msgs::msg::dds_::Image_");
/// # Ok::<(), myelin_ros::NameError>(())
/// ```
pub fn dds_type(ros_type: &str) -> Result<String, NameError> {
    let parts: Vec<&str> = ros_type.split('/').collect();
    let is_identifier =
        |part: &&str| !part.is_empty() && part.bytes().all(is_word) && !begins_with_digit(part);
    match parts[..] {
        [package, "msg", message] if parts.iter().all(is_identifier) => {
            Ok(format!("{package}::msg::dds_::{message}_"))
        }
        _ => Err(NameError {
            name: ros_type.to_owned(),
            what: "message type",
            rule: "write package/msg/Type, as std_msgs/msg/String",
        }),
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn begins_with_digit(part: &str) -> bool {
    part.starts_with(|first: char| first.is_ascii_digit())
}

/// `RMW_TOPIC_MAX_NAME_LENGTH`, 255 minus 8 for the prefix, without the leading slash.
const TOPIC_BYTES_MAX: usize = 246;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topic_names_are_mapped_as_in_ros_2() {
        for (ros, dds) in [
            ("chatter", "rt/chatter"),
            ("/chatter", "rt/chatter"),
            ("/robot_1/camera/image_raw", "rt/robot_1/camera/image_raw"),
            ("_hidden/a2", "rt/_hidden/a2"),
            ("a__b", "rt/a__b"), // `rmw` allows it
        ] {
            assert_eq!(dds_topic(ros).unwrap(), dds);
        }
        let longest = "a".repeat(246);
        assert_eq!(dds_topic(&longest).unwrap().len(), 249);
    }

    #[test]
    fn a_wrong_topic_name_is_refused_with_the_rule() {
        let longer = "a".repeat(247);
        for (wrong, rule) in [
            ("", "empty"),
            ("/", "empty"),
            ("chatter/", "end with a slash"),
            ("a//b", "one slash after the other"),
            ("//b", "one slash after the other"),
            ("2chatter", "begin with a digit"),
            ("/robot/2/image", "begin with a digit"),
            ("front camera", "letters"),
            ("kamera-1", "letters"),
            ("größe", "letters"),
            ("a\0b", "letters"),
            ("~/image", "write it out"),
            ("{node}/image", "write it out"),
            (&longer, "246"),
        ] {
            let error = dds_topic(wrong).unwrap_err().to_string();
            assert!(error.contains(rule) && error.contains(&format!("{wrong:?}")), "{error}");
        }
    }

    #[test]
    fn type_names_are_mapped_as_in_ros_2() {
        assert_eq!(dds_type("std_msgs/msg/String").unwrap(), "std_msgs::msg::dds_::String_");
        for wrong in [
            "",
            "String",
            "std_msgs/String",
            "std_msgs/srv/Empty",
            "a/msg/",
            "a/msg/B/c",
            "2a/msg/B",
            "a b/msg/C",
            "std_msgs::msg::String",
        ] {
            let error = dds_type(wrong).unwrap_err().to_string();
            assert!(error.contains("package/msg/Type"), "{error}");
        }
    }
}
