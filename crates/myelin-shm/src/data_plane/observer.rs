//! Reading rings without being known to their publishers: section 15 of
//! `docs/explanation/shared-memory.md`.
//!
//! An observer announces nothing and holds nothing, so its publishers do nothing for it. It copies
//! each sample out and then checks that the bytes still are the sample's. It looks at intervals
//! that follow the rings' depths and rates, and counts exactly what was overwritten before it
//! looked.

mod cursor;
mod pace;
mod sample;

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::data_plane::observer::cursor::{Cursor, Found, Read};
use crate::data_plane::observer::pace::INTERVAL_NS_MAX;
pub use crate::data_plane::observer::sample::{Missing, ObservedHeader, ObservedSample};
use crate::data_plane::remote_publisher::RemotePublisher;
use crate::error::Error;
use crate::limits::{CONNECTIONS_MAX, EVENTS_MAX};
use crate::os::fork;
use crate::sync::{AtomicU32, Mutex, Ordering, lock};
use crate::topic::{EndpointId, Topic};
use crate::waiting::cancel;
use crate::waiting::interrupt::{Changes, Interrupter};
use crate::waiting::wait::{self, now_ns};

/// A publisher of an observer's topic, and what the observer has seen of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ObservedPublisher {
    /// Its endpoint id.
    pub publisher: EndpointId,
    /// The first sample that counts: 0 if the publisher came after the observer.
    pub first: u64,
    /// Samples that it has published. `published - first` is `seen + overwritten`, and the samples
    /// that are still to be read.
    pub published: u64,
    /// Samples that the observer has given, with or without payload.
    pub seen: u64,
    /// Samples that were overwritten before the observer looked.
    pub overwritten: u64,
    /// Samples, among those seen, whose payload was gone.
    pub without_payload: u64,
    /// Whether it has left or died, and everything has been read.
    pub has_gone: bool,
}

/// The node's side of an observer.
pub struct ObserverState {
    topic: Topic,
    /// How many samples from before the observer it begins with.
    transient_local: u32,
    created_ns: u64,
    rings: Mutex<Vec<Arc<Ring>>>,
    /// Publishers that have been read to their end, and the sample after it: the link to a node
    /// may be made anew.
    ended: Mutex<VecDeque<(EndpointId, u64)>>,
    /// Publishers that wrote invalid data when they were mapped.
    errors: Mutex<VecDeque<Error>>,
    changes: Arc<Changes>,
    /// Asks for slot segments of a publisher, from a number on.
    request: OnceLock<Box<dyn Fn(EndpointId, u32) + Send + Sync>>,
}

/// One publisher's memory.
struct Ring {
    source: RemotePublisher,
    /// The first sample to read.
    first: u64,
    /// How often its node has answered.
    answers: AtomicU32,
}

impl ObserverState {
    /// An observer without publishers; `created_ns` is its time by the date.
    pub fn new(topic: Topic, transient_local: u32, created_ns: u64) -> Arc<ObserverState> {
        Arc::new(ObserverState {
            topic,
            transient_local,
            created_ns,
            rings: Mutex::new(Vec::new()),
            ended: Mutex::new(VecDeque::new()),
            errors: Mutex::new(VecDeque::new()),
            changes: Arc::new(Changes::new()),
            request: OnceLock::new(),
        })
    }

    /// From now on calls `request` for slot segments that are missing. The observer's thread calls
    /// it, without a lock.
    pub fn on_missing(&self, request: Box<dyn Fn(EndpointId, u32) + Send + Sync>) {
        let _ = self.request.set(request);
    }

    /// Maps the ring of a publisher that was made at `created_ns`. A known one goes on.
    pub fn map_ring(
        &self,
        publisher: EndpointId,
        created_ns: u64,
        fd: OwnedFd,
    ) -> Result<(), Error> {
        if let Some(known) = self.ring(publisher) {
            known.source.gone.store(false, Ordering::Release);
            return Ok(());
        }
        let rings = lock(&self.rings).len();
        if rings >= CONNECTIONS_MAX as usize {
            let (topic, limit) = (Some(self.topic.name.clone()), u64::from(CONNECTIONS_MAX));
            return Err(Error::TooMany { topic, what: "publishers of one observer", limit });
        }
        let source = RemotePublisher::map(publisher, &self.topic, 0, fd)?;
        let published = source.head().published.load(Ordering::Relaxed);
        let transient_local = source.depth.min(u64::from(self.transient_local));
        let is_older = created_ns <= self.created_ns;
        let mut first = if is_older { published.saturating_sub(transient_local) } else { 0 };
        if let Some((_, next)) = lock(&self.ended).iter().find(|(id, _)| *id == publisher) {
            first = *next;
        }
        let ring = Ring { source, first, answers: AtomicU32::new(0) };
        lock(&self.rings).push(Arc::new(ring));
        self.changes.wake();
        Ok(())
    }

    /// Maps a slot segment of a publisher; a known one is ignored.
    pub fn map_segment(
        &self,
        publisher: EndpointId,
        number: u32,
        slot_bytes: u64,
        slots: u32,
        fd: OwnedFd,
    ) -> Result<(), Error> {
        let Some(ring) = self.ring(publisher) else { return Ok(()) };
        ring.source.add_segment(number, slot_bytes, slots, fd)
    }

    /// The publisher's node has answered a request.
    pub fn answered(&self, publisher: EndpointId) {
        if let Some(ring) = self.ring(publisher) {
            // ORDER: Release pairs with the cursor's Acquire; the segments are under a lock.
            ring.answers.fetch_add(1, Ordering::Release);
            self.changes.wake();
        }
    }

    /// The publisher has left or died. The rest of its ring can be read.
    pub fn unobserve(&self, publisher: EndpointId) {
        if let Some(ring) = self.ring(publisher) {
            // ORDER: Release pairs with the cursor's Acquire: the ring does not change any more.
            ring.source.gone.store(true, Ordering::Release);
            self.changes.wake();
        }
    }

    /// A publisher's ring has been read to its end, where sample `next` would be.
    fn forget(&self, publisher: EndpointId, next: u64) {
        lock(&self.rings).retain(|ring| ring.source.id != publisher);
        let mut ended = lock(&self.ended);
        if ended.len() == EVENTS_MAX {
            ended.pop_front();
        }
        ended.push_back((publisher, next));
    }

    /// A publisher cannot be observed, for good; the observer's user gets the error.
    pub fn failed(&self, error: Error) {
        let mut errors = lock(&self.errors);
        if errors.len() < EVENTS_MAX {
            errors.push_back(error);
        }
        drop(errors);
        self.changes.wake();
    }

    /// What ends its waits.
    pub fn interrupter(&self) -> Interrupter {
        Interrupter::of_observer(&self.changes)
    }

    fn ring(&self, publisher: EndpointId) -> Option<Arc<Ring>> {
        lock(&self.rings).iter().find(|ring| ring.source.id == publisher).cloned()
    }

    fn request(&self, publisher: EndpointId, from: u32) {
        if let Some(request) = self.request.get() {
            request(publisher, from);
        }
    }
}

/// The reading side of an observer. Used by one thread at a time.
pub struct ObserverReader {
    state: Arc<ObserverState>,
    /// Its publishers, and the one that is first at the next look.
    cursors: Vec<Cursor>,
    turn: usize,
    /// `changes` of the state when it was read last.
    changes: Option<u32>,
    /// Publishers that have gone since they were listed last.
    gone: VecDeque<ObservedPublisher>,
    fork: u32,
}

impl ObserverReader {
    /// A reader; a state has one.
    pub fn new(state: Arc<ObserverState>) -> ObserverReader {
        ObserverReader {
            state,
            cursors: Vec::new(),
            turn: 0,
            changes: None,
            gone: VecDeque::new(),
            fork: fork::mark(),
        }
    }

    /// Its node's side.
    pub fn state(&self) -> &Arc<ObserverState> {
        &self.state
    }

    /// Copies the next sample to `into`; false if there is none. The samples of a publisher come in
    /// order, those of several publishers in turn.
    ///
    /// # Errors
    /// [`Error::PeerCorrupt`]: a publisher wrote invalid data, and is observed no longer; the
    /// others go on. [`Error::Forked`].
    pub fn take_into(&mut self, into: &mut ObservedSample) -> Result<bool, Error> {
        self.look(&mut Read::Payload(into))
    }

    /// The header of the next sample, without looking at its payload.
    ///
    /// # Errors
    /// As for [`take_into`](Self::take_into).
    pub fn take_header(&mut self) -> Result<Option<ObservedHeader>, Error> {
        let mut header = ObservedHeader::default();
        Ok(self.look(&mut Read::Header(&mut header))?.then_some(header))
    }

    fn look(&mut self, read: &mut Read<'_>) -> Result<bool, Error> {
        if fork::is_forked(self.fork) {
            return Err(Error::Forked);
        }
        if self.keep_up()
            && let Some(error) = self.error()
        {
            return Err(error);
        }
        for _ in 0..self.cursors.len() {
            if self.turn >= self.cursors.len() {
                self.turn = 0;
            }
            match self.cursors[self.turn].take(read) {
                Ok(Found::Sample) => {
                    self.turn += 1;
                    return Ok(true);
                }
                Ok(Found::Nothing) => self.turn += 1,
                Ok(Found::Lacks { from }) => {
                    let publisher = self.cursors[self.turn].publisher();
                    self.state.request(publisher, from);
                    self.turn += 1;
                }
                Ok(Found::End) => self.remove(self.turn),
                Err(error) => {
                    self.remove(self.turn);
                    return Err(error);
                }
            }
        }
        let now_ns = now_ns();
        self.cursors.iter_mut().for_each(|cursor| cursor.looked(now_ns));
        Ok(false)
    }

    /// Whether there is something to take now.
    pub fn has_unread(&mut self) -> bool {
        if fork::is_forked(self.fork) {
            return false;
        }
        self.keep_up();
        self.cursors.iter().any(Cursor::has_unread)
    }

    /// Waits until there is something to take: looks at its intervals, and sleeps between them.
    /// False at `until_ns`, or if it was interrupted.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn wait(&mut self, until_ns: u64) -> Result<bool, Error> {
        loop {
            // ORDER: Acquire, before the look: a change from now on ends the sleep.
            let changes = self.state.changes.count.load(Ordering::Acquire);
            if fork::is_forked(self.fork) {
                return Err(Error::Forked);
            }
            if self.has_unread() || !lock(&self.state.errors).is_empty() {
                return Ok(true);
            }
            let now = now_ns();
            self.cursors.iter_mut().for_each(|cursor| cursor.looked(now));
            let is_interrupted = self.state.changes.take_interrupt();
            if is_interrupted || until_ns <= now || cancel::is_cancelled() {
                return Ok(false);
            }
            let look_ns = now.saturating_add(self.interval_ns());
            wait::sleep(
                &self.state.changes.count,
                changes,
                cancel::slice_end_ns(until_ns.min(look_ns)),
            );
        }
    }

    /// How long it should wait before the next look: half of the time in which the fastest ring is
    /// written once, between 1 and 100 ms.
    pub fn interval(&self) -> Duration {
        Duration::from_nanos(self.interval_ns())
    }

    fn interval_ns(&self) -> u64 {
        self.cursors.iter().map(Cursor::interval_ns).min().unwrap_or(INTERVAL_NS_MAX)
    }

    /// Its publishers; those that have gone since the last call are listed once more, at most 1,024.
    pub fn publishers(&mut self) -> Vec<ObservedPublisher> {
        if fork::is_forked(self.fork) {
            return Vec::new();
        }
        self.keep_up();
        let gone = std::mem::take(&mut self.gone).into_iter();
        gone.chain(self.cursors.iter().map(|cursor| cursor.counts(false))).collect()
    }

    /// Observes a publisher no longer: its sample does not fit the type.
    pub fn reject(&mut self, publisher: EndpointId) {
        if let Some(at) = self.cursors.iter().position(|cursor| cursor.publisher() == publisher) {
            self.remove(at);
        }
    }

    fn remove(&mut self, at: usize) {
        let cursor = self.cursors.remove(at);
        self.state.forget(cursor.publisher(), cursor.next());
        if self.gone.len() == EVENTS_MAX {
            self.gone.pop_front();
        }
        self.gone.push_back(cursor.counts(true));
    }

    /// A publisher that cannot be observed.
    fn error(&mut self) -> Option<Error> {
        let mut errors = lock(&self.state.errors);
        if errors.len() > 1 {
            self.changes = None; // it looks once more
        }
        errors.pop_front()
    }

    /// Adds the publishers that have come. Whether anything has changed.
    fn keep_up(&mut self) -> bool {
        let changes = self.state.changes.count.load(Ordering::Acquire);
        if self.changes == Some(changes) {
            return false;
        }
        self.changes = Some(changes);
        let rings = lock(&self.state.rings).clone();
        for ring in rings {
            if !self.cursors.iter().any(|cursor| cursor.publisher() == ring.source.id) {
                self.cursors.push(Cursor::new(ring));
            }
        }
        true
    }
}

impl std::fmt::Debug for ObserverReader {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("ObserverReader").field("topic", &self.state.topic).finish_non_exhaustive()
    }
}
