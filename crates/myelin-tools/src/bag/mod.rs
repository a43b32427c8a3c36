//! What `myelin bag` is made of: recordings, looked at and turned into other files.

pub mod check;
pub mod diff;
pub mod export;
pub mod info;
pub mod moment;
pub mod topics;

use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;

use myelin_bag::{BagReader, OpenError, Report};

use crate::Error;
use crate::text::counted;

/// Opens a recording.
///
/// # Errors
/// One sentence with the path.
pub fn open(path: &Path) -> Result<BagReader, Error> {
    BagReader::open(path).map_err(|error| cannot_open(path, error))
}

/// Opens the file itself.
///
/// # Errors
/// One sentence with the path.
pub fn open_file(path: &Path) -> Result<File, Error> {
    File::open(path).map_err(|error| cannot_open(path, error.into()))
}

/// One sentence with the path.
pub fn cannot_open(path: &Path, error: OpenError) -> Error {
    let what = path.display().to_string();
    match error {
        OpenError::Io(error) if error.kind() == ErrorKind::NotFound => {
            Error::NotFound(format!("{what}: there is no such file"))
        }
        OpenError::Io(error) => Error::Io { what, error },
        other => Error::Failed(format!("{what}: {other}")),
    }
}

/// What could not be read, in one sentence; `None` if all could.
pub fn loss(path: &Path, report: Option<&Report>, chunks: u64) -> Option<String> {
    let path = path.display();
    let report = report.filter(|report| !report.is_lossless());
    let text = match (report, chunks) {
        (None, 0) => return None,
        (None, chunks) => format!("{path}: {} cannot be read", counted(chunks, "part")),
        (Some(report), _) => {
            let lost = report.lost();
            let at_least = if lost.is_exact { "" } else { "at least " };
            format!("{path}: the file is broken; {at_least}{} lost", counted(lost.known, "message"))
        }
    };
    Some(format!("{text}; `myelin bag check` says where"))
}
