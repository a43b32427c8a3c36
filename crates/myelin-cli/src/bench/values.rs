//! Values of options as people type them: sizes, rates, limits of latency.

use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

use myelin_tools::duration;

/// Sizes in bytes, from `64,1K..1M`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sizes(pub Vec<u64>);

impl FromStr for Sizes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut sizes = Vec::new();
        for part in text.split(',') {
            let Some((from, until)) = part.split_once("..") else {
                sizes.push(size(part)?);
                continue;
            };
            let (from, until) = (size(from)?, size(until)?);
            if from == 0 || from >= until {
                return Err(format!("{part:?}: a range grows by four from a size above 0: 1K..1M"));
            }
            let grown = std::iter::successors(Some(from), |size| size.checked_mul(RANGE_FACTOR));
            sizes.extend(grown.take_while(|size| *size < until).chain([until]));
        }
        Ok(Sizes(sizes))
    }
}

/// A size such as `64`, `1K` or `4MiB`; the units are powers of 1024.
pub fn size(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is not a size: write 64, 1K, 64KiB or 1M (1K is 1024 bytes)");
    let text = text.trim();
    let unit_at = text.find(|it: char| !it.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let shift = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        _ => return Err(wrong()),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    match number.checked_mul(1 << shift) {
        Some(bytes) if bytes <= SIZE_MAX => Ok(bytes),
        _ => Err(format!("{text} is too large: use at most 1G")),
    }
}

/// Rates in messages a second, from `10,1k,max`; `None` is back to back.
#[derive(Clone, Debug, PartialEq)]
pub struct Rates(pub Vec<Option<f64>>);

impl FromStr for Rates {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.split(',').map(rate).collect::<Result<_, _>>().map(Rates)
    }
}

/// A rate such as `500`, `1k` or `0.5Hz`; `max`, `none` and `0` are back to back.
pub fn rate(text: &str) -> Result<Option<f64>, String> {
    let wrong = || format!("{text:?} is not a rate: write 500, 1k or 0.5Hz; max is back to back");
    let lower = text.trim().to_ascii_lowercase();
    if matches!(lower.as_str(), "max" | "none" | "0") {
        return Ok(None);
    }
    let number = lower.strip_suffix("hz").unwrap_or(&lower).trim_end();
    let (number, factor) = match number.strip_suffix('k') {
        Some(number) => (number, 1e3),
        None => (number, 1.0),
    };
    let rate_hz = number.trim_end().parse::<f64>().map_err(|_| wrong())? * factor;
    within(rate_hz, RATE_MIN, RATE_MAX, "messages a second").map(Some)
}

/// Numbers from `1,4`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts(pub Vec<u32>);

impl FromStr for Counts {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let count = |text: &str| {
            let number = text.trim().parse::<u32>();
            let number = number.map_err(|_| format!("{text:?} is not a number: write 4 or 1,4"))?;
            within(number, 1, PROCESSES_MAX, "processes")
        };
        text.split(',').map(count).collect::<Result<_, _>>().map(Counts)
    }
}

/// The time of a run.
pub fn run_time(text: &str) -> Result<Duration, String> {
    duration::parse_within(text, Duration::from_millis(1)..=Duration::from_secs(86_400))
}

/// A limit of latency such as `latency > 1 ms`; returns nanoseconds.
pub fn latency_limit(text: &str) -> Result<u64, String> {
    let wrong =
        |what: String| format!("{what}: write 'latency > 1 ms' (a latency, `>`, and a time)");
    let Some((metric, limit)) = text.split_once('>') else {
        return Err(wrong(format!("{text:?} has no `>`")));
    };
    if metric.trim() != "latency" {
        return Err(wrong(format!("{:?} is not watched, only the latency is", metric.trim())));
    }
    let limit = duration::parse(limit.trim()).map_err(wrong)?;
    if limit.is_zero() {
        return Err(wrong("every message exceeds 0".to_owned()));
    }
    Ok(duration::nanoseconds(limit))
}

fn within<T: PartialOrd + Display>(value: T, least: T, most: T, unit: &str) -> Result<T, String> {
    match value >= least && value <= most {
        true => Ok(value),
        false => Err(format!("{value} is out of range: use {least} to {most} {unit}")),
    }
}

/// The factor between the sizes of a range.
const RANGE_FACTOR: u64 = 4;
/// The limits of a scenario.
const SIZE_MAX: u64 = 1 << 30;
const RATE_MIN: f64 = 1e-3;
const RATE_MAX: f64 = 1e6;
const PROCESSES_MAX: u32 = 256;

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(text: &str) -> Result<Vec<u64>, String> {
        text.parse::<Sizes>().map(|sizes| sizes.0)
    }

    #[test]
    fn sizes_have_units_and_ranges_grow_by_four() {
        assert_eq!(sizes("64"), Ok(vec![64]));
        assert_eq!(sizes("0, 1K,4KiB,1m"), Ok(vec![0, 1024, 4096, 1 << 20]));
        let range = [1, 4, 16, 64, 256, 1024].map(|kib| kib << 10);
        assert_eq!(sizes("64,1K..1M"), Ok([&[64][..], &range].concat()));
        assert_eq!(sizes("1K..3K"), Ok(vec![1024, 3072]), "the end is always there");
        for wrong in ["", "K", "1.5K", "-1", "64,", "1T", "1K..", "4K..1K", "0..64", "2G", "1e3"] {
            sizes(wrong).expect_err(wrong);
        }
    }

    #[test]
    fn rates_have_units_and_a_word_for_none() {
        let rates = |text: &str| text.parse::<Rates>().map(|rates| rates.0);
        assert_eq!(rates("1k,max"), Ok(vec![Some(1000.0), None]));
        assert_eq!(rates("0.5Hz,20 kHz,none,0"), Ok(vec![Some(0.5), Some(2e4), None, None]));
        for wrong in ["", "fast", "-1", "1M", "2000k", "NaN", "inf", "1k,"] {
            rates(wrong).expect_err(wrong);
        }
    }

    #[test]
    fn counts_are_processes() {
        assert_eq!("1,4".parse(), Ok(Counts(vec![1, 4])));
        for wrong in ["", "0", "257", "a", "1.5", "1,"] {
            wrong.parse::<Counts>().expect_err(wrong);
        }
    }

    #[test]
    fn a_limit_names_what_it_limits() {
        assert_eq!(latency_limit("latency > 1 ms"), Ok(1_000_000));
        assert_eq!(latency_limit("latency>250us"), Ok(250_000));
        for wrong in ["", "1ms", "latency < 1ms", "lost > 1ms", "latency > 0", "latency > soon"] {
            let error = latency_limit(wrong).expect_err(wrong);
            assert!(error.contains("write 'latency > 1 ms'"), "{wrong}: {error}");
        }
    }
}
