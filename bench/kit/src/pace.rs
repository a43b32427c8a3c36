//! Waits until a message is due.
//!
//! A timer wakes a thread some 50 to 150 µs late, and later if idle cores wake slowly. That is as
//! long as many latencies. So ping sleeps until shortly before the time and stays awake for the
//! rest. This CPU time belongs to the bench, not to the system: the thread's CPU clock counts it,
//! and ping leaves it out of its reported CPU time. A thread that is preempted meanwhile uses none.

use crate::clock::Clock;
use crate::process::thread_cpu_ns;

/// Waits for the messages of a schedule; see the module.
pub(crate) struct Pace {
    clock: Clock,
    /// Longest time to stay awake before a message is due.
    lead_ns: u64,
    /// Reads the thread's CPU clock.
    cpu_ns: fn() -> u64,
    awake_cpu_ns: u64,
}

impl Pace {
    /// For messages about `period_ns` apart.
    pub(crate) fn new(clock: Clock, period_ns: f64) -> Self {
        // At most a quarter of the period, so that ping sleeps between messages if there is time.
        let lead_ns = LEAD_NS_MAX.min((period_ns / 4.0) as u64);
        Pace { clock, lead_ns, cpu_ns: thread_cpu_ns, awake_cpu_ns: 0 }
    }

    /// Returns when the clock reads `due_ns`, or at once after that time.
    #[inline(always)]
    pub(crate) fn wait_until(&mut self, due_ns: u64) {
        if let Clock::Virtual(_) = self.clock {
            return self.clock.sleep_until(due_ns);
        }
        if self.clock.now() + self.lead_ns < due_ns {
            self.clock.sleep_until(due_ns - self.lead_ns);
        }
        if self.clock.now() + CPU_READING_NS < due_ns {
            let begin_cpu_ns = (self.cpu_ns)();
            self.spin_until(due_ns - CPU_READING_NS);
            self.awake_cpu_ns += (self.cpu_ns)() - begin_cpu_ns;
        }
        let begin_ns = self.clock.now();
        self.spin_until(due_ns);
        self.awake_cpu_ns += due_ns.saturating_sub(begin_ns);
    }

    #[inline(always)]
    fn spin_until(&self, at_ns: u64) {
        while self.clock.now() < at_ns {
            std::hint::spin_loop();
        }
    }

    /// CPU time of staying awake. It is too high only by times within the last [`CPU_READING_NS`]
    /// before a message during which the thread was preempted.
    pub(crate) fn awake_cpu_ns(&self) -> u64 {
        self.awake_cpu_ns
    }
}

/// Longer than most wake-ups take, including timer slack.
const LEAD_NS_MAX: u64 = 250_000;
/// Longer than reading the thread's CPU clock, a system call that must not delay a message. In this
/// last interval all time counts as CPU time.
const CPU_READING_NS: u64 = 5_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pacing_is_never_early_and_counts_its_cpu_time() {
        let clock = Clock::Monotonic;
        let mut pace = Pace::new(clock.clone(), 1e6);
        let due_ns = clock.now() + 2_000_000;
        pace.wait_until(due_ns);
        assert!(clock.now() >= due_ns);
        let before_ns = pace.awake_cpu_ns();
        pace.wait_until(due_ns);
        assert_eq!(pace.awake_cpu_ns(), before_ns, "what is past is not waited for");
    }

    #[test]
    fn a_descheduled_thread_counts_no_cpu_time() {
        let clock = Clock::Monotonic;
        let mut pace = Pace { cpu_ns: || 7, ..Pace::new(clock.clone(), 1e9) };
        for _ in 0..20 {
            pace.wait_until(clock.now() + LEAD_NS_MAX);
        }
        assert!(pace.awake_cpu_ns() <= 20 * CPU_READING_NS, "{}", pace.awake_cpu_ns());
    }

    #[test]
    fn a_virtual_clock_jumps() {
        let clock = Clock::virtual_at(10);
        let mut pace = Pace::new(clock.clone(), 1e6);
        pace.wait_until(500);
        assert_eq!((clock.now(), pace.awake_cpu_ns()), (500, 0));
    }
}
