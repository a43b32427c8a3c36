//! A role's stay at its run's place.

use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind::NotFound;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use myelin_bench_kit::Error;

use super::{ALIVE, MEMORY, ROOT, clean, remove_run};

/// Ends with the value, or with the process unless it is killed.
pub struct Place;

impl Place {
    /// Takes part in `run`: HORUS's topics of this process are in its namespace from now on. What dead runs
    /// have left is removed before.
    pub fn enter(run: &str) -> Result<Self, Error> {
        clean()?;
        // What is neither letter nor digit HORUS replaces.
        let run = run.replace('-', "_");
        let root = Path::new(MEMORY).join(format!("{ROOT}{run}"));
        let alive = join(&root)?;
        let mut here = HERE.lock().map_err(|_| Error::new("an earlier stay has panicked"))?;
        *here = Some((root, alive));
        // SAFETY: the kit opens a role before it starts threads; HORUS reads it when the first topic opens.
        unsafe { std::env::set_var("HORUS_NAMESPACE", format!("{NAMESPACE}{run}")) };
        // SAFETY: the handler is a function of this program and has no preconditions.
        unsafe { libc::atexit(at_exit) };
        Ok(Place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        leave();
    }
}

/// The stay of this process, for the end of the process: a lab that hangs up ends it in mid-air.
static HERE: Mutex<Option<(PathBuf, File)>> = Mutex::new(None);

extern "C" fn at_exit() {
    leave();
}

fn leave() {
    let Some((root, alive)) = HERE.try_lock().ok().and_then(|mut here| here.take()) else {
        return;
    };
    // Of two roles that leave at once, the one that unlocks later gets the lock.
    if alive.unlock().is_ok() && alive.try_lock().is_ok() {
        // What does not go now goes with the next cleaning.
        let _ = remove_run(&root);
    }
}

/// Makes the folder if need be and takes the shared lock in it.
fn join(root: &Path) -> Result<File, Error> {
    loop {
        let made = fs::DirBuilder::new().mode(0o700).recursive(true).create(root);
        made.map_err(|error| Error::new(format!("{}: {error}", root.display())))?;
        let path = root.join(ALIVE);
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

const NAMESPACE: &str = "myelin_";
