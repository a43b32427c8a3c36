//! The word between nodes that a reliable subscriber is full, and that it has room again: what DDS
//! has no word for. CycloneDDS acknowledges what it has received, not what the subscriber had room
//! for; its own way to hold a publisher up is to stop receiving, all topics at once.

use std::sync::Arc;
use std::time::Duration;

use myelin_dds::{Calls, Guid, History, Participant, Reader, Release, Settings, Writer};

use super::queue::{Queue, Task};
use super::said;
use super::wire::{CDR_LE, HEADER_BYTES};
use crate::Error;

/// A node's end of it: all nodes of the domain write to and read one topic.
pub(super) struct Flow {
    writer: Writer,
    reader: Reader,
}

/// That a reader's subscriber is full, or no longer: for this writer to heed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) writer: Guid,
    pub(super) reader: Guid,
    pub(super) is_full: bool,
}

impl Flow {
    pub(super) fn create(
        participant: &Arc<Participant>,
        queue: &Arc<Queue>,
    ) -> Result<Flow, Error> {
        let settings = Settings {
            topic: "myelin_flow".to_owned(), // no name of a topic of ours
            type_name: "myelin::Flow1".to_owned(),
            partitions: Vec::new(),
            user_data: Vec::new(),
            reliable: true,
            history: History::KeepAll { samples_max: 0 },
            history_late: 0,
            block_max: Duration::ZERO,
        };
        let news = Box::new(News(queue.clone()));
        let reader = Reader::create(participant, &settings, news).map_err(said)?;
        let writer = Writer::create(participant, &settings, Box::new(Nothing)).map_err(said)?;
        Ok(Flow { writer, reader })
    }

    /// Says it to all; one who is not there to hear it hears it again.
    pub(super) fn say(&self, word: Word) {
        let _ = self.writer.write(&CDR_LE, &word.encode(), Arc::new(Nothing));
    }

    /// What others have said.
    pub(super) fn hear(&self) -> Vec<Word> {
        let messages = std::iter::from_fn(|| self.reader.take().ok().flatten());
        messages.filter_map(|message| Word::decode(message.bytes().get(HEADER_BYTES..)?)).collect()
    }
}

impl Word {
    fn encode(&self) -> Vec<u8> {
        [&self.writer[..], &self.reader, &[u8::from(self.is_full)]].concat()
    }

    fn decode(bytes: &[u8]) -> Option<Word> {
        let (writer, rest) = bytes.split_first_chunk()?;
        let (reader, rest) = rest.split_first_chunk()?;
        let [is_full @ (0 | 1)] = *rest else { return None };
        Some(Word { writer: *writer, reader: *reader, is_full: is_full == 1 })
    }
}

/// Something has been said. It is heard by the node's thread.
struct News(Arc<Queue>);

impl Calls for News {
    fn data(&self) {
        self.0.ask(Task::Flow);
    }
}

/// Nobody has to know.
struct Nothing;

impl Calls for Nothing {}

impl Release for Nothing {
    fn released(&self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_read_back_and_nothing_else_is_one() {
        let word = Word { writer: [1; 16], reader: [2; 16], is_full: true };
        assert_eq!(Word::decode(&word.encode()), Some(word));
        let bytes = word.encode();
        assert_eq!(Word::decode(&bytes[..32]), None);
        assert_eq!(Word::decode(&[&bytes[..32], &[2]].concat()), None);
        assert_eq!(Word::decode(&[&bytes[..], &[0]].concat()), None);
    }
}
