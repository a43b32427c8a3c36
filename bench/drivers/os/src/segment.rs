//! The shared memory of one run: two lanes, one for each direction. The lanes of a round trip have
//! [`SLOTS`] slots each. In a stream the first lane has room for its depth; the second one carries
//! no messages and has one slot.
//!
//! ```text
//! segment  lane 0: ping ─▶ pong                │ lane 1: pong ─▶ ping
//! lane     slot 0 │ slot 1 │ slot 2 │ slot 3     message n travels in slot n mod slots
//! slot     turn(4) released(4) message           a message of up to 56 B shares the cache line
//!          turn(4) released(4) pad(56) message   a larger one begins on its own
//!          turn(4) released(4) length(4) …       with messages of several sizes
//! ```
//! Only the lane's writer writes a slot, except that the reader sets one bit of `turn` before it
//! sleeps. `released` refers to the other lane: how many messages the writer of this slot has
//! released there. So the right to overwrite travels inside the answers and needs no additional
//! cache line.
//!
//! The memory is a memfd, sealed against changes of size, and faulted in before the run.

use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::sync::atomic::AtomicU32;

use memmap2::{MmapOptions, MmapRaw};
use myelin_bench_kit::Error;
use myelin_bench_kit::protocol::{Prepare, Workload};
use rustix::fs::{MemfdFlags, SealFlags};

use crate::handover::Turn;

/// Start of a slot.
#[repr(C)]
pub struct Header {
    /// The owner of the slot. Written by the lane's writer; `asleep` also by its reader.
    pub turn: Turn,
    /// Count up to which the writer has released the other lane's messages. Published by `turn`.
    pub released: AtomicU32,
}

const _: () = assert!(size_of::<Header>() == 8 && align_of::<Header>() == 4);

/// The layout of a segment. Each side computes it for itself, so no size
/// from the other side is ever trusted.
#[derive(Clone, Copy)]
pub struct Layout {
    /// Of every message, or of the largest.
    message_bytes: usize,
    /// Whether each slot says how long its message is.
    has_lengths: bool,
    message_at: usize,
    slot_bytes: usize,
    /// Number of messages that may be on their way.
    capacity: u32,
    /// Number of slots minus one. It is a power of two minus one, so that counts may wrap.
    mask: u32,
}

impl Layout {
    /// For messages of exactly `message_bytes`, of which `capacity` may be on their way.
    pub fn new(message_bytes: usize, capacity: u32) -> Self {
        Layout::with(message_bytes, capacity, false)
    }

    /// With `has_lengths`, messages have at most `message_bytes`.
    fn with(message_bytes: usize, capacity: u32, has_lengths: bool) -> Self {
        let head_bytes = size_of::<Header>() + if has_lengths { LENGTH_BYTES } else { 0 };
        let shares_line = head_bytes + message_bytes <= LINE_BYTES;
        let message_at = if shares_line { head_bytes } else { LINE_BYTES };
        let slot_bytes = (message_at + message_bytes).next_multiple_of(SLOT_ALIGN_BYTES);
        let mask = capacity.next_power_of_two() - 1;
        Layout { message_bytes, has_lengths, message_at, slot_bytes, capacity, mask }
    }

    /// The layouts of both lanes of a run.
    pub fn both(prepare: &Prepare) -> [Layout; 2] {
        let message_bytes = prepare.message_bytes();
        match prepare.workload.is_one_way() {
            true => {
                let has_lengths = prepare.workload == Workload::Replay;
                let outgoing = Layout::with(message_bytes, prepare.depth, has_lengths);
                [outgoing, Layout::new(0, 1)]
            }
            false => [Layout::new(message_bytes, SLOTS); 2],
        }
    }

    /// Bytes of a lane.
    pub fn lane_bytes(&self) -> usize {
        self.slot_bytes * (self.mask as usize + 1)
    }
}

/// Makes the memory for two lanes.
pub fn create(layouts: &[Layout; 2]) -> Result<OwnedFd, Error> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = rustix::fs::memfd_create("myelin-driver-os", flags).map_err(std::io::Error::from)?;
    let bytes: usize = layouts.iter().map(Layout::lane_bytes).sum();
    rustix::fs::ftruncate(&file, bytes as u64).map_err(std::io::Error::from)?;
    rustix::fs::fcntl_add_seals(&file, SEALS).map_err(std::io::Error::from)?;
    Ok(file)
}

/// One direction of a mapped segment.
pub struct Lane {
    layout: Layout,
    first: *mut u8,
    /// Keeps the memory mapped.
    _segment: Rc<MmapRaw>,
}

impl Lane {
    /// Maps the memory that [`create`] made; returns both lanes, ping's outgoing one first.
    pub fn map(file: impl AsFd, layouts: &[Layout; 2]) -> Result<[Self; 2], Error> {
        let status = rustix::fs::fstat(&file).map_err(std::io::Error::from)?;
        let seals = rustix::fs::fcntl_get_seals(&file).map_err(std::io::Error::from)?;
        let (theirs, ours) =
            (status.st_size as u64, layouts.iter().map(Layout::lane_bytes).sum::<usize>());
        if theirs != ours as u64 || !seals.contains(SEALS) {
            let text = format!("pong's shared memory has {theirs} B; expected: {ours} B, sealed");
            return Err(Error::new(text).remedy("use the same build of myelin-driver-os for both"));
        }
        let file = file.as_fd().try_clone_to_owned()?;
        let segment = Rc::new(MmapOptions::new().len(ours).populate().map_raw(&file)?);
        let begins = [0, layouts[0].lane_bytes()];
        Ok([0, 1].map(|index| Lane {
            layout: layouts[index],
            first: segment.as_mut_ptr().wrapping_add(begins[index]),
            _segment: Rc::clone(&segment),
        }))
    }

    /// Whether a message may have `bytes`.
    #[inline(always)]
    pub fn takes(&self, bytes: usize) -> bool {
        bytes == self.layout.message_bytes
            || self.layout.has_lengths && bytes < self.layout.message_bytes
    }

    /// Bytes of every message, or of the largest.
    #[inline(always)]
    pub fn message_bytes(&self) -> usize {
        self.layout.message_bytes
    }

    /// The length of message `count`, if the messages have several; published by `turn`.
    #[inline(always)]
    pub fn length(&self, count: u32) -> Option<&AtomicU32> {
        // SAFETY: it lies between the header and the message in every layout with lengths, and is
        // aligned as the header is. The rest is as in `header`.
        let at = || unsafe { &*self.slot(count).add(size_of::<Header>()).cast::<AtomicU32>() };
        self.layout.has_lengths.then(at)
    }

    /// Number of messages that may be on their way at once.
    #[inline(always)]
    pub fn capacity(&self) -> u32 {
        self.layout.capacity
    }

    /// The header of the slot in which message `count` travels.
    #[inline(always)]
    pub fn header(&self, count: u32) -> &Header {
        // SAFETY: slot index < slots, so the header lies within the segment, whose size `map` has
        // checked; slots are aligned to SLOT_ALIGN_BYTES; atomics may be shared with a process that
        // changes them, and any bit pattern is valid.
        unsafe { &*self.slot(count).cast::<Header>() }
    }

    /// The address of the bytes of message `count`; `message_bytes` of them, mapped as long as the
    /// lane.
    #[inline(always)]
    pub fn message(&self, count: u32) -> *mut u8 {
        self.slot(count).wrapping_add(self.layout.message_at)
    }

    #[inline(always)]
    fn slot(&self, count: u32) -> *mut u8 {
        self.first.wrapping_add((count & self.layout.mask) as usize * self.layout.slot_bytes)
    }
}

/// Number of messages of a round trip that may be on their way at once; more than one only if
/// answers are late.
const SLOTS: u32 = 4;

const LINE_BYTES: usize = 64;
/// Keeps the message aligned to eight bytes.
const LENGTH_BYTES: usize = 8;
/// Two cache lines, because the processor prefetches the neighbouring line.
const SLOT_ALIGN_BYTES: usize = 128;
const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_message_shares_a_cache_line_with_its_turn() {
        assert_eq!(Layout::new(56, 4).message_at, 8);
        assert_eq!(Layout::new(56, 4).slot_bytes, 128);
        assert_eq!(Layout::new(57, 4).message_at, 64);
        assert_eq!(Layout::new(65, 4).slot_bytes, 256);
    }

    #[test]
    fn a_length_has_its_place_before_the_message() {
        for (message_bytes, message_at) in [(0, 16), (48, 16), (49, 64)] {
            let layout = Layout::with(message_bytes, 4, true);
            assert_eq!(layout.message_at, message_at, "{message_bytes}");
            let lane = Lane::map(create(&[layout; 2]).unwrap(), &[layout; 2]).unwrap();
            lane[0].length(1).unwrap().store(7, std::sync::atomic::Ordering::Relaxed);
            assert!(lane[0].takes(message_bytes) && !lane[0].takes(message_bytes + 1));
        }
        assert!(Layout::new(64, 4).message_at == 64 && !Layout::new(64, 4).has_lengths);
    }

    #[test]
    fn memory_of_the_wrong_size_or_unsealed_is_refused() {
        let [fits, other] = [100, 1000].map(|bytes| [Layout::new(bytes, 4); 2]);
        let file = create(&fits).unwrap();
        assert!(Lane::map(&file, &fits).is_ok());
        assert!(Lane::map(&file, &other).is_err());
        let unsealed = rustix::fs::memfd_create("test", MemfdFlags::ALLOW_SEALING).unwrap();
        rustix::fs::ftruncate(&unsealed, 2 * fits[0].lane_bytes() as u64).unwrap();
        assert!(Lane::map(&unsealed, &fits).is_err());
    }
}
