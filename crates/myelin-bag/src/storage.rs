//! Where a recording is written: a file, or in tests a disk that fills up.

use std::fs::File;
use std::io::{self, IoSlice};

use rustix::fs::FallocateFlags;
use rustix::io::Errno;

/// Takes the bytes of a recording. They come in order; what was begun and failed is cut off.
pub trait Storage {
    /// Makes sure that the bytes up to `end` can be written, as far as that can be known.
    ///
    /// # Errors
    /// If there is no space for them.
    fn reserve(&mut self, from: u64, end: u64) -> io::Result<()>;

    /// Writes as many of the bytes as it can, at this place, and returns how many.
    ///
    /// # Errors
    /// If it can write none.
    fn write_at(&mut self, parts: &[IoSlice<'_>], at: u64) -> io::Result<usize>;

    /// Cuts off what is behind `end`, and frees what was reserved there.
    ///
    /// # Errors
    /// Those of the file system.
    fn truncate(&mut self, end: u64) -> io::Result<()>;
}

/// Blocks are reserved behind the end of the file, so that its length always is what was written.
impl Storage for File {
    fn reserve(&mut self, from: u64, end: u64) -> io::Result<()> {
        let bytes = end.saturating_sub(from);
        loop {
            return match rustix::fs::fallocate(&*self, FallocateFlags::KEEP_SIZE, from, bytes) {
                Err(Errno::INTR) => continue,
                // A file system that cannot promise. A write that fails is cut off instead.
                Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
                result => Ok(result?),
            };
        }
    }

    fn write_at(&mut self, parts: &[IoSlice<'_>], at: u64) -> io::Result<usize> {
        loop {
            match rustix::io::pwritev(&*self, &parts[..parts.len().min(PARTS_MAX)], at) {
                Err(Errno::INTR) => {}
                result => return Ok(result?),
            }
        }
    }

    fn truncate(&mut self, end: u64) -> io::Result<()> {
        self.set_len(end)
    }
}

/// Writes all of the parts.
pub(crate) fn write_all(
    storage: &mut impl Storage,
    mut parts: &mut [IoSlice<'_>],
    mut at: u64,
) -> io::Result<()> {
    IoSlice::advance_slices(&mut parts, 0); // Empty ones at the begin.
    while !parts.is_empty() {
        let written = storage.write_at(parts, at)?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        at += written as u64;
        IoSlice::advance_slices(&mut parts, written);
    }
    Ok(())
}

/// Of one call of the kernel: its `UIO_MAXIOV`.
const PARTS_MAX: usize = 1024;
