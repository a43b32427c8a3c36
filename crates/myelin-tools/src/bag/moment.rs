//! Moments of a recording, as people type and read them.

use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};

use crate::duration;

/// A moment of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// In ns since 1970.
    At(u64),
    /// So long after the begin.
    AfterStart(Duration),
    /// So long before the end.
    BeforeEnd(Duration),
}

impl Moment {
    /// Its time, in ns since 1970, in a recording of these times.
    pub fn ns(self, (start, end): (u64, u64)) -> u64 {
        match self {
            Moment::At(ns) => ns,
            Moment::AfterStart(time) => start.saturating_add(duration::nanoseconds(time)),
            Moment::BeforeEnd(time) => end.saturating_sub(duration::nanoseconds(time)),
        }
    }
}

/// A moment such as `90s` or `+90s` after the begin, `-10s` before the end, `2026-11-27T22:08:22.5Z`,
/// `@1795817302.5` in seconds since 1970, or `1795817302500000000` in ns since 1970.
///
/// # Errors
/// One sentence that says what is possible.
pub fn parse(text: &str) -> Result<Moment, String> {
    let wrong = || {
        format!("{text:?} is not a time: write 90s, -10s, 2026-11-27T22:08:22.5Z or @1795817302.5")
    };
    let moment = match text.as_bytes() {
        [b'-', ..] => duration::parse(&text[1..]).ok().map(Moment::BeforeEnd),
        [b'+', ..] => duration::parse(&text[1..]).ok().map(Moment::AfterStart),
        [b'@', ..] => since_1970(&text[1..]).map(Moment::At),
        digits if digits.len() >= NS_DIGITS && digits.iter().all(u8::is_ascii_digit) => {
            text.parse().ok().map(Moment::At)
        }
        _ => match duration::parse(text) {
            Ok(time) => Some(Moment::AfterStart(time)),
            Err(_) => date(text).map(Moment::At),
        },
    };
    moment.ok_or_else(wrong)
}

/// Seconds as ns, exact to the last, which a float is not.
fn since_1970(seconds: &str) -> Option<u64> {
    let (whole, part) = seconds.split_once('.').unwrap_or((seconds, "0"));
    let digits = format!("{part:0<9}");
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    let is_exact = is_number(whole) && is_number(part) && digits.len() == 9;
    if is_exact { format!("{whole}{digits}").parse().ok() } else { None }
}

fn date(text: &str) -> Option<u64> {
    let ns = DateTime::parse_from_rfc3339(text).ok()?.timestamp_nanos_opt()?;
    u64::try_from(ns).ok()
}

/// So many digits are ns since 1970: as seconds they would be 30 million years.
const NS_DIGITS: usize = 15;

/// A time in ns since 1970, as [`parse`] reads it.
pub fn text(ns: u64) -> String {
    match i64::try_from(ns) {
        Ok(ns) => {
            DateTime::<Utc>::from_timestamp_nanos(ns).to_rfc3339_opts(SecondsFormat::AutoSi, true)
        }
        Err(_) => ns.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_absolute_or_relative() {
        let ns = 1_795_817_302_500_000_000;
        for (text, expected) in [
            ("2026-11-27T22:08:22.5Z", ns),
            ("2026-11-27T23:08:22.500000000+01:00", ns),
            ("1795817302500000000", ns),
            ("@1795817302.5", ns),
            ("@3.000000001", 3_000_000_001),
            ("@3", 3_000_000_000),
            ("+1.5s", 1_500_000_100),
            ("1.5", 1_500_000_100),
            ("2min", 120_000_000_100),
            ("+0", 100),
            ("-1s", 4_000_000_000),
            ("-1h", 0),
        ] {
            let moment = parse(text).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(moment.ns((100, 5_000_000_000)), expected, "{text}");
        }
        assert_eq!(text(ns), "2026-11-27T22:08:22.500Z");
        assert_eq!(parse(&text(ns)), Ok(Moment::At(ns)));
        for wrong in [
            "",
            "now",
            "+",
            "-",
            "+ten",
            "--1s",
            "2026-11-27",
            "99999999999999999999",
            "@",
            "@-1",
            "@1.",
            "@1.0000000001",
            "@1e9",
            "@99999999999999999999",
            "µ",
        ] {
            assert!(parse(wrong).unwrap_err().contains("-10s"), "{wrong}");
        }
        assert_eq!(text(u64::MAX), u64::MAX.to_string());
    }
}
