//! A process's part in a DDS domain: one for all nodes of the process.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, CString, OsStr};
use std::net::{IpAddr, UdpSocket};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, SystemTime};

use crate::config::{Config, buffer_bytes_max};
use crate::error::{Error, check};
use crate::security::{self, Security};
use crate::{exit, ffi, library};

/// A DDS domain that nodes of this process take part in, all with the same settings. Its
/// participants come and go with the network interfaces.
#[derive(Debug)]
pub struct Domain {
    number: u32,
    config: Config,
    process: u32,
    /// The newest participant.
    newest: Mutex<Weak<Participant>>,
}

/// The interface that a participant is bound to. CycloneDDS chooses it when it opens a domain, and
/// never again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binding {
    /// The interface's number: an interface that went and came back has another one.
    pub index: u32,
    /// Its address.
    pub address: IpAddr,
}

impl Binding {
    /// Whether it is a wireless interface, as far as the kernel knows.
    pub(crate) fn is_wireless(self) -> bool {
        let mut name = [0; libc::IFNAMSIZ];
        // SAFETY: there is room for a name.
        if unsafe { libc::if_indextoname(self.index, name.as_mut_ptr()) }.is_null() {
            return false; // it has gone
        }
        // SAFETY: a name that ends with a zero.
        let name = unsafe { CStr::from_ptr(name.as_ptr()) }.to_bytes();
        let folder = Path::new("/sys/class/net").join(OsStr::from_bytes(name));
        folder.join("wireless").exists() || folder.join("phy80211").exists()
    }
}

/// A participant. Everything that CycloneDDS has opened for it is closed with the last handle,
/// which must not be dropped in a call of an endpoint. Any thread may use it.
#[derive(Debug)]
pub struct Participant {
    pub(crate) entity: i32,
    /// The entity to delete at the end: the domain, if we have opened it.
    root: i32,
    domain: u32,
    binding: Option<Binding>,
    process: u32,
    pub(crate) security: Option<Security>,
    /// When the list of revoked certificates was written that it has read.
    revoked_at: Option<SystemTime>,
    /// Sockets of CycloneDDS's threads that wait for one socket each.
    sockets: Vec<OwnedFd>,
}

impl Domain {
    /// The domain, with `config`.
    ///
    /// # Errors
    /// [`Error::Missing`], [`Error::Domain`]; [`Error::Otherwise`] if it is in use in this process
    /// with another `config`.
    pub fn claim(number: u32, config: &Config) -> Result<Arc<Domain>, Error> {
        Domain::check(number)?;
        let mut claimed = CLAIMED.lock().unwrap_or_else(PoisonError::into_inner);
        let process = std::process::id();
        let known = claimed.get(&number).and_then(Weak::upgrade);
        match known.filter(|known| known.process == process) {
            Some(known) if known.config != *config => Err(Error::Otherwise(number)),
            Some(known) => Ok(known),
            None => {
                let (config, newest) = (config.clone(), Mutex::default());
                let new = Arc::new(Domain { number, config, process, newest });
                claimed.insert(number, Arc::downgrade(&new));
                Ok(new)
            }
        }
    }

    /// Loads CycloneDDS, and checks that there is such a domain.
    ///
    /// # Errors
    /// [`Error::Missing`], [`Error::Domain`].
    pub fn check(number: u32) -> Result<(), Error> {
        if number > DOMAIN_MAX {
            return Err(Error::Domain(number));
        }
        library::load().map(drop)
    }

    /// The settings.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The binding of the newest participant, if there is one.
    pub fn bound(&self) -> Option<Binding> {
        let newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        newest.upgrade().and_then(|newest| newest.binding)
    }

    /// A participant that is bound to `binding`, the same one for all callers with this binding;
    /// with a configuration of the user, the participant that it defines.
    ///
    /// # Errors
    /// [`Error::Stuck`]; [`Error::Other`] if CycloneDDS fails: its own message is on stderr.
    pub fn open(&self, binding: Option<Binding>) -> Result<Arc<Participant>, Error> {
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        let is_fit = |it: &Arc<Participant>| it.binding == binding && !it.is_outdated();
        if let Some(known) = newest.upgrade().filter(is_fit) {
            return Ok(known);
        }
        let new = Arc::new(Participant::create(self, binding)?);
        *newest = Arc::downgrade(&new);
        Ok(new)
    }
}

/// Whether the user has a configuration of CycloneDDS.
pub fn has_own_configuration() -> bool {
    std::env::var_os("CYCLONEDDS_URI").is_some_and(|uri| !uri.is_empty())
}

impl Participant {
    fn create(domain: &Domain, binding: Option<Binding>) -> Result<Participant, Error> {
        let (root, number) = match has_own_configuration() {
            // CycloneDDS reads it itself, with the domain's first participant.
            true if stuck().contains(&domain.number) => return Err(Error::Stuck(domain.number)),
            true => (0, domain.number),
            false => open_domain(domain, binding)?,
        };
        // Before it is read: a list that comes meanwhile is newer.
        let revoked_at = domain.config.security.as_ref().and_then(Security::revoked_at);
        let entity = create(number, &domain.config).inspect_err(|_| delete(root))?;
        let root = if root > 0 { root } else { entity };
        if domain.config.security.is_some() {
            exit::insert(root);
        }
        let security = domain.config.security.clone();
        if !has_own_configuration() && domain.config.announces_only() {
            announce_only(entity, security.is_some());
        }
        let (process, sockets) = (std::process::id(), sockets(entity, security.is_some()));
        Ok(Participant {
            entity,
            root,
            domain: number,
            binding,
            process,
            security,
            revoked_at,
            sockets,
        })
    }

    /// Whether there is another list of revoked certificates than the one that it has read: CycloneDDS
    /// reads it once.
    pub fn is_outdated(&self) -> bool {
        self.security.as_ref().is_some_and(|it| it.revoked_at() != self.revoked_at)
    }

    /// Whether it has an enclave.
    pub fn is_secured(&self) -> bool {
        self.security.is_some()
    }

    /// Its enclave, if it has one.
    pub fn security(&self) -> Option<&Security> {
        self.security.as_ref()
    }

    /// Announces it with other user data than those of its settings from now on, to every host that
    /// listens.
    ///
    /// # Errors
    /// [`Error::Other`].
    pub fn set_user_data(&self, user_data: &[u8]) -> Result<(), Error> {
        set_user_data(self.entity, user_data)
    }

    /// The name of a topic that is made to look at its domain.
    pub(crate) fn domain_topic(&self) -> &'static CStr {
        domain_topic(self.is_secured())
    }

    /// Waits until it is closed.
    fn wait_until(&self, closed: &Receiver<()>) {
        // CycloneDDS wakes its receiving threads by packets to itself, which do not arrive if the
        // interface has gone.
        let has_gone = self.binding.is_some_and(|it| UdpSocket::bind((it.address, 0)).is_err());
        if closed.recv_timeout(if has_gone { CLOSE_SOON } else { CLOSE_LATE }).is_ok() {
            return;
        }
        for socket in &self.sockets {
            // SAFETY: a descriptor of ours. The call reports that the socket is not connected, and
            // wakes the thread.
            unsafe { libc::shutdown(socket.as_raw_fd(), libc::SHUT_RD) };
        }
        if closed.recv_timeout(CLOSE_LIMIT).is_err() {
            stuck().insert(self.domain);
        }
    }
}

impl Drop for Participant {
    fn drop(&mut self) {
        // In a child of `fork` no thread would answer.
        if self.process != std::process::id() {
            return;
        }
        // Another thread waits, and may be left behind.
        let (root, (to, closed)) = (self.root, channel());
        let closing =
            std::thread::Builder::new().name("myelin-close".to_owned()).spawn(move || {
                delete(root);
                exit::remove(root);
                let _ = to.send(());
            });
        match closing {
            Ok(_) => self.wait_until(&closed),
            Err(_) => delete(root), // no further thread can be started
        }
    }
}

fn create(number: u32, config: &Config) -> Result<i32, Error> {
    let user_data = config.user_data.as_bytes();
    let properties = config.security.as_ref().map(Security::properties).transpose()?;
    let properties: Vec<_> = properties
        .iter()
        .flatten()
        .map(|(name, value)| ffi::Property { name: name.as_ptr(), value: value.as_ptr() })
        .collect();
    let create = || {
        let (bytes, count) = (user_data.len(), properties.len());
        // SAFETY: the bytes and the texts live for the call.
        unsafe {
            let (user_data, properties) = (user_data.as_ptr().cast(), properties.as_ptr());
            ffi::myelin_dds_participant(number, user_data, bytes, properties, count)
        }
    };
    match &config.security {
        None => check("creating the participant (CycloneDDS wrote the reason to stderr)", create()),
        Some(security) => match security::listen(create) {
            (entity, reasons) if entity < 0 => Err(security.refused(&reasons)),
            (entity, _) => Ok(entity),
        },
    }
}

/// Opens a domain of CycloneDDS under an unused number, so that we can configure it and need not
/// wait until an earlier one is closed. Returns it and its number. Permissions and governance are for
/// domains by number, so one with security has its own.
fn open_domain(domain: &Domain, binding: Option<Binding>) -> Result<(i32, u32), Error> {
    let xml = domain.config.xml_on(binding, domain.number, buffer_bytes_max());
    let xml = CString::new(xml)
        .map_err(|_| Error::of("reading the interface and the peers", BAD_PARAMETER))?;
    let is_secured = domain.config.security.is_some();
    loop {
        let number = match is_secured {
            true => domain.number,
            false => NUMBER_NEXT.fetch_add(1, Ordering::Relaxed),
        };
        // SAFETY: a string that lives for the call.
        let root = unsafe { ffi::myelin_dds_domain(number, xml.as_ptr()) };
        let root = check("opening the domain (CycloneDDS wrote the reason to stderr)", root)?;
        if root > 0 {
            return Ok((root, number));
        }
        if is_secured {
            return Err(Error::Occupied(number));
        }
    }
}

/// Ends the messages for the participant's lease. If it fails, there are more messages than needed.
fn announce_only(participant: i32, is_secured: bool) {
    // SAFETY: a string that ends with a zero.
    unsafe { ffi::myelin_dds_announce_only(participant, domain_topic(is_secured).as_ptr()) };
}

/// The name of a topic that is made to look at its domain.
fn domain_topic(is_secured: bool) -> &'static CStr {
    if is_secured { c"rt/_myelin/domain" } else { c"myelin_domain" }
}

/// The sockets for which only one thread of CycloneDDS waits: descriptors of our own.
fn sockets(participant: i32, is_secured: bool) -> Vec<OwnedFd> {
    let topic = domain_topic(is_secured);
    let mut numbers = [-1; SOCKETS_MAX];
    // SAFETY: there is room for so many numbers.
    let count = unsafe {
        let (topic, numbers) = (topic.as_ptr(), numbers.as_mut_ptr());
        ffi::myelin_dds_sockets(participant, topic, numbers, SOCKETS_MAX as i32)
    };
    let numbers = numbers.into_iter().take(usize::try_from(count).unwrap_or(0));
    // SAFETY: descriptors that were made for us.
    numbers.map(|number| unsafe { OwnedFd::from_raw_fd(number) }).collect()
}

/// Domains, by CycloneDDS's number, that could not be closed.
fn stuck() -> MutexGuard<'static, BTreeSet<u32>> {
    static STUCK: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());
    STUCK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Announces an entity with other user data from now on.
pub(crate) fn set_user_data(entity: i32, user_data: &[u8]) -> Result<(), Error> {
    // SAFETY: the bytes live for the call.
    let code = unsafe {
        let (data, bytes) = (user_data.as_ptr().cast(), user_data.len());
        ffi::myelin_dds_set_user_data(entity, data, bytes)
    };
    check("announcing other user data", code).map(drop)
}

/// Deletes an entity and everything that belongs to it; 0 is none.
pub(crate) fn delete(entity: i32) {
    if entity > 0 {
        // SAFETY: no preconditions; for an entity that has gone already it returns an error.
        unsafe { ffi::myelin_dds_delete(entity) };
    }
}

/// The last domain that has ports for its participants.
pub const DOMAIN_MAX: u32 = 230;
/// Beyond the domains that users can have.
static NUMBER_NEXT: AtomicU32 = AtomicU32::new(1_000);
/// Closing takes some milliseconds.
const CLOSE_SOON: Duration = Duration::from_millis(200);
const CLOSE_LATE: Duration = Duration::from_secs(2);
const CLOSE_LIMIT: Duration = Duration::from_secs(5);
/// CycloneDDS has two.
const SOCKETS_MAX: usize = 4;
/// By number.
static CLAIMED: Mutex<BTreeMap<u32, Weak<Domain>>> = Mutex::new(BTreeMap::new());
/// `DDS_RETCODE_BAD_PARAMETER`.
pub(crate) const BAD_PARAMETER: i32 = -3;
