//! The subscriber's side of one publisher: its ring and its slots, mapped read-only.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use crate::data_plane::arena::SLOT_ALIGN;
use crate::error::Error;
use crate::layout::{
    Cell, PUBLICATION_HEAD_BYTES, PUBLICATION_MAGIC, PublicationHead, VERSION, publication_bytes,
};
use crate::limits::{CELLS_MAX, SEGMENTS_MAX, SEQUENCE_MAX};
use crate::os::segment::Segment;
use crate::sync::{AtomicBool, AtomicU32, AtomicU64, Mutex, Ordering, load_acquire, lock};
use crate::topic::{EndpointId, Reliability, SubscriberQos, Topic};

/// One publisher of a subscriber's topic. The geometry is checked once and kept here.
#[derive(Debug)]
#[repr(C)] // each look reads the first fields
pub struct RemotePublisher {
    segment: Segment,
    pub(crate) cells: u64,
    /// 1 plus the number of slot segments that had come when the segment of the next sample was
    /// missing. 0: the segment is there, as far as the reader, which writes this, knows.
    missing: AtomicU64,
    /// Counts the slot segments that have come.
    pub(crate) arrivals: AtomicU32,
    /// The subscriber's number for it.
    pub connection: u32,
    /// Whether the publisher has left or died; samples in the ring can still be read.
    pub(crate) gone: AtomicBool,
    /// Whether it has gone, and the reader reads no more of it.
    pub(crate) finished: AtomicBool,
    /// The publisher's endpoint id.
    pub id: EndpointId,
    pub(crate) depth: u64,
    pub(crate) transient_local: u64,
    /// [`Topic::payload_offset`].
    payload_offset: usize,
    /// Sequence of the first sample that was published to the subscriber; its history comes before.
    pub(crate) start: AtomicU64,
    slots: Mutex<Vec<SlotMap>>,
}

/// A segment of slots, checked.
#[derive(Debug)]
struct SlotMap {
    number: u32,
    view: SlotView,
    segment: Arc<Segment>,
}

/// The memory of a slot segment, for observers: it is kept mapped.
#[derive(Clone, Debug)]
pub(crate) struct SlotMemory {
    pub(crate) segment: Arc<Segment>,
    /// Where the first slot begins.
    pub(crate) payload_offset: u64,
    pub(crate) slot_bytes: u64,
    pub(crate) slots: u32,
}

/// The slots of a segment. Valid as long as their [`RemotePublisher`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlotView {
    pub(crate) pointer: *const u8,
    pub(crate) slot_bytes: u64,
    pub(crate) slots: u32,
}

// SAFETY: the pointer leads into a mapping, which belongs to the process.
unsafe impl Send for SlotView {}

impl RemotePublisher {
    /// Maps and checks a publication segment.
    pub fn map(
        id: EndpointId,
        topic: &Topic,
        connection: u32,
        publication: OwnedFd,
    ) -> Result<RemotePublisher, Error> {
        let segment = Segment::map_theirs(publication.as_fd(), PUBLICATION_HEAD_BYTES)?;
        // SAFETY: atomics and padding; the segment is at least a head long.
        let head: &PublicationHead = unsafe { segment.at(0) };
        let read = |word: &AtomicU64| word.load(Ordering::Relaxed);
        if read(&head.magic) != PUBLICATION_MAGIC {
            return Err(Error::PeerCorrupt { what: "a segment that is no publication" });
        }
        if read(&head.version) != VERSION {
            return Err(Error::LayoutVersion { ours: VERSION, theirs: read(&head.version) });
        }
        let (cells, depth, transient_local) =
            (read(&head.cells), read(&head.depth), read(&head.transient_local));
        let in_range = (2..=CELLS_MAX).contains(&cells)
            && (1..cells).contains(&depth)
            && transient_local <= depth
            && publication_bytes(cells) <= segment.bytes();
        if !in_range || read(&head.endpoint) != id || read(&head.type_hash) != topic.type_hash {
            return Err(Error::PeerCorrupt { what: "a publication's head" });
        }
        Ok(RemotePublisher {
            id,
            connection,
            cells,
            depth,
            transient_local,
            payload_offset: topic.payload_offset(),
            start: AtomicU64::new(0),
            gone: AtomicBool::new(false),
            finished: AtomicBool::new(false),
            arrivals: AtomicU32::new(0),
            missing: AtomicU64::new(0),
            segment,
            slots: Mutex::new(Vec::new()),
        })
    }

    /// The sequence of the first sample for a subscriber with these settings, and how far the
    /// subscriber may fall behind.
    pub(crate) fn begin(&self, qos: &SubscriberQos) -> (u64, u64) {
        // A reliable subscriber may use the publisher's whole ring, so its own depth does not bound
        // it.
        let reliable = qos.reliability == Reliability::Reliable;
        let depth = self.depth.min(if reliable { u64::MAX } else { qos.depth.into() });
        let transient_local = self.transient_local.min(qos.transient_local.into()).min(depth);
        let start = self.start.load(Ordering::Relaxed);
        (start.min(SEQUENCE_MAX).saturating_sub(transient_local), depth)
    }

    /// How many samples there are for a subscriber with these settings, of which it has taken none.
    pub(crate) fn offered(&self, qos: &SubscriberQos) -> u64 {
        let published = self.head().published.load(Ordering::Acquire);
        published.min(SEQUENCE_MAX).saturating_sub(self.begin(qos).0)
    }

    /// Maps a slot segment; a known one is ignored. Only its node's thread calls it, one at a time.
    pub fn add_segment(
        &self,
        number: u32,
        slot_bytes: u64,
        slots: u32,
        fd: OwnedFd,
    ) -> Result<(), Error> {
        if self.slot_view(number).is_some() {
            return Ok(());
        }
        let bytes = slot_bytes.checked_mul(u64::from(slots)).filter(|bytes| *bytes > 0);
        let payload_offset = (self.payload_offset as u64).next_multiple_of(SLOT_ALIGN);
        let bytes = bytes.and_then(|bytes| bytes.checked_add(payload_offset));
        let is_aligned = slot_bytes.is_multiple_of(SLOT_ALIGN);
        let Some(bytes) = bytes.filter(|_| number < SEGMENTS_MAX && is_aligned) else {
            return Err(Error::PeerCorrupt { what: "the size of a slot segment" });
        };
        let segment = Segment::map_theirs(fd.as_fd(), bytes)?;
        let pointer = segment.pointer().wrapping_add(self.payload_offset);
        let view = SlotView { pointer, slot_bytes, slots };
        // The lock is taken after the mapping: a take needs the lock, and mapping waits for page
        // faults. A take that needs this segment finds its sample later: see `Reader::has_unread`.
        lock(&self.slots).push(SlotMap { number, view, segment: Arc::new(segment) });
        // ORDER: Release pairs with the reader's acquire; the list itself is under the lock.
        self.arrivals.fetch_add(1, Ordering::Release);
        Ok(())
    }

    pub(crate) fn slot_view(&self, number: u32) -> Option<SlotView> {
        let known = lock(&self.slots);
        known.iter().find(|map| map.number == number).map(|map| map.view)
    }

    pub(crate) fn slot_memory(&self, number: u32) -> Option<SlotMemory> {
        let known = lock(&self.slots);
        let SlotMap { view, segment, .. } = known.iter().find(|map| map.number == number)?;
        let SlotView { slot_bytes, slots, .. } = *view;
        Some(SlotMemory {
            segment: segment.clone(),
            payload_offset: self.payload_offset as u64,
            slot_bytes,
            slots,
        })
    }

    /// How many slot segments have come, if they come in order.
    pub(crate) fn segments(&self) -> u32 {
        lock(&self.slots).iter().map(|map| map.number + 1).max().unwrap_or(0)
    }

    /// Called by the reader: the slot segment of the next sample was missing when so many had come.
    /// `None`: it is there.
    pub(crate) fn note_missing(&self, arrivals: Option<u32>) {
        let missing = arrivals.map_or(0, |arrivals| u64::from(arrivals) + 1);
        // ORDER: Relaxed: a thread that waits for a sample is woken when the segment has come.
        self.missing.store(missing, Ordering::Relaxed);
    }

    fn lacks_memory(&self) -> bool {
        let missing = self.missing.load(Ordering::Relaxed);
        missing != 0 && missing == u64::from(self.arrivals.load(Ordering::Acquire)) + 1
    }

    /// Whether it has a sample to take, at `next` or later, as far as this can be seen. A sample
    /// whose slot segment has not come does not count: the waiter would not sleep, and might keep
    /// its CPU from the thread that maps the segment.
    #[inline]
    pub(crate) fn has_beyond(&self, next: u64) -> bool {
        let seen = load_acquire(&self.ring()[(next % self.cells) as usize].sequence);
        match seen.checked_sub(next) {
            None | Some(0) => false,
            Some(1) => !self.lacks_memory(),
            // The cell is being written, or has a later sample.
            Some(_) => load_acquire(&self.head().published) > next,
        }
    }

    /// The cell for the sample with this sequence.
    pub(crate) fn cell(&self, sequence: u64) -> *const Cell {
        &raw const self.ring()[(sequence % self.cells) as usize]
    }

    pub(crate) fn head(&self) -> &PublicationHead {
        // SAFETY: atomics and padding; only loaded from.
        unsafe { self.segment.at(0) }
    }

    pub(crate) fn ring(&self) -> &[Cell] {
        // SAFETY: as for the head; `cells` was checked against the segment.
        unsafe { self.segment.array(PUBLICATION_HEAD_BYTES, self.cells) }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::data_plane::writer::Writer;
    use crate::os::segment::Writers;
    use crate::topic::PublisherQos;

    /// A take needs the list of slot segments, and mapping a large one takes long. So there is a moment
    /// when a segment is mapped and not in the list while another thread has the lock.
    #[test]
    #[cfg_attr(miri, ignore = "Miri maps nothing")]
    fn a_segment_is_mapped_without_the_lock() {
        const SLOT_BYTES: u64 = 64 << 20;
        let topic = Topic { name: "t".into(), type_name: "T".into(), type_hash: 1 };
        let (_writer, shared) = Writer::create(1, &topic, PublisherQos::default()).unwrap();
        let publication = shared.descriptor().try_clone_to_owned().unwrap();
        let source = RemotePublisher::map(1, &topic, 0, publication).unwrap();
        let payload_offset = (topic.payload_offset() as u64).next_multiple_of(SLOT_ALIGN);
        // The moment may pass between two looks; then the next segment has one.
        let is_seen = |number: u32| {
            let (_slots, fd) =
                Segment::create("test", SLOT_BYTES + payload_offset, Writers::Owner).unwrap();
            let inode = rustix::fs::fstat(&fd).unwrap().st_ino.to_string();
            let is_of_segment = |line: &&str| line.split_whitespace().nth(4) == Some(&inode);
            let mappings = || {
                let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
                maps.lines().filter(is_of_segment).count()
            };
            let before = mappings();
            std::thread::scope(|scope| {
                let mapping = scope.spawn(|| source.add_segment(number, SLOT_BYTES, 1, fd));
                let is_seen = loop {
                    let slots = source.slots.lock().unwrap();
                    if slots.iter().any(|slot| slot.number == number) {
                        break false;
                    }
                    if mappings() > before {
                        break true;
                    }
                    drop(slots);
                    std::thread::yield_now();
                };
                mapping.join().unwrap().unwrap();
                is_seen
            })
        };
        assert!((0..200).any(is_seen), "a segment is mapped without the lock");
        assert!(source.slot_view(0).is_some());
    }
}
