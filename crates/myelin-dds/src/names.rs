//! Names of Myelin's topics in DDS.

/// A topic's name among DDS programs: only characters that DDS allows, and different for different
/// topics.
pub fn private_topic(name: &str) -> String {
    let mut encoded = String::from(TOPIC_PREFIX);
    for byte in name.bytes() {
        match byte {
            b'/' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => encoded.push(char::from(byte)),
            other => encoded.push_str(&format!("_{other:02x}")),
        }
    }
    encoded
}

/// The beginning of every [`private_topic`].
pub const TOPIC_PREFIX: &str = "myelin/";
