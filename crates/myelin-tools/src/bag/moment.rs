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

/// A moment such as `2026-11-27T22:08:22.5Z`, `1795817302500000000` (ns since 1970), `+10s` from the
/// begin or `-10s` from the end.
///
/// # Errors
/// One sentence that says what is possible.
pub fn parse(text: &str) -> Result<Moment, String> {
    let wrong = || {
        format!("{text:?} is no moment: write +10s, -10s, 2026-11-27T22:08:22.5Z or ns since 1970")
    };
    if let Some(time) = text.strip_prefix('+') {
        return duration::parse(time).map(Moment::AfterStart).map_err(|_| wrong());
    }
    if let Some(time) = text.strip_prefix('-') {
        return duration::parse(time).map(Moment::BeforeEnd).map_err(|_| wrong());
    }
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().map(Moment::At).map_err(|_| wrong());
    }
    let time = DateTime::parse_from_rfc3339(text).map_err(|_| wrong())?;
    let ns = time.timestamp_nanos_opt().and_then(|ns| u64::try_from(ns).ok());
    ns.map(Moment::At).ok_or_else(wrong)
}

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
            ("+1.5s", 1_500_000_100),
            ("+0", 100),
            ("-1s", 4_000_000_000),
            ("-1h", 0),
        ] {
            let moment = parse(text).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(moment.ns((100, 5_000_000_000)), expected, "{text}");
        }
        assert_eq!(text(ns), "2026-11-27T22:08:22.500Z");
        assert_eq!(parse(&text(ns)), Ok(Moment::At(ns)));
        for wrong in ["", "now", "10s", "+", "+ten", "2026-11-27", "99999999999999999999"] {
            assert!(parse(wrong).unwrap_err().contains("+10s"), "{wrong}");
        }
        assert_eq!(text(u64::MAX), u64::MAX.to_string());
    }
}
