//! TCP connections between two hosts: how the sides connect, and what `os.tcp` writes to.
//!
//! Pong listens on the first port of the run on its own address and accepts only connections from
//! the other host; ping connects from its own address, again and again until it succeeds.

use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use myelin_bench_kit::Error;
use myelin_bench_kit::network::MEETING;
use myelin_bench_kit::protocol::{Network, Prepare, Role};
use rustix::io::Errno;
use rustix::net::sockopt::{self, Timeout};
use rustix::net::{self, AddressFamily, SocketFlags, SocketType};

use crate::peer::Deadline;

/// The network to the other host, seen from one side.
pub struct NetworkPath<'a> {
    /// Addresses and ports.
    pub network: &'a Network,
    /// This side.
    pub role: Role,
    /// The time limit for finding each other.
    pub deadline: Deadline,
    /// Pong's listener.
    listener: Option<TcpListener>,
}

impl<'a> NetworkPath<'a> {
    /// From now on pong listens.
    pub fn new(prepare: &Prepare, network: &'a Network) -> Result<Self, Error> {
        let (role, peer) = (prepare.role, network.peer);
        let listener = (role == Role::Pong).then(|| listen(network.own_at(MEETING))).transpose()?;
        let remedy = format!("check with `ping {peer}` that the host is up");
        let deadline = Deadline::new(prepare, remedy);
        Ok(NetworkPath { network, role, deadline, listener })
    }

    /// The next connection. Both sides ask for the same number, in the same order.
    pub fn connection(&self) -> Result<OwnedFd, Error> {
        let socket = match &self.listener {
            Some(listener) => self.accept(listener)?,
            None => self.connect()?,
        };
        sockopt::set_tcp_nodelay(&socket, true).map_err(std::io::Error::from)?;
        Ok(socket)
    }

    fn accept(&self, listener: &TcpListener) -> Result<OwnedFd, Error> {
        loop {
            match listener.accept() {
                Ok((socket, from)) if from.ip() == self.network.peer => {
                    socket.set_nonblocking(false)?;
                    return Ok(socket.into());
                }
                Ok(_) => {} // a foreign connection; closed by dropping it
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    self.deadline.nap("ping")?;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn connect(&self) -> Result<OwnedFd, Error> {
        let (own, there) = (SocketAddr::new(self.network.own, 0), self.network.peer_at(MEETING));
        let family = if own.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        loop {
            let flags = SocketFlags::CLOEXEC;
            let socket = net::socket_with(family, SocketType::STREAM, flags, None)
                .map_err(std::io::Error::from)?;
            net::bind(&socket, &own).map_err(|error| cannot_bind(own, error.into()))?;
            // After the limit `connect` returns EINPROGRESS.
            let limit = Some(self.deadline.remaining());
            sockopt::set_socket_timeout(&socket, Timeout::Send, limit)
                .map_err(std::io::Error::from)?;
            match net::connect(&socket, &there) {
                Ok(()) => return Ok(socket),
                Err(Errno::CONNREFUSED | Errno::HOSTUNREACH | Errno::INPROGRESS) => {
                    self.deadline.nap("pong")?;
                }
                Err(error) => {
                    let peer = there.ip();
                    return Err(Error::new(format!("cannot reach pong at {there}: {error}"))
                        .remedy(format!("check the route with `ip route get {peer}`")));
                }
            }
        }
    }

    /// Makes a connection end some time after the other host has vanished, but not if the network
    /// is down for a few seconds.
    pub fn notice_death(socket: impl AsFd) -> Result<(), Error> {
        let set = sockopt::set_socket_keepalive(&socket, true)
            .and_then(|()| sockopt::set_tcp_keepidle(&socket, PROBE_EVERY))
            .and_then(|()| sockopt::set_tcp_keepintvl(&socket, PROBE_EVERY))
            .and_then(|()| sockopt::set_tcp_keepcnt(&socket, PROBES));
        Ok(set.map_err(std::io::Error::from)?)
    }
}

fn listen(at: SocketAddr) -> Result<TcpListener, Error> {
    let listener = TcpListener::bind(at).map_err(|error| cannot_bind(at, error))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Why a socket cannot have the address `at`.
pub fn cannot_bind(at: SocketAddr, error: std::io::Error) -> Error {
    let remedy = match error.kind() {
        std::io::ErrorKind::AddrInUse => {
            format!("find the program that has the port with `ss -tulpn 'sport = :{}'`", at.port())
        }
        _ => "check the addresses of this host with `ip address`".to_owned(),
    };
    Error::new(format!("cannot use {at}: {error}")).remedy(remedy)
}

/// A connection ends after four unanswered probes: after 20 s.
const PROBE_EVERY: Duration = Duration::from_secs(4);
const PROBES: u32 = 4;
