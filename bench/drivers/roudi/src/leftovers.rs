//! What iceoryx leaves on the host when one of its processes is killed, and whether its daemon
//! lives.
//!
//! ```text
//! /tmp/iox-unique-roudi.lock   locked (flock) as long as a RouDi lives; one per host
//! /tmp/roudi, /tmp/roudi.lock  its socket, and the lock of it
//! /dev/shm/iceoryx_mgmt        its 63 MiB of bookkeeping
//! /dev/shm/<group>             the pools, named after the group of its user
//! /tmp/iceoryx_rt_<name>, ….lock   socket of one of its processes, and the lock of it
//! ```
//! RouDi and its processes remove these when they end by themselves. A lock dies with its process,
//! so it tells the dead from the living. The sockets are named by their processes: CycloneDDS calls
//! its own so, and whoever uses [`APPLICATION`] is cleaned up after, too.

use std::ffi::CStr;
use std::fs::{self, File, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use myelin_bench_kit::Error;

/// What the runtime names of processes begin with that [`clean`] cleans up after.
pub const APPLICATION: &str = "iceoryx_rt_";

/// The RouDi that lives on this host, ours or another's: its process id, 0 if it cannot be seen
/// from here.
pub fn living_daemon() -> Option<u32> {
    let file = File::open(DAEMON_LOCK).ok()?;
    // The lock decides; who holds it is only looked up to be named.
    matches!(file.try_lock(), Err(TryLockError::WouldBlock)).then(|| {
        let inode = file.metadata().map(|data| data.ino()).unwrap_or(0);
        let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
        let owner = flock_owner(&locks, inode).filter(|pid| is_roudi(*pid));
        owner.unwrap_or(0)
    })
}

fn is_roudi(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.contains("roudi"))
}

/// Removes what dead processes of iceoryx have left, if no RouDi lives.
pub fn clean() -> Result<(), Error> {
    if living_daemon().is_some() {
        return Ok(());
    }
    match File::open(DAEMON_LOCK) {
        // Its owner has removed it, and with it all else.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(Error::new(format!("{DAEMON_LOCK}: {error}"))),
        Ok(lock) => {
            // Held while we remove, so that a RouDi that starts now fails instead of losing the
            // ground under its feet. The file goes last: an interrupted cleaning is repeated.
            if lock.try_lock().is_err() {
                return Ok(());
            }
            remove_daemon()?;
            remove(Path::new(DAEMON_LOCK))?;
        }
    }
    remove_dead_applications(Path::new("/tmp"))
}

fn remove_daemon() -> Result<(), Error> {
    for path in ["/dev/shm/iceoryx_mgmt", "/tmp/roudi", "/tmp/roudi.lock"] {
        remove(Path::new(path))?;
    }
    match group() {
        Some(group) => remove(&Path::new("/dev/shm").join(group)),
        None => Ok(()),
    }
}

/// Removes the sockets of RouDi's processes that have died.
fn remove_dead_applications(folder: &Path) -> Result<(), Error> {
    let entries = fs::read_dir(folder)?.filter_map(Result::ok);
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let ours = names.filter(|name| name.starts_with(APPLICATION) && !name.ends_with(LOCK));
    for name in ours {
        let lock = folder.join(format!("{name}{LOCK}"));
        // The lock is taken before the socket is made: no lock, no owner.
        let held = File::open(&lock).ok().map(|file| (file.try_lock(), file));
        if matches!(held, Some((Err(_), _))) {
            continue;
        }
        remove(&folder.join(&name))?;
        remove(&lock)?;
    }
    Ok(())
}

/// Removes a file; one that is not there, or is another user's, is not our business.
fn remove(path: &Path) -> Result<(), Error> {
    use std::io::ErrorKind::{NotFound, PermissionDenied};
    match fs::remove_file(path) {
        Ok(()) => Ok(()),
        Err(error) if matches!(error.kind(), NotFound | PermissionDenied) => Ok(()),
        Err(error) => Err(Error::new(format!("removing {}: {error}", path.display()))),
    }
}

/// The process that holds the flock of the file with `inode`, by the text of `/proc/locks`.
fn flock_owner(locks: &str, inode: u64) -> Option<u32> {
    // 1: FLOCK  ADVISORY  WRITE 4711 00:1a:39 0 EOF
    let suffix = format!(":{inode}");
    locks.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let is_ours = fields.get(1) == Some(&"FLOCK") && fields.get(5)?.ends_with(&suffix);
        if is_ours { fields[4].parse().ok() } else { None }
    })
}

/// The name of this process's group.
fn group() -> Option<String> {
    // SAFETY: getgrgid returns null or a record that lives until the next call; this program
    // calls it from one thread, and the name is copied at once.
    unsafe {
        let record = libc::getgrgid(libc::getegid());
        if record.is_null() {
            return None;
        }
        CStr::from_ptr((*record).gr_name).to_str().ok().map(str::to_owned)
    }
}

const DAEMON_LOCK: &str = "/tmp/iox-unique-roudi.lock";
const LOCK: &str = ".lock";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_of_a_lock_is_found_by_inode() {
        let locks = "1: POSIX  ADVISORY  WRITE 7 00:1a:39 0 EOF\n\
                     2: FLOCK  ADVISORY  WRITE 4711 00:1a:39 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE 8 00:1a:139 0 EOF\n\
                     3: -> FLOCK  ADVISORY  WRITE 9 00:1a:40 0 EOF\n";
        assert_eq!(flock_owner(locks, 39), Some(4711));
        assert_eq!(flock_owner(locks, 139), Some(8));
        assert_eq!(flock_owner(locks, 40), None);
        assert_eq!(flock_owner("", 39), None);
    }

    #[test]
    fn only_the_dead_lose_their_sockets() {
        let folder = tempfile::tempdir().unwrap();
        let names = ["iceoryx_rt_1_1", "iceoryx_rt_2_2", "iceoryx_rt_3_3", "other"];
        for name in names.iter().copied().chain(["iceoryx_rt_1_1.lock", "iceoryx_rt_2_2.lock"]) {
            File::create(folder.path().join(name)).unwrap();
        }
        let alive = File::open(folder.path().join("iceoryx_rt_2_2.lock")).unwrap();
        alive.try_lock().unwrap();
        remove_dead_applications(folder.path()).unwrap();
        let left = fs::read_dir(folder.path()).unwrap();
        let mut left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["iceoryx_rt_2_2", "iceoryx_rt_2_2.lock", "other"]);
    }
}
