//! The layout hash: two programs compare it to know that their types have the same bytes.

use myelin_shm::fnv::Fnv;

use crate::header_slice::HeaderSlice;
use crate::layout::Field;
use crate::plain_data::PlainData;

/// Computes a type's layout hash at compile time: 64-bit FNV-1a over a description of the type.
///
/// `#[derive(PlainData)]` uses it; you need it only to implement [`PlainData`] by hand. Types that
/// are known at run time only, in a binding of another language, use [`Layout`](crate::Layout). The
/// description, byte by byte, with numbers as 8 bytes little-endian:
///
/// | type | hashed |
/// |---|---|
/// | `u8` … `i128`, `usize`, `isize`, `f32`, `f64`, `()` | its Rust name, such as `f64` |
/// | `[T; N]` | `[`, the hash of `T`, `N` |
/// | a struct | `{`, then for each field in order: its name, a zero byte, the hash of its type, its offset, its size; then `}`, the struct's size, its alignment |
/// | `Pod<T>`, `Zerocopy<T>` | `foreign`, the size, the alignment |
/// | the topic `[T]` | `[]`, the hash of `T` |
/// | the topic `(H, [T])` | `()`, the hash of `H`, `[]`, the hash of `T`, the offset of the slice |
///
/// A struct's own name is not in it: both sides only have to read the same fields at the same
/// places. The fields of a tuple struct are called `0`, `1`, ….
///
/// ```
/// use myelin::{LayoutHash, PlainData};
///
/// #[derive(Clone, Copy, PlainData)]
/// #[repr(C)]
/// struct Point { x: f32, y: f32 }
///
/// const BY_HAND: u64 = LayoutHash::of_struct()
///     .field::<f32>("x", 0)
///     .field::<f32>("y", 4)
///     .end_struct::<Point>();
/// assert_eq!(Point::LAYOUT_HASH, BY_HAND);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct LayoutHash {
    hash: Fnv,
    /// The alignment of the first field; 0 before there is one.
    first_align: usize,
}

impl LayoutHash {
    const BEGIN: LayoutHash = LayoutHash { hash: Fnv::BEGIN, first_align: 0 };

    /// The hash of a type that is only a name, such as `f64`.
    pub const fn of_scalar(name: &str) -> u64 {
        LayoutHash::of_bytes(name.as_bytes())
    }

    /// The FNV-1a hash of any bytes.
    pub(crate) const fn of_bytes(bytes: &[u8]) -> u64 {
        LayoutHash::BEGIN.bytes(bytes).finish()
    }

    /// The hash of `[T; N]`.
    pub const fn of_array<T: PlainData>(length: usize) -> u64 {
        LayoutHash::of_array_of(T::LAYOUT_HASH, length)
    }

    pub(crate) const fn of_array_of(element: u64, length: usize) -> u64 {
        LayoutHash::BEGIN.bytes(b"[").number(element).number(length as u64).finish()
    }

    /// The hash of the topic type `[T]`.
    pub const fn of_slice<T: PlainData>() -> u64 {
        LayoutHash::of_slice_of(T::LAYOUT_HASH)
    }

    pub(crate) const fn of_slice_of(element: u64) -> u64 {
        LayoutHash::BEGIN.bytes(b"[]").number(element).finish()
    }

    /// The hash of a type whose size and alignment only are known.
    #[cfg(any(feature = "bytemuck", feature = "zerocopy"))]
    pub(crate) const fn of_foreign<T>() -> u64 {
        let begun = LayoutHash::BEGIN.bytes(b"foreign");
        begun.number(size_of::<T>() as u64).number(align_of::<T>() as u64).finish()
    }

    /// The hash of the topic type `(H, [T])`.
    pub const fn of_header_slice<H: PlainData, T: PlainData>() -> u64 {
        let offset = HeaderSlice::<H, T>::SLICE_OFFSET;
        LayoutHash::of_header_slice_of(H::LAYOUT_HASH, T::LAYOUT_HASH, offset)
    }

    pub(crate) const fn of_header_slice_of(header: u64, element: u64, offset: usize) -> u64 {
        let header = LayoutHash::BEGIN.bytes(b"()").number(header);
        header.bytes(b"[]").number(element).number(offset as u64).finish()
    }

    /// The hash of a service's topic of requests: its types, apart from the header that the service
    /// adds.
    pub(crate) fn of_requests(request: u64, reply: u64) -> u64 {
        LayoutHash::BEGIN.bytes(b"service").number(request).number(reply).finish()
    }

    /// That of its topics of replies: a client that learns one hash knows both.
    pub(crate) fn of_replies(of_requests: u64) -> u64 {
        LayoutHash::BEGIN.bytes(b"reply").number(of_requests).finish()
    }

    /// Begins a struct.
    pub const fn of_struct() -> Self {
        LayoutHash::BEGIN.bytes(b"{")
    }

    /// Adds the next field: its name, its type, its offset in bytes.
    pub const fn field<T: PlainData>(self, name: &str, offset: usize) -> Self {
        self.next(&Field::of::<T>(name, offset))
    }

    /// A struct with these fields, without its end.
    #[doc(hidden)]
    pub const fn of_fields(fields: &[Field<'_>]) -> Self {
        let mut layout = LayoutHash::of_struct();
        let mut at = 0;
        while at < fields.len() {
            layout = layout.next(&fields[at]);
            at += 1;
        }
        layout
    }

    const fn next(self, field: &Field<'_>) -> Self {
        let first_align = if self.first_align == 0 { field.first_align } else { self.first_align };
        let fields = LayoutHash { first_align, ..self };
        fields.field_of(field.name, field.hash, field.offset, field.bytes)
    }

    pub(crate) const fn field_of(self, name: &str, hash: u64, offset: usize, bytes: usize) -> Self {
        let field = self.bytes(name.as_bytes()).bytes(&[0]).number(hash);
        field.number(offset as u64).number(bytes as u64)
    }

    /// Ends the struct `T`.
    pub const fn end_struct<T>(self) -> u64 {
        self.end_struct_of(size_of::<T>(), align_of::<T>())
    }

    pub(crate) const fn end_struct_of(self, bytes: usize, align: usize) -> u64 {
        self.bytes(b"}").number(bytes as u64).number(align as u64).finish()
    }

    /// The alignment of the first scalar in the fields so far.
    #[doc(hidden)]
    pub const fn first_align(&self) -> usize {
        if self.first_align == 0 { 1 } else { self.first_align }
    }

    const fn number(self, number: u64) -> Self {
        self.bytes(&number.to_le_bytes())
    }

    const fn bytes(self, bytes: &[u8]) -> Self {
        LayoutHash { hash: self.hash.bytes(bytes), ..self }
    }

    const fn finish(self) -> u64 {
        self.hash.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_layouts_have_different_hashes() {
        let hashes = [
            u8::LAYOUT_HASH,
            i8::LAYOUT_HASH,
            u64::LAYOUT_HASH,
            f64::LAYOUT_HASH,
            <[f64; 1]>::LAYOUT_HASH,
            <[f64; 2]>::LAYOUT_HASH,
            <[[f64; 2]; 1]>::LAYOUT_HASH,
            LayoutHash::of_slice::<f64>(),
            LayoutHash::of_header_slice::<f64, f64>(),
            LayoutHash::of_header_slice::<f64, f32>(),
            LayoutHash::of_header_slice::<f32, f64>(),
            LayoutHash::of_header_slice::<[f64; 1], f64>(),
            LayoutHash::of_struct().field::<u32>("a", 0).end_struct::<u32>(),
            LayoutHash::of_struct().field::<u32>("b", 0).end_struct::<u32>(),
            LayoutHash::of_struct().field::<u32>("a", 4).end_struct::<u32>(),
            LayoutHash::of_struct().field::<i32>("a", 0).end_struct::<u32>(),
            LayoutHash::of_struct().field::<u32>("a", 0).end_struct::<u64>(),
        ];
        let distinct: std::collections::HashSet<_> = hashes.into_iter().collect();
        assert_eq!(distinct.len(), hashes.len());
    }
}
