//! Waking a subscriber that sleeps, and no other. Who writes: `asleep` its subscriber, `rings`
//! every publisher matched with it and its own node thread.
//!
//! Happens-before: the bell carries no data; the fences make sure that either the sleeper sees the
//! sample or the publisher sees the sleeper (Dekker's argument with two seq-cst fences).
//!
//! Mistrust: any publisher can set `rings` to what it likes, so nothing is concluded from its value.
//! A publisher is silent for the rest of a sleep only when the kernel has told it that somebody was
//! woken, and no two sleeps have the same number.

use crate::sync::{AtomicU32, AtomicU64, Ordering, fence};

/// S1 and S2: says "I sleep" and returns the count to sleep on. The caller looks once more for a
/// sample and sleeps only if there is none. `sleep` is the number of this sleep: not 0, and another
/// one each time.
#[inline]
pub fn fall_asleep(asleep: &AtomicU64, rings: &AtomicU32, sleep: u64) -> u32 {
    let count = rings.load(Ordering::Relaxed);
    asleep.store(sleep, Ordering::Relaxed);
    // ORDER: pairs with the fence of the publisher between its sample and `Ringer::ring` (P7). It
    // also keeps a ring for this sleep out of `count`: who has seen `asleep` before it counted up
    // executed its fence after ours.
    fence(Ordering::SeqCst);
    count
}

/// The subscriber runs again.
#[inline]
pub fn wake_up(asleep: &AtomicU64) {
    // ORDER: Relaxed: a publisher that still sees the old value rings for nothing at worst.
    asleep.store(0, Ordering::Relaxed);
}

/// One publisher's side of a subscriber's bell.
#[derive(Debug)]
pub struct Ringer {
    /// The sleep from which the kernel has woken the subscriber for us: one system call a sleep.
    woken: AtomicU64,
}

impl Ringer {
    /// Has not rung yet.
    #[expect(clippy::new_without_default, reason = "loom's atomics are no constants")]
    pub fn new() -> Ringer {
        Ringer { woken: AtomicU64::new(0) }
    }

    /// P8: wakes the subscriber if it sleeps. The caller has executed a seq-cst fence after its
    /// sample became visible. `wake` says whether somebody was woken for certain; if not, the
    /// subscriber was on its way into the kernel and is turned back by the count, unless another
    /// publisher sets that back; so the next sample rings again.
    #[inline(always)]
    pub fn ring(&self, asleep: &AtomicU64, rings: &AtomicU32, wake: impl FnOnce() -> bool) {
        // ORDER: Relaxed after the caller's fence; `woken` is the publisher's own.
        let sleep = asleep.load(Ordering::Relaxed);
        if sleep != 0 && sleep != self.woken.load(Ordering::Relaxed) {
            self.ring_for(sleep, rings, wake);
        }
    }

    #[cold]
    fn ring_for(&self, sleep: u64, rings: &AtomicU32, wake: impl FnOnce() -> bool) {
        count_up(rings);
        if wake() {
            self.woken.store(sleep, Ordering::Relaxed);
        }
    }
}

/// From now on nobody falls asleep on an earlier count. The caller wakes those who already sleep.
#[inline]
pub fn count_up(rings: &AtomicU32) {
    // ORDER: Relaxed: the kernel orders the futex word for the sleeper. Whoever rings counts, also if
    // another has: that one may be stopped before it wakes.
    rings.fetch_add(1, Ordering::Relaxed);
}
