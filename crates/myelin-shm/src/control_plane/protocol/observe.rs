//! Observers: readers of this node that no publisher knows. Their node asks a publisher's node for
//! the descriptors of its ring and its slot segments, when it learns of the publisher and whenever
//! an observer meets a segment that it does not have. The publisher's node keeps nothing of it.
//!
//! As for queries, a peer has one request at a time, and its answer is sent in bursts, after
//! everything else but answers to queries. So neither side has more messages on the way than the
//! other has room for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::control_plane::directory::{Endpoint, node_of};
use crate::control_plane::message::{ControlMessage, SegmentSize};
use crate::control_plane::protocol::links::Peer;
use crate::control_plane::protocol::{Action, OutOfOrder, Protocol, Timer};
use crate::limits::{MESSAGE_SEGMENTS_MAX, SEGMENTS_MAX};
use crate::record::Kind;
use crate::topic::{EndpointId, Topic};

/// The observers of this node.
#[derive(Debug, Default)]
pub(super) struct Observers {
    /// The name and the type of each one's topic.
    topics: BTreeMap<ObserverId, (Arc<str>, u64)>,
    on_topics: BTreeSet<(Arc<str>, u64, ObserverId)>,
    made: ObserverId,
    /// When publishers are asked for again that could not be mapped.
    again_ns: BTreeMap<EndpointId, u64>,
}

/// The number of an observer within its node.
pub(crate) type ObserverId = u64;

/// Our requests to a peer.
#[derive(Debug, Default)]
pub(super) struct Requests {
    pending: Option<Request>,
    /// The publishers to ask for next, each with the first slot segment that is missing.
    waiting: BTreeMap<EndpointId, u32>,
    /// Whether the creation of an observer has ended without the answer.
    is_late: bool,
}

/// The request that the peer has not answered yet.
#[derive(Debug)]
struct Request {
    publisher: EndpointId,
    /// The least number that the next slot segment may have.
    next: u32,
    /// Whether the next part may have the ring.
    awaits_ring: bool,
}

/// The rest of the answer to a peer's request.
#[derive(Debug)]
pub(super) struct Reply {
    publisher: EndpointId,
    next: usize,
    has_ring: bool,
}

/// Memory of a publisher, for observers.
#[derive(Clone, Debug)]
pub(crate) struct Observed<D> {
    /// When the publisher was made, by the date.
    pub(crate) created_ns: u64,
    pub(crate) has_ring: bool,
    pub(crate) segments: Vec<SegmentSize>,
    /// The ring's, if it is there, then the segments'.
    pub(crate) descriptors: Vec<D>,
    /// Whether this is the end of the answer.
    pub(crate) is_last: bool,
}

impl Observers {
    fn of(&self, publisher: &Endpoint) -> Vec<ObserverId> {
        let at = |id| (publisher.topic.name.clone(), publisher.topic.type_hash(), id);
        self.on_topics.range(at(0)..=at(ObserverId::MAX)).map(|(_, _, id)| *id).collect()
    }
}

impl Requests {
    /// Whether nothing is asked or waits.
    #[cfg(test)]
    pub(super) fn is_idle(&self) -> bool {
        self.pending.is_none() && self.waiting.is_empty()
    }

    fn publishers(&self) -> impl Iterator<Item = EndpointId> {
        let asked = self.pending.iter().map(|asked| asked.publisher);
        asked.chain(self.waiting.keys().copied())
    }
}

impl<D: Clone> Protocol<D> {
    /// A number for a new observer.
    pub(crate) fn new_observer(&mut self) -> ObserverId {
        self.observers.made += 1;
        self.observers.made
    }

    /// A new observer observes all publishers of its topic and type.
    pub(super) fn observer_made(&mut self, id: ObserverId, topic: &Topic) {
        let (name, type_hash) = (Arc::from(topic.name.as_str()), topic.type_hash);
        self.observers.topics.insert(id, (Arc::clone(&name), type_hash));
        self.observers.on_topics.insert((Arc::clone(&name), type_hash, id));
        for publisher in self.directory.publishers_of(&name, type_hash) {
            self.observe(publisher, 0);
        }
    }

    pub(super) fn observer_dropped(&mut self, id: ObserverId) {
        if let Some((name, type_hash)) = self.observers.topics.remove(&id) {
            self.observers.on_topics.remove(&(name, type_hash, id));
        }
    }

    /// A publisher has come, here or at a peer.
    pub(super) fn observe_new(&mut self, id: EndpointId, publisher: &Endpoint) {
        if publisher.kind == Kind::Publisher && !self.observers.of(publisher).is_empty() {
            self.observe(id, 0);
        }
    }

    /// A publisher has left or died.
    pub(super) fn observed_no_more(&mut self, publisher: EndpointId, endpoint: &Endpoint) {
        if let Some(due_ns) = self.observers.again_ns.remove(&publisher) {
            self.timers.remove(&(due_ns, Timer::Observe(publisher)));
        }
        let link = self.link_of(publisher).and_then(|link| self.links.get_mut(&link));
        if let Some(peer) = link.and_then(Peer::greeted_mut) {
            peer.requests.waiting.remove(&publisher);
        }
        for observer in self.observers.of(endpoint) {
            self.actions.push(Action::Unobserve { observer, publisher });
        }
    }

    /// Gets the ring of a publisher, if `from` is 0, and its slot segments from this number on.
    pub(super) fn observe(&mut self, publisher: EndpointId, from: u32) {
        if node_of(publisher) == self.node {
            return self.observe_own(publisher);
        }
        let known = self.directory.get(publisher).and_then(|_| self.link_of(publisher));
        let Some(link) = known else { return };
        if let Some(peer) = self.greeted_mut(link) {
            let first = peer.requests.waiting.entry(publisher).or_insert(from);
            *first = from.min(*first);
            self.request_next(link);
        }
    }

    fn observe_own(&mut self, publisher: EndpointId) {
        let Some(ours) = self.publishers.get(&publisher) else { return };
        let (segments, mut descriptors): (_, Vec<D>) = ours.segments().iter().cloned().unzip();
        descriptors.insert(0, ours.publication().clone());
        self.pass_on(publisher, true, segments, descriptors, true);
    }

    /// Asks for the next publisher, unless the peer has not answered yet.
    fn request_next(&mut self, link: u64) {
        let Some(peer) = self.greeted_mut(link) else { return };
        if peer.requests.pending.is_some() {
            return;
        }
        let Some((publisher, from)) = peer.requests.waiting.pop_first() else { return };
        peer.requests.pending = Some(Request { publisher, next: from, awaits_ring: from == 0 });
        self.send(link, ControlMessage::Observe { publisher, from });
    }

    /// A peer asks for a publisher of ours.
    pub(super) fn observe_received(
        &mut self,
        link: u64,
        publisher: EndpointId,
        from: u32,
    ) -> Result<(), OutOfOrder> {
        if node_of(publisher) != self.node {
            return Err(OutOfOrder);
        }
        let peer = self.greeted_mut(link).ok_or(OutOfOrder)?;
        peer.outbox.check_may_observe()?;
        peer.outbox.add_reply(Reply { publisher, next: from as usize, has_ring: from == 0 });
        self.send_burst(link);
        Ok(())
    }

    /// The next part of the answer to a peer's request.
    pub(super) fn next_part(&mut self, link: u64, reply: Reply) -> (ControlMessage, Vec<D>) {
        let Reply { publisher, next, has_ring } = reply;
        let Some(ours) = self.publishers.get(&publisher) else {
            let (has_ring, segments) = (false, Vec::new()); // it has left meanwhile
            let end = ControlMessage::Observed { publisher, has_ring, segments, is_last: true };
            return (end, Vec::new());
        };
        let rest = ours.segments().get(next..).unwrap_or_default();
        let some = &rest[..rest.len().min(MESSAGE_SEGMENTS_MAX - usize::from(has_ring))];
        let is_last = some.len() == rest.len();
        if !is_last {
            let rest = Reply { publisher, next: next + some.len(), has_ring: false };
            self.links
                .get_mut(&link)
                .and_then(Peer::greeted_mut)
                .expect("it is sent to")
                .outbox
                .add_reply(rest);
        }
        let (segments, slots): (_, Vec<D>) = some.iter().cloned().unzip();
        let ring = has_ring.then(|| ours.publication().clone());
        let message = ControlMessage::Observed { publisher, has_ring, segments, is_last };
        (message, ring.into_iter().chain(slots).collect())
    }

    /// A part of a peer's answer.
    pub(super) fn observed(
        &mut self,
        link: u64,
        publisher: EndpointId,
        (has_ring, segments, is_last): (bool, Vec<SegmentSize>, bool),
        descriptors: Vec<D>,
    ) -> Result<(), OutOfOrder> {
        let peer = self.greeted_mut(link).ok_or(OutOfOrder)?;
        let asked = peer.requests.pending.as_mut().filter(|asked| asked.publisher == publisher);
        let asked = asked.ok_or(OutOfOrder)?;
        let may_have_ring = std::mem::take(&mut asked.awaits_ring);
        // Parts without content would never come to an end.
        let is_empty = !has_ring && segments.is_empty();
        if has_ring && !may_have_ring || is_empty && !is_last {
            return Err(OutOfOrder);
        }
        for size in &segments {
            if !(asked.next..SEGMENTS_MAX).contains(&size.number) {
                return Err(OutOfOrder);
            }
            asked.next = size.number + 1;
        }
        peer.requests.is_late = false;
        if is_last {
            peer.requests.pending = None;
        }
        self.pass_on(publisher, has_ring, segments, descriptors, is_last);
        if is_last {
            self.request_next(link);
        }
        Ok(())
    }

    /// Gives memory of a publisher to all observers of its topic.
    fn pass_on(
        &mut self,
        publisher: EndpointId,
        has_ring: bool,
        segments: Vec<SegmentSize>,
        descriptors: Vec<D>,
        is_last: bool,
    ) {
        let Some(endpoint) = self.directory.get(publisher) else { return };
        let created_ns = endpoint.created_ns;
        for observer in self.observers.of(endpoint) {
            let (segments, descriptors) = (segments.clone(), descriptors.clone());
            let observed = Observed { created_ns, has_ring, segments, descriptors, is_last };
            self.actions.push(Action::MapObserved { observer, publisher, observed });
        }
    }

    /// A publisher could not be mapped: asks for it again after a pause.
    pub(super) fn not_observed(&mut self, publisher: EndpointId) {
        let is_known = self.directory.get(publisher).is_some();
        if is_known && !self.observers.again_ns.contains_key(&publisher) {
            let due_ns = self.now_ns + AGAIN_NS;
            self.observers.again_ns.insert(publisher, due_ns);
            self.timers.insert((due_ns, Timer::Observe(publisher)));
        }
    }

    /// The pause is over.
    pub(super) fn observe_again(&mut self, publisher: EndpointId) {
        self.observers.again_ns.remove(&publisher);
        self.observe(publisher, 0);
    }

    /// Whether a new observer still has to wait for a publisher's memory, and its node is not late.
    pub(crate) fn is_awaiting_rings(&self, id: ObserverId) -> bool {
        let Some((name, type_hash)) = self.observers.topics.get(&id) else { return false };
        self.greeted().filter(|peer| !peer.requests.is_late).any(|peer| {
            peer.requests.publishers().any(|publisher| {
                let publisher = self.directory.get(publisher);
                publisher
                    .is_some_and(|it| it.topic.name == *name && it.topic.type_hash() == *type_hash)
            })
        })
    }

    /// Ends the creation of an observer: nodes that have not answered are late.
    pub(crate) fn stop_awaiting_rings(&mut self) {
        for peer in self.links.values_mut().filter_map(Peer::greeted_mut) {
            peer.requests.is_late |= peer.requests.pending.is_some();
        }
    }
}

const AGAIN_NS: u64 = 100_000_000;

#[cfg(test)]
mod tests;
