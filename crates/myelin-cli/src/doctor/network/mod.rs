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

use std::net::{IpAddr, Ipv4Addr, ToSocketAddrs};

use myelin_bench_lab::input_error::InputError;
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
    /// Its address.
    pub address: Ipv4Addr,
    /// This host's address on the path.
    pub own_address: Ipv4Addr,
    /// The interface that leads there.
    pub interface: String,
    /// Why there is no partner at the other end; absent if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partner_missing: Option<String>,
    /// The findings, the worst first.
    pub findings: Vec<Finding>,
}

/// Examines the path to `host`, whose partner listens on `port`.
///
/// # Errors
/// No such host, or no way there.
pub fn examine(host: &str, port: u16, domain: u32) -> Result<Path, InputError> {
    let named = |text: String| InputError::new(format!("--network {host}: {text}"));
    let addresses = (host, port).to_socket_addrs().map_err(|error| {
        named(super::host::reason(&error)).remedy("give a name or an address of the other host")
    })?;
    let mut four = addresses.filter_map(|address| match address.ip() {
        IpAddr::V4(address) => Some(address),
        IpAddr::V6(_) => None,
    });
    let address = four.next().ok_or_else(|| {
        named("it has no IPv4 address".into())
            .remedy("the checks are of IPv4; give such an address")
    })?;
    let figures = measure::measure(host, address, port, domain).map_err(named)?;
    let findings = judge::findings(&figures);
    let Figures { own: own_address, interface, partner_missing, .. } = figures;
    Ok(Path { host: host.into(), address, own_address, interface, partner_missing, findings })
}
