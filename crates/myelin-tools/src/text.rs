//! Text of other processes on a terminal.

use std::borrow::Cow;
use std::fmt::{Display, Write};

/// The text with every character escaped that does something to a terminal instead of being seen:
/// control characters, those that turn the reading direction, and those that have no width.
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

/// `1 message`, `3 messages`.
pub fn counted<N: Display + PartialEq + From<u8>>(number: N, noun: &str) -> String {
    let ending = if number == N::from(1) { "" } else { "s" };
    format!("{number} {noun}{ending}")
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

pub(crate) fn is_unprintable(c: char) -> bool {
    let is_format = matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}')
        || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
        || matches!(c, '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}');
    c.is_control() || is_format
}

const GAP: &str = "..";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_reaches_the_terminal_as_a_command() {
        for text in ["grün", "grün 左", "camera/left"] {
            assert_eq!(printable(text), text);
        }
        assert_eq!(printable("\x1b[2Jx\u{202e}y\n\u{e0041}"), "\\u{1b}[2Jx\\u{202e}y\\n\\u{e0041}");
        assert_eq!(printable("a\x1b[2Jb\nc\u{202e}\u{9b}"), "a\\u{1b}[2Jb\\nc\\u{202e}\\u{9b}");
    }

    #[test]
    fn one_is_not_several() {
        let texts =
            [counted(0_u64, "message"), counted(1_usize, "message"), counted(2_u32, "part")];
        assert_eq!(texts, ["0 messages", "1 message", "2 parts"]);
    }

    #[test]
    fn a_long_text_keeps_both_ends() {
        assert_eq!(shortened("abcdefgh", 8), "abcdefgh");
        assert_eq!(shortened("abcdefgh", 6), "ab..gh");
        assert_eq!(shortened("abcdefgh", 1), ".");
    }
}
