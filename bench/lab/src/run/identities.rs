//! The identities of a run's processes, for systems that authenticate and encrypt: a new authority for
//! each run, in the form that ROS 2 has for keystores.

use std::path::Path;

use myelin_bench_kit::protocol::{Identity, Role};
use myelin_keystore::{Keystore, Rights};

/// The identity of pings, and that of pongs: two enclaves of one keystore. Both may publish and
/// subscribe to all topics.
pub(super) struct Identities {
    ping: Identity,
    pong: Identity,
}

impl Identities {
    /// Makes a keystore, of which only these two identities are kept.
    pub(super) fn make() -> Result<Self, String> {
        // In memory: private keys are on no disk.
        let folder = tempfile::Builder::new().prefix("myelin-bench-").tempdir_in("/dev/shm");
        let folder = folder.map_err(|error| format!("/dev/shm: {error}"))?;
        let made = || -> anyhow::Result<Self> {
            let place = folder.path().join("keystore");
            let keystore = Keystore::create(&place)?;
            let identity = |name: &str| {
                keystore.add(&format!("/{name}"), &Rights::default(), VALID_DAYS)?;
                anyhow::Ok(Identity::read(&place.join(Path::new("enclaves")).join(name))?)
            };
            Ok(Identities { ping: identity("ping")?, pong: identity("pong")? })
        };
        made().map_err(|error| format!("the keystore of the run: {error:#}"))
    }

    /// The identity of a process with this role; `None` if it sends no messages.
    pub(super) fn of(&self, role: Role) -> Option<Identity> {
        match role {
            Role::Ping => Some(self.ping.clone()),
            Role::Pong => Some(self.pong.clone()),
            Role::Daemon | Role::Clock => None,
        }
    }
}

/// Longer than any run; hosts whose clocks differ by hours accept each other.
const VALID_DAYS: u32 = 2;
