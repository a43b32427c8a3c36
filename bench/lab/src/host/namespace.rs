//! Two hosts in namespaces of this one, joined by a veth pair, by an emulated link, or by a router
//! between two of these.
//!
//! ```text
//! agent, own namespaces ── link0 ─────────── link0 ── agent, own namespaces
//!                   198.18.0.1/30        198.18.0.2/30
//!
//! agent ── link0 ─────────── link0 ── router ── link1 ─────────── link0 ── agent
//!  198.18.0.1/30      198.18.0.2/30          198.18.1.2/30      198.18.1.1/30
//! ```
//! Each host has its own network, mounts (`/dev/shm` and `/sys`), host name and System V objects. The
//! router is a network without a process. Nothing has a name outside, so the namespaces vanish with
//! the agents and the lab, and the links with the namespaces. The addresses are from the range for
//! benchmarks (RFC 2544, RFC 6890) and visible only inside.

use std::ffi::CStr;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::process::CommandExt;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Result as Anyhow;
use myelin_bench_kit::clock;
use myelin_bench_kit::protocol::Network;
use myelin_bench_link::{EmulatedLink, End, Namespace};

use super::remote::{Connection, agent};
use crate::observe::{CutRecord, LinkRecord};
use crate::scenario::{Cut, Link};
use crate::tuning::check;

/// Names of the two hosts, ping's first.
pub(super) const NAMES: [&str; 2] = ["myelin-a", "myelin-b"];

/// Starts an agent in namespaces of its own.
pub(super) fn connect(name: &'static str) -> Anyhow<Connection> {
    let mut command = agent()?;
    // The folder is on the file system that vanishes with the namespace.
    command.arg("--folder").arg(format!("/dev/shm/{name}"));
    // SAFETY: only async-signal-safe calls (raw system calls) between fork and exec.
    unsafe {
        command.pre_exec(move || unshare(name));
    }
    let denied = |error: &anyhow::Error| {
        let cause = error.downcast_ref::<io::Error>();
        cause.is_some_and(|cause| cause.kind() == io::ErrorKind::PermissionDenied)
    };
    Connection::open(name, &mut command).map_err(|error| if denied(&error) {
        anyhow::anyhow!(
            "no permission to make network namespaces: run as root (CAP_SYS_ADMIN), or use real \
             hosts with --hosts ssh:a,ssh:b"
        )
    } else {
        error
    })
}

/// Moves this process into new namespaces.
fn unshare(name: &str) -> io::Result<()> {
    let spaces = libc::CLONE_NEWNET | libc::CLONE_NEWNS | libc::CLONE_NEWUTS | libc::CLONE_NEWIPC;
    // SAFETY: the call takes only flags.
    check(unsafe { libc::unshare(spaces) })?;
    // Mounts from here on are visible only in the new namespace.
    mount(c"none", c"/", None, libc::MS_REC | libc::MS_PRIVATE)?;
    mount(c"tmpfs", c"/dev/shm", Some(c"tmpfs"), libc::MS_NOSUID | libc::MS_NODEV)?;
    // The /sys of the new network. If it cannot be mounted, the old one stays visible.
    let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    let _ = mount(c"sysfs", c"/sys", Some(c"sysfs"), flags);
    // SAFETY: the name is valid for its length.
    check(unsafe { libc::sethostname(name.as_ptr().cast(), name.len()) })
}

fn mount(what: &CStr, place: &CStr, kind: Option<&CStr>, flags: libc::c_ulong) -> io::Result<()> {
    let kind = kind.map_or(std::ptr::null(), CStr::as_ptr);
    // SAFETY: the strings are valid for the call; no kind and no data are null.
    check(unsafe { libc::mount(what.as_ptr(), place.as_ptr(), kind, flags, std::ptr::null()) })
}

/// The network from each host to the other.
pub(super) fn networks(routed: bool) -> [Network; 2] {
    let [ping, pong] = addresses(routed).map(IpAddr::from);
    let network = |own, peer| Network { interface: LINK.into(), own, peer, port: 0 };
    [network(ping, pong), network(pong, ping)]
}

/// The addresses of ping's host and pong's.
fn addresses(routed: bool) -> [Ipv4Addr; 2] {
    if routed { [PING_ADDRESS, ROUTED_PONG_ADDRESS] } else { [PING_ADDRESS, PONG_ADDRESS] }
}

/// Whether the network of this process has incomplete datagrams. If fragments are lost, a kernel
/// waits 30 s for them; when waiting datagrams take 4 MiB, it does not assemble new ones.
pub(super) fn holds_fragments(pid: u32) -> bool {
    let statistics = std::fs::read_to_string(format!("/proc/{pid}/net/sockstat"));
    statistics.is_ok_and(|text| incomplete_datagrams(&text) > 0)
}

/// Reads the number from the text of /proc/net/sockstat.
fn incomplete_datagrams(statistics: &str) -> u64 {
    let line = statistics.lines().find_map(|line| line.strip_prefix("FRAG: inuse "));
    line.and_then(|rest| rest.split(' ').next()?.parse().ok()).unwrap_or(0)
}

/// What joins the two hosts. Dropping it does not remove veth pairs; making another path does.
pub(crate) struct NetworkPath {
    /// Ping's host and pong's.
    hosts: [Namespace; 2],
    /// Between the two, if there is one.
    router: Option<Namespace>,
    /// From ping's host to pong's; empty if the links are veth pairs.
    emulated: Vec<EmulatedLink>,
}

/// An interface on the path, and its address.
type Interface<'a> = (&'a Namespace, &'static str, Ipv4Addr);

impl NetworkPath {
    /// Makes the path between the network namespaces of two processes, and sets all addresses. It
    /// replaces an earlier path.
    pub(super) fn make(pids: &[u32], link: &Link) -> Result<Self, LinkError> {
        let &[ping, pong] = pids else {
            return Err(LinkError::from("two hosts have two agents".to_owned()));
        };
        let failed = |error: io::Error| LinkError::from(format!("namespace: {error}"));
        let space = |pid| Namespace::of_process(pid).map_err(failed);
        let hosts = [space(ping)?, space(pong)?];
        for host in &hosts {
            // At first there is none.
            let _ = host.run(&format!("ip link del {LINK}"));
        }
        let router = link.routed.then(Namespace::new).transpose().map_err(failed)?;
        let mut path = NetworkPath { hosts, router, emulated: Vec::new() };
        if let Some(router) = &path.router {
            router.enter(|| std::fs::write(IP_FORWARD, "1")).map_err(failed)?;
        }
        let mut emulated = Vec::new();
        for (ends, pid) in path.hops().into_iter().zip([ping, pong]) {
            if link.is_emulated() {
                let ends = ends.map(|(namespace, interface, _)| End { namespace, interface });
                let failed = |error: io::Error| LinkError {
                    key: link.emulated_keys().next(),
                    reason: error.to_string(),
                };
                emulated.push(EmulatedLink::between(ends).map_err(failed)?);
                continue;
            }
            // Makes both ends in their namespaces at once, so that a killed lab leaves nothing
            // behind. The end whose host is a process is named by it.
            let [near, far] = ends;
            let (pid, (space, own, _), (_, peer, _)) =
                if path.router.is_none() { (pong, near, far) } else { (pid, far, near) };
            let pair = format!("type veth peer name {peer} netns {pid}");
            space.run(&format!("ip link add name {own} {pair}"))?;
        }
        path.emulated = emulated;
        for (space, interface, address) in path.hops().concat() {
            space.run("ip link set lo up")?;
            space.run(&format!("ip address add {address}/30 dev {interface}"))?;
            // Without this the link carries IPv6's own traffic, too.
            space.run(&format!("ip link set {interface} addrgenmode none"))?;
            space.run(&format!("ip link set {interface} up"))?;
        }
        path.route(0)?;
        path.route(1)?;
        Ok(path)
    }

    /// Whether it is of the kind that `link` needs; a path of another kind must be made anew.
    pub(super) fn suits(&self, link: &Link) -> bool {
        self.router.is_some() == link.routed && self.emulated.is_empty() != link.is_emulated()
    }

    /// The two ends of each link. With a router the first end is the host's, the second the
    /// router's.
    fn hops(&self) -> Vec<[Interface<'_>; 2]> {
        let [ping, pong] = &self.hosts;
        match &self.router {
            None => vec![[(ping, LINK, PING_ADDRESS), (pong, LINK, PONG_ADDRESS)]],
            Some(router) => vec![
                [(ping, LINK, PING_ADDRESS), (router, LINK, PONG_ADDRESS)],
                [(pong, LINK, ROUTED_PONG_ADDRESS), (router, ROUTER_LINK, ROUTER_ADDRESS)],
            ],
        }
    }

    /// Shapes each link as a scenario asks, each way.
    pub(crate) fn shape(&self, link: &Link) -> Result<(), LinkError> {
        let wrong = |key| move |reason| LinkError { key: Some(key), reason };
        for (space, interface, _) in self.hops().concat() {
            let mtu = format!("ip link set {interface} mtu {}", link.mtu);
            space.run(&mtu).map_err(wrong("mtu"))?;
            if self.emulated.is_empty() {
                // At first there is no queueing discipline, and deleting it fails.
                let _ = space.run(&format!("tc qdisc del dev {interface} root"));
                if link.rate_mbit > 0.0 {
                    let add = format!("tc qdisc add dev {interface} root {}", tbf(link));
                    space.run(&add).map_err(wrong("rate_mbit"))?;
                }
            }
        }
        Ok(())
    }

    /// Sets the conditions for a run. The nth frame of a direction has the same fate in each run
    /// with this seed.
    pub(super) fn begin_run(&self, link: &Link, seed: u64) -> Result<(), String> {
        for (at, emulated) in self.emulated.iter().enumerate() {
            let done = emulated.shape(link.conditions(), 2 * seed + at as u64);
            done.map_err(|(field, text)| format!("network.{field}: {text}"))?;
        }
        Ok(())
    }

    /// What the emulated links have done to frames in this run; `None` if there is none.
    pub(crate) fn record(&self) -> Option<LinkRecord> {
        let frames = self.emulated.iter().map(EmulatedLink::counts).collect();
        let cpu_ns = self.emulated.iter().map(EmulatedLink::cpu_ns).sum();
        (!self.emulated.is_empty()).then_some(LinkRecord { frames, cpu_ns })
    }

    /// Takes the link down `cut.at_s` after `start_ns` of CLOCK_MONOTONIC, and up again.
    pub(crate) fn cut(self: &Arc<Self>, start_ns: u64, cut: Cut) -> LinkCut {
        let (stop, stopped) = mpsc::channel();
        let path = Arc::clone(self);
        let thread = std::thread::spawn(move || {
            let wait = |until_ns: u64| {
                let left = Duration::from_nanos(until_ns.saturating_sub(clock::monotonic_ns()));
                stopped.recv_timeout(left) == Err(RecvTimeoutError::Timeout)
            };
            if !wait(start_ns + (cut.at_s * 1e9) as u64) {
                return Ok(None);
            }
            path.set_up(false)?;
            let at_ns = clock::monotonic_ns();
            wait(at_ns + (cut.for_s * 1e9) as u64);
            path.set_up(true)?;
            Ok(Some(CutRecord { at_ns, for_ns: clock::monotonic_ns() - at_ns }))
        });
        LinkCut { stop: Some(stop), thread: Some(thread) }
    }

    /// Takes pong's end down or up. The other end loses its carrier, as when a cable is unplugged.
    fn set_up(&self, up: bool) -> Result<(), String> {
        if let Some(emulated) = self.emulated.last() {
            emulated.set_up(up).map_err(|error| error.to_string())?;
        }
        let state = if up { "up" } else { "down" };
        self.hosts[PONG].run(&format!("ip link set {LINK} {state}"))?;
        // The kernel forgets the routes of an interface that is down.
        if up { self.route(PONG) } else { Ok(()) }
    }

    /// Routes all traffic of a host that is not local over its link, as on a host with one network
    /// card. So packets to multicast groups use it, too. A router does not forward these.
    fn route(&self, host: usize) -> Result<(), String> {
        let gateway = if host == PONG { ROUTER_ADDRESS } else { PONG_ADDRESS };
        let via = self.router.as_ref().map_or(String::new(), |_| format!("via {gateway} "));
        self.hosts[host].run(&format!("ip route replace default {via}dev {LINK}"))
    }
}

/// Why a link cannot be as requested.
#[derive(Debug)]
pub(crate) struct LinkError {
    /// The key of `[network]` that causes the error, if there is one.
    pub key: Option<&'static str>,
    pub reason: String,
}

impl From<String> for LinkError {
    fn from(reason: String) -> Self {
        LinkError { key: None, reason }
    }
}

/// A link that goes down and up again. Dropping it takes the link up.
pub(crate) struct LinkCut {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<Result<Option<CutRecord>, String>>>,
}

impl LinkCut {
    /// Ends the cut and returns its times. A cut in progress ends now; one in the future never
    /// happens.
    pub(crate) fn end(mut self) -> Result<Option<CutRecord>, String> {
        self.join().expect("joined here and when dropped alone")
    }

    fn join(&mut self) -> Option<Result<Option<CutRecord>, String>> {
        self.stop = None;
        let died = |_| Err("a thread of the lab panicked".into());
        Some(self.thread.take()?.join().unwrap_or_else(died))
    }
}

impl Drop for LinkCut {
    fn drop(&mut self) {
        self.join();
    }
}

/// The parameters for a limited rate: a token bucket (tc-tbf(8)). A frame takes 24 bytes more than
/// the kernel counts, as on Ethernet (preamble, check sequence, gap). Up to 1000 packets wait in
/// the queue, as in that of a network card.
fn tbf(link: &Link) -> String {
    let frame = link.mtu + ETHERNET_BYTES;
    let bits_per_s = link.rate_mbit * 1e6;
    let burst = ((bits_per_s / 8.0 * BURST_S) as u64).max(2 * u64::from(frame));
    let limit = u64::from(frame) * QUEUE_PACKETS;
    format!("tbf rate {bits_per_s}bit burst {burst} limit {limit} overhead 24 linklayer ethernet")
}

/// The host whose end a cut takes down.
const PONG: usize = 1;
/// Bytes of a frame's header, as the kernel counts it.
const ETHERNET_BYTES: u32 = 14;
/// Size of the bucket, as a time. If timers are later than this, the rate drops. On a busy guest
/// with two CPUs a stream over 1 Gbit/s reached 320 to 840 Mbit/s with 0.1 ms, 560 to 620 with 0.5
/// ms, and 944 to 956 with 1 ms, which is the maximum.
const BURST_S: f64 = 1e-3;
/// The kernel's default for a network card (`txqueuelen`).
const QUEUE_PACKETS: u64 = 1000;
const LINK: &str = "link0";
/// The router's interface to pong's host.
const ROUTER_LINK: &str = "link1";
const PING_ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
/// Pong's, or the router's towards ping.
const PONG_ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);
const ROUTED_PONG_ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 18, 1, 1);
const ROUTER_ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 18, 1, 2);
const IP_FORWARD: &str = "/proc/sys/net/ipv4/ip_forward";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn incomplete_datagrams_are_read_from_the_statistics_of_sockets() {
        let statistics = "UDP: inuse 3 mem 0\nRAW: inuse 0\nFRAG: inuse 64 memory 4194816\n";
        assert_eq!(incomplete_datagrams(statistics), 64);
        for none in ["FRAG: inuse 0 memory 0\n", "UDP: inuse 3 mem 0\n", ""] {
            assert_eq!(incomplete_datagrams(none), 0, "{none:?}");
        }
    }
}
