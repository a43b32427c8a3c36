//! Numbers for people, with their units.

/// A duration with three or four digits and its unit.
pub fn time(ns: u64) -> String {
    let ns = ns as f64;
    match ns {
        _ if ns < 1e3 => format!("{ns} ns"),
        _ if ns < 999.5e3 => format!("{} us", digits(ns / 1e3)),
        _ if ns < 999.5e6 => format!("{} ms", digits(ns / 1e6)),
        _ => format!("{} s", digits(ns / 1e9)),
    }
}

/// A number of bytes with its unit.
pub fn bytes(bytes: f64) -> String {
    match bytes {
        _ if bytes < 1e3 => format!("{bytes:.0} B"),
        _ if bytes < 999.5e3 => format!("{} kB", digits(bytes / 1e3)),
        _ if bytes < 999.5e6 => format!("{} MB", digits(bytes / 1e6)),
        _ => format!("{} GB", digits(bytes / 1e9)),
    }
}

/// A rate in Hz, with four digits.
pub fn rate(hz: f64) -> String {
    match hz {
        _ if hz < 9.9995 => format!("{hz:.3}"),
        _ if hz < 99.995 => format!("{hz:.2}"),
        _ if hz < 99_999.5 => format!("{hz:.1}"),
        _ => format!("{hz:.0}"),
    }
}

/// What is not known.
pub fn or_dash<T>(value: Option<T>, show: impl Fn(T) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), show)
}

fn digits(number: f64) -> String {
    match number {
        _ if number < 9.995 => format!("{number:.2}"),
        _ if number < 99.95 => format!("{number:.1}"),
        _ => format!("{number:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_units_and_few_digits() {
        assert_eq!(
            [0, 999, 1_000, 12_340, 999_600].map(time),
            ["0 ns", "999 ns", "1.00 us", "12.3 us", "1.00 ms"]
        );
        assert_eq!([1_500_000_000, 90_000_000_000].map(time), ["1.50 s", "90.0 s"]);
        assert_eq!([8.0, 8_000.0, 2.5e9].map(bytes), ["8 B", "8.00 kB", "2.50 GB"]);
        assert_eq!(
            [0.05, 30.0, 1000.0, 250_000.0].map(rate),
            ["0.050", "30.00", "1000.0", "250000"]
        );
    }
}
