//! A file that appears whole or not at all: it is written under another name beside its place.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, Once, PoisonError};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use crate::Error;
use crate::signals::{ending, outlive_file_size_limit};

/// A file that is being written. It is removed if it is dropped before [`keep`](OutputFile::keep),
/// and if a signal ends the process.
#[derive(Debug)]
pub struct OutputFile {
    path: PathBuf,
    temporary: PathBuf,
    overwrite: bool,
}

impl OutputFile {
    /// Begins a file. Without `overwrite` there must be none at its place.
    ///
    /// # Errors
    /// One sentence with the path.
    pub fn create(path: &Path, overwrite: bool) -> Result<(OutputFile, File), Error> {
        let shown = path.display();
        let Some(name) = path.file_name().filter(|_| !path.is_dir()) else {
            return Err(Error::BadInput(format!("{shown}: this is a folder; name a file")));
        };
        if !overwrite && path.symlink_metadata().is_ok() {
            return Err(exists(path));
        }
        remove_at_signals();
        let mut hidden = name.to_owned();
        hidden.push(format!(".{}.part", std::process::id()));
        let temporary = path.with_file_name(hidden);
        let file = OpenOptions::new().write(true).create_new(true).open(&temporary);
        let file = file.map_err(|error| Error::Io { what: shown.to_string(), error })?;
        unfinished(|all| all.insert(temporary.clone()));
        Ok((OutputFile { path: path.to_owned(), temporary, overwrite }, file))
    }

    /// Puts the file in its place.
    ///
    /// # Errors
    /// One sentence with the path. Then there is no file.
    pub fn keep(self) -> Result<(), Error> {
        let flags = if self.overwrite { RenameFlags::empty() } else { RenameFlags::NOREPLACE };
        let renamed = match renameat_with(CWD, &self.temporary, CWD, &self.path, flags) {
            // A file system that cannot refuse. It was looked for when this was begun.
            Err(Errno::INVAL | Errno::NOSYS) => fs::rename(&self.temporary, &self.path),
            other => other.map_err(io::Error::from),
        };
        match renamed {
            Ok(()) => {
                unfinished(|all| all.remove(&self.temporary));
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(exists(&self.path)),
            Err(error) => Err(Error::Io { what: self.path.display().to_string(), error }),
        }
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        if unfinished(|all| all.remove(&self.temporary)) {
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

fn exists(path: &Path) -> Error {
    Error::BadInput(format!("{}: it exists; --force overwrites it", path.display()))
}

/// The files that this process has not finished.
fn unfinished<T>(run: impl FnOnce(&mut BTreeSet<PathBuf>) -> T) -> T {
    static FILES: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    run(&mut FILES.lock().unwrap_or_else(PoisonError::into_inner))
}

/// From now on, signals that end the process also remove what it has not finished.
fn remove_at_signals() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        outlive_file_size_limit();
        let Ok(mut signals) = Signals::new(ending()) else { return };
        let wait = move || {
            for signal in signals.forever() {
                unfinished(|all| all.iter().for_each(|path| drop(fs::remove_file(path))));
                let _ = emulate_default_handler(signal);
            }
        };
        // Without the thread a signal would do nothing.
        if std::thread::Builder::new().name("signals".to_owned()).spawn(wait).is_err() {
            std::process::abort();
        }
    });
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_file_appears_when_it_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.mcap");
        let files = || fs::read_dir(folder.path()).unwrap().count();
        let (output, mut file) = OutputFile::create(&path, false).unwrap();
        file.write_all(b"half").unwrap();
        assert!(!path.exists());
        drop(output);
        assert_eq!(files(), 0);

        let (output, mut file) = OutputFile::create(&path, false).unwrap();
        file.write_all(b"whole").unwrap();
        output.keep().unwrap();
        assert_eq!((fs::read(&path).unwrap(), files()), (b"whole".to_vec(), 1));

        let error = OutputFile::create(&path, false).unwrap_err();
        assert!(error.to_string().ends_with("it exists; --force overwrites it"), "{error}");
        let (output, _) = OutputFile::create(&path, true).unwrap();
        output.keep().unwrap();
        assert_eq!((fs::read(&path).unwrap(), files()), (Vec::new(), 1));
    }

    #[test]
    fn a_file_that_came_meanwhile_is_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.mcap");
        let (output, _) = OutputFile::create(&path, false).unwrap();
        fs::write(&path, "of somebody else").unwrap();
        assert!(output.keep().unwrap_err().to_string().contains("it exists"));
        assert_eq!(fs::read_to_string(&path).unwrap(), "of somebody else");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(OutputFile::create(folder.path(), true).is_err());
    }
}
