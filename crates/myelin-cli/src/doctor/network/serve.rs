//! `myelin doctor --serve`: the partner at the other end of a path.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use myelin_bench_lab::stderr::print_line;
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType, sockopt};

use super::listener::{DOMAIN_MAX, Listener, send_to_all};
use super::protocol::{Peer, Reply, Request, VERSION};

/// Serves until it is ended by a signal.
///
/// # Errors
/// The port is taken.
pub fn serve(port: u16) -> Result<()> {
    let listener = listen(port).with_context(|| format!("--serve: TCP port {port}"))?;
    let port = listener.local_addr()?.port();
    crate::say(&format!("serving `myelin doctor --network` at port {port}, until Ctrl-C\n"));
    let open = Arc::new(());
    for stream in listener.incoming() {
        let this = Arc::clone(&open);
        let started = stream.and_then(|stream| {
            if Arc::strong_count(&open) > CONNECTIONS_MAX + 1 {
                return Err(io::Error::other(format!("{CONNECTIONS_MAX} connections are open")));
            }
            std::thread::Builder::new().spawn(move || {
                let from = stream.peer_addr();
                if let (Err(error), Ok(from)) = (answer(stream, port), from) {
                    print_line(format_args!("{}: {error}", from.ip().to_canonical()));
                }
                drop(this);
            })
        });
        if let Err(error) = started {
            print_line(format_args!("a connection is closed: {error}"));
            std::thread::sleep(REFUSED_PAUSE); // a stranger may open them without end
        }
    }
    Ok(())
}

/// A listener for both versions of IP, or for IPv4 on a host that has no other.
fn listen(port: u16) -> io::Result<TcpListener> {
    let both = || {
        let (family, flags) = (AddressFamily::INET6, SocketFlags::CLOEXEC);
        let socket = net::socket_with(family, SocketType::STREAM, flags, None)?;
        sockopt::set_ipv6_v6only(&socket, false)?;
        sockopt::set_socket_reuseaddr(&socket, true)?;
        net::bind(&socket, &SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)))?;
        net::listen(&socket, CONNECTIONS_MAX as i32)?;
        Ok(TcpListener::from(socket))
    };
    match both() {
        Err(Errno::AFNOSUPPORT | Errno::ADDRNOTAVAIL) => {
            TcpListener::bind((Ipv4Addr::UNSPECIFIED, port))
        }
        other => other.map_err(io::Error::from),
    }
}

/// An address of IPv4, also where the socket is of both versions.
fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        ip if ip.is_ipv4() => (ip, address.port()).into(),
        _ => address, // with its scope
    }
}

/// Answers the requests of one connection.
fn answer(stream: TcpStream, port: u16) -> io::Result<()> {
    let (own, client) = (canonical(stream.local_addr()?), canonical(stream.peer_addr()?));
    let mut peer = Peer::new(stream)?;
    let mut open = None;
    while let Some(request) = peer.receive()? {
        let reply = match request {
            Request::Hello { version, .. } if version != VERSION => {
                failed(format!("the partner speaks version {VERSION}, this end {version}"))
            }
            Request::Hello { domain, .. } => {
                let domain = domain.min(DOMAIN_MAX);
                match when_free(|| Listener::open(own, client.ip(), domain, Some(port))) {
                    Ok(listener) => {
                        let ports = listener.ports().to_vec();
                        open = Some((listener, domain));
                        Reply::Hello { version: VERSION, ports }
                    }
                    Err(error) => failed(format!("UDP port {port} of the partner: {error}")),
                }
            }
            Request::Time => {
                let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                Reply::Time { ns: since.as_nanos() as u64 }
            }
            Request::Heard => match &open {
                Some((listener, _)) => Reply::Heard(listener.heard()),
                None => failed("no hello came before".into()),
            },
            Request::Send { ports } => match &open {
                // Only to the host that asks.
                Some((_, domain)) => {
                    let ports = &ports[..ports.len().min(PORTS_MAX)];
                    match send_to_all(own, client, *domain, ports) {
                        Ok(()) => Reply::Sent,
                        Err(error) => failed(error.to_string()),
                    }
                }
                None => failed("no hello came before".into()),
            },
            Request::Sink => {
                let (bytes, ns) = count(peer.bytes())?;
                Reply::Counted { bytes, ns }
            }
            Request::Source { ms } => {
                return send_for(peer.stream(), Duration::from_millis(ms).min(SOURCE_MAX));
            }
        };
        peer.send(&reply)?;
    }
    Ok(())
}

/// Opens ports that another client has, or has had until a moment ago.
fn when_free(mut open: impl FnMut() -> io::Result<Listener>) -> io::Result<Listener> {
    let begin = Instant::now();
    loop {
        match open() {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                if begin.elapsed() > FREE_LIMIT {
                    return Err(error);
                }
            }
            other => return other,
        }
        std::thread::sleep(FREE_LOOK);
    }
}

fn failed(reason: String) -> Reply {
    Reply::Failed { reason }
}

/// Reads to the end: the bytes, and the time from the first to the last.
pub fn count(from: &mut impl Read) -> io::Result<(u64, u64)> {
    let (mut buffer, mut bytes) = (vec![0; BUFFER_BYTES], 0);
    let (mut begin, mut end) = (None, Duration::ZERO);
    loop {
        let read = from.read(&mut buffer)?;
        let begin: Instant = *begin.get_or_insert_with(Instant::now);
        if read == 0 {
            return Ok((bytes, end.as_nanos() as u64));
        }
        bytes += read as u64;
        end = begin.elapsed();
    }
}

/// Writes for so long. What the kernel still holds is not waited for.
pub fn send_for(to: &mut impl Write, duration: Duration) -> io::Result<()> {
    let (buffer, begin) = (vec![0; BUFFER_BYTES], Instant::now());
    while begin.elapsed() < duration {
        to.write_all(&buffer)?;
    }
    Ok(())
}

const BUFFER_BYTES: usize = 128 << 10;
const CONNECTIONS_MAX: usize = 32;
const REFUSED_PAUSE: Duration = Duration::from_millis(10);
const FREE_LIMIT: Duration = Duration::from_secs(2);
const FREE_LOOK: Duration = Duration::from_millis(20);
const SOURCE_MAX: Duration = Duration::from_secs(5);
const PORTS_MAX: usize = 64;
