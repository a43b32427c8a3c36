//! A process's part in a DDS domain: one for all nodes of the process.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CString;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use crate::config::{Config, buffer_bytes_max};
use crate::error::{Error, check};
use crate::{MISSING, ffi};

/// A participant. Its domain is closed with the last handle, which must not be dropped in a call of
/// an endpoint. Any thread may use it.
#[derive(Debug)]
pub struct Participant {
    pub(crate) entity: i32,
    /// What to delete at the end: the domain, if we have opened it.
    root: i32,
    domain: u32,
    config: Config,
    process: u32,
}

impl Participant {
    /// The participant of this process in `domain`; the first call opens it, with `config` or what
    /// `CYCLONEDDS_URI` names.
    ///
    /// # Errors
    /// [`Error::Missing`], [`Error::Domain`]; [`Error::Otherwise`] if it has been opened with another
    /// `config`; [`Error::Stuck`]; [`Error::Other`] if CycloneDDS cannot, for instance find the interface: its own
    /// words are on stderr.
    pub fn open(domain: u32, config: &Config) -> Result<Arc<Participant>, Error> {
        Participant::check(domain)?;
        let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
        let process = std::process::id();
        let known = opened.get(&domain).and_then(Weak::upgrade);
        match known.filter(|known| known.process == process) {
            Some(known) if known.config != *config => Err(Error::Otherwise(domain)),
            Some(known) => Ok(known),
            None if stuck().contains(&domain) => Err(Error::Stuck(domain)),
            None => {
                let new = Arc::new(Participant::create(domain, config)?);
                opened.insert(domain, Arc::downgrade(&new));
                Ok(new)
            }
        }
    }

    /// Whether there is a CycloneDDS, and such a domain.
    ///
    /// # Errors
    /// [`Error::Missing`], [`Error::Domain`].
    pub fn check(domain: u32) -> Result<(), Error> {
        match MISSING {
            Some(why) => Err(Error::Missing(why)),
            None if domain > DOMAIN_MAX => Err(Error::Domain(domain)),
            None => Ok(()),
        }
    }

    fn create(domain: u32, config: &Config) -> Result<Participant, Error> {
        let own = std::env::var_os("CYCLONEDDS_URI").is_none_or(|uri| uri.is_empty());
        let root = match own {
            true => {
                let xml = CString::new(config.xml(domain, buffer_bytes_max()))
                    .map_err(|_| Error::of("reading the interface and the peers", BAD_PARAMETER))?;
                // SAFETY: a string that lives for the call.
                let root = unsafe { ffi::myelin_dds_domain(domain, xml.as_ptr()) };
                check("opening the domain (why, it has said on stderr)", root)?
            }
            false => 0,
        };
        // SAFETY: no preconditions.
        let entity = unsafe { ffi::myelin_dds_participant(domain) };
        let entity = check("creating the participant (why, it has said on stderr)", entity)
            .inspect_err(|_| delete(root))?;
        let root = if root > 0 { root } else { entity };
        let (config, process) = (config.clone(), std::process::id());
        Ok(Participant { entity, root, domain, config, process })
    }
}

impl Drop for Participant {
    fn drop(&mut self) {
        // In a child of `fork` there is no thread that would answer.
        if self.process != std::process::id() {
            return;
        }
        // CycloneDDS wakes its receiving threads by a packet to itself, and waits for ever for them
        // if the interface has gone. So another thread waits, and may be left behind.
        let (root, (to, done)) = (self.root, channel());
        let closing =
            std::thread::Builder::new().name("myelin-close".to_owned()).spawn(move || {
                delete(root);
                let _ = to.send(());
            });
        match closing {
            Ok(_) if done.recv_timeout(CLOSE_LIMIT).is_err() => drop(stuck().insert(self.domain)),
            Ok(_) => {}
            Err(_) => delete(root), // there can be no further thread
        }
    }
}

/// Domains that could not be closed.
fn stuck() -> MutexGuard<'static, BTreeSet<u32>> {
    static STUCK: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());
    STUCK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Deletes an entity and what belongs to it; 0 is none.
pub(crate) fn delete(entity: i32) {
    if entity > 0 {
        // SAFETY: no preconditions; of an entity that is gone already it says so.
        unsafe { ffi::myelin_dds_delete(entity) };
    }
}

/// The last domain that has ports for its participants.
pub const DOMAIN_MAX: u32 = 230;
/// Closing takes some milliseconds.
const CLOSE_LIMIT: Duration = Duration::from_secs(5);
/// By domain.
static OPENED: Mutex<BTreeMap<u32, Weak<Participant>>> = Mutex::new(BTreeMap::new());
/// `DDS_RETCODE_BAD_PARAMETER`.
pub(crate) const BAD_PARAMETER: i32 = -3;
