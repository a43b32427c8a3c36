//! Decides how often to read expensive values, so that observing stays within its CPU budget.
//!
//! The cost of each reading is measured when it is made. A reading may be due at every tick or at
//! every n-th. The budget of a tick is divided evenly; readings that cost less than their share
//! leave the rest to the others, so that none starves.

/// The number of ticks between two readings with this cost, if each tick may spend `share_ns` on
/// it. `u64::MAX` if there is no budget.
pub(super) fn period_ticks(cost_ns: u64, share_ns: u64) -> u64 {
    match share_ns {
        0 => u64::MAX,
        share => cost_ns.div_ceil(share).max(1),
    }
}

/// The share of each reading in a tick's budget: the level at which the budget is used up, when
/// cheaper readings take only what they need. `u64::MAX` if the budget suffices for all.
pub(super) fn share_ns(costs: impl Iterator<Item = u64>, allowance_ns: u64) -> u64 {
    let mut costs: Vec<u64> = costs.collect();
    costs.sort_unstable();
    let mut left_ns = allowance_ns;
    for (served, cost) in costs.iter().enumerate() {
        let share_ns = left_ns / (costs.len() - served) as u64;
        if *cost > share_ns {
            return share_ns;
        }
        left_ns -= cost;
    }
    u64::MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cheap_readings_leave_their_budget_to_expensive_ones() {
        let costs = [10u64, 20, 500, 5000];
        let share = share_ns(costs.iter().copied(), 230);
        assert_eq!(share, 100);
        let periods = costs.map(|cost| period_ticks(cost, share));
        assert_eq!(periods, [1, 1, 5, 50]);
        let per_tick: u64 = costs.iter().zip(periods).map(|(cost, period)| cost / period).sum();
        assert!(per_tick <= 230);
    }

    #[test]
    fn with_enough_for_all_everything_is_read_at_every_tick() {
        let share = share_ns([3, 4].into_iter(), 7);
        assert_eq!([3, 4].map(|cost| period_ticks(cost, share)), [1, 1]);
        assert_eq!(share_ns(std::iter::empty(), 0), u64::MAX);
    }

    #[test]
    fn without_a_budget_nothing_is_read() {
        let share = share_ns([3, 4].into_iter(), 0);
        assert_eq!(period_ticks(3, share), u64::MAX);
    }

    proptest::proptest! {
        #[test]
        fn the_allowance_is_kept(
            costs in proptest::collection::vec(1u64..1_000_000, 0..30),
            allowance in 0u64..1_000_000,
        ) {
            let share = share_ns(costs.iter().copied(), allowance);
            let per_tick: f64 = costs
                .iter()
                .map(|cost| *cost as f64 / period_ticks(*cost, share) as f64)
                .sum();
            proptest::prop_assert!(per_tick <= allowance as f64 + 1e-6);
        }
    }
}
