//! The copies that the receiving end of an image run makes of each frame: one by `memcpy`, one by
//! stores that bypass the caches, each timed.

use crate::clock::Clock;

/// Two prefaulted buffers for copies of frames, and which copy comes first.
pub struct Copies {
    by_memcpy: Buffer,
    by_streaming: Buffer,
    streaming: Streaming,
    memcpy_first: bool,
}

impl Copies {
    /// Buffers for messages of up to `bytes`.
    pub fn new(bytes: usize) -> Self {
        Copies {
            by_memcpy: Buffer::new(bytes),
            by_streaming: Buffer::new(bytes),
            streaming: Streaming::best(),
            memcpy_first: true,
        }
    }

    /// Copies as much of `frame` as fits, in both ways; returns the durations of the `memcpy` and
    /// of the streaming copy, in nanoseconds. The order alternates, because the second copy finds
    /// the frame in the caches as far as it fits.
    pub fn time(&mut self, frame: &[u8], clock: &Clock) -> (u32, u32) {
        let frame = &frame[..frame.len().min(self.by_memcpy.len)];
        self.memcpy_first = !self.memcpy_first;
        let mut took_ns = (0, 0);
        if self.memcpy_first {
            took_ns.0 = timed(clock, || memcpy(self.by_memcpy.first(frame.len()), frame));
        }
        let to = self.by_streaming.first(frame.len());
        took_ns.1 = timed(clock, || self.streaming.copy(to, frame));
        if !self.memcpy_first {
            took_ns.0 = timed(clock, || memcpy(self.by_memcpy.first(frame.len()), frame));
        }
        took_ns
    }
}

#[inline(always)]
fn timed(clock: &Clock, copy: impl FnOnce()) -> u32 {
    let before_ns = clock.now();
    copy();
    u32::try_from(clock.now() - before_ns).unwrap_or(u32::MAX)
}

/// Not inlined, so that the compiler keeps a copy that nobody reads.
#[inline(never)]
fn memcpy(to: &mut [u8], from: &[u8]) {
    to.copy_from_slice(from);
    std::hint::black_box(to);
}

/// Ways to copy around the caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Streaming {
    /// x86-64 with AVX: `vmovntdq`, 32 bytes per store.
    #[cfg(target_arch = "x86_64")]
    Avx,
    /// Any x86-64: `movntdq`, 16 bytes per store.
    #[cfg(target_arch = "x86_64")]
    Sse2,
    /// Without such stores: a second `memcpy`.
    Memcpy,
}

impl Streaming {
    /// The widest stores of this processor.
    pub fn best() -> Self {
        Self::all()[0]
    }

    /// The ways that this processor supports, best first.
    pub fn all() -> &'static [Streaming] {
        #[cfg(target_arch = "x86_64")]
        return match is_x86_feature_detected!("avx") {
            true => &[Streaming::Avx, Streaming::Sse2, Streaming::Memcpy],
            false => &[Streaming::Sse2, Streaming::Memcpy],
        };
        #[cfg(not(target_arch = "x86_64"))]
        return &[Streaming::Memcpy];
    }

    /// Copies `from` to `to`, which have the same length. Afterwards other cores see the copy
    /// before later stores, as after any copy.
    ///
    /// # Panics
    /// If the two differ in length.
    pub fn copy(self, to: &mut [u8], from: &[u8]) {
        assert_eq!(to.len(), from.len(), "a copy has the length of its source");
        match self {
            // SAFETY: `all` offers it only if the processor has AVX; both slices have the same
            // length.
            #[cfg(target_arch = "x86_64")]
            Streaming::Avx => unsafe { x86::copy_avx(to, from) },
            #[cfg(target_arch = "x86_64")]
            Streaming::Sse2 => x86::copy_sse2(to, from),
            Streaming::Memcpy => memcpy(to, from),
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m128i, __m256i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128, _mm256_loadu_si256,
        _mm256_stream_si256,
    };

    /// Copies one cache line per iteration. The bytes before the first whole line of `to` and after
    /// its last are copied separately.
    #[target_feature(enable = "avx")]
    pub fn copy_avx(to: &mut [u8], from: &[u8]) {
        let (to, from) = copy_ends(to, from);
        let lines = to.chunks_exact_mut(LINE_BYTES).zip(from.chunks_exact(LINE_BYTES));
        for (to, from) in lines {
            let (to, from) = (to.as_mut_ptr().cast::<__m256i>(), from.as_ptr().cast::<__m256i>());
            // SAFETY: both chunks have 64 bytes, and that of `to` is aligned to 64.
            unsafe {
                let halves = [_mm256_loadu_si256(from), _mm256_loadu_si256(from.add(1))];
                _mm256_stream_si256(to, halves[0]);
                _mm256_stream_si256(to.add(1), halves[1]);
            }
        }
        _mm_sfence();
    }

    /// See [`copy_avx`].
    pub fn copy_sse2(to: &mut [u8], from: &[u8]) {
        let (to, from) = copy_ends(to, from);
        let lines = to.chunks_exact_mut(LINE_BYTES).zip(from.chunks_exact(LINE_BYTES));
        for (to, from) in lines {
            let (to, from) = (to.as_mut_ptr().cast::<__m128i>(), from.as_ptr().cast::<__m128i>());
            // SAFETY: as above; every x86-64 processor has SSE2.
            unsafe {
                let quarters = [0, 1, 2, 3].map(|at| _mm_loadu_si128(from.add(at)));
                for (at, quarter) in quarters.into_iter().enumerate() {
                    _mm_stream_si128(to.add(at), quarter);
                }
            }
        }
        // SAFETY: as above.
        unsafe { _mm_sfence() };
    }

    /// Copies the ends of `to` that are not whole lines; returns the lines.
    fn copy_ends<'a>(to: &'a mut [u8], from: &'a [u8]) -> (&'a mut [u8], &'a [u8]) {
        let head = to.as_ptr().align_offset(LINE_BYTES).min(to.len());
        let (to_head, to) = to.split_at_mut(head);
        let (from_head, from) = from.split_at(head);
        to_head.copy_from_slice(from_head);
        let lines = to.len() - to.len() % LINE_BYTES;
        let (to, to_tail) = to.split_at_mut(lines);
        let (from, from_tail) = from.split_at(lines);
        to_tail.copy_from_slice(from_tail);
        (to, from)
    }

    const LINE_BYTES: usize = 64;
}

/// Page-aligned memory of which every page was touched.
struct Buffer {
    memory: Vec<u8>,
    at: usize,
    len: usize,
}

impl Buffer {
    fn new(len: usize) -> Self {
        // Ones, because the kernel would map zeros only later.
        let memory = vec![1u8; len + PAGE_BYTES];
        let at = memory.as_ptr().align_offset(PAGE_BYTES).min(PAGE_BYTES);
        Buffer { memory, at, len }
    }

    fn first(&mut self, len: usize) -> &mut [u8] {
        &mut self.memory[self.at..self.at + len]
    }
}

const PAGE_BYTES: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_length_and_alignment_is_copied_and_nothing_else(
            len in 0usize..2000, to_at in 0usize..130, from_at in 0usize..130, salt: u8,
        ) {
            let from: Vec<u8> = (0..len + 200).map(|i| (i as u8).wrapping_mul(31) ^ salt).collect();
            let mut expected = vec![!salt; len + 200];
            expected[to_at..to_at + len].copy_from_slice(&from[from_at..from_at + len]);
            for streaming in Streaming::all() {
                let mut to = vec![!salt; len + 200];
                streaming.copy(&mut to[to_at..to_at + len], &from[from_at..from_at + len]);
                prop_assert_eq!(&to, &expected, "{:?}", streaming);
            }
        }
    }

    #[test]
    fn both_copies_are_complete_in_either_order() {
        let mut copies = Copies::new(10_000);
        for fill in 1..=4u8 {
            let frame = vec![fill; 10_000];
            copies.time(&frame, &Clock::Monotonic);
            assert_eq!(copies.by_memcpy.first(10_000), frame);
            assert_eq!(copies.by_streaming.first(10_000), frame);
        }
        assert!(copies.by_memcpy.first(1).as_ptr().addr().is_multiple_of(PAGE_BYTES));
    }

    #[test]
    fn a_message_longer_than_prepared_is_cut_off() {
        Copies::new(100).time(&[7; 500], &Clock::Monotonic);
    }

    #[test]
    fn the_order_alternates() {
        let mut copies = Copies::new(1);
        let mut order = || {
            copies.time(&[1], &Clock::Monotonic);
            copies.memcpy_first
        };
        assert_eq!([order(), order(), order()], [false, true, false]);
    }
}
