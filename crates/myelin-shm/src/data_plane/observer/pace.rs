//! When an observer looks next at a publisher's ring.

/// The rate of a publisher, as far as an observer has seen it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    looked_ns: u64,
    /// When samples were found last.
    found_ns: u64,
    /// The time between two samples; `None` before there were two looks that found some.
    period_ns: Option<u64>,
    interval_ns: u64,
}

impl Pace {
    pub(super) fn interval_ns(&self) -> u64 {
        self.interval_ns.max(INTERVAL_NS_MIN)
    }

    /// A look has ended that found so many samples. The observer wants to look twice while the
    /// publisher publishes `within` samples.
    pub(super) fn looked(&mut self, now_ns: u64, found: u64, within: u64) {
        let since_ns = now_ns.saturating_sub(self.looked_ns);
        if self.looked_ns != 0 {
            match (found, self.period_ns) {
                (0, None) => {}
                // Twice as long without a sample as there should be: it has become slower.
                (0, Some(period_ns)) => {
                    let silent_ns = now_ns.saturating_sub(self.found_ns);
                    self.period_ns = Some(period_ns.max(silent_ns / 2));
                }
                (_, before) => {
                    let quiet_ns = now_ns.saturating_sub(self.found_ns.max(1));
                    let new_ns = since_ns.max(if found == 1 { quiet_ns } else { 0 }) / found;
                    // It follows a faster publisher at once, and a slower one slowly.
                    self.period_ns = Some(match before {
                        Some(before_ns) if new_ns > before_ns => {
                            before_ns + (new_ns - before_ns) / 4
                        }
                        _ => new_ns,
                    });
                }
            }
        }
        if found > 0 || self.looked_ns == 0 {
            self.found_ns = now_ns;
        }
        self.looked_ns = now_ns;
        let wanted_ns = match self.period_ns {
            Some(period_ns) => period_ns.saturating_mul(within) / 2,
            None => INTERVAL_NS_MAX,
        };
        // It begins with short intervals, before the rate is known, and doubles them.
        let twice_ns = self.interval_ns().saturating_mul(2);
        self.interval_ns = wanted_ns.min(twice_ns).clamp(INTERVAL_NS_MIN, INTERVAL_NS_MAX);
    }
}

const INTERVAL_NS_MIN: u64 = 1_000_000;
pub(super) const INTERVAL_NS_MAX: u64 = 100_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// The interval after a publisher of this period was observed for so long.
    fn interval_ms(period_ns: u64, within: u64, for_ns: u64) -> u64 {
        let mut pace = Pace::default();
        let (mut now_ns, mut published) = (1_000_000_000, 0);
        let end_ns = now_ns + for_ns;
        while now_ns < end_ns {
            let now = (now_ns - 1_000_000_000) / period_ns;
            pace.looked(now_ns, now - published, within);
            published = now;
            now_ns += pace.interval_ns();
        }
        pace.interval_ns() / 1_000_000
    }

    #[test]
    fn it_looks_twice_while_the_ring_is_written_once() {
        const SECOND_NS: u64 = 1_000_000_000;
        for (hz, within, low, high) in [
            (1, 8, 100, 100), // at most 100 ms
            (100, 8, 30, 40), // 80 ms a turn
            (1_000, 8, 3, 4), // 8 ms a turn
            (1_000, 100, 45, 50),
            (30, 1, 12, 17),   // payloads in slots: twice a sample
            (10_000, 8, 1, 1), // at least 1 ms
        ] {
            let interval_ms = interval_ms(SECOND_NS / hz, within, 10 * SECOND_NS);
            assert!((low..=high).contains(&interval_ms), "{hz} Hz, {within}: {interval_ms} ms");
        }
    }

    #[test]
    fn a_silent_publisher_is_looked_at_every_100_ms() {
        let mut pace = Pace::default();
        let mut now_ns = 1;
        for _ in 0..20 {
            pace.looked(now_ns, 5, 8);
            now_ns += 1_000_000;
        }
        assert_eq!(pace.interval_ns(), INTERVAL_NS_MIN);
        for _ in 0..100 {
            pace.looked(now_ns, 0, 8);
            now_ns += pace.interval_ns();
        }
        assert_eq!(pace.interval_ns(), INTERVAL_NS_MAX);
    }
}
