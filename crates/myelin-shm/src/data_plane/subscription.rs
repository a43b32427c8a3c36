//! The state of a subscriber that its node, its reader and its samples share, in four parts: its
//! publishers (`connections`), the samples that it borrows (`borrowed`), which publishers have
//! something (`readiness`), and how it sleeps and is woken (`sleeper`). `reader` takes the samples.

mod borrowed;
mod connections;
mod memory;
mod readiness;
mod sleeper;

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Arc, OnceLock, PoisonError};

use self::borrowed::Borrowed;
use self::connections::Connections;
use self::memory::SubscriptionMemory;
#[cfg(all(test, not(any(loom, miri))))]
pub(super) use self::memory::write_head;
pub(crate) use self::readiness::{PrefetchList, Readiness};
pub(crate) use self::sleeper::{Asleep, Sleeper, TRUST_NS};
use crate::counters::{self, LossCause};
pub use crate::data_plane::raw_sample::RawSample;
pub use crate::data_plane::reader::Reader;
use crate::data_plane::remote_publisher::RemotePublisher;
use crate::data_plane::remote_subscriber::WakeDescriptors;
use crate::error::Error;
use crate::event::{Event, Inbox};
use crate::layout::SubscriptionCounters;
use crate::os::descriptor::duplicate;
use crate::os::fork;
use crate::os::prefetch;
use crate::record::Counters;
use crate::sync::{AtomicBool, AtomicU64, Mutex, Ordering, lock};
use crate::topic::{EndpointId, SubscriberQos, Topic};
use crate::waiting::interrupt::Interrupter;
use crate::waiting::remote_wake_table::WakeTableDescriptors;
use crate::waiting::subscriber_descriptor::SubscriberDescriptor;
use crate::waiting::wake_table::{ReadyBit, WakeTable};

type OnCorrupt = Box<dyn Fn(EndpointId) + Send + Sync>;
type OnLastDrop = Box<dyn FnOnce() + Send + Sync>;

/// State shared by the node, the reader and the borrowed samples. Any thread may call it.
#[repr(C)] // A look and a take read the first fields, on a few lines: see `prefetch`.
pub struct SubscriptionState {
    inbox: Arc<Inbox>,
    memory: Arc<SubscriptionMemory>,
    fork: u32,
    /// Set when the reader has to look at `connections`.
    pub(crate) changed: AtomicBool,
    pub(crate) sleeper: Sleeper,
    pub(crate) connections: Connections,
    pub(crate) borrowed: Borrowed,
    pub(crate) readiness: Readiness,
    qos: SubscriberQos,
    id: EndpointId,
    topic: Topic,
    on_corrupt: OnceLock<OnCorrupt>,
    on_last_drop: Mutex<Option<OnLastDrop>>,
}

/// How many lines hold the fields that are read first, and the reference count before them.
const HOT_LINES: usize = 5;

impl SubscriptionState {
    pub(crate) fn create(
        id: EndpointId,
        topic: &Topic,
        qos: SubscriberQos,
        table: &Arc<WakeTable>,
    ) -> Result<Arc<SubscriptionState>, Error> {
        topic.check()?;
        qos.check(topic)?;
        let ready_bit = Arc::new(ReadyBit::take(table)?);
        let descriptor = qos.descriptor.then(SubscriberDescriptor::new).transpose()?.map(Arc::new);
        let (memory, bytes) = SubscriptionMemory::create(id, topic, &qos, ready_bit.number())?;
        let (memory, inbox) = (Arc::new(memory), Arc::<Inbox>::default());
        let connections = Connections::new(&memory, bytes, descriptor.clone(), qos);
        let sleeper = Sleeper::create(ready_bit, descriptor, &memory)?;
        let borrowed = Borrowed::new(&memory);
        let [clones, holds] = borrowed.addresses();
        let waker = Arc::as_ptr(&sleeper.waker).addr();
        let fixed = [waker, Arc::as_ptr(&inbox).addr(), clones, holds];
        let readiness = Readiness::new(&memory, qos.transient_local, fixed);
        Ok(Arc::new(SubscriptionState {
            inbox,
            memory,
            fork: fork::mark(),
            changed: AtomicBool::new(false),
            sleeper,
            connections,
            borrowed,
            readiness,
            qos,
            id,
            topic: topic.clone(),
            on_corrupt: OnceLock::new(),
            on_last_drop: Mutex::new(None),
        }))
    }

    /// Its endpoint id.
    pub fn id(&self) -> EndpointId {
        self.id
    }

    /// Its topic.
    pub fn topic(&self) -> &Topic {
        &self.topic
    }

    /// Its settings.
    pub fn qos(&self) -> &SubscriberQos {
        &self.qos
    }

    /// Subscription segment and wake word.
    pub fn descriptors(&self) -> (BorrowedFd<'_>, BorrowedFd<'_>) {
        (self.memory.fd(), self.sleeper.wake_word_fd())
    }

    /// The subscription segment, for its node to keep.
    pub(crate) fn shared_descriptor(&self) -> Arc<OwnedFd> {
        self.memory.shared_descriptor()
    }

    /// The descriptors for the publisher of a connection: the subscription segment, and the means
    /// to wake the subscriber.
    pub fn passed_to(&self, connection: u32) -> Result<(OwnedFd, WakeDescriptors), Error> {
        let own = |fd: BorrowedFd<'_>| duplicate(fd, "passing a subscriber on");
        let publisher = self.connections.publisher_of(connection);
        let [heads, ready, pipe] = self.sleeper.ready_bit().table().passed_to(publisher);
        let table =
            WakeTableDescriptors { heads: own(heads)?, ready: own(ready)?, pipe: own(pipe)? };
        let wake_pipe = self.sleeper.descriptor().map(|fd| fd.connect(connection)).transpose()?;
        let wake_word = own(self.sleeper.wake_word_fd())?;
        Ok((own(self.memory.fd())?, WakeDescriptors { wake_word, table, wake_pipe }))
    }

    /// Readable when there may be a sample to take, or an event; if the settings request it.
    pub fn event(&self) -> Option<BorrowedFd<'_>> {
        self.sleeper.descriptor().map(SubscriberDescriptor::fd)
    }

    /// The events for its user.
    pub(crate) fn inbox(&self) -> &Arc<Inbox> {
        &self.inbox
    }

    /// Passes an event to the user, who may be waiting: makes the descriptor readable and, if the
    /// user wants to know about silence, ends the wait for it.
    pub(crate) fn deliver(&self, event: Event) {
        let watched = self.qos.deadline.is_some() || self.qos.liveliness.is_some();
        let is_silence = matches!(
            event,
            Event::DeadlineMissed { .. } | Event::LivelinessLost { .. } | Event::Unmatched { .. }
        );
        self.inbox.push(event);
        if watched && is_silence {
            self.inbox.set_urgent(true);
        }
        if is_silence {
            self.look_again();
        }
    }

    /// Accepts a publisher: maps its memory and returns the number of the connection.
    pub fn reserve(
        &self,
        publisher: EndpointId,
        publication: OwnedFd,
        segments: Vec<(u32, u64, u32, OwnedFd)>,
    ) -> Result<u32, Error> {
        self.connections.reserve(publisher, &self.topic, &self.borrowed, publication, segments)
    }

    /// Whether a publisher that was declined could be accepted now.
    pub(crate) fn has_room_for(&self, publisher: EndpointId) -> bool {
        self.connections.has_room_for(publisher, &self.borrowed)
    }

    /// Whether the reader has yet to see a publisher. If it goes, it gives way to another one.
    pub fn has_yet_to_see(&self, publisher: EndpointId) -> bool {
        self.connections.list().begun.iter().any(|known| known.id == publisher)
    }

    /// The publisher now looks at this subscriber: the subscriber reads samples from `start` on.
    pub fn start(&self, publisher: EndpointId, start: u64) {
        if !self.connections.begin(publisher, start) {
            return;
        }
        if self.sleeper.interrupted_by_matches.load(Ordering::Relaxed) {
            self.sleeper.waker.interrupted.store(true, Ordering::Release);
        }
        self.look_again();
    }

    /// The publisher has a further slot segment.
    pub fn add_segment(
        &self,
        publisher: EndpointId,
        number: u32,
        slot_bytes: u64,
        slots: u32,
        fd: OwnedFd,
    ) -> Result<(), Error> {
        self.connections.map_segment(publisher, number, slot_bytes, slots, fd)?;
        self.look_again();
        Ok(())
    }

    /// The publisher has left or died. Its published samples can still be read.
    pub fn publisher_gone(&self, publisher: EndpointId) {
        self.connections.publisher_gone(publisher);
        self.look_again();
    }

    /// Makes the reader update its publishers if this one has gone, so that its connection can be
    /// used again.
    #[inline(always)]
    pub(crate) fn has_read_all_of(&self, publisher: &RemotePublisher) {
        if publisher.gone.load(Ordering::Relaxed) {
            self.changed.store(true, Ordering::Relaxed);
        }
    }

    /// Frees the connections of publishers that have gone and have been read to the end. Borrowed
    /// samples stay mapped.
    pub(crate) fn forget_finished(&self) {
        self.connections.forget_finished(&self.borrowed);
    }

    /// How many samples the publisher has published, and how often it has asserted itself.
    pub fn progress(&self, publisher: EndpointId) -> Option<(u64, u64)> {
        self.connections.progress(publisher)
    }

    /// Calls `call` in the taking thread for a publisher that wrote invalid data.
    pub fn on_corrupt(&self, call: OnCorrupt) {
        let _ = self.on_corrupt.set(call);
    }

    pub(crate) fn report_corrupt(&self, publisher: EndpointId) {
        if let Some(call) = self.on_corrupt.get() {
            call(publisher);
        }
    }

    /// Calls `call` when the reader and all borrowed samples have been dropped.
    pub fn on_last_drop(&self, call: OnLastDrop) {
        *lock(&self.on_last_drop) = Some(call);
    }

    /// Ends the running wait in another thread, or else the next one: it returns false.
    pub fn interrupt(&self) {
        self.sleeper.waker.interrupted.store(true, Ordering::Release);
        self.look_again();
    }

    /// The interrupter, which ends its waits from other threads.
    pub fn interrupter(&self) -> Interrupter {
        Interrupter::new(&self.sleeper.waker)
    }

    /// Whether a thread or an event has requested the end of the wait.
    #[inline(always)]
    pub(crate) fn is_interrupted(&self) -> bool {
        self.sleeper.waker.interrupted.load(Ordering::Acquire) || self.inbox.is_urgent()
    }

    /// Resets the request after the wait has ended.
    pub(crate) fn end_interrupt(&self) {
        if self.is_interrupted() {
            self.sleeper.waker.interrupted.store(false, Ordering::Relaxed);
            self.inbox.set_urgent(false);
        }
    }

    /// Samples lost so far, of all publishers.
    pub fn lost(&self) -> u64 {
        self.count().lost()
    }

    /// Counts lost samples.
    pub fn count_lost(&self, samples: u64, cause: LossCause) {
        self.count().count_lost(samples, cause);
    }

    /// Where it counts.
    pub(crate) fn count(&self) -> &SubscriptionCounters {
        &self.memory.head().counters
    }

    /// How many samples in slots are borrowed now.
    pub fn borrowed(&self) -> usize {
        self.borrowed.count()
    }

    /// What it has counted.
    pub(crate) fn counters(&self) -> Counters {
        counters::of_subscription(self.memory.head(), self.memory.holds())
    }

    /// Whether there is something to take, or an event for which a wait has to end; an event ends
    /// one wait only. Any thread may ask while another one takes. `see` gets the connections that
    /// have a sample; `next` gets the addresses that the next look will read, if there is none.
    #[inline]
    pub(crate) fn take_news(&self, next: &mut PrefetchList, see: impl FnMut(u32)) -> bool {
        let list = self.connections.list();
        let mut is_news = self.readiness.look(&list, || self.sleeper.ready(), next, see);
        if self.inbox.is_urgent() {
            self.inbox.set_urgent(false);
            is_news = true;
        }
        is_news
    }

    /// Fetches into the caches everything that a look and a take read.
    #[inline(always)]
    pub(crate) fn prefetch(this: *const SubscriptionState) {
        prefetch::lines_to_read(this.cast::<u8>().wrapping_sub(2 * size_of::<usize>()), HOT_LINES);
    }

    /// Marks publishers with unread samples, whatever their ready bits say: publishers may have
    /// taken bits away from each other. Any thread may call it.
    pub(crate) fn look_for_overlooked(&self) {
        if self.readiness.ready_list().is_used() {
            self.readiness.overlook(&self.connections.list());
        }
    }

    /// Makes its publishers set their ready bits: those of `numbers` are due now. None: they are
    /// few. Only the reader calls it. A publisher that has not seen it has published before the
    /// caller's next fence.
    pub(crate) fn use_ready(&self, numbers: &[u64]) {
        self.readiness.ready_list().use_for(numbers);
        self.sleeper.set_many(!numbers.is_empty());
    }

    /// Called when the reader is dropped: every borrowed sample keeps the object alive from now on.
    pub(crate) fn abandon(self: &Arc<Self>) {
        self.borrowed.abandon(|| Arc::clone(self));
    }

    /// Drops one clone of the sample in `hold`; the last one releases it.
    ///
    /// # Safety
    /// `this` must come from the `Arc` of the reader that took the sample, and the clone must be
    /// dropped only once.
    #[inline]
    pub(crate) unsafe fn drop_clone(this: *const Self, hold: u32) {
        // SAFETY: as the caller promises.
        if unsafe { Borrowed::drop_clone(&raw const (*this).borrowed, hold) } {
            // SAFETY: `abandon` has counted this sample in, once.
            unsafe { Arc::decrement_strong_count(this) };
        }
        // The object may be gone after this point.
    }

    /// The word by which it announces what it reads of a connection.
    pub(crate) fn reading(&self, connection: u32) -> &AtomicU64 {
        &self.memory.connection(connection).reading
    }

    pub(crate) fn is_forked(&self) -> bool {
        fork::is_forked(self.fork)
    }

    /// Makes the reader look at its publishers, and wakes it if it sleeps.
    pub(crate) fn look_again(&self) {
        self.changed.store(true, Ordering::Release);
        self.sleeper.waker.wake();
    }
}

impl Drop for SubscriptionState {
    fn drop(&mut self) {
        if self.is_forked() {
            return;
        }
        let call = self.on_last_drop.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(call) = call {
            call();
        }
    }
}
