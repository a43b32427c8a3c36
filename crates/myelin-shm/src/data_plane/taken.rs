//! A sample in a subscriber's hands.

use crate::data_plane::ring::Inline;
use crate::data_plane::subscription::SubscriptionShared;
use crate::topic::EndpointId;

/// A sample: a copy of a payload of up to 104 B, or the slot itself. It stays as it is until the
/// last clone is dropped; in any thread, in any order.
pub struct Taken {
    /// The publisher.
    pub publisher: EndpointId,
    /// The publisher's count of samples before this one.
    pub sequence: u64,
    /// When it was published, by `CLOCK_MONOTONIC`; 0 if its publisher does not say.
    pub published_ns: u64,
    /// Samples of this publisher lost between the one taken before and this one.
    pub lost_before: u64,
    pub(crate) length: usize,
    pub(crate) payload: Payload,
}

pub(crate) enum Payload {
    Inline(Inline),
    /// A payload of up to 104 B where its publisher has it: see [`Taken::lent`].
    Lent {
        pointer: *const u8,
    },
    /// `shared` is alive until the hold is released, see [`SubscriptionShared::drop_clone`].
    Slot {
        pointer: *const u8,
        hold: u32,
        shared: *const SubscriptionShared,
    },
}

// SAFETY: an inline payload is plain data; one that is lent is not moved anywhere (`Taken::lent`); a slot is mapped as long as the hold (the subscription
// keeps the source), and nobody writes to it meanwhile.
unsafe impl Send for Taken {}
// SAFETY: as above; `&Taken` gives out `&[u8]` alone.
unsafe impl Sync for Taken {}

impl Taken {
    /// A sample of up to 104 B where its publisher has it, to be lent out by reference until
    /// `payload` goes.
    #[inline(always)]
    pub(crate) fn lent(
        publisher: EndpointId,
        sequence: u64,
        published_ns: u64,
        payload: &[u8],
    ) -> Taken {
        let (length, lost_before) = (payload.len(), 0);
        let payload = Payload::Lent { pointer: payload.as_ptr() };
        Taken { publisher, sequence, published_ns, lost_before, length, payload }
    }

    /// Where the payload lies.
    #[inline(always)]
    pub(crate) fn address(&self) -> usize {
        self.bytes().as_ptr().addr()
    }

    /// The payload. Aligned to 64 bytes, except in a callback, where it is aligned as the function
    /// asked for.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        match &self.payload {
            Payload::Inline(inline) => inline.bytes(self.length),
            // SAFETY: pointer and length were checked against the slot; the hold keeps the publisher
            // from writing to it.
            // One that is lent is only reached through references that end before it does.
            Payload::Slot { pointer, .. } | Payload::Lent { pointer } => unsafe {
                std::slice::from_raw_parts(*pointer, self.length)
            },
        }
    }
}

impl Clone for Taken {
    fn clone(&self) -> Self {
        let payload = match &self.payload {
            Payload::Inline(inline) => Payload::Inline(*inline),
            Payload::Lent { .. } => {
                let mut inline = Inline::ZERO;
                inline.bytes_mut(self.length).copy_from_slice(self.bytes());
                Payload::Inline(inline)
            }
            Payload::Slot { pointer, hold, shared } => {
                // SAFETY: this sample has not been released.
                unsafe { &**shared }.clone_hold(*hold);
                Payload::Slot { pointer: *pointer, hold: *hold, shared: *shared }
            }
        };
        Taken { payload, ..*self }
    }
}

impl Drop for Taken {
    #[inline]
    fn drop(&mut self) {
        if let Payload::Slot { hold, shared, .. } = self.payload {
            // SAFETY: this sample has not been released; the pointer comes from the reader's Arc.
            unsafe {
                if !(*shared).is_forked() {
                    SubscriptionShared::drop_clone(shared, hold);
                }
            }
        }
    }
}
