//! The socket of a connection.

use std::io::IoSlice;
use std::mem::{MaybeUninit, offset_of};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use rustix::net::{SendFlags, Shutdown, shutdown, sockopt};

use super::Connections;
use super::pacer::{Pacer, Progress};

/// A connected socket that does not block. Any thread may use it.
pub(super) struct Socket {
    socket: OwnedFd,
    /// The most bytes that the kernel may send at once. A hint: it orders nothing.
    burst: AtomicUsize,
}

impl Socket {
    /// Sets a socket up for samples: nothing waits for more bytes, a peer that does not answer for
    /// so long is gone, and closing does not wait.
    pub(super) fn new(socket: OwnedFd, how: &Connections) -> rustix::io::Result<Socket> {
        let patience_ms = u32::try_from(how.patience.as_millis()).unwrap_or(u32::MAX);
        sockopt::set_tcp_nodelay(&socket, true)?;
        sockopt::set_tcp_user_timeout(&socket, patience_ms)?;
        // An idle connection to a host that has gone.
        sockopt::set_socket_keepalive(&socket, true)?;
        sockopt::set_tcp_keepidle(&socket, KEEPALIVE_IDLE)?;
        sockopt::set_tcp_keepintvl(&socket, KEEPALIVE_INTERVAL)?;
        sockopt::set_tcp_keepcnt(&socket, KEEPALIVE_COUNT)?;
        let socket = Socket { socket, burst: AtomicUsize::new(usize::MAX) };
        // The kernel derives the packets' priority on this host from the mark, too. One of them is not
        // the socket's family.
        let mark = libc::c_int::from(how.dscp) << 2;
        socket.set(libc::IPPROTO_IP, libc::IP_TOS, mark);
        socket.set(libc::IPPROTO_IPV6, libc::IPV6_TCLASS, mark);
        // What waits in the kernel is sent at the rate of before.
        socket.set(libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, UNSENT_BYTES);
        Ok(socket)
    }

    /// Sends some bytes of the parts. Not by `writev`: a connection that has been closed must not raise
    /// SIGPIPE.
    pub(super) fn send(&self, parts: &[IoSlice<'_>]) -> rustix::io::Result<usize> {
        let mut flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        let mut left = self.burst.load(Relaxed);
        if left >= SEGMENT_BYTES_MAX {
            return rustix::net::sendmsg(&self.socket, parts, &mut Default::default(), flags);
        }
        let (mut burst, mut used) = ([IoSlice::new(&[]); 8], 0);
        for (cut, part) in burst.iter_mut().zip(parts) {
            *cut = IoSlice::new(&part[..part.len().min(left)]);
            left -= cut.len();
            used += 1;
            if left == 0 {
                break;
            }
        }
        // The kernel does not join bytes behind this to those before it.
        flags |= SendFlags::EOR;
        rustix::net::sendmsg(&self.socket, &burst[..used], &mut Default::default(), flags)
    }

    pub(super) fn read(&self, into: &mut [u8]) -> rustix::io::Result<usize> {
        rustix::io::read(&self.socket, into)
    }

    pub(super) fn read_uninit(&self, into: &mut [MaybeUninit<u8>]) -> rustix::io::Result<usize> {
        rustix::io::read(&self.socket, into).map(|(read, _)| read.len())
    }

    /// Has the kernel report arriving bytes once there are so many, and wake a thread less often. If
    /// they are there already, it reports them now.
    pub(super) fn set_low_water(&self, bytes: usize) {
        let bytes = bytes as libc::c_int; // at most `LOW_WATER_MAX`
        self.set(libc::SOL_SOCKET, libc::SO_RCVLOWAT, bytes);
    }

    /// What has become of the bytes; `None` before Linux 4.10.
    pub(super) fn progress(&self) -> Option<Progress> {
        // SAFETY: it is made of integers alone.
        let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
        let mut bytes = size_of_val(&info) as libc::socklen_t;
        let (level, option) = (libc::IPPROTO_TCP, libc::TCP_INFO);
        // SAFETY: the kernel writes at most `bytes` to the structure, and how many to `bytes`.
        let result = unsafe {
            let info = (&raw mut info).cast();
            libc::getsockopt(self.socket.as_raw_fd(), level, option, info, &raw mut bytes)
        };
        let has_all =
            bytes as usize >= offset_of!(libc::tcp_info, tcpi_busy_time) + size_of::<u64>();
        (result == 0 && has_all).then(|| Progress {
            now: Instant::now(),
            acknowledged: info.tcpi_bytes_acked,
            busy: Duration::from_micros(info.tcpi_busy_time),
            round_trip: Duration::from_micros(info.tcpi_rtt.into()),
            shortest: Duration::from_micros(info.tcpi_min_rtt.into()),
        })
    }

    /// Has the kernel send as slowly as the pacer says.
    pub(super) fn pace(&self, pacer: &Pacer) {
        self.set(
            libc::SOL_SOCKET,
            libc::SO_MAX_PACING_RATE,
            pacer.rate().map_or(u64::MAX, |it| it as u64),
        );
        self.burst.store(pacer.burst(), Relaxed);
    }

    pub(super) fn close(&self) {
        let _ = shutdown(&self.socket, Shutdown::Both);
    }

    /// Sets a hint: a fault changes nothing.
    fn set<T: Copy>(&self, level: libc::c_int, option: libc::c_int, value: T) {
        let size = size_of::<T>() as libc::socklen_t;
        // SAFETY: the kernel reads a value of this size.
        unsafe {
            let value = (&raw const value).cast();
            libc::setsockopt(self.socket.as_raw_fd(), level, option, value, size)
        };
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The most that the kernel hands to a network card at once.
const SEGMENT_BYTES_MAX: usize = 64 << 10;
/// The kernel asks for more at half of it. Then a link of 1 Gbit/s is busy for 2 ms still.
const UNSENT_BYTES: libc::c_int = 512 << 10;
const KEEPALIVE_IDLE: Duration = Duration::from_secs(5);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(1);
const KEEPALIVE_COUNT: u32 = 3;

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::{Ipv4Addr, TcpListener, TcpStream};

    use super::*;

    /// A socket, and the other end of its connection.
    fn pair() -> (Socket, TcpStream) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let ours = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        ours.set_nonblocking(true).unwrap();
        let how = Connections { patience: Duration::from_secs(60), dscp: 0, identity: None };
        (Socket::new(ours.into(), &how).unwrap(), listener.accept().unwrap().0)
    }

    /// Sends it all, in parts that end within a burst and beyond it.
    fn send(socket: &Socket, bytes: &[u8]) {
        let mut at = 0;
        while at < bytes.len() {
            let (first, rest) = bytes[at..].split_at((bytes.len() - at).min(at % 5_000));
            match socket.send(&[IoSlice::new(first), IoSlice::new(rest)]) {
                Ok(taken) => {
                    assert!(taken <= BURST);
                    at += taken;
                }
                Err(error) => assert_eq!(error, rustix::io::Errno::AGAIN),
            }
        }
    }

    #[test]
    fn a_burst_is_no_longer_than_the_limit_and_nothing_is_lost_between() {
        let (socket, mut other) = pair();
        socket.burst.store(BURST, Relaxed);
        let bytes: Vec<u8> = (0..1_000_003_u32).map(|at| (at >> 3) as u8).collect();
        let sent = bytes.clone();
        let receives = std::thread::spawn(move || {
            let mut received = vec![0; sent.len()];
            other.read_exact(&mut received).unwrap();
            assert!(received == sent);
        });
        send(&socket, &bytes);
        receives.join().unwrap();
    }

    #[test]
    fn the_kernel_says_what_has_become_of_the_bytes() {
        let (socket, mut other) = pair();
        socket.burst.store(BURST, Relaxed);
        send(&socket, &[7; 3 * BURST]);
        other.read_exact(&mut [0; 3 * BURST]).unwrap();
        while socket.progress().unwrap().acknowledged < 3 * BURST as u64 {
            std::thread::yield_now();
        }
        let progress = socket.progress().unwrap();
        assert!(progress.shortest > Duration::ZERO && progress.round_trip >= progress.shortest);
    }

    const BURST: usize = 4_096;
}
