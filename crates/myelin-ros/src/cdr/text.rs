//! A string where its publisher wrote it.

use std::fmt;
use std::string::FromUtf8Error;

/// A string of a message, borrowed from the place where it was written.
///
/// It is not a `&str`: the memory belongs to the publisher, which may be another process and can
/// still change it, so no check of it would stay true. It compares with `&str`; for anything more
/// make a copy, by `to_string` or [`to_utf8`](Text::to_utf8).
///
/// ```
/// use myelin_ros::Text;
///
/// let frame: Text = "camera".into();
/// assert_eq!(frame, "camera");
/// assert_eq!(frame.to_string(), "camera");
/// assert_eq!(frame.as_bytes(), b"camera");
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text<'a>(&'a [u8]);

impl<'a> Text<'a> {
    /// A string of the program's own, to be written; `"camera".into()` does the same.
    pub const fn new(text: &'a str) -> Self {
        Text(text.as_bytes())
    }

    /// A string as it was read.
    pub(super) fn from_bytes(bytes: &'a [u8]) -> Self {
        Text(bytes)
    }

    /// The bytes, without a NUL at the end.
    pub const fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    /// How many bytes it has.
    pub const fn len(self) -> usize {
        self.0.len()
    }

    /// Whether it is empty.
    pub const fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// A copy. `to_string` copies any text, with `�` for bytes that are not UTF-8.
    ///
    /// # Errors
    /// If it is not UTF-8: its publisher has changed it since it was read.
    pub fn to_utf8(self) -> Result<String, FromUtf8Error> {
        // Copies first, then checks, because the publisher may change the bytes.
        String::from_utf8(self.0.to_vec())
    }

    fn to_lossy(self) -> String {
        let changed = |error: FromUtf8Error| String::from_utf8_lossy(error.as_bytes()).into_owned();
        self.to_utf8().unwrap_or_else(changed)
    }
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Self {
        Text::new(text)
    }
}

impl<'a> From<&'a String> for Text<'a> {
    fn from(text: &'a String) -> Self {
        Text::new(text)
    }
}

impl PartialEq<str> for Text<'_> {
    fn eq(&self, other: &str) -> bool {
        self.0 == other.as_bytes()
    }
}

impl PartialEq<&str> for Text<'_> {
    fn eq(&self, other: &&str) -> bool {
        self.0 == other.as_bytes()
    }
}

impl PartialEq<Text<'_>> for str {
    fn eq(&self, other: &Text<'_>) -> bool {
        other == self
    }
}

impl PartialEq<Text<'_>> for &str {
    fn eq(&self, other: &Text<'_>) -> bool {
        other == self
    }
}

/// Bytes that are not UTF-8 are shown as `�`.
impl fmt::Display for Text<'_> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.pad(&self.to_lossy())
    }
}

impl fmt::Debug for Text<'_> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_lossy(), to)
    }
}
