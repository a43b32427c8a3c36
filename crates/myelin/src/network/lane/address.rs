//! Where a node listens for connections of the lane: text in the user data of its writer of flow
//! control, `myelin_lane=1:`, base64, `;`. Only nodes of the domain learn the token in it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;

use myelin_dds::{Binding, Guid};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType};

use super::frame::Token;
use crate::network::interface;
use crate::network::user_data::{from_base64, to_base64};

/// A node's listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::network) struct LaneAddress {
    pub(in crate::network) node: u64,
    /// The DDS endpoint that has announced it, of the node's participant.
    pub(super) announcer: Guid,
    pub(super) token: Token,
    port: u16,
    addresses: Vec<IpAddr>,
}

impl LaneAddress {
    pub(in crate::network) fn encode(&self) -> String {
        let LaneAddress { node, token, port, addresses, .. } = self;
        let mut bytes = [&node.to_le_bytes()[..], token, &port.to_le_bytes()].concat();
        for address in addresses {
            match address {
                IpAddr::V4(address) => bytes.extend(address.to_ipv6_mapped().octets()),
                IpAddr::V6(address) => bytes.extend(address.octets()),
            }
        }
        format!("{KEY}{};", to_base64(&bytes))
    }

    /// The first one in a node's user data; `None` if there is none that can be read.
    pub(in crate::network) fn read(announcer: Guid, user_data: &[u8]) -> Option<LaneAddress> {
        let rest = user_data.strip_prefix(KEY.as_bytes())?;
        let end = rest.iter().position(|byte| *byte == b';')?;
        let bytes = from_base64(&rest[..end])?;
        let (node, rest) = bytes.split_first_chunk()?;
        let (token, rest) = rest.split_first_chunk()?;
        let (port, rest) = rest.split_first_chunk()?;
        let (addresses, rest) = rest.as_chunks::<16>();
        if !rest.is_empty() || !(1..=ADDRESSES_MAX).contains(&addresses.len()) {
            return None;
        }
        let address = |octets: &[u8; 16]| IpAddr::from(*octets).to_canonical();
        Some(LaneAddress {
            node: u64::from_le_bytes(*node),
            announcer,
            token: *token,
            port: u16::from_le_bytes(*port),
            addresses: addresses.iter().map(address).collect(),
        })
    }

    /// The address to try after so many attempts.
    pub(super) fn of_attempt(&self, attempts: usize) -> Option<SocketAddr> {
        let address = self.addresses.get(attempts % self.addresses.len().max(1))?;
        Some(SocketAddr::new(*address, self.port))
    }
}

/// Listens at a free port.
pub(super) fn listen(
    node: u64,
    binding: Option<Binding>,
) -> rustix::io::Result<(OwnedFd, LaneAddress)> {
    let at = binding.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |binding| binding.address);
    let addresses = match binding {
        Some(binding) => vec![binding.address],
        None => interface::addresses(ADDRESSES_MAX),
    };
    let family = if at.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let listener = net::socket_with(family, SocketType::STREAM, flags, None)?;
    let scope = binding.map_or(0, |binding| binding.index);
    let is_link_local = |at: Ipv6Addr| at.is_unicast_link_local();
    let at = match at {
        IpAddr::V6(at) if is_link_local(at) => std::net::SocketAddrV6::new(at, 0, 0, scope).into(),
        at => SocketAddr::new(at, 0),
    };
    net::bind(&listener, &at)?;
    net::listen(&listener, BACKLOG)?;
    let bound: SocketAddr =
        net::getsockname(&listener)?.try_into().map_err(|_| Errno::AFNOSUPPORT)?;
    let mut token = Token::default();
    // SAFETY: so many bytes are ours.
    let filled = unsafe { libc::getrandom(token.as_mut_ptr().cast(), token.len(), 0) };
    if filled != token.len() as isize {
        return Err(Errno::IO);
    }
    let (announcer, port) = (Guid::default(), bound.port());
    Ok((listener, LaneAddress { node, announcer, token, port, addresses }))
}

const KEY: &str = "myelin_lane=1:";
/// More are left out.
const ADDRESSES_MAX: usize = 8;
const BACKLOG: i32 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn address() -> LaneAddress {
        let addresses = vec!["10.77.0.1".parse().unwrap(), "fd00::7".parse().unwrap()];
        let (announcer, token) = ([3; 16], [7; 16]);
        LaneAddress { node: 5 << 24, announcer, token, port: 40_000, addresses }
    }

    #[test]
    fn an_address_is_read_as_written_in_front_of_the_node() {
        let text = address().encode();
        for behind in ["", "myelin=3:AAAA;"] {
            let data = format!("{text}{behind}");
            assert_eq!(LaneAddress::read([3; 16], data.as_bytes()), Some(address()));
        }
        let at = |attempts| address().of_attempt(attempts).unwrap().to_string();
        assert_eq!(
            [at(0), at(1), at(2)],
            ["10.77.0.1:40000", "[fd00::7]:40000", "10.77.0.1:40000"]
        );
    }

    #[test]
    fn damaged_addresses_are_none() {
        let text = address().encode();
        for length in 0..text.len() {
            let part = &text.as_bytes()[..length];
            assert_eq!(LaneAddress::read([3; 16], part), None, "{length}");
        }
        let none = LaneAddress { addresses: Vec::new(), ..address() };
        let many = LaneAddress { addresses: vec![address().addresses[0]; 9], ..address() };
        for wrong in [none, many] {
            assert_eq!(LaneAddress::read([3; 16], wrong.encode().as_bytes()), None);
        }
    }
}
