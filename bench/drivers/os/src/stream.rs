//! Pipes, UNIX stream sockets and TCP: bytes in order through the kernel. If all messages of a run
//! have one size, the stream needs no framing; otherwise each message follows its length, in 4
//! bytes.
//!
//! Happens-before: the kernel orders a write before the read that returns its bytes.
//!
//! A writer blocks while the kernel's buffer is full. In a round trip only one direction fills at a
//! time. After a lost answer both might fill, and then neither side reads: hence [`Patience`].

use std::io::{ErrorKind, IoSlice, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::rc::Rc;

use myelin_bench_kit::{Error, Publisher, Subscriber, clock};
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
pub struct StreamPublisher<W> {
    stream: W,
    peer: Rc<Peer>,
    patience_ns: u64,
    has_lengths: bool,
}

impl<W> StreamPublisher<W> {
    /// Writes to `stream`; gives up if the other side does not read for `patience_ns`.
    pub fn new(stream: W, peer: &Rc<Peer>, patience_ns: u64, has_lengths: bool) -> Self {
        StreamPublisher { stream, peer: Rc::clone(peer), patience_ns, has_lengths }
    }
}

impl<W: Write> Publisher for StreamPublisher<W> {
    fn publish(&mut self, message: &[u8]) -> Result<(), Error> {
        let mut patience = Patience::new(self.patience_ns);
        let length = (message.len() as u32).to_le_bytes();
        let mut head = if self.has_lengths { &length[..] } else { &[] };
        let mut left = message;
        let mut is_sent = false;
        while !is_sent {
            let written = if !head.is_empty() {
                self.stream.write_vectored(&[IoSlice::new(head), IoSlice::new(left)])
            } else if !left.is_empty() {
                self.stream.write(left)
            } else {
                self.stream.flush().map(|()| {
                    is_sent = true;
                    0
                })
            };
            match written.map_err(|error| (error.kind(), error)) {
                Ok(written) => {
                    let of_head = written.min(head.len());
                    (head, left) = (&head[of_head..], &left[written - of_head..]);
                }
                Err((ErrorKind::Interrupted | ErrorKind::WouldBlock, _)) => {
                    if patience.has_run_out() {
                        return Err(self.peer.stuck());
                    }
                }
                Err((ErrorKind::BrokenPipe | ErrorKind::ConnectionReset, _)) => {
                    return self.peer.writing_ended();
                }
                Err((_, error)) => return Err(Error::new(format!("write: {error}"))),
            }
        }
        Ok(())
    }
}

/// Reads messages from a stream.
pub struct StreamSubscriber<R> {
    stream: R,
    peer: Rc<Peer>,
    limit: TimeLimit,
    /// The length in front of a message, if there is one, and a message.
    head: Vec<u8>,
    message: Vec<u8>,
    /// Bytes of both that have been read.
    filled: usize,
}

impl<R: Read> StreamSubscriber<R> {
    /// Reads messages of `message_bytes` from `stream`; with `has_lengths`, of at most as many.
    pub fn new(
        stream: R,
        peer: &Rc<Peer>,
        limit: TimeLimit,
        message_bytes: usize,
        has_lengths: bool,
    ) -> Self {
        let (peer, message) = (Rc::clone(peer), vec![0; message_bytes]);
        let head = vec![0; if has_lengths { LENGTH_BYTES } else { 0 }];
        StreamSubscriber { stream, peer, limit, head, message, filled: 0 }
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
    fn read(&mut self) -> Result<std::io::Result<usize>, Error> {
        let head_bytes = self.head.len();
        Ok(match self.filled.checked_sub(head_bytes) {
            None => self.stream.read(&mut self.head[self.filled..]),
            Some(at) => {
                let end = self.message_bytes()?;
                self.stream.read(&mut self.message[at..end])
            }
        })
    }

    fn is_complete(&self) -> Result<bool, Error> {
        let of_message = self.filled.checked_sub(self.head.len());
        of_message.map_or(Ok(false), |read| Ok(read >= self.message_bytes()?))
    }
}

impl<R: Read + AsFd> Subscriber for StreamSubscriber<R> {
    fn wait(&mut self, _until_ns: u64) -> Result<Option<bool>, Error> {
        Ok(None)
    }

    fn take(&mut self, until_ns: u64) -> Result<Option<&[u8]>, Error> {
        while !self.is_complete()? {
            self.limit.arm(&self.stream, until_ns)?;
            match self.read()?.map_err(|error| (error.kind(), error)) {
                Ok(0) | Err((ErrorKind::ConnectionReset, _)) => {
                    self.peer.reading_ended(until_ns)?;
                    return Ok(None);
                }
                Ok(read) => self.filled += read,
                Err((ErrorKind::Interrupted | ErrorKind::WouldBlock, _)) => {
                    if clock::monotonic_ns() >= until_ns {
                        self.peer.check_alive()?;
                        return Ok(None);
                    }
                }
                Err((_, error)) => return Err(Error::new(format!("read: {error}"))),
            }
        }
        self.filled = 0;
        let bytes = self.message_bytes()?;
        Ok(Some(&self.message[..bytes]))
    }
}

const PIPE_BYTES: usize = 1024 * 1024;
const LENGTH_BYTES: usize = 4;
