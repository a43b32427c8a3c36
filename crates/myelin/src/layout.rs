//! The description of a type's layout, for people and tools. `docs/reference/library.md` has its
//! grammar.

use std::fmt::{Display, Write};

use crate::plain_data::PlainData;

/// A field of a struct, for the code of `#[derive(PlainData)]`.
#[doc(hidden)]
#[derive(Debug)]
pub struct Field<'a> {
    pub(crate) name: &'a str,
    pub(crate) offset: usize,
    pub(crate) bytes: usize,
    pub(crate) hash: u64,
    pub(crate) first_align: usize,
    layout: fn() -> String,
}

impl<'a> Field<'a> {
    /// A field of type `T`, at an offset in bytes.
    pub const fn of<T: PlainData>(name: &'a str, offset: usize) -> Field<'a> {
        Field {
            name,
            offset,
            bytes: size_of::<T>(),
            hash: T::LAYOUT_HASH,
            first_align: T::FIRST_ALIGN,
            layout: T::layout,
        }
    }
}

/// The description of a struct with these fields.
#[doc(hidden)]
pub fn of_struct<T: PlainData>(fields: &[Field<'_>]) -> String {
    let described = fields.iter().map(|field| (field.name, (field.layout)(), field.offset));
    of_fields(&T::type_name(), described, size_of::<T>())
}

/// The description of a struct, from each field's name, its type's description and its offset.
pub(crate) fn of_fields<'a>(
    type_name: &str,
    fields: impl Iterator<Item = (&'a str, impl Display, usize)>,
    bytes: usize,
) -> String {
    let mut text = format!("{type_name}{{");
    for (at, (name, layout, offset)) in fields.enumerate() {
        let comma = if at > 0 { ", " } else { "" };
        let _ = write!(text, "{comma}{name}: {layout} @{offset}");
    }
    let _ = write!(text, "}} {bytes}");
    text
}

/// The description of a type whose fields are unknown.
pub(crate) fn unknown<T: PlainData>() -> String {
    format!("{}{{?}} {}", T::type_name(), size_of::<T>())
}

#[cfg(test)]
mod tests {
    use crate::payload::sealed::Raw;
    use crate::{Bool, BoundedVec, FixedString, PlainData};

    #[derive(Clone, Copy, PlainData)]
    #[repr(C)]
    struct Point(f32, f32);

    #[derive(Clone, Copy, PlainData)]
    #[repr(C)]
    struct Scan {
        r#type: u64,
        corners: [[Point; 2]; 3],
        name: FixedString<11>,
        is_last: Bool,
    }

    #[test]
    fn it_names_fields_types_and_offsets() {
        let point = "Point{0: f32 @0, 1: f32 @4} 8";
        let name = "FixedString<11>{length: [u8; 4] @0, bytes: [u8; 11] @4} 15";
        let scan = format!(
            "Scan{{type: u64 @0, corners: [[{point}; 2]; 3] @8, name: {name} @56, is_last: Bool @71}} 72"
        );
        assert_eq!(<Scan as Raw>::layout(), scan);
        assert_eq!(<[Point] as Raw>::layout(), format!("[{point}]"));
        let both = <(u8, [Point]) as Raw>::layout();
        assert_eq!(both, format!("(u8, [{point}] @4)"));
        let vec = <BoundedVec<u32, 2> as Raw>::layout();
        assert_eq!(vec, "BoundedVec<u32, 2>{length: u64 @0, elements: [u32; 2] @8} 16");
        assert_eq!(<() as Raw>::layout(), "()");
    }

    #[derive(Clone, Copy)]
    struct ByHand(#[expect(dead_code, reason = "its bytes count")] u16);

    // SAFETY: a number.
    unsafe impl PlainData for ByHand {
        const LAYOUT_HASH: u64 = 1;
        fn type_name() -> std::borrow::Cow<'static, str> {
            "ByHand".into()
        }
    }

    #[test]
    fn a_layout_made_by_hand_has_unknown_fields() {
        assert_eq!(<[ByHand; 3] as PlainData>::layout(), "[ByHand{?} 2; 3]");
    }
}
