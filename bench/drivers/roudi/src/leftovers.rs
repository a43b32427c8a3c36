//! Files that iceoryx leaves on the host when one of its processes is killed, and whether its
//! daemon is running.
//!
//! ```text
//! /tmp/iox-unique-roudi.lock   locked (flock) as long as a RouDi runs; one per host
//! /tmp/roudi, /tmp/roudi.lock  its socket, and the lock of it
//! /dev/shm/iceoryx_mgmt        its 63 MiB of bookkeeping
//! /dev/shm/<group>             the pools, named after the group of its user
//! /tmp/iceoryx_rt_<name>, ….lock   socket of one of its processes, and the lock of it
//! ```
//! RouDi and its processes remove these files when they end normally. A lock is released when its
//! process dies, so it shows which processes are alive. Processes choose the names of their
//! sockets: CycloneDDS uses the prefix [`APPLICATION`], and sockets of any other process with this
//! prefix are cleaned up, too.

use std::ffi::CStr;
use std::fs::{self, File, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use myelin_bench_kit::Error;
use myelin_bench_kit::run_folder::remove;

/// Prefix of the runtime names of processes that [`clean`] cleans up after.
pub const APPLICATION: &str = "iceoryx_rt_";

/// The RouDi that runs on this host, ours or another: its process id, 0 if it is not visible from
/// here.
pub fn living_daemon() -> Option<u32> {
    let file = File::open(DAEMON_LOCK).ok()?;
    // The lock decides; its owner is only looked up for the message.
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

/// Removes what dead processes of iceoryx have left, if no RouDi is running.
pub fn clean() -> Result<(), Error> {
    if living_daemon().is_some() {
        return Ok(());
    }
    match File::open(DAEMON_LOCK) {
        // Its owner has removed it, and with it all other files.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(Error::new(format!("{DAEMON_LOCK}: {error}"))),
        Ok(lock) => {
            // Held while we remove files, so that a RouDi that starts now fails instead of losing
            // its files. The lock file is removed last, so that an interrupted cleaning is
            // repeated.
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

/// Removes the sockets of RouDi's dead processes.
fn remove_dead_applications(folder: &Path) -> Result<(), Error> {
    let entries = fs::read_dir(folder)?.filter_map(Result::ok);
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let ours = names.filter(|name| name.starts_with(APPLICATION) && !name.ends_with(LOCK));
    for name in ours {
        let lock = folder.join(format!("{name}{LOCK}"));
        // The lock is taken before the socket is made: without a lock there is no owner.
        let held = File::open(&lock).ok().map(|file| (file.try_lock(), file));
        if matches!(held, Some((Err(_), _))) {
            continue;
        }
        remove(&folder.join(&name))?;
        remove(&lock)?;
    }
    Ok(())
}

/// The process that holds the flock of the file with `inode`, from the text of `/proc/locks`.
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
    fn only_sockets_of_dead_processes_are_removed() {
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
