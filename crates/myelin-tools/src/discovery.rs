//! Other hosts, which are found within seconds and not at once.

use std::time::{Duration, Instant};

use myelin::{EndpointInfo, Graph, Location};
use myelin_shm::topic::message_type;

use crate::session::{Place, Session};
use crate::{Error, ros};

/// With a network, waits until nothing new has been found for a while. Nodes of this host are known
/// at once.
///
/// # Errors
/// Those of [`Session::graph`]; a network that cannot be opened.
pub fn settle(session: &Session, place: &Place) -> Result<(), Error> {
    if !place.network {
        return Ok(());
    }
    session.graph(Duration::ZERO)?; // opens the network
    let begin = Instant::now();
    let (mut changes, mut since) = (session.node().graph_changes()?, begin);
    while begin.elapsed() < LIMIT && since.elapsed() < QUIET {
        std::thread::sleep(LOOK);
        let now = session.node().graph_changes()?;
        if now != changes {
            (changes, since) = (now, Instant::now());
        }
    }
    Ok(())
}

/// What all nodes answer within `limit`, with the types of DDS programs as those of Myelin. A node that
/// has just come is asked once more, if its endpoints are there and their schemas are not.
///
/// # Errors
/// Those of [`Session::graph`].
pub fn graph(session: &Session, limit: Duration) -> Result<Graph, Error> {
    let mut graph = session.graph(limit)?;
    for _ in 0..ATTEMPTS_MAX {
        let lacks_schema = |it: &&EndpointInfo| {
            it.location == Location::ThisHost
                && message_type(&it.type_name).is_none()
                && !graph.silent.contains(&it.node)
                && !graph.types.iter().any(|ty| ty.hash == it.type_hash && ty.schema.is_some())
        };
        if !graph.endpoints.iter().any(|it| lacks_schema(&it)) {
            break;
        }
        std::thread::sleep(ATTEMPT);
        graph = session.graph(limit)?;
    }
    ros::unite_types(&mut graph);
    Ok(graph)
}

/// DDS announces itself within a second.
const QUIET: Duration = Duration::from_millis(1200);
const LIMIT: Duration = Duration::from_secs(4);
const LOOK: Duration = Duration::from_millis(50);
const ATTEMPTS_MAX: u32 = 5;
const ATTEMPT: Duration = Duration::from_millis(20);
