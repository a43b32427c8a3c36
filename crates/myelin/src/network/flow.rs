//! The words between subscribers and publishers elsewhere, for which DDS has none: a subscriber's that
//! it takes what is published from now on, that it is full, that it has room again; a publisher's that
//! it does not wait any longer for one that is full.
//!
//! A DDS writer is matched with a reader before the reader is with the writer, and what it sends
//! meanwhile is lost if it is best effort. And CycloneDDS acknowledges what it has received, not what
//! the subscriber had room for; its own way to hold a publisher up is to stop receiving, all topics
//! at once.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use myelin_dds::{Calls, Guid, History, Message, Participant, Reader, Release, Settings, Writer};

use super::queue::{Queue, Task};
use super::wire::{CDR_LE, HEADER_BYTES};
use super::{lock, said};
use crate::Error;

/// A node's end of it: all nodes of the domain write to and read one topic.
pub(super) struct Flow {
    writer: Writer,
    _reader: Reader,
    heard: Arc<Mutex<Vec<Word>>>,
}

/// What a reader says to a writer, or a writer to a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) writer: Guid,
    pub(super) reader: Guid,
    pub(super) says: Says,
    /// Of `Full`: the reader counts them. Of `Late`: which one it answers; there may be room since.
    pub(super) count: u8,
}

/// What there is to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Says {
    /// I take what you write from now on.
    Ready = 0,
    /// I have no room, write no more.
    Full = 1,
    /// I have room again.
    Room = 2,
    /// The writer's: you have been full for too long, nobody waits for you until you have room.
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
        Ok(Flow { writer, _reader: reader, heard })
    }

    /// Says it to all nodes that are there.
    pub(super) fn say(&self, word: Word) {
        let _ = self.writer.write(&CDR_LE, &word.encode(), Arc::new(Nothing), || {});
    }

    /// What others have said.
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

/// What is said is kept for the node's thread.
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

/// Somebody has come who has not heard what was said before.
struct Peers(Arc<Queue>);

impl Calls for Peers {
    fn matched(&self, _count: u32) {
        self.0.ask(Task::Peers);
    }
}

/// Nobody has to know.
struct Nothing;

impl Release for Nothing {
    fn released(&self, _bytes: usize) {}
}

/// Words that wait for the node's thread.
const HEARD_MAX: usize = 16_384;
/// No name of a topic of ours.
pub(super) const FLOW_TOPIC: &str = "myelin_flow";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_read_back_and_nothing_else_is_one() {
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
}
