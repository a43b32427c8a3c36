//! Every installed system, for real: valid, its transport proven, its resources counted.

use std::path::{Path, PathBuf};

use crate::namespaces::{ADDRESSES, INTERFACE, Namespaces};
use crate::support::own_host;
use crate::support::{Traces, bench, complaint, finish, summary};
use serde_json::Value;

const SCENARIO: &str = "name = \"peers\"\nabout = \"all of them, briefly\"\n\n[workload]\n\
    kind = \"roundtrip\"\npayload_bytes = [0, 1024, 65536]\nmessages = 400\nduration_s = 5\n\n[plan]\n\
    systems = [\"os.*\", \"cyclonedds.*\", \"fastdds.*\", \"iceoryx.*\", \"iceoryx2.*\", \"lcm.*\", \
    \"myelin.*\", \"myelin-c.*\", \"myelin-cpp.*\", \"myelin-py.*\", \
    \"zeromq.*\", \"horus.*\", \"ecal.*\"]\ntunings = [\"default\"]\ntopology = \"two-processes\"\nruns = 1\n";

#[test]
fn every_installed_system_yields_valid_cells() {
    let _alone = own_host::alone();
    let folder = tempfile::tempdir().unwrap();
    let (out, summary) = measured(folder.path(), SCENARIO);
    assert_eq!(summary["schema"], 2);
    let cells = summary["cells"].as_array().unwrap();
    assert!(cells.len() >= (9 + 2 + 3) * 3, "{} cells", cells.len());
    let systems = summary["systems"].as_array().unwrap();
    for cell in cells {
        let system = systems.iter().find(|system| system["name"] == cell["system"]);
        check_cell(cell, system.unwrap());
    }
    for system in systems.iter().filter(|system| !system["missing"].is_null()) {
        assert!(system["missing"].as_str().unwrap().contains("install"), "{system}");
    }
    the_formats_of_others_print_halves(&out, cells);
}

/// On a host whose network every system may use: a system that names no interface would send by it.
#[test]
fn no_run_sends_a_packet_by_another_interface_than_lo() {
    let Some(hosts) = Namespaces::new(ADDRESSES) else { return };
    // Otherwise the kernel itself sends packets.
    let quiet = format!("echo 1 > /proc/sys/net/ipv6/conf/{INTERFACE}/disable_ipv6");
    hosts.run(0, &["sh", "-c", &quiet]);
    let gateway = hosts.address(1).to_string();
    hosts.run(0, &["ip", "route", "add", "default", "via", &gateway]);
    let folder = tempfile::tempdir().unwrap();
    let (file, out) = (folder.path().join("it.toml"), folder.path().join("out"));
    // One size, too large for a datagram: other sizes leave by the same interface.
    let everybody = SCENARIO
        .replace("\"zeromq.*\"", "\"zeromq.*\", \"zenoh.*\", \"ros2.*\"")
        .replace("[0, 1024, 65536]", "[65536]");
    std::fs::write(&file, everybody).unwrap();
    let before = sent(&hosts);
    let mut program = hosts.program(0, Path::new(env!("CARGO_BIN_EXE_myelin")));
    program.args(["bench", "run", file.to_str().unwrap(), "--out", out.to_str().unwrap()]);
    let output = finish(&mut program);
    assert!(output.status.code().is_some_and(|code| code <= 1), "{}", complaint(&output));
    assert!(!summary(&out)["cells"].as_array().unwrap().is_empty());
    assert_eq!(sent(&hosts), before, "packets that left");
}

/// Packets sent by host 0 on each interface but `lo`.
fn sent(hosts: &Namespaces) -> Vec<(String, u64)> {
    let table = hosts.run(0, &["cat", "/proc/net/dev"]);
    let interfaces = table.lines().skip(2).filter_map(|line| line.trim().split_once(':'));
    let sent = |numbers: &str| numbers.split_whitespace().nth(9).unwrap().parse().unwrap();
    let interfaces = interfaces.map(|(name, numbers)| (name.to_owned(), sent(numbers)));
    interfaces.filter(|(name, _)| name != "lo").collect()
}

#[test]
fn the_catalogue_is_what_the_command_lists() {
    let _host = own_host::enter();
    let output = finish(&mut bench(&["list", "--markdown"]));
    let listed = String::from_utf8(output.stdout).unwrap();
    let kept = include_str!("../../../../docs/reference/catalogue.md");
    let (scenarios, systems) = listed.split_once("\n\n").unwrap();
    assert!(kept.contains(scenarios), "keep these in docs/reference/catalogue.md:\n{scenarios}");
    assert!(systems.lines().count() > 2 + 20, "{systems}");
    for system in systems.lines() {
        assert!(kept.contains(system), "not in docs/reference/catalogue.md: {system}");
    }
}

fn check_cell(cell: &Value, info: &Value) {
    let number = |key: &str| cell[key].as_f64().unwrap_or_else(|| panic!("{key} in {cell}"));
    let system = cell["system"].as_str().unwrap();
    assert_eq!(cell["valid"], true, "{cell}");
    assert_eq!(number("sent"), number("received") + number("lost"), "{cell}");
    assert_eq!((number("corrupt"), number("duplicates")), (0.0, 0.0), "{cell}");
    let round_trip = &cell["round_trip_us"];
    let at = |key: &str| round_trip[key].as_f64().unwrap();
    assert!(0.0 < at("min") && at("min") <= at("p50") && at("p50") <= at("max"), "{cell}");
    assert!(round_trip["p999"].is_null(), "400 samples bear no 99.9th percentile: {cell}");
    for key in ["cpu_us_per_message", "rss_bytes", "pss_bytes", "startup_ms", "throughput_per_s"] {
        assert!(number(key) > 0.0, "{key} in {cell}");
    }
    let processes = cell["processes"].as_array().unwrap();
    let roles: Vec<&str> = processes.iter().map(|one| one["role"].as_str().unwrap()).collect();
    let packets = number("loopback_packets_per_message");
    match info["transport"] == "loopback" {
        true => assert!(packets >= 0.9, "{cell}"),
        false => assert!(packets < 0.5, "{cell}"),
    }
    if system.starts_with("cyclonedds.iceoryx") || system.starts_with("iceoryx.") {
        assert!(roles.contains(&"iox-roudi"), "the daemon counts: {roles:?}");
        assert!(number("shared_bytes") > 1e6, "{cell}");
    } else {
        assert_eq!(roles, ["ping", "pong"]);
    }
    // Myelin makes no loan for an empty payload.
    let loans = info["loans"] == true && cell["params"]["payload_bytes"] != 0;
    assert!(cell["loan_us"].is_object() || !loans, "{cell}");
    assert!(cell["loan_us"].is_null() || info["loans"] == true, "{cell}");
}

fn the_formats_of_others_print_halves(out: &std::path::Path, cells: &[serde_json::Value]) {
    for format in ["roundtrip", "ddsperf"] {
        let output = finish(&mut bench(&["report", out.to_str().unwrap(), "--format", format]));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(0), "{}", complaint(&output));
        assert!(text.to_lowercase().contains("half"), "{text}");
        if format == "roundtrip" {
            let rows = text.lines().filter(|line| line.starts_with("# Overall")).count();
            assert_eq!(rows, cells.len(), "{text}");
        }
    }
}

#[test]
fn myelin_publishes_to_any_number_of_subscribers() {
    let _alone = own_host::alone();
    let folder = tempfile::tempdir().unwrap();
    let scenario = "name = \"fan\"\nabout = \"to 0, 1 and 40 subscribers\"\n\n[workload]\n\
        kind = \"publish\"\npayload_bytes = [64, 4096]\nsubscribers = [0, 1, 40]\nrate_hz = [\"max\"]\n\
        messages = 2000\n\n\
        [plan]\nsystems = [\"myelin.shm-poll\"]\ntunings = [\"default\"]\n\
        topology = \"two-processes\"\nruns = 1\n";
    let (_, summary) = measured(folder.path(), scenario);
    let cells = summary["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 6);
    for cell in cells {
        assert_eq!(cell["valid"], true, "{cell}");
        assert!(cell["write_us"]["p50"].as_f64().unwrap() > 0.0, "{cell}");
    }
}

/// Runs a scenario to its end; returns the results folder and its summary. Nothing may be left
/// behind.
fn measured(folder: &Path, scenario: &str) -> (PathBuf, Value) {
    let (file, out, before) = (folder.join("it.toml"), folder.join("out"), Traces::look());
    std::fs::write(&file, scenario).unwrap();
    let arguments = ["run", file.to_str().unwrap(), "--out", out.to_str().unwrap()];
    let output = finish(&mut bench(&arguments));
    assert_eq!(output.status.code(), Some(0), "{}", complaint(&output));
    before.assert_unchanged();
    let summary = summary(&out);
    (out, summary)
}
