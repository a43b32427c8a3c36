//! The two hosts of a session: an agent on each, and the network between them.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use myelin_bench_kit::protocol::{Network, PORTS, System};
use serde::{Deserialize, Serialize};

use super::namespace::{self, LinkError, NetworkPath};
use super::protocol::Request;
use super::remote::{Connection, agent};
use super::{Across, Host, RemoteHost, boot_id};
use crate::input_error::InputError;
use crate::machine::OtherHost;
use crate::scenario::{Link, Tuning, TuningChoice};
use crate::tuning::Cpus;

/// The two hosts of `--hosts`, ping's first. By default two network namespaces of this host, made
/// for the session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HostsChoice([Address; 2]);

/// One host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A network namespace with this name.
    Namespace(&'static str),
    /// The host of the lab.
    Local,
    /// A destination of ssh(1).
    Ssh(String),
}

impl HostsChoice {
    /// Whether they are more than namespaces of this host.
    pub(crate) fn are_real(&self) -> bool {
        !matches!(self.0[0], Address::Namespace(_))
    }
}

impl Default for HostsChoice {
    fn default() -> Self {
        HostsChoice(namespace::NAMES.map(Address::Namespace))
    }
}

impl FromStr for HostsChoice {
    type Err = InputError;

    fn from_str(text: &str) -> Result<Self, InputError> {
        let remedy = "use netns, or two of local and ssh:DESTINATION, for instance ssh:a,ssh:b";
        let wrong = |what: String| InputError::new(format!("--hosts: {what}")).remedy(remedy);
        if text == "netns" {
            return Ok(HostsChoice::default());
        }
        let hosts = text.split(',').map(|word| match word.split_once(':') {
            None if word == "local" => Ok(Address::Local),
            // ssh would take a leading dash for an option.
            Some(("ssh", host)) if !host.is_empty() && !host.starts_with('-') => {
                Ok(Address::Ssh(host.into()))
            }
            _ => Err(wrong(format!("{word:?} is not a host"))),
        });
        let hosts: Vec<Address> = hosts.collect::<Result<_, _>>()?;
        let count = hosts.len();
        match <[Address; 2]>::try_from(hosts) {
            Ok([ping, pong]) if ping == pong => Err(wrong(format!(
                "{ping} is given twice, but two \
                                                                   hosts are needed"
            ))),
            Ok(two) => Ok(HostsChoice(two)),
            Err(_) => Err(wrong(format!("{count} hosts are given, but two are needed"))),
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
        let [ping, pong] = &self.0;
        if self.are_real() { write!(f, "{ping},{pong}") } else { write!(f, "netns") }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Namespace(name) => write!(f, "{name}"),
            Address::Local => write!(f, "local"),
            Address::Ssh(host) => write!(f, "ssh:{host}"),
        }
    }
}

/// The two hosts. Dropping it leaves nothing behind on either.
pub(crate) struct Hosts {
    choice: HostsChoice,
    /// The drivers that may be needed: paths on this host.
    drivers: Vec<PathBuf>,
    up: Option<Up>,
}

struct Up {
    hosts: Vec<RemoteHost>,
    across: Across,
    /// How the link is shaped; `None` before that.
    link: Option<Link>,
}

impl Up {
    /// Whether the previous run left fragments in a namespace; they would block the datagrams of
    /// the next run.
    fn holds_fragments(&self) -> bool {
        let mut pids = self.hosts.iter().filter_map(RemoteHost::pid);
        self.across.path.is_some() && pids.any(namespace::holds_fragments)
    }
}

impl Hosts {
    /// Connects to both hosts; an error says why one cannot be reached, and what to do.
    pub(crate) fn reach(choice: HostsChoice, drivers: Vec<PathBuf>) -> Result<Self, String> {
        let mut hosts = Hosts { choice, drivers, up: None };
        hosts.up()?;
        Ok(hosts)
    }

    /// The hosts for the run with this number, ping's first, and their network, with the link
    /// shaped as `link`.
    pub(crate) fn ready(
        &mut self,
        link: &Link,
        run: u32,
    ) -> Result<(Vec<&mut dyn Host>, Across), String> {
        if self.up.as_ref().is_some_and(Up::holds_fragments) {
            self.up = None;
        }
        self.shape(link).map_err(|unshaped| unshaped.reason)?;
        let up = self.up()?;
        if let Some(path) = &up.across.path {
            path.begin_run(link, run.into())?;
        }
        let mut across = up.across.clone();
        across.cut = link.cut;
        across.network.iter_mut().for_each(|network| network.port = port_of(run));
        let hosts = up.hosts.iter_mut().map(|host| host as &mut dyn Host).collect();
        Ok((hosts, across))
    }

    /// Makes and shapes the link. The link of real hosts cannot be shaped.
    pub(crate) fn shape(&mut self, link: &Link) -> Result<(), LinkError> {
        let are_real = self.choice.are_real();
        let up = self.up().map_err(LinkError::from)?;
        let link = Link { cut: None, ..link.clone() };
        if are_real || up.link.as_ref() == Some(&link) {
            return Ok(());
        }
        up.link = None;
        let path = match up.across.path.take().filter(|path| path.suits(&link)) {
            Some(path) => path,
            None => {
                let pids = up.hosts.iter().filter_map(RemoteHost::pid).collect::<Vec<_>>();
                up.across.network = namespace::networks(link.routed);
                Arc::new(NetworkPath::make(&pids, &link)?)
            }
        };
        path.shape(&link)?;
        up.across.path = Some(path);
        up.link = Some(link);
        Ok(())
    }

    pub(crate) fn choice(&self) -> &HostsChoice {
        &self.choice
    }

    /// A driver's systems on each host, by the host's name.
    pub(crate) fn describe(&mut self, driver: &Path) -> Result<Vec<(String, Vec<System>)>, String> {
        let up = self.up()?;
        let describe = |host: &mut RemoteHost| {
            let described = host.ask(&Request::Describe(host.there(driver)))?;
            Ok((host.name().to_owned(), described))
        };
        up.hosts.iter_mut().map(describe).collect()
    }

    /// Why a tuning is not available on one of them; `None` if it is available on both.
    pub(crate) fn unavailable(
        &mut self,
        tuning: Tuning,
        choice: &TuningChoice,
    ) -> Result<Option<String>, String> {
        for host in &mut self.up()?.hosts {
            let asked = Request::Unavailable(tuning, choice.clone());
            if let Some::<String>(reason) = host.ask(&asked)? {
                return Ok(Some(format!("host {}: {reason}", host.name())));
            }
        }
        Ok(None)
    }

    /// The CPUs of `tuned`, each chosen on its host.
    pub(crate) fn cpus(&mut self, choice: &TuningChoice) -> Result<Cpus, String> {
        let asked = Request::Cpus(choice.clone());
        let mut cpus = |at: usize| -> Result<Cpus, String> { self.up()?.hosts[at].ask(&asked) };
        Ok(Cpus { ping: cpus(0)?.ping, pong: cpus(1)?.pong })
    }

    /// The hosts on other machines than the lab's.
    pub(crate) fn others(&mut self) -> Result<Vec<OtherHost>, String> {
        let up = self.up()?;
        let boot = boot_id();
        let others = up.hosts.iter_mut().zip(["ping", "pong"]);
        let others = others.filter(|(host, _)| host.boot() != boot);
        let read = |(host, role): (&mut RemoteHost, &str)| {
            let machine = host.ask(&Request::Machine)?;
            Ok(OtherHost { role: role.into(), name: host.name().to_owned(), host: machine })
        };
        others.map(read).collect()
    }

    /// Both hosts, connected. If one is gone, both are connected anew.
    fn up(&mut self) -> Result<&mut Up, String> {
        let is_up = |up: &Up| up.hosts.iter().all(|host| host.check().is_ok());
        if !self.up.as_ref().is_some_and(is_up) {
            // The old agents end first.
            self.up = None;
            self.up = Some(self.bring_up()?);
        }
        Ok(self.up.as_mut().expect("just brought up"))
    }

    fn bring_up(&self) -> Result<Up, String> {
        let (are_real, mut hosts) = (self.choice.are_real(), Vec::new());
        for address in &self.choice.0 {
            let host = self.connect(address).and_then(RemoteHost::new);
            let mut host = host.map_err(|error| format!("{error:#}"))?;
            if are_real {
                // A killed session may have left something there.
                self.drivers.iter().for_each(|driver| host.clean(driver));
            }
            hosts.push(host);
        }
        let network = if are_real { ways(&mut hosts)? } else { namespace::networks(false) };
        let names = [hosts[0].name().to_owned(), hosts[1].name().to_owned()];
        let one_machine = hosts[0].boot() == hosts[1].boot();
        let across = Across { names, network, one_machine, path: None, cut: None };
        Ok(Up { hosts, across, link: None })
    }

    fn connect(&self, address: &Address) -> anyhow::Result<Connection> {
        match address {
            Address::Namespace(name) => namespace::connect(name),
            Address::Local => Connection::open("local", &mut agent()?),
            Address::Ssh(host) => super::ssh::connect(host, &self.drivers),
        }
    }
}

/// The network from each host to the other, from their routing tables.
fn ways(hosts: &mut [RemoteHost]) -> Result<[Network; 2], String> {
    // A host reached by ssh knows its address; the address of the other follows from the route to
    // it.
    let far = if hosts[1].address().is_some() { 1 } else { 0 };
    let near = 1 - far;
    let Some(address) = hosts[far].address() else {
        return Err("neither host knows its own address: use ssh:HOST for at least one".into());
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

/// The first port of the run with this number; those of its load follow. Consecutive runs have
/// different ports, because TCP may keep a port for a minute after use (TIME_WAIT).
pub(crate) fn port_of(run: u32) -> u16 {
    let session = std::process::id() % 1000;
    FIRST_PORT + 2 * PORTS * ((session + run) % RUNS_OF_PORTS) as u16
}

/// Between the ports of services and those that kernels (from 32768) and DDS domains from 100 on
/// (from 32400) assign.
const FIRST_PORT: u16 = 21_000;
const RUNS_OF_PORTS: u32 = 350;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_read_as_they_are_written() {
        for text in ["netns", "ssh:a,ssh:robot@b", "local,ssh:b", "ssh:a,local"] {
            assert_eq!(text.parse::<HostsChoice>().unwrap().to_string(), text);
        }
        for (text, expected) in [
            ("", "--hosts: \"\" is not a host; use netns"),
            ("ssh:a", "--hosts: 1 hosts are given, but two"),
            ("ssh:a,ssh:b,ssh:c", "--hosts: 3 hosts"),
            ("local,local", "--hosts: local is given twice, but"),
            ("ssh:a,ssh:", "--hosts: \"ssh:\" is not a host"),
            ("ssh:-oProxyCommand=x,ssh:b", "--hosts: \"ssh:-oProxyCommand=x\" is not a host"),
            ("telnet:a,ssh:b", "--hosts: \"telnet:a\" is not a host"),
        ] {
            let error = text.parse::<HostsChoice>().unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn ports_of_runs_do_not_overlap_and_stay_below_those_the_kernel_gives_away() {
        let ports: Vec<u16> = (0..RUNS_OF_PORTS).map(port_of).collect();
        assert!(ports.iter().all(|port| (FIRST_PORT..=32_400 - 2 * PORTS).contains(port)));
        let mut sorted = ports.clone();
        sorted.sort_unstable();
        assert!(sorted.windows(2).all(|pair| pair[1] - pair[0] >= 2 * PORTS));
    }
}
