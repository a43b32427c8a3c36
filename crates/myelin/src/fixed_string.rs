//! Text of a bounded length inside plain data.

use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::string::FromUtf8Error;

use crate::layout::{self, Field};
use crate::layout_hash::LayoutHash;
use crate::plain_data::PlainData;

/// Text of up to `N` bytes of UTF-8, for the fields of [`PlainData`]. Its alignment is 1, so it
/// leaves no gap in front of it.
///
/// The text lies in memory that its publisher, maybe another process, can still change. So it is
/// not a `&str`: no check of it would stay true. It compares with `&str` and can be printed; for
/// anything more make a copy, by `to_string` or [`to_utf8`](FixedString::to_utf8). A length beyond
/// `N` is read as `N`.
///
/// ```
/// use myelin::{FixedString, PlainData};
///
/// #[derive(Clone, Copy, PlainData)]
/// #[repr(C)]
/// struct Part { id: u64, name: FixedString<20> }
///
/// let part = Part { id: 7, name: FixedString::new("gripper").expect("20 bytes are enough") };
/// assert_eq!(part.name, "gripper");
/// assert_eq!(part.name.to_string().len(), 7);
/// assert!(FixedString::<3>::new("gripper").is_none());
/// ```
#[repr(C)]
#[derive(Clone, Copy)]
pub struct FixedString<const N: usize> {
    /// Little-endian. Only a faulty peer sends more than `N`.
    length: [u8; 4],
    bytes: [u8; N],
}

impl<const N: usize> FixedString<N> {
    /// A copy of `text`; `None` if it has more than `N` bytes.
    pub const fn new(text: &str) -> Option<Self> {
        let text = text.as_bytes();
        if text.len() > N {
            return None;
        }
        let mut bytes = [0; N];
        bytes.split_at_mut(text.len()).0.copy_from_slice(text);
        Some(FixedString { length: (text.len() as u32).to_le_bytes(), bytes })
    }

    /// A copy of as much of `text` as fits, in whole characters.
    pub fn truncated(text: &str) -> Self {
        let fitting = &text[..text.floor_char_boundary(N)];
        FixedString::new(fitting).expect("it has at most N bytes")
    }

    /// The bytes of the text.
    pub fn as_bytes(&self) -> &[u8] {
        let length = u32::from_le_bytes(self.length) as usize;
        &self.bytes[..length.min(N)]
    }

    /// How many bytes it has.
    pub fn len(&self) -> usize {
        self.as_bytes().len()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A copy. `to_string` copies any text, with `�` for bytes that are not UTF-8.
    ///
    /// # Errors
    /// If it is not UTF-8.
    pub fn to_utf8(&self) -> Result<String, FromUtf8Error> {
        // Copies first, then checks, because the publisher may change the bytes.
        String::from_utf8(self.as_bytes().to_vec())
    }
}

// SAFETY: bytes, one after the other; any bytes are a value.
unsafe impl<const N: usize> PlainData for FixedString<N> {
    const LAYOUT_HASH: u64 = {
        assert!(N <= u32::MAX as usize, "a FixedString has less than 4 GiB");
        let fields = LayoutHash::of_struct().field::<[u8; 4]>("length", 0);
        fields.field::<[u8; N]>("bytes", 4).end_struct::<Self>()
    };

    fn type_name() -> Cow<'static, str> {
        Cow::Owned(format!("FixedString<{N}>"))
    }

    fn layout() -> String {
        let fields = [Field::of::<[u8; 4]>("length", 0), Field::of::<[u8; N]>("bytes", 4)];
        layout::of_struct::<Self>(&fields)
    }
}

impl<const N: usize> Default for FixedString<N> {
    fn default() -> Self {
        FixedString { length: [0; 4], bytes: [0; N] }
    }
}

impl<const N: usize> PartialEq for FixedString<N> {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl<const N: usize> Eq for FixedString<N> {}

impl<const N: usize> Hash for FixedString<N> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_bytes().hash(state);
    }
}

impl<const N: usize> PartialEq<str> for FixedString<N> {
    fn eq(&self, other: &str) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl<const N: usize> PartialEq<&str> for FixedString<N> {
    fn eq(&self, other: &&str) -> bool {
        self == *other
    }
}

impl<const N: usize> fmt::Display for FixedString<N> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let copy = *self; // copies first, then checks
        to.pad(&String::from_utf8_lossy(copy.as_bytes()))
    }
}

impl<const N: usize> fmt::Debug for FixedString<N> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let copy = *self;
        fmt::Debug::fmt(&String::from_utf8_lossy(copy.as_bytes()), to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_read_as_written() {
        let text = FixedString::<6>::new("grüß").unwrap();
        assert_eq!(text, "grüß");
        assert_eq!((text.len(), text.to_utf8().unwrap()), (6, "grüß".to_string()));
        assert_eq!(format!("{text:>8}|{text:?}"), "    grüß|\"grüß\"");
        assert!(FixedString::<5>::new("grüß").is_none());
        assert_eq!(FixedString::<5>::truncated("grüß"), "grü", "no half character");
        assert!(FixedString::<0>::default().is_empty());
    }

    #[test]
    fn a_faulty_peers_string_is_bounded_and_not_a_str() {
        let hostile = FixedString::<4> { length: [0xff; 4], bytes: [b'a', 0xff, b'c', b'd'] };
        assert_eq!(hostile.len(), 4);
        assert!(hostile.to_utf8().is_err());
        assert_eq!(hostile.to_string(), "a\u{fffd}cd");
    }
}
