//! Checks whether a publisher keeps its deadline and is alive: plain arithmetic on its counts.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::topic::EndpointId;

/// A change of state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Missed,
    Lost,
    Regained,
}

/// All monitors of a node, with the time at which each is checked next.
#[derive(Debug, Default)]
pub(crate) struct Monitors {
    monitors: BTreeMap<Watch, QosMonitor>,
    due: BTreeSet<(u64, Watch)>,
}

/// The endpoint that gets the events, and the watched publisher.
type Watch = (EndpointId, EndpointId);

/// Watches one publisher. Times in nanoseconds of one clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QosMonitor {
    deadline: Silence,
    liveliness: Silence,
    due_ns: u64,
}

/// How long a count has not changed.
#[derive(Clone, Copy, Debug)]
struct Silence {
    limit_ns: Option<u64>,
    count: (u64, u64),
    since_ns: u64,
    is_reported: bool,
}

impl Monitors {
    /// Watches from now on, if a deadline or lease is set.
    pub(crate) fn watch(&mut self, watch: Watch, monitor: Option<QosMonitor>) {
        self.forget(watch);
        if let Some(monitor) = monitor {
            self.due.insert((monitor.due_ns, watch));
            self.monitors.insert(watch, monitor);
        }
    }

    pub(crate) fn forget(&mut self, watch: Watch) {
        if let Some(monitor) = self.monitors.remove(&watch) {
            self.due.remove(&(monitor.due_ns, watch));
        }
    }

    /// Ends all watches for an endpoint.
    pub(crate) fn forget_all_of(&mut self, endpoint: EndpointId) {
        let theirs = self.monitors.range((endpoint, 0)..=(endpoint, EndpointId::MAX));
        for watch in theirs.map(|(watch, _)| *watch).collect::<Vec<_>>() {
            self.forget(watch);
        }
    }

    /// When the next check is due.
    pub(crate) fn due_ns(&self) -> Option<u64> {
        self.due.first().map(|(due_ns, _)| *due_ns)
    }

    /// The watches that are due now; each gets its next time.
    pub(crate) fn take_due(&mut self, now_ns: u64) -> Vec<Watch> {
        let later = self.due.split_off(&(now_ns + 1, (0, 0)));
        let due = std::mem::replace(&mut self.due, later);
        for (_, watch) in &due {
            let monitor = self.monitors.get_mut(watch).expect("a due watch has a monitor");
            monitor.due_ns = now_ns.saturating_add(monitor.interval_ns());
            self.due.insert((monitor.due_ns, *watch));
        }
        due.into_iter().map(|(_, watch)| watch).collect()
    }

    /// The changes at one of them.
    pub(crate) fn look(
        &mut self,
        watch: Watch,
        progress: (u64, u64),
        now_ns: u64,
    ) -> impl Iterator<Item = Change> + use<> {
        let monitor = self.monitors.get_mut(&watch);
        monitor.map(|monitor| monitor.look(progress, now_ns)).into_iter().flatten().flatten()
    }
}

impl QosMonitor {
    /// Begins at `now_ns`; `None` if neither deadline nor lease is set.
    pub(crate) fn new(
        deadline: Option<Duration>,
        liveliness: Option<Duration>,
        progress: (u64, u64),
        now_ns: u64,
    ) -> Option<QosMonitor> {
        let silence = |limit: Option<Duration>, count| Silence {
            limit_ns: limit.map(|limit| limit.as_nanos().min(u128::from(u64::MAX)) as u64),
            count,
            since_ns: now_ns,
            is_reported: false,
        };
        let mut monitor = QosMonitor {
            deadline: silence(deadline, (progress.0, 0)),
            liveliness: silence(liveliness, progress),
            due_ns: 0,
        };
        monitor.due_ns = now_ns.saturating_add(monitor.interval_ns());
        monitor.shortest_ns().map(|_| monitor)
    }

    /// How often to check: a quarter of the shorter limit, so that a silence is reported at most a
    /// quarter late; at least 1 ms.
    fn interval_ns(&self) -> u64 {
        (self.shortest_ns().unwrap_or(u64::MAX) / 4).max(INTERVAL_NS_MIN)
    }

    /// Looks at the numbers of published samples and of assertions.
    fn look(&mut self, progress: (u64, u64), now_ns: u64) -> [Option<Change>; 2] {
        let (missed, _) = self.deadline.look((progress.0, 0), now_ns);
        let (lost, regained) = self.liveliness.look(progress, now_ns);
        let liveliness = match (lost, regained) {
            (true, _) => Some(Change::Lost),
            (_, true) => Some(Change::Regained),
            _ => None,
        };
        [missed.then_some(Change::Missed), liveliness]
    }

    fn shortest_ns(&self) -> Option<u64> {
        [self.deadline.limit_ns, self.liveliness.limit_ns].into_iter().flatten().min()
    }
}

impl Silence {
    /// Whether a silence has become too long, and whether a silence has ended.
    fn look(&mut self, count: (u64, u64), now_ns: u64) -> (bool, bool) {
        let Some(limit_ns) = self.limit_ns else { return (false, false) };
        if count != self.count {
            let ended = self.is_reported;
            (self.count, self.since_ns, self.is_reported) = (count, now_ns, false);
            return (false, ended);
        }
        let too_long = !self.is_reported && now_ns.saturating_sub(self.since_ns) >= limit_ns;
        self.is_reported |= too_long;
        (too_long, false)
    }
}

const INTERVAL_NS_MIN: u64 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_missed_deadline_and_its_end_are_reported_once() {
        let limit = Some(Duration::from_millis(100));
        let mut monitor = QosMonitor::new(limit, limit, (0, 0), 0).unwrap();
        assert_eq!(monitor.interval_ns(), 25 * MS);
        assert_eq!(monitor.look((0, 0), 99 * MS), [None, None]);
        assert_eq!(monitor.look((0, 0), 100 * MS), [Some(Change::Missed), Some(Change::Lost)]);
        assert_eq!(monitor.look((0, 0), 300 * MS), [None, None]);
        assert_eq!(monitor.look((1, 0), 310 * MS), [None, Some(Change::Regained)]);
        assert_eq!(monitor.look((1, 0), 410 * MS), [Some(Change::Missed), Some(Change::Lost)]);
    }

    #[test]
    fn an_assertion_counts_for_liveliness_but_is_no_sample() {
        let limit = Some(Duration::from_millis(100));
        let mut monitor = QosMonitor::new(limit, limit, (0, 0), 0).unwrap();
        assert_eq!(monitor.look((0, 1), 50 * MS), [None, None]);
        assert_eq!(monitor.look((0, 1), 100 * MS), [Some(Change::Missed), None]);
        assert!(QosMonitor::new(None, None, (0, 0), 0).is_none());
    }
}
