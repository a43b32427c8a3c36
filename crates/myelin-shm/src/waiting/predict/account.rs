//! The time that a predictor may spin: a token bucket, so that the budget holds however good the
//! estimates are.

/// Spinning time that was credited and not spent, in ns.
#[derive(Debug)]
pub(super) struct Account {
    /// The credited share of a core's time.
    share: f64,
    credit_ns: f64,
    credit_max_ns: f64,
    /// The time of the last credit; `None` before the first wait.
    accrued_ns: Option<u64>,
}

impl Account {
    pub(super) fn new(cpu_permille: u16) -> Account {
        let mut account =
            Account { share: 0.0, credit_ns: 0.0, credit_max_ns: SPARE_NS, accrued_ns: None };
        account.set_budget(cpu_permille, 1);
        account
    }

    /// So many equal accounts share the budget.
    pub(super) fn set_budget(&mut self, cpu_permille: u16, accounts: usize) {
        let permille = f64::from(cpu_permille.min(1000)) / accounts.max(1) as f64;
        self.share = SPINNING * permille / 1000.0;
    }

    /// Credits the time since the last call. A silence is not saved up: at most the credit of a few
    /// periods is kept.
    pub(super) fn accrue(&mut self, now_ns: u64, period_ns: f64) {
        let share = self.share;
        self.credit_max_ns = (PERIODS_SAVED * share * period_ns).max(SPARE_NS);
        let elapsed_ns = now_ns.saturating_sub(self.accrued_ns.unwrap_or(now_ns));
        self.accrued_ns = Some(now_ns);
        self.credit_ns = (self.credit_ns + share * elapsed_ns as f64).min(self.credit_max_ns);
    }

    /// The credit of an interval.
    pub(super) fn income_ns(&self, interval_ns: f64) -> f64 {
        self.share * interval_ns
    }

    /// How much the next spin may be expected to take. If spending equals income, the account
    /// settles half full: there is room for spins that take several times the expected time.
    pub(super) fn to_spend_ns(&self) -> f64 {
        self.credit_ns * 2.0 / PERIODS_SAVED
    }

    pub(super) fn affords(&self, spin_ns: u64) -> bool {
        self.credit_ns >= spin_ns as f64
    }

    /// The end of a spin that begins now: at `until_ns` if the account has enough.
    pub(super) fn allows(&self, until_ns: u64, now_ns: u64) -> u64 {
        until_ns.min(now_ns + self.credit_ns.max(0.0) as u64)
    }

    /// Making a plan costs CPU time, too; if it took much longer, the thread was not running.
    pub(super) fn spend_on_planning(&mut self, took_ns: u64) {
        self.spend(took_ns.min(PLANNING_NS_MAX));
    }

    pub(super) fn spend(&mut self, spun_ns: u64) {
        self.credit_ns -= spun_ns as f64;
    }
}

/// The share of the budget for spinning; the rest pays for setting timers.
const SPINNING: f64 = 0.875;
const PLANNING_NS_MAX: u64 = 30_000;
const PERIODS_SAVED: f64 = 16.0;
/// Kept in any case: four spins of [`Wait::Adaptive`](crate::waiting::wait::Wait::Adaptive).
const SPARE_NS: f64 = 4.0 * crate::waiting::wait::SPIN_NS as f64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spinning_never_exceeds_its_share_of_the_time() {
        let mut account = Account::new(20);
        account.accrue(1_000, 10e6);
        assert_eq!(account.allows(u64::MAX, 1_000), 1_000, "it begins with nothing");
        account.accrue(10_001_000, 10e6);
        assert_eq!(account.allows(u64::MAX, 10_001_000), 10_176_000);
        account.spend(125_000);
        assert!(account.affords(50_000) && !account.affords(50_001));
        account.accrue(60_000_000_000, 10e6);
        assert!(account.affords(2_800_000) && !account.affords(2_800_001), "silence is no saving");
    }

    #[test]
    fn a_budget_is_shared_by_all_accounts() {
        let mut account = Account::new(20);
        account.set_budget(20, 16);
        account.accrue(0, 10e6);
        account.accrue(160_000_000, 1e9);
        let mut allowed_ns = 16 * account.allows(u64::MAX, 0);
        assert!((2_799_000..=2_800_000).contains(&allowed_ns), "{allowed_ns}");
        account.set_budget(20, 1);
        account.spend(allowed_ns as f64 as u64 / 16);
        account.accrue(320_000_000, 1e9);
        allowed_ns = account.allows(u64::MAX, 0);
        assert!((2_799_000..=2_801_000).contains(&allowed_ns), "alone again: {allowed_ns}");
    }
}
