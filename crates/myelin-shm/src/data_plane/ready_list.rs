//! The choice among many publishers: B1 to B5 of `docs/explanation/shared-memory.md` section 4.
//! Each publisher sets its ready bit, in memory that all of them may write. The reader takes the
//! bits, and keeps in its own memory the publishers that are *due*: their bits have been taken, and
//! no later look has found that they have nothing. With few publishers a subscriber looks at each,
//! and there are no bits.

use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::waiting::notify;

/// The publishers to look at.
#[derive(Debug)]
pub(crate) struct ReadyList {
    /// Only the reader writes them; any thread of its process reads them.
    words: Box<[AtomicU64]>,
    /// Publishers that have samples, and whose bits are gone. Any thread of the process writes
    /// them, as a publisher writes its bit, but here no publisher can take a bit away.
    overlooked: Box<[AtomicU64]>,
    /// How many of the words are in use; none while the publishers are few.
    used: AtomicU32,
}

impl ReadyList {
    /// A list for so many connections.
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
        // ORDER: Acquire pairs with the release in `use_for`: the due bits have been set before.
        self.used.load(Ordering::Acquire) as usize
    }

    /// Marks these publishers as due, and uses their words from now on; none: the publishers are
    /// few.
    pub(crate) fn use_for(&self, numbers: &[u64]) {
        self.fill(numbers);
        self.used.store(numbers.len() as u32, Ordering::Release);
    }

    /// Marks these publishers as due.
    pub(crate) fn fill(&self, numbers: &[u64]) {
        for (word, bits) in self.words.iter().zip(numbers) {
            word.store(*bits, Ordering::Relaxed);
        }
    }

    /// Marks this publisher as due, too.
    pub(crate) fn insert(&self, number: u32) {
        let (word, bit) = bit_of(&self.words, number);
        word.store(word.load(Ordering::Relaxed) | bit, Ordering::Relaxed);
    }

    /// This publisher has something and was overlooked. Any thread may report it.
    pub(crate) fn overlook(&self, number: u32) {
        let (word, bit) = bit_of(&self.overlooked, number);
        // ORDER: the same as a publisher's.
        word.fetch_or(bit, Ordering::Release);
    }

    /// The reader has found that this publisher has nothing.
    #[inline(always)]
    pub(crate) fn remove(&self, number: u32) {
        let (word, bit) = bit_of(&self.words, number);
        word.store(word.load(Ordering::Relaxed) & !bit, Ordering::Relaxed);
    }

    /// The first publisher that is due, from `number` on.
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

    /// Marks as due the publishers of `known` that have set their ready bits, or were overlooked.
    #[inline(always)]
    pub(crate) fn take_ready(&self, ready: &[AtomicU64], known: &[u64]) {
        let used = ..self.used();
        for reported in [&ready[used], &self.overlooked[used]] {
            notify::take_ready(reported, |at, bits| {
                let word = &self.words[at];
                word.store(word.load(Ordering::Relaxed) | bits & known[at], Ordering::Relaxed);
            });
        }
    }

    /// The publishers that may have something, for a thread other than the reader's.
    pub(crate) fn or_ready(&self, ready: &[AtomicU64]) -> impl Iterator<Item = u32> {
        (0..self.used()).flat_map(move |at| {
            // ORDER: Acquire, before the other load: a thread that sees that the reader has taken a
            // bit sees that its publisher is due. Pairs with the release in `take_ready`.
            let reported = ready[at].load(Ordering::Acquire);
            let bits = reported | self.overlooked[at].load(Ordering::Acquire);
            let mut bits = bits | self.words[at].load(Ordering::Relaxed);
            std::iter::from_fn(move || {
                let bit = (bits != 0).then(|| bits.trailing_zeros())?;
                bits &= bits - 1;
                Some(at as u32 * 64 + bit)
            })
        })
    }
}

/// The word and bit of a connection.
#[inline(always)]
pub(crate) fn bit_of(words: &[AtomicU64], number: u32) -> (&AtomicU64, u64) {
    (&words[number as usize / 64], 1 << (number % 64))
}
