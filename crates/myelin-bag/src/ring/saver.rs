//! Writes segments of a ring to a file, in a thread of its own, while the recording goes on.
//!
//! A segment is open from the trigger on, so it can be removed from the ring meanwhile.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Receiver;
use std::sync::{Mutex, PoisonError};

use crate::ending::OpenError;
use crate::error::WriteError;
use crate::format::{MessageHead, Metadata};
use crate::names::TRIGGERS;
use crate::scanner::{Item, Scanner};
use crate::source::Source;
use crate::union::Union;
use crate::writer::{Options, Writer, Written};

/// What was written after a trigger.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Saved {
    /// The file.
    pub path: PathBuf,
    /// What the triggers were.
    pub reasons: Vec<String>,
    /// What is in it.
    pub written: Written,
}

/// Messages before and after a trigger that could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SaveError {
    /// The new file cannot be written.
    #[error("{path}: {error}", path = path.display())]
    Write {
        /// The new file.
        path: PathBuf,
        /// Why.
        #[source]
        error: WriteError,
    },
    /// A segment cannot be read.
    #[error("a segment of the ring cannot be read: {0}")]
    Read(#[from] OpenError),
}

/// Messages of a segment.
pub(super) struct Part {
    pub file: File,
    /// Up to this byte. What is behind may be written at the moment.
    pub end: u64,
    /// So many messages at the begin are left out: they are known already.
    pub skipped: u64,
}

/// A segment up to a byte.
struct UpTo<'a> {
    file: &'a File,
    end: u64,
}

impl Source for UpTo<'_> {
    fn bytes(&self) -> io::Result<u64> {
        Ok(self.file.bytes()?.min(self.end))
    }

    fn read_at(&self, to: &mut [u8], at: u64) -> io::Result<usize> {
        let bytes =
            to.len().min(usize::try_from(self.end.saturating_sub(at)).unwrap_or(usize::MAX));
        self.file.read_at(&mut to[..bytes], at)
    }
}

impl Part {
    /// The messages of a segment up to a byte, without so many at its begin.
    pub(super) fn new(path: &Path, end: u64, skipped: u64) -> io::Result<Part> {
        Ok(Part { file: File::open(path)?, end, skipped })
    }

    fn scan(&self) -> Result<Scanner<UpTo<'_>>, OpenError> {
        Scanner::new(UpTo { file: &self.file, end: self.end })
    }
}

/// A file that is written.
pub(super) struct Saver {
    writer: Writer,
    union: Union,
    /// By their names; the last one counts.
    metadata: BTreeMap<String, Metadata>,
}

impl Saver {
    /// Begins the file. The profile is that of all segments so far, if that is one.
    pub(super) fn create(
        path: &Path,
        mut options: Options,
        before: &[Part],
    ) -> Result<Saver, SaveError> {
        let profile = |part: &Part| part.scan().map(|scanner| scanner.profile().to_owned());
        let profiles = before.iter().map(profile).collect::<Result<Vec<_>, _>>()?;
        let one = profiles.first().filter(|first| profiles.iter().all(|it| it == *first));
        options.profile = one.cloned().unwrap_or_default();
        let writer = Writer::create(path, options).map_err(SaveError::of(path))?;
        Ok(Saver { writer, union: Union::default(), metadata: BTreeMap::new() })
    }

    /// Writes what was before the trigger, and then what comes until nothing more will come.
    pub(super) fn run(
        mut self,
        path: &Path,
        before: Vec<Part>,
        after: &Receiver<Part>,
        reasons: &Mutex<Vec<String>>,
    ) -> Result<Written, SaveError> {
        for part in before.into_iter().chain(after) {
            self.add(path, &part)?;
        }
        let reasons = reasons.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let numbered = reasons.into_iter().enumerate();
        let reasons = numbered.map(|(number, reason)| (number.to_string(), reason));
        self.metadata.insert(TRIGGERS.to_owned(), reasons.collect());
        let finish = |mut writer: Writer| {
            for (name, values) in &self.metadata {
                writer.write_metadata(name, values)?;
            }
            writer.finish()
        };
        finish(self.writer).map_err(SaveError::of(path))
    }

    fn add(&mut self, path: &Path, part: &Part) -> Result<(), SaveError> {
        let mut scanner = part.scan()?;
        self.union.begin_file();
        let mut number = 0;
        while let Some(item) = scanner.next().map_err(OpenError::Io)? {
            match item {
                Item::Message { head, channel, schema, data } => {
                    number += 1;
                    if number <= part.skipped {
                        continue;
                    }
                    let added = self.union.channel(&mut self.writer, head.channel, channel, schema);
                    let written = added.and_then(|channel| {
                        self.writer.write(&MessageHead { channel, ..head }, &[data])
                    });
                    match written {
                        // Counted as lost; the file is completed.
                        Ok(()) | Err(WriteError::Full(_) | WriteError::Ended) => {}
                        Err(error) => return Err(SaveError::of(path)(error)),
                    }
                }
                Item::Metadata { name, values } => {
                    self.metadata.insert(name, values);
                }
                Item::Attachment(_) => {}
            }
        }
        self.writer.flush().or_else(|error| match error {
            WriteError::Full(_) => Ok(()),
            error => Err(SaveError::of(path)(error)),
        })
    }
}

impl SaveError {
    fn of(path: &Path) -> impl FnOnce(WriteError) -> SaveError {
        move |error| SaveError::Write { path: path.to_owned(), error }
    }
}
