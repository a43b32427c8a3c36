//! Structs that begin with their size. A program may be compiled with an older header, which has
//! fewer members, or with a newer one. A missing member is 0, which keeps the previous behaviour.

use crate::error::Failure;

/// A struct of the header that begins with its size; zeros in all its bytes are a value.
///
/// # Safety
/// It is `repr(C)`, its first member is a `usize`, its size, and zeros are a value.
pub unsafe trait GrowingStruct: Copy {
    /// The name for messages.
    const NAME: &'static str;
    /// The size of its first version: no program has a smaller one.
    const SIZE_MIN: usize;
}

/// Declares the structs that begin with their size.
macro_rules! sized {
    ($($name:ident up to $last:ident: $last_ty:ty;)*) => {$(
        // SAFETY: `repr(C)`; `size` comes first; its members are numbers, pointers and such structs.
        unsafe impl $crate::sized::GrowingStruct for $name {
            const NAME: &'static str = stringify!($name);
            const SIZE_MIN: usize =
                std::mem::offset_of!($name, $last) + size_of::<$last_ty>();
        }
        const _: () = assert!(std::mem::offset_of!($name, size) == 0);
    )*};
}
pub(crate) use sized;

/// The program's options, or all 0 for NULL.
///
/// # Safety
/// `from` is NULL or points to as many bytes as its first member says.
///
/// # Errors
/// An impossible size; members that this library does not know and that are not 0.
pub unsafe fn read<T: GrowingStruct>(from: *const T) -> Result<T, Failure> {
    // SAFETY: zeros are a value (`GrowingStruct`).
    let mut options: T = unsafe { std::mem::zeroed() };
    if from.is_null() {
        return Ok(options);
    }
    // SAFETY: it points to a struct with a size in front.
    let bytes = unsafe { size_of_program::<T>(from)? };
    let known = bytes.min(size_of::<T>());
    // SAFETY: so many bytes are there on both sides, which do not overlap.
    unsafe { std::ptr::copy_nonoverlapping(from.cast::<u8>(), (&raw mut options).cast(), known) };
    for at in known..bytes {
        // SAFETY: within the program's struct.
        if unsafe { from.cast::<u8>().add(at).read() } != 0 {
            return Err(Failure::setting(format_args!(
                "{} has members that this library, version {}, does not know; use a newer library, or \
                 leave them 0",
                T::NAME,
                env!("CARGO_PKG_VERSION")
            )));
        }
    }
    Ok(options)
}

/// Fills the program's struct, as far as the program knows its members, except its size. Members
/// that this library does not know become 0.
///
/// # Safety
/// `to` is NULL or points to as many bytes as its first member says.
///
/// # Errors
/// NULL; an impossible size. Nothing is written then.
#[inline]
pub unsafe fn write<T: GrowingStruct>(to: *mut T, value: T) -> Result<(), Failure> {
    // SAFETY: as the caller promises.
    unsafe { check(to)? };
    // SAFETY: as the caller promises.
    unsafe { fill(to, value) };
    Ok(())
}

/// Like [`write`], for a struct that has been [checked](check).
///
/// # Safety
/// As [`write`], and the check has found nothing.
#[inline(always)]
pub unsafe fn fill<T: GrowingStruct>(to: *mut T, mut value: T) {
    // SAFETY: the size is in front.
    let bytes = unsafe { to.cast::<usize>().read() };
    if bytes != size_of::<T>() {
        // SAFETY: as the caller promises.
        return unsafe { fill_known(to, bytes, value) };
    }
    // SAFETY: the size is in front, on both sides.
    unsafe {
        (&raw mut value).cast::<usize>().write(bytes);
        to.write(value);
    }
}

/// [`fill`] for a program that was compiled with another header. This is a separate function, so
/// that the usual path writes the members directly: a block copy right after the members were
/// written one by one would wait for these writes.
///
/// # Safety
/// As [`fill`]; the size is `bytes`.
#[cold]
#[inline(never)]
unsafe fn fill_known<T: GrowingStruct>(to: *mut T, bytes: usize, value: T) {
    let (skip, known) = (size_of::<usize>(), bytes.min(size_of::<T>()));
    // SAFETY: so many bytes are there on both sides, which do not overlap; the program's struct has `bytes`.
    unsafe {
        let from = (&raw const value).cast::<u8>().add(skip);
        std::ptr::copy_nonoverlapping(from, to.cast::<u8>().add(skip), known - skip);
        std::ptr::write_bytes(to.cast::<u8>().add(known), 0, bytes - known);
    }
}

/// Checks that [`write`] will not fail.
///
/// # Safety
/// As [`write`].
///
/// # Errors
/// As [`write`].
#[inline]
pub unsafe fn check<T: GrowingStruct>(to: *mut T) -> Result<(), Failure> {
    if to.is_null() {
        return Err(no_struct::<T>());
    }
    // SAFETY: as the caller promises.
    unsafe { size_of_program::<T>(to).map(|_| ()) }
}

#[cold]
#[inline(never)]
fn no_struct<T: GrowingStruct>() -> Failure {
    Failure::setting(format_args!("the {} is NULL; pass one to be filled", T::NAME))
}

#[inline]
unsafe fn size_of_program<T: GrowingStruct>(of: *const T) -> Result<usize, Failure> {
    // SAFETY: the size is in front.
    let bytes = unsafe { of.cast::<usize>().read() };
    if bytes < T::SIZE_MIN || bytes > SIZE_MAX { Err(wrong_size::<T>(bytes)) } else { Ok(bytes) }
}

#[cold]
#[inline(never)]
fn wrong_size<T: GrowingStruct>(bytes: usize) -> Failure {
    let name = T::NAME;
    Failure::setting(format_args!(
        "{name}.size is {bytes}; set it to sizeof(struct {name}), as MYELIN_INIT({name}) does"
    ))
}

/// No struct will ever be larger; a larger size was never set.
const SIZE_MAX: usize = 4096;
