//! Across hosts whose clocks differ by injected amounts: offset and drift are found within the
//! stated error, one-way latencies belong to one clock, and unknown values are not reported.
//!
//! The hosts are two network namespaces, which need root.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use crate::support::own_host;
use crate::support::{bench, complaint, finish, runs, summary};
use serde_json::Value;

const OFFSET_US: f64 = 1.5e6;
const DRIFT_PPM: f64 = 80.0;
/// One way for a stream's messages; there and back for round trips.
const DELAY_US: f64 = 2_000.0;

fn scenario(folder: &Path, kind: &str) -> String {
    let path = folder.join(format!("{kind}.toml"));
    let text = format!(
        "name = \"{kind}-clocks\"\n\n[workload]\nkind = \"{kind}\"\npayload_bytes = [1000]\n\
         rate_hz = [100]\nmessages = 200\nwarmup_messages = 10\n\n[plan]\n\
         systems = [\"synthetic\"]\ntunings = [\"default\"]\ntopology = \"two-hosts\"\nruns = 2\n\n\
         [options.synthetic]\nclock_offset_us = {OFFSET_US:.1}\nclock_drift_ppm = {DRIFT_PPM:.1}\n\
         delay_us = [[0.0, {DELAY_US:.1}], [1.0, {DELAY_US:.1}]]\n"
    );
    fs::write(&path, text).expect("a scenario file");
    path.to_string_lossy().into_owned()
}

/// The results of both kinds; `None`, with a message, without the right to make namespaces.
fn measured(folder: &Path) -> Option<PathBuf> {
    let out = folder.join("out");
    let [stream, round_trip] = ["stream", "roundtrip"].map(|kind| scenario(folder, kind));
    let output = finish(&mut bench(&["run", &stream, &round_trip, "--out", out.to_str()?]));
    let said = complaint(&output);
    if !output.status.success() && said.contains("root") {
        eprintln!("skipped: {said}");
        return None;
    }
    assert_eq!(output.status.code(), Some(0), "{said}");
    Some(out)
}

fn report(out: &Path) -> Output {
    finish(&mut bench(&["report", "--verbose", out.to_str().expect("a path")]))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn offset_and_drift_are_recovered_within_the_error_that_is_stated() {
    let _host = own_host::enter();
    let folder = tempfile::tempdir().unwrap();
    let Some(out) = measured(folder.path()) else { return };
    let before = summary(&out);
    for cell in before["cells"].as_array().unwrap() {
        assert_eq!(
            (&cell["valid"], &cell["topology"]),
            (&true.into(), &"two-hosts".into()),
            "{cell}"
        );
        let clock = &cell["clock"];
        assert!(number(&clock["exchanges"]) > 200.0, "{clock}");
        let error_us = number(&clock["error_us"]);
        // The definition of the driver's clock.
        let offset_us = OFFSET_US + DRIFT_PPM * number(&clock["at_s"]);
        let wrong_us = (number(&clock["offset_us"]) - offset_us).abs();
        assert!(wrong_us <= error_us, "wrong by {wrong_us} µs: {clock}");
        // The error of one exchange, and the remaining effect of the unknown drift.
        assert!(error_us < number(&clock["least_delay_us"]) + 1_000.0, "{clock}");
        let wrong_ppm = (number(&clock["drift_ppm"]) - DRIFT_PPM).abs();
        assert!(wrong_ppm <= number(&clock["drift_error_ppm"]), "wrong by {wrong_ppm}: {clock}");
        let one_way = &cell["one_way_us"];
        // Pong answers at once; a one-way message is held for its delay.
        let delay_us = if cell["workload"] == "stream" { DELAY_US } else { 0.0 };
        assert!(number(&one_way["min"]) >= delay_us - error_us, "{one_way}, {clock}");
        assert!(number(&one_way["min"]) < 500_000.0, "not what the clocks differ by: {one_way}");
        if cell["workload"] != "stream" {
            assert!(number(&cell["round_trip_us"]["min"]) >= DELAY_US, "{cell}");
        }
    }
    let text = String::from_utf8(report(&out).stdout).unwrap();
    assert!(text.contains("Clocks of two hosts") && text.contains("± "), "{text}");
    assert_eq!(summary(&out)["cells"], before["cells"], "made again from what was kept");

    // The answers are gone: values that depend on both clocks are unknown, the rest is unchanged.
    for run in runs(&out) {
        let directory = out.join(run["directory"].as_str().unwrap());
        fs::remove_file(directory.join("exchanges.json.zst")).unwrap();
    }
    assert_eq!(report(&out).status.code(), Some(1), "streams have nothing else");
    for (cell, before) in
        summary(&out)["cells"].as_array().unwrap().iter().zip(before["cells"].as_array().unwrap())
    {
        assert!(cell["one_way_us"].is_null() && cell["clock"].is_null(), "{cell}");
        let is_stream = cell["workload"] == "stream";
        assert_eq!(cell["valid"], !is_stream, "{cell}");
        assert_eq!(cell["round_trip_us"], before["round_trip_us"]);
        let remarks = if is_stream { &cell["invalid_reasons"] } else { &cell["notes"] };
        assert!(remarks.to_string().contains("answered 0 times, fewer than 10"), "{remarks}");
    }
}
