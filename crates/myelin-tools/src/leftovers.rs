//! Leftovers of killed processes on this host, and the live nodes: what `myelin doctor` shows and
//! `myelin why` looks into.

use std::path::{Path, PathBuf};

use myelin_shm::leftovers::{self, Leftover, LiveNode};
use serde::Serialize;

use crate::Error;

/// Nodes of this user and of groups.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct Leftovers {
    /// Live nodes.
    pub live: Vec<Live>,
    /// Leftovers of dead nodes.
    pub dead: Vec<Dead>,
    /// Folders of nodes that this user's nodes do not meet.
    pub others: Vec<Others>,
}

/// A live node.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Live {
    /// Its socket.
    pub path: PathBuf,
    /// Its id.
    #[serde(skip)]
    pub node: u64,
    /// Its domain.
    pub domain: u32,
    /// The group that shares the domain; absent if it is the user's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<u32>,
    /// Its name; absent if it does not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its process; absent if it is stopped, or in another container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
}

/// The folder of another user's nodes.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Others {
    /// The folder.
    pub path: PathBuf,
    /// Its owner.
    pub uid: u32,
}

/// The socket of a dead node.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Dead {
    /// The socket.
    pub path: PathBuf,
    /// Its domain.
    pub domain: u32,
    /// Whether this call has removed it.
    pub removed: bool,
}

impl Leftovers {
    /// Looks, and removes leftovers of dead nodes if `fix`.
    ///
    /// # Errors
    /// Those of the file system, with the path.
    pub fn examine(folder: Option<&Path>, fix: bool) -> Result<Self, Error> {
        let scan = leftovers::scan(folder)?;
        let clear = |dead: &Leftover| {
            let removed = fix && leftovers::remove(dead)?;
            Ok(Dead { path: dead.path.clone(), domain: dead.domain, removed })
        };
        Ok(Leftovers {
            live: scan.live.iter().map(Live::from).collect(),
            dead: scan.dead.iter().map(clear).collect::<Result<_, Error>>()?,
            others: scan
                .others
                .into_iter()
                .map(|other| Others { path: other.path, uid: other.uid })
                .collect(),
        })
    }

    /// How many are still there.
    pub fn left(&self) -> usize {
        self.dead.iter().filter(|dead| !dead.removed).count()
    }

    /// A line for each live node, one for all dead ones, and what to do.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for node in &self.live {
            // In quotes, because another process's name may contain anything.
            let name = match &node.name {
                None => "name unknown".to_owned(),
                Some(name) => format!("{name:?}"),
            };
            let process = match node.pid {
                None => "process unknown (stopped, or of another container)".to_owned(),
                Some(pid) => format!("process {pid}"),
            };
            let group = node.group.map(|gid| format!(" of group {gid}")).unwrap_or_default();
            text += &format!("alive    {name}, {process}, domain {}{group}\n", node.domain);
        }
        for other in &self.others {
            let path = other.path.display();
            text += &format!(
                "others   user {} has {path}: nodes of two users match only in a group's domain\n",
                other.uid
            );
        }
        let left = self.left();
        let removed = self.dead.len() - left;
        if removed > 0 {
            text += &format!("gone     {}\n", sockets(removed));
        }
        if left > 0 {
            text += &format!(
                "dead     {}, harmless: the next node of the domain removes them, or\n    \
                 myelin doctor --fix\n",
                sockets(left)
            );
        }
        if self.dead.is_empty() {
            text += "nothing is left behind by dead nodes\n";
        }
        text
    }
}

fn sockets(number: usize) -> String {
    match number {
        1 => "1 socket left behind by a dead node".to_owned(),
        number => format!("{number} sockets left behind by dead nodes"),
    }
}

impl From<&LiveNode> for Live {
    fn from(node: &LiveNode) -> Self {
        let pid = (node.pid != 0).then_some(node.pid);
        let LiveNode { path, node, domain, group, name, .. } = node.clone();
        Live { path, node, domain, group, name, pid }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dead(number: usize, removed: usize) -> Leftovers {
        let one =
            |place| Dead { path: PathBuf::from("/x.sock"), domain: 0, removed: place < removed };
        Leftovers { dead: (0..number).map(one).collect(), ..Leftovers::default() }
    }

    #[test]
    fn any_number_of_dead_nodes_is_one_line_with_a_remedy() {
        let text = dead(55, 0).text();
        assert!(text.starts_with("dead     55 sockets left behind by dead nodes, "), "{text}");
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(text.ends_with("\n    myelin doctor --fix\n"), "{text}");
        assert_eq!(dead(55, 55).text(), "gone     55 sockets left behind by dead nodes\n");
        assert_eq!(dead(3, 2).text().lines().count(), 3);
    }

    #[test]
    fn other_users_are_named_with_the_reason_why_they_do_not_match() {
        let others = vec![Others { path: PathBuf::from("/dev/shm/myelin-7"), uid: 7 }];
        let text = Leftovers { others, ..Leftovers::default() }.text();
        let line = "others   user 7 has /dev/shm/myelin-7: nodes of two users match only in a \
                    group's domain\n";
        assert!(text.starts_with(line), "{text}");
    }

    #[test]
    fn names_of_live_nodes_are_escaped_for_the_terminal() {
        let live = |name: Option<&str>, group| Live {
            path: PathBuf::from("/x.sock"),
            node: 0,
            domain: 7,
            group,
            name: name.map(str::to_owned),
            pid: Some(12),
        };
        let live = vec![live(Some("camera\u{1b}[2J"), None), live(None, Some(29))];
        let text = Leftovers { live, ..Leftovers::default() }.text();
        let expected = "alive    \"camera\\u{1b}[2J\", process 12, domain 7\n\
                        alive    name unknown, process 12, domain 7 of group 29\n\
                        nothing is left behind by dead nodes\n";
        assert_eq!(text, expected);
    }
}
