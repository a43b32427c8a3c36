//! The table that a node's wait sets sleep on. By it publishers notify the sets of the subscribers
//! that have something to take. A node has one table, and passes it to every publisher that
//! is matched with any of its subscribers. So a subscriber enters or leaves a wait set by a store
//! to its own memory.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Weak};

use crate::error::Error;
use crate::layout::{
    READY_TABLE_BYTES, READY_WORDS, ReadyTable, SET_HEADS_BYTES, SETS_MAX, SetHeads, set_number,
};
use crate::limits::ENDPOINTS_MAX;
use crate::os::fork;
use crate::os::segment::{Segment, Writers};
use crate::sync::{AtomicBool, AtomicU32, AtomicU64, Mutex, MutexGuard, Ordering, lock};
use crate::topic::EndpointId;
use crate::waiting::event_fd::EventFd;
use crate::waiting::notify::{self, Notifier};
use crate::waiting::sleep::{self, Sleep, WakeBy};
use crate::waiting::wait;
use crate::waiting::wake_pipe::{WakePipe, WakePipeWriter};

/// The node's side.
#[derive(Debug)]
pub struct WakeTable {
    heads: Segment,
    heads_fd: OwnedFd,
    ready: Segment,
    ready_fd: OwnedFd,
    /// Makes the descriptors of all sets readable, for this process and for publishers.
    pipe: WakePipe,
    pipe_fd: OwnedFd,
    used: Mutex<Used>,
    /// Those of the sets that have a descriptor.
    event_fds: Mutex<Vec<Weak<EventFd>>>,
    /// The node of the first publisher that was passed the table, and whether there have been
    /// others.
    publisher: AtomicU64,
    has_several: AtomicBool,
    fork: u32,
}

#[derive(Debug)]
struct Used {
    numbers: [u64; READY_WORDS],
    sets: [bool; SETS_MAX],
    /// No set that has gone has slept more often.
    sleeps: u64,
}

impl WakeTable {
    /// A table without subscribers and sets.
    pub fn create() -> Result<Arc<WakeTable>, Error> {
        let (heads, heads_fd) = Segment::create("myelin-sets", SET_HEADS_BYTES, Writers::Owner)?;
        let (ready, ready_fd) =
            Segment::create("myelin-ready", READY_TABLE_BYTES, Writers::Everyone)?;
        let (pipe, pipe_fd) = WakePipe::new()?;
        let (numbers, sets, sleeps) = ([0; READY_WORDS], [false; SETS_MAX], 0);
        Ok(Arc::new(WakeTable {
            heads,
            heads_fd,
            ready,
            ready_fd,
            pipe,
            pipe_fd,
            used: Mutex::new(Used { numbers, sets, sleeps }),
            event_fds: Mutex::default(),
            publisher: AtomicU64::new(0),
            has_several: AtomicBool::new(false),
            fork: fork::mark(),
        }))
    }

    /// Whether this is a child of the process that made it. Such a child writes nothing to the
    /// table.
    pub(crate) fn is_forked(&self) -> bool {
        fork::is_forked(self.fork)
    }

    /// The numbers in use, to give one back; not in a child of `fork`, where the lock may be held.
    fn used(&self) -> Option<MutexGuard<'_, Used>> {
        (!self.is_forked()).then(|| lock(&self.used))
    }

    /// Both segments and the pipe, to be passed to a publisher.
    pub(crate) fn passed_to(&self, publisher: EndpointId) -> [BorrowedFd<'_>; 3] {
        let (node, order) = (publisher >> 24, Ordering::Relaxed);
        let first = self.publisher.compare_exchange(0, node, order, order);
        if first.is_err_and(|first| first != node) {
            self.has_several.store(true, order);
        }
        [self.heads_fd.as_fd(), self.ready_fd.as_fd(), self.pipe_fd.as_fd()]
    }

    /// Whether one publisher's node could take away another's bits.
    pub(crate) fn has_several_publishers(&self) -> bool {
        // ORDER: Relaxed: a flag that is never cleared.
        self.has_several.load(Ordering::Relaxed)
    }

    /// The pipe that makes the descriptors of its sets readable.
    pub(crate) fn pipe(&self) -> &WakePipe {
        &self.pipe
    }

    /// Adds a set that has a descriptor from now on.
    pub(crate) fn add_descriptor(&self, event_fd: &Arc<EventFd>) {
        let mut event_fds = lock(&self.event_fds);
        event_fds.retain(|it| it.strong_count() > 0);
        event_fds.push(Arc::downgrade(event_fd));
    }

    /// Empties the pipe. It woke all sets that have a descriptor: those other than `own` are woken
    /// again.
    pub(crate) fn empty_pipe(&self, own: &Arc<EventFd>) {
        self.pipe.empty();
        let others = lock(&self.event_fds).clone();
        let others = others.iter().filter_map(Weak::upgrade);
        others.filter(|other| !Arc::ptr_eq(other, own)).for_each(|other| other.raise());
    }

    fn heads(&self) -> &SetHeads {
        // SAFETY: atomics in our own mapping, which was made for them.
        unsafe { self.heads.at(0) }
    }

    pub(crate) fn ready(&self) -> &ReadyTable {
        // SAFETY: as above.
        unsafe { self.ready.at(0) }
    }
}

/// A bit of the node's ready table, for a subscriber or a guard.
#[derive(Debug)]
pub(crate) struct ReadyBit {
    table: Arc<WakeTable>,
    number: u32,
}

impl ReadyBit {
    pub(crate) fn take(table: &Arc<WakeTable>) -> Result<ReadyBit, Error> {
        let mut used = lock(&table.used);
        let free = used.numbers.iter().position(|word| *word != u64::MAX);
        let word = free.ok_or(Error::TooMany {
            topic: None,
            what: "subscribers and guards of one node",
            limit: ENDPOINTS_MAX as u64,
        })?;
        let bit = used.numbers[word].trailing_ones();
        used.numbers[word] |= 1 << bit;
        Ok(ReadyBit { table: table.clone(), number: word as u32 * 64 + bit })
    }

    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    pub(crate) fn table(&self) -> &Arc<WakeTable> {
        &self.table
    }

    /// Makes a set look at it, even if others have done so already. Neither locks nor allocates.
    pub(crate) fn notify(&self, set: usize) {
        let table = &self.table;
        notify(table.heads(), table.ready(), table.pipe.end(), set, self.number, &Notifier::new());
    }
}

impl Drop for ReadyBit {
    fn drop(&mut self) {
        let (word, bit) = word_and_bit(self.number);
        if let Some(mut used) = self.table.used() {
            used.numbers[word] &= !bit;
        }
    }
}

/// The word and bit of a number.
pub(crate) fn word_and_bit(number: u32) -> (usize, u64) {
    (number as usize / 64, 1 << (number % 64))
}

/// A set's place in the table.
#[derive(Debug)]
pub(crate) struct WaitSetSlot {
    table: Arc<WakeTable>,
    set: u32,
    sleeps: u64,
}

impl WaitSetSlot {
    pub(crate) fn take(table: &Arc<WakeTable>) -> Result<WaitSetSlot, Error> {
        let mut used = lock(&table.used);
        let free = (0..SETS_MAX).map(set_number).find(|set| !used.sets[*set as usize]);
        let (what, limit) = ("wait sets and executors of one node", SETS_MAX as u64);
        let set = free.ok_or(Error::TooMany { topic: None, what, limit })?;
        used.sets[set as usize] = true;
        if cfg!(loom) {
            // In a model, the table's memory must be initialised before there are two threads.
            table.heads();
            table.ready();
        }
        Ok(WaitSetSlot { table: table.clone(), set, sleeps: used.sleeps })
    }

    pub(crate) fn set(&self) -> u32 {
        self.set
    }

    pub(crate) fn table(&self) -> &Arc<WakeTable> {
        &self.table
    }

    /// S1 and S2: announces that the set sleeps; returns the count to sleep on.
    pub(crate) fn fall_asleep(&mut self) -> u32 {
        self.fall_asleep_by(false)
    }

    /// The same for a set in a user's epoll: a waker makes its descriptor readable.
    pub(crate) fn fall_asleep_by_descriptor(&mut self) {
        self.fall_asleep_by(true);
    }

    fn fall_asleep_by(&mut self, descriptor: bool) -> u32 {
        self.sleeps += 1;
        let sleep = Sleep::of_set(self.sleeps, self.set, descriptor);
        sleep::fall_asleep(self.asleep(), self.wakes(), sleep)
    }

    /// Sleeps until it has been woken since `count`. False if the time was over.
    pub(crate) fn sleep(&self, count: u32, until_ns: u64) -> bool {
        wait::sleep(self.wakes(), count, until_ns)
    }

    /// The set's thread runs again.
    pub(crate) fn wake_up(&self) {
        sleep::wake_up_set(self.asleep());
    }

    fn asleep(&self) -> &AtomicU64 {
        &self.table.heads().asleep[self.set as usize]
    }

    fn wakes(&self) -> &AtomicU32 {
        &self.table.ready().wakes[self.set as usize]
    }
}

impl Drop for WaitSetSlot {
    fn drop(&mut self) {
        if let Some(mut used) = self.table.used() {
            used.sets[self.set as usize] = false;
            used.sleeps = used.sleeps.max(self.sleeps);
        }
    }
}

/// P8 for `number`, which is in `set`. Whether the set will certainly look.
pub(super) fn notify(
    heads: &SetHeads,
    ready: &ReadyTable,
    pipe: &WakePipeWriter,
    set: usize,
    number: u32,
    notifier: &Notifier,
) -> bool {
    let (word, bit) = word_and_bit(number);
    let wake = |by| match by {
        WakeBy::Descriptor => pipe.wake(),
        _ => wait::count_and_wake(&ready.wakes[set]),
    };
    notify::notify_set(&ready.ready[word], bit, &heads.asleep[set], notifier, wake)
}
