//! TLS 1.3 over TCP, by rustls: both sides show the certificate of their enclave, and each checks that the same
//! authority has signed the other's.
//!
//! A message goes as records of up to 16 KiB. All of it has been given to the kernel when publishing returns.

use std::cell::RefCell;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use myelin_bench_kit::protocol::{Prepare, Role};
use myelin_bench_kit::{Error, clock};
use myelin_driver_os::limit;
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{
    ClientConfig, ClientConnection, Connection, DigitallySignedStruct, RootCertStore, ServerConfig,
    ServerConnection, SignatureScheme,
};

/// One side of a connection; the clones share it. Reads and writes return after a slice of time, like those of the
/// socket ([`limit`]), with [`ErrorKind::WouldBlock`].
#[derive(Clone)]
pub struct TlsStream {
    socket: Rc<OwnedFd>,
    connection: Rc<RefCell<Connection>>,
}

impl TlsStream {
    /// Shakes hands over `socket`: ping is the client. Returns when each side has accepted the other.
    pub fn open(socket: OwnedFd, prepare: &Prepare) -> Result<Self, Error> {
        limit::limit_reads(&socket, limit::SLICE_NS_MAX)?;
        let (connection, other) = match prepare.role {
            Role::Ping => (client(prepare)?, "pong"),
            _ => (server(prepare)?, "ping"),
        };
        let connection = Rc::new(RefCell::new(connection));
        let mut stream = TlsStream { socket: Rc::new(socket), connection };
        let until_ns = prepare.match_until_ns();
        let opened = match prepare.role {
            // A server refuses a client after that has finished its handshake.
            Role::Ping => stream.patiently(until_ns, |it| it.read_exact(&mut [0; 1])),
            _ => stream.patiently(until_ns, |it| it.shake_hands()).and_then(|()| {
                stream.write_all(&ACCEPTED)?;
                stream.flush()
            }),
        };
        opened.map_err(|error| {
            Error::new(format!("{}: no connection with {other}: {error}", prepare.system)).remedy(
                "both sides need certificates of one authority, valid now; see the other log, too",
            )
        })?;
        Ok(stream)
    }

    /// Calls `act` again while it would block.
    fn patiently(
        &mut self,
        until_ns: u64,
        mut act: impl FnMut(&mut Self) -> io::Result<()>,
    ) -> io::Result<()> {
        loop {
            match act(self) {
                Err(error) if would_block(&error) && clock::monotonic_ns() < until_ns => {}
                result => return result,
            }
        }
    }

    fn shake_hands(&mut self) -> io::Result<()> {
        while self.connection.borrow().is_handshaking() {
            self.flush()?;
            if self.receive()? == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(())
    }

    /// Reads what the socket has, and decrypts it. Returns the bytes of the socket.
    fn receive(&mut self) -> io::Result<usize> {
        let mut connection = self.connection.borrow_mut();
        let read = connection.read_tls(&mut Socket(&self.socket))?;
        let processed = connection.process_new_packets();
        drop(connection);
        // An answer of the handshake, or why the other side is refused.
        let pushed = self.flush();
        processed.map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
        pushed.map(|()| read)
    }
}

impl Read for TlsStream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.flush()?;
        loop {
            match self.connection.borrow_mut().reader().read(into) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // Killed, so it did not say goodbye.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(0),
                read => return read,
            }
            self.receive()?;
        }
    }
}

impl Write for TlsStream {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(from)])
    }

    fn write_vectored(&mut self, from: &[IoSlice<'_>]) -> io::Result<usize> {
        self.flush()?;
        let taken = self.connection.borrow_mut().writer().write_vectored(from)?;
        match self.flush() {
            // It is encrypted, and goes with the next flush.
            Err(error) if would_block(&error) => Ok(taken),
            flushed => flushed.map(|()| taken),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut connection = self.connection.borrow_mut();
        while connection.wants_write() {
            connection.write_tls(&mut Socket(&self.socket))?;
        }
        Ok(())
    }
}

impl AsFd for TlsStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn would_block(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// The socket for rustls, which wants it by reference.
struct Socket<'a>(&'a OwnedFd);

impl Read for Socket<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::io::read(self.0, into)?)
    }
}

impl Write for Socket<'_> {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        Ok(rustix::io::write(self.0, from)?)
    }

    fn write_vectored(&mut self, from: &[IoSlice<'_>]) -> io::Result<usize> {
        Ok(rustix::io::writev(self.0, from)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn server(prepare: &Prepare) -> Result<Connection, Error> {
    let Enclave { folder, own, key, verifier } = &Enclave::load(prepare)?;
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .and_then(|config| {
            let config = config.with_client_cert_verifier(verifier.clone());
            config.with_single_cert(own.clone(), key.clone_key())
        });
    let mut config = config.map_err(|error| fault(folder, error))?;
    config.send_tls13_tickets = 0;
    let connection = ServerConnection::new(Arc::new(config));
    Ok(connection.map_err(|error| fault(folder, error))?.into())
}

fn client(prepare: &Prepare) -> Result<Connection, Error> {
    let Enclave { folder, own, key, verifier } = &Enclave::load(prepare)?;
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .and_then(|config| {
            let verifier = Arc::new(OfOneAuthority(verifier.clone()));
            // It checks the authority as usual, and no name: the certificates of a keystore have none.
            let config = config.dangerous().with_custom_certificate_verifier(verifier);
            config.with_client_auth_cert(own.clone(), key.clone_key())
        });
    let mut config = config.map_err(|error| fault(folder, error))?;
    config.resumption = Resumption::disabled();
    config.enable_sni = false;
    let name = ServerName::try_from("pong").expect("a name, which nobody asks for");
    let connection = ClientConnection::new(Arc::new(config), name);
    Ok(connection.map_err(|error| fault(folder, error))?.into())
}

/// What this side proves its identity with, and checks the other's.
struct Enclave<'a> {
    folder: &'a Path,
    own: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    verifier: Arc<dyn ClientCertVerifier>,
}

impl<'a> Enclave<'a> {
    fn load(prepare: &'a Prepare) -> Result<Self, Error> {
        let folder = prepare.enclave.as_deref();
        let folder = folder.ok_or_else(|| Error::new("protocol: TLS without an identity"))?;
        let file = |name| folder.join(name);
        let (authority, key) = (file("identity_ca.cert.pem"), file("key.pem"));
        let mut roots = RootCertStore::empty();
        for certificate in certificates(&authority)? {
            roots.add(certificate).map_err(|error| fault(&authority, error))?;
        }
        let provider = Arc::new(ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
        Ok(Enclave {
            folder,
            own: certificates(&file("cert.pem"))?,
            verifier: verifier.build().map_err(|error| fault(&authority, error))?,
            key: PrivateKeyDer::from_pem_file(&key).map_err(|error| fault(&key, error))?,
        })
    }
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let all = CertificateDer::pem_file_iter(file).and_then(Iterator::collect);
    all.map_err(|error| fault(file, error))
}

fn fault(path: &Path, error: impl std::fmt::Display) -> Error {
    Error::new(format!("{}: {error}", path.display()))
}

/// Checks a server's certificate like a client's: by its authority.
#[derive(Debug)]
struct OfOneAuthority(Arc<dyn ClientCertVerifier>);

impl ServerCertVerifier for OfOneAuthority {
    fn verify_server_cert(
        &self,
        own: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.0.verify_client_cert(own, intermediates, now)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

/// The server's first byte.
const ACCEPTED: [u8; 1] = [1];
