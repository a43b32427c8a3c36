//! Ends a wait from within: the waiting thread itself checks, several times a second and after each
//! signal, whether to go on. This is for languages that run their signal handlers in the waiting
//! thread after it has returned from the system call. Threads of other programs check nothing.

use std::sync::OnceLock;
use std::time::Duration;

use crate::waiting::wait::{NEVER, now_ns};

/// The checks of this process's waits. The waiting thread calls both, without a lock of the
/// library's.
#[derive(Debug)]
pub struct Checks {
    /// How long a wait of this thread sleeps or spins before it checks again. `None`: as long as
    /// nothing wakes it.
    pub interval: fn() -> Option<Duration>,
    /// Whether the wait of this thread must end, as at its time limit: a reliable publish then
    /// fails like one with `reliable_or_fail`. True until the waiting call has returned.
    pub is_cancelled: fn() -> bool,
}

static CHECKS: OnceLock<Checks> = OnceLock::new();

/// From now on all waits of the process use these checks. Only the first call counts.
pub fn install(checks: Checks) {
    let _ = CHECKS.set(checks);
}

/// Whether the running wait must end.
pub fn is_cancelled() -> bool {
    CHECKS.get().is_some_and(|checks| (checks.is_cancelled)())
}

/// How long to sleep before the next check, out of the time that is left.
pub fn slice(left: Duration) -> Duration {
    interval().map_or(left, |interval| left.min(interval))
}

/// The end of that sleep, as a time of `CLOCK_MONOTONIC`.
pub(crate) fn slice_end_ns(until_ns: u64) -> u64 {
    let check_ns = interval().map_or(NEVER, |interval| now_ns() + interval.as_nanos() as u64);
    until_ns.min(check_ns)
}

fn interval() -> Option<Duration> {
    CHECKS.get().and_then(|checks| (checks.interval)())
}
