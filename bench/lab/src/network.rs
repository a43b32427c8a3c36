//! What this host's kernel knows of the way to another.

use std::ffi::CStr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

/// This host's address as whoever logged in by ssh has reached it; `None` if nobody did. See
/// `SSH_CONNECTION` in ssh(1): the client's address and port, then the server's.
pub(crate) fn of_login() -> Option<IpAddr> {
    std::env::var("SSH_CONNECTION").ok()?.split(' ').nth(2)?.parse().ok()
}

/// The interface that leads to `peer`, and the address of this host there, as the kernel's table of
/// routes has it: a datagram socket is connected, and nothing is sent.
pub(crate) fn route_to(peer: IpAddr) -> Result<(String, IpAddr), String> {
    let any: IpAddr = match peer {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let ask = || -> std::io::Result<IpAddr> {
        let socket = UdpSocket::bind((any, 0))?;
        socket.connect((peer, DISCARD_PORT))?;
        Ok(socket.local_addr()?.ip())
    };
    let own = ask().map_err(|error| format!("no route to {peer}: {error}"))?;
    let interface = interface_of(own).ok_or_else(|| format!("no interface has {own}"))?;
    Ok((interface, own))
}

fn interface_of(address: IpAddr) -> Option<String> {
    let mut first = std::ptr::null_mut();
    // SAFETY: `first` is a valid place for the list, which is freed below.
    if unsafe { libc::getifaddrs(&mut first) } != 0 {
        return None;
    }
    let mut found = None;
    let mut next = first;
    while !next.is_null() && found.is_none() {
        // SAFETY: an element of a list that is not freed yet.
        let element = unsafe { &*next };
        // SAFETY: as above; the address belongs to the element.
        if unsafe { address_of(element.ifa_addr) } == Some(address) {
            // SAFETY: every element has a name, a C string.
            let name = unsafe { CStr::from_ptr(element.ifa_name) };
            found = Some(name.to_string_lossy().into_owned());
        }
        next = element.ifa_next;
    }
    // SAFETY: made by getifaddrs, and no reference into it is left.
    unsafe { libc::freeifaddrs(first) };
    found
}

/// # Safety
/// `address` is null or a valid socket address of its family.
unsafe fn address_of(address: *const libc::sockaddr) -> Option<IpAddr> {
    if address.is_null() {
        return None;
    }
    // SAFETY: valid by the caller's promise, and of this family's type after the check.
    unsafe {
        match i32::from((*address).sa_family) {
            libc::AF_INET => {
                let address = (*address.cast::<libc::sockaddr_in>()).sin_addr.s_addr;
                Some(Ipv4Addr::from(u32::from_be(address)).into())
            }
            libc::AF_INET6 => {
                let address = (*address.cast::<libc::sockaddr_in6>()).sin6_addr.s6_addr;
                Some(Ipv6Addr::from(address).into())
            }
            _ => None,
        }
    }
}

/// Any port will do.
const DISCARD_PORT: u16 = 9;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_to_this_host_is_the_loopback_interface() {
        let own: IpAddr = Ipv4Addr::LOCALHOST.into();
        assert_eq!(route_to(own), Ok(("lo".into(), own)));
    }
}
