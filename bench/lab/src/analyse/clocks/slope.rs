//! Which slopes a line may have that lies below all upper bounds and above all lower ones.

use myelin_bench_kit::protocol::Exchange;

use super::{WANDER, lower_ns, upper_ns};

/// The least and the greatest slope θ may have had; `None` if no function of that kind fits. No less
/// wide than twice [`WANDER`].
pub(super) fn range(exchanges: &[Exchange]) -> Option<(f64, f64)> {
    let best = best_of_windows(exchanges);
    let (mut least, mut most) = (-SLOPE_MAX, SLOPE_MAX);
    for upper in &best {
        for lower in &best {
            // From the one bound to the other θ has risen by so much at least; or, back in time,
            // by so much at most.
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

/// Of each part of the time, the exchange that was least on its way.
fn best_of_windows(exchanges: &[Exchange]) -> Vec<Exchange> {
    let (Some(first), Some(last)) = (exchanges.first(), exchanges.last()) else {
        return Vec::new();
    };
    let length_ns = (last.asked_ns - first.asked_ns) / WINDOWS + 1;
    let window = |exchange: &Exchange| (exchange.asked_ns - first.asked_ns) / length_ns;
    let windows = exchanges.chunk_by(|one, other| window(one) == window(other));
    windows.filter_map(|window| window.iter().copied().min_by_key(Exchange::delay_ns)).collect()
}

/// All pairs of them are looked at.
const WINDOWS: u64 = 128;
/// No two clocks differ more: the kernel slews each by 500 parts per million at most, and quartz errs
/// by some tens.
const SLOPE_MAX: f64 = 1.2e-3;
