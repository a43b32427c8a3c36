//! A subscriber's taking side: a cursor for each publisher, and the choice among them.

mod choice;
mod few;
mod lent_sample;
mod many;
mod wait;

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use self::choice::Choice;
use self::few::Few;
use crate::counters::{LossCause, TakeCounter};
use crate::data_plane::publisher_cursor::PublisherCursor;
use crate::data_plane::raw_sample::RawSample;
use crate::data_plane::remote_publisher::RemotePublisher;
use crate::data_plane::subscription::SubscriptionState;
use crate::error::Error;
use crate::event::Event;
use crate::sync::{Ordering, Step, fence, is_taken};
use crate::topic::{EndpointId, Reliability, SubscriberQos, Topic};
use crate::waiting::sleep::Sleep;
use crate::waiting::strategy::Strategy;
use crate::waiting::wake_table::WakeTable;

/// The taking side. Used by one thread at a time.
pub struct Reader {
    shared: Arc<SubscriptionState>,
    cursors: Vec<PublisherCursor>,
    choice: Choice,
    takes: TakeCounter,
    strategy: Strategy,
    /// The last sleep, and the wake word's count when it began.
    sleep: Sleep,
    count: u32,
    /// Counts the changes to `cursors`.
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
            cursors: Vec::with_capacity(1), // this capacity lets the first take allocate nothing
            choice: Choice::Few(Few::default()),
            takes: TakeCounter::new(shared.count()),
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
        let is_taken = self.take_in_turn(into)?;
        let may_be_more = !is_taken && self.shared.sleeper.descriptor().is_some();
        if may_be_more && self.arm() { self.take_in_turn(into) } else { Ok(is_taken) }
    }

    /// The same, without care for the descriptor.
    #[inline(always)]
    fn take_in_turn(&mut self, into: &mut RawSample) -> Result<bool, Error> {
        if self.shared.is_forked() {
            return Err(Error::Forked);
        }
        self.keep_up();
        for _ in 0..self.cursors.len() {
            let Some(at) = self.choice.next(&mut self.cursors, &self.shared) else { break };
            let cursor = &mut self.cursors[at];
            match cursor.take(&self.shared, into) {
                Ok(false) => self.shared.has_read_all_of(cursor.remote()),
                Ok(true) => {
                    if into.lost_before > 0 {
                        let cause = cursor.loss_cause();
                        self.note_loss(into.publisher, into.lost_before, cause);
                    }
                    self.takes.count(into.published_ns);
                    return Ok(true);
                }
                Err(error) => return Err(self.failed(at, error)),
            }
        }
        Ok(false)
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
        self.cursors.iter_mut().any(PublisherCursor::has_unread)
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
        self.choice.turn_to_oldest(&mut self.cursors, &self.shared)
    }

    #[cold]
    fn note_loss(&self, endpoint: EndpointId, samples: u64, cause: LossCause) {
        self.shared.count_lost(samples, cause);
        if self.shared.qos().reliability == Reliability::Reliable {
            self.shared.inbox().push(Event::Lost { endpoint, samples });
        }
    }

    /// Ends the match with a publisher whose samples are invalid.
    pub fn reject(&mut self, publisher: EndpointId) {
        if let Some(at) = self.cursors.iter().position(|cursor| cursor.id() == publisher) {
            self.disconnect(at);
        }
    }

    #[cold]
    fn failed(&mut self, at: usize, error: Error) -> Error {
        match (&error, &mut self.choice) {
            (Error::TooManyHeld { .. }, Choice::Few(few)) => few.turn_to(at),
            (Error::TooManyHeld { .. }, Choice::Many(_)) => {}
            _ => self.disconnect(at),
        }
        error
    }

    fn disconnect(&mut self, at: usize) {
        let cursor = self.cursors.remove(at);
        self.changes = self.changes.wrapping_add(1);
        self.choice.update(&self.cursors, &self.shared);
        cursor.remote().gone.store(true, Ordering::Relaxed);
        finish(cursor.remote());
        self.shared.report_corrupt(cursor.id());
        self.shared.forget_finished();
    }

    /// Whether a take would find something. `again`: it found nothing a moment ago.
    #[inline(always)]
    pub(crate) fn is_ready(&mut self, again: bool) -> bool {
        self.keep_up();
        self.choice.is_ready(&mut self.cursors, &self.shared, again)
    }

    /// Makes the next take look at all publishers, with or without ready bits.
    pub(crate) fn look_at_all(&self) {
        if let Choice::Many(many) = &self.choice {
            many.look_at_all(&self.shared);
        }
    }

    /// Makes the next take look at a publisher without a ready bit: it may have published in this
    /// thread.
    pub(crate) fn look_at(&self, publisher: EndpointId) {
        if let Choice::Many(_) = &self.choice {
            let its = self.cursors.iter().find(|cursor| cursor.id() == publisher);
            its.into_iter()
                .for_each(|it| self.shared.readiness.ready_list().insert(it.connection()));
        }
    }

    /// Whether publishers have come or gone, or another thread has requested a look.
    #[inline(always)]
    pub(crate) fn has_news(&self) -> bool {
        // ORDER: acquire pairs with the release in `look_again`: everything done before is seen.
        self.shared.changed.load(Ordering::Acquire)
    }

    /// Updates the list of publishers; returns a number that changes when the list does.
    pub(crate) fn look_at_publishers(&mut self) -> u32 {
        self.keep_up();
        self.changes
    }

    /// Whether `is_such` is true for one of its publishers.
    pub(crate) fn has_publisher(&self, is_such: impl Fn(EndpointId) -> bool) -> bool {
        self.cursors.iter().any(|cursor| is_such(cursor.id()))
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
        let begun = std::mem::take(&mut self.shared.connections.list().begun);
        self.cursors.extend(begun.into_iter().map(|it| PublisherCursor::begin(it, &self.shared)));
        let is_finished = |cursor: &mut PublisherCursor| {
            cursor.remote().gone.load(Ordering::Acquire) && !cursor.is_ready(false)
        };
        let finished: Vec<_> = self.cursors.extract_if(.., is_finished).collect();
        for cursor in finished {
            finish(cursor.remote());
            // Their memory has not come, and will not come any more.
            match cursor.abandoned() {
                0 => {}
                samples => self.note_loss(cursor.id(), samples, LossCause::Memory),
            }
        }
        self.shared.forget_finished();
        self.choice.update(&self.cursors, &self.shared);
        self.note_place();
    }

    /// Notes its address, so that a wait set can fetch it into the caches before a take.
    pub(crate) fn note_place(&self) {
        self.shared.readiness.note_reader(self, self.cursors.as_ptr());
    }
}

/// Ends the reading of a publisher: its connection is free.
fn finish(publisher: &RemotePublisher) {
    // ORDER: release pairs with the acquire in `forget_finished`: our holds of it are announced.
    publisher.finished.store(is_taken(Step::Finished), Ordering::Release);
}

impl Drop for Reader {
    fn drop(&mut self) {
        if !self.shared.is_forked() {
            self.shared.sleeper.leave_set();
            self.shared.connections.finish();
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
