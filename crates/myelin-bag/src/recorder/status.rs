//! What the threads of a recorder share, and what they show of it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use super::buffer::Buffer;
use super::output::{Progress, RecordedTopic};
use super::records::Records;
use crate::recorded_losses::RecordedLosses;

/// How a recording goes.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Status {
    /// How long it has run.
    pub elapsed: Duration,
    /// Its topics, in the order in which they were found; one with several types stands there
    /// several times.
    pub topics: Vec<TopicStatus>,
    /// Messages in the recording, and those in memory that were given to its output.
    pub messages: u64,
    /// Bytes of their samples.
    pub bytes: u64,
    /// Messages that were left out because of a limit of their topic's rate.
    pub skipped: u64,
    /// RecordedLosses of all topics.
    pub losses: RecordedLosses,
    /// Bytes of samples that were taken and are not written yet.
    pub buffered_bytes: u64,
    /// Latched messages that were written again at the begin of further parts.
    pub repeated: u64,
    /// Its files.
    pub progress: Progress,
}

/// How the recording of a topic goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TopicStatus {
    /// Its name.
    pub name: String,
    /// The name of its type.
    pub type_name: String,
    /// Publishers that are there now.
    pub publishers: u64,
    /// Its messages in the recording.
    pub messages: u64,
    /// Bytes of their samples.
    pub bytes: u64,
    /// Messages that were left out because of its limit.
    pub skipped: u64,
    /// Messages that were published and are not in the recording.
    pub losses: RecordedLosses,
}

/// Why a recording has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum End {
    /// The program has ended it.
    Stopped,
    /// It has as many messages as were wanted.
    Count,
    /// Too little space would have been left on the disk.
    LittleSpace(String),
    /// Messages could not be written: a full disk, for example.
    Failed(String),
}

/// What all threads share.
pub(super) struct Shared {
    pub buffer: Buffer,
    pub records: Records,
    topics: RwLock<Vec<Arc<TopicState>>>,
    problems: Mutex<Vec<String>>,
    progress: Mutex<Progress>,
    end: Mutex<Option<End>>,
    pub is_ending: AtomicBool,
    /// Whether what is in the buffer is dropped instead of written.
    pub is_discarding: AtomicBool,
    pub repeated: AtomicU64,
}

/// A topic, and what has happened to its messages.
pub(super) struct TopicState {
    pub topic: RecordedTopic,
    pub publishers: AtomicU64,
    /// Given to the output; what it loses of them is among the losses.
    pub given: AtomicU64,
    pub given_bytes: AtomicU64,
    pub skipped: AtomicU64,
    pub publisher_ring: AtomicU64,
    pub recorder: AtomicU64,
    pub disk: AtomicU64,
}

impl Shared {
    pub(super) fn new(bytes_max: u64) -> Shared {
        Shared {
            buffer: Buffer::new(bytes_max),
            records: Records::default(),
            topics: RwLock::default(),
            problems: Mutex::default(),
            progress: Mutex::default(),
            end: Mutex::default(),
            is_ending: AtomicBool::new(false),
            is_discarding: AtomicBool::new(false),
            repeated: AtomicU64::new(0),
        }
    }

    /// Adds a topic; its number is the count before.
    pub(super) fn add_topic(&self, topic: RecordedTopic) -> (usize, Arc<TopicState>) {
        let state = Arc::new(TopicState::new(topic));
        let mut topics = self.topics.write().unwrap_or_else(PoisonError::into_inner);
        topics.push(state.clone());
        (topics.len() - 1, state)
    }

    /// The topics from this number on.
    pub(super) fn topics_from(&self, number: usize) -> Vec<Arc<TopicState>> {
        let topics = self.topics.read().unwrap_or_else(PoisonError::into_inner);
        topics.get(number..).unwrap_or_default().to_vec()
    }

    /// Ends the recording, unless it ends already.
    pub(super) fn end(&self, why: End) {
        lock(&self.end).get_or_insert(why);
        // ORDER: Relaxed: the threads look at it again and again, and `end` has a lock.
        self.is_ending.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_ending(&self) -> bool {
        self.is_ending.load(Ordering::Relaxed)
    }

    pub(super) fn why_ended(&self) -> Option<End> {
        lock(&self.end).clone()
    }

    /// Something that the user should know.
    pub(super) fn report(&self, problem: String) {
        let mut problems = lock(&self.problems);
        if problems.len() < PROBLEMS_MAX && !problems.contains(&problem) {
            problems.push(problem);
        }
    }

    pub(super) fn take_problems(&self) -> Vec<String> {
        std::mem::take(&mut *lock(&self.problems))
    }

    pub(super) fn set_progress(&self, progress: Progress) {
        *lock(&self.progress) = progress;
    }

    pub(super) fn status(&self, elapsed: Duration) -> Status {
        let mut status = Status {
            elapsed,
            buffered_bytes: self.buffer.bytes(),
            repeated: self.repeated.load(Ordering::Relaxed),
            progress: lock(&self.progress).clone(),
            ..Status::default()
        };
        // The first one is that of the losses.
        for topic in self.topics_from(1) {
            let topic = topic.status();
            status.messages += topic.messages;
            status.bytes += topic.bytes;
            status.skipped += topic.skipped;
            status.losses += topic.losses;
            status.topics.push(topic);
        }
        status
    }
}

impl TopicState {
    fn new(topic: RecordedTopic) -> TopicState {
        TopicState {
            topic,
            publishers: AtomicU64::new(0),
            given: AtomicU64::new(0),
            given_bytes: AtomicU64::new(0),
            skipped: AtomicU64::new(0),
            publisher_ring: AtomicU64::new(0),
            recorder: AtomicU64::new(0),
            disk: AtomicU64::new(0),
        }
    }

    pub(super) fn losses(&self) -> RecordedLosses {
        let [publisher_ring, recorder, disk] = [&self.publisher_ring, &self.recorder, &self.disk]
            .map(|count| count.load(Ordering::Relaxed));
        RecordedLosses { publisher_ring, recorder, disk }
    }

    fn status(&self) -> TopicStatus {
        let losses = self.losses();
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        TopicStatus {
            name: self.topic.name.clone(),
            type_name: self.topic.type_name.clone(),
            publishers: of(&self.publishers),
            messages: of(&self.given).saturating_sub(losses.disk),
            bytes: of(&self.given_bytes),
            skipped: of(&self.skipped),
            losses,
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Between two looks of the program.
const PROBLEMS_MAX: usize = 100;
