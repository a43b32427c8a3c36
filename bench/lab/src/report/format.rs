//! Text forms of quantities, the same in every output format.

use myelin_bench_kit::protocol::{Reliability, Touch, Wait, Workload};

pub(crate) use crate::lists::{count, plural};
use crate::stats::permutation::RATE;
use crate::stats::verdict::{Kind, Ratio, Verdict};
use crate::summary::{Cell, FurtherSubscriber, Params};

/// Microseconds with three significant figures, without unit.
pub(crate) fn us(value: f64) -> String {
    rounded(value, 0, &[99.95, 9.995, 0.0995])
}

/// `value` with `digits` decimals, and one fewer from each of the limits on.
fn rounded(value: f64, digits: usize, limits: &[f64]) -> String {
    if value.is_infinite() {
        return NEVER.to_owned();
    }
    let more = limits.iter().filter(|limit| value.abs() < **limit).count();
    format!("{value:.*}", digits + more)
}

/// Microseconds in at most six characters: `0.54`, `116`, `3144`, or with a unit `91 ms`, `1.2 s`.
pub(super) fn brief_us(value: f64) -> String {
    match value {
        v if v.is_infinite() => NEVER.to_owned(),
        v if v >= 1e6 => format!("{:.1} s", v / 1e6),
        v if v >= 1e4 => format!("{:.0} ms", v / 1e3),
        v => us(v),
    }
}

/// Like [`us`]; a dash for a withheld percentile.
pub(crate) fn us_or_dash(value: Option<f64>) -> String {
    value.map_or_else(|| WITHHELD.to_owned(), us)
}

/// Microseconds as whole nanoseconds; a dash for a withheld value.
pub(super) fn ns_or_dash(us: Option<f64>) -> String {
    match us {
        None => WITHHELD.to_owned(),
        Some(us) if us.is_infinite() => NEVER.to_owned(),
        Some(us) => format!("{:.0}", us * 1e3),
    }
}

/// An interval in microseconds, as nanoseconds: `[88, 95]`.
pub(super) fn interval_ns([low, high]: [f64; 2]) -> String {
    format!("[{:.0}, {:.0}]", low * 1e3, high * 1e3)
}

/// `+1.23 each [1.10, 1.40]`.
pub(super) fn further_subscriber(slope: FurtherSubscriber) -> String {
    let minus = |text: String| text.replace('-', "−");
    let interval = slope.interval_ns.map(|[low, high]| format!(" [{low:.2}, {high:.2}]"));
    minus(format!("{:+.2} each{}", slope.ns, interval.unwrap_or_default()))
}

/// `[88.1, 95.0]`.
pub(super) fn interval_us([low, high]: [f64; 2]) -> String {
    format!("[{}, {}]", us(low), us(high))
}

/// `± 31.2`: the error that clocks may add to a figure.
pub(super) fn plus_minus_us(us: f64) -> String {
    format!("± {}", self::us(us))
}

/// A factor: `1.42×` below ten, `12×` above.
pub(crate) fn factor(value: f64) -> String {
    format!("{}×", factor_digits(value))
}

/// A factor with its interval, if known: `1.42× [1.31, 1.52]`.
pub(super) fn ratio(ratio: Ratio) -> String {
    let bounds = ratio.interval.map(|ends| format!(" {}", factor_interval(ends)));
    factor(ratio.value) + &bounds.unwrap_or_default()
}

/// `[1.31, 1.52]`.
pub(crate) fn factor_interval([low, high]: [f64; 2]) -> String {
    format!("[{}, {}]", factor_digits(low), factor_digits(high))
}

/// A change with its sign: `−47 %`, `+3.1 %`.
pub(crate) fn change_percent(fraction: f64) -> String {
    let percent = (100.0 * fraction).abs();
    let digits = rounded(percent, 0, &[9.95]);
    let sign = match fraction {
        _ if digits == "0.0" => "±",
        f if f < 0.0 => "−",
        _ => "+",
    };
    format!("{sign}{digits} %")
}

/// A fraction of one: `62 %`.
pub(crate) fn share_percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

/// A payload or an amount of memory: `0 B`, `64 KiB`, `6.6 MiB`.
pub(super) fn bytes(value: u64) -> String {
    const KIB: u64 = 1 << 10;
    const MIB: u64 = 1 << 20;
    const GIB: u64 = 1 << 30;
    let (unit, name) = match value {
        0..KIB => return format!("{value} B"),
        KIB..MIB => (KIB, "KiB"),
        MIB..GIB => (MIB, "MiB"),
        _ => (GIB, "GiB"),
    };
    if value.is_multiple_of(unit) {
        format!("{} {name}", value / unit)
    } else {
        format!("{:.1} {name}", value as f64 / unit as f64)
    }
}

/// A rate or a count that may be small or large: `0.42`, `28.3`, `12 345`.
pub(crate) fn amount(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        v if v < 99.95 => rounded(value, 1, &[0.995]),
        _ => count(value.round() as u64),
    }
}

/// `100 Hz`, or `back to back` without a rate.
pub(super) fn rate(rate_hz: Option<f64>) -> String {
    rate_hz.map_or_else(|| "back to back".to_owned(), |hz| format!("{hz} Hz"))
}

/// How a subscriber waits, as an adjective to its system.
pub(super) fn wait(wait: Wait) -> &'static str {
    match wait {
        Wait::Poll => "polls",
        Wait::Block => "blocks",
        Wait::Adaptive => "spins, then blocks",
        Wait::Predictive => "predicts",
        Wait::Callback => "gets callbacks",
        Wait::None => "simulated",
    }
}

/// Like [`wait`]; empty for systems that sleep.
pub(super) fn wait_remark(manner: Wait) -> &'static str {
    match manner {
        Wait::Poll | Wait::Adaptive | Wait::Predictive => wait(manner),
        Wait::Block | Wait::Callback | Wait::None => "",
    }
}

/// The two placements of a bimodal cell: `1.90 same core 62 % | 60.1 cross 38 %`.
pub(super) fn placements(cell: &Cell) -> String {
    let one = |placement: &crate::summary::Placement| {
        format!(
            "{} {} {}",
            us_or_dash(placement.p50()),
            if placement.same_cpu { "same core" } else { "cross" },
            share_percent(placement.share)
        )
    };
    cell.placements.iter().map(one).collect::<Vec<_>>().join(" | ")
}

/// A name from a file, without what a terminal would obey.
pub(super) fn shown(name: &str) -> String {
    let escaped = |it: char| match it.is_control() {
        true => it.escape_default().to_string(),
        false => it.to_string(),
    };
    name.chars().map(escaped).collect()
}

/// A payload, the frame that it holds, or the recording that it is from.
pub(super) fn size(params: &Params) -> String {
    match (&params.frame, &params.recording) {
        (Some(frame), _) => format!("{frame} rgb8"),
        (None, Some(recording)) => shown(recording),
        (None, None) => params.size().map_or_else(|| "size not recorded".to_owned(), bytes),
    }
}

/// CPU in per cent of a core; below ten with two decimals, because most differences between ways of
/// waiting are small.
pub(crate) fn cpu_percent(value: f64) -> String {
    rounded(value, 1, &[9.995])
}

/// A percentage without its sign: `0`, `<0.01`, `0.25`, `12.5`.
pub(super) fn percent(value: f64) -> String {
    match value {
        0.0 => "0".to_owned(),
        v if v < 0.01 => "<0.01".to_owned(),
        v => rounded(v, 1, &[9.995]),
    }
}

/// A figure in this form; a dash if it was not measured.
pub(crate) fn or_dash<T>(value: Option<T>, form: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| WITHHELD.to_owned(), form)
}

/// Memory in millions of bytes: `6.6`, `262`.
pub(crate) fn megabytes(bytes: u64) -> String {
    rounded(bytes as f64 / 1e6, 0, &[99.95])
}

/// The QoS of a system: `best effort, 16`; empty if it is not known.
pub(super) fn qos(params: &Params) -> String {
    let reliability = params.reliability.map(|it| reliability(it).to_owned());
    let depth = params.depth.map(|depth| depth.to_string());
    reliability.into_iter().chain(depth).collect::<Vec<_>>().join(", ")
}

/// A reliability in words.
pub(super) fn reliability(reliability: Reliability) -> &'static str {
    match reliability {
        Reliability::BestEffort => "best effort",
        Reliability::Reliable => "reliable",
    }
}

/// `reached 8 200 of 10 000 messages a second`.
pub(crate) fn reached(reached: f64, asked: f64) -> String {
    format!("reached {} of {} messages a second", amount(reached), amount(asked))
}

/// The parameters that a table cannot show as a column.
pub(super) fn circumstances(topology: &str, workload: Workload, params: &Params) -> String {
    let is_rated = workload != Workload::Startup;
    let place = Some(topology.replace('-', " ")).filter(|_| !params.imported);
    let words = place.into_iter().chain(point(params, [false, is_rated], [&Params::default()]));
    words.chain(touch(params.touch).map(str::to_owned)).collect::<Vec<_>>().join(" · ")
}

/// A parameter point in words. Names come first; size and rate only if they are wanted; numbers of
/// publishers, subscribers and topics only where points differ in them.
pub(super) fn point<'p>(
    params: &Params,
    [is_sized, is_rated]: [bool; 2],
    others: impl IntoIterator<Item = &'p Params>,
) -> Vec<String> {
    let others: Vec<_> = others.into_iter().map(counts).collect();
    let differs = |at: usize| others.iter().any(|it| it[at] != counts(params)[at]);
    let counts = counts(params).into_iter().enumerate().filter(|(at, _)| differs(*at));
    let named = params.module.iter().map(|name| shown(name));
    let (is_sized, is_rated) = (is_sized && params.size().is_some(), is_rated && !params.imported);
    let named = named.chain(is_sized.then(|| size(params)));
    let named = named.chain(is_rated.then(|| rate(params.rate_hz))).chain(params.arrivals.clone());
    let named = named.chain(counts.map(|(_, (number, noun))| plural(number as usize, noun)));
    named.chain(params.load.as_ref().map(|load| format!("beside {load}"))).collect()
}

/// The numbers of publishers, subscribers and topics, with their nouns.
pub(super) fn counts(params: &Params) -> [(u32, &'static str); 3] {
    [(params.publishers, "publisher"), (params.subscribers, "subscriber"), (params.topics, "topic")]
}

/// Whether it is a stream of one publisher to one subscriber on one topic, at an even rate.
pub(super) fn is_one_to_one(workload: Workload, params: &Params) -> bool {
    let is_single = counts(params).iter().all(|(number, _)| *number == 1);
    let is_alone = params.load.is_none();
    workload == Workload::Stream && is_single && is_alone && params.arrivals.is_none()
}

/// What is not done with a message, unless it is the default.
pub(super) fn touch(touch: Touch) -> Option<&'static str> {
    (touch == Touch::Header).then_some("header only: payload neither written nor checked")
}

/// The error rate of all verdicts of `what` together, with the least number of runs behind them and
/// the number of runs from which on a difference can be shown.
pub(crate) fn error_rate(
    what: &str,
    comparisons: usize,
    immaterial: &str,
    [least, asked]: [usize; 2],
) -> String {
    let scarce = match least < asked {
        true => format!(
            " With {}, only the largest differences are significant among so many comparisons; \
             {asked} are enough for all of them.",
            plural(least, "run")
        ),
        false => String::new(),
    };
    format!(
        "If nothing differs, at most {:.0} in 100 {what} show any “worse” or “better”: a step-down \
         permutation test of the runs keeps this family-wise error rate over {}. A change below 2 \
         % or below {immaterial} counts as no difference.{scarce}",
        100.0 * RATE,
        plural(comparisons, "comparison"),
    )
}

fn factor_digits(value: f64) -> String {
    rounded(value, 0, &[99.5, 9.95])
}

/// A percentile above which only lost messages are.
const NEVER: &str = "∞";

/// Replaces a percentile with fewer than ten samples beyond it, and a figure that was not measured.
pub(crate) const WITHHELD: &str = "–";

/// The verdict, up to the name of the reference.
pub(crate) fn outcome(verdict: Verdict) -> String {
    let (found, direction) = match verdict.ratio.value > 1.0 {
        true => (verdict.ratio, "higher"),
        false => (verdict.ratio.inverse(), "lower"),
    };
    let text = ratio(found);
    let doubt = if found.interval.is_some() { "" } else { ", no interval" };
    match verdict.kind {
        Kind::Better | Kind::Worse => format!("{text} {direction} than"),
        Kind::NoDifference => format!("no difference ({text} {direction}) from"),
        Kind::TooNoisy => {
            format!("{} ({text} {direction}{doubt}) for a comparison with", verdict.words())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_as_short_as_they_can_be() {
        for (written, expected) in [
            // Microseconds have three figures; nanoseconds are whole.
            (
                [0.0421, 1.9, 9.996, 60.07, 99.96, 1204.4].map(us).join(" "),
                "0.042 1.90 10.0 60.1 100 1204",
            ),
            ([Some(0.1234), None].map(ns_or_dash).join(" "), "123 –"),
            (interval_ns([0.09, 1.2]), "[90, 1200]"),
            // Sizes are binary; memory is not.
            (
                [0, 1000, 1024, 65536, 5_000_000, 3 << 30].map(bytes).join(", "),
                "0 B, 1000 B, 1 KiB, 64 KiB, 4.8 MiB, 3 GiB",
            ),
            ([6_600_000, 99_960_000, 262_144_000].map(megabytes).join(" "), "6.6 100 262"),
            // A change has a sign.
            (
                [-0.471, 0.031, 0.0, -0.0001].map(change_percent).join(", "),
                "−47 %, +3.1 %, ±0.0 %, ±0.0 %",
            ),
            ([0.0, 0.004, 0.25, 12.54, 100.0].map(percent).join(" "), "0 <0.01 0.25 12.5 100.0"),
            // Digits are grouped.
            ([9999, 1_189_497].map(count).join(" "), "9999 1\u{a0}189\u{a0}497"),
            (amount(12_345.4), "12\u{a0}345"),
            (
                further_subscriber(FurtherSubscriber { ns: 1.234, interval_ns: Some([-0.1, 2.0]) }),
                "+1.23 each [−0.10, 2.00]",
            ),
            (further_subscriber(FurtherSubscriber { ns: -0.5, interval_ns: None }), "−0.50 each"),
        ] {
            assert_eq!(written, expected);
        }
    }
}
