//! How a subscriber sleeps and is woken: the word by which it says that it sleeps, the wait set
//! that it is in, its descriptor, and the requests of other threads to end a wait.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use super::memory::SubscriptionMemory;
use crate::error::Error;
use crate::layout::{CONNECTION_WORDS, WAKE_SEGMENT_BYTES, WakeWord};
use crate::os::segment::{Segment, Writers};
use crate::sync::{AtomicBool, AtomicU32, AtomicU64, Ordering, Step, is_taken};
use crate::waiting::interrupt::SubscriberWaker;
use crate::waiting::sleep::{self, Sleep};
use crate::waiting::subscriber_descriptor::SubscriberDescriptor;
use crate::waiting::wait;
use crate::waiting::wake_table::ReadyBit;

/// A subscriber's sleep.
#[repr(C)] // a look and a take read the first fields
pub(crate) struct Sleeper {
    pub(super) waker: Arc<SubscriberWaker>,
    descriptor: Option<Arc<SubscriberDescriptor>>,
    memory: Arc<SubscriptionMemory>,
    /// Counts all its sleeps.
    sleeps: AtomicU64,
    /// Whether a new publisher ends the wait, too.
    pub(super) interrupted_by_matches: AtomicBool,
    wake_word_fd: OwnedFd,
}

/// A subscriber that has said that it sleeps, and found no sample after that.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asleep {
    /// The wake word's count to sleep on.
    count: u32,
    /// When to look again without a notification.
    until_ns: u64,
}

impl Asleep {
    /// `publishers`: how many could notify. One of several publishers could reset the wake word
    /// just when another has notified it, so no subscriber sleeps long on their word:
    /// `docs/explanation/shared-memory.md` section 10.
    pub(crate) fn new(count: u32, publishers: usize) -> Asleep {
        let until_ns = match publishers {
            0 | 1 => wait::NEVER,
            _ => wait::now_ns() + TRUST_NS,
        };
        Asleep { count, until_ns }
    }

    /// Limits the sleep to this time.
    pub(crate) fn until(self, until_ns: u64) -> Asleep {
        Asleep { until_ns: self.until_ns.min(until_ns), ..self }
    }
}

/// How long a subscriber of several publishers, or a wait set, sleeps without a look.
pub(crate) const TRUST_NS: u64 = 100_000_000;

impl Sleeper {
    /// `ready_bit`: its number in its node, and its bit there.
    pub(super) fn create(
        ready_bit: Arc<ReadyBit>,
        descriptor: Option<Arc<SubscriberDescriptor>>,
        memory: &Arc<SubscriptionMemory>,
    ) -> Result<Sleeper, Error> {
        let (segment, wake_word_fd) =
            Segment::create("myelin-wake-word", WAKE_SEGMENT_BYTES, Writers::Everyone)?;
        let waker = Arc::new(SubscriberWaker {
            segment,
            descriptor: descriptor.clone(),
            ready_bit,
            set: AtomicU32::new(0),
            interrupted: AtomicBool::new(false),
        });
        if cfg!(loom) {
            waker.wake_word(); // initialises the memory early, as in a publication
        }
        Ok(Sleeper {
            waker,
            descriptor,
            memory: memory.clone(),
            sleeps: AtomicU64::new(0),
            interrupted_by_matches: AtomicBool::new(false),
            wake_word_fd,
        })
    }

    pub(super) fn wake_word_fd(&self) -> BorrowedFd<'_> {
        self.wake_word_fd.as_fd()
    }

    #[inline(always)]
    pub(crate) fn descriptor(&self) -> Option<&SubscriberDescriptor> {
        self.descriptor.as_deref()
    }

    /// From now on a wait ends when a publisher comes.
    pub(crate) fn interrupt_by_matches(&self) {
        self.interrupted_by_matches.store(true, Ordering::Relaxed);
    }

    /// S1 and S2: says that it sleeps, and returns the wake word's count to sleep on.
    pub(crate) fn fall_asleep(&self, sleep: Sleep) -> u32 {
        sleep::fall_asleep(&self.memory.head().asleep, &self.wake_word().wakes, sleep)
    }

    /// Whether it still sleeps as it said, on this count, and nobody has notified it.
    pub(crate) fn is_still(&self, sleep: Sleep, count: u32) -> bool {
        self.memory.head().asleep.load(Ordering::Relaxed) == sleep.0
            && self.wake_word().wakes.load(Ordering::Relaxed) == count
    }

    /// Sleeps until it has been woken since the subscriber fell asleep. False if the time was over.
    pub(crate) fn sleep(&self, asleep: Asleep) -> bool {
        wait::sleep(&self.wake_word().wakes, asleep.count, asleep.until_ns)
    }

    /// The same, and until `word` is no longer `value`.
    pub(crate) fn sleep_also_on(&self, asleep: Asleep, word: &AtomicU64, value: u32) -> bool {
        let wake_word = (&self.wake_word().wakes as _, asleep.count);
        wait::sleep_on_two([wake_word, (word, value)], asleep.until_ns)
    }

    /// The subscriber's thread runs again after [`fall_asleep`](Self::fall_asleep).
    pub(crate) fn wake_up(&self) {
        sleep::wake_up(&self.memory.head().asleep);
    }

    /// Says whether its publishers are many: each must then set its ready bit.
    pub(super) fn set_many(&self, are_many: bool) {
        sleep::set_many(&self.memory.head().asleep, are_many);
    }

    /// The number of its next sleep.
    pub(crate) fn next_sleep(&self) -> u64 {
        if !is_taken(Step::S1) {
            return 1;
        }
        // ORDER: Relaxed: the numbers only have to differ.
        self.sleeps.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Its number in the node whose wait sets it can be in, and its bit there.
    pub(crate) fn ready_bit(&self) -> &Arc<ReadyBit> {
        &self.waker.ready_bit
    }

    /// The wait set it is in.
    pub(crate) fn set(&self) -> Option<u32> {
        self.waker.set()
    }

    /// Enters a wait set; false if it is in another one.
    pub(crate) fn enter(&self, set: u32) -> bool {
        let (its, order) = (&self.waker.set, Ordering::Relaxed);
        its.compare_exchange(0, set + 1, order, order).is_ok()
    }

    /// Leaves a wait set.
    pub(crate) fn leave(&self, set: u32) {
        let (its, order) = (&self.waker.set, Ordering::Relaxed);
        if its.compare_exchange(set + 1, 0, order, order).is_ok() {
            sleep::disarm(&self.memory.head().asleep, set);
        }
    }

    /// Leaves the wait set it is in, if any, because it will be waited for in another way.
    pub(crate) fn leave_set(&self) {
        if let Some(set) = self.set() {
            self.leave(set);
            self.ready_bit().notify(set as usize);
        }
    }

    /// Says that its set must be woken when something comes.
    pub(crate) fn arm(&self, set: u32) {
        sleep::arm(&self.memory.head().asleep, Sleep::new(self.next_sleep(), Some(set)));
    }

    /// Makes its wait set look at it, if it is in one.
    pub(crate) fn notify_set(&self) {
        self.waker.notify_set();
    }

    /// The ready bits of its publishers, which all of them may write.
    pub(crate) fn ready(&self) -> &[AtomicU64; CONNECTION_WORDS] {
        &self.waker.words().ready
    }

    fn wake_word(&self) -> &WakeWord {
        self.waker.wake_word()
    }
}
