//! Follows the topics that a user has named: those that are there, and those that come.

use std::collections::BTreeSet;
use std::time::Duration;

use myelin::{AnyTopic, EndpointId, EndpointInfo, Graph};

use crate::session::{Place, Session};
use crate::{Error, ros, select};

/// Finds the topics of some patterns, one for each name and type.
#[derive(Debug)]
pub struct Follower {
    session: Session,
    patterns: Vec<String>,
    graph: Graph,
    graph_changes: u64,
    /// Whether it needs the schemas of types.
    with_schemas: bool,
    known: BTreeSet<(String, u64)>,
    due_ns: u64,
}

/// A topic that has been found.
#[derive(Clone, Debug)]
pub struct Found {
    /// Its name as people write it.
    pub name: String,
    /// The topic.
    pub topic: AnyTopic,
    /// The name of its type.
    pub type_name: String,
    /// One of its endpoints.
    pub endpoint: EndpointInfo,
}

/// Where an endpoint is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Owner {
    /// Its node's name.
    pub node: String,
    /// Its process; 0 if it is not visible from here.
    pub pid: u32,
    /// The name of its host.
    pub host: String,
}

impl Follower {
    /// Follows the topics with these names, or that match these patterns; with `wait` also if there
    /// is none yet.
    ///
    /// # Errors
    /// [`Error::NotFound`] if one of them names nothing now, unless it waits.
    pub fn new(
        session: Session,
        place: &Place,
        patterns: &[String],
        wait: bool,
    ) -> Result<Follower, Error> {
        let graph_changes = session.node().graph_changes()?;
        let mut graph = session.graph(ANSWER_LIMIT)?;
        ros::unite_types(&mut graph);
        if !wait {
            select::topics(&graph, patterns, &session, place)?;
        }
        let patterns = patterns.to_vec();
        let (with_schemas, known) = (false, BTreeSet::new());
        Ok(Follower { session, patterns, graph, graph_changes, with_schemas, known, due_ns: 0 })
    }

    /// The same; it asks nodes for the schemas of topics that come later, too.
    ///
    /// # Errors
    /// As for [`new`](Follower::new).
    pub fn with_schemas(
        session: Session,
        place: &Place,
        patterns: &[String],
        wait: bool,
    ) -> Result<Follower, Error> {
        Ok(Follower { with_schemas: true, ..Follower::new(session, place, patterns, wait)? })
    }

    /// The topics that have come since the last look; none before the next one is
    /// [due](Follower::due_ns). Those with a problem are left out; it is among the `problems`.
    ///
    /// # Errors
    /// Those of [`Node::graph`](myelin::Node::graph).
    pub fn found(&mut self, problems: &mut Vec<String>) -> Result<Vec<Found>, Error> {
        let now_ns = myelin::now();
        if now_ns < self.due_ns {
            return Ok(Vec::new());
        }
        self.due_ns = now_ns + INTERVAL_NS;
        let changes = self.session.node().graph_changes()?;
        if changes != self.graph_changes {
            self.graph = match self.with_schemas {
                true => self.session.graph(ANSWER_LIMIT)?,
                // A stopped node would delay an answer.
                false => self.session.node().graph()?,
            };
            ros::unite_types(&mut self.graph);
            self.graph_changes = changes;
        } else if !self.known.is_empty() {
            return Ok(Vec::new());
        }
        let mut found = Vec::new();
        let mut now = BTreeSet::new();
        let all = select::all(&self.graph);
        for (names, endpoints) in &all {
            if !self.patterns.iter().any(|it| select::is_meant(it, *names, &all)) {
                continue;
            }
            for endpoint in endpoints {
                let key = (endpoint.topic.clone(), endpoint.type_hash);
                if !now.insert(key.clone()) || self.known.contains(&key) {
                    continue;
                }
                match ros::any_topic(self.session.node(), endpoint, &self.graph) {
                    Ok(topic) => found.push(Found {
                        name: names.0.to_owned(),
                        topic,
                        type_name: ros::type_name(endpoint).into_owned(),
                        endpoint: (*endpoint).clone(),
                    }),
                    Err(error) => problems.push(error.to_string()),
                }
            }
        }
        self.known.extend(now);
        Ok(found)
    }

    /// When it looks for new topics again.
    pub fn due_ns(&self) -> u64 {
        self.due_ns
    }

    /// Where an endpoint is, as far as that is known.
    pub fn owner(&self, endpoint: EndpointId) -> Owner {
        owner(&self.graph, endpoint)
    }

    /// The endpoints of a topic and type, as they were at the last change.
    pub fn endpoints(&self, of: &Found) -> impl Iterator<Item = &EndpointInfo> {
        let (topic, hash) = (of.endpoint.topic.clone(), of.endpoint.type_hash);
        self.graph.endpoints.iter().filter(move |it| it.topic == topic && it.type_hash == hash)
    }

    /// The node that looks.
    pub fn session(&self) -> &Session {
        &self.session
    }
}

impl Owner {
    /// Its node's name and process, such as `talker[4711]`.
    pub fn label(&self) -> String {
        match (&*self.node, self.pid) {
            ("", 0) => "a node that is not known yet".to_owned(),
            (name, 0) => name.to_owned(),
            (name, pid) => format!("{name}[{pid}]"),
        }
    }
}

/// Where an endpoint is, as far as a graph has it. That of a node of ROS 2 has the name that ROS 2
/// gives it.
pub fn owner(graph: &Graph, endpoint: EndpointId) -> Owner {
    let endpoint = graph.endpoints.iter().find(|it| it.id == endpoint);
    let node = graph.nodes.iter().find(|it| Some(it.node) == endpoint.map(|it| it.node));
    let mut owner = node.map_or_else(Owner::default, |node| Owner {
        node: node.name.clone(),
        pid: node.pid,
        host: node.record.host.clone(),
    });
    if let Some(name) = endpoint.and_then(|it| ros::node_name(&it.attributes)) {
        owner.node = name;
    }
    owner
}

/// How often it looks for new topics.
const INTERVAL_NS: u64 = 200_000_000;
/// How long to wait for nodes that do not answer.
const ANSWER_LIMIT: Duration = Duration::from_millis(500);
