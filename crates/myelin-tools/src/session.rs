//! The node through which a command looks.

use std::path::PathBuf;
use std::time::Duration;

use myelin::{Graph, Node};

use crate::Error;

/// Where to look.
#[derive(Clone, Debug, Default)]
pub struct Place {
    /// The domain; by default that of `MYELIN_DOMAIN`, or else 0.
    pub domain: Option<u32>,
    /// The folder of the nodes' sockets; by default that of `MYELIN_RUNTIME_DIR`, or else `/dev/shm`.
    pub runtime_dir: Option<PathBuf>,
    /// The Unix group whose nodes to look at; by default those of this user.
    pub group: Option<String>,
    /// Whether to look at other hosts, too; `MYELIN_NETWORK` sets it as well.
    pub network: bool,
}

impl Place {
    /// The number of its domain; 0 if `MYELIN_DOMAIN` is none.
    pub fn domain_number(&self) -> u32 {
        let of_variable = || std::env::var("MYELIN_DOMAIN").ok()?.parse().ok();
        self.domain.or_else(of_variable).unwrap_or(0)
    }
}

/// A node that only looks.
#[derive(Clone, Debug)]
pub struct Session {
    node: Node,
}

impl Session {
    /// Opens the node; `name` is what others see of it: `myelin topic hz`.
    ///
    /// # Errors
    /// Those of [`NodeBuilder::open`](myelin::NodeBuilder::open).
    pub fn open(name: &str, place: &Place) -> Result<Session, Error> {
        let mut builder = Node::builder(name);
        if let Some(domain) = place.domain {
            builder = builder.domain(domain);
        }
        if let Some(folder) = &place.runtime_dir {
            builder = builder.runtime_dir(folder);
        }
        if let Some(group) = &place.group {
            builder = builder.group(group.as_str());
        }
        if place.network {
            builder = builder.network(true);
        }
        Ok(Session { node: builder.open()? })
    }

    /// The node.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// What all nodes answer within `limit`.
    ///
    /// # Errors
    /// Those of [`Node::graph_within`].
    pub fn graph(&self, limit: Duration) -> Result<Graph, Error> {
        Ok(self.node.graph_within(limit)?)
    }
}
