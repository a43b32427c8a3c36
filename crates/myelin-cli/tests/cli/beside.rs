//! Messages beside a load of the same system: across hosts, with what the load left behind, and with a
//! load that dies.

use std::path::{Path, PathBuf};

use crate::python::python;
use crate::support::own_host;
use crate::support::{
    Traces, bench, complaint, finish, process_of, runs, signal, start, summary, wait_for,
};
use crate::two_hosts::may_make_hosts;
use libc::SIGKILL;
use serde_json::Value;

/// A command of 64 B at 500 Hz, alone and beside images of 256 KiB at 20 Hz.
fn scenario(folder: &Path, topology: &str, seconds: f64) -> String {
    let text = format!(
        "name = \"test\"\nabout = \"a test\"\n\n[workload]\nkind = \"stream\"\n\
         payload_bytes = [64]\nrate_hz = [500]\nduration_s = {seconds}\nwarmup_s = 0.1\n\
         reliability = \"reliable\"\n\
         loads = [{{ name = \"images\", payload_bytes = 262144, rate_hz = 20, \
         reliability = \"reliable\" }}]\n\n\
         [plan]\nsystems = [\"os.tcp\"]\ntunings = [\"default\"]\ntopology = \"{topology}\"\n\
         runs = 1\n"
    );
    let path = folder.join("scenario.toml");
    std::fs::write(&path, text).expect("a scenario file");
    path.to_string_lossy().into_owned()
}

/// The run beside the load, and its folder.
fn loaded(out: &Path) -> (Value, PathBuf) {
    let run = runs(out).into_iter().find(|run| run["cell"] == 1).expect("both cells are run");
    let directory = out.join(run["directory"].as_str().unwrap());
    (run, directory)
}

#[test]
fn a_command_is_measured_alone_and_beside_images_of_the_same_system() {
    let _host = own_host::enter();
    if !may_make_hosts() {
        return;
    }
    let (folder, before) = (tempfile::tempdir().unwrap(), Traces::look());
    let (file, out) = (scenario(folder.path(), "two-hosts", 0.5), folder.path().join("out"));
    let output = finish(&mut bench(&["run", &file, "--out", out.to_str().unwrap()]));
    assert_eq!(output.status.code(), Some(0), "{}", complaint(&output));
    before.assert_unchanged();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("alone and beside images (256 KiB at 20 Hz)"), "{said}");

    let summary = summary(&out);
    let [alone, beside] = [0, 1].map(|cell| &summary["cells"][cell]);
    assert!(alone["params"]["load"].is_null() && alone["load"].is_null(), "{alone}");
    assert_eq!(beside["params"]["load"], "images");
    for cell in [alone, beside] {
        // The images count neither as messages nor as processes of the cell.
        assert_eq!((&cell["received"], &cell["lost"]), (&250.into(), &0.into()), "{cell}");
        let roles = cell["processes"].as_array().unwrap().iter().map(|it| &it["role"]);
        assert_eq!(roles.collect::<Vec<_>>(), ["ping", "pong"], "{cell}");
    }
    assert!(alone["loopback_bytes_per_byte"].is_number(), "{alone}");
    assert!(beside["loopback_bytes_per_byte"].is_null(), "the images are in it: {beside}");
    let load = &beside["load"];
    assert_eq!(
        (&load["sent"], &load["received"], &load["lost"]),
        (&10.into(), &10.into(), &0.into())
    );
    assert_eq!(
        (&load["payload_bytes"], &load["reliability"]),
        (&262_144.into(), &"reliable".into())
    );
    assert!(load["cpu_us_per_message"].as_f64().unwrap() > 0.0, "{load}");
    assert!(load["one_way_us"]["p50"].is_number(), "{load}");

    let (run, directory) = loaded(&out);
    assert_eq!(
        (&run["load"]["ping"]["sent"], &run["load"]["pong"]["received"]),
        (&10.into(), &10.into())
    );
    for name in ["load-ping.log", "load-pong.log", "load-ping.samples.zst", "load-pong.samples.zst"]
    {
        assert!(directory.join(name).exists(), "{name}");
    }
    if let Some(mut recompute) = python("bench/check/recompute.py") {
        let output = recompute.arg(&out).output().expect("Python starts");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && said.contains("2 same, 0 different"), "{said}");
    }
    // Samples of the load that are lost do not make figures of it up.
    std::fs::remove_file(directory.join("load-pong.samples.zst")).unwrap();
    let output = finish(&mut bench(&["report", out.to_str().unwrap()]));
    assert_eq!(output.status.code(), Some(1), "{}", complaint(&output));
    let summary = crate::support::summary(&out);
    let reasons = summary["cells"][1]["invalid_reasons"].to_string();
    assert!(reasons.contains("load-pong.samples.zst"), "{reasons}");
}

#[test]
fn a_load_that_dies_makes_its_run_fail() {
    let _host = own_host::enter();
    let (folder, before) = (tempfile::tempdir().unwrap(), Traces::look());
    let (file, out) = (scenario(folder.path(), "two-processes", 1.5), folder.path().join("out"));
    let lab = start(&mut bench(&["run", &file, "--out", out.to_str().unwrap()]));
    let load =
        wait_for("the load", || process_of(lab.id(), &["myelin-driver-os", "run load-ping"]));
    signal(load, SIGKILL);
    let output = lab.wait_with_output().expect("the lab ends");
    assert_eq!(output.status.code(), Some(1), "{}", complaint(&output));
    let (run, _) = loaded(&out);
    let failure = run["failure"].as_str().unwrap_or_default();
    assert!(failure.contains("load-ping was killed by signal 9"), "{run}");
    assert!(run["load"].is_null(), "{run}");
    let summary = summary(&out);
    let valid = [0, 1].map(|cell| &summary["cells"][cell]["valid"]);
    assert_eq!(valid, [&Value::from(true), &false.into()], "the messages alone are not affected");
    before.assert_unchanged();
}
