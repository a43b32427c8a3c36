//! The other places of this host in which nodes live: domains, folders, containers, users.
//!
//! Folders are found by what processes have in their environment, by the sockets that the kernel
//! lists, and by what is mounted in other containers. Only what this user may read is seen.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::snapshot::{Elsewhere, ForeignUser, Place, Program};
use crate::leftovers::{Leftovers, Live};
use crate::session::{self, Session};

/// What lives on this host.
#[derive(Debug, Default)]
pub struct Places {
    /// The nodes in the place that is looked at.
    pub here: Vec<Live>,
    /// The other places with nodes that this user can meet.
    pub others: BTreeSet<Place>,
    /// Users with nodes that this user cannot meet.
    pub foreign: Vec<ForeignUser>,
}

impl Places {
    /// Looks for all.
    pub fn find(here: &Place) -> Places {
        let mut places = Places::default();
        let mut known = BTreeSet::new();
        let own = (here.runtime_dir.clone(), None);
        for (folder, container_of) in [own].into_iter().chain(folders()).take(FOLDERS_MAX) {
            let Ok(identity) = fs::metadata(&folder).map(|it| (it.dev(), it.ino())) else {
                continue;
            };
            if known.insert(identity) {
                places.add(here, folder, container_of);
            }
        }
        places.others.remove(here);
        places
    }

    fn add(&mut self, here: &Place, runtime_dir: PathBuf, container_of: Option<u32>) {
        let Ok(found) = Leftovers::examine(Some(&runtime_dir), false) else { return };
        for node in found.live {
            let place = Place {
                runtime_dir: runtime_dir.clone(),
                domain: node.domain,
                group: node.group,
                container_of,
            };
            if place == *here {
                self.here.push(node);
            } else if self.others.len() < PLACES_MAX {
                self.others.insert(place);
            }
        }
        let lives = |path: &Path| {
            let sockets = walk(path, 2);
            sockets.is_none_or(|sockets| !sockets.is_empty())
        };
        let others = found.others.into_iter().filter(|other| lives(&other.path));
        self.foreign.extend(others.map(|other| ForeignUser { uid: other.uid, path: other.path }));
    }

    /// The nodes with endpoints on a topic in the other places, asked within `limit` in all.
    pub fn ask(&self, topic: &str, limit: Duration) -> Vec<Elsewhere> {
        let begin = Instant::now();
        let mut found = Vec::new();
        for place in &self.others {
            if begin.elapsed() >= limit {
                break;
            }
            let there = session::Place {
                domain: Some(place.domain),
                runtime_dir: Some(place.runtime_dir.clone()),
                group: place.group.map(|group| group.to_string()),
                network: false,
            };
            let Ok(session) = Session::open("myelin why", &there) else { continue };
            let Ok(graph) = session.graph(ANSWER_LIMIT) else { continue };
            let nodes: BTreeMap<_, _> = graph.nodes.iter().map(|node| (node.node, node)).collect();
            let side = |publishers: bool| {
                let ends = graph.endpoints.iter();
                let ends = ends.filter(|it| it.topic == topic && it.is_publisher == publishers);
                let program = |node: &&myelin::PeerInfo| Program {
                    name: node.name.clone(),
                    // In a container of its own it has other numbers than here.
                    pid: if place.container_of.is_some() { 0 } else { node.pid },
                    language: node.record.language.clone(),
                    ..Program::default()
                };
                ends.filter_map(|it| nodes.get(&it.node)).map(program).collect::<Vec<_>>()
            };
            let (publishers, subscribers) = (side(true), side(false));
            if !publishers.is_empty() || !subscribers.is_empty() {
                found.push(Elsewhere { place: place.clone(), publishers, subscribers });
            }
        }
        found
    }
}

/// Folders in which nodes may live, each with a process of its container if it is not visible here.
fn folders() -> Vec<(PathBuf, Option<u32>)> {
    let mut folders = vec![(PathBuf::from("/dev/shm"), None)];
    folders.extend(listed_sockets().into_iter().map(|folder| (folder, None)));
    let own = mounts(Path::new("/proc/self"));
    let mut containers = BTreeSet::new();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    for process in processes.take(PROCESSES_MAX) {
        let Some(pid) = process.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let process = process.path();
        let named = environment(&process, "MYELIN_RUNTIME_DIR").map(PathBuf::from);
        match mounts(&process) {
            mounts if mounts.is_some() && mounts == own => {
                folders.extend(named.into_iter().map(|folder| (folder, None)));
            }
            Some(mounts) => {
                let shared = containers.insert(mounts).then(|| PathBuf::from("/dev/shm"));
                for folder in shared.into_iter().chain(named) {
                    let inside = folder.strip_prefix("/").unwrap_or(&folder);
                    folders.push((process.join("root").join(inside), Some(pid)));
                }
            }
            None => {}
        }
    }
    folders
}

/// The mount namespace of a process; `None` if this user may not know.
fn mounts(process: &Path) -> Option<PathBuf> {
    fs::read_link(process.join("ns/mnt")).ok()
}

/// A variable of a process's environment.
fn environment(process: &Path, name: &str) -> Option<String> {
    let all = fs::read(process.join("environ")).ok()?;
    let text = all.split(|byte| *byte == 0).filter_map(|line| std::str::from_utf8(line).ok());
    let mut values = text.filter_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    values.next().filter(|value| !value.is_empty()).map(str::to_owned)
}

/// The folders of the nodes' sockets that the kernel lists: `FOLDER/myelin-1000/0/…`.
fn listed_sockets() -> BTreeSet<PathBuf> {
    let text = fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let paths = text.lines().filter_map(|line| line.split_once('/').map(|(_, rest)| rest));
    let of_nodes = paths.filter_map(|rest| {
        let socket = PathBuf::from(format!("/{rest}"));
        let user = socket.parent()?.parent()?;
        let is_users = user.file_name()?.to_str()?.starts_with("myelin-");
        is_users.then(|| user.parent().map(Path::to_owned))?
    });
    of_nodes.collect()
}

/// The files at most `depth` folders below a folder; `None` if it cannot be read.
fn walk(folder: &Path, depth: usize) -> Option<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).ok()?.flatten().take(PROCESSES_MAX) {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth > 0 => {
                files.extend(walk(&entry.path(), depth - 1).unwrap_or_default());
            }
            Ok(kind) if !kind.is_dir() => files.push(entry.path()),
            _ => {}
        }
    }
    Some(files)
}

const ANSWER_LIMIT: Duration = Duration::from_millis(100);
const FOLDERS_MAX: usize = 64;
const PLACES_MAX: usize = 32;
const PROCESSES_MAX: usize = 8_192;
