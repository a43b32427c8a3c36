//! The protocol's effects on the endpoints of a node: a model of the data plane that reports every
//! action that the shipping data plane relies on never to get.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::control_plane::message::{PASSED_MIN, SegmentSize};
use crate::control_plane::protocol::graph::Counters;
use crate::control_plane::protocol::observe::{Observed, ObserverId};
use crate::control_plane::protocol::query::Counted;
use crate::control_plane::protocol::{Action, Input, Pair, Refusal, Reservation};
use crate::event::Event;
use crate::record::{EndpointRecord, Kind, Lateness, Matching};
use crate::topic::{EndpointId, Topic};

/// Represents a descriptor; all are clones of one, which counts them.
pub(super) type Token = Rc<()>;

/// Failures in the current state of the world.
pub(super) struct Faults<'a> {
    pub(super) is_failing: &'a mut dyn FnMut() -> bool,
    pub(super) token: &'a Token,
}

#[derive(Default)]
pub(super) struct Memory {
    pub(super) publishers: BTreeMap<EndpointId, Publisher>,
    pub(super) subscribers: BTreeMap<EndpointId, Subscriber>,
    pub(super) observers: BTreeMap<ObserverId, Observer>,
    /// The peers' endpoints whose segments are mapped.
    pub(super) counters: BTreeMap<EndpointId, (Kind, Token)>,
    starts: u64,
}

pub(super) struct Observer {
    pub(super) topic: Topic,
    pub(super) rings: BTreeMap<EndpointId, Ring>,
}

/// A publisher that an observer has mapped.
pub(super) struct Ring {
    _publication: Token,
    pub(super) segments: BTreeMap<u32, Token>,
}

pub(super) struct Publisher {
    pub(super) record: EndpointRecord,
    pub(super) segments: BTreeSet<u32>,
    pub(super) attached: BTreeMap<EndpointId, Attached>,
    pub(super) events: UserEvents,
}

pub(super) struct Attached {
    pub(super) start: u64,
    pub(super) passed: Vec<Token>,
}

pub(super) struct Subscriber {
    pub(super) record: EndpointRecord,
    pub(super) publishers_max: usize,
    pub(super) connections: BTreeMap<EndpointId, Connection>,
    pub(super) events: UserEvents,
}

pub(super) struct Connection {
    _publication: Token,
    pub(super) segments: BTreeMap<u32, Token>,
    /// The first sample, once samples flow.
    pub(super) begun: Option<u64>,
    /// The match has ended, and the reader has not read to the end.
    pub(super) is_unread: bool,
}

/// The events of the user.
#[derive(Default)]
pub(super) struct UserEvents {
    pub(super) matched: BTreeSet<EndpointId>,
    /// By the other side, or by its node.
    pub(super) refusals: BTreeMap<EndpointId, String>,
}

impl Memory {
    pub(super) fn perform(
        &mut self,
        action: Action<Token>,
        faults: &mut Faults<'_>,
    ) -> Option<Input<Token>> {
        match action {
            Action::Reserve { pair, descriptors } => {
                let result = self.reserve(pair, &descriptors, faults);
                Some(Input::Reserved { pair, result })
            }
            Action::Map { pair, segments, descriptors } => {
                let refusal = self.map(pair, &segments, descriptors, faults).err()?;
                Some(Input::NotMapped { pair, refusal })
            }
            Action::CheckRoom { pair } => {
                let subscriber = self.subscriber(pair);
                let is_known = subscriber.connections.contains_key(&pair.publisher);
                let has_room = subscriber.connections.len() < subscriber.publishers_max;
                Some(Input::Room { pair, is_free: !is_known && has_room })
            }
            Action::Attach { pair, descriptors, .. } => {
                let result = self.attach(pair, descriptors, faults);
                Some(Input::Attached { pair, result })
            }
            Action::Begin { pair, start } => {
                let connections = &mut self.subscriber(pair).connections;
                let connection = connections.get_mut(&pair.publisher).expect("it is reserved");
                assert!(
                    !connection.is_unread && connection.begun.is_none(),
                    "{pair:?} begins twice"
                );
                connection.begun = start;
                None
            }
            Action::Release { pair, had_begun } => {
                let connections = &mut self.subscriber(pair).connections;
                let connection = connections.get_mut(&pair.publisher).expect("it is reserved");
                assert_eq!(connection.begun.is_some(), had_begun, "{pair:?}");
                assert!(!connection.is_unread, "{pair:?} ends twice");
                connection.is_unread = true;
                if !had_begun {
                    connections.remove(&pair.publisher);
                }
                None
            }
            Action::Detach { pair } => {
                let publisher = self.publishers.get_mut(&pair.publisher).expect("it is there");
                publisher.attached.remove(&pair.subscriber).expect("it is attached");
                None
            }
            Action::Deliver { endpoint, event } => {
                self.events_of(endpoint).add(event);
                None
            }
            Action::MapObserved { observer, publisher, observed } => {
                let refused = self.map_observed(observer, publisher, observed, faults).is_err();
                refused.then_some(Input::NotObserved { publisher })
            }
            Action::Unobserve { observer, publisher } => {
                self.observers.get_mut(&observer)?.rings.remove(&publisher);
                None
            }
            Action::Warn(_) => None,
            Action::MapCounters { endpoint, kind, descriptor } => {
                let token = descriptor.filter(|_| !(faults.is_failing)());
                match token {
                    Some(token) => _ = self.counters.insert(endpoint, (kind, token)),
                    None => return Some(Input::NotCounted { endpoint }),
                }
                None
            }
            Action::UnmapCounters { endpoint } => {
                self.counters.remove(&endpoint);
                None
            }
            _ => unreachable!("it concerns links"),
        }
    }

    /// The counters of an endpoint are derived from its id.
    pub(super) fn counted(&self) -> Counted {
        let publishers = self.publishers.keys().map(|id| (*id, Kind::Publisher));
        let subscribers = self.subscribers.keys().map(|id| (*id, Kind::Subscriber));
        let theirs = self.counters.iter().map(|(id, (kind, _))| (*id, *kind));
        let all = publishers.chain(subscribers).chain(theirs);
        all.map(|(id, kind)| (id, counters_of(kind, id))).collect()
    }

    /// The reader of a subscriber has read all samples of publishers that have gone.
    pub(super) fn read_to_the_end(&mut self) {
        for subscriber in self.subscribers.values_mut() {
            subscriber.connections.retain(|_, connection| !connection.is_unread);
        }
    }

    fn subscriber(&mut self, pair: Pair) -> &mut Subscriber {
        self.subscribers.get_mut(&pair.subscriber).expect("it is there")
    }

    fn events_of(&mut self, endpoint: EndpointId) -> &mut UserEvents {
        match self.publishers.get_mut(&endpoint) {
            Some(publisher) => &mut publisher.events,
            None => &mut self.subscribers.get_mut(&endpoint).expect("it is there").events,
        }
    }

    fn reserve(
        &mut self,
        pair: Pair,
        descriptors: &[Token],
        faults: &mut Faults<'_>,
    ) -> Result<Reservation<Token>, Refusal> {
        let subscriber = self.subscriber(pair);
        let number = subscriber.connections.len();
        if let Some(known) = subscriber.connections.get(&pair.publisher) {
            assert!(known.is_unread, "{pair:?} is reserved twice");
            return Err(refusal("what is left of the match before has not been read"));
        }
        if number >= subscriber.publishers_max {
            return Err(refusal("publishers_max"));
        }
        let [publication] = descriptors else { return Err(refusal("no descriptors came")) };
        if (faults.is_failing)() {
            return Err(refusal("no memory"));
        }
        let (_publication, segments) = (publication.clone(), BTreeMap::new());
        let connection = Connection { _publication, segments, begun: None, is_unread: false };
        subscriber.connections.insert(pair.publisher, connection);
        let passed = vec![faults.token.clone(); PASSED_MIN + number % 2];
        Ok(Reservation { connection: number as u32, passed })
    }

    fn map(
        &mut self,
        pair: Pair,
        sizes: &[SegmentSize],
        descriptors: Vec<Token>,
        faults: &mut Faults<'_>,
    ) -> Result<(), Refusal> {
        if descriptors.len() != sizes.len() || (faults.is_failing)() {
            return Err(refusal("no descriptors for segments"));
        }
        let connection = self.subscriber(pair).connections.get_mut(&pair.publisher);
        if let Some(connection) = connection.filter(|connection| !connection.is_unread) {
            let numbers = sizes.iter().map(|size| size.number);
            connection.segments.extend(numbers.zip(descriptors));
        }
        Ok(())
    }

    fn map_observed(
        &mut self,
        observer: ObserverId,
        publisher: EndpointId,
        observed: Observed<Token>,
        faults: &mut Faults<'_>,
    ) -> Result<(), Refusal> {
        let Observed { has_ring, segments, mut descriptors, .. } = observed;
        let Some(observer) = self.observers.get_mut(&observer) else { return Ok(()) };
        let is_complete = descriptors.len() == usize::from(has_ring) + segments.len();
        if !is_complete || (faults.is_failing)() {
            return Err(refusal("no descriptors for an observer"));
        }
        if has_ring {
            let _publication = descriptors.remove(0);
            let new = || Ring { _publication, segments: BTreeMap::new() };
            observer.rings.entry(publisher).or_insert_with(new);
        }
        if let Some(ring) = observer.rings.get_mut(&publisher) {
            ring.segments.extend(segments.iter().map(|size| size.number).zip(descriptors));
        }
        Ok(())
    }

    fn attach(
        &mut self,
        pair: Pair,
        passed: Vec<Token>,
        faults: &mut Faults<'_>,
    ) -> Result<u64, Refusal> {
        let publisher = self.publishers.get_mut(&pair.publisher).expect("it is there");
        assert!(!publisher.attached.contains_key(&pair.subscriber), "{pair:?} is attached twice");
        if !(PASSED_MIN..=PASSED_MIN + 1).contains(&passed.len()) || (faults.is_failing)() {
            return Err(refusal("no descriptors"));
        }
        self.starts += 1;
        let start = self.starts;
        publisher.attached.insert(pair.subscriber, Attached { start, passed });
        Ok(start)
    }
}

impl Publisher {
    /// Whether it matches a subscriber: the rule, written once more. In these worlds only history
    /// and reliability differ.
    pub(super) fn fits(&self, subscriber: &Subscriber) -> bool {
        let (offered, requested) = (&self.record, &subscriber.record);
        let is_same = offered.topic.name == requested.topic.name
            && offered.topic.type_hash == requested.topic.type_hash;
        let any = offered.matching == Matching::Exact && requested.matching == Matching::Exact;
        is_same && (any || offered.qos.transient_local >= requested.qos.transient_local)
    }
}

impl UserEvents {
    fn add(&mut self, event: Event) {
        match event {
            Event::Matched { endpoint, .. } => {
                assert!(self.matched.insert(endpoint), "{endpoint:x} is matched twice");
                self.refusals.remove(&endpoint);
            }
            Event::Unmatched { endpoint, .. } => {
                assert!(self.matched.remove(&endpoint), "{endpoint:x} was not matched");
            }
            Event::Incompatible { endpoint, reason, .. }
            | Event::Refused { endpoint, reason, .. } => {
                self.refusals.insert(endpoint, reason);
            }
            Event::Corrupt { endpoint } => {
                self.refusals.insert(endpoint, "corrupt".to_owned());
            }
            Event::QosReduced { .. } => {}
            other => panic!("{other:?}"),
        }
    }
}

/// Counters that differ from those of any other endpoint.
pub(in crate::control_plane::protocol) fn counters_of(kind: Kind, id: EndpointId) -> Counters {
    match kind {
        Kind::Publisher => Counters::Publisher {
            published: id,
            published_bytes: 2,
            last_published_ns: 3,
            refused_loans: 4,
            memory_bytes: 5,
        },
        Kind::Subscriber => Counters::Subscriber {
            taken: id,
            lost: 10,
            lost_overwritten: 1,
            lost_passed_over: 2,
            lost_network: 3,
            lost_memory: 4,
            held: 5,
            last_taken_ns: 6,
            lateness: Lateness::default(),
            memory_bytes: 7,
        },
    }
}

pub(super) fn refusal(reason: &str) -> Refusal {
    Refusal { reason: reason.to_owned(), is_corrupt: false, may_pass: true }
}
