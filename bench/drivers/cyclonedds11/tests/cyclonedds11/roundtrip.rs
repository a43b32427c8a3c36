//! Round trips of every system through the line protocol, the resulting configuration, and what
//! killed roles leave behind. Skips missing systems, with a message.

use std::fs;
use std::path::{Path, PathBuf};

use crate::streams::within_domain;
use crate::support::{Pair, Process, Samples, clean, describe, prepare};
use crate::{EXECUTABLE, own_host};
use myelin_bench_kit::protocol::{Prepare, Role, System};

#[test]
fn every_message_comes_back_once_and_whole() {
    let _host = own_host::enter();
    for system in systems(|_| true) {
        for payload_bytes in [0, 1003, 1 << 20] {
            let prepare = Prepare { payload_bytes, ..prepare(&system.name, Role::Ping) };
            within_domain(&system, &prepare, |prepare| {
                drop(Pair::exchange(Path::new(EXECUTABLE), prepare))
            });
        }
    }
}

#[test]
fn the_config_names_the_plug_in_only_on_one_host() {
    let _host = own_host::enter();
    for system in systems(|system| !system.daemon) {
        let prepare = prepare(&system.name, Role::Ping);
        within_domain(&system, &prepare, |prepare| {
            Pair::exchange(Path::new(EXECUTABLE), prepare);
            let xml = fs::read_to_string(prepare.file("cyclonedds.xml")).unwrap();
            let plug_in = "<PubSubMessageExchange type=\"myelin\" library=\"/";
            assert_eq!(xml.contains(plug_in), system.name.contains(".myelin"), "{xml}");
            assert!(!xml.contains("<SharedMemory>"), "{xml}");
        });
    }
}

#[test]
fn files_of_killed_roles_are_removed() {
    let _host = own_host::enter();
    for system in systems(|system| system.loans) {
        let before = shared_memory();
        let prepare = prepare(&system.name, Role::Ping);
        within_domain(&system, &prepare, |prepare| {
            let endless = Prepare { messages: u64::MAX / 2, ..prepare.clone() };
            let mut pair = Pair::open(Path::new(EXECUTABLE), &endless, 1_000);
            pair.go();
            pair.ping_samples.await_first();
            pair.ping.kill();
            pair.pong.kill();
        });
        clean(Path::new(EXECUTABLE));
        assert_eq!(shared_memory(), before, "{}", system.name);
    }
}

#[test]
fn a_missing_daemon_is_reported() {
    let _host = own_host::enter();
    for system in systems(|system| system.daemon) {
        let samples = Samples::new(1);
        let prepare =
            Prepare { samples: Some(samples.path()), ..prepare(&system.name, Role::Ping) };
        let mut ping = Process::start(Path::new(EXECUTABLE), &prepare);
        let [message, remedy, _] = ping.expect_error();
        assert!(message.contains("RouDi") && remedy.contains("iox-roudi"), "{message}, {remedy}");
        assert!(!ping.expect_end().success());
    }
}

/// The chunks requested from RouDi are large enough for a message.
#[test]
fn a_message_fits_into_its_pool() {
    let _host = own_host::enter();
    for system in systems(|system| system.daemon) {
        let pools = |bytes: u32| {
            let options = serde_json::json!({ "pools": [{ "bytes": bytes, "count": 16 }] });
            let options = options.as_object().unwrap().clone();
            Prepare { payload_bytes: 1024, options, ..prepare(&system.name, Role::Ping) }
        };
        within_domain(&system, &pools(1088), |prepare| {
            drop(Pair::exchange(Path::new(EXECUTABLE), prepare))
        });
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().to_owned();
        let daemon = Prepare { role: Role::Daemon, directory, ..pools(1080) };
        let mut daemon = Process::start(Path::new(EXECUTABLE), &daemon);
        let [message, ..] = daemon.expect_error();
        assert!(message.contains("needs chunks of 1088 B"), "{message}");
        assert!(!daemon.expect_end().success());
    }
}

/// The wanted systems that can run here.
fn systems(wanted: impl Fn(&System) -> bool) -> Vec<System> {
    let (there, absent): (Vec<_>, Vec<_>) = describe(Path::new(EXECUTABLE))
        .systems
        .into_iter()
        .filter(wanted)
        .partition(|system| system.missing.is_none());
    for system in absent {
        println!("skipped: {}: {}", system.name, system.missing.unwrap());
    }
    there
}

/// All files below this test's own /dev/shm. Folders do not count, as Myelin's stays, empty.
fn shared_memory() -> Vec<PathBuf> {
    let (mut folders, mut files) = (vec![PathBuf::from("/dev/shm")], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let is_folder = entry.file_type().unwrap().is_dir();
            (if is_folder { &mut folders } else { &mut files }).push(entry.path());
        }
    }
    files.sort();
    files
}
