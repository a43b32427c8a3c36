//! Files of `/proc` that stay open and are read repeatedly into existing memory.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// Buffer for one file: a page of text, which is more than any of these needs. The kernel composes
/// the text anew for each reading from the beginning.
pub(super) type Page = [u8; 4096];

/// An open file of `/proc`. It belongs to the task for which it was opened: after that task has
/// ended it cannot be read, even if another task gets the same id.
pub(super) struct ProcFile(File);

impl ProcFile {
    /// `None` if the file does not exist or must not be read, or if too many files are open.
    pub(super) fn open(path: &str) -> Option<Self> {
        File::open(path).ok().map(ProcFile)
    }

    /// The current text, up to a page; `None` after the task has ended.
    pub(super) fn read<'a>(&self, page: &'a mut Page) -> Option<&'a [u8]> {
        let length = self.0.read_at(page, 0).ok().filter(|length| *length > 0)?;
        Some(&page[..length])
    }
}

/// The first numbers of a text of numbers and blanks.
pub(super) fn numbers<const N: usize>(text: &[u8]) -> Option<[u64; N]> {
    let mut words = text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let mut found = [0; N];
    for number in &mut found {
        *number = number_at(words.next()?)?;
    }
    Some(found)
}

/// The first number in the line that begins with `key`, after leading blanks.
pub(super) fn value(text: &[u8], key: &[u8]) -> Option<u64> {
    number_at(rest_of_line(text, key)?)
}

/// The rest of the line that begins with `key`, without leading blanks and colons.
pub(super) fn rest_of_line<'a>(text: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    let mut lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_start);
    let rest = lines.find_map(|line| line.strip_prefix(key))?;
    let begin = rest.iter().position(|byte| !matches!(byte, b' ' | b'\t' | b':'))?;
    Some(&rest[begin..])
}

fn number_at(text: &[u8]) -> Option<u64> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit());
    let mut number = None;
    for digit in digits {
        let before: u64 = number.unwrap_or(0);
        number = Some(before.checked_mul(10)?.checked_add(u64::from(digit - b'0'))?);
    }
    number
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_the_beginning_of_their_line() {
        let text = b"se.nr_migrations    :    12\nnr_involuntary_switches : 3\nnr_switches: 4\n";
        assert_eq!(value(text, b"se.nr_migrations"), Some(12));
        assert_eq!(value(text, b"nr_switches"), Some(4));
        assert_eq!(value(text, b"voluntary_switches"), None);
        assert_eq!(value(b"Pss: x", b"Pss:"), None);
        let interfaces = b"  eth0: 1 2\n    lo: 340 5 0 0\n";
        assert_eq!(rest_of_line(interfaces, b"lo:").and_then(numbers), Some([340, 5]));
        assert_eq!(numbers::<3>(b"1 2\n"), None);
        assert_eq!(number_at(b"99999999999999999999999"), None);
    }
}
