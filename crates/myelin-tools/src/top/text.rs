//! Numbers and names as the screen has them: short.

use ratatui::text::Span;

/// A number in at most 5 characters: `0.25`, `29.9`, `512`, `1.25k`, `98.5M`.
pub fn number(value: f64) -> String {
    const PREFIXES: [&str; 6] = ["", "k", "M", "G", "T", "P"];
    let (mut value, mut prefix) = (value.max(0.0), 0);
    while value >= 999.5 && prefix + 1 < PREFIXES.len() {
        (value, prefix) = (value / 1000.0, prefix + 1);
    }
    let decimals = match value {
        _ if prefix == 0 && value.fract() == 0.0 => 0,
        _ if value < 9.995 => 2,
        _ if value < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}{}", PREFIXES[prefix])
}

/// The same of a value that may be unknown: `-`.
pub fn number_or_dash(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), number)
}

/// A count that is dull if it is 0: then it is empty.
pub fn count(value: u64) -> String {
    if value == 0 { String::new() } else { number(value as f64) }
}

/// A time: `850ns`, `12.5us`, `1.20ms`, `2.00s`.
pub fn duration(ns: f64) -> String {
    let (value, unit) = match ns.max(0.0) {
        it if it < 999.5 => (it, "ns"),
        it if it < 999.5e3 => (it / 1e3, "us"),
        it if it < 999.5e6 => (it / 1e6, "ms"),
        it => (it / 1e9, "s"),
    };
    let decimals = match value {
        _ if unit == "ns" => 0,
        it if it < 9.995 => 2,
        it if it < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}{unit}")
}

/// How many columns of a terminal a text takes.
pub fn width(text: &str) -> usize {
    Span::raw(text).width()
}

/// The text in exactly `columns` columns; a text that is too long ends in `~`.
pub fn left(text: &str, columns: usize) -> String {
    let mut cut = cut(text, columns);
    let free = columns.saturating_sub(width(&cut));
    cut.extend(std::iter::repeat_n(' ', free));
    cut
}

/// The same, at the right.
pub fn right(text: &str, columns: usize) -> String {
    let cut = cut(text, columns);
    let free = columns.saturating_sub(width(&cut));
    " ".repeat(free) + &cut
}

/// The text in at most `columns` columns; a text that is too long ends in `~`.
pub fn cut(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let (mut kept, mut used) = (String::new(), 0);
    for c in text.chars() {
        let wide = width(c.encode_utf8(&mut [0; 4]));
        if used + wide + 1 > columns {
            break;
        }
        used += wide;
        kept.push(c);
    }
    if columns > 0 {
        kept.push('~');
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_take_five_characters() {
        for (value, text) in [
            (0.0, "0"),
            (0.25, "0.25"),
            (29.97, "30.0"),
            (30.0, "30"),
            (999.4, "999"),
            (999.6, "1.00k"),
            (12_345.0, "12.3k"),
            (6_220_800.0, "6.22M"),
            (999.9e6, "1.00G"),
        ] {
            assert_eq!(number(value), text);
        }
        for exponent in 0..60 {
            let text = number(1.37 * 2f64.powi(exponent));
            assert!(text.len() <= 5, "{text}");
        }
    }

    #[test]
    fn times_have_their_unit() {
        for (ns, text) in
            [(850.0, "850ns"), (12_500.0, "12.5us"), (999_600.0, "1.00ms"), (2e9, "2.00s")]
        {
            assert_eq!(duration(ns), text);
        }
    }

    #[test]
    fn texts_are_cut_by_columns() {
        assert_eq!(left("imu", 5), "imu  ");
        assert_eq!(right("1.5", 5), "  1.5");
        assert_eq!(left("camera/left", 8), "camera/~");
        // Wide characters take two columns.
        assert_eq!(left("左左左", 4), "左~ ");
        assert_eq!(cut("imu", 0), "");
    }
}
