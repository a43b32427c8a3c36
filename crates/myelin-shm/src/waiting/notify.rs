//! Wakes sleepers, and only those: a subscriber that a thread waits on alone, or a wait set. The
//! sleeper's process writes `asleep`. Every publisher matched with one of the node's subscribers,
//! and the node's own process, write `wakes` and the ready bits.
//!
//! Happens-before: the wake word carries no data; the fences ensure that either the sleeper sees
//! the sample or the publisher sees the sleeper (Dekker's argument with two seq-cst fences).
//!
//! Mistrust: any publisher can set `wakes` to any value, so nothing is concluded from its value. A
//! publisher is silent for the rest of a sleep only after the kernel has confirmed that a thread
//! was woken, and no two sleeps have the same number.

use crate::sync::{AtomicU32, AtomicU64, Ordering, Step, fence_of, is_taken};
use crate::waiting::sleep::{Sleep, WakeBy};

/// One publisher's side of a subscriber's wake word.
#[derive(Debug)]
pub struct Notifier {
    /// The sleep from which the kernel has woken the subscriber for this publisher: one system call
    /// for each sleep.
    woken: AtomicU64,
}

impl Notifier {
    /// Has not notified yet.
    #[expect(clippy::new_without_default, reason = "loom's atomics are no constants")]
    pub fn new() -> Notifier {
        Notifier { woken: AtomicU64::new(0) }
    }

    /// P8: wakes the sleeper. The caller has executed a seq-cst fence after its sample became
    /// visible. `ready` is this publisher's ready bit; it is set if the subscriber has many
    /// publishers. `wake` counts the wake word up and returns whether a thread was certainly woken.
    /// If not, the sleeper was on its way into the kernel and the count turns it back, unless
    /// another publisher resets the count; so the next sample notifies again.
    ///
    /// True: the subscriber sleeps on an earlier value of `published` than this one, and is not
    /// notified. The caller then wakes all sleepers on that word, with one call for any number of
    /// subscribers. A sleeper on its way into the kernel is turned back by the value, now and ever
    /// after: it only grows, and no other process can write it. A sleeper on the present value has
    /// seen the sample, and the next one wakes it.
    #[inline(always)]
    #[must_use]
    pub fn notify<'a>(
        &self,
        asleep: &AtomicU64,
        published: impl FnOnce() -> u64,
        ready: impl FnOnce() -> (&'a AtomicU64, u64),
        wake: impl FnOnce(WakeBy) -> bool,
    ) -> bool {
        // ORDER: Relaxed after the caller's fence.
        let sleep = Sleep(asleep.load(Ordering::Relaxed));
        self.is_to_wake(sleep) && self.notify_sleep(sleep, asleep, published, ready, wake)
    }

    #[cold]
    fn notify_sleep<'a>(
        &self,
        mut sleep: Sleep,
        asleep: &AtomicU64,
        published: impl FnOnce() -> u64,
        ready: impl FnOnce() -> (&'a AtomicU64, u64),
        wake: impl FnOnce(WakeBy) -> bool,
    ) -> bool {
        if sleep.is_of_many() {
            let (word, bit) = ready();
            // The kept value never has this bit, so this branch runs at every sample.
            sleep = set_ready(word, bit, asleep, sleep).without_many();
            if !self.is_to_wake(sleep) {
                return false;
            }
        }
        match sleep.wake_by() {
            WakeBy::Published => {
                let is_earlier = Sleep::on_published(published()) != sleep;
                if is_earlier {
                    self.note(sleep);
                }
                is_earlier
            }
            by => {
                if wake(by) || !is_taken(Step::Certain) {
                    self.note(sleep);
                }
                false
            }
        }
    }

    /// Whether there is a sleeper that this publisher has not woken yet.
    #[inline(always)]
    fn is_to_wake(&self, sleep: Sleep) -> bool {
        // ORDER: Relaxed: `woken` is the publisher's own.
        sleep != Sleep::AWAKE && sleep.0 != self.woken.load(Ordering::Relaxed)
    }

    fn note(&self, sleep: Sleep) {
        // ORDER: Relaxed: one of several threads may miss it and notify once more.
        self.woken.store(sleep.0, Ordering::Relaxed);
    }
}

/// B1 to B3 for a subscriber with many publishers: announces that this one has published. The caller has
/// executed a seq-cst fence after its sample became visible, and has read `seen` in `asleep` after
/// that. Returns the value to use instead of `seen`.
#[inline]
fn set_ready(ready: &AtomicU64, bit: u64, asleep: &AtomicU64, seen: Sleep) -> Sleep {
    // ORDER: Relaxed after the caller's fence, which pairs with the one in `take_ready`: if the
    // subscriber has taken this bit meanwhile, it sees our sample.
    if ready.load(Ordering::Relaxed) & bit != 0 {
        return seen;
    }
    // ORDER: Release pairs with the acquire in `take_ready`: a thread that sees the bit sees the
    // sample.
    ready.fetch_or(bit, Ordering::Release);
    // ORDER: pairs with S2, and with A2 of a wait set: either the thread that looks after it sees
    // the bit, or we see that it sleeps.
    fence_of(Step::B2);
    Sleep(asleep.load(Ordering::Relaxed))
}

/// Takes the ready bits of a subscriber with many publishers, and first passes them to `see`, word
/// by word. The caller then looks at each of these publishers.
#[inline]
pub fn take_ready(ready: &[AtomicU64], mut see: impl FnMut(usize, u64)) {
    let mut is_taken = false;
    for (at, word) in ready.iter().enumerate() {
        let bits = word.load(Ordering::Relaxed);
        if bits != 0 {
            see(at, bits);
            // ORDER: Acquire pairs with the release in `set_ready`; Release: a thread that sees
            // that the bits are gone sees the effects of `see`.
            word.fetch_and(!bits, Ordering::AcqRel);
            is_taken = true;
        }
    }
    if is_taken {
        // ORDER: pairs with P7: a publisher that still sees its bit has a sample that we see.
        fence_of(Step::B4);
    }
}

/// P8 for a subscriber that is in a wait set: announces that it has something to take, and notifies the
/// set if the set sleeps. The caller has executed a seq-cst fence after its sample became visible.
/// True if the set will certainly look: it is awake, or has been woken.
#[inline]
pub fn notify_set(
    ready: &AtomicU64,
    bit: u64,
    set_asleep: &AtomicU64,
    notifier: &Notifier,
    wake: impl FnOnce(WakeBy) -> bool,
) -> bool {
    // ORDER: Release pairs with the acquire in `collect`: a thread that sees the bit sees the
    // sample.
    ready.fetch_or(bit, Ordering::Release);
    // ORDER: pairs with the fence in `fall_asleep`: either the set, which collects after it has
    // announced its sleep, sees the bit, or we see that it sleeps.
    fence_of(Step::Ready);
    // ORDER: Relaxed after the fence.
    let sleep = Sleep(set_asleep.load(Ordering::Relaxed));
    if !notifier.is_to_wake(sleep) {
        return true;
    }
    let is_certain = wake(sleep.wake_by());
    if is_certain {
        notifier.note(sleep);
    }
    is_certain
}

/// Takes the bits of `mask` out of a word of ready bits.
#[inline]
pub fn collect(ready: &AtomicU64, mask: u64) -> u64 {
    match ready.load(Ordering::Relaxed) & mask {
        0 => 0,
        // ORDER: Acquire pairs with the release in `notify_set`.
        _ => ready.fetch_and(!mask, Ordering::Acquire) & mask,
    }
}

/// From now on no sleeper falls asleep on an earlier count. The caller wakes those that sleep
/// already.
#[inline]
pub fn count_up(wakes: &AtomicU32) {
    // ORDER: Relaxed: the kernel orders the futex word for the sleeper. Every notifier counts, even
    // if another one has: that one may be stopped before it wakes.
    if is_taken(Step::Count) {
        wakes.fetch_add(1, Ordering::Relaxed);
    }
}
