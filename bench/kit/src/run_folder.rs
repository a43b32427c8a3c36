//! The files of a run, for middlewares that leave some behind: a folder holds them and is removed with them.
//!
//! ```text
//! <parent>/<prefix><run>/   what the middleware makes
//!   alive                   shared lock of every living role of the run
//! /dev/shm/<memory><run>_…  what it makes outside of the folder
//! ```
//! The last role of a run to end removes all of it. The kernel releases the lock of a process when
//! it ends, so the lock shows whether a run is alive; [`RunFolders::clean`] removes runs without a live role.

use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind::{NotFound, PermissionDenied};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::error::Error;

/// Where the runs of a driver have their folders.
#[derive(Clone, Copy, Debug)]
pub struct RunFolders {
    /// The folder of these folders.
    pub parent: &'static str,
    /// The beginning of their names; the run follows.
    pub prefix: &'static str,
    /// The beginning of the names of files that the middleware makes in `/dev/shm` itself, which run and `_`
    /// follow; `None` if all its files are in the run's folder.
    pub memory: Option<&'static str>,
}

impl RunFolders {
    /// Folders in `/dev/shm` that hold all files of a run.
    pub const fn in_memory(prefix: &'static str) -> Self {
        RunFolders { parent: MEMORY, prefix, memory: None }
    }

    /// The folder of `run`.
    pub fn path(&self, run: &str) -> PathBuf {
        Path::new(self.parent).join(format!("{}{run}", self.prefix))
    }

    /// Joins `run`. Removes what dead runs have left first. Only one at a time in a process.
    pub fn enter(&self, run: &str) -> Result<RunFolder, Error> {
        self.clean()?;
        let path = self.path(run);
        let alive = join(&path)?;
        let mut here = HERE.lock().map_err(|_| Error::new("an earlier use has panicked"))?;
        *here = Some((*self, run.to_owned(), alive));
        // SAFETY: the handler is a function of this program and has no preconditions.
        unsafe { libc::atexit(at_exit) };
        Ok(RunFolder { path })
    }

    /// Removes the files of runs without a live role.
    pub fn clean(&self) -> Result<(), Error> {
        for run in names(self.parent).iter().filter_map(|name| name.strip_prefix(self.prefix)) {
            let folder = self.path(run);
            match File::open(folder.join(ALIVE)) {
                Ok(alive) if alive.try_lock().is_ok() => self.remove(run)?,
                // A role is alive, or the folder belongs to another user.
                Ok(_) => {}
                // Half removed, or just made by a role that has not made the lock yet.
                Err(error) if error.kind() == NotFound => drop(fs::remove_dir(&folder)),
                Err(_) => {}
            }
        }
        // The folder is made before the memory and removed after it, so memory without a folder belongs to
        // nobody.
        self.remove_memory(|run| !self.path(run).exists())
    }

    /// Removes the files in `/dev/shm` of the runs that `is_over` names.
    fn remove_memory(&self, is_over: impl Fn(&str) -> bool) -> Result<(), Error> {
        let Some(prefix) = self.memory else {
            return Ok(());
        };
        for name in names(MEMORY) {
            let run = name.strip_prefix(prefix).and_then(|rest| rest.split('_').next());
            if run.is_some_and(&is_over) {
                remove(&Path::new(MEMORY).join(&name))?;
            }
        }
        Ok(())
    }

    /// The lock is removed last, so that an interrupted removal is repeated.
    fn remove(&self, run: &str) -> Result<(), Error> {
        self.remove_memory(|it| it == run)?;
        let folder = self.path(run);
        for entry in fs::read_dir(&folder).into_iter().flatten().map_while(Result::ok) {
            let path = entry.path();
            if path.is_dir() {
                tolerate(&path, fs::remove_dir_all(&path))?;
            } else if entry.file_name() != ALIVE {
                remove(&path)?;
            }
        }
        remove(&folder.join(ALIVE))?;
        // Not empty: another role has just joined.
        let _ = fs::remove_dir(&folder);
        Ok(())
    }
}

fn names(folder: &str) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().map_while(Result::ok);
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// A role's use of its run's folder. It ends with the value, or with the process unless that is
/// killed.
pub struct RunFolder {
    /// Where it is.
    pub path: PathBuf,
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        leave();
    }
}

/// The folder of this process, for cleaning at its end: a lab that hangs up ends it at any moment.
static HERE: Mutex<Option<(RunFolders, String, File)>> = Mutex::new(None);

extern "C" fn at_exit() {
    leave();
}

fn leave() {
    let Some((folders, run, alive)) = HERE.try_lock().ok().and_then(|mut here| here.take()) else {
        return;
    };
    // If two roles leave at once, the last one to unlock gets the lock.
    if alive.unlock().is_ok() && alive.try_lock().is_ok() {
        // A later cleaning removes what is left now.
        let _ = folders.remove(&run);
    }
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

/// Removes a file; one that does not exist or belongs to another user is left.
pub fn remove(path: &Path) -> Result<(), Error> {
    tolerate(path, fs::remove_file(path))
}

fn tolerate(path: &Path, result: std::io::Result<()>) -> Result<(), Error> {
    match result {
        Err(error) if !matches!(error.kind(), NotFound | PermissionDenied) => {
            Err(Error::new(format!("removing {}: {error}", path.display())))
        }
        _ => Ok(()),
    }
}

/// 16 digits for a name that would make the path of a socket too long (FNV-1a).
pub fn tag(name: &str) -> String {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    format!("{:016x}", name.bytes().fold(0xcbf2_9ce4_8422_2325, step))
}

const MEMORY: &str = "/dev/shm";
const ALIVE: &str = "alive";
