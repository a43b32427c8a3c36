//! The UDP ports of a DDS domain, opened at either end to see which datagrams arrive. The partner
//! echoes datagrams, too.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with};
use serde::{Deserialize, Serialize};

/// What has arrived.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heard {
    /// Datagrams that were sent to a port of this host, by port.
    pub ports: BTreeMap<u16, u64>,
    /// Datagrams that were sent to the multicast group.
    pub multicast: u64,
    /// Datagrams that were echoed.
    pub echoed: u64,
}

/// Open ports. Dropping it closes them.
pub struct Listener {
    ports: Vec<u16>,
    heard: Arc<Mutex<Heard>>,
    closing: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    /// Opens the ports of a domain: that of multicast, and those of the first processes; and one that
    /// the kernel chooses, as for DDS processes without peers. Ports that a program has open are left out. Counts only datagrams of `peer`.
    pub fn open(
        own: SocketAddr,
        peer: IpAddr,
        domain: u32,
        echo_port: Option<u16>,
    ) -> io::Result<Self> {
        let is_shared = |port| port == multicast_port(domain);
        let wanted = ports_of(domain).chain([0]);
        let any = any_of(own);
        let mut sockets: Vec<UdpSocket> =
            wanted.filter_map(|port| open((any, port).into(), is_shared(port)).ok()).collect();
        let port_of = |socket: &UdpSocket| socket.local_addr().map(|address| address.port());
        let ports: Vec<u16> = sockets.iter().map(port_of).collect::<io::Result<_>>()?;
        let group = sockets.iter().zip(&ports).find(|(_, port)| **port == multicast_port(domain));
        if let Some((socket, _)) = group {
            // Without an interface for multicast there is none to hear.
            let _ = match own {
                SocketAddr::V4(own) => sockopt::set_ip_add_membership(socket, &GROUP, own.ip()),
                SocketAddr::V6(_) => {
                    let index = interface_of(own).map_or(0, |(_, index)| index);
                    sockopt::set_ipv6_add_membership(socket, &GROUP_V6, index)
                }
            };
        }
        // At the address that is asked, so that the answers come from it.
        let at = |port| {
            let mut at = own;
            at.set_port(port);
            at
        };
        let echo = echo_port.map(|port| open(at(port), false)).transpose()?;
        let has_echo = echo.is_some();
        sockets.extend(echo);
        let heard = Arc::new(Mutex::new(Heard::default()));
        let closing = Arc::new(AtomicBool::new(false));
        let (counts, closed) = (Arc::clone(&heard), Arc::clone(&closing));
        let all = ports.clone();
        let thread = std::thread::Builder::new().spawn(move || {
            let mut buffer = vec![0; DATAGRAM_BYTES_MAX];
            // ORDER: relaxed, because nothing else is shared by it.
            while !closed.load(Ordering::Relaxed) {
                let wanted = |socket| PollFd::new(socket, PollFlags::IN);
                let mut ready: Vec<PollFd<'_>> = sockets.iter().map(wanted).collect();
                let _ = poll(&mut ready, Some(&LOOK));
                for (at, socket) in sockets.iter().enumerate() {
                    while let Ok((bytes, from)) = socket.recv_from(&mut buffer) {
                        let datagram = &buffer[..bytes];
                        if from.ip() != peer || !datagram.starts_with(MAGIC) {
                            continue;
                        }
                        let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
                        if has_echo && at + 1 == sockets.len() {
                            counts.echoed += u64::from(socket.send_to(datagram, from).is_ok());
                        } else if datagram.get(MAGIC.len()) == Some(&BY_MULTICAST) {
                            counts.multicast += 1;
                        } else {
                            *counts.ports.entry(all[at]).or_default() += 1;
                        }
                    }
                }
            }
        })?;
        Ok(Listener { ports, heard, closing, thread: Some(thread) })
    }

    /// The open ports, also that of multicast.
    pub fn ports(&self) -> &[u16] {
        &self.ports
    }

    /// What has arrived until now.
    pub fn heard(&self) -> Heard {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.closing.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Sends datagrams to these ports of `peer`, but for that of multicast, to which it sends by multicast.
/// A few of each, because some may be lost.
pub fn send_to_all(
    mut own: SocketAddr,
    mut peer: SocketAddr,
    domain: u32,
    ports: &[u16],
) -> io::Result<()> {
    own.set_port(0);
    let socket = UdpSocket::bind(own)?;
    match own {
        SocketAddr::V4(own) => {
            sockopt::set_ip_multicast_if(&socket, own.ip())?;
            sockopt::set_ip_multicast_ttl(&socket, MULTICAST_TTL)?;
        }
        SocketAddr::V6(_) => {
            let index = interface_of(own).map_or(0, |(_, index)| index);
            sockopt::set_ipv6_multicast_if(&socket, index)?;
        }
    }
    let datagram = |kind| [MAGIC, &[kind][..]].concat();
    for _ in 0..REPEATS {
        for port in ports.iter().filter(|port| **port != multicast_port(domain)) {
            // A refused datagram is one that does not arrive.
            peer.set_port(*port);
            let _ = socket.send_to(&datagram(BY_PORT), peer);
        }
        let _ = socket.send_to(&datagram(BY_MULTICAST), (group(own), multicast_port(domain)));
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

fn open(at: SocketAddr, is_shared: bool) -> io::Result<UdpSocket> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket: OwnedFd = socket_with(family_of(at), SocketType::DGRAM, flags, None)?;
    if at.is_ipv6() {
        // The same port of IPv4 is another socket's.
        sockopt::set_ipv6_v6only(&socket, true)?;
    }
    // DDS programs share the port of multicast in this way.
    sockopt::set_socket_reuseaddr(&socket, is_shared)?;
    bind(&socket, &at)?;
    Ok(UdpSocket::from(socket))
}

/// The unspecified address of the same version of IP.
pub fn any_of(address: SocketAddr) -> IpAddr {
    match address {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    }
}

pub fn family_of(address: SocketAddr) -> AddressFamily {
    if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 }
}

/// The interface that has this address of this host, and its index.
pub fn interface_of(own: SocketAddr) -> Option<(String, u32)> {
    let scope = match own {
        SocketAddr::V6(own) if own.scope_id() != 0 => Some(own.scope_id()),
        _ => None,
    };
    let mut all = if_addrs::get_if_addrs().ok()?.into_iter();
    let is_it = |it: &if_addrs::Interface| {
        it.ip() == own.ip() && scope.is_none_or(|scope| it.index == Some(scope))
    };
    all.find(is_it).and_then(|it| Some((it.name, it.index?)))
}

/// The port of the domain's multicast, and those of its first processes (RTPS 2.3, 9.6.1.1).
fn ports_of(domain: u32) -> impl Iterator<Item = u16> {
    [0].into_iter().chain(10..10 + 2 * PROCESSES).map(move |it| multicast_port(domain) + it)
}

/// The port of DDS's discovery by multicast.
pub fn multicast_port(domain: u32) -> u16 {
    7_400 + 250 * domain as u16
}

/// The group of DDS's discovery, for a host with this address.
pub fn group(own: SocketAddr) -> IpAddr {
    if own.is_ipv4() { GROUP.into() } else { GROUP_V6.into() }
}

const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 0, 1);
/// As CycloneDDS has it.
const GROUP_V6: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0xffff, 0xefff, 1);
/// The highest domain whose ports exist.
pub const DOMAIN_MAX: u32 = 230;
/// The first bytes of all datagrams. A DDS program ignores them: its own begin with `RTPS`.
pub const MAGIC: &[u8] = b"MyelinDoctor";
const BY_PORT: u8 = b'P';
const BY_MULTICAST: u8 = b'M';
const PROCESSES: u16 = 4;
const MULTICAST_TTL: u32 = 32;
const REPEATS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(10);
const DATAGRAM_BYTES_MAX: usize = 65_535;
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
