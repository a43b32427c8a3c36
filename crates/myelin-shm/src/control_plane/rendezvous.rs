//! The folders of the sockets: whose they must be, and how they are made so that nobody ever sees
//! one that is half made.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{CWD, Gid, Mode, RenameFlags};
use rustix::io::Errno;

use crate::error::Error;

/// Makes a folder of the user's own (0700), or of a group (3770), unless it is there; fails unless
/// it is such a folder then.
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

/// 64 bits that nobody foresees.
pub(crate) fn random_word() -> Result<u64, Error> {
    let mut bytes = [0u8; 8];
    // SAFETY: the buffer is as long as said.
    let came = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    match came == bytes.len() as isize {
        true => Ok(u64::from_le_bytes(bytes)),
        false => Err(Error::system("asking for random bits", std::io::Error::last_os_error())),
    }
}

/// Fails unless `path` is a folder that admits its user or group, and nobody else.
pub(crate) fn check(path: &Path, group: Option<u32>) -> Result<(), Error> {
    let folder = std::fs::symlink_metadata(path);
    let folder = folder.map_err(|error| Error::system("looking at a folder of sockets", error))?;
    let no = |reason| Err(Error::NoPermission { path: path.to_owned(), reason });
    if !folder.is_dir() {
        return no("it is not a folder; remove it, or set another folder".to_owned());
    }
    let (mode, uid) = (folder.permissions().mode() & 0o7777, rustix::process::geteuid().as_raw());
    match group {
        None if folder.uid() != uid => no(format!(
            "it belongs to user {0}, not to you, user {uid}, and only user {0} or root can remove it \
             (as root: rm -r {1}); until then set MYELIN_FOLDER to a folder of your own, for all \
             programs that are to meet",
            folder.uid(),
            path.display()
        )),
        None if mode & 0o077 != 0 => no(format!(
            "its mode is {mode:04o}, open to others, and must be 0700; run chmod 700 on it if \
             nobody else has put files there, or remove it"
        )),
        Some(group) if folder.gid() != group || mode != GROUP_MODE => no(format!(
            "it is of group {} with mode {mode:04o}, and must be of group {group} with mode \
             {GROUP_MODE:04o}; have it removed, or set another folder",
            folder.gid()
        )),
        _ => Ok(()),
    }
}

/// `temporary` must be a name nobody foresees: one that someone else has made could be a link to
/// another folder of ours, and must not be opened up.
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
            format!("you are not in group {group}; have yourself added to it, or name another")
        }
        (Errno::ACCESS | Errno::PERM | Errno::ROFS, _) => {
            format!("it cannot be made ({error}); set another folder")
        }
        _ => return Error::system("making a folder for sockets", error),
    };
    Error::NoPermission { path, reason }
}

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
    fn our_own_folder_is_made_once_and_kept() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("ours");
        make(&path, None).unwrap();
        make(&path, None).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o700);
        assert_eq!(std::fs::read_dir(base.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_is_open_to_others_or_no_folder_is_refused() {
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
