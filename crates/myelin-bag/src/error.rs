//! The errors of writing a recording.

use std::io;

/// A recording that cannot be written, or not as wanted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// There is no space for more. The file has what was written before, and
    /// [`finish`](crate::Writer::finish) still completes it.
    #[error("the disk is full (or a quota, or a limit of the file's size is reached)")]
    Full(#[source] io::Error),
    /// Something else went wrong with the file.
    #[error("the file cannot be written: {0}")]
    Io(#[from] io::Error),
    /// A write failed before. Everything since is counted as lost.
    #[error("the recording ended when a write failed")]
    Ended,
    /// The threads that compress have all that they may have ([`Options::drops_when_behind`]).
    /// Later messages may find room again.
    ///
    /// [`Options::drops_when_behind`]: crate::Options::drops_when_behind
    #[error("messages come faster than they are compressed")]
    Behind,
    /// A segment of a [ring](crate::ring) had no space. The oldest one makes room for the next one.
    #[error("the disk of the ring is full: its oldest messages are removed before their time")]
    RingFull,
    /// An id that the writer did not give.
    #[error("there is no {what} {id} in this file")]
    Unknown {
        /// Schema or channel.
        what: &'static str,
        /// The id.
        id: u16,
    },
    /// More schemas or channels than a file can have.
    #[error("a file has at most 65,535 {0}s")]
    TooMany(&'static str),
    /// A text, a map or a schema of 4 GiB or more.
    #[error("the {0} has 4 GiB or more")]
    TooLong(&'static str),
}

impl WriteError {
    /// The error of a write: a disk that is full is one of its own.
    pub(crate) fn of(error: io::Error) -> WriteError {
        use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull, WriteZero};
        match error.kind() {
            FileTooLarge | QuotaExceeded | StorageFull | WriteZero => WriteError::Full(error),
            _ => WriteError::Io(error),
        }
    }
}
