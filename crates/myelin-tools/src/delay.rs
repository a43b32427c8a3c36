//! How old samples are: from the stamp in a sample to its publication, from there to the wake-up of
//! a subscriber, and from there to its take. Does no input or output.

use std::collections::VecDeque;

use hdrhistogram::Histogram;

use crate::spread::{Spread, histogram, record};

/// The delays of one topic: those of a sliding window, and the totals.
#[derive(Debug)]
pub struct Delays {
    window_ns: u64,
    room: usize,
    seen: VecDeque<(u64, Parts)>,
    totals: [Histogram<u32>; PARTS],
    samples: u64,
    early: u64,
    numbers: Vec<u64>,
}

/// The delay of one sample, in nanoseconds; `None` for what is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// From the stamp in the sample to its publication. Negative for a stamp of the future.
    pub stamp_to_publish: Option<i64>,
    /// From the publication until the subscriber's thread ran. 0 if it ran already.
    pub publish_to_wake: Option<u64>,
    /// From then until the thread had the sample.
    pub wake_to_take: Option<u64>,
}

/// What is known of the delays in a span of time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DelayReport {
    /// The sum of the parts that are known.
    pub whole: Option<Spread>,
    /// See [`Parts::stamp_to_publish`]. Stamps of the future count as 0.
    pub stamp_to_publish: Option<Spread>,
    /// See [`Parts::publish_to_wake`].
    pub publish_to_wake: Option<Spread>,
    /// See [`Parts::wake_to_take`].
    pub wake_to_take: Option<Spread>,
    /// How many samples.
    pub samples: u64,
    /// How many of them had a stamp later than their publication: two clocks.
    pub early: u64,
}

impl Delays {
    /// No samples. Keeps those of the last `window_ns`, and at most `room` of them.
    pub fn new(window_ns: u64, room: usize) -> Delays {
        let totals = std::array::from_fn(|_| histogram());
        let (seen, numbers) = (VecDeque::new(), Vec::new());
        Delays { window_ns, room: room.max(1), seen, totals, samples: 0, early: 0, numbers }
    }

    /// Adds a sample that was seen at `now_ns`.
    pub fn add(&mut self, parts: Parts, now_ns: u64) {
        self.samples += 1;
        self.early += u64::from(parts.is_early());
        for (total, part) in self.totals.iter_mut().zip(parts.all()) {
            part.into_iter().for_each(|part| record(total, part));
        }
        if self.seen.len() == self.room {
            self.seen.pop_front();
        }
        self.seen.push_back((now_ns, parts));
    }

    /// The window that ends now.
    pub fn report(&mut self, now_ns: u64) -> DelayReport {
        let from_ns = now_ns.saturating_sub(self.window_ns);
        while self.seen.front().is_some_and(|(at_ns, _)| *at_ns < from_ns) {
            self.seen.pop_front();
        }
        let numbers = &mut self.numbers;
        let spreads = std::array::from_fn(|at| {
            numbers.clear();
            numbers.extend(self.seen.iter().filter_map(|(_, parts)| parts.all()[at]));
            Spread::of(numbers)
        });
        let early = self.seen.iter().filter(|(_, it)| it.is_early()).count() as u64;
        DelayReport::new(spreads, self.seen.len() as u64, early)
    }

    /// Everything since it began.
    pub fn total(&self) -> DelayReport {
        let spreads = self.totals.each_ref().map(Spread::of_histogram);
        DelayReport::new(spreads, self.samples, self.early)
    }
}

impl DelayReport {
    fn new(spreads: [Option<Spread>; PARTS], samples: u64, early: u64) -> DelayReport {
        let [whole, stamp_to_publish, publish_to_wake, wake_to_take] = spreads;
        DelayReport { whole, stamp_to_publish, publish_to_wake, wake_to_take, samples, early }
    }
}

impl Parts {
    /// The parts of a subscriber that ran at `wake_ns` and had the sample at `taken_ns`.
    pub fn of_take(published_ns: Option<u64>, wake_ns: u64, taken_ns: u64) -> Parts {
        let Some(published_ns) = published_ns else { return Parts::default() };
        // A sample that was published while the thread ran did not wait for it.
        let ran_ns = wake_ns.max(published_ns);
        Parts {
            publish_to_wake: Some(ran_ns - published_ns),
            wake_to_take: Some(taken_ns.saturating_sub(ran_ns)),
            stamp_to_publish: None,
        }
    }

    fn is_early(&self) -> bool {
        self.stamp_to_publish.is_some_and(|it| it < 0)
    }

    /// The sum, and the parts.
    fn all(&self) -> [Option<u64>; PARTS] {
        let stamp = self.stamp_to_publish.map(|it| it.max(0) as u64);
        let parts = [stamp, self.publish_to_wake, self.wake_to_take];
        let known = parts.iter().flatten().copied().reduce(u64::saturating_add);
        [known, parts[0], parts[1], parts[2]]
    }
}

/// A clock of this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StampClock {
    /// The date, as ROS 2 stamps: `CLOCK_REALTIME`.
    Date,
    /// That of [`myelin::now`]: `CLOCK_MONOTONIC`.
    Monotonic,
}

impl StampClock {
    /// The clock of a stamp, by its distance from the time of both clocks; `None` for neither: a
    /// simulated time, or that of another host or day.
    pub fn of(stamp_ns: i64, date_ns: u64, monotonic_ns: u64) -> Option<StampClock> {
        let distance = |now_ns: u64| now_ns.abs_diff(stamp_ns.max(0) as u64);
        let (date, monotonic) = (distance(date_ns), distance(monotonic_ns));
        let nearest = if date <= monotonic { StampClock::Date } else { StampClock::Monotonic };
        (date.min(monotonic) <= DISTANCE_NS_MAX).then_some(nearest)
    }

    /// Its name, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            StampClock::Date => "realtime",
            StampClock::Monotonic => "monotonic",
        }
    }
}

/// The sum, and three parts.
const PARTS: usize = 4;
/// An hour: a stamp that is further from a clock is not of this clock.
const DISTANCE_NS_MAX: u64 = 3_600_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_take_is_split_at_the_wake_up() {
        let waited = Parts::of_take(Some(100), 130, 150);
        assert_eq!((waited.publish_to_wake, waited.wake_to_take), (Some(30), Some(20)));
        let came_meanwhile = Parts::of_take(Some(140), 130, 150);
        assert_eq!(came_meanwhile.publish_to_wake, Some(0));
        assert_eq!(came_meanwhile.wake_to_take, Some(10));
        let future = Parts::of_take(Some(900), 130, 150);
        assert_eq!((future.publish_to_wake, future.wake_to_take), (Some(0), Some(0)));
        assert_eq!(Parts::of_take(None, 1, 2), Parts::default());
    }

    #[test]
    fn the_parts_of_a_window_and_of_all() {
        let mut delays = Delays::new(1_000, 100);
        for at in 0..200 {
            let stamp_to_publish = Some(if at == 199 { -5 } else { 50 });
            delays
                .add(Parts { stamp_to_publish, ..Parts::of_take(Some(at), at + 10, at + 30) }, at);
        }
        let window = delays.report(1_150);
        assert_eq!((window.samples, window.early), (50, 1), "those since 150");
        let spread = |it: Option<Spread>| it.map(|it| (it.min, it.p50, it.max)).unwrap();
        assert_eq!(spread(window.whole), (30, 80, 80));
        assert_eq!(spread(window.publish_to_wake), (10, 10, 10));
        let total = delays.total();
        assert_eq!((total.samples, total.early), (200, 1));
        assert_eq!(spread(total.stamp_to_publish), (0, 50, 50));
        assert_eq!(delays.report(u64::MAX), DelayReport::default());
    }

    #[test]
    fn a_stamp_belongs_to_the_clock_that_it_is_near() {
        let (date_ns, monotonic_ns) = (1_790_000_000_000_000_000, 5_000_000_000_000_000);
        let of = |stamp_ns| StampClock::of(stamp_ns, date_ns, monotonic_ns);
        assert_eq!(of(date_ns as i64 - 1_000_000), Some(StampClock::Date));
        assert_eq!(of(monotonic_ns as i64 + 1_000_000), Some(StampClock::Monotonic));
        for other in [0, -1, 12_000_000_000, i64::MAX, i64::MIN] {
            assert_eq!(of(other), None);
        }
    }
}
