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
use std::time::Duration;

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
    kept: Arc<Kept>,
    /// Peers for which no message is kept, because they did not acknowledge `KEPT_MAX`: they miss new
    /// messages.
    silent: RefCell<BTreeSet<Guid>>,
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
            type_name: "myelin::Flow2".to_owned(),
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
        let (peers, kept, silent) = (RefCell::default(), Arc::default(), RefCell::default());
        Ok(FlowChannel { writer, reader, peers, received, kept, silent })
    }

    /// Sends it to all existing nodes, except those that are silent.
    pub(super) fn send(&self, message: FlowMessage) {
        let kept = self.kept.0.fetch_add(1, Ordering::Relaxed) + 1;
        let _ = self.writer.write(&little_endian(0), &message.encode(), self.kept.clone(), || {});
        if kept >= KEPT_MAX {
            self.pass_over();
        } else if kept.is_multiple_of(REQUEST_EACH) {
            self.writer.request_acknowledgements();
        }
    }

    #[cold]
    fn pass_over(&self) {
        while self.kept.messages() >= KEPT_MAX {
            let before = self.kept.messages();
            let Some(reader) = self.writer.pass_over() else { return };
            self.silent.borrow_mut().insert(reader);
            let freed = before.saturating_sub(self.kept.messages());
            let name = reader.map(|byte| format!("{byte:02x}")).concat();
            let reason = format!(
                "DDS endpoint {name} does not acknowledge flow control: {freed} of {before} \
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
    fn encode(&self) -> Vec<u8> {
        [&self.writer[..], &self.reader, &[self.kind as u8, self.count]].concat()
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
        if let Some(message) =
            split(message.bytes()).and_then(|(_, body)| FlowMessage::decode(body))
        {
            let mut received = lock(&self.received);
            if received.len() >= RECEIVED_MAX {
                return false; // until the node's thread has been here
            }
            received.push(message);
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

/// How many messages CycloneDDS keeps for peers that have not acknowledged them.
#[derive(Default)]
struct Kept(AtomicUsize);

impl Kept {
    // ORDER: Relaxed, wherever it is used: only a number, and one message too many does no harm.
    fn messages(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Release for Kept {
    fn released(&self, _bytes: usize) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How many received messages can wait for the node's thread.
const RECEIVED_MAX: usize = 16_384;
/// How many messages are kept for peers: some megabytes.
const KEPT_MAX: usize = 16_384;
/// After so many kept messages the peers are asked for acknowledgements.
const REQUEST_EACH: usize = 1_024;
/// Not a valid name of a user's topic. With security it is the second: what ROS 2's tool allows to an
/// enclave by default begins with `rt/`.
pub(super) const FLOW_TOPIC: [&str; 2] = ["myelin_flow", "rt/_myelin/flow"];

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::Ipv4Addr;
    use std::process::{Command, Stdio};
    use std::time::Instant;

    use myelin_dds::{Binding, Config, Domain};

    use super::*;

    #[test]
    fn a_flow_control_message_is_parsed_and_other_bytes_are_not() {
        let message = |kind| FlowMessage { writer: [1; 16], reader: [2; 16], kind, count: 7 };
        for kind in
            [FlowKind::Ready, FlowKind::Full, FlowKind::Room, FlowKind::Late, FlowKind::Large]
        {
            assert_eq!(FlowMessage::decode(&message(kind).encode()), Some(message(kind)));
        }
        let bytes = message(FlowKind::Ready).encode();
        assert_eq!(FlowMessage::decode(&bytes[..32]), None);
        assert_eq!(FlowMessage::decode(&bytes[..33]), None);
        assert_eq!(FlowMessage::decode(&[&bytes[..32], &[5, 0]].concat()), None);
        assert_eq!(FlowMessage::decode(&[&bytes[..], &[0]].concat()), None);
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
        for _ in 0..3 * KEPT_MAX {
            flow.send(message(0));
            assert!(flow.kept.messages() <= KEPT_MAX);
        }
        assert!(flow.has_silent());
        flow.forget_answering();
        assert!(flow.has_silent());
        signal(libc::SIGCONT);
        until("an answer", || {
            flow.send(message(1));
            flow.forget_answering();
            !flow.has_silent()
        });
        flow.send(message(2));
        until("all to be acknowledged", || flow.kept.messages() == 0);
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
