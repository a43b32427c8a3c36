//! Publishes the messages of one topic of a recording.

use std::time::Duration;

use myelin::{DynamicType, EndpointId, Error, Matching, Node, Publisher, Topic};
use myelin_value::Schema;

use super::error::PlayError;
use super::recording::RecordedTopic;
use crate::names::{LAYOUT, QOS_PROFILES, TYPE_HASH};
use crate::qos::Offered;
use crate::topic_format::TopicFormat;

/// A publisher of one topic, as the one that was recorded.
///
/// | recorded | published |
/// |---|---|
/// | plain data, by the layout in the metadata or as the schema | samples of that type |
/// | `cdr` with a message's name, such as `std_msgs/msg/String` | as `rmw_myelin` does it |
/// | anything else | bytes, with the schema |
pub(super) struct Outlet {
    name: String,
    publisher: Publisher<[u8]>,
    /// Of plain data: how a message becomes a sample, and its type.
    plain: Option<(TopicFormat, DynamicType)>,
    /// Late joiners get so many samples.
    pub(super) latched: u32,
}

/// What became of a message.
pub(super) enum Sent {
    /// It was published, and so many late subscribers were passed over.
    Published(u32),
    /// It is no sample of its type.
    Unfit,
    /// A slow subscriber was waited for until the player was stopped.
    Stopped,
}

impl Outlet {
    /// `name` is that of the topic in the recording, or what it is remapped to.
    pub(super) fn open(
        node: &Node,
        topic: &RecordedTopic,
        name: &str,
        waits: bool,
    ) -> Result<Outlet, PlayError> {
        let profiles = topic.metadata.get(QOS_PROFILES).map(String::as_str);
        let offered = Offered::read(profiles, &topic.publishers);
        let form = Form::of(topic).map_err(|error| in_topic(name, error))?;
        let (wire_name, made) = form.topic(node, topic, name, &offered);
        let made = made.map_err(|error| in_topic(name, error))?;
        let depth = offered.depth.max(DEPTH_MIN);
        let mut made = made.depth(depth).transient_local(offered.latched);
        made = match (waits, offered.is_reliable) {
            (true, true) => made.reliable_or_fail(SLICE),
            (false, true) => made.reliable_keep_last(),
            (_, false) => made,
        };
        if let Some(deadline) = offered.deadline {
            made = made.deadline(deadline);
        }
        made = made.announced_only(None, offered.is_alive_by_topic);
        let mut builder = made.publisher_builder().timestamps(true);
        if let Some(lease) = offered.lease {
            builder = builder.liveliness(lease);
        }
        let publisher = builder.open().map_err(|error| in_topic(&wire_name, error))?;
        let plain = match form {
            Form::Plain { format, ty } => Some((*format, ty)),
            Form::Ros { .. } | Form::Bytes => None,
        };
        Ok(Outlet { name: name.to_owned(), publisher, plain, latched: offered.latched })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn id(&self) -> EndpointId {
        self.publisher.id()
    }

    pub(super) fn matched(&self) -> usize {
        self.publisher.matched()
    }

    /// Waits until other hosts have what was published, for at most `limit`.
    pub(super) fn finish(&self, limit: Duration) -> bool {
        self.publisher.wait_for_acknowledgements(limit)
    }

    /// Publishes a message. A wait for a slow subscriber goes on until `is_stopped`; `scratch` is
    /// memory to be used again.
    pub(super) fn publish(
        &self,
        message: &[u8],
        scratch: &mut Vec<u8>,
        is_stopped: impl Fn() -> bool,
    ) -> Result<Sent, PlayError> {
        let bytes = |parts: &[&[u8]; 3]| parts.iter().map(|part| part.len()).sum::<usize>();
        let parts = match &self.plain {
            Some((format, ty)) => {
                format.sample(message, scratch).filter(|parts| ty.fits(bytes(parts)))
            }
            None => Some([message, &[], &[]]),
        };
        let Some(parts) = parts else { return Ok(Sent::Unfit) };
        loop {
            let published = self.publisher.loan(bytes(&parts)).and_then(|mut loan| {
                let mut rest = &mut loan[..];
                for part in parts {
                    let (to, behind) = rest.split_at_mut(part.len());
                    to.copy_from_slice(part);
                    rest = behind;
                }
                loan.publish()
            });
            match published {
                Ok(published) => return Ok(Sent::Published(published.passed_over)),
                Err(Error::ReliableTimeout { .. }) if !is_stopped() => {}
                Err(Error::ReliableTimeout { .. }) => return Ok(Sent::Stopped),
                Err(error) => return Err(in_topic(&self.name, error)),
            }
        }
    }
}

/// What the messages of a topic are.
enum Form {
    Plain { format: Box<TopicFormat>, ty: DynamicType },
    Ros { dds_type: String },
    Bytes,
}

impl Form {
    fn of(topic: &RecordedTopic) -> Result<Form, Error> {
        let plain = |text: &str| {
            let format = Box::new(TopicFormat::new(&Schema::layout(text)));
            Ok(Form::Plain { format, ty: DynamicType::from_layout(text)? })
        };
        if let Some(text) = topic.metadata.get(LAYOUT).filter(|_| topic.encoding == "cdr") {
            return plain(text);
        }
        let Some(schema) = &topic.schema else { return Ok(Form::Bytes) };
        match (&*topic.encoding, &*schema.encoding) {
            (TopicFormat::OWN_ENCODING, Schema::LAYOUT) => {
                plain(&String::from_utf8_lossy(&schema.text))
            }
            ("cdr", _) => {
                Ok(dds_type(&schema.name).map_or(Form::Bytes, |dds_type| Form::Ros { dds_type }))
            }
            _ => Ok(Form::Bytes),
        }
    }

    /// Its name on the wire, and it.
    fn topic(
        &self,
        node: &Node,
        topic: &RecordedTopic,
        name: &str,
        offered: &Offered,
    ) -> (String, Result<Topic<[u8]>, Error>) {
        let with_schema = |made: Topic<[u8]>| match &topic.schema {
            Some(schema) if !schema.text.is_empty() => made.schema(&schema.encoding, &schema.text),
            _ => made,
        };
        match self {
            Form::Plain { ty, .. } => (name.to_owned(), Ok(node.dynamic_topic(name, ty))),
            Form::Bytes => (name.to_owned(), Ok(with_schema(node.topic(name)))),
            Form::Ros { dds_type } => {
                // ROS 2 names its topics so in DDS. A topic of another DDS program has no slash.
                let name =
                    if name.starts_with('/') { format!("rt{name}") } else { name.to_owned() };
                let mut made = with_schema(node.topic(&name).dds_cdr(dds_type));
                made = made.matching(Matching::RequestedOffered);
                let depth = if offered.keeps_all { 0 } else { offered.depth };
                made = made
                    .attribute("ros.node", NODE)
                    .attribute("ros.depth", depth.to_string().as_bytes());
                let hash = topic.metadata.get(TYPE_HASH).filter(|it| is_type_hash(it));
                if let Some(hash) = hash {
                    made = made
                        .attribute("ros.type_hash", hash.as_bytes())
                        .dds_user_data(&format!("typehash={hash};"));
                }
                (name, Ok(made))
            }
        }
    }
}

/// The name in DDS of a type of ROS 2; that of another DDS program stays.
fn dds_type(name: &str) -> Option<String> {
    if name.contains("::") {
        return Some(name.to_owned());
    }
    // Some programs leave out the `msg`.
    let short = name.split_once('/').filter(|(_, rest)| !rest.contains('/'));
    let full = short.map(|(package, message)| format!("{package}/msg/{message}"));
    let (package, message) = full.as_deref().unwrap_or(name).rsplit_once('/')?;
    let is_word = |part: &str| {
        !part.is_empty() && part.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_')
    };
    let is_name = is_word(message) && package.split('/').all(is_word);
    is_name.then(|| format!("{}::dds_::{message}_", package.replace('/', "::")))
}

/// Such as `RIHS01_` and 64 digits.
fn is_type_hash(text: &str) -> bool {
    let (version, hash) = text.split_once('_').unwrap_or_default();
    version.starts_with("RIHS") && hash.len() == 64 && hash.bytes().all(|it| it.is_ascii_hexdigit())
}

fn in_topic(topic: &str, error: Error) -> PlayError {
    PlayError::Publish { topic: topic.to_owned(), error }
}

/// What tools of ROS 2 show as the node.
const NODE: &[u8] = b"/myelin_play";
/// A subscriber may be so far behind, if its own depth allows it.
const DEPTH_MIN: u32 = 256;
/// How long a publish waits before it looks whether the player is stopped.
const SLICE: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_have_the_names_that_rmw_myelin_gives_them() {
        for (name, expected) in [
            ("std_msgs/msg/String", Some("std_msgs::msg::dds_::String_")),
            ("std_msgs/String", Some("std_msgs::msg::dds_::String_")),
            ("a/srv/Add_Request", Some("a::srv::dds_::Add_Request_")),
            ("HelloWorldData::Msg", Some("HelloWorldData::Msg")),
            ("String", None),
            ("std msgs/msg/String", None),
            ("/msg/String", None),
            ("", None),
        ] {
            assert_eq!(dds_type(name).as_deref(), expected, "{name}");
        }
    }

    #[test]
    fn only_a_type_hash_is_announced() {
        let hash = format!("RIHS01_{}", "0123456789abcdef".repeat(4));
        assert!(is_type_hash(&hash));
        for other in ["", "RIHS01_", "RIHS01_xyz;node=evil", &hash[1..]] {
            assert!(!is_type_hash(other), "{other}");
        }
    }
}
