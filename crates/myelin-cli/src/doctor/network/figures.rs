//! What is measured of a path, without a judgement.

use std::net::SocketAddr;

use super::listener::Heard;

/// The figures of a path. What is absent could not be measured.
#[derive(Debug)]
pub struct Figures {
    /// The other host, as the user has named it, and its address; no port means anything here.
    pub host: String,
    pub peer: SocketAddr,
    /// This host's address on the path, and the interface that has it.
    pub own: SocketAddr,
    pub interface: String,
    /// Whether nodes that are started here use IPv6.
    pub nodes_use_ipv6: bool,
    pub domain: u32,
    /// Why there is no partner; absent if there is one.
    pub partner_missing: Option<String>,
    pub round_trip: Result<RoundTrips, String>,
    /// Of large datagrams.
    pub large: Result<Answered, String>,
    pub bandwidth: Result<Bandwidth, String>,
    pub mtu: Mtu,
    pub clock: Result<ClockOffset, String>,
    pub arrivals: Result<Arrivals, String>,
}

impl Figures {
    /// The other host's address as it is typed on this host.
    pub fn peer(&self) -> String {
        self.typed(self.peer)
    }

    /// This host's address.
    pub fn own(&self) -> String {
        self.typed(self.own)
    }

    /// A link-local address means something with its interface alone.
    fn typed(&self, address: SocketAddr) -> String {
        match address {
            SocketAddr::V6(it) if it.scope_id() != 0 => format!("{}%{}", it.ip(), self.interface),
            it => it.ip().to_string(),
        }
    }
}

/// Small packets that were answered.
#[derive(Clone, Debug, PartialEq)]
pub struct RoundTrips {
    /// Such as `ICMP`.
    pub by: &'static str,
    pub answered: Answered,
    /// Those of the requests that arrived at the partner, if it counts them.
    pub arrived: Option<u64>,
    /// Ascending; never empty.
    pub times_us: Vec<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answered {
    pub sent: u64,
    pub answered: u64,
}

/// Of TCP, one connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bandwidth {
    pub to_mbit: f64,
    pub from_mbit: f64,
}

/// The largest IP packet that is not fragmented.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mtu {
    /// Of the interface, or of what the kernel has learnt of the path.
    pub interface: u32,
    /// Of the path, there and back.
    pub path: Result<u32, String>,
}

/// The other host's clock minus this one's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClockOffset {
    pub offset_us: f64,
    pub error_us: f64,
}

/// Which datagrams arrived on ports of DDS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrivals {
    /// Ports that were open there, and what arrived at them.
    pub there: (Vec<u16>, Heard),
    pub here: (Vec<u16>, Heard),
}
