//! Sets up the loopback interface of a new, empty network namespace.

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Takes up `lo` in the network of the calling thread, with multicast, and routes all multicast
/// over it.
pub fn up() -> io::Result<()> {
    // SAFETY: the call takes only integers; the returned descriptor belongs to nobody else.
    let socket =
        match unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) } {
            -1 => return Err(io::Error::last_os_error()),
            // SAFETY: as above.
            socket => unsafe { OwnedFd::from_raw_fd(socket) },
        };
    let mut name = b"lo\0".map(|byte| byte as libc::c_char);
    // SAFETY: all zeros are a request without a name.
    let mut lo: libc::ifreq = unsafe { std::mem::zeroed() };
    lo.ifr_name[..name.len()].copy_from_slice(&name);
    lo.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_MULTICAST) as libc::c_short;
    // SAFETY: the request is valid for the call.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &lo) })?;

    // SAFETY: all zeros are a route to nowhere.
    let mut route: libc::rtentry = unsafe { std::mem::zeroed() };
    route.rt_dst = address([224, 0, 0, 0]);
    route.rt_genmask = address([240, 0, 0, 0]);
    route.rt_flags = libc::RTF_UP;
    route.rt_dev = name.as_mut_ptr();
    // SAFETY: the route, and the name that it points to, are valid for the call.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCADDRT, &route) })
}

fn address([a, b, c, d]: [u8; 4]) -> libc::sockaddr {
    let octets = [0, 0, a, b, c, d, 0, 0, 0, 0, 0, 0, 0, 0];
    libc::sockaddr {
        sa_family: libc::AF_INET as libc::sa_family_t,
        sa_data: octets.map(|octet| octet as libc::c_char),
    }
}

fn check(status: c_int) -> io::Result<()> {
    if status < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
