//! Writes and reads one cell of a ring. Only the publisher writes. The steps P2 to P6 and T2 to T5
//! are those of `docs/explanation/shared-memory.md` section 4.

use std::mem::MaybeUninit;

use crate::layout::{
    Cell, FIRST_LINE_BYTES, INLINE, INLINE_BYTES_MAX, INLINE_WORDS, REUSED, WRITING,
};
use crate::os::prefetch;
use crate::sync::{AtomicU64, Ordering, Step, fence, is_taken};

/// A payload that fits into a cell, aligned for any type that fits.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug)]
pub struct Inline(pub [u64; INLINE_WORDS]);

impl Inline {
    /// All bytes zero.
    pub const ZERO: Inline = Inline([0; INLINE_WORDS]);

    /// The first `length` bytes.
    #[inline]
    pub fn bytes(&self, length: usize) -> &[u8] {
        assert!(length <= INLINE_BYTES_MAX);
        // SAFETY: `length` is within the array; u8 has no alignment or validity requirement.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast(), length) }
    }

    /// The first `length` bytes, to write.
    #[inline]
    pub fn bytes_mut(&mut self, length: usize) -> &mut [u8] {
        assert!(length <= INLINE_BYTES_MAX);
        // SAFETY: as in `bytes`, and `&mut self` is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_mut_ptr().cast(), length) }
    }
}

/// A subscriber's view of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// The sample has not been published.
    NotYet,
    /// The cell is being written, or already holds a later sample.
    Passed,
    /// The payload has been copied out.
    Inline {
        /// Its bytes.
        length: usize,
        /// When it was published; 0 if unknown.
        time_ns: u64,
    },
    /// The payload lies in a slot; neither number has been checked.
    Slot {
        /// Its bytes.
        length: u64,
        /// `segment << 32 | slot`.
        place: u64,
        /// When it was published; 0 if unknown.
        time_ns: u64,
    },
    /// The publisher wrote an impossible length.
    Corrupt,
}

/// Fetches the cache lines for a payload of `length` bytes inside the cell, before P2.
#[inline(always)]
pub fn prefetch_to_write(cell: &Cell, length: usize) {
    prefetch::to_write(std::ptr::from_ref(cell).cast());
    if length > FIRST_LINE_BYTES {
        prefetch::to_write(cell.second_line());
    }
}

/// P2 and P3: a reader that copies the old sample from now on will see that it is torn.
#[inline(always)]
pub fn begin(cell: &Cell) {
    if is_taken(Step::P2) {
        cell.sequence.store(WRITING, Ordering::Relaxed);
    }
    // ORDER: pairs with the acquire fence after the copy in `look`: a reader that saw a word of the
    // new sample sees WRITING or later.
    fence(Ordering::Release);
}

/// P4 for a payload inside the cell, published at `time_ns`.
#[inline(always)]
pub fn write_inline(cell: &Cell, payload: &[u8], time_ns: u64) {
    debug_assert!(payload.len() <= INLINE_BYTES_MAX && time_ns < INLINE);
    cell.length.store(payload.len() as u64, Ordering::Relaxed);
    cell.place.store(INLINE | time_ns, Ordering::Relaxed);
    let (words, rest) = payload.as_chunks::<8>();
    let mut to = cell.inline.iter();
    for (word, to) in words.iter().zip(&mut to) {
        to.store(u64::from_ne_bytes(*word), Ordering::Relaxed);
    }
    if let (false, Some(to)) = (rest.is_empty(), to.next()) {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        to.store(u64::from_ne_bytes(last), Ordering::Relaxed);
    }
}

/// P4 for a payload in a slot, published at `time_ns`.
#[inline(always)]
pub fn write_place(cell: &Cell, length: u64, place: u64, time_ns: u64) {
    debug_assert!(place < INLINE && time_ns < INLINE);
    cell.length.store(length, Ordering::Relaxed);
    cell.place.store(place, Ordering::Relaxed);
    cell.inline[0].store(time_ns, Ordering::Relaxed);
}

/// R4: the payload of the sample in this cell is there no more. No subscriber needs it.
#[inline(always)]
pub fn withdraw(cell: &Cell) {
    if is_taken(Step::R4) {
        // ORDER: Relaxed: the fence below comes before the next write of the slot.
        cell.place.store(REUSED, Ordering::Relaxed);
    }
}

/// The end of R4: the slot may be written from now on.
#[inline(always)]
pub fn withdrawn() {
    // ORDER: pairs with the acquire fence in `is_unchanged`: an observer that has copied a word of
    // the next sample sees REUSED or, if the cell has been written again, WRITING or later.
    if is_taken(Step::Withdrawn) {
        fence(Ordering::Release);
    }
}

/// O4: whether a slot still has the payload of the sample with this sequence, after it was copied.
#[inline(always)]
pub fn is_unchanged(cell: &Cell, sequence: u64, place: u64) -> bool {
    // ORDER: pairs with the release fences in `withdrawn` and in `begin`.
    if is_taken(Step::O4) {
        fence(Ordering::Acquire);
    }
    cell.sequence.load(Ordering::Relaxed) == sequence + 1
        && cell.place.load(Ordering::Relaxed) == place
}

/// P5 and P6: makes the sample visible.
#[inline(always)]
pub fn finish(cell: &Cell, published: &AtomicU64, sequence: u64) {
    if !is_taken(Step::P5) {
        published.store(sequence + 1, Ordering::Release);
    }
    // ORDER: pairs with the acquire fence in `look`; publishes the cell and the payload.
    cell.sequence.store(sequence + 1, Ordering::Release);
    // ORDER: pairs with `load_acquire(published)` of an overtaken reader.
    if is_taken(Step::P6) {
        published.store(sequence + 1, Ordering::Release);
    }
}

/// Whether `look` would find anything but [`Look::NotYet`].
#[inline(always)]
pub fn is_there(cell: &Cell, sequence: u64) -> bool {
    cell.sequence.load(Ordering::Relaxed) > sequence
}

/// T2 to T5: looks for `sequence` in its cell, and copies a payload inside the cell to `into`,
/// whose first `length` bytes are initialised then.
#[inline(always)]
pub fn look(cell: &Cell, sequence: u64, into: &mut MaybeUninit<Inline>) -> Look {
    let seen = cell.sequence.load(Ordering::Relaxed);
    if seen != sequence + 1 {
        return if seen <= sequence { Look::NotYet } else { Look::Passed };
    }
    // ORDER: pairs with the release store in `finish`.
    fence(Ordering::Acquire);
    let length = cell.length.load(Ordering::Relaxed);
    let place = cell.place.load(Ordering::Relaxed);
    let found = if place & INLINE != 0 {
        let words = (length as usize).div_ceil(8).min(INLINE_WORDS);
        let to = into.as_mut_ptr().cast::<u64>();
        for (at, from) in cell.inline[..words].iter().enumerate() {
            // SAFETY: there is a word in `into` for each of the cell.
            unsafe { to.add(at).write(from.load(Ordering::Relaxed)) };
        }
        match length {
            0..=MAX => Look::Inline { length: length as usize, time_ns: place & !INLINE },
            _ => Look::Corrupt,
        }
    } else {
        Look::Slot { length, place, time_ns: cell.inline[0].load(Ordering::Relaxed) & !INLINE }
    };
    // ORDER: pairs with the release fence in `begin`.
    fence(Ordering::Acquire);
    if cell.sequence.load(Ordering::Relaxed) != seen { Look::Passed } else { found }
}

/// When the sample with this sequence was published, 0 if unknown. `None` if its cell does not hold
/// it.
#[inline]
pub fn published_ns(cell: &Cell, sequence: u64) -> Option<u64> {
    if cell.sequence.load(Ordering::Relaxed) != sequence + 1 {
        return None;
    }
    // ORDER: both fences as in `look`.
    fence(Ordering::Acquire);
    let place = cell.place.load(Ordering::Relaxed);
    let time_ns = if place & INLINE != 0 { place } else { cell.inline[0].load(Ordering::Relaxed) };
    fence(Ordering::Acquire);
    let is_whole = cell.sequence.load(Ordering::Relaxed) == sequence + 1;
    is_whole.then_some(time_ns & !INLINE)
}

const MAX: u64 = INLINE_BYTES_MAX as u64;
