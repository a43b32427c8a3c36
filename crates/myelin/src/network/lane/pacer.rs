//! How fast a connection sends. TCP fills the queue of the slowest link on its way, and a command behind
//! an image waits there. A connection that has found such a queue therefore has the kernel send a little
//! slower than the link does, as measured, and in bursts that take the link little time.
//!
//! TCP stays what it is; this limits it. A connection that shares its link does not yield to others for
//! long: a queue that does not get shorter is not its own, and it sends as fast as TCP lets it again.
//!
//! The idea is that of TCP Vegas (Brakmo and Peterson, 1995) and BBR (Cardwell et al., 2016): a round
//! trip that grows is a queue. A pure function of what the kernel says of the connection.

use std::time::{Duration, Instant};

/// What the kernel says of a connection (`TCP_INFO`).
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    pub(super) now: Instant,
    /// Bytes that have been acknowledged since it began.
    pub(super) acknowledged: u64,
    /// For how long it has had bytes that were not acknowledged. The kernel counts it in ticks, of 1 to
    /// 10 ms.
    pub(super) busy: Duration,
    /// The round trip of late, smoothed.
    pub(super) round_trip: Duration,
    /// The shortest round trip.
    pub(super) shortest: Duration,
}

/// Finds the rate of a connection. Rates are in bytes a second.
///
/// ```text
/// Measure ─▶ Drain ─▶ Steady ─▶ Measure, after a while
///              ◀── a queue ──┘
/// ```
#[derive(Debug, Default)]
pub(super) struct Pacer {
    phase: Phase,
    /// What was acknowledged while there was a queue, and in what time: what the slowest link carries.
    carried: Carried,
    /// That rate at the end of the last measurement.
    measured: f64,
    last: Option<Last>,
    /// How long not to limit it after a queue that is not its own.
    rest: Duration,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// Without a limit, from then on.
    Measure(Option<Instant>),
    /// Waits for the end of a queue, with this much of the busy time at its beginning.
    Drain(Duration),
    /// There is no queue, since then.
    Steady(Instant),
}

#[derive(Clone, Copy, Debug, Default)]
struct Carried {
    bytes: f64,
    seconds: f64,
}

/// What was there at the last call.
#[derive(Clone, Copy, Debug)]
struct Last {
    acknowledged: u64,
    busy: Duration,
    has_queue: bool,
}

impl Pacer {
    /// The limit, if there is one.
    pub(super) fn rate(&self) -> Option<f64> {
        match self.phase {
            Phase::Measure(_) => None,
            Phase::Drain(_) => Some(self.carried() * DRAIN),
            Phase::Steady(_) => Some(self.carried() * STEADY),
        }
    }

    /// What is measured with a limit corrects the rate a little at most: if there is no queue, but a
    /// round trip that varies, it is the limit that is measured.
    fn carried(&self) -> f64 {
        self.carried.rate().clamp(self.measured / CORRECTION, self.measured * CORRECTION)
    }

    /// The most bytes to send at once.
    pub(super) fn burst(&self) -> usize {
        self.rate().map_or(usize::MAX, |rate| burst(rate) as usize)
    }

    /// Learns what has become of the bytes since the last call. `is_late` says that samples come faster
    /// than they go. Returns whether the limit has changed.
    pub(super) fn observe(&mut self, progress: Progress, is_late: bool) -> bool {
        let Progress { now, acknowledged, busy, round_trip, shortest } = progress;
        let time = self.last.map_or(Duration::MAX, |last| busy.saturating_sub(last.busy));
        if time < PIECE {
            return false;
        }
        let before = self.rate();
        // The last byte of a burst waits for its first.
        let own = Duration::from_secs_f64(before.map_or(0.0, |rate| burst(rate) / rate));
        let limit = QUEUE.max(shortest).max(own);
        let queue = round_trip.saturating_sub(shortest);
        let has_queue = queue > limit / 2;
        let last = self.last.replace(Last { acknowledged, busy, has_queue });
        let is_steady = matches!(self.phase, Phase::Steady(_));
        if let Some(last) = last.filter(|last| last.has_queue && has_queue && !is_steady) {
            // The link has been busy from one end of this time to the other.
            self.carried.add(acknowledged.saturating_sub(last.acknowledged), time);
        }
        match self.phase {
            Phase::Measure(from) if from.is_some_and(|from| now < from) => {
                self.carried = Carried::default();
            }
            Phase::Measure(_) if self.carried.is_known() => {
                self.measured = self.carried.rate();
                self.phase = Phase::Drain(busy);
            }
            Phase::Measure(_) => {}
            Phase::Drain(_) if !has_queue => {
                self.rest = REST_MIN;
                self.phase = Phase::Steady(now);
            }
            // Slower has not helped: it is the queue of others.
            Phase::Drain(begun) if busy.saturating_sub(begun) > DRAIN_MAX => {
                self.rest = (2 * self.rest).clamp(REST_MIN, REST_MAX);
                self.measure(Some(now + self.rest));
            }
            Phase::Drain(_) => {}
            Phase::Steady(_) if queue > limit => self.phase = Phase::Drain(busy),
            Phase::Steady(since) => {
                let hold = if is_late { HOLD_LATE } else { HOLD };
                if now.saturating_duration_since(since) >= hold {
                    self.measure(None);
                }
            }
        }
        self.rate() != before
    }

    fn measure(&mut self, from: Option<Instant>) {
        (self.phase, self.carried) = (Phase::Measure(from), Carried::default());
    }
}

impl Default for Phase {
    fn default() -> Phase {
        Phase::Measure(None)
    }
}

impl Carried {
    /// Adds to it; what is older counts for less.
    fn add(&mut self, bytes: u64, time: Duration) {
        self.bytes += bytes as f64;
        self.seconds += time.as_secs_f64();
        let part = MEASURED.as_secs_f64() / self.seconds;
        if part < 1.0 {
            (self.bytes, self.seconds) = (self.bytes * part, self.seconds * part);
        }
    }

    fn is_known(&self) -> bool {
        self.seconds > 0.99 * MEASURED.as_secs_f64() && self.bytes > 0.0
    }

    fn rate(&self) -> f64 {
        self.bytes / self.seconds
    }
}

/// The bytes that a link of this rate sends in a short time; at least one large packet or two.
fn burst(rate: f64) -> f64 {
    (rate * BURST.as_secs_f64()).max(BURST_BYTES_MIN)
}

/// A round trip that is longer by this is a queue.
const QUEUE: Duration = Duration::from_micros(250);
/// For how long a command may wait for a burst.
const BURST: Duration = Duration::from_micros(200);
const BURST_BYTES_MIN: f64 = 4096.0;
/// Busy time between two looks at the connection, at least.
const PIECE: Duration = Duration::from_millis(1);
/// For how long there has been a queue, in all, when the rate is known.
const MEASURED: Duration = Duration::from_millis(80);
/// The limit without a queue, and with one, by the rate that the link carries.
const STEADY: f64 = 0.985;
const DRAIN: f64 = 0.9;
const CORRECTION: f64 = 1.05;
/// Busy time in which a queue of its own has gone.
const DRAIN_MAX: Duration = Duration::from_millis(80);
/// From a queue to the next measurement.
const HOLD: Duration = Duration::from_secs(30);
const HOLD_LATE: Duration = Duration::from_millis(100);
/// For how long a connection is not limited, where queues are not its own.
const REST_MIN: Duration = Duration::from_secs(1);
const REST_MAX: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    use super::*;

    /// A link with a queue, a connection with images, and others.
    struct Link {
        rate: f64,
        /// Round trip without a queue.
        round_trip: f64,
        /// A round trip is longer by up to this at random.
        jitter: f64,
        /// Nothing moves for a millisecond, so many times a second.
        stalls: f64,
        stalled_until: f64,
        /// The link takes so many bytes at once after a pause.
        bucket: f64,
        /// Others keep so many bytes in the queue, as TCP does.
        others: f64,
        pacer: Option<Pacer>,
        start: Instant,
        random: StdRng,
        time: f64,
        busy: f64,
        acknowledged: f64,
        smoothed: f64,
        shortest: f64,
        /// Bytes of each image that is not sent, and when it came.
        images: Vec<(f64, f64)>,
        /// The connection's bytes in the queue, and when they came.
        queue: VecDeque<(f64, f64)>,
        own_queue: f64,
        other_queue: f64,
        credit: f64,
        tokens: f64,
    }

    /// What became of some seconds.
    #[derive(Debug, Default)]
    struct Outcome {
        /// Shares of all time with a queue of more than 0.3 ms.
        long_queue: f64,
        /// Time of each image, in s.
        images: Vec<f64>,
    }

    impl Link {
        fn new(rate: f64, is_paced: bool) -> Link {
            Link {
                rate,
                round_trip: 50e-6,
                jitter: 0.0,
                stalls: 0.0,
                stalled_until: 0.0,
                bucket: 0.0,
                others: 0.0,
                pacer: is_paced.then(Pacer::default),
                start: Instant::now(),
                random: StdRng::seed_from_u64(1),
                time: 0.0,
                busy: 0.0,
                acknowledged: 0.0,
                smoothed: 0.0,
                shortest: f64::MAX,
                images: Vec::new(),
                queue: VecDeque::new(),
                own_queue: 0.0,
                other_queue: 0.0,
                credit: 0.0,
                tokens: 0.0,
            }
        }

        fn observe(&mut self) {
            let seconds = Duration::from_secs_f64;
            let progress = Progress {
                now: self.start + seconds(self.time),
                acknowledged: self.acknowledged as u64,
                busy: seconds(self.busy),
                round_trip: seconds(self.smoothed),
                shortest: seconds(self.shortest.min(1.0)),
            };
            let is_late = self.images.len() > 1;
            if let Some(pacer) = &mut self.pacer {
                pacer.observe(progress, is_late);
            }
        }

        /// Runs for some seconds, with an image every `period`.
        fn run(&mut self, seconds: f64, bytes: f64, period: f64) -> Outcome {
            let (mut outcome, mut long, mut steps) = (Outcome::default(), 0, 0);
            let end = self.time + seconds;
            let mut next = self.time;
            let mut observed = self.time;
            while self.time < end {
                if self.time >= next {
                    next += period;
                    self.images.push((bytes, self.time));
                    self.observe();
                }
                let queue = self.own_queue + self.other_queue;
                if self.own_queue > 0.0 || !self.images.is_empty() {
                    self.busy += STEP_S;
                }
                // What leaves is shared as it waits.
                self.tokens =
                    (self.tokens + self.rate * STEP_S).min(self.bucket.max(self.rate * STEP_S));
                if self.random.random::<f64>() < self.stalls * STEP_S {
                    self.stalled_until = self.time + 1e-3;
                }
                let is_stalled = self.time < self.stalled_until;
                let leaves = if is_stalled { 0.0 } else { self.tokens.min(queue) };
                self.tokens -= leaves;
                let own = if queue > 0.0 { leaves * self.own_queue / queue } else { 0.0 };
                self.own_queue -= own;
                self.other_queue -= leaves - own;
                let (mut left, mut came) = (own, None);
                while left > 0.0
                    && let Some((bytes, at)) = self.queue.front_mut()
                {
                    let gone = bytes.min(left);
                    (*bytes, left, came) = (*bytes - gone, left - gone, Some(*at));
                    if *bytes > 0.0 {
                        break;
                    }
                    self.queue.pop_front();
                }
                if let Some(came) = came {
                    let jitter = self.jitter * self.random.random::<f64>();
                    let trip = self.round_trip + (self.time - came) + jitter;
                    self.smoothed += (trip - self.smoothed) / 8.0;
                    self.shortest = self.shortest.min(trip);
                }
                self.acknowledged += own;
                self.other_queue = self.others.max(self.other_queue);
                // TCP has some 300 kB under way, however long the queue.
                let rate = self.pacer.as_ref().and_then(Pacer::rate).unwrap_or(f64::MAX);
                let burst = self.pacer.as_ref().map_or(usize::MAX, Pacer::burst).min(64 << 10);
                self.credit = (self.credit + rate * STEP_S).min(burst as f64);
                let mut room = (300e3 - self.own_queue).min(self.credit).max(0.0);
                let before = self.own_queue;
                while let Some((left, came)) = self.images.first_mut() {
                    let sent = left.min(room);
                    *left -= sent;
                    room -= sent;
                    self.own_queue += sent;
                    self.credit -= sent;
                    if *left > 0.0 {
                        break;
                    }
                    let waits = (self.own_queue + self.other_queue) / self.rate;
                    outcome.images.push(self.time - *came + waits + self.round_trip);
                    self.images.remove(0);
                }
                self.queue.push_back((self.own_queue - before, self.time));
                if self.time - observed > 2e-3 && !self.images.is_empty() {
                    observed = self.time;
                    self.observe();
                }
                long += u32::from((self.own_queue + self.other_queue) / self.rate > 300e-6);
                steps += 1;
                self.time += STEP_S;
            }
            outcome.long_queue = f64::from(long) / f64::from(steps);
            outcome
        }
    }

    fn mean(all: &[f64]) -> f64 {
        all.iter().sum::<f64>() / all.len() as f64
    }

    /// Images at 10 Hz, in the first seconds and then.
    fn images(mut link: Link, bytes: f64) -> Outcome {
        link.run(3.0, bytes, 0.1);
        link.run(20.0, bytes, 0.1)
    }

    #[test]
    fn commands_do_not_wait_behind_images() {
        for (rate, bucket, bytes, most) in [
            (GBIT, 0.0, 10e6, 0.01),
            (GBIT, 125e3, 10e6, 0.01),
            (GBIT, 0.0, 1e6, 0.01),
            (GBIT / 10.0, 0.0, 1e6, 0.1),
        ] {
            let [unpaced, paced] = [false, true]
                .map(|is_paced| images(Link { bucket, ..Link::new(rate, is_paced) }, bytes));
            assert!(unpaced.long_queue > 5.0 * most, "{bytes} at {rate}: {unpaced:?}");
            assert!(paced.long_queue < most, "{bytes} at {rate}: {paced:?}");
            let price = mean(&paced.images) / mean(&unpaced.images);
            assert!(price < 1.03, "{bytes} at {rate}: images take {price} times as long");
        }
    }

    #[test]
    fn a_way_without_a_queue_is_not_limited() {
        let mut link = Link::new(100.0 * GBIT, true);
        link.run(3.0, 10e6, 0.1);
        assert_eq!(link.pacer.unwrap().rate(), None);
    }

    #[test]
    fn a_link_that_changes_is_followed() {
        let mut link = Link::new(GBIT, true);
        link.run(3.0, 1e6, 0.1);
        let fast = mean(&link.run(2.0, 1e6, 0.1).images);
        link.rate = GBIT / 5.0;
        link.run(2.0, 1e6, 0.1);
        let slow = link.run(10.0, 1e6, 0.1);
        assert!(slow.long_queue < 0.02 && mean(&slow.images) < 5.2 * fast, "{slow:?}");
        // Others have gone, or the radio is better. It measures every 30 s.
        link.rate = GBIT;
        link.run(33.0, 1e6, 0.1);
        let again = mean(&link.run(10.0, 1e6, 0.1).images);
        assert!(again < 1.1 * fast, "{again} s, and {fast} before");
    }

    #[test]
    fn samples_that_come_too_fast_are_not_held_up_for_long() {
        let mut link = Link::new(GBIT / 5.0, true);
        link.run(10.0, 1e6, 0.1);
        link.rate = GBIT;
        // More than the limit carries, and less than the link.
        link.run(1.0, 1e6, 0.02);
        let late = link.images.len();
        assert!(late <= 1, "{late} images wait");
    }

    #[test]
    fn others_do_not_starve_it() {
        let share = |is_paced| {
            let mut link = Link::new(GBIT, is_paced);
            link.run(3.0, 10e6, 0.1);
            link.others = 300e3;
            let before = link.acknowledged;
            link.run(10.0, 10e6, 0.01); // always behind
            (link.acknowledged - before) / 10.0 / GBIT
        };
        let (unpaced, paced) = (share(false), share(true));
        assert!((0.4..0.6).contains(&unpaced) && paced > 0.95 * unpaced, "{unpaced}, {paced}");
    }

    /// As on a computer with too few processors.
    #[test]
    fn a_receiver_that_stalls_costs_little() {
        for (stalls, most) in [(10.0, 1.05), (50.0, 1.15)] {
            let link = |is_paced| Link { stalls, ..Link::new(GBIT, is_paced) };
            let [unpaced, paced] = [false, true].map(|is_paced| images(link(is_paced), 7e6));
            let price = mean(&paced.images) / mean(&unpaced.images);
            assert!(price < most, "{stalls}: images take {price} times as long");
            assert!(paced.long_queue < 0.5 * unpaced.long_queue, "{stalls}: {paced:?}");
        }
    }

    #[test]
    fn a_round_trip_that_varies_is_taken_for_a_queue_and_costs_little() {
        for jitter in [0.2e-3, 0.4e-3, 0.6e-3, 0.8e-3] {
            let link = |is_paced| Link { jitter, ..Link::new(GBIT, is_paced) };
            let [unpaced, paced] =
                [false, true].map(|is_paced| mean(&images(link(is_paced), 7e6).images));
            assert!(paced < 1.15 * unpaced, "{jitter}: {paced} s, and {unpaced} without a limit");
        }
    }

    /// As by radio, where a round trip says little of queues.
    #[test]
    fn a_way_whose_time_varies_costs_little() {
        for jitter in [0.2e-3, 1e-3, 4e-3] {
            let link =
                |is_paced| Link { round_trip: 1e-3, jitter, ..Link::new(GBIT / 10.0, is_paced) };
            let [unpaced, paced] =
                [false, true].map(|is_paced| mean(&images(link(is_paced), 5e5).images));
            assert!(paced < 1.1 * unpaced, "{jitter}: {paced} s, and {unpaced} without a limit");
        }
    }

    const STEP_S: f64 = 50e-6;
    const GBIT: f64 = 118.5e6;
}
