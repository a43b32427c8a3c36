//! The types that samples can have: those for which any bytes are a value.

use std::borrow::Cow;

use crate::layout;
use crate::layout_hash::LayoutHash;

/// A type whose values are just their bytes, so that another process can read them in place.
///
/// Integers, floats, `()` and arrays of plain data are plain data. A struct becomes plain data by
/// `#[derive(PlainData)]`, which proves the rest at compile time:
///
/// ```
/// use myelin::PlainData;
///
/// #[derive(Clone, Copy, PlainData)]
/// #[repr(C)]
/// struct Imu {
///     stamp_ns: u64,
///     acceleration: [f32; 3],
///     temperature: f32,
/// }
/// ```
///
/// `#[repr(C)]` or `#[repr(transparent)]` is required, padding is refused (the message names the
/// gap), and so are `bool`, `char`, enums, references and pointers. For truth values, text and lists
/// there are [`Bool`](crate::Bool), [`FixedString`](crate::FixedString) and
/// [`BoundedVec`](crate::BoundedVec).
///
/// ```compile_fail
/// # use myelin::PlainData;
/// #[derive(Clone, Copy, PlainData)]
/// #[repr(C)]
/// struct Gap { flag: u8, value: u64 } // 7 bytes of padding before `value`
/// ```
///
/// # Safety
/// Who implements it by hand promises: every byte pattern of `size_of::<Self>()` bytes is a valid
/// value; there is no padding; the alignment is at most 64; the layout is fixed (`repr(C)` or the
/// like); [`LAYOUT_HASH`](PlainData::LAYOUT_HASH) differs for any other layout.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not plain data and cannot travel through shared memory",
    label = "not plain data",
    note = "integers, floats and arrays of plain data are; a struct of your own needs \
            `#[derive(Clone, Copy, myelin::PlainData)]` and `#[repr(C)]`",
    note = "what owns memory or points to it (String, Vec, Box, references) is not; for a payload of \
            any length take a topic of slices, as `Topic<[u8]>`"
)]
pub unsafe trait PlainData: Copy + Send + Sync + 'static {
    /// Endpoints with different hashes do not match; see [`LayoutHash`] for what is hashed.
    const LAYOUT_HASH: u64;

    /// The alignment of its first scalar; the serialisation of a sequence depends on it.
    #[doc(hidden)]
    const FIRST_ALIGN: usize = align_of::<Self>();

    /// The type's name for messages, without its module.
    fn type_name() -> Cow<'static, str>;

    /// Names, types and offsets of its fields, for [`TypeInfo::layout`](crate::TypeInfo::layout).
    /// Without this function the fields stay unknown.
    fn layout() -> String {
        layout::unknown::<Self>()
    }
}

macro_rules! scalars {
    ($($scalar:ty),*) => {$(
        // SAFETY: every byte pattern is a value, a scalar has no padding, and its alignment is at
        // most 16.
        unsafe impl PlainData for $scalar {
            const LAYOUT_HASH: u64 = LayoutHash::of_scalar(stringify!($scalar));
            fn type_name() -> Cow<'static, str> {
                Cow::Borrowed(stringify!($scalar))
            }
            fn layout() -> String {
                stringify!($scalar).to_owned()
            }
        }
    )*};
}

scalars!(u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize, f32, f64, ());

// SAFETY: an array is its elements, one after the other, with their alignment.
unsafe impl<T: PlainData, const N: usize> PlainData for [T; N] {
    const LAYOUT_HASH: u64 = LayoutHash::of_array::<T>(N);
    const FIRST_ALIGN: usize = T::FIRST_ALIGN;
    fn type_name() -> Cow<'static, str> {
        Cow::Owned(format!("[{}; {N}]", T::type_name()))
    }
    fn layout() -> String {
        format!("[{}; {N}]", T::layout())
    }
}
