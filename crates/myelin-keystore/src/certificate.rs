//! Certificates of identities, the authority that signs them, and its list of those it has revoked.

use std::path::Path;

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DnType, IsCa, Issuer,
    KeyIdMethod, KeyPair, KeyUsagePurpose, RevokedCertParams, SerialNumber,
};
use time::{Duration, OffsetDateTime};
use x509_parser::certificate::X509Certificate;
use x509_parser::pem::parse_x509_pem;
use x509_parser::prelude::FromDer;
use x509_parser::revocation_list::CertificateRevocationList;

use crate::Error;
use crate::files::read;

/// A new key and its certificate, as PEM.
pub(crate) struct Pair {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

/// Something that signs: its certificate and its key.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// DER.
    pub(crate) certificate: Vec<u8>,
}

/// What a certificate says.
pub(crate) struct Certificate {
    /// DER.
    pub(crate) bytes: Vec<u8>,
    /// The common name of its subject.
    pub(crate) name: String,
    pub(crate) not_before: OffsetDateTime,
    pub(crate) not_after: OffsetDateTime,
    pub(crate) serial: Vec<u8>,
    /// The point of its public key.
    public_key: Vec<u8>,
}

impl Authority {
    /// A new authority of this kind, with the key of its own, on curve prime256v1 (DDS Security 9.3.1).
    pub(crate) fn create(kind: &str) -> Result<Pair, rcgen::Error> {
        let name = format!("myelin {kind} CA");
        let mut params = params(&name, OffsetDateTime::now_utc() + AUTHORITY_VALID);
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(1));
        let (sign, list) = (KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign);
        params.key_usages = vec![sign, list, KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate()?;
        Ok(Pair { certificate: params.self_signed(&key)?.pem(), key: key.serialize_pem() })
    }

    pub(crate) fn load(certificate: &Path, key: &Path) -> Result<Authority, Error> {
        let text = read(certificate)?;
        let bytes = Certificate::parse(certificate, &text)?.bytes;
        let pair = KeyPair::from_pem(&read(key)?).map_err(|error| {
            Error::broken(key, format!("not a key of EC prime256v1 in PKCS#8: {error}"))
        })?;
        let issuer = Issuer::from_ca_cert_pem(&text, pair);
        let issuer = issuer.map_err(|error| Error::broken(certificate, error))?;
        Ok(Authority { issuer, certificate: bytes })
    }

    pub(crate) fn key(&self) -> &KeyPair {
        self.issuer.key()
    }

    /// A new identity.
    pub(crate) fn issue(
        &self,
        name: &str,
        not_after: OffsetDateTime,
    ) -> Result<Pair, rcgen::Error> {
        let mut params = params(name, not_after);
        params.is_ca = IsCa::ExplicitNoCa;
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok(Pair { certificate: certificate.pem(), key: key.serialize_pem() })
    }

    /// The list of revoked certificates: those of `before`, and `serial`. PEM.
    pub(crate) fn revoke(
        &self,
        before: Option<&Revoked>,
        serial: Option<&[u8]>,
    ) -> Result<String, rcgen::Error> {
        let now = OffsetDateTime::now_utc();
        let known = before.iter().flat_map(|list| &list.serials);
        let new = serial.map(|serial| (serial.to_vec(), now));
        let revoked = known.cloned().chain(new).map(|(serial, time)| RevokedCertParams {
            serial_number: SerialNumber::from_slice(&serial),
            revocation_time: time,
            reason_code: None,
            invalidity_date: None,
        });
        let list = CertificateRevocationListParams {
            this_update: now - CLOCK_BEHIND,
            // A list that has run out would refuse everybody.
            next_update: now + AUTHORITY_VALID,
            crl_number: SerialNumber::from(before.map_or(1, |list| list.number + 1)),
            issuing_distribution_point: None,
            revoked_certs: revoked.collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        list.signed_by(&self.issuer)?.pem()
    }
}

fn params(name: &str, not_after: OffsetDateTime) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.not_before = OffsetDateTime::now_utc() - CLOCK_BEHIND;
    params.not_after = not_after;
    params
}

impl Certificate {
    pub(crate) fn load(file: &Path) -> Result<Certificate, Error> {
        Certificate::parse(file, &read(file)?)
    }

    fn parse(file: &Path, pem: &str) -> Result<Certificate, Error> {
        let broken = |reason: &dyn std::fmt::Display| {
            Error::broken(file, format!("not a certificate in PEM: {reason}"))
        };
        let (_, pem) = parse_x509_pem(pem.as_bytes()).map_err(|error| broken(&error))?;
        let (_, parsed) =
            X509Certificate::from_der(&pem.contents).map_err(|error| broken(&error))?;
        let name = parsed.subject().iter_common_name().next().and_then(|it| it.as_str().ok());
        let name = name.unwrap_or_default().to_owned();
        let validity = parsed.validity();
        let (not_before, not_after) =
            (validity.not_before.to_datetime(), validity.not_after.to_datetime());
        let serial = parsed.raw_serial().to_vec();
        let public_key = parsed.public_key().subject_public_key.data.to_vec();
        Ok(Certificate {
            bytes: pem.contents.clone(),
            name,
            not_before,
            not_after,
            serial,
            public_key,
        })
    }

    /// Whether `authority` has signed it.
    pub(crate) fn is_signed_by(&self, authority: &Certificate) -> bool {
        let parsed = X509Certificate::from_der(&self.bytes);
        let signer = X509Certificate::from_der(&authority.bytes);
        let (Ok((_, parsed)), Ok((_, signer))) = (parsed, signer) else { return false };
        parsed.issuer() == signer.subject()
            && parsed.verify_signature(Some(signer.public_key())).is_ok()
    }

    /// Whether both have one key.
    pub(crate) fn has_key_of(&self, other: &Certificate) -> bool {
        self.public_key == other.public_key
    }

    /// Whether this private key (PEM) is that of the certificate.
    pub(crate) fn has_key(&self, key: &str) -> bool {
        KeyPair::from_pem(key).is_ok_and(|key| key.public_key_raw() == self.public_key)
    }

    /// Whether it has run out, or is not valid yet.
    pub(crate) fn is_valid_now(&self) -> bool {
        (self.not_before..=self.not_after).contains(&OffsetDateTime::now_utc())
    }
}

/// The certificates that an authority has revoked.
pub(crate) struct Revoked {
    number: u64,
    /// With the time.
    serials: Vec<(Vec<u8>, OffsetDateTime)>,
}

impl Revoked {
    /// Reads the list of `authority`; `None` if there is no file.
    pub(crate) fn load(file: &Path, authority: &Certificate) -> Result<Option<Revoked>, Error> {
        if !file.exists() {
            return Ok(None);
        }
        let broken = |reason: &dyn std::fmt::Display| {
            Error::broken(file, format!("not a list of revoked certificates in PEM: {reason}"))
        };
        let text = read(file)?;
        let (_, pem) = parse_x509_pem(text.as_bytes()).map_err(|error| broken(&error))?;
        let list = CertificateRevocationList::from_der(&pem.contents);
        let (_, list) = list.map_err(|error| broken(&error))?;
        let (_, signer) = X509Certificate::from_der(&authority.bytes).map_err(|it| broken(&it))?;
        list.verify_signature(signer.public_key())
            .map_err(|_| Error::broken(file, "another authority has signed it"))?;
        let serials = list
            .iter_revoked_certificates()
            .map(|it| (it.raw_serial().to_vec(), it.revocation_date.to_datetime()))
            .collect();
        let number = list.crl_number().and_then(|it| it.to_u64_digits().first().copied());
        Ok(Some(Revoked { number: number.unwrap_or(0), serials }))
    }

    pub(crate) fn contains(&self, certificate: &Certificate) -> bool {
        self.serials.iter().any(|(serial, _)| *serial == certificate.serial)
    }
}

/// Clocks of robots are behind, and a new certificate is valid for them, too.
const CLOCK_BEHIND: Duration = Duration::days(1);
/// As in SROS 2.
const AUTHORITY_VALID: Duration = Duration::days(3_650);
