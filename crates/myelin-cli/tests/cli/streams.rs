//! Streams and images of real systems, in two processes and in one, end to end.

use std::path::Path;
use std::process::Child;

use crate::support::own_host;
use crate::support::{
    Traces, bench, complaint, finish, process_of, runs, signal, start, summary, wait_for,
};
use libc::SIGKILL;
use serde_json::Value;

/// A scenario of one size at 1 kHz, or of one frame at 100 Hz.
fn scenario(folder: &Path, kind: &str, systems: &[&str], messages: u32, runs: u32) -> String {
    let size = match kind {
        "image" => "frames = [\"64x48\"]\nrate_hz = [100]",
        _ => "payload_bytes = [4096]\nrate_hz = [1000]",
    };
    let text = format!(
        "name = \"test\"\nabout = \"a test\"\n\n[workload]\nkind = \"{kind}\"\n{size}\n\
         messages = {messages}\nwarmup_messages = 20\n\n[plan]\nsystems = {systems:?}\n\
         tunings = [\"default\"]\ntopology = \"any\"\nruns = {runs}\n"
    );
    let path = folder.join("scenario.toml");
    std::fs::write(&path, text).expect("a scenario file");
    path.to_string_lossy().into_owned()
}

fn cells(kind: &str, messages: u32) -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    let file = scenario(folder.path(), kind, &["os.call", "os.futex"], messages, 2);
    let out = folder.path().join("out");
    let output = finish(&mut bench(&["run", &file, "--out", out.to_str().unwrap()]));
    assert_eq!(output.status.code(), Some(0), "{}", complaint(&output));
    summary(&out)["cells"].as_array().unwrap().clone()
}

fn cell<'c>(cells: &'c [Value], system: &str) -> &'c Value {
    cells.iter().find(|cell| cell["system"] == system).expect(system)
}

#[test]
fn a_stream_is_measured_one_way_in_two_processes_and_in_one() {
    let (_alone, before) = (own_host::enter(), Traces::look());
    let cells = cells("stream", 300);
    for (system, topology) in [("os.call", "one-process"), ("os.futex", "two-processes")] {
        let cell = cell(&cells, system);
        assert_eq!((&cell["topology"], &cell["valid"]), (&topology.into(), &true.into()), "{cell}");
        assert_eq!(cell["sent"], 600);
        let taken = cell["received"].as_u64().unwrap();
        assert_eq!(taken + cell["lost"].as_u64().unwrap(), 600, "{cell}");
        assert_eq!(cell["samples"], taken, "every message taken is joined to the one sent: {cell}");
        for name in ["one_way_us", "write_us", "lateness_us"] {
            assert!(cell[name]["p50"].is_number(), "{name}: {cell}");
        }
        assert!(cell["one_way_us"]["min"].as_f64().unwrap() > 0.0, "{cell}");
        assert!(cell["cpu_percent"].as_f64().unwrap() > 0.0, "{cell}");
        assert!(cell["round_trip_us"].is_null() && cell["memcpy_us"].is_null(), "{cell}");
        let roles: Vec<&Value> =
            cell["processes"].as_array().unwrap().iter().map(|it| &it["role"]).collect();
        let expected: &[&str] = if system == "os.call" { &["ping"] } else { &["ping", "pong"] };
        assert_eq!(roles, expected, "{cell}");
    }
    // With two processes the receiver's share is known, and it waits separately from its take.
    let (called, slept) = (cell(&cells, "os.call"), cell(&cells, "os.futex"));
    assert!(slept["receiver_cpu_percent"].is_number() && slept["wake_us"].is_object(), "{slept}");
    assert!(called["receiver_cpu_percent"].is_null() && called["wake_us"].is_null(), "{called}");
    assert_eq!((&called["params"]["wait"], &called["lost"]), (&"callback".into(), &0.into()));
    before.assert_unchanged();
}

#[test]
fn frame_copies_are_measured_separately() {
    let _host = own_host::enter();
    let cells = cells("image", 60);
    for system in ["os.call", "os.futex"] {
        let cell = cell(&cells, system);
        assert_eq!(cell["valid"], true, "{cell}");
        let params = &cell["params"];
        assert_eq!((&params["frame"], &params["payload_bytes"]), (&"64x48".into(), &9216.into()));
        for name in ["one_way_us", "memcpy_us", "stream_copy_us", "fill_us"] {
            assert!(cell[name]["min"].as_f64().unwrap() > 0.0, "{name}: {cell}");
        }
    }
}

/// Starts three runs of `system` and kills `role` in the second.
fn second_run_killed(system: &str, role: &str, folder: &Path) {
    let file = scenario(folder, "stream", &[system], 1500, 3);
    let out = folder.join("out");
    let lab: Child = start(&mut bench(&["run", &file, "--out", out.to_str().unwrap()]));
    wait_for("the first run", || (!runs(&out).is_empty()).then_some(()));
    let words = format!("run {role}");
    let victim = wait_for(&words, || process_of(lab.id(), &["myelin-driver", &words]));
    signal(victim, SIGKILL);
    let output = lab.wait_with_output().expect("the lab ends");
    let complaint = complaint(&output);
    assert_eq!(output.status.code(), Some(0), "{complaint}");
    assert!(complaint.contains(&format!("{role} was killed by signal 9")), "{complaint}");
    let runs = runs(&out);
    assert_eq!(runs.len(), 3);
    assert_eq!(runs.iter().filter(|run| run["failure"].is_string()).count(), 1, "{runs:?}");
}

#[test]
fn a_killed_process_makes_its_run_fail_and_resume_repeats_it() {
    let (_alone, before) = (own_host::enter(), Traces::look());
    for (system, role) in [("os.call", "ping"), ("os.futex", "pong")] {
        let folder = tempfile::tempdir().unwrap();
        second_run_killed(system, role, folder.path());
        before.assert_unchanged();
        let out = folder.path().join("out");
        let output = finish(&mut bench(&["run", "--resume", out.to_str().unwrap()]));
        assert_eq!(output.status.code(), Some(0), "{}", complaint(&output));
        let cell = &summary(&out)["cells"][0];
        assert_eq!((&cell["runs"], &cell["valid"]), (&3.into(), &true.into()), "{cell}");
        before.assert_unchanged();
    }
}
