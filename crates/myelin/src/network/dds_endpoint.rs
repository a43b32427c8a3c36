//! Common parts of a publisher and a subscriber as DDS endpoints: their names in DDS, and the
//! endpoints of the other side that they cannot be matched with.

use std::collections::VecDeque;
use std::sync::Mutex;

use myelin_dds::{Endpoint, Guid};
use myelin_shm::node as shm;

use super::host::{EndpointUserData, Host, topic_name};
use super::{Encoding, Spec, lock};
use crate::{EndpointId, Event, LayoutHash};

/// An endpoint of this process.
pub(super) struct DdsEndpoint {
    pub(super) observer: shm::EndpointHandle,
    pub(super) topic: String,
    pub(super) dds_topic: String,
    pub(super) dds_type: String,
    is_publisher: bool,
    is_private: bool,
    type_text: String,
    vendor: Option<u16>,
    /// Endpoints of another type, or vendor, that have been reported to the user: the newest.
    reported: Mutex<Newest>,
}

/// A set of so many ids; with one more the oldest is dropped.
#[derive(Debug, Default)]
struct Newest(VecDeque<EndpointId>);

impl Newest {
    /// Whether the id is new.
    fn insert(&mut self, endpoint: EndpointId) -> bool {
        if self.0.contains(&endpoint) {
            return false;
        }
        if self.0.len() == REPORTED_MAX {
            self.0.pop_front();
        }
        self.0.push_back(endpoint);
        true
    }
}

impl DdsEndpoint {
    pub(super) fn new(
        spec: &Spec,
        observer: shm::EndpointHandle,
        is_publisher: bool,
    ) -> DdsEndpoint {
        let (dds_topic, dds_type) = match &spec.dds.encoding {
            Encoding::Private => (
                topic_name(&spec.topic.name),
                // Endpoints of other layouts have other types, and are not matched.
                format!("myelin::T{:016x}", spec.topic.type_hash),
            ),
            Encoding::Typed(name) | Encoding::Message(name) => {
                let topic = spec.dds.name.as_ref().unwrap_or(&spec.topic.name);
                (topic.clone(), name.clone())
            }
        };
        let (type_text, reported) = (type_text(spec), Mutex::default());
        let is_private = matches!(spec.dds.encoding, Encoding::Private);
        let (topic, vendor) = (spec.topic.name.clone(), spec.dds.vendor);
        DdsEndpoint {
            observer,
            topic,
            dds_topic,
            dds_type,
            is_publisher,
            is_private,
            type_text,
            vendor,
            reported,
        }
    }

    /// Reports an endpoint of the other side that is on this topic with another type.
    pub(super) fn compare(&self, other: &Endpoint, host: Host) {
        if other.topic != self.dds_topic || other.type_name == self.dds_type {
            return;
        }
        let data = EndpointUserData::decode(&other.user_data);
        // The shared-memory route reports those of this host.
        if data.as_ref().is_some_and(|data| data.host == host) {
            return;
        }
        // A subscriber has several readers.
        let endpoint = data.as_ref().map_or(id_of(other.guid), |data| data.endpoint);
        if !lock(&self.reported).insert(endpoint) {
            return;
        }
        let theirs = data.map_or_else(|| other.type_name.clone(), |data| data.type_text);
        let who = if self.is_publisher { "a subscriber" } else { "a publisher" };
        let reason = format!(
            "{who} on another host has {theirs} on topic {:?}, not {}; use the same type on both \
             sides, or another topic name",
            other.topic, self.type_text
        );
        self.report_incompatible(endpoint, reason);
    }

    /// Whether an endpoint of the other side, not Myelin's, comes from a vendor that is not
    /// understood; reports it.
    pub(super) fn is_foreign(&self, other: &Endpoint) -> bool {
        let vendor = u16::from_be_bytes([other.guid[0], other.guid[1]]);
        if self.vendor.is_none_or(|understood| understood == vendor) {
            return false;
        }
        let endpoint = id_of(other.guid);
        if lock(&self.reported).insert(endpoint) {
            let who = if self.is_publisher { "a subscriber" } else { "a publisher" };
            let reason = format!(
                "{who} on DDS topic {:?} uses another DDS implementation ({vendor:04x}), which \
                 encodes these messages in another way, like the services of ROS 2: use the same \
                 implementation on both sides",
                self.dds_topic
            );
            self.report_incompatible(endpoint, reason);
        }
        true
    }

    /// Reports an endpoint of the other side whose settings do not fit.
    pub(super) fn report_policy(&self, policy: u32) {
        // Between Myelin's own endpoints, a mismatch is intended or reported elsewhere.
        if self.is_private {
            return;
        }
        let who = match self.is_publisher {
            true => "a remote subscriber requests more than this publisher offers",
            false => "a remote publisher offers less than this subscriber requests",
        };
        let policy = match policy {
            RELIABILITY => "reliability (reliable, best_effort)",
            DURABILITY => "durability (history)",
            HISTORY => "history",
            DEADLINE => "deadline",
            LIVELINESS => "liveliness",
            OWNERSHIP => "ownership",
            REPRESENTATION => "data representation",
            _ => "see its documentation",
        };
        let reason = format!(
            "{who} on DDS topic {:?}: {policy}; use the same setting on both sides",
            self.dds_topic
        );
        self.report_incompatible(0, reason);
    }

    /// Reports that it could not be made on a new interface.
    pub(super) fn report_unbound(&self, error: &crate::Error) {
        self.report_incompatible(0, format!("DDS topic {:?} is not open: {error}", self.dds_topic));
    }

    pub(super) fn report_incompatible(&self, endpoint: EndpointId, reason: String) {
        let reason = self.warn(endpoint, reason);
        self.observer.tell(Event::Incompatible { endpoint, pid: 0, mismatch: None, reason });
    }

    pub(super) fn report_refused(&self, endpoint: EndpointId, reason: String) {
        let reason = self.warn(endpoint, reason);
        self.observer.tell(Event::Refused { endpoint, pid: 0, reason });
    }

    fn warn(&self, endpoint: EndpointId, reason: String) -> String {
        let kind = if self.is_publisher { "publisher" } else { "subscriber" };
        let (topic, ours) = (&self.topic, &self.type_text);
        let sides = format!(
            "topic {topic:?}: a {kind} of {ours} here, another host or DDS program {endpoint:x}"
        );
        self.observer.warn(endpoint, topic, sides, reason.clone());
        reason
    }
}

/// An id for an endpoint that is not Myelin's. Half of the GUID would not be enough: other DDS
/// programs count processes and endpoints from 1 in it.
pub(super) fn id_of(guid: Guid) -> EndpointId {
    LayoutHash::of_bytes(&guid)
}

/// A topic's type, for people elsewhere.
pub(super) fn type_text(spec: &Spec) -> String {
    match &spec.dds.encoding {
        Encoding::Private => {
            format!("{} (layout {:016x})", spec.topic.type_name, spec.topic.type_hash)
        }
        Encoding::Typed(name) | Encoding::Message(name) => format!("DDS type {name}"),
    }
}

/// How many endpoints one endpoint reports to its user once; beyond that it may report one again.
const REPORTED_MAX: usize = 1_024;
/// Numbers of DDS's policies (`dds_qos_policy_id_t`).
const DURABILITY: u32 = 2;
const DEADLINE: u32 = 4;
const OWNERSHIP: u32 = 6;
const LIVELINESS: u32 = 8;
const RELIABILITY: u32 = 11;
const HISTORY: u32 = 13;
const REPRESENTATION: u32 = 25;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endless_endpoints_are_reported_once_in_bounded_memory() {
        let mut reported = Newest::default();
        let endless = 0..10 * REPORTED_MAX as u64;
        assert!(endless.clone().all(|endpoint| reported.insert(endpoint)));
        assert_eq!(reported.0.len(), REPORTED_MAX);
        assert!(endless.rev().take(REPORTED_MAX).all(|endpoint| !reported.insert(endpoint)));
    }
}
