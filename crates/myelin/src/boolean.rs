//! A truth value inside plain data.

use std::borrow::Cow;
use std::fmt;

use crate::layout_hash::LayoutHash;
use crate::plain_data::PlainData;

/// A truth value for the fields of [`PlainData`]: one byte, of which 0 is false and any other value
/// is true. A `bool` there would be undefined behaviour with any byte but 0 and 1, and a faulty
/// peer can send any byte.
///
/// ```
/// use myelin::{Bool, PlainData};
///
/// #[derive(Clone, Copy, PlainData)]
/// #[repr(C)]
/// struct Gripper { width: f32, closed: Bool, holds: Bool, _pad: [u8; 2] }
///
/// let gripper = Gripper { width: 0.0, closed: true.into(), holds: Bool::FALSE, _pad: [0; 2] };
/// assert!(gripper.closed.get() && !gripper.holds.get());
/// ```
#[repr(transparent)]
#[derive(Clone, Copy, Default)]
pub struct Bool(u8);

impl Bool {
    /// `true`.
    pub const TRUE: Bool = Bool(1);
    /// `false`.
    pub const FALSE: Bool = Bool(0);

    /// Its value.
    #[inline]
    pub const fn get(self) -> bool {
        self.0 != 0
    }
}

// SAFETY: a byte; any byte is a value.
unsafe impl PlainData for Bool {
    const LAYOUT_HASH: u64 = LayoutHash::of_scalar("bool");

    fn type_name() -> Cow<'static, str> {
        Cow::Borrowed("Bool")
    }

    fn layout() -> String {
        "Bool".to_owned()
    }
}

impl From<bool> for Bool {
    fn from(value: bool) -> Self {
        Bool(u8::from(value))
    }
}

impl From<Bool> for bool {
    fn from(value: Bool) -> Self {
        value.get()
    }
}

impl PartialEq for Bool {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Eq for Bool {}

impl PartialEq<bool> for Bool {
    fn eq(&self, other: &bool) -> bool {
        self.get() == *other
    }
}

impl fmt::Debug for Bool {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.get(), to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_byte_is_a_value() {
        assert!((0..=255).all(|byte| Bool(byte).get() == (byte != 0)));
        assert_eq!((Bool(2), Bool::from(false)), (Bool::TRUE, Bool::FALSE));
        assert!(bool::from(Bool(7)) && Bool(7) == true);
    }
}
