//! When the receiving thread yields to the taking thread.
//!
//! If both have the same core and realtime priority, the receiving thread would go on as long as
//! messages arrive. The subscriber's queue overruns, and for large samples it grows to its whole
//! depth, in new memory that is made while the sockets overflow. If the receiving thread yields,
//! the subscriber takes its samples, and copies stay in memory that is in the caches.

/// The samples of one publisher that a subscriber has not taken yet.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    /// The next sample to read at the last yield. A subscriber that has not moved since is busy or
    /// stopped, and yielding helps neither.
    gave_way_at: Option<u64>,
}

impl Backlog {
    /// Whether to yield now: the sample `published` of so many bytes has been put into a queue of
    /// `depth`, of which the subscriber reads `reading` next.
    pub(super) fn is_due(
        &mut self,
        published: u64,
        reading: Option<u64>,
        bytes: u64,
        depth: u32,
    ) -> bool {
        let Some(reading) = reading.filter(|reading| *reading <= published) else { return false };
        let samples = published - reading + 1;
        let is_much = samples >= u64::from(depth / 2) || samples.saturating_mul(bytes) >= BYTES_MAX;
        is_much && self.gave_way_at.replace(reading) != Some(reading)
    }
}

/// Lets other threads with this thread's realtime priority run. Without such a priority the kernel
/// divides the core by time; yielding would mean waiting for other programs, and losing what the
/// sockets cannot hold meanwhile.
pub(super) fn give_way() {
    // SAFETY: no preconditions; 0 is this thread.
    let policy = unsafe { libc::sched_getscheduler(0) } & !libc::SCHED_RESET_ON_FORK;
    if [libc::SCHED_FIFO, libc::SCHED_RR].contains(&policy) {
        std::thread::yield_now();
    }
}

/// The minimum that a core's cache holds.
const BYTES_MAX: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: u64 = 64;

    #[test]
    fn the_backlog_of_small_samples_is_half_of_the_queue() {
        let mut backlog = Backlog::default();
        assert_eq!((0..40).find(|at| backlog.is_due(*at, Some(0), SMALL, 64)), Some(31));
        assert_eq!((40..99).find(|at| backlog.is_due(*at, Some(40), SMALL, 64)), Some(71));
        assert!((0..9).all(|at| Backlog::default().is_due(at, Some(at), SMALL, 1)), "of one");
    }

    #[test]
    fn the_backlog_of_large_samples_fits_into_a_cache() {
        let first_of = |bytes| {
            let mut backlog = Backlog::default();
            (0..32).find(|at| backlog.is_due(*at, Some(0), bytes, 64))
        };
        assert_eq!([64 << 10, 1 << 20, 8 << 20].map(first_of), [Some(15), Some(0), Some(0)]);
    }

    #[test]
    fn a_stalled_reader_is_yielded_to_once() {
        let mut backlog = Backlog::default();
        let due = |backlog: &mut Backlog, reading| {
            (100..200).filter(|at| backlog.is_due(*at, Some(reading), SMALL, 16)).count()
        };
        assert_eq!(due(&mut backlog, 50), 1);
        assert_eq!(due(&mut backlog, 51), 1, "it has moved");
        assert_eq!(due(&mut backlog, 200), 0, "it has taken all");
        assert!(!backlog.is_due(300, None, SMALL, 16), "it has gone");
    }
}
