//! Measures a path: what this host can see alone, and what the partner at the other end adds.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::{self, Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery};
use rustix::net::{RecvFlags, SendFlags, SocketFlags, SocketType, ipproto};
use rustix::net::{connect, recv, send, socket_with};

use super::figures::{Answered, Arrivals, Bandwidth, ClockOffset, Figures, Mtu, RoundTrips};
use super::listener::{
    Heard, Listener, MAGIC, any_of, family_of, interface_of, multicast_port, send_to_all,
};
use super::protocol::{Peer, Reply, Request, VERSION};
use super::serve::{count, send_for};

/// Measures the path to a partner's address and port.
///
/// # Errors
/// The kernel knows no way there.
pub fn measure(
    host: &str,
    peer: SocketAddr,
    domain: u32,
    nodes_use_ipv6: bool,
) -> Result<Figures, String> {
    let (own, interface, route_mtu) = route_to(peer)
        .map_err(|error| format!("no route to {host}: {}", crate::doctor::host::reason(&error)))?;
    let partner = Partner::connect(peer, domain);
    let mtu = |path| Mtu { interface: route_mtu, path };
    let mut partner = match partner {
        Ok(partner) => partner,
        Err(reason) => {
            let needs = || format!("needs a partner: run `myelin doctor --serve` on {host}");
            return Ok(Figures {
                round_trip: alone(peer),
                large: Err(needs()),
                bandwidth: Err(needs()),
                mtu: mtu(Err(needs())),
                clock: Err(needs()),
                arrivals: Err(needs()),
                partner_missing: Some(reason),
                host: host.into(),
                peer,
                own,
                interface,
                nodes_use_ipv6,
                domain,
            });
        }
    };
    let text = |error: io::Error| error.to_string();
    let round_trip = partner.round_trips().map_err(text);
    Ok(Figures {
        round_trip,
        large: partner.large_datagrams().map_err(text),
        mtu: mtu(partner.path_mtu(route_mtu).map_err(text)),
        clock: partner.clock_offset().map_err(text),
        arrivals: partner.arrivals(own, domain).map_err(text),
        // Last: it fills the queues of the path.
        bandwidth: partner.bandwidth().map_err(text),
        partner_missing: None,
        host: host.into(),
        peer,
        own,
        interface,
        nodes_use_ipv6,
        domain,
    })
}

/// This host's address towards `peer`, the interface that has it, and the MTU that the kernel
/// assumes for the path.
fn route_to(peer: SocketAddr) -> io::Result<(SocketAddr, String, u32)> {
    let socket = UdpSocket::bind((any_of(peer), 0))?;
    // Sends nothing.
    socket.connect(peer)?;
    let own = socket.local_addr()?;
    let name = interface_of(own).map(|(name, _)| name);
    let mtu = if own.is_ipv4() { sockopt::ip_mtu(&socket) } else { sockopt::ipv6_mtu(&socket) };
    Ok((own, name.unwrap_or_else(|| "?".into()), mtu?))
}

/// Round trips without a partner: by ICMP, or else by connections that the host accepts or refuses.
fn alone(peer: SocketAddr) -> Result<RoundTrips, String> {
    // Else it is not permitted, or filtered.
    if let Ok(Some(trips)) = by_icmp(peer) {
        return Ok(trips);
    }
    let mut times_us = Vec::new();
    let (mut sent, mut last) = (0, String::new());
    while sent < CONNECTIONS && (sent < 3 || !times_us.is_empty()) {
        sent += 1;
        let begin = Instant::now();
        match TcpStream::connect_timeout(&peer, ANSWER_LIMIT) {
            Err(error) if error.kind() != io::ErrorKind::ConnectionRefused => {
                last = crate::doctor::host::reason(&error);
            }
            _ => times_us.push(micros(begin)),
        }
    }
    let answered = Answered { sent, answered: times_us.len() as u64 };
    finished("TCP", answered, None, times_us).ok_or_else(|| {
        format!("no answer, neither to ICMP nor to TCP port {}: {last}", peer.port())
    })
}

/// The result, with the times in order, if anything was answered.
fn finished(
    by: &'static str,
    answered: Answered,
    arrived: Option<u64>,
    mut times_us: Vec<f64>,
) -> Option<RoundTrips> {
    times_us.sort_by(f64::total_cmp);
    (!times_us.is_empty()).then_some(RoundTrips { by, answered, arrived, times_us })
}

/// Echo requests, as ping(8) sends them; from a raw socket if the user may not use the other kind.
fn by_icmp(mut peer: SocketAddr) -> io::Result<Option<RoundTrips>> {
    let (protocol, request, reply) = match peer {
        SocketAddr::V4(_) => (ipproto::ICMP, 8, 0),
        SocketAddr::V6(_) => (ipproto::ICMPV6, 128, 129),
    };
    let make = |kind| {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        socket_with(family_of(peer), kind, flags, Some(protocol))
    };
    let (socket, is_raw) = match make(SocketType::DGRAM) {
        Ok(socket) => (socket, false),
        Err(_) => (make(SocketType::RAW)?, true),
    };
    let has_header = is_raw && peer.is_ipv4();
    peer.set_port(0);
    connect(&socket, &peer)?;
    let id = (std::process::id() as u16).to_be_bytes();
    let numbered = |number: u16| {
        let number = number.to_be_bytes();
        let mut packet = [request, 0, 0, 0, id[0], id[1], number[0], number[1]];
        // The kernel computes that of ICMPv6, which covers the addresses.
        let sum = checksum(&packet).to_be_bytes();
        (packet[2], packet[3]) = (sum[0], sum[1]);
        packet
    };
    let number_in = |packet: &[u8]| {
        // A raw socket sees the answers to others, and with IPv4 the header of IP.
        let offset = if has_header { usize::from(packet.first()? & 15) * 4 } else { 0 };
        let packet = packet.get(offset..)?;
        let is_own = packet.first() == Some(&reply) && (!is_raw || packet.get(4..6)? == id);
        let number = packet.get(6..8)?.try_into().ok()?;
        is_own.then(|| u16::from_be_bytes(number))
    };
    let send = |number: u16| {
        // One that cannot be sent is one without an answer.
        let _ = send(&socket, &numbered(number), SendFlags::empty());
    };
    let (answered, times_us) = exchange(&socket, PINGS, PING_PERIOD, send, number_in);
    Ok(finished("ICMP", answered, None, times_us))
}

/// The checksum of the Internet (RFC 1071).
fn checksum(packet: &[u8]) -> u16 {
    let words = packet.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]));
    let sum: u32 = words.sum();
    !((sum & 0xffff) + (sum >> 16)) as u16
}

/// Sends numbered packets, one each `period`, and waits for their answers. Returns the times, in
/// the order of the answers.
fn exchange(
    socket: &OwnedFd,
    packets: u16,
    period: Duration,
    mut send: impl FnMut(u16),
    number_in: impl Fn(&[u8]) -> Option<u16>,
) -> (Answered, Vec<f64>) {
    let (mut sent, mut times_us) = (Vec::new(), vec![None; packets.into()]);
    let begin = Instant::now();
    let mut buffer = [0; 2_048];
    let mut left = usize::from(packets);
    loop {
        let due = begin + period * sent.len() as u32;
        if sent.len() < packets.into() && Instant::now() >= due {
            send(sent.len() as u16);
            sent.push(Instant::now());
            continue;
        }
        let until = if sent.len() < packets.into() { due } else { due + ANSWER_LIMIT };
        if !wait(socket, until) && sent.len() == usize::from(packets) {
            break;
        }
        while let Ok((bytes, _)) = recv(socket, &mut buffer[..], RecvFlags::empty()) {
            let Some(number) = number_in(&buffer[..bytes]) else { continue };
            if let (Some(at), Some(time @ None)) =
                (sent.get(usize::from(number)), times_us.get_mut(usize::from(number)))
            {
                *time = Some(micros(*at));
                left -= 1;
            }
        }
        if left == 0 {
            break;
        }
    }
    let times: Vec<f64> = times_us.into_iter().flatten().collect();
    (Answered { sent: packets.into(), answered: times.len() as u64 }, times)
}

/// Waits until the socket has a packet; false if there is none at `until`.
fn wait(socket: &OwnedFd, until: Instant) -> bool {
    let left = until.saturating_duration_since(Instant::now());
    let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
    poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&left)).is_ok_and(|ready| ready > 0)
}

fn micros(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e6
}

/// The partner at the other end.
struct Partner {
    control: Peer,
    address: SocketAddr,
    /// The UDP ports of DDS that it has opened.
    ports: Vec<u16>,
}

impl Partner {
    fn connect(address: SocketAddr, domain: u32) -> Result<Self, String> {
        let open = || -> io::Result<Partner> {
            let stream = TcpStream::connect_timeout(&address, CONNECT_LIMIT)?;
            let mut control = Peer::new(stream)?;
            match control.ask(&Request::Hello { version: VERSION, domain })? {
                Reply::Hello { ports, .. } => Ok(Partner { control, address, ports }),
                _ => Err(io::ErrorKind::InvalidData.into()),
            }
        };
        open().map_err(|error| format!("{address}: {}", crate::doctor::host::reason(&error)))
    }

    /// A UDP socket to the partner's echo.
    fn echo(&self) -> io::Result<OwnedFd> {
        let socket = UdpSocket::bind((any_of(self.address), 0))?;
        socket.connect(self.address)?;
        socket.set_nonblocking(true)?;
        Ok(socket.into())
    }

    fn heard(&mut self) -> io::Result<Heard> {
        match self.control.ask(&Request::Heard)? {
            Reply::Heard(heard) => Ok(heard),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    fn round_trips(&mut self) -> io::Result<RoundTrips> {
        let socket = self.echo()?;
        let before = self.heard()?.echoed;
        let (answered, times_us) = echoed(&socket, 64, ECHOES, PING_PERIOD);
        let arrived = Some(self.heard()?.echoed - before);
        finished("UDP", answered, arrived, times_us)
            .ok_or_else(|| io::Error::other("the partner's UDP port does not answer"))
    }

    /// Datagrams of the size that DDS uses by default, one after the other.
    fn large_datagrams(&mut self) -> io::Result<Answered> {
        let socket = self.echo()?;
        let mut answered = 0;
        for _ in 0..LARGE {
            answered += echoed(&socket, LARGE_BYTES, 1, Duration::ZERO).0.answered;
        }
        Ok(Answered { sent: LARGE, answered })
    }

    /// The largest packet that is answered whole, found by halving.
    fn path_mtu(&mut self, most: u32) -> io::Result<u32> {
        let socket = self.echo()?;
        // No fragments, and no memory of what routers have answered.
        let least = match self.address {
            SocketAddr::V4(_) => {
                sockopt::set_ip_mtu_discover(&socket, Ipv4PathMtuDiscovery::PROBE)?;
                MTU_MIN
            }
            SocketAddr::V6(_) => {
                sockopt::set_ipv6_mtu_discover(&socket, Ipv6PathMtuDiscovery::PROBE)?;
                MTU_MIN_V6
            }
        };
        let passes = |mtu: u32| {
            let bytes = (mtu - udp_header_bytes(self.address)) as usize;
            (0..TRIES).any(|_| echoed(&socket, bytes, 1, Duration::ZERO).0.answered > 0)
        };
        let most = most.min(IP_BYTES_MAX);
        if passes(most) {
            return Ok(most);
        }
        let (mut passing, mut failing) = (least, most);
        if !passes(passing) {
            let reason = format!("not even packets of {least} bytes are answered");
            return Err(io::Error::other(reason));
        }
        while failing - passing > 1 {
            let middle = passing.midpoint(failing);
            if passes(middle) { passing = middle } else { failing = middle }
        }
        Ok(passing)
    }

    /// By the exchange that took the shortest time.
    fn clock_offset(&mut self) -> io::Result<ClockOffset> {
        let mut best: Option<ClockOffset> = None;
        for _ in 0..CLOCK_EXCHANGES {
            let (at, begin) = (SystemTime::now(), Instant::now());
            let Reply::Time { ns } = self.control.ask(&Request::Time)? else {
                return Err(io::ErrorKind::InvalidData.into());
            };
            let half_us = micros(begin) / 2.0;
            let own = at.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as i128;
            let offset_us = (i128::from(ns) - own) as f64 * 1e-3 - half_us;
            if best.is_none_or(|best| half_us < best.error_us) {
                best = Some(ClockOffset { offset_us, error_us: half_us });
            }
        }
        best.ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Datagrams to the ports of DDS, there and back.
    fn arrivals(&mut self, own: SocketAddr, domain: u32) -> io::Result<Arrivals> {
        let listener = Listener::open(own, self.address.ip(), domain, None)?;
        send_to_all(own, self.address, domain, &self.ports)?;
        self.control.ask(&Request::Send { ports: listener.ports().to_vec() })?;
        // The answer has come by the same path, but may have overtaken delayed datagrams.
        let give_up = Instant::now() + ANSWER_LIMIT;
        let is_heard = |port: &u16, heard: &Heard| match *port == multicast_port(domain) {
            true => heard.multicast > 0,
            false => heard.ports.contains_key(port),
        };
        let all = |ports: &[u16], heard: &Heard| ports.iter().all(|port| is_heard(port, heard));
        loop {
            let (there, here) = (self.heard()?, listener.heard());
            let is_complete = all(&self.ports, &there) && all(listener.ports(), &here);
            if is_complete || Instant::now() > give_up {
                let here = (listener.ports().to_vec(), here);
                return Ok(Arrivals { there: (self.ports.clone(), there), here });
            }
            std::thread::sleep(LOOK);
        }
    }

    fn bandwidth(&mut self) -> io::Result<Bandwidth> {
        let connection = || Peer::new(TcpStream::connect_timeout(&self.address, CONNECT_LIMIT)?);
        let mbit = |(bytes, ns): (u64, u64)| bytes as f64 * 8e3 / ns.max(1) as f64;
        let mut to = connection()?;
        to.send(&Request::Sink)?;
        send_for(to.stream(), BANDWIDTH_TIME)?;
        to.stream().shutdown(Shutdown::Write)?;
        let Some(Reply::Counted { bytes, ns }) = to.receive()? else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        let mut from = connection()?;
        from.send(&Request::Source { ms: BANDWIDTH_TIME.as_millis() as u64 })?;
        let from_mbit = mbit(count(from.bytes())?);
        Ok(Bandwidth { to_mbit: mbit((bytes, ns)), from_mbit })
    }
}

/// Sends numbered datagrams of so many bytes to an echo.
fn echoed(
    socket: &OwnedFd,
    bytes: usize,
    datagrams: u16,
    period: Duration,
) -> (Answered, Vec<f64>) {
    // Answers to earlier datagrams that came late.
    while recv(socket, &mut [0; 1][..], RecvFlags::empty()).is_ok() {}
    let mut datagram = vec![0; bytes.max(MAGIC.len() + 2)];
    datagram[..MAGIC.len()].copy_from_slice(MAGIC);
    let number_at = MAGIC.len()..MAGIC.len() + 2;
    let number = number_at.clone();
    let send = |value: u16| {
        datagram[number.clone()].copy_from_slice(&value.to_be_bytes());
        // One that is too large for the interface is one without an answer.
        let _ = send(socket, &datagram, SendFlags::empty());
    };
    exchange(socket, datagrams, period, send, |answer| {
        let number = answer.get(number_at.clone())?.try_into().ok()?;
        Some(u16::from_be_bytes(number))
    })
}

/// Headers of IP and UDP.
pub fn udp_header_bytes(address: SocketAddr) -> u32 {
    if address.is_ipv4() { 28 } else { 48 }
}

const PINGS: u16 = 100;
const ECHOES: u16 = 200;
const PING_PERIOD: Duration = Duration::from_millis(5);
const CONNECTIONS: u64 = 20;
/// CycloneDDS's default in Myelin is a little more; each is 44 fragments of Ethernet.
const LARGE_BYTES: usize = 65_000;
const LARGE: u64 = 20;
const CLOCK_EXCHANGES: u32 = 20;
/// A lost packet costs this much time.
const ANSWER_LIMIT: Duration = Duration::from_millis(500);
const CONNECT_LIMIT: Duration = Duration::from_secs(2);
const BANDWIDTH_TIME: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(20);
/// Every host must accept so much (RFC 791).
const MTU_MIN: u32 = 576;
/// Every path must carry so much (RFC 8200).
const MTU_MIN_V6: u32 = 1_280;
const IP_BYTES_MAX: u32 = 65_535;
const TRIES: u32 = 3;
