//! Characters that do something to a terminal or to the reading direction instead of being seen.

/// Whether a character is better shown by its number.
pub(crate) fn is_unprintable(character: char) -> bool {
    let turns_or_breaks_lines = matches!(character, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    character.is_control() || turns_or_breaks_lines
}

/// Appends text as a JSON string. It has no characters that a terminal obeys.
pub(crate) fn push_quoted(to: &mut String, text: &str) {
    to.push('"');
    for character in text.chars() {
        match character {
            '"' => to.push_str("\\\""),
            '\\' => to.push_str("\\\\"),
            '\n' => to.push_str("\\n"),
            '\r' => to.push_str("\\r"),
            '\t' => to.push_str("\\t"),
            // All of these have four digits.
            other if is_unprintable(other) => to.push_str(&format!("\\u{:04x}", u32::from(other))),
            other => to.push(other),
        }
    }
    to.push('"');
}
