//! The rate of one publisher, from the sequence and the time that it gives each sample itself. So it
//! is the publisher's rate, and not that of the tool: a sample that the tool has missed still
//! counts. Does no input or output.

use std::collections::VecDeque;

use hdrhistogram::Histogram;
use myelin::ObservedHeader;

use crate::spread::{Spread, histogram, record};

/// The samples of one publisher: those of a sliding window, and the totals.
#[derive(Debug)]
pub struct Rate {
    window_ns: u64,
    room: usize,
    seen: VecDeque<Seen>,
    /// How many samples there were at each report in the window.
    counts: VecDeque<Count>,
    begin: Count,
    first: Option<Seen>,
    /// Samples before the first that the tool has missed.
    missed_before: u64,
    samples_seen: u64,
    bytes_seen: u64,
    periods: Histogram<u32>,
    sizes: Histogram<u32>,
    has_times: bool,
    numbers: Vec<u64>,
}

/// What is known of a publisher in a span of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// From the first to the last sample; without times, between two looks.
    pub span_ns: u64,
    /// Samples published in it.
    pub samples: u64,
    /// Samples among them that the tool did not see: their publisher had overwritten them before it
    /// looked. They count in the rate, and not in the periods.
    pub missed: u64,
    /// Samples a second; `None` for fewer than two samples, and while nothing comes.
    pub rate_hz: Option<f64>,
    /// Nanoseconds between two samples that follow each other. `None` if the publisher adds no
    /// timestamps.
    pub period: Option<Spread>,
    /// Periods of more than twice the median.
    pub gaps: u64,
    /// Bytes a second; those of missed samples are estimated by the mean.
    pub bytes_per_s: Option<f64>,
    /// Bytes of a sample.
    pub size: Option<Spread>,
    /// How long no sample has come, if that is far longer than usual.
    pub silent_ns: Option<u64>,
    /// Whether the publisher adds timestamps. Otherwise the rate comes from its count of samples.
    pub has_times: bool,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    sequence: u64,
    /// When it was published; if that is not known, when it was seen.
    at_ns: u64,
    length: u64,
}

#[derive(Clone, Copy, Debug)]
struct Count {
    at_ns: u64,
    published: u64,
}

impl Rate {
    /// A publisher that has published so many samples at `now_ns`. Keeps the samples of the last
    /// `window_ns`, and at most `room` of them.
    pub fn new(window_ns: u64, room: usize, now_ns: u64, published: u64) -> Rate {
        let begin = Count { at_ns: now_ns, published };
        Rate {
            window_ns,
            room: room.max(2),
            seen: VecDeque::new(),
            counts: VecDeque::from([begin]),
            begin,
            first: None,
            missed_before: 0,
            samples_seen: 0,
            bytes_seen: 0,
            periods: histogram(),
            sizes: histogram(),
            has_times: true,
            numbers: Vec::new(),
        }
    }

    /// A sample was seen at `now_ns`.
    pub fn add(&mut self, header: &ObservedHeader, now_ns: u64) {
        let ObservedHeader { sequence, published_ns, length, .. } = *header;
        self.has_times = published_ns != 0;
        let at_ns = if self.has_times { published_ns } else { now_ns };
        let seen = Seen { sequence, at_ns, length };
        if let Some(last) = self.seen.back()
            && let Some(period_ns) = last.period_to(&seen).filter(|_| self.has_times)
        {
            record(&mut self.periods, period_ns);
        }
        record(&mut self.sizes, length);
        if self.first.is_none() {
            self.first = Some(seen);
            self.missed_before = header.overwritten_before;
        }
        self.samples_seen += 1;
        self.bytes_seen = self.bytes_seen.saturating_add(length);
        if self.seen.len() >= self.room {
            self.seen.pop_front();
        }
        self.seen.push_back(seen);
    }

    /// Less room for the window, if there are many publishers.
    pub fn set_room(&mut self, room: usize) {
        self.room = room.max(2);
        let excess = self.seen.len().saturating_sub(self.room);
        self.seen.drain(..excess);
    }

    /// The window that ends now, at which its publisher has published so many samples.
    pub fn report(&mut self, now_ns: u64, published: u64) -> Report {
        let from_ns = now_ns.saturating_sub(self.window_ns);
        while self.seen.len() > 2 && self.seen[0].at_ns < from_ns {
            self.seen.pop_front();
        }
        while self.counts.len() > 1 && self.counts[1].at_ns <= from_ns {
            self.counts.pop_front();
        }
        let now = Count { at_ns: now_ns, published };
        let mut numbers = std::mem::take(&mut self.numbers);
        numbers.clear();
        let pairs = self.seen.iter().zip(self.seen.iter().skip(1));
        numbers.extend(pairs.filter_map(|(a, b)| a.period_to(b)).filter(|_| self.has_times));
        let period = Spread::of(&mut numbers);
        let is_gap = |it: &&u64| period.is_some_and(|period| **it > period.p50.saturating_mul(2));
        let gaps = numbers.iter().filter(is_gap).count() as u64;
        numbers.clear();
        numbers.extend(self.seen.iter().map(|it| it.length));
        let size = Spread::of(&mut numbers);
        self.numbers = numbers;
        let bytes = self.seen.iter().fold(0, |sum: u64, it| sum.saturating_add(it.length));
        let seen = self.seen.len() as u64;
        let parts = Report { period, gaps, size, ..Report::default() };
        let first = self.seen.front().copied();
        let report = self.rated(parts, (first, seen, bytes), (self.counts[0], now));
        if self.counts.len() == COUNTS_MAX {
            self.counts.pop_front();
        }
        self.counts.push_back(now);
        report
    }

    /// Everything since it began.
    pub fn total(&self, now_ns: u64, published: u64) -> Report {
        let period = Spread::of_histogram(&self.periods);
        let median = period.map_or(0, |period| period.p50);
        let longest = self.periods.max();
        let gaps = match median.saturating_mul(2).saturating_add(1) {
            from if from <= longest => self.periods.count_between(from, longest),
            _ => 0,
        };
        let size = Spread::of_histogram(&self.sizes);
        let parts = Report { period, gaps, size, ..Report::default() };
        let now = Count { at_ns: now_ns, published };
        let seen = (self.first, self.samples_seen, self.bytes_seen);
        let mut report = self.rated(parts, seen, (self.begin, now));
        report.samples = report.samples.saturating_add(self.missed_before);
        report.missed = report.missed.saturating_add(self.missed_before);
        Report { silent_ns: None, ..report }
    }

    /// Adds rates and counts, from the first sample, how many were seen and their bytes; and from
    /// the counts at both ends.
    fn rated(
        &self,
        parts: Report,
        (first, seen, bytes): (Option<Seen>, u64, u64),
        (from, to): (Count, Count),
    ) -> Report {
        let last = self.seen.back().copied();
        let ends = first.zip(last);
        let passed = ends.map_or(0, |(first, last)| last.sequence.saturating_sub(first.sequence));
        let samples = ends.map_or(0, |_| passed.saturating_add(1));
        let counted = to.published.saturating_sub(from.published);
        let (span_ns, intervals) = match ends {
            Some((first, last)) if self.has_times && passed > 0 => {
                (last.at_ns.saturating_sub(first.at_ns), passed)
            }
            // Of a single sample nothing is known, unless the tool has missed others.
            _ if self.has_times && counted < 2 => (0, 0),
            _ => (to.at_ns.saturating_sub(from.at_ns), counted),
        };
        let rate_hz = (span_ns > 0 && intervals > 0)
            .then(|| intervals as f64 * SECOND_NS as f64 / span_ns as f64);
        let bytes_per_s = rate_hz.map(|rate_hz| rate_hz * bytes as f64 / seen.max(1) as f64);
        let usual_ns = parts.period.map_or(0, |period| period.p50.saturating_mul(2));
        let usual_ns = match rate_hz {
            Some(rate_hz) if parts.period.is_none() => (2.0 * SECOND_NS as f64 / rate_hz) as u64,
            _ => usual_ns,
        };
        let since_ns = last.map_or(self.begin.at_ns, |last| last.at_ns.max(self.begin.at_ns));
        let silent_ns = Some(to.at_ns.saturating_sub(since_ns));
        let silent_ns = silent_ns.filter(|silent_ns| *silent_ns > usual_ns.max(SILENT_NS_MIN));
        Report {
            span_ns,
            samples,
            missed: samples.saturating_sub(seen),
            rate_hz,
            bytes_per_s,
            silent_ns,
            has_times: self.has_times,
            ..parts
        }
    }
}

impl Report {
    /// The rate, unless nothing comes at present.
    pub fn rate_now_hz(&self) -> Option<f64> {
        self.rate_hz.filter(|_| self.silent_ns.is_none())
    }
}

impl Seen {
    /// The time to the next sample, if there is none between them.
    fn period_to(&self, next: &Seen) -> Option<u64> {
        let follows = self.sequence.checked_add(1) == Some(next.sequence);
        follows.then(|| next.at_ns.saturating_sub(self.at_ns))
    }
}

const SECOND_NS: u64 = 1_000_000_000;
/// A shorter silence is not reported.
const SILENT_NS_MIN: u64 = SECOND_NS;
/// How many reports a window remembers.
const COUNTS_MAX: usize = 1_024;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header(sequence: u64, published_ns: u64, length: u64) -> ObservedHeader {
        let mut header = ObservedHeader::default();
        (header.sequence, header.published_ns, header.length) = (sequence, published_ns, length);
        header
    }

    const BEGIN_NS: u64 = 1_000 * SECOND_NS;

    /// The report of the samples with these times, of which the tool saw those that `sees` names.
    fn report(times_ns: &[u64], sees: impl Fn(usize) -> bool) -> (Report, Report) {
        let published = times_ns.len() as u64;
        let mut rate = Rate::new(100 * SECOND_NS, 1 << 14, BEGIN_NS, 0);
        for (at, time_ns) in times_ns.iter().enumerate().filter(|(at, _)| sees(*at)) {
            rate.add(&header(at as u64, *time_ns, 8), u64::MAX);
        }
        let now_ns = *times_ns.last().unwrap();
        (rate.report(now_ns, published), rate.total(now_ns, published))
    }

    #[test]
    fn a_steady_publisher_with_one_gap() {
        let mut times: Vec<u64> = (0..1_000).map(|it| BEGIN_NS + it * 1_000_000).collect();
        times[500..].iter_mut().for_each(|it| *it += 9_000_000);
        let (window, total) = report(&times, |_| true);
        let rate_hz = 999.0 / 1.008;
        assert!((window.rate_hz.unwrap() - rate_hz).abs() < 1e-9, "{window:?}");
        let period = window.period.unwrap();
        assert_eq!((period.count, period.p50, period.p99), (999, 1_000_000, 1_000_000));
        assert_eq!((period.max, window.gaps, window.missed), (10_000_000, 1, 0));
        assert_eq!((total.samples, total.gaps), (1_000, 1));
        assert_eq!(total.rate_hz, window.rate_hz);
        assert!((window.bytes_per_s.unwrap() - 8.0 * rate_hz).abs() < 1e-6);
    }

    #[test]
    fn a_window_slides_and_keeps_two_samples_of_a_slow_publisher() {
        let mut rate = Rate::new(SECOND_NS, 1 << 14, BEGIN_NS, 0);
        for at in 0..50 {
            rate.add(&header(at, BEGIN_NS + at * 100_000_000, 8), 0);
        }
        let window = rate.report(BEGIN_NS + 49 * 100_000_000, 50);
        assert_eq!((window.samples, window.span_ns), (11, SECOND_NS));
        let mut slow = Rate::new(SECOND_NS, 1 << 14, BEGIN_NS, 0);
        slow.add(&header(0, BEGIN_NS, 8), 0);
        slow.add(&header(1, BEGIN_NS + 20 * SECOND_NS, 8), 0);
        let window = slow.report(BEGIN_NS + 35 * SECOND_NS, 2);
        assert_eq!((window.rate_hz, window.silent_ns), (Some(0.05), None));
    }

    #[test]
    fn silence_replaces_an_old_rate() {
        let mut rate = Rate::new(10 * SECOND_NS, 1 << 14, BEGIN_NS, 0);
        let end_ns = BEGIN_NS + 99 * 10_000_000;
        (0..100).for_each(|at| rate.add(&header(at, BEGIN_NS + at * 10_000_000, 8), 0));
        let before = rate.report(end_ns + SECOND_NS / 2, 100);
        assert_eq!((before.silent_ns, before.rate_now_hz()), (None, Some(100.0)));
        let after = rate.report(end_ns + 3 * SECOND_NS, 100);
        assert_eq!((after.silent_ns, after.rate_now_hz()), (Some(3 * SECOND_NS), None));
        let never = Rate::new(SECOND_NS, 2, BEGIN_NS, 7).report(BEGIN_NS + 2 * SECOND_NS, 7);
        assert_eq!((never.silent_ns, never.rate_hz), (Some(2 * SECOND_NS), None));
    }

    #[test]
    fn without_timestamps_the_publishers_count_gives_the_rate() {
        let mut rate = Rate::new(10 * SECOND_NS, 1 << 14, BEGIN_NS, 1_000);
        // The tool sees a few of them, late and all at once.
        (1_090..1_100).for_each(|at| rate.add(&header(at, 0, 8), BEGIN_NS + SECOND_NS));
        let window = rate.report(BEGIN_NS + SECOND_NS, 1_100);
        assert_eq!((window.rate_hz, window.period, window.has_times), (Some(100.0), None, false));
        (1_190..1_200).for_each(|at| rate.add(&header(at, 0, 8), BEGIN_NS + 2 * SECOND_NS));
        assert_eq!(rate.report(BEGIN_NS + 2 * SECOND_NS, 1_200).rate_hz, Some(100.0));
        assert_eq!(rate.total(BEGIN_NS + 2 * SECOND_NS, 1_200).rate_hz, Some(100.0));
        let stopped = rate.report(BEGIN_NS + 5 * SECOND_NS, 1_200);
        assert_eq!(stopped.silent_ns, Some(3 * SECOND_NS));
    }

    #[test]
    fn the_room_is_bounded() {
        let mut rate = Rate::new(u64::MAX, 64, BEGIN_NS, 0);
        (0..1_000).for_each(|at| rate.add(&header(at, BEGIN_NS + at, 8), 0));
        assert_eq!(rate.seen.len(), 64);
        rate.set_room(4);
        assert_eq!(rate.seen.len(), 4);
        let before = rate.counts.capacity();
        for at in 0..5_000 {
            rate.report(BEGIN_NS + at, 1_000);
        }
        assert!(rate.counts.len() <= COUNTS_MAX && before <= COUNTS_MAX);
    }

    proptest! {
        /// Whatever the tool misses between the first and the last sample, the rate is the same, what
        /// it missed is counted, and each period that it reports has happened.
        #[test]
        fn what_the_tool_misses_changes_no_rate(
            periods_ns in prop::collection::vec(1_u64..2_000_000_000, 2..200),
            seen in prop::collection::vec(any::<bool>(), 200),
        ) {
            let mut times = vec![BEGIN_NS];
            periods_ns.iter().for_each(|it| times.push(times.last().unwrap() + it));
            let last = times.len() - 1;
            let sees = |at: usize| at == 0 || at == last || seen[at];
            let misses = (0..=last).filter(|at| !sees(*at)).count() as u64;
            let (whole, whole_total) = report(&times, |_| true);
            let (partial, partial_total) = report(&times, sees);
            let is_short = whole_total.span_ns <= 100 * SECOND_NS;
            if is_short {
                prop_assert_eq!(whole.rate_hz, partial.rate_hz);
                prop_assert_eq!(partial.missed, misses);
            }
            prop_assert_eq!(whole_total.rate_hz, partial_total.rate_hz);
            prop_assert_eq!((whole_total.missed, partial_total.missed), (0, misses));
            if let Some(period) = partial.period {
                for one in [period.min, period.p50, period.p99, period.max] {
                    prop_assert!(periods_ns.contains(&one), "{one} has not happened");
                }
                prop_assert!(!is_short || period.max <= whole.period.unwrap().max);
            }
        }

        /// No header of a hostile publisher makes it panic.
        #[test]
        fn any_headers_give_a_report(
            headers in prop::collection::vec((any::<u64>(), any::<u64>(), any::<u64>()), 0..50),
            now_ns: u64,
            published: u64,
        ) {
            let mut rate = Rate::new(SECOND_NS, 16, BEGIN_NS, 5);
            for (sequence, at_ns, length) in headers {
                rate.add(&header(sequence, at_ns, length), now_ns);
            }
            rate.report(now_ns, published);
            rate.total(now_ns, published);
        }
    }
}
