//! Where a recording is read from, and a window that moves over it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// Has the bytes of a recording. It may grow while it is read.
pub trait Source {
    /// How many bytes there are.
    ///
    /// # Errors
    /// Those of the file system.
    fn bytes(&self) -> io::Result<u64>;

    /// Reads as many bytes from this place as there are and fit; 0 at the end.
    ///
    /// # Errors
    /// Those of the file system.
    fn read_at(&self, to: &mut [u8], at: u64) -> io::Result<usize>;
}

impl Source for File {
    fn bytes(&self) -> io::Result<u64> {
        let metadata = self.metadata()?;
        if metadata.is_file() {
            return Ok(metadata.len());
        }
        Err(io::Error::new(io::ErrorKind::InvalidInput, "a recording is a file, not this"))
    }

    fn read_at(&self, to: &mut [u8], at: u64) -> io::Result<usize> {
        FileExt::read_at(self, to, at)
    }
}

impl Source for &[u8] {
    fn bytes(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }

    fn read_at(&self, to: &mut [u8], at: u64) -> io::Result<usize> {
        let rest = usize::try_from(at).ok().and_then(|at| self.get(at..)).unwrap_or_default();
        let bytes = rest.len().min(to.len());
        to[..bytes].copy_from_slice(&rest[..bytes]);
        Ok(bytes)
    }
}

impl<T: Source + ?Sized> Source for Arc<T> {
    fn bytes(&self) -> io::Result<u64> {
        (**self).bytes()
    }

    fn read_at(&self, to: &mut [u8], at: u64) -> io::Result<usize> {
        (**self).read_at(to, at)
    }
}

/// Reads as many bytes from this place as there are and fit.
pub(crate) fn read_full(source: &impl Source, to: &mut [u8], at: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < to.len() {
        match source.read_at(&mut to[filled..], at + filled as u64) {
            Ok(0) => break,
            Ok(bytes) => filled += bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// A part of the source in memory.
pub(crate) struct Window<S> {
    source: S,
    source_bytes: u64,
    buffer: Vec<u8>,
    at: u64,
}

impl<S: Source> Window<S> {
    pub(crate) fn new(source: S) -> io::Result<Self> {
        let source_bytes = source.bytes()?;
        Ok(Window { source, source_bytes, buffer: Vec::new(), at: 0 })
    }

    /// Of the source, as it was when this was made.
    pub(crate) fn source_bytes(&self) -> u64 {
        self.source_bytes
    }

    /// These bytes; `None` if the source ends before.
    pub(crate) fn get(&mut self, at: u64, bytes: u64) -> io::Result<Option<&[u8]>> {
        let end = at.checked_add(bytes).filter(|end| *end <= self.source_bytes);
        let Some(end) = end else { return Ok(None) };
        if at < self.at || end > self.end() {
            self.fill(at, bytes.max(WINDOW_BYTES))?;
        }
        if end > self.end() {
            self.source_bytes = self.end(); // It became shorter.
            return Ok(None);
        }
        let from = (at - self.at) as usize;
        Ok(Some(&self.buffer[from..from + bytes as usize]))
    }

    /// Up to so many bytes: as many as there are.
    pub(crate) fn up_to(&mut self, at: u64, bytes: u64) -> io::Result<&[u8]> {
        let bytes = self.source_bytes.saturating_sub(at).min(bytes);
        Ok(self.get(at, bytes)?.unwrap_or_default())
    }

    fn end(&self) -> u64 {
        self.at + self.buffer.len() as u64
    }

    fn fill(&mut self, at: u64, bytes: u64) -> io::Result<()> {
        self.buffer.resize(bytes.min(self.source_bytes - at) as usize, 0);
        self.at = at;
        let filled = read_full(&self.source, &mut self.buffer, at).inspect_err(|_| {
            self.buffer.clear();
        })?;
        self.buffer.truncate(filled);
        Ok(())
    }
}

/// What is read at once.
pub(crate) const WINDOW_BYTES: u64 = 1 << 20;
