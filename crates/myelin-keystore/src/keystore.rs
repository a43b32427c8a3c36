//! A keystore, and its enclaves.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use time::{Duration, OffsetDateTime};

use crate::certificate::{Authority, Certificate, Pair, Revoked};
use crate::files::{link, make_folder, read, write, write_private};
use crate::{Error, documents, smime};

/// A keystore. It is read from its files at each call.
#[derive(Debug)]
pub struct Keystore {
    pub(crate) folder: PathBuf,
}

/// What an enclave may publish and subscribe to: names of topics, with `*` for any characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rights {
    /// Topics that it may publish.
    pub publish: Vec<String>,
    /// Topics that it may subscribe to.
    pub subscribe: Vec<String>,
}

impl Default for Rights {
    /// All topics.
    fn default() -> Self {
        let all = vec!["*".to_owned()];
        Rights { publish: all.clone(), subscribe: all }
    }
}

/// What [`Keystore::add`] has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    /// It has made a new identity: a key and its certificate.
    Identity,
    /// The enclave has kept its identity, and has new rights.
    Rights,
}

/// An enclave: the identity of a robot or a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enclave {
    /// Its name, such as `/robot/camera`.
    pub name: String,
    /// When its certificate runs out.
    pub not_after: SystemTime,
    /// Whether it has run out, or is not valid yet.
    pub is_out_of_time: bool,
    /// Whether its certificate has been revoked.
    pub is_revoked: bool,
}

impl Keystore {
    /// Makes a keystore with new authorities, one for identities and one for rights. The folder must not exist, or be empty.
    ///
    /// # Errors
    /// [`Error::Exists`], [`Error::Io`]; nothing is left behind.
    pub fn create(folder: &Path) -> Result<Keystore, Error> {
        let io = |error| Error::io(folder, error);
        let parent = folder.parent().filter(|it| !it.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new("."));
        make_folder(parent)?;
        // It appears whole, or not at all.
        let mut new = tempfile::Builder::new();
        new.prefix(".keystore").permissions(Permissions::from_mode(0o700));
        let new = new.tempdir_in(parent).map_err(io)?;
        Keystore { folder: new.path().to_owned() }.fill()?;
        match std::fs::rename(new.path(), folder) {
            Ok(()) => {
                let _ = new.keep(); // it has its name
                Ok(Keystore { folder: folder.to_owned() })
            }
            Err(_) if folder.symlink_metadata().is_ok() => Err(Error::Exists(folder.to_owned())),
            Err(error) => Err(io(error)),
        }
    }

    /// Opens a keystore, of this crate or of SROS 2.
    ///
    /// # Errors
    /// [`Error::NotAKeystore`].
    pub fn open(folder: &Path) -> Result<Keystore, Error> {
        match REQUIRED.into_iter().find(|file| !folder.join(file).is_file()) {
            Some(missing) => Err(Error::NotAKeystore { folder: folder.to_owned(), missing }),
            None => Ok(Keystore { folder: folder.to_owned() }),
        }
    }

    /// Adds an enclave, or gives one other rights. An identity that has been revoked or has run out is
    /// replaced. A new one is valid for `days`.
    ///
    /// # Errors
    /// [`Error::Name`], [`Error::Topic`], [`Error::Days`], [`Error::Io`], [`Error::Broken`].
    pub fn add(&self, name: &str, rights: &Rights, days: u32) -> Result<Added, Error> {
        if !(1..=DAYS_MAX).contains(&days) {
            return Err(Error::Days(days));
        }
        let not_after = OffsetDateTime::now_utc() + Duration::days(days.into());
        self.add_until(name, rights, not_after.into())
    }

    /// Like [`add`](Keystore::add); a new identity is valid until `not_after`.
    ///
    /// # Errors
    /// As for [`add`](Keystore::add).
    pub fn add_until(
        &self,
        name: &str,
        rights: &Rights,
        not_after: SystemTime,
    ) -> Result<Added, Error> {
        let folder = self.enclave_folder(name)?;
        // Before anything is changed: a topic that cannot be one is an error.
        documents::permissions(name, rights, not_after.into(), not_after.into())?;
        make_folder(&folder)?;
        self.ensure_list()?;
        let added = match self.has_valid_identity(&folder) {
            true => Added::Rights,
            false => {
                let issued = self.authority(IDENTITY)?.issue(name, not_after.into());
                let Pair { certificate, key } =
                    issued.map_err(|error| Error::broken(&folder, error))?;
                write_private(&folder.join("key.pem"), &key)?;
                write(&folder.join("cert.pem"), &certificate)?;
                Added::Identity
            }
        };
        self.link(&folder)?;
        let identity = Certificate::load(&folder.join("cert.pem"))?;
        let text = documents::permissions(name, rights, identity.not_before, identity.not_after)?;
        self.write_signed(&folder.join("permissions.xml"), &text)?;
        Ok(added)
    }

    /// Revokes the certificate of an enclave. Others refuse it as soon as they have the list:
    /// `public/crl.pem`, to be copied to every host that has the keystore. Returns its path. The
    /// enclave stays, until [`add`](Keystore::add) gives it a new identity.
    ///
    /// # Errors
    /// [`Error::Name`], [`Error::NoEnclave`], [`Error::Io`], [`Error::Broken`].
    pub fn revoke(&self, name: &str) -> Result<PathBuf, Error> {
        let certificate = self.enclave_folder(name)?.join("cert.pem");
        if !certificate.exists() {
            let folder = self.folder.clone();
            return Err(Error::NoEnclave { folder, name: name.to_owned() });
        }
        let certificate = Certificate::load(&certificate)?;
        let list = self.list();
        let known = self.revoked()?;
        if !known.as_ref().is_some_and(|known| known.contains(&certificate)) {
            self.write_list(known.as_ref(), Some(&certificate.serial))?;
        }
        // The enclaves of SROS 2's tool have no link to it yet.
        for name in self.names()? {
            self.link(&self.enclave_folder(&name)?)?;
        }
        Ok(list)
    }

    /// The enclaves, by name.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Broken`].
    pub fn enclaves(&self) -> Result<Vec<Enclave>, Error> {
        let revoked = self.revoked()?;
        let read = |name: String| {
            let certificate = Certificate::load(&self.enclave_folder(&name)?.join("cert.pem"))?;
            Ok(Enclave {
                name,
                not_after: certificate.not_after.into(),
                is_out_of_time: !certificate.is_valid_now(),
                is_revoked: revoked.as_ref().is_some_and(|it| it.contains(&certificate)),
            })
        };
        self.names()?.into_iter().map(read).collect()
    }

    fn fill(&self) -> Result<(), Error> {
        for folder in ["public", "private", "enclaves"] {
            make_folder(&self.folder.join(folder))?;
        }
        // Two: CycloneDDS 0.10 takes the signature of an identity for that of the authority of identities.
        for kind in [IDENTITY, PERMISSIONS] {
            let made = Authority::create(kind).map_err(|it| Error::broken(&self.folder, it))?;
            let [certificate, key] = self.authority_files(kind);
            write_private(&key, &made.key)?;
            write(&certificate, &made.certificate)?;
        }
        self.ensure_list()?;
        let governance = self.folder.join("enclaves/governance.xml");
        self.write_signed(&governance, &documents::governance())
    }

    /// Writes a document, and beside it the signed one.
    fn write_signed(&self, file: &Path, text: &str) -> Result<(), Error> {
        let authority = self.authority(PERMISSIONS)?;
        let now_s = OffsetDateTime::now_utc().unix_timestamp().try_into().unwrap_or(0);
        let signed = smime::sign(text, authority.key(), &authority.certificate, now_s)
            .map_err(|reason| Error::broken(file, format!("it cannot be signed: {reason}")))?;
        write(file, text)?;
        write(&file.with_extension("p7s"), &signed)
    }

    /// The links of an enclave to what all enclaves share.
    fn link(&self, folder: &Path) -> Result<(), Error> {
        let depth = folder.strip_prefix(&self.folder).map_or(0, |it| it.components().count());
        let up: PathBuf = std::iter::repeat_n("..", depth).collect();
        let shared = [
            "public/identity_ca.cert.pem",
            "public/permissions_ca.cert.pem",
            "public/crl.pem",
            "enclaves/governance.p7s",
        ];
        for target in shared.map(Path::new) {
            let name = target.file_name().unwrap_or_default();
            link(&up.join(target), &folder.join(name))?;
        }
        Ok(())
    }

    /// Makes an empty list of revoked certificates, unless there is a list.
    fn ensure_list(&self) -> Result<(), Error> {
        match self.list().exists() {
            true => Ok(()),
            false => self.write_list(None, None),
        }
    }

    fn write_list(&self, known: Option<&Revoked>, serial: Option<&[u8]>) -> Result<(), Error> {
        let list = self.list();
        let text = self.authority(IDENTITY)?.revoke(known, serial);
        write(&list, &text.map_err(|error| Error::broken(&list, error))?)
    }

    pub(crate) fn list(&self) -> PathBuf {
        self.folder.join("public/crl.pem")
    }

    pub(crate) fn revoked(&self) -> Result<Option<Revoked>, Error> {
        let [authority, _] = self.authority_files(IDENTITY);
        Revoked::load(&self.list(), &Certificate::load(&authority)?)
    }

    fn has_valid_identity(&self, folder: &Path) -> bool {
        let [authority, _] = self.authority_files(IDENTITY);
        let Ok(authority) = Certificate::load(&authority) else { return false };
        let Ok(certificate) = Certificate::load(&folder.join("cert.pem")) else { return false };
        let key = read(&folder.join("key.pem")).unwrap_or_default();
        let revoked = self.revoked().ok().flatten();
        certificate.is_valid_now()
            && certificate.is_signed_by(&authority)
            && certificate.has_key(&key)
            && !revoked.is_some_and(|it| it.contains(&certificate))
    }

    fn authority(&self, kind: &str) -> Result<Authority, Error> {
        let [certificate, key] = self.authority_files(kind);
        Authority::load(&certificate, &key)
    }

    pub(crate) fn authority_files(&self, kind: &str) -> [PathBuf; 2] {
        let [public, private] = [("public", "cert"), ("private", "key")]
            .map(|(folder, what)| self.folder.join(folder).join(format!("{kind}_ca.{what}.pem")));
        [public, private]
    }

    pub(crate) fn enclave_folder(&self, name: &str) -> Result<PathBuf, Error> {
        let is_part = |part: &str| {
            let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
            !part.is_empty() && part.bytes().all(is_word) && !part.as_bytes()[0].is_ascii_digit()
        };
        match name.strip_prefix('/') {
            Some(parts) if parts.split('/').all(is_part) => {
                Ok(self.folder.join("enclaves").join(parts))
            }
            _ => Err(Error::Name(name.to_owned())),
        }
    }

    /// The names of the enclaves: those folders that have a key.
    pub(crate) fn names(&self) -> Result<Vec<String>, Error> {
        let root = self.folder.join("enclaves");
        let (mut names, mut open) = (Vec::new(), vec![root.clone()]);
        while let Some(folder) = open.pop() {
            let entries = std::fs::read_dir(&folder).map_err(|error| Error::io(&folder, error))?;
            for entry in entries {
                let entry = entry.map_err(|error| Error::io(&folder, error))?;
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    open.push(entry.path());
                }
            }
            if folder != root && folder.join("key.pem").is_file() {
                let name = folder.strip_prefix(&root).unwrap_or(&folder);
                names.push(format!("/{}", name.display()));
            }
        }
        names.sort();
        Ok(names)
    }
}

pub(crate) const IDENTITY: &str = "identity";
pub(crate) const PERMISSIONS: &str = "permissions";
/// As for SROS 2's tool; for the library an enclave is enough.
const REQUIRED: [&str; 5] = [
    "public/identity_ca.cert.pem",
    "public/permissions_ca.cert.pem",
    "private/identity_ca.key.pem",
    "private/permissions_ca.key.pem",
    "enclaves/governance.p7s",
];
const DAYS_MAX: u32 = 36_500;
