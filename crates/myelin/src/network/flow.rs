//! The messages between subscribers and publishers on different hosts that DDS lacks. A subscriber
//! says that it takes samples from now on, that it is full, or that it has room again. A publisher
//! says that it does not wait any longer for a full subscriber.
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

use myelin_dds::{Calls, Guid, History, Message, Participant, Reader, Release, Settings, Writer};

use super::queue::{Queue, Task};
use super::wire::{CDR_LE, HEADER_BYTES};
use super::{lock, said};
use crate::Error;

/// A node's end of it: all nodes of the domain write to and read from one topic.
pub(super) struct Flow {
    writer: Writer,
    _reader: Reader,
    heard: Arc<Mutex<Vec<Word>>>,
    kept: Arc<Kept>,
    /// Peers for which no word is kept, because they did not acknowledge `KEPT_MAX`: they miss new
    /// words.
    silent: RefCell<BTreeSet<Guid>>,
}

/// A message from a reader to a writer, or from a writer to a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) writer: Guid,
    pub(super) reader: Guid,
    pub(super) says: Says,
    /// For `Full`: the reader counts them. For `Late`: the `Full` that it answers; there may be
    /// room since.
    pub(super) count: u8,
}

/// The kinds of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Says {
    /// From the reader: I take your samples from now on.
    Ready = 0,
    /// From the reader: I have no room, write no more.
    Full = 1,
    /// From the reader: I have room again.
    Room = 2,
    /// From the writer: you have been full for too long, I do not wait for you until you have room.
    Late = 3,
}

impl Flow {
    pub(super) fn create(
        participant: &Arc<Participant>,
        queue: &Arc<Queue>,
    ) -> Result<Flow, Error> {
        let settings = Settings {
            topic: FLOW_TOPIC.to_owned(),
            type_name: "myelin::Flow2".to_owned(),
            partitions: Vec::new(),
            user_data: Vec::new(),
            reliable: true,
            history: History::KeepAll,
            history_late: 0,
            block_max: Duration::ZERO,
        };
        let heard = Arc::default();
        let words = Box::new(Words { heard: Arc::clone(&heard), queue: queue.clone() });
        let reader = Reader::create(participant, &settings, words).map_err(said)?;
        let peers = Box::new(Peers(queue.clone()));
        let writer = Writer::create(participant, &settings, peers).map_err(said)?;
        let (kept, silent) = (Arc::default(), RefCell::default());
        Ok(Flow { writer, _reader: reader, heard, kept, silent })
    }

    /// Sends it to all existing nodes, except those that are silent.
    pub(super) fn say(&self, word: Word) {
        let kept = self.kept.0.fetch_add(1, Ordering::Relaxed) + 1;
        let _ = self.writer.write(&CDR_LE, &word.encode(), self.kept.clone(), || {});
        if kept >= KEPT_MAX {
            self.pass_over();
        } else if kept.is_multiple_of(ASK_EACH) {
            self.writer.ask();
        }
    }

    #[cold]
    fn pass_over(&self) {
        while self.kept.words() >= KEPT_MAX {
            let before = self.kept.words();
            let Some(reader) = self.writer.pass_over() else { return };
            self.silent.borrow_mut().insert(reader);
            let freed = before.saturating_sub(self.kept.words());
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

    /// Whether there are peers that miss words.
    pub(super) fn has_silent(&self) -> bool {
        !self.silent.borrow().is_empty()
    }

    /// Forgets peers that have gone or answer again: the caller then repeats all words that still
    /// count.
    pub(super) fn forget_answering(&self) {
        let mut there = BTreeSet::new();
        let _ = self.writer.visit_matched(&mut |endpoint| _ = there.insert(endpoint.guid));
        let is_silent =
            |reader: &Guid| there.contains(reader) && !self.writer.is_waited_for(reader);
        self.silent.borrow_mut().retain(is_silent);
    }

    /// The words of others.
    pub(super) fn hear(&self) -> Vec<Word> {
        std::mem::take(&mut *lock(&self.heard))
    }
}

impl Word {
    fn encode(&self) -> Vec<u8> {
        [&self.writer[..], &self.reader, &[self.says as u8, self.count]].concat()
    }

    fn decode(bytes: &[u8]) -> Option<Word> {
        let (writer, rest) = bytes.split_first_chunk()?;
        let (reader, rest) = rest.split_first_chunk()?;
        let &[says, count] = rest else { return None };
        let says = match says {
            0 => Says::Ready,
            1 => Says::Full,
            2 => Says::Room,
            3 => Says::Late,
            _ => return None,
        };
        Some(Word { writer: *writer, reader: *reader, says, count })
    }
}

/// Keeps received words for the node's thread.
struct Words {
    heard: Arc<Mutex<Vec<Word>>>,
    queue: Arc<Queue>,
}

impl Calls for Words {
    fn received(&self, message: Message) -> bool {
        if let Some(word) = message.bytes().get(HEADER_BYTES..).and_then(Word::decode) {
            let mut heard = lock(&self.heard);
            if heard.len() >= HEARD_MAX {
                return false; // until the node's thread has been here
            }
            heard.push(word);
            drop(heard);
            self.queue.ask(Task::Flow);
        }
        true
    }
}

/// Reports new peers that have missed earlier words.
struct Peers(Arc<Queue>);

impl Calls for Peers {
    fn matched(&self, _count: u32) {
        self.0.ask(Task::Peers);
    }
}

/// How many words CycloneDDS keeps for peers that have not acknowledged them.
#[derive(Default)]
struct Kept(AtomicUsize);

impl Kept {
    // ORDER: Relaxed, wherever it is used: only a number, and one word too many does no harm.
    fn words(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Release for Kept {
    fn released(&self, _bytes: usize) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How many received words can wait for the node's thread.
const HEARD_MAX: usize = 16_384;
/// How many words are kept for peers: some megabytes.
const KEPT_MAX: usize = 16_384;
/// After so many kept words the peers are asked for acknowledgements.
const ASK_EACH: usize = 1_024;
/// Not a valid name of a user's topic.
pub(super) const FLOW_TOPIC: &str = "myelin_flow";

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
        let word = |says| Word { writer: [1; 16], reader: [2; 16], says, count: 7 };
        for says in [Says::Ready, Says::Full, Says::Room, Says::Late] {
            assert_eq!(Word::decode(&word(says).encode()), Some(word(says)));
        }
        let bytes = word(Says::Ready).encode();
        assert_eq!(Word::decode(&bytes[..32]), None);
        assert_eq!(Word::decode(&bytes[..33]), None);
        assert_eq!(Word::decode(&[&bytes[..32], &[4, 0]].concat()), None);
        assert_eq!(Word::decode(&[&bytes[..], &[0]].concat()), None);
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

    fn flow() -> Flow {
        let config = Config {
            peers: vec!["127.0.0.1".to_string()],
            lease: 10 * WATCHDOG,
            ..Config::default()
        };
        let binding = Binding { index: 1, address: Ipv4Addr::LOCALHOST.into() };
        let participant = Domain::claim(0, &config).unwrap().open(Some(binding)).unwrap();
        Flow::create(&participant, &Arc::new(Queue::new(None).unwrap())).unwrap()
    }

    fn peers(flow: &Flow) -> usize {
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

    fn word(count: u8) -> Word {
        Word { writer: [1; 16], reader: [2; 16], says: Says::Full, count }
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
            flow.say(word(0));
            assert!(flow.kept.words() <= KEPT_MAX);
        }
        assert!(flow.has_silent());
        flow.forget_answering();
        assert!(flow.has_silent());
        signal(libc::SIGCONT);
        until("an answer", || {
            flow.say(word(1));
            flow.forget_answering();
            !flow.has_silent()
        });
        flow.say(word(2));
        until("all to be acknowledged", || flow.kept.words() == 0);
        drop(listener.stdin.take());
        assert!(listener.wait().unwrap().success());
    }

    fn listen() {
        let flow = flow();
        until("the last word", || flow.hear().contains(&word(2)));
        // The acknowledgement is sent before this returns.
        std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
    }

    const ARGUMENTS: [&str; 3] = [
        "--exact",
        "--nocapture",
        "network::flow::tests::flow_control_messages_for_a_stopped_peer_are_bounded",
    ];
    const ROLE: &str = "MYELIN_FLOW_TEST_ROLE";
    const WATCHDOG: Duration = Duration::from_secs(60);
}
