//! Memory for one sample, the user's until it is published or dropped.

use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};

use myelin_shm::data_plane::publication::RawLoan;

use crate::payload::Payload;
use crate::publisher::Publisher;
use crate::{Error, Published};

/// Memory for one sample: dereferences to the payload, `T` or `[T]`. Made by
/// [`Publisher::loan`](Publisher::loan).
///
/// [`publish`](Loan::publish) hands it to the subscribers as it is, without a copy (of up to 104
/// bytes a copy is made); dropped instead, it is discarded. It belongs to the thread of its
/// publisher. Leaked (`mem::forget`), its memory is lost to the publisher until that is dropped.
pub struct Loan<'p, T: Payload + ?Sized> {
    publisher: &'p Publisher<T>,
    bytes: usize,
    /// Its first byte.
    pointer: *mut u8,
    raw: ManuallyDrop<RawLoan>,
}

impl<'p, T: Payload + ?Sized> Loan<'p, T> {
    #[inline]
    pub(crate) fn new(publisher: &'p Publisher<T>, bytes: usize) -> Result<Self, Error> {
        let mut raw = publisher.with_writer(|writer| writer.loan(bytes as u64))?;
        // SAFETY: the writer lives as long as the publisher, which this loan borrows.
        let pointer = unsafe { raw.bytes_mut() }.as_mut_ptr();
        Ok(Loan { publisher, bytes, pointer, raw: ManuallyDrop::new(raw) })
    }

    /// Publishes it.
    ///
    /// # Errors
    /// [`Error::ReliableTimeout`], [`Error::Forked`]; the sample is then discarded.
    #[inline]
    pub fn publish(self) -> Result<Published, Error> {
        let mut loan = ManuallyDrop::new(self);
        // SAFETY: `loan` is not dropped, so this is the only time.
        let raw = unsafe { ManuallyDrop::take(&mut loan.raw) };
        // SAFETY: the loan is of this publisher, and so are its bytes.
        unsafe { loan.publisher.publish_loan(raw, loan.pointer, loan.bytes) }
    }

    /// The payload's bytes, aligned to 64; for serialised formats, prefer a topic of `[u8]`.
    pub fn as_bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref_mut`; any bytes are a value of `T`, so these may be set at will.
        unsafe { std::slice::from_raw_parts_mut(self.pointer, self.bytes) }
    }
}

impl<T: Payload + ?Sized> Deref for Loan<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: as in `deref_mut`.
        unsafe { &*T::view(self.pointer, self.bytes) }
    }
}

impl<T: Payload + ?Sized> DerefMut for Loan<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        let bytes = self.bytes;
        // SAFETY: `bytes` bytes, a size of `T`, lie at the pointer, aligned to 64, initialised, and
        // this loan's alone; any bytes are a value of `T`.
        unsafe { &mut *T::view_mut(self.pointer, bytes) }
    }
}

impl<T: Payload + ?Sized> Drop for Loan<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: `publish` does not drop the loan it takes from, so this is the only time.
        let raw = unsafe { ManuallyDrop::take(&mut self.raw) };
        // Within a publish of the same publisher it is lost until that is dropped.
        let _ = self.publisher.with_writer(|writer| {
            writer.discard(raw);
            Ok(())
        });
    }
}

impl<T: Payload + ?Sized + fmt::Debug> fmt::Debug for Loan<'_, T> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_tuple("Loan").field(&&**self).finish()
    }
}
