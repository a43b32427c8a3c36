//! The files of a run, and their removal.
//!
//! ```text
//! /tmp/myelin-iceoryx2-<tag>/        root of the run: iceoryx2's folders and event sockets
//!   alive                            shared lock of every living role of the run
//!   gate                             held by the role that opens its ports
//! /dev/shm/mlx2-<tag>_…              its shared memory
//! ```
//! `<tag>` is derived from the run's name, so runs do not see each other. iceoryx2 removes the
//! files of its ports when they are dropped. The last role of a run to end removes the folder and
//! all that a killed role has left. The kernel releases the lock of a process when it ends, so the
//! lock shows whether a run is alive; [`clean`] removes runs without a live role.

use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind::{NotFound, PermissionDenied};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use iceoryx2::prelude::{Config, FileName, Path as RootPath, SemanticString};
use myelin_bench_kit::Error;

/// A role's use of its run's place. It ends with the value, or with the process unless that is
/// killed.
pub struct Place {
    tag: String,
}

impl Place {
    /// Joins `run`. Removes what dead runs have left first.
    pub fn enter(run: &str) -> Result<Self, Error> {
        clean()?;
        let tag = format!("{:016x}", hash(run));
        let alive = join(&root_of(&tag))?;
        let mut here = HERE.lock().map_err(|_| Error::new("an earlier use has panicked"))?;
        *here = Some((tag.clone(), alive));
        // SAFETY: the handler is a function of this program and has no preconditions.
        unsafe { libc::atexit(at_exit) };
        Ok(Place { tag })
    }

    /// iceoryx2's defaults at this place, without the user's configuration file.
    pub fn config(&self) -> Result<Config, Error> {
        let root = root_of(&self.tag);
        let invalid = |error| Error::new(format!("{}: {error:?}", root.display()));
        let mut config = Config::default();
        let path = RootPath::new(root.as_os_str().as_encoded_bytes()).map_err(invalid)?;
        config.global.set_root_path(&path);
        config.global.prefix = FileName::new(prefix_of(&self.tag).as_bytes()).map_err(invalid)?;
        Ok(config)
    }

    /// A lock that one role holds at a time.
    pub fn gate(&self) -> Result<File, Error> {
        let gate = open_or_make(&root_of(&self.tag).join(GATE))?;
        gate.lock()?;
        Ok(gate)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        leave();
    }
}

/// The place of this process, for cleaning at its end: a lab that hangs up ends it at any moment.
static HERE: Mutex<Option<(String, File)>> = Mutex::new(None);

extern "C" fn at_exit() {
    leave();
}

fn leave() {
    let Some((tag, alive)) = HERE.try_lock().ok().and_then(|mut here| here.take()) else {
        return;
    };
    // If two roles leave at once, the last one to unlock gets the lock.
    if alive.unlock().is_ok() && alive.try_lock().is_ok() {
        // A later cleaning removes what is left now.
        let _ = remove_run(&tag);
    }
}

/// Removes the files of runs without a live role.
pub fn clean() -> Result<(), Error> {
    for tag in names(Path::new(ROOTS)).iter().filter_map(|name| name.strip_prefix(ROOT)) {
        match File::open(root_of(tag).join(ALIVE)) {
            Ok(alive) if alive.try_lock().is_ok() => remove_run(tag)?,
            // A role is alive, or the files belong to another user.
            Ok(_) => {}
            // Half removed, or just made by a role that has not made the lock yet.
            Err(error) if error.kind() == NotFound => drop(fs::remove_dir(root_of(tag))),
            Err(_) => {}
        }
    }
    // The folder is made before the memory and removed after it, so memory without a folder belongs
    // to nobody.
    let memory = names(Path::new(MEMORY));
    for name in memory.iter().filter_map(|name| name.strip_prefix(PREFIX)) {
        let tag = name.split('_').next().unwrap_or(name);
        if !root_of(tag).exists() {
            remove(&Path::new(MEMORY).join(format!("{PREFIX}{name}")))?;
        }
    }
    Ok(())
}

/// Why iceoryx2 cannot run here.
pub fn missing() -> Option<String> {
    let memory = Path::new(MEMORY);
    (!memory.is_dir()).then(|| format!("there is no {MEMORY}: mount -t tmpfs tmpfs {MEMORY}"))
}

/// Fails if `bytes` do not fit into shared memory. iceoryx2 reserves memory without allocating it:
/// if it runs out later, SIGBUS ends the process.
pub fn check_room(bytes: u64) -> Result<(), Error> {
    let room = rustix::fs::statvfs(MEMORY).map_err(std::io::Error::from)?;
    let free = room.f_bavail.saturating_mul(room.f_frsize);
    if bytes <= free {
        return Ok(());
    }
    Err(Error::new(format!("{MEMORY} has room for {free} B, but the run needs {bytes} B"))
        .remedy(format!("mount -o remount,size=… {MEMORY}; in a container: --shm-size")))
}

/// Makes the folder if necessary and takes the shared lock in it.
fn join(root: &Path) -> Result<File, Error> {
    loop {
        let made = fs::DirBuilder::new().mode(0o700).recursive(true).create(root);
        made.map_err(|error| Error::new(format!("{}: {error}", root.display())))?;
        let path = root.join(ALIVE);
        let alive = match open_or_make(&path) {
            Err(error) if error.kind() == NotFound => continue,
            other => other?,
        };
        alive.lock_shared()?;
        // A cleaner may have removed it between opening and locking.
        if fs::metadata(&path).is_ok_and(|now| alive.metadata().is_ok_and(|it| is_same(&it, &now)))
        {
            return Ok(alive);
        }
    }
}

fn is_same(one: &fs::Metadata, other: &fs::Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

fn open_or_make(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)
}

/// The lock is removed last, so that an interrupted removal is repeated.
fn remove_run(tag: &str) -> Result<(), Error> {
    let prefix = prefix_of(tag);
    for name in names(Path::new(MEMORY)).iter().filter(|name| name.starts_with(&prefix)) {
        remove(&Path::new(MEMORY).join(name))?;
    }
    let root = root_of(tag);
    for name in names(&root).iter().filter(|name| *name != ALIVE) {
        let path = root.join(name);
        if path.is_dir() {
            tolerate(&path, fs::remove_dir_all(&path))?;
        } else {
            remove(&path)?;
        }
    }
    remove(&root.join(ALIVE))?;
    // Not empty: another role has just joined.
    let _ = fs::remove_dir(&root);
    Ok(())
}

fn remove(path: &Path) -> Result<(), Error> {
    tolerate(path, fs::remove_file(path))
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

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().map_while(Result::ok);
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

fn root_of(tag: &str) -> PathBuf {
    Path::new(ROOTS).join(format!("{ROOT}{tag}"))
}

fn prefix_of(tag: &str) -> String {
    format!("{PREFIX}{tag}_")
}

/// FNV-1a. The name of a run would make the path of a socket too long.
fn hash(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

/// iceoryx2's own default; the path of a socket may have 107 bytes.
const ROOTS: &str = "/tmp";
const ROOT: &str = "myelin-iceoryx2-";
/// The folder of `shm_open`.
const MEMORY: &str = "/dev/shm";
const PREFIX: &str = "mlx2-";
const ALIVE: &str = "alive";
const GATE: &str = "gate";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_fit() {
        // A port's number has up to 39 digits.
        let name = format!("{}{}.event", prefix_of(&format!("{:016x}", 1)), u128::MAX);
        let path = root_of(&format!("{:016x}", 1)).join(name);
        assert!(path.as_os_str().len() <= 107, "{}", path.display());
    }
}
