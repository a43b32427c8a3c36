//! The numbers of messages: publisher and index.
//!
//! ```text
//! 63      48 47                                    0
//! ┌─────────┬──────────────────────────────────────┐
//! │publisher│ counts from 0, beginning in warm-up  │   a message
//! └─────────┴──────────────────────────────────────┘   all ones: end of the stream
//! ```
//! The id of a record is the number without those of the warm-up. Messages of a flood's search are
//! numbered from [`PROBES`] on.

use crate::pingpong::END_OF_STREAM;

/// The number of message `count` of publisher `index`.
#[inline(always)]
pub(crate) fn number(index: u32, count: u64) -> u64 {
    u64::from(index) << PUBLISHER_SHIFT | count
}

/// The publisher and the index of its message.
#[inline(always)]
pub fn split(number: u64) -> (usize, u64) {
    ((number >> PUBLISHER_SHIFT) as usize, number & COUNT_MASK)
}

const PUBLISHER_SHIFT: u32 = 48;
const COUNT_MASK: u64 = (1 << PUBLISHER_SHIFT) - 1;
/// From this number on a flood searches; such messages are counted and not recorded.
pub(crate) const PROBES: u64 = 1 << 40;
/// The next one would look like the end of the stream.
pub const PUBLISHERS_MAX: u32 = u16::MAX as u32;

const _: () = assert!(END_OF_STREAM >> PUBLISHER_SHIFT == PUBLISHERS_MAX as u64);
