//! A process's part in a domain.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use myelin_shm::node as shm;

use crate::clock::now;
use crate::dynamic::DynamicType;
use crate::executor::Executor;
use crate::group::Group;
use crate::network::{Network, Settings};
use crate::payload::Payload;
use crate::service::{Client, Service, ServiceTypes};
use crate::topic::Topic;
use crate::wait_set::WaitSet;
use crate::{EndpointId, EndpointInfo, Error, Graph, GuardCondition, NetworkState, Threads};

/// A process's part in a domain: topics, publishers and subscribers are made from it.
///
/// A process usually has one node; a clone is cheap and is the same node. A node has one socket and
/// one thread, which sleeps unless a program joins or leaves; publishing and taking do not involve
/// it. Its publishers and subscribers keep it open after the last `Node` is dropped. Any thread may
/// use it.
///
/// In a child of `fork` every call of an inherited handle fails with [`Error::Forked`]: open a new
/// node in the child.
///
/// ```
/// # fn main() -> Result<(), myelin::Error> {
/// # let folder = tempfile::tempdir().unwrap();
/// # if false {
/// let node = myelin::Node::new("camera")?;
/// # }
/// # let node = myelin::Node::builder("camera").runtime_dir(folder.path()).open()?;
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
    /// 0. It meets the programs of the same user. `name` is for people; other nodes see it.
    ///
    /// # Errors
    /// [`Error::Setting`] if `MYELIN_DOMAIN` is not a number. Errors of the socket folder, the
    /// limit of open files or memory.
    pub fn new(name: &str) -> Result<Node, Error> {
        Node::builder(name).open()
    }

    /// Settings for a node.
    pub fn builder(name: &str) -> NodeBuilder {
        let name = name.to_string();
        let (domain, group, runtime_dir) = (None, None, None);
        let (threads, match_limit, network) = (Threads::default(), None, Settings::default());
        let (announced, attributes) = (shm::AnnouncedNode::default(), Vec::new());
        NodeBuilder {
            name,
            domain,
            group,
            runtime_dir,
            latency_guard: false,
            threads,
            match_limit,
            network,
            announced,
            attributes,
        }
    }

    /// The topic of this name. Nothing happens until a publisher or subscriber is made from it.
    ///
    /// `T` is the type of a sample: a [`PlainData`](crate::PlainData) type, such as
    /// `topic::<Imu>("imu")`, or a slice whose length each sample chooses, such as
    /// `topic::<[Point]>("points")` or `topic::<[u8]>("image")`.
    pub fn topic<T: Payload + ?Sized>(&self, name: &str) -> Topic<T> {
        Topic::new(self.clone(), name)
    }

    /// Like [`topic`](Node::topic), for a type that is known at run time only: for bindings of
    /// other languages. Samples are bytes here. The topic meets topics of the Rust type with the
    /// same [layout hash](crate::LayoutHash). The length of a sample or loan must
    /// [fit](DynamicType::fits). Taken samples always fit; for published samples the caller ensures
    /// it, or the subscribers disconnect it.
    ///
    /// ```
    /// # fn main() -> Result<(), myelin::Error> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let node = myelin::Node::builder("doc").runtime_dir(folder.path()).open()?;
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
    pub fn dynamic_topic(&self, name: &str, dynamic_type: &DynamicType) -> Topic<[u8]> {
        self.topic(name).of(dynamic_type)
    }

    /// Serves a service: a server takes requests of type `Req` and replies with `Rep`. Both can be
    /// any type that a topic can carry.
    ///
    /// # Errors
    /// As for [`Topic::subscriber`](crate::Topic::subscriber). [`Error::TypeMismatch`] names the
    /// types of request and reply, such as `Goal -> [f64]`.
    pub fn service<Req, Rep>(&self, name: &str) -> Result<Service<Req, Rep>, Error>
    where
        Req: Payload + ?Sized,
        Rep: Payload + ?Sized,
    {
        Service::create(self, name, None)
    }

    /// A client of a service. It finds the server on its own, now or when the server starts.
    ///
    /// # Errors
    /// As for [`service`](Node::service).
    pub fn client<Req, Rep>(&self, name: &str) -> Result<Client<Req, Rep>, Error>
    where
        Req: Payload + ?Sized,
        Rep: Payload + ?Sized,
    {
        Client::create(self, name, None)
    }

    /// Like [`service`](Node::service), with types that are known at run time only. A request whose
    /// length does not [fit](DynamicType::fits) is dropped; its client gets [`Error::NoReply`].
    ///
    /// # Errors
    /// As for [`service`](Node::service); [`Error::Setting`] for types that are aligned to more
    /// than 16 bytes.
    pub fn dynamic_service(
        &self,
        name: &str,
        request: &DynamicType,
        reply: &DynamicType,
    ) -> Result<Service<[u8], [u8]>, Error> {
        Service::create(self, name, Some(&ServiceTypes::new(request, reply)?))
    }

    /// Like [`client`](Node::client), with types that are known at run time only. The caller checks
    /// whether the length of a reply [fits](DynamicType::fits).
    ///
    /// # Errors
    /// As for [`dynamic_service`](Node::dynamic_service).
    pub fn dynamic_client(
        &self,
        name: &str,
        request: &DynamicType,
        reply: &DynamicType,
    ) -> Result<Client<[u8], [u8]>, Error> {
        Client::create(self, name, Some(&ServiceTypes::new(request, reply)?))
    }

    /// A wait set: one thread waits for many of this node's subscribers.
    ///
    /// # Errors
    /// [`Error::TooMany`]: a node has at most 1,024. Errors of memory and of the limit of open
    /// files.
    pub fn wait_set(&self) -> Result<WaitSet, Error> {
        myelin_shm::wait_set::WaitSet::create(&self.inner).map(WaitSet::new)
    }

    /// An executor: it calls functions with the samples of many topics, in one thread of yours.
    ///
    /// # Errors
    /// As for [`wait_set`](Node::wait_set); an executor uses one of the node's wait sets.
    pub fn executor(&self) -> Result<Executor, Error> {
        Executor::new(self.wait_set()?)
    }

    /// The node's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What this node knows of its domain now, without a question to other nodes. A graph has the
    /// nodes and their processes; publishers and subscribers with topic, type and settings; the
    /// state of the matches of the node's own endpoints, with the reason for a refusal; the
    /// counters of its own endpoints; and, with a network that is up, the endpoints of other hosts.
    /// A graph takes memory for each endpoint in the domain.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let node = myelin::Node::builder("doc").runtime_dir(folder.path()).open()?;
    /// for each in node.graph()?.matches {
    ///     if let myelin::MatchState::Refused { reason, .. } = each.state {
    ///         eprintln!("{:x} and {:x}: {reason}", each.endpoint, each.other);
    ///     }
    /// }
    /// # Ok::<(), myelin::Error>(())
    /// ```
    pub fn graph(&self) -> Result<Graph, Error> {
        self.inner.graph().map(|graph| self.with_network(graph))
    }

    /// An endpoint of this host by its id, as in [`graph`](Node::graph), without its counters and
    /// its GUID in DDS; `None` if there is none now. It costs one look-up, however many endpoints
    /// there are: for the other side of a match ([`Event::Matched`](crate::Event::Matched)).
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let node = myelin::Node::builder("doc").runtime_dir(folder.path()).open()?;
    /// let publisher = node.topic::<f64>("temperature").attribute("unit", b"K").publisher()?;
    /// let found = node.endpoint(publisher.id())?.expect("it is open");
    /// assert_eq!(found.attributes.get("unit"), Some(&b"K"[..]));
    /// # Ok::<(), myelin::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn endpoint(&self, id: EndpointId) -> Result<Option<EndpointInfo>, Error> {
        self.inner.endpoint(id)
    }

    /// How often [`graph`](Node::graph) has changed so far: while the number stays the same, a
    /// graph that was taken after it was read is still the newest, except for the states of
    /// matches and the counters.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn graph_changes(&self) -> Result<u64, Error> {
        self.inner.graph_changes()
    }

    /// Like [`graph`](Node::graph), and asks all other nodes of this host for their matches,
    /// counters and types. Waits until all have answered, for at most `limit`. [`Graph::silent`]
    /// names those that have not answered, such as a stopped one. The thread of an asked node sends
    /// a few messages for each of its endpoints; publishing and taking are not affected.
    ///
    /// Counters are not part of the answers: the first answer of a node has the memory in which its
    /// endpoints count, and this node keeps one or two pages of each endpoint mapped, read-only, for
    /// at most 16,384 endpoints. From then on [`graph`](Node::graph) knows these counters too, and
    /// those of a stopped process.
    ///
    /// Opens the node's [`network`](NodeBuilder::network), if it has one and no topic has opened it
    /// yet, and gets the schemas of other hosts' types; it does not wait until other hosts are
    /// found, and they are not asked for matches and counters.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let node = myelin::Node::builder("doc").runtime_dir(folder.path()).open()?;
    /// for endpoint in node.graph_within(Duration::from_secs(1))?.endpoints {
    ///     if let Some(myelin::Counters::Subscriber { lost, .. }) = endpoint.counters {
    ///         println!("{} has lost {lost} samples", endpoint.topic);
    ///     }
    /// }
    /// # Ok::<(), myelin::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`graph`](Node::graph); [`Error::Network`] and [`Error::Setting`] if the network can
    /// never be opened as requested.
    pub fn graph_within(&self, limit: Duration) -> Result<Graph, Error> {
        self.graph_and_time(limit).map(|(graph, _)| graph)
    }

    /// [`graph_within`](Node::graph_within), and when the counters were read.
    pub(crate) fn graph_and_time(&self, limit: Duration) -> Result<(Graph, u64), Error> {
        let begin = Instant::now();
        self.start_network()?;
        let graph = self.inner.graph_within(limit)?;
        let read_ns = now();
        let network = self.network.iter();
        network.for_each(|it| it.wait_for_schemas(limit.saturating_sub(begin.elapsed())));
        Ok((self.with_network(graph), read_ns))
    }

    /// Calls `call` from now on whenever [`graph`](Node::graph) has changed: an endpoint of the
    /// domain came or went or, with a network, other hosts or DDS programs changed what they
    /// announce about an endpoint. A thread of the node calls it, as for
    /// [`Publisher::on_event`](crate::Publisher::on_event); it may call anything of this library.
    /// The calls end with the node; a function that keeps a clone of its node keeps the node open.
    /// A second call replaces the first, also through a clone of the node.
    ///
    /// # Errors
    /// [`Error::Forked`]; [`Error::System`] if no further thread can be started.
    pub fn on_graph_change(&self, call: impl Fn() + Send + Sync + 'static) -> Result<(), Error> {
        self.inner.listen(Box::new(call))
    }

    /// Triggers the guard condition from now on whenever the graph has changed, without a thread. A second call
    /// replaces the first.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let node = myelin::Node::builder("doc").runtime_dir(folder.path()).open()?;
    /// let mut set = node.wait_set()?;
    /// let changed = set.guard_condition()?;
    /// node.trigger_on_graph_change(&changed)?;
    /// let publisher = node.topic::<f64>("temperature").publisher()?;
    /// assert!(set.wait(std::time::Duration::MAX)?.contains(&changed.key()));
    /// assert_eq!(node.graph()?.endpoints[0].topic, "temperature");
    /// # Ok::<(), myelin::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn trigger_on_graph_change(&self, guard: &GuardCondition) -> Result<(), Error> {
        let guard = guard.clone();
        self.inner.on_graph_change(Box::new(move || guard.trigger()))
    }

    /// Opens the network before the first topic does, to see other hosts.
    pub(crate) fn start_network(&self) -> Result<(), Error> {
        self.network.as_ref().map_or(Ok(()), |network| network.start())
    }

    fn with_network(&self, mut graph: Graph) -> Graph {
        self.network.iter().for_each(|network| network.add_to(&mut graph));
        graph
    }

    /// Whether other hosts can be reached now, and if not, why. A node with a network works on its
    /// host at once, and on the network as soon as there is one.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let node = myelin::Node::builder("doc").runtime_dir(folder.path()).open()?;
    /// if let myelin::NetworkState::Waiting { reason } = node.network() {
    ///     eprintln!("alone for now: {reason}");
    /// }
    /// # Ok::<(), myelin::Error>(())
    /// ```
    pub fn network(&self) -> NetworkState {
        self.network.as_ref().map_or(NetworkState::Off, |network| network.state())
    }

    /// The folder of the node's sockets. Two nodes meet if they use the same folder, even by
    /// different paths.
    pub fn runtime_dir(&self) -> &Path {
        self.inner.runtime_dir()
    }
}

impl std::fmt::Debug for Node {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Node").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Settings for a [`Node`].
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// let node = myelin::Node::builder("lidar").domain(3).runtime_dir(folder.path()).open()?;
/// # Ok::<(), myelin::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing happens before `open`"]
pub struct NodeBuilder {
    name: String,
    domain: Option<u32>,
    group: Option<Group>,
    runtime_dir: Option<PathBuf>,
    latency_guard: bool,
    threads: Threads,
    match_limit: Option<Duration>,
    network: Settings,
    announced: shm::AnnouncedNode,
    attributes: Vec<(String, Vec<u8>)>,
}

impl NodeBuilder {
    /// Nodes of different domains do not see each other. The default is `MYELIN_DOMAIN`, or else 0.
    pub fn domain(mut self, domain: u32) -> Self {
        self.domain = Some(domain);
        self
    }

    /// Meets the programs of all members of a group, given by gid or name, instead of only the
    /// user's own programs. All of them must set the same group.
    pub fn group(mut self, group: impl Into<Group>) -> Self {
        self.group = Some(group.into());
        self
    }

    /// The folder of the sockets, instead of the one in `/dev/shm`. Nodes in different folders do
    /// not see each other. The default is `MYELIN_RUNTIME_DIR`, or else the one in `/dev/shm`. This is
    /// for tests, for containers that share only a folder, and for hosts where another user owns
    /// the folder in `/dev/shm`.
    pub fn runtime_dir(mut self, runtime_dir: impl Into<PathBuf>) -> Self {
        self.runtime_dir = Some(runtime_dir.into());
        self
    }

    /// Keeps the CPUs from deep sleep while the node lives: waking a CPU then takes a few µs
    /// instead of up to hundreds. This affects *all* CPUs of the machine. It costs power and heat,
    /// and so the turbo of the busy CPUs.
    ///
    /// The node holds `/dev/cpu_dma_latency` open; its user must have permission to write to it.
    /// The kernel releases it with the node's last handle or when the process ends, for any reason.
    /// A child of `fork` does not hold it.
    pub fn latency_guard(mut self, hold: bool) -> Self {
        self.latency_guard = hold;
        self
    }

    /// Settings of the threads that the node starts: its own thread, its callbacks' threads, the
    /// one that wakes asynchronous tasks, and the network's. They take no signals. By default they
    /// have the usual policy and the CPUs of the process's first thread, whichever thread opens the
    /// node. CycloneDDS's threads have their own names, and the CPUs and policy of the process's
    /// first node in the domain.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// use myelin::{Node, Threads};
    ///
    /// let threads = Threads { name: "lidar".into(), cpus: vec![0], ..Threads::default() };
    /// let node = Node::builder("lidar").threads(threads).runtime_dir(folder.path()).open()?;
    /// # Ok::<(), myelin::Error>(())
    /// ```
    pub fn threads(mut self, threads: Threads) -> Self {
        self.threads = threads;
        self
    }

    /// How long the call that makes a publisher or subscriber waits at most until it is matched with
    /// those that exist on this host. The default is 20 ms. A process that has not answered in this
    /// time is not waited for again until it answers. Give it more time if a program acts as soon as
    /// the call returns, for example because another system tells it when to publish.
    pub fn match_limit(mut self, limit: Duration) -> Self {
        self.match_limit = Some(limit);
        self
    }

    /// Meets the nodes of the same domain on other hosts, too, and DDS programs: the same topics,
    /// through CycloneDDS (`docs/explanation/dds.md`). A subscriber on this host still gets every
    /// sample through shared memory. The default is `MYELIN_NETWORK` (1 or 0), or else off: the
    /// first topic costs the process some threads, memory and open UDP ports.
    ///
    /// Domains 0 to 230 can be opened to the network. All nodes of a process in one domain share
    /// one DDS participant. The network needs CycloneDDS, and its headers at build time. `open`
    /// loads the library; if it is missing, [`Error::Network`] says what to install. An interface
    /// that is not up yet is not an error: see [`Node::network`].
    pub fn network(mut self, open: bool) -> Self {
        self.network.open = Some(open);
        self
    }

    /// The interface that leads to the other hosts, by name or by address. The first node of the
    /// process in a domain decides. The default is `MYELIN_INTERFACE`, or else the best available
    /// interface. The node waits for an interface that is not up yet, or that goes and comes back.
    pub fn interface(mut self, interface: &str) -> Self {
        self.network.interface = Some(interface.to_string());
        self
    }

    /// Addresses or names of the hosts to look for, instead of multicast. The first node of the
    /// process in a domain decides. The default is `MYELIN_PEERS`, separated by commas; without it
    /// hosts find each other by multicast.
    pub fn peers<P: Into<String>>(mut self, peers: impl IntoIterator<Item = P>) -> Self {
        self.network.peers = Some(peers.into_iter().map(Into::into).collect());
        self
    }

    /// Hosts find each other by multicast, too, besides the [`peers`](NodeBuilder::peers). The
    /// first node of the process in a domain decides. By default peers replace multicast.
    pub fn multicast(mut self, beside_peers: bool) -> Self {
        self.network.multicast = beside_peers;
        self
    }

    /// Whether large samples go by TCP to Myelin nodes of other hosts, at a fraction of the CPU of
    /// RTPS (`docs/explanation/dds.md`). The default is `MYELIN_BULK_LANE` (1 or 0), or else on.
    pub fn bulk_lane(mut self, on: bool) -> Self {
        self.network.bulk_lane = Some(on);
        self
    }

    /// The mark (DSCP) of the packets of large samples that go by TCP, 0 to 63, for switches and access
    /// points that have a queue for each: 8 (CS1) is for what may wait. On this host the kernel's queue
    /// by priority (`pfifo_fast`) follows it. The default is `MYELIN_BULK_LANE_DSCP`, or else 0.
    pub fn bulk_lane_dscp(mut self, dscp: u8) -> Self {
        self.network.bulk_lane_dscp = Some(dscp);
        self
    }

    /// The largest datagrams that are sent, in bytes without the headers of IP and UDP: 1,350 to 65,500.
    /// The first node of the process in a domain decides. The default is `MYELIN_DATAGRAM_BYTES`, or else
    /// 1,400 on a wireless interface and 65,500 on others. Large datagrams cost less CPU. Where
    /// packets are lost, a datagram of many packets is lost with any of them.
    pub fn datagram_bytes(mut self, most: u32) -> Self {
        self.network.datagram_bytes = Some(most);
        self
    }

    /// How long other hosts wait for a sign of life from this process before they consider it dead:
    /// 100 ms to an hour. The first node of the process in a domain decides. The default is
    /// `MYELIN_LEASE_MS`, or else 1 s. A link that is cut for longer loses its matches, too. So a
    /// longer lease survives longer cuts, and deaths are noticed later.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.network.lease = Some(lease);
        self
    }

    /// The process's user data in DDS, visible to every program that discovers it: text of the form
    /// `key=value;`, such as ROS 2's `enclave=/;`. The first node of the process in a domain
    /// decides. By default it is empty.
    pub fn dds_user_data(mut self, text: &str) -> Self {
        self.network.user_data = text.to_string();
        self
    }

    /// The keystore, a folder in the layout of SROS 2 (`myelin keystore create`,
    /// `ros2 security create_keystore`), that the [`enclave`](NodeBuilder::enclave) is in. The default
    /// is `MYELIN_KEYSTORE`.
    pub fn keystore(mut self, folder: impl Into<PathBuf>) -> Self {
        self.network.keystore = Some(folder.into());
        self
    }

    /// Who this process is for other hosts: the name of an enclave of the keystore, such as
    /// `/robot/camera`. It then talks to processes of the same keystore alone; all of it is
    /// authenticated and encrypted, and what it publishes and subscribes to is limited to its rights
    /// (`docs/explanation/security.md`). The default is `MYELIN_ENCLAVE`, or else none: nothing is
    /// protected. All nodes of a process in one domain have the same enclave. On this host nothing
    /// changes.
    ///
    /// [`open`](NodeBuilder::open) opens the network at once, and returns [`Error::Network`] with the
    /// file and the remedy if the enclave is missing, broken, out of date or revoked. A publisher or
    /// subscriber without the right is [`Error::Network`], too.
    pub fn enclave(mut self, name: &str) -> Self {
        self.network.enclave = Some(name.to_string());
        self
    }

    /// A namespace that others see in the [graph](Node::graph), such as `/robot1`: for people and
    /// tools, it changes no name of a topic. By default it is empty.
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.announced.namespace = namespace.to_string();
        self
    }

    /// A named byte string that others see in the [graph](Node::graph), for programs that know what
    /// it means. A node has at most 32, with at most 1,024 bytes in all, names included; a name has
    /// at most 64 bytes. [`open`](NodeBuilder::open) checks it.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let builder = myelin::Node::builder("lidar").runtime_dir(folder.path());
    /// let node = builder.namespace("/robot1").attribute("firmware", b"2.4").open()?;
    /// let graph = node.graph()?;
    /// assert_eq!(graph.nodes[0].record.namespace, "/robot1");
    /// assert_eq!(graph.nodes[0].record.attributes.get("firmware"), Some(&b"2.4"[..]));
    /// # Ok::<(), myelin::Error>(())
    /// ```
    pub fn attribute(mut self, name: &str, value: &[u8]) -> Self {
        self.attributes.push((name.to_string(), value.to_vec()));
        self
    }

    /// The program and the language that others see, for bindings of other languages.
    #[doc(hidden)]
    pub fn announced_as(mut self, program: Option<&str>, language: &str) -> Self {
        self.announced.program = program.map(str::to_string);
        self.announced.language = Some(language.to_string());
        self
    }

    /// Opens the node.
    ///
    /// # Errors
    /// As for [`Node::new`]; [`Error::Setting`] for a group that does not exist, an interface name
    /// that is not valid, an attribute that is too long, or a lease out of bounds; [`Error::LatencyGuard`], with the remedy, if
    /// the latency guard is requested and not available; [`Error::Setting`] or [`Error::System`]
    /// for threads that cannot run as chosen; [`Error::NoPermission`] if the folder belongs to
    /// someone else or is open to others.
    pub fn open(self) -> Result<Node, Error> {
        let domain = match self.domain {
            Some(domain) => domain,
            None => domain_from(std::env::var_os(DOMAIN_VARIABLE).as_deref())?,
        };
        let group = self.group.as_ref().map(Group::id).transpose()?;
        let NodeBuilder { name, runtime_dir, latency_guard, threads, match_limit, network, .. } =
            self;
        let mut announced = self.announced;
        for (name, value) in &self.attributes {
            announced.attributes.insert(name, value)?;
        }
        let variable =
            std::env::var_os(FOLDER_VARIABLE).filter(|runtime_dir| !runtime_dir.is_empty());
        let runtime_dir = runtime_dir.or_else(|| variable.map(PathBuf::from));
        let config = network.resolve()?;
        let options = shm::NodeOptions {
            domain,
            group,
            name: name.clone(),
            runtime_dir,
            latency_guard,
            threads,
            match_limit,
            announced,
        };
        let inner = shm::Node::open(options)?;
        let network = config.map(|config| Network::open(config, domain, &inner)).transpose()?;
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
const FOLDER_VARIABLE: &str = "MYELIN_RUNTIME_DIR";

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
