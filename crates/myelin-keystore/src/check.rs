//! What is wrong with a keystore.

use std::fmt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::certificate::Certificate;
use crate::files::read;
use crate::keystore::{IDENTITY, PERMISSIONS};
use crate::{Error, Keystore, smime};

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The file.
    pub file: PathBuf,
    /// What is wrong with it, and the remedy.
    pub problem: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}: {}", self.file.display(), self.problem)
    }
}

impl Keystore {
    /// Checks every file: certificates, their keys and dates, signatures, names, and who can read the
    /// keys. Empty if all is well.
    ///
    /// # Errors
    /// [`Error::Io`] or [`Error::Broken`] if the authorities' certificates cannot be read.
    pub fn check(&self) -> Result<Vec<Finding>, Error> {
        let [identities, key] = self.authority_files(IDENTITY);
        let [permissions, second_key] = self.authority_files(PERMISSIONS);
        let authorities = [Certificate::load(&identities)?, Certificate::load(&permissions)?];
        let mut findings = Findings::default();
        for (authority, file) in authorities.iter().zip([&identities, &permissions]) {
            findings.dates(file, authority);
        }
        for (authority, key) in authorities.iter().zip([&key, &second_key]) {
            findings.key(key, authority);
        }
        if authorities[0].has_key_of(&authorities[1]) {
            findings.add(&permissions, ONE_AUTHORITY);
        }
        findings.document(&self.folder.join("enclaves/governance.p7s"), &authorities[1]);
        if let Err(error) = self.revoked() {
            findings.error(error);
        }
        for name in self.names()? {
            self.check_enclave(&name, &authorities, &mut findings)?;
        }
        Ok(findings.0)
    }

    fn check_enclave(
        &self,
        name: &str,
        [identities, permissions]: &[Certificate; 2],
        findings: &mut Findings,
    ) -> Result<(), Error> {
        let folder = self.enclave_folder(name)?;
        let file = folder.join("cert.pem");
        let certificate = match Certificate::load(&file) {
            Ok(certificate) => certificate,
            Err(error) => {
                findings.error(error);
                return Ok(());
            }
        };
        findings.dates(&file, &certificate);
        if !certificate.is_signed_by(identities) {
            findings.add(&file, "another authority has signed it; add the enclave again");
        }
        if certificate.name != name {
            let problem = format!("its name is {}, and its enclave is {name}", certificate.name);
            findings.add(&file, &problem);
        }
        if self.revoked().ok().flatten().is_some_and(|list| list.contains(&certificate)) {
            findings.add(&file, "it is revoked; `myelin keystore add` makes a new one");
        }
        findings.key(&folder.join("key.pem"), &certificate);
        for link in ["identity_ca.cert.pem", "permissions_ca.cert.pem", "governance.p7s"] {
            if let Err(error) = read(&folder.join(link)) {
                findings.error(error);
            }
        }
        let file = folder.join("permissions.p7s");
        if let Some(text) = findings.document(&file, permissions) {
            let subject = format!("CN={name}");
            let is_its = text.contains(&format!("<subject_name>{subject}</subject_name>"));
            if !is_its {
                findings
                    .add(&file, &format!("it grants nothing to {subject}; add the enclave again"));
            }
        }
        Ok(())
    }
}

/// CVE-2023-24011; mended in 11.0, and not in the series 0.10.
const ONE_AUTHORITY: &str = "it is the authority of identities, too, as SROS 2's tool makes it: CycloneDDS \
    before 11.0 then accepts rights that an enclave has signed by itself (CVE-2023-24011). `myelin \
    keystore create` makes two authorities";

#[derive(Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn add(&mut self, file: &Path, problem: &str) {
        self.0.push(Finding { file: file.to_owned(), problem: problem.to_owned() });
    }

    fn error(&mut self, error: Error) {
        match error {
            Error::Io { file, error } => self.add(&file, &error.to_string()),
            Error::Broken { file, reason } => self.add(&file, &reason),
            other => self.add(Path::new(""), &other.to_string()),
        }
    }

    fn dates(&mut self, file: &Path, certificate: &Certificate) {
        if !certificate.is_valid_now() {
            let Certificate { not_before, not_after, .. } = certificate;
            let problem = format!("it is valid from {not_before} to {not_after} only");
            self.add(file, &problem);
        }
    }

    fn key(&mut self, file: &Path, certificate: &Certificate) {
        match read(file) {
            Ok(key) if !certificate.has_key(&key) => {
                self.add(file, "it is not the key of its certificate");
            }
            Ok(_) => {}
            Err(error) => self.error(error),
        }
        let mode = std::fs::metadata(file).map_or(0, |it| it.permissions().mode());
        if mode & 0o077 != 0 {
            let problem = format!("others can read it (mode {:o}); chmod 600", mode & 0o777);
            self.add(file, &problem);
        }
    }

    /// The text of a signed document, if it is all right.
    fn document(&mut self, file: &Path, authority: &Certificate) -> Option<String> {
        let text = match read(file) {
            Ok(signed) => smime::verify(&signed, &authority.bytes),
            Err(error) => {
                self.error(error);
                return None;
            }
        };
        text.map_err(|problem| self.add(file, &problem)).ok()
    }
}
