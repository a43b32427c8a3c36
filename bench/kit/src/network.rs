//! The ports of a run across hosts.

use std::ffi::CString;
use std::net::{IpAddr, SocketAddr, SocketAddrV6};

use crate::protocol::{Network, PORTS};

/// The port for drivers that need a connection: pong listens, ping connects.
pub const MEETING: u16 = 0;
/// The UDP port on which pong's host answers readings of its clock.
pub const CLOCK: u16 = PORTS - 1;

impl Network {
    /// This host's address of port `place` of the run, below [`PORTS`].
    pub fn own_at(&self, place: u16) -> SocketAddr {
        self.at(self.own, place)
    }

    /// The other host's address of port `place` of the run, below [`PORTS`].
    pub fn peer_at(&self, place: u16) -> SocketAddr {
        self.at(self.peer, place)
    }

    fn at(&self, address: IpAddr, place: u16) -> SocketAddr {
        debug_assert!(place < PORTS);
        let port = self.port.saturating_add(place);
        match address {
            // A link-local address needs its interface.
            IpAddr::V6(address) if address.is_unicast_link_local() => {
                SocketAddrV6::new(address, port, 0, self.interface_index()).into()
            }
            address => SocketAddr::new(address, port),
        }
    }

    /// 0 if there is no such interface.
    fn interface_index(&self) -> u32 {
        let Ok(name) = CString::new(self.interface.as_str()) else {
            return 0;
        };
        // SAFETY: `name` is a NUL-terminated string.
        unsafe { libc::if_nametoindex(name.as_ptr()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_local_address_names_its_interface() {
        let network = Network {
            interface: "lo".into(),
            own: "fe80::1".parse().unwrap(),
            peer: "::1".parse().unwrap(),
            port: 7000,
        };
        let SocketAddr::V6(own) = network.own_at(CLOCK) else { panic!("of its family") };
        assert_eq!((own.port(), own.scope_id()), (7015, 1));
        assert_eq!(network.peer_at(MEETING).to_string(), "[::1]:7000");
        let nowhere = Network { interface: "no such thing".into(), ..network };
        assert_eq!(nowhere.own_at(MEETING).to_string(), "[fe80::1]:7000");
    }
}
