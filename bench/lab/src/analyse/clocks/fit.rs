//! A stretch of time in which one function of bounded slope fits all exchanges.

use myelin_bench_kit::protocol::Exchange;

use super::{WANDER, lower_ns, upper_ns};

/// One piece of the estimate; the parent module explains it. Times are ns after the first exchange
/// was asked, θ is ns beyond `base_ns`. A double represents such small numbers exactly enough.
#[derive(Clone, Debug)]
pub(super) struct Fit {
    pub(super) begin_ns: u64,
    pub(super) end_ns: u64,
    base_ns: i64,
    /// β, and the bound of its error.
    pub(super) slope: f64,
    pub(super) slope_error: f64,
    upper: Envelope,
    /// Lower bounds, negated.
    lower: Envelope,
}

impl Fit {
    /// Fits `exchanges`, which are in the order of asking. `None` if no such function fits or there
    /// are none.
    pub(super) fn of(exchanges: &[Exchange]) -> Option<Self> {
        let first = exchanges.first()?;
        let begin_ns = first.asked_ns;
        let base_ns = upper_ns(first);
        let (least, most) = slopes(exchanges)?;
        let (slope, slope_error) = ((least + most) / 2.0, (most - least) / 2.0);
        let steepness = slope_error + WANDER;
        let bound = |at_ns: u64, bound_ns: i64| {
            let at = (at_ns - begin_ns) as f64;
            (at, (bound_ns - base_ns) as f64 - slope * at)
        };
        let uppers = exchanges.iter().map(|it| bound(it.asked_ns, upper_ns(it)));
        let lowers = exchanges.iter().map(|it| bound(it.returned_ns, lower_ns(it)));
        let fit = Fit {
            begin_ns,
            end_ns: exchanges.iter().map(|it| it.returned_ns).max()?,
            base_ns,
            slope,
            slope_error,
            upper: Envelope::new(uppers, steepness),
            lower: Envelope::new(lowers.map(|(at, bound)| (at, -bound)), steepness),
        };
        fit.is_consistent().then_some(fit)
    }

    /// See [`ClockMap::offset_at`](super::ClockMap::offset_at).
    pub(super) fn offset_at(&self, at_ns: u64) -> (i64, f64) {
        let at = (at_ns as i64 - self.begin_ns as i64) as f64;
        let (high, low) = (self.upper.at(at), -self.lower.at(at));
        let beyond_ns = self.slope * at + (high + low) / 2.0;
        let error_ns = ((high - low) / 2.0).max(0.0) + ROUNDING_NS;
        (self.base_ns + beyond_ns.round() as i64, error_ns)
    }

    /// θ when pong's clock reads `pong_ns`, from β alone.
    pub(super) fn offset_about(&self, pong_ns: u64) -> i64 {
        let since_ns = pong_ns as i64 - self.base_ns - self.begin_ns as i64;
        let gained_ns = since_ns as f64 * (self.slope / (1.0 + self.slope));
        self.base_ns + gained_ns.round() as i64
    }

    /// Whether the upper bound is nowhere below the lower one. Between the times of two bounds one
    /// envelope is concave and the other convex, so they are nearest to each other at one of these
    /// times.
    fn is_consistent(&self) -> bool {
        let times = self.upper.points.iter().chain(&self.lower.points);
        times.map(|point| point.at).all(|at| self.upper.at(at) + self.lower.at(at) >= -ROUNDING_NS)
    }
}

/// The least and the greatest slope of a line that lies below all upper bounds and above all lower
/// ones; `None` if there is no such line. They differ by at least twice [`WANDER`].
fn slopes(exchanges: &[Exchange]) -> Option<(f64, f64)> {
    let best = best_of_windows(exchanges);
    let (mut least, mut most) = (-SLOPE_MAX, SLOPE_MAX);
    for upper in &best {
        for lower in &best {
            // From the one bound to the other θ has risen by at least this; or, back in time, by at
            // most this.
            let rise = (lower_ns(lower) - upper_ns(upper)) as f64;
            if lower.returned_ns > upper.asked_ns {
                least = least.max(rise / (lower.returned_ns - upper.asked_ns) as f64);
            } else if lower.returned_ns < upper.asked_ns {
                most = most.min(-rise / (upper.asked_ns - lower.returned_ns) as f64);
            }
        }
    }
    let (least, most) = (least - WANDER, most + WANDER);
    (least <= most).then_some((least, most))
}

/// The exchange with the least delay in each window of time.
fn best_of_windows(exchanges: &[Exchange]) -> Vec<Exchange> {
    let (Some(first), Some(last)) = (exchanges.first(), exchanges.last()) else {
        return Vec::new();
    };
    let length_ns = (last.asked_ns - first.asked_ns) / WINDOWS + 1;
    let window = |exchange: &Exchange| (exchange.asked_ns - first.asked_ns) / length_ns;
    let windows = exchanges.chunk_by(|one, other| window(one) == window(other));
    windows.filter_map(|window| window.iter().copied().min_by_key(Exchange::delay_ns)).collect()
}

/// The greatest function with slopes within ±`steepness` that exceeds none of its points.
#[derive(Clone, Debug)]
struct Envelope {
    steepness: f64,
    /// In order of time.
    points: Vec<Point>,
}

#[derive(Clone, Copy, Debug)]
struct Point {
    at: f64,
    /// The minimum over this point and the earlier ones, and over this point and the later ones.
    forward: f64,
    backward: f64,
}

impl Envelope {
    fn new(points: impl Iterator<Item = (f64, f64)>, steepness: f64) -> Self {
        let point = |(at, bound)| Point { at, forward: bound, backward: bound };
        let mut points: Vec<Point> = points.map(point).collect();
        points.sort_by(|one, other| one.at.total_cmp(&other.at));
        for place in 1..points.len() {
            let before = points[place - 1];
            let reached = before.forward + steepness * (points[place].at - before.at);
            points[place].forward = points[place].forward.min(reached);
        }
        for place in (1..points.len()).rev() {
            let behind = points[place];
            let reached = behind.backward + steepness * (behind.at - points[place - 1].at);
            points[place - 1].backward = points[place - 1].backward.min(reached);
        }
        Envelope { steepness, points }
    }

    fn at(&self, at: f64) -> f64 {
        let place = self.points.partition_point(|point| point.at < at);
        let behind = self.points.get(place);
        let behind = behind.map(|point| point.backward + self.steepness * (point.at - at));
        let before = place.checked_sub(1).map(|place| self.points[place]);
        let before = before.map(|point| point.forward + self.steepness * (at - point.at));
        behind.unwrap_or(f64::INFINITY).min(before.unwrap_or(f64::INFINITY))
    }
}

/// Stamps are whole nanoseconds, of a clock that may count in steps of one or two.
const ROUNDING_NS: f64 = 2.0;
/// A small number, because all pairs of windows are compared.
const WINDOWS: u64 = 128;
/// No two clocks differ by more: the kernel slews each by at most 500 parts per million, and quartz
/// is off by some tens.
const SLOPE_MAX: f64 = 1.2e-3;
