//! An observer's place in the ring of one publisher: O1 to O4 of
//! `docs/explanation/shared-memory.md` section 15.

use std::sync::Arc;

use crate::data_plane::observer::pace::Pace;
use crate::data_plane::observer::sample::{Missing, ObservedHeader, ObservedSample, inline};
use crate::data_plane::observer::{ObservedPublisher, Ring};
use crate::data_plane::remote_publisher::SlotMemory;
use crate::data_plane::ring::{self, Look};
use crate::error::Error;
use crate::layout::{Cell, INLINE_BYTES_MAX, REUSED, WRITING};
use crate::limits::{LAPS_MAX, SEGMENTS_MAX, SEQUENCE_MAX};
use crate::sync::{Ordering, load_acquire};
use crate::topic::EndpointId;

pub(super) struct Cursor {
    ring: Arc<Ring>,
    next: u64,
    /// Samples overwritten since the previous one.
    overwritten_before: u64,
    seen: u64,
    overwritten: u64,
    without_payload: u64,
    /// The slot segment that was used last.
    slots: Option<(u32, SlotMemory)>,
    lacking: Option<Lacking>,
    /// A slot segment that cannot be had.
    refused: Option<u32>,
    pace: Pace,
    /// `next` at the last look, and whether payloads lie in slots and are wanted.
    next_before: u64,
    is_in_slots: bool,
}

/// A slot segment that was asked for.
struct Lacking {
    number: u32,
    answers: u32,
    requests: u32,
}

/// What to read of a sample.
pub(super) enum Read<'a> {
    Header(&'a mut ObservedHeader),
    Payload(&'a mut ObservedSample),
}

/// The result of a look at a publisher.
pub(super) enum Found {
    Sample,
    Nothing,
    /// Slot segments must be requested, from this number on.
    Lacks {
        from: u32,
    },
    /// It has gone, and everything is read.
    End,
}

/// The result of an attempt to copy a payload.
enum Copied {
    Whole,
    Not(Missing),
    Later(Found),
}

impl Cursor {
    pub(super) fn new(ring: Arc<Ring>) -> Cursor {
        let next = ring.first;
        Cursor {
            ring,
            next,
            overwritten_before: 0,
            seen: 0,
            overwritten: 0,
            without_payload: 0,
            slots: None,
            lacking: None,
            refused: None,
            pace: Pace::default(),
            next_before: next,
            is_in_slots: false,
        }
    }

    pub(super) fn publisher(&self) -> EndpointId {
        self.ring.source.id
    }

    pub(super) fn next(&self) -> u64 {
        self.next
    }

    pub(super) fn counts(&self, has_gone: bool) -> ObservedPublisher {
        let Cursor { seen, overwritten, without_payload, .. } = *self;
        let published = self.ring.source.head().published.load(Ordering::Relaxed);
        ObservedPublisher {
            publisher: self.publisher(),
            first: self.ring.first,
            published: published.max(self.next),
            seen,
            overwritten,
            without_payload,
            has_gone,
        }
    }

    pub(super) fn interval_ns(&self) -> u64 {
        self.pace.interval_ns()
    }

    /// A look at all publishers has ended. A slot can be used again with the next sample already,
    /// so a look that wants it comes twice a sample; for the rest it is enough to look twice while
    /// the ring is written once.
    pub(super) fn looked(&mut self, now_ns: u64) {
        let within = if self.is_in_slots { 1 } else { self.ring.source.depth };
        self.pace.looked(now_ns, self.next - self.next_before, within);
        self.next_before = self.next;
    }

    /// Whether a take would find something.
    pub(super) fn has_unread(&self) -> bool {
        let seen = load_acquire(&self.cell().sequence);
        if self.ring.source.gone.load(Ordering::Acquire) {
            return true; // a sample, or the end
        }
        match seen.checked_sub(self.next) {
            None | Some(0) => false,
            Some(1) => !self.is_waiting(),
            Some(_) => load_acquire(&self.ring.source.head().published) > self.next,
        }
    }

    /// Whether the slot segment of the next sample is still to come.
    fn is_waiting(&self) -> bool {
        let answers = self.ring.answers.load(Ordering::Acquire);
        self.lacking.as_ref().is_some_and(|lacking| lacking.answers == answers)
    }

    fn cell(&self) -> &Cell {
        let source = &self.ring.source;
        &source.ring()[(self.next % source.cells) as usize]
    }

    /// O1 to O4 for the next sample.
    pub(super) fn take(&mut self, read: &mut Read<'_>) -> Result<Found, Error> {
        // ORDER: Acquire, before the look: when the publisher has gone, what is not there yet will
        // never be.
        let has_gone = self.ring.source.gone.load(Ordering::Acquire);
        let nothing = || if has_gone { Found::End } else { Found::Nothing };
        let mut inline = inline();
        let mut stalls = 0;
        for _ in 0..LAPS_MAX {
            let (length, published_ns, copied) =
                match ring::look(self.cell(), self.next, &mut inline) {
                    Look::NotYet => return Ok(nothing()),
                    Look::Passed if !self.skip(&mut stalls)? => return Ok(nothing()),
                    Look::Passed => continue,
                    Look::Inline { length, time_ns } => {
                        if let Read::Payload(into) = read {
                            // SAFETY: `look` has initialised so many bytes; the others are not read.
                            let payload = unsafe {
                                std::slice::from_raw_parts(inline.as_ptr().cast::<u8>(), length)
                            };
                            into.set_inline(payload);
                        }
                        self.is_in_slots = false;
                        (length as u64, time_ns, Copied::Whole)
                    }
                    Look::Slot { length, place, time_ns } => {
                        let copied = match read {
                            Read::Payload(into) => self.copy(length, place, into, has_gone)?,
                            Read::Header(_) => Copied::Whole,
                        };
                        self.is_in_slots = matches!(read, Read::Payload(_));
                        (length, time_ns, copied)
                    }
                    Look::Corrupt => {
                        return Err(Error::PeerCorrupt { what: "a length beyond its cell" });
                    }
                };
            let missing = match copied {
                Copied::Whole => None,
                Copied::Not(missing) => Some(missing),
                Copied::Later(found) => return Ok(found),
            };
            let header = ObservedHeader {
                publisher: self.publisher(),
                sequence: self.next,
                published_ns,
                length,
                overwritten_before: std::mem::take(&mut self.overwritten_before),
            };
            match read {
                Read::Header(into) => **into = header,
                Read::Payload(into) => {
                    (into.header, into.missing) = (header, missing);
                    if missing.is_some() {
                        into.clear();
                    }
                }
            }
            self.seen += 1;
            self.without_payload += u64::from(missing.is_some());
            self.lacking = None;
            self.next += 1;
            return Ok(Found::Sample);
        }
        Ok(Found::Nothing)
    }

    /// O3 and O4: copies a payload from its slot, and checks that the slot still has it.
    fn copy(
        &mut self,
        length: u64,
        place: u64,
        into: &mut ObservedSample,
        has_gone: bool,
    ) -> Result<Copied, Error> {
        if place == REUSED {
            return Ok(Copied::Not(Missing::Reused));
        }
        let (number, slot) = ((place >> 32) as u32, place as u32);
        if number >= SEGMENTS_MAX {
            return Err(Error::PeerCorrupt { what: "a sample beyond its slots" });
        }
        if self.slots.as_ref().is_none_or(|(last, _)| *last != number) {
            match self.ring.source.slot_memory(number) {
                Some(memory) => self.slots = Some((number, memory)),
                None if has_gone || self.refused == Some(number) => {
                    return Ok(Copied::Not(Missing::Unmapped));
                }
                None => return Ok(self.lack(number)),
            }
        }
        let Some((_, memory)) = &self.slots else { unreachable!("it was set above") };
        if slot >= memory.slots || length > memory.slot_bytes || length <= INLINE_BYTES_MAX as u64 {
            return Err(Error::PeerCorrupt { what: "a sample beyond its slots" });
        }
        into.copy(memory, slot, length);
        match ring::is_unchanged(self.cell(), self.next, place) {
            true => Ok(Copied::Whole),
            false => Ok(Copied::Not(Missing::Reused)),
        }
    }

    /// The slot segment of the next sample has not come. It is asked for again after an answer
    /// without it: the answer may have been on its way before.
    fn lack(&mut self, number: u32) -> Copied {
        let answers = self.ring.answers.load(Ordering::Acquire);
        let before = self.lacking.as_ref().filter(|lacking| lacking.number == number);
        let requests = match before {
            Some(lacking) if lacking.answers == answers => return Copied::Later(Found::Nothing),
            Some(lacking) => lacking.requests + 1,
            None => 1,
        };
        if requests > REQUESTS_MAX {
            (self.refused, self.lacking) = (Some(number), None);
            return Copied::Not(Missing::Unmapped);
        }
        self.lacking = Some(Lacking { number, answers, requests });
        Copied::Later(Found::Lacks { from: self.ring.source.segments().min(number) })
    }

    /// The next sample's cell is being written, or holds a later sample: goes on at the oldest
    /// sample that the ring has, and counts those before as overwritten. False if the next sample
    /// is not there yet. `stalls` counts how often that made no progress.
    #[cold]
    fn skip(&mut self, stalls: &mut u32) -> Result<bool, Error> {
        const NEVER_PUBLISHED: Error =
            Error::PeerCorrupt { what: "a sample that was never published" };
        // ORDER: acquire, before `published`: an honest publisher has counted all samples before the
        // one whose cell it writes (P6, then P7, then P2).
        let seen = load_acquire(&self.cell().sequence);
        let published = load_acquire(&self.ring.source.head().published);
        if published > SEQUENCE_MAX {
            return Err(Error::PeerCorrupt { what: "a count of samples that cannot be" });
        }
        let is_later = seen != WRITING && seen > self.next + 1;
        let is_there = published > self.next;
        let oldest = published.saturating_sub(self.ring.source.depth);
        if oldest > self.next {
            self.overwritten_before += oldest - self.next;
            self.overwritten += oldest - self.next;
            self.next = oldest;
            self.lacking = None;
        } else {
            *stalls += u32::from(is_there);
        }
        let is_counted = seen <= published.saturating_add(1);
        if (is_later && !(is_there && is_counted)) || *stalls > STALLS_MAX {
            return Err(NEVER_PUBLISHED);
        }
        Ok(is_there)
    }
}

/// How often a slot segment is asked for.
const REQUESTS_MAX: u32 = 3;
/// How often a take may find a cell changed without progress; with an honest publisher, once.
const STALLS_MAX: u32 = 2;
