//! A node and one peer that sends any messages, for tests and the fuzz target `messages`.

use crate::control_plane::directory::NODE_SHIFT;
use crate::control_plane::link::Credentials;
use crate::control_plane::message::{ControlMessage, PASSED_MIN};
use crate::control_plane::protocol::query::Counted;
use crate::control_plane::protocol::{Action, Input, Protocol, Reservation};
use crate::limits::LINK_QUEUE_MAX;
#[cfg(fuzzing)]
use crate::limits::MATCHES_REPORTED_MAX;
use crate::record::{
    AnnouncedQos, Attributes, EndpointRecord, Kind, Matching, NodeRecord, RecordOptions,
};
use crate::topic::{EndpointId, PublisherQos, Topic};

/// A node that has met a peer, which has a publisher and a subscriber. There is no memory and there
/// are no descriptors.
pub(crate) struct Met {
    pub(crate) protocol: Protocol<()>,
    /// Whether the peer reads the node's messages at once; otherwise it never reads.
    reads: bool,
    /// How many messages it has not read.
    unread: usize,
}

pub(crate) const LINK: u64 = 2;
pub(crate) const PEER: u64 = 2 << NODE_SHIFT;
pub(crate) const PUBLISHER: EndpointId = PEER | 1;
pub(crate) const SUBSCRIBER: EndpointId = PEER | 2;

impl Met {
    #[cfg(test)]
    pub(crate) fn new() -> Met {
        Met::with_peer_that_reads(true)
    }

    pub(crate) fn with_peer_that_reads(reads: bool) -> Met {
        let protocol =
            Protocol::new(1 << NODE_SHIFT, NodeRecord::default(), Credentials { pid: 1, uid: 1 });
        let mut met = Met { protocol, reads, unread: 0 };
        let who = Credentials { pid: 2, uid: 1 };
        met.handle(Input::Linked { link: LINK, who, connected_to: None });
        let record = NodeRecord::default();
        met.handle(Input::Hello { link: LINK, node: PEER, record, owner: Some(1) });
        let publisher = record_of(Kind::Publisher, topic("a"));
        let subscriber = record_of(Kind::Subscriber, topic("b"));
        met.receives(ControlMessage::Announced { endpoint: PUBLISHER, record: publisher });
        met.receives(ControlMessage::Announced { endpoint: SUBSCRIBER, record: subscriber });
        met
    }

    /// The messages that are sent.
    pub(crate) fn handle(&mut self, input: Input<()>) -> Vec<ControlMessage> {
        let mut sent = Vec::new();
        let mut inputs = vec![input];
        while let Some(input) = inputs.pop() {
            for action in self.protocol.handle(0, input) {
                match action {
                    Action::Send { link, message, .. } => {
                        sent.push(message);
                        self.unread += usize::from(!self.reads);
                        if self.unread > LINK_QUEUE_MAX {
                            inputs.push(Input::Overrun { link });
                        }
                    }
                    Action::Drain { link } if self.reads => inputs.push(Input::Drained { link }),
                    Action::Reserve { pair, .. } => {
                        let passed = vec![(); PASSED_MIN];
                        let result = Ok(Reservation { connection: 0, passed });
                        inputs.push(Input::Reserved { pair, result });
                    }
                    Action::Attach { pair, .. } => {
                        inputs.push(Input::Attached { pair, result: Ok(0) });
                    }
                    _ => {}
                }
            }
        }
        sent
    }

    /// A publisher of the node's own on the topic of the peer's subscriber.
    #[cfg(test)]
    pub(crate) fn makes_publisher(&mut self) -> EndpointId {
        let id = self.protocol.new_endpoint(&topic("b")).expect("there are few");
        let record = record_of(Kind::Publisher, topic("b"));
        self.handle(Input::PublisherMade { id, record, publication: () });
        id
    }

    /// A subscriber of the node's own on the topic of the peer's publisher.
    #[cfg(test)]
    fn makes_subscriber(&mut self) -> EndpointId {
        let id = self.protocol.new_endpoint(&topic("a")).expect("there are few");
        let record = record_of(Kind::Subscriber, topic("a"));
        self.handle(Input::SubscriberMade { id, record, ignore_own_node: false, subscription: () });
        id
    }

    /// Offers waiting for the peer.
    #[cfg(test)]
    fn queued_offers(&self) -> usize {
        let peer = self.protocol.links[&LINK].greeted().expect("it has greeted");
        peer.outbox.offers().count()
    }

    pub(crate) fn receives(&mut self, message: ControlMessage) -> Vec<ControlMessage> {
        let descriptors = vec![(); message.descriptors()];
        self.handle(Input::Received { link: LINK, message, descriptors })
    }

    #[cfg(test)]
    pub(crate) fn is_linked(&self) -> bool {
        self.protocol.peers().count() == 1
    }
}

/// The record of an endpoint with default settings.
pub(crate) fn record_of(kind: Kind, topic: Topic) -> EndpointRecord {
    let qos = AnnouncedQos::of_publisher(&PublisherQos::default(), &RecordOptions::default());
    let (matching, attributes) = (Matching::Exact, Attributes::default());
    EndpointRecord { kind, topic, qos, matching, created_ns: 0, attributes }
}

fn topic(name: &str) -> Topic {
    Topic { name: name.into(), type_name: "T".into(), type_hash: 7 }
}

/// A peer that is queried, and sends these messages, each after a byte with its length. The peer
/// reads if the number of all bytes is even.
#[cfg(fuzzing)]
pub(crate) fn talk(mut bytes: &[u8]) {
    let mut met = Met::with_peer_that_reads(bytes.len().is_multiple_of(2));
    let topic = topic("a");
    let id = met.protocol.new_endpoint(&topic).expect("it is the first");
    let record = record_of(Kind::Subscriber, topic);
    met.handle(Input::SubscriberMade { id, record, ignore_own_node: false, subscription: () });
    met.handle(Input::QueryGraph);
    met.handle(Input::QuerySchema { node: PEER, type_hash: 7 });
    while let Some((length, rest)) = bytes.split_first() {
        let (message, rest) = rest.split_at(usize::from(*length).min(rest.len()));
        bytes = rest;
        match ControlMessage::decode(message) {
            Ok(message) => drop(met.receives(message)),
            Err(_) => drop(met.handle(Input::Nonsense { link: LINK })),
        }
    }
    let graph = met.protocol.graph(&Counted::new(), Some(met.protocol.graph_query()));
    assert!(graph.matches.len() <= MATCHES_REPORTED_MAX + 1);
    assert!(graph.endpoints.iter().any(|it| it.id == id));
    met.handle(Input::Ended { link: LINK });
    assert_eq!(
        met.protocol.graph(&Counted::new(), None).endpoints.len(),
        1,
        "what it has announced has gone with it"
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control_plane::protocol::Pair;
    use crate::control_plane::protocol::matches::State;

    /// A peer that stops reading once its announcements are on their way.
    fn met_a_peer_that_does_not_read() -> Met {
        let mut met = Met::with_peer_that_reads(false);
        met.makes_publisher();
        met
    }

    #[test]
    fn a_peer_that_declines_and_asks_without_reading_costs_no_more_memory() {
        let mut met = met_a_peer_that_does_not_read();
        let publisher = met.makes_publisher();
        let before = met.queued_offers();
        for _ in 0..1_000 {
            let (pair, reason) = (Pair { publisher, subscriber: SUBSCRIBER }, String::new());
            met.receives(ControlMessage::Declined { pair, reason });
            met.receives(ControlMessage::RequestOffer { pair });
        }
        assert!(met.is_linked());
        assert_eq!((before, met.queued_offers()), (2, 2));
    }

    #[test]
    fn a_peer_whose_subscribers_come_and_go_costs_no_more_memory() {
        let mut met = met_a_peer_that_does_not_read();
        let before = met.queued_offers();
        for number in 3..1_000 {
            let subscriber = PEER | number;
            let record = record_of(Kind::Subscriber, topic("b"));
            met.receives(ControlMessage::Announced { endpoint: subscriber, record });
            met.receives(ControlMessage::Retracted { endpoint: subscriber });
        }
        assert!(met.is_linked());
        assert_eq!((before, met.queued_offers()), (1, 1));
    }

    #[test]
    fn own_publishers_that_come_and_go_cost_no_more_memory() {
        let mut met = met_a_peer_that_does_not_read();
        for _ in 0..1_000 {
            let id = met.makes_publisher();
            met.handle(Input::Dropped { id });
        }
        assert_eq!(met.queued_offers(), 1);
    }

    /// It announces and retracts subscribers, offers, accepts, declines, withdraws, requests offers
    /// and queries, all of it valid and in any order, until its link ends.
    #[test]
    fn a_peer_that_never_reads_costs_bounded_memory_whatever_it_sends() {
        const OTHERS: u64 = 4;
        let mut ended = 0;
        for seed in 1..=SEEDS {
            let mut met = met_a_peer_that_does_not_read();
            let (publisher, subscriber) = (met.makes_publisher(), met.makes_subscriber());
            let mut random = seed;
            let mut below = |limit: u64| {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (random >> 33) % limit
            };
            let mut announced = [false; OTHERS as usize];
            for _ in 0..20 * LINK_QUEUE_MAX {
                let number = below(OTHERS);
                let endpoint = PEER | (10 + number);
                let is_announced = &mut announced[number as usize];
                let ours = Pair { publisher, subscriber: endpoint };
                let theirs = Pair { publisher: PUBLISHER, subscriber };
                let reason = String::new();
                let message = match below(100) {
                    0 => ControlMessage::Query { from: 0 },
                    1..20 if !std::mem::replace(is_announced, true) => {
                        let record = record_of(Kind::Subscriber, topic("b"));
                        ControlMessage::Announced { endpoint, record }
                    }
                    1..20 => {
                        *is_announced = false;
                        ControlMessage::Retracted { endpoint }
                    }
                    20..40 => ControlMessage::Offer { pair: theirs },
                    40..50 => ControlMessage::Withdrawn { pair: theirs, reason },
                    50..55 => ControlMessage::Matched { pair: theirs, start: 0 },
                    55..70 if *is_announced => ControlMessage::RequestOffer { pair: ours },
                    70..85 if *is_announced => ControlMessage::Declined { pair: ours, reason },
                    85.. if *is_announced => {
                        ControlMessage::Accept { pair: ours, connection: 0, wake_pipe: false }
                    }
                    _ => continue,
                };
                met.receives(message);
                assert!(met.unread <= LINK_QUEUE_MAX + 1);
                if !met.is_linked() {
                    ended += 1;
                    break;
                }
                let peer = met.protocol.links[&LINK].greeted().expect("it has greeted");
                let queued = met.protocol.publishers.iter().flat_map(|(publisher, ours)| {
                    let queued = ours.matches.iter().filter(|it| it.1.state == State::Queued);
                    queued.map(|(subscriber, _)| Pair { publisher: *publisher, subscriber })
                });
                assert!(peer.outbox.offers().eq(queued), "all that are queued, and no others");
                // Two publishers of ours, and one burst and one answer.
                assert!(peer.outbox.len() as u64 <= 2 * (1 + OTHERS) + 2);
                assert!(met.protocol.timers.len() as u64 <= 2 * (1 + OTHERS) + 1);
            }
            assert!(met.protocol.graph(&Counted::new(), None).endpoints.len() as u64 <= 5 + OTHERS);
        }
        assert!(ended > 0, "no peer has filled its link");
    }

    const SEEDS: u64 = 40;
}
