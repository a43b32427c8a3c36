//! Myelin's route to other hosts with a keystore: what is on the wire, and who is refused.

use std::path::Path;
use std::time::Duration;

use crate::own_host::alone;
use crate::secured::{broken, no_payload_is_on_the_wire, nobody, strangers};
use crate::support::is_here;

#[test]
fn a_keystore_hides_what_is_sent_without() {
    if !is_here(executable(), SECURE) {
        return;
    }
    let _alone = alone();
    no_payload_is_on_the_wire(executable(), SECURE, Some("myelin.dds"));
}

#[test]
fn whom_the_keystore_does_not_know_is_refused() {
    if !is_here(executable(), SECURE) {
        return;
    }
    let _alone = alone();
    for error in strangers(executable(), SECURE, Duration::from_secs(1)) {
        assert!(error[0].starts_with("the other role was not found"), "{error:?}");
    }
    let error = broken(executable(), SECURE, "cert.pem");
    assert!(error[0].contains("enclaves/ping0/cert.pem"), "{error:?}");
    let error = nobody(executable(), SECURE);
    assert_eq!(error[0], "myelin.dds-secure: this process has no identity");
}

fn executable() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_myelin-driver-myelin"))
}

const SECURE: &str = "myelin.dds-secure";
