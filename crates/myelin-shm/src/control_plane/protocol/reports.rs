//! What users and people get to know: events for the users of this node's endpoints, and warnings
//! for people why endpoints, or whole nodes, do not match.

use crate::control_plane::directory::{Endpoint, node_of};
use crate::control_plane::protocol::matches::Refusal;
use crate::control_plane::protocol::{Action, Protocol, RefusedPeer};
use crate::event::Event;
use crate::limits::REFUSED_MAX;
use crate::record::{AnnouncedQos, Kind, Mismatch};
use crate::topic::{EndpointId, Reliability};
use crate::warnings::Warning;

impl<D: Clone> Protocol<D> {
    /// Passes an event to the user of an endpoint of ours.
    pub(super) fn deliver(&mut self, endpoint: EndpointId, event: Event) {
        self.actions.push(Action::Deliver { endpoint, event });
    }

    /// Informs a new endpoint of ours, and others of ours, of existing endpoints that it cannot
    /// match.
    pub(super) fn report_misfits(&mut self, id: EndpointId, own: &Endpoint) {
        for (misfit, mismatch) in self.directory.misfits(own) {
            self.report_incompatible(id, misfit, mismatch.clone());
            if node_of(misfit) == self.node {
                self.report_incompatible(misfit, id, mismatch);
            }
        }
    }

    pub(super) fn report_incompatible(
        &mut self,
        endpoint: EndpointId,
        other: EndpointId,
        mismatch: Mismatch,
    ) {
        let (pid, reason) = (self.pid_of(other), mismatch.to_string());
        self.warn(endpoint, other, reason.clone());
        let event = Event::Incompatible { endpoint: other, pid, mismatch: Some(mismatch), reason };
        self.deliver(endpoint, event);
    }

    /// Informs the user of an endpoint of ours why there is no match.
    pub(super) fn report_refusal(
        &mut self,
        endpoint: EndpointId,
        other: EndpointId,
        refusal: &Refusal,
    ) {
        if refusal.is_corrupt {
            self.warn(endpoint, other, refusal.reason.clone());
            let event = Event::Corrupt { endpoint: other };
            self.deliver(endpoint, event);
        } else {
            self.report_refused(endpoint, other, refusal.reason.clone());
        }
    }

    pub(super) fn report_refused(
        &mut self,
        endpoint: EndpointId,
        other: EndpointId,
        reason: String,
    ) {
        self.warn(endpoint, other, reason.clone());
        let event = Event::Refused { endpoint: other, pid: self.pid_of(other), reason };
        self.deliver(endpoint, event);
    }

    /// Warns people why an endpoint of ours is not matched with another.
    fn warn(&mut self, endpoint: EndpointId, other: EndpointId, reason: String) {
        self.warn_once(endpoint, other, (endpoint, other), reason);
    }

    /// Warns people, once for the topic, that an endpoint of ours is not matched with another with
    /// the requested settings.
    pub(super) fn warn_of_topic(
        &mut self,
        endpoint: EndpointId,
        other: EndpointId,
        reason: String,
    ) {
        self.warn_once(endpoint, other, (0, 0), reason);
    }

    fn warn_once(
        &mut self,
        endpoint: EndpointId,
        other: EndpointId,
        pair: (EndpointId, EndpointId),
        reason: String,
    ) {
        let (Some(own), Some(theirs)) = (self.directory.get(endpoint), self.directory.get(other))
        else {
            return;
        };
        let sides = format!(
            "topic {:?}: {} here, {} in process {}",
            own.topic.name,
            side_text(own),
            side_text(theirs),
            self.pid_of(other)
        );
        let topic = own.topic.name.to_string();
        self.actions.push(Action::Warn(Warning { pair, topic, sides, reason }));
    }

    pub(super) fn report_end(
        &mut self,
        endpoint: EndpointId,
        other: EndpointId,
        pid: u32,
        died: bool,
    ) {
        let event = Event::Unmatched { endpoint: other, pid, died };
        self.deliver(endpoint, event);
    }

    /// Informs all endpoints here of a peer that is not linked.
    pub(super) fn refuse(&mut self, node: u64, pid: u32, reason: String) {
        let ours: Vec<_> = self.publishers.keys().chain(self.subscribers.keys()).copied().collect();
        for endpoint in ours {
            let (mismatch, reason) = (None, reason.clone());
            let event = Event::Incompatible { endpoint: node, pid, mismatch, reason };
            self.deliver(endpoint, event);
        }
        self.warn_of_peer(pid, reason.clone());
        if self.refused.len() == REFUSED_MAX {
            self.refused.pop_front();
        }
        self.refused.push_back(RefusedPeer { pid, reason });
    }

    /// Warns people that a peer is not linked.
    pub(super) fn warn_of_peer(&mut self, pid: u32, reason: String) {
        let sides = format!("process {pid} is refused, with all its topics");
        let (pair, topic) = ((0, u64::from(pid)), String::new());
        self.actions.push(Action::Warn(Warning { pair, topic, sides, reason }));
    }
}

/// An endpoint's kind and settings, for people.
fn side_text(endpoint: &Endpoint) -> String {
    let kind = match endpoint.kind {
        Kind::Publisher => "publisher",
        Kind::Subscriber => "subscriber",
    };
    let AnnouncedQos { depth, reliability, transient_local, .. } = *endpoint.qos();
    let reliability = match (reliability, endpoint.kind) {
        (Reliability::Reliable, Kind::Publisher) => "waits for slow subscribers",
        (Reliability::Reliable, Kind::Subscriber) => "requests a publisher that waits",
        // The host does not know whether it is best effort across the network, too.
        (Reliability::BestEffort, Kind::Publisher) => "does not wait for slow subscribers",
        (Reliability::BestEffort, Kind::Subscriber) => "does not request a publisher that waits",
    };
    format!("a {kind} ({reliability}, depth {depth}, transient local {transient_local})")
}
