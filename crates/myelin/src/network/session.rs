//! The network resources that are open while an interface leads to other hosts.

use std::collections::BTreeMap;
use std::sync::Arc;

use myelin_dds::{Discovery, Endpoint, Listener, Participant};
use myelin_shm::node as shm;

use super::flow_channel::{FLOW_TOPIC, FlowChannel, FlowMessage};
use super::host::Host;
use super::lane::{Lane, LaneAddress};
use super::network_error;
use super::reader::ReaderState;
use super::schema_channel::{SchemaChannel, Schemas};
use super::task_queue::{Task, TaskQueue};
use super::user_data::NodeUserData;
use super::writer::WriterState;
use crate::{Error, Schema};

/// A node's part in a DDS domain, bound to one interface.
pub(super) struct Session {
    pub(super) host: Host,
    pub(super) queue: Arc<TaskQueue>,
    pub(super) participant: Arc<Participant>,
    flow: FlowChannel,
    schemas: SchemaChannel,
    /// `None`: it is switched off, or could not be opened.
    pub(super) lane: Option<Lane>,
    /// Of writers and of readers.
    discoveries: [Discovery; 2],
}

impl Session {
    pub(super) fn open(
        participant: Arc<Participant>,
        host: Host,
        node: &shm::Node,
        queue: &Arc<TaskQueue>,
        lane: Option<Lane>,
    ) -> Result<Session, Error> {
        let discovery = |writers| {
            let listener = Box::new(DiscoveryListener(queue.clone()));
            Discovery::create(&participant, writers, listener).map_err(network_error)
        };
        let discoveries = [discovery(true)?, discovery(false)?];
        let user_data = NodeUserData { host, info: node.info()? }.encode();
        let lane_address = lane.as_ref().map(|lane| lane.address().encode()).unwrap_or_default();
        let user_data = [lane_address, user_data].concat().into_bytes();
        let flow = FlowChannel::create(&participant, queue, user_data)?;
        let schemas = SchemaChannel::default();
        Ok(Session { host, queue: queue.clone(), participant, flow, schemas, lane, discoveries })
    }

    /// Sends the schema of a type to the hosts that want it.
    pub(super) fn send_schema(&self, type_hash: u64, schema: &Schema) -> Result<(), Error> {
        self.schemas.send(&self.participant, type_hash, schema)
    }

    /// Receives schemas from now on.
    pub(super) fn receive_schemas(&self, schemas: &Arc<Schemas>) -> Result<(), Error> {
        self.schemas.receive(&self.participant, schemas)
    }

    /// Sends a message to an endpoint elsewhere. Called by the node's thread.
    pub(super) fn send(&self, message: FlowMessage) {
        self.flow.send(message);
    }

    /// Whether nodes elsewhere miss messages, because they do not acknowledge.
    pub(super) fn has_silent_peers(&self) -> bool {
        self.flow.has_silent()
    }

    /// Forgets those of them that answer: all messages must be repeated for them.
    pub(super) fn forget_answering_peers(&self) {
        self.flow.forget_answering();
    }

    /// The messages of readers elsewhere.
    pub(super) fn receive(&self) -> Vec<FlowMessage> {
        self.flow.receive()
    }

    /// Calls `visit` with every writer (true) and reader of the domain, including those of this
    /// process.
    pub(super) fn visit_discovered(&self, visit: &mut dyn FnMut(bool, Endpoint)) {
        let [writers, readers] = &self.discoveries;
        let _ = writers.visit(&mut |endpoint| visit(true, endpoint));
        let _ = readers.visit(&mut |endpoint| visit(false, endpoint));
    }

    /// Finds endpoints that are on a topic of ours and do not match, and where other nodes listen for
    /// the lane.
    pub(super) fn compare(&self, readers: &[Arc<ReaderState>], writers: &[Arc<WriterState>]) {
        let mut lanes = BTreeMap::new();
        self.visit_discovered(&mut |is_writer, endpoint| match is_writer {
            true if FLOW_TOPIC.contains(&endpoint.topic.as_str()) => {
                let lane = LaneAddress::read(endpoint.guid, &endpoint.user_data);
                lanes.extend(lane.map(|lane| (lane.node, lane)));
            }
            true => readers.iter().for_each(|reader| reader.dds.compare(&endpoint, self.host)),
            false => writers.iter().for_each(|writer| writer.dds.compare(&endpoint, self.host)),
        });
        if let Some(lane) = &self.lane {
            lane.set_addresses(lanes);
        }
    }
}

/// Reports that an endpoint has been discovered, or has gone.
struct DiscoveryListener(Arc<TaskQueue>);

impl Listener for DiscoveryListener {
    fn discovered(&self) {
        self.0.push(Task::Discovery);
    }
}
