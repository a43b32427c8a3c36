//! Leftovers of dead nodes in the file system, and the nodes that live: for `myelin doctor`.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::event::{self, PollFd, PollFlags, Timespec};

use crate::control_plane::link::{Link, Received};
use crate::control_plane::message::ControlMessage;
use crate::control_plane::registry::{self, ConnectOutcome, Registry};
use crate::control_plane::rendezvous;
use crate::error::Error;
use crate::record::NodeRecord;

/// The socket of a node that is dead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    /// The socket.
    pub path: PathBuf,
    /// The node's domain.
    pub domain: u32,
    /// The group that shares the domain; `None`: the user's own domain.
    pub group: Option<u32>,
}

/// A node that lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveNode {
    /// Its socket.
    pub path: PathBuf,
    /// Its domain.
    pub domain: u32,
    /// The group that shares the domain; `None`: the user's own domain.
    pub group: Option<u32>,
    /// Its id.
    pub node: u64,
    /// Its name; `None` if it does not answer, because it is stopped or has another version.
    pub name: Option<String>,
    /// Its process; 0 if it accepts no connections, because it is stopped, or is not visible from here.
    pub pid: u32,
}

/// The folder of another user's nodes. The caller's nodes do not meet them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OthersFolder {
    /// The folder.
    pub path: PathBuf,
    /// Its owner: the caller itself if these are its own programs in another user namespace.
    pub uid: u32,
}

/// The result of a scan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scan {
    /// Live nodes.
    pub live: Vec<LiveNode>,
    /// Sockets that refuse connections.
    pub dead: Vec<Leftover>,
    /// Folders of other users.
    pub others: Vec<OthersFolder>,
}

/// Looks at the user's own folder and those of groups, in `runtime_dir` instead of `/dev/shm`. Removes
/// nothing. Folders that this user may not read are left out.
pub fn scan(runtime_dir: Option<&Path>) -> Result<Scan, Error> {
    let runtime_dir = runtime_dir.unwrap_or(Path::new("/dev/shm"));
    let mut scan = Scan::default();
    let (own, _) = rendezvous::own_name();
    for root in names(runtime_dir)? {
        let is_users = root.strip_prefix("myelin-").is_some_and(|uid| uid.parse::<u32>().is_ok());
        if is_users && root != own {
            let path = runtime_dir.join(&root);
            let uid = std::fs::symlink_metadata(&path).map(|folder| folder.uid());
            scan.others.extend(uid.ok().map(|uid| OthersFolder { path, uid }));
            continue;
        }
        let group = root.strip_prefix("myelin-group-").and_then(|group| group.parse().ok());
        if root == own || group.is_some() {
            for domain in
                names(&runtime_dir.join(root))?.iter().filter_map(|name| name.parse().ok())
            {
                look(&Registry::new(runtime_dir, domain, group), domain, group, &mut scan)?;
            }
        }
    }
    Ok(scan)
}

/// Removes the socket of a dead node, unless it lives after all, and the folders that are empty
/// then. Returns whether it was removed.
pub fn remove(leftover: &Leftover) -> Result<bool, Error> {
    let (_, refused) = registry::connect(&leftover.path)?;
    if !refused {
        return Ok(false);
    }
    std::fs::remove_file(&leftover.path).map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => Error::NoPermission {
            path: leftover.path.clone(),
            reason: "only its owner or root may remove it; run myelin doctor as such".to_owned(),
        },
        _ => Error::system("removing a dead node's socket", error),
    })?;
    // The domain's folder, then the user's or group's; a folder that others use stays.
    let folders = leftover.path.ancestors().skip(1).take(2);
    let _ = folders.map(std::fs::remove_dir).take_while(Result::is_ok).count();
    Ok(true)
}

fn look(
    registry: &Registry,
    domain: u32,
    group: Option<u32>,
    scan: &mut Scan,
) -> Result<(), Error> {
    for name in names(&registry.domain_dir)? {
        let Some(node) = registry::node_of(&name) else { continue };
        let path = registry.socket_path(node);
        let (name, pid) = match registry::connect(&path)? {
            (_, true) => {
                scan.dead.push(Leftover { path, domain, group });
                continue;
            }
            (ConnectOutcome::Connected(socket), _) => greet(Link::new(socket))?,
            (ConnectOutcome::Busy, _) => (None, 0),
            (ConnectOutcome::Gone | ConnectOutcome::Forbidden(_), _) => continue,
        };
        scan.live.push(LiveNode { path, domain, group, node, name, pid });
    }
    Ok(())
}

/// Name and process of a node that this program has connected to. It greets first: it is not a node,
/// but must greet like one.
fn greet(mut link: Link) -> Result<(Option<String>, u32), Error> {
    let pid = link.credentials()?.pid;
    let hello = ControlMessage::Hello {
        node: registry::random_node()?,
        record: NodeRecord { name: GUEST.to_owned(), ..NodeRecord::default() },
    };
    link.send(&hello, Vec::new());
    let mut name = None;
    let mut readable = [PollFd::new(&link, PollFlags::IN)];
    if matches!(event::poll(&mut readable, Some(&ANSWER_TIME)), Ok(1..))
        && let Received::Message(ControlMessage::Hello { record, .. }, _) = link.receive()
    {
        name = Some(record.name);
    }
    link.send(&ControlMessage::Leaving, Vec::new());
    Ok((name, pid))
}

/// The names in a folder, sorted; none if it does not exist or is not readable for us.
fn names(folder: &Path) -> Result<Vec<String>, Error> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound
            | io::ErrorKind::PermissionDenied
            | io::ErrorKind::NotADirectory => return Ok(Vec::new()),
            _ => return Err(Error::system("reading a folder of sockets", error)),
        },
    };
    let text = |entry: io::Result<std::fs::DirEntry>| entry.ok()?.file_name().into_string().ok();
    let mut names: Vec<_> = entries.filter_map(text).collect();
    names.sort_unstable();
    Ok(names)
}

/// The name by which that node knows this program.
const GUEST: &str = "myelin doctor";
/// A running node answers at once; a stopped one must not delay the others.
const ANSWER_TIME: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::node::{Node, NodeOptions};

    #[test]
    fn dead_nodes_are_recognised_and_removed() {
        let base = tempfile::tempdir().unwrap();
        let registry = Registry::new(base.path(), 7, None);
        let (living, node) = registry.enter().unwrap();
        let (dead, _) = registry.enter().unwrap();
        drop(dead);
        let found = scan(Some(base.path())).unwrap();
        assert_eq!((found.live.len(), found.dead.len()), (1, 1));
        assert_eq!((found.live[0].node, found.live[0].pid), (node, std::process::id()));
        assert_eq!(found.live[0].name, None, "it listens, and does not answer");
        assert_eq!(found.dead[0].domain, 7);
        assert!(remove(&found.dead[0]).unwrap());
        assert!(scan(Some(base.path())).unwrap().dead.is_empty());
        drop(living);
        let found = scan(Some(base.path())).unwrap();
        assert!(remove(&found.dead[0]).unwrap());
        assert!(!registry.user_dir.exists());
    }

    #[test]
    fn the_folders_of_other_users_are_named() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("myelin-4294967294");
        std::fs::create_dir(&path).unwrap();
        std::fs::create_dir(base.path().join("myelin-notes")).unwrap();
        let uid = rustix::process::geteuid().as_raw();
        let found = scan(Some(base.path())).unwrap();
        assert_eq!(found.others, [OthersFolder { path, uid }]);
    }

    #[test]
    fn live_nodes_report_their_names() {
        let base = tempfile::tempdir().unwrap();
        let folder = Some(base.path().to_owned());
        let options = NodeOptions {
            name: "camera".to_owned(),
            runtime_dir: folder,
            ..NodeOptions::default()
        };
        let node = Node::open(options).unwrap();
        let found = scan(Some(base.path())).unwrap();
        assert_eq!(found.live[0].name.as_deref(), Some("camera"));
        let end = Instant::now() + Duration::from_secs(20);
        while !node.peers().unwrap().is_empty() {
            assert!(Instant::now() < end, "the guest has not left");
        }
    }
}
