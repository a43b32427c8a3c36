//! `myelin doctor --network`: what is wrong with the path to another host, and which setting fits.
//!
//! `measure` measures, with a partner at the other end (`serve`) if there is one; `figures` is the
//! result, `judge` makes findings of it.

mod figures;
mod judge;
mod listener;
mod measure;
mod protocol;
mod serve;

use std::net::{SocketAddr, ToSocketAddrs};

use myelin_bench_lab::input_error::InputError;
use myelin_dds::Config;
use serde::Serialize;

use super::finding::Finding;
use figures::Figures;

pub use listener::DOMAIN_MAX;
pub use protocol::PORT;
pub use serve::serve;

/// The findings about the path to a host.
#[derive(Debug, Serialize)]
pub struct Path {
    /// The host as it was named.
    pub host: String,
    /// Its address; a link-local one with its interface, such as `fe80::2%eth0`.
    pub address: String,
    /// This host's address on the path.
    pub own_address: String,
    /// The interface that leads there.
    pub interface: String,
    /// Why there is no partner at the other end; absent if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partner_missing: Option<String>,
    /// The findings, the worst first.
    pub findings: Vec<Finding>,
}

/// Examines the path to `host`: a name, an address, or one with the partner's port, such as
/// `[fe80::2%eth0]:7390`.
///
/// # Errors
/// No such host, or no way there.
pub fn examine(host: &str, port: Option<u16>, domain: u32) -> Result<Path, InputError> {
    let named = |text: String| InputError::new(format!("--network {host}: {text}"));
    let (name, own_port) = split(host).ok_or_else(|| {
        named("it is neither a host nor one with a port".into())
            .remedy("give HOST, HOST:PORT, or [ADDRESS]:PORT for an IPv6 address")
    })?;
    if let (Some(one), Some(other)) = (own_port, port)
        && one != other
    {
        let text = format!("--port {other} is not the port of --network");
        return Err(named(text).remedy("leave out one of them"));
    }
    let port = own_port.or(port).unwrap_or(PORT);
    let addresses = (name, port).to_socket_addrs().map_err(|error| {
        let remedy = match name.split_once('%') {
            Some((_, zone)) => format!("behind % comes an interface of this host; is {zone} one?"),
            None => "give a name or an address of the other host".into(),
        };
        named(super::host::reason(&error)).remedy(remedy)
    })?;
    let address = preferred(addresses).ok_or_else(|| named("it has no address".into()))?;
    if let SocketAddr::V6(it) = address
        && it.ip().is_unicast_link_local()
        && it.scope_id() == 0
    {
        let text = "a link-local address needs the interface that leads there";
        return Err(named(text.into()).remedy(format!("give {name}%IF; `ip link` lists them")));
    }
    let figures = measure::measure(name, address, domain, nodes_use_ipv6()).map_err(named)?;
    let findings = judge::findings(&figures);
    let (address, own_address) = (figures.peer(), figures.own());
    let Figures { host, interface, partner_missing, .. } = figures;
    Ok(Path { host, address, own_address, interface, partner_missing, findings })
}

/// A host, and the port behind it.
fn split(host: &str) -> Option<(&str, Option<u16>)> {
    let port = |text: &str| text.parse().ok().filter(|port| *port != 0).map(Some);
    if let Some(bracketed) = host.strip_prefix('[') {
        let (address, behind) = bracketed.split_once(']')?;
        return match behind.strip_prefix(':') {
            Some(text) => Some((address, port(text)?)),
            None => behind.is_empty().then_some((address, None)),
        };
    }
    match host.split_once(':') {
        Some((name, text)) if !text.contains(':') => Some((name, port(text)?)),
        _ => Some((host, None)),
    }
}

/// IPv4 as by nodes, if the host has it.
fn preferred(addresses: impl Iterator<Item = SocketAddr>) -> Option<SocketAddr> {
    addresses.min_by_key(SocketAddr::is_ipv6)
}

/// Whether nodes that are started here use IPv6.
fn nodes_use_ipv6() -> bool {
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let peers = variable("MYELIN_PEERS").unwrap_or_default();
    let peers = peers.split(',').map(|peer| peer.trim().to_owned()).collect();
    Config { interface: variable("MYELIN_INTERFACE"), peers, ..Config::default() }.is_ipv6()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_may_have_a_port() {
        for (text, expected) in [
            ("robot", Some(("robot", None))),
            ("robot:7000", Some(("robot", Some(7_000)))),
            ("10.0.0.2:7000", Some(("10.0.0.2", Some(7_000)))),
            ("fd00::2", Some(("fd00::2", None))),
            ("fe80::2%eth0", Some(("fe80::2%eth0", None))),
            ("[fd00::2]", Some(("fd00::2", None))),
            ("[fe80::2%eth0]:7000", Some(("fe80::2%eth0", Some(7_000)))),
            ("[fd00::2", None),
            ("[fd00::2]7000", None),
            ("robot:", None),
            ("robot:0", None),
            ("robot:70000", None),
        ] {
            assert_eq!(split(text), expected, "{text}");
        }
    }

    #[test]
    fn of_several_addresses_that_of_ipv4_is_taken() {
        let addresses = ["[fd00::2]:1", "10.0.0.2:1", "[fd00::3]:1"].map(|it| it.parse().unwrap());
        assert_eq!(preferred(addresses.into_iter()), Some(addresses[1]));
        assert_eq!(preferred([addresses[0], addresses[2]].into_iter()), Some(addresses[0]));
        assert_eq!(preferred(std::iter::empty()), None);
    }
}
