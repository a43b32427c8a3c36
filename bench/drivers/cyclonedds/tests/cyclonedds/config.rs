//! CycloneDDS's configuration, as it lies in a run's folder once a role has been opened. Nobody comes
//! to meet it.

use std::fs;
use std::net::IpAddr;
use std::path::Path;

use crate::support::streams::at_rate;
use crate::support::{Pair, Process, Samples, describe, prepare, unique_run};
use crate::{EXECUTABLE, own_host};
use myelin_bench_kit::protocol::{Command, Event, Network, Prepare, Role};

#[test]
fn the_config_file_has_domain_and_shared_memory() {
    let _host = own_host::enter();
    let Some(udp) = xml(&with("cyclonedds.udp")) else { return };
    let domain = format!("<Domain Id=\"{}\">", with("cyclonedds.udp").domain);
    assert!(udp.contains(&domain) && udp.contains("<Enable>false</Enable>"), "{udp}");
    let Some(shared) = xml(&with("cyclonedds.iceoryx")) else { return };
    assert!(shared.contains("<Enable>true</Enable>"), "{shared}");
}

#[test]
fn elements_are_closed_in_order() {
    let _host = own_host::enter();
    let many = Prepare { subscribers: 29, publishers: 11, ..stream("cyclonedds.udp-tuned") };
    for prepare in [with("cyclonedds.udp"), many, across("cyclonedds.udp")] {
        let Some(text) = xml(&prepare) else { return };
        let mut open = Vec::new();
        for tag in text.split('<').skip(1).map(|rest| rest.split_once('>').unwrap().0) {
            match tag.strip_prefix('/') {
                Some(name) => assert_eq!(open.pop(), Some(name)),
                None if tag.starts_with(['?', '!']) || tag.ends_with('/') => {}
                None => open.push(tag.split(' ').next().unwrap()),
            }
        }
        assert!(open.is_empty(), "{text}");
    }
}

#[test]
fn buffers_and_indices_are_written_only_if_not_default() {
    let _host = own_host::enter();
    let Some(plain) = xml(&with("cyclonedds.udp")) else { return };
    for word in ["SocketReceiveBufferSize", "FragmentSize", "MaxAutoParticipantIndex"] {
        assert!(!plain.contains(word), "{word}");
    }
    let many = Prepare { subscribers: 10, ..stream("cyclonedds.udp-tuned") };
    let tuned = xml(&many).unwrap();
    let bytes = rmem_max().clamp(1 << 20, 64 << 20);
    assert!(tuned.contains(&format!("<SocketReceiveBufferSize max=\"{bytes}B\"/>")), "{tuned}");
    assert!(tuned.contains("<MaxAutoParticipantIndex>21<"), "{tuned}");
}

#[test]
fn across_hosts_the_config_has_one_interface_and_one_peer() {
    let _host = own_host::enter();
    let Some(text) = xml(&across("cyclonedds.udp")) else { return };
    assert!(text.contains("address=\"10.9.8.1\"") && text.contains("<Peer Address=\"10.9.8.2\""));
    for word in ["127.0.0.1", "\"lo\"", "MaxMessageSize"] {
        assert!(!text.contains(word), "{word}");
    }
    assert!(xml(&across("cyclonedds.udp-tuned")).unwrap().contains("MaxMessageSize"));
}

#[test]
fn the_note_has_the_requested_and_the_granted_buffer() {
    let _host = own_host::enter();
    let limit = rmem_max();
    for (system, asked) in
        [("cyclonedds.udp", 1 << 20), ("cyclonedds.udp-tuned", limit.clamp(1 << 20, 64 << 20))]
    {
        if !is_installed(system) {
            return;
        }
        let start = |prepare: &Prepare| Process::start(Path::new(EXECUTABLE), prepare);
        let mut pair = Pair::start(&with(system), 1, start);
        let Some(Event::Ready(ready)) = pair.ping.event() else { panic!("ready") };
        pair.pong.expect_ready();
        let expected = format!("{asked} B requested, {} B granted", asked.min(limit));
        assert!(ready.notes.iter().any(|note| note.contains(&expected)), "{:?}", ready.notes);
        pair.pong.say(&Command::Stop);
        pair.ping.say(&Command::Stop);
    }
}

#[test]
fn a_folder_that_cannot_be_written_to_is_named() {
    let _host = own_host::enter();
    let directory = Path::new("/nonexistent/run").to_owned();
    let prepare = Prepare { directory, ..with("cyclonedds.udp") };
    if !is_installed(&prepare.system) {
        return;
    }
    let [message, ..] = fail_to_open(&prepare);
    assert!(message.contains("writing /nonexistent/run/cyclonedds.xml"), "{message}");
}

/// The file that `prepare` leads to; `None`, said, if the system is not installed.
fn xml(prepare: &Prepare) -> Option<String> {
    if !is_installed(&prepare.system) {
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let prepare = Prepare { directory: folder.path().to_owned(), ..prepare.clone() };
    let daemon = prepare.system.contains("iceoryx").then(|| {
        let of_daemon = Prepare { role: Role::Daemon, ..prepare.clone() };
        let daemon = Process::start(Path::new(EXECUTABLE), &of_daemon);
        daemon.expect_ready();
        daemon
    });
    let waiting = Prepare { match_timeout_ns: 1_000_000, ..prepare.clone() };
    fail_to_open(&waiting);
    if let Some(mut daemon) = daemon {
        daemon.say(&Command::Stop);
        daemon.expect_done();
        assert!(daemon.expect_end().success());
    }
    Some(fs::read_to_string(prepare.file("cyclonedds.xml")).unwrap())
}

fn fail_to_open(prepare: &Prepare) -> [String; 3] {
    let samples = Samples::new(1);
    let prepare = Prepare { samples: Some(samples.path()), ..prepare.clone() };
    let mut process = Process::start(Path::new(EXECUTABLE), &prepare);
    let error = process.expect_error();
    assert!(!process.expect_end().success());
    error
}

fn with(system: &str) -> Prepare {
    Prepare { run: unique_run(), ..prepare(system, Role::Ping) }
}

fn stream(system: &str) -> Prepare {
    Prepare { run: unique_run(), ..at_rate(system) }
}

fn across(system: &str) -> Prepare {
    let [own, peer]: [IpAddr; 2] = ["10.9.8.1", "10.9.8.2"].map(|it| it.parse().unwrap());
    let network = Some(Network { interface: "eth0".into(), own, peer, port: 1 });
    Prepare { network, ..with(system) }
}

/// 0 where it cannot be seen, as in some networks of one's own.
fn rmem_max() -> u64 {
    let text = fs::read_to_string("/proc/sys/net/core/rmem_max").unwrap_or_default();
    text.trim().parse().unwrap_or(0)
}

fn is_installed(system: &str) -> bool {
    let systems = describe(Path::new(EXECUTABLE)).systems;
    let system = systems.into_iter().find(|found| found.name == system).unwrap();
    if let Some(missing) = &system.missing {
        eprintln!("skipped: {}: {missing}", system.name);
    }
    system.missing.is_none()
}
