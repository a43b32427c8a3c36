//! Pipes, UNIX stream sockets and TCP: bytes in order through the kernel. All messages of a run
//! have one size, so the stream needs no framing.
//!
//! Happens-before: the kernel orders a write before the read that returns its bytes.
//!
//! A writer blocks while the kernel's buffer is full. In a round trip only one direction fills at a
//! time. After a lost answer both might fill, and then neither side reads: hence [`Patience`].

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::rc::Rc;

use myelin_bench_kit::{Error, Publisher, Subscriber, clock};
use rustix::io::Errno;
use rustix::pipe::PipeFlags;

use crate::limit::{self, Patience, TimeLimit};
use crate::peer::{Ends, Peer};
use crate::way::Way;

/// A pipe for each direction. Ends: reading, writing; ping's first.
pub fn pipes() -> Result<[Ends; 2], Error> {
    let [to_ping, to_pong] = [pipe()?, pipe()?];
    Ok([vec![to_ping.0, to_pong.1], vec![to_pong.0, to_ping.1]])
}

fn pipe() -> Result<(OwnedFd, OwnedFd), Error> {
    let ends = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).map_err(std::io::Error::from)?;
    // The largest size for an unprivileged process. If it is refused, the pipe works with 64 KiB.
    let _ = rustix::pipe::fcntl_setpipe_size(&ends.1, PIPE_BYTES);
    Ok(ends)
}

/// A connected pair of UNIX sockets. Ends: reading, writing; ping's first.
pub fn unix() -> Result<[Ends; 2], Error> {
    let (ping, pong) = UnixStream::pair()?;
    both_ways([ping.into(), pong.into()])
}

/// A TCP connection over the loopback interface, without Nagle's delay. Ends: reading, writing;
/// ping's first.
pub fn tcp() -> Result<[Ends; 2], Error> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let ping = TcpStream::connect(listener.local_addr()?)?;
    let (pong, from) = listener.accept()?;
    if from != ping.local_addr()? {
        return Err(Error::new("another program connected to ping's port").remedy("try again"));
    }
    ping.set_nodelay(true)?;
    pong.set_nodelay(true)?;
    both_ways([ping.into(), pong.into()])
}

/// Like [`tcp`], to the other host: this side's ends.
pub fn tcp_across(way: &Way<'_>) -> Result<Ends, Error> {
    both_of(way.connection()?)
}

fn both_ways(sockets: [OwnedFd; 2]) -> Result<[Ends; 2], Error> {
    let [ping, pong] = sockets;
    Ok([both_of(ping)?, both_of(pong)?])
}

/// The reading and the writing end of a socket.
fn both_of(socket: OwnedFd) -> Result<Ends, Error> {
    limit::limit_writes(&socket)?;
    Ok(vec![socket.try_clone()?, socket])
}

/// Writes messages into a stream.
pub struct StreamPublisher {
    fd: OwnedFd,
    peer: Rc<Peer>,
    patience_ns: u64,
}

impl StreamPublisher {
    /// Writes to `fd`; gives up if the other side does not read for `patience_ns`.
    pub fn new(fd: OwnedFd, peer: &Rc<Peer>, patience_ns: u64) -> Self {
        StreamPublisher { fd, peer: Rc::clone(peer), patience_ns }
    }
}

impl Publisher for StreamPublisher {
    fn publish(&mut self, message: &[u8]) -> Result<(), Error> {
        let mut patience = Patience::new(self.patience_ns);
        let mut left = message;
        while !left.is_empty() {
            match rustix::io::write(&self.fd, left) {
                Ok(written) => left = &left[written..],
                Err(Errno::INTR | Errno::AGAIN) if patience.has_run_out() => {
                    return Err(self.peer.stuck());
                }
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(Errno::PIPE | Errno::CONNRESET) => return self.peer.writing_ended(),
                Err(error) => return Err(Error::new(format!("write: {error}"))),
            }
        }
        Ok(())
    }
}

/// Reads messages from a stream.
pub struct StreamSubscriber {
    fd: OwnedFd,
    peer: Rc<Peer>,
    limit: TimeLimit,
    /// One message; all bytes below `filled` have been read.
    message: Vec<u8>,
    filled: usize,
}

impl StreamSubscriber {
    /// Reads messages of `message_bytes` from `fd`.
    pub fn new(fd: OwnedFd, peer: &Rc<Peer>, limit: TimeLimit, message_bytes: usize) -> Self {
        let (peer, message) = (Rc::clone(peer), vec![0; message_bytes]);
        StreamSubscriber { fd, peer, limit, message, filled: 0 }
    }
}

impl Subscriber for StreamSubscriber {
    fn wait(&mut self, _until_ns: u64) -> Result<Option<bool>, Error> {
        Ok(None)
    }

    fn take(&mut self, until_ns: u64) -> Result<Option<&[u8]>, Error> {
        while self.filled < self.message.len() {
            self.limit.arm(&self.fd, until_ns)?;
            match rustix::io::read(&self.fd, &mut self.message[self.filled..]) {
                Ok(0) | Err(Errno::CONNRESET) => {
                    self.peer.reading_ended(until_ns)?;
                    return Ok(None);
                }
                Ok(read) => self.filled += read,
                Err(Errno::INTR | Errno::AGAIN) if clock::monotonic_ns() < until_ns => {}
                Err(Errno::INTR | Errno::AGAIN) => {
                    self.peer.check_alive()?;
                    return Ok(None);
                }
                Err(error) => return Err(Error::new(format!("read: {error}"))),
            }
        }
        self.filled = 0;
        Ok(Some(&self.message))
    }
}

const PIPE_BYTES: usize = 1024 * 1024;
