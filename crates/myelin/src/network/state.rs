//! The state of the network, for a node's user.

use std::net::IpAddr;

/// Whether other hosts can be reached, and why not. See [`Node::network`](crate::Node::network).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NetworkState {
    /// The node stays on its host: no network was requested.
    Off,
    /// Not yet; as soon as the network is up. On this host everything works meanwhile.
    Waiting {
        /// What is missing.
        reason: String,
    },
    /// Other hosts can be reached through an interface. This does not mean that there are any.
    Up {
        /// Its name; empty if a CycloneDDS configuration (`CYCLONEDDS_URI`) chooses it.
        interface: String,
        /// Its address; `None` likewise.
        address: Option<IpAddr>,
    },
}
