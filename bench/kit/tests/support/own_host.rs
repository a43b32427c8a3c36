//! A private host for a test and the processes it starts: `/dev/shm`, `/tmp`, a network and its own
//! RouDi. Other programs on the machine do not interfere with files and messages there.

#![allow(dead_code)]

use std::collections::BTreeSet;
use std::ffi::{CStr, CString};
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use myelin_bench_kit::loopback;

/// Gives the calling thread, and the processes it starts from now on, empty folders and a network
/// with only `lo`. These namespaces vanish with their last process. Older files in `/tmp` are
/// hidden; the state of the network is in [`NET`]. While the returned value exists, no test of this
/// program runs that calls [`alone`].
///
/// If this process may not make namespaces, it prints a message. The test then also sees what other
/// programs leave and send, and runs alone itself.
pub fn enter() -> Turn {
    match isolate() {
        true => Turn::Beside(TURN.read().unwrap_or_else(PoisonError::into_inner)),
        false => Turn::Alone(TURN.write().unwrap_or_else(PoisonError::into_inner)),
    }
}

/// Like [`enter`], while no other test of this program runs that calls either. For tests that
/// measure, or whose pairs spin and each take a core.
pub fn alone() -> Turn {
    let turn = TURN.write().unwrap_or_else(PoisonError::into_inner);
    isolate();
    Turn::Alone(turn)
}

/// The turn of a test.
#[must_use = "it ends when this is dropped"]
pub enum Turn {
    /// Together with others.
    Beside(RwLockReadGuard<'static, ()>),
    /// Alone.
    Alone(RwLockWriteGuard<'static, ()>),
}

static TURN: RwLock<()> = RwLock::new(());

/// Whether this process may make namespaces.
fn isolate() -> bool {
    // SAFETY: the call takes only flags. The other threads stay in their namespaces.
    if unsafe { libc::unshare(libc::CLONE_NEWNS | libc::CLONE_NEWNET) } != 0 {
        static SAID: std::sync::Once = std::sync::Once::new();
        let error = io::Error::last_os_error();
        SAID.call_once(|| {
            eprintln!(
                "namespaces take root ({error}): no other program may use /dev/shm, /tmp or the \
                 network's loopback interface"
            );
        });
        return false;
    }
    hide().expect("root may mount in its own namespace");
    loopback::up().expect("root may change its own network");
    true
}

fn hide() -> io::Result<()> {
    // Mounts from here on are visible only in the new namespace.
    mount(Path::new("none"), Path::new("/"), None, libc::MS_REC | libc::MS_PRIVATE)?;
    let flags = libc::MS_NOSUID | libc::MS_NODEV;
    mount(Path::new("tmpfs"), Path::new("/dev/shm"), Some(c"tmpfs"), flags)?;

    let (covered, kept) = (File::open(TEMPORARY)?, kept());
    mount(Path::new("tmpfs"), Path::new(TEMPORARY), Some(c"tmpfs"), flags)?;
    let covered = PathBuf::from(format!("/proc/thread-self/fd/{}", covered.as_raw_fd()));
    for name in kept {
        let place = Path::new(TEMPORARY).join(&name);
        fs::create_dir(&place)?;
        mount(&covered.join(&name), &place, None, libc::MS_BIND | libc::MS_REC)?;
    }
    Ok(())
}

/// The folders of `/tmp` that contain this executable, or that the environment names: the clone,
/// build results, caches.
fn kept() -> BTreeSet<PathBuf> {
    let values: Vec<_> = std::env::vars_os().map(|(_, value)| value).collect();
    let named = values.iter().flat_map(std::env::split_paths);
    let paths = named.chain(std::env::current_exe()).chain(std::env::current_dir());
    let names = paths.filter_map(|path| {
        let name = path.strip_prefix(TEMPORARY).ok()?.components().next()?;
        Some(PathBuf::from(name.as_os_str()))
    });
    names.filter(|name| Path::new(TEMPORARY).join(name).is_dir()).collect()
}

fn mount(what: &Path, place: &Path, kind: Option<&CStr>, flags: libc::c_ulong) -> io::Result<()> {
    let [what, place] = [what, place].map(|path| CString::new(path.as_os_str().as_bytes()));
    let (what, place) = (what?, place?);
    let kind = kind.map_or(std::ptr::null(), CStr::as_ptr);
    // SAFETY: the strings are valid for the call; no kind and no data are null.
    check(unsafe { libc::mount(what.as_ptr(), place.as_ptr(), kind, flags, std::ptr::null()) })
}

fn check(result: libc::c_int) -> io::Result<()> {
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

const TEMPORARY: &str = "/tmp";
/// The tables of the calling thread's network; `/proc/net` has those of the main thread.
pub const NET: &str = "/proc/thread-self/net";
