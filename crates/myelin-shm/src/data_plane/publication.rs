//! The node's side of a publisher: its ring's memory, its slot segments, and the subscribers that
//! it is matched with. `writer` publishes; the two meet in one flag that the writer checks on
//! every publish.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, OnceLock};

use crate::counters;
pub use crate::data_plane::remote_subscriber::{RemoteSubscriber, WakeDescriptors};
pub use crate::data_plane::writer::{
    Dispatch, Published, RawLoan, RoomWait, SampleHold, Slept, SlotCounts, SlotLoan, Writer,
};
use crate::error::Error;
use crate::event::Inbox;
use crate::layout::{
    Cell, PUBLICATION_HEAD_BYTES, PUBLICATION_MAGIC, PublicationHead, VERSION, publication_bytes,
};
use crate::limits::SUBSCRIBERS_MAX;
use crate::os::segment::{Segment, Writers};
use crate::record::Counters;
use crate::sync::{AtomicBool, AtomicU64, Mutex, Ordering, Step, fence, fence_of, is_taken, lock};
use crate::topic::{EndpointId, PublisherQos, Reliability, Topic};
use crate::waiting::wait;

/// A segment of slots, to be passed to subscribers.
#[derive(Clone, Debug)]
pub struct SlotSegment {
    /// Its number within the publisher.
    pub number: u32,
    /// Bytes of each slot.
    pub slot_bytes: u64,
    /// How many there are.
    pub slots: u32,
    /// Its memory.
    pub fd: Arc<OwnedFd>,
}

type OnGrowth<T> = Box<dyn Fn(T) + Send + Sync>;

/// A subscriber that was removed while the publisher waited for it.
#[derive(Debug)]
pub struct Detached(Arc<RemoteSubscriber>);

impl Detached {
    /// Whether its publisher waits for it no longer; if it does, the publisher is woken. The
    /// publisher may not sleep yet, so once is not enough; and its thread may not run for long, so
    /// a node's thread asks again and does not wait.
    pub fn is_noticed(&self, publication: &PublicationState) -> bool {
        let waits = publication.waits_for.load(Ordering::Relaxed) == address(&self.0);
        if waits {
            wait::wake(self.0.reading());
        }
        !waits
    }
}

/// The node's side of a publisher. Any thread may call it.
pub struct PublicationState {
    id: EndpointId,
    topic: Topic,
    qos: PublisherQos,
    segment: Segment,
    fd: Arc<OwnedFd>,
    inbox: Arc<Inbox>,
    slots: Mutex<Vec<SlotSegment>>,
    subscribers: Mutex<Vec<Arc<RemoteSubscriber>>>,
    /// Set when `subscribers` has changed; cleared by the writer before it looks.
    pub(crate) changed: AtomicBool,
    /// The address of the subscriber that a reliable writer waits for; 0 for none. Its id would not
    /// do: it may be attached again before the writer has noticed that it was detached.
    pub(crate) waits_for: AtomicU64,
    on_growth: OnceLock<OnGrowth<SlotSegment>>,
    /// Loans that were discarded while the writer was publishing.
    discarded: Mutex<Vec<RawLoan>>,
}

impl PublicationState {
    pub(crate) fn create(
        id: EndpointId,
        topic: &Topic,
        qos: PublisherQos,
    ) -> Result<Arc<PublicationState>, Error> {
        topic.check()?;
        qos.check(topic)?;
        let cells = u64::from(qos.depth) + 1;
        let bytes = publication_bytes(cells);
        let (segment, fd) = Segment::create("myelin-publication", bytes, Writers::Owner)?;
        let shared = PublicationState {
            id,
            topic: topic.clone(),
            qos,
            segment,
            fd: Arc::new(fd),
            inbox: Arc::default(),
            slots: Mutex::new(Vec::new()),
            subscribers: Mutex::new(Vec::new()),
            changed: AtomicBool::new(false),
            waits_for: AtomicU64::new(0),
            on_growth: OnceLock::new(),
            discarded: Mutex::new(Vec::new()),
        };
        write_head(shared.head(), id, topic, &qos);
        shared.head().memory_bytes.set(shared.segment.bytes());
        if cfg!(loom) {
            shared.cells(); // in a model, this memory must be initialised before there are two threads
        }
        Ok(Arc::new(shared))
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
    pub fn qos(&self) -> &PublisherQos {
        &self.qos
    }

    /// The events for its user.
    pub(crate) fn inbox(&self) -> &Arc<Inbox> {
        &self.inbox
    }

    /// The publication segment, to be passed to subscribers.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// The same, for its node to keep.
    pub(crate) fn shared_descriptor(&self) -> Arc<OwnedFd> {
        self.fd.clone()
    }

    /// The slot segments there are now.
    pub fn segments(&self) -> Vec<SlotSegment> {
        lock(&self.slots).clone()
    }

    /// The publishing thread calls `call` for every slot segment made from now on.
    pub fn on_growth(&self, call: OnGrowth<SlotSegment>) {
        let _ = self.on_growth.set(call);
    }

    /// Adds a subscriber to the publisher and returns the sequence of the first sample that is
    /// published after that.
    pub fn attach(&self, view: RemoteSubscriber) -> Result<u64, Error> {
        let mut subscribers = lock(&self.subscribers);
        if subscribers.len() >= SUBSCRIBERS_MAX {
            let (topic, limit) = (Some(self.topic.name.clone()), SUBSCRIBERS_MAX as u64);
            return Err(Error::TooMany { topic, what: "subscribers of one publisher", limit });
        }
        // Until the writer has looked, its reclaim must not free samples that the newcomer may
        // begin with.
        view.begin_at(0);
        let view = Arc::new(view);
        subscribers.push(view.clone());
        self.changed.store(true, Ordering::Relaxed);
        // ORDER: pairs with the writer's fences (P7, R1): either it sees `changed`, or we see
        // everything that it has published before.
        fence_of(Step::Attach);
        let start = self.published();
        view.begin_at(
            start.saturating_sub(u64::from(self.qos.transient_local.min(view.transient_local()))),
        );
        Ok(start)
    }

    /// Removes a subscriber that has left or died; everything it held is free again. Wakes the
    /// publisher if it waits for the subscriber. If there is a return value, ask it again until the
    /// publisher has noticed.
    #[must_use = "the publisher may wait for the subscriber"]
    pub fn detach(&self, subscriber: EndpointId) -> Option<Detached> {
        let mut subscribers = lock(&self.subscribers);
        let at = subscribers.iter().position(|view| view.id() == subscriber)?;
        let detached = Detached(subscribers.remove(at));
        drop(subscribers);
        if is_taken(Step::Gone) {
            self.changed.store(true, Ordering::Release);
        }
        // ORDER: pairs with the fence in `begin_wait`: either the writer sees `changed` or we see
        // that it waits.
        fence(Ordering::SeqCst);
        (!detached.is_noticed(self)).then_some(detached)
    }

    /// Until when a publish that begins now may wait for a subscriber, by `CLOCK_MONOTONIC`.
    pub fn wait_limit_ns(&self) -> u64 {
        wait::now_ns().saturating_add(self.qos.block_max.as_nanos() as u64)
    }

    /// How many subscribers it is matched with.
    pub fn matched(&self) -> usize {
        lock(&self.subscribers).len()
    }

    /// Samples published so far.
    pub fn published(&self) -> u64 {
        self.head().published.load(Ordering::Acquire)
    }

    /// How often the publisher has asserted its liveliness.
    pub fn asserted(&self) -> u64 {
        self.head().asserted.load(Ordering::Relaxed)
    }

    /// What it has counted.
    pub(crate) fn counters(&self) -> Counters {
        counters::of_publication(self.head())
    }

    /// Makes the writer look again at its subscribers, at its next publish.
    pub(crate) fn look_again(&self) {
        self.changed.store(true, Ordering::Release);
    }

    /// Takes a loan back while the writer is publishing further up in this thread. The writer gets
    /// it at its next publish or loan.
    ///
    /// # Safety
    /// It is a loan of this publication's writer.
    pub unsafe fn discard_later(&self, loan: RawLoan) {
        lock(&self.discarded).push(loan);
        self.look_again();
    }

    /// The loans that were discarded since the last call.
    pub(crate) fn discarded(&self) -> Vec<RawLoan> {
        std::mem::take(&mut *lock(&self.discarded))
    }

    /// Adds the current subscribers to `views`.
    pub(crate) fn views_into(&self, views: &mut Vec<Arc<RemoteSubscriber>>) {
        views.extend(lock(&self.subscribers).iter().cloned());
    }

    /// Adds a slot segment and tells the node.
    pub(crate) fn grown(&self, made: SlotSegment) {
        self.head().memory_bytes.add(made.slot_bytes * u64::from(made.slots));
        lock(&self.slots).push(made.clone());
        if let Some(call) = self.on_growth.get() {
            call(made);
        }
    }

    #[inline(always)]
    pub(crate) fn head(&self) -> &PublicationHead {
        // SAFETY: the head is atomics and padding, and the mapping is our own.
        unsafe { self.segment.at(0) }
    }

    #[inline(always)]
    pub(crate) fn cells(&self) -> &[Cell] {
        // SAFETY: as for the head.
        unsafe { self.segment.array(PUBLICATION_HEAD_BYTES, u64::from(self.qos.depth) + 1) }
    }
}

/// Names a subscriber as long as the object lives.
pub(crate) fn address(subscriber: &Arc<RemoteSubscriber>) -> u64 {
    Arc::as_ptr(subscriber).addr() as u64
}

/// Writes the head, which subscribers check.
pub(super) fn write_head(
    head: &PublicationHead,
    id: EndpointId,
    topic: &Topic,
    qos: &PublisherQos,
) {
    let cells = u64::from(qos.depth) + 1;
    let is_last = is_taken(Step::Magic);
    if !is_last {
        head.magic.store(PUBLICATION_MAGIC, Ordering::Release);
    }
    head.version.store(VERSION, Ordering::Relaxed);
    head.bytes.store(publication_bytes(cells), Ordering::Relaxed);
    head.endpoint.store(id, Ordering::Relaxed);
    head.type_hash.store(topic.type_hash, Ordering::Relaxed);
    head.cells.store(cells, Ordering::Relaxed);
    head.depth.store(u64::from(qos.depth), Ordering::Relaxed);
    head.transient_local.store(u64::from(qos.transient_local), Ordering::Relaxed);
    let reliable = qos.reliability == Reliability::Reliable;
    head.reliable.store(u64::from(reliable), Ordering::Relaxed);
    head.cpu.store(u64::MAX, Ordering::Relaxed);
    if is_last {
        // ORDER: last, though passing the descriptor orders it already: a half-made head never has
        // the magic.
        head.magic.store(PUBLICATION_MAGIC, Ordering::Release);
    }
}
