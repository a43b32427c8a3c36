//! How the two sides find each other, and how each notices the death of the other.
//!
//! ```text
//! pong                                             ping
//!  │ listens on @myelin-driver-os-<run>             │ connects, again and again until it can
//!  │ ── greeting, file descriptors (SCM_RIGHTS) ──▶ │ compares the greeting with its own
//!  │ ◀──────────── a number: what both can, or that all is mapped ────────────▶ │
//!  ┆ the socket stays open; when it ends, the other side has                                    ┆
//! ```
//! The name is in the abstract namespace and vanishes with its process. Such names have no
//! permissions, so each side checks that the other belongs to the same user.
//!
//! Across hosts the socket is a TCP connection (see [`network_path`](crate::network_path)), no descriptors follow the
//! greeting, and each side makes its own ends.
//!
//! Happens-before: pong's changes to its memory before it sends the descriptors happen before ping
//! receives them.

use std::io::{ErrorKind, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::Duration;

use myelin_bench_kit::Error;
use myelin_bench_kit::clock::{self, Clock};
use myelin_bench_kit::protocol::{Prepare, Role};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::sockopt::{self, Timeout};
use rustix::net::{self, RecvFlags, SendFlags};

use crate::network_path::NetworkPath;

/// The file descriptors of one side, in an order that the mechanism defines.
pub type Ends = Vec<OwnedFd>;

/// The other side.
pub struct Peer {
    role: Role,
    socket: OwnedFd,
}

impl Peer {
    /// Ping's view of the process that holds the other end of `socket`.
    #[cfg(test)]
    pub fn of_ping(socket: UnixStream) -> Self {
        Peer { role: Role::Ping, socket: socket.into() }
    }

    /// Connects to the other side: pong makes both sides' ends and sends ping its own.
    pub fn meet(
        prepare: &Prepare,
        make: impl FnOnce() -> Result<[Ends; 2], Error>,
    ) -> Result<(Self, Ends), Error> {
        let deadline = Deadline::new(prepare, "both must share a network namespace");
        let role = prepare.role;
        if role == Role::Pong {
            let [pings, pongs] = make()?;
            let socket = accept(prepare, &deadline)?.into();
            send_ends(&socket, &greeting(prepare), &pings)?;
            return Ok((Peer { role, socket }, pongs));
        }
        let socket = connect(prepare, &deadline)?.into();
        limit_reads(&socket, deadline.remaining())?;
        let ends = receive_ends(&socket, &greeting(prepare))?;
        Ok((Peer { role, socket }, ends))
    }

    /// Connects to the side on the other host; each side makes its own ends.
    pub fn meet_across(
        prepare: &Prepare,
        path: &NetworkPath<'_>,
        make: impl FnOnce(&NetworkPath<'_>) -> Result<Ends, Error>,
    ) -> Result<(Self, Ends), Error> {
        let socket = path.connection()?;
        NetworkPath::notice_death(&socket)?;
        if path.role == Role::Pong {
            send_ends(&socket, &greeting(prepare), &Ends::new())?;
        } else {
            limit_reads(&socket, path.deadline.remaining())?;
            receive_ends(&socket, &greeting(prepare))?;
        }
        let ends = make(path)?;
        Ok((Peer { role: path.role, socket }, ends))
    }

    /// Reports that this side is ready and waits for the other side's report.
    pub fn both_ready(&self, prepare: &Prepare) -> Result<(), Error> {
        self.agree(prepare, READY).map(drop)
    }

    /// The smaller one of this side's number and the other's.
    pub fn agree(&self, prepare: &Prepare, ours: u32) -> Result<u32, Error> {
        limit_reads(&self.socket, Duration::from_nanos(prepare.match_timeout_ns.max(1)))?;
        let mut theirs = [0; 4];
        let exchanged =
            net::send(&self.socket, &ours.to_le_bytes(), SendFlags::NOSIGNAL).and_then(|_| {
                // A process that is stopped and continued is interrupted here.
                retry_on_intr(|| net::recv(&self.socket, &mut theirs[..], RecvFlags::WAITALL))
            });
        let what = match exchanged {
            Ok((_, 4)) => return Ok(ours.min(u32::from_le_bytes(theirs))),
            Ok(_) => "it closed the connection".to_owned(),
            Err(error) => in_words(error),
        };
        let other = self.other();
        Err(Error::new(format!("{other} did not become ready: {what}"))
            .remedy(format!("see {other}'s log in the results folder")))
    }

    /// Called if nothing arrived in time; for ping an error if pong has died. Pong need not know:
    /// it answers until it is stopped.
    #[cold]
    pub fn check_alive(&self) -> Result<(), Error> {
        if self.role == Role::Ping && self.has_ended() { Err(self.closed()) } else { Ok(()) }
    }

    /// Called when reading finds the connection closed. Ping fails. For pong the run is over except
    /// for the stop, so it waits until the clock reads `until_ns` as if nothing arrived.
    #[cold]
    pub fn reading_ended(&self, until_ns: u64) -> Result<(), Error> {
        if self.role == Role::Ping {
            return Err(self.closed());
        }
        Clock::Monotonic.sleep_until(until_ns);
        Ok(())
    }

    /// Called when writing finds the connection closed. An answer without a receiver is no error.
    #[cold]
    pub fn writing_ended(&self) -> Result<(), Error> {
        if self.role == Role::Ping { Err(self.closed()) } else { Ok(()) }
    }

    /// The error if the other side has blocked a writer for too long.
    #[cold]
    pub fn stuck(&self) -> Error {
        Error::new(format!("{} does not read its messages", self.other()))
    }

    fn closed(&self) -> Error {
        let other = self.other();
        Error::new(format!("{other} closed the connection"))
            .remedy(format!("see {other}'s log in the results folder"))
    }

    fn has_ended(&self) -> bool {
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        !matches!(net::recv(&self.socket, &mut [0u8; 1], flags), Ok((1.., _)) | Err(Errno::AGAIN))
    }

    fn other(&self) -> &'static str {
        if self.role == Role::Ping { "pong" } else { "ping" }
    }
}

fn accept(prepare: &Prepare, deadline: &Deadline) -> Result<UnixStream, Error> {
    let listener = UnixListener::bind_addr(&address(prepare)?).map_err(|error| {
        Error::new(format!("cannot listen on @{}: {error}", name(prepare)))
            .remedy("are there two pongs in one run? each run needs its own name")
    })?;
    listener.set_nonblocking(true)?;
    loop {
        match listener.accept() {
            Ok((socket, _)) if is_ours(&socket)? => {
                socket.set_nonblocking(false)?;
                return Ok(socket);
            }
            Ok(_) => {} // a foreign connection; closed by dropping it
            Err(error) if error.kind() == ErrorKind::WouldBlock => deadline.nap("ping")?,
            Err(error) => return Err(error.into()),
        }
    }
}

fn connect(prepare: &Prepare, deadline: &Deadline) -> Result<UnixStream, Error> {
    let address = address(prepare)?;
    loop {
        match UnixStream::connect_addr(&address) {
            Ok(socket) if is_ours(&socket)? => return Ok(socket),
            Ok(_) => {
                let text = format!("@{} belongs to another user", name(prepare));
                return Err(Error::new(text).remedy("run ping and pong as one user"));
            }
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => deadline.nap("pong")?,
            Err(error) => return Err(error.into()),
        }
    }
}

fn name(prepare: &Prepare) -> String {
    format!("myelin-driver-os-{}", prepare.run)
}

fn address(prepare: &Prepare) -> Result<SocketAddr, Error> {
    Ok(SocketAddr::from_abstract_name(name(prepare))?)
}

fn is_ours(socket: &UnixStream) -> Result<bool, Error> {
    let theirs = net::sockopt::socket_peercred(socket).map_err(std::io::Error::from)?;
    Ok(theirs.uid == rustix::process::geteuid())
}

/// The greeting; both sides must have the same plans.
fn greeting(prepare: &Prepare) -> String {
    let message_bytes = prepare.message_bytes();
    format!("myelin-driver-os {VERSION}, {}, messages of {message_bytes} B", prepare.system)
}

/// The text for an error of a read with a time limit.
fn in_words(error: Errno) -> String {
    match error {
        Errno::AGAIN => "pong sent no greeting in time".to_owned(),
        error => error.to_string(),
    }
}

fn limit_reads(socket: &OwnedFd, limit: Duration) -> Result<(), Error> {
    let set = sockopt::set_socket_timeout(socket, Timeout::Recv, Some(limit));
    Ok(set.map_err(std::io::Error::from)?)
}

fn send_ends(socket: &OwnedFd, greeting: &str, ends: &Ends) -> Result<(), Error> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(ENDS_MAX))];
    let mut control = net::SendAncillaryBuffer::new(&mut space);
    let borrowed: Vec<_> = ends.iter().map(AsFd::as_fd).collect();
    if !ends.is_empty() {
        assert!(control.push(net::SendAncillaryMessage::ScmRights(&borrowed)), "at most ENDS_MAX");
    }
    let text = [IoSlice::new(greeting.as_bytes())];
    let sent = net::sendmsg(socket, &text, &mut control, SendFlags::NOSIGNAL);
    sent.map_err(|error| Error::new(format!("cannot send to ping: {error}")))?;
    Ok(())
}

fn receive_ends(socket: &OwnedFd, expected: &str) -> Result<Ends, Error> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(ENDS_MAX))];
    let mut control = net::RecvAncillaryBuffer::new(&mut space);
    let mut text = vec![0; expected.len()];
    let mut into = [IoSliceMut::new(&mut text)];
    let received = net::recvmsg(socket, &mut into, &mut control, RecvFlags::CMSG_CLOEXEC)
        .map_err(|error| Error::new(format!("pong sent no greeting: {}", in_words(error))))?;
    let greeting = String::from_utf8_lossy(&text[..received.bytes]);
    if greeting != expected {
        return Err(Error::new(format!("pong sent `{greeting}`, but ping expected `{expected}`")));
    }
    let mut ends = Ends::new();
    for message in control.drain() {
        if let net::RecvAncillaryMessage::ScmRights(descriptors) = message {
            ends.extend(descriptors);
        }
    }
    Ok(ends)
}

/// The time limit for finding each other.
pub struct Deadline {
    at_ns: u64,
    seconds: f64,
    /// Advice if nobody comes, besides the other's log.
    remedy: String,
}

impl Deadline {
    /// Starts the time limit of `prepare`.
    pub fn new(prepare: &Prepare, remedy: impl Into<String>) -> Self {
        let at_ns = prepare.match_until_ns();
        let seconds = prepare.match_timeout_ns as f64 * 1e-9;
        Deadline { at_ns, seconds, remedy: remedy.into() }
    }

    /// The remaining time, at least a millisecond.
    pub fn remaining(&self) -> Duration {
        let remaining_ns = self.at_ns.saturating_sub(clock::monotonic_ns());
        Duration::from_nanos(remaining_ns.max(1_000_000))
    }

    /// Sleeps a little; if the time is over, an error that says who is missing.
    pub fn nap(&self, who: &str) -> Result<(), Error> {
        let now_ns = clock::monotonic_ns();
        if now_ns >= self.at_ns {
            let text = format!("{who} did not connect within {} s", self.seconds);
            let remedy = &self.remedy;
            return Err(
                Error::new(text).remedy(format!("see {who}'s log in the results folder; {remedy}"))
            );
        }
        Clock::Monotonic.sleep_until(now_ns + NAP_NS);
        Ok(())
    }
}

/// Version of the greeting and of everything shared.
const VERSION: u32 = 2;
/// The largest number of file descriptors of one side.
const ENDS_MAX: usize = 3;
const READY: u32 = 1;
const NAP_NS: u64 = 1_000_000;
