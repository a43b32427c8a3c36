//! The shared memory of one run: two lanes, one for each direction, of [`SLOTS`] slots each.
//!
//! ```text
//! segment  lane 0: ping ─▶ pong                │ lane 1: pong ─▶ ping
//! lane     slot 0 │ slot 1 │ slot 2 │ slot 3     message n travels in slot n mod 4
//! slot     turn(4) released(4) message           a message of up to 56 B shares the cache line
//!          turn(4) released(4) pad(56) message   a larger one begins on its own
//! ```
//! A slot is written by the lane's writer alone, except that the reader sets one bit of `turn`
//! before it sleeps. `released` speaks of the other lane: how many messages the writer of this slot
//! has released there. So the right to overwrite travels inside the answers and costs no cache line
//! of its own.
//!
//! The memory is a memfd, sealed against changes of size, faulted in before the run.

use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::sync::atomic::AtomicU32;

use memmap2::{MmapOptions, MmapRaw};
use myelin_bench_kit::Error;
use rustix::fs::{MemfdFlags, SealFlags};

use crate::handover::Turn;

/// Start of a slot.
#[repr(C)]
pub struct Header {
    /// Who owns the slot. Written by the lane's writer; `asleep` also by its reader.
    pub turn: Turn,
    /// Count up to which the writer has released the other lane's messages. Published by `turn`.
    pub released: AtomicU32,
}

const _: () = assert!(size_of::<Header>() == 8 && align_of::<Header>() == 4);

/// Where things are in a segment for messages of one size. Computed by both sides for themselves,
/// so no size is ever taken from the other.
#[derive(Clone, Copy)]
pub struct Layout {
    message_bytes: usize,
    message_at: usize,
    slot_bytes: usize,
}

impl Layout {
    /// For messages of exactly `message_bytes`.
    pub fn new(message_bytes: usize) -> Self {
        let shares_line = size_of::<Header>() + message_bytes <= LINE_BYTES;
        let message_at = if shares_line { size_of::<Header>() } else { LINE_BYTES };
        let slot_bytes = (message_at + message_bytes).next_multiple_of(SLOT_ALIGN_BYTES);
        Layout { message_bytes, message_at, slot_bytes }
    }

    fn lane_bytes(&self) -> usize {
        self.slot_bytes * SLOTS as usize
    }

    fn segment_bytes(&self) -> usize {
        2 * self.lane_bytes()
    }
}

/// Makes the memory for messages of `message_bytes`.
pub fn create(message_bytes: usize) -> Result<OwnedFd, Error> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = rustix::fs::memfd_create("myelin-driver-os", flags).map_err(std::io::Error::from)?;
    let bytes = Layout::new(message_bytes).segment_bytes();
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
    /// Maps the memory that [`create`] made; both lanes, ping's outgoing one first.
    pub fn map(file: impl AsFd, message_bytes: usize) -> Result<[Self; 2], Error> {
        let layout = Layout::new(message_bytes);
        let status = rustix::fs::fstat(&file).map_err(std::io::Error::from)?;
        let seals = rustix::fs::fcntl_get_seals(&file).map_err(std::io::Error::from)?;
        let (theirs, ours) = (status.st_size as u64, layout.segment_bytes());
        if theirs != ours as u64 || !seals.contains(SEALS) {
            let text = format!("pong's shared memory has {theirs} B, expected {ours} B, sealed");
            return Err(Error::new(text).remedy("use one build of myelin-driver-os for both"));
        }
        let file = file.as_fd().try_clone_to_owned()?;
        let segment = Rc::new(MmapOptions::new().len(ours).populate().map_raw(&file)?);
        Ok([0, 1].map(|index| Lane {
            layout,
            first: segment.as_mut_ptr().wrapping_add(index * layout.lane_bytes()),
            _segment: Rc::clone(&segment),
        }))
    }

    /// Bytes of every message.
    pub fn message_bytes(&self) -> usize {
        self.layout.message_bytes
    }

    /// The header of the slot in which message `count` travels.
    #[inline(always)]
    pub fn header(&self, count: u32) -> &Header {
        // SAFETY: slot index < SLOTS, so the header lies within the segment, whose size `map` has
        // checked; slots are aligned to SLOT_ALIGN_BYTES; atomics may be shared with a process that
        // changes them, and any bit pattern is valid.
        unsafe { &*self.slot(count).cast::<Header>() }
    }

    /// Where the bytes of message `count` are; `message_bytes` of them, mapped as long as the lane.
    #[inline(always)]
    pub fn message(&self, count: u32) -> *mut u8 {
        self.slot(count).wrapping_add(self.layout.message_at)
    }

    #[inline(always)]
    fn slot(&self, count: u32) -> *mut u8 {
        self.first.wrapping_add((count % SLOTS) as usize * self.layout.slot_bytes)
    }
}

/// Slots of a lane: messages that may be under way at once, which in a ping-pong is one unless
/// answers are late. A power of two, so that counts may wrap.
pub const SLOTS: u32 = 4;

const _: () = assert!(SLOTS.is_power_of_two());

const LINE_BYTES: usize = 64;
/// Two lines: the neighbouring line is fetched along.
const SLOT_ALIGN_BYTES: usize = 128;
const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_message_shares_the_line_of_its_turn() {
        assert_eq!(Layout::new(56).message_at, 8);
        assert_eq!(Layout::new(56).slot_bytes, 128);
        assert_eq!(Layout::new(57).message_at, 64);
        assert_eq!(Layout::new(65).slot_bytes, 256);
    }

    #[test]
    fn memory_of_another_size_or_unsealed_is_refused() {
        let file = create(100).unwrap();
        assert!(Lane::map(&file, 100).is_ok());
        assert!(Lane::map(&file, 1000).is_err());
        let unsealed = rustix::fs::memfd_create("test", MemfdFlags::ALLOW_SEALING).unwrap();
        rustix::fs::ftruncate(&unsealed, Layout::new(100).segment_bytes() as u64).unwrap();
        assert!(Lane::map(&unsealed, 100).is_err());
    }
}
