//! Nodes.

use std::ffi::{CString, c_char, c_int, c_void};
use std::time::Duration;

use myelin::{NetworkState, Node, Policy, Threads};

use crate::error::{Failure, MYELIN_OK, enter, myelin_code};
use crate::sized::{self, sized};
use crate::{handle, text};

/// A process's part in a domain. Any thread may use it, several at once.
pub enum myelin_node {}

/// Options of a node. 0 in a member, or NULL instead of the struct, is the default.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct myelin_node_options {
    /// sizeof(struct myelin_node_options): MYELIN_INIT(myelin_node_options).
    pub size: usize,
    /// Whether to use `domain`; otherwise MYELIN_DOMAIN in the environment, or 0.
    pub has_domain: bool,
    /// Nodes of different domains do not see each other.
    pub domain: u32,
    /// Meets all members of this group, by name or gid, instead of only the user's own programs.
    pub group: *const c_char,
    /// The folder of the sockets; otherwise MYELIN_RUNTIME_DIR, or one in /dev/shm.
    pub runtime_dir: *const c_char,
    /// Keeps all CPUs of the machine from deep sleep while the node lives.
    pub latency_guard: bool,
    /// Other hosts, through CycloneDDS: 1 yes, -1 no, 0 as in MYELIN_NETWORK.
    pub network: i32,
    /// The interface that leads to them, by name or address; otherwise MYELIN_INTERFACE, or the best.
    pub interface: *const c_char,
    /// Hosts to look for, separated by commas; otherwise MYELIN_PEERS, or multicast.
    pub peers: *const c_char,
    /// How long others wait for a sign of life from this process before they consider it dead; ns.
    pub lease_ns: u64,
    /// The first part of the names of the node's threads.
    pub thread_name: *const c_char,
    /// The CPUs that they may run on: `thread_cpu_count` numbers.
    pub thread_cpus: *const usize,
    /// 0: the CPUs of the process's first thread.
    pub thread_cpu_count: usize,
    /// 1 to 99: SCHED_FIFO with this priority; 0: the usual policy.
    pub thread_fifo_priority: i32,
    /// The process's user data in DDS: text of the form `key=value;`, such as ROS 2's `enclave=/;`;
    /// NULL: none.
    pub dds_user_data: *const c_char,
    /// Hosts find each other by multicast, too, besides `peers`.
    pub multicast: bool,
    /// A namespace that others see in the graph, such as /robot1; NULL: none. It changes no name of
    /// a topic.
    pub node_namespace: *const c_char,
    /// The language that others see; NULL: C.
    pub language: *const c_char,
    /// What else others see: `attribute_count` elements.
    pub attributes: *const myelin_attribute,
    /// 0: none.
    pub attribute_count: usize,
    /// How long the call that makes a publisher or subscriber waits at most until it is matched with
    /// those that exist on this host; 0: 20 ms.
    pub match_limit_ns: u64,
    /// The keystore that `enclave` is in: a folder in the layout of SROS 2; otherwise MYELIN_KEYSTORE.
    pub keystore: *const c_char,
    /// Who this process is for other hosts, such as /robot/camera: what it sends is encrypted, and it
    /// talks to processes of the same keystore alone; otherwise MYELIN_ENCLAVE, or no protection.
    pub enclave: *const c_char,
    /// Large samples go by TCP to Myelin nodes of other hosts, at a fraction of the CPU of RTPS: 1 yes,
    /// -1 no, 0 as in MYELIN_BULK_LANE, or else yes.
    pub bulk_lane: i32,
    /// The largest datagrams that are sent, in bytes without the headers of IP and UDP: 1,350 to 65,500;
    /// 0: as in MYELIN_DATAGRAM_BYTES, or else 1,400 on a wireless interface and 65,500 on others.
    pub datagram_bytes: u64,
    /// The mark (DSCP) of the packets of large samples that go by TCP, 1 to 63, for switches and access
    /// points: 8 (CS1) is for what may wait; 0: as in MYELIN_BULK_LANE_DSCP, or else none.
    pub bulk_lane_dscp: u64,
}

/// A named byte string of a node or an endpoint, which others see in the graph, for programs that
/// know what it means. A node and an endpoint have at most 32, with at most 1,024 bytes in all,
/// names included.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct myelin_attribute {
    /// Its name: 1 to 64 bytes.
    pub name: *const c_char,
    /// Its value, which need not be text.
    pub value: *const c_void,
    /// Bytes of the value.
    pub bytes: usize,
}

/// The program's attributes.
///
/// # Safety
/// `attributes` points to `count` elements, or `count` is 0.
pub unsafe fn attributes<'a>(
    attributes: *const myelin_attribute,
    count: usize,
) -> Result<Vec<(&'a str, &'a [u8])>, Failure> {
    if count == 0 {
        return Ok(Vec::new());
    }
    if attributes.is_null() {
        return Err(Failure::setting("attributes is NULL; pass attribute_count elements"));
    }
    // SAFETY: as the caller promises.
    let attributes = unsafe { std::slice::from_raw_parts(attributes, count) };
    let read = |it: &myelin_attribute| {
        // SAFETY: as the caller promises.
        unsafe {
            Ok((text::required(it.name, "an attribute's name")?, text::bytes(it.value, it.bytes)?))
        }
    };
    attributes.iter().map(read).collect()
}

sized! { myelin_node_options up to size: usize; }

/// Opens a node. `name` is for people. `options` may be NULL.
///
/// # Safety
/// Pointers are NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_node_open(
    name: *const c_char,
    options: *const myelin_node_options,
    node: *mut *mut myelin_node,
) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        text::put(node, std::ptr::null_mut(), "node")?;
        handle::prepare_for_fork();
        let builder = with(Node::builder(text::required(name, "name")?), sized::read(options)?)?;
        node.write(handle::to_pointer(handle::insert(Box::new(builder.open()?))?));
        Ok(MYELIN_OK)
    })
}

unsafe fn with(
    mut node: myelin::NodeBuilder,
    options: myelin_node_options,
) -> Result<myelin::NodeBuilder, Failure> {
    if options.has_domain {
        node = node.domain(options.domain);
    }
    // SAFETY: as the caller promises.
    let optional = |text, what| unsafe { text::optional(text, what) };
    if let Some(group) = optional(options.group, "group")? {
        node = match group.parse::<u32>() {
            Ok(id) => node.group(id),
            Err(_) => node.group(group),
        };
    }
    if let Some(folder) = optional(options.runtime_dir, "runtime_dir")? {
        node = node.runtime_dir(folder);
    }
    node = node.latency_guard(options.latency_guard);
    if options.match_limit_ns != 0 {
        node = node.match_limit(Duration::from_nanos(options.match_limit_ns));
    }
    if options.network != 0 {
        node = node.network(options.network > 0);
    }
    if let Some(interface) = optional(options.interface, "interface")? {
        node = node.interface(interface);
    }
    if let Some(peers) = optional(options.peers, "peers")? {
        node = node.peers(peers.split(',').map(str::trim).filter(|peer| !peer.is_empty()));
    }
    node = node.multicast(options.multicast);
    if let Some(text) = optional(options.dds_user_data, "dds_user_data")? {
        node = node.dds_user_data(text);
    }
    if let Some(namespace) = optional(options.node_namespace, "node_namespace")? {
        node = node.namespace(namespace);
    }
    node = node.announced_as(None, optional(options.language, "language")?.unwrap_or("C"));
    // SAFETY: as the caller promises.
    for (name, value) in unsafe { attributes(options.attributes, options.attribute_count)? } {
        node = node.attribute(name, value);
    }
    if let Some(keystore) = optional(options.keystore, "keystore")? {
        node = node.keystore(keystore);
    }
    if let Some(enclave) = optional(options.enclave, "enclave")? {
        node = node.enclave(enclave);
    }
    if options.bulk_lane != 0 {
        node = node.bulk_lane(options.bulk_lane > 0);
    }
    if options.datagram_bytes != 0 {
        let most = u32::try_from(options.datagram_bytes).unwrap_or(u32::MAX); // refused by `open`
        node = node.datagram_bytes(most);
    }
    if options.bulk_lane_dscp != 0 {
        let dscp = u8::try_from(options.bulk_lane_dscp).unwrap_or(u8::MAX); // refused by `open`
        node = node.bulk_lane_dscp(dscp);
    }
    if options.lease_ns != 0 {
        node = node.lease(text::duration(options.lease_ns));
    }
    let cpus = match options.thread_cpu_count {
        0 => Vec::new(),
        _ if options.thread_cpus.is_null() => {
            return Err(Failure::setting("thread_cpus is NULL; pass thread_cpu_count numbers"));
        }
        // SAFETY: as the caller promises.
        count => unsafe { std::slice::from_raw_parts(options.thread_cpus, count) }.to_vec(),
    };
    let name = optional(options.thread_name, "thread_name")?.unwrap_or_default();
    let policy = match options.thread_fifo_priority {
        0 => Policy::Usual,
        priority => Policy::Fifo(u8::try_from(priority).unwrap_or(u8::MAX)), // refused by `open`
    };
    Ok(node.threads(Threads { name: name.to_string(), cpus, policy }))
}

/// Closes a node's handle. Objects made from it go on.
///
/// # Safety
/// No other thread uses the handle meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_node_close(node: *mut myelin_node) -> myelin_code {
    // SAFETY: as the caller promises.
    enter(|| unsafe {
        drop(handle::remove::<Node>(handle::of_pointer(node))?);
        Ok(MYELIN_OK)
    })
}

/// Whether other hosts can be reached.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum myelin_network {
    /// The node has no network.
    MYELIN_NETWORK_OFF = 0,
    /// Not yet; as soon as the network is up.
    MYELIN_NETWORK_WAITING = 1,
    /// Yes.
    MYELIN_NETWORK_UP = 2,
}

/// Whether other hosts can be reached now, and what is missing, or which interface is used: as much
/// of the text as fits into `capacity` bytes, including its final zero. `text` may be NULL if
/// `capacity` is 0.
///
/// # Safety
/// Pointers are NULL or valid, and `text` has room for `capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_node_network(
    node: *mut myelin_node,
    text: *mut c_char,
    capacity: usize,
    state: *mut myelin_network,
) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        let (found, reason) = match handle::get::<Node>(handle::of_pointer(node))?.network() {
            NetworkState::Waiting { reason } => (myelin_network::MYELIN_NETWORK_WAITING, reason),
            NetworkState::Up { interface, .. } => (myelin_network::MYELIN_NETWORK_UP, interface),
            _ => (myelin_network::MYELIN_NETWORK_OFF, String::new()),
        };
        text::put(state, found, "state")?;
        write_text(&reason, text, capacity);
        Ok(MYELIN_OK)
    })
}

/// The folder of a node's sockets. Two nodes meet if they use the same folder, even by different
/// paths. As much of its path as fits into `capacity` bytes, including its final zero.
///
/// # Safety
/// Pointers are NULL or valid, and `text` has room for `capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_node_runtime_dir(
    node: *mut myelin_node,
    text: *mut c_char,
    capacity: usize,
) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        let node = handle::get::<Node>(handle::of_pointer(node))?;
        write_text(&node.runtime_dir().to_string_lossy(), text, capacity);
        Ok(MYELIN_OK)
    })
}

/// Writes as much of `from` as fits into `capacity` bytes, including a final zero.
///
/// # Safety
/// `text` is NULL or has room for `capacity` bytes.
unsafe fn write_text(from: &str, text: *mut c_char, capacity: usize) {
    if capacity == 0 || text.is_null() {
        return;
    }
    let from: CString = text::c_string(from);
    let bytes = from.as_bytes();
    let kept = bytes.len().min(capacity - 1);
    // SAFETY: `kept` and the zero fit, as the caller promises.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), text.cast::<u8>(), kept);
        text.add(kept).write(0);
    }
}

/// How a subscriber, a client, a server or a wait set waits.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "the program's, read as numbers")]
pub enum myelin_wait {
    /// Spins for a while, then sleeps.
    MYELIN_WAIT_ADAPTIVE = 0,
    /// Spins: uses a whole core.
    MYELIN_WAIT_POLL = 1,
    /// Sleeps in the kernel.
    MYELIN_WAIT_BLOCK = 2,
    /// Learns the period of a topic and spins only for the next sample; at most 2 % of a core.
    MYELIN_WAIT_PREDICTIVE = 3,
}

pub fn wait(how: c_int) -> Result<myelin::Wait, Failure> {
    match how {
        0 => Ok(myelin::Wait::Adaptive),
        1 => Ok(myelin::Wait::Poll),
        2 => Ok(myelin::Wait::Block),
        3 => Ok(myelin::Wait::Predictive),
        how => {
            Err(Failure::setting(format_args!("wait is {how}; set it to one of enum myelin_wait")))
        }
    }
}
