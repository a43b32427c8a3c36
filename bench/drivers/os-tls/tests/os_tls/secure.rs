//! TCP with TLS: what is on the wire, and who is refused.

use std::path::Path;
use std::time::Duration;

use crate::own_host::alone;
use crate::secured::{broken, no_payload_is_on_the_wire, nobody, strangers};
use crate::support::clean;

#[test]
fn tls_hides_what_tcp_shows() {
    let _alone = alone();
    no_payload_is_on_the_wire(executable(), TLS, None);
}

#[test]
fn tls_refuses_whom_it_cannot_trust() {
    let _alone = alone();
    let [ping, pong] = strangers(executable(), TLS, Duration::from_secs(5));
    // Both authorities have the same name.
    assert!(ping[0].starts_with("os.tcp-tls: no connection with pong: "), "{ping:?}");
    assert!(ping[0].contains("invalid peer certificate: BadSignature"), "{ping:?}");
    assert!(pong[0].starts_with("os.tcp-tls: no connection with ping: "), "{pong:?}");
    assert!(pong[0].contains("alert"), "{pong:?}");
    assert!(pong[1].contains("certificates of one authority"), "{pong:?}");
    let error = broken(executable(), TLS, "cert.pem");
    assert!(error[0].contains("enclaves/ping0"), "{error:?}");
    let error = broken(executable(), TLS, "key.pem");
    assert!(error[0].contains("ping0/key.pem: "), "{error:?}");
    let error = nobody(executable(), TLS);
    assert_eq!(error[0], "os.tcp-tls: this process has no identity");
    assert!(error[1].contains("myelin bench run"), "{error:?}");
    // The pong that this one did not find was killed.
    clean(executable());
    let left = std::fs::read_dir("/dev/shm").unwrap().flatten().map(|entry| entry.file_name());
    assert_eq!(left.collect::<Vec<_>>(), Vec::<std::ffi::OsString>::new());
}

fn executable() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_myelin-driver-os-tls"))
}

const TLS: &str = "os.tcp-tls";
