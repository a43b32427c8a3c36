//! The connection between two hosts: one TCP connection, messages preceded by their length.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use myelin_bench_kit::network::MEETING;
use myelin_bench_kit::protocol::{Network, Prepare, Role};
use myelin_bench_kit::{Clock, Error};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Connects both ends: pong listens, ping connects until it succeeds.
pub fn meet(prepare: &Prepare, network: &Network) -> Result<TcpStream, Error> {
    let deadline = Instant::now() + Duration::from_nanos(prepare.match_timeout_ns);
    let stream = match prepare.role {
        Role::Ping => call(network, deadline),
        _ => listen(network, deadline),
    }?;
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

fn call(network: &Network, deadline: Instant) -> Result<TcpStream, Error> {
    let peer = network.peer_at(MEETING);
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match TcpStream::connect_timeout(&peer, left.max(Duration::from_millis(1))) {
            Ok(stream) => return Ok(stream),
            Err(_) if Instant::now() < deadline => std::thread::sleep(NAP),
            Err(error) => {
                return Err(Error::new(format!("pong at {peer}/tcp: {error}"))
                    .remedy("see pong's log, and check that the hosts reach each other"));
            }
        }
    }
}

fn listen(network: &Network, deadline: Instant) -> Result<TcpStream, Error> {
    let own = network.own_at(MEETING);
    let listener = TcpListener::bind(own)
        .map_err(|error| Error::new(format!("listening at {own}/tcp: {error}")))?;
    listener.set_nonblocking(true)?;
    loop {
        match listener.accept() {
            Ok((stream, from)) if from.ip() == network.peer => return Ok(stream),
            Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(error.into()),
            // A foreign connection, or none yet.
            _ if Instant::now() < deadline => std::thread::sleep(NAP),
            _ => {
                return Err(Error::new(format!("ping did not connect to {own}/tcp"))
                    .remedy("see ping's log, and check that the hosts reach each other"));
            }
        }
    }
}

/// Sends a message; may wait for room.
pub fn send(mut stream: &TcpStream, message: &[u8]) -> Result<(), Error> {
    let length = (message.len() as u64).to_le_bytes();
    let both = stream.write_all(&length).and_then(|()| stream.write_all(message));
    both.map_err(|error| Error::new(format!("the other side closed the connection: {error}")))
}

/// Receives whole messages.
pub struct Inbox {
    stream: TcpStream,
    bytes: VecDeque<u8>,
    message_bytes_max: u64,
    is_over: bool,
}

impl Inbox {
    /// For messages of at most `message_bytes_max` bytes.
    pub fn new(stream: TcpStream, message_bytes_max: u64) -> Self {
        Inbox { stream, bytes: VecDeque::new(), message_bytes_max, is_over: false }
    }

    /// The next message, or `None` if there is none until `clock` reads `until_ns`.
    pub fn next(&mut self, clock: &Clock, until_ns: u64) -> Result<Option<Vec<u8>>, Error> {
        loop {
            if let Some(message) = self.cut()? {
                return Ok(Some(message));
            }
            let now_ns = clock.now();
            if self.is_over {
                clock.sleep_until(until_ns);
                return Ok(None);
            }
            if !self.is_readable(until_ns.saturating_sub(now_ns))? {
                if clock.now() >= until_ns {
                    return Ok(None);
                }
                continue;
            }
            let mut chunk = [0; 65_536];
            match self.stream.read(&mut chunk) {
                Ok(length) => {
                    self.is_over = length == 0;
                    self.bytes.extend(&chunk[..length]);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn is_readable(&self, within_ns: u64) -> Result<bool, Error> {
        let within = Timespec {
            tv_sec: (within_ns / 1_000_000_000) as i64,
            tv_nsec: (within_ns % 1_000_000_000) as i64,
        };
        let mut fds = [PollFd::new(&self.stream, PollFlags::IN)];
        match poll(&mut fds, Some(&within)) {
            Ok(count) => Ok(count > 0),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(std::io::Error::from(error).into()),
        }
    }

    /// The first message, if it is complete.
    fn cut(&mut self) -> Result<Option<Vec<u8>>, Error> {
        if self.bytes.len() < LENGTH_BYTES {
            return Ok(None);
        }
        let mut length = [0; LENGTH_BYTES];
        self.bytes.iter().zip(&mut length).for_each(|(from, to)| *to = *from);
        let length = u64::from_le_bytes(length);
        if length > self.message_bytes_max {
            return Err(Error::new(format!(
                "a message of {length} bytes does not belong to this \
                                           run"
            )));
        }
        let whole = LENGTH_BYTES + length as usize;
        if self.bytes.len() < whole {
            return Ok(None);
        }
        Ok(Some(self.bytes.drain(..whole).skip(LENGTH_BYTES).collect()))
    }
}

const LENGTH_BYTES: usize = 8;
/// Pause between two attempts to connect.
const NAP: Duration = Duration::from_millis(5);
