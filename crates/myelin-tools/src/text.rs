//! Text of other processes on a terminal.

use std::borrow::Cow;
use std::fmt::Write;

/// The text with every character escaped that does something to a terminal instead of being seen:
/// control characters, and those that turn the reading direction.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unprintable) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            other if is_unprintable(other) => {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(other));
            }
            other => out.push(other),
        }
    }
    Cow::Owned(out)
}

/// A text of at most so many characters: a longer one loses its middle.
pub fn shortened(text: &str, characters: usize) -> Cow<'_, str> {
    let count = text.chars().count();
    if count <= characters {
        return Cow::Borrowed(text);
    }
    let kept = characters.saturating_sub(GAP.len());
    let (head, tail) = (kept.div_ceil(2), kept / 2);
    let begin = text.chars().take(head);
    let end = text.chars().skip(count - tail);
    Cow::Owned(begin.chain(GAP.chars()).chain(end).take(characters).collect())
}

pub(crate) fn is_unprintable(character: char) -> bool {
    let turns_or_breaks_lines = matches!(character, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    character.is_control() || turns_or_breaks_lines
}

const GAP: &str = "..";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_reaches_the_terminal_as_a_command() {
        assert_eq!(printable("grün"), "grün");
        assert_eq!(printable("a\x1b[2Jb\nc\u{202e}\u{9b}"), "a\\u{1b}[2Jb\\nc\\u{202e}\\u{9b}");
    }

    #[test]
    fn a_long_text_keeps_both_ends() {
        assert_eq!(shortened("abcdefgh", 8), "abcdefgh");
        assert_eq!(shortened("abcdefgh", 6), "ab..gh");
        assert_eq!(shortened("abcdefgh", 1), ".");
    }
}
