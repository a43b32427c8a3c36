//! Each figure of a report can be traced to records: cells of a fresh run, drawn at random, are
//! recomputed from the sample files by a program that shares nothing with ours, and so is the file
//! that `bench export` writes.

use std::path::Path;
use std::process::Command;

use crate::python::python;
use crate::support;
use crate::support::own_host;
use crate::support::{bench, complaint, finish};

/// Round trips, a stream with loss to two subscribers, and images; two runs each of everything.
fn measure(folder: &Path) -> std::path::PathBuf {
    let scenario = |name: &str, kind: &str, point: &str, systems: &[&str]| {
        let injected = match systems.contains(&"synthetic") {
            true => {
                "\n[options.synthetic]\nlose_every = 101\n\
                 delay_us = [[0.0, 10.0], [0.9, 40.0], [0.99, 80.0], [1.0, 500.0]]\n"
            }
            false => "",
        };
        let text = format!(
            "name = \"{name}\"\nabout = \"a test\"\n\n[workload]\nkind = \"{kind}\"\n{point}\n\
             warmup_messages = 20\n\n[plan]\nsystems = {systems:?}\ntunings = [\"default\"]\n\
             topology = \"any\"\nruns = 2\n{injected}"
        );
        let path = folder.join(format!("{name}.toml"));
        std::fs::write(&path, text).expect("a scenario file");
        path.to_string_lossy().into_owned()
    };
    let round_trips = scenario(
        "there-and-back",
        "roundtrip",
        "payload_bytes = [64, 4096]\nreply_timeout_ms = 200\nmessages = 700",
        &["os.pipe", "os.spin", "myelin.shm-block", "synthetic"],
    );
    let streams = scenario(
        "flow",
        "stream",
        "payload_bytes = [64]\nsubscribers = [1, 2]\nrate_hz = [1000]\nmessages = 600",
        &["os.futex", "myelin.shm-block", "synthetic"],
    );
    let images = scenario(
        "frames",
        "image",
        "frames = [\"64x48\"]\nrate_hz = [200]\nmessages = 120",
        &["os.call", "myelin.local-callback", "myelin.shm-block"],
    );
    let out = folder.join("out");
    let words = ["run", &round_trips, &streams, &images, "--out", out.to_str().unwrap()];
    let output = finish(&mut bench(&words));
    // Runs that a loaded machine spoils are marked and left out.
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", complaint(&output));
    out
}

/// Adds a thousandth to the first number within that is not 0.
fn spoil(value: &mut serde_json::Value) -> bool {
    match value {
        serde_json::Value::Number(number) if number.as_f64() != Some(0.0) => {
            *value = (number.as_f64().unwrap() * 1.001 + 0.001).into();
            true
        }
        serde_json::Value::Array(values) => values.iter_mut().any(spoil),
        serde_json::Value::Object(values) => values.values_mut().any(spoil),
        _ => false,
    }
}

/// Runs to the end; status and all output.
fn run(command: &mut Command) -> (Option<i32>, String) {
    let output = command.output().expect("Python starts");
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&said).into_owned())
}

#[test]
fn figures_are_recomputed_from_the_samples_by_other_means() {
    let Some(mut recompute) = python("bench/check/recompute.py") else {
        return;
    };
    let _host = own_host::enter();
    let folder = tempfile::tempdir().unwrap();
    let out = measure(folder.path());

    let (status, said) = run(recompute.arg(&out).args(["--cells", "10"]));
    println!("{said}");
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains("10 same, 0 different"), "{said}");

    let exported = finish(&mut bench(&["export", out.to_str().unwrap()]));
    assert_eq!(exported.status.code(), Some(0), "{}", complaint(&exported));
    let table = out.join("samples.parquet");
    let mut compare = python("bench/check/exported.py").unwrap();
    let (status, said) = run(compare.arg(&table).arg(out.join("summary.json")));
    assert_eq!(status, Some(0), "{said}");

    let drawing = folder.path().join("latency.png");
    let mut plot = python("examples/python/plot_latency.py").unwrap();
    // Matplotlib keeps a list of fonts somewhere.
    plot.env("MPLCONFIGDIR", folder.path()).env("MPLBACKEND", "agg");
    let (status, said) = run(plot.arg(&table).arg(&drawing));
    assert_eq!(status, Some(0), "{said}");
    assert!(std::fs::read(&drawing).unwrap().starts_with(b"\x89PNG"), "{said}");

    // A figure that does not match the samples is found, also where a plot is drawn from it.
    for part in ["stages", "slowest", "timeline", "seconds", "figures of run 0"] {
        let path = out.join("details.json.zst");
        let whole = std::fs::read(&path).unwrap();
        let text = zstd::decode_all(whole.as_slice()).unwrap();
        let mut details: serde_json::Value = serde_json::from_slice(&text).unwrap();
        for detail in details.as_array_mut().unwrap() {
            match part {
                "figures of run 0" => spoil(&mut detail["runs"][0]["figures"]["p50_us"]),
                _ => spoil(&mut detail[part]),
            };
        }
        let spoiled = zstd::encode_all(details.to_string().as_bytes(), 0).unwrap();
        std::fs::write(&path, spoiled).unwrap();
        let mut again = python("bench/check/recompute.py").unwrap();
        let (status, said) = run(again.arg(&out).args(["--cells", "99"]));
        assert_eq!(status, Some(1), "{part}: {said}");
        let found = said.lines().filter(|line| line.starts_with("differs"));
        assert!(found.clone().count() > 0, "{part}: {said}");
        // Each cell has a first run of its own.
        let named = format!("'{}", part.trim_end_matches('0'));
        assert!(found.clone().all(|line| line.contains(&named)), "{part}: {said}");
        std::fs::write(&path, whole).unwrap();
    }
    let path = out.join("summary.json");
    let mut summary = support::summary(&out);
    for cell in summary["cells"].as_array_mut().unwrap() {
        cell["samples"] = (cell["samples"].as_u64().unwrap() + 1).into();
    }
    std::fs::write(&path, summary.to_string()).unwrap();
    for script in ["bench/check/recompute.py", "bench/check/exported.py"] {
        let mut again = python(script).unwrap();
        let arguments = [&out, &table, &path];
        let own = if script.contains("recompute") { &arguments[..1] } else { &arguments[1..] };
        let (status, said) = run(again.args(own));
        assert_eq!(status, Some(1), "{script}: {said}");
        assert!(said.contains("samples"), "{script}: {said}");
    }
}
