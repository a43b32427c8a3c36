//! When the messages of a stream are due: by its rate, or as they were recorded.

use std::sync::Arc;

use crate::arrivals::Schedule;
use crate::protocol::Prepare;
use crate::trace::Trace;

/// Iterates over the times at which messages are due, in nanoseconds after the first message of the
/// warm-up.
#[derive(Clone)]
pub enum DueTimes {
    /// At a rate.
    Rate(Schedule),
    /// As recorded.
    Recorded {
        /// The recording.
        trace: Arc<Trace>,
        /// The number of the next message.
        next: u64,
    },
}

impl DueTimes {
    /// The times of `prepare`, whose trace this is; `None` if its messages go back to back.
    pub fn new(prepare: &Prepare, trace: Option<Arc<Trace>>) -> Option<Self> {
        match trace {
            Some(trace) => Some(DueTimes::Recorded { trace, next: 0 }),
            None => Schedule::new(prepare).map(DueTimes::Rate),
        }
    }

    /// When the measured part begins.
    pub fn begin_ns(&self) -> u64 {
        match self {
            DueTimes::Rate(schedule) => schedule.begin_ns(),
            DueTimes::Recorded { trace, .. } => trace.begin_ns(),
        }
    }
}

impl Iterator for DueTimes {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        match self {
            DueTimes::Rate(schedule) => schedule.next(),
            DueTimes::Recorded { trace, next } => {
                let due_ns = trace.get(*next)?.due_ns;
                *next += 1;
                Some(due_ns)
            }
        }
    }
}
