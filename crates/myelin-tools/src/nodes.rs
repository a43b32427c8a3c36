//! The nodes of a domain: `myelin node list` and `info`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use myelin::{
    EndpointId, EndpointInfo, EndpointStatus, GraphStatus, GraphWatcher, Location, MatchState,
    MatchStatus, NodeStatus, TopicStatus,
};
use serde::Serialize;

use crate::names::{is_match, is_pattern, nearest};
use crate::numbers::{self, or_dash};
use crate::session::{Place, Session};
use crate::table::Table;
use crate::text::{counted, printable};
use crate::{Error, ros, select, services};

/// A node, in one line.
#[derive(Clone, Debug, Serialize)]
pub struct NodeLine {
    /// Its name, with the namespace that it announces.
    pub node: String,
    /// Its id, in hexadecimal digits.
    pub id: String,
    /// Its process; 0 if it is not visible from here.
    pub pid: u32,
    /// Its host.
    pub host: String,
    /// The program.
    pub program: String,
    /// The language of its library.
    pub language: String,
    /// The version of its library.
    pub version: String,
    /// The user that it runs as.
    pub user: u32,
    /// How many publishers it has.
    pub publishers: usize,
    /// How many subscribers it has.
    pub subscribers: usize,
    /// How long its process runs, in percent of one core, while the tool looked.
    pub cpu_percent: Option<f64>,
    /// The resident memory of its process, shared memory included.
    pub memory_bytes: Option<u64>,
    /// How many threads its process has.
    pub threads: Option<u32>,
    /// Whether a signal or a debugger has stopped its process.
    pub is_stopped: bool,
    /// Whether it did not answer.
    pub is_silent: bool,
}

/// Everything about a node.
#[derive(Clone, Debug, Serialize)]
pub struct NodeInfo {
    /// Its line.
    #[serde(flatten)]
    pub line: NodeLine,
    /// Its publishers.
    pub publishes: Vec<EndpointLine>,
    /// Its subscribers.
    pub subscribes: Vec<EndpointLine>,
    /// The services that it serves.
    pub serves: Vec<String>,
    /// The services that it calls.
    pub calls: Vec<String>,
    /// What is wrong, in sentences.
    pub problems: Vec<String>,
}

/// An endpoint of a node.
#[derive(Clone, Debug, Serialize)]
pub struct EndpointLine {
    /// Its topic.
    pub topic: String,
    /// The name of its type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Its id, in hexadecimal digits.
    pub id: String,
    /// The nodes that it is matched with.
    pub matched: Vec<String>,
    /// Samples that it has lost, if it subscribes and that is known.
    pub lost: Option<u64>,
}

/// Looks twice, so that the use of CPU is known.
///
/// # Errors
/// Those of [`GraphWatcher::update`].
pub fn look(session: &Session) -> Result<GraphWatcher, Error> {
    let mut watcher = session.node().watch_graph("*");
    watcher.update(ANSWER_LIMIT)?;
    std::thread::sleep(CPU_INTERVAL);
    watcher.update(ANSWER_LIMIT)?;
    Ok(watcher)
}

/// The lines of all nodes but the tool's own.
pub fn lines(status: &GraphStatus, session: &Session) -> Vec<NodeLine> {
    let own = (std::process::id(), session.node().name());
    let is_own = |it: &&NodeStatus| {
        it.info.location == Location::ThisHost && (it.info.pid, &*it.info.name) == own
    };
    sorted(status.nodes.iter().filter(|it| !is_own(it)).flat_map(|it| lines_of(it, status)))
}

/// The lines of all nodes, by name.
pub fn all(status: &GraphStatus) -> Vec<NodeLine> {
    sorted(status.nodes.iter().flat_map(|it| lines_of(it, status)))
}

fn sorted(lines: impl Iterator<Item = NodeLine>) -> Vec<NodeLine> {
    let mut lines: Vec<_> = lines.collect();
    lines.sort_by(|a, b| (&a.node, a.pid, &a.id).cmp(&(&b.node, b.pid, &b.id)));
    lines
}

/// The lines as a table.
pub fn table(lines: &[NodeLine]) -> Table {
    let columns = [
        "node", "process", "cpu", "memory", "pub", "sub", "threads", "language", "user", "program",
        "host",
    ];
    let mut table = Table::new(&columns);
    for it in lines {
        table.row([
            it.node.clone(),
            it.pid.to_string(),
            or_dash(it.cpu_percent, |it| format!("{it:.1} %")),
            or_dash(it.memory_bytes, |it| numbers::bytes(it as f64)),
            it.publishers.to_string(),
            it.subscribers.to_string(),
            or_dash(it.threads, |it| it.to_string()),
            it.language.clone(),
            it.user.to_string(),
            it.program.clone(),
            it.host.clone(),
        ]);
        if it.is_stopped {
            table.note("stopped by a signal or a debugger");
        } else if it.is_silent {
            table.note("does not answer");
        }
    }
    table
}

/// The nodes that a name, a pattern, a process or an id means.
///
/// # Errors
/// [`Error::NotFound`] with the nearest name.
pub fn info(
    status: &GraphStatus,
    typed: &str,
    session: &Session,
    place: &Place,
) -> Result<Vec<NodeInfo>, Error> {
    let lines = lines(status, session);
    let bare = |name: &str| name.trim_start_matches('/').to_owned();
    let is_meant = |it: &&NodeLine| match is_pattern(typed) {
        true => is_match(typed, &it.node) || is_match(typed, &bare(&it.node)),
        false => bare(&it.node) == bare(typed) || it.pid.to_string() == typed || it.id == typed,
    };
    let meant: Vec<_> = lines.iter().filter(is_meant).cloned().collect();
    if meant.is_empty() {
        let near = nearest(typed, lines.iter().map(|it| &*it.node));
        let near = near.map(|it| format!("; did you mean {:?}?", printable(it)));
        let near = near.unwrap_or_default();
        let text = format!("there is no node {typed:?}{near}; `myelin node list` lists them.");
        return Err(select::not_found(text, session, place));
    }
    Ok(meant.into_iter().map(|line| NodeInfo::new(line, status)).collect())
}

impl NodeInfo {
    fn new(line: NodeLine, status: &GraphStatus) -> NodeInfo {
        let others = Others::new(status);
        let mut info = NodeInfo {
            publishes: Vec::new(),
            subscribes: Vec::new(),
            serves: Vec::new(),
            calls: Vec::new(),
            problems: Vec::new(),
            line,
        };
        if info.line.is_stopped {
            info.problems.push("it is stopped by a signal or a debugger".to_owned());
        } else if info.line.is_silent {
            info.problems.push("it does not answer: matches and counters are missing".to_owned());
        }
        let id = u64::from_str_radix(&info.line.id, 16).unwrap_or_default();
        let name = info.line.node.clone();
        for endpoint in endpoints(status).filter(|it| belongs(&it.info, id, &name)) {
            if let Some(role) = services::role(&endpoint.info) {
                let of = if role.is_server { &mut info.serves } else { &mut info.calls };
                of.push(role.service);
                continue;
            }
            info.add_problems(endpoint, &others);
            let line = EndpointLine::new(endpoint, &others);
            match endpoint.info.is_publisher {
                true => info.publishes.push(line),
                false => info.subscribes.push(line),
            }
        }
        for services in [&mut info.serves, &mut info.calls] {
            services.sort();
            services.dedup();
        }
        info
    }

    fn add_problems(&mut self, endpoint: &EndpointStatus, others: &Others<'_>) {
        let topic = ros::topic_name(&endpoint.info);
        for each in &endpoint.matches {
            let node = others.node(each);
            match &each.state {
                MatchState::Refused { reason, .. } => {
                    let way = if endpoint.info.is_publisher { "to" } else { "from" };
                    self.problems.push(format!("{topic}: no samples {way} {node}: {reason}"));
                }
                MatchState::Pending => {
                    self.problems.push(format!("{topic}: the match with {node} is pending"));
                }
                _ => {}
            }
        }
        if let Some(lost) = lost(&endpoint.info).filter(|it| *it > 0) {
            self.problems.push(format!("{topic}: it has lost {}", counted(lost, "sample")));
        }
    }

    /// For people.
    pub fn text(&self, width: Option<usize>) -> String {
        let it = &self.line;
        let mut text = format!("{}\n", printable(&it.node));
        let mut say = |key: &str, value: &str| {
            text += &format!("  {key:<12}{}\n", printable(value));
        };
        say("process", &format!("{} (user {})", it.pid, it.user));
        say("program", &it.program);
        say("host", &it.host);
        say("library", &format!("{} {}", it.language, it.version));
        if let Some(cpu) = it.cpu_percent {
            say("cpu", &format!("{cpu:.1} % of a core"));
        }
        if let Some(memory) = it.memory_bytes {
            say("memory", &numbers::bytes(memory as f64));
        }
        if let Some(threads) = it.threads {
            say("threads", &threads.to_string());
        }
        for (title, endpoints) in [("publishes", &self.publishes), ("subscribes", &self.subscribes)]
        {
            if endpoints.is_empty() {
                continue;
            }
            let header = [title, "matched", "lost", "type"];
            let mut table = Table::with_text(&header);
            for it in endpoints {
                let lost = or_dash(it.lost, |it| it.to_string());
                table.row([
                    it.topic.clone(),
                    it.matched.len().to_string(),
                    lost,
                    it.type_name.clone(),
                ]);
            }
            let lines = table.lines(width.map(|it| it.saturating_sub(2)), true);
            lines.iter().for_each(|line| text += &format!("  {line}\n"));
        }
        for (title, services) in [("serves", &self.serves), ("calls", &self.calls)] {
            for service in services {
                text += &format!("  {title:<12}{}\n", printable(service));
            }
        }
        for problem in &self.problems {
            text += &format!("  problem: {}\n", printable(problem));
        }
        text
    }
}

impl EndpointLine {
    fn new(endpoint: &EndpointStatus, others: &Others<'_>) -> EndpointLine {
        let matched = endpoint.matches.iter().filter(|it| it.state == MatchState::Matched);
        EndpointLine {
            topic: ros::topic_name(&endpoint.info).to_owned(),
            type_name: ros::type_name(&endpoint.info).into_owned(),
            id: format!("{:x}", endpoint.info.id),
            matched: matched.map(|it| others.node(it)).collect(),
            lost: lost(&endpoint.info),
        }
    }
}

/// The other sides of matches.
struct Others<'a> {
    endpoints: BTreeMap<EndpointId, &'a EndpointInfo>,
    nodes: BTreeMap<u64, &'a str>,
}

impl<'a> Others<'a> {
    fn new(status: &'a GraphStatus) -> Others<'a> {
        Others {
            endpoints: endpoints(status).map(|it| (it.info.id, &it.info)).collect(),
            nodes: status.nodes.iter().map(|it| (it.info.node, &*it.info.name)).collect(),
        }
    }

    /// The name of the node on the other side of a match.
    fn node(&self, of: &MatchStatus) -> String {
        let endpoint = self.endpoints.get(&of.other);
        let of_ros = endpoint.and_then(|it| ros::node_name(&it.attributes));
        let name = || self.nodes.get(&of.node).copied().unwrap_or("a DDS program").to_owned();
        of_ros.unwrap_or_else(name)
    }
}

fn lost(endpoint: &EndpointInfo) -> Option<u64> {
    match endpoint.counters? {
        myelin::Counters::Subscriber { lost, .. } => Some(lost),
        myelin::Counters::Publisher { .. } => None,
    }
}

/// The line of a node. A node of `rmw_myelin` stands for the nodes of ROS 2 in its process: one line
/// for each.
fn lines_of(node: &NodeStatus, status: &GraphStatus) -> Vec<NodeLine> {
    let of_node = endpoints(status).filter(|it| it.info.node == node.info.node);
    let mut names: BTreeSet<_> =
        of_node.filter_map(|it| ros::node_name(&it.info.attributes)).collect();
    if names.is_empty() {
        names.insert(own_name(node));
    }
    names.into_iter().map(|name| line(node, name, status)).collect()
}

/// The name that a node announces of itself, with its namespace.
pub(crate) fn own_name(node: &NodeStatus) -> String {
    let own = &node.info.name;
    match &*node.info.record.namespace {
        "" => own.clone(),
        space => format!("{}/{own}", space.trim_end_matches('/')),
    }
}

fn line(node: &NodeStatus, name: String, of: &GraphStatus) -> NodeLine {
    let record = &node.info.record;
    // Those of services are shown with the services.
    let count = |of_kind: fn(&TopicStatus) -> &Vec<EndpointStatus>| {
        let endpoints = of.topics.iter().flat_map(of_kind);
        let is_own = |it: &&EndpointStatus| {
            belongs(&it.info, node.info.node, &name) && services::role(&it.info).is_none()
        };
        endpoints.filter(is_own).count()
    };
    let (publishers, subscribers) = (count(|it| &it.publishers), count(|it| &it.subscribers));
    NodeLine {
        node: name,
        id: format!("{:x}", node.info.node),
        pid: node.info.pid,
        host: record.host.clone(),
        program: record.program.clone(),
        language: record.language.clone(),
        version: record.version.clone(),
        user: node.info.user,
        publishers,
        subscribers,
        cpu_percent: node.cpu_percent.map(|it| (it * 10.0).round() / 10.0),
        memory_bytes: node.memory_bytes,
        threads: node.threads,
        is_stopped: node.is_stopped,
        is_silent: node.is_silent,
    }
}

pub(crate) fn endpoints(status: &GraphStatus) -> impl Iterator<Item = &EndpointStatus> {
    status.topics.iter().flat_map(|it| it.publishers.iter().chain(&it.subscribers))
}

/// Whether an endpoint belongs to a node. One process of ROS 2 has several nodes.
fn belongs(endpoint: &EndpointInfo, node: u64, name: &str) -> bool {
    endpoint.node == node && ros::node_name(&endpoint.attributes).is_none_or(|it| it == name)
}

/// How long to wait for nodes that do not answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(1);
/// How long the use of CPU is measured.
const CPU_INTERVAL: Duration = Duration::from_millis(200);
