//! The network resources that are open while an interface leads to other hosts.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use myelin_dds::{Discovery, Endpoint, Listener, Participant, Participants, Security};
use myelin_shm::node as shm;

use super::admission::{Admission, Enclave};
use super::dds_endpoint::DdsEndpoint;
use super::denied::{Denied, DeniedTopic};
use super::flow_channel::{FLOW_TOPIC, FlowChannel, FlowMessage, GuidPrefix};
use super::host::Host;
use super::known_endpoints::{DiscoveryListener, KnownEndpoints};
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
    /// Of the writer of flow control: where the lane listens, and the node's record.
    user_data: [String; 2],
    schemas: SchemaChannel,
    /// `None`: it is switched off, or could not be opened.
    pub(super) lane: Option<Lane>,
    /// Of writers and of readers.
    _discoveries: [Discovery; 2],
    known: Arc<KnownEndpoints>,
    /// And whether they have changed.
    participants: (Participants, Arc<AtomicBool>),
    admission: RefCell<Admission>,
    denied: RefCell<Denied>,
    /// Whether known endpoints must be compared, too: some of ours are new.
    compare_all: AtomicBool,
}

impl Session {
    pub(super) fn open(
        participant: Arc<Participant>,
        host: Host,
        node: &shm::Node,
        queue: &Arc<TaskQueue>,
        lane: Option<Lane>,
    ) -> Result<Session, Error> {
        let known = Arc::<KnownEndpoints>::default();
        let discovery = |are_writers| {
            let (known, queue) = (known.clone(), queue.clone());
            let listener = Box::new(DiscoveryListener { are_writers, known, queue });
            Discovery::create(&participant, are_writers, listener).map_err(network_error)
        };
        let _discoveries = [discovery(true)?, discovery(false)?];
        let user_data = NodeUserData { host, info: node.info()? }.encode();
        let lane_address = lane.as_ref().map(|lane| lane.address().encode()).unwrap_or_default();
        let user_data = [lane_address, user_data];
        let flow = FlowChannel::create(&participant, queue, user_data.concat().into_bytes())?;
        let (schemas, compare_all) = (SchemaChannel::default(), AtomicBool::new(true));
        let has_changed = Arc::new(AtomicBool::new(true));
        let listener = Box::new(ParticipantsListener(queue.clone(), has_changed.clone()));
        let participants = Participants::create(&participant, listener).map_err(network_error)?;
        let participants = (participants, has_changed);
        let security = participant.security();
        let enclave = security.map(Security::enclave).unwrap_or_default();
        let denied = RefCell::new(Denied { enclave, topics: Vec::new() });
        let admission = RefCell::new(Admission::new(security.map(Enclave::of)));
        Ok(Session {
            host,
            queue: queue.clone(),
            participant,
            flow,
            user_data,
            schemas,
            lane,
            _discoveries,
            known,
            participants,
            admission,
            denied,
            compare_all,
        })
    }

    /// The library's error for an endpoint that could not be made. If the enclave's permissions do not
    /// allow it, the other nodes learn it, too.
    pub(super) fn endpoint_error(&self, error: myelin_dds::Error) -> Error {
        if let myelin_dds::Error::Denied { topic, is_publisher, .. } = &error {
            let topic = DeniedTopic { is_publisher: *is_publisher, name: topic.clone() };
            if self.denied.borrow_mut().insert(topic) {
                let [lane_address, node] = &self.user_data;
                let user_data = [lane_address, &*self.denied.borrow().encode(), node].concat();
                self.flow.announce(user_data.as_bytes());
            }
        }
        network_error(error)
    }

    /// Whether the participant must be opened again: there is another list of revoked certificates, or
    /// its enclave has run out.
    pub(super) fn is_outdated(&self) -> bool {
        self.participant.is_outdated() || !self.flow.has_participant()
    }

    /// Reports the participants that DDS Security keeps apart from this one, and tells them. `user_data`
    /// are the program's. Without a change it looks only while a handshake may be under way.
    pub(super) fn admit(&self, user_data: &str) {
        let mut admission = self.admission.borrow_mut();
        let (participants, has_changed) = &self.participants;
        // ORDER: Relaxed: the task orders what follows.
        if !has_changed.swap(false, Ordering::Relaxed) && !admission.is_pending() {
            return;
        }
        let refused = myelin_dds::refused_certificates();
        if let Some(user_data) = admission.announce(user_data, refused) {
            let _ = self.participant.set_user_data(user_data.as_bytes()); // they do not learn it
        }
        let mut remotes = Vec::new();
        if participants.visit(&mut |remote| remotes.push(remote)).is_err() {
            return; // they cannot be looked at
        }
        let now_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let reports = admission.look(&remotes, Instant::now(), now_s);
        reports.iter().for_each(|text| myelin_dds::warn_once(text));
    }

    /// Sends the schema of a type to the hosts that want it.
    pub(super) fn send_schema(&self, type_hash: u64, schema: &Schema) -> Result<(), Error> {
        self.schemas.send(&self.participant, type_hash, schema)
    }

    /// Receives schemas from now on.
    pub(super) fn receive_schemas(&self, schemas: &Arc<Schemas>) -> Result<(), Error> {
        self.schemas.receive(&self.participant, schemas)
    }

    /// Sends a message to an endpoint elsewhere, by one of the next calls of `flush`. Called by
    /// the node's thread.
    pub(super) fn send(&self, message: FlowMessage) {
        self.flow.send(message);
    }

    /// Sends the messages that wait, or returns when they are due. Called by the node's thread.
    pub(super) fn flush(&self) -> Option<Instant> {
        self.flow.flush()
    }

    /// Whether endpoints are coming to the domain.
    pub(super) fn set_discovering(&self, is_discovering: bool) {
        self.flow.set_discovering(is_discovering);
    }

    /// Whether nodes elsewhere miss messages, because they do not acknowledge.
    pub(super) fn has_silent_peers(&self) -> bool {
        self.flow.has_silent()
    }

    /// Forgets those of them that answer: all messages must be repeated for them.
    pub(super) fn forget_answering_peers(&self) {
        self.flow.forget_answering();
    }

    /// The participants of nodes that have come since the last call.
    pub(super) fn new_peers(&self) -> BTreeSet<GuidPrefix> {
        self.flow.new_peers()
    }

    /// The messages of readers elsewhere.
    pub(super) fn receive(&self) -> Vec<FlowMessage> {
        self.flow.receive()
    }

    /// Every writer (true) and reader of the domain, including those of this process.
    pub(super) fn discovered(&self) -> Vec<(bool, Arc<Endpoint>)> {
        self.known.all()
    }

    /// Has all endpoints compared.
    pub(super) fn compare_all(&self) {
        // ORDER: Relaxed: the task orders what follows.
        self.compare_all.store(true, Ordering::Relaxed);
        self.queue.push(Task::Discovery);
    }

    /// Finds endpoints that have come and are on a topic of ours: those that do not match, and those
    /// that need another reader of ours. Finds where other nodes listen for the lane.
    pub(super) fn compare(&self, readers: &[Arc<ReaderState>], writers: &[Arc<WriterState>]) {
        // ORDER: Relaxed: the task orders what follows.
        let endpoints = self.known.take(self.compare_all.swap(false, Ordering::Relaxed));
        let (readers, writers) = match endpoints.is_empty() {
            true => Default::default(),
            false => (by_topic(readers, |it| &it.dds.topic), by_topic(writers, |it| &it.dds.topic)),
        };
        for (is_writer, endpoint) in endpoints {
            let topic = endpoint.topic.as_str();
            if is_writer && FLOW_TOPIC.contains(&topic) && !self.flow.is_own(&endpoint.guid) {
                let Denied { enclave, topics } = Denied::read(&endpoint.user_data);
                let report = |dds: &DdsEndpoint| dds.report_denied(&endpoint, &enclave);
                for DeniedTopic { is_publisher, name } in &topics {
                    let ours = readers.get(&**name).into_iter().flatten().filter(|_| *is_publisher);
                    ours.for_each(|reader| report(&reader.dds));
                    let ours = writers.get(&**name).into_iter().flatten().filter(|_| !is_publisher);
                    ours.for_each(|writer| report(&writer.dds));
                }
            } else if is_writer {
                let ours = readers.get(topic).into_iter().flatten();
                ours.for_each(|reader| reader.compare(&endpoint, self));
            } else {
                let ours = writers.get(topic).into_iter().flatten();
                ours.for_each(|writer| _ = writer.dds.compare(&endpoint, self.host));
            }
        }
        if let Some(lane) = &self.lane {
            let nodes = self.flow.nodes();
            let addresses = nodes.iter().filter_map(|(guid, data)| LaneAddress::read(*guid, data));
            lane.set_addresses(addresses.map(|it| (it.node, it)).collect());
        }
    }
}

fn by_topic<T>(endpoints: &[Arc<T>], topic: fn(&T) -> &str) -> HashMap<&str, Vec<&Arc<T>>> {
    let mut found: HashMap<_, Vec<_>> = HashMap::with_capacity(endpoints.len());
    endpoints.iter().for_each(|each| found.entry(topic(each)).or_default().push(each));
    found
}

/// Reports that a participant has come, has changed or has gone.
struct ParticipantsListener(Arc<TaskQueue>, Arc<AtomicBool>);

impl Listener for ParticipantsListener {
    fn changed(&self) {
        self.1.store(true, Ordering::Relaxed);
        self.0.push(Task::Discovery);
    }
}
