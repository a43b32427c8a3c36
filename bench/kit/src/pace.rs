//! Waiting until a message is due.
//!
//! A timer wakes a thread some 50 to 150 µs late, more where idle cores are slow to wake: as long as
//! many of the latencies that are to be measured. So ping sleeps until shortly before and stays awake
//! for the rest. What that costs is the bench's, not the system's: it is counted, and left out of
//! the CPU time that ping reports.

use crate::clock::Clock;

/// See the module.
pub(crate) struct Pace {
    clock: Clock,
    /// For so long at most it is awake before a message is due.
    lead_ns: u64,
    awake_ns: u64,
}

impl Pace {
    /// For messages that are some `period_ns` apart.
    pub(crate) fn new(clock: Clock, period_ns: f64) -> Self {
        // A quarter, so that ping sleeps between its messages where there is time to.
        Pace { clock, lead_ns: LEAD_NS_MAX.min((period_ns / 4.0) as u64), awake_ns: 0 }
    }

    /// Returns when the clock reads `due_ns`, or at once if it is past that.
    #[inline(always)]
    pub(crate) fn wait_until(&mut self, due_ns: u64) {
        if let Clock::Virtual(_) = self.clock {
            return self.clock.sleep_until(due_ns);
        }
        if self.clock.now() + self.lead_ns < due_ns {
            self.clock.sleep_until(due_ns - self.lead_ns);
        }
        let begin_ns = self.clock.now();
        while self.clock.now() < due_ns {
            std::hint::spin_loop();
        }
        self.awake_ns += due_ns.saturating_sub(begin_ns);
    }

    /// How long it has been awake for nothing else; at most so much CPU time, and no less unless
    /// something else had the core meanwhile.
    pub(crate) fn awake_ns(&self) -> u64 {
        self.awake_ns
    }
}

/// Longer than most wake-ups take, timer slack included.
const LEAD_NS_MAX: u64 = 250_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_never_early_and_counts_what_it_was_awake() {
        let clock = Clock::Monotonic;
        let mut pace = Pace::new(clock.clone(), 1e6);
        let due_ns = clock.now() + 2_000_000;
        pace.wait_until(due_ns);
        assert!(clock.now() >= due_ns);
        assert!(pace.awake_ns() <= LEAD_NS_MAX);
        let before_ns = pace.awake_ns();
        pace.wait_until(due_ns);
        assert_eq!(pace.awake_ns(), before_ns, "what is past is not waited for");
    }

    #[test]
    fn a_virtual_clock_jumps() {
        let clock = Clock::virtual_at(10);
        let mut pace = Pace::new(clock.clone(), 1e6);
        pace.wait_until(500);
        assert_eq!((clock.now(), pace.awake_ns()), (500, 0));
    }
}
