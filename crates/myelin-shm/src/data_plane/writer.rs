//! Publishing: P1 to P8 of `docs/explanation/shared-memory.md` section 4, and the reclaiming of section 5.

mod callbacks;
mod room;

pub use callbacks::Dispatch;
pub(crate) use callbacks::{FindCallbacks, Payload, RunCallbacks};
pub use room::{RoomWait, Slept};

use crate::sync::{AtomicBool, Ordering, Step, fence, fence_of};
use std::ptr::NonNull;
use std::sync::Arc;

use crate::data_plane::arena::{Arena, Slot};
use crate::data_plane::publication::{PublicationState, SlotSegment};
use crate::data_plane::reclaim::Protected;
use crate::data_plane::remote_subscriber::RemoteSubscriber;
use crate::data_plane::ring::{self, Inline};
use crate::error::Error;
use crate::layout::{Cell, INLINE_BYTES_MAX, PublicationHead};
use crate::limits::SEGMENTS_MAX;
use crate::os::fork;
use crate::os::prefetch;
use crate::os::segment::{Segment, Writers};
use crate::topic::{EndpointId, PublisherQos, SubscriberQos, Topic};

/// Memory for one sample, which the caller owns until it is published or discarded.
#[derive(Debug)]
pub struct RawLoan {
    length: u64,
    memory: Memory,
}

#[derive(Debug)]
enum Memory {
    /// A payload that will be copied into the ring.
    Private(Private),
    Slot(Slot),
}

// SAFETY: a loan is exclusive memory; the slot's pointer is valid in every thread.
unsafe impl Send for RawLoan {}

/// Memory for a payload of up to 104 B. It is not a `Box`: moving a box asserts that no pointer
/// into it is used any more, and loans are moved while the user has a pointer.
#[derive(Debug)]
struct Private(NonNull<Inline>);

impl Private {
    fn new() -> Private {
        Private(NonNull::from(Box::leak(Box::new(Inline::ZERO))))
    }

    #[inline(always)]
    fn bytes(&self, length: u64) -> &[u8] {
        // SAFETY: this object owns it alone until it is dropped.
        unsafe { self.0.as_ref() }.bytes(length as usize)
    }

    #[inline(always)]
    fn bytes_mut(&mut self, length: u64) -> &mut [u8] {
        // SAFETY: as above.
        unsafe { self.0.as_mut() }.bytes_mut(length as usize)
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        // SAFETY: it comes from a box, and only from `new`.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

impl RawLoan {
    /// Bytes of the payload.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The payload. Aligned to 64 bytes. Zeros, or bytes of an earlier sample of this publisher.
    ///
    /// # Safety
    /// The loan's [`Writer`] must still exist.
    #[inline]
    pub unsafe fn bytes_mut(&mut self) -> &mut [u8] {
        match &mut self.memory {
            Memory::Private(private) => private.bytes_mut(self.length),
            // SAFETY: the slot is at least `length` long and this loan's alone: it left the free
            // list, and its segment is mapped as long as the writer lives.
            Memory::Slot(slot) => unsafe {
                std::slice::from_raw_parts_mut(slot.pointer, self.length as usize)
            },
        }
    }
}

/// Keeps the memory of a published sample, for another route: until it is dropped, no other sample
/// is written there. Any thread may have it, also after the writer has gone.
#[derive(Debug)]
pub struct SampleHold {
    bytes: *const [u8],
    _segment: Arc<Segment>,
    ended: Arc<AtomicBool>,
}

// SAFETY: the bytes are in a segment that it keeps mapped, and do not change while it exists.
unsafe impl Send for SampleHold {}
// SAFETY: as above.
unsafe impl Sync for SampleHold {}

impl std::ops::Deref for SampleHold {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: as above.
        unsafe { &*self.bytes }
    }
}

impl Drop for SampleHold {
    fn drop(&mut self) {
        // ORDER: release pairs with the acquire in `reclaim`: the reads came before the next write.
        self.ended.store(true, Ordering::Release);
    }
}

/// A loan of a slot that needs no writer: any thread may fill it, also after its writer has gone. If
/// it is dropped unpublished, the writer has the slot again at its next publish or loan.
pub struct SlotLoan {
    /// `None`: it has been published.
    raw: Option<RawLoan>,
    _segment: Arc<Segment>,
    publication: Arc<PublicationState>,
    fork: u32,
}

impl SlotLoan {
    /// The payload.
    pub fn bytes(&self) -> &[u8] {
        match &self.raw {
            // SAFETY: as in `bytes_mut`.
            Some(RawLoan { length, memory: Memory::Slot(slot) }) => unsafe {
                std::slice::from_raw_parts(slot.pointer, *length as usize)
            },
            _ => &[],
        }
    }

    /// The payload. Zeros, or bytes of an earlier sample.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        match &mut self.raw {
            // SAFETY: its slot is this loan's alone, and in a segment that it keeps mapped.
            Some(raw) => unsafe { raw.bytes_mut() },
            None => &mut [],
        }
    }
}

impl std::fmt::Debug for SlotLoan {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("SlotLoan").field("raw", &self.raw).finish_non_exhaustive()
    }
}

impl Drop for SlotLoan {
    fn drop(&mut self) {
        if let Some(raw) = self.raw.take()
            && !fork::is_forked(self.fork)
        {
            // SAFETY: it is a loan of this publication's writer.
            unsafe { self.publication.discard_later(raw) };
        }
    }
}

/// The result of a publish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published {
    /// The sample's sequence: how many its publisher published before.
    pub sequence: u64,
    /// How many reliable subscribers were late and were not waited for: they may lose this sample.
    /// The publisher's events name them.
    pub passed_over: u32,
}

/// Counts of a publisher's slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotCounts {
    /// All slots.
    pub total: usize,
    /// Free slots.
    pub free: usize,
    /// Bytes of their segments.
    pub bytes: u64,
}

/// The publishing side. Used by one thread at a time.
pub struct Writer {
    shared: Arc<PublicationState>,
    /// First the subscribers that are notified, then the callbacks of this process.
    views: Vec<Arc<RemoteSubscriber>>,
    notified: usize,
    /// The callbacks among `views`; `None` if there are none.
    local: Option<Arc<dyn RunCallbacks>>,
    /// All callbacks of the topic in this process; `None` without a node.
    callbacks: Option<Arc<dyn FindCallbacks>>,
    /// Leaves the callbacks of this process to its caller; see
    /// [`defer_callbacks`](Self::defer_callbacks).
    defers: bool,
    /// The callbacks that its caller must run now.
    due: Option<Dispatch>,
    /// Sequence of the next sample, and its cell.
    next: u64,
    at: usize,
    /// The cells of `shared`, and its head: looked up once and not at each publish.
    ring: *const [Cell],
    head: *const PublicationHead,
    /// The first of `views`, and its `asleep`: hints that may be stale.
    first: [*const u8; 2],
    arena: Arena,
    /// The slots of samples that were not free at the last look.
    in_flight: Vec<Slot>,
    slot_segments: Vec<Arc<Segment>>,
    /// The samples that other routes hold, and whether each hold has ended.
    held: Vec<(u64, Arc<AtomicBool>)>,
    protected: Protected,
    least_reading: u64,
    /// How many reliable subscribers are passed over.
    late: u32,
    loans: u32,
    /// Memory for loans, not in use.
    private: Vec<Private>,
    cpu: u64,
    /// Whether samples carry their time.
    timestamps: bool,
    fork: u32,
}

// SAFETY: the pointers in the slots lead into segments that the writer owns, those to the ring and
// the head into a segment that it keeps; `first` is never read through; private memory is
// exclusive.
unsafe impl Send for Writer {}

impl Writer {
    /// A publisher of `topic` without subscribers.
    pub fn create(
        id: EndpointId,
        topic: &Topic,
        qos: PublisherQos,
    ) -> Result<(Writer, Arc<PublicationState>), Error> {
        let shared = PublicationState::create(id, topic, qos)?;
        let writer = Writer {
            shared: shared.clone(),
            // This capacity lets the first publish allocate nothing.
            views: Vec::with_capacity(1),
            notified: 0,
            local: None,
            callbacks: None,
            defers: false,
            due: None,
            next: 0,
            at: 0,
            ring: shared.cells(),
            head: shared.head(),
            first: [std::ptr::from_ref(shared.head()).cast(); 2],
            arena: Arena::default(),
            in_flight: Vec::new(),
            slot_segments: Vec::new(),
            held: Vec::new(),
            protected: Protected::with_capacity(1 + SubscriberQos::default().held_max as usize),
            least_reading: 0,
            late: 0,
            loans: 0,
            private: Vec::new(),
            cpu: u64::MAX,
            timestamps: qos.timestamps,
            fork: fork::mark(),
        };
        Ok((writer, shared))
    }

    /// The state that the node shares with it.
    pub fn shared(&self) -> &Arc<PublicationState> {
        &self.shared
    }

    /// Memory for a payload of `length` bytes; payloads of up to 104 B in any number at once.
    #[inline]
    pub fn loan(&mut self, length: u64) -> Result<RawLoan, Error> {
        self.check_fork()?;
        self.check_length(length)?;
        if length <= INLINE_BYTES_MAX as u64 {
            let private = self.private.pop().unwrap_or_else(Private::new);
            return Ok(RawLoan { length, memory: Memory::Private(private) });
        }
        if self.loans >= self.shared.qos().loans_max && !self.takes_back() {
            self.head().refused_loans.add_own(1);
            return Err(Error::TooManyLoans { topic: self.topic_name(), loans: self.loans });
        }
        let slot = self.slot(length)?;
        self.withdraw(&slot);
        self.loans += 1;
        // Starts the fetch while the loan is filled.
        self.prefetch(0);
        Ok(RawLoan { length, memory: Memory::Slot(slot) })
    }

    /// A loan that needs no writer; `None` for a payload of up to 104 B, which has no slot, and for the
    /// last loan, which [`publish_copy`](Self::publish_copy) needs.
    ///
    /// # Errors
    /// As for [`loan`](Self::loan).
    pub fn loan_slot(&mut self, length: u64) -> Result<Option<SlotLoan>, Error> {
        if self.shared.changed.load(Ordering::Relaxed) {
            self.refresh(); // loans that were dropped
        }
        let is_last = self.loans + 1 >= self.shared.qos().loans_max;
        if is_last || length <= INLINE_BYTES_MAX as u64 {
            return Ok(None);
        }
        let raw = self.loan(length)?;
        let Memory::Slot(slot) = &raw.memory else { unreachable!("it is larger") };
        let segment = self.slot_segments[usize::from(slot.segment)].clone();
        let (publication, fork) = (self.shared.clone(), self.fork);
        Ok(Some(SlotLoan { raw: Some(raw), _segment: segment, publication, fork }))
    }

    /// Makes memory for `count` payloads of `bytes` bytes, so that so many loans, or samples that
    /// are still read, allocate none. Payloads of up to 104 B need none.
    ///
    /// # Errors
    /// As for [`loan`](Self::loan); memory made by then stays.
    pub fn reserve(&mut self, count: u32, bytes: u64) -> Result<(), Error> {
        self.check_fork()?;
        self.check_length(bytes)?;
        if bytes <= INLINE_BYTES_MAX as u64 {
            return Ok(());
        }
        let mut slots = Vec::with_capacity(count as usize);
        let made = (0..count).try_for_each(|_| self.slot(bytes).map(|slot| slots.push(slot)));
        slots.into_iter().rev().for_each(|slot| self.arena.give_back(slot));
        made
    }

    /// Publishes a loan of this writer.
    ///
    /// # Errors
    /// The time limit of a publisher that must not pass over; the loan is then discarded.
    ///
    /// # Safety
    /// The loan belongs to this writer: another writer's memory would be reused while it is read.
    #[inline]
    pub unsafe fn publish(&mut self, loan: RawLoan) -> Result<Published, Error> {
        let is_private = matches!(loan.memory, Memory::Private(_));
        self.prefetch(if is_private { loan.length as usize } else { 0 });
        if let Err(error) = self.make_room() {
            // SAFETY: as the caller promises.
            unsafe { self.discard(loan) };
            return Err(error);
        }
        // SAFETY: as the caller promises.
        Ok(unsafe { self.publish_with_room(loan) })
    }

    /// The same, when there is room.
    ///
    /// # Safety
    /// As [`publish`](Self::publish).
    #[inline(always)]
    unsafe fn publish_with_room(&mut self, loan: RawLoan) -> Published {
        let mut slot = match loan.memory {
            Memory::Slot(slot) => slot,
            Memory::Private(private) => {
                let published = self.publish_inline(private.bytes(loan.length));
                self.private.push(private);
                return published;
            }
        };
        self.loans -= 1;
        let time_ns = self.time_ns();
        let cell = self.cell();
        ring::begin(cell);
        ring::write_place(cell, loan.length, slot.place(), time_ns);
        self.count(loan.length, time_ns);
        ring::finish(cell, &self.head().published, self.next);
        slot.sequence = self.next;
        self.in_flight.push(slot);
        let payload = || Payload::Slot { length: loan.length, place: slot.place() };
        let published = self.finish(payload, time_ns);
        if self.arena.is_used_up(&slot) || self.views.is_empty() {
            // For the next loan, while this sample is under way. Without a subscriber on this host,
            // the next loan gets the same slot again, which is still in the caches.
            self.reclaim();
        }
        published
    }

    /// Publishes a loan of a slot, which is then empty; that of another writer is copied.
    ///
    /// # Errors
    /// As [`publish`](Self::publish); the loan stays.
    pub fn publish_slot(&mut self, loan: &mut SlotLoan) -> Result<Published, Error> {
        if !Arc::ptr_eq(&loan.publication, &self.shared) {
            return self.publish_copy(loan.bytes());
        }
        self.make_room()?;
        let raw = loan.raw.take().expect("it is published once");
        // SAFETY: it is a loan of this writer.
        Ok(unsafe { self.publish_with_room(raw) })
    }

    /// Publishes a loan of this writer, and keeps its memory until the hold is dropped. A payload
    /// inside the ring has no memory to hold.
    ///
    /// # Errors
    /// As [`publish`](Self::publish).
    ///
    /// # Safety
    /// As [`publish`](Self::publish).
    pub unsafe fn publish_held(
        &mut self,
        loan: RawLoan,
    ) -> Result<(Published, Option<SampleHold>), Error> {
        let hold = match &loan.memory {
            Memory::Private(_) => None,
            Memory::Slot(slot) => {
                let bytes = std::ptr::slice_from_raw_parts(slot.pointer, loan.length as usize);
                let ended = Arc::new(AtomicBool::new(false));
                self.held.push((self.next, ended.clone()));
                let segment = self.slot_segments[usize::from(slot.segment)].clone();
                Some(SampleHold { bytes, _segment: segment, ended })
            }
        };
        // SAFETY: as the caller promises. If it fails, the hold ends.
        let published = unsafe { self.publish(loan) }?;
        Ok((published, hold))
    }

    /// Publishes a copy of `payload`.
    #[inline]
    pub fn publish_copy(&mut self, payload: &[u8]) -> Result<Published, Error> {
        if payload.len() > INLINE_BYTES_MAX {
            let mut loan = self.loan(payload.len() as u64)?;
            // SAFETY: `self` is the loan's writer.
            unsafe {
                loan.bytes_mut().copy_from_slice(payload);
                return self.publish(loan);
            }
        }
        self.check_length(payload.len() as u64)?;
        self.prefetch(payload.len());
        self.make_room()?;
        Ok(self.publish_inline(payload))
    }

    /// Publishes a copy of `payload`, and keeps it until the hold is dropped.
    ///
    /// # Errors
    /// As [`publish_copy`](Self::publish_copy).
    pub fn publish_copy_held(
        &mut self,
        payload: &[u8],
    ) -> Result<(Published, Option<SampleHold>), Error> {
        let mut loan = self.loan(payload.len() as u64)?;
        // SAFETY: `self` is the loan's writer.
        unsafe {
            loan.bytes_mut().copy_from_slice(payload);
            self.publish_held(loan)
        }
    }

    /// Gives a loan of this writer back without publishing it.
    ///
    /// # Safety
    /// As [`publish`](Self::publish).
    pub unsafe fn discard(&mut self, loan: RawLoan) {
        match loan.memory {
            Memory::Private(private) => self.private.push(private),
            Memory::Slot(slot) => {
                self.loans -= 1;
                if !fork::is_forked(self.fork) {
                    self.arena.give_back(slot);
                }
            }
        }
    }

    /// Takes back the loans that were discarded during a publish. Whether another loan may be made
    /// now.
    #[cold]
    fn takes_back(&mut self) -> bool {
        if self.shared.changed.load(Ordering::Relaxed) {
            self.refresh();
        }
        self.loans < self.shared.qos().loans_max
    }

    /// Tells subscribers with a liveliness lease that the publisher is alive.
    pub fn assert_liveliness(&mut self) -> Result<(), Error> {
        self.check_fork()?;
        let asserted = &self.head().asserted;
        asserted.store(asserted.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        Ok(())
    }

    /// Sequence of the sample that the slowest subscriber reads next; `None` without subscribers.
    pub fn slowest_reading(&self) -> Option<u64> {
        self.views.iter().map(|view| view.announced().reading()).min()
    }

    /// The state of its slots, after a look for free ones.
    pub fn slot_counts(&mut self) -> SlotCounts {
        self.reclaim();
        SlotCounts { total: self.arena.slots(), free: self.arena.free(), bytes: self.arena.bytes() }
    }

    /// P2 to P8 for a payload inside the cell.
    #[inline(always)]
    fn publish_inline(&mut self, payload: &[u8]) -> Published {
        let time_ns = self.time_ns();
        let cell = self.cell();
        ring::begin(cell);
        ring::write_inline(cell, payload, time_ns);
        self.count(payload.len() as u64, time_ns);
        ring::finish(cell, &self.head().published, self.next);
        self.finish(|| Payload::Inline(payload), time_ns)
    }

    /// Fetches what a publish writes and reads, with `length` bytes inside the cell. A topic that
    /// has been quiet for a while has none of it in the caches, and the fence P7 waits for one half
    /// before it goes on to the other.
    #[inline(always)]
    fn prefetch(&self, length: usize) {
        ring::prefetch_to_write(self.cell(), length);
        prefetch::to_write((&raw const self.head().published).cast());
        self.first.iter().for_each(|pointer| prefetch::to_read(*pointer));
        prefetch::to_read((&raw const self.shared.changed).cast());
    }

    #[inline(always)]
    fn head(&self) -> &'static PublicationHead {
        // SAFETY: as in `cell`.
        unsafe { &*self.head }
    }

    /// The time of publication, if samples carry it.
    #[inline(always)]
    fn time_ns(&self) -> u64 {
        if self.timestamps { crate::waiting::wait::now_ns() } else { 0 }
    }

    /// The cell of the next sample.
    #[inline(always)]
    fn cell(&self) -> &'static Cell {
        // SAFETY: the ring lives as long as `self.shared`, which outlives the callers; the lifetime
        // is independent of `self` only so that they can read its other fields.
        unsafe { &(&*self.ring)[self.at] }
    }

    /// Counts what is published next, in the line that is about to be written for `published`.
    #[inline(always)]
    fn count(&self, bytes: u64, time_ns: u64) {
        let head = self.head();
        head.published_bytes.add_own(bytes);
        head.last_published_ns.set(time_ns);
    }

    /// P7 and P8.
    #[inline(always)]
    fn finish<'a>(&mut self, payload: impl FnOnce() -> Payload<'a>, time_ns: u64) -> Published {
        let sequence = self.next;
        let passed_over = self.late;
        self.next += 1;
        self.at = if self.at + 1 == self.ring.len() { 0 } else { self.at + 1 };
        match &self.local {
            None if self.notify(&self.views) => {}
            Some(local) if !self.defers => {
                let (notified, payload) = (&self.views[..self.notified], payload());
                if !local.publish(notified, sequence, time_ns, payload) {
                    self.finish_for_changed(sequence, payload, time_ns);
                }
            }
            _ => self.finish_for_changed(sequence, payload(), time_ns),
        }
        self.note_cpu();
        Published { sequence, passed_over }
    }

    /// The same, when subscribers may have come or gone, or callbacks are deferred.
    #[cold]
    fn finish_for_changed(&mut self, sequence: u64, payload: Payload<'_>, time_ns: u64) {
        loop {
            let notified = &self.views[..self.notified];
            let is_done = match &self.local {
                Some(local) if !self.defers => local.publish(notified, sequence, time_ns, payload),
                _ => self.notify(notified),
            };
            if is_done {
                break;
            }
            self.refresh();
        }
        if let Some(callbacks) = self.local.clone().filter(|_| self.defers) {
            let is_inline = matches!(payload, Payload::Inline(_));
            self.due = Some(Dispatch { callbacks, sequence, time_ns, is_inline });
        }
    }

    /// P7 and P8 for these subscribers. False if some have come or gone: then nothing has been
    /// done.
    #[inline(always)]
    fn notify(&self, views: &[Arc<RemoteSubscriber>]) -> bool {
        // ORDER: pairs with the fence in `sleep::fall_asleep` and with the one in `attach`.
        fence_of(Step::P7);
        // ORDER: Relaxed after the fence; `refresh` acquires by taking the lock.
        if self.shared.changed.load(Ordering::Relaxed) {
            return false;
        }
        RemoteSubscriber::notify_each(views.iter(), &self.head().published);
        true
    }

    /// Notes the CPU, for subscribers that must not spin while the publisher needs their core.
    #[inline(always)]
    fn note_cpu(&mut self) {
        let cpu = crate::waiting::wait::cpu();
        if cpu != self.cpu {
            self.cpu = cpu;
            self.head().cpu.store(cpu, Ordering::Relaxed);
        }
    }

    #[inline(always)]
    fn check_fork(&self) -> Result<(), Error> {
        if fork::is_forked(self.fork) { Err(Error::Forked) } else { Ok(()) }
    }

    #[inline(always)]
    fn check_length(&self, length: u64) -> Result<(), Error> {
        if length > self.shared.qos().payload_bytes_max {
            let limit = self.shared.qos().payload_bytes_max;
            let topic = self.topic_name();
            return Err(Error::PayloadTooLarge { topic, bytes: length, limit });
        }
        Ok(())
    }

    #[inline]
    fn slot(&mut self, length: u64) -> Result<Slot, Error> {
        // Filling a large slot takes longer than the look for free ones: the slot that was used
        // last is still in the caches, which have no room for all slots together.
        if length < LARGE_BYTES
            && let Some(slot) = self.arena.take(length)
        {
            return Ok(slot);
        }
        self.reclaim();
        match self.arena.take(length) {
            Some(slot) => Ok(slot),
            None => self.grow(length).inspect_err(|_| self.head().refused_loans.add_own(1)),
        }
    }

    #[cold]
    fn grow(&mut self, length: u64) -> Result<Slot, Error> {
        let growth = self.arena.growth(length);
        let wanted = self.arena.bytes() + growth.bytes();
        if wanted > self.shared.qos().memory_max {
            let out = self.arena.slots() - self.arena.free();
            let (topic, limit) = (self.topic_name(), self.shared.qos().memory_max);
            return Err(Error::MemoryLimit { topic, wanted, limit, out });
        }
        if growth.segment >= SEGMENTS_MAX {
            let (topic, limit) = (Some(self.topic_name()), u64::from(SEGMENTS_MAX));
            return Err(Error::TooMany { topic, what: "slot segments of one publisher", limit });
        }
        let payload_offset = self.shared.topic().payload_offset();
        let bytes = growth.segment_bytes(payload_offset);
        let (segment, fd) = Segment::create("myelin-slots", bytes, Writers::Owner)?;
        self.arena.add(growth, segment.pointer().wrapping_add(payload_offset));
        self.slot_segments.push(Arc::new(segment));
        self.in_flight.reserve(self.arena.slots() - self.in_flight.len());
        let (number, slot_bytes, slots) = (growth.segment, growth.slot_bytes, growth.slots);
        let made = SlotSegment { number, slot_bytes, slots, fd: Arc::new(fd) };
        self.shared.grown(made);
        Ok(self.arena.take(length).expect("the arena has just grown"))
    }

    /// R4, for a slot that is about to be written: observers find its last sample no more. For
    /// nobody else is it still there.
    #[inline(always)]
    fn withdraw(&self, slot: &Slot) {
        let (next, at) = (self.next, self.at);
        let age = next.wrapping_sub(slot.sequence);
        // SAFETY: as in `cell`.
        let ring = unsafe { &*self.ring };
        if age <= ring.len() as u64 {
            let back = age as usize;
            ring::withdraw(&ring[if at >= back { at - back } else { at + ring.len() - back }]);
        }
        ring::withdrawn();
    }

    /// R1 to R3.
    fn reclaim(&mut self) {
        // ORDER: R1, pairs with the subscriber's fence T1 and with the one in `attach`.
        fence_of(Step::R1);
        if self.shared.changed.load(Ordering::Relaxed) {
            self.refresh();
        }
        self.protected.collect(self.views.iter().map(|view| view.announced()));
        // ORDER: acquire pairs with the release of `SampleHold`.
        self.held.retain(|(_, ended)| !ended.load(Ordering::Acquire));
        self.held.iter().for_each(|(sequence, _)| self.protected.protect(*sequence));
        let kept_from = self.next.saturating_sub(u64::from(self.shared.qos().transient_local));
        let Writer { in_flight, arena, protected, next, ring, .. } = self;
        let cells = ring.len() as u64;
        in_flight.retain(|slot| {
            let sequence = slot.sequence;
            let overwritten = sequence + cells < *next;
            let free = protected.is_free(sequence, overwritten, sequence >= kept_from);
            if free {
                arena.give_back(*slot);
            }
            !free
        });
    }

    #[cold]
    fn refresh(&mut self) {
        // ORDER: Relaxed: cleared before the lists are read under their locks; a later change sets
        // it again.
        self.shared.changed.store(false, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        self.views.clear();
        self.shared.views_into(&mut self.views);
        // SAFETY: they are loans of this writer (`PublicationState::discard_later`).
        self.shared.discarded().into_iter().for_each(|loan| unsafe { self.discard(loan) });
        self.find_local();
        if let Some(first) = self.views.first() {
            self.first = RemoteSubscriber::read_at_publish(first);
        }
        let words = self.views.iter().map(|view| view.announcements()).sum();
        self.protected.reserve(words);
        self.least_reading = 0;
        self.count_late();
        self.head().subscribers.store(self.notified as u64, Ordering::Relaxed);
    }

    #[cold]
    fn topic_name(&self) -> String {
        self.shared.topic().name.clone()
    }
}

/// From this size on a payload takes the slot that was freed last: filling it takes at least 10 µs,
/// far more than a look at the subscribers' announcements.
const LARGE_BYTES: u64 = 128 << 10;

impl std::fmt::Debug for Writer {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Writer").field("topic", self.shared.topic()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A loan of up to 104 B, made as in `Writer::loan`. Under Miri: `scripts/sanitize`.
    fn private(length: u64) -> RawLoan {
        RawLoan { length, memory: Memory::Private(Private::new()) }
    }

    #[test]
    fn a_slot_without_readers_is_the_next_loan() {
        let topic = Topic { name: "t".into(), type_name: "T".into(), type_hash: 1 };
        let pointers = |transient_local: u32| {
            let qos = PublisherQos { transient_local, depth: 8, ..PublisherQos::default() };
            let (mut writer, _) = Writer::create(1, &topic, qos).unwrap();
            let publish = |_| {
                let mut loan = writer.loan(4096).unwrap();
                // SAFETY: the writer exists.
                let pointer = unsafe { loan.bytes_mut() }.as_mut_ptr();
                // SAFETY: the loan is this writer's.
                unsafe { writer.publish(loan) }.unwrap();
                pointer
            };
            (0..100).map(publish).collect::<std::collections::BTreeSet<_>>().len()
        };
        assert_eq!(pointers(0), 1);
        assert_eq!(pointers(3), 4, "three are kept for who comes later");
    }

    #[test]
    fn a_held_sample_stays_also_without_its_writer() {
        let topic = Topic { name: "t".into(), type_name: "T".into(), type_hash: 1 };
        let (mut writer, _) = Writer::create(1, &topic, PublisherQos::default()).unwrap();
        let mut publish = |byte: u8| {
            let mut loan = writer.loan(LARGE_BYTES).unwrap();
            // SAFETY: the writer exists, and the loan is its own.
            unsafe {
                loan.bytes_mut().fill(byte);
                writer.publish_held(loan).unwrap().1.unwrap()
            }
        };
        let first = publish(1);
        let place = publish(2).as_ptr();
        for byte in 3..100 {
            assert_eq!(publish(byte).as_ptr(), place, "what is not held is used again");
        }
        assert!(first.len() == LARGE_BYTES as usize && first.iter().all(|byte| *byte == 1));
        let again = first.as_ptr();
        drop(first);
        let held = [publish(100), publish(101)];
        assert!(held.iter().any(|held| held.as_ptr() == again), "and so is what was held");
        drop(writer);
        assert_eq!([held[0][0], held[1][LARGE_BYTES as usize - 1]], [100, 101]);
    }

    #[test]
    fn a_slot_loan_is_filled_without_its_writer_and_goes_back_if_it_is_dropped() {
        let topic = Topic { name: "t".into(), type_name: "T".into(), type_hash: 1 };
        let qos = PublisherQos { loans_max: 2, ..PublisherQos::default() };
        let (mut writer, _) = Writer::create(1, &topic, qos).unwrap();
        assert!(writer.loan_slot(INLINE_BYTES_MAX as u64).unwrap().is_none());
        let dropped = writer.loan_slot(4096).unwrap().unwrap();
        let place = dropped.bytes().as_ptr();
        assert!(writer.loan_slot(4096).unwrap().is_none());
        writer.publish_copy(&[1; 4096]).expect("it has the last loan");
        std::thread::spawn(move || drop(dropped)).join().unwrap();
        let mut loan = writer.loan_slot(4096).unwrap().unwrap();
        assert_eq!(loan.bytes().as_ptr(), place);
        loan.bytes_mut().fill(7);
        assert_eq!(writer.publish_slot(&mut loan).unwrap().sequence, 1);
        let mut late = writer.loan_slot(4096).unwrap().unwrap();
        drop(writer);
        late.bytes_mut().fill(8);
        assert_eq!(late.bytes(), [8; 4096]);
    }

    /// The order of `myelin::Loan`: it asks for the pointer once, and moves the loan afterwards.
    #[test]
    fn the_pointer_into_a_loan_is_valid_after_the_loan_has_been_moved() {
        let mut raw = private(100);
        // SAFETY: private memory does not depend on a writer.
        let pointer = unsafe { raw.bytes_mut() }.as_mut_ptr();
        let moved = std::mem::ManuallyDrop::new(raw);
        // SAFETY: the loan's own bytes.
        unsafe { pointer.write_bytes(7, 100) };
        let mut again = std::hint::black_box(std::mem::ManuallyDrop::into_inner(moved));
        // SAFETY: as above.
        assert_eq!(unsafe { again.bytes_mut() }, [7; 100]);
    }
}
