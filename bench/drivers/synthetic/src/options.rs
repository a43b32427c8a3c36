//! The scenario's `[options.synthetic]` table.

use myelin_bench_kit::clock::{DRIFT_PPM_MAX, Shift};
use myelin_bench_kit::protocol::{Prepare, Role};
use myelin_bench_kit::{Clock, Error, clock};
use serde::Deserialize;
use serde_json::{Map, Value};

/// The clock of the simulation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Time {
    /// A clock that jumps: delays are exact and a run takes no real time.
    #[default]
    Virtual,
    /// `CLOCK_MONOTONIC`: delays are spun through, and only ever longer than requested.
    Real,
}

/// The faults to inject. `…_every = n` selects every n-th measured message, 0 none; the warm-up has
/// no faults.
///
/// Each message has one [`Fate`](crate::Fate): the first of `lose`, `reorder`, `duplicate` and
/// `corrupt` that selects it. A stall makes any message that is answered in time slower.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// The clock of the simulation; across hosts always the real one.
    pub clock: Time,
    /// Across hosts: how far the clock of pong's host was ahead of `CLOCK_MONOTONIC` when the
    /// latter began, in microseconds; negative for behind.
    pub clock_offset_us: f64,
    /// Across hosts: the drift of that clock since then, in microseconds a second. Both values are
    /// the same for all processes of pong's host, and known without communication.
    pub clock_drift_ppm: f64,
    /// The quantile function of the round trip as `[quantile, microseconds]` points from 0 to 1,
    /// both ascending, linear in between. In a stream it describes the time from the stamp until
    /// the take has returned. With a given number of messages n, the injected delays are its values
    /// at (i + 0.5) / n in random order, so their distribution is exact. Otherwise they are drawn
    /// independently. Messages of the warm-up take the median.
    pub delay_us: Vec<[f64; 2]>,
    /// How much longer a message of each topic of a recording takes, in microseconds; topics beyond
    /// the list take no longer.
    pub topic_us: Vec<f64>,
    /// How much longer the last message takes than the first, in per cent, with an even increase: a
    /// run that never settles. Needs a given number of messages; the warm-up is not affected.
    pub drift_percent: f64,
    /// Messages that take `stall_ms` longer. In a stream the publish call takes longer, so that the
    /// following messages are sent late.
    pub stall_every: u64,
    /// The additional time, in milliseconds.
    pub stall_ms: f64,
    /// Messages that are never answered.
    pub lose_every: u64,
    /// Messages whose answer misses ping's time limit. It arrives right after the answer to the
    /// next message if that one is in time, otherwise half a time limit late.
    pub reorder_every: u64,
    /// Messages that are answered twice.
    pub duplicate_every: u64,
    /// Messages with a damaged answer: a bit is flipped; if the payload is too short for a stamp, a
    /// byte is added.
    pub corrupt_every: u64,
    /// The part of the delay that the publish call takes, in nanoseconds.
    pub write_ns: u64,
    /// The time that each subscriber adds to the publish call, in nanoseconds; only for publish
    /// runs.
    pub write_per_subscriber_ns: u64,
    /// The part of the delay that the take takes, in nanoseconds.
    pub read_ns: u64,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            clock: Time::Virtual,
            clock_offset_us: 0.0,
            clock_drift_ppm: 0.0,
            delay_us: DELAY_US.to_vec(),
            topic_us: Vec::new(),
            drift_percent: 0.0,
            stall_every: 0,
            stall_ms: 0.0,
            lose_every: 0,
            reorder_every: 0,
            duplicate_every: 0,
            corrupt_every: 0,
            write_ns: 0,
            write_per_subscriber_ns: 0,
            read_ns: 0,
        }
    }
}

impl Options {
    /// Reads the options of a run. An error names the key that causes it.
    pub fn of(prepare: &Prepare) -> Result<Self, Error> {
        // One key at a time, because a type error does not name its key.
        for (key, value) in &prepare.options {
            let alone = Map::from_iter([(key.clone(), value.clone())]);
            parse(alone).map_err(|text| Error::new(format!("{key}: {text}")).key(key))?;
        }
        let options = parse(prepare.options.clone()).map_err(Error::new)?;
        options.check(prepare.reply_timeout_ns)?;
        if options.drift_percent > 0.0 && prepare.messages == 0 {
            let text = "drift_percent: the run has no number of messages";
            return Err(Error::new(text).remedy("set messages").key("drift_percent"));
        }
        Ok(options)
    }

    /// The value of the quantile function at `quantile`, between 0 and 1, in nanoseconds.
    pub fn delay_ns_at(&self, quantile: f64) -> u64 {
        let above = self.delay_us.partition_point(|[at, _]| *at < quantile);
        let above = above.clamp(1, self.delay_us.len() - 1);
        let ([from, low_us], [to, high_us]) = (self.delay_us[above - 1], self.delay_us[above]);
        let share = ((quantile - from) / (to - from)).clamp(0.0, 1.0);
        ((low_us + share * (high_us - low_us)) * 1e3).round() as u64
    }

    /// The clock of the simulation, starting now.
    pub fn clock(&self) -> Clock {
        match self.clock {
            Time::Virtual => Clock::virtual_at(clock::monotonic_ns()),
            Time::Real => Clock::Monotonic,
        }
    }

    /// The difference of the clock of pong's host from `CLOCK_MONOTONIC`, across hosts.
    pub fn shift(&self) -> Result<Shift, Error> {
        let (offset_us, drift_ppm) = (self.clock_offset_us, self.clock_drift_ppm);
        if !(-OFFSET_US_MAX..=OFFSET_US_MAX).contains(&offset_us) {
            let text = format!("clock_offset_us: {offset_us} is out of range");
            let remedy = format!("use {} to {OFFSET_US_MAX}", -OFFSET_US_MAX);
            return Err(Error::new(text).remedy(remedy).key("clock_offset_us"));
        }
        let shift = Shift::new((offset_us * 1e3).round() as i64, drift_ppm).ok_or_else(|| {
            let text = format!("clock_drift_ppm: {drift_ppm} is out of range");
            let remedy = format!("use {} to {DRIFT_PPM_MAX}", -DRIFT_PPM_MAX);
            Error::new(text).remedy(remedy).key("clock_drift_ppm")
        })?;
        if shift.apply(clock::monotonic_ns()) == 0 {
            let text = format!("clock_offset_us: {offset_us} is before this host was started");
            return Err(Error::new(text).remedy("use a positive one").key("clock_offset_us"));
        }
        Ok(shift)
    }

    /// The clock of the processes of `prepare`, across hosts.
    pub fn clock_across(&self, prepare: &Prepare) -> Result<Clock, Error> {
        let is_pongs =
            prepare.role == Role::Pong || prepare.role == Role::Clock && prepare.index > 0;
        Ok(if is_pongs { Clock::Shifted(self.shift()?) } else { Clock::Monotonic })
    }

    /// Duration of a publish call without answers.
    pub fn call_ns(&self, prepare: &Prepare) -> u64 {
        self.write_ns + self.write_per_subscriber_ns * u64::from(prepare.subscribers)
    }

    /// The factor of a message's delay when `part` of the run is done, 0 to 1.
    pub fn drift_at(&self, part: f64) -> f64 {
        1.0 + self.drift_percent / 100.0 * part
    }

    /// How much longer a message of `topic` takes.
    pub fn topic_ns(&self, topic: u32) -> u64 {
        let us = self.topic_us.get(topic as usize).copied().unwrap_or(0.0);
        (us * 1e3).round() as u64
    }

    /// How much longer a stalled message takes.
    pub fn stall_ns(&self) -> u64 {
        (self.stall_ms * 1e6).round() as u64
    }

    fn check(&self, reply_timeout_ns: u64) -> Result<(), Error> {
        if !is_quantile_function(&self.delay_us) {
            return Err(Error::new(
                "delay_us: expected [quantile, microseconds] points, quantiles rising from 0 to 1, \
                 delays not falling",
            )
            .remedy("for instance [[0, 10], [0.5, 20], [1, 500]]")
            .key("delay_us"));
        }
        self.shift()?;
        if !(0.0..1e9).contains(&self.stall_ms) {
            let text = format!("stall_ms: {} is not a duration", self.stall_ms);
            return Err(Error::new(text).key("stall_ms"));
        }
        if let Some(us) = self.topic_us.iter().find(|us| !(0.0..1e9).contains(*us)) {
            return Err(Error::new(format!("topic_us: {us} is not a duration")).key("topic_us"));
        }
        if !(0.0..=DRIFT_PERCENT_MAX).contains(&self.drift_percent) {
            let text = format!("drift_percent: {} is out of range", self.drift_percent);
            let remedy = format!("use 0 to {DRIFT_PERCENT_MAX}");
            return Err(Error::new(text).remedy(remedy).key("drift_percent"));
        }
        let (write_ns, read_ns, least_ns) = (self.write_ns, self.read_ns, self.delay_ns_at(0.0));
        if write_ns.saturating_add(read_ns) > least_ns {
            let text = format!(
                "write_ns, read_ns: {write_ns} ns and {read_ns} ns are longer than the shortest \
                 delay, {least_ns} ns"
            );
            return Err(Error::new(text).key(if read_ns > 0 { "read_ns" } else { "write_ns" }));
        }
        let longest_ns = self.delay_ns_at(1.0) as f64 * self.drift_at(1.0);
        let most_ns = longest_ns as u64 + self.stall_ns();
        if most_ns >= reply_timeout_ns {
            let text = format!(
                "delay_us, stall_ms: answers of up to {most_ns} ns miss the limit of \
                 {reply_timeout_ns} ns"
            );
            let key = if self.stall_ns() > 0 { "stall_ms" } else { "delay_us" };
            return Err(Error::new(text).remedy("use lose_every or reorder_every").key(key));
        }
        Ok(())
    }
}

fn parse(options: Map<String, Value>) -> Result<Options, String> {
    serde_json::from_value(Value::Object(options)).map_err(|error| error.to_string())
}

fn is_quantile_function(points: &[[f64; 2]]) -> bool {
    let ends = points.first().zip(points.last());
    ends.is_some_and(|(first, last)| first[0] == 0.0 && first[1] >= 0.0 && last[0] == 1.0)
        && points.iter().all(|[_, us]| us.is_finite() && *us < 1e12)
        && points.windows(2).all(|pair| pair[0][0] < pair[1][0] && pair[0][1] <= pair[1][1])
}

const DRIFT_PERCENT_MAX: f64 = 1_000.0;
/// Four days.
const OFFSET_US_MAX: f64 = 4.0 * 86_400e6;
/// The default: most delays are about ten microseconds, with a tail.
const DELAY_US: [[f64; 2]; 6] =
    [[0.0, 10.0], [0.5, 20.0], [0.9, 40.0], [0.99, 80.0], [0.999, 200.0], [1.0, 500.0]];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quantile_function_is_linear_between_its_points() {
        let options = Options::default();
        for [quantile, us] in DELAY_US {
            assert_eq!(options.delay_ns_at(quantile), (us * 1e3) as u64);
        }
        assert_eq!(options.delay_ns_at(0.25), 15_000);
        assert_eq!(options.delay_ns_at(0.7), 30_000);
    }

    #[test]
    fn an_invalid_quantile_function_is_refused() {
        let wrong: [&[[f64; 2]]; 6] = [
            &[],
            &[[0.0, 1.0]],
            &[[0.1, 1.0], [1.0, 2.0]],
            &[[0.0, 1.0], [0.9, 2.0]],
            &[[0.0, 2.0], [1.0, 1.0]],
            &[[0.0, 1.0], [0.5, f64::NAN], [1.0, 2.0]],
        ];
        for points in wrong {
            let options = Options { delay_us: points.to_vec(), ..Options::default() };
            assert_eq!(options.check(u64::MAX).unwrap_err().key, "delay_us", "{points:?}");
        }
    }

    #[test]
    fn impossible_times_are_reported_with_their_key() {
        let whole = Options::default;
        let refused = [
            (Options { write_ns: 10_001, ..whole() }, "write_ns"),
            (Options { write_ns: 5_001, read_ns: 5_000, ..whole() }, "read_ns"),
            (Options { stall_ms: 2.0, ..whole() }, "stall_ms"),
            (Options { stall_ms: -1.0, ..whole() }, "stall_ms"),
            (Options { delay_us: vec![[0.0, 1.0], [1.0, 1000.0]], ..whole() }, "delay_us"),
            (Options { drift_percent: 100.0, ..whole() }, "delay_us"),
            (Options { drift_percent: -1.0, ..whole() }, "drift_percent"),
            (Options { clock_offset_us: 1e15, ..whole() }, "clock_offset_us"),
            (Options { clock_drift_ppm: 1e4, ..whole() }, "clock_drift_ppm"),
        ];
        for (options, key) in refused {
            assert_eq!(options.check(1_000_000).unwrap_err().key, key, "{options:?}");
        }
        let write_and_read = Options { write_ns: 5_000, read_ns: 5_000, ..whole() };
        assert!(write_and_read.check(1_000_000).is_ok());
    }
}
