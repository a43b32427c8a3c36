//! Myelin from C between processes of the real executable.

#[path = "../../../kit/tests/support/bindings.rs"]
mod bindings;
#[path = "../../../kit/tests/support/own_host.rs"]
mod own_host;
#[path = "../../../kit/tests/support/mod.rs"]
mod support;

use std::path::Path;

use bindings::messages_arrive_as_sent;
use myelin_bench_kit::protocol::{Prepare, Role, Touch};
use support::{Pair, prepare};

const EXECUTABLE: &str = env!("CARGO_BIN_EXE_myelin-driver-myelin-c");

#[test]
fn messages_arrive_as_sent_from_c() {
    messages_arrive_as_sent(Path::new(EXECUTABLE), "c");
}

/// As in Rust: messages that are copied in any case are not written into loans, unless loans are
/// measured.
#[test]
fn small_messages_are_published_by_copy() {
    let _alone = own_host::alone();
    for system in bindings::systems(Path::new(EXECUTABLE), "c") {
        for (payload_bytes, touch, loans) in
            [(96, Touch::Stamps, false), (97, Touch::Stamps, true), (96, Touch::Header, true)]
        {
            let prepare = Prepare { payload_bytes, touch, ..prepare(&system.name, Role::Ping) };
            let mut pair = Pair::open(Path::new(EXECUTABLE), &prepare, prepare.messages);
            pair.finish();
            let has_loaned = pair.ping_samples.records().iter().any(|record| record.loan_ns > 0);
            assert_eq!(has_loaned, loans, "{payload_bytes} B, {touch:?}");
        }
    }
}
