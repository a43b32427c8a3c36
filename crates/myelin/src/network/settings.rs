//! The user's settings of the network, completed from the environment.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use myelin_dds::{Config, DATAGRAMS, LEASE, Security};

use super::admission::Enclave;
use super::network_error;
use crate::Error;

/// The builder's settings; the environment fills in the rest.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    pub(crate) open: Option<bool>,
    pub(crate) interface: Option<String>,
    pub(crate) peers: Option<Vec<String>>,
    pub(crate) lease: Option<Duration>,
    pub(crate) multicast: bool,
    pub(crate) user_data: String,
    pub(crate) keystore: Option<PathBuf>,
    pub(crate) enclave: Option<String>,
    pub(crate) bulk_lane: Option<bool>,
    pub(crate) bulk_lane_dscp: Option<u8>,
    pub(crate) datagram_bytes: Option<u32>,
}

/// The settings of a node that is open to the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Resolved {
    pub(crate) config: Config,
    /// The mark of the lane's packets, if large samples may go by it.
    pub(crate) bulk_lane: Option<u8>,
}

impl Settings {
    /// The settings completed from the environment; `None` if the node stays on its host.
    pub(crate) fn resolve(self) -> Result<Option<Resolved>, Error> {
        self.resolve_with(std::env::var_os)
    }

    fn resolve_with(
        self,
        variable: impl Fn(&'static str) -> Option<OsString>,
    ) -> Result<Option<Resolved>, Error> {
        let text = |name| text(name, variable(name));
        let switched = |setting: Option<bool>, name, default| match setting {
            Some(on) => Ok(on),
            None => switch(name, text(name)?.as_deref(), default),
        };
        let open = switched(self.open, NETWORK, false)?;
        if !open {
            return Ok(None);
        }
        let interface = match self.interface {
            Some(interface) => Some(interface),
            None => text(INTERFACE)?,
        };
        let peers = match self.peers {
            Some(peers) => peers,
            None => list(text(PEERS)?.as_deref().unwrap_or_default()),
        };
        let lease = match self.lease {
            Some(lease) => lease,
            None => text(LEASE_MS)?.map_or(Ok(LEASE), |value| {
                let remedy = "set it to a number of milliseconds, or unset it for 1000";
                number(LEASE_MS, &value, remedy).map(Duration::from_millis)
            })?,
        };
        check("lease", format!("{lease:?}"), LEASES.contains(&lease), "set it to 100 ms to 1 h")?;
        let datagram_bytes = match self.datagram_bytes {
            Some(bytes) => Some(bytes),
            None => {
                let remedy = "set it to a number of bytes, or unset it";
                let value = text(DATAGRAM_BYTES)?;
                value.map(|value| number(DATAGRAM_BYTES, &value, remedy)).transpose()?
            }
        };
        if let Some(bytes) = &datagram_bytes {
            let is_right = DATAGRAMS.contains(bytes);
            check("datagram_bytes", bytes.to_string(), is_right, "set it to 1350 to 65500")?;
        }
        let keystore = match self.keystore {
            Some(keystore) => Some(keystore),
            None => variable(KEYSTORE).filter(|value| !value.is_empty()).map(PathBuf::from),
        };
        let enclave = match self.enclave {
            Some(enclave) => Some(enclave),
            None => text(ENCLAVE)?,
        };
        let security = security(keystore, enclave)?;
        let user_data = match &security {
            Some(security) => Enclave::of(security).announce(&self.user_data),
            None => self.user_data,
        };
        let remedy = "set it to 0 to 63, such as 8 for less than best effort";
        let dscp = match self.bulk_lane_dscp {
            Some(dscp) => dscp,
            None => text(BULK_LANE_DSCP)?
                .map_or(Ok(0), |value| number(BULK_LANE_DSCP, &value, remedy))?,
        };
        check("bulk_lane_dscp", dscp.to_string(), dscp <= DSCP_MAX, remedy)?;
        let bulk_lane = switched(self.bulk_lane, BULK_LANE, true)?.then_some(dscp);
        let multicast = self.multicast;
        let config =
            Config { interface, peers, multicast, lease, datagram_bytes, user_data, security };
        Ok(Some(Resolved { config, bulk_lane }))
    }
}

/// The error of a setting that is out of its range.
fn check(
    field: &'static str,
    value: String,
    is_right: bool,
    remedy: &'static str,
) -> Result<(), Error> {
    if is_right { Ok(()) } else { Err(Error::Setting { topic: None, field, value, remedy }) }
}

/// An unset variable and an empty one mean the same.
fn text(name: &'static str, value: Option<OsString>) -> Result<Option<String>, Error> {
    let Some(value) = value.filter(|value| !value.is_empty()) else { return Ok(None) };
    value.into_string().map(Some).map_err(|value| Error::Setting {
        topic: None,
        field: name,
        value: format!("{value:?}"),
        remedy: "set it to text",
    })
}

fn switch(name: &'static str, value: Option<&str>, default: bool) -> Result<bool, Error> {
    match value {
        None => Ok(default),
        Some("0") => Ok(false),
        Some("1") => Ok(true),
        Some(value) => Err(Error::Setting {
            topic: None,
            field: name,
            value: format!("{value:?}"),
            remedy: "set it to 1 (on) or 0 (off), or unset it",
        }),
    }
}

/// The enclave of a keystore. One without the other is a mistake, and nothing goes out unprotected
/// by a mistake.
fn security(keystore: Option<PathBuf>, enclave: Option<String>) -> Result<Option<Security>, Error> {
    let setting =
        |field, value: String, remedy| Err(Error::Setting { topic: None, field, value, remedy });
    match (keystore, enclave) {
        (None, None) => Ok(None),
        (Some(keystore), None) => setting(
            KEYSTORE,
            format!("{keystore:?}"),
            "name the enclave of this program, too: MYELIN_ENCLAVE, or the node's option `enclave`",
        ),
        (None, Some(enclave)) => setting(
            ENCLAVE,
            format!("{enclave:?}"),
            "name the keystore, too: MYELIN_KEYSTORE, or the node's option `keystore`",
        ),
        (Some(keystore), Some(enclave)) => {
            let parts = enclave.strip_prefix('/').filter(|parts| !parts.is_empty());
            let is_name = |parts: &&str| parts.split('/').all(|it| !["", ".", ".."].contains(&it));
            let Some(parts) = parts.filter(is_name) else {
                let remedy = "use a name such as /robot/camera (`myelin keystore list`)";
                return setting("enclave", format!("{enclave:?}"), remedy);
            };
            let folder = keystore.join("enclaves").join(parts);
            Security::open(&folder).map(Some).map_err(network_error)
        }
    }
}

fn number<T: FromStr>(name: &'static str, value: &str, remedy: &'static str) -> Result<T, Error> {
    value.parse().map_err(|_| Error::Setting {
        topic: None,
        field: name,
        value: format!("{value:?}"),
        remedy,
    })
}

fn list(value: &str) -> Vec<String> {
    let peers = value.split(',').map(str::trim).filter(|peer| !peer.is_empty());
    peers.map(String::from).collect()
}

const NETWORK: &str = "MYELIN_NETWORK";
const BULK_LANE: &str = "MYELIN_BULK_LANE";
const BULK_LANE_DSCP: &str = "MYELIN_BULK_LANE_DSCP";
const DSCP_MAX: u8 = 63;
const INTERFACE: &str = "MYELIN_INTERFACE";
const PEERS: &str = "MYELIN_PEERS";
const LEASE_MS: &str = "MYELIN_LEASE_MS";
const DATAGRAM_BYTES: &str = "MYELIN_DATAGRAM_BYTES";
const KEYSTORE: &str = "MYELIN_KEYSTORE";
const ENCLAVE: &str = "MYELIN_ENCLAVE";
/// Shorter leases would report every hiccup.
const LEASES: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(100)..=Duration::from_secs(3_600);

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(settings: Settings, environment: &[(&str, &str)]) -> Result<Option<Config>, Error> {
        resolve_all(settings, environment).map(|all| all.map(|all| all.config))
    }

    fn resolve_all(
        settings: Settings,
        environment: &[(&str, &str)],
    ) -> Result<Option<Resolved>, Error> {
        settings.resolve_with(|name| {
            let found = environment.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| OsString::from(value))
        })
    }

    #[test]
    fn the_lane_is_on_by_default() {
        let lane = |bulk_lane, environment: &[_]| {
            let settings = Settings { open: Some(true), bulk_lane, ..Settings::default() };
            resolve_all(settings, environment).map(|all| all.unwrap().bulk_lane.is_some())
        };
        assert!(lane(None, &[]).unwrap());
        assert!(!lane(None, &[(BULK_LANE, "0")]).unwrap());
        assert!(lane(Some(true), &[(BULK_LANE, "0")]).unwrap());
        let error = lane(None, &[(BULK_LANE, "off")]).unwrap_err().to_string();
        assert!(error.contains(BULK_LANE) && error.contains("off"), "{error}");
    }

    #[test]
    fn the_network_is_off_by_default() {
        let none = Settings::default;
        for off in [&[][..], &[(NETWORK, "")], &[(NETWORK, "0")], &[(PEERS, "a")]] {
            assert_eq!(resolve(none(), off).unwrap(), None);
        }
        assert_eq!(resolve(none(), &[(NETWORK, "1")]).unwrap(), Some(Config::default()));
        let no = Settings { open: Some(false), ..none() };
        assert_eq!(resolve(no, &[(NETWORK, "1")]).unwrap(), None);
        let error = resolve(none(), &[(NETWORK, "yes")]).unwrap_err().to_string();
        assert!(error.contains(NETWORK) && error.contains("yes"), "{error}");
    }

    #[test]
    fn the_builder_overrides_the_environment() {
        let environment =
            [(NETWORK, "1"), (INTERFACE, "eth0"), (PEERS, " 10.0.0.1 , robot.local,")];
        let config = resolve(Settings::default(), &environment).unwrap().unwrap();
        assert_eq!(config.interface.as_deref(), Some("eth0"));
        assert_eq!(config.peers, ["10.0.0.1", "robot.local"]);
        let (interface, peers) = (Some("lo".to_string()), Some(Vec::new()));
        let settings = Settings { open: Some(true), interface, peers, ..Settings::default() };
        let config = resolve(settings, &environment).unwrap().unwrap();
        assert_eq!(config, Config { interface: Some("lo".into()), ..Config::default() });
    }

    #[test]
    fn the_lane_has_the_mark_that_was_set() {
        let mark = |bulk_lane_dscp, environment: &[_]| {
            let settings = Settings { open: Some(true), bulk_lane_dscp, ..Settings::default() };
            resolve_all(settings, environment).map(|all| all.unwrap().bulk_lane)
        };
        assert_eq!(mark(None, &[]).unwrap(), Some(0));
        assert_eq!(mark(None, &[(BULK_LANE_DSCP, "8")]).unwrap(), Some(8));
        assert_eq!(mark(Some(34), &[(BULK_LANE_DSCP, "8")]).unwrap(), Some(34));
        assert_eq!(mark(Some(34), &[(BULK_LANE, "0")]).unwrap(), None);
        for wrong in ["CS1", "64", "-1", "300"] {
            let error = mark(None, &[(BULK_LANE_DSCP, wrong)]).unwrap_err().to_string();
            assert!(error.contains("0 to 63") && error.contains(wrong), "{error}");
        }
    }

    #[test]
    fn datagrams_have_a_size_that_udp_can_send() {
        let size = |datagram_bytes, environment: &[_]| {
            let settings = Settings { open: Some(true), datagram_bytes, ..Settings::default() };
            resolve(settings, environment).map(|config| config.unwrap().datagram_bytes)
        };
        assert_eq!(size(None, &[]).unwrap(), None);
        assert_eq!(size(None, &[(DATAGRAM_BYTES, "1400")]).unwrap(), Some(1_400));
        assert_eq!(size(Some(9_000), &[(DATAGRAM_BYTES, "1400")]).unwrap(), Some(9_000));
        for wrong in ["small", "1349", "65501", "-1"] {
            let error = size(None, &[(DATAGRAM_BYTES, wrong)]).unwrap_err().to_string();
            assert!(error.contains("datagram") || error.contains(DATAGRAM_BYTES), "{error}");
        }
    }

    #[test]
    fn the_default_lease_is_a_second() {
        let on = [(NETWORK, "1"), (LEASE_MS, "2500")];
        let lease = |settings, environment: &[_]| {
            resolve(settings, environment).map(|config| config.unwrap().lease.as_millis())
        };
        assert_eq!(lease(Settings::default(), &on[..1]).unwrap(), 1_000);
        assert_eq!(lease(Settings::default(), &on).unwrap(), 2_500);
        let settings = Settings { lease: Some(Duration::from_secs(5)), ..Settings::default() };
        assert_eq!(lease(settings, &on).unwrap(), 5_000);
        for wrong in ["soon", "1", "10000000"] {
            assert!(lease(Settings::default(), &[(NETWORK, "1"), (LEASE_MS, wrong)]).is_err());
        }
    }
}
