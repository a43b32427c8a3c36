//! Publish runs and `touch` end to end: the summary must show the synthetic driver's settings.

use std::path::Path;
use std::process::Output;

use crate::support::own_host;
use crate::support::{bench, complaint, finish, summary};
use serde_json::Value;

const PUBLISH: &str = "name = \"fan\"\nabout = \"a test\"\n\n[workload]\nkind = \"publish\"\n\
    payload_bytes = [64]\nsubscribers = [0, 1, 8, 64]\nmessages = 600\nwarmup_messages = 50\n\n\
    [plan]\nsystems = [\"synthetic\", \"os.pipe\"]\ntunings = [\"default\"]\n\
    topology = \"two-processes\"\nruns = 5\n\n[options.synthetic]\nwrite_ns = 100\n\
    write_per_subscriber_ns = 2\nlose_every = 100\nduplicate_every = 150\n";
const RUNS: u64 = 5;

fn run(folder: &Path, text: &str) -> Output {
    let file = folder.join("scenario.toml");
    std::fs::write(&file, text).unwrap();
    let out = folder.join("out");
    finish(&mut bench(&[
        "run",
        "--verbose",
        file.to_str().unwrap(),
        "--out",
        out.to_str().unwrap(),
    ]))
}

#[test]
fn publish_times_subscribers_and_loss_are_recovered() {
    let _host = own_host::enter();
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), PUBLISH);
    let said = complaint(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(
        said.contains("os.pipe left out of `fan`: workload `publish` is not supported"),
        "{said}"
    );
    let summary = summary(&folder.path().join("out"));
    let cells = summary["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 4);
    for (cell, subscribers) in cells.iter().zip([0, 1, 8, 64]) {
        check_cell(cell, subscribers);
    }
    let notes = summary["notes"].to_string();
    assert!(notes.contains("os.pipe left out"), "{notes}");

    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("publish call of 64 B, ns"), "{text}");
    assert!(text.contains("64 subscribers") && text.contains("+2.00 each [2.00, 2.00]"), "{text}");
}

fn check_cell(cell: &Value, subscribers: u64) {
    assert_eq!(cell["valid"], true, "{cell}");
    assert_eq!((&cell["system"], &cell["workload"]), (&"synthetic".into(), &"publish".into()));
    let params = &cell["params"];
    assert_eq!(
        (&params["subscribers"], &params["rate_hz"]),
        (&subscribers.into(), &20_000.0.into())
    );
    let expected_us = (100 + 2 * subscribers) as f64 / 1e3;
    for percentile in ["min", "p50", "p99", "max"] {
        assert_eq!(cell["write_us"][percentile], expected_us, "{cell}");
    }
    assert!(cell["round_trip_us"].is_null() && cell["loan_us"].is_null(), "{cell}");
    // Of 600, every hundredth is lost, and every 150th taken twice unless it is lost.
    assert_eq!(cell["sent"], RUNS * 600);
    assert_eq!(cell["received"], RUNS * 594 * subscribers, "{cell}");
    assert_eq!(cell["lost"], RUNS * 6 * subscribers, "{cell}");
    assert_eq!(cell["duplicates"], RUNS * 2 * subscribers, "{cell}");
    assert_eq!(cell["corrupt"], 0);
    let slope = &cell["further_subscriber"];
    assert_eq!(slope.is_object(), subscribers > 1, "{cell}");
    if subscribers > 1 {
        assert!((slope["ns"].as_f64().unwrap() - 2.0).abs() < 1e-9, "{cell}");
    }
}

#[test]
fn a_workload_that_no_system_supports_is_nothing_to_run() {
    let folder = tempfile::tempdir().unwrap();
    let text = PUBLISH.split("\n[options").next().unwrap().replace("\"synthetic\", ", "");
    let output = run(folder.path(), &text);
    assert_eq!(output.status.code(), Some(1));
    let said = complaint(&output);
    assert!(said.contains("nothing to run: os.pipe left out of `fan`"), "{said}");
    assert!(!folder.path().join("out").exists());
}

#[test]
fn an_untouched_payload_is_measured_and_noted() {
    let _host = own_host::enter();
    let folder = tempfile::tempdir().unwrap();
    let text = "name = \"light\"\nabout = \"a test\"\n\n[workload]\nkind = \"roundtrip\"\n\
        touch = \"header\"\npayload_bytes = [4096]\nmessages = 300\n\n[plan]\n\
        systems = [\"os.pipe\"]\ntunings = [\"default\"]\ntopology = \"two-processes\"\nruns = 1\n";
    let output = run(folder.path(), text);
    assert_eq!(output.status.code(), Some(0), "{}", complaint(&output));
    let summary = summary(&folder.path().join("out"));
    let cell = &summary["cells"][0];
    assert_eq!((&cell["valid"], &cell["params"]["touch"]), (&true.into(), &"header".into()));
    assert_eq!((&cell["sent"], &cell["received"]), (&300.into(), &300.into()));
    assert!(summary["notes"].to_string().contains("neither written nor read"), "{summary}");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("light · two processes · back to back · header only"), "{text}");
}
