//! A `/dev/shm` and a `/tmp` that this test and the processes it starts have to themselves: what
//! lies there later is theirs, whatever else runs on the host, and there is a RouDi of their own.

use std::collections::BTreeSet;
use std::ffi::{CStr, CString};
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Gives the calling thread, and what it starts from now on, empty folders, in a mount namespace
/// that goes with the last of them. Files made before in `/tmp` are out of sight. Where this process
/// may not make namespaces, says so: then a test sees what other programs leave, too.
pub fn enter() {
    // SAFETY: flags alone. The other threads stay where they are.
    if unsafe { libc::unshare(libc::CLONE_NEWNS) } != 0 {
        let error = io::Error::last_os_error();
        eprintln!(
            "mount namespaces take root ({error}): no other program may use /dev/shm or /tmp"
        );
        return;
    }
    hide().expect("root may mount in its own namespace");
}

fn hide() -> io::Result<()> {
    // What is mounted from here on stays in here.
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

/// The folders of `/tmp` that hold this executable, or that the environment points to: the clone,
/// what is built, caches.
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
    match unsafe { libc::mount(what.as_ptr(), place.as_ptr(), kind, flags, std::ptr::null()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

const TEMPORARY: &str = "/tmp";
