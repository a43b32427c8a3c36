//! The trace of an application becomes a results folder that every other verb reads.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::python::python;
use crate::support::{bench, complaint, finish, summary};

/// A trace of two topics whose latencies are `factor` times what is usual; one image in a hundred is
/// lost.
fn trace(folder: &Path, name: &str, factor: f64) -> PathBuf {
    let mut text = "sequence,topic,sent_ns,received_us,bytes\n".to_owned();
    for message in 0..1200u64 {
        let sent_ns = 5_000_000_000 + message * 10_000_000;
        // Spread evenly over 100 to 200 µs, in a mixed order.
        let late_us = factor * (100.0 + (message * 37 % 101) as f64);
        let received_us = sent_ns as f64 / 1e3 + late_us;
        let image = if message % 100 == 99 { String::new() } else { format!("{received_us:.3}") };
        writeln!(text, "{message},/image,{sent_ns},{image},921600").unwrap();
        writeln!(text, "{message},/imu,{sent_ns},{:.3},48", received_us - 0.5 * late_us).unwrap();
    }
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path
}

/// Five runs of the application `nav`.
fn import(folder: &Path, name: &str, factor: f64) -> (PathBuf, String) {
    let runs = [0.98, 0.99, 1.0, 1.01, 1.02].iter().zip(0..);
    let files = runs.map(|(spread, run)| trace(folder, &format!("{run}.csv"), spread * factor));
    let files: Vec<PathBuf> = files.collect();
    let out = folder.join(name);
    let mut command = bench(&["import", "--name", "nav", "--out", out.to_str().unwrap()]);
    let output = finish(command.args(&files));
    assert_eq!(output.status.code(), Some(0), "{}", complaint(&output));
    (out, String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn a_trace_is_reported_compared_and_recomputed() {
    let place = tempfile::tempdir().unwrap();
    let (before, said) = import(place.path(), "before", 1.0);
    for part in ["Traces of 1 application", "machine not recorded", "/image", "imported traces"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    for part in ["CPU µs", "floor", "back to back", "Steal"] {
        assert!(!said.contains(part), "{part}: {said}");
    }
    let found = summary(&before);
    let [image, imu] = &found["cells"].as_array().unwrap()[..] else { panic!("{found}") };
    assert_eq!(
        (&image["params"]["module"], &imu["params"]["module"]),
        (&"/image".into(), &"/imu".into())
    );
    assert_eq!(
        (&image["sent"], &image["lost"], &imu["lost"]),
        (&6000.into(), &60.into(), &0.into())
    );
    let p50 = image["one_way_us"]["p50"].as_f64().unwrap();
    assert!((148.0..154.0).contains(&p50), "{image}");
    assert!(image.get("cpu_percent").is_none(), "{image}");
    let page = fs::read_to_string(before.join("report.html")).unwrap();
    assert!(page.contains("/image") && !page.contains("0 % of a core"));
    let text = fs::read_to_string(before.join("report.md")).unwrap();
    assert!(text.contains("| nav | 151 | 200 |") || text.contains("| – | – |"), "{text}");
    assert!(before.join("hgrm/trace-nav-default-image.hgrm").exists());

    let (after, _) = import(place.path(), "after", 1.3);
    let [a, b] = [&before, &after].map(|it| it.to_str().unwrap());
    let compared = finish(&mut bench(&["compare", a, b, "--json"]));
    let comparison: Value = serde_json::from_slice(&compared.stdout).unwrap();
    let figures = comparison["cells"][0]["figures"].as_array().unwrap();
    assert_eq!(
        (&figures[0]["figure"], &figures[0]["verdict"]),
        (&"p50_us".into(), &"worse".into())
    );
    let names: Vec<&Value> = figures.iter().map(|it| &it["figure"]).collect();
    assert_eq!(names, ["p50_us", "p99_us"], "nobody measured CPU and memory");
    for words in [&["report", a][..], &["report", a, b], &["export", a]] {
        let output = finish(&mut bench(words));
        assert_eq!(output.status.code(), Some(0), "{words:?}: {}", complaint(&output));
    }
    let resumed = finish(&mut bench(&["run", "--resume", a]));
    assert_eq!(resumed.status.code(), Some(2));
    assert!(complaint(&resumed).contains("imported traces, no runs; import them again"));

    let Some(mut recompute) = python("bench/check/recompute.py") else { return };
    let output = finish(recompute.arg(&before));
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("2 same, 0 different"), "{said}{}", complaint(&output));
    let mut exported = python("bench/check/exported.py").unwrap();
    exported.arg(before.join("samples.parquet")).arg(before.join("summary.json"));
    let output = finish(&mut exported);
    assert_eq!(output.status.code(), Some(0), "{}", complaint(&output));
}

#[test]
fn what_is_no_trace_is_refused_and_leaves_nothing_behind() {
    let place = tempfile::tempdir().unwrap();
    let good = trace(place.path(), "good.csv", 1.0);
    let bad = place.path().join("bad.csv");
    fs::write(&bad, "sent_ns,received_ns\n10,20\n30,25\n").unwrap();
    let out = place.path().join("out");
    let mut command = bench(&["import", "--out", out.to_str().unwrap()]);
    let output = finish(command.args([&good, &bad]));
    assert_eq!(output.status.code(), Some(2));
    let said = complaint(&output);
    assert!(
        said.contains("bad.csv:3: received_ns: 0.005 µs before it was sent; both times"),
        "{said}"
    );
    assert!(!out.exists());
}
