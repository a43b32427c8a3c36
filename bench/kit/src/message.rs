//! The contents of a message: an 8-byte sequence number followed by the payload.
//!
//! The sequence number is little-endian and is added to the payload, for every system alike: a cell
//! of 64 B moves 72 B. The payload is a fixed pattern with a stamp of the sequence number every
//! [`STAMP_BYTES`] bytes. So a torn, stale or overwritten sample is detected with one load per KiB.
//! The whole pattern is compared for every message of the warm-up (in a stream, for the first
//! ones). With [`Touch::Header`], the payload is neither written nor read after the warm-up.

use crate::protocol::Touch;

/// Bytes of the sequence number in front of the payload.
pub const HEADER_BYTES: usize = 8;
/// Distance of two stamps in the payload, in bytes. The first is at the payload's start.
pub const STAMP_BYTES: usize = 1024;

/// The message that a publisher sends repeatedly, with new stamps for each sequence number.
pub struct Outgoing {
    bytes: Vec<u64>,
    len: usize,
}

impl Outgoing {
    /// A message with `payload_bytes` of pattern.
    pub fn new(payload_bytes: usize) -> Self {
        let len = HEADER_BYTES + payload_bytes;
        let mut bytes = vec![0u64; len.div_ceil(8)];
        for (index, word) in bytes.iter_mut().enumerate().skip(1) {
            *word = pattern(index);
        }
        Outgoing { bytes, len }
    }

    /// Changes the payload to `payload_bytes`, at most as many as it was made with.
    #[inline]
    pub fn resize(&mut self, payload_bytes: usize) {
        let len = HEADER_BYTES + payload_bytes;
        assert!(len.div_ceil(8) <= self.bytes.len(), "larger than it was made");
        self.len = len;
        // A word that is cut off has no stamp, but may have the one of a longer message.
        let last = len / 8;
        if !len.is_multiple_of(8) && (last * 8 - HEADER_BYTES).is_multiple_of(STAMP_BYTES) {
            self.bytes[last] = pattern(last);
        }
    }

    /// The message with sequence number `sequence`, stamped as far as `touch` requires.
    #[inline]
    pub fn renew(&mut self, sequence: u64, touch: Touch) -> &[u8] {
        match touch {
            Touch::Stamps => self.stamp(sequence),
            Touch::Header => {
                self.bytes[0] = sequence.to_le();
                self.whole()
            }
        }
    }

    /// The message with sequence number `sequence` and all its stamps.
    #[inline]
    pub fn stamp(&mut self, sequence: u64) -> &[u8] {
        self.bytes[0] = sequence.to_le();
        let mut at = HEADER_BYTES;
        while at + 8 <= self.len {
            self.bytes[at / 8] = stamp(sequence, at);
            at += STAMP_BYTES;
        }
        self.whole()
    }

    #[inline]
    fn whole(&self) -> &[u8] {
        // SAFETY: the vector holds at least `len` initialised bytes; u8 has no alignment or
        // validity requirement.
        unsafe { std::slice::from_raw_parts(self.bytes.as_ptr().cast(), self.len) }
    }
}

/// The sequence number of a received message; `None` if it is too short to hold one.
#[inline]
pub fn sequence(message: &[u8]) -> Option<u64> {
    message.first_chunk().map(|head| u64::from_le_bytes(*head))
}

/// Number of bytes of `message`, from the first on, that are written into a loan.
#[inline]
pub fn filled(message: &[u8], touch: Touch) -> usize {
    match touch {
        Touch::Stamps => message.len(),
        Touch::Header => message.len().min(HEADER_BYTES),
    }
}

/// Whether a message of `payload_bytes` is undamaged, as far as `touch` requires: by its stamps, or
/// only by its length.
#[inline]
pub fn holds(message: &[u8], payload_bytes: usize, touch: Touch) -> bool {
    match touch {
        Touch::Stamps => stamps_hold(message, payload_bytes),
        Touch::Header => message.len() == HEADER_BYTES + payload_bytes,
    }
}

/// Whether a message of `payload_bytes` has the right length and every stamp of its sequence.
#[inline]
pub fn stamps_hold(message: &[u8], payload_bytes: usize) -> bool {
    let Some(sequence) = sequence(message) else {
        return false;
    };
    if message.len() != HEADER_BYTES + payload_bytes {
        return false;
    }
    let mut at = HEADER_BYTES;
    while at + 8 <= message.len() {
        if word(message, at) != stamp(sequence, at) {
            return false;
        }
        at += STAMP_BYTES;
    }
    true
}

/// Like [`stamps_hold`], and every byte between the stamps is as sent.
pub fn pattern_holds(message: &[u8], payload_bytes: usize) -> bool {
    let between_stamps = |at: usize, chunk: &[u8]| {
        let stamped = chunk.len() == 8 && (at - HEADER_BYTES).is_multiple_of(STAMP_BYTES);
        stamped || *chunk == pattern(at / 8).to_ne_bytes()[..chunk.len()]
    };
    stamps_hold(message, payload_bytes)
        && (message[HEADER_BYTES..].chunks(8).enumerate())
            .all(|(index, chunk)| between_stamps(HEADER_BYTES + index * 8, chunk))
}

/// Writes a whole message as a camera's driver writes a frame: every byte again, with the stamps of
/// `sequence`.
#[inline]
pub fn fill_frame(memory: &mut [u8], sequence: u64) {
    memory.fill(shade(sequence));
    if let Some(head) = memory.first_chunk_mut() {
        *head = sequence.to_le_bytes();
    }
    let mut at = HEADER_BYTES;
    while at + 8 <= memory.len() {
        memory[at..at + 8].copy_from_slice(&stamp(sequence, at).to_ne_bytes());
        at += STAMP_BYTES;
    }
}

/// Like [`stamps_hold`], and every byte between the stamps is as [`fill_frame`] wrote it.
pub fn frame_holds(message: &[u8], payload_bytes: usize) -> bool {
    let Some(shade) = sequence(message).map(shade) else {
        return false;
    };
    let between_stamps = |chunk: &[u8]| chunk.iter().skip(8).all(|byte| *byte == shade);
    stamps_hold(message, payload_bytes)
        && message[HEADER_BYTES..].chunks(STAMP_BYTES).all(between_stamps)
}

/// The fill value of a frame; 251 is prime, so the frames of a short queue all differ.
fn shade(sequence: u64) -> u8 {
    (sequence % 251) as u8
}

fn word(message: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(message[at..at + 8].try_into().expect("eight bytes"))
}

fn pattern(index: usize) -> u64 {
    (index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x6d79_656c_696e_0000
}

fn stamp(sequence: u64, at: usize) -> u64 {
    sequence.wrapping_mul(0xff51_afd7_ed55_8ccd) ^ at as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_stamped_message_passes_the_check(len in 0usize..5000, sequence_sent: u64) {
            let mut outgoing = Outgoing::new(len);
            let message = outgoing.stamp(sequence_sent).to_vec();
            prop_assert_eq!(sequence(&message), Some(sequence_sent));
            prop_assert!(stamps_hold(&message, len));
            prop_assert!(pattern_holds(&message, len));
        }

        #[test]
        fn any_flipped_payload_bit_is_detected(
            len in 1usize..5000,
            bit: usize,
            sequence_sent: u64,
        ) {
            let mut message = Outgoing::new(len).stamp(sequence_sent).to_vec();
            let bit = bit % (len * 8);
            message[HEADER_BYTES + bit / 8] ^= 1 << (bit % 8);
            prop_assert!(!pattern_holds(&message, len));
        }
    }

    proptest! {
        #[test]
        fn a_message_of_changing_size_passes_the_check(
            sizes in prop::collection::vec(0usize..=4200, 1..20),
        ) {
            let mut outgoing = Outgoing::new(4200);
            for (number, size) in sizes.into_iter().enumerate() {
                outgoing.resize(size);
                let message = outgoing.stamp(number as u64);
                prop_assert!(stamps_hold(message, size) && pattern_holds(message, size), "{size}");
            }
        }
    }

    #[test]
    fn a_stale_payload_with_a_new_number_is_detected() {
        let mut outgoing = Outgoing::new(4096);
        let mut message = outgoing.stamp(1).to_vec();
        message[..8].copy_from_slice(&2u64.to_le_bytes());
        assert!(!stamps_hold(&message, 4096));
    }

    #[test]
    fn touch_header_writes_and_checks_only_the_header() {
        let mut outgoing = Outgoing::new(4096);
        outgoing.stamp(1);
        let message = outgoing.renew(2, Touch::Header).to_vec();
        assert_eq!(sequence(&message), Some(2));
        assert_eq!(filled(&message, Touch::Header), HEADER_BYTES);
        assert_eq!(filled(&message, Touch::Stamps), message.len());
        assert!(holds(&message, 4096, Touch::Header) && !holds(&message, 4096, Touch::Stamps));
        assert!(!holds(&message[..64], 4096, Touch::Header));
    }

    #[test]
    fn a_frame_torn_at_any_kib_is_detected() {
        let mut frames = [vec![0; HEADER_BYTES + 5000], vec![0; HEADER_BYTES + 5000]];
        fill_frame(&mut frames[0], 7);
        fill_frame(&mut frames[1], 8);
        assert!(frames.iter().all(|frame| frame_holds(frame, 5000) && stamps_hold(frame, 5000)));
        for torn_at in (HEADER_BYTES..HEADER_BYTES + 4096).step_by(STAMP_BYTES) {
            let mut torn = frames[0].clone();
            torn[torn_at..].copy_from_slice(&frames[1][torn_at..]);
            assert!(!stamps_hold(&torn, 5000), "at {torn_at}");
        }
        frames[0][3000] ^= 1;
        assert!(stamps_hold(&frames[0], 5000) && !frame_holds(&frames[0], 5000));
        assert!(!frame_holds(&frames[0][..4], 5000));
    }

    #[test]
    fn a_wrong_length_is_detected() {
        let message = Outgoing::new(64).stamp(1).to_vec();
        assert!(!stamps_hold(&message, 65));
        assert!(!stamps_hold(&message[..3], 64));
        assert!(!pattern_holds(&message[..3], 64));
    }
}
