//! The layout of shared memory; `docs/explanation/shared-memory.md` section 3 draws it. The
//! algorithms are in `ring`, `reclaim` and `notify`.

use crate::limits::{CONNECTIONS_MAX, ENDPOINTS_MAX, SEQUENCE_BITS};
use crate::os::segment::shared;
use crate::record::LATENESS_BUCKETS;
use crate::sync::counter::Counter;
use crate::sync::{AtomicU32, AtomicU64};
use crate::topic::EndpointId;

/// Version of everything in this file and of the nodes' messages; raised with any change.
pub const VERSION: u64 = 10;
/// First word of a publication segment, stored last: `myelinP1`.
pub const PUBLICATION_MAGIC: u64 = u64::from_le_bytes(*b"myelinP1");
/// First word of a subscription segment, stored last: `myelinS1`.
pub const SUBSCRIPTION_MAGIC: u64 = u64::from_le_bytes(*b"myelinS1");

/// [`Cell::sequence`] before the first sample.
pub const EMPTY: u64 = 0;
/// [`Cell::sequence`] while the publisher writes the cell.
pub const WRITING: u64 = u64::MAX;
/// Bit of [`Cell::place`]: the payload lies inside the cell. The other bits are then the time of
/// publication, which otherwise is in [`Cell::inline`]'s first word: `CLOCK_MONOTONIC` in ns, 0 if
/// unknown.
pub const INLINE: u64 = 1 << 63;
/// [`Cell::place`] of a sample whose slot is being used again: no slot has this number.
pub const REUSED: u64 = INLINE - 1;
/// [`Connection::reading`] before the subscriber has begun.
pub const NOT_BEGUN: u64 = u64::MAX - 1;
/// [`Connection::reading`] of a subscriber that will read nothing more.
pub const FINISHED: u64 = u64::MAX;
/// Words of payload inside a cell.
pub const INLINE_WORDS: usize = 13;
/// Bytes of a payload inside a cell that share the cache line of [`Cell::sequence`].
pub const FIRST_LINE_BYTES: usize = 40;
/// Bytes of payload inside a cell.
pub const INLINE_BYTES_MAX: usize = INLINE_WORDS * 8;

/// One sample of a ring: only its publisher writes it, all its subscribers read it.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct Cell {
    /// [`EMPTY`], [`WRITING`], or the sample's sequence + 1. Guards the rest of the cell.
    pub sequence: AtomicU64,
    /// Bytes of the payload.
    pub length: AtomicU64,
    /// [`INLINE`] and the time of publication, or `segment << 32 | slot`, or [`REUSED`].
    pub place: AtomicU64,
    /// The payload, if it lies here; otherwise the time of publication in the first word.
    pub inline: [AtomicU64; INLINE_WORDS],
}

impl Cell {
    /// The offset of the half in which a payload of more than [`FIRST_LINE_BYTES`] goes on.
    #[inline(always)]
    pub(crate) fn second_line(&self) -> *const u8 {
        std::ptr::from_ref(self).cast::<u8>().wrapping_add(64)
    }
}

/// Head of a publication segment; the cells follow it.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct PublicationHead {
    /// [`PUBLICATION_MAGIC`], stored last.
    pub magic: AtomicU64,
    /// [`VERSION`].
    pub version: AtomicU64,
    /// Size of the segment in bytes.
    pub bytes: AtomicU64,
    /// The publisher's endpoint id.
    pub endpoint: AtomicU64,
    /// Hash of the topic's type.
    pub type_hash: AtomicU64,
    /// How many cells follow.
    pub cells: AtomicU64,
    /// How far a subscriber can be behind.
    pub depth: AtomicU64,
    /// Samples kept for late subscribers.
    pub transient_local: AtomicU64,
    /// 1 if the publisher waits for reliable subscribers.
    pub reliable: AtomicU64,
    _once: [u8; 56],
    /// Samples published so far. The publisher writes it for each sample; it shares its cache line
    /// only with the next two, which are written at the same time.
    pub published: AtomicU64,
    /// Bytes of their payloads.
    pub published_bytes: Counter,
    /// When the newest of them was published, by `CLOCK_MONOTONIC` in ns; 0 if unknown.
    pub last_published_ns: Counter,
    _published: [u8; 104],
    /// 1 while a reliable publisher is blocked.
    pub waiting: AtomicU64,
    /// The CPU the publisher last ran on.
    pub cpu: AtomicU64,
    /// How often the publisher has asserted its liveliness.
    pub asserted: AtomicU64,
    /// How many subscribers it notifies.
    pub subscribers: AtomicU64,
    /// Loans and copies that were refused for lack of memory.
    pub refused_loans: Counter,
    /// Bytes of this segment and of the slots.
    pub memory_bytes: Counter,
    _seldom: [u8; 80],
}

/// Head of a subscription segment; the holds follow it, then the connections.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct SubscriptionHead {
    /// [`SUBSCRIPTION_MAGIC`], stored last.
    pub magic: AtomicU64,
    /// [`VERSION`].
    pub version: AtomicU64,
    /// Size of the segment in bytes.
    pub bytes: AtomicU64,
    /// The subscriber's endpoint id.
    pub endpoint: AtomicU64,
    /// Hash of the topic's type.
    pub type_hash: AtomicU64,
    /// How many connections there are.
    pub connections: AtomicU64,
    /// How many holds there are.
    pub holds: AtomicU64,
    /// Its number in its node: the position of its bit in the node's [`ReadyTable`].
    pub number: AtomicU64,
    _once: [u8; 64],
    /// 0, or a sleep: `waiting::sleep` says who must be woken and how, and whether publishers set
    /// their ready bits. No two sleeps are the same. It does not change while the subscriber polls,
    /// so that publishers find it in their own cache.
    pub asleep: AtomicU64,
    _asleep: [u8; 120],
    /// What the subscriber counts, for tools.
    pub counters: SubscriptionCounters,
}

/// What a subscriber counts. Publishers do not read it, so its lines stay in the caches of the
/// reader's core.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct SubscriptionCounters {
    /// Samples taken so far. The reader writes it and the next word at each take.
    pub taken: Counter,
    /// When the last one of them was published, by `CLOCK_MONOTONIC` in ns; 0 if unknown.
    pub last_taken_ns: Counter,
    /// Samples lost so far, by [`LossCause`](crate::counters::LossCause).
    pub lost: [Counter; 4],
    /// How late the last measured sample was.
    pub lateness_last_ns: Counter,
    /// How late the latest one was.
    pub lateness_max_ns: Counter,
    /// How many samples were how late: see [`Lateness`](crate::record::Lateness).
    pub lateness: [Counter; LATENESS_BUCKETS],
}

/// A subscriber's announcements about one publisher.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Connection {
    /// The publisher's endpoint id; 0 if free.
    pub publisher: AtomicU64,
    /// Sequence of the next sample to read; all before it are read. [`NOT_BEGUN`], [`FINISHED`].
    pub reading: AtomicU64,
}

/// The word a subscriber sleeps on.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct WakeWord {
    /// Counts the wake-ups; a futex.
    pub wakes: AtomicU32,
}

/// The words through which publishers wake a subscriber. All of them write it, and the subscriber's
/// process.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct WakeSegment {
    /// The word that the subscriber sleeps on.
    pub wake_word: WakeWord,
    /// A bit for each connection, if there are many: its publisher has published.
    pub ready: [AtomicU64; CONNECTION_WORDS],
}

/// Whether each wait set of a node sleeps. Only the node's process writes it.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct SetHeads {
    /// 0, or the set's sleep: no two sleeps of one node are the same.
    pub asleep: [AtomicU64; SETS_MAX],
}

/// The words through which publishers wake the wait sets of a node and say which subscribers have
/// something to take. All of them write it, and the node's process.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct ReadyTable {
    /// A bit for each subscriber of the node.
    pub ready: [AtomicU64; READY_WORDS],
    /// The word that each wait set sleeps on: counts the wake-ups; futexes.
    pub wakes: [AtomicU32; SETS_MAX],
}

shared! {
    Cell { sequence, length, place, inline }
    PublicationHead {
        magic, version, bytes, endpoint, type_hash, cells, depth, transient_local, reliable, _once,
        published, published_bytes, last_published_ns, _published, waiting, cpu, asserted, subscribers,
        refused_loans, memory_bytes, _seldom
    }
    SubscriptionHead {
        magic, version, bytes, endpoint, type_hash, connections, holds, number, _once, asleep, _asleep,
        counters
    }
    SubscriptionCounters {
        taken, last_taken_ns, lost, lateness_last_ns, lateness_max_ns, lateness
    }
    Connection { publisher, reading }
    WakeWord { wakes }
    WakeSegment { wake_word, ready }
    SetHeads { asleep }
    ReadyTable { ready, wakes }
}

/// A hold: the connection in the upper 12 bits, the sample's sequence + 1 below; 0 is no hold.
/// [`hold_marks`] are holds for publishers that have gone.
#[inline]
pub fn hold_word(connection: u32, sequence: u64) -> u64 {
    u64::from(connection) << SEQUENCE_BITS | (sequence + 1)
}

/// The connection of a hold.
#[inline]
pub fn held_of(hold: u64) -> u32 {
    (hold >> SEQUENCE_BITS) as u32
}

/// The values that holds get when their publisher has gone, one for each such publisher: an
/// impossible sequence + 1. A mark protects nothing for the publisher that uses the connection now.
pub fn hold_marks() -> impl Iterator<Item = u64> {
    (1..u64::from(CONNECTIONS_MAX)).map(|number| number << SEQUENCE_BITS)
}

/// Bytes of a publication segment with `cells` cells.
pub fn publication_bytes(cells: u64) -> u64 {
    PUBLICATION_HEAD_BYTES + cells * CELL_BYTES
}

/// Where the content of a subscription segment begins. A publisher reads one word of each of its
/// subscribers at every publish: at the same place in their pages, all these words would share one
/// set of a cache.
pub fn subscription_begin(id: EndpointId) -> u64 {
    (id ^ id >> 24) % COLOURS * 128
}

/// Offset, from where the content begins, of the connections in a subscription segment with `holds` holds.
pub fn connections_offset(holds: u64) -> u64 {
    SUBSCRIPTION_HEAD_BYTES + (holds * 8).next_multiple_of(128)
}

/// Bytes of a subscription segment's content with so many connections.
pub fn subscription_bytes(holds: u64, connections: u64) -> u64 {
    connections_offset(holds) + connections * CONNECTION_BYTES
}

/// The number of the `nth` wait set of a node: the first [`SET_LINES`] are on different lines.
pub fn set_number(nth: usize) -> u32 {
    (nth % SET_LINES * SETS_PER_LINE + nth / SET_LINES) as u32
}

/// How many places in a page there are.
const COLOURS: u64 = 32;
/// Bytes of a [`Cell`].
pub const CELL_BYTES: u64 = 128;
/// Bytes of a [`PublicationHead`].
pub const PUBLICATION_HEAD_BYTES: u64 = 384;
/// Bytes of a [`SubscriptionHead`].
pub const SUBSCRIPTION_HEAD_BYTES: u64 = 640;
/// Bytes of a [`Connection`].
pub const CONNECTION_BYTES: u64 = 64;
/// Bytes of a [`WakeSegment`].
pub const WAKE_SEGMENT_BYTES: u64 = 64 + 8 * CONNECTION_WORDS.next_multiple_of(8) as u64;
/// Words of bits for the publishers of a subscriber. A model has few words.
pub const CONNECTION_WORDS: usize =
    if cfg!(loom) { 4 } else { CONNECTIONS_MAX.div_ceil(64) as usize };
/// Wait sets of a node, a power of 2. A model has few sets.
pub const SETS_MAX: usize = if cfg!(loom) { SETS_PER_LINE } else { 1024 };
/// How many wait sets' words share a line, if a node has so many sets. Sets are numbered so that
/// the first ones have lines of their own: see [`set_number`].
pub const SETS_PER_LINE: usize = 16;
/// Lines of such words.
pub const SET_LINES: usize = SETS_MAX / SETS_PER_LINE;
/// Words of bits for the subscribers of a node. A model has few words.
pub const READY_WORDS: usize = if cfg!(loom) { 1 } else { ENDPOINTS_MAX / 64 };
/// Bytes of [`SetHeads`].
pub const SET_HEADS_BYTES: u64 = 8 * SETS_MAX as u64;
/// Bytes of a [`ReadyTable`].
pub const READY_TABLE_BYTES: u64 = 8 * READY_WORDS as u64 + 4 * SETS_MAX as u64;

#[cfg(not(loom))]
const _: () = {
    use std::mem::{offset_of, size_of};
    assert!(size_of::<Cell>() as u64 == CELL_BYTES);
    assert!(offset_of!(Cell, length) == 8);
    assert!(offset_of!(Cell, place) == 16);
    assert!(offset_of!(Cell, inline) + FIRST_LINE_BYTES == 64);
    assert!(size_of::<PublicationHead>() as u64 == PUBLICATION_HEAD_BYTES);
    assert!(offset_of!(PublicationHead, version) == 8);
    assert!(offset_of!(PublicationHead, bytes) == 16);
    assert!(offset_of!(PublicationHead, endpoint) == 24);
    assert!(offset_of!(PublicationHead, type_hash) == 32);
    assert!(offset_of!(PublicationHead, cells) == 40);
    assert!(offset_of!(PublicationHead, depth) == 48);
    assert!(offset_of!(PublicationHead, transient_local) == 56);
    assert!(offset_of!(PublicationHead, reliable) == 64);
    assert!(offset_of!(PublicationHead, published) == 128);
    assert!(offset_of!(PublicationHead, waiting) == 256);
    assert!(offset_of!(PublicationHead, cpu) == 264);
    assert!(offset_of!(PublicationHead, asserted) == 272);
    assert!(offset_of!(PublicationHead, subscribers) == 280);
    assert!(size_of::<SubscriptionHead>() as u64 == SUBSCRIPTION_HEAD_BYTES);
    assert!(offset_of!(SubscriptionHead, type_hash) == 32);
    assert!(offset_of!(SubscriptionHead, connections) == 40);
    assert!(offset_of!(SubscriptionHead, holds) == 48);
    assert!(offset_of!(SubscriptionHead, number) == 56);
    assert!(offset_of!(SubscriptionHead, asleep) == 128);
    assert!(offset_of!(SubscriptionHead, counters) == 256);
    assert!(size_of::<SubscriptionCounters>() == 384);
    assert!(offset_of!(SubscriptionCounters, lateness) == 64);
    assert!(offset_of!(PublicationHead, last_published_ns) == 144);
    assert!(size_of::<Connection>() as u64 == CONNECTION_BYTES);
    assert!(offset_of!(Connection, reading) == 8);
    assert!(size_of::<WakeSegment>() as u64 == WAKE_SEGMENT_BYTES);
    assert!(offset_of!(WakeSegment, ready) == 64);
    assert!(CONNECTIONS_MAX <= 1 << (u64::BITS - SEQUENCE_BITS), "a hold names its connection");
    assert!(size_of::<SetHeads>() as u64 == SET_HEADS_BYTES);
    assert!(8 * SETS_PER_LINE == 128, "the line of the heads");
    assert!(offset_of!(ReadyTable, wakes) == 8 * READY_WORDS);
    assert!(offset_of!(ReadyTable, wakes) % 64 == 0);
    assert!(size_of::<ReadyTable>() as u64 == READY_TABLE_BYTES);
};

/// Everything in this file that both sides count on, a line each.
#[cfg(all(test, not(any(miri, loom))))]
pub(crate) fn lines() -> Vec<String> {
    use std::mem::{offset_of, size_of};
    let mut lines = Vec::new();
    macro_rules! of {
        ($($name:ident { $($field:ident),* })*) => {$(
            lines.push(format!("{}: {} B", stringify!($name), size_of::<$name>()));
            $({
                fn bytes<T>(_: impl Fn($name) -> T) -> usize {
                    size_of::<T>()
                }
                let (offset, bytes) = (offset_of!($name, $field), bytes(|it| it.$field));
                let place = concat!(stringify!($name), ".", stringify!($field));
                lines.push(format!("{place}: offset {offset}, {bytes} B"));
            })*
        )*};
    }
    of! {
        Cell { sequence, length, place, inline }
        PublicationHead {
            magic, version, bytes, endpoint, type_hash, cells, depth, transient_local, reliable, published,
            published_bytes, last_published_ns, waiting, cpu, asserted, subscribers, refused_loans,
            memory_bytes
        }
        SubscriptionHead {
            magic, version, bytes, endpoint, type_hash, connections, holds, number, asleep, counters
        }
        SubscriptionCounters {
            taken, last_taken_ns, lost, lateness_last_ns, lateness_max_ns, lateness
        }
        Connection { publisher, reading }
        WakeWord { wakes }
        WakeSegment { wake_word, ready }
        SetHeads { asleep }
        ReadyTable { ready, wakes }
    }
    for (name, word) in [
        ("PUBLICATION_MAGIC", PUBLICATION_MAGIC),
        ("SUBSCRIPTION_MAGIC", SUBSCRIPTION_MAGIC),
        ("EMPTY", EMPTY),
        ("WRITING", WRITING),
        ("INLINE", INLINE),
        ("REUSED", REUSED),
        ("NOT_BEGUN", NOT_BEGUN),
        ("FINISHED", FINISHED),
        ("hold_word(2, 6)", hold_word(2, 6)),
        ("publication_bytes(3)", publication_bytes(3)),
        ("subscription_begin(5 << 24 | 9)", subscription_begin(5 << 24 | 9)),
        ("connections_offset(3)", connections_offset(3)),
        ("subscription_bytes(3, 2)", subscription_bytes(3, 2)),
        ("set_number(70)", set_number(70).into()),
    ] {
        lines.push(format!("{name} = {word:#x}"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_sets_share_cache_lines_only_if_there_are_many() {
        let line = |nth| set_number(nth) as usize / SETS_PER_LINE;
        let lines: std::collections::BTreeSet<usize> = (0..SET_LINES).map(line).collect();
        assert_eq!(lines.len(), SET_LINES);
        let numbers: std::collections::BTreeSet<u32> = (0..SETS_MAX).map(set_number).collect();
        assert_eq!(numbers.into_iter().collect::<Vec<_>>(), Vec::from_iter(0..SETS_MAX as u32));
    }

    #[test]
    fn subscriptions_of_a_node_have_different_page_offsets() {
        for node in [0, 1, 0xab_cdef, (1 << 40) - 1] {
            let begins = (0..COLOURS).map(|number| subscription_begin(node << 24 | number));
            let begins: std::collections::BTreeSet<u64> = begins.collect();
            assert_eq!(begins.len() as u64, COLOURS);
            assert!(begins.iter().all(|begin| begin.is_multiple_of(128) && *begin < 4096));
        }
    }
}
