//! A publisher's slots: size classes and free lists, all in private memory. Only the payload is in
//! shared memory.

use crate::limits::SEGMENTS_MAX;

/// A slot, with the publisher's data about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Its first byte in this process.
    pub pointer: *mut u8,
    /// The sample that was published in it last, or [`NEVER`].
    pub sequence: u64,
    /// Its index in its segment.
    pub index: u32,
    /// Number of its segment.
    pub segment: u16,
    class: u16,
}

/// [`Slot::sequence`] before the first sample: no sample that is near any other.
pub const NEVER: u64 = 1 << 63;
const _: () = assert!(SEGMENTS_MAX <= u16::MAX as u32);

impl Slot {
    /// The value for a cell's `place`.
    pub fn place(&self) -> u64 {
        u64::from(self.segment) << 32 | u64::from(self.index)
    }
}

/// The free slots of a publisher by size class; a class's free list is last in, first out.
#[derive(Debug, Default)]
pub struct Arena {
    classes: Vec<Class>,
    segments: u32,
    slots: usize,
    bytes: u64,
}

#[derive(Debug)]
struct Class {
    slot_bytes: u64,
    slots: u64,
    free: Vec<Slot>,
}

/// A segment to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Growth {
    /// Its number.
    pub segment: u32,
    /// Bytes of each of its slots.
    pub slot_bytes: u64,
    /// How many slots it has.
    pub slots: u32,
}

impl Growth {
    /// Bytes of its slots.
    pub fn bytes(&self) -> u64 {
        self.slot_bytes * u64::from(self.slots)
    }

    /// Bytes of the whole segment, if its first slot begins at `payload_offset`.
    pub fn segment_bytes(&self, payload_offset: usize) -> u64 {
        self.bytes() + (payload_offset as u64).next_multiple_of(SLOT_ALIGN)
    }
}

impl Arena {
    /// A free slot for `length` bytes: the one freed last.
    pub fn take(&mut self, length: u64) -> Option<Slot> {
        let slot_bytes = slot_bytes_for(length);
        self.classes.iter_mut().find(|class| class.slot_bytes == slot_bytes)?.free.pop()
    }

    /// Whether there is no free slot in `slot`'s class.
    pub fn is_used_up(&self, slot: &Slot) -> bool {
        self.classes[usize::from(slot.class)].free.is_empty()
    }

    /// Gives a slot back. Does not allocate: the list has room for all slots of its class.
    pub fn give_back(&mut self, slot: Slot) {
        let class = &mut self.classes[usize::from(slot.class)];
        assert!(class.free.len() < class.free.capacity(), "a slot was given back twice");
        class.free.push(slot);
    }

    /// The segment to add so that there is a slot for `length` bytes: it doubles a class of small
    /// slots, and adds large slots one by one.
    pub fn growth(&self, length: u64) -> Growth {
        let slot_bytes = slot_bytes_for(length);
        let have = self.classes.iter().find(|class| class.slot_bytes == slot_bytes);
        let have = have.map_or(0, |class| class.slots);
        let first = (FIRST_SEGMENT_BYTES / slot_bytes).clamp(1, SLOTS_FIRST_MAX);
        let most = (SEGMENT_BYTES_MAX / slot_bytes).max(1);
        let slots = if have == 0 { first } else { have.min(most).max(1) };
        Growth { segment: self.segments, slot_bytes, slots: slots as u32 }
    }

    /// Adds the segment that [`growth`](Self::growth) described; `pointer` is its first byte here.
    pub fn add(&mut self, growth: Growth, pointer: *mut u8) {
        assert_eq!(growth.segment, self.segments);
        let known = self.classes.iter().position(|class| class.slot_bytes == growth.slot_bytes);
        let at = known.unwrap_or_else(|| {
            let slot_bytes = growth.slot_bytes;
            self.classes.push(Class { slot_bytes, slots: 0, free: Vec::new() });
            self.classes.len() - 1
        });
        let class = &mut self.classes[at];
        class.slots += u64::from(growth.slots);
        class.free.reserve(class.slots as usize - class.free.len());
        for index in (0..growth.slots).rev() {
            let offset = u64::from(index) * growth.slot_bytes;
            let pointer = pointer.wrapping_add(offset as usize);
            let (segment, class_at) = (growth.segment as u16, at as u16);
            let slot = Slot { pointer, sequence: NEVER, index, segment, class: class_at };
            class.free.push(slot);
        }
        self.segments += 1;
        self.slots += growth.slots as usize;
        self.bytes += growth.bytes();
    }

    /// The number of all slots, free or not.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// The number of free slots.
    pub fn free(&self) -> usize {
        self.classes.iter().map(|class| class.free.len()).sum()
    }

    /// Bytes of all segments.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// The slot size for a payload of `length` bytes: four sizes for each octave.
pub fn slot_bytes_for(length: u64) -> u64 {
    if length <= SLOT_BYTES_MIN {
        return SLOT_BYTES_MIN;
    }
    let step = ((length - 1).ilog2()).saturating_sub(2);
    let bytes = length.next_multiple_of(1 << step).next_multiple_of(SLOT_ALIGN);
    if bytes >= PAGE_BYTES { bytes.next_multiple_of(PAGE_BYTES) } else { bytes }
}

/// The alignment of a payload in a slot, in bytes; that of a message begins 4 bytes later
/// (`Topic::payload_offset`).
pub const SLOT_ALIGN: u64 = 64;
const SLOT_BYTES_MIN: u64 = 128;
const PAGE_BYTES: u64 = 4096;
/// The first segment of a class has this size, within one slot and the next limit: enough small slots
/// that the publisher reads its subscribers' announcements only every few samples. For large ones it
/// reads them each time (`LARGE_BYTES`), and a locked process has all of their memory at once. In a
/// model there are few, so that they are soon reused.
const FIRST_SEGMENT_BYTES: u64 = 512 << 10;
const SLOTS_FIRST_MAX: u64 = if cfg!(loom) { 2 } else { 16 };
const SEGMENT_BYTES_MAX: u64 = 16 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_slot_is_large_enough_and_wastes_less_than_a_quarter(length in 0u64..1 << 40) {
            let bytes = slot_bytes_for(length);
            prop_assert!(bytes >= length && bytes.is_multiple_of(SLOT_ALIGN));
            prop_assert!(length < 16_384 || bytes - length <= length / 4 + PAGE_BYTES);
            prop_assert_eq!(slot_bytes_for(bytes), bytes);
        }

        #[test]
        fn every_slot_is_in_exactly_one_place(
            lengths in prop::collection::vec(1u64..100_000, 1..60),
        ) {
            let mut arena = Arena::default();
            let mut out = Vec::new();
            for length in lengths {
                let slot = arena.take(length).unwrap_or_else(|| {
                    let growth = arena.growth(length);
                    arena.add(growth, std::ptr::null_mut());
                    arena.take(length).expect("it has grown")
                });
                prop_assert!(!out.contains(&slot));
                out.push(slot);
                if length.is_multiple_of(3) {
                    arena.give_back(out.swap_remove(0));
                }
                prop_assert_eq!(arena.free() + out.len(), arena.slots());
            }
        }
    }
}
