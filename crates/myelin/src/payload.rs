//! What a topic carries: one value of a plain type, or a slice of as many as you like.

use crate::plain_data::PlainData;

/// The type of a topic: `T` or `[T]`, where `T` is [`PlainData`]. Implemented for these; you do not
/// implement it.
#[diagnostic::on_unimplemented(
    message = "a topic cannot carry `{Self}`",
    label = "neither plain data nor a slice of it",
    note = "a topic carries `T` or `[T]` where `T` is `PlainData`: integers, floats, arrays of plain \
            data, and structs with `#[derive(Clone, Copy, myelin::PlainData)]` and `#[repr(C)]`",
    note = "for text and serialised formats take `[u8]`"
)]
pub trait Payload: sealed::Raw {}

impl<T: PlainData> Payload for T {}
impl<T: PlainData> Payload for [T] {}

pub(crate) mod sealed {
    use myelin_shm::dispatch::callback::Lengths;

    use crate::layout_hash::LayoutHash;
    use crate::network::Shape;
    use crate::plain_data::PlainData;

    /// Between a payload and its bytes.
    pub trait Raw {
        fn type_name() -> String;

        fn layout_hash() -> u64;

        /// Which samples are of this type.
        const LENGTHS: Lengths;

        /// What they are aligned to.
        const ALIGN: usize;

        /// What they are to CDR.
        const SHAPE: Shape;

        /// Whether a sample of this type can have so many bytes.
        fn fits(bytes: usize) -> bool;

        /// The payload of `bytes` bytes that begins at `pointer`.
        fn view(pointer: *const u8, bytes: usize) -> *const Self;

        fn view_mut(pointer: *mut u8, bytes: usize) -> *mut Self;

        fn as_bytes(&self) -> &[u8];
    }

    impl<T: PlainData> Raw for T {
        const LENGTHS: Lengths = Lengths::Exactly(size_of::<T>());
        const ALIGN: usize = align_of::<T>();
        const SHAPE: Shape = Shape::Value { bytes: size_of::<T>() };

        fn type_name() -> String {
            T::type_name().into_owned()
        }

        fn layout_hash() -> u64 {
            T::LAYOUT_HASH
        }

        #[inline(always)]
        fn fits(bytes: usize) -> bool {
            bytes == size_of::<T>()
        }

        #[inline(always)]
        fn view(pointer: *const u8, _bytes: usize) -> *const Self {
            const { assert!(align_of::<T>() <= ALIGN_MAX, "aligned to more than 64 bytes") }
            pointer.cast()
        }

        #[inline(always)]
        fn view_mut(pointer: *mut u8, _bytes: usize) -> *mut Self {
            const { assert!(align_of::<T>() <= ALIGN_MAX, "aligned to more than 64 bytes") }
            pointer.cast()
        }

        #[inline(always)]
        fn as_bytes(&self) -> &[u8] {
            let pointer = std::ptr::from_ref(self).cast();
            // SAFETY: plain data has no padding, so all its bytes are initialised.
            unsafe { std::slice::from_raw_parts(pointer, size_of::<T>()) }
        }
    }

    impl<T: PlainData> Raw for [T] {
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

        #[inline(always)]
        fn fits(bytes: usize) -> bool {
            const { assert!(size_of::<T>() > 0, "a slice of elements without bytes has no length") }
            bytes.is_multiple_of(size_of::<T>())
        }

        #[inline(always)]
        fn view(pointer: *const u8, bytes: usize) -> *const Self {
            const { assert!(align_of::<T>() <= ALIGN_MAX, "aligned to more than 64 bytes") }
            std::ptr::slice_from_raw_parts(pointer.cast(), bytes / size_of::<T>())
        }

        #[inline(always)]
        fn view_mut(pointer: *mut u8, bytes: usize) -> *mut Self {
            const { assert!(align_of::<T>() <= ALIGN_MAX, "aligned to more than 64 bytes") }
            std::ptr::slice_from_raw_parts_mut(pointer.cast(), bytes / size_of::<T>())
        }

        #[inline(always)]
        fn as_bytes(&self) -> &[u8] {
            // SAFETY: as for one element; the elements lie one after the other.
            unsafe { std::slice::from_raw_parts(self.as_ptr().cast(), size_of_val(self)) }
        }
    }

    /// What the wire aligns payloads to.
    const ALIGN_MAX: usize = 64;
}
