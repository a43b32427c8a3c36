//! The samples of one publisher, taken by a subscriber: T1 to T8 of
//! `docs/explanation/shared-memory.md` section 4.

use std::sync::Arc;

use crate::counters::LossCause;
use crate::data_plane::raw_sample::{Payload, PublishedSample, RawSample};
use crate::data_plane::reclaim;
use crate::data_plane::remote_publisher::{RemotePublisher, SlotView};
use crate::data_plane::ring::{self, Look};
use crate::data_plane::subscription::SubscriptionState;
use crate::error::Error;
use crate::layout::{Cell, INLINE_BYTES_MAX, WRITING};
use crate::limits::{LAPS_MAX, SEQUENCE_MAX};
use crate::os::prefetch;
use crate::sync::{AtomicU64, Ordering, Step, fence_of, is_taken, load_acquire};
use crate::topic::{EndpointId, Reliability};
use crate::waiting::wait;

// SAFETY: `ring` and `reading` lead into mappings, which belong to the process.
unsafe impl Send for PublisherCursor {}

/// The reader's state for one publisher.
pub(crate) struct PublisherCursor {
    remote: Arc<RemotePublisher>,
    id: EndpointId,
    next: u64,
    at: usize,
    /// The cells of `remote`, which is kept: looked up once and not at each look.
    ring: *const [Cell],
    /// The word that announces `next`: it lies in the subscription, which the reader keeps.
    reading: *const AtomicU64,
    /// `published` at the last look; a lower bound.
    published: u64,
    /// T1 is due before the next look.
    fence_due: bool,
    reliable: bool,
    depth: u64,
    lost: u64,
    /// The slot segment that was used last, with its number; and the earlier ones, by number.
    last_slots: Option<(u32, SlotView)>,
    slots: Vec<Option<SlotView>>,
    /// The count of arrivals at which a slot segment was missing.
    missing_at: Option<u32>,
    /// A sequence, and the time since which its sample has been there.
    since: Option<(u64, u64)>,
}

impl PublisherCursor {
    pub(crate) fn begin(remote: Arc<RemotePublisher>, shared: &SubscriptionState) -> Self {
        let reliable = shared.qos().reliability == Reliability::Reliable;
        // Losses from here on count, including those of the history.
        let (next, depth) = remote.begin(shared.qos());
        let mut cursor = PublisherCursor {
            id: remote.id,
            next,
            at: (next % remote.cells) as usize,
            ring: remote.ring(),
            reading: shared.reading(remote.connection),
            published: next,
            fence_due: true,
            reliable,
            depth,
            lost: 0,
            slots: Vec::new(),
            last_slots: None,
            missing_at: None,
            since: None,
            remote,
        };
        cursor.announce();
        cursor
    }

    /// Its publisher.
    pub(crate) fn remote(&self) -> &RemotePublisher {
        &self.remote
    }

    /// The publisher's endpoint id.
    #[inline(always)]
    pub(crate) fn id(&self) -> EndpointId {
        self.id
    }

    /// The subscriber's number for the publisher.
    pub(crate) fn connection(&self) -> u32 {
        self.remote.connection
    }

    /// Whether the next sample lies in a slot segment that has not come yet.
    pub(crate) fn lacks_memory(&self) -> bool {
        self.missing_at.is_some()
    }

    #[inline(always)]
    fn cell(&self) -> &Cell {
        // SAFETY: `remote`, which has it mapped, is kept as long as this.
        unsafe { &(&*self.ring)[self.at] }
    }

    /// Whether there is anything to read: the sample, or a later one.
    #[inline(always)]
    pub(crate) fn is_ready(&mut self, again: bool) -> bool {
        self.fence_if_due(Step::T1);
        // Both lines of the cell are then fetched at once when the sample comes.
        prefetch::to_read(self.cell().second_line());
        let seen = self.cell().sequence.load(Ordering::Relaxed);
        if seen <= self.next {
            return false;
        }
        if seen != self.next + 1 {
            return load_acquire(&self.remote.head().published) > self.next;
        }
        if again {
            // It was the newest a moment ago: there is no need to count.
            self.published = self.published.max(seen);
        }
        self.missing_at.is_none_or(|at| self.remote.arrivals.load(Ordering::Acquire) != at)
    }

    /// Since when the next sample has been there, by `CLOCK_MONOTONIC`: since it was published, or
    /// since the first look at it if it has no timestamp. The result is between [`AGE_MAX_NS`] ago
    /// and now, whatever the publisher claims: so the sample cannot be the oldest, or the newest,
    /// for ever.
    pub(crate) fn since_ns(&mut self) -> Option<u64> {
        if !self.is_ready(false) {
            return None;
        }
        // The same steps as in a take. A take reports faults of the sample.
        if self.next >= self.published {
            let _ = self.skip_to_depth();
        }
        if let Some((_, since_ns)) = self.since.filter(|(next, _)| *next == self.next) {
            return Some(since_ns);
        }
        let published_ns = ring::published_ns(self.cell(), self.next).or_else(|| {
            let _ = self.skip_to_depth(); // its publisher has overtaken us
            ring::published_ns(self.cell(), self.next)
        });
        let now_ns = wait::now_ns();
        let since_ns = counts_from(published_ns.unwrap_or(0), now_ns);
        self.since = Some((self.next, since_ns));
        Some(since_ns)
    }

    /// Whether it has published samples that have not been taken, even if a take does not find them
    /// yet.
    pub(crate) fn has_unread(&mut self) -> bool {
        // A sample is in its cell before it is counted.
        self.is_ready(false) || self.unread() > 0
    }

    /// How many samples are counted as published and have not been taken.
    fn unread(&self) -> u64 {
        load_acquire(&self.remote.head().published).min(SEQUENCE_MAX).saturating_sub(self.next)
    }

    /// How many samples will never be taken, because reading has ended.
    pub(crate) fn abandoned(&self) -> u64 {
        self.lost + self.unread()
    }

    /// T1 to T8: takes the next sample into the empty `into`. False if there is none.
    #[inline(always)]
    pub(crate) fn take(
        &mut self,
        shared: &Arc<SubscriptionState>,
        into: &mut RawSample,
    ) -> Result<bool, Error> {
        self.fence_if_due(Step::T1);
        let mut stalled = 0;
        for _ in 0..LAPS_MAX {
            if !ring::is_there(self.cell(), self.next) {
                return Ok(false);
            }
            if self.next >= self.published {
                self.skip_to_depth()?;
            }
            let (length, published_ns) = match ring::look(self.cell(), self.next, into.inline_mut())
            {
                Look::NotYet => return Ok(false),
                Look::Passed if !self.passed(&mut stalled)? => return Ok(false),
                Look::Passed => continue,
                Look::Inline { length, time_ns } => (length, time_ns),
                Look::Slot { length, place, time_ns } => {
                    let Some(payload) = self.hold(length, place, shared)? else { return Ok(false) };
                    into.payload = payload;
                    (length as usize, time_ns)
                }
                Look::Corrupt => {
                    return Err(Error::PeerCorrupt { what: "a length beyond its cell" });
                }
            };
            into.publisher = self.id;
            into.sequence = self.next;
            into.published_ns = published_ns;
            into.lost_before = std::mem::take(&mut self.lost);
            into.length = length;
            self.step();
            self.announce();
            return Ok(true);
        }
        Ok(false)
    }

    /// Whether this sample comes next, with nothing lost before it.
    #[inline(always)]
    pub(crate) fn is_next(&self, published: &PublishedSample) -> bool {
        let is_its_turn = self.next == published.sequence || !is_taken(Step::Turn);
        self.id == published.publisher && is_its_turn && self.lost == 0
    }

    /// The publisher has handed over the next sample.
    #[inline(always)]
    pub(crate) fn go_on(&mut self) {
        self.step();
        // Its publisher is in this thread, so it does not wait.
        reclaim::go_on(self.reading(), self.next);
        self.fence_due = true;
    }

    /// The address of a payload that its publisher, in this thread, has just published; `None` if
    /// the segment is not mapped here yet.
    #[inline(always)]
    pub(crate) fn slot(&mut self, length: u64, place: u64) -> Option<*const u8> {
        let (number, slot) = ((place >> 32) as u32, place as u32);
        let view = self.slot_view(number)?;
        if slot >= view.slots || length > view.slot_bytes {
            return None;
        }
        Some(view.pointer.wrapping_add((u64::from(slot) * view.slot_bytes) as usize))
    }

    /// Holds the next sample, which lies in a slot; `None` if the slot's segment has not come yet.
    fn hold(
        &mut self,
        length: u64,
        place: u64,
        shared: &Arc<SubscriptionState>,
    ) -> Result<Option<Payload>, Error> {
        let (number, slot) = ((place >> 32) as u32, place as u32);
        let Some(view) = self.slot_view(number) else {
            return Ok(None);
        };
        if self.next >= SEQUENCE_MAX {
            return Err(Error::PeerCorrupt { what: "a sequence that cannot be" });
        }
        if slot >= view.slots || length > view.slot_bytes || length <= INLINE_BYTES_MAX as u64 {
            return Err(Error::PeerCorrupt { what: "a sample beyond its slots" });
        }
        let pointer = view.pointer.wrapping_add((u64::from(slot) * view.slot_bytes) as usize);
        // The fetch runs during the announcement.
        prefetch::to_read(pointer);
        let hold = shared.borrowed.hold(self.remote.connection, self.next);
        let hold = hold.ok_or_else(|| too_many_held(shared))?;
        Ok(Some(Payload::Slot { pointer, hold, shared: Arc::as_ptr(shared) }))
    }

    /// The slots of segment `number`; `None` if its descriptor has not come yet.
    #[inline(always)]
    fn slot_view(&mut self, number: u32) -> Option<SlotView> {
        match self.last_slots {
            Some((last, view)) if last == number => Some(view),
            _ => self.other_slot_view(number),
        }
    }

    #[cold]
    fn other_slot_view(&mut self, number: u32) -> Option<SlotView> {
        let known = self.slots.get(number as usize).copied().flatten();
        let view = known.or_else(|| self.look_up(number))?;
        if let Some((last, view)) = self.last_slots.replace((number, view)) {
            let slots = self.slots.len().max(last as usize + 1);
            self.slots.resize(slots, None);
            self.slots[last as usize] = Some(view);
        }
        Some(view)
    }

    fn look_up(&mut self, number: u32) -> Option<SlotView> {
        let arrivals = self.remote.arrivals.load(Ordering::Acquire);
        let view = self.remote.slot_view(number);
        self.missing_at = view.is_none().then_some(arrivals);
        self.remote.note_missing(self.missing_at);
        view
    }

    #[inline(always)]
    fn step(&mut self) {
        self.next += 1;
        self.at = if self.at + 1 == self.ring.len() { 0 } else { self.at + 1 };
    }

    /// T7 and T8.
    #[inline(always)]
    fn announce(&mut self) {
        reclaim::go_on(self.reading(), self.next);
        self.fence_due = true;
        if self.reliable {
            // ORDER: T8, pairs with the fence in the publisher's `wait_for_room`; it is T1, too.
            self.fence_if_due(Step::T8);
            if self.remote.head().waiting.load(Ordering::Relaxed) != 0 {
                wait::wake(self.reading());
            }
        }
    }

    /// Why samples before the last one were lost.
    pub(crate) fn loss_cause(&self) -> LossCause {
        // ORDER: Relaxed: it does not change.
        let waits = self.remote.head().reliable.load(Ordering::Relaxed) != 0;
        if waits && self.reliable { LossCause::PassedOver } else { LossCause::Overwritten }
    }

    /// T1.
    #[inline(always)]
    fn fence_if_due(&mut self, step: Step) {
        if self.fence_due {
            // ORDER: pairs with R1: either a publisher that looks for a slot to reuse sees our
            // announcement, or we see that the cell is written again.
            fence_of(step);
            self.fence_due = false;
        }
    }

    /// The next sample's cell is being written, or holds a later sample: goes on at the oldest
    /// sample within the depth. False if the next sample is not there yet. `stalled` counts how often
    /// that made no progress.
    #[cold]
    fn passed(&mut self, stalled: &mut u32) -> Result<bool, Error> {
        let next = self.next;
        // ORDER: acquire, before `published`: an honest publisher has counted all samples before the
        // one whose cell it writes (P6, then P7, then P2).
        let seen = load_acquire(&self.cell().sequence);
        let is_there = self.skip_to_depth()?;
        let is_written = seen != WRITING && seen > next + 1;
        let is_counted = seen <= self.published.saturating_add(1);
        // A cell is being written, or was read while it was being written. Then its sample is at
        // least `cells` ahead, and there is progress. The only exception is the next sample itself,
        // if its cell has just been finished; this happens once.
        *stalled += u32::from(is_there && self.next == next);
        match (is_written && !(is_there && is_counted)) || *stalled > STALLED_MAX {
            true => Err(Error::PeerCorrupt { what: "a sample that was never published" }),
            false => Ok(is_there),
        }
    }

    /// Goes on at the oldest sample within the depth and counts earlier ones as lost. False if the
    /// next sample is not there yet.
    fn skip_to_depth(&mut self) -> Result<bool, Error> {
        self.published = load_acquire(&self.remote.head().published);
        if self.published > SEQUENCE_MAX {
            return Err(Error::PeerCorrupt { what: "a count of samples that cannot be" });
        }
        if self.published <= self.next {
            return Ok(false);
        }
        let oldest = self.published.saturating_sub(self.depth);
        if oldest > self.next {
            self.lost += oldest - self.next;
            self.next = oldest;
            // The missing segment was of a sample that is skipped.
            if self.missing_at.take().is_some() {
                self.remote.note_missing(None);
            }
            self.at = (self.next % self.remote.cells) as usize;
            self.announce();
            self.fence_if_due(Step::T1);
        }
        Ok(true)
    }

    #[inline(always)]
    fn reading(&self) -> &AtomicU64 {
        // SAFETY: the reader that this is a part of keeps the subscription mapped.
        unsafe { &*self.reading }
    }
}

#[cold]
fn too_many_held(shared: &SubscriptionState) -> Error {
    Error::TooManyHeld { topic: shared.topic().name.clone(), held: shared.qos().held_max }
}

/// The time since which a sample counts as there, given its publication time (0 if unknown) and the
/// time of this look.
fn counts_from(published_ns: u64, now_ns: u64) -> u64 {
    match published_ns {
        0 => now_ns,
        _ => published_ns.clamp(now_ns.saturating_sub(AGE_MAX_NS), now_ns),
    }
}

/// The maximum age of a sample, in ns.
const AGE_MAX_NS: u64 = 10_000_000_000;
/// How often a take may find a cell changed without progress; with an honest publisher, once.
const STALLED_MAX: u32 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timestamp_out_of_range_is_clamped() {
        let now_ns = 5 * AGE_MAX_NS;
        assert_eq!(counts_from(now_ns - 7, now_ns), now_ns - 7);
        assert_eq!(counts_from(1, now_ns), 4 * AGE_MAX_NS);
        assert_eq!(counts_from(u64::MAX >> 1, now_ns), now_ns);
        assert_eq!(counts_from(0, now_ns), now_ns);
        assert_eq!(counts_from(1, 2), 1, "soon after the start of the host");
    }
}
