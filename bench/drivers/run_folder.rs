//! A run's folder in shared memory, for middlewares that leave files there: it holds the run's
//! files and is removed with them. Drivers include this file by its path.
//!
//! ```text
//! /dev/shm/<prefix><run>/   what the middleware makes
//!   alive                   shared lock of every living role of the run
//! ```
//! The last role of a run to end removes all of it. The kernel releases the lock of a process when
//! it ends, so the lock shows whether a run is alive; [`clean`] removes runs without a live role.

use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind::{NotFound, PermissionDenied};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use myelin_bench_kit::Error;

/// A role's use of its run's folder. It ends with the value, or with the process unless that is
/// killed.
pub struct RunFolder {
    /// Where it is.
    pub path: PathBuf,
}

impl RunFolder {
    /// Joins `run`. Removes what dead runs have left first. Only one at a time in a process.
    pub fn enter(prefix: &str, run: &str) -> Result<Self, Error> {
        clean(prefix)?;
        let path = Path::new(MEMORY).join(format!("{prefix}{run}"));
        let alive = join(&path)?;
        let mut here = HERE.lock().map_err(|_| Error::new("an earlier use has panicked"))?;
        *here = Some((path.clone(), alive));
        // SAFETY: the handler is a function of this program and has no preconditions.
        unsafe { libc::atexit(at_exit) };
        Ok(RunFolder { path })
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        leave();
    }
}

/// The folder of this process, for cleaning at its end: a lab that hangs up ends it at any moment.
static HERE: Mutex<Option<(PathBuf, File)>> = Mutex::new(None);

extern "C" fn at_exit() {
    leave();
}

fn leave() {
    let Some((path, alive)) = HERE.try_lock().ok().and_then(|mut here| here.take()) else {
        return;
    };
    // If two roles leave at once, the last one to unlock gets the lock.
    if alive.unlock().is_ok() && alive.try_lock().is_ok() {
        // A later cleaning removes what is left now.
        let _ = remove(&path);
    }
}

/// Removes the folders of runs without a live role.
pub fn clean(prefix: &str) -> Result<(), Error> {
    let entries = fs::read_dir(MEMORY).into_iter().flatten().map_while(Result::ok);
    let folders = entries.map(|entry| entry.path()).filter(|path| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(prefix))
    });
    for folder in folders {
        match File::open(folder.join(ALIVE)) {
            Ok(alive) if alive.try_lock().is_ok() => remove(&folder)?,
            // A role is alive, or the folder belongs to another user.
            Ok(_) => {}
            // Half removed, or just made by a role that has not made the lock yet.
            Err(error) if error.kind() == NotFound => drop(fs::remove_dir(&folder)),
            Err(_) => {}
        }
    }
    Ok(())
}

/// Makes the folder if necessary and takes the shared lock in it.
fn join(folder: &Path) -> Result<File, Error> {
    loop {
        let made = fs::DirBuilder::new().mode(0o700).recursive(true).create(folder);
        made.map_err(|error| Error::new(format!("{}: {error}", folder.display())))?;
        let path = folder.join(ALIVE);
        let mut options = OpenOptions::new();
        let alive = match options.read(true).write(true).create(true).truncate(false).open(&path) {
            Err(error) if error.kind() == NotFound => continue,
            other => other?,
        };
        alive.lock_shared()?;
        // A cleaner may have removed it between opening and locking.
        let is_same = |now: fs::Metadata| {
            alive.metadata().is_ok_and(|it| (it.dev(), it.ino()) == (now.dev(), now.ino()))
        };
        if fs::metadata(&path).is_ok_and(is_same) {
            return Ok(alive);
        }
    }
}

/// The lock is removed last, so that an interrupted removal is repeated.
fn remove(folder: &Path) -> Result<(), Error> {
    for entry in fs::read_dir(folder).into_iter().flatten().map_while(Result::ok) {
        let path = entry.path();
        if path.is_dir() {
            tolerate(&path, fs::remove_dir_all(&path))?;
        } else if entry.file_name() != ALIVE {
            tolerate(&path, fs::remove_file(&path))?;
        }
    }
    tolerate(folder, fs::remove_file(folder.join(ALIVE)))?;
    // Not empty: another role has just joined.
    let _ = fs::remove_dir(folder);
    Ok(())
}

/// Ignores files that do not exist or belong to another user.
fn tolerate(path: &Path, result: std::io::Result<()>) -> Result<(), Error> {
    match result {
        Err(error) if !matches!(error.kind(), NotFound | PermissionDenied) => {
            Err(Error::new(format!("removing {}: {error}", path.display())))
        }
        _ => Ok(()),
    }
}

const MEMORY: &str = "/dev/shm";
const ALIVE: &str = "alive";
