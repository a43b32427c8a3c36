//! One thread that waits for many things: subscribers, guards, timers.
//!
//! The cost of a wait depends on what is ready and not on what is watched. A member is *armed* once
//! nothing of it is left to take: its `asleep` names the set, and the next publisher sets its bit
//! in the node's ready table and notifies the set. Members whose bit is set, or that were reported
//! by the previous wait, are *looked at*: either they have news and are reported, or they are armed
//! again. No other member is looked at.
//!
//! One thread waits ([`WaitSet`]); any thread adds and removes meanwhile ([`WaitSetHandle`]).

mod handle;

use std::collections::{BinaryHeap, HashMap};
use std::ops::Deref;
use std::sync::{Arc, Weak};

use crate::data_plane::subscription::{PrefetchList, SubscriptionState, TRUST_NS};
use crate::error::Error;
use crate::node::Node;
use crate::os::prefetch;
use crate::sync::{AtomicBool, Ordering, Step, fence_of, is_taken, spin_loop};
pub use crate::wait_set::handle::WaitSetHandle;
use crate::wait_set::handle::{CLOSED, Change};
use crate::waiting::cancel;
use crate::waiting::notify;
use crate::waiting::set_descriptor::SetDescriptor;
use crate::waiting::strategy::{Ended, Strategy, Waiter};
use crate::waiting::wait::{self, LOOKS_PER_CLOCK_READ, NEVER, Wait};
use crate::waiting::wake_table::{ReadyBit, WaitSetSlot, WakeTable, word_and_bit};

/// Identifies a member of a wait set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(u64);

impl Key {
    /// How many members had been added to the set before this one, including those that have gone.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Waits for any number of subscribers of its node, of guards and of timers. One thread waits; the
/// set dereferences to its [handle](WaitSetHandle), by which any thread changes the members.
pub struct WaitSet {
    slot: WaitSetSlot,
    handle: WaitSetHandle,
    /// By number.
    members: Vec<Option<Member>>,
    numbers: HashMap<Key, u32>,
    /// Words of the ready table in which members have bits, with these.
    words: Vec<(usize, u64)>,
    /// Members that are not armed; and those that a look is about to arm.
    loose: Vec<u32>,
    quiet: Vec<u32>,
    timers: BinaryHeap<Timer>,
    /// When the timers in `ready` were due.
    due: Vec<(Key, u64)>,
    /// Whether a look has found changes to apply.
    has_changes: bool,
    is_closed: bool,
    strategy: Strategy,
    /// The members that the running wait, or the last one, reports.
    ready: Vec<Key>,
    /// The subscribers, if they are few: the next sample of each is predicted.
    streams: Vec<Key>,
    sweep: Sweep,
    /// The publisher that is to publish next, for all we know: the last one, by member and connection.
    last: Option<(u32, u32)>,
    descriptor: Option<SetDescriptor>,
}

struct Member {
    key: Key,
    /// Not given to another member until the set has released it.
    number: Arc<ReadyBit>,
    what: Watched,
    /// The set does not look at it before it is resumed.
    is_paused: Arc<AtomicBool>,
    /// The addresses that the next look at it will read.
    next: PrefetchList,
}

/// A member that its set does not report, because a thread is working on it. The set looks at it
/// again when this is dropped, by any thread.
#[derive(Debug)]
pub struct Paused {
    number: Arc<ReadyBit>,
    set: u32,
    is_paused: Arc<AtomicBool>,
}

impl Drop for Paused {
    fn drop(&mut self) {
        if !self.number.table().is_forked() {
            // ORDER: Release pairs with the acquire in `take_news`: the takes made meanwhile are
            // seen.
            self.is_paused.store(false, Ordering::Release);
            self.number.notify(self.set as usize);
        }
    }
}

impl Member {
    fn new(key: Key, number: Arc<ReadyBit>, what: Watched) -> Member {
        let is_paused = Arc::new(AtomicBool::new(false));
        Member { key, number, what, is_paused, next: PrefetchList::default() }
    }

    /// Fetches into the caches everything that a look and a take will read, all at once.
    #[inline(always)]
    fn prefetch(&self) {
        if let Watched::Subscriber(shared) = &self.what {
            SubscriptionState::prefetch(shared.as_ptr());
            prefetch::to_read(Arc::as_ptr(&self.is_paused).cast());
            self.next.prefetch();
        }
    }

    /// Finds ready bits that one of its publishers has taken away from another.
    fn look_for_overlooked(&self) {
        if let Watched::Subscriber(shared) = &self.what
            && let Some(shared) = shared.upgrade()
        {
            shared.look_for_overlooked();
        }
    }

    /// The set no longer watches the subscriber. A bit that the set has taken may have been for
    /// another set that the subscriber is in by now, so that set is woken.
    fn pass_on(&self, set: u32) {
        if let Watched::Subscriber(shared) = &self.what
            && let Some(shared) = shared.upgrade()
            && shared.set().is_some_and(|its| its != set)
        {
            shared.notify_set();
        }
    }
}

enum Watched {
    Subscriber(Weak<SubscriptionState>),
    Guard(Weak<Triggered>),
    /// The set's own bit: there are changes to apply.
    Changes,
}

struct Triggered {
    number: Arc<ReadyBit>,
    set: u32,
    /// Triggered since the last wait that has reported it.
    is_set: AtomicBool,
    /// Whether waits report it until it is [reset](Guard::reset); otherwise once.
    is_kept: bool,
}

/// Ends a wait of its set: the wait reports the guard's key. Clones are the same guard. Any thread
/// may trigger it, and a signal handler. It ends with its last clone.
#[derive(Clone)]
pub struct Guard {
    key: Key,
    triggered: Arc<Triggered>,
}

impl Guard {
    /// The key that the set reports.
    pub fn key(&self) -> Key {
        self.key
    }

    /// Ends the running wait, or else the next one. Neither waits nor allocates.
    pub fn trigger(&self) {
        if self.triggered.number.table().is_forked() {
            return;
        }
        // ORDER: Release pairs with the acquire in `take_news`: the woken thread sees everything
        // written before.
        self.triggered.is_set.store(true, Ordering::Release);
        self.triggered.number.notify(self.triggered.set as usize);
    }

    /// Whether it was triggered since the last wait that has reported it.
    #[inline]
    pub fn is_triggered(&self) -> bool {
        // ORDER: Acquire pairs with the release in `trigger`.
        self.triggered.is_set.load(Ordering::Acquire)
    }

    /// Ends its triggered state.
    pub fn reset(&self) {
        self.triggered.is_set.store(false, Ordering::Relaxed);
    }
}

impl Drop for Triggered {
    fn drop(&mut self) {
        if !self.number.table().is_forked() {
            self.number.notify(self.set as usize); // the set then releases it
        }
    }
}

impl std::fmt::Debug for Guard {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Guard").field("key", &self.key).finish_non_exhaustive()
    }
}

/// The timer that is due next is the greatest.
#[derive(PartialEq, Eq)]
struct Timer {
    due_ns: u64,
    period_ns: u64,
    key: Key,
}

impl Ord for Timer {
    fn cmp(&self, other: &Timer) -> std::cmp::Ordering {
        (other.due_ns, other.key).cmp(&(self.due_ns, self.key))
    }
}

impl PartialOrd for Timer {
    fn partial_cmp(&self, other: &Timer) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// Looks at all members once in a while, a few at a time: with publishers in several processes, one
/// could take away another's bit (`docs/explanation/shared-memory.md` section 10).
#[derive(Default)]
struct Sweep {
    /// The position and the time of the last part.
    at: usize,
    at_ns: u64,
}

/// The result of a look at a member.
enum News {
    Some,
    None,
    /// The member is paused.
    Paused,
    /// The member does not exist any more.
    Gone,
}

impl WaitSet {
    /// A set without members.
    ///
    /// # Errors
    /// [`Error::TooMany`]: a node has at most 1,024. Errors of memory and of the limit of open
    /// files.
    pub fn create(node: &Node) -> Result<WaitSet, Error> {
        WaitSet::of(&node.wake_table()?)
    }

    /// A set without members, of the node that `table` belongs to.
    ///
    /// # Errors
    /// As for [`create`](Self::create).
    pub fn of(table: &Arc<WakeTable>) -> Result<WaitSet, Error> {
        let slot = WaitSetSlot::take(table)?;
        let handle = WaitSetHandle::new(table, slot.set())?;
        let own = Member::new(OWN, handle.own().clone(), Watched::Changes);
        let mut set = WaitSet {
            slot,
            handle,
            members: Vec::new(),
            numbers: HashMap::new(),
            words: Vec::new(),
            loose: Vec::new(),
            quiet: Vec::new(),
            timers: BinaryHeap::new(),
            due: Vec::new(),
            has_changes: false,
            is_closed: false,
            strategy: Strategy::default(),
            ready: Vec::new(),
            streams: Vec::new(),
            sweep: Sweep::default(),
            last: None,
            descriptor: None,
        };
        set.insert(own);
        Ok(set)
    }

    /// The handle for other threads, which changes the members.
    pub fn handle(&self) -> &WaitSetHandle {
        &self.handle
    }

    /// Stops reporting a member until the result is dropped. `None` if it is not a subscriber of
    /// the set.
    pub fn pause(&self, key: Key) -> Option<Paused> {
        let number = *self.numbers.get(&key)?;
        let member = self.members[number as usize].as_ref()?;
        if !matches!(member.what, Watched::Subscriber(_)) {
            return None;
        }
        let (number, is_paused) = (member.number.clone(), member.is_paused.clone());
        is_paused.store(true, Ordering::Relaxed);
        Some(Paused { number, set: self.slot.set(), is_paused })
    }

    /// Waits until at least one member has news; reports all that have. The next wait reports a
    /// member again as long as something of it is left to take. Empty once `CLOCK_MONOTONIC` reads
    /// `until_ns`.
    ///
    /// # Errors
    /// [`Error::Closed`], [`Error::Forked`].
    pub fn wait(&mut self, how: Wait, until_ns: u64) -> Result<&[Key], Error> {
        self.wait_by(|| how, until_ns)
    }

    /// Like `wait`; `how` is called again if the [handle](WaitSetHandle::wait_anew) requests it.
    ///
    /// # Errors
    /// As for [`wait`](Self::wait).
    #[inline]
    pub fn wait_by(&mut self, how: impl Fn() -> Wait, until_ns: u64) -> Result<&[Key], Error> {
        if self.is_closed || self.slot.table().is_forked() {
            return Err(if self.is_closed { CLOSED } else { Error::Forked });
        }
        self.ready.clear();
        self.due.clear();
        loop {
            if until_ns != NEVER && wait::now_ns() >= until_ns {
                self.glance();
            } else {
                let mut strategy = std::mem::take(&mut self.strategy);
                strategy.wait(how(), self, until_ns);
                self.strategy = strategy;
            }
            if !self.has_changes {
                break;
            }
            self.take_changes()?;
            if !self.ready.is_empty() {
                break;
            }
        }
        if self.descriptor.is_some() {
            self.settle_descriptor();
        }
        Ok(&self.ready)
    }

    /// The members that the last wait, or the last look at the timers, has reported.
    pub fn ready(&self) -> &[Key] {
        &self.ready
    }

    /// Whether news has come since the last wait. Members that the last wait has reported do not
    /// count.
    #[inline]
    pub fn has_news(&self) -> bool {
        self.has_ready_bits()
    }

    /// Whether a timer is due. The clock is read only if there are timers.
    #[inline]
    pub fn has_due_timer(&self) -> bool {
        self.timers.peek().is_some_and(|timer| timer.due_ns <= wait::now_ns())
    }

    /// The timers that are due, without a look at anything else.
    #[inline]
    pub fn due_timers(&mut self) -> &[Key] {
        self.ready.clear();
        self.due.clear();
        if !self.timers.is_empty() {
            self.look_at_timers();
        }
        &self.ready
    }

    /// When a timer that the last wait, or the last look at the timers, has reported was due: by
    /// `CLOCK_MONOTONIC`, in ns.
    pub fn due_ns(&self, key: Key) -> Option<u64> {
        self.due.iter().find(|(timer, _)| *timer == key).map(|(_, due_ns)| *due_ns)
    }

    #[cold]
    fn take_changes(&mut self) -> Result<(), Error> {
        self.has_changes = false;
        let Some(changes) = self.handle.take_changes() else {
            self.is_closed = true;
            self.ready.clear();
            self.members.clear();
            return Err(CLOSED);
        };
        for change in changes {
            match change {
                Change::Insert(member) => self.insert(member),
                Change::Timer(timer) => self.timers.push(timer),
                Change::Remove(key) => {
                    self.timers.retain(|timer| timer.key != key);
                    self.ready.retain(|ready| *ready != key);
                    if let Some(number) = self.numbers.get(&key).copied() {
                        self.forget(number);
                    }
                }
                Change::Descriptor(descriptor) => self.descriptor = Some(descriptor),
            }
        }
        self.reset_predictions();
        // A new member is not armed before a wait has looked at it.
        if let Some(descriptor) = &mut self.descriptor {
            descriptor.raise();
        }
        Ok(())
    }

    /// Makes the descriptor readable while something is left to report; arms it otherwise.
    #[cold]
    fn settle_descriptor(&mut self) {
        let timer_ns = match self.sweeps() {
            true => self.next_timer_ns().min(wait::now_ns() + TRUST_NS),
            false => self.next_timer_ns(),
        };
        let Some(descriptor) = self.descriptor.as_mut() else { return };
        if self.ready.is_empty() {
            descriptor.lower(timer_ns);
            self.slot.fall_asleep_by_descriptor();
            // S2: a publisher that has not seen that has set a bit before.
            if !self.has_ready_bits() || !self.look() {
                return;
            }
        }
        self.descriptor.as_mut().expect("the wait set has a descriptor").raise();
    }

    /// A look without a wait.
    fn glance(&mut self) {
        if self.sweeps() {
            self.sweep(wait::now_ns());
        }
        self.look();
    }

    fn insert(&mut self, member: Member) {
        let number = member.number.number();
        let at = number as usize;
        if self.members.len() <= at {
            self.members.resize_with(at + 1, || None);
        }
        self.numbers.insert(member.key, number);
        self.members[at] = Some(member);
        let (word, bit) = word_and_bit(number);
        match self.words.iter_mut().find(|(known, _)| *known == word) {
            Some((_, mask)) => *mask |= bit,
            None => self.words.push((word, bit)),
        }
        self.loose.push(number);
    }

    /// The members have changed: the predictions start from the beginning.
    fn reset_predictions(&mut self) {
        let is_subscriber = |it: &&Member| matches!(it.what, Watched::Subscriber(_));
        let subscribers = self.members.iter().flatten().filter(is_subscriber);
        self.streams = subscribers.map(|it| it.key).take(STREAMS_MAX + 1).collect();
        if self.streams.len() > STREAMS_MAX {
            self.streams.clear();
        }
        self.strategy = Strategy::default();
    }

    fn forget(&mut self, number: u32) {
        let Some(member) = self.members[number as usize].take() else { return };
        self.numbers.remove(&member.key);
        let (word, bit) = word_and_bit(number);
        self.words.iter_mut().filter(|(at, _)| *at == word).for_each(|(_, mask)| *mask &= !bit);
        self.words.retain(|(_, mask)| *mask != 0);
        self.loose.retain(|at| *at != number);
        member.pass_on(self.slot.set());
    }

    /// A look has found that a member is gone.
    #[cold]
    fn lose(&mut self, number: u32) {
        if let Some(member) = &self.members[number as usize] {
            self.handle.forget(member.key);
            self.forget(number);
            self.reset_predictions();
        }
    }

    /// Whether news has been reported to the set.
    #[inline]
    fn has_ready_bits(&self) -> bool {
        let ready = &self.slot.table().ready().ready;
        // ORDER: Relaxed: `collect` acquires.
        self.words.iter().any(|(word, mask)| ready[*word].load(Ordering::Relaxed) & mask != 0)
    }

    /// Looks at the members that are not armed, and at those with news. True if there is something
    /// to report, or a change to apply.
    fn look(&mut self) -> bool {
        if !self.timers.is_empty() {
            self.look_at_timers();
        }
        for (word, mask) in &self.words {
            let mut bits = notify::collect(&self.slot.table().ready().ready[*word], *mask);
            while bits != 0 {
                let number = *word as u32 * 64 + bits.trailing_zeros();
                if let Some(Some(member)) = self.members.get(number as usize) {
                    member.prefetch();
                }
                self.loose.push(number);
                bits &= bits - 1;
            }
        }
        if !self.loose.is_empty() {
            self.look_at_loose();
        }
        !self.ready.is_empty() || self.has_changes
    }

    fn look_at_loose(&mut self) {
        let (mut loose, mut quiet) =
            (std::mem::take(&mut self.loose), std::mem::take(&mut self.quiet));
        loose.sort_unstable();
        loose.dedup();
        // A member with news is not armed before the next wait.
        loose.retain(|number| match self.take_news(*number) {
            News::Some => true,
            News::None => {
                self.arm(*number);
                quiet.push(*number);
                false
            }
            News::Paused => false, // the thread that resumes it wakes the set
            News::Gone => {
                self.lose(*number);
                false
            }
        });
        // ORDER: pairs with the publisher's fence P7: either the publisher sees that the member is
        // armed, or we see its sample.
        fence_of(Step::Arm);
        for number in quiet.drain(..) {
            if matches!(self.take_news(number), News::Some) {
                loose.push(number);
            }
        }
        (self.loose, self.quiet) = (loose, quiet);
    }

    /// Whether a member has news; if so, it is reported.
    fn take_news(&mut self, number: u32) -> News {
        let Some(Some(member)) = self.members.get_mut(number as usize) else {
            return News::Gone;
        };
        // ORDER: Acquire pairs with the release in `Paused`.
        if member.is_paused.load(Ordering::Acquire) {
            return News::Paused;
        }
        let is_news = match &member.what {
            Watched::Subscriber(shared) => {
                let shared = shared.upgrade();
                let Some(shared) = shared.filter(|it| it.set() == Some(self.slot.set())) else {
                    return News::Gone;
                };
                shared.take_news(&mut member.next, |connection| {
                    self.last = Some((number, connection));
                })
            }
            Watched::Guard(triggered) => {
                let Some(triggered) = triggered.upgrade() else { return News::Gone };
                // ORDER: Relaxed: the thread that reported it had written it before. Acquire pairs
                // with the release in `trigger`.
                let is_set = &triggered.is_set;
                is_set.load(Ordering::Acquire)
                    && (triggered.is_kept || is_set.swap(false, Ordering::Acquire))
            }
            Watched::Changes => {
                self.has_changes |= self.handle.is_changed();
                false
            }
        };
        match is_news {
            true => {
                self.ready.push(member.key);
                News::Some
            }
            false => News::None,
        }
    }

    fn arm(&self, number: u32) {
        if let Some(Member { what: Watched::Subscriber(shared), .. }) =
            &self.members[number as usize]
            && let Some(shared) = shared.upgrade()
        {
            shared.arm(self.slot.set());
        }
    }

    fn look_at_timers(&mut self) {
        let now_ns = wait::now_ns();
        while let Some(mut timer) = self.timers.peek_mut()
            && timer.due_ns <= now_ns
        {
            self.due.push((timer.key, timer.due_ns));
            let periods = (now_ns - timer.due_ns) / timer.period_ns + 1;
            let due_ns = timer.due_ns.saturating_add(periods.saturating_mul(timer.period_ns));
            timer.due_ns = due_ns;
            self.ready.push(timer.key);
        }
    }

    fn next_timer_ns(&self) -> u64 {
        self.timers.peek().map_or(NEVER, |timer| timer.due_ns)
    }

    /// Whether one publisher's node could take away another's bits.
    fn sweeps(&self) -> bool {
        self.slot.table().has_several_publishers()
    }

    /// Adds the members that are due to those to be looked at.
    fn sweep(&mut self, now_ns: u64) {
        let elapsed_ns = now_ns.saturating_sub(self.sweep.at_ns).min(TRUST_NS);
        let due = self.members.len() as u64 * elapsed_ns / TRUST_NS;
        if due == 0 {
            return;
        }
        self.sweep.at_ns = now_ns;
        for _ in 0..due {
            self.sweep.at = (self.sweep.at + 1) % self.members.len();
            if let Some(member) = &self.members[self.sweep.at] {
                member.look_for_overlooked();
                self.loose.push(self.sweep.at as u32);
            }
        }
    }
}

/// The key of the set's own bit, which is never reported.
const OWN: Key = Key(u64::MAX);
/// So many subscribers are predicted separately. Each takes a fit, some µs, for each of its
/// samples.
const STREAMS_MAX: usize = 8;

/// Waiting for any of its members.
impl Waiter for WaitSet {
    fn is_ready(&mut self) -> bool {
        self.look()
    }

    fn now_ns(&self) -> u64 {
        wait::now_ns()
    }

    /// S1 to S3.
    fn sleep(&mut self, until_ns: u64) -> Ended {
        loop {
            let count = self.slot.fall_asleep();
            let mut bound_ns = until_ns.min(self.next_timer_ns());
            if self.sweeps() {
                bound_ns = bound_ns.min(wait::now_ns() + TRUST_NS);
            }
            let has_ready_bits = is_taken(Step::S3) && self.has_ready_bits();
            let slept = has_ready_bits || self.slot.sleep(count, cancel::slice_end_ns(bound_ns));
            self.slot.wake_up();
            if self.sweeps() {
                self.sweep(wait::now_ns());
            }
            if self.look() {
                return if slept { Ended::Sample } else { Ended::SampleAtTime };
            }
            if cancel::is_cancelled() {
                return Ended::Stopped;
            }
            // Checked even after a notification: notifications may never end.
            if wait::now_ns() >= until_ns || self.slot.table().is_forked() {
                return Ended::Time;
            }
        }
    }

    fn spin(&mut self, until_ns: u64) -> Ended {
        if self.look() {
            return Ended::Sample;
        }
        let mut slice_end_ns = cancel::slice_end_ns(until_ns);
        loop {
            for _ in 0..LOOKS_PER_CLOCK_READ {
                if self.has_ready_bits() && self.look() {
                    return Ended::Sample;
                }
                spin_loop();
            }
            let now_ns = wait::now_ns();
            if self.sweeps() {
                self.sweep(now_ns);
            }
            let is_late = now_ns >= until_ns;
            let may_be_more = is_late || !self.loose.is_empty() || now_ns >= self.next_timer_ns();
            if may_be_more && self.look() {
                return Ended::Sample;
            }
            if is_late {
                return Ended::Time;
            }
            if now_ns >= slice_end_ns {
                if cancel::is_cancelled() {
                    return Ended::Stopped;
                }
                slice_end_ns = cancel::slice_end_ns(until_ns);
            }
        }
    }

    /// Whether the last publisher ran on the CPU we are on: it cannot publish while we spin.
    fn may_spin(&self) -> bool {
        let cpu_of_last = || {
            let (number, connection) = self.last?;
            let Some(Some(Member { what: Watched::Subscriber(last), .. })) =
                self.members.get(number as usize)
            else {
                return None;
            };
            last.upgrade()?.cpu_of(connection)
        };
        cpu_of_last() != Some(wait::cpu())
    }

    fn streams(&self) -> usize {
        self.streams.len().max(1)
    }

    fn has_come(&self, stream: usize) -> bool {
        self.streams.get(stream).is_none_or(|key| self.ready.contains(key))
    }
}

impl Deref for WaitSet {
    type Target = WaitSetHandle;

    fn deref(&self) -> &WaitSetHandle {
        &self.handle
    }
}

impl Drop for WaitSet {
    fn drop(&mut self) {
        self.handle.close();
    }
}

impl std::fmt::Debug for WaitSet {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("WaitSet").field("words", &self.words).finish_non_exhaustive()
    }
}
