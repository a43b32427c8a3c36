//! UNIX datagram sockets and UDP, over the loopback interface or to another host. Each direction
//! has its own pair of sockets, so that credits, which flow back, never mix with messages.
//!
//! ```text
//! small message   message                               up to FRAGMENT_BYTES: the bare datagram
//! large message   number(4) index(4) part │ number …    parts of FRAGMENT_BYTES, the last shorter
//! credit          number(4) index(4)                    `index` parts of message `number` are read
//! ```
//! A UNIX socket blocks its writer while the reader's queue is full. UDP drops datagrams instead.
//! So after each *burst* of parts (as many as certainly fit into the socket's buffer) the writer
//! waits for a credit. A message of one burst or less needs none. The number distinguishes the
//! parts of an abandoned message from those of the next one.
//!
//! While the network to the other host is interrupted, messages are lost like any datagram.
//!
//! Happens-before: the kernel orders a send before the receive that returns its bytes.

use std::io::{IoSlice, IoSliceMut};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixDatagram;
use std::rc::Rc;

use myelin_bench_kit::protocol::Role;
use myelin_bench_kit::{Error, Publisher, Subscriber, clock};
use rustix::io::Errno;
use rustix::net::sockopt;

use crate::limit::{self, Patience, TimeLimit};
use crate::network_path::{NetworkPath, cannot_bind};
use crate::peer::{Ends, Peer};

/// UNIX sockets. Ends: reading, writing; ping's first.
pub fn unix() -> Result<[Ends; 2], Error> {
    pairs(|| {
        let (reading, writing) = UnixDatagram::pair()?;
        Ok([reading.into(), writing.into()])
    })
}

/// UDP sockets. Ends: reading, writing; ping's first.
pub fn udp() -> Result<[Ends; 2], Error> {
    pairs(|| {
        let reading = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        let writing = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        writing.connect(reading.local_addr()?)?;
        reading.connect(writing.local_addr()?)?;
        Ok([reading.into(), writing.into()])
    })
}

/// Like [`udp`], to the other host: this side's ends.
pub fn udp_across(path: &NetworkPath<'_>) -> Result<Ends, Error> {
    // Each socket has a different port, even if both sides are on one host.
    let (ours, theirs) = match path.role {
        Role::Ping => ([1, 2], [3, 4]),
        _ => ([3, 4], [1, 2]),
    };
    let socket = |ours, theirs| {
        let at: SocketAddr = path.network.own_at(ours);
        let socket = UdpSocket::bind(at).map_err(|error| cannot_bind(at, error))?;
        socket.connect(path.network.peer_at(theirs))?;
        let socket = OwnedFd::from(socket);
        prepare_socket(&socket)?;
        Ok::<_, Error>(socket)
    };
    let [[our_reading, our_writing], [their_reading, their_writing]] = [ours, theirs];
    let [reads, writes] =
        [socket(our_reading, their_writing)?, socket(our_writing, their_reading)?];
    limit::limit_reads(&writes, CREDIT_ACROSS_NS)?;
    Ok(vec![reads, writes])
}

fn pairs(pair: impl Fn() -> Result<[OwnedFd; 2], Error>) -> Result<[Ends; 2], Error> {
    let [[ping_reads, pong_writes], [pong_reads, ping_writes]] = [pair()?, pair()?];
    for socket in [&ping_reads, &pong_writes, &pong_reads, &ping_writes] {
        prepare_socket(socket)?;
    }
    Ok([vec![ping_reads, ping_writes], vec![pong_reads, pong_writes]])
}

fn prepare_socket(socket: &OwnedFd) -> Result<(), Error> {
    enlarge_buffers(socket)?;
    limit::limit_writes(socket)?;
    limit::limit_reads(socket, limit::SLICE_NS_MAX)
}

/// Enlarges the buffers as far as this process may; the burst adapts to the actual size.
fn enlarge_buffers(socket: &OwnedFd) -> Result<(), Error> {
    if sockopt::set_socket_recv_buffer_size_force(socket, BUFFER_BYTES).is_err() {
        sockopt::set_socket_recv_buffer_size(socket, BUFFER_BYTES).map_err(std::io::Error::from)?;
    }
    if sockopt::set_socket_send_buffer_size_force(socket, BUFFER_BYTES).is_err() {
        sockopt::set_socket_send_buffer_size(socket, BUFFER_BYTES).map_err(std::io::Error::from)?;
    }
    Ok(())
}

/// Number of parts that may be on their way at once, for this side's `socket`.
pub fn burst(socket: impl AsFd, is_across: bool) -> Result<u32, Error> {
    let unix = rustix::net::AddressFamily::UNIX;
    if sockopt::socket_domain(&socket).map_err(std::io::Error::from)? == unix {
        return Ok(u32::MAX);
    }
    let granted = sockopt::socket_recv_buffer_size(socket).map_err(std::io::Error::from)?;
    // The kernel counts its overhead against the buffer. On one host that is at most the same size
    // again; a part that arrives in packets takes up to a page for each packet.
    let (times, max) = if is_across { (4, BURST_ACROSS_MAX) } else { (2, u32::MAX) };
    Ok(u32::try_from(granted / (times * FRAGMENT_BYTES)).unwrap_or(u32::MAX).clamp(1, max))
}

/// Identifies a part of a message.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Part {
    number: u32,
    index: u32,
}

impl Part {
    fn to_bytes(self) -> [u8; PART_BYTES] {
        (u64::from(self.number) << 32 | u64::from(self.index)).to_le_bytes()
    }

    fn from_bytes(bytes: [u8; PART_BYTES]) -> Self {
        let word = u64::from_le_bytes(bytes);
        Part { number: (word >> 32) as u32, index: word as u32 }
    }
}

/// Bytes of a part's heading: none if the message is a single datagram.
fn heading_bytes(message_bytes: usize) -> usize {
    if message_bytes > FRAGMENT_BYTES { PART_BYTES } else { 0 }
}

/// Sends messages as datagrams.
pub struct DatagramPublisher {
    fd: OwnedFd,
    peer: Rc<Peer>,
    patience_ns: u64,
    burst: u32,
    number: u32,
}

impl DatagramPublisher {
    /// Sends to `fd`, `burst` parts at a time; abandons a message if the other side does not read
    /// for `patience_ns`.
    pub fn new(fd: OwnedFd, peer: &Rc<Peer>, patience_ns: u64, burst: u32) -> Self {
        DatagramPublisher { fd, peer: Rc::clone(peer), patience_ns, burst, number: 0 }
    }

    /// Sends a part; false if it was abandoned.
    fn send(&self, part: Part, heading_bytes: usize, bytes: &[u8]) -> Result<bool, Error> {
        let heading = part.to_bytes();
        let datagram = [IoSlice::new(&heading[..heading_bytes]), IoSlice::new(bytes)];
        let mut patience = Patience::new(self.patience_ns);
        loop {
            match rustix::io::writev(&self.fd, &datagram) {
                Ok(_) => return Ok(true),
                Err(Errno::INTR | Errno::AGAIN) if patience.has_run_out() => return Ok(false),
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(error) if is_interrupted(error) => return Ok(false),
                Err(error) => return self.ended("send", error),
            }
        }
    }

    /// Waits until the reader has read the parts before `part`; false if it does not.
    fn await_credit(&self, part: Part) -> Result<bool, Error> {
        let mut patience = Patience::new(self.patience_ns);
        let mut credit = [0; PART_BYTES];
        loop {
            match rustix::io::read(&self.fd, &mut credit) {
                Ok(PART_BYTES) if Part::from_bytes(credit) == part => return Ok(true),
                Ok(_) => {} // for an abandoned message
                Err(Errno::INTR | Errno::AGAIN) if patience.has_run_out() => return Ok(false),
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(error) if is_interrupted(error) => return Ok(false),
                Err(error) => return self.ended("credit", error),
            }
        }
    }

    #[cold]
    fn ended(&self, call: &str, error: Errno) -> Result<bool, Error> {
        match error {
            Errno::CONNREFUSED | Errno::CONNRESET | Errno::PIPE | Errno::NOTCONN => {
                self.peer.writing_ended().map(|()| false)
            }
            _ => Err(Error::new(format!("{call}: {error}"))),
        }
    }
}

impl Publisher for DatagramPublisher {
    fn publish(&mut self, message: &[u8]) -> Result<(), Error> {
        self.number = self.number.wrapping_add(1);
        let heading_bytes = heading_bytes(message.len());
        for (index, bytes) in message.chunks(FRAGMENT_BYTES).enumerate() {
            let part = Part { number: self.number, index: index as u32 };
            let needs_credit = part.index > 0 && part.index.is_multiple_of(self.burst);
            if needs_credit && !self.await_credit(part)? {
                return Ok(()); // lost, as datagrams may be
            }
            if !self.send(part, heading_bytes, bytes)? {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// Receives messages as datagrams.
pub struct DatagramSubscriber {
    fd: OwnedFd,
    peer: Rc<Peer>,
    limit: TimeLimit,
    burst: u32,
    /// The message being assembled, plus one byte, which detects a datagram that is too long.
    buffer: Vec<u8>,
    /// The next expected part.
    next: Part,
}

impl DatagramSubscriber {
    /// Receives messages of `message_bytes` from `fd`, whose writer sends `burst` parts at a time.
    pub fn new(fd: OwnedFd, peer: &Rc<Peer>, message_bytes: usize, burst: u32) -> Self {
        let (buffer, next) = (vec![0; message_bytes + 1], Part { number: 0, index: 0 });
        let limit = TimeLimit::of_socket();
        DatagramSubscriber { fd, peer: Rc::clone(peer), limit, burst, buffer, next }
    }

    fn message_bytes(&self) -> usize {
        self.buffer.len() - 1
    }

    /// Where the bytes of part `index` belong.
    fn place(&self, index: u32) -> std::ops::Range<usize> {
        let at = index as usize * FRAGMENT_BYTES;
        at..self.message_bytes().min(at + FRAGMENT_BYTES)
    }

    /// Reads one datagram to the position of the next part; returns which part it was.
    fn read(&mut self) -> rustix::io::Result<Option<Part>> {
        let heading_bytes = heading_bytes(self.message_bytes());
        let place = self.place(self.next.index);
        let mut heading = [0; PART_BYTES];
        let read = rustix::io::readv(
            &self.fd,
            &mut [
                IoSliceMut::new(&mut heading[..heading_bytes]),
                IoSliceMut::new(&mut self.buffer[place.start..=place.end]),
            ],
        )?;
        let part = if heading_bytes == 0 { self.next } else { Part::from_bytes(heading) };
        let first = part.index == 0;
        let follows = part == self.next;
        let belongs = if first { self.place(0) } else { place.clone() };
        if !(first || follows) || read != heading_bytes + belongs.len() {
            self.next.index = 0; // the earlier parts belong to an abandoned message
            return Ok(None);
        }
        if first && !follows {
            self.buffer.copy_within(place.start..place.start + belongs.len(), 0);
        }
        Ok(Some(part))
    }

    /// Sends a credit if the writer waits for it; true if the message is complete.
    fn advance(&mut self, part: Part) -> bool {
        let complete = self.place(part.index).end == self.message_bytes();
        let index = if complete { 0 } else { part.index + 1 };
        self.next = Part { number: part.number, index };
        if !complete && index.is_multiple_of(self.burst) {
            // Without the credit the writer abandons the message.
            let _ = rustix::io::write(&self.fd, &self.next.to_bytes());
        }
        complete
    }
}

impl Subscriber for DatagramSubscriber {
    fn wait(&mut self, _until_ns: u64) -> Result<Option<bool>, Error> {
        Ok(None)
    }

    fn take(&mut self, until_ns: u64) -> Result<Option<&[u8]>, Error> {
        loop {
            self.limit.arm(&self.fd, until_ns)?;
            match self.read() {
                Ok(Some(part)) if self.advance(part) => {
                    return Ok(Some(&self.buffer[..self.buffer.len() - 1]));
                }
                Ok(_) => {}
                Err(Errno::INTR | Errno::AGAIN) if clock::monotonic_ns() < until_ns => {}
                Err(Errno::INTR | Errno::AGAIN) => {
                    self.peer.check_alive()?;
                    return Ok(None);
                }
                Err(error) if is_interrupted(error) => {}
                Err(Errno::CONNREFUSED | Errno::CONNRESET) => {
                    self.peer.reading_ended(until_ns)?;
                    return Ok(None);
                }
                Err(error) => return Err(Error::new(format!("receive: {error}"))),
            }
        }
    }
}

/// Whether the other host is unreachable at the moment.
fn is_interrupted(error: Errno) -> bool {
    matches!(error, Errno::NETUNREACH | Errno::HOSTUNREACH | Errno::NETDOWN)
}

/// Bytes of a message in one datagram: below the 65 507 that UDP over IPv4 can carry.
pub const FRAGMENT_BYTES: usize = 65_000;
const PART_BYTES: usize = 8;
/// The queue in front of a network interface holds 1000 packets; a part is 44 packets of 1500 B.
const BURST_ACROSS_MAX: u32 = 16;
/// Across hosts parts can be lost, and credits with them: a message is abandoned after this time,
/// 0.13 s. At 100 Mbit/s a burst takes 0.09 s.
const CREDIT_ACROSS_NS: u64 = 1 << 27;
const BUFFER_BYTES: usize = 4 * 1024 * 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    /// The burst for a buffer of one part.
    const TINY: u32 = 1;

    #[test]
    fn a_message_given_up_half_way_does_not_harm_the_next() {
        let bytes = 3 * FRAGMENT_BYTES + 1;
        let [mut pings, mut pongs] = udp().unwrap();
        let (ping, pong) = UnixStream::pair().unwrap();
        let ping = Rc::new(Peer::of_ping(ping));
        let mut publisher = DatagramPublisher::new(pings.remove(1), &ping, 0, TINY);
        // Nobody sends a credit for the first part, so the others are never sent.
        publisher.publish(&vec![1; bytes]).unwrap();
        publisher.patience_ns = u64::MAX;
        let reading = std::thread::spawn(move || {
            let pong = Rc::new(Peer::of_ping(pong));
            let mut subscriber = DatagramSubscriber::new(pongs.remove(0), &pong, bytes, TINY);
            subscriber.take(u64::MAX).unwrap().map(<[u8]>::to_vec)
        });
        publisher.publish(&vec![2; bytes]).unwrap();
        assert!(reading.join().unwrap().is_some_and(|message| message == vec![2; bytes]));
    }

    #[test]
    fn a_part_is_read_back_from_its_bytes() {
        let part = Part { number: u32::MAX - 1, index: 7 };
        assert!(Part::from_bytes(part.to_bytes()) == part);
    }
}
