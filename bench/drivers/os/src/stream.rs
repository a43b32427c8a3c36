//! Pipes, UNIX stream sockets and TCP: bytes in order through the kernel. If all messages of a run
//! have one size, the stream needs no framing; otherwise each message follows its length, in 4
//! bytes.
//!
//! Happens-before: the kernel orders a write before the read that returns its bytes.
//!
//! A writer blocks while the kernel's buffer is full. In a round trip only one direction fills at a
//! time. After a lost answer both might fill, and then neither side reads: hence [`Patience`].

use std::io::IoSlice;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::rc::Rc;

use myelin_bench_kit::{Error, Publisher, Subscriber, clock};
use rustix::io::Errno;
use rustix::pipe::PipeFlags;

use crate::limit::{self, Patience, TimeLimit};
use crate::network_path::NetworkPath;
use crate::peer::{Ends, Peer};

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
pub fn tcp_across(path: &NetworkPath<'_>) -> Result<Ends, Error> {
    both_of(path.connection()?)
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
    has_lengths: bool,
}

impl StreamPublisher {
    /// Writes to `fd`; gives up if the other side does not read for `patience_ns`.
    pub fn new(fd: OwnedFd, peer: &Rc<Peer>, patience_ns: u64, has_lengths: bool) -> Self {
        StreamPublisher { fd, peer: Rc::clone(peer), patience_ns, has_lengths }
    }
}

impl Publisher for StreamPublisher {
    fn publish(&mut self, message: &[u8]) -> Result<(), Error> {
        let mut patience = Patience::new(self.patience_ns);
        let length = (message.len() as u32).to_le_bytes();
        let mut head = if self.has_lengths { &length[..] } else { &[] };
        let mut left = message;
        while !(head.is_empty() && left.is_empty()) {
            let written = match head.is_empty() {
                true => rustix::io::write(&self.fd, left),
                false => rustix::io::writev(&self.fd, &[IoSlice::new(head), IoSlice::new(left)]),
            };
            match written {
                Ok(written) => {
                    let of_head = written.min(head.len());
                    (head, left) = (&head[of_head..], &left[written - of_head..]);
                }
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
    /// The length in front of a message, if there is one, and a message.
    head: Vec<u8>,
    message: Vec<u8>,
    /// Bytes of both that have been read.
    filled: usize,
}

impl StreamSubscriber {
    /// Reads messages of `message_bytes` from `fd`; with `has_lengths`, of at most as many.
    pub fn new(
        fd: OwnedFd,
        peer: &Rc<Peer>,
        limit: TimeLimit,
        message_bytes: usize,
        has_lengths: bool,
    ) -> Self {
        let (peer, message) = (Rc::clone(peer), vec![0; message_bytes]);
        let head = vec![0; if has_lengths { LENGTH_BYTES } else { 0 }];
        StreamSubscriber { fd, peer, limit, head, message, filled: 0 }
    }

    /// Bytes of the message that is being read, as soon as they are known.
    fn message_bytes(&self) -> Result<usize, Error> {
        let most = self.message.len();
        match self.head.first_chunk::<LENGTH_BYTES>().map(|head| u32::from_le_bytes(*head)) {
            None => Ok(most),
            Some(length) if length as usize <= most => Ok(length as usize),
            Some(length) => Err(Error::new(format!("a message of {length} B, at most {most} B"))),
        }
    }

    /// Reads some of the length or of the message, never of the next one.
    fn read(&mut self) -> Result<rustix::io::Result<usize>, Error> {
        let head_bytes = self.head.len();
        Ok(match self.filled.checked_sub(head_bytes) {
            None => rustix::io::read(&self.fd, &mut self.head[self.filled..]),
            Some(at) => {
                let end = self.message_bytes()?;
                rustix::io::read(&self.fd, &mut self.message[at..end])
            }
        })
    }

    fn is_complete(&self) -> Result<bool, Error> {
        let of_message = self.filled.checked_sub(self.head.len());
        of_message.map_or(Ok(false), |read| Ok(read >= self.message_bytes()?))
    }
}

impl Subscriber for StreamSubscriber {
    fn wait(&mut self, _until_ns: u64) -> Result<Option<bool>, Error> {
        Ok(None)
    }

    fn take(&mut self, until_ns: u64) -> Result<Option<&[u8]>, Error> {
        while !self.is_complete()? {
            self.limit.arm(&self.fd, until_ns)?;
            match self.read()? {
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
        let bytes = self.message_bytes()?;
        Ok(Some(&self.message[..bytes]))
    }
}

const PIPE_BYTES: usize = 1024 * 1024;
const LENGTH_BYTES: usize = 4;
