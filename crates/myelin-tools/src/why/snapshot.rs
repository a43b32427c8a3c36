//! What was seen of a topic and around it: everything that the judgements need, and nothing that they
//! ask the system for.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use myelin::value::Type;
use myelin::{Counters, EndpointId, EndpointInfo, Location, MatchInfo, MatchState, NetworkState};

use super::process::Process;
use crate::rate::Report;

/// What was seen.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// The topic.
    pub topic: String,
    /// Where was looked.
    pub place: Place,
    /// Seconds between the two looks.
    pub interval_s: f64,
    /// The topic's publishers and subscribers.
    pub ends: Vec<End>,
    /// The states of their matches.
    pub matches: Vec<MatchInfo>,
    /// Their types by hash, as far as they are described.
    pub types: BTreeMap<u64, Arc<Type>>,
    /// The other topics here.
    pub others: Vec<OtherTopic>,
    /// Nodes here that live and do not answer: nothing is known of their topics.
    pub unanswered: Vec<Program>,
    /// The topic in other places.
    pub elsewhere: Vec<Elsewhere>,
    /// Programs of other hosts whose permissions do not allow them the topic: to publish it, or to
    /// subscribe to it.
    pub denied: Vec<(bool, Program)>,
    /// Other users with nodes.
    pub foreign: Vec<ForeignUser>,
    /// The network, if it was requested, and how many nodes of other hosts are known.
    pub network: Option<(NetworkState, usize)>,
    /// How its publishers on this host publish, if that was measured.
    pub rates: Rates,
    /// The process that took most CPU time meanwhile, none of those above, and its share of a core.
    pub busiest: Option<(Program, f64)>,
}

/// A folder and a domain in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The folder of the sockets.
    pub runtime_dir: PathBuf,
    /// The domain.
    pub domain: u32,
    /// The group that shares the domain.
    pub group: Option<u32>,
    /// A process of the container whose `/dev/shm` or other folder it is; `None`: visible here.
    pub container_of: Option<u32>,
}

/// A publisher or subscriber of the topic.
#[derive(Clone, Debug, Default)]
pub struct End {
    /// Its record. Of a node that does not answer: its id and kind, as others know them.
    pub info: EndpointInfo,
    /// Its program.
    pub program: Program,
    /// What it had counted at the first and at the second look.
    pub counts: Option<(Counts, Counts)>,
}

/// What an endpoint has counted since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Samples that a publisher has published.
    pub published: u64,
    /// Samples that a subscriber has lost.
    pub lost: u64,
    /// Samples that a subscriber has taken; `None` if it does not count them.
    pub taken: Option<u64>,
    /// Samples that a subscriber's program holds now.
    pub held: u64,
}

/// A node and its process.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// The node's name, or that of the process.
    pub name: String,
    /// The process; 0 if it is not visible.
    pub pid: u32,
    /// The language of its library; empty if unknown.
    pub language: String,
    /// Its host, if it is another one.
    pub host: Option<String>,
    /// Whether the node lives and does not answer.
    pub is_silent: bool,
    /// Its process at the first and at the second look.
    pub process: Option<(Process, Process)>,
}

/// Another topic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OtherTopic {
    /// Its name.
    pub name: String,
    /// The names of the nodes that publish it.
    pub publishers: Vec<String>,
    /// The names of the nodes that subscribe to it.
    pub subscribers: Vec<String>,
}

/// The topic in another place.
#[derive(Clone, Debug, Default)]
pub struct Elsewhere {
    /// The place.
    pub place: Place,
    /// Those that publish it there.
    pub publishers: Vec<Program>,
    /// Those that subscribe to it there.
    pub subscribers: Vec<Program>,
}

/// Another user's nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForeignUser {
    /// The user.
    pub uid: u32,
    /// The folder of the nodes.
    pub path: PathBuf,
}

/// How publishers publish.
pub type Rates = BTreeMap<EndpointId, Report>;

impl Snapshot {
    /// Publishers or subscribers.
    pub fn of_kind(&self, publishers: bool) -> impl Iterator<Item = &End> {
        self.ends.iter().filter(move |end| end.info.is_publisher == publishers)
    }

    /// The state of the match of two endpoints, if one of them reports it; a refusal comes first.
    pub fn state(&self, one: EndpointId, other: EndpointId) -> Option<&MatchState> {
        let is_theirs = |it: &&MatchInfo| {
            (it.endpoint, it.other) == (one, other) || (it.endpoint, it.other) == (other, one)
        };
        let order = |it: &&MatchInfo| !matches!(it.state, MatchState::Refused { .. });
        self.matches.iter().filter(is_theirs).min_by_key(order).map(|it| &it.state)
    }

    /// Samples a second of all publishers that are known; `None` if none is.
    pub fn rate_hz(&self) -> Option<f64> {
        let grown: Vec<_> = self.of_kind(true).filter_map(End::published).collect();
        let sum: u64 = grown.iter().map(|(new, _)| new).sum();
        (!grown.is_empty()).then(|| sum as f64 / self.interval_s.max(1e-3))
    }

    /// For a sentence: `44 of 100 samples a second`.
    pub fn losses(&self, new: u64) -> String {
        let lost_hz = new as f64 / self.interval_s.max(1e-3);
        let of = self.rate_hz().map(|hz| format!(" of {hz:.0}")).unwrap_or_default();
        format!("{lost_hz:.0}{of} samples a second of {:?}", self.topic)
    }
}

impl End {
    /// How many samples a publisher has published between the looks, and in all.
    pub fn published(&self) -> Option<(u64, u64)> {
        let (before, now) = self.counts.filter(|_| self.info.is_publisher)?;
        Some((now.published.saturating_sub(before.published), now.published))
    }

    /// How many samples a subscriber has lost between the looks, and in all.
    pub fn lost(&self) -> Option<(u64, u64)> {
        let (before, now) = self.counts.filter(|_| !self.info.is_publisher)?;
        Some((now.lost.saturating_sub(before.lost), now.lost))
    }

    /// How many samples a subscriber has taken between the looks, and in all.
    pub fn taken(&self) -> Option<(u64, u64)> {
        let (before, now) = self.counts?;
        let (before, now) = (before.taken?, now.taken?);
        Some((now.saturating_sub(before), now))
    }

    /// How many samples a subscriber's program held at both looks.
    pub fn held(&self) -> Option<u64> {
        let (before, now) = self.counts.filter(|_| !self.info.is_publisher)?;
        Some(now.held.min(before.held))
    }

    /// Whether it is on this host.
    pub fn is_here(&self) -> bool {
        self.info.location == Location::ThisHost
    }
}

impl Program {
    /// Its process at the second look.
    pub fn now(&self) -> Option<&Process> {
        self.process.as_ref().map(|(_, now)| now)
    }

    /// For a sentence: `lidar (process 4711)`.
    pub fn label(&self) -> String {
        match (&self.host, self.pid) {
            (Some(host), _) => format!("{} (host {host})", self.name),
            (None, 0) => self.name.clone(),
            (None, pid) => format!("{} (process {pid})", self.name),
        }
    }
}

impl Place {
    /// Where it is, as seen from `here`: `domain 7`.
    pub fn from(&self, here: &Place) -> String {
        let mut parts = Vec::new();
        if self.domain != here.domain {
            parts.push(format!("domain {}", self.domain));
        }
        match self.container_of {
            Some(pid) => parts.push(format!("the container of process {pid}")),
            None if self.runtime_dir != here.runtime_dir => {
                parts.push(format!("the folder {}", self.runtime_dir.display()));
            }
            None => {}
        }
        if self.group != here.group {
            parts.push(match self.group {
                Some(group) => format!("the nodes of group {group}"),
                None => "the nodes of the user alone".to_owned(),
            });
        }
        parts.join(", in ")
    }
}

impl From<Counters> for Counts {
    fn from(counters: Counters) -> Counts {
        match counters {
            Counters::Publisher { published, .. } => Counts { published, ..Counts::default() },
            Counters::Subscriber { taken, lost, held, .. } => {
                Counts { taken: Some(taken), lost, held, ..Counts::default() }
            }
        }
    }
}
