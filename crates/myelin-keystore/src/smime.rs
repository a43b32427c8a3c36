//! Texts signed as DDS Security wants it (9.4.1): S/MIME, in clear with a detached signature. It is the
//! form of `openssl smime -sign -text`.

use cms::cert::{CertificateChoices, IssuerAndSerialNumber};
use cms::content_info::{CmsVersion, ContentInfo};
use cms::signed_data::{
    CertificateSet, EncapsulatedContentInfo, SignedData, SignerIdentifier, SignerInfo, SignerInfos,
};
use data_encoding::BASE64;
use rcgen::{KeyPair, SigningKey};
use ring::digest::{SHA256, digest};
use ring::signature::{ECDSA_P256_SHA256_ASN1, UnparsedPublicKey};
use x509_cert::Certificate;
use x509_cert::attr::Attribute;
use x509_cert::der::asn1::{ObjectIdentifier, OctetString, SetOfVec, UtcTime};
use x509_cert::der::{self, Any, Decode, Encode, Tag};
use x509_cert::spki::AlgorithmIdentifierOwned;

/// Signs `text` by `key`, whose certificate is `signer` (DER).
pub(crate) fn sign(text: &str, key: &KeyPair, signer: &[u8], now_s: u64) -> Result<String, String> {
    let content = format!("{TEXT_HEADER}{}", with_crlf(text));
    let signature = signature(content.as_bytes(), key, signer, now_s)?;
    let lines = BASE64.encode(&signature);
    let lines = lines.as_bytes().chunks(64).map(|line| String::from_utf8_lossy(line) + "\r\n");
    let lines: String = lines.collect();
    // No line of XML begins like this.
    let boundary = format!(
        "----{}",
        data_encoding::HEXUPPER.encode(digest(&SHA256, content.as_bytes()).as_ref())
    );
    Ok(format!(
        "MIME-Version: 1.0\r\n\
         Content-Type: multipart/signed; protocol=\"application/x-pkcs7-signature\"; \
         micalg=\"sha-256\"; boundary=\"{boundary}\"\r\n\r\n\
         This is an S/MIME signed message\r\n\r\n\
         --{boundary}\r\n{content}\r\n--{boundary}\r\n\
         Content-Type: application/x-pkcs7-signature; name=\"smime.p7s\"\r\n\
         Content-Transfer-Encoding: base64\r\n\
         Content-Disposition: attachment; filename=\"smime.p7s\"\r\n\r\n\
         {lines}\r\n--{boundary}--\r\n\r\n"
    ))
}

/// The text, if the key of the certificate `signer` (DER) has signed it.
pub(crate) fn verify(signed: &str, signer: &[u8]) -> Result<String, String> {
    let (content, signature) = split(signed).ok_or("not in S/MIME with a detached signature")?;
    let signature = BASE64.decode(&signature).map_err(|_| "its signature is not in base64")?;
    let signed = signed_data(&signature).map_err(|error| format!("its signature: {error}"))?;
    let [info] = signed.signer_infos.0.as_slice() else {
        return Err("it has no signature, or several".to_owned());
    };
    let attributes = info.signed_attrs.as_ref().ok_or("its signature has no attributes")?;
    let is_digest = |it: &&Attribute| it.oid == MESSAGE_DIGEST;
    let signed_digest = attributes.iter().find(is_digest).and_then(|it| it.values.get(0));
    if signed_digest.map(Any::value) != Some(digest(&SHA256, content.as_bytes()).as_ref()) {
        return Err("it has been changed since it was signed".to_owned());
    }
    let attributes = attributes.to_der().map_err(|error| error.to_string())?;
    let signer = Certificate::from_der(signer).map_err(|error| error.to_string())?;
    let key = signer.tbs_certificate.subject_public_key_info.subject_public_key;
    let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, key.raw_bytes());
    key.verify(&attributes, info.signature.as_bytes())
        .map_err(|_| "another authority has signed it".to_owned())?;
    Ok(content.strip_prefix(TEXT_HEADER).unwrap_or(&content).to_owned())
}

fn signature(content: &[u8], key: &KeyPair, signer: &[u8], now_s: u64) -> Result<Vec<u8>, String> {
    let described = describe(content, signer, now_s).map_err(|error| error.to_string())?;
    let attributes = described.attributes.to_der().map_err(|error| error.to_string())?;
    let signature = key.sign(&attributes).map_err(|error| error.to_string())?;
    encode(described, signature).map_err(|error| error.to_string())
}

/// What is signed, and by whom.
struct Described {
    attributes: SetOfVec<Attribute>,
    signer: Certificate,
}

fn describe(content: &[u8], signer: &[u8], now_s: u64) -> der::Result<Described> {
    let attribute = |oid, value: Any| {
        let values = SetOfVec::try_from(vec![value])?;
        Ok::<_, der::Error>(Attribute { oid, values })
    };
    let digest = digest(&SHA256, content);
    let time = UtcTime::from_unix_duration(std::time::Duration::from_secs(now_s))?;
    let attributes = SetOfVec::try_from(vec![
        attribute(CONTENT_TYPE, Any::encode_from(&DATA)?)?,
        attribute(SIGNING_TIME, Any::encode_from(&time)?)?,
        attribute(MESSAGE_DIGEST, Any::new(Tag::OctetString, digest.as_ref())?)?,
    ])?;
    Ok(Described { attributes, signer: Certificate::from_der(signer)? })
}

fn encode(described: Described, signature: Vec<u8>) -> der::Result<Vec<u8>> {
    let Described { attributes, signer } = described;
    let sha256 = AlgorithmIdentifierOwned { oid: SHA_256, parameters: None };
    let info = SignerInfo {
        version: CmsVersion::V1,
        sid: SignerIdentifier::IssuerAndSerialNumber(IssuerAndSerialNumber {
            issuer: signer.tbs_certificate.issuer.clone(),
            serial_number: signer.tbs_certificate.serial_number.clone(),
        }),
        digest_alg: sha256.clone(),
        signed_attrs: Some(attributes),
        signature_algorithm: AlgorithmIdentifierOwned { oid: ECDSA_WITH_SHA256, parameters: None },
        signature: OctetString::new(signature)?,
        unsigned_attrs: None,
    };
    let certificates = SetOfVec::try_from(vec![CertificateChoices::Certificate(signer)])?;
    let signed = SignedData {
        version: CmsVersion::V1,
        digest_algorithms: SetOfVec::try_from(vec![sha256])?,
        encap_content_info: EncapsulatedContentInfo { econtent_type: DATA, econtent: None },
        certificates: Some(CertificateSet(certificates)),
        crls: None,
        signer_infos: SignerInfos(SetOfVec::try_from(vec![info])?),
    };
    ContentInfo { content_type: SIGNED_DATA, content: Any::encode_from(&signed)? }.to_der()
}

fn signed_data(bytes: &[u8]) -> der::Result<SignedData> {
    ContentInfo::from_der(bytes)?.content.decode_as()
}

/// The signed part with its header, and the base64 of the signature.
fn split(signed: &str) -> Option<(String, Vec<u8>)> {
    let signed = with_crlf(signed);
    let (_, rest) = signed.split_once("boundary=\"")?;
    let (boundary, rest) = rest.split_once('"')?;
    let boundary = format!("\r\n--{boundary}");
    let mut parts = rest.split(&boundary).skip(1);
    let content = parts.next()?.strip_prefix("\r\n")?.to_owned();
    let (_, base64) = parts.next()?.split_once("\r\n\r\n")?;
    let base64 = base64.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    Some((content, base64))
}

/// Lines end with CR and LF in S/MIME, however a file ends them.
fn with_crlf(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', "\r\n")
}

const TEXT_HEADER: &str = "Content-Type: text/plain\r\n\r\n";
const DATA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.7.1");
const SIGNED_DATA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.7.2");
const CONTENT_TYPE: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.3");
const MESSAGE_DIGEST: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.4");
const SIGNING_TIME: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.5");
const SHA_256: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.2.1");
const ECDSA_WITH_SHA256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.4.3.2");
