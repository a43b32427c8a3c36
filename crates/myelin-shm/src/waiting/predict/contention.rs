//! Whether spinning pays off while other threads need the cores, too. A spinning subscriber is then
//! in the way of the publisher and of other subscribers, and is later than a sleeping one.
//!
//! The kernel counts how long a thread was ready to run without running. A thread that its timer
//! has woken, and that spins, waits for no other core to wake up: the time counted then is another
//! thread's turn. After two such waits the predictor does not spin for a while, eight times as long
//! each time until a trial has gone well again: each trial makes one sample late for all others.

/// A predictor's knowledge about the cores it runs on.
#[derive(Debug)]
pub(super) struct Contention {
    /// The thread's count at the beginning of a wait that had a timer or a spin.
    before_ns: Option<u64>,
    /// How many waits in a row were held up, or nearly so.
    held_up: u32,
    /// How many waits are still to be slept through, and how many it will be the next time.
    pause: u32,
    next_pause: u32,
}

impl Contention {
    pub(super) fn new() -> Contention {
        Contention { before_ns: None, held_up: 0, pause: 0, next_pause: PAUSE_MIN }
    }

    /// A wait begins; `delayed_ns`: how long the thread was ready without running, in total.
    pub(super) fn begin(&mut self, delayed_ns: impl FnOnce() -> u64) {
        self.pause = self.pause.saturating_sub(1);
        let Some(before_ns) = self.before_ns.take() else { return };
        if delayed_ns().saturating_sub(before_ns) <= DELAY_NS {
            self.held_up = self.held_up.saturating_sub(1);
            if self.held_up == 0 {
                self.next_pause = (self.next_pause - self.next_pause / 8).max(PAUSE_MIN);
            }
            return;
        }
        self.held_up += 1;
        if self.held_up >= HELD_UP_MAX {
            self.pause = self.next_pause;
            self.next_pause = (8 * self.next_pause).min(PAUSE_MAX);
            self.held_up = HELD_UP_MAX - 1; // the next one is a trial
        }
    }

    /// Whether to leave the cores to others.
    pub(super) fn gives_way(&self) -> bool {
        self.pause > 0
    }

    /// This wait has a timer or a spin: the next one learns from its delay.
    pub(super) fn watch(&mut self, delayed_ns: impl FnOnce() -> u64) {
        self.before_ns.get_or_insert_with(delayed_ns);
    }
}

/// More than interrupts take.
const DELAY_NS: u64 = 20_000;
const HELD_UP_MAX: u32 = 2;
const PAUSE_MIN: u32 = 64;
/// With 32 subscribers there is a trial in 512 samples, which p99 does not see.
const PAUSE_MAX: u32 = 16_384;

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs `waits` waits, each delayed by `delay_ns` if it spins; returns how many spun.
    fn spins(contention: &mut Contention, now_ns: &mut u64, waits: u32, delay_ns: u64) -> u32 {
        let mut spins = 0;
        for _ in 0..waits {
            contention.begin(|| *now_ns);
            if !contention.gives_way() {
                contention.watch(|| *now_ns);
                *now_ns += delay_ns;
                spins += 1;
            }
        }
        spins
    }

    #[test]
    fn a_contended_waiter_backs_off_longer_each_time() {
        let (mut contention, mut now_ns) = (Contention::new(), 0);
        assert_eq!(spins(&mut contention, &mut now_ns, 1_000, 5_000), 1_000, "the cores are free");
        let few = spins(&mut contention, &mut now_ns, 1_000, 300_000);
        assert!((2..=6).contains(&few), "{few} of 1,000");
        assert!(spins(&mut contention, &mut now_ns, 10_000, 300_000) <= 6);
        assert!(spins(&mut contention, &mut now_ns, 30_000, 5_000) > 10_000, "they are free again");
        assert_eq!(spins(&mut contention, &mut now_ns, 1_000, 5_000), 1_000);
    }

    #[test]
    fn rare_contention_does_not_stop_spinning() {
        let (mut contention, mut now_ns) = (Contention::new(), 0);
        for _ in 0..100 {
            assert_eq!(spins(&mut contention, &mut now_ns, 1, 300_000), 1);
            assert_eq!(spins(&mut contention, &mut now_ns, 5, 1_000), 5);
        }
    }
}
