//! A loan: memory for one sample, which the user owns until it is published or dropped.

use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};

use myelin_shm::data_plane::publication::RawLoan;

use crate::payload::Payload;
use crate::publisher::Publisher;
use crate::{Error, Published};

/// Memory for one sample: dereferences to the payload, `T`, `[T]` or a
/// [`HeaderSlice`](crate::HeaderSlice). Made by [`Publisher::loan`](Publisher::loan).
///
/// [`publish`](Loan::publish) hands the memory to the subscribers without a copy (a payload of up
/// to 104 bytes is copied). A loan that is dropped is discarded. A loan stays in the thread of its
/// publisher. If it is leaked (`mem::forget`), the publisher cannot use the memory again until the
/// publisher is dropped.
pub struct Loan<'p, T: Payload + ?Sized> {
    publisher: &'p Publisher<T>,
    memory: ManuallyDrop<Memory>,
}

/// The memory of a loan. It can move to another owner.
pub(crate) struct Memory {
    raw: RawLoan,
    /// The first byte, and the number of bytes.
    pointer: *mut u8,
    bytes: usize,
}

// SAFETY: a loan is exclusive memory; its pointer is valid in every thread.
unsafe impl Send for Memory {}
// SAFETY: `&Memory` only reads.
unsafe impl Sync for Memory {}

impl Memory {
    /// # Safety
    /// The writer of `raw` outlives the returned memory.
    #[inline]
    pub(crate) unsafe fn new(mut raw: RawLoan, bytes: usize) -> Memory {
        // SAFETY: the writer lives.
        let pointer = unsafe { raw.bytes_mut() }.as_mut_ptr();
        Memory { raw, pointer, bytes }
    }

    /// The bytes, aligned to 64.
    #[inline(always)]
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: as in `bytes_mut`.
        unsafe { std::slice::from_raw_parts(self.pointer, self.bytes) }
    }

    #[inline(always)]
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: so many bytes lie there, initialised and this loan's alone; the writer, whose
        // memory it is, lives (`new`).
        unsafe { std::slice::from_raw_parts_mut(self.pointer, self.bytes) }
    }

    /// The raw loan, which the writer takes back.
    #[inline]
    pub(crate) fn into_raw(self) -> RawLoan {
        self.raw
    }

    #[inline(always)]
    pub(crate) fn view<T: Payload + ?Sized>(&self, offset: usize) -> &T::View {
        let bytes = &self.bytes()[offset..];
        // SAFETY: the constructor of a loan ensures that the bytes behind `offset` have a size of
        // `T` and its alignment; any bytes are a value of `T`; they are borrowed from `self`.
        unsafe { &*T::view(bytes.as_ptr(), bytes.len()) }
    }

    #[inline(always)]
    pub(crate) fn view_mut<T: Payload + ?Sized>(&mut self, offset: usize) -> &mut T::View {
        let bytes = &mut self.bytes_mut()[offset..];
        // SAFETY: as in `view`.
        unsafe { &mut *T::view_mut(bytes.as_mut_ptr(), bytes.len()) }
    }
}

impl<'p, T: Payload + ?Sized> Loan<'p, T> {
    /// `bytes` must be a length that fits `T`.
    #[inline]
    pub(crate) fn new(publisher: &'p Publisher<T>, bytes: usize) -> Result<Self, Error> {
        // SAFETY: the publisher, which has the writer, is borrowed for as long as the loan exists.
        let memory = unsafe { publisher.loan_memory(bytes) }?;
        Ok(Loan { publisher, memory: ManuallyDrop::new(memory) })
    }

    /// Publishes it, once:
    ///
    /// ```compile_fail,E0382
    /// # fn twice(publisher: &myelin::Publisher<u64>) -> Result<(), myelin::Error> {
    /// let loan = publisher.loan()?;
    /// loan.publish()?;
    /// loan.publish()?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::ReliableTimeout`], [`Error::Forked`]; the sample is then discarded.
    #[inline]
    pub fn publish(self) -> Result<Published, Error> {
        let mut loan = ManuallyDrop::new(self);
        // SAFETY: `loan` is not dropped, so this is the only take.
        let memory = unsafe { ManuallyDrop::take(&mut loan.memory) };
        loan.publisher.publish_memory(memory)
    }

    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }

    pub(crate) fn memory_mut(&mut self) -> &mut Memory {
        &mut self.memory
    }

    /// The payload's bytes, aligned to 64. For serialised formats, prefer a topic of `[u8]`.
    pub fn as_bytes_mut(&mut self) -> &mut [u8] {
        self.memory.bytes_mut()
    }
}

impl<T: Payload + ?Sized> Deref for Loan<'_, T> {
    type Target = T::View;

    #[inline(always)]
    fn deref(&self) -> &T::View {
        self.memory.view::<T>(0)
    }
}

impl<T: Payload + ?Sized> DerefMut for Loan<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T::View {
        self.memory.view_mut::<T>(0)
    }
}

impl<T: Payload + ?Sized> Drop for Loan<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: `publish` does not drop the loan it takes from, so this is the only take.
        let memory = unsafe { ManuallyDrop::take(&mut self.memory) };
        self.publisher.discard(memory);
    }
}

impl<T: Payload<View: fmt::Debug> + ?Sized> fmt::Debug for Loan<'_, T> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_tuple("Loan").field(&&**self).finish()
    }
}
