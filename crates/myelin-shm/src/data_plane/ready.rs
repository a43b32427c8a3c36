//! Which of many publishers a subscriber looks at: B1 to B5 of `docs/explanation/shared-memory.md` section 4. Each
//! publisher sets its ready bit, in memory that all of them may write; the reader takes the bits, and
//! keeps in its own memory which publishers are *due*: their bits have been taken, and nobody has found
//! that they have nothing since. Of a few publishers a subscriber looks at each, and there are no bits.

use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::waiting::notify;

/// The publishers to look at.
#[derive(Debug)]
pub(crate) struct ReadyList {
    /// Written by the reader alone, read by any thread of its process.
    words: Box<[AtomicU64]>,
    /// Those that have something and whose bits are gone. Written by any thread of the process, as a
    /// publisher would its bit, where no publisher can take it away again.
    overlooked: Box<[AtomicU64]>,
    /// How many of the words are looked at; none while its publishers are few.
    used: AtomicU32,
}

impl ReadyList {
    /// For so many connections.
    pub(crate) fn new(connections: u32) -> ReadyList {
        let none = || (0..connections.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        ReadyList { words: none(), overlooked: none(), used: AtomicU32::new(0) }
    }

    /// Whether its publishers set ready bits.
    pub(crate) fn is_used(&self) -> bool {
        self.used() > 0
    }

    #[inline(always)]
    fn used(&self) -> usize {
        // ORDER: Acquire pairs with the release in `use_for`: what is due has been said before.
        self.used.load(Ordering::Acquire) as usize
    }

    /// From now on these are due, and their words are looked at; none: its publishers are few.
    pub(crate) fn use_for(&self, numbers: &[u64]) {
        self.fill(numbers);
        self.used.store(numbers.len() as u32, Ordering::Release);
    }

    /// These are due.
    pub(crate) fn fill(&self, numbers: &[u64]) {
        for (word, bits) in self.words.iter().zip(numbers) {
            word.store(*bits, Ordering::Relaxed);
        }
    }

    /// This one is due, too.
    pub(crate) fn insert(&self, number: u32) {
        let (word, bit) = bit_of(&self.words, number);
        word.store(word.load(Ordering::Relaxed) | bit, Ordering::Relaxed);
    }

    /// This one has something and was overlooked. Any thread may say so.
    pub(crate) fn overlook(&self, number: u32) {
        let (word, bit) = bit_of(&self.overlooked, number);
        // ORDER: as a publisher does.
        word.fetch_or(bit, Ordering::Release);
    }

    /// The reader has found that this one has nothing.
    #[inline(always)]
    pub(crate) fn remove(&self, number: u32) {
        let (word, bit) = bit_of(&self.words, number);
        word.store(word.load(Ordering::Relaxed) & !bit, Ordering::Relaxed);
    }

    /// The first that is due, from `number` on.
    #[inline(always)]
    pub(crate) fn first_from(&self, number: u32) -> Option<u32> {
        let first = number as usize / 64;
        let mut mask = u64::MAX << (number % 64);
        for (at, word) in self.words[..self.used()].iter().enumerate().skip(first) {
            let bits = word.load(Ordering::Relaxed) & mask;
            if bits != 0 {
                return Some(at as u32 * 64 + bits.trailing_zeros());
            }
            mask = u64::MAX;
        }
        None
    }

    /// Those of `known` that have set their ready bits, or were overlooked, are due.
    #[inline(always)]
    pub(crate) fn take_ready(&self, ready: &[AtomicU64], known: &[u64]) {
        let used = ..self.used();
        for told in [&ready[used], &self.overlooked[used]] {
            notify::take_ready(told, |at, bits| {
                let word = &self.words[at];
                word.store(word.load(Ordering::Relaxed) | bits & known[at], Ordering::Relaxed);
            });
        }
    }

    /// Those that may have something, for a thread that is not the reader's.
    pub(crate) fn or_ready(&self, ready: &[AtomicU64]) -> impl Iterator<Item = u32> {
        (0..self.used()).flat_map(move |at| {
            // ORDER: Acquire, before the other: who sees that the reader has taken a bit sees that its
            // publisher is due. Pairs with the release in `take_ready`.
            let told = ready[at].load(Ordering::Acquire);
            let bits = told | self.overlooked[at].load(Ordering::Acquire);
            let mut bits = bits | self.words[at].load(Ordering::Relaxed);
            std::iter::from_fn(move || {
                let bit = (bits != 0).then(|| bits.trailing_zeros())?;
                bits &= bits - 1;
                Some(at as u32 * 64 + bit)
            })
        })
    }
}

/// Word and bit of a connection.
#[inline(always)]
pub(crate) fn bit_of(words: &[AtomicU64], number: u32) -> (&AtomicU64, u64) {
    (&words[number as usize / 64], 1 << (number % 64))
}
