//! The numbers of messages: which publisher, which of its messages.
//!
//! ```text
//! 63      48 47                                    0
//! ┌─────────┬──────────────────────────────────────┐
//! │publisher│ counts from 0, the warm-up's first   │   a message
//! └─────────┴──────────────────────────────────────┘   all ones: goodbye
//! ```
//! The id of a record is the number without the warm-up's. Messages that a flood sends beyond those
//! it measures are numbered from [`PROBES`] on.

use crate::pingpong::GOODBYE;

/// The number of message `count` of publisher `index`.
#[inline(always)]
pub(crate) fn number(index: u32, count: u64) -> u64 {
    u64::from(index) << PUBLISHER_SHIFT | count
}

/// Which publisher's, and which of its messages.
#[inline(always)]
pub fn split(number: u64) -> (usize, u64) {
    ((number >> PUBLISHER_SHIFT) as usize, number & COUNT_MASK)
}

const PUBLISHER_SHIFT: u32 = 48;
const COUNT_MASK: u64 = (1 << PUBLISHER_SHIFT) - 1;
/// From here on a flood searches; such messages are counted and not recorded.
pub(crate) const PROBES: u64 = 1 << 40;
/// The last one would be taken for a goodbye.
pub const PUBLISHERS_MAX: u32 = u16::MAX as u32;

const _: () = assert!(GOODBYE >> PUBLISHER_SHIFT == PUBLISHERS_MAX as u64);
