//! Waking who sleeps, and nobody else: a subscriber that is waited on alone, or a wait set. Who writes:
//! `asleep` the sleeper's process, `wakes` and the ready bits every publisher matched with one of the
//! node's subscribers, and the node's own process.
//!
//! Happens-before: the wake word carries no data; the fences make sure that either the sleeper sees the
//! sample or the publisher sees the sleeper (Dekker's argument with two seq-cst fences).
//!
//! Mistrust: any publisher can set `wakes` to what it likes, so nothing is concluded from its value.
//! A publisher is silent for the rest of a sleep only when the kernel has told it that somebody was
//! woken, and no two sleeps have the same number.

use crate::data_plane::layout::SETS_MAX;
use crate::sync::{AtomicU32, AtomicU64, Ordering, Step, fence_of, is_taken};

/// The word by which a subscriber says that it is to be woken, and by what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sleep(pub u64);

impl Sleep {
    /// Part of every value that a subscriber of many publishers says, also while it does not sleep: each
    /// of them is to set its ready bit.
    pub const OF_MANY: u64 = 1 << (SET_BITS + 2);

    /// `number`: not 0, and another one each time. `set`: the wait set that the subscriber is in.
    #[inline]
    pub fn new(number: u64, set: Option<u32>) -> Sleep {
        Sleep(number << KIND_BITS | set.map_or(0, |set| IN_SET | u64::from(set)))
    }

    /// Of a subscriber with one publisher: it sleeps while that one's `published` is this, and on its wake word.
    #[inline]
    pub fn on_published(published: u64) -> Sleep {
        Sleep(published << KIND_BITS | ON_PUBLISHED)
    }

    /// Whether its publisher wakes it by `published`.
    #[inline]
    pub fn is_on_published(self) -> bool {
        self.0 & ON_PUBLISHED != 0
    }

    /// The wait set that is to be woken; `None`: the subscriber itself.
    #[inline]
    pub fn set(self) -> Option<usize> {
        // Any value is one of `SETS_MAX`, whoever has written it.
        (self.0 & IN_SET != 0).then_some(self.0 as usize % SETS_MAX)
    }
}

/// The word by which a wait set says that it sleeps, and in what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetSleep(pub u64);

impl SetSleep {
    /// `number`: not 0, and another one each time that this set sleeps. `by_descriptor`: in somebody's epoll
    /// and not in a wait.
    #[inline]
    pub fn new(number: u64, set: u32, by_descriptor: bool) -> SetSleep {
        SetSleep(number << (SET_BITS + 1) | u64::from(set) << 1 | u64::from(by_descriptor))
    }

    /// Whether its descriptor is to be made readable.
    #[inline]
    pub fn is_by_descriptor(self) -> bool {
        self.0 & 1 != 0
    }
}

const SET_BITS: u32 = 10;
const IN_SET: u64 = 1 << SET_BITS;
const ON_PUBLISHED: u64 = 1 << (SET_BITS + 1);
/// Below the number of a sleep.
const KIND_BITS: u32 = SET_BITS + 3;
const _: () = assert!(SETS_MAX <= 1 << SET_BITS && SETS_MAX.is_power_of_two());

/// S1 and S2: says "I sleep" and returns the count to sleep on. The caller looks once more for a
/// sample and sleeps only if there is none. `sleep` is the number of this sleep: not 0, and another
/// one each time.
#[inline]
pub fn fall_asleep(asleep: &AtomicU64, wakes: &AtomicU32, sleep: u64) -> u32 {
    let count = wakes.load(Ordering::Relaxed);
    asleep.store(sleep, Ordering::Relaxed);
    // ORDER: pairs with the fence of the publisher between its sample and `Notifier::notify` (P7). It
    // also keeps a count for this sleep out of `count`: who has seen `asleep` before it counted up
    // executed its fence after ours.
    fence_of(Step::S2);
    count
}

/// The subscriber runs again.
#[inline]
pub fn wake_up(asleep: &AtomicU64) {
    // ORDER: Relaxed: a publisher that still sees the old value notifies for nothing at worst.
    asleep.store(0, Ordering::Relaxed);
}

/// One publisher's side of a subscriber's wake word.
#[derive(Debug)]
pub struct Notifier {
    /// The sleep from which the kernel has woken the subscriber for us: one system call a sleep.
    woken: AtomicU64,
}

impl Notifier {
    /// Has notified nobody yet.
    #[expect(clippy::new_without_default, reason = "loom's atomics are no constants")]
    pub fn new() -> Notifier {
        Notifier { woken: AtomicU64::new(0) }
    }

    /// P8: wakes who sleeps. The caller has executed a seq-cst fence after its sample became visible.
    /// `ready` is this publisher's ready bit, which it sets if the subscriber has many publishers.
    /// `wake` counts the wake word up and says whether somebody was woken for certain; if not, the sleeper
    /// was on its way into the kernel and is turned back by the count, unless another publisher sets
    /// that back; so the next sample notifies again.
    ///
    /// True: it sleeps on an earlier value of `published` than this one, and is not notified; the caller
    /// wakes all who sleep on that, with one call for any number of subscribers. Who was on its way into
    /// the kernel is turned back by the value, now and ever after: it only grows, and nobody else can write
    /// it. Who sleeps on the present value has seen the sample, and is woken by the next.
    #[inline(always)]
    #[must_use]
    pub fn notify<'a>(
        &self,
        asleep: &AtomicU64,
        published: impl FnOnce() -> u64,
        ready: impl FnOnce() -> (&'a AtomicU64, u64),
        wake: impl FnOnce(Sleep) -> bool,
    ) -> bool {
        // ORDER: Relaxed after the caller's fence; `woken` is the publisher's own.
        let sleep = asleep.load(Ordering::Relaxed);
        sleep != 0
            && sleep != self.woken.load(Ordering::Relaxed)
            && self.notify_sleep(sleep, asleep, published, ready, wake)
    }

    #[cold]
    fn notify_sleep<'a>(
        &self,
        sleep: u64,
        asleep: &AtomicU64,
        published: impl FnOnce() -> u64,
        ready: impl FnOnce() -> (&'a AtomicU64, u64),
        wake: impl FnOnce(Sleep) -> bool,
    ) -> bool {
        if sleep & Sleep::OF_MANY != 0 {
            let (word, bit) = ready();
            // What is kept as woken never has this bit, so we come here at every sample.
            let sleep = set_ready(word, bit, asleep, sleep) & !Sleep::OF_MANY;
            let is_asleep = sleep != 0 && sleep != self.woken.load(Ordering::Relaxed);
            if is_asleep && wake(Sleep(sleep)) {
                self.woken.store(sleep, Ordering::Relaxed);
            }
            return false;
        }
        let is_on_published = Sleep(sleep).is_on_published();
        let is_certain = match is_on_published {
            true => Sleep::on_published(published()) != Sleep(sleep),
            false => wake(Sleep(sleep)) || !is_taken(Step::Certain),
        };
        if is_certain {
            // ORDER: Relaxed: one of several threads may miss it and notify once more.
            self.woken.store(sleep, Ordering::Relaxed);
        }
        is_on_published && is_certain
    }
}

/// B1 to B3 for a subscriber of many publishers: says that this one has published. The caller has
/// executed a seq-cst fence after its sample became visible, and has read `seen` in `asleep` after that.
/// Returns what it is to go by instead.
#[inline]
fn set_ready(ready: &AtomicU64, bit: u64, asleep: &AtomicU64, seen: u64) -> u64 {
    // ORDER: Relaxed after the caller's fence, which pairs with the one in `take_ready`: if this is a bit
    // that the subscriber has taken meanwhile, it sees our sample.
    if ready.load(Ordering::Relaxed) & bit != 0 {
        return seen;
    }
    // ORDER: Release pairs with the acquire in `take_ready`: who sees the bit sees the sample.
    ready.fetch_or(bit, Ordering::Release);
    // ORDER: pairs with S2, and with A2 of a wait set: who looks after it sees the bit, or we see that it
    // sleeps.
    fence_of(Step::B2);
    asleep.load(Ordering::Relaxed)
}

/// Takes the ready bits of a subscriber of many publishers, and shows them to `see` first, word by word.
/// The caller then looks at each of these publishers.
#[inline]
pub fn take_ready(ready: &[AtomicU64], mut see: impl FnMut(usize, u64)) {
    let mut is_taken = false;
    for (at, word) in ready.iter().enumerate() {
        let bits = word.load(Ordering::Relaxed);
        if bits != 0 {
            see(at, bits);
            // ORDER: Acquire pairs with the release in `set_ready`; Release: whoever sees that they are
            // gone sees what `see` has done.
            word.fetch_and(!bits, Ordering::AcqRel);
            is_taken = true;
        }
    }
    if is_taken {
        // ORDER: pairs with P7: whoever still sees its bit has a sample that we see.
        fence_of(Step::B4);
    }
}

/// P8 for a subscriber that is in a wait set: says that it has something to take, and notifies the set
/// if that sleeps. The caller has executed a seq-cst fence after its sample became visible. True if the
/// set will look for certain: it is awake, or has been woken.
#[inline]
pub fn notify_set(
    ready: &AtomicU64,
    bit: u64,
    set_asleep: &AtomicU64,
    notifier: &Notifier,
    wake: impl FnOnce(SetSleep) -> bool,
) -> bool {
    // ORDER: Release pairs with the acquire in `collect`: who sees the bit sees the sample.
    ready.fetch_or(bit, Ordering::Release);
    // ORDER: pairs with the fence in `fall_asleep`: the set, which collects after it has said that it
    // sleeps, sees the bit, or we see that it sleeps.
    fence_of(Step::Ready);
    // ORDER: Relaxed after the fence.
    let sleep = set_asleep.load(Ordering::Relaxed);
    if sleep == 0 || sleep == notifier.woken.load(Ordering::Relaxed) {
        return true;
    }
    let certain = wake(SetSleep(sleep));
    if certain {
        // ORDER: Relaxed: one of several threads may miss it and notify once more.
        notifier.woken.store(sleep, Ordering::Relaxed);
    }
    certain
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

/// From now on nobody falls asleep on an earlier count. The caller wakes those who already sleep.
#[inline]
pub fn count_up(wakes: &AtomicU32) {
    // ORDER: Relaxed: the kernel orders the futex word for the sleeper. Whoever notifies counts, also if
    // another has: that one may be stopped before it wakes.
    if is_taken(Step::Count) {
        wakes.fetch_add(1, Ordering::Relaxed);
    }
}
