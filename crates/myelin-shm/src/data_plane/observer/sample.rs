//! A sample as an observer gives it: a copy.

use std::mem::MaybeUninit;

use crate::data_plane::remote_publisher::SlotMemory;
use crate::data_plane::ring::Inline;
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::topic::EndpointId;

/// What an observer knows of every sample that it sees, with or without payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ObservedHeader {
    /// The publisher.
    pub publisher: EndpointId,
    /// The publisher's count of samples before this one.
    pub sequence: u64,
    /// When it was published, by `CLOCK_MONOTONIC`; 0 if its publisher adds no timestamps.
    pub published_ns: u64,
    /// Bytes of the payload.
    pub length: u64,
    /// How many samples of this publisher, between the previous one and this one, were overwritten
    /// before the observer looked.
    pub overwritten_before: u64,
}

/// Why a sample has no payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Missing {
    /// Its publisher used the memory for another sample before the payload was copied.
    Reused,
    /// Its memory could not be mapped: the publisher has gone, or this process has too many open
    /// files or too little memory.
    Unmapped,
}

/// A copy of a sample.
#[derive(Debug, Default)]
pub struct ObservedSample {
    /// The header.
    pub header: ObservedHeader,
    /// Why there is no payload; `None`: it is there.
    pub missing: Option<Missing>,
    lines: Vec<Line>,
    /// Where the payload begins in the lines, and its bytes.
    begin: usize,
    length: usize,
}

#[repr(C, align(64))]
#[derive(Clone, Copy, Debug)]
struct Line([MaybeUninit<u64>; 8]);

impl ObservedSample {
    /// Room for a sample. It is used again: a larger sample than before allocates.
    pub fn new() -> ObservedSample {
        ObservedSample::default()
    }

    /// The payload, aligned to 64 bytes; empty if it is missing.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `set_inline` and `copy` have initialised so many bytes there.
        unsafe {
            std::slice::from_raw_parts(
                self.lines.as_ptr().cast::<u8>().add(self.begin),
                self.length,
            )
        }
    }

    /// Removes the payload.
    pub fn clear(&mut self) {
        (self.begin, self.length) = (0, 0);
    }

    /// The payload lay in the cell.
    pub(super) fn set_inline(&mut self, payload: &[u8]) {
        let to = self.room(0, payload.len());
        // SAFETY: there is room, elsewhere.
        unsafe { to.copy_from_nonoverlapping(payload.as_ptr(), payload.len()) };
        self.length = payload.len();
    }

    /// Copies a payload from a slot that its publisher may be writing: the bytes are anything until
    /// the cell has been checked once more. The numbers have been checked.
    pub(super) fn copy(&mut self, from: &SlotMemory, slot: u32, length: u64) {
        let begin = (from.payload_offset % 8) as usize;
        let offset = from.payload_offset + u64::from(slot) * from.slot_bytes;
        let to = self.room(begin, length as usize);
        // A message begins in the middle of a word.
        let head = (begin as u64).min(length);
        if head > 0 {
            // SAFETY: only loaded; `array` checks its bounds.
            let half = unsafe { &from.segment.array::<AtomicU32>(offset, 1)[0] };
            // SAFETY: the first word has room for it.
            unsafe { to.cast::<u32>().write(half.load(Ordering::Relaxed)) };
        }
        // A slot's bytes are a multiple of 64, so the last word belongs to the segment.
        let words = (length - head).div_ceil(8);
        // SAFETY: only loaded; `array` checks its bounds.
        let words = unsafe { from.segment.array::<AtomicU64>(offset + head, words) };
        let to = to.wrapping_add(head as usize).cast::<u64>();
        for (at, word) in words.iter().enumerate() {
            // SAFETY: `room` has rounded up to whole lines, and `to` is aligned.
            unsafe { to.add(at).write(word.load(Ordering::Relaxed)) };
        }
        self.length = length as usize;
    }

    /// The place for a payload.
    fn room(&mut self, begin: usize, length: usize) -> *mut u8 {
        let lines = (begin + length).div_ceil(size_of::<Line>());
        if lines > self.lines.len() {
            self.lines.clear(); // nothing is moved
            self.lines.reserve(lines);
            // SAFETY: a line may be uninitialised.
            unsafe { self.lines.set_len(lines) };
        }
        self.begin = begin;
        self.lines.as_mut_ptr().cast::<u8>().wrapping_add(begin)
    }
}

/// Room for a payload inside a cell.
pub(super) fn inline() -> MaybeUninit<Inline> {
    MaybeUninit::uninit()
}
