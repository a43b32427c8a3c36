//! The word that hands over a slot of shared memory, model-checked with loom.
//!
//! ```text
//! Turn: count(31) │ asleep(1)      the writer passes message `count`; only the reader sets asleep
//! ```
//! The writer fills the slot and passes it. The reader sees the expected count and owns the bytes
//! until it reports that it has released them, by other means (see `slots`). Before it sleeps, the
//! reader sets `asleep` in the word that the writer is about to change. So either the writer's swap
//! finds the bit and wakes the reader, or the reader's compare-exchange finds the message and the
//! reader stays awake. There is no third order, so no wake-up is lost and no fence is needed.

#[cfg(loom)]
use loom::sync::atomic::{AtomicU32, Ordering};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU32, Ordering};

/// The turn of a slot; see the module. All zero before the first message, whose count is 1.
#[repr(transparent)]
pub struct Turn(AtomicU32);

impl Turn {
    /// Whether message `count` has been passed; if so, its bytes belong to the reader.
    #[inline(always)]
    pub fn has_come(&self, count: u32) -> bool {
        // ORDER: acquire pairs with the release in `pass` and `pass_and_look`; makes the message's
        // bytes visible.
        is_passed(self.0.load(Ordering::Acquire), count)
    }

    /// Passes message `count` to a reader that never sleeps, or that is always woken.
    #[cfg(not(loom))]
    #[inline(always)]
    pub fn pass(&self, count: u32) {
        // ORDER: release pairs with the acquire in `has_come`; publishes the message's bytes.
        self.0.store(count << 1, Ordering::Release);
    }

    /// Passes message `count`; true if the reader sleeps, or is about to, and must be woken.
    #[inline(always)]
    pub fn pass_and_look(&self, count: u32) -> bool {
        // ORDER: release as in `pass`. Seeing `asleep` orders nothing else, so no acquire is
        // needed; it is seen for certain because both sides modify one word.
        self.0.swap(count << 1, Ordering::Release) & ASLEEP != 0
    }

    /// Announces that the reader will sleep. Returns the word to sleep on, which changes when
    /// message `count` arrives; `None` if it has arrived already.
    pub fn fall_asleep(&self, count: u32) -> Option<u32> {
        // ORDER: Acquire as in `has_come`, here and in both cases of the exchange, for the case
        // that the message has arrived. Setting the bit publishes nothing.
        let seen = self.0.load(Ordering::Acquire);
        if is_passed(seen, count) {
            return None;
        }
        let asleep = seen | ASLEEP;
        let found = self.0.compare_exchange(seen, asleep, Ordering::Acquire, Ordering::Acquire);
        let (Ok(word) | Err(word)) = found;
        // If the word changes otherwise, the kernel refuses to sleep on `asleep`, and the caller
        // tries again.
        (!is_passed(word, count)).then_some(asleep)
    }

    /// A word to sleep on without having looked: it is in memory as long as message `count` has not
    /// arrived, and never once it has.
    #[cfg(not(loom))]
    pub fn word_before(&self, count: u32) -> u32 {
        // ORDER: Relaxed, the kernel compares again.
        let seen = self.0.load(Ordering::Relaxed);
        if is_passed(seen, count) { !seen } else { seen }
    }

    /// The futex for the kernel.
    #[cfg(not(loom))]
    pub fn futex(&self) -> &AtomicU32 {
        &self.0
    }
}

fn is_passed(word: u32, count: u32) -> bool {
    word >> 1 == (count << 1) >> 1
}

/// The reader sleeps, or will ask the kernel for that before it does anything else.
const ASLEEP: u32 = 1;

#[cfg(all(test, loom))]
mod tests {
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::{Arc, Condvar, Mutex};
    use loom::thread;

    /// One direction with one slot, and the kernel's side of its futex.
    struct Lane {
        turn: Turn,
        bytes: UnsafeCell<u32>,
        kernel: Mutex<()>,
        wake: Condvar,
    }

    impl Lane {
        fn new() -> Self {
            Lane {
                turn: Turn(AtomicU32::new(0)),
                bytes: UnsafeCell::new(0),
                kernel: Mutex::new(()),
                wake: Condvar::new(),
            }
        }

        /// FUTEX_WAIT: comparing and falling asleep are one step with respect to FUTEX_WAKE.
        fn futex_wait(&self, word: u32) {
            let held = self.kernel.lock().unwrap();
            // ORDER: SeqCst, because the kernel's comparison follows a full barrier.
            if self.turn.0.load(Ordering::SeqCst) == word {
                drop(self.wake.wait(held).unwrap());
            }
        }

        fn futex_wake(&self) {
            drop(self.kernel.lock().unwrap());
            self.wake.notify_one();
        }

        fn publish(&self, count: u32, value: u32) {
            // SAFETY: the slot belongs to the writer; loom checks that nobody else accesses it.
            self.bytes.with_mut(|bytes| unsafe { *bytes = value });
            if self.turn.pass_and_look(count) {
                self.futex_wake();
            }
        }

        fn take(&self, count: u32) -> u32 {
            while !self.turn.has_come(count) {
                let Some(word) = self.turn.fall_asleep(count) else { break };
                self.futex_wait(word);
            }
            // SAFETY: the slot has been passed; loom checks that its bytes are visible.
            self.bytes.with(|bytes| unsafe { *bytes })
        }
    }

    /// Involuntary thread switches per execution: enough to find each mutant (no release, no
    /// `asleep` in the exchange, a store instead of the swap) within a second.
    const PREEMPTIONS: usize = 3;

    /// Each slot is written twice; the answer to the first message allows the second.
    #[test]
    fn every_message_is_seen_whole_and_no_wake_up_is_lost() {
        static EXECUTIONS: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(PREEMPTIONS);
        model.check(|| {
            EXECUTIONS.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let lanes = Arc::new([Lane::new(), Lane::new()]);
            let pong = Arc::clone(&lanes);
            let answering = thread::spawn(move || {
                for count in 1..=2 {
                    let value = pong[0].take(count);
                    pong[1].publish(count, value);
                }
            });
            for count in 1..=2 {
                lanes[0].publish(count, 40 + count);
                assert_eq!(lanes[1].take(count), 40 + count);
            }
            answering.join().unwrap();
        });
        let executions = EXECUTIONS.load(std::sync::atomic::Ordering::Relaxed);
        assert!(executions >= 100, "only {executions} orders were tried");
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_delivered_once_across_the_wrap() {
        for count in [1, 2, u32::MAX >> 1, 1 << 31, u32::MAX] {
            let turn = Turn(AtomicU32::new(count.wrapping_sub(4) << 1));
            assert!(!turn.has_come(count));
            let asleep = turn.fall_asleep(count).expect("nothing has come");
            assert_eq!(turn.fall_asleep(count), Some(asleep), "saying it twice changes nothing");
            assert!(!turn.has_come(count));
            assert!(turn.pass_and_look(count), "the reader sleeps");
            assert!(turn.has_come(count));
            assert_eq!(turn.fall_asleep(count), None);
            assert_ne!(turn.word_before(count), turn.futex().load(Ordering::Relaxed));
            assert!(!turn.pass_and_look(count), "nobody sleeps any more");
        }
    }
}
