//! What is announced of nodes and endpoints on other routes: the same records as between the nodes of
//! a host, as bytes.
//!
//! The bytes come from another process, or from another host: everything is checked, every
//! allocation is bounded by the length of the bytes, and left-over bytes are an error. Whoever
//! sends them marks their version.

use crate::control_plane::directory::node_of;
use crate::control_plane::link::Credentials;
use crate::control_plane::message::{self, ControlMessage};
use crate::control_plane::protocol::PeerInfo;
use crate::control_plane::protocol::graph::EndpointInfo;
use crate::error::Error;
use crate::record::{EndpointRecord, Kind, Mismatch, Side, mismatch};
use crate::topic::Topic;

impl EndpointInfo {
    /// Its id and its record: topic, settings, matching policy, time, attributes.
    #[doc(hidden)] // for other routes
    pub fn encode(&self) -> Vec<u8> {
        let record = EndpointRecord {
            kind: if self.is_publisher { Kind::Publisher } else { Kind::Subscriber },
            topic: Topic {
                name: self.topic.clone(),
                type_name: self.type_name.clone(),
                type_hash: self.type_hash,
            },
            qos: self.qos,
            matching: self.matching,
            created_ns: self.created_ns,
            attributes: self.attributes.clone(),
        };
        ControlMessage::Announced { endpoint: self.id, record }.encode()
    }

    /// The endpoint that is announced by these bytes.
    ///
    /// # Errors
    /// [`Error::PeerCorrupt`] for bytes that `encode` does not produce.
    #[doc(hidden)] // for other routes
    pub fn decode(bytes: &[u8]) -> Result<EndpointInfo, Error> {
        match ControlMessage::decode(bytes)? {
            ControlMessage::Announced { endpoint, record } => {
                Ok(EndpointInfo::new(endpoint, record))
            }
            _ => Err(Error::PeerCorrupt { what: "the record of an endpoint" }),
        }
    }

    /// Why it does not match an endpoint of the topic that has the other kind; `None`: they match.
    /// Both ends find the same.
    pub fn mismatch(&self, other: &EndpointInfo) -> Option<Mismatch> {
        let (publisher, subscriber) = match self.is_publisher {
            true => (self, other),
            false => (other, self),
        };
        mismatch(publisher.side(), subscriber.side())
    }

    fn side(&self) -> Side<'_> {
        let EndpointInfo { type_name, type_hash, qos, matching, .. } = self;
        Side { type_name, type_hash: *type_hash, qos, matching: *matching }
    }
}

impl PeerInfo {
    /// Its id, process and user, and its record.
    #[doc(hidden)] // for other routes
    pub fn encode(&self) -> Vec<u8> {
        message::encode_node(self.node, [self.pid, self.user], &self.record)
    }

    /// The node that is announced by these bytes.
    ///
    /// # Errors
    /// [`Error::PeerCorrupt`] for bytes that `encode` does not produce.
    #[doc(hidden)] // for other routes
    pub fn decode(bytes: &[u8]) -> Result<PeerInfo, Error> {
        let (node, [pid, uid], record) = message::decode_node(bytes)?;
        match node_of(node) == node {
            true => Ok(PeerInfo::new(node, Credentials { pid, uid }, record)),
            false => Err(Error::PeerCorrupt { what: "the id of a node" }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control_plane::directory::NODE_SHIFT;
    use crate::control_plane::protocol::hostile::record_of;
    use crate::record::{Attributes, Matching, NodeRecord, Setting};

    fn endpoint() -> EndpointInfo {
        let topic = Topic { name: "imu".into(), type_name: "Imu".into(), type_hash: 7 };
        let mut record = record_of(Kind::Publisher, topic);
        record.attributes.insert("gid", &[0, 255]).unwrap();
        record.matching = Matching::RequestedOffered;
        EndpointInfo::new(3 << NODE_SHIFT | 1, record)
    }

    fn node() -> PeerInfo {
        let mut attributes = Attributes::default();
        attributes.insert("firmware", b"2.4").unwrap();
        let record = NodeRecord { name: "lidar".into(), attributes, ..NodeRecord::default() };
        PeerInfo::new(3 << NODE_SHIFT, Credentials { pid: 5, uid: 1000 }, record)
    }

    #[test]
    fn announcements_are_read_as_written() {
        assert_eq!(EndpointInfo::decode(&endpoint().encode()).unwrap(), endpoint());
        assert_eq!(PeerInfo::decode(&node().encode()).unwrap(), node());
    }

    /// Each prefix, each changed byte and left-over bytes: an error, or what encodes to the bytes.
    #[test]
    fn cut_and_changed_announcements_are_errors_or_other_announcements() {
        let (endpoint, node) = (endpoint().encode(), node().encode());
        for (bytes, is_node) in [(endpoint, false), (node, true)] {
            let encoded = |bytes: &[u8]| match is_node {
                true => PeerInfo::decode(bytes).map(|it| it.encode()),
                false => EndpointInfo::decode(bytes).map(|it| it.encode()),
            };
            for length in 0..bytes.len() {
                assert!(encoded(&bytes[..length]).is_err(), "{length}");
            }
            assert!(encoded(&[&bytes[..], &[0]].concat()).is_err());
            for at in 0..bytes.len() {
                for value in 0..=u8::MAX {
                    let mut changed = bytes.clone();
                    changed[at] = value;
                    if let Ok(again) = encoded(&changed) {
                        assert_eq!(again, changed, "byte {at} is {value}");
                    }
                }
            }
        }
    }

    #[test]
    fn both_ends_find_the_same_mismatch() {
        let publisher = endpoint();
        let mut subscriber = EndpointInfo { is_publisher: false, ..endpoint() };
        assert_eq!(publisher.mismatch(&subscriber), None);
        subscriber.qos.transient_local = 1;
        let mismatch = publisher.mismatch(&subscriber).unwrap();
        assert_eq!(mismatch.setting, Setting::Durability);
        assert_eq!(subscriber.mismatch(&publisher), Some(mismatch));
        subscriber.type_hash += 1;
        assert_eq!(publisher.mismatch(&subscriber).unwrap().setting, Setting::Type);
    }
}
