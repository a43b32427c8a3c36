//! A subscriber's taking side: its publishers in turn, and the ways to wait for a sample.

mod handover;
mod many;

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::task::Waker;

use self::many::Many;
use crate::data_plane::publisher_cursor::PublisherCursor;
use crate::data_plane::raw_sample::RawSample;
use crate::data_plane::remote_publisher::RemotePublisher;
use crate::data_plane::subscription::{Asleep, SubscriptionState};
use crate::error::Error;
use crate::event::Event;
use crate::layout::PublicationHead;
use crate::sync::{Ordering, Step, fence, is_taken, load_acquire, spin_loop};
use crate::topic::{EndpointId, Reliability, SubscriberQos, Topic};
use crate::waiting::cancel;
use crate::waiting::sleep::{self, Sleep};
use crate::waiting::strategy::{Ended, Strategy, Waiter};
use crate::waiting::subscriber_descriptor::SubscriberDescriptor;
use crate::waiting::wait::{self, LOOKS_PER_CLOCK_READ, NEVER, Wait};
use crate::waiting::wake_table::WakeTable;

/// The taking side. Used by one thread at a time.
pub struct Reader {
    shared: Arc<SubscriptionState>,
    connections: Vec<PublisherCursor>,
    /// Where the next take begins to look, if the publishers are few.
    turn: usize,
    /// State for many publishers, if they are many.
    many: Option<Box<Many>>,
    strategy: Strategy,
    /// The last sleep, and the wake word's count when it began.
    sleep: Sleep,
    count: u32,
    /// Counts the changes to `connections`.
    changes: u32,
}

impl Reader {
    /// A subscriber of `topic` without publishers, of the node that `table` belongs to.
    pub fn create(
        id: EndpointId,
        topic: &Topic,
        qos: SubscriberQos,
        table: &Arc<WakeTable>,
    ) -> Result<(Reader, Arc<SubscriptionState>), Error> {
        let shared = SubscriptionState::create(id, topic, qos, table)?;
        let reader = Reader {
            shared: shared.clone(),
            connections: Vec::with_capacity(1), // this capacity lets the first take allocate nothing
            turn: 0,
            many: None,
            strategy: Strategy::default(),
            sleep: Sleep::AWAKE,
            count: 0,
            changes: 0,
        };
        Ok((reader, shared))
    }

    /// The state that its node shares with it.
    pub fn shared(&self) -> &Arc<SubscriptionState> {
        &self.shared
    }

    /// How many samples it has lost so far, from all publishers; counted when the next sample is
    /// taken.
    pub fn lost(&self) -> u64 {
        self.shared.lost()
    }

    /// Readable when there may be a sample; see [`SubscriberQos::descriptor`]. Take until nothing
    /// is left, then wait for it again.
    pub fn event(&self) -> Option<BorrowedFd<'_>> {
        self.shared.event()
    }

    /// The next sample, if there is one. It takes from its publishers in turn; samples of one
    /// publisher come in order.
    ///
    /// # Errors
    /// [`Error::TooManyHeld`]: the sample stays where it is. [`Error::PeerCorrupt`]: its publisher
    /// is disconnected.
    #[inline]
    pub fn take(&mut self) -> Result<Option<RawSample>, Error> {
        let mut taken = RawSample::empty();
        if self.take_into(&mut taken)? { Ok(Some(taken)) } else { Ok(None) }
    }

    /// Like [`take`](Self::take), directly into a buffer. The buffer's previous sample is released
    /// first. Whether there is a sample now.
    ///
    /// # Errors
    /// As for [`take`](Self::take); the buffer is empty then.
    #[inline]
    pub fn take_into(&mut self, into: &mut RawSample) -> Result<bool, Error> {
        into.release();
        let is_taken = self.take_now(into)?;
        let may_be_more = !is_taken && self.shared.descriptor().is_some();
        if may_be_more && self.arm() { self.take_now(into) } else { Ok(is_taken) }
    }

    /// Whether there are published samples that have not been taken. A take does not find a sample
    /// in a new slot segment before the node's thread has mapped the segment; then a wait ends, and
    /// a take finds it. If a caller knows by other means that a publisher has ended, false means
    /// that all its samples have been taken.
    pub fn has_unread(&mut self) -> bool {
        if self.shared.is_forked() {
            return false;
        }
        self.keep_up();
        self.connections.iter_mut().any(PublisherCursor::has_unread)
    }

    /// The next sample, if there is one; otherwise `waker` is woken once when there may be one. The
    /// subscriber is in the wait set `set`; `watch` makes its thread wake the waker.
    ///
    /// # Errors
    /// As for [`take`](Self::take).
    pub(crate) fn take_or_wake(
        &mut self,
        set: u32,
        watch: impl FnOnce(&Arc<SubscriptionState>),
        waker: &Waker,
    ) -> Result<Option<RawSample>, Error> {
        let mut taken = RawSample::empty();
        if self.take_now(&mut taken)? {
            return Ok(Some(taken));
        }
        watch(&self.shared);
        if self.fall_asleep_in(Some(set)).is_some() {
            return Ok(None);
        }
        if self.take_now(&mut taken)? {
            return Ok(Some(taken));
        }
        // The sample was overwritten in between, or never existed.
        waker.wake_by_ref();
        Ok(None)
    }

    /// Waits until there is a sample to take; false once `CLOCK_MONOTONIC` reads `until_ns`
    /// ([`NEVER`] for no limit).
    #[inline]
    pub fn wait(&mut self, how: Wait, until_ns: u64) -> Result<bool, Error> {
        if self.shared.is_forked() {
            return Err(Error::Forked);
        }
        let mut strategy = std::mem::take(&mut self.strategy);
        let came = strategy.wait(how, self, until_ns);
        self.strategy = strategy;
        if !came {
            self.shared.end_interrupt();
        }
        Ok(came)
    }

    /// Looks for a sample to take, for about a microsecond: before a polling wait, which then reads
    /// no clock if the sample comes soon.
    ///
    /// # Errors
    /// [`Error::Forked`].
    #[inline]
    pub fn look_a_while(&mut self) -> Result<bool, Error> {
        if self.shared.is_forked() {
            return Err(Error::Forked);
        }
        Ok(self.is_ready(false) || self.look_on())
    }

    /// [`look_a_while`](Self::look_a_while) and then [`take_into`](Self::take_into), in one: false
    /// if no sample has come so soon. It does not handle a descriptor.
    ///
    /// # Errors
    /// As for [`take`](Self::take); the buffer is empty then.
    #[inline]
    pub fn take_soon(&mut self, into: &mut RawSample) -> Result<bool, Error> {
        into.release();
        if self.is_ready(false) || self.look_on() { self.take_now(into) } else { Ok(false) }
    }

    /// Makes the next take find the sample that has been there longest, from all publishers, and
    /// returns since when, by `CLOCK_MONOTONIC` in ns: since it was published, or since the first
    /// look at it if it has no timestamp. `None` if there is none. It looks at each publisher that
    /// has something.
    pub fn turn_to_oldest(&mut self) -> Option<u64> {
        if self.shared.is_forked() {
            return None;
        }
        self.keep_up();
        if self.many.is_some() {
            return self.turn_to_oldest_of_many();
        }
        let since_ns =
            |(at, publisher): (usize, &mut PublisherCursor)| Some((publisher.since_ns()?, at));
        let (since_ns, at) = self.connections.iter_mut().enumerate().filter_map(since_ns).min()?;
        self.turn = at;
        Some(since_ns)
    }

    #[inline(always)]
    fn take_now(&mut self, into: &mut RawSample) -> Result<bool, Error> {
        if self.shared.is_forked() {
            return Err(Error::Forked);
        }
        self.keep_up();
        for _ in 0..self.connections.len() {
            if self.many.is_some() {
                if !self.turn_to_due() {
                    break;
                }
            } else if self.turn >= self.connections.len() {
                self.turn = 0;
            }
            let at = self.turn;
            self.turn += 1;
            let publisher = &mut self.connections[at];
            match publisher.take(&self.shared, into) {
                Ok(false) => self.shared.has_read_all_of(&publisher.source),
                Ok(true) => {
                    if into.lost_before > 0 {
                        self.note_loss(into.publisher, into.lost_before);
                    }
                    return Ok(true);
                }
                Err(error) => return Err(self.failed(at, error)),
            }
        }
        Ok(false)
    }

    #[cold]
    fn note_loss(&self, endpoint: EndpointId, samples: u64) {
        self.shared.count_lost(samples);
        if self.shared.qos().reliability == Reliability::Reliable {
            self.shared.inbox().push(Event::Lost { endpoint, samples });
        }
    }

    /// Ends the match with a publisher whose samples are invalid.
    pub fn reject(&mut self, publisher: EndpointId) {
        let is_it = |incoming: &PublisherCursor| incoming.source.id == publisher;
        if let Some(at) = self.connections.iter().position(is_it) {
            self.disconnect(at);
        }
    }

    #[cold]
    fn failed(&mut self, at: usize, error: Error) -> Error {
        if matches!(error, Error::TooManyHeld { .. }) {
            self.turn = at;
            return error;
        }
        self.disconnect(at);
        error
    }

    fn disconnect(&mut self, at: usize) {
        let publisher = self.connections.remove(at);
        self.changes = self.changes.wrapping_add(1);
        self.sort_out();
        publisher.source.gone.store(true, Ordering::Relaxed);
        finish(&publisher.source);
        self.shared.report_corrupt(publisher.source.id);
        self.shared.forget_finished();
    }

    /// Whether a take would find something. `again`: it found nothing a moment ago.
    #[inline(always)]
    fn is_ready(&mut self, again: bool) -> bool {
        self.keep_up();
        if self.many.is_some() {
            return self.is_ready_of_many();
        }
        self.connections.iter_mut().any(|publisher| publisher.is_ready(again))
    }

    #[inline(always)]
    fn look_on(&mut self) -> bool {
        (0..LOOKS_PER_CLOCK_READ).any(|_| {
            let is_ready = self.is_ready(true);
            if !is_ready {
                spin_loop();
            }
            is_ready
        })
    }

    #[inline(always)]
    fn spin(&mut self, until_ns: u64) -> Ended {
        if self.is_ready(false) {
            return Ended::Sample;
        }
        let mut slice_end_ns = None;
        loop {
            if self.look_on() {
                return Ended::Sample;
            }
            let end_ns = *slice_end_ns.get_or_insert_with(|| cancel::slice_end_ns(until_ns));
            let is_over = end_ns != NEVER && wait::now_ns() >= end_ns;
            let is_late = is_over && end_ns == until_ns;
            let is_cancelled = is_over && !is_late && cancel::is_cancelled();
            let is_stopped = is_cancelled || self.shared.is_interrupted();
            if is_late || is_stopped {
                let ended = if is_stopped { Ended::Stopped } else { Ended::Time };
                return if self.is_ready(false) { Ended::Sample } else { ended };
            }
            if is_over {
                slice_end_ns = None;
            }
        }
    }

    /// Whether a publisher last ran on the CPU that we are on: it cannot publish while we spin.
    fn shares_a_core(&self) -> bool {
        let cpu = wait::cpu();
        self.has_such(|head| head.cpu.load(Ordering::Relaxed) == cpu)
    }

    /// Whether `is_such` is true for a publisher. With many publishers, only the publisher of the
    /// last sample counts.
    fn has_such(&self, is_such: impl Fn(&PublicationHead) -> bool) -> bool {
        let is_such = |it: &PublisherCursor| is_such(it.source.head());
        match &self.many {
            Some(many) => self.connections.get(many.last).is_some_and(is_such),
            None => self.connections.iter().any(is_such),
        }
    }

    /// S1 to S3.
    fn sleep(&mut self, until_ns: u64) -> Ended {
        loop {
            let published = self.published_to_sleep_on();
            let changes = self.changes;
            let asleep = match published {
                None => self.fall_asleep(),
                Some(value) if is_taken(Step::Value) => self.say(Sleep::on_published(value)),
                Some(_) => self.say(Sleep::on_published(self.shared.next_sleep() << 32)),
            };
            let stop = self.shared.is_interrupted();
            let is_late = || until_ns != NEVER && wait::now_ns() >= until_ns;
            let timer = match asleep {
                Some(asleep) if !stop => {
                    let asleep = asleep.until(cancel::slice_end_ns(until_ns));
                    let slept = match published {
                        None => self.shared.sleep(asleep),
                        // Otherwise its publisher has changed, or is not the only one any more.
                        Some(value) if changes == self.changes => {
                            self.sleep_on_published(asleep, value)
                        }
                        Some(_) => true,
                    };
                    if !slept {
                        self.look_at_all();
                    }
                    !slept && is_late()
                }
                _ => false,
            };
            self.shared.wake_up();
            // Its set has not been woken for samples that came meanwhile.
            self.shared.notify_set();
            if asleep.is_none() || self.is_ready(false) {
                return if timer { Ended::SampleAtTime } else { Ended::Sample };
            }
            if stop || self.shared.is_forked() || cancel::is_cancelled() {
                return Ended::Stopped;
            }
            if timer || is_late() {
                return Ended::Time;
            }
        }
    }

    /// The value of its publisher's `published` to sleep on, read before it says that it sleeps.
    /// `None` if that would be wrong: it does not have exactly one publisher, or that publisher has
    /// few subscribers, or writes to a descriptor.
    fn published_to_sleep_on(&self) -> Option<u64> {
        let [publisher] = &self.connections[..] else { return None };
        let head = publisher.source.head();
        let is_one_of_many = head.subscribers.load(Ordering::Relaxed) >= MANY_MIN;
        if !is_one_of_many || self.shared.descriptor().is_some() || !wait::can_sleep_on_two() {
            return None;
        }
        // ORDER: read before `asleep` is stored: a publisher that sees us asleep has written a
        // later value than this one (P6), which the kernel finds; one that does not see it has
        // published before our look.
        Some(load_acquire(&head.published))
    }

    /// Also sleeps on the wake word, because the node's own process cannot change `published`.
    fn sleep_on_published(&self, asleep: Asleep, value: u64) -> bool {
        let published = &self.connections[0].source.head().published;
        self.shared.sleep_also_on(asleep, published, value as u32)
    }

    /// S1, S2: says that the subscriber sleeps. `None` if there is a sample.
    pub(crate) fn fall_asleep(&mut self) -> Option<Asleep> {
        self.fall_asleep_in(None)
    }

    /// The same, but its wait set must be woken.
    fn fall_asleep_in(&mut self, set: Option<u32>) -> Option<Asleep> {
        self.say(Sleep::new(self.shared.next_sleep(), set))
    }

    fn say(&mut self, sleep: Sleep) -> Option<Asleep> {
        self.sleep = sleep.or_of_many(self.shared.ready_list().is_used());
        let (asleep, wakes) = (&self.shared.head().asleep, &self.shared.wake_word().wakes);
        self.count = sleep::fall_asleep(asleep, wakes, self.sleep);
        let asleep = Asleep::new(self.count, self.connections.len());
        (!is_taken(Step::S3) || !self.is_ready(false)).then_some(asleep)
    }

    /// Empties the descriptor and makes publishers write to it at the next sample. True if a sample
    /// has come meanwhile.
    fn arm(&mut self) -> bool {
        // Also when it is armed: a publisher may have counted the wake word up, been overtaken by
        // us, and written only then.
        let drain = |fd: &SubscriberDescriptor| fd.drain(|connection| self.mark_due(connection));
        let was_readable = self.shared.descriptor().is_some_and(drain);
        let (asleep, wakes) = (&self.shared.head().asleep, &self.shared.wake_word().wakes);
        let set = self.shared.set();
        let is_armed = asleep.load(Ordering::Relaxed) == self.sleep.0
            && wakes.load(Ordering::Relaxed) == self.count
            && self.sleep != Sleep::AWAKE
            && set.is_none();
        if is_armed && !was_readable {
            return false; // no publisher has notified it since
        }
        self.fall_asleep_in(set).is_none()
    }

    /// Updates the list of publishers.
    #[inline(always)]
    fn keep_up(&mut self) {
        // ORDER: Relaxed: the lock in `absorb` acquires.
        if self.shared.changed.load(Ordering::Relaxed) {
            self.absorb();
        }
    }

    /// Adds publishers that have come and removes those that have gone and been read to the end.
    #[cold]
    fn absorb(&mut self) {
        self.changes = self.changes.wrapping_add(1);
        self.shared.changed.store(false, Ordering::Relaxed);
        // ORDER: a change after this sets the flag again.
        fence(Ordering::SeqCst);
        let begun = std::mem::take(&mut self.shared.sources().begun);
        for source in begun {
            let publisher = PublisherCursor::begin(source, &self.shared);
            self.connections.push(publisher);
        }
        let is_finished = |publisher: &mut PublisherCursor| {
            publisher.source.gone.load(Ordering::Acquire) && !publisher.is_ready(false)
        };
        let finished: Vec<_> = self.connections.extract_if(.., is_finished).collect();
        for publisher in finished {
            finish(&publisher.source);
            // Their memory has not come, and will not come any more.
            match publisher.abandoned() {
                0 => {}
                samples => self.note_loss(publisher.source.id, samples),
            }
        }
        self.shared.forget_finished();
        self.sort_out();
        self.note_place();
    }

    /// Notes its address, so that a wait set can fetch it into the caches before a take.
    pub(crate) fn note_place(&self) {
        self.shared.note_reader(self, self.connections.as_ptr());
    }
}

/// Ends the reading of a publisher: its connection is free.
fn finish(source: &RemotePublisher) {
    // ORDER: release pairs with the acquire in `Connections::forget_finished`: our holds of it are announced.
    source.finished.store(is_taken(Step::Finished), Ordering::Release);
}

/// Waits for a sample of this reader.
impl Waiter for Reader {
    #[inline(always)]
    fn is_ready(&mut self) -> bool {
        Reader::is_ready(self, false)
    }

    fn now_ns(&self) -> u64 {
        wait::now_ns()
    }

    fn sleep(&mut self, until_ns: u64) -> Ended {
        Reader::sleep(self, until_ns)
    }

    #[inline(always)]
    fn spin(&mut self, until_ns: u64) -> Ended {
        Reader::spin(self, until_ns)
    }

    fn may_spin(&self) -> bool {
        !self.shares_a_core()
    }

    fn is_one_too_many(&self) -> bool {
        let cpus = wait::cpus();
        self.has_such(|head| head.subscribers.load(Ordering::Relaxed) >= cpus)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        if !self.shared.is_forked() {
            self.shared.leave_set();
            self.shared.finish();
            self.shared.abandon();
        }
    }
}

/// The topic and settings of a reader, for messages.
impl std::fmt::Debug for Reader {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let topic: &Topic = self.shared.topic();
        to.debug_struct("Reader").field("topic", topic).finish_non_exhaustive()
    }
}

/// The number of subscribers from which one call wakes them all: with fewer, a sleep on two words
/// costs more than it saves. In a model the number is small, so that all orders can be run.
const MANY_MIN: u64 = if cfg!(loom) { 2 } else { 4 };
