//! A process's part in a domain.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use myelin_shm::node as shm;

use crate::dynamic::DynamicType;
use crate::executor::Executor;
use crate::group::Group;
use crate::network::{Network, Settings};
use crate::payload::Payload;
use crate::service::{Client, Service, Told};
use crate::topic::Topic;
use crate::wait_set::WaitSet;
use crate::{Error, Graph, Guard, NetworkState, Threads};

/// A process's part in a domain: where topics, publishers and subscribers come from.
///
/// A process usually has one; cloning it is cheap and gives the same node. It has one socket and
/// one thread, which sleeps unless somebody comes or goes; publishing and taking do not involve it.
/// Its publishers and subscribers keep it open after the last `Node` is dropped. Any thread may use
/// it.
///
/// In a child of `fork` every call of an inherited handle is [`Error::Forked`]: open a node of the
/// child's own.
///
/// ```
/// # fn main() -> Result<(), myelin::Error> {
/// # let folder = tempfile::tempdir().unwrap();
/// # if false {
/// let node = myelin::Node::new("camera")?;
/// # }
/// # let node = myelin::Node::builder("camera").folder(folder.path()).open()?;
/// let publisher = node.topic::<f64>("temperature").publisher()?;
/// publisher.publish_copy(&21.5)?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Node {
    pub(crate) inner: shm::Node,
    pub(crate) network: Option<Arc<Network>>,
    name: String,
}

impl Node {
    /// Opens a node in the domain that the environment variable `MYELIN_DOMAIN` gives, or in domain
    /// 0, among the programs of the same user. `name` is for people: other
    /// nodes are told it.
    ///
    /// # Errors
    /// [`Error::Setting`] if `MYELIN_DOMAIN` is not a number; what the folder of the sockets, the
    /// limit of open files or of memory forbids.
    pub fn new(name: &str) -> Result<Node, Error> {
        Node::builder(name).open()
    }

    /// A node with settings.
    pub fn builder(name: &str) -> NodeBuilder {
        let name = name.to_string();
        let (domain, group, folder) = (None, None, None);
        let (threads, network) = (Threads::default(), Settings::default());
        NodeBuilder { name, domain, group, folder, latency_guard: false, threads, network }
    }

    /// A topic of this name; nothing happens until a publisher or subscriber is made of it.
    ///
    /// `T` is what a sample carries: a type that is [`PlainData`](crate::PlainData), as
    /// `topic::<Imu>("imu")`, or a slice with a length of each sample's own, as
    /// `topic::<[Point]>("points")` or `topic::<[u8]>("image")`.
    pub fn topic<T: Payload + ?Sized>(&self, name: &str) -> Topic<T> {
        Topic::new(self.clone(), name)
    }

    /// As [`topic`](Node::topic), of a type that is told at run time: for bindings of other languages. Its
    /// samples are bytes here; it meets topics of the Rust type with the same
    /// [layout hash](crate::LayoutHash). A sample or loan has a length that
    /// [fits](DynamicType::fits): one taken has, of one published the caller sees to it, or its
    /// subscribers disconnect it.
    ///
    /// ```
    /// # fn main() -> Result<(), myelin::Error> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let node = myelin::Node::builder("doc").folder(folder.path()).open()?;
    /// use myelin::{DynamicType, Layout};
    ///
    /// let double = Layout::scalar("f64").expect("a number");
    /// let topic = node.dynamic_topic("temperature", &DynamicType::value(&double));
    /// let publisher = topic.publisher()?;
    /// let mut subscriber = node.topic::<f64>("temperature").subscriber()?;
    /// # publisher.wait_for_match(1, std::time::Duration::from_secs(60));
    /// publisher.publish_copy(&21.5_f64.to_ne_bytes())?;
    /// assert_eq!(*subscriber.take()?.expect("just now"), 21.5);
    /// # Ok(()) }
    /// ```
    pub fn dynamic_topic(&self, name: &str, told: &DynamicType) -> Topic<[u8]> {
        self.topic(name).of(told)
    }

    /// Serves a service: a server takes requests of type `Req` and replies with `Rep`, both of any type
    /// that a topic can carry.
    ///
    /// # Errors
    /// As [`Topic::subscriber`](crate::Topic::subscriber); [`Error::TypeMismatch`] names the types of
    /// request and reply, as `Goal -> [f64]`.
    pub fn service<Req, Rep>(&self, name: &str) -> Result<Service<Req, Rep>, Error>
    where
        Req: Payload + ?Sized,
        Rep: Payload + ?Sized,
    {
        Service::create(self, name, None)
    }

    /// A client of a service. It finds the server, now or when that comes, on its own.
    ///
    /// # Errors
    /// As [`service`](Node::service).
    pub fn client<Req, Rep>(&self, name: &str) -> Result<Client<Req, Rep>, Error>
    where
        Req: Payload + ?Sized,
        Rep: Payload + ?Sized,
    {
        Client::create(self, name, None)
    }

    /// As [`service`](Node::service), of types that are told at run time. A request whose length does not
    /// [fit](DynamicType::fits) is dropped: its client gets an [`Error::NoReply`].
    ///
    /// # Errors
    /// As [`service`](Node::service); [`Error::Setting`] for types that are aligned to more than 16 bytes.
    pub fn dynamic_service(
        &self,
        name: &str,
        request: &DynamicType,
        reply: &DynamicType,
    ) -> Result<Service<[u8], [u8]>, Error> {
        Service::create(self, name, Some(&Told::new(request, reply)?))
    }

    /// As [`client`](Node::client), of types that are told at run time. Whether a reply has a length that
    /// [fits](DynamicType::fits) is the caller's to look at.
    ///
    /// # Errors
    /// As [`dynamic_service`](Node::dynamic_service).
    pub fn dynamic_client(
        &self,
        name: &str,
        request: &DynamicType,
        reply: &DynamicType,
    ) -> Result<Client<[u8], [u8]>, Error> {
        Client::create(self, name, Some(&Told::new(request, reply)?))
    }

    /// A wait set, for one thread to wait for many of this node's subscribers.
    ///
    /// # Errors
    /// [`Error::TooMany`]: a node has 1,024 at most. What memory and the limit of open files forbid.
    pub fn wait_set(&self) -> Result<WaitSet, Error> {
        myelin_shm::waiting::wait_set::WaitSet::create(&self.inner).map(WaitSet::new)
    }

    /// An executor: functions called with the samples of many topics, in one thread of yours.
    ///
    /// # Errors
    /// As [`wait_set`](Node::wait_set), of which it takes one.
    pub fn executor(&self) -> Result<Executor, Error> {
        Executor::new(self.wait_set()?)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What this node knows of its domain at this moment, without asking anybody: nodes and their
    /// processes, publishers and subscribers with topic, type and settings, and how far the matches of
    /// its own endpoints are; of those that were refused, why; what its own endpoints have counted; and,
    /// with a network that is up, the endpoints of other hosts. It takes memory as there are endpoints in
    /// the domain.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let node = myelin::Node::builder("doc").folder(folder.path()).open()?;
    /// for each in node.graph()?.matches {
    ///     if let myelin::MatchState::Refused { reason } = each.state {
    ///         eprintln!("{:x} and {:x}: {reason}", each.endpoint, each.other);
    ///     }
    /// }
    /// # Ok::<(), myelin::Error>(())
    /// ```
    pub fn graph(&self) -> Result<Graph, Error> {
        self.inner.graph().map(|graph| self.with_network(graph))
    }

    /// As [`graph`](Node::graph), with what all other nodes of this host tell of their matches, counters
    /// and types when they are asked. Waits until all have answered, for `limit` at most;
    /// [`Graph::silent`] names those that have not, as one that is stopped. Each that is asked is told
    /// of by some messages for each of its endpoints, by its node's thread; publishing and taking do not
    /// notice. Of other hosts nobody is asked.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let node = myelin::Node::builder("doc").folder(folder.path()).open()?;
    /// for endpoint in node.graph_within(Duration::from_secs(1))?.endpoints {
    ///     if let Some(myelin::Counters::Subscriber { lost, .. }) = endpoint.counters {
    ///         println!("{} has lost {lost} samples", endpoint.topic);
    ///     }
    /// }
    /// # Ok::<(), myelin::Error>(())
    /// ```
    pub fn graph_within(&self, limit: Duration) -> Result<Graph, Error> {
        self.inner.graph_within(limit).map(|graph| self.with_network(graph))
    }

    /// Calls `call` from now on whenever an endpoint of the domain has come or gone, or, with a network,
    /// what other hosts or DDS programs tell of one has changed: then [`graph`](Node::graph) tells
    /// otherwise than before. A thread of the node calls it, as
    /// [`Publisher::on_event`](crate::Publisher::on_event) says; it may call anything of this library. It
    /// ends with the node: a function that keeps a clone of its node keeps the node open. A second call
    /// replaces the first; a node's clones are one.
    ///
    /// # Errors
    /// [`Error::Forked`]; [`Error::System`] if there can be no further thread.
    pub fn on_graph_change(&self, call: impl Fn() + Send + Sync + 'static) -> Result<(), Error> {
        self.inner.listen(Box::new(call))
    }

    /// Triggers the guard from now on whenever the graph has changed, without a thread. A second call
    /// replaces the first.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let node = myelin::Node::builder("doc").folder(folder.path()).open()?;
    /// let mut set = node.wait_set()?;
    /// let changed = set.guard()?;
    /// node.trigger_on_graph_change(&changed)?;
    /// let publisher = node.topic::<f64>("temperature").publisher()?;
    /// assert!(set.wait(std::time::Duration::MAX)?.contains(&changed.key()));
    /// assert_eq!(node.graph()?.endpoints[0].topic, "temperature");
    /// # Ok::<(), myelin::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn trigger_on_graph_change(&self, guard: &Guard) -> Result<(), Error> {
        let guard = guard.clone();
        self.inner.on_graph_change(Box::new(move || guard.trigger()))
    }

    fn with_network(&self, mut graph: Graph) -> Graph {
        self.network.iter().for_each(|network| network.add_to(&mut graph));
        graph
    }

    /// Whether other hosts can be reached now, and if not, why. A node whose network is asked for
    /// works on its host at once, and on the network as soon as there is one.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let node = myelin::Node::builder("doc").folder(folder.path()).open()?;
    /// if let myelin::NetworkState::Waiting { reason } = node.network() {
    ///     eprintln!("alone for now: {reason}");
    /// }
    /// # Ok::<(), myelin::Error>(())
    /// ```
    pub fn network(&self) -> NetworkState {
        self.network.as_ref().map_or(NetworkState::Off, |network| network.state())
    }

    /// The folder of its sockets: nodes meet if it is the same one for both, by whatever name.
    pub fn folder(&self) -> &Path {
        self.inner.folder()
    }
}

impl std::fmt::Debug for Node {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Node").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Settings of a [`Node`] to be opened.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// let node = myelin::Node::builder("lidar").domain(3).folder(folder.path()).open()?;
/// # Ok::<(), myelin::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing happens before `open`"]
pub struct NodeBuilder {
    name: String,
    domain: Option<u32>,
    group: Option<Group>,
    folder: Option<PathBuf>,
    latency_guard: bool,
    threads: Threads,
    network: Settings,
}

impl NodeBuilder {
    /// Nodes of different domains do not see each other. Without this call `MYELIN_DOMAIN` decides,
    /// and without that it is 0.
    pub fn domain(mut self, domain: u32) -> Self {
        self.domain = Some(domain);
        self
    }

    /// Meets the programs of all members of a group, by gid or name, instead of the user's own
    /// alone. All of them must ask for the same group.
    pub fn group(mut self, group: impl Into<Group>) -> Self {
        self.group = Some(group.into());
        self
    }

    /// The folder of the sockets, instead of the one in `/dev/shm`; nodes in different folders do
    /// not see each other. Without this call `MYELIN_FOLDER` decides. For tests, for containers that
    /// share a folder alone, and if the folder in `/dev/shm` is somebody else's.
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// Keeps the CPUs from sleeping deeply while the node lives: waking one then takes a few µs
    /// instead of up to hundreds. It does so for *all* CPUs of the machine, and costs power, heat
    /// and with it the turbo of those that work.
    ///
    /// Holds `/dev/cpu_dma_latency` open, on which the node's user must be able to write. The
    /// kernel ends it with the node's last handle or the process, whatever that dies of. A child of
    /// `fork` does not hold it.
    pub fn latency_guard(mut self, hold: bool) -> Self {
        self.latency_guard = hold;
        self
    }

    /// How the threads run that the node starts: its own, those of its callbacks, the one that wakes
    /// asynchronous tasks, that of the network. They take no signals. Without this call they have the usual
    /// policy, and the CPUs of the process's first thread, whoever opens the node. CycloneDDS's threads have
    /// names of their own, and CPUs and policy of the first node of the process in the domain.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// use myelin::{Node, Threads};
    ///
    /// let threads = Threads { name: "lidar".into(), cpus: vec![0], ..Threads::default() };
    /// let node = Node::builder("lidar").threads(threads).folder(folder.path()).open()?;
    /// # Ok::<(), myelin::Error>(())
    /// ```
    pub fn threads(mut self, threads: Threads) -> Self {
        self.threads = threads;
        self
    }

    /// Meets the nodes of the same domain on other hosts too, and DDS programs: the same topics,
    /// through CycloneDDS (`docs/explanation/dds.md`). A subscriber on this host still gets every sample by
    /// shared memory. Without this call `MYELIN_NETWORK` decides (1 or 0), and without that it is
    /// off: the first topic costs the process some threads, memory and open UDP ports.
    ///
    /// Domains 0 to 230 can be opened to the network. All nodes of a process in one domain share one
    /// DDS participant. It takes CycloneDDS, at build time its headers too: `open` loads it, and is an
    /// [`Error::Network`] that says what to install if it is not there. That there is no interface yet
    /// is none: see [`Node::network`].
    pub fn network(mut self, open: bool) -> Self {
        self.network.open = Some(open);
        self
    }

    /// The interface that leads to the other hosts, by name or by its address; the first node of the
    /// process in a domain decides. Without this call `MYELIN_INTERFACE` does, and without that the
    /// best there is. One that is not there yet, or goes and comes back, is waited for.
    pub fn interface(mut self, interface: &str) -> Self {
        self.network.interface = Some(interface.to_string());
        self
    }

    /// Addresses or names of the hosts to look for, instead of by multicast; the first node of the
    /// process in a domain decides. Without this call `MYELIN_PEERS` does, separated by commas, and
    /// without that hosts find each other by multicast.
    pub fn peers<P: Into<String>>(mut self, peers: impl IntoIterator<Item = P>) -> Self {
        self.network.peers = Some(peers.into_iter().map(Into::into).collect());
        self
    }

    /// Hosts find each other by multicast too, beside the [`peers`](NodeBuilder::peers); the first node of
    /// the process in a domain decides. By default peers are all there is, if there are any.
    pub fn multicast(mut self, beside_peers: bool) -> Self {
        self.network.multicast = beside_peers;
        self
    }

    /// How long other hosts hear nothing of this process before they take it for dead: 100 ms to an
    /// hour; the first node of the process in a domain decides. Without this call `MYELIN_LEASE_MS`
    /// does, and without that it is 1 s. A link that is cut for longer ends its matches too, so with
    /// a longer one longer cuts are survived, and deaths are noticed later.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.network.lease = Some(lease);
        self
    }

    /// What the process tells of itself to whoever discovers it in DDS, its user data there: text of the
    /// form `key=value;`, as ROS 2's `enclave=/;`. The first node of the process in a domain decides. By
    /// default it is empty.
    pub fn dds_user_data(mut self, text: &str) -> Self {
        self.network.user_data = text.to_string();
        self
    }

    /// Opens the node.
    ///
    /// # Errors
    /// As [`Node::new`]; [`Error::Setting`] for a group that does not exist, an interface that can
    /// never be, or a lease out of bounds;
    /// [`Error::LatencyGuard`], with the remedy, if it is asked for and cannot be had;
    /// [`Error::Setting`] or [`Error::System`] for threads that cannot run as chosen;
    /// [`Error::NoPermission`] if the folder belongs to someone else or is open to others.
    pub fn open(self) -> Result<Node, Error> {
        let domain = match self.domain {
            Some(domain) => domain,
            None => domain_from(std::env::var_os(DOMAIN_VARIABLE).as_deref())?,
        };
        let group = self.group.as_ref().map(Group::id).transpose()?;
        let NodeBuilder { name, folder, latency_guard, threads, network, .. } = self;
        let variable = std::env::var_os(FOLDER_VARIABLE).filter(|folder| !folder.is_empty());
        let folder = folder.or_else(|| variable.map(PathBuf::from));
        let way = network.resolve()?;
        let options =
            shm::NodeOptions { domain, group, name: name.clone(), folder, latency_guard, threads };
        let inner = shm::Node::open(options)?;
        let network = way.map(|way| Network::open(way, domain, &inner)).transpose()?;
        Ok(Node { inner, network, name })
    }
}

fn domain_from(variable: Option<&std::ffi::OsStr>) -> Result<u32, Error> {
    let Some(value) = variable.filter(|value| !value.is_empty()) else { return Ok(0) };
    let number = value.to_str().and_then(|text| text.parse().ok());
    number.ok_or_else(|| Error::Setting {
        topic: None,
        field: DOMAIN_VARIABLE,
        value: format!("{value:?}"),
        remedy: "set it to a number from 0 to 4,294,967,295, or unset it for 0",
    })
}

const DOMAIN_VARIABLE: &str = "MYELIN_DOMAIN";
const FOLDER_VARIABLE: &str = "MYELIN_FOLDER";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_domain_comes_from_the_environment() {
        assert_eq!(domain_from(None).unwrap(), 0);
        assert_eq!(domain_from(Some("".as_ref())).unwrap(), 0);
        assert_eq!(domain_from(Some("17".as_ref())).unwrap(), 17);
        for wrong in ["-1", "robots", "4294967296", "1 "] {
            let error = domain_from(Some(wrong.as_ref())).unwrap_err().to_string();
            assert!(error.contains("MYELIN_DOMAIN") && error.contains(wrong), "{error}");
        }
    }
}
