//! The payload of a topic: one value of a plain type, a slice of any length, or both.

use crate::plain_data::PlainData;

/// The type of a topic: `T`, `[T]`, or `(H, [T])`, where `H` and `T` are [`PlainData`]. It is
/// implemented for these; you do not implement it.
///
/// `T::View` is the type that a sample or a loan dereferences to: `T` and `[T]` themselves, and for
/// `(H, [T])` a [`HeaderSlice<H, T>`](crate::HeaderSlice).
#[diagnostic::on_unimplemented(
    message = "a topic cannot carry `{Self}`",
    label = "neither plain data nor a slice of it",
    note = "a topic carries `T`, `[T]` or `(H, [T])` where `H` and `T` are `PlainData`: integers, \
            floats, arrays of plain data, and structs with \
            `#[derive(Clone, Copy, myelin::PlainData)]` and `#[repr(C)]`",
    note = "for text and serialised formats take `[u8]`"
)]
pub trait Payload: sealed::Raw {}

impl<T: PlainData> Payload for T {}
impl<T: PlainData> Payload for [T] {}
impl<H: PlainData, T: PlainData> Payload for (H, [T]) {}

pub(crate) mod sealed {
    use myelin_shm::dispatch::callback::Lengths;

    use crate::header_slice::HeaderSlice;
    use crate::layout_hash::LayoutHash;
    use crate::network::Shape;
    use crate::plain_data::PlainData;

    /// The conversion between a payload and its bytes.
    pub trait Raw {
        /// The type that its bytes are viewed as.
        type View: ?Sized;

        fn type_name() -> String;

        fn layout_hash() -> u64;

        /// The type's description, for people and tools.
        fn layout() -> String;

        /// The lengths that a sample of this type can have.
        const LENGTHS: Lengths;

        /// The alignment of samples.
        const ALIGN: usize;

        /// The shape in CDR.
        const SHAPE: Shape;

        /// Whether a sample of this type can have so many bytes.
        fn fits(bytes: usize) -> bool;

        /// The payload of `bytes` bytes that begins at `pointer`. `bytes` must [fit](Raw::fits),
        /// and `pointer` must be aligned to [`ALIGN`](Raw::ALIGN).
        fn view(pointer: *const u8, bytes: usize) -> *const Self::View;

        fn view_mut(pointer: *mut u8, bytes: usize) -> *mut Self::View;

        fn as_bytes(view: &Self::View) -> &[u8];
    }

    impl<T: PlainData> Raw for T {
        type View = T;

        const LENGTHS: Lengths = Lengths::Exactly(size_of::<T>());
        const ALIGN: usize = align_of::<T>();
        const SHAPE: Shape = Shape::Value { bytes: size_of::<T>() };

        fn type_name() -> String {
            T::type_name().into_owned()
        }

        fn layout_hash() -> u64 {
            T::LAYOUT_HASH
        }

        fn layout() -> String {
            <T as PlainData>::layout()
        }

        #[inline(always)]
        fn fits(bytes: usize) -> bool {
            bytes == size_of::<T>()
        }

        #[inline(always)]
        fn view(pointer: *const u8, _bytes: usize) -> *const Self::View {
            const { assert!(align_of::<T>() <= ALIGN_MAX, "aligned to more than 64 bytes") }
            pointer.cast()
        }

        #[inline(always)]
        fn view_mut(pointer: *mut u8, _bytes: usize) -> *mut Self::View {
            const { assert!(align_of::<T>() <= ALIGN_MAX, "aligned to more than 64 bytes") }
            pointer.cast()
        }

        #[inline(always)]
        fn as_bytes(view: &T) -> &[u8] {
            let pointer = std::ptr::from_ref(view).cast();
            // SAFETY: plain data has no padding, so all its bytes are initialised.
            unsafe { std::slice::from_raw_parts(pointer, size_of::<T>()) }
        }
    }

    impl<T: PlainData> Raw for [T] {
        type View = [T];

        const LENGTHS: Lengths = Lengths::Such(Self::fits);
        const ALIGN: usize = align_of::<T>();
        const SHAPE: Shape = Shape::Sequence {
            element: size_of::<T>(),
            align: if align_of::<T>() < 8 { align_of::<T>() } else { 8 },
            first_align: if T::FIRST_ALIGN < 8 { T::FIRST_ALIGN } else { 8 },
        };

        fn type_name() -> String {
            format!("[{}]", T::type_name())
        }

        fn layout_hash() -> u64 {
            const { LayoutHash::of_slice::<T>() }
        }

        fn layout() -> String {
            format!("[{}]", <T as PlainData>::layout())
        }

        #[inline(always)]
        fn fits(bytes: usize) -> bool {
            const { assert!(size_of::<T>() > 0, "a slice of elements without bytes has no length") }
            bytes.is_multiple_of(size_of::<T>())
        }

        #[inline(always)]
        fn view(pointer: *const u8, bytes: usize) -> *const Self::View {
            const { assert!(align_of::<T>() <= ALIGN_MAX, "aligned to more than 64 bytes") }
            std::ptr::slice_from_raw_parts(pointer.cast(), bytes / size_of::<T>())
        }

        #[inline(always)]
        fn view_mut(pointer: *mut u8, bytes: usize) -> *mut Self::View {
            const { assert!(align_of::<T>() <= ALIGN_MAX, "aligned to more than 64 bytes") }
            std::ptr::slice_from_raw_parts_mut(pointer.cast(), bytes / size_of::<T>())
        }

        #[inline(always)]
        fn as_bytes(view: &[T]) -> &[u8] {
            // SAFETY: as for one element; the elements lie one after the other.
            unsafe { std::slice::from_raw_parts(view.as_ptr().cast(), size_of_val(view)) }
        }
    }

    impl<H: PlainData, T: PlainData> Raw for (H, [T]) {
        type View = HeaderSlice<H, T>;

        const LENGTHS: Lengths = Lengths::Such(Self::fits);
        const ALIGN: usize =
            if align_of::<H>() > align_of::<T>() { align_of::<H>() } else { align_of::<T>() };
        const SHAPE: Shape = Shape::Bytes;

        fn type_name() -> String {
            format!("({}, [{}])", H::type_name(), T::type_name())
        }

        fn layout_hash() -> u64 {
            const { LayoutHash::of_header_slice::<H, T>() }
        }

        fn layout() -> String {
            let offset = HeaderSlice::<H, T>::SLICE_OFFSET;
            format!("({}, [{}] @{offset})", <H as PlainData>::layout(), <T as PlainData>::layout())
        }

        #[inline(always)]
        fn fits(bytes: usize) -> bool {
            const { assert!(size_of::<T>() > 0, "a slice of elements without bytes has no length") }
            let elements = bytes.checked_sub(HeaderSlice::<H, T>::SLICE_OFFSET);
            elements.is_some_and(|bytes| bytes.is_multiple_of(size_of::<T>()))
        }

        #[inline(always)]
        fn view(pointer: *const u8, bytes: usize) -> *const Self::View {
            const { assert!(Self::ALIGN <= ALIGN_MAX, "aligned to more than 64 bytes") }
            // The type consists of bytes only, so the length is the same.
            std::ptr::slice_from_raw_parts(pointer, bytes) as *const Self::View
        }

        #[inline(always)]
        fn view_mut(pointer: *mut u8, bytes: usize) -> *mut Self::View {
            const { assert!(Self::ALIGN <= ALIGN_MAX, "aligned to more than 64 bytes") }
            std::ptr::slice_from_raw_parts_mut(pointer, bytes) as *mut Self::View
        }

        #[inline(always)]
        fn as_bytes(view: &Self::View) -> &[u8] {
            view.as_bytes()
        }
    }

    /// The alignment of payloads on the wire.
    const ALIGN_MAX: usize = 64;
}
