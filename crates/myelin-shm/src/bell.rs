//! Waking a subscriber that sleeps, and no other. Who writes: `asleep` its subscriber, `rings`
//! every publisher matched with it and its own node thread.
//!
//! Happens-before: the bell carries no data; the fences make sure that either the sleeper sees the
//! sample or the publisher sees the sleeper (Dekker's argument with two seq-cst fences).

use crate::sync::{AtomicU32, AtomicU64, Ordering, fence};

/// S1 and S2: says "I sleep" and returns the count to sleep on. The caller looks once more for a
/// sample and sleeps only if there is none.
#[inline]
pub fn fall_asleep(asleep: &AtomicU64, rings: &AtomicU32) -> u32 {
    let count = rings.load(Ordering::Relaxed);
    asleep.store(u64::from(count) + 1, Ordering::Relaxed);
    // ORDER: pairs with the fence of the publisher between its sample and `must_wake` (P7).
    fence(Ordering::SeqCst);
    count
}

/// The subscriber runs again.
#[inline]
pub fn wake_up(asleep: &AtomicU64) {
    // ORDER: Relaxed: a publisher that still sees the old value rings for nothing at worst.
    asleep.store(0, Ordering::Relaxed);
}

/// P8: whether the subscriber sleeps, so that the caller has to wake it. The caller has executed a
/// seq-cst fence after its sample became visible. Whoever finds it asleep wakes it: the one who
/// changed the count may be stopped before it does.
#[inline(always)]
pub fn must_wake(asleep: &AtomicU64, rings: &AtomicU32) -> bool {
    // ORDER: Relaxed after the caller's fence.
    let asleep = asleep.load(Ordering::Relaxed);
    if asleep != 0 {
        count_up(asleep, rings);
    }
    asleep != 0
}

#[cold]
fn count_up(asleep: u64, rings: &AtomicU32) {
    let count = (asleep - 1) as u32;
    // ORDER: Relaxed: the kernel orders the futex word for the sleeper. If it has changed already,
    // the subscriber does not fall asleep any more.
    let (free, taken) = (Ordering::Relaxed, Ordering::Relaxed);
    let _ = rings.compare_exchange(count, count.wrapping_add(1), free, taken);
}
