//! Patterns of names, with `*` and `?`.

/// Whether a text is a pattern, which may stand for several names.
pub fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?'])
}

/// Whether `text` matches a pattern: `*` stands for any text and `?` for one character. The time is
/// at most the product of both lengths: after a mismatch only the last `*` takes one character more.
pub fn is_match(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<_>, Vec<_>) = (pattern.chars().collect(), text.chars().collect());
    let (mut at, mut of_text, mut star) = (0, 0, None);
    while of_text < text.len() {
        match (pattern.get(at), star) {
            (Some('*'), _) => {
                star = Some((at, of_text));
                at += 1;
            }
            (Some(one), _) if *one == '?' || *one == text[of_text] => {
                (at, of_text) = (at + 1, of_text + 1);
            }
            (_, Some((star_at, taken))) => {
                star = Some((star_at, taken + 1));
                (at, of_text) = (star_at + 1, taken + 1);
            }
            _ => return false,
        }
    }
    pattern[at..].iter().all(|each| *each == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, text, expected) in [
            ("*", "", true),
            ("*", "camera/left", true),
            ("camera/*", "camera/left/info", true),
            ("camera/*", "camera", false),
            ("*/left", "camera/left", true),
            ("*left*", "camera/left/info", true),
            ("camera/?", "camera/1", true),
            ("camera/?", "camera/12", false),
            ("a*b*c", "aXbXbXc", true),
            ("a*b*c", "aXbXbX", false),
            ("imu", "imu2", false),
            ("", "imu", false),
            ("", "", true),
            ("**", "imu", true),
            ("gr?n", "grün", true),
        ] {
            assert_eq!(is_match(pattern, text), expected, "{pattern} {text}");
        }
    }
}
