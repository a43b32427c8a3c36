//! Files: written whole or not at all, and private from the beginning.

use std::fs::{DirBuilder, Permissions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};
use std::path::Path;

use crate::Error;

pub(crate) fn read(file: &Path) -> Result<String, Error> {
    std::fs::read_to_string(file).map_err(|error| Error::io(file, error))
}

/// Writes a file that everybody who can enter its folder may read.
pub(crate) fn write(file: &Path, text: &str) -> Result<(), Error> {
    replace(file, text, 0o644)
}

/// Writes a file of its owner's.
pub(crate) fn write_private(file: &Path, text: &str) -> Result<(), Error> {
    replace(file, text, 0o600)
}

fn replace(file: &Path, text: &str, mode: u32) -> Result<(), Error> {
    let io = |error| Error::io(file, error);
    let folder = file.parent().unwrap_or(Path::new("."));
    // Mode 0600, and removed if something fails.
    let mut new = tempfile::NamedTempFile::new_in(folder).map_err(io)?;
    new.write_all(text.as_bytes()).map_err(io)?;
    new.as_file().set_permissions(Permissions::from_mode(mode)).map_err(io)?;
    new.as_file().sync_all().map_err(io)?;
    new.persist(file).map(drop).map_err(|error| io(error.error))
}

/// Makes a folder of its owner's, with those above it.
pub(crate) fn make_folder(folder: &Path) -> Result<(), Error> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|error| Error::io(folder, error))
}

/// Makes `link` lead to `target`, instead of where it leads.
pub(crate) fn link(target: &Path, link: &Path) -> Result<(), Error> {
    if std::fs::read_link(link).is_ok_and(|now| now == target) {
        return Ok(());
    }
    match std::fs::remove_file(link) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::io(link, error)),
        _ => symlink(target, link).map_err(|error| Error::io(link, error)),
    }
}
