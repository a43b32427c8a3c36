//! The word `asleep` of a subscriber, and of a wait set: whether it sleeps, and how it is woken.
//! The sleeper's process writes it, and publishers read it. Its bits are known here alone:
//!
//! ```text
//!  63            13     12     11..10      9..0
//! | number         |  many  |  kind   | wait set |        0: awake
//! ```
//!
//! *number*: different for each sleep, so that a publisher knows whether it has woken this one; for
//! a subscriber that sleeps on `published`, the value of that word. *many*: set in every value of a
//! subscriber with many publishers, also while it is awake: each publisher must set its ready bit.
//! *kind*: [`WakeBy`]. *wait set*: the one that the subscriber is in, or whose sleep it is.

use crate::layout::SETS_MAX;
use crate::sync::{AtomicU32, AtomicU64, Ordering, Step, fence_of};

/// A value of the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sleep(pub u64);

/// How a sleeper is woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WakeBy {
    /// By its wake word: one subscriber, or a wait set.
    WakeWord,
    /// A subscriber in a wait set: by its bit in the node's ready table, and the set.
    WaitSet(usize),
    /// A subscriber with one publisher: by the publisher's `published`, which differs from the
    /// number of this sleep.
    Published,
    /// A wait set in a user's epoll: by the node's pipe.
    Descriptor,
}

impl Sleep {
    /// Nobody sleeps.
    pub const AWAKE: Sleep = Sleep(0);

    /// A subscriber's sleep on its wake word, or in a wait set. `number`: not 0, and different each
    /// time.
    #[inline]
    pub fn new(number: u64, set: Option<u32>) -> Sleep {
        match set {
            None => Sleep(number << NUMBER_SHIFT | WAKE_WORD),
            Some(set) => Sleep(number << NUMBER_SHIFT | WAIT_SET | u64::from(set)),
        }
    }

    /// The sleep of a subscriber with one publisher, on its wake word, and on that publisher's
    /// `published` while it has this value.
    #[inline]
    pub fn on_published(published: u64) -> Sleep {
        Sleep(published << NUMBER_SHIFT | PUBLISHED)
    }

    /// A wait set's sleep, in a wait or in a user's epoll. `number`: not 0, and different for each
    /// sleep of this set.
    #[inline]
    pub(crate) fn of_set(number: u64, set: u32, by_descriptor: bool) -> Sleep {
        let kind = if by_descriptor { DESCRIPTOR } else { WAKE_WORD };
        Sleep(number << NUMBER_SHIFT | kind | u64::from(set))
    }

    /// How to wake the sleeper. Another process may have written any value.
    #[inline]
    pub fn wake_by(self) -> WakeBy {
        match self.0 & KIND {
            WAKE_WORD => WakeBy::WakeWord,
            WAIT_SET => WakeBy::WaitSet(self.0 as usize % SETS_MAX),
            PUBLISHED => WakeBy::Published,
            _ => WakeBy::Descriptor,
        }
    }

    /// Whether publishers must set their ready bits, also if the subscriber is awake.
    #[inline]
    pub(crate) fn is_of_many(self) -> bool {
        self.0 & MANY != 0
    }

    /// The same sleep, of a subscriber that may have many publishers.
    #[inline]
    pub(crate) fn or_of_many(self, are_many: bool) -> Sleep {
        Sleep(self.0 | if are_many { MANY } else { 0 })
    }

    /// The same sleep, without regard to the number of publishers.
    #[inline]
    pub(crate) fn without_many(self) -> Sleep {
        Sleep(self.0 & !MANY)
    }

    /// Whether its wait set is to be woken, or nobody.
    fn may_be_armed(self) -> bool {
        let sleep = self.without_many();
        sleep == Sleep::AWAKE || matches!(sleep.wake_by(), WakeBy::WaitSet(_))
    }
}

/// S1 and S2: announces the sleep and returns the count to sleep on. The caller looks once more for a
/// sample and sleeps only if there is none.
#[inline]
pub fn fall_asleep(asleep: &AtomicU64, wakes: &AtomicU32, sleep: Sleep) -> u32 {
    let count = wakes.load(Ordering::Relaxed);
    asleep.store(sleep.0, Ordering::Relaxed);
    // ORDER: pairs with the fence of the publisher between its sample and `Notifier::notify` (P7).
    // It also keeps counts meant for this sleep out of `count`: a publisher that saw `asleep`
    // before it counted up executed its fence after ours.
    fence_of(Step::S2);
    count
}

/// The thread of a wait set runs again.
#[inline]
pub(crate) fn wake_up_set(asleep: &AtomicU64) {
    // ORDER: Relaxed: a publisher that still sees the old value at worst notifies without need.
    asleep.store(0, Ordering::Relaxed);
}

/// The thread of a subscriber runs again.
#[inline]
pub(crate) fn wake_up(asleep: &AtomicU64) {
    // ORDER: Relaxed: as above. Another thread may be setting the bit for many publishers.
    asleep.fetch_and(MANY, Ordering::Relaxed);
}

/// Makes the publishers of a subscriber set their ready bits, or no longer.
pub(crate) fn set_many(asleep: &AtomicU64, are_many: bool) {
    // ORDER: Relaxed, the caller fences. This is not a store, because its wait set may be arming
    // it.
    match are_many {
        true => asleep.fetch_or(MANY, Ordering::Relaxed),
        false => asleep.fetch_and(!MANY, Ordering::Relaxed),
    };
}

/// Announces that the wait set of a subscriber must be woken when something comes, unless its reader
/// sleeps alone: the reader tells the set when it has woken.
pub(crate) fn arm(asleep: &AtomicU64, sleep: Sleep) {
    let mut seen = Sleep(asleep.load(Ordering::Relaxed));
    while seen.may_be_armed() {
        // ORDER: Relaxed: the set's fence comes after it, for all members that it arms at once.
        let (order, armed) = (Ordering::Relaxed, sleep.or_of_many(seen.is_of_many()));
        match asleep.compare_exchange_weak(seen.0, armed.0, order, order) {
            Ok(_) => return,
            Err(now) => seen = Sleep(now),
        }
    }
}

/// The subscriber leaves a wait set, which need not be woken any more.
pub(crate) fn disarm(asleep: &AtomicU64, set: u32) {
    let seen = Sleep(asleep.load(Ordering::Relaxed));
    if seen.wake_by() == WakeBy::WaitSet(set as usize) {
        // Unless its reader has fallen asleep meanwhile.
        let order = Ordering::Relaxed;
        let _ = asleep.compare_exchange(seen.0, seen.0 & MANY, order, order);
    }
}

const SET_BITS: u32 = 10;
const WAKE_WORD: u64 = 0;
const WAIT_SET: u64 = 1 << SET_BITS;
const PUBLISHED: u64 = 2 << SET_BITS;
const DESCRIPTOR: u64 = 3 << SET_BITS;
const KIND: u64 = 3 << SET_BITS;
const MANY: u64 = 1 << (SET_BITS + 2);
const NUMBER_SHIFT: u32 = SET_BITS + 3;
const _: () = assert!(SETS_MAX <= 1 << SET_BITS && SETS_MAX.is_power_of_two());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_says_how_it_is_woken() {
        let set = SETS_MAX as u32 - 1;
        for (sleep, wake_by) in [
            (Sleep::new(1, None), WakeBy::WakeWord),
            (Sleep::new(1, Some(set)), WakeBy::WaitSet(SETS_MAX - 1)),
            (Sleep::new(1, Some(0)), WakeBy::WaitSet(0)),
            (Sleep::on_published(1), WakeBy::Published),
            (Sleep::of_set(1, set, false), WakeBy::WakeWord),
            (Sleep::of_set(1, set, true), WakeBy::Descriptor),
        ] {
            for are_many in [false, true] {
                let same = sleep.or_of_many(are_many);
                assert_eq!((same.wake_by(), same.is_of_many()), (wake_by, are_many));
                assert_eq!(same.without_many(), sleep);
            }
        }
    }

    #[test]
    fn no_two_sleeps_are_the_same() {
        let sets = [0, 1, SETS_MAX as u32 - 1];
        let of_sets = sets.into_iter().flat_map(|set| {
            [1, 2].into_iter().flat_map(move |number| {
                [false, true].map(|by_descriptor| Sleep::of_set(number, set, by_descriptor).0)
            })
        });
        assert_eq!(of_sets.collect::<std::collections::BTreeSet<_>>().len(), 12);
    }

    #[test]
    fn a_reader_that_sleeps_alone_is_not_armed() {
        let (alone, armed) = (Sleep::new(1, None), Sleep::new(2, Some(3)));
        for (before, after) in [
            (Sleep::AWAKE, armed),
            (Sleep::AWAKE.or_of_many(true), armed.or_of_many(true)),
            (Sleep::new(1, Some(2)), armed),
            (alone, alone),
            (alone.or_of_many(true), alone.or_of_many(true)),
            (Sleep::on_published(7), Sleep::on_published(7)),
        ] {
            let word = AtomicU64::new(before.0);
            arm(&word, armed);
            assert_eq!(Sleep(word.load(Ordering::Relaxed)), after);
            disarm(&word, 9);
            assert_eq!(Sleep(word.load(Ordering::Relaxed)), after, "it is in another set");
            disarm(&word, 3);
            let left = if after.wake_by() == WakeBy::WaitSet(3) {
                Sleep::AWAKE.or_of_many(after.is_of_many())
            } else {
                after
            };
            assert_eq!(Sleep(word.load(Ordering::Relaxed)), left);
        }
    }
}
