//! Two hosts in namespaces of this one, joined by a veth pair.
//!
//! ```text
//! agent, own namespaces ── link0 ─────────── link0 ── agent, own namespaces
//!                   198.18.0.1/30  veth  198.18.0.2/30
//! ```
//! Each has its own network, mounts (`/dev/shm` and `/sys`), host name and System V objects.
//! Nothing has a name outside, so the namespaces vanish with the agents, and the link with the
//! namespaces. The addresses are from the range for benchmarks (RFC 2544, RFC 6890) and visible
//! only inside.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Result as Anyhow;
use myelin_bench_kit::clock;
use myelin_bench_kit::protocol::Network;

use super::remote::{Connection, agent};
use crate::observe::CutRecord;
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
pub(super) fn networks() -> [Network; 2] {
    let [ping, pong] = ADDRESSES.map(IpAddr::from);
    let network = |own, peer| Network { interface: LINK.into(), own, peer, port: 0 };
    [network(ping, pong), network(pong, ping)]
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

#[derive(Debug)]
pub(crate) struct VethPair {
    spaces: [File; 2],
}

impl VethPair {
    /// Makes the pair between the network namespaces of two processes, and sets the addresses of
    /// both ends.
    pub(super) fn join(pids: &[u32]) -> Result<Self, String> {
        let &[ping, pong] = pids else {
            return Err("two hosts have two agents".into());
        };
        let space = |pid: u32| {
            File::open(format!("/proc/{pid}/ns/net")).map_err(|error| format!("namespace: {error}"))
        };
        let pair = VethPair { spaces: [space(ping)?, space(pong)?] };
        // Makes both ends in their namespaces at once, so that a killed lab leaves nothing behind.
        let [end, other] = [ping, pong].map(|pid| format!("name {LINK} netns {pid}"));
        run_in(None, &format!("ip link add {end} type veth peer {other}"))?;
        for (host, address) in ADDRESSES.iter().enumerate() {
            pair.run(host, "ip link set lo up")?;
            pair.run(host, &format!("ip address add {address}/30 dev {LINK}"))?;
            // Without this the link carries only IPv6's own traffic.
            pair.run(host, &format!("ip link set {LINK} addrgenmode none"))?;
        }
        for host in 0..2 {
            pair.raise(host)?;
        }
        Ok(pair)
    }

    /// Shapes the link as a scenario asks, each way.
    pub(crate) fn shape(&self, link: &Link) -> Result<(), LinkError> {
        for host in 0..2 {
            self.run(host, &format!("ip link set {LINK} mtu {}", link.mtu))?;
            // At first there is no queueing discipline, and deleting it fails.
            let _ = self.run(host, &format!("tc qdisc del dev {LINK} root"));
            let add = |discipline: String| {
                self.run(host, &format!("tc qdisc add dev {LINK} root {discipline}"))
            };
            if let Some(key) = link.netem_keys().next() {
                add(netem(link)).map_err(|reason| {
                    let is_unknown = reason.contains("qdisc kind is unknown");
                    let lacking = "this kernel has no netem".to_owned();
                    LinkError { key: Some(key), reason: if is_unknown { lacking } else { reason } }
                })?;
            } else if link.rate_mbit > 0.0 {
                add(tbf(link)).map_err(|reason| LinkError { key: Some("rate_mbit"), reason })?;
            }
        }
        Ok(())
    }

    /// Takes the link down `cut.at_s` after `start_ns` of CLOCK_MONOTONIC, and up again.
    pub(crate) fn cut(self: &Arc<Self>, start_ns: u64, cut: Cut) -> LinkCut {
        let (stop, stopped) = mpsc::channel();
        let pair = Arc::clone(self);
        let thread = std::thread::spawn(move || {
            let wait = |until_ns: u64| {
                let left = Duration::from_nanos(until_ns.saturating_sub(clock::monotonic_ns()));
                stopped.recv_timeout(left) == Err(RecvTimeoutError::Timeout)
            };
            if !wait(start_ns + (cut.at_s * 1e9) as u64) {
                return Ok(None);
            }
            pair.run(PONG, &format!("ip link set {LINK} down"))?;
            let at_ns = clock::monotonic_ns();
            wait(at_ns + (cut.for_s * 1e9) as u64);
            pair.raise(PONG)?;
            Ok(Some(CutRecord { at_ns, for_ns: clock::monotonic_ns() - at_ns }))
        });
        LinkCut { stop: Some(stop), thread: Some(thread) }
    }

    /// Takes one end up, and routes all traffic that is not local over it, as on a host with one
    /// network card. So packets to multicast groups use it, too.
    fn raise(&self, host: usize) -> Result<(), String> {
        self.run(host, &format!("ip link set {LINK} up"))?;
        self.run(host, &format!("ip route replace default dev {LINK}"))
    }

    fn run(&self, host: usize, words: &str) -> Result<(), String> {
        run_in(Some(&self.spaces[host]), words)
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

/// The parameters for other effects on packets (tc-netem(8)). Its queue also holds the delayed
/// packets.
fn netem(link: &Link) -> String {
    let Link { rate_mbit, delay_ms, jitter_ms, loss_percent, mtu, .. } = link;
    let mut words = String::from("netem");
    if *delay_ms > 0.0 {
        words += &format!(" delay {delay_ms}ms");
    }
    if *jitter_ms > 0.0 {
        words += &format!(" {jitter_ms}ms distribution normal");
    }
    if *loss_percent > 0.0 {
        words += &format!(" loss {loss_percent}%");
    }
    let rate = if *rate_mbit > 0.0 { rate_mbit * 1e6 } else { UNLIMITED_BITS_PER_S };
    let on_its_way = rate / 8.0 * (delay_ms + jitter_ms) * 1e-3 / f64::from(*mtu);
    if *rate_mbit > 0.0 {
        words += &format!(" rate {rate}bit 24");
    }
    words + &format!(" limit {}", QUEUE_PACKETS + on_its_way as u64)
}

/// Runs a program of iproute2, in a network namespace if one is given.
fn run_in(space: Option<&File>, words: &str) -> Result<(), String> {
    let (program, arguments) = words.split_once(' ').unwrap_or((words, ""));
    let mut command = Command::new(program);
    command.args(arguments.split(' '));
    if let Some(space) = space.map(AsRawFd::as_raw_fd) {
        // SAFETY: one async-signal-safe system call between fork and exec; the descriptor is open.
        unsafe {
            command.pre_exec(move || check(libc::setns(space, libc::CLONE_NEWNET)));
        }
    }
    let output = command.output().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            format!("{program} is not installed: apt-get install iproute2")
        }
        _ => format!("{program}: {error}"),
    })?;
    if output.status.success() {
        return Ok(());
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    let complaint = complaint.lines().next().unwrap_or("no reason given");
    Err(format!("{words}: {complaint}"))
}

/// A cut takes pong's end down. Ping's end then loses its carrier, as when a cable is unplugged.
const PONG: usize = 1;
/// Bytes of a frame's header, as the kernel counts it.
const ETHERNET_BYTES: u32 = 14;
/// Size of the bucket, as a time. If timers are later than this, the rate drops. On a busy guest
/// with two CPUs a stream over 1 Gbit/s reached 320 to 840 Mbit/s with 0.1 ms, 560 to 620 with 0.5
/// ms, and 944 to 956 with 1 ms, which is the maximum.
const BURST_S: f64 = 1e-3;
/// The kernel's default for a network card (`txqueuelen`).
const QUEUE_PACKETS: u64 = 1000;
/// A rate that does not limit anything; only the queue is needed.
const UNLIMITED_BITS_PER_S: f64 = 10e9;
const LINK: &str = "link0";
const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(198, 18, 0, 1), Ipv4Addr::new(198, 18, 0, 2)];

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
