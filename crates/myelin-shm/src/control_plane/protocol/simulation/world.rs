//! Nodes, the links between them, and a scheduler that is a random number generator.
//!
//! A link is a pair of queues, each first in, first out, and bounded like the kernel's; messages
//! for which there is no room wait at the sender. Events on different links, and those of the user,
//! the clock and the kernel, come in any order. When a node crashes, its sent messages can still be
//! read, and its socket stays.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use super::creations::Creations;
use super::memory::{Faults, Memory, Observer, Publisher, Subscriber, Token, UserEvents};
use super::{Mutant, Random};
use crate::control_plane::directory::NODE_SHIFT;
use crate::control_plane::link::Credentials;
use crate::control_plane::message::{ControlMessage, SegmentSize};
use crate::control_plane::protocol::{Action, Input, Pair, Protocol, hostile};
use crate::limits::LINK_QUEUE_MAX;
use crate::record::{EndpointRecord, Kind, Matching, NodeRecord};
use crate::topic::{Reliability, Topic};

pub(super) struct World {
    pub(super) random: Random,
    pub(super) mutant: Option<Mutant>,
    pub(super) now_ns: u64,
    pub(super) steps: u64,
    pub(super) messages: u64,
    /// By id. Ids are random, as in the shipping code.
    pub(super) nodes: BTreeMap<u64, Node>,
    /// Names in the file system: of live nodes, and of some dead ones.
    sockets: BTreeSet<u64>,
    /// By number; the key of an end is twice that, and 1 more for the side that was connected to.
    pub(super) links: BTreeMap<u64, [End; 2]>,
    links_made: u64,
    processes: u32,
    /// How often, in 1,000 cases, an operation that can fail does fail.
    pub(super) failing: u64,
    pub(super) topics: u64,
    /// All tokens are clones of it.
    pub(super) token: Token,
    /// Matches that ended for good because a sample was corrupt.
    pub(super) corrupt: BTreeSet<Pair>,
    pub(super) creations: Creations,
}

pub(super) struct Node {
    pub(super) protocol: Protocol<Token>,
    pub(super) memory: Memory,
    who: Credentials,
    /// Nodes found in the folder and not connected to yet; `None` before it has read the folder.
    to_find: Option<Vec<u64>>,
    /// Links to be accepted.
    backlog: VecDeque<u64>,
    pub(super) keys: BTreeSet<u64>,
    /// Ends with something to read.
    readable: BTreeSet<u64>,
    /// Ends with room for waiting messages.
    writable: BTreeSet<u64>,
    stopped_until_ns: u64,
    /// Until then it reads no messages, so they lag behind its timers.
    deaf_until_ns: u64,
}

#[derive(Default)]
pub(super) struct End {
    /// The messages that the kernel holds for it.
    pub(super) inbox: VecDeque<(ControlMessage, Vec<Token>)>,
    /// The messages that it could not send yet.
    pub(super) outbox: VecDeque<(ControlMessage, Vec<Token>)>,
    /// The node that owns it; `None` before it is accepted, and after it is closed.
    node: Option<u64>,
    pub(super) is_closed: bool,
    is_draining: bool,
}

impl World {
    pub(super) fn new(seed: u64, mutant: Option<Mutant>) -> World {
        World {
            random: Random(seed),
            mutant,
            now_ns: 0,
            steps: 0,
            messages: 0,
            nodes: BTreeMap::new(),
            sockets: BTreeSet::new(),
            links: BTreeMap::new(),
            links_made: 0,
            processes: 0,
            failing: 0,
            topics: 1,
            token: Rc::new(()),
            corrupt: BTreeSet::new(),
            creations: Creations::default(),
        }
    }

    /// A process starts: it binds its socket, and then reads the folder.
    pub(super) fn start_node(&mut self) -> u64 {
        let id = (1 + self.random.below((1 << 40) - 1)) << NODE_SHIFT;
        self.processes += 1;
        let who = Credentials { pid: self.processes, uid: 1 };
        self.sockets.insert(id);
        let node = Node {
            protocol: Protocol::new(id, NodeRecord::default(), who),
            memory: Memory::default(),
            who,
            to_find: None,
            backlog: VecDeque::new(),
            keys: BTreeSet::new(),
            readable: BTreeSet::new(),
            writable: BTreeSet::new(),
            stopped_until_ns: 0,
            deaf_until_ns: 0,
        };
        self.nodes.insert(id, node);
        id
    }

    /// Kill -9: its sent messages can still be read.
    pub(super) fn crash(&mut self, id: u64) {
        let node = self.nodes.remove(&id).expect("it lives");
        for key in node.keys.into_iter().chain(node.backlog) {
            self.close_end(key);
        }
    }

    /// Drops all its endpoints and leaves in good order.
    pub(super) fn leave(&mut self, id: u64) {
        let memory = &self.nodes[&id].memory;
        let ids = memory.publishers.keys().chain(memory.subscribers.keys()).copied();
        for endpoint in ids.collect::<Vec<_>>() {
            self.drop_endpoint(id, endpoint);
        }
        while self.drop_observer(id) {}
        self.sockets.remove(&id);
        self.drive(id, Input::Leave);
        self.crash(id);
    }

    pub(super) fn stop(&mut self, id: u64, for_ns: u64) {
        let until_ns = self.now_ns + for_ns;
        self.nodes.get_mut(&id).expect("it lives").stopped_until_ns = until_ns;
    }

    /// Its timers go on, and others receive its messages, but messages from others wait.
    pub(super) fn deafen(&mut self, id: u64, for_ns: u64) {
        let until_ns = self.now_ns + for_ns;
        self.nodes.get_mut(&id).expect("it lives").deaf_until_ns = until_ns;
    }

    pub(super) fn resume_all(&mut self) {
        for node in self.nodes.values_mut() {
            (node.stopped_until_ns, node.deaf_until_ns) = (0, 0);
        }
    }

    pub(super) fn make_endpoint(&mut self, id: u64, is_publisher: bool) {
        let type_hash = if self.random.below(50) == 0 { 2 } else { 1 };
        let name = format!("topic {}", self.random.below(self.topics));
        let topic = Topic { name, type_name: "T".to_owned(), type_hash };
        let publishers_max = 1 + self.random.below(8) as usize;
        let mut record = record_of(is_publisher, topic);
        if self.random.below(4) == 0 {
            record.matching = Matching::RequestedOffered;
        }
        record.qos.transient_local = self.random.below(2) as u32;
        record.qos.resends = self.random.below(2) == 0;
        record.created_ns = self.now_ns;
        let value = vec![7; self.random.below(100) as usize];
        record.attributes.insert("a", &value).expect("it is short");
        self.make_endpoint_of(id, record, publishers_max);
    }

    pub(super) fn make_endpoint_of(
        &mut self,
        id: u64,
        record: EndpointRecord,
        publishers_max: usize,
    ) {
        let (token, node) = (self.token.clone(), self.nodes.get_mut(&id).expect("it lives"));
        let Ok(endpoint) = node.protocol.new_endpoint(&record.topic) else { return };
        self.begin_creation(id, endpoint);
        let node = self.nodes.get_mut(&id).expect("it lives");
        let events = UserEvents::default();
        let announced = record.clone();
        let input = if record.kind == Kind::Publisher {
            let (segments, attached) = (BTreeSet::new(), BTreeMap::new());
            let made = Publisher { record, segments, attached, events };
            node.memory.publishers.insert(endpoint, made);
            Input::PublisherMade { id: endpoint, record: announced, publication: token }
        } else {
            let connections = BTreeMap::new();
            let made = Subscriber { record, publishers_max, connections, events };
            node.memory.subscribers.insert(endpoint, made);
            let (record, ignore_own_node, subscription) = (announced, false, token);
            Input::SubscriberMade { id: endpoint, record, ignore_own_node, subscription }
        };
        self.drive(id, input);
    }

    fn drop_endpoint(&mut self, id: u64, endpoint: u64) {
        self.forget_creation(endpoint);
        self.drive(id, Input::Dropped { id: endpoint });
        let memory = &mut self.nodes.get_mut(&id).expect("it lives").memory;
        memory.subscribers.remove(&endpoint);
        let publisher = memory.publishers.remove(&endpoint);
        let attached = publisher.map_or(0, |publisher| publisher.attached.len());
        assert_eq!(attached, 0, "a publisher that is dropped is detached from all");
        self.corrupt.retain(|pair| pair.publisher != endpoint && pair.subscriber != endpoint);
    }

    fn make_observer(&mut self, id: u64) {
        let name = format!("topic {}", self.random.below(self.topics));
        let topic = Topic { name, type_name: "T".to_owned(), type_hash: 1 };
        let node = self.nodes.get_mut(&id).expect("it lives");
        let observer = node.protocol.new_observer();
        let made = Observer { topic: topic.clone(), rings: BTreeMap::new() };
        node.memory.observers.insert(observer, made);
        self.drive(id, Input::ObserverMade { observer, topic });
    }

    /// False if there is none.
    fn drop_observer(&mut self, id: u64) -> bool {
        let memory = &mut self.nodes.get_mut(&id).expect("it lives").memory;
        let Some((observer, _)) = memory.observers.pop_first() else { return false };
        self.drive(id, Input::ObserverDropped { observer });
        true
    }

    /// A node's observers request the slot segments that they do not have.
    pub(super) fn request_segments(&mut self, id: u64) {
        let observers = self.nodes[&id].memory.observers.values();
        let rings = observers.flat_map(|observer| &observer.rings);
        let missing: Vec<_> =
            rings.map(|(publisher, ring)| (*publisher, ring.segments.len() as u32)).collect();
        for (publisher, from) in missing {
            self.drive(id, Input::Observe { publisher, from });
        }
    }

    /// An action of a node's user.
    pub(super) fn act_as_user(&mut self, id: u64) {
        let choice = self.random.below(18);
        let memory = &mut self.nodes.get_mut(&id).expect("it lives").memory;
        let (publishers, subscribers) = (memory.publishers.len(), memory.subscribers.len());
        match choice {
            0..3 if publishers < ENDPOINTS => self.make_endpoint(id, true),
            3..6 if subscribers < ENDPOINTS => self.make_endpoint(id, false),
            6 | 7 if publishers + subscribers > 0 => {
                let all = memory.publishers.keys().chain(memory.subscribers.keys());
                let all: Vec<_> = all.copied().collect();
                let endpoint = all[self.random.below(all.len() as u64) as usize];
                self.drop_endpoint(id, endpoint);
            }
            8 if publishers > 0 => {
                let at = self.random.below(publishers as u64) as usize;
                let (publisher, made) = memory.publishers.iter_mut().nth(at).expect("so many");
                let number = made.segments.len() as u32;
                made.segments.insert(number);
                let size = SegmentSize { number, slots: 1, slot_bytes: 64 };
                let (publisher, segment) = (*publisher, self.token.clone());
                self.drive(id, Input::Grown { publisher, size, segment });
            }
            9 | 10 => memory.read_to_the_end(),
            11 if self.random.below(20) == 0 => {
                let all = memory.subscribers.iter();
                let begun = all.flat_map(|(subscriber, made)| {
                    let begun = made.connections.iter().filter(|(_, it)| it.begun.is_some());
                    let begun = begun.filter(|(_, it)| !it.is_unread);
                    begun.map(move |(publisher, _)| (*publisher, *subscriber))
                });
                let Some((publisher, subscriber)) = begun.last() else { return };
                self.corrupt.insert(Pair { publisher, subscriber });
                self.drive(id, Input::Corrupt { publisher, subscriber });
            }
            12 => self.drive(id, Input::QueryGraph),
            17 => {
                let at = self.random.below(self.nodes.len() as u64) as usize;
                let node = *self.nodes.keys().nth(at).expect("so many");
                self.drive(id, Input::QuerySchema { node, type_hash: 1 });
            }
            14 if memory.observers.len() < ENDPOINTS => self.make_observer(id),
            15 => _ = self.drop_observer(id),
            16 => self.request_segments(id),
            13 => {
                let protocol = &mut self.nodes.get_mut(&id).expect("it lives").protocol;
                if protocol.queries.open > 0 {
                    protocol.end_query();
                }
            }
            _ => {}
        }
    }

    /// One event. False if only time can make something happen.
    pub(super) fn step(&mut self) -> bool {
        self.steps += 1;
        self.now_ns += self.random.below(20_000);
        let count = self.nodes.len() as u64;
        let at = self.random.below(count.max(1)) as usize;
        let (before, after): (Vec<_>, Vec<_>) = {
            let ids: Vec<u64> = self.nodes.keys().copied().collect();
            (ids[..at.min(ids.len())].to_vec(), ids[at.min(ids.len())..].to_vec())
        };
        after.into_iter().chain(before).any(|id| self.step_of(id))
    }

    /// When time alone makes something happen.
    pub(super) fn next_ns(&self) -> Option<u64> {
        let next = |node: &Node| match node.stopped_until_ns {
            until_ns if until_ns > self.now_ns => Some(until_ns),
            _ => {
                let is_deaf = node.deaf_until_ns > self.now_ns;
                let reads_ns = is_deaf.then_some(node.deaf_until_ns);
                node.protocol.due_ns().into_iter().chain(reads_ns).min()
            }
        };
        self.nodes.values().filter_map(next).min()
    }

    fn step_of(&mut self, id: u64) -> bool {
        let node = self.nodes.get_mut(&id).expect("it lives");
        if node.stopped_until_ns > self.now_ns {
            return false;
        }
        let is_due = node.protocol.due_ns().is_some_and(|due_ns| due_ns <= self.now_ns);
        let is_deaf = node.deaf_until_ns > self.now_ns;
        let first = self.random.below(5);
        (0..5).any(|turn| match (first + turn) % 5 {
            0 if is_due => {
                if self.mutant != Some(Mutant::HasNoClock) {
                    self.drive(id, Input::Tick);
                }
                self.mutant != Some(Mutant::HasNoClock)
            }
            1 => self.find(id),
            2 => self.accept(id),
            3 => !is_deaf && self.read(id),
            4 => self.write(id),
            _ => false,
        })
    }

    fn find(&mut self, id: u64) -> bool {
        let node = self.nodes.get_mut(&id).expect("it lives");
        let to_find = node.to_find.get_or_insert_with(|| self.sockets.iter().copied().collect());
        if to_find.is_empty() {
            return false;
        }
        let node = to_find.swap_remove(self.random.below(to_find.len() as u64) as usize);
        self.drive(id, Input::Found { node });
        true
    }

    pub(super) fn accept(&mut self, id: u64) -> bool {
        let node = self.nodes.get_mut(&id).expect("it lives");
        let Some(link) = node.backlog.pop_front() else { return false };
        node.keys.insert(link);
        node.readable.insert(link);
        let [mine, client] = self.ends(link);
        mine.node = Some(id);
        // The kernel knows a client even after its death; here nothing depends on it then.
        let client = client.node.and_then(|client| self.nodes.get(&client));
        let who = client.map_or(Credentials { pid: 0, uid: 1 }, |client| client.who);
        self.drive(id, Input::Linked { link, who, connected_to: None });
        true
    }

    /// Reads one message, or the end, from one of the links; messages waiting at the sender move
    /// on.
    pub(super) fn read(&mut self, id: u64) -> bool {
        let node = self.nodes.get_mut(&id).expect("it lives");
        if node.readable.is_empty() {
            return false;
        }
        let from = self.random.below(self.links_made + 1) * 2;
        let next = node.readable.range(from..).next().or(node.readable.first());
        let link = *next.expect("there is one");
        let [mine, other] = self.ends(link);
        let Some((message, mut descriptors)) = mine.inbox.pop_front() else {
            let has_ended = other.is_closed;
            self.nodes.get_mut(&id).expect("it lives").readable.remove(&link);
            if has_ended {
                self.drive(id, Input::Ended { link });
            }
            return true;
        };
        let waits = !other.outbox.is_empty();
        let writer = other.node.filter(|_| waits).and_then(|writer| self.nodes.get_mut(&writer));
        if let Some(writer) = writer {
            writer.writable.insert(link ^ 1);
        }
        self.messages += 1;
        if self.is_failing() {
            descriptors.clear(); // there was no room for them in this process's table
        }
        let input = match message {
            ControlMessage::Hello { node, record } => {
                Input::Hello { link, node, record, owner: Some(1) }
            }
            message => Input::Received { link, message, descriptors },
        };
        self.drive(id, input);
        true
    }

    /// Sends messages that waited for room.
    fn write(&mut self, id: u64) -> bool {
        let Some(link) = self.nodes.get_mut(&id).expect("it lives").writable.pop_first() else {
            return false;
        };
        self.place(link);
        let [mine, _] = self.ends(link);
        if mine.outbox.is_empty() && std::mem::take(&mut mine.is_draining) {
            self.drive(id, Input::Drained { link });
        }
        true
    }

    /// Whether it runs, and reads messages from others.
    pub(super) fn receives(&self, id: u64) -> bool {
        let node = &self.nodes[&id];
        node.stopped_until_ns.max(node.deaf_until_ns) <= self.now_ns
    }

    pub(super) fn drive(&mut self, id: u64, input: Input<Token>) {
        let node = self.nodes.get_mut(&id).expect("it lives");
        let mut actions = VecDeque::from(node.protocol.handle(self.now_ns, input));
        while let Some(action) = actions.pop_front() {
            if self.mutant.is_some_and(|mutant| mutant.forgets(&action, &mut self.random)) {
                continue;
            }
            let action = match self.mutant {
                Some(mutant) => mutant.alters(action, &mut self.random),
                None => action,
            };
            if let Some(outcome) = self.perform(id, action) {
                let node = self.nodes.get_mut(&id).expect("it lives");
                actions.extend(node.protocol.handle(self.now_ns, outcome));
            }
        }
        self.return_from_creations(id);
    }

    fn perform(&mut self, id: u64, action: Action<Token>) -> Option<Input<Token>> {
        match action {
            Action::Connect { node } => Some(self.connect(id, node)),
            Action::Send { link, message, descriptors } => {
                let [mine, other] = self.ends(link);
                if !other.is_closed {
                    mine.outbox.push_back((message, descriptors));
                    assert!(
                        mine.outbox.len() < LINK_QUEUE_MAX,
                        "node {id:x} overruns one that lives"
                    );
                }
                self.place(link);
                None
            }
            Action::Drain { link } => {
                let [mine, _] = self.ends(link);
                mine.is_draining = !mine.outbox.is_empty();
                (!mine.is_draining).then_some(Input::Drained { link })
            }
            Action::Close { link } => {
                let node = self.nodes.get_mut(&id).expect("it lives");
                assert!(node.keys.remove(&link), "a link is closed twice");
                node.readable.remove(&link);
                node.writable.remove(&link);
                self.close_end(link);
                None
            }
            action => {
                let node = self.nodes.get_mut(&id).expect("it lives");
                let (failing, random) = (self.failing, &mut self.random);
                let is_failing = &mut || random.below(1_000) < failing;
                let faults = &mut Faults { is_failing, token: &self.token };
                node.memory.perform(action, faults)
            }
        }
    }

    /// Moves waiting messages to the kernel, as many as it takes.
    fn place(&mut self, link: u64) {
        let [mine, other] = self.ends(link);
        while other.inbox.len() < KERNEL_MESSAGES
            && let Some(next) = mine.outbox.pop_front()
        {
            other.inbox.push_back(next);
        }
        let reader = other.node.filter(|_| !other.inbox.is_empty());
        if let Some(reader) = reader.and_then(|reader| self.nodes.get_mut(&reader)) {
            reader.readable.insert(link ^ 1);
        }
    }

    fn connect(&mut self, id: u64, node: u64) -> Input<Token> {
        let is_full = self.is_failing();
        let Some(server) = self.nodes.get_mut(&node) else {
            self.sockets.remove(&node);
            return Input::Gone { node };
        };
        if !self.sockets.contains(&node) {
            return Input::Gone { node };
        }
        if is_full || server.backlog.len() >= BACKLOG {
            return Input::Busy { node };
        }
        self.links_made += 1;
        let link = 2 * self.links_made;
        server.backlog.push_back(link + 1);
        let who = server.who;
        let client = self.nodes.get_mut(&id).expect("it lives");
        client.keys.insert(link);
        let end = End { node: Some(id), ..End::default() };
        self.links.insert(self.links_made, [end, End::default()]);
        Input::Linked { link, who, connected_to: Some(node) }
    }

    fn is_failing(&mut self) -> bool {
        self.random.below(1_000) < self.failing
    }

    /// An end, and the other one.
    fn ends(&mut self, key: u64) -> [&mut End; 2] {
        let [client, server] = self.links.get_mut(&(key / 2)).expect("it is open");
        if key.is_multiple_of(2) { [client, server] } else { [server, client] }
    }

    fn close_end(&mut self, key: u64) {
        let [mine, other] = self.ends(key);
        *mine = End { is_closed: true, ..End::default() };
        other.outbox.clear();
        let is_over = other.is_closed;
        let reader = other.node;
        if is_over {
            self.links.remove(&(key / 2));
        } else if let Some(reader) = reader.and_then(|reader| self.nodes.get_mut(&reader)) {
            reader.readable.insert(key ^ 1);
        }
    }
}

/// How many messages the kernel takes for a node that does not read; in reality it is more.
const KERNEL_MESSAGES: usize = 6;
/// How many links can wait to be accepted; in reality it is more.
const BACKLOG: usize = 8;
/// Publishers of a node, and subscribers.
const ENDPOINTS: usize = 4;

/// The record of an endpoint that is reliable.
pub(super) fn record_of(is_publisher: bool, topic: Topic) -> EndpointRecord {
    let kind = if is_publisher { Kind::Publisher } else { Kind::Subscriber };
    let mut record = hostile::record_of(kind, topic);
    record.qos.reliability = Reliability::Reliable;
    record
}
