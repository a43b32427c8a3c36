//! The state that a node's thread and its handles change under one lock: the protocol, and the
//! sockets and memory that perform its actions.

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::SocketFlags;

use crate::control_plane::endpoints::Endpoints;
use crate::control_plane::link::{Credentials, Descriptors, Link, Received, Sent};
use crate::control_plane::message::{ControlMessage, SegmentSize};
use crate::control_plane::protocol::graph::Graph;
use crate::control_plane::protocol::observe::ObserverId;
use crate::control_plane::protocol::{Action, Input, Protocol};
use crate::control_plane::registry::{ConnectOutcome, Registry};
use crate::data_plane::observer::ObserverState;
use crate::data_plane::publication::{PublicationState, SlotSegment};
use crate::data_plane::subscription::SubscriptionState;
use crate::error::Error;
use crate::os::descriptor::NodeFd;
use crate::os::poll::{Poll, readable};
use crate::record::{AnnouncedQos, EndpointRecord, Kind, NodeRecord, RecordOptions};
use crate::topic::{EndpointId, PublisherQos, Topic};
use crate::waiting::wait::now_ns;
use crate::warnings::{Warning, Warnings};

/// A node's protocol, sockets and endpoints.
pub(crate) struct Reactor {
    pub(crate) protocol: Protocol<Arc<OwnedFd>>,
    pub(crate) registry: Registry,
    pub(crate) poll: Arc<Poll>,
    pub(crate) listener: Option<NodeFd>,
    /// When to check whether the node still has its name.
    look_ns: u64,
    /// Until when accepting is paused, because descriptors are short.
    paused_until_ns: Option<u64>,
    /// Whether the last check has not found the node's socket.
    was_missing: bool,
    /// By key.
    links: BTreeMap<u64, OpenLink>,
    next_key: u64,
    endpoints: Endpoints,
    pub(crate) warnings: Warnings,
    /// How many threads wait for a change: to wake nobody is a system call, too.
    pub(crate) waiting: u32,
}

/// A link, and its pending work.
struct OpenLink {
    link: Link,
    /// Whether the poll reports when the other side has room for waiting messages.
    awaits_room: bool,
    /// When to try again to send waiting messages.
    send_again_ns: Option<u64>,
    /// Whether the protocol wants to know when no message waits.
    is_draining: bool,
    /// Since when nothing has come, for a node that we have connected to.
    unanswered_since_ns: Option<u64>,
}

type Step = Input<Arc<OwnedFd>>;

impl Reactor {
    pub(crate) fn new(
        node: u64,
        record: NodeRecord,
        registry: Registry,
        poll: Arc<Poll>,
        listener: NodeFd,
    ) -> Reactor {
        let who = Credentials { pid: std::process::id(), uid: registry.uid() };
        Reactor {
            protocol: Protocol::new(node, record, who),
            registry,
            poll,
            listener: Some(listener),
            look_ns: now_ns(),
            paused_until_ns: None,
            was_missing: false,
            links: BTreeMap::new(),
            next_key: FIRST_LINK,
            endpoints: Endpoints::default(),
            warnings: Warnings::default(),
            waiting: 0,
        }
    }

    /// Passes an input to the protocol, and performs all actions that follow, directly or
    /// indirectly.
    pub(crate) fn drive(&mut self, input: Step) {
        let now_ns = now_ns();
        let mut actions = VecDeque::from(self.protocol.handle(now_ns, input));
        while let Some(action) = actions.pop_front() {
            if let Some(outcome) = self.perform(action) {
                actions.extend(self.protocol.handle(now_ns, outcome));
            }
        }
    }

    /// Connects to all nodes that have a socket.
    pub(crate) fn connect_all(&mut self) -> Result<(), Error> {
        for node in self.registry.nodes()? {
            self.drive(Input::Found { node });
        }
        Ok(())
    }

    pub(crate) fn add_publication(
        &mut self,
        shared: Arc<PublicationState>,
        options: RecordOptions,
    ) {
        let (id, publication) = (shared.id(), shared.shared_descriptor());
        let qos = AnnouncedQos::of_publisher(shared.qos(), &options);
        let record = EndpointRecord::new(Kind::Publisher, shared.topic().clone(), qos, options);
        self.endpoints.add_publication(shared);
        self.drive(Input::PublisherMade { id, record, publication });
    }

    pub(crate) fn add_subscription(
        &mut self,
        shared: &Arc<SubscriptionState>,
        options: RecordOptions,
    ) {
        let (id, ignore_own_node) = (shared.id(), shared.qos().ignore_own_node);
        let qos = AnnouncedQos::of_subscriber(shared.qos(), &options);
        let record = EndpointRecord::new(Kind::Subscriber, shared.topic().clone(), qos, options);
        let subscription = shared.shared_descriptor();
        self.endpoints.add_subscription(shared);
        self.drive(Input::SubscriberMade { id, record, ignore_own_node, subscription });
    }

    pub(crate) fn add_observer(
        &mut self,
        observer: ObserverId,
        topic: Topic,
        state: Arc<ObserverState>,
    ) {
        self.endpoints.add_observer(observer, state);
        self.drive(Input::ObserverMade { observer, topic });
    }

    pub(crate) fn remove_observer(&mut self, observer: ObserverId) {
        self.drive(Input::ObserverDropped { observer });
        self.endpoints.remove_observer(observer);
    }

    pub(crate) fn remove_endpoint(&mut self, id: EndpointId) {
        self.drive(Input::Dropped { id });
        self.endpoints.remove(id);
    }

    /// The arena of a publisher of ours has grown.
    pub(crate) fn grown(&mut self, publisher: EndpointId, made: SlotSegment) {
        let SlotSegment { number, slot_bytes, slots, fd: segment } = made;
        let size = SegmentSize { number, slots, slot_bytes };
        self.drive(Input::Grown { publisher, size, segment });
    }

    /// A subscriber of ours has a proxy: a match with no endpoint of this host.
    pub(crate) fn proxy_came(
        &mut self,
        publisher: EndpointId,
        subscriber: EndpointId,
        qos: &PublisherQos,
    ) {
        let qos = AnnouncedQos::of_publisher(qos, &RecordOptions::default());
        self.drive(Input::ProxyMade { publisher, subscriber, qos });
    }

    /// An id for a new endpoint of a topic, unless the topic has another type.
    pub(crate) fn new_endpoint(&mut self, topic: &Topic) -> Result<EndpointId, Error> {
        self.protocol.new_endpoint(topic)
    }

    /// An id for a new passive subscriber of a topic, unless all of the topic has other types.
    pub(crate) fn new_passive_endpoint(&mut self, topic: &Topic) -> Result<EndpointId, Error> {
        self.protocol.new_passive_endpoint(topic)
    }

    /// Queries all peers; returns the graph query's number.
    pub(crate) fn begin_graph_query(&mut self) -> u64 {
        self.drive(Input::QueryGraph);
        self.protocol.graph_query()
    }

    /// The current knowledge, and the answers of others since the graph query began.
    pub(crate) fn graph(&self, graph_query: Option<u64>) -> Graph {
        self.protocol.graph(&self.endpoints.counted(), graph_query)
    }

    /// When timed work is due.
    pub(crate) fn due_ns(&self) -> Option<u64> {
        let sends = self.links.values().filter_map(|link| link.send_again_ns);
        let look_ns = Some(self.look_ns);
        let others =
            [self.protocol.due_ns(), self.endpoints.due_ns(), self.paused_until_ns, look_ns];
        others.into_iter().flatten().chain(sends).min()
    }

    /// The time until then.
    pub(crate) fn next_look(&self) -> Option<Duration> {
        let due_ns = self.due_ns()?;
        Some(Duration::from_nanos(due_ns.saturating_sub(now_ns())))
    }

    /// Does the work that is due.
    pub(crate) fn do_due(&mut self) {
        let now_ns = now_ns();
        let is_due = |due_ns: Option<u64>| due_ns.is_some_and(|due_ns| due_ns <= now_ns);
        let sends = self.links.iter().filter(|(_, link)| is_due(link.send_again_ns));
        for key in sends.map(|(key, _)| *key).collect::<Vec<_>>() {
            self.flush(key);
        }
        if is_due(self.paused_until_ns) {
            self.pause_listening(None);
        }
        if is_due(Some(self.look_ns)) {
            self.look_ns = now_ns + LOOK_NS;
            self.keep_name();
            self.warn_of_unanswered(now_ns);
        }
        if is_due(self.protocol.due_ns()) {
            self.drive(Input::Tick);
        }
        self.endpoints.do_due(now_ns);
    }

    /// Accepts waiting links; the poll reports those beyond a turn's limit again at once.
    pub(crate) fn accept_links(&mut self) {
        for _ in 0..LINKS_A_TURN {
            let Some(listener) = &self.listener else { return };
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let accepted = rustix::net::accept_with(listener, flags);
            match accepted {
                // If the link cannot be accepted, the other side sees that the socket is closed.
                Ok(socket) => match self.open_link(socket, None) {
                    Ok(linked) => self.drive(linked),
                    Err(error) => self.warn(NOT_ANSWERED, error.to_string()),
                },
                Err(Errno::CONNABORTED | Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(error) => {
                    let error = Error::system("accepting a link", error);
                    self.warn(NOT_ANSWERED, error.to_string());
                    return self.pause_listening(Some(now_ns() + PAUSE_NS));
                }
            }
        }
    }

    /// Makes the node's socket again if another process has removed it: other nodes would meet
    /// without us. It does not use a watch of the kernel (inotify), because a user may have only
    /// 128 of them.
    fn keep_name(&mut self) {
        let (uid, ours) = (rustix::process::geteuid().as_raw(), self.registry.uid());
        if uid != ours {
            let sides = "this program may not find all other programs";
            let reason = format!(
                "it runs as user {uid} now, but its node was opened as user {ours} and still \
                 matches only programs of user {ours}; to match those of user {uid}, open a node \
                 after the change"
            );
            return self.warn(sides, reason);
        }
        if !self.registry.is_somebody() {
            let sides = "this program may not find all other programs";
            let reason = String::from(
                "its user has no mapping outside of its user namespace, so it matches only \
                 programs of other users without one; map the user (unshare --map-root-user, \
                 /etc/subuid)",
            );
            self.warn(sides, reason);
        }
        let node = self.protocol.node();
        let is_missing = self.listener.is_some() && !self.registry.has(node);
        // Only at the second check: a process may be removing the whole folder just now, as tests
        // do at their end.
        if !std::mem::replace(&mut self.was_missing, is_missing) || !is_missing {
            return;
        }
        self.accept_links(); // links that wait at the old socket
        let path = self.registry.socket_path(node);
        let (sides, reason) = match self.listen_again(node) {
            Ok(()) => (
                "new programs could not reach this node",
                format!(
                    "its socket {} was removed and has been made again; if logind removed it \
                     (RemoveIPC=yes), run the programs as a system user or set RemoveIPC=no in \
                     /etc/systemd/logind.conf; if a cleaner of temporary files did, set \
                     MYELIN_RUNTIME_DIR to a folder that it leaves alone",
                    path.display()
                ),
            ),
            Err(error) => (
                "new programs cannot reach this node",
                format!(
                    "its socket {} was removed and cannot be made again: {error}",
                    path.display()
                ),
            ),
        };
        self.warn(sides, reason);
    }

    /// Warns about processes that we have connected to and that do not answer: their topics are unknown
    /// here.
    fn warn_of_unanswered(&mut self, now_ns: u64) {
        let mut pids = Vec::new();
        for open in self.links.values_mut() {
            let since_ns = &mut open.unanswered_since_ns;
            if since_ns.take_if(|since_ns| now_ns >= *since_ns + UNANSWERED_NS).is_some() {
                pids.extend(open.link.credentials().map(|who| who.pid));
            }
        }
        for pid in pids {
            let reason = format!(
                "process {pid} does not answer: it is stopped, or it cannot open more files and \
                 says so itself; it matches as soon as it answers"
            );
            self.warn(NOT_CONNECTED, reason);
        }
    }

    fn listen_again(&mut self, node: u64) -> Result<(), Error> {
        let listener = NodeFd::new(self.registry.enter_again(node)?);
        let entered = self.poll.add(listener.as_fd(), LISTENER).and_then(|()| {
            if let Some(before) = self.listener.replace(listener) {
                self.poll.remove(before.as_fd());
            }
            self.paused_until_ns = None;
            self.connect_all()
        });
        // A failed attempt is repeated at the next check.
        entered.inspect_err(|_| self.registry.leave(node))
    }

    /// Writes a warning about the whole node.
    fn warn(&mut self, sides: &str, reason: String) {
        let (pair, topic, sides) = ((0, self.protocol.node()), String::new(), sides.to_owned());
        self.warnings.add(Warning { pair, topic, sides, reason }, now_ns());
    }

    /// Reads messages from a peer, and sends it waiting ones. Whether it may have sent more.
    pub(crate) fn serve(&mut self, key: u64) -> bool {
        self.flush(key);
        for _ in 0..MESSAGES_A_TURN {
            let Some(open) = self.links.get_mut(&key) else { return false };
            let link = key;
            let received = open.link.receive();
            if matches!(received, Received::Message(..)) {
                open.unanswered_since_ns = None;
            }
            let input = match received {
                Received::Nothing => return false,
                Received::Message(ControlMessage::Hello { node, record }, _) => {
                    Input::Hello { link, node, record, owner: self.registry.owner(node) }
                }
                Received::Message(message, descriptors) => {
                    let descriptors = descriptors.into_iter().map(Arc::new).collect();
                    Input::Received { link, message, descriptors }
                }
                Received::End => Input::Ended { link },
                Received::Nonsense(error @ Error::LayoutVersion { .. }) => {
                    Input::OtherVersion { link, reason: error.to_string() }
                }
                Received::Nonsense(_) => Input::Nonsense { link },
            };
            self.drive(input);
        }
        true
    }

    /// Accepts links and reads peers' messages before the thread gets to them: at most a socketful of
    /// each peer.
    pub(crate) fn catch_up(&mut self) {
        let listener = self.listener.iter().map(|listener| (LISTENER, listener.as_fd()));
        let links = self.links.iter().map(|(key, open)| (*key, open.link.as_fd()));
        for key in readable(listener.chain(links)) {
            match key {
                LISTENER => self.accept_links(),
                key => _ = (0..CATCH_UP_TURNS).all(|_| self.serve(key)),
            }
        }
    }

    /// Removes the node's name, and sends farewell to all peers.
    pub(crate) fn leave(&mut self) {
        self.registry.leave(self.protocol.node());
        self.listener = None;
        self.drive(Input::Leave);
    }

    fn perform(&mut self, action: Action<Arc<OwnedFd>>) -> Option<Step> {
        match action {
            Action::Connect { node } => Some(self.connect(node)),
            Action::Send { link, message, descriptors } => self.send(link, &message, descriptors),
            Action::Drain { link } => {
                let open = self.links.get_mut(&link)?;
                open.is_draining = open.link.has_waiting();
                (!open.is_draining).then_some(Input::Drained { link })
            }
            Action::Close { link } => {
                let closed = self.links.remove(&link)?;
                self.poll.remove(closed.link.as_fd());
                None
            }
            Action::Warn(warning) => {
                self.warnings.add(warning, now_ns());
                None
            }
            action => self.endpoints.perform(action),
        }
    }

    fn connect(&mut self, node: u64) -> Step {
        match self.registry.connect(node) {
            Ok(ConnectOutcome::Connected(socket)) => match self.open_link(socket, Some(node)) {
                Ok(linked) => linked,
                Err(error) => self.not_connected(node, &error),
            },
            Ok(ConnectOutcome::Busy) => Input::Busy { node },
            Ok(ConnectOutcome::Gone) => Input::Gone { node },
            Ok(ConnectOutcome::Forbidden(error)) => {
                self.warn(NOT_CONNECTED, error.to_string());
                Input::Gone { node }
            }
            Err(error) => self.not_connected(node, &error),
        }
    }

    /// This error, no descriptors, may be temporary.
    fn not_connected(&mut self, node: u64, error: &Error) -> Step {
        self.warn(NOT_CONNECTED, error.to_string());
        Input::Busy { node }
    }

    /// A new link, by us to `connected_to`, or by an unknown process to us; or the reason why there is
    /// none.
    fn open_link(&mut self, socket: OwnedFd, connected_to: Option<u64>) -> Result<Step, Error> {
        let link = Link::new(socket);
        let who = link.credentials()?;
        // In a group's domain the modes of folder and socket have admitted only members.
        let ours = self.registry.uid();
        if who.uid != ours && !self.registry.is_groups() {
            let reason = format!(
                "it runs as user {}, but programs of user {ours} match only each other; run both \
                 as the same user, let a group share the domain, or open the node after the change \
                 of user",
                who.uid
            );
            return Ok(Input::Stranger { who, connected_to, reason });
        }
        let key = self.next_key;
        self.next_key += 1;
        self.poll.add(link.as_fd(), key)?;
        let open = OpenLink {
            link,
            awaits_room: false,
            send_again_ns: None,
            is_draining: false,
            unanswered_since_ns: connected_to.map(|_| now_ns()),
        };
        self.links.insert(key, open);
        Ok(Input::Linked { link: key, who, connected_to })
    }

    fn send(
        &mut self,
        key: u64,
        message: &ControlMessage,
        descriptors: Descriptors,
    ) -> Option<Step> {
        let sent = self.links.get_mut(&key)?.link.send(message, descriptors);
        let drained = self.after_send(key, sent);
        if sent == Sent::Full { Some(Input::Overrun { link: key }) } else { drained }
    }

    fn flush(&mut self, key: u64) {
        let Some(open) = self.links.get_mut(&key).filter(|open| open.link.has_waiting()) else {
            return;
        };
        let sent = open.link.flush();
        if let Some(drained) = self.after_send(key, sent) {
            self.drive(drained);
        }
    }

    /// The consequences of an attempt to send: waiting messages may have been sent, too.
    fn after_send(&mut self, key: u64, sent: Sent) -> Option<Step> {
        let open = self.links.get_mut(&key)?;
        let awaits_room = sent == Sent::Queued;
        if awaits_room != open.awaits_room {
            open.awaits_room = awaits_room;
            self.poll.watch_writable(open.link.as_fd(), key, awaits_room);
        }
        // For a peer that has gone, the thread reads the remaining messages, and then its end.
        open.send_again_ns = (sent == Sent::Later).then(|| now_ns() + SEND_AGAIN_NS);
        let is_drained = open.is_draining && !open.link.has_waiting();
        open.is_draining &= !is_drained;
        is_drained.then_some(Input::Drained { link: key })
    }

    /// Turns the poll's reports for the listening socket off or on.
    fn pause_listening(&mut self, until_ns: Option<u64>) {
        self.paused_until_ns = until_ns;
        if let Some(listener) = &self.listener {
            self.poll.pause(listener.as_fd(), LISTENER, until_ns.is_some());
        }
    }
}

/// The listening socket's key.
pub(crate) const LISTENER: u64 = 0;
/// Key of the first link; the waker has 1.
const FIRST_LINK: u64 = 2;
/// How many messages are read from one peer before it is another's turn.
const MESSAGES_A_TURN: usize = 64;
/// How many links are accepted before it is the peers' turn.
const LINKS_A_TURN: usize = 64;
/// A socket holds some 280 messages.
const CATCH_UP_TURNS: usize = 5;
const SEND_AGAIN_NS: u64 = 10_000_000;
/// How often a node checks its name; each check takes some microseconds.
const LOOK_NS: u64 = 1_000_000_000;
/// How long a process that we have connected to may take before a warning is written.
const UNANSWERED_NS: u64 = 2_000_000_000;
const NOT_ANSWERED: &str = "this node does not answer new programs";
const NOT_CONNECTED: &str = "this node does not reach another one";
/// How long links are not accepted when descriptors are short.
const PAUSE_NS: u64 = 100_000_000;

#[cfg(test)]
mod tests;
