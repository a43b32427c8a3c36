//! What CycloneDDS needs of DDS Security: an enclave's files, its own plug-ins, and an ear for what it
//! refuses.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ffi::{CStr, CString, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use crate::error::Error;
use crate::{ffi, library};

/// An enclave of a keystore in the layout of SROS 2: a folder with an identity and its rights. A
/// participant with it talks to participants of the same authority alone, and all that it sends is as
/// the keystore's governance wants it: encrypted, by default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Security {
    folder: PathBuf,
}

/// Files in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentityFiles {
    /// The certificate of the authority for identities.
    pub authority: PathBuf,
    /// The certificate of the identity.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// The certificates that the authority has revoked; `None` if there is no list.
    pub revoked: Option<PathBuf>,
}

impl Security {
    /// The enclave in this folder.
    ///
    /// # Errors
    /// [`Error::Security`] with the first file that cannot be read, or is not what it should be.
    /// CycloneDDS checks signatures and dates when it opens a participant.
    pub fn open(folder: &Path) -> Result<Security, Error> {
        let folder = std::path::absolute(folder).map_err(|it| refused(folder, &it))?;
        for (_, name, mark) in FILES {
            let file = folder.join(name);
            let text = std::fs::read(&file).map_err(|error| refused(&file, &error))?;
            if !text.windows(mark.len()).any(|part| part == mark.as_bytes()) {
                return Err(refused(&file, &format!("there is no {mark:?} in it")));
            }
        }
        Ok(Security { folder })
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Its name in its keystore, such as `/robot/camera`.
    pub fn enclave(&self) -> String {
        let folder = self.folder.to_string_lossy();
        let name = folder.rsplit_once("/enclaves/").map_or(&*folder, |(_, name)| name);
        format!("/{}", name.trim_start_matches('/'))
    }

    /// The files of its identity, for another protocol that proves it.
    pub fn identity(&self) -> IdentityFiles {
        let file = |name| self.folder.join(name);
        let [authority, certificate, key] = [0, 1, 2].map(|at: usize| file(FILES[at].1));
        IdentityFiles { authority, certificate, key, revoked: self.revoked_file() }
    }

    fn revoked_file(&self) -> Option<PathBuf> {
        Some(self.folder.join(REVOKED)).filter(|file| file.exists())
    }

    /// The properties of a participant.
    pub(crate) fn properties(&self) -> Result<Vec<(CString, CString)>, Error> {
        let mut properties = Vec::new();
        for (plug_in, library, function) in PLUG_INS {
            let key = |what: &str| format!("dds.sec.{plug_in}.library.{what}");
            properties.push(pair(&key("path"), path(&library::plug_in(library)?))?);
            properties.push(pair(&key("init"), format!("init_{function}").into())?);
            properties.push(pair(&key("finalize"), format!("finalize_{function}").into())?);
        }
        let list = self.revoked_file().map(|_| (REVOKED_PROPERTY, REVOKED));
        let files = FILES.into_iter().map(|(key, file, _)| (key, file)).chain(list);
        for (key, file) in files {
            let file = path(&self.folder.join(file));
            properties.push(pair(key, [b"file:", file.as_slice()].concat())?);
        }
        Ok(properties)
    }

    /// When the list of revoked certificates was written, if there is one.
    pub(crate) fn revoked_at(&self) -> Option<SystemTime> {
        std::fs::metadata(self.folder.join(REVOKED)).and_then(|it| it.modified()).ok()
    }

    /// The refusal of an endpoint on `topic`.
    pub(crate) fn denied(&self, topic: &str, is_publisher: bool) -> Error {
        let (topic, file) = (topic.to_owned(), self.folder.join("permissions.p7s"));
        Error::Denied { topic, is_publisher, file }
    }

    /// What CycloneDDS has refused, with its reasons.
    pub(crate) fn refused(&self, reasons: &str) -> Error {
        refused(&self.folder, &reasons)
    }
}

fn refused(file: &Path, problem: &dyn std::fmt::Display) -> Error {
    Error::Security { file: file.to_owned(), problem: problem.to_string() }
}

fn path(path: &Path) -> Vec<u8> {
    path.as_os_str().as_bytes().to_vec()
}

fn pair(key: &str, value: Vec<u8>) -> Result<(CString, CString), Error> {
    let text = |bytes| CString::new(bytes).map_err(|_| refused(Path::new(key), &"a NUL in it"));
    Ok((text(key.into())?, text(value)?))
}

/// Passes what CycloneDDS warns of to `warn` from now on, each text once: so what it refuses. Without
/// it, and while no participant is secured, CycloneDDS writes to stderr by itself.
pub fn warn_by(warn: fn(&str)) {
    let _ = WARN.set(warn);
}

/// Runs `act`, and returns what CycloneDDS has written meanwhile in this thread.
pub(crate) fn listen<R>(act: impl FnOnce() -> R) -> (R, String) {
    // SAFETY: CycloneDDS is loaded, and the function lives for ever.
    unsafe { ffi::myelin_dds_log(heard) };
    let before = HEARD.replace(Some(String::new()));
    let result = act();
    let heard = HEARD.replace(before).unwrap_or_default();
    (result, heard.trim().replace('\n', "; "))
}

unsafe extern "C" fn heard(text: *const c_char) {
    // SAFETY: CycloneDDS's text, which lives for the call.
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
    let text = text.trim_end();
    let keep = |heard: &RefCell<Option<String>>| match heard.borrow_mut().as_mut() {
        Some(heard) => {
            heard.push_str(text);
            heard.push('\n');
            true
        }
        None => false,
    };
    // Nobody listens in a thread that ends.
    let is_kept = HEARD.try_with(keep).unwrap_or(false);
    if !is_kept {
        keep_refused(text);
        warn_once(text);
    }
}

/// The newest certificates that this process has refused, in the words of CycloneDDS. They name the
/// certificate's subject.
pub fn refused_certificates() -> Vec<String> {
    REFUSED_CERTIFICATES.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

fn keep_refused(text: &str) {
    let Some(at) = text.find(REFUSED_CERTIFICATE) else { return };
    let text = text[at..].split("(code:").next().unwrap_or_default().trim_end();
    // The names in a subject escape their slashes.
    let text: String = text.chars().filter(|each| *each != '\\').take(160).collect();
    let mut kept = REFUSED_CERTIFICATES.lock().unwrap_or_else(PoisonError::into_inner);
    if !kept.contains(&text) {
        kept.truncate(REFUSED_CERTIFICATES_MAX - 1);
        kept.insert(0, text);
    }
}

/// Warns as CycloneDDS does: by the function of [`warn_by`], each text once in the process.
pub fn warn_once(text: &str) {
    static TEXTS: Mutex<Texts> = Mutex::new(Texts(VecDeque::new()));
    let mut texts = TEXTS.lock().unwrap_or_else(PoisonError::into_inner);
    let is_news = texts.is_news(text, Instant::now());
    drop(texts);
    if !is_news {
        return;
    }
    let why = WHY.iter().find(|(part, _)| text.contains(part)).map_or("", |(_, why)| why);
    match WARN.get() {
        Some(warn) => warn(&format!("{text}{why}")),
        None => eprintln!("{text}{why}"),
    }
}

/// The last texts, each with the time when it came first, until it was reported: a stranger who is
/// refused comes again, several times a second.
struct Texts(VecDeque<(String, Option<Instant>)>);

impl Texts {
    /// Whether this is to be reported now.
    fn is_news(&mut self, text: &str, now: Instant) -> bool {
        let known = self.0.iter_mut().find(|(known, _)| known == text);
        // CycloneDDS says this, too, of all that it meets while our own participant comes or goes.
        let waits = |since: Option<Instant>| match text.starts_with(NO_MATCH) {
            true => since.is_none_or(|since| now.duration_since(since) < NO_MATCH_SETTLES),
            false => false,
        };
        match known {
            Some((_, None)) => false,
            Some((_, since)) => {
                let is_news = !waits(*since);
                *since = since.filter(|_| !is_news);
                is_news
            }
            None => {
                if self.0.len() == TEXTS_MAX {
                    self.0.pop_front();
                }
                let is_news = !waits(None);
                self.0.push_back((text.to_owned(), (!is_news).then_some(now)));
                is_news
            }
        }
    }
}

thread_local! {
    /// What is being listened to.
    static HEARD: RefCell<Option<String>> = const { RefCell::new(None) };
}
static WARN: OnceLock<fn(&str)> = OnceLock::new();
/// The newest first.
static REFUSED_CERTIFICATES: Mutex<Vec<String>> = Mutex::new(Vec::new());
const REFUSED_CERTIFICATES_MAX: usize = 2;
const REFUSED_CERTIFICATE: &str = "Certificate not valid";
const TEXTS_MAX: usize = 64;
/// What CycloneDDS says of a participant for which it has none of ours.
const NO_MATCH: &str = "Remote secure participant";
/// What is added to texts that contain this.
const WHY: [(&str, &str); 2] = [
    (
        NO_MATCH,
        ": its governance protects other things than ours; compare governance.p7s in the enclaves of \
         both hosts",
    ),
    (
        "failed: (1) Timed out",
        "; the other side has gone, or one side refuses the other: the side that refuses has \
         written why",
    ),
];
/// After this time no participant of ours comes or goes.
const NO_MATCH_SETTLES: Duration = Duration::from_secs(5);

/// Properties with their files, and what there is in each.
const FILES: [(&str, &str, &str); 6] = [
    ("dds.sec.auth.identity_ca", "identity_ca.cert.pem", "BEGIN CERTIFICATE"),
    ("dds.sec.auth.identity_certificate", "cert.pem", "BEGIN CERTIFICATE"),
    ("dds.sec.auth.private_key", "key.pem", "PRIVATE KEY"),
    ("dds.sec.access.permissions_ca", "permissions_ca.cert.pem", "BEGIN CERTIFICATE"),
    ("dds.sec.access.governance", "governance.p7s", "multipart/signed"),
    ("dds.sec.access.permissions", "permissions.p7s", "multipart/signed"),
];
/// The certificates that the authority has revoked, if there is a list; ROS 2 has it under this name.
const REVOKED: &str = "crl.pem";
const REVOKED_PROPERTY: &str = "org.eclipse.cyclonedds.sec.auth.crl";
/// Plug-ins: their name among the properties, their library, and what their functions are for.
const PLUG_INS: [(&str, &str, &str); 3] = [
    ("auth", "libdds_security_auth.so", "authentication"),
    ("access", "libdds_security_ac.so", "access_control"),
    ("crypto", "libdds_security_crypto.so", "crypto"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_reported_once_and_that_of_a_start_only_if_it_stays() {
        let mut texts = Texts(VecDeque::new());
        let (start, later) = (Instant::now(), Instant::now() + NO_MATCH_SETTLES);
        assert!(texts.is_news("certificate revoked", start));
        assert!(!texts.is_news("certificate revoked", later));
        let of_start = "Remote secure participant 1:2:3:1c1 not allowed";
        assert!(!texts.is_news(of_start, start) && !texts.is_news(of_start, start));
        assert!(texts.is_news(of_start, later));
        assert!(!texts.is_news(of_start, later));
        (0..TEXTS_MAX).for_each(|number| _ = texts.is_news(&number.to_string(), start));
        assert!(texts.is_news("certificate revoked", later), "it was forgotten");
        assert_eq!(texts.0.len(), TEXTS_MAX);
    }
}
