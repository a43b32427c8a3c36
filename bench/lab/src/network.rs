//! What this host's kernel knows of the way to another.

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
    let mut all = if_addrs::get_if_addrs().ok()?.into_iter();
    all.find(|interface| interface.ip() == address).map(|interface| interface.name)
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
