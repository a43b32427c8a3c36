//! Types that are known at run time only: bindings of other languages use them instead of a `T`.

use std::sync::Arc;

use myelin_shm::dispatch::callback::Lengths;

use crate::Error;
use crate::layout;
use crate::layout_hash::LayoutHash;
use crate::network::Shape;
use crate::payload::Payload;

/// The memory layout of a plain value, given at run time: the counterpart of a
/// [`PlainData`](crate::PlainData) type, with the same [layout hash](LayoutHash).
///
/// ```
/// use myelin::{Layout, PlainData};
///
/// #[derive(Clone, Copy, PlainData)]
/// #[repr(C)]
/// struct Imu { stamp_ns: u64, acceleration: [f64; 3] }
///
/// let (u64, f64) = (Layout::scalar("u64").unwrap(), Layout::scalar("f64").unwrap());
/// let acceleration = Layout::array(&f64, 3)?;
/// let fields = [("stamp_ns", &u64, 0), ("acceleration", &acceleration, 8)];
/// let imu = Layout::structure("Imu", &fields, 32, 8)?;
/// assert_eq!(imu.hash(), Imu::LAYOUT_HASH);
/// # Ok::<(), myelin::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    type_name: String,
    /// The text of [`TypeInfo::layout`](crate::TypeInfo::layout).
    text: String,
    hash: u64,
    bytes: usize,
    align: usize,
    /// The alignment of its first scalar.
    first_align: usize,
}

impl Layout {
    /// A number by its Rust name, such as `f64`, or a truth value ([`Bool`](crate::Bool)): `bool`.
    /// `None` for any other name.
    pub fn scalar(name: &str) -> Option<Layout> {
        let bytes = match name {
            "u8" | "i8" | "bool" => 1,
            "u16" | "i16" => 2,
            "u32" | "i32" | "f32" => 4,
            "u64" | "i64" | "f64" | "usize" | "isize" => 8,
            "u128" | "i128" => 16,
            _ => return None,
        };
        let hash = LayoutHash::of_scalar(name);
        let type_name = if name == "bool" { "Bool" } else { name }.to_string();
        let text = type_name.clone();
        Some(Layout { type_name, text, hash, bytes, align: bytes, first_align: bytes })
    }

    /// `length` elements, one after the other.
    ///
    /// # Errors
    /// [`Error::Setting`] if its size overflows.
    pub fn array(element: &Layout, length: usize) -> Result<Layout, Error> {
        let type_name = format!("[{}; {length}]", element.type_name);
        let bytes = element.bytes.checked_mul(length).ok_or_else(|| {
            wrong(&type_name, "an array's size in bytes must be a number of 64 bits")
        })?;
        let hash = LayoutHash::of_array_of(element.hash, length);
        let text = format!("[{}; {length}]", element.text);
        Ok(Layout { type_name, text, hash, bytes, ..*element })
    }

    /// A struct: the name, layout and offset of each field; the size and the alignment, all in
    /// bytes. `name` is for messages.
    ///
    /// # Errors
    /// [`Error::Setting`] for anything that the derive of [`PlainData`](crate::PlainData) would
    /// refuse: padding, or an alignment of more than 64.
    pub fn structure(
        name: &str,
        fields: &[(&str, &Layout, usize)],
        bytes: usize,
        align: usize,
    ) -> Result<Layout, Error> {
        if !align.is_power_of_two() || align > 64 {
            return Err(wrong(name, "a type's alignment is a power of two and at most 64"));
        }
        let mut hash = LayoutHash::of_struct();
        let mut end = 0;
        for (field, layout, offset) in fields {
            if *offset != end || !offset.is_multiple_of(layout.align.min(align)) {
                return Err(misplaced(&format!("{name}.{field}"), end, *offset, layout.align));
            }
            hash = hash.field_of(field, layout.hash, *offset, layout.bytes);
            end = offset.saturating_add(layout.bytes);
        }
        if bytes != end || !bytes.is_multiple_of(align) {
            let padding = bytes.max(end.next_multiple_of(align)).saturating_sub(end);
            let what = format!("{name}, with {padding} B of padding at the end");
            return Err(wrong(&what, "fill it with a last field of so many bytes, like `_pad`"));
        }
        let hash = hash.end_struct_of(bytes, align);
        let first_align = fields.first().map_or(1, |(_, layout, _)| layout.first_align);
        let described =
            fields.iter().map(|(field, layout, offset)| (*field, &*layout.text, *offset));
        let text = layout::of_fields(name, described, bytes);
        Ok(Layout { type_name: name.to_string(), text, hash, bytes, align, first_align })
    }

    /// The same layout under another name.
    #[must_use]
    pub fn named(mut self, type_name: &str) -> Layout {
        if let Some(fields) = self.text.strip_prefix(&self.type_name) {
            self.text = format!("{type_name}{fields}");
        }
        self.type_name = type_name.to_string();
        self
    }

    /// The hash that endpoints compare.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// Its size, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Its alignment, in bytes.
    pub fn align(&self) -> usize {
        self.align
    }

    /// Its name for messages.
    pub fn type_name(&self) -> &str {
        &self.type_name
    }
}

/// The payload type of a topic, given at run time: see
/// [`Node::dynamic_topic`](crate::Node::dynamic_topic).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DynamicType {
    type_name: String,
    layout: String,
    hash: u64,
    shape: Shape,
    align: usize,
    /// Bytes before the elements, or of the whole payload; and bytes of an element, or 0.
    first: usize,
    element: usize,
}

impl DynamicType {
    /// One value: `T`.
    pub fn value(layout: &Layout) -> DynamicType {
        let shape = Shape::Value { bytes: layout.bytes };
        let Layout { type_name, text, hash, bytes, align, .. } = layout.clone();
        DynamicType { type_name, layout: text, hash, shape, align, first: bytes, element: 0 }
    }

    /// A slice whose length each sample chooses: `[T]`.
    ///
    /// # Errors
    /// [`Error::Setting`] for elements without bytes.
    pub fn slice(layout: &Layout) -> Result<DynamicType, Error> {
        let Layout { bytes, align, first_align, .. } = *layout;
        let shape = Shape::Sequence {
            element: bytes,
            align: align.min(8),
            first_align: first_align.min(8),
        };
        let type_name = format!("[{}]", layout.type_name);
        let element = element_bytes(layout)?;
        let hash = LayoutHash::of_slice_of(layout.hash);
        let layout = format!("[{}]", layout.text);
        Ok(DynamicType { type_name, layout, hash, shape, align, first: 0, element })
    }

    /// A header and a slice whose length each sample chooses: `(H, [T])`.
    ///
    /// # Errors
    /// [`Error::Setting`] for elements without bytes.
    pub fn header_slice(header: &Layout, layout: &Layout) -> Result<DynamicType, Error> {
        let first = header.bytes.next_multiple_of(layout.align);
        let type_name = format!("({}, [{}])", header.type_name, layout.type_name);
        let element = element_bytes(layout)?;
        let hash = LayoutHash::of_header_slice_of(header.hash, layout.hash, first);
        let (shape, align) = (Shape::Bytes, header.align.max(layout.align));
        let layout = format!("({}, [{}] @{first})", header.text, layout.text);
        Ok(DynamicType { type_name, layout, hash, shape, align, first, element })
    }

    /// A type of another node, by its name and hash; `bytes` if all of its samples have one size. Its
    /// layout is not known here. Other hosts need its shape.
    #[cfg(feature = "any")]
    pub(crate) fn learnt(
        type_name: &str,
        hash: u64,
        bytes: Option<usize>,
        shape: Shape,
    ) -> DynamicType {
        let (first, element) = bytes.map_or((0, 1), |bytes| (bytes, 0));
        let (type_name, layout) = (type_name.to_owned(), String::new());
        DynamicType { type_name, layout, hash, shape, align: ALIGN_MAX, first, element }
    }

    /// The types of a service's topics of requests and of replies, which check lengths themselves.
    pub(crate) fn of_service(request: &DynamicType, reply: &DynamicType) -> [DynamicType; 2] {
        let requests = DynamicType {
            type_name: format!("{} -> {}", request.type_name, reply.type_name),
            layout: format!("{} -> {}", request.layout, reply.layout),
            hash: LayoutHash::of_requests(request.hash, reply.hash),
            shape: Shape::Bytes,
            align: request.align.max(reply.align),
            first: 0,
            element: 1,
        };
        [requests.clone(), requests.of_replies()]
    }

    /// The type of a service's topics of replies, by that of its requests.
    pub(crate) fn of_replies(self) -> DynamicType {
        DynamicType { hash: LayoutHash::of_replies(self.hash), ..self }
    }

    /// Its name for messages.
    pub fn type_name(&self) -> &str {
        &self.type_name
    }

    /// Names, types and offsets of its fields, as in [`TypeInfo::layout`](crate::TypeInfo::layout).
    pub fn layout(&self) -> &str {
        &self.layout
    }

    /// The hash that endpoints compare.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// The alignment of its samples, in bytes.
    pub fn align(&self) -> usize {
        self.align
    }

    /// Where the elements of a sample begin, in bytes; for a single value, its size.
    pub fn elements_offset(&self) -> usize {
        self.first
    }

    /// Bytes of an element; 0 for a single value.
    pub fn element_bytes(&self) -> usize {
        self.element
    }

    /// Bytes of a sample of `length` elements. A size too large for a number is above every limit,
    /// too.
    pub fn bytes_of(&self, length: usize) -> usize {
        length.saturating_mul(self.element).saturating_add(self.first)
    }

    /// Whether every number of bytes [`fits`](Self::fits).
    pub fn fits_all(&self) -> bool {
        (self.first, self.element) == (0, 1)
    }

    /// Whether a sample of this type can have so many bytes.
    #[inline]
    pub fn fits(&self, bytes: usize) -> bool {
        match self.element {
            0 => bytes == self.first,
            // The most common case, without a division.
            1 => bytes >= self.first,
            element => bytes.checked_sub(self.first).is_some_and(|all| all.is_multiple_of(element)),
        }
    }

    pub(crate) fn shape(&self) -> Shape {
        self.shape
    }

    pub(crate) fn lengths(&self) -> Lengths {
        match self.element {
            0 => Lengths::Exactly(self.first),
            element => Lengths::Elements { first: self.first, element },
        }
    }
}

/// Whether a topic of `T`, or of a run-time type, can have a sample of so many bytes. Only topics
/// of bytes can have a run-time type, so others do not check for one.
#[inline(always)]
pub(crate) fn fits<T: Payload + ?Sized>(dynamic: &Option<Arc<DynamicType>>, bytes: usize) -> bool {
    let is_dynamic = const { matches!(T::SHAPE, Shape::Sequence { element: 1, .. }) };
    T::fits(bytes)
        && (!is_dynamic || dynamic.as_ref().is_none_or(|described| described.fits(bytes)))
}

fn element_bytes(layout: &Layout) -> Result<usize, Error> {
    let remedy = "a slice of elements without bytes has no length; take elements with a field";
    if layout.bytes == 0 { Err(wrong(&layout.type_name, remedy)) } else { Ok(layout.bytes) }
}

fn wrong(what: &str, remedy: &'static str) -> Error {
    Error::Setting { topic: None, field: "the layout", value: format!("that of {what}"), remedy }
}

/// The error for a field that is not at the end of the previous one, or not aligned there.
fn misplaced(field: &str, end: usize, offset: usize, align: usize) -> Error {
    if offset < end {
        let what =
            format!("{field}, which begins at byte {offset}: the fields before it end at {end}");
        return wrong(&what, "name the fields in the order in which they lie");
    }
    let padding = match offset - end {
        0 => end.next_multiple_of(align) - end, // there would be, if it were aligned
        padding => padding,
    };
    wrong(
        &format!("{field}, with {padding} B of padding before this field"),
        "order the fields from large to small, or fill the gap with a field of so many bytes, like `_pad`",
    )
}

/// The largest alignment that a type may have.
#[cfg(feature = "any")]
const ALIGN_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::sealed::Raw;
    use crate::{Bool, FixedString, PlainData};

    #[derive(Clone, Copy, PlainData)]
    #[repr(C)]
    struct Inner {
        at: [[f32; 2]; 3],
        closed: Bool,
        _pad: [u8; 7],
    }

    #[derive(Clone, Copy, PlainData)]
    #[repr(C)]
    struct Outer {
        big: u128,
        inner: [Inner; 2],
        name: FixedString<12>,
        tail: [i16; 8],
    }

    fn scalar(name: &str) -> Layout {
        Layout::scalar(name).unwrap()
    }

    fn array(element: &Layout, length: usize) -> Layout {
        Layout::array(element, length).unwrap()
    }

    fn inner() -> Layout {
        let at = array(&array(&scalar("f32"), 2), 3);
        let (closed, pad) = (scalar("bool"), array(&scalar("u8"), 7));
        let fields = [("at", &at, 0), ("closed", &closed, 24), ("_pad", &pad, 25)];
        Layout::structure("Inner", &fields, 32, 4).unwrap()
    }

    fn outer() -> Layout {
        let (length, bytes) = (array(&scalar("u8"), 4), array(&scalar("u8"), 12));
        let fields = [("length", &length, 0), ("bytes", &bytes, 4)];
        let name = Layout::structure("", &fields, 16, 1).unwrap().named("FixedString<12>");
        let (big, inner, tail) = (scalar("u128"), array(&inner(), 2), array(&scalar("i16"), 8));
        let fields =
            [("big", &big, 0), ("inner", &inner, 16), ("name", &name, 80), ("tail", &tail, 96)];
        Layout::structure("Outer", &fields, 112, 16).unwrap()
    }

    fn is_the_same<T: Raw + ?Sized>(described: &DynamicType) {
        assert_eq!((described.type_name(), described.hash()), (&*T::type_name(), T::layout_hash()));
        assert_eq!(described.layout(), T::layout());
        assert_eq!((described.align, described.shape), (T::ALIGN, T::SHAPE));
        for bytes in 0..400 {
            assert_eq!(
                described.fits(bytes),
                T::fits(bytes),
                "{bytes} bytes of {}",
                described.type_name()
            );
        }
    }

    #[test]
    fn run_time_layouts_equal_derived_ones() {
        is_the_same::<f64>(&DynamicType::value(&scalar("f64")));
        is_the_same::<Bool>(&DynamicType::value(&scalar("bool")));
        is_the_same::<Outer>(&DynamicType::value(&outer()));
        is_the_same::<[u8]>(&DynamicType::slice(&scalar("u8")).unwrap());
        is_the_same::<[Inner]>(&DynamicType::slice(&inner()).unwrap());
        is_the_same::<(Inner, [u128])>(
            &DynamicType::header_slice(&inner(), &scalar("u128")).unwrap(),
        );
        is_the_same::<(u16, [Inner])>(
            &DynamicType::header_slice(&scalar("u16"), &inner()).unwrap(),
        );
    }

    #[test]
    fn padding_is_refused_with_its_place() {
        let (byte, double) = (scalar("u8"), scalar("f64"));
        let refusal = |fields: &[_], bytes, align| {
            Layout::structure("Gap", fields, bytes, align).unwrap_err().to_string()
        };
        let before = refusal(&[("a", &byte, 0), ("b", &double, 8)], 16, 8);
        assert!(before.contains("Gap.b, with 7 B of padding before"), "{before}");
        let packed = refusal(&[("a", &byte, 0), ("b", &double, 1)], 9, 8);
        assert!(packed.contains("Gap.b, with 7 B of padding before"), "{packed}");
        let turned = refusal(&[("b", &double, 8), ("a", &byte, 0)], 16, 8);
        assert!(turned.contains("Gap.b, with 8 B of padding before"), "{turned}");
        let turned = refusal(&[("b", &double, 0), ("a", &byte, 0)], 16, 8);
        assert!(turned.contains("Gap.a") && turned.contains("in the order"), "{turned}");
        let behind = refusal(&[("b", &double, 0), ("a", &byte, 8)], 16, 8);
        assert!(behind.contains("Gap, with 7 B of padding at the end"), "{behind}");
        assert!(refusal(&[("b", &double, 0)], 8, 128).contains("at most 64"));
        assert!(Layout::structure("Packed", &[("a", &byte, 0), ("b", &double, 1)], 9, 1).is_ok());
        assert!(Layout::scalar("char").is_none());
        assert!(Layout::array(&double, usize::MAX / 2).is_err());
        assert!(DynamicType::slice(&array(&double, 0)).is_err());
    }
}
