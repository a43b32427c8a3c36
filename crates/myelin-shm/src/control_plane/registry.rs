//! The names in the file system: a folder for each user or group and domain, and in it a socket for
//! each node. A socket that refuses a connection belongs to a dead node.
//!
//! A node binds to a temporary name, listens and only then takes its real name, so a socket under a
//! real name never refuses while its node lives.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{CWD, Mode, RenameFlags};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use crate::control_plane::rendezvous;
use crate::error::Error;
use crate::limits::FOLDER_ATTEMPTS_MAX;

/// The folder in which the nodes of a domain have their sockets.
#[derive(Clone, Debug)]
pub(crate) struct Registry {
    /// The user's or group's folder.
    pub(crate) user_dir: PathBuf,
    /// The domain's folder in it.
    pub(crate) domain_dir: PathBuf,
    group: Option<u32>,
    uid: u32,
    is_somebody: bool,
}

/// The result of connecting to a node.
#[derive(Debug)]
pub(crate) enum ConnectOutcome {
    /// The link.
    Connected(OwnedFd),
    /// The node lives, but too many others are connecting; it may be stopped.
    Busy,
    /// The node does not exist, or no longer; its socket has been removed.
    Gone,
    /// The socket belongs to another user, or is not a socket.
    Forbidden(Error),
}

impl Registry {
    /// The names of `domain` below `runtime_dir`; touches no file.
    pub(crate) fn new(runtime_dir: &Path, domain: u32, group: Option<u32>) -> Registry {
        // The names must not change when the program changes its working directory.
        let runtime_dir =
            std::path::absolute(runtime_dir).unwrap_or_else(|_| runtime_dir.to_owned());
        let uid = rustix::process::geteuid().as_raw();
        let (name, is_somebody) = match group {
            None => rendezvous::own_name(),
            Some(group) => (format!("myelin-group-{group}"), true),
        };
        let user_dir = runtime_dir.join(name);
        Registry {
            domain_dir: user_dir.join(domain.to_string()),
            user_dir,
            group,
            uid,
            is_somebody,
        }
    }

    /// The user whose programs meet here: the process's user when the node was opened.
    pub(crate) fn uid(&self) -> u32 {
        self.uid
    }

    /// Whether that user exists outside its user namespace.
    pub(crate) fn is_somebody(&self) -> bool {
        self.is_somebody
    }

    /// Whether a group shares the domain.
    pub(crate) fn is_groups(&self) -> bool {
        self.group.is_some()
    }

    /// Makes the folders and a socket that listens; returns it with the new node's id.
    pub(crate) fn enter(&self) -> Result<(OwnedFd, u64), Error> {
        self.in_domain_dir(|| self.listen())
    }

    /// Whether a node of ours has its socket. Another socket under its name is removed when it is
    /// connected to, because it refuses.
    pub(crate) fn has(&self, node: u64) -> bool {
        std::fs::symlink_metadata(self.socket_path(node)).is_ok()
    }

    /// Makes the folders and a socket for a node of ours that has lost its socket.
    pub(crate) fn enter_again(&self, node: u64) -> Result<OwnedFd, Error> {
        self.in_domain_dir(|| self.listen_as(node).map_err(|error| self.explain(error)))
    }

    fn in_domain_dir<T>(&self, listen: impl Fn() -> Result<T, Error>) -> Result<T, Error> {
        rendezvous::check_runtime_dir(
            self.user_dir.parent().expect("the root is inside a folder"),
        )?;
        for _ in 0..FOLDER_ATTEMPTS_MAX {
            let made = rendezvous::make(&self.user_dir, self.group);
            let made = made.and_then(|()| rendezvous::make(&self.domain_dir, self.group));
            match made.and_then(|()| listen()) {
                // Another node has just left and removed one of the folders, because it was empty.
                Err(Error::System { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
                other => return other,
            }
        }
        let path = self.domain_dir.display();
        let reason = format!(
            "{path}: it cannot be made, or another program removes it; set MYELIN_RUNTIME_DIR \
                     to another folder"
        );
        Err(Error::Host { doing: SOCKET_DOING, reason })
    }

    /// Ids of the nodes with a socket.
    pub(crate) fn nodes(&self) -> Result<Vec<u64>, Error> {
        let mut nodes = Vec::new();
        let entries = std::fs::read_dir(&self.domain_dir);
        let reason = |error| format!("{}: {error}", self.domain_dir.display());
        for entry in entries.map_err(|error| Error::Host {
            doing: "reading the folder of the sockets",
            reason: reason(error),
        })? {
            let Ok(entry) = entry else { continue };
            let name = entry.file_name();
            match name.to_str().and_then(node_of) {
                Some(node) => nodes.push(node),
                None => remove_if_old(&entry.path()),
            }
        }
        Ok(nodes)
    }

    /// Connects to a node without waiting; removes its socket if it refuses.
    pub(crate) fn connect(&self, node: u64) -> Result<ConnectOutcome, Error> {
        let path = self.socket_path(node);
        let (outcome, refused) = connect(&path)?;
        if refused {
            // In a group's folder only the owner may remove it; otherwise the name stays.
            let _ = std::fs::remove_file(&path);
        }
        Ok(outcome)
    }

    /// Path of a node's socket.
    pub(crate) fn socket_path(&self, node: u64) -> PathBuf {
        self.domain_dir.join(format!("{:010x}{SOCKET}", node >> 24))
    }

    /// The user that a node's socket belongs to, if it has one.
    pub(crate) fn owner(&self, node: u64) -> Option<u32> {
        use std::os::unix::fs::MetadataExt;
        std::fs::symlink_metadata(self.socket_path(node)).ok().map(|socket| socket.uid())
    }

    /// Removes the node's socket, and the folders that are empty then.
    pub(crate) fn leave(&self, node: u64) {
        let _ = std::fs::remove_file(self.socket_path(node));
        self.remove_if_empty();
    }

    /// Removes the folders if they are empty.
    pub(crate) fn remove_if_empty(&self) {
        let _ = std::fs::remove_dir(&self.domain_dir)
            .and_then(|()| std::fs::remove_dir(&self.user_dir));
    }

    fn listen(&self) -> Result<(OwnedFd, u64), Error> {
        for _ in 0..FOLDER_ATTEMPTS_MAX {
            let node = random_node()?;
            match self.listen_as(node) {
                Ok(listener) => return Ok((listener, node)),
                Err(Errno::EXIST | Errno::ADDRINUSE) => {}
                Err(error) => return Err(self.explain(error)),
            }
        }
        unreachable!("a free random number is found within the attempts")
    }

    fn listen_as(&self, node: u64) -> Result<OwnedFd, Errno> {
        let path = self.socket_path(node);
        let temporary = path.with_extension("new");
        let listened = self.listen_at(&temporary, &path);
        listened.inspect_err(|_| drop(std::fs::remove_file(&temporary)))
    }

    fn listen_at(&self, temporary: &Path, path: &Path) -> Result<OwnedFd, Errno> {
        let listener = socket()?;
        net::bind(&listener, &SocketAddrUnix::new(temporary)?)?;
        let mode = if self.group.is_some() { 0o660 } else { 0o600 };
        rustix::fs::chmod(temporary, Mode::from_raw_mode(mode))?;
        net::listen(&listener, BACKLOG)?;
        rustix::fs::renameat_with(CWD, temporary, CWD, path, RenameFlags::NOREPLACE)?;
        Ok(listener)
    }

    fn explain(&self, error: Errno) -> Error {
        let path = self.domain_dir.clone();
        match error {
            Errno::NOSPC | Errno::DQUOT => Error::NoSpace { path },
            Errno::ACCESS | Errno::PERM | Errno::ROFS => Error::NoPermission {
                path,
                reason: format!(
                    "a socket cannot be made there ({error}); check its owner and mode"
                ),
            },
            Errno::NAMETOOLONG => Error::Setting {
                topic: None,
                field: "folder",
                value: path.display().to_string(),
                remedy: "a socket's path has at most 107 bytes; choose a shorter folder",
            },
            Errno::NOENT => Error::system(SOCKET_DOING, error), // it is tried again
            Errno::MFILE => Error::TooManyFiles,
            Errno::AFNOSUPPORT => Error::Host {
                doing: SOCKET_DOING,
                reason: format!(
                    "sockets of the family AF_UNIX are forbidden ({error}); allow them (systemd: \
                     RestrictAddressFamilies=AF_UNIX)"
                ),
            },
            error => {
                let reason = format!(
                    "{}: {error}; set MYELIN_RUNTIME_DIR to a folder on a file system that supports \
                     sockets, such as tmpfs",
                    path.display()
                );
                Error::Host { doing: SOCKET_DOING, reason }
            }
        }
    }
}

/// Connects without waiting; also returns whether the socket refused: then its node is dead.
pub(crate) fn connect(path: &Path) -> Result<(ConnectOutcome, bool), Error> {
    let socket = socket().map_err(|error| Error::system("making a socket", error))?;
    let address = SocketAddrUnix::new(path);
    let address = address.map_err(|error| Error::system("naming a node's socket", error))?;
    match net::connect(&socket, &address) {
        Ok(()) => Ok((ConnectOutcome::Connected(socket), false)),
        Err(Errno::AGAIN | Errno::INPROGRESS | Errno::INTR) => Ok((ConnectOutcome::Busy, false)),
        Err(Errno::CONNREFUSED) => Ok((ConnectOutcome::Gone, is_socket(path))),
        Err(Errno::NOENT) => Ok((ConnectOutcome::Gone, false)),
        Err(error) => {
            let reason = format!(
                "{}: {error}; check its owner and mode, and rules of AppArmor or SELinux",
                path.display()
            );
            Ok((
                ConnectOutcome::Forbidden(Error::Host { doing: "connecting to a node", reason }),
                false,
            ))
        }
    }
}

/// The id of the node whose socket has this name.
pub(crate) fn node_of(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(SOCKET)?;
    let is_plain = digits.len() == 10 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let node = u64::from_str_radix(digits, 16).ok().filter(|_| is_plain)?;
    Some(node << 24).filter(|node| *node != 0)
}

fn socket() -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
}

/// 40 random bits above 24 zeros; not 0.
pub(crate) fn random_node() -> Result<u64, Error> {
    loop {
        let node = rendezvous::random_word()? << 24;
        if node != 0 {
            return Ok(node);
        }
    }
}

fn is_socket(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    std::fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket())
}

/// Removes an old temporary name. A node that died between bind and rename leaves its temporary
/// name; a live node has it for a few microseconds.
fn remove_if_old(path: &Path) {
    let is_temporary = path.extension().is_some_and(|extension| extension == "new");
    let age = std::fs::symlink_metadata(path)
        .and_then(|file| file.modified())
        .map(|modified| SystemTime::now().duration_since(modified).unwrap_or_default());
    if is_temporary && is_socket(path) && age.is_ok_and(|age| age > TEMPORARY_AGE_MAX) {
        let _ = std::fs::remove_file(path);
    }
}

const SOCKET: &str = ".sock";
const SOCKET_DOING: &str = "making the node's socket";
/// How many links may wait until the node's thread accepts them; the kernel may allow fewer.
const BACKLOG: i32 = 1_024;
/// A node that was stopped for longer finds its name gone and begins again.
const TEMPORARY_AGE_MAX: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_name_is_parsed_and_other_names_are_not() {
        let registry = Registry::new(Path::new("/x"), 3, None);
        let path = registry.socket_path(0xab_cdef_0123 << 24);
        assert_eq!(path.file_name().unwrap(), "abcdef0123.sock");
        assert_eq!(node_of("abcdef0123.sock"), Some(0xab_cdef_0123 << 24));
        for name in ["abcdef0123.new", "abc.sock", "+bcdef0123.sock", "0000000000.sock", ""] {
            assert_eq!(node_of(name), None, "{name}");
        }
    }

    #[test]
    fn a_node_can_be_called_and_leaves_no_socket() {
        let base = tempfile::tempdir().unwrap();
        let registry = Registry::new(base.path(), 0, None);
        let (listener, node) = registry.enter().unwrap();
        assert_eq!(registry.nodes().unwrap(), [node]);
        assert!(matches!(registry.connect(node).unwrap(), ConnectOutcome::Connected(_)));
        drop(listener);
        assert!(matches!(registry.connect(node).unwrap(), ConnectOutcome::Gone));
        assert!(registry.nodes().unwrap().is_empty(), "a socket that refuses is removed");
        registry.leave(node);
        assert!(!registry.user_dir.exists());
    }

    #[test]
    fn a_file_that_is_not_a_socket_is_kept() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("0000000001.sock");
        std::fs::write(&path, "").unwrap();
        assert!(matches!(connect(&path).unwrap(), (ConnectOutcome::Gone, false)));
    }
}
