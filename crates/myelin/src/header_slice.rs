//! A header with a slice behind it: a stamp with pixels, a pose with points, a frame with its
//! detections, maybe none.

use std::fmt;
use std::marker::PhantomData;

use crate::plain_data::PlainData;

/// The view of a sample or loan of a topic `(H, [T])`: a header and as many elements as the sample
/// has, including none, in one piece of memory.
///
/// The slice begins at the first byte behind the header that is aligned for `T`; bytes between the
/// two have no meaning.
///
/// ```
/// # fn main() -> Result<(), myelin::Error> {
/// # use myelin::PlainData;
/// # let folder = tempfile::tempdir().unwrap();
/// # let node = myelin::Node::builder("doc").runtime_dir(folder.path()).open()?;
/// #[derive(Clone, Copy, PlainData)]
/// #[repr(C)]
/// struct Frame { stamp_ns: u64, width: u32, height: u32 }
///
/// let topic = node.topic::<(Frame, [u8])>("image");
/// let (publisher, mut subscriber) = (topic.publisher()?, topic.subscriber()?);
/// # publisher.wait_for_match(1, std::time::Duration::from_secs(60));
///
/// let mut image = publisher.loan(640 * 480)?;
/// *image.header_mut() = Frame { stamp_ns: myelin::now(), width: 640, height: 480 };
/// image.slice_mut().fill(128);
/// image.publish()?;
///
/// let image = subscriber.receive(std::time::Duration::MAX)?.expect("there is no time limit");
/// assert_eq!(image.header().width, 640);
/// assert_eq!(image.slice().len(), 640 * 480);
/// # Ok(()) }
/// ```
#[repr(transparent)]
pub struct HeaderSlice<H, T> {
    types: PhantomData<(H, [T])>,
    /// The header, padding, the elements. Aligned for both, and with a length that fits: the
    /// constructor of each reference ensures it.
    bytes: [u8],
}

impl<H: PlainData, T: PlainData> HeaderSlice<H, T> {
    /// Where the slice begins, in bytes.
    pub const SLICE_OFFSET: usize = size_of::<H>().next_multiple_of(align_of::<T>());

    /// The header.
    pub fn header(&self) -> &H {
        self.parts().0
    }

    /// The elements.
    pub fn slice(&self) -> &[T] {
        self.parts().1
    }

    /// Both.
    pub fn parts(&self) -> (&H, &[T]) {
        let (header, elements) = self.bytes.split_at(Self::SLICE_OFFSET);
        let len = elements.len() / size_of::<T>();
        // SAFETY: aligned as both demand, and the header's bytes all there; any bytes are a value of
        // either type, and they are borrowed from `self`.
        unsafe {
            (&*header.as_ptr().cast(), std::slice::from_raw_parts(elements.as_ptr().cast(), len))
        }
    }

    /// The header, to write.
    pub fn header_mut(&mut self) -> &mut H {
        self.parts_mut().0
    }

    /// The elements, to write.
    pub fn slice_mut(&mut self) -> &mut [T] {
        self.parts_mut().1
    }

    /// Both, to write.
    pub fn parts_mut(&mut self) -> (&mut H, &mut [T]) {
        let (header, elements) = self.bytes.split_at_mut(Self::SLICE_OFFSET);
        let len = elements.len() / size_of::<T>();
        let elements = elements.as_mut_ptr().cast();
        // SAFETY: as in `parts`; the two do not overlap.
        unsafe { (&mut *header.as_mut_ptr().cast(), std::slice::from_raw_parts_mut(elements, len)) }
    }

    /// Bytes of a payload with `len` elements. A size too large for a number is above every limit,
    /// too.
    pub(crate) fn bytes_of(len: usize) -> usize {
        len.saturating_mul(size_of::<T>()).saturating_add(Self::SLICE_OFFSET)
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl<H: PlainData + fmt::Debug, T: PlainData + fmt::Debug> fmt::Debug for HeaderSlice<H, T> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (header, slice) = self.parts();
        to.debug_struct("HeaderSlice").field("header", header).field("slice", &slice).finish()
    }
}
