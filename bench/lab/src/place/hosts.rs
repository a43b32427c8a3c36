//! The two hosts of a session: an agent on each, and what leads from one to the other.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use myelin_bench_kit::protocol::{Network, PORTS};
use serde::{Deserialize, Serialize};

use super::line::{Line, agent};
use super::netns::{self, Pair};
use super::words::Request;
use super::{Place, Remote};
use crate::input_error::InputError;
use crate::run::order::Across;

/// Which two hosts, ping's first: `--hosts`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum HostsChoice {
    /// Two network namespaces of this host, made for the session.
    #[default]
    Namespaces,
    /// These.
    Real([Address; 2]),
}

/// One host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// The one the lab runs on.
    Local,
    /// As ssh(1) is told its destination.
    Ssh(String),
}

impl FromStr for HostsChoice {
    type Err = InputError;

    fn from_str(text: &str) -> Result<Self, InputError> {
        let remedy = "use netns, or two of local and ssh:DESTINATION, for instance ssh:a,ssh:b";
        let wrong = |what: String| InputError::new(format!("--hosts: {what}")).remedy(remedy);
        if text == "netns" {
            return Ok(HostsChoice::Namespaces);
        }
        let hosts = text.split(',').map(|word| match word.split_once(':') {
            None if word == "local" => Ok(Address::Local),
            // What begins with a dash ssh would take for an option.
            Some(("ssh", host)) if !host.is_empty() && !host.starts_with('-') => {
                Ok(Address::Ssh(host.into()))
            }
            _ => Err(wrong(format!("{word:?} is no host"))),
        });
        match hosts.collect::<Result<Vec<_>, _>>()?.as_slice() {
            [ping, pong] if ping == pong => Err(wrong(format!("{ping} twice is one host"))),
            [ping, pong] => Ok(HostsChoice::Real([ping.clone(), pong.clone()])),
            others => Err(wrong(format!("{} hosts, where two are needed", others.len()))),
        }
    }
}

impl TryFrom<String> for HostsChoice {
    type Error = InputError;

    fn try_from(text: String) -> Result<Self, InputError> {
        text.parse()
    }
}

impl From<HostsChoice> for String {
    fn from(choice: HostsChoice) -> String {
        choice.to_string()
    }
}

impl fmt::Display for HostsChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HostsChoice::Namespaces => write!(f, "netns"),
            HostsChoice::Real([ping, pong]) => write!(f, "{ping},{pong}"),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Local => write!(f, "local"),
            Address::Ssh(host) => write!(f, "ssh:{host}"),
        }
    }
}

/// The two hosts. When it is dropped, nothing of it is left on either.
pub(crate) struct Hosts {
    choice: HostsChoice,
    /// The drivers that may be asked for: paths on this host.
    drivers: Vec<PathBuf>,
    up: Option<Up>,
}

/// Two hosts that can be reached.
struct Up {
    places: Vec<Box<dyn Place>>,
    across: Across,
}

impl Hosts {
    /// Reaches both, or says why one cannot be reached, and what to do.
    pub(crate) fn reach(choice: HostsChoice, drivers: Vec<PathBuf>) -> Result<Self, String> {
        let mut hosts = Hosts { choice, drivers, up: None };
        hosts.ready()?;
        Ok(hosts)
    }

    /// The places of a run, and the way between them. A host that has gone since the last run is
    /// reached anew, and the other one with it.
    pub(crate) fn ready(&mut self) -> Result<(&mut [Box<dyn Place>], &Across), String> {
        let is_up = |up: &Up| up.places.iter().all(|place| place.check().is_ok());
        if !self.up.as_ref().is_some_and(is_up) {
            // First the old ones end.
            self.up = None;
            self.up = Some(self.bring_up()?);
        }
        let up = self.up.as_mut().expect("just brought up");
        Ok((&mut up.places, &up.across))
    }

    fn bring_up(&self) -> Result<Up, String> {
        let open = |line: anyhow::Result<Line>| -> Result<Remote, String> {
            line.and_then(Remote::new).map_err(|error| format!("{error:#}"))
        };
        let (mut hosts, pair) = match &self.choice {
            HostsChoice::Namespaces => {
                let mut hosts = Vec::new();
                for name in netns::NAMES {
                    hosts.push(open(netns::line(name))?);
                }
                let pids = hosts.iter().filter_map(Remote::pid).collect::<Vec<_>>();
                let pair = Pair::join(&pids)?;
                (hosts, Some(Arc::new(pair)))
            }
            HostsChoice::Real(addresses) => {
                let mut hosts = Vec::new();
                for address in addresses {
                    hosts.push(open(self.line(address))?);
                }
                (hosts, None)
            }
        };
        let network = match pair {
            Some(_) => netns::networks(),
            None => ways(&mut hosts)?,
        };
        let names = [hosts[0].name().to_owned(), hosts[1].name().to_owned()];
        let one_machine = hosts[0].boot() == hosts[1].boot();
        let boxed = |host: Remote| -> Box<dyn Place> { Box::new(host) };
        let places = hosts.into_iter().map(boxed).collect();
        Ok(Up { places, across: Across { names, network, one_machine, pair } })
    }

    /// The way to an agent on a real host.
    fn line(&self, address: &Address) -> anyhow::Result<Line> {
        match address {
            Address::Local => Line::open("local", &mut agent()?),
            Address::Ssh(host) => super::ssh::line(host, &self.drivers),
        }
    }
}

/// The way from each of two hosts to the other, as their kernels have it.
fn ways(hosts: &mut [Remote]) -> Result<[Network; 2], String> {
    // Whoever was logged into by ssh knows an address of its own; that of the other follows.
    let far = if hosts[1].address().is_some() { 1 } else { 0 };
    let near = 1 - far;
    let Some(address) = hosts[far].address() else {
        return Err("neither host knows an address of its own: use ssh:HOST for one".into());
    };
    let (near_interface, near_own): (String, IpAddr) = hosts[near].ask(&Request::Route(address))?;
    let (far_interface, far_own): (String, IpAddr) = hosts[far].ask(&Request::Route(near_own))?;
    let network = |interface, own, peer| Network { interface, own, peer, port: FIRST_PORT };
    let mut networks =
        [network(near_interface, near_own, far_own), network(far_interface, far_own, near_own)];
    if near == 1 {
        networks.swap(0, 1);
    }
    Ok(networks)
}

/// The first of the ports of the run with this number: those of few runs in a row are its own, as a
/// port may stay taken for a minute after its use (TIME_WAIT of TCP).
pub(crate) fn port_of(run: u32) -> u16 {
    let session = std::process::id() % 1000;
    FIRST_PORT + PORTS * ((session + run) % RUNS_OF_PORTS) as u16
}

/// Between the ports of services and those that kernels (from 32768) and DDS domains from 100 on
/// (from 32400) give away.
const FIRST_PORT: u16 = 21_000;
const RUNS_OF_PORTS: u32 = 700;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_read_as_they_are_written() {
        for text in ["netns", "ssh:a,ssh:robot@b", "local,ssh:b", "ssh:a,local"] {
            assert_eq!(text.parse::<HostsChoice>().unwrap().to_string(), text);
        }
        for (text, expected) in [
            ("", "--hosts: \"\" is no host; use netns"),
            ("ssh:a", "--hosts: 1 hosts, where two"),
            ("ssh:a,ssh:b,ssh:c", "--hosts: 3 hosts"),
            ("local,local", "--hosts: local twice is one host"),
            ("ssh:a,ssh:", "--hosts: \"ssh:\" is no host"),
            ("ssh:-oProxyCommand=x,ssh:b", "--hosts: \"ssh:-oProxyCommand=x\" is no host"),
            ("telnet:a,ssh:b", "--hosts: \"telnet:a\" is no host"),
        ] {
            let error = text.parse::<HostsChoice>().unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn ports_of_runs_do_not_overlap_and_stay_below_those_the_kernel_gives_away() {
        let ports: Vec<u16> = (0..RUNS_OF_PORTS).map(port_of).collect();
        assert!(ports.iter().all(|port| (FIRST_PORT..=32_400 - PORTS).contains(port)));
        let mut sorted = ports.clone();
        sorted.sort_unstable();
        assert!(sorted.windows(2).all(|pair| pair[1] - pair[0] >= PORTS));
    }
}
