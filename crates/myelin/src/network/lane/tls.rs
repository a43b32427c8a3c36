//! TLS 1.3 on the lane of a node with an enclave: both sides show the certificate of their enclave,
//! and both check it against the authority and its list of revoked certificates.
//!
//! A certificate is that of a DDS participant, too: DDS Security derives the first six bytes of a
//! participant's GUID from the certificate's subject (9.3.3). So each side knows that the other one is
//! the participant that it has met by DDS, which has checked its permissions for each topic.

use std::fmt;
use std::io::{self, BufRead, BufReader, IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ::ring::digest::{SHA256, digest};
use myelin_dds::{Guid, Security};
use rustix::io::Errno;
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{
    CertificateDer, CertificateRevocationListDer, PrivateKeyDer, ServerName, UnixTime,
};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{
    CertificateError, CipherSuite, ClientConfig, ClientConnection, Connection,
    DigitallySignedStruct, RootCertStore, ServerConfig, ServerConnection, SignatureScheme,
};

use super::socket::Socket;
use crate::network::lock;

/// The certificate of an enclave's authority (DER); empty if it cannot be read.
pub(in crate::network) fn authority(enclave: &Security) -> Vec<u8> {
    let all = certificates(&enclave.identity().authority).unwrap_or_default();
    all.iter().flat_map(|certificate| certificate.iter().copied()).collect()
}

/// When an enclave's certificate runs out, in s since 1970; 0 if it is not valid now. rustls tells for a time
/// whether it is valid, and not until when.
pub(in crate::network) fn valid_until_s(enclave: &Security) -> u64 {
    let files = enclave.identity();
    let mut authority = RootCertStore::empty();
    authority.add_parsable_certificates(certificates(&files.authority).unwrap_or_default());
    let provider = Arc::new(provider());
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(authority), provider).build();
    let own = certificates(&files.certificate).unwrap_or_default();
    let (Ok(verifier), [first, rest @ ..]) = (verifier, &own[..]) else { return 0 };
    let is_valid = |at_s| {
        let at = UnixTime::since_unix_epoch(Duration::from_secs(at_s));
        verifier.verify_client_cert(first, rest, at).is_ok()
    };
    let (mut valid_s, mut invalid_s) = (UnixTime::now().as_secs(), YEAR_9999_S);
    if !is_valid(valid_s) {
        return 0;
    }
    while invalid_s - valid_s > 1 {
        let middle_s = valid_s.midpoint(invalid_s);
        *(if is_valid(middle_s) { &mut valid_s } else { &mut invalid_s }) = middle_s;
    }
    invalid_s
}

/// What a node proves its identity with, and checks that of others.
pub(in crate::network) struct Identity {
    client: ClientConfig,
    server: Arc<ServerConfig>,
    verifier: Arc<dyn ClientCertVerifier>,
}

impl Identity {
    /// That of an enclave.
    ///
    /// # Errors
    /// The file that is not as TLS needs it, and why.
    pub(in crate::network) fn load(enclave: &Security) -> Result<Identity, String> {
        let files = enclave.identity();
        let mut authority = RootCertStore::empty();
        for certificate in certificates(&files.authority)? {
            authority.add(certificate).map_err(|error| fault(&files.authority, error))?;
        }
        let own = certificates(&files.certificate)?;
        let key = PrivateKeyDer::from_pem_file(&files.key);
        let key = key.map_err(|error| fault(&files.key, error))?;
        let provider = Arc::new(provider());
        let mut verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::new(authority), provider.clone())
                // As CycloneDDS checks them.
                .only_check_end_entity_revocation()
                .enforce_revocation_expiration();
        if let Some(file) = &files.revoked {
            let lists = CertificateRevocationListDer::pem_file_iter(file)
                .and_then(Iterator::collect::<Result<Vec<_>, _>>);
            verifier = verifier.with_crls(lists.map_err(|error| fault(file, error))?);
        }
        let verifier = verifier
            .build()
            .map_err(|error| fault(files.revoked.as_ref().unwrap_or(&files.authority), error))?;
        check(&*verifier, &own).map_err(|error| fault(&files.certificate, error))?;
        let pair = |error| fault(&files.key, error);
        let versions = [&rustls::version::TLS13];
        let mut server = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&versions)
            .map_err(pair)?
            .with_client_cert_verifier(verifier.clone())
            .with_single_cert(own.clone(), key.clone_key())
            .map_err(pair)?;
        // Each connection is checked anew.
        server.session_storage = Arc::new(NoServerSessionStorage {});
        server.send_tls13_tickets = 0;
        server.ignore_client_order = !has_aes();
        let nobody = ParticipantVerifier { verifier: verifier.clone(), participant: [0; 16] };
        let mut client = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&versions)
            .map_err(pair)?
            .dangerous() // it checks more, not less: see `ParticipantVerifier`
            .with_custom_certificate_verifier(Arc::new(nobody))
            .with_client_auth_cert(own, key)
            .map_err(pair)?;
        client.resumption = Resumption::disabled();
        client.enable_sni = false;
        Ok(Identity { client, server: Arc::new(server), verifier })
    }

    /// The side of a connection that dials `participant`.
    pub(super) fn dial(&self, participant: &Guid) -> Result<Connection, rustls::Error> {
        let (verifier, participant) = (self.verifier.clone(), *participant);
        let mut config = self.client.clone();
        let verifier = Arc::new(ParticipantVerifier { verifier, participant });
        config.dangerous().set_certificate_verifier(verifier);
        let name = ServerName::try_from("myelin").expect("a name, which nobody asks for");
        let mut connection = ClientConnection::new(Arc::new(config), name)?;
        // What it says before the other side has answered: frames without samples.
        connection.set_buffer_limit(None);
        Ok(connection.into())
    }

    /// The side that accepts.
    pub(super) fn accept(&self) -> Result<Connection, rustls::Error> {
        let mut connection = ServerConnection::new(self.server.clone())?;
        connection.set_buffer_limit(Some(BUFFER_BYTES));
        Ok(connection.into())
    }
}

fn fault(file: &Path, error: impl fmt::Display) -> String {
    format!("{}: {error}", file.display())
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let all = CertificateDer::pem_file_iter(file).and_then(Iterator::collect);
    all.map_err(|error| fault(file, error))
}

fn check(
    verifier: &dyn ClientCertVerifier,
    certificates: &[CertificateDer<'_>],
) -> Result<(), rustls::Error> {
    let [first, rest @ ..] = certificates else {
        return Err(rustls::Error::NoCertificatesPresented);
    };
    verifier.verify_client_cert(first, rest, UnixTime::now()).map(drop)
}

/// Of the ciphers AES comes first where the processor has instructions for it, else ChaCha20.
fn provider() -> CryptoProvider {
    let mut provider = ring::default_provider();
    let chacha = CipherSuite::TLS13_CHACHA20_POLY1305_SHA256;
    // The sort is stable.
    provider.cipher_suites.sort_by_key(|suite| (suite.suite() == chacha) == has_aes());
    provider
}

fn has_aes() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("aes");
    #[cfg(target_arch = "aarch64")]
    return std::arch::is_aarch64_feature_detected!("aes");
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    return false;
}

/// Whether a certificate is that of a DDS participant, by the participant's GUID or that of one of its
/// endpoints.
fn is_of(certificate: &CertificateDer<'_>, participant: &Guid) -> bool {
    guid_start(certificate).is_some_and(|start| participant.starts_with(&start))
}

/// The first bytes of the GUID of a participant with this certificate; `None` if it is broken.
fn guid_start(certificate: &CertificateDer<'_>) -> Option<[u8; 6]> {
    let parsed = webpki::EndEntityCert::try_from(certificate).ok()?;
    let hash = digest(&SHA256, &sequence(parsed.subject()));
    let bits = 1 << 63 | u64::from_be_bytes(*hash.as_ref().first_chunk()?) >> 1;
    bits.to_be_bytes().first_chunk().copied()
}

/// The DER of a sequence with this content.
fn sequence(content: &[u8]) -> Vec<u8> {
    let length = content.len().to_be_bytes();
    let length = &length[length.iter().take_while(|byte| **byte == 0).count()..];
    let header = match content.len() {
        0..128 => vec![0x30, content.len() as u8],
        _ => [&[0x30, 0x80 | length.len() as u8], length].concat(),
    };
    [&header, content].concat()
}

/// Checks the side that was dialled: its certificate, and that it is that of the participant.
#[derive(Debug)]
struct ParticipantVerifier {
    verifier: Arc<dyn ClientCertVerifier>,
    participant: Guid,
}

impl ServerCertVerifier for ParticipantVerifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.verifier.verify_client_cert(certificate, intermediates, now)?;
        match is_of(certificate, &self.participant) {
            true => Ok(ServerCertVerified::assertion()),
            false => Err(CertificateError::NotValidForName.into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verifier.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verifier.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}

/// A connection by TLS. Any thread may write, the lane's thread reads; what the kernel does not take
/// waits here until the next call, some records at most.
pub(super) struct TlsStream {
    socket: Arc<Socket>,
    state: Mutex<State>,
}

struct State {
    connection: Connection,
    /// Reads more at once than a record.
    input: BufReader<Bytes>,
    /// Why the connection was refused.
    failure: Option<String>,
}

impl TlsStream {
    pub(super) fn new(socket: Socket, connection: Connection) -> TlsStream {
        let socket = Arc::new(socket);
        let input = BufReader::with_capacity(BUFFER_BYTES, Bytes(socket.clone()));
        let state = Mutex::new(State { connection, input, failure: None });
        TlsStream { socket, state }
    }

    pub(super) fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Takes some bytes of the parts, once all earlier ones have gone.
    pub(super) fn write(&self, parts: &[IoSlice<'_>]) -> rustix::io::Result<usize> {
        let mut state = lock(&self.state);
        state.push()?;
        let taken = state.connection.writer().write_vectored(parts).map_err(errno)?;
        match state.push() {
            _ if taken == 0 => Err(Errno::AGAIN),
            Ok(()) | Err(Errno::AGAIN) => Ok(taken),
            Err(error) => Err(error),
        }
    }

    /// Goes on with what waits here.
    pub(super) fn flush(&self) {
        let _ = lock(&self.state).push(); // a fault is there when it reads, too
    }

    pub(super) fn read(&self, into: &mut [u8]) -> rustix::io::Result<usize> {
        lock(&self.state).read_with(|from| {
            let bytes = from.len().min(into.len());
            into[..bytes].copy_from_slice(&from[..bytes]);
            bytes
        })
    }

    pub(super) fn read_uninit(&self, into: &mut [MaybeUninit<u8>]) -> rustix::io::Result<usize> {
        let (mut state, mut filled) = (lock(&self.state), 0);
        // One record after the other.
        while filled < into.len().min(BUFFER_BYTES) {
            let read = state.read_with(|from| {
                let room = &mut into[filled..];
                let bytes = from.len().min(room.len());
                room[..bytes].write_copy_of_slice(&from[..bytes]);
                bytes
            });
            match read {
                Ok(0) if filled == 0 => return Ok(0),
                Err(error) if filled == 0 => return Err(error),
                Ok(0) | Err(_) => break, // the next call finds it again
                Ok(read) => filled += read,
            }
        }
        Ok(filled)
    }

    /// Whether the other side has shown the certificate of this participant.
    pub(super) fn is_of(&self, participant: &Guid) -> bool {
        let state = lock(&self.state);
        let certificates = state.connection.peer_certificates();
        certificates.and_then(<[_]>::first).is_some_and(|it| is_of(it, participant))
    }

    /// Checks whether its certificate, if it has shown one, is valid still.
    pub(super) fn check(&self, identity: &Identity) {
        let mut state = lock(&self.state);
        let certificates = state.connection.peer_certificates();
        let checked = certificates.map_or(Ok(()), |it| check(&*identity.verifier, it));
        if let Err(error) = checked {
            state.failure.get_or_insert(error.to_string());
        }
    }

    /// Why it was refused, here or at the other side, if it was.
    pub(super) fn failure(&self) -> Option<String> {
        lock(&self.state).failure.clone()
    }
}

impl State {
    /// Sends what is encrypted.
    fn push(&mut self) -> rustix::io::Result<()> {
        while self.connection.wants_write() {
            match self.connection.write_tls(self.input.get_mut()) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(errno(error)),
            }
        }
        Ok(())
    }

    /// Has `take` copy from the bytes that have come, and say how many. 0: the connection has ended.
    fn read_with(&mut self, take: impl FnOnce(&[u8]) -> usize) -> rustix::io::Result<usize> {
        loop {
            let mut reader = self.connection.reader();
            match reader.fill_buf() {
                Ok([]) => return Ok(0),
                Ok(found) => {
                    let taken = take(found);
                    reader.consume(taken);
                    return Ok(taken);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return Ok(0),
            }
            if self.connection.read_tls(&mut self.input).map_err(errno)? == 0 {
                return Ok(0);
            }
            let processed = self.connection.process_new_packets();
            let pushed = self.push(); // an alert, too
            if let Err(error) = processed {
                self.failure.get_or_insert(error.to_string());
                return Err(Errno::PROTO);
            }
            if let Err(error) = pushed
                && error != Errno::AGAIN
            {
                return Err(error);
            }
        }
    }
}

/// The encrypted bytes.
struct Bytes(Arc<Socket>);

impl Read for Bytes {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        Ok(self.0.read(into)?)
    }
}

impl Write for Bytes {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(from)])
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        Ok(self.0.send(parts)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn errno(error: io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::PROTO)
}

/// Bytes that are read at once, and that may wait to be sent: some records.
const BUFFER_BYTES: usize = 64 << 10;
/// More than a record has on the wire.
pub(super) const RECORD_BYTES_MAX: usize = 17 << 10;

/// No certificate is valid longer.
const YEAR_9999_S: u64 = 253_402_300_800;

#[cfg(test)]
pub(super) mod tests {
    use std::net::{Ipv4Addr, TcpListener, TcpStream};
    use std::time::{Duration, Instant, SystemTime};

    use myelin_keystore::{Keystore, Rights};

    use super::super::Connections;
    use super::*;

    /// A keystore.
    pub(in crate::network::lane) struct Place(tempfile::TempDir);

    impl Place {
        pub(in crate::network::lane) fn new() -> Place {
            let folder = tempfile::tempdir().unwrap();
            Keystore::create(folder.path()).unwrap();
            Place(folder)
        }

        /// A new enclave that is valid for so long.
        fn add(&self, enclave: &str, valid: Duration) -> Identity {
            let keystore = Keystore::open(self.0.path()).unwrap();
            keystore.add_until(enclave, &Rights::default(), SystemTime::now() + valid).unwrap();
            self.load(enclave).unwrap()
        }

        pub(in crate::network::lane) fn identity(&self, enclave: &str) -> Identity {
            self.add(enclave, Duration::from_secs(3_600))
        }

        fn load(&self, enclave: &str) -> Result<Identity, String> {
            let folder = self.0.path().join("enclaves").join(&enclave[1..]);
            Identity::load(&Security::open(&folder).unwrap())
        }

        /// The GUID of an endpoint of a participant with this enclave.
        pub(in crate::network::lane) fn guid(&self, enclave: &str) -> Guid {
            let file = self.0.path().join("enclaves").join(&enclave[1..]).join("cert.pem");
            let mut guid = [7; 16];
            let start = guid_start(&certificates(&file).unwrap()[0]).unwrap();
            guid[..6].copy_from_slice(&start);
            guid
        }
    }

    pub(in crate::network::lane) fn stream(socket: TcpStream, side: Connection) -> TlsStream {
        socket.set_nonblocking(true).unwrap();
        let how = Connections { patience: WATCHDOG, dscp: 0, identity: None };
        TlsStream::new(Socket::new(socket.into(), &how).unwrap(), side)
    }

    /// Both ends of a connection: the one that has dialled the participant, and the other one.
    fn pair(dials: &Identity, participant: &Guid, accepts: &Identity) -> [TlsStream; 2] {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (other, _) = listener.accept().unwrap();
        [stream(one, dials.dial(participant).unwrap()), stream(other, accepts.accept().unwrap())]
    }

    /// Sends `HELLO` from the dialling end, and returns what has come of it at the other end, and why
    /// it was refused there and here.
    fn greet([one, other]: &[TlsStream; 2]) -> (Vec<u8>, Option<String>, Option<String>) {
        let (begun, mut come, mut buffer) = (Instant::now(), Vec::new(), [0; 64]);
        one.write(&[IoSlice::new(HELLO)]).unwrap();
        let mut is_open = true;
        while is_open && come.len() < HELLO.len() {
            assert!(begun.elapsed() < WATCHDOG);
            for stream in [other, one] {
                match stream.read(&mut buffer) {
                    Ok(0) => is_open = false,
                    Ok(read) => come.extend(&buffer[..read]),
                    Err(Errno::AGAIN) => stream.flush(),
                    Err(_) => is_open = false,
                }
            }
        }
        // The alert.
        while !is_open && [one, other].iter().any(|stream| stream.failure().is_none()) {
            assert!(begun.elapsed() < WATCHDOG);
            [one, other].iter().for_each(|stream| _ = stream.read(&mut buffer));
        }
        (come, other.failure(), one.failure())
    }

    #[test]
    fn bytes_come_as_sent_in_both_directions() {
        let place = Place::new();
        let [one, other] = ["/one", "/other"].map(|enclave| place.identity(enclave));
        let streams = pair(&one, &place.guid("/other"), &other);
        assert_eq!(greet(&streams), (HELLO.to_vec(), None, None));
        let [one, other] = streams;
        assert!(other.is_of(&place.guid("/one")) && !other.is_of(&place.guid("/other")));
        let sent: Vec<u8> = (0..3_000_000_u32).map(|at| (at.wrapping_mul(at) >> 7) as u8).collect();
        let (mut at, mut come) = (0, Vec::with_capacity(sent.len()));
        let begun = Instant::now();
        while come.len() < sent.len() {
            assert!(begun.elapsed() < WATCHDOG);
            // Parts of odd sizes.
            let part = &sent[at..sent.len().min(at + 70_001)];
            match other.write(&[
                IoSlice::new(&part[..part.len() / 3]),
                IoSlice::new(&part[part.len() / 3..]),
            ]) {
                Ok(taken) => at += taken,
                Err(error) => assert!(error == Errno::AGAIN && !part.is_empty() || part.is_empty()),
            }
            match one.read_uninit(come.spare_capacity_mut()) {
                // SAFETY: so many bytes have been filled.
                Ok(read) => unsafe { come.set_len(come.len() + read) },
                Err(error) => assert_eq!(error, Errno::AGAIN),
            }
        }
        assert!(come == sent);
    }

    #[test]
    fn each_side_refuses_what_it_cannot_trust() {
        let (place, elsewhere) = (Place::new(), Place::new());
        let stranger = elsewhere.identity("/other");
        let [one, revoked] = ["/one", "/revoked"].map(|enclave| place.identity(enclave));
        Keystore::open(place.0.path()).unwrap().revoke("/revoked").unwrap();
        let informed = place.identity("/informed");
        let [other, informed_guid, revoked_guid] =
            ["/one", "/informed", "/revoked"].map(|enclave| place.guid(enclave));
        let refused = |dials, participant, accepts| {
            let (come, there, here) = greet(&pair(dials, participant, accepts));
            assert!(come.is_empty());
            [there, here].map(Option::unwrap)
        };
        // Who accepts refuses, and who dials is told, and the other way round.
        let [there, here] = refused(&stranger, &other, &one);
        // Authorities have the same name.
        assert!(here.contains("BadSignature"), "{here}");
        assert!(there.contains("fatal alert"), "{there}");
        let [there, here] = refused(&revoked, &informed_guid, &informed);
        assert!(there.contains("Revoked"), "{there}");
        assert!(here.contains("CertificateRevoked"), "{here}");
        let [there, here] = refused(&informed, &revoked_guid, &revoked);
        assert!(here.contains("Revoked"), "{here}");
        assert!(there.contains("CertificateRevoked"), "{there}");
        // The right authority, and another participant.
        let [there, here] = refused(&informed, &other, &informed);
        assert!(here.contains("NotValidForName"), "{here}");
        assert!(!there.is_empty());
        let error = place.load("/revoked").err().unwrap();
        assert!(error.contains("revoked/cert.pem: ") && error.contains("Revoked"), "{error}");
    }

    #[test]
    fn a_certificate_that_runs_out_is_refused_while_it_is_connected() {
        let place = Place::new();
        let [one, other] = [place.identity("/one"), place.add("/other", Duration::from_secs(2))];
        let streams = pair(&one, &place.guid("/other"), &other);
        assert_eq!(greet(&streams), (HELLO.to_vec(), None, None));
        let begun = Instant::now();
        let failure = loop {
            streams[0].check(&one);
            if let Some(failure) = streams[0].failure() {
                break failure;
            }
            assert!(begun.elapsed() < WATCHDOG);
            std::thread::sleep(Duration::from_millis(20));
        };
        assert!(failure.contains("expired"), "{failure}");
        let error = place.load("/other").err().unwrap();
        assert!(error.contains("other/cert.pem: ") && error.contains("expired"), "{error}");
    }

    /// The random numbers of both sides are in what the keys are made of.
    #[test]
    fn a_recorded_connection_cannot_be_replayed() {
        let place = Place::new();
        let [one, other] = ["/one", "/other"].map(|enclave| place.identity(enclave));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let connect = || {
            let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            (socket, listener.accept().unwrap().0)
        };
        // Through a forwarder that records what the dialling end sends.
        let ((dialled, mut recorder), (mut forward, accepted)) = (connect(), connect());
        let streams = [
            stream(dialled, one.dial(&place.guid("/other")).unwrap()),
            stream(accepted, other.accept().unwrap()),
        ];
        let mut back = (forward.try_clone().unwrap(), recorder.try_clone().unwrap());
        let returns = std::thread::spawn(move || io::copy(&mut back.0, &mut back.1));
        let records = std::thread::spawn(move || {
            let (mut recorded, mut buffer) = (Vec::new(), [0; 4_096]);
            while let Ok(read @ 1..) = recorder.read(&mut buffer) {
                recorded.extend(&buffer[..read]);
                forward.write_all(&buffer[..read]).unwrap();
            }
            let _ = forward.shutdown(std::net::Shutdown::Both);
            recorded
        });
        assert_eq!(greet(&streams), (HELLO.to_vec(), None, None));
        drop(streams);
        let recorded = records.join().unwrap();
        let _ = returns.join();
        let (mut replays, accepted) = connect();
        let again = stream(accepted, other.accept().unwrap());
        replays.write_all(&recorded).unwrap();
        let begun = Instant::now();
        while again.failure().is_none() {
            assert!(begun.elapsed() < WATCHDOG);
            match again.read(&mut [0; 64]) {
                Ok(read) => panic!("{read} bytes of a replayed connection"),
                Err(_) => std::thread::yield_now(),
            }
        }
        assert!(again.failure().unwrap().contains("decrypt"), "{:?}", again.failure());
    }

    #[test]
    fn long_subjects_have_long_lengths() {
        assert_eq!(sequence(&[1, 2]), [0x30, 2, 1, 2]);
        assert_eq!(sequence(&[0; 200])[..3], [0x30, 0x81, 200]);
        assert_eq!(sequence(&[0; 300])[..4], [0x30, 0x82, 1, 44]);
        let place = Place::new();
        let name = format!("/{}", "long/".repeat(20) + "name");
        place.identity(&name);
        assert_eq!(place.guid(&name)[0] & 0x80, 0x80);
    }

    const HELLO: &[u8] = b"the first frame";
    pub(in crate::network::lane) const WATCHDOG: Duration = Duration::from_secs(60);
}
