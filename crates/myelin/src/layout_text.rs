//! The run-time type that the text of a layout describes.

use myelin_value::{Kind, Schema, Type};

use crate::dynamic::{DynamicType, Layout};
use crate::{BoundedVec, Error};

impl DynamicType {
    /// The type with this layout, as a [`Schema`](crate::Schema) and a recording have it. Its
    /// topic meets topics of the Rust type.
    ///
    /// ```
    /// use myelin::{DynamicType, PlainData};
    ///
    /// #[derive(Clone, Copy, PlainData)]
    /// #[repr(C)]
    /// struct Point { x: f32, y: f32 }
    ///
    /// let point = DynamicType::from_layout("Point{x: f32 @0, y: f32 @4} 8")?;
    /// assert_eq!(point.hash(), Point::LAYOUT_HASH);
    /// # Ok::<(), myelin::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Setting`] for a text that is no layout, and for a type whose fields it does not
    /// name.
    pub fn from_layout(text: &str) -> Result<DynamicType, Error> {
        let parsed = Schema::layout(text).parse();
        let ty = parsed.map_err(|error| unfit(text, error.to_string()))?;
        match ty.kind() {
            Kind::Sequence { element, bound: None } => DynamicType::slice(&layout(element)?),
            Kind::Struct { name, fields } if name.starts_with('(') && ty.bytes().is_none() => {
                let [header, slice] = &fields[..] else { return Err(nameless(&ty)) };
                let Kind::Sequence { element, bound: None } = slice.ty.kind() else {
                    return Err(nameless(&ty));
                };
                let ty = DynamicType::header_slice(&layout(&header.ty)?, &layout(element)?)?;
                if ty.elements_offset() != slice.offset {
                    return Err(unfit(text, "its elements begin elsewhere".to_owned()));
                }
                Ok(ty)
            }
            _ => Ok(DynamicType::value(&layout(&ty)?)),
        }
    }
}

fn layout(ty: &Type) -> Result<Layout, Error> {
    match ty.kind() {
        Kind::Primitive(primitive) => Layout::scalar(primitive.name()).ok_or_else(|| nameless(ty)),
        Kind::Array { element, length } => Layout::array(&layout(element)?, *length),
        Kind::String { bound: Some(bound) } => {
            let byte = Layout::scalar("u8").ok_or_else(|| nameless(ty))?;
            let (length, bytes) = (Layout::array(&byte, 4)?, Layout::array(&byte, *bound)?);
            let fields = [("length", &length, 0), ("bytes", &bytes, 4)];
            let layout = Layout::structure("", &fields, bound + 4, 1)?;
            Ok(layout.named(&format!("FixedString<{bound}>")))
        }
        Kind::Sequence { element, bound: Some(bound) } => {
            let (element, number) = (layout(element)?, layout_of_number()?);
            let elements = Layout::array(&element, *bound)?;
            let fields = [("length", &number, 0), ("elements", &elements, 8)];
            let layout = Layout::structure("", &fields, 8 + elements.bytes(), 8)?;
            Ok(layout.named(&format!("BoundedVec<{}, {bound}>", element.type_name())))
        }
        Kind::Struct { name, fields } => {
            let layouts = fields.iter().map(|field| layout(&field.ty));
            let layouts: Vec<Layout> = layouts.collect::<Result<_, _>>()?;
            let align = layouts.iter().map(Layout::align).max().unwrap_or(1);
            let fields = fields.iter().zip(&layouts);
            let fields: Vec<_> =
                fields.map(|(field, layout)| (&*field.name, layout, field.offset)).collect();
            Layout::structure(name, &fields, ty.bytes_min(), align)
        }
        _ => Err(nameless(ty)),
    }
}

/// The number in front of a [`BoundedVec`].
fn layout_of_number() -> Result<Layout, Error> {
    const { assert!(align_of::<BoundedVec<u64, 1>>() == 8) };
    Layout::scalar("u64").ok_or_else(|| unfit("u64", String::new()))
}

fn nameless(ty: &Type) -> Error {
    unfit(&ty.to_string(), "its fields are not known".to_owned())
}

fn unfit(text: &str, why: String) -> Error {
    Error::Setting {
        topic: None,
        field: "the layout",
        value: format!("{text:?} ({why})"),
        remedy: "write numbers, arrays and structs with offsets, such as Point{x: f32 @0, y: f32 @4} 8",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::sealed::Raw;
    use crate::{Bool, FixedString, PlainData};

    #[derive(Clone, Copy, PlainData)]
    #[repr(C)]
    struct Inner {
        name: FixedString<4>,
        weights: [f32; 2],
    }

    #[derive(Clone, Copy, PlainData)]
    #[repr(C)]
    struct Outer {
        big: u128,
        parts: BoundedVec<Inner, 2>,
        flags: [Bool; 8],
        counts: BoundedVec<u8, 8>,
    }

    fn check<T: Raw + ?Sized>() {
        let made = DynamicType::from_layout(&T::layout()).unwrap();
        assert_eq!((made.hash(), made.type_name()), (T::layout_hash(), &*T::type_name()));
        assert_eq!(made.layout(), T::layout());
    }

    #[test]
    fn a_layout_has_the_hash_of_its_type() {
        check::<f64>();
        check::<Bool>();
        check::<[u8]>();
        check::<[[u16; 3]]>();
        check::<Inner>();
        check::<Outer>();
        check::<[Outer]>();
        check::<(u64, [Inner])>();
        check::<(u8, [u128])>();
    }

    #[test]
    fn what_is_no_layout_is_refused_in_one_line() {
        for text in ["", "Point", "ByHand{?} 2", "Point{x: f32 @1} 5", "(u8, [f64] @16)"] {
            let error = DynamicType::from_layout(text).unwrap_err().to_string();
            assert!(error.contains("layout") && !error.contains('\n'), "{text}: {error}");
        }
    }
}
