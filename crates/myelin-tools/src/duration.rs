//! Times as people type them.

use std::ops::RangeInclusive;
use std::time::Duration;

/// A time such as `1s`, `250ms`, `1.5s`, `2min` or `0.5`; without a unit it is in seconds.
///
/// # Errors
/// One sentence that says what is possible.
pub fn parse(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is not a time: write 1s, 250ms, 1.5s, 100us or 2min");
    let unit_at = text.find(|c: char| c.is_alphabetic() || c == 'µ').unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let seconds = match unit {
        "s" | "" => 1.0,
        "ms" => 1e-3,
        "us" | "µs" => 1e-6,
        "min" | "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(wrong()),
    };
    let number: f64 = number.trim().parse().map_err(|_| wrong())?;
    Duration::try_from_secs_f64(number * seconds).map_err(|_| wrong())
}

/// The same, within bounds.
///
/// # Errors
/// As for [`parse`]; the bounds.
pub fn parse_within(text: &str, bounds: RangeInclusive<Duration>) -> Result<Duration, String> {
    let time = parse(text)?;
    let (least, most) = (bounds.start(), bounds.end());
    let wrong = || format!("use a time from {least:?} to {most:?}, such as 2s");
    bounds.contains(&time).then_some(time).ok_or_else(wrong)
}

/// Its nanoseconds; a longer time than 584 years counts as that.
pub fn nanoseconds(time: Duration) -> u64 {
    time.as_nanos().try_into().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        for (text, ms) in
            [("1s", 1000), ("250ms", 250), ("1.5 s", 1500), ("2min", 120_000), ("3", 3000)]
        {
            assert_eq!(parse(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for wrong in ["", "s", "-1s", "1 fortnight", "1e400", "NaN", "1s2"] {
            assert!(parse(wrong).unwrap_err().contains("250ms"), "{wrong}");
        }
        let bounds = || Duration::from_millis(100)..=Duration::from_secs(3600);
        for (text, ms) in [("100ms", 100), ("0.5", 500), ("1h", 3_600_000)] {
            assert_eq!(parse_within(text, bounds()), Ok(Duration::from_millis(ms)), "{text}");
        }
        for wrong in ["", "0", "10ms", "61min"] {
            assert!(parse_within(wrong, bounds()).is_err(), "{wrong}");
        }
    }
}
