//! Maps the times of a recording to times of this host.

/// Both clocks run evenly from an anchor, at which a time of the recording meets one of the host.
///
/// A message that comes a little late changes nothing: those after it keep their times. If it is
/// later than [`BEHIND_NS`], the schedule moves: the time that is missing is never made up by a
/// burst. If that happens again soon, the host cannot keep up at this rate, and the time of the
/// recording runs slower as a whole, so that the messages keep their proportions.
#[derive(Clone, Debug)]
pub(super) struct Timeline {
    rate: f64,
    /// What is left of the rate on a host that cannot keep up: at most 1.
    share: f64,
    /// The anchor.
    bag_ns: u64,
    host_ns: u64,
    is_paused: bool,
    /// Since when the share was as it is, in both clocks.
    since: (u64, u64),
    was_late: bool,
    /// What was not made up in all.
    delayed_ns: u64,
    least_share: f64,
}

impl Timeline {
    pub(super) fn new(rate: f64) -> Timeline {
        Timeline {
            rate,
            share: 1.0,
            bag_ns: 0,
            host_ns: 0,
            is_paused: false,
            since: (0, 0),
            was_late: false,
            delayed_ns: 0,
            least_share: 1.0,
        }
    }

    /// When a message of this time is to be published.
    pub(super) fn due_ns(&self, bag_ns: u64) -> u64 {
        let ahead_ns = bag_ns.saturating_sub(self.bag_ns) as f64 / (self.rate * self.share);
        self.host_ns.saturating_add(ahead_ns.round() as u64)
    }

    /// The time of the recording at this time of the host.
    pub(super) fn bag_ns(&self, now_ns: u64) -> u64 {
        if self.is_paused {
            return self.bag_ns;
        }
        let ahead_ns = now_ns.saturating_sub(self.host_ns) as f64 * (self.rate * self.share);
        self.bag_ns.saturating_add(ahead_ns.round() as u64)
    }

    /// The recording is at this place now.
    pub(super) fn seek(&mut self, bag_ns: u64, now_ns: u64) {
        self.anchor(bag_ns, now_ns);
        self.was_late = false;
    }

    pub(super) fn set_rate(&mut self, rate: f64, now_ns: u64) {
        self.seek(self.bag_ns(now_ns), now_ns);
        (self.rate, self.share) = (rate, 1.0);
    }

    pub(super) fn set_paused(&mut self, is_paused: bool, now_ns: u64) {
        self.seek(self.bag_ns(now_ns), now_ns);
        self.is_paused = is_paused;
    }

    pub(super) fn is_paused(&self) -> bool {
        self.is_paused
    }

    /// The rate that was chosen.
    pub(super) fn rate(&self) -> f64 {
        self.rate
    }

    /// The least share of the rate that the host has kept.
    pub(super) fn least_share(&self) -> f64 {
        self.least_share
    }

    /// By how much the end comes later than the rate alone says, because of stalls.
    pub(super) fn delayed_ns(&self) -> u64 {
        self.delayed_ns
    }

    /// A message of this time was published now. Returns how late that was.
    pub(super) fn published(&mut self, bag_ns: u64, now_ns: u64) -> u64 {
        let due_ns = self.due_ns(bag_ns);
        let late_ns = now_ns.saturating_sub(due_ns);
        let window_ns = now_ns.saturating_sub(self.since.1);
        if late_ns > BEHIND_NS {
            if self.was_late && window_ns < WINDOW_NS {
                let kept = bag_ns.saturating_sub(self.since.0) as f64 / window_ns.max(1) as f64;
                let share = kept / self.rate * HEADROOM;
                self.share = share.clamp(SHARE_MIN, self.share);
                self.least_share = self.least_share.min(self.share);
            }
            self.delayed_ns += late_ns;
            self.anchor(bag_ns, now_ns);
            self.was_late = true;
        } else if window_ns >= WINDOW_NS {
            // It keeps up: perhaps also at a higher rate.
            self.anchor(bag_ns, due_ns);
            self.was_late &= self.share < 1.0;
            self.share = (self.share * GROWTH).min(1.0);
        }
        late_ns
    }

    fn anchor(&mut self, bag_ns: u64, host_ns: u64) {
        (self.bag_ns, self.host_ns) = (bag_ns, host_ns);
        self.since = (bag_ns, host_ns);
    }
}

/// What is not made up any more.
const BEHIND_NS: u64 = 50_000_000;
/// Two stalls within this time are no accident; after it without a stall, the share grows.
const WINDOW_NS: u64 = 1_000_000_000;
/// Of the rate that was kept, so that there is time left.
const HEADROOM: f64 = 0.95;
const GROWTH: f64 = 1.25;
const SHARE_MIN: f64 = 1e-6;

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn begun(rate: f64) -> Timeline {
        let mut timeline = Timeline::new(rate);
        timeline.seek(1_000 * MS, 50 * MS);
        timeline
    }

    #[test]
    fn times_run_by_the_rate() {
        let mut timeline = begun(2.0);
        assert_eq!(timeline.due_ns(1_010 * MS), 55 * MS);
        assert_eq!(timeline.bag_ns(55 * MS), 1_010 * MS);
        timeline.set_rate(0.5, 55 * MS);
        assert_eq!(timeline.due_ns(1_011 * MS), 57 * MS);
        assert_eq!(timeline.due_ns(3), 55 * MS, "what is past is due at once");
        timeline.set_paused(true, 57 * MS);
        assert_eq!(timeline.bag_ns(900 * MS), 1_011 * MS);
        timeline.set_paused(false, 900 * MS);
        assert_eq!(timeline.due_ns(1_012 * MS), 902 * MS);
    }

    #[test]
    fn a_day_at_an_odd_rate_is_exact() {
        let timeline = begun(0.3);
        let day = 24 * 3600 * 1_000 * MS;
        let due = timeline.due_ns(1_000 * MS + day);
        assert!(due.abs_diff(50 * MS + day / 3 * 10) < 1_000, "{due}");
    }

    #[test]
    fn a_little_lateness_is_made_up() {
        let mut timeline = begun(1.0);
        assert_eq!(timeline.published(1_000 * MS, 90 * MS), 40 * MS);
        assert_eq!(timeline.due_ns(1_100 * MS), 150 * MS);
        assert_eq!((timeline.delayed_ns(), timeline.least_share()), (0, 1.0));
    }

    #[test]
    fn one_stall_moves_the_schedule_and_makes_no_burst() {
        let mut timeline = begun(1.0);
        assert_eq!(timeline.published(1_000 * MS, 2_050 * MS), 2_000 * MS);
        assert_eq!(timeline.due_ns(1_010 * MS), 2_060 * MS);
        assert_eq!((timeline.delayed_ns(), timeline.least_share()), (2_000 * MS, 1.0));
    }

    /// Messages of 10 and of 1 ms in turn, each of which takes 2 ms to publish.
    #[test]
    fn a_host_that_cannot_keep_up_keeps_the_proportions() {
        let mut timeline = begun(10.0);
        let (mut now, mut bag) = (50 * MS, 1_000 * MS);
        let mut gaps = Vec::new();
        for number in 0..5_000_u64 {
            bag += if number % 2 == 0 { 30 * MS } else { 20 * MS };
            let due = timeline.due_ns(bag);
            let begin = now.max(due);
            timeline.published(bag, begin);
            gaps.push(begin - now.min(begin));
            now = begin + 4 * MS;
        }
        // 25 ms of the recording in 4 ms: a rate of 6.25 of the 10.
        let share = timeline.least_share();
        assert!((0.3..0.66).contains(&share), "{share}");
        // Not back to back: most messages wait for their time.
        let waited = gaps.iter().filter(|gap| **gap > 0).count();
        assert!(waited > gaps.len() / 3, "{waited} of {}", gaps.len());
    }

    #[test]
    fn the_rate_recovers() {
        let mut timeline = begun(1.0);
        timeline.published(1_000 * MS, 200 * MS);
        timeline.published(1_100 * MS, 400 * MS);
        assert!(timeline.share < 0.6, "{timeline:?}");
        let mut bag = 1_100 * MS;
        for _ in 0..20_000 {
            bag += MS;
            let due = timeline.due_ns(bag);
            timeline.published(bag, due);
        }
        assert_eq!(timeline.share, 1.0);
    }
}
