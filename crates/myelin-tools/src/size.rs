//! Sizes as people type them.

/// A size such as `500MB`, `1.5 GB` or `2GiB`; without a unit it is in bytes.
///
/// # Errors
/// One sentence that says what is possible.
pub fn parse(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is not a size: write 500MB, 1.5GB, 2GiB or 4096");
    let unit_at = text.find(|c: char| c.is_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let factor = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kb" => 1e3,
        "m" | "mb" => 1e6,
        "g" | "gb" => 1e9,
        "t" | "tb" => 1e12,
        "ki" | "kib" => 1024.0,
        "mi" | "mib" => 1024.0 * 1024.0,
        "gi" | "gib" => 1024.0 * 1024.0 * 1024.0,
        "ti" | "tib" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        _ => return Err(wrong()),
    };
    let bytes = number.trim().parse::<f64>().map_err(|_| wrong())? * factor;
    let is_size = bytes >= 0.0 && bytes < u64::MAX as f64;
    is_size.then_some(bytes as u64).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        for (text, bytes) in
            [("5GB", 5_000_000_000), ("1.5 kB", 1_500), ("2GiB", 2 << 30), ("4096", 4_096)]
        {
            assert_eq!(parse(text), Ok(bytes), "{text}");
        }
        for wrong in ["", "GB", "-1GB", "1 parsec", "1e400", "NaN", "5GB2"] {
            assert!(parse(wrong).unwrap_err().contains("500MB"), "{wrong}");
        }
    }
}
