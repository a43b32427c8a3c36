//! What killed processes have left behind on this host, and who lives.

use std::path::{Path, PathBuf};

use anyhow::Result;
use myelin_shm::leftovers::{self, Leftover, LiveNode};
use serde::Serialize;

/// Nodes of this user and of groups.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct Leftovers {
    /// Nodes that live.
    pub live: Vec<Live>,
    /// What dead nodes have left behind.
    pub dead: Vec<Dead>,
}

/// A node that lives.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Live {
    /// Its socket.
    pub path: PathBuf,
    /// Its domain.
    pub domain: u32,
    /// Its process; absent if stopped, or of another container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
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
    /// Looks, and removes what the dead have left if `fix`.
    pub fn examine(folder: Option<&Path>, fix: bool) -> Result<Self> {
        let survey = leftovers::survey(folder)?;
        let clear = |dead: &Leftover| {
            let removed = fix && leftovers::remove(dead)?;
            Ok(Dead { path: dead.path.clone(), domain: dead.domain, removed })
        };
        Ok(Leftovers {
            live: survey.live.iter().map(Live::from).collect(),
            dead: survey.dead.iter().map(clear).collect::<Result<_>>()?,
        })
    }

    /// How many are still there.
    pub fn left(&self) -> usize {
        self.dead.iter().filter(|dead| !dead.removed).count()
    }

    /// One line each, and what to do.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for node in &self.live {
            let process = match node.pid {
                None => "process unknown (stopped, or of another container)".to_owned(),
                Some(pid) => format!("process {pid}"),
            };
            text +=
                &format!("alive    {}  domain {}, {process}\n", node.path.display(), node.domain);
        }
        for dead in &self.dead {
            let state = if dead.removed { "gone" } else { "dead" };
            text += &format!("{state}     {}  domain {}\n", dead.path.display(), dead.domain);
        }
        match (self.dead.len(), self.left()) {
            (0, _) => text + "nothing is left behind by dead nodes\n",
            (_, 0) => text,
            (_, left) => {
                text + &format!(
                    "{left} left behind by dead nodes, harmless: the next node of the domain \
                     removes them, or\n    myelin doctor --fix\n"
                )
            }
        }
    }
}

impl From<&LiveNode> for Live {
    fn from(node: &LiveNode) -> Self {
        let pid = (node.pid != 0).then_some(node.pid);
        Live { path: node.path.clone(), domain: node.domain, pid }
    }
}
