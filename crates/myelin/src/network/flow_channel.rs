//! The messages between subscribers and publishers on different hosts that DDS lacks. A subscriber
//! reports that it takes samples from now on, that it is full, or that it has room again. A publisher
//! reports that it does not wait any longer for a full subscriber, or that it has large samples for
//! the lane.
//!
//! A DDS writer is matched with a reader before the reader is matched with the writer, and
//! best-effort samples sent meanwhile are lost. And CycloneDDS acknowledges the samples that it has
//! received, not those for which the subscriber had room. Its own way to hold a publisher up is to
//! stop receiving, all topics at once.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use myelin_dds::{
    Endpoint, Guid, History, Listener, Message, Participant, Reader, Release, Settings, Writer,
};

use super::task_queue::{Task, TaskQueue};
use super::{lock, network_error};
use crate::Error;
use crate::encapsulation::{little_endian, split};

/// A node's end of it: all nodes of the domain write to and read from one topic.
pub(super) struct FlowChannel {
    writer: Writer,
    reader: Reader,
    /// Those that have been returned as new.
    peers: RefCell<BTreeSet<Guid>>,
    received: Arc<Mutex<Vec<FlowMessage>>>,
    outgoing: RefCell<Outgoing>,
    kept: Arc<Kept>,
    /// Peers for which no message is kept, because they did not acknowledge `KEPT_BYTES_MAX`: they miss
    /// new messages.
    silent: RefCell<BTreeSet<Guid>>,
}

/// Messages to be sent.
#[derive(Default)]
struct Outgoing {
    bytes: Vec<u8>,
    /// Whether a publisher or a subscriber waits for one of them.
    is_urgent: bool,
    sent_at: Option<Instant>,
}

/// The part of a GUID that names the participant.
pub(super) type GuidPrefix = [u8; 12];

/// A message from a reader to a writer, or from a writer to a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FlowMessage {
    pub(super) writer: Guid,
    pub(super) reader: Guid,
    pub(super) kind: FlowKind,
    /// For `Full`: the reader counts them. For `Late`: the `Full` that it answers; there may be
    /// room since.
    pub(super) count: u8,
}

/// The kinds of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FlowKind {
    /// From the reader: I take your samples from now on.
    Ready = 0,
    /// From the reader: I have no room, write no more.
    Full = 1,
    /// From the reader: I have room again.
    Room = 2,
    /// From the writer: you have been full for too long, I do not wait for you until you have room.
    Late = 3,
    /// From the writer: my samples are large, take them by the lane.
    Large = 4,
}

impl FlowChannel {
    /// `user_data` of its writer announce the node.
    pub(super) fn create(
        participant: &Arc<Participant>,
        queue: &Arc<TaskQueue>,
        user_data: Vec<u8>,
    ) -> Result<FlowChannel, Error> {
        let mut settings = Settings {
            topic: FLOW_TOPIC[usize::from(participant.is_secured())].to_owned(),
            type_name: "myelin::Flow3".to_owned(),
            partitions: Vec::new(),
            user_data: Vec::new(),
            reliable: true,
            history: History::KeepAll,
            history_late: 0,
            block_max: Duration::ZERO,
        };
        let received = Arc::default();
        let messages =
            Box::new(FlowListener { received: Arc::clone(&received), queue: queue.clone() });
        let reader = Reader::create(participant, &settings, messages).map_err(network_error)?;
        settings.user_data = user_data;
        let peers = Box::new(PeerListener(queue.clone()));
        let writer = Writer::create(participant, &settings, peers).map_err(network_error)?;
        let (peers, silent) = (RefCell::default(), RefCell::default());
        let (outgoing, kept) = (RefCell::default(), Arc::default());
        Ok(FlowChannel { writer, reader, peers, received, outgoing, kept, silent })
    }

    /// Whether an endpoint is of the same process.
    pub(super) fn is_own(&self, endpoint: &Guid) -> bool {
        prefix(endpoint) == prefix(&self.writer.guid())
    }

    /// Whether its participant is still there: it goes when its enclave runs out.
    pub(super) fn has_participant(&self) -> bool {
        self.writer.has_participant()
    }

    /// Announces the node by other user data from now on. If it fails, others know it by the earlier
    /// ones.
    pub(super) fn announce(&self, user_data: &[u8]) {
        let _ = self.writer.set_user_data(user_data);
    }

    /// Sends it to all existing nodes, except those that are silent, by one of the next calls of
    /// `flush`: a match with many endpoints takes a message for each of them, to every node.
    pub(super) fn send(&self, message: FlowMessage) {
        let mut outgoing = self.outgoing.borrow_mut();
        outgoing.bytes.extend(message.encode());
        outgoing.is_urgent |= message.kind != FlowKind::Ready;
        let is_full = outgoing.bytes.len() + MESSAGE_BYTES > DATAGRAM_BYTES_MAX;
        drop(outgoing);
        if is_full {
            self.write();
        }
    }

    /// Sends what has been given to `send`, or returns when it is due.
    pub(super) fn flush(&self) -> Option<Instant> {
        let outgoing = self.outgoing.borrow();
        let due = outgoing.sent_at.filter(|_| !outgoing.is_urgent).map(|at| at + SEND_EACH);
        let is_empty = outgoing.bytes.is_empty();
        drop(outgoing);
        match due.filter(|due| *due > Instant::now()) {
            _ if is_empty => None,
            None => {
                self.write();
                None
            }
            later => later,
        }
    }

    fn write(&self) {
        let sent = Outgoing { sent_at: Some(Instant::now()), ..Outgoing::default() };
        let outgoing = self.outgoing.replace(sent).bytes;
        let head = little_endian(0);
        let bytes = head.len() + outgoing.len();
        let before = self.kept.0.fetch_add(bytes, Ordering::Relaxed);
        let _ = self.writer.write(&head, &outgoing, self.kept.clone(), || {});
        if before + bytes >= KEPT_BYTES_MAX {
            self.pass_over();
        } else if before / REQUEST_EACH_BYTES != (before + bytes) / REQUEST_EACH_BYTES {
            self.writer.request_acknowledgements();
        }
    }

    #[cold]
    fn pass_over(&self) {
        while self.kept.bytes() >= KEPT_BYTES_MAX {
            let before = self.kept.bytes();
            let Some(reader) = self.writer.pass_over() else { return };
            self.silent.borrow_mut().insert(reader);
            let freed = before.saturating_sub(self.kept.bytes());
            let name = reader.map(|byte| format!("{byte:02x}")).concat();
            let reason = format!(
                "DDS endpoint {name} does not acknowledge flow control: {freed} of {before} B of \
                 messages that were kept for it are dropped, and no more are kept until it \
                 answers; then it gets the current state again. Check whether its process is \
                 stopped or overloaded"
            );
            myelin_shm::warn("", "the network", &reason);
        }
    }

    /// The participants of nodes that have come since the last call. They have missed earlier messages.
    pub(super) fn new_peers(&self) -> BTreeSet<GuidPrefix> {
        let mut there = BTreeSet::new();
        let _ = self.writer.visit_matched(&mut |endpoint| _ = there.insert(endpoint.guid));
        let before = self.peers.replace(there);
        self.peers.borrow().difference(&before).map(prefix).collect()
    }

    /// The writers of the other nodes, and what they announce.
    pub(super) fn nodes(&self) -> Vec<(Guid, Vec<u8>)> {
        let mut found = Vec::new();
        let mut add = |endpoint: Endpoint| found.push((endpoint.guid, endpoint.user_data));
        let _ = self.reader.visit_matched(&mut add);
        found
    }

    /// Whether endpoints are coming to the domain.
    pub(super) fn set_discovering(&self, is_discovering: bool) {
        self.writer.set_discovering(is_discovering);
    }

    /// Whether there are peers that miss messages.
    pub(super) fn has_silent(&self) -> bool {
        !self.silent.borrow().is_empty()
    }

    /// Forgets peers that have gone or answer again: the caller then repeats all messages that still
    /// count.
    pub(super) fn forget_answering(&self) {
        let mut there = BTreeSet::new();
        let _ = self.writer.visit_matched(&mut |endpoint| _ = there.insert(endpoint.guid));
        let is_silent =
            |reader: &Guid| there.contains(reader) && !self.writer.is_waited_for(reader);
        self.silent.borrow_mut().retain(is_silent);
    }

    /// The messages of others.
    pub(super) fn receive(&self) -> Vec<FlowMessage> {
        std::mem::take(&mut *lock(&self.received))
    }
}

impl FlowMessage {
    fn encode(&self) -> [u8; MESSAGE_BYTES] {
        let mut bytes = [0; MESSAGE_BYTES];
        bytes[..16].copy_from_slice(&self.writer);
        bytes[16..32].copy_from_slice(&self.reader);
        bytes[32..].copy_from_slice(&[self.kind as u8, self.count]);
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<FlowMessage> {
        let (writer, rest) = bytes.split_first_chunk()?;
        let (reader, rest) = rest.split_first_chunk()?;
        let &[kind, count] = rest else { return None };
        let kind = match kind {
            0 => FlowKind::Ready,
            1 => FlowKind::Full,
            2 => FlowKind::Room,
            3 => FlowKind::Late,
            4 => FlowKind::Large,
            _ => return None,
        };
        Some(FlowMessage { writer: *writer, reader: *reader, kind, count })
    }

    /// All messages of a datagram; `None` if one of them is not understood.
    fn decode_all(bytes: &[u8]) -> Option<Vec<FlowMessage>> {
        bytes.chunks(MESSAGE_BYTES).map(FlowMessage::decode).collect()
    }
}

/// The participant of an endpoint.
pub(super) fn prefix(guid: &Guid) -> GuidPrefix {
    *guid.first_chunk().expect("it is longer")
}

/// Keeps received messages for the node's thread.
struct FlowListener {
    received: Arc<Mutex<Vec<FlowMessage>>>,
    queue: Arc<TaskQueue>,
}

impl Listener for FlowListener {
    fn received(&self, message: Message) -> bool {
        if let Some(messages) =
            split(message.bytes()).and_then(|(_, body)| FlowMessage::decode_all(body))
        {
            let mut received = lock(&self.received);
            if received.len() >= RECEIVED_MAX {
                return false; // until the node's thread has been here
            }
            received.extend(messages);
            drop(received);
            self.queue.push(Task::Flow);
        }
        true
    }

    fn matched(&self, _count: u32) {
        self.queue.push(Task::Discovery);
    }
}

/// Reports new peers that have missed earlier messages.
struct PeerListener(Arc<TaskQueue>);

impl Listener for PeerListener {
    fn matched(&self, _count: u32) {
        self.0.push(Task::Peers);
    }
}

/// How many bytes of messages CycloneDDS keeps for peers that have not acknowledged them.
#[derive(Default)]
struct Kept(AtomicUsize);

impl Kept {
    // ORDER: Relaxed, wherever it is used: only a number, and one message too many does no harm.
    fn bytes(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Release for Kept {
    fn released(&self, bytes: usize) {
        self.0.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// The bytes of one message.
const MESSAGE_BYTES: usize = 34;
/// Messages are sent together up to so many bytes, which fit into any network's packet.
const DATAGRAM_BYTES_MAX: usize = 1_200;
/// How often messages are sent that a match waits for: one by one, all nodes would receive and
/// acknowledge each.
const SEND_EACH: Duration = Duration::from_millis(10);
/// With so many received messages, no more are taken until the node's thread has handled them.
const RECEIVED_MAX: usize = 16_384;
/// How many bytes of messages are kept for peers: with what CycloneDDS needs for them, some megabytes.
const KEPT_BYTES_MAX: usize = 600_000;
/// After so many kept bytes the peers are asked for acknowledgements.
const REQUEST_EACH_BYTES: usize = 1 << 16;
/// Not a valid name of a user's topic. With security it is the second: what ROS 2's tool allows to an
/// enclave by default begins with `rt/`.
pub(super) const FLOW_TOPIC: [&str; 2] = ["myelin_flow", "rt/_myelin/flow"];

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::Ipv4Addr;
    use std::process::{Command, Stdio};

    use myelin_dds::{Binding, Config, Domain};

    use super::*;

    #[test]
    fn a_flow_control_message_is_parsed_and_other_bytes_are_not() {
        let message = |kind| FlowMessage { writer: [1; 16], reader: [2; 16], kind, count: 7 };
        for kind in
            [FlowKind::Ready, FlowKind::Full, FlowKind::Room, FlowKind::Late, FlowKind::Large]
        {
            assert_eq!(FlowMessage::decode_all(&message(kind).encode()), Some(vec![message(kind)]));
        }
        let [ready, late] = [FlowKind::Ready, FlowKind::Late].map(message);
        let bytes = [ready.encode(), late.encode()].concat();
        assert_eq!(FlowMessage::decode_all(&bytes), Some(vec![ready, late]));
        for end in [32, 33, 35, 67] {
            assert_eq!(FlowMessage::decode_all(&bytes[..end]), None, "{end}");
        }
        assert_eq!(FlowMessage::decode_all(&[&bytes[..32], &[5, 0]].concat()), None);
        assert_eq!(FlowMessage::decode_all(&[&bytes[..], &[0]].concat()), None);
    }

    /// DDS considers it alive as long as its lease runs, and it acknowledges nothing.
    #[test]
    fn flow_control_messages_for_a_stopped_peer_are_bounded() {
        match std::env::var(ROLE).as_deref() {
            Ok("speaker") => return speak(),
            Ok(_) => return listen(),
            Err(_) => {}
        }
        if let Err(missing) = Domain::check(0) {
            return println!("skipped: {missing}");
        }
        let mut command = Command::new("unshare");
        command.args(["--net", "sh", "-c", "ip link set lo up && exec \"$@\"", "sh"]);
        command.arg(std::env::current_exe().unwrap()).args(ARGUMENTS).env(ROLE, "speaker");
        // Not every user may make network namespaces.
        match Command::new("unshare").args(["--net", "true"]).status() {
            Ok(status) if status.success() => assert!(command.status().unwrap().success()),
            _ => println!("skipped: unshare --net is not permitted"),
        }
    }

    fn flow() -> FlowChannel {
        let config = Config {
            peers: vec!["127.0.0.1".to_string()],
            lease: 10 * WATCHDOG,
            ..Config::default()
        };
        let binding = Binding { index: 1, address: Ipv4Addr::LOCALHOST.into() };
        let participant = Domain::claim(0, &config).unwrap().open(Some(binding)).unwrap();
        let queue = Arc::new(TaskQueue::new(None).unwrap());
        FlowChannel::create(&participant, &queue, Vec::new()).unwrap()
    }

    fn peers(flow: &FlowChannel) -> usize {
        let mut peers = 0;
        flow.writer.visit_matched(&mut |_| peers += 1).unwrap();
        peers
    }

    fn until(what: &str, mut is_so: impl FnMut() -> bool) {
        let begun = Instant::now();
        while !is_so() {
            assert!(begun.elapsed() < WATCHDOG, "waited in vain for: {what}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn message(count: u8) -> FlowMessage {
        FlowMessage { writer: [1; 16], reader: [2; 16], kind: FlowKind::Full, count }
    }

    fn speak() {
        let mut listener = Command::new(std::env::current_exe().unwrap());
        listener.args(ARGUMENTS).env(ROLE, "listener").stdin(Stdio::piped());
        let mut listener = listener.spawn().unwrap();
        let flow = flow();
        until("the listener", || peers(&flow) == 1);
        let signal = |signal| {
            // SAFETY: it is a child that has not been waited for.
            assert_eq!(unsafe { libc::kill(listener.id() as libc::pid_t, signal) }, 0);
        };
        signal(libc::SIGSTOP);
        for _ in 0..3 * KEPT_BYTES_MAX / MESSAGE_BYTES {
            flow.send(message(0));
            assert!(flow.kept.bytes() <= KEPT_BYTES_MAX);
        }
        assert!(flow.has_silent());
        flow.forget_answering();
        assert!(flow.has_silent());
        signal(libc::SIGCONT);
        until("an answer", || {
            flow.send(message(1));
            flow.write();
            flow.forget_answering();
            !flow.has_silent()
        });
        flow.send(message(2));
        flow.write();
        until("all to be acknowledged", || flow.kept.bytes() == 0);
        drop(listener.stdin.take());
        assert!(listener.wait().unwrap().success());
    }

    fn listen() {
        let flow = flow();
        until("the last message", || flow.receive().contains(&message(2)));
        // The acknowledgement is sent before this returns.
        std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
    }

    const ARGUMENTS: [&str; 3] = [
        "--exact",
        "--nocapture",
        "network::flow_channel::tests::flow_control_messages_for_a_stopped_peer_are_bounded",
    ];
    const ROLE: &str = "MYELIN_FLOW_TEST_ROLE";
    const WATCHDOG: Duration = Duration::from_secs(60);
}
