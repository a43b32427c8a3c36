//! Common parts of a publisher and a subscriber as DDS endpoints: their names in DDS, and the
//! endpoints of the other side that they do not match, with the reasons.

use std::collections::VecDeque;
use std::sync::Mutex;

use myelin_dds::{Endpoint, Guid};
use myelin_shm::node as shm;

use super::host::{Host, topic_name};
use super::session::Session;
use super::user_data::{Discovered, EndpointUserData, NodeUserData, dds_program};
use super::{Encoding, Spec, lock};
use crate::{
    AnnouncedQos, DdsInfo, EndpointId, EndpointInfo, Error, Event, LayoutHash, Location, Mismatch,
    Setting,
};

/// An endpoint of this process.
pub(super) struct DdsEndpoint {
    pub(super) handle: shm::EndpointHandle,
    /// Its record, which its user data carry.
    pub(super) info: EndpointInfo,
    pub(super) topic: String,
    pub(super) type_name: String,
    pub(super) is_private: bool,
    vendor: Option<u16>,
    /// Why endpoints of the other side do not match; each is reported to the user once.
    refused: Mutex<Refused>,
}

/// The newest endpoints that do not match; with one more the oldest is dropped.
#[derive(Debug, Default)]
struct Refused(VecDeque<(EndpointId, Refusal)>);

/// Why an endpoint does not match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    /// For people, with the remedy.
    pub(super) reason: String,
    pub(super) mismatch: Option<Mismatch>,
}

impl Refused {
    /// Whether the endpoint is new.
    fn insert(&mut self, endpoint: EndpointId, refusal: &Refusal) -> bool {
        if self.0.iter().any(|(known, _)| *known == endpoint) {
            return false;
        }
        if self.0.len() == REFUSED_MAX {
            self.0.pop_front();
        }
        self.0.push_back((endpoint, refusal.clone()));
        true
    }
}

impl DdsEndpoint {
    pub(super) fn new(spec: &Spec, handle: shm::EndpointHandle) -> Result<DdsEndpoint, Error> {
        let (topic, type_name) = match &spec.dds.encoding {
            // Endpoints of other layouts have other types, and are not matched.
            Encoding::Private => (topic_name(&spec.topic.name), private_type(spec.topic.type_hash)),
            Encoding::Typed(name) | Encoding::Message(name) => {
                let topic = spec.dds.name.as_ref().unwrap_or(&spec.topic.name);
                (topic.clone(), name.clone())
            }
        };
        let mut info = handle.node().endpoint(handle.id())?.unwrap_or_default();
        let mut dds = DdsInfo::default();
        (dds.topic, dds.type_name) = (topic.clone(), type_name.clone());
        dds.user_data = spec.dds.user_data.clone().into_bytes();
        info.dds = Some(dds);
        let is_private = matches!(spec.dds.encoding, Encoding::Private);
        let (vendor, refused) = (spec.dds.vendor, Mutex::default());
        Ok(DdsEndpoint { handle, info, topic, type_name, is_private, vendor, refused })
    }

    /// Why it does not match an endpoint of the other side on its topic. `None`: they match, if DDS
    /// matches them.
    pub(super) fn mismatch(&self, theirs: &EndpointInfo) -> Option<Mismatch> {
        if type_name(theirs) != self.type_name {
            return Some(self.mismatch_of(Setting::Type, [&self.info, theirs].map(type_text)));
        }
        if theirs.location == Location::Dds {
            return None; // DDS decides by itself
        }
        // Types of one name in DDS are one type, whatever they look like in memory.
        let mut theirs = theirs.clone();
        theirs.type_hash = self.info.type_hash;
        self.info.mismatch(&theirs)
    }

    /// Why DDS does not match it with an endpoint of the other side on its topic and with its type,
    /// as far as the settings that DDS knows show it.
    fn mismatch_in_dds(&self, other: &Endpoint, is_writer: bool) -> Option<Mismatch> {
        let theirs = dds_program(other, is_writer).qos;
        // Its writers and readers in DDS have these settings alone.
        let mut ours = AnnouncedQos::default();
        ours.resends = self.info.qos.is_reliable() || self.info.qos.transient_local > 0;
        ours.transient_local = self.info.qos.transient_local;
        match self.info.is_publisher {
            true => AnnouncedQos::refusal(&ours, &theirs),
            false => AnnouncedQos::refusal(&theirs, &ours),
        }
    }

    fn mismatch_of(&self, setting: Setting, [ours, theirs]: [String; 2]) -> Mismatch {
        let (offered, requested) =
            if self.info.is_publisher { (ours, theirs) } else { (theirs, ours) };
        Mismatch { setting, offered, requested, is_refusal: true }
    }

    /// Reports a discovered endpoint of the other side, on this topic, that does not match. Returns
    /// the record of one of Myelin that does.
    pub(super) fn compare(&self, other: &Endpoint, host: Host) -> Option<EndpointInfo> {
        match Discovered::read(other, !self.info.is_publisher, host) {
            // The shared-memory route reports those of this host.
            Discovered::ThisHost => {}
            Discovered::Unreadable(reason) => {
                let reason = format!("DDS topic {:?}: {reason}", self.topic);
                self.report_incompatible(id_of(other.guid), Refusal { reason, mismatch: None });
            }
            Discovered::OtherHost(EndpointUserData { info: theirs, .. })
            | Discovered::Dds(theirs) => match self.mismatch(&theirs) {
                Some(mismatch) => self.report_mismatch(theirs.id, mismatch),
                None => return (theirs.location != Location::Dds).then_some(theirs),
            },
        }
        None
    }

    /// Whether an endpoint of a DDS program comes from a vendor that is not understood; reports it.
    pub(super) fn is_foreign(&self, other: &EndpointInfo) -> bool {
        let guid = guid_of(other);
        let vendor = u16::from_be_bytes([guid[0], guid[1]]);
        if self.vendor.is_none_or(|understood| understood == vendor) {
            return false;
        }
        let who = if self.info.is_publisher { "a subscriber" } else { "a publisher" };
        let reason = format!(
            "{who} on DDS topic {:?} uses another DDS implementation ({vendor:04x}), which encodes \
             these messages in another way, like the services of ROS 2: use the same \
             implementation on both sides",
            self.topic
        );
        self.report_incompatible(other.id, Refusal { reason, mismatch: None });
        true
    }

    /// Reports what DDS refuses to match: an endpoint of the other side is on the topic, has the
    /// type, and does not fit by a policy.
    pub(super) fn report_policy(&self, policy: u32, session: &Session) {
        // Between Myelin's own endpoints, a mismatch is intended or reported elsewhere.
        if self.is_private {
            return;
        }
        let mut is_found = false;
        for (is_writer, other) in session.discovered() {
            let is_other_side = is_writer != self.info.is_publisher;
            if !is_other_side || other.topic != self.topic || other.type_name != self.type_name {
                continue;
            }
            let Some(mismatch) = self.mismatch_in_dds(&other, is_writer) else { continue };
            is_found = true;
            // Shared memory leads to those of this host, whatever DDS thinks of their settings.
            if let Some(theirs) = Discovered::read(&other, is_writer, session.host).info() {
                // The records say more, and the same on both sides.
                self.report_mismatch(theirs.id, self.mismatch(theirs).unwrap_or(mismatch));
            }
        }
        if !is_found {
            let policy = match policy {
                HISTORY => "history",
                OWNERSHIP => "ownership",
                REPRESENTATION => "data representation",
                _ => "a policy of DDS",
            };
            let reason = format!(
                "the other side of DDS topic {:?} does not fit: {policy}; use the same setting on \
                 both sides",
                self.topic
            );
            self.report(0, Refusal { reason, mismatch: None });
        }
    }

    /// Reports that it could not be made on a new interface.
    pub(super) fn report_unbound(&self, error: &Error) {
        let reason = format!("DDS topic {:?} is not open: {error}", self.topic);
        self.report(0, Refusal { reason, mismatch: None });
    }

    /// Reports that the enclave of a node, which announces itself by this writer of flow control, does not
    /// allow it an endpoint of the other side.
    pub(super) fn report_denied(&self, node: &Endpoint, enclave: &str) {
        let name =
            NodeUserData::read(&node.user_data).map(|node| node.info.name).unwrap_or_default();
        let does = if self.info.is_publisher { "subscribe to" } else { "publish" };
        let reason = format!(
            "node {name:?} may not {does} DDS topic {}: the permissions of its enclave {enclave:?} do not \
             allow it. Allow it (`myelin keystore add`, `ros2 security create_permission`), and copy the \
             enclave to its host",
            self.topic
        );
        // The endpoint that it would have.
        let endpoint = LayoutHash::of_bytes(&[&node.guid[..], does.as_bytes()].concat());
        self.report_incompatible(endpoint, Refusal { reason, mismatch: None });
    }

    /// Reports an endpoint of the other side that does not match, once.
    pub(super) fn report_mismatch(&self, endpoint: EndpointId, mismatch: Mismatch) {
        let refusal = Refusal { reason: mismatch.to_string(), mismatch: Some(mismatch) };
        self.report_incompatible(endpoint, refusal);
    }

    /// Reports an endpoint of the other side for which this side lacks something.
    pub(super) fn report_refused(&self, endpoint: EndpointId, reason: String) {
        self.warn(endpoint, &reason);
        self.handle.report(Event::Refused { endpoint, pid: 0, reason });
    }

    /// Why an endpoint of the other side does not match, if it has been reported.
    pub(super) fn refusal(&self, endpoint: EndpointId) -> Option<Refusal> {
        let refused = lock(&self.refused);
        refused.0.iter().find(|(known, _)| *known == endpoint).map(|(_, refusal)| refusal.clone())
    }

    fn report_incompatible(&self, endpoint: EndpointId, refusal: Refusal) {
        if lock(&self.refused).insert(endpoint, &refusal) {
            self.report(endpoint, refusal);
        }
    }

    fn report(&self, endpoint: EndpointId, Refusal { reason, mismatch }: Refusal) {
        self.warn(endpoint, &reason);
        self.handle.report(Event::Incompatible { endpoint, pid: 0, mismatch, reason });
    }

    fn warn(&self, endpoint: EndpointId, reason: &str) {
        let kind = if self.info.is_publisher { "publisher" } else { "subscriber" };
        let (topic, ours) = (&self.info.topic, type_text(&self.info));
        let sides = format!(
            "topic {topic:?}: a {kind} of {ours} here, another host or DDS program {endpoint:x}"
        );
        self.handle.warn(endpoint, topic, sides, reason.to_owned());
    }
}

/// An id for an endpoint that is not Myelin's. Half of the GUID would not be enough: other DDS
/// programs count processes and endpoints from 1 in it.
pub(super) fn id_of(guid: Guid) -> EndpointId {
    LayoutHash::of_bytes(&guid)
}

/// The name in DDS of a type that only Myelin has.
pub(crate) fn private_type(type_hash: u64) -> String {
    format!("myelin::T{type_hash:016x}")
}

/// The name of an endpoint's type in DDS.
fn type_name(info: &EndpointInfo) -> &str {
    info.dds.as_ref().map_or("", |dds| &dds.type_name)
}

pub(super) fn guid_of(info: &EndpointInfo) -> Guid {
    info.dds.as_ref().map_or(Guid::default(), |dds| dds.guid)
}

/// An endpoint's type, for people.
fn type_text(info: &EndpointInfo) -> String {
    match type_name(info) {
        name if name == private_type(info.type_hash) => {
            format!("{} (layout {:016x})", info.type_name, info.type_hash)
        }
        name => format!("DDS type {name}"),
    }
}

/// How many endpoints that do not match an endpoint remembers; it may report one beyond them again.
const REFUSED_MAX: usize = 1_024;
/// Numbers of DDS's policies (`dds_qos_policy_id_t`).
const OWNERSHIP: u32 = 6;
const HISTORY: u32 = 13;
const REPRESENTATION: u32 = 25;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endless_endpoints_are_reported_once_in_bounded_memory() {
        let refusal = Refusal { reason: String::new(), mismatch: None };
        let mut refused = Refused::default();
        let endless = 0..10 * REFUSED_MAX as u64;
        assert!(endless.clone().all(|endpoint| refused.insert(endpoint, &refusal)));
        assert_eq!(refused.0.len(), REFUSED_MAX);
        let newest = endless.rev().take(REFUSED_MAX);
        assert!(newest.into_iter().all(|endpoint| !refused.insert(endpoint, &refusal)));
    }
}
