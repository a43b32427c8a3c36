//! A list of a bounded length inside plain data.

use std::borrow::Cow;
use std::fmt;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};

use crate::layout::{self, Field};
use crate::layout_hash::LayoutHash;
use crate::plain_data::PlainData;

/// Up to `N` elements, for the fields of [`PlainData`]; dereferences to the elements in use. All
/// `N` are sent, whatever the length is: for lists that vary much use a topic of slices, `[T]` or
/// `(H, [T])`.
///
/// A length beyond `N`, which a faulty peer may send, is read as `N`. `T` is aligned to at most 8,
/// and `N` elements must fill whole words of 8 bytes; otherwise it does not compile.
///
/// ```
/// use myelin::{BoundedVec, PlainData};
///
/// #[derive(Clone, Copy, PlainData)]
/// #[repr(C)]
/// struct Path { stamp_ns: u64, points: BoundedVec<[f32; 2], 8> }
///
/// let mut path = Path { stamp_ns: myelin::now(), points: BoundedVec::new() };
/// path.points.push([1.0, 2.0]).expect("there is room for 8");
/// assert_eq!(path.points.len(), 1);
/// assert!(path.points.iter().all(|[x, _]| *x == 1.0));
/// ```
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BoundedVec<T, const N: usize> {
    /// Only a faulty peer sends more than `N`.
    length: u64,
    elements: [T; N],
}

impl<T: PlainData, const N: usize> BoundedVec<T, N> {
    /// How many elements it can have.
    pub const CAPACITY: usize = N;

    /// An empty list.
    pub fn new() -> Self {
        // SAFETY: any bytes are a value of `T`, zeros too.
        let elements = unsafe { MaybeUninit::zeroed().assume_init() };
        BoundedVec { length: 0, elements }
    }

    /// A copy of `elements`; `None` if there are more than `N`.
    pub fn from_slice(elements: &[T]) -> Option<Self> {
        let mut list = Self::new();
        list.elements.get_mut(..elements.len())?.copy_from_slice(elements);
        list.length = elements.len() as u64;
        Some(list)
    }

    /// Adds an element at the end.
    ///
    /// # Errors
    /// Returns the element if the list is full.
    pub fn push(&mut self, element: T) -> Result<(), T> {
        let length = self.len();
        let Some(place) = self.elements.get_mut(length) else { return Err(element) };
        *place = element;
        self.length = length as u64 + 1;
        Ok(())
    }

    /// Removes the last element.
    pub fn pop(&mut self) -> Option<T> {
        let last = *self.last()?;
        self.length = self.len() as u64 - 1;
        Some(last)
    }

    /// Removes all elements.
    pub fn clear(&mut self) {
        self.length = 0;
    }

    fn bounded_length(&self) -> usize {
        self.length.min(N as u64) as usize
    }
}

// SAFETY: a number, then plain data that begins at the end of the number and fills whole words, so
// there is no padding: asserted below.
unsafe impl<T: PlainData, const N: usize> PlainData for BoundedVec<T, N> {
    const LAYOUT_HASH: u64 = {
        assert!(align_of::<T>() <= 8, "the elements of a BoundedVec are aligned to at most 8");
        assert!(
            (N * size_of::<T>()).is_multiple_of(8),
            "the elements of a BoundedVec must fill whole words of 8 bytes: take a larger N"
        );
        let fields = LayoutHash::of_struct().field::<u64>("length", 0);
        fields.field::<[T; N]>("elements", 8).end_struct::<Self>()
    };

    const FIRST_ALIGN: usize = align_of::<u64>();

    fn type_name() -> Cow<'static, str> {
        Cow::Owned(format!("BoundedVec<{}, {N}>", T::type_name()))
    }

    fn layout() -> String {
        let fields = [Field::of::<u64>("length", 0), Field::of::<[T; N]>("elements", 8)];
        layout::of_struct::<Self>(&fields)
    }
}

impl<T: PlainData, const N: usize> Deref for BoundedVec<T, N> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.elements[..self.bounded_length()]
    }
}

impl<T: PlainData, const N: usize> DerefMut for BoundedVec<T, N> {
    fn deref_mut(&mut self) -> &mut [T] {
        let length = self.bounded_length();
        &mut self.elements[..length]
    }
}

impl<T: PlainData, const N: usize> Default for BoundedVec<T, N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: PlainData + PartialEq, const N: usize> PartialEq for BoundedVec<T, N> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: PlainData + fmt::Debug, const N: usize> fmt::Debug for BoundedVec<T, N> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_holds_up_to_n() {
        let mut list = BoundedVec::<u32, 2>::new();
        assert!(list.is_empty() && list.pop().is_none());
        assert_eq!((list.push(1), list.push(2), list.push(3)), (Ok(()), Ok(()), Err(3)));
        assert_eq!(*list, [1, 2]);
        assert_eq!((list.pop(), list.len()), (Some(2), 1));
        list.clear();
        assert_eq!(list, BoundedVec::default());
        assert_eq!(*BoundedVec::<u32, 2>::from_slice(&[7]).unwrap(), [7]);
        assert!(BoundedVec::<u32, 2>::from_slice(&[7; 3]).is_none());
    }

    #[test]
    fn a_length_that_cannot_be_is_bounded() {
        let mut hostile = BoundedVec::<u64, 2> { length: u64::MAX, elements: [1, 2] };
        assert_eq!(*hostile, [1, 2]);
        assert_eq!(hostile.push(3), Err(3));
        assert_eq!((hostile.pop(), hostile.len()), (Some(2), 1));
    }
}
