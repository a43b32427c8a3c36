//! What a node's user can know of the network.

use std::net::IpAddr;

/// Whether other hosts can be reached, and why not. See [`Node::network`](crate::Node::network).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NetworkState {
    /// The node stays on its host: nobody has asked for the network.
    Off,
    /// Not now; as soon as it can be. On this host everything works meanwhile.
    Waiting {
        /// What is missing.
        reason: String,
    },
    /// Other hosts can be reached by an interface. It says nothing of whether they are there.
    Up {
        /// Its name; empty if a configuration of CycloneDDS's (`CYCLONEDDS_URI`) chooses.
        interface: String,
        /// Its address; `None` likewise.
        address: Option<IpAddr>,
    },
}
