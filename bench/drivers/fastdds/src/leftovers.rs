//! What Fast DDS keeps in `/dev/shm`, and the removal of what is left there when its processes are
//! killed:
//!
//! ```text
//! fastrtps_<16 digits>          a participant's segment      fastrtps_<16 digits>_el  its lock
//! fastrtps_port<n>              a port's queue               …_el or …_sl             its lock
//! sem.fastrtps_port<n>_mutex    guards its opening
//! fast_datasharing_<guid>       a writer's pool, or a reader's notification
//! ```
//! From Fast DDS 3 on `fastdds_` stands for `fastrtps_`.
//!
//! Locks are flocks that their owner holds as long as it lives; the rest has no owner that could be
//! asked. So a file belongs to the dead if nobody holds its lock and no process has it mapped or
//! open: that holds for all of them, while `fastdds shm clean` knows only of locks, and of nothing
//! that is shared data.

use std::collections::HashSet;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use myelin_bench_kit::Error;
use myelin_bench_kit::run_folder::remove;

/// Removes what dead processes of Fast DDS have left.
pub fn clean() -> Result<(), Error> {
    clean_in(Path::new("/dev/shm"))
}

fn clean_in(folder: &Path) -> Result<(), Error> {
    // The order matters: a file that is being made is first there, then open, then mapped and no
    // longer open. One that is listed is thus seen as open or, later, as mapped.
    let files = ours(folder)?;
    let mut used = open_files();
    used.extend(mapped_files());
    let dead = |path: &&PathBuf| identity(path).is_some_and(|file| !used.contains(&file));
    for path in files.iter().filter(dead) {
        let locks = locks_of(path);
        // Held while we remove, so that one who starts now takes another name or port.
        let held: Vec<_> = locks.iter().filter_map(|lock| File::open(lock).ok()).collect();
        if held.iter().all(|lock| lock.try_lock().is_ok()) {
            remove(path)?;
        }
    }
    Ok(())
}

/// Fast DDS's files that belong to this user: of those of others one cannot tell whether they are
/// in use.
fn ours(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    // SAFETY: geteuid has no preconditions.
    let user = unsafe { libc::geteuid() };
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(|error| Error::new(format!("{}: {error}", folder.display())))?,
    };
    let entries = entries.filter_map(Result::ok).filter(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        PREFIXES.iter().any(|prefix| name.starts_with(prefix))
    });
    let own = entries.filter(|entry| entry.metadata().is_ok_and(|found| found.uid() == user));
    Ok(own.map(|entry| entry.path()).collect())
}

/// The locks that guard a file; a lock guards itself.
fn locks_of(path: &Path) -> Vec<PathBuf> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if LOCKS.iter().any(|lock| name.ends_with(lock)) {
        return vec![path.to_owned()];
    }
    let name = name.strip_prefix("sem.").unwrap_or(&name);
    let name = name.strip_suffix("_mutex").unwrap_or(name);
    LOCKS.iter().map(|lock| path.with_file_name(format!("{name}{lock}"))).collect()
}

/// Device and inode: a path may be another file in another container.
type Identity = (u64, u64);

fn identity(path: &Path) -> Option<Identity> {
    fs::metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

/// What any process whose memory we may look at has open, of Fast DDS's.
fn open_files() -> HashSet<Identity> {
    let processes = process_folders();
    let links = processes.iter().filter_map(|folder| fs::read_dir(folder.join("fd")).ok());
    let links = links.flatten().filter_map(Result::ok).map(|link| link.path());
    let ours = links.filter(|link| fs::read_link(link).is_ok_and(|path| is_ours(&path)));
    ours.filter_map(|link| identity(&link)).collect()
}

/// As [`open_files`], mapped.
fn mapped_files() -> HashSet<Identity> {
    let processes = process_folders();
    let maps = processes.iter().filter_map(|folder| fs::read_to_string(folder.join("maps")).ok());
    maps.flat_map(|maps| mapped_in(&maps)).collect()
}

/// Of the text of a `/proc/<pid>/maps`.
fn mapped_in(maps: &str) -> Vec<Identity> {
    // 7f00-7f10 rw-s 00000000 00:1a 42   /dev/shm/fastrtps_port7410
    let of_line = |line: &str| {
        let (fields, path) = line.split_at(line.find('/')?);
        let mut fields = fields.split_whitespace().skip(3);
        let (major, minor) = fields.next()?.split_once(':')?;
        let [major, minor] = [major, minor].map(|number| u32::from_str_radix(number, 16).ok());
        let inode = fields.next()?.parse().ok()?;
        is_ours(Path::new(path)).then_some((libc::makedev(major?, minor?), inode))
    };
    maps.lines().filter_map(of_line).collect()
}

fn is_ours(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

fn process_folders() -> Vec<PathBuf> {
    let entries = fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
    let is_process = |entry: &fs::DirEntry| {
        entry.file_name().to_string_lossy().bytes().all(|byte| byte.is_ascii_digit())
    };
    entries.filter(is_process).map(|entry| entry.path()).collect()
}

const PREFIXES: [&str; 5] =
    ["fastrtps_", "sem.fastrtps_", "fastdds_", "sem.fastdds_", "fast_datasharing_"];
const LOCKS: [&str; 2] = ["_el", "_sl"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_dead_processes_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let dead = [
            "fastrtps_0123456789abcdef",
            "fastrtps_0123456789abcdef_el",
            "fastrtps_port7400",
            "fastrtps_port7400_sl",
            "sem.fastrtps_port7400_mutex",
            "fastdds_0123456789abcdef",
            "fastdds_0123456789abcdef_el",
            "sem.fastdds_port7400_mutex",
            "fast_datasharing_01.0f_0.0.1.3",
        ];
        // The last of each is open; the others are guarded by a lock, or mapped.
        let living = ["fastrtps_port7410", "sem.fastrtps_port7410_mutex", "fastrtps_port7410_el"];
        let others = ["fast_datasharing_02.0f_0.0.1.3", "fastdds_fedcba9876543210"];
        for name in dead.iter().chain(&living).chain(&others).chain(&["other"]) {
            fs::write(path(name), [0; 4096]).unwrap();
        }
        let lock = File::open(path(living[2])).unwrap();
        lock.try_lock().unwrap();
        let open = File::open(path(others[0])).unwrap();
        let mapped = Mapping::of(&path(others[1]));
        clean_in(folder.path()).unwrap();
        let left = fs::read_dir(folder.path()).unwrap();
        let mut left: Vec<_> =
            left.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        left.sort();
        let mut spared: Vec<&str> = living.iter().chain(&others).copied().collect();
        spared.push("other");
        spared.sort();
        assert_eq!(left, spared);
        drop((lock, open, mapped));
        clean_in(folder.path()).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "all but `other`");
    }

    #[test]
    fn a_missing_folder_counts_as_clean() {
        clean_in(Path::new("/nonexistent/shm")).unwrap();
    }

    #[test]
    fn maps_are_read() {
        let maps = "7f00-7f10 rw-s 00000000 00:1a 42   /dev/shm/fastrtps_port7410\n\
                    7f10-7f20 r--p 00000000 00:1a 43   /usr/lib/libfastrtps.so.2.9\n\
                    7f20-7f30 rw-p 00000000 00:00 0\n";
        assert_eq!(mapped_in(maps), [(libc::makedev(0, 0x1a), 42)]);
    }

    /// A mapped file that is no longer open.
    struct Mapping(*mut libc::c_void);

    impl Mapping {
        fn of(path: &Path) -> Self {
            use std::os::fd::AsRawFd;
            let file = File::open(path).unwrap();
            let descriptor = file.as_raw_fd();
            // SAFETY: a new mapping of a file that is open and of this size.
            let memory = unsafe {
                let (access, kind) = (libc::PROT_READ, libc::MAP_SHARED);
                libc::mmap(std::ptr::null_mut(), 4096, access, kind, descriptor, 0)
            };
            assert_ne!(memory, libc::MAP_FAILED);
            Mapping(memory)
        }
    }

    impl Drop for Mapping {
        fn drop(&mut self) {
            // SAFETY: mapped by `of`, of this size, and not used.
            unsafe { libc::munmap(self.0, 4096) };
        }
    }
}
