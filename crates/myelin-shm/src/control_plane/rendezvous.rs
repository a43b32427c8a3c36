//! The folders of the sockets: their required owners, and how to make them so that no process ever
//! sees one half made.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{CWD, Gid, Mode, RenameFlags};
use rustix::io::Errno;

use crate::error::Error;

/// The name of the folder for the user's own programs: the user's number outside this user
/// namespace, so that programs of the same user meet inside and outside. And whether the user has
/// such a number.
pub(crate) fn own_name() -> (String, bool) {
    let uid = rustix::process::geteuid().as_raw();
    let map = std::fs::read_to_string("/proc/self/uid_map");
    let outside = map.map_or(Some(uid), |map| outside(&map, uid));
    (format!("myelin-{}", outside.unwrap_or(uid)), outside.is_some())
}

/// Each line of `map` has an id inside, the same id outside, and how many ids follow from these on.
fn outside(map: &str, uid: u32) -> Option<u32> {
    map.lines().find_map(|line| {
        let mut numbers = line.split_whitespace().map(|number| number.parse::<u32>().ok());
        let (inside, outside, count) = (numbers.next()??, numbers.next()??, numbers.next()??);
        outside.checked_add(uid.checked_sub(inside).filter(|at| *at < count)?)
    })
}

/// Fails unless the folder exists.
pub(crate) fn check_runtime_dir(runtime_dir: &Path) -> Result<(), Error> {
    let error = match std::fs::metadata(runtime_dir) {
        Ok(folder) if folder.is_dir() => return Ok(()),
        Ok(_) => std::io::Error::from(Errno::NOTDIR),
        Err(error) => error,
    };
    let path = format!("{runtime_dir:?}"); // in quotes, because it may be empty or have spaces
    let remedy = match error.kind() {
        std::io::ErrorKind::NotFound => format!("make it (mkdir -p {path}), or"),
        std::io::ErrorKind::NotADirectory => "remove the file in its place, or".to_owned(),
        _ => String::new(),
    };
    Err(Error::Host {
        doing: DOING,
        reason: format!(
            "{path}: {error}; {remedy} set MYELIN_RUNTIME_DIR to another folder, for all programs that \
             must find each other"
        ),
    })
}

/// Makes a folder of the user's own (0700), or of a group (3770), unless it exists; then fails
/// unless it is such a folder.
pub(crate) fn make(path: &Path, group: Option<u32>) -> Result<(), Error> {
    if std::fs::symlink_metadata(path).is_err() {
        let temporary = path.with_extension(format!("{:016x}.new", random_word()?));
        match make_at(&temporary, path, group) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(explain(path, group, error)),
        }
    }
    check(path, group)
}

/// 64 unpredictable bits.
pub(crate) fn random_word() -> Result<u64, Error> {
    let mut bytes = [0u8; 8];
    // SAFETY: the buffer has the length that is passed.
    let came = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    match came == bytes.len() as isize {
        true => Ok(u64::from_le_bytes(bytes)),
        false => Err(Error::system("asking for random bits", std::io::Error::last_os_error())),
    }
}

/// Fails unless `path` is a folder that admits only its user or group.
pub(crate) fn check(path: &Path, group: Option<u32>) -> Result<(), Error> {
    let folder = std::fs::symlink_metadata(path);
    let folder = folder.map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Error::system(DOING, error), // it is tried again
        _ => Error::Host { doing: DOING, reason: format!("{}: {error}", path.display()) },
    })?;
    let no = |reason| Err(Error::NoPermission { path: path.to_owned(), reason });
    if !folder.is_dir() {
        return no("it is not a folder; remove it, or set another folder".to_owned());
    }
    let (mode, uid) = (folder.permissions().mode() & 0o7777, rustix::process::geteuid().as_raw());
    match group {
        None if folder.uid() != uid => no(format!(
            "it belongs to user {0}, not to you, user {uid}, and only user {0} or root can remove \
             it (as root: rm -r {1}); until then set MYELIN_RUNTIME_DIR to a folder of your own, for \
             all programs that must find each other",
            folder.uid(),
            path.display()
        )),
        None if mode & 0o077 != 0 => no(format!(
            "its mode is {mode:04o}, open to others, and must be 0700; run chmod 700 on it if \
             nobody else has put files there, or remove it"
        )),
        Some(group) if folder.gid() != group || mode != GROUP_MODE => no(format!(
            "it is of group {} with mode {mode:04o}, and must be of group {group} with mode \
             {GROUP_MODE:04o}; ask its owner to remove it, or set another folder",
            folder.gid()
        )),
        _ => Ok(()),
    }
}

/// `temporary` must be an unpredictable name: a name made by someone else could be a link to
/// another folder of ours, which must not be opened to others.
fn make_at(temporary: &Path, path: &Path, group: Option<u32>) -> Result<(), Errno> {
    rustix::fs::mkdir(temporary, Mode::RWXU)?;
    let made = adorn(temporary, group).and_then(|()| {
        rustix::fs::renameat_with(CWD, temporary, CWD, path, RenameFlags::NOREPLACE)
    });
    if made.is_err() {
        let _ = std::fs::remove_dir(temporary);
    }
    made
}

fn adorn(folder: &Path, group: Option<u32>) -> Result<(), Errno> {
    if let Some(group) = group {
        rustix::fs::chown(folder, None, Some(Gid::from_raw(group)))?;
    }
    let mode = if group.is_some() { GROUP_MODE } else { 0o700 };
    rustix::fs::chmod(folder, Mode::from_raw_mode(mode))
}

fn explain(path: &Path, group: Option<u32>, error: Errno) -> Error {
    let path = path.to_owned();
    let reason = match (error, group) {
        (Errno::NOSPC | Errno::DQUOT, _) => return Error::NoSpace { path },
        (Errno::PERM, Some(group)) => {
            format!("you are not in group {group}; ask to be added to it, or use another group")
        }
        (Errno::ACCESS | Errno::PERM | Errno::ROFS, _) => {
            format!("it cannot be made ({error}); set another folder")
        }
        (Errno::NOENT, _) => return Error::system(DOING, error), // it is tried again
        _ => {
            let reason = format!("{}: {error}; set another folder", path.display());
            return Error::Host { doing: DOING, reason };
        }
    };
    Error::NoPermission { path, reason }
}

const DOING: &str = "making a folder for sockets";
/// Members may add sockets, and remove only their own.
const GROUP_MODE: u32 = 0o3770;

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;

    fn refusal(path: &Path) -> String {
        match make(path, None) {
            Err(Error::NoPermission { reason, .. }) => reason,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_users_folder_has_the_user_number_outside_of_the_namespace() {
        let of = |map: &str| [0, 7, 1000].map(|uid| outside(map, uid));
        assert_eq!(of("         0          0 4294967295\n"), [0, 7, 1000].map(Some));
        assert_eq!(of("0 1000 1\n1 100000 65536\n"), [1000, 100_006, 100_999].map(Some));
        assert_eq!(of("1000 1000 1\n"), [None, None, Some(1000)]);
        assert_eq!(of(""), [None; 3]);
    }

    #[test]
    fn the_users_folder_is_made_once_and_kept() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("ours");
        make(&path, None).unwrap();
        make(&path, None).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o700);
        assert_eq!(std::fs::read_dir(base.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_folder_open_to_others_or_a_file_is_refused() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("open");
        make(&path, None).unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        assert!(refusal(&path).contains("0755"));
        let link = base.path().join("link");
        make(&base.path().join("real"), None).unwrap();
        std::os::unix::fs::symlink(base.path().join("real"), &link).unwrap();
        assert!(refusal(&link).contains("not a folder"));
    }
}
