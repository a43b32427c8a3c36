//! What a node's enclave does not allow it to publish or to subscribe to, announced to the nodes that have
//! the other side of the topic: text in the user data of its writer of flow control, `myelin_denied=1:`,
//! base64, `;`.
//!
//! DDS has no message for it: an endpoint that the permissions do not allow is never made, so nobody else
//! would know of it.

use super::host::name_of;
use super::user_data::{from_base64, to_base64};
use crate::Attributes;

/// What a node may not do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Denied {
    /// Its enclave.
    pub(super) enclave: String,
    /// Names in DDS, each once.
    pub(super) topics: Vec<DeniedTopic>,
}

/// A topic that it may not publish, or not subscribe to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DeniedTopic {
    pub(super) is_publisher: bool,
    pub(super) name: String,
}

impl Denied {
    /// Whether it is new; no more than `TOPICS_MAX` are announced.
    pub(super) fn insert(&mut self, topic: DeniedTopic) -> bool {
        let is_new = !self.topics.contains(&topic) && self.topics.len() < TOPICS_MAX;
        if is_new {
            self.topics.push(topic);
        }
        is_new
    }

    pub(super) fn encode(&self) -> String {
        let mut bytes = Vec::new();
        let mut add = |flag: u8, text: &str| {
            let text = &text.as_bytes()[..text.len().min(TEXT_BYTES_MAX)];
            bytes.extend([flag, text.len() as u8]);
            bytes.extend(text);
        };
        add(0, &self.enclave);
        self.topics.iter().for_each(|topic| add(topic.is_publisher.into(), &topic.name));
        format!("{KEY}{};", to_base64(&bytes))
    }

    /// What a node announces; nothing if it cannot be read.
    pub(super) fn read(user_data: &[u8]) -> Denied {
        let mut parts = user_data.split(|byte| *byte == b';');
        let text = parts.find_map(|part| part.strip_prefix(KEY.as_bytes()));
        text.and_then(from_base64).and_then(|bytes| Denied::decode(&bytes)).unwrap_or_default()
    }

    /// Shows the topics, by the names that users know, among the attributes of the node; as many as there is
    /// room for.
    pub(super) fn add_to(&self, attributes: &mut Attributes) {
        for (attribute, is_publisher) in [(MAY_NOT_PUBLISH, true), (MAY_NOT_SUBSCRIBE, false)] {
            let of_kind = self.topics.iter().filter(|topic| topic.is_publisher == is_publisher);
            let name = |it: &DeniedTopic| name_of(&it.name).unwrap_or_else(|| it.name.clone());
            let mut names: Vec<String> = of_kind.map(name).collect();
            while !names.is_empty()
                && attributes.insert(attribute, names.join(" ").as_bytes()).is_err()
            {
                names.pop();
            }
        }
    }

    fn decode(bytes: &[u8]) -> Option<Denied> {
        let text = |bytes: &mut &[u8]| {
            let (&[flag, length], rest) = bytes.split_first_chunk()?;
            let (text, rest) = rest.split_at_checked(length.into())?;
            *bytes = rest;
            Some((flag, String::from_utf8(text.to_vec()).ok()?))
        };
        let mut rest = bytes;
        let (_, enclave) = text(&mut rest)?;
        let mut denied = Denied { enclave, topics: Vec::new() };
        while !rest.is_empty() {
            let (flag, name) = text(&mut rest)?;
            denied.insert(DeniedTopic { is_publisher: flag == 1, name });
        }
        Some(denied)
    }
}

/// Attributes of nodes, with names of topics.
const MAY_NOT_PUBLISH: &str = "myelin.may_not_publish";
const MAY_NOT_SUBSCRIBE: &str = "myelin.may_not_subscribe";
const KEY: &str = "myelin_denied=1:";
const TOPICS_MAX: usize = 32;
const TEXT_BYTES_MAX: usize = 255;

#[cfg(test)]
mod tests {
    use super::*;

    fn denied() -> Denied {
        let mut denied = Denied { enclave: "/robot/camera".to_owned(), topics: Vec::new() };
        for (is_publisher, name) in [(true, "rt/image"), (false, "myelin/trigger")] {
            let topic = DeniedTopic { is_publisher, name: name.to_owned() };
            assert!(denied.insert(topic.clone()) && !denied.insert(topic));
        }
        denied
    }

    #[test]
    fn what_is_denied_is_read_between_other_user_data() {
        let data = format!("myelin_lane=1:AAAA;{}myelin=4:AAAA;", denied().encode());
        assert_eq!(Denied::read(data.as_bytes()), denied());
        assert_eq!(Denied::read(b"enclave=/;myelin=4:AAAA;"), Denied::default());
    }

    #[test]
    fn topics_are_shown_by_the_names_that_users_know() {
        let mut attributes = Attributes::default();
        denied().add_to(&mut attributes);
        assert_eq!(attributes.get(MAY_NOT_PUBLISH), Some(&b"rt/image"[..]));
        assert_eq!(attributes.get(MAY_NOT_SUBSCRIBE), Some(&b"trigger"[..]));
    }

    #[test]
    fn damaged_and_endless_data_are_nothing() {
        let whole = denied().encode();
        for end in KEY.len()..whole.len() - 1 {
            let cut = Denied::read(&whole.as_bytes()[..end]);
            assert!(cut.topics.len() < 2, "{cut:?}");
        }
        let mut many = denied();
        for number in 0..2 * TOPICS_MAX {
            many.insert(DeniedTopic { is_publisher: true, name: number.to_string() });
        }
        assert_eq!(many.topics.len(), TOPICS_MAX);
        let mut bytes =
            from_base64(&many.encode().as_bytes()[KEY.len()..many.encode().len() - 1]).unwrap();
        bytes.extend([1, 1, b'x']);
        assert_eq!(Denied::decode(&bytes).unwrap(), many);
    }
}
