//! The lane: the samples of topics with large ones go by TCP between Myelin nodes. DDS begins, serves
//! all readers that have no lane, and brings what the lane has lost
//! (`docs/decisions/0023-bulk-lane.md`).
//!
//! Each node listens, and announces where. A node whose reader takes large samples of a publisher
//! elsewhere dials that node and subscribes; all its readers share the connection, and each sample
//! comes once. One thread of the node accepts, dials, receives, and sends what did not fit into the
//! kernel's buffers.
//!
//! Locks: the state here is never held while a reader's or writer's lock is taken.

mod address;
mod buffer;
mod frame;
mod inbox;
mod link;
mod pacer;
mod socket;
mod tls;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use myelin_dds::{Binding, Guid};
use myelin_shm::node as shm;
use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType};

pub(super) use address::LaneAddress;
pub(super) use buffer::{Arrived, Pool};
pub(super) use frame::{Frame, Head, Notice, PREFIX_BYTES};
pub(super) use inbox::{LaneInbox, Next};
pub(super) use link::{Delivery, InFlight, Link};
pub(super) use tls::{Identity, authority, valid_until_s};

use self::buffer::Buffer;
use self::frame::Token;
use self::link::{Ended, Incoming, Memory, Received, Stream};
use self::socket::Socket;
use self::tls::TlsStream;
use super::flow_channel::prefix;
use super::lock;
use super::reader::LaneTarget;
use super::task_queue::{Task, TaskQueue};
use crate::Error;

/// A topic with smaller samples alone stays on DDS: the lane is cheaper from 4 KiB on, but there they
/// would stand behind images.
pub(super) const LANE_BYTES_MIN: usize = 32 << 10;

/// A node's part in the lane, while its network is open. Dropping it closes all connections.
pub(super) struct Lane {
    shared: Arc<Shared>,
    thread: Option<shm::Thread>,
    address: LaneAddress,
    process: u32,
}

/// The part that the thread uses, too.
struct Shared {
    node: u64,
    token: Token,
    epoll: OwnedFd,
    listener: OwnedFd,
    /// Wakes the thread after a change of the state.
    event: OwnedFd,
    queue: Arc<TaskQueue>,
    state: Mutex<State>,
    connections: Connections,
}

/// What all connections of a lane have in common.
pub(super) struct Connections {
    /// How long a peer may not answer.
    pub(super) patience: Duration,
    /// The mark of their packets for switches and access points, 0 to 63.
    pub(super) dscp: u8,
    /// With an enclave: all are by TLS.
    pub(super) identity: Option<Identity>,
}

#[derive(Default)]
struct State {
    /// Where the nodes listen.
    addresses: BTreeMap<u64, LaneAddress>,
    /// By writer and reader.
    subscriptions: BTreeMap<(Guid, Guid), Subscription>,
    /// Subscriptions that have ended, with their connections.
    unsubscribed: Vec<(u64, Guid, Guid)>,
    stops: bool,
}

/// A reader's wish to have a writer's samples by the lane.
struct Subscription {
    /// The node of the writer.
    node: u64,
    target: LaneTarget,
    /// The connection by which it has been asked for.
    link: Option<u64>,
    /// When to ask again, after the writer has ended it.
    not_before: Option<Instant>,
}

/// A sample that has come by the lane.
#[derive(Debug)]
pub(super) struct LaneSample {
    /// The bytes before the payload in a message of DDS.
    pub(super) head: Head,
    pub(super) payload: Arrived,
}

/// Holds a subscription.
pub(super) struct LaneSubscription {
    shared: Arc<Shared>,
    writer: Guid,
    reader: Guid,
}

impl Lane {
    /// Listens on the interface of the session, or on all if the user's configuration chooses it.
    pub(super) fn open(
        node: &shm::Node,
        binding: Option<Binding>,
        queue: &Arc<TaskQueue>,
        connections: Connections,
    ) -> Result<Lane, Error> {
        let id = node.info()?.node;
        let opened = || -> rustix::io::Result<(Shared, LaneAddress)> {
            let (listener, address) = address::listen(id, binding)?;
            let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
            let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
            epoll::add(&epoll, &event, data(EVENT), epoll::EventFlags::IN)?;
            epoll::add(&epoll, &listener, data(LISTENER), epoll::EventFlags::IN)?;
            let (token, queue, state) = (address.token, queue.clone(), Mutex::default());
            let shared =
                Shared { node: id, token, epoll, listener, event, queue, state, connections };
            Ok((shared, address))
        };
        let (shared, address) =
            opened().map_err(|error| Error::system("opening the lane to other hosts", error))?;
        let shared = Arc::new(shared);
        let in_thread = shared.clone();
        let thread = node.spawn("lane", move || Reactor::new(in_thread).run())?;
        Ok(Lane { shared, thread: Some(thread), address, process: std::process::id() })
    }

    /// What others need to know.
    pub(super) fn address(&self) -> &LaneAddress {
        &self.address
    }

    /// Where the nodes of other hosts listen, all of them.
    pub(super) fn set_addresses(&self, addresses: BTreeMap<u64, LaneAddress>) {
        let mut state = lock(&self.shared.state);
        if state.addresses != addresses {
            state.addresses = addresses;
            drop(state);
            self.shared.wake();
        }
    }

    /// Asks for a writer's samples until the returned object is dropped.
    pub(super) fn subscribe(
        &self,
        node: u64,
        writer: Guid,
        reader: Guid,
        target: LaneTarget,
    ) -> LaneSubscription {
        let wish = Subscription { node, target, link: None, not_before: None };
        lock(&self.shared.state).subscriptions.insert((writer, reader), wish);
        self.shared.wake();
        LaneSubscription { shared: self.shared.clone(), writer, reader }
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        let thread = self.thread.take();
        if self.process != std::process::id() {
            std::mem::forget(thread); // there is no such thread here
            return;
        }
        lock(&self.shared.state).stops = true;
        self.shared.wake();
        if let Some(thread) = thread {
            thread.join();
        }
    }
}

impl Drop for LaneSubscription {
    fn drop(&mut self) {
        let LaneSubscription { shared, writer, reader } = self;
        let mut state = lock(&shared.state);
        let gone = state.subscriptions.remove(&(*writer, *reader));
        if let Some(link) = gone.and_then(|gone| gone.link) {
            state.unsubscribed.push((link, *writer, *reader));
        }
        drop(state);
        shared.wake();
    }
}

impl Shared {
    fn wake(&self) {
        let _ = rustix::io::write(&self.event, &1_u64.to_ne_bytes()); // full, it wakes as well
    }
}

/// The thread of a lane.
struct Reactor {
    shared: Arc<Shared>,
    peers: BTreeMap<u64, Peer>,
    next: u64,
    /// When to dial a node again, the delay before it, and which of its addresses.
    dials: BTreeMap<u64, Dial>,
    /// Connections that may have more to read.
    readable: BTreeSet<u64>,
    /// The memory of arriving samples.
    pool: Arc<Pool>,
    /// When to check the certificates of the peers again.
    check_at: Instant,
    /// The refusals that have been reported: a peer comes again and again.
    reported: BTreeSet<String>,
}

struct Peer {
    link: Arc<Link>,
    incoming: Incoming,
    role: Role,
    address: Option<SocketAddr>,
    /// With TLS: an endpoint of the DDS participant whose certificate it has shown.
    participant: Option<Guid>,
    /// How many subscriptions it has asked for.
    asked: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// It has connected to us, and has until then to say who it is.
    Unknown(Instant),
    /// It takes samples of our publishers.
    Taker(u64),
    /// We connect to it, until then.
    Dialled(u64, Instant),
    /// We take its samples.
    Source(u64),
}

#[derive(Default)]
struct Dial {
    not_before: Option<Instant>,
    delay: Duration,
    attempts: usize,
}

impl Reactor {
    fn new(shared: Arc<Shared>) -> Reactor {
        Reactor {
            shared,
            peers: BTreeMap::new(),
            next: FIRST_LINK,
            dials: BTreeMap::new(),
            readable: BTreeSet::new(),
            pool: Arc::default(),
            check_at: Instant::now(),
            reported: BTreeSet::new(),
        }
    }

    fn run(mut self) {
        let mut events = Vec::with_capacity(EVENTS_MAX);
        while self.reconcile() {
            let limit = match self.readable.is_empty() {
                true => self.due().map(|at| at.saturating_duration_since(Instant::now())),
                false => Some(Duration::ZERO),
            };
            let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
            let room = rustix::buffer::spare_capacity(&mut events);
            match epoll::wait(&self.shared.epoll, room, limit.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => break, // the descriptor is ours: this does not happen
            }
            for epoll::Event { flags, data } in events.drain(..) {
                self.handle(data.u64(), flags);
            }
            let readable: Vec<u64> = self.readable.iter().copied().collect();
            readable.into_iter().for_each(|number| self.read(number));
            self.close_overdue();
        }
        let all: Vec<u64> = self.peers.keys().copied().collect();
        all.into_iter().for_each(|number| self.close(number));
    }

    fn handle(&mut self, number: u64, flags: epoll::EventFlags) {
        match number {
            EVENT => drop(rustix::io::read(&self.shared.event, &mut [0; 8])),
            LISTENER => self.accept(),
            _ => {
                let Some(peer) = self.peers.get_mut(&number) else { return };
                if let Role::Dialled(node, _) = peer.role {
                    return self.dialled(number, node);
                }
                if flags.contains(epoll::EventFlags::OUT) {
                    peer.link.flush();
                }
                self.readable.insert(number);
            }
        }
    }

    fn accept(&mut self) {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        while let Ok((socket, address)) = net::acceptfrom_with(&self.shared.listener, flags) {
            let unknown = self.peers.values().filter(|it| matches!(it.role, Role::Unknown(_)));
            if self.peers.len() >= PEERS_MAX || unknown.count() >= UNKNOWN_MAX {
                continue; // closed
            }
            let tls = self.shared.connections.identity.as_ref().map(Identity::accept).transpose();
            let Ok(tls) = tls else { continue };
            let address = address.and_then(|address| address.try_into().ok());
            let until = Instant::now() + HELLO_LIMIT;
            if let Some(number) = self.add(socket, tls, Role::Unknown(until), address) {
                self.readable.insert(number);
            }
        }
    }

    fn add(
        &mut self,
        socket: OwnedFd,
        tls: Option<rustls::Connection>,
        role: Role,
        address: Option<SocketAddr>,
    ) -> Option<u64> {
        let number = self.next;
        self.next += 1;
        let stream = Stream::new(Socket::new(socket, &self.shared.connections).ok()?, tls);
        let flags = epoll::EventFlags::IN
            | epoll::EventFlags::OUT
            | epoll::EventFlags::RDHUP
            | epoll::EventFlags::ET;
        epoll::add(&self.shared.epoll, &stream, data(number), flags).ok()?;
        let (link, incoming) = (Link::new(stream), Incoming::new());
        let peer = Peer { link, incoming, role, address, participant: None, asked: 0 };
        self.peers.insert(number, peer);
        Some(number)
    }

    /// Reads what has come, up to a limit: other connections have their turn.
    fn read(&mut self, number: u64) {
        for _ in 0..READS_MAX {
            let Reactor { shared, peers, pool, .. } = self;
            let Some(peer) = peers.get_mut(&number) else { return };
            let role = peer.role;
            let wanted = |frame: &Frame, bytes: usize| match (role, frame) {
                (Role::Source(_), Frame::Sample { writer, .. }) => {
                    let targets = targets(&lock(&shared.state), writer, number);
                    Ok(memory(targets, bytes, pool))
                }
                _ => Err(Ended::Gone),
            };
            match peer.incoming.read(peer.link.stream(), wanted) {
                Ok(Received::Part) => {}
                Ok(Received::Frame(frame, body)) => {
                    if !self.receive(number, frame, body) {
                        return self.close(number);
                    }
                }
                Err(Ended::Empty) => {
                    peer.incoming.rest(peer.link.stream());
                    self.readable.remove(&number);
                    return;
                }
                Err(Ended::Gone) => return self.close(number),
            }
        }
    }

    /// Handles a frame. False if the peer must not send it.
    fn receive(&mut self, number: u64, frame: Frame, body: Memory) -> bool {
        let Reactor { shared, peers, .. } = self;
        let Some(peer) = peers.get_mut(&number) else { return true };
        match (peer.role, frame) {
            (Role::Unknown(_), Frame::Hello { token, node }) if is_equal(&token, &shared.token) => {
                if let Some(tls) = peer.link.stream().tls() {
                    // Not known yet, it comes again.
                    let announcer = lock(&shared.state).addresses.get(&node).map(|it| it.announcer);
                    peer.participant = announcer.filter(|it| tls.is_of(it));
                    if peer.participant.is_none() {
                        return false;
                    }
                }
                peer.role = Role::Taker(node);
                // It has lost its earlier connection, whatever the kernel here thinks of it.
                let is_older = |(at, it): (&u64, &Peer)| {
                    (it.role == Role::Taker(node) && *at != number).then_some(*at)
                };
                let older: Vec<u64> = peers.iter().filter_map(is_older).collect();
                older.into_iter().for_each(|older| self.close(older));
            }
            (Role::Taker(_), Frame::Subscribe { writer, reader }) => {
                if !peer.has(&reader) {
                    return false;
                }
                peer.asked += 1;
                let link = peer.link.clone();
                shared.queue.push(Task::LaneSubscribed { link, writer, reader });
                return peer.asked <= SUBSCRIPTIONS_MAX;
            }
            (Role::Taker(_), Frame::Unsubscribe { writer, reader }) => {
                let link = peer.link.clone();
                shared.queue.push(Task::LaneUnsubscribed { link, writer, reader });
            }
            (Role::Taker(_), Frame::Acknowledged { writer, number }) => {
                peer.link.acknowledge(&writer, number);
            }
            (Role::Source(node), Frame::Started { writer, reader, run }) => {
                self.dials.remove(&node); // it works: the next fault is another one
                let state = lock(&shared.state);
                let wish = state.subscriptions.get(&(writer, reader));
                let target = wish.filter(|it| it.link == Some(number)).map(|it| it.target.clone());
                drop(state);
                if let Some(target) = target {
                    target.pause(run);
                }
            }
            (Role::Source(_), Frame::Run { writer, run, fence, number: first }) => {
                let targets = targets(&lock(&shared.state), &writer, number);
                targets.iter().for_each(|target| target.run(run, fence, first));
            }
            (Role::Source(_), Frame::Paused { writer, run }) => {
                let targets = targets(&lock(&shared.state), &writer, number);
                targets.iter().for_each(|target| target.pause(run));
            }
            (Role::Source(_), Frame::Ended { writer }) => {
                let mut state = lock(&shared.state);
                let targets = targets(&state, &writer, number);
                for (_, wish) in of_writer(&mut state, &writer) {
                    if wish.link == Some(number) {
                        wish.link = None;
                        wish.not_before = Some(Instant::now() + ASK_AGAIN);
                    }
                }
                drop(state);
                targets.iter().for_each(LaneTarget::end);
            }
            (
                Role::Source(_),
                Frame::Sample { writer, number: sample, head, wants_acknowledgement, .. },
            ) => {
                match body {
                    Memory::Slot(slot, target) => {
                        let payload = Arrived::Slot(slot);
                        target.receive(sample, LaneSample { head, payload });
                    }
                    Memory::Buffer(buffer) => {
                        let buffer = Arc::new(buffer);
                        let targets = targets(&lock(&shared.state), &writer, number);
                        for target in targets {
                            let payload = Arrived::Buffer(buffer.clone());
                            target.receive(sample, LaneSample { head, payload });
                        }
                    }
                    Memory::None => {}
                }
                if wants_acknowledgement {
                    peer.link.control(&Frame::Acknowledged { writer, number: sample });
                }
            }
            _ => return false,
        }
        true
    }

    /// Ends a connection, at this side.
    fn close(&mut self, number: u64) {
        self.readable.remove(&number);
        let Some(Peer { link, role, address, .. }) = self.peers.remove(&number) else { return };
        let _ = epoll::delete(&self.shared.epoll, link.stream());
        link.close();
        if let Some(reason) = link.stream().tls().and_then(TlsStream::failure) {
            self.report(address, &reason);
        }
        match role {
            Role::Unknown(_) => {}
            Role::Taker(_) => self.shared.queue.push(Task::LaneClosed(link)),
            Role::Dialled(node, _) | Role::Source(node) => {
                let dial = self.dials.entry(node).or_default();
                dial.delay = (2 * dial.delay).clamp(DIAL_AGAIN_MIN, DIAL_AGAIN_MAX);
                dial.not_before = Some(Instant::now() + dial.delay);
                dial.attempts += 1;
                let mut lost = Vec::new();
                for wish in lock(&self.shared.state).subscriptions.values_mut() {
                    if wish.link == Some(number) {
                        wish.link = None;
                        lost.push(wish.target.clone());
                    }
                }
                lost.iter().for_each(LaneTarget::disconnect);
            }
        }
    }

    /// Warns, once, that a connection was refused.
    fn report(&mut self, address: Option<SocketAddr>, reason: &str) {
        let host = address.map_or("a host".to_owned(), |address| address.ip().to_string());
        let reason = format!(
            "the lane for large samples with {host} was refused: {reason}; they go by RTPS to those \
             that DDS Security accepts. Check the enclave there and here: `myelin keystore list`"
        );
        if self.reported.len() < REPORTED_MAX && self.reported.insert(reason.clone()) {
            myelin_shm::warn("", "the network", &reason);
        }
    }

    /// Does what the state asks for: dials, subscribes, unsubscribes. False: stop.
    fn reconcile(&mut self) -> bool {
        let now = Instant::now();
        let (mut asks, mut nodes) = (Vec::new(), BTreeSet::new());
        let mut state = lock(&self.shared.state);
        if state.stops {
            return false;
        }
        let unsubscribed = std::mem::take(&mut state.unsubscribed);
        let sources: BTreeMap<u64, u64> = self.sources().collect();
        for ((writer, reader), wish) in &mut state.subscriptions {
            nodes.insert(wish.node);
            if wish.link.is_some() || wish.not_before.is_some_and(|at| at > now) {
                continue;
            }
            if let Some(number) = sources.get(&wish.node)
                && self.peers[number].has(writer)
            {
                (wish.link, wish.not_before) = (Some(*number), None);
                asks.push((*number, *writer, *reader, wish.target.clone()));
            }
        }
        let is_dialled = |node: &u64| {
            let is_it = |it: &Peer| matches!(it.role, Role::Dialled(to, _) if to == *node);
            sources.contains_key(node) || self.peers.values().any(is_it)
        };
        let is_due = |node: &u64| {
            self.dials.get(node).and_then(|dial| dial.not_before).is_none_or(|at| at <= now)
        };
        let dials: Vec<(u64, LaneAddress)> = nodes
            .iter()
            .filter(|node| !is_dialled(node) && is_due(node))
            .filter_map(|node| Some((*node, state.addresses.get(node)?.clone())))
            .collect();
        drop(state);
        for (number, writer, reader) in unsubscribed {
            if let Some(peer) = self.peers.get(&number) {
                peer.link.control(&Frame::Unsubscribe { writer, reader });
            }
        }
        for (number, writer, reader, target) in asks {
            target.ask(); // before the publisher can begin
            self.peers[&number].link.control(&Frame::Subscribe { writer, reader });
        }
        dials.into_iter().for_each(|(node, address)| self.dial(node, &address));
        let unused = sources.into_iter().filter(|(node, _)| !nodes.contains(node));
        unused.for_each(|(_, number)| self.close(number));
        self.dials.retain(|node, _| nodes.contains(node));
        true
    }

    /// The connections to nodes whose samples we take.
    fn sources(&self) -> impl Iterator<Item = (u64, u64)> {
        self.peers.iter().filter_map(|(number, peer)| match peer.role {
            Role::Source(node) => Some((node, *number)),
            _ => None,
        })
    }

    fn dial(&mut self, node: u64, address: &LaneAddress) {
        let dial = self.dials.entry(node).or_default();
        // Also counts an attempt that fails at once.
        dial.not_before = Some(Instant::now() + DIAL_AGAIN_MAX);
        let Some(to) = address.of_attempt(dial.attempts) else { return };
        let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let Ok(socket) = net::socket_with(family, SocketType::STREAM, flags, None) else { return };
        let identity = self.shared.connections.identity.as_ref();
        let tls = identity.map(|identity| identity.dial(&address.announcer)).transpose();
        let Ok(tls) = tls else { return };
        match net::connect(&socket, &to) {
            Ok(()) | Err(Errno::INPROGRESS) => {
                let participant = tls.is_some().then_some(address.announcer);
                let role = Role::Dialled(node, Instant::now() + DIAL_LIMIT);
                let number = self.add(socket, tls, role, Some(to));
                if let Some(peer) = number.and_then(|number| self.peers.get_mut(&number)) {
                    peer.participant = participant; // nothing is sent to, or taken from another
                }
            }
            Err(_) => dial.attempts += 1,
        }
    }

    /// A connection has been made, or not.
    fn dialled(&mut self, number: u64, node: u64) {
        let token = lock(&self.shared.state).addresses.get(&node).map(|address| address.token);
        let Some(peer) = self.peers.get_mut(&number) else { return };
        match (net::sockopt::socket_error(peer.link.stream()), token) {
            (Ok(Ok(())), Some(token)) => {
                peer.role = Role::Source(node);
                peer.link.control(&Frame::Hello { token, node: self.shared.node });
                self.readable.insert(number);
            }
            _ => self.close(number),
        }
    }

    fn close_overdue(&mut self) {
        let now = Instant::now();
        let is_overdue = |(number, peer): (&u64, &Peer)| match peer.role {
            Role::Unknown(until) | Role::Dialled(_, until) if until <= now => Some(*number),
            _ => None,
        };
        let overdue: Vec<u64> = self.peers.iter().filter_map(is_overdue).collect();
        overdue.into_iter().for_each(|number| self.close(number));
        if let Some(identity) = &self.shared.connections.identity
            && self.check_at <= now
        {
            self.check_at = now + CHECK_CERTIFICATES;
            let is_refused = |(number, peer): (&u64, &Peer)| {
                let tls = peer.link.stream().tls()?;
                tls.check(identity);
                tls.failure().map(|_| *number)
            };
            let refused: Vec<u64> = self.peers.iter().filter_map(is_refused).collect();
            refused.into_iter().for_each(|number| self.close(number));
        }
    }

    /// When there is something to do without an event.
    fn due(&self) -> Option<Instant> {
        let peers = self.peers.values().filter_map(|peer| match peer.role {
            Role::Unknown(until) | Role::Dialled(_, until) => Some(until),
            _ => None,
        });
        let dials = self.dials.values().filter_map(|dial| dial.not_before);
        let has_tls = self.shared.connections.identity.is_some() && !self.peers.is_empty();
        let dials = dials.chain(has_tls.then_some(self.check_at));
        let state = lock(&self.shared.state);
        let asks = state.subscriptions.values().filter(|wish| wish.link.is_none());
        let asks = asks.filter_map(|wish| wish.not_before);
        // What was due before has been done, or waits for something else.
        let now = Instant::now();
        peers.chain(dials.chain(asks).filter(|at| *at > now)).min()
    }
}

impl Peer {
    /// Whether an endpoint is one of its own, for all that is known.
    fn has(&self, endpoint: &Guid) -> bool {
        self.participant.is_none_or(|it| prefix(&it) == prefix(endpoint))
    }
}

/// The readers that take a writer's samples from a connection.
fn targets(state: &State, writer: &Guid, link: u64) -> Vec<LaneTarget> {
    let all = state.subscriptions.range((*writer, Guid::default())..=(*writer, [u8::MAX; 16]));
    all.filter(|(_, wish)| wish.link == Some(link)).map(|(_, wish)| wish.target.clone()).collect()
}

/// The memory for a sample of these readers.
fn memory(mut targets: Vec<LaneTarget>, bytes: usize, pool: &Arc<Pool>) -> Memory {
    let only = if targets.len() == 1 { targets.pop() } else { None };
    if let Some(target) = only {
        match target.loan(bytes) {
            Some(slot) => return Memory::Slot(slot, target),
            None => targets.push(target),
        }
    }
    let buffer = if targets.is_empty() { None } else { Buffer::new(pool, bytes) };
    buffer.map_or(Memory::None, Memory::Buffer)
}

fn of_writer<'a>(
    state: &'a mut State,
    writer: &Guid,
) -> impl Iterator<Item = (&'a (Guid, Guid), &'a mut Subscription)> {
    state.subscriptions.range_mut((*writer, Guid::default())..=(*writer, [u8::MAX; 16]))
}

/// Whether they are the same, in a time that does not tell where they differ.
fn is_equal(one: &Token, other: &Token) -> bool {
    one.iter().zip(other).fold(0, |differs, (one, other)| differs | (one ^ other)) == 0
}

fn data(number: u64) -> epoll::EventData {
    epoll::EventData::new_u64(number)
}

const EVENT: u64 = 0;
const LISTENER: u64 = 1;
const FIRST_LINK: u64 = 2;
const EVENTS_MAX: usize = 64;
/// How often a connection is read before others have their turn: some megabytes.
const READS_MAX: usize = 32;
/// Connections of a node, and those that have not said who they are.
const PEERS_MAX: usize = 1_024;
const UNKNOWN_MAX: usize = 32;
const HELLO_LIMIT: Duration = Duration::from_secs(2);
/// Subscriptions that a connection may ask for.
const SUBSCRIPTIONS_MAX: u32 = 65_536;
const DIAL_LIMIT: Duration = Duration::from_secs(1);
const DIAL_AGAIN_MIN: Duration = Duration::from_millis(50);
const DIAL_AGAIN_MAX: Duration = Duration::from_millis(500);
/// How often the certificates of connected peers are checked: one may run out.
const CHECK_CERTIFICATES: Duration = Duration::from_secs(2);
const REPORTED_MAX: usize = 64;
/// How long after a writer has ended a subscription it is asked again.
const ASK_AGAIN: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{IpAddr, Ipv4Addr, TcpStream};

    use super::*;

    struct Listening {
        lane: Lane,
        queue: Arc<TaskQueue>,
        _node: shm::Node,
        _folder: tempfile::TempDir,
    }

    fn listen() -> Listening {
        listen_as(None)
    }

    fn listen_as(identity: Option<Identity>) -> Listening {
        let folder = tempfile::tempdir().unwrap();
        let runtime_dir = Some(folder.path().to_owned());
        let options = shm::NodeOptions { runtime_dir, ..Default::default() };
        let node = shm::Node::open(options).unwrap();
        let queue = Arc::new(TaskQueue::new(None).unwrap());
        let binding = Binding { index: 1, address: IpAddr::V4(Ipv4Addr::LOCALHOST) };
        let connections = Connections { patience: WATCHDOG, dscp: 0, identity };
        let lane = Lane::open(&node, Some(binding), &queue, connections).unwrap();
        Listening { lane, queue, _node: node, _folder: folder }
    }

    fn connect(listening: &Listening) -> TcpStream {
        let stream = TcpStream::connect(listening.lane.address.of_attempt(0).unwrap()).unwrap();
        stream.set_read_timeout(Some(WATCHDOG)).unwrap();
        stream
    }

    /// Waits until the other side has closed it.
    fn is_closed(mut stream: TcpStream) -> bool {
        match stream.read(&mut [0; 64]) {
            Ok(read) => read == 0,
            Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }

    fn hello(listening: &Listening, node: u64) -> [u8; 56] {
        Frame::Hello { token: listening.lane.shared.token, node }.encode()
    }

    fn subscribed(listening: &Listening) -> Guid {
        loop {
            for task in listening.queue.take(Some(WATCHDOG)).unwrap() {
                if let Task::LaneSubscribed { writer, .. } = task {
                    return writer;
                }
            }
        }
    }

    #[test]
    fn strangers_are_dropped_and_nodes_are_served() {
        let listening = listen();
        let stranger = Frame::Hello { token: [0; 16], node: 7 }.encode();
        let (writer, reader) = ([1; 16], [2; 16]);
        let subscribe = Frame::Subscribe { writer, reader }.encode();
        let (head, number, bytes) = (Head::new(&[0, 1, 0, 0]).unwrap(), 1, 9);
        let sample = Frame::Sample { writer, number, head, bytes, wants_acknowledgement: false };
        let mut too_large = sample.encode();
        too_large[8..16].copy_from_slice(&u64::MAX.to_le_bytes());
        let greeted = |frame: [u8; 56]| [hello(&listening, 7), frame].concat();
        let hostile: [&[u8]; 6] = [
            &[0; 56],
            &stranger,
            &subscribe,
            &greeted(sample.encode()),
            &greeted(too_large),
            &greeted(hello(&listening, 7)),
        ];
        for bytes in hostile {
            let mut stream = connect(&listening);
            stream.write_all(bytes).unwrap();
            assert!(is_closed(stream), "{bytes:?}");
        }
        let mut node = connect(&listening);
        node.write_all(&greeted(subscribe)).unwrap();
        assert_eq!(subscribed(&listening), writer);
    }

    /// Sends frames by TLS, and waits until the lane has closed the connection or `is_done`.
    fn greet_by_tls(
        listening: &Listening,
        (identity, participant): (&Identity, &Guid),
        frames: &[u8],
        is_done: impl Fn() -> bool,
    ) -> bool {
        let stream = tls::tests::stream(connect(listening), identity.dial(participant).unwrap());
        stream.write(&[std::io::IoSlice::new(frames)]).unwrap();
        let begun = Instant::now();
        loop {
            assert!(begun.elapsed() < WATCHDOG);
            match stream.read(&mut [0; 64]) {
                Err(Errno::AGAIN) if is_done() => return true,
                Err(Errno::AGAIN) => stream.flush(),
                Ok(0) | Err(_) => return false,
                Ok(_) => {}
            }
        }
    }

    #[test]
    fn with_an_enclave_only_the_announced_participant_is_served() {
        let place = tls::tests::Place::new();
        let listening = listen_as(Some(place.identity("/lane")));
        let [robot, other] = ["/robot", "/other"].map(|enclave| place.identity(enclave));
        let [lane, guid, other_guid] =
            ["/lane", "/robot", "/other"].map(|enclave| place.guid(enclave));
        let frames = |reader| {
            let subscribe = Frame::Subscribe { writer: [1; 16], reader }.encode();
            [hello(&listening, 7), subscribe].concat()
        };
        let mut plain = connect(&listening);
        plain.write_all(&frames(guid)).unwrap();
        // An alert, and nothing else.
        let mut answer = Vec::new();
        let _ = plain.read_to_end(&mut answer);
        assert!(answer.len() < 10, "{answer:?}");
        let is_served = |identity: &Identity, reader: Guid| {
            let is_subscribed = || {
                let tasks = listening.queue.take(Some(Duration::from_millis(1))).unwrap();
                tasks.iter().any(|task| matches!(task, Task::LaneSubscribed { .. }))
            };
            greet_by_tls(&listening, (identity, &lane), &frames(reader), is_subscribed)
        };
        assert!(!is_served(&robot, guid), "its node is not known yet");
        let mut announced = listening.lane.address.clone();
        (announced.node, announced.announcer) = (7, guid);
        listening.lane.set_addresses(BTreeMap::from([(7, announced)]));
        assert!(is_served(&robot, guid));
        assert!(!is_served(&other, other_guid), "it is not the participant of this node");
        assert!(!is_served(&robot, other_guid), "the reader is another participant's");
    }

    #[test]
    fn connections_that_say_nothing_are_few_and_short() {
        let listening = listen();
        let mut silent: Vec<TcpStream> =
            (0..2 * UNKNOWN_MAX).map(|_| connect(&listening)).collect();
        // It says a little, and does not go on.
        silent[0].write_all(&hello(&listening, 7)[..20]).unwrap();
        assert!(silent.into_iter().all(is_closed));
    }

    #[test]
    fn a_node_that_connects_again_has_lost_its_connection() {
        let listening = listen();
        let mut streams = [7, 8, 7].map(|node| {
            let mut stream = connect(&listening);
            let (writer, reader) = ([node as u8; 16], [2; 16]);
            let subscribe = Frame::Subscribe { writer, reader }.encode();
            stream.write_all(&[hello(&listening, node), subscribe].concat()).unwrap();
            assert_eq!(subscribed(&listening), writer);
            Some(stream)
        });
        assert!(is_closed(streams[0].take().unwrap()));
        drop(listening);
        assert!(streams.into_iter().flatten().all(is_closed));
    }

    const WATCHDOG: Duration = Duration::from_secs(60);
}
