//! A sample held by a subscriber.

use std::mem::MaybeUninit;

use crate::data_plane::ring::Inline;
use crate::data_plane::subscription::SubscriptionState;
use crate::layout::INLINE_BYTES_MAX;
use crate::topic::EndpointId;

/// A sample: a copy of a payload of up to 104 B, or the slot itself. It does not change until the
/// last clone is dropped, in any thread, in any order.
///
/// It is large. Moving it right after its payload has been copied word by word takes longer than
/// the rest of a take; see
/// [`Reader::take_into`](crate::data_plane::subscription::Reader::take_into).
pub struct RawSample {
    /// The copy: its first `length` bytes are the payload, if that lies here.
    inline: MaybeUninit<Inline>,
    /// The publisher.
    pub publisher: EndpointId,
    /// The publisher's count of samples before this one.
    pub sequence: u64,
    /// When it was published, by `CLOCK_MONOTONIC`; 0 if its publisher adds no timestamps.
    pub published_ns: u64,
    /// How many samples of this publisher were lost between the previously taken one and this one.
    pub lost_before: u64,
    pub(crate) length: usize,
    pub(crate) payload: Payload,
}

/// A sample that has just been published in this thread.
pub(crate) struct PublishedSample {
    pub(crate) publisher: EndpointId,
    pub(crate) sequence: u64,
    /// The time; 0 if it is unknown.
    pub(crate) time_ns: u64,
}

/// The place of the payload.
pub(crate) enum Payload {
    /// In the sample.
    Inline,
    /// In the publisher's memory: see [`RawSample::lent`].
    Lent { pointer: *const u8 },
    /// `shared` is alive until the hold is released, see [`SubscriptionState::drop_clone`].
    Slot { pointer: *const u8, hold: u32, shared: *const SubscriptionState },
}

// SAFETY: an inline payload is plain data; a lent one is not moved anywhere (`RawSample::lent`); a slot
// stays mapped as long as the hold (the subscription keeps the source), and nobody writes to it
// meanwhile.
unsafe impl Send for RawSample {}
// SAFETY: as above; `&RawSample` gives out only `&[u8]`.
unsafe impl Sync for RawSample {}

impl RawSample {
    /// No sample yet: a place for one.
    #[inline(always)]
    pub fn empty() -> RawSample {
        RawSample {
            inline: MaybeUninit::uninit(),
            publisher: 0,
            sequence: 0,
            published_ns: 0,
            lost_before: 0,
            length: 0,
            payload: Payload::Inline,
        }
    }

    /// A sample in its publisher's memory, to be lent by reference until the publisher reuses that
    /// memory.
    #[inline(always)]
    pub(crate) fn lent(fresh: &PublishedSample, length: usize, payload: Payload) -> RawSample {
        let PublishedSample { publisher, sequence, time_ns: published_ns } = *fresh;
        let (inline, lost_before) = (MaybeUninit::uninit(), 0);
        RawSample { inline, publisher, sequence, published_ns, lost_before, length, payload }
    }

    /// Gives the sample back; the buffer is empty then.
    #[inline(always)]
    pub fn release(&mut self) {
        self.length = 0;
        if let Payload::Slot { hold, shared, .. } = self.payload {
            self.payload = Payload::Inline;
            // SAFETY: this sample has not been released; the pointer comes from the reader's Arc.
            unsafe {
                if !(*shared).is_forked() {
                    SubscriptionState::drop_clone(shared, hold);
                }
            }
        }
    }

    /// The place to which a payload of up to 104 B is copied.
    #[inline(always)]
    pub(crate) fn inline_mut(&mut self) -> &mut MaybeUninit<Inline> {
        &mut self.inline
    }

    /// The address of the payload.
    #[inline(always)]
    pub(crate) fn address(&self) -> usize {
        self.bytes().as_ptr().addr()
    }

    /// The payload. Aligned to 64 bytes, except in a callback, where its alignment is that of the
    /// function.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        let pointer = match self.payload {
            Payload::Inline => self.inline.as_ptr().cast(),
            Payload::Slot { pointer, .. } | Payload::Lent { pointer } => pointer,
        };
        // SAFETY: so many bytes of the copy are initialised: `ring::look` and `clone` ensure it.
        // For a slot, pointer and length were checked, and the hold keeps the publisher from
        // writing to it. A lent sample is only reached through references that end before it does.
        unsafe { std::slice::from_raw_parts(pointer, self.length) }
    }
}

impl Clone for RawSample {
    fn clone(&self) -> Self {
        let mut clone = RawSample::empty();
        clone.payload = match self.payload {
            Payload::Inline | Payload::Lent { .. } => {
                let bytes = self.bytes();
                assert!(bytes.len() <= INLINE_BYTES_MAX);
                // SAFETY: they fit, and lie elsewhere.
                unsafe {
                    let to = clone.inline.as_mut_ptr().cast::<u8>();
                    to.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
                }
                Payload::Inline
            }
            Payload::Slot { pointer, hold, shared } => {
                // SAFETY: this sample has not been released.
                unsafe { &*shared }.borrowed.clone_hold(hold);
                Payload::Slot { pointer, hold, shared }
            }
        };
        (clone.publisher, clone.sequence) = (self.publisher, self.sequence);
        (clone.published_ns, clone.lost_before) = (self.published_ns, self.lost_before);
        clone.length = self.length;
        clone
    }
}

impl Drop for RawSample {
    #[inline]
    fn drop(&mut self) {
        self.release();
    }
}
