//! The JSON Schemas: the files in docs/reference are what the command prints, and another's
//! validator accepts real files and refuses wrong ones by them.

use std::fs;
use std::path::{Path, PathBuf};
use std::slice;

use crate::damaged::copy;
use crate::python::python;
use crate::support::{bench, complaint, finish, myelin, summary};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn the_files_in_the_reference_are_up_to_date() {
    for of in ["summary", "scenario"] {
        let output = finish(&mut bench(&["schema", of]));
        assert_eq!(output.status.code(), Some(0), "{}", complaint(&output));
        let file = root().join(format!("docs/reference/{of}.schema.json"));
        if std::env::var_os("MYELIN_WRITE").is_some() {
            fs::write(&file, &output.stdout).unwrap();
        }
        let kept = fs::read(&file).unwrap_or_default();
        let remedy = format!("myelin bench schema {of} > docs/reference/{of}.schema.json");
        assert!(kept == output.stdout, "it has changed: {remedy}");
    }
}

/// Runs the validator; its complaint if it refuses a file.
fn validate(schema: &str, files: &[PathBuf]) -> Option<Result<(), String>> {
    let mut command = python("crates/myelin-cli/tests/cli/validate.py")?;
    command.arg(root().join(format!("docs/reference/{schema}.schema.json"))).args(files);
    let output = finish(&mut command);
    match output.status.code() {
        Some(0) => Some(Ok(())),
        Some(3) => Some(Err(String::from_utf8_lossy(&output.stdout).into_owned())),
        other => panic!("{other:?}: {}", complaint(&output)),
    }
}

#[test]
fn every_scenario_is_valid_and_mistakes_are_not() {
    let mut files: Vec<PathBuf> = Vec::new();
    for folder in ["bench/scenarios", "crates/myelin-cli/tests/results-0.1.0/scenarios"] {
        files.extend(fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path()));
    }
    files.retain(|file| file.extension().is_some_and(|it| it == "toml"));
    assert!(files.len() > 30);
    let Some(found) = validate("scenario", &files) else { return };
    assert_eq!(found, Ok(()));
    let place = tempfile::tempdir().unwrap();
    let quick = fs::read_to_string(root().join("bench/scenarios/quick.toml")).unwrap();
    for (line, wrong, word) in [
        ("runs = 5", "run = 5", "'run' was unexpected"),
        ("runs = 5", "runs = 0", "less than the minimum"),
        ("runs = 5", "runs = 5\nruns_max = \"many\"", "is not of type 'integer'"),
        ("rate_hz = [\"max\"]", "rate_hz = [0]", "rate_hz"),
        ("rate_hz = [\"max\"]", "rate_hz = [\"fast\"]", "rate_hz"),
        ("tunings = [\"default\", \"tuned\"]", "tunings = [\"fast\"]", "tunings"),
        (
            "kind = \"roundtrip\"",
            "kind = \"roundtrip\"\nframes = [\"1x1\"]",
            "does not allow ['1x1']",
        ),
        ("topology = \"two-processes\"", "topology = \"moon\"", "topology"),
    ] {
        assert!(quick.contains(line), "{line}");
        let file = place.path().join("wrong.toml");
        fs::write(&file, quick.replace(line, wrong)).unwrap();
        let Some(found) = validate("scenario", &[file]) else { return };
        let complaint = found.expect_err(wrong);
        assert!(complaint.contains(word), "{wrong}: {complaint}");
    }
}

#[test]
fn summaries_are_valid() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("a");
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/results-0.1.0"), &folder);
    // It has cells of every workload, and runs that are not valid.
    let output = finish(&mut bench(&["report", folder.to_str().unwrap()]));
    assert_eq!(output.status.code(), Some(1), "{}", complaint(&output));
    let file = folder.join("summary.json");
    let Some(found) = validate("summary", slice::from_ref(&file)) else { return };
    assert_eq!(found, Ok(()));
    let mut wrong = summary(&folder);
    wrong["cells"][0]["valid"] = "yes".into();
    fs::write(&file, wrong.to_string()).unwrap();
    let complaint = validate("summary", &[file]).unwrap().unwrap_err();
    assert!(complaint.contains("$.cells[0].valid: 'yes' is not of type 'boolean'"), "{complaint}");
}

#[test]
fn the_list_is_json_on_request() {
    let output = finish(&mut bench(&["list", "--json"]));
    let listed: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON alone");
    let has = |what: &str, name: &str| {
        listed[what].as_array().unwrap().iter().any(|it| it["name"] == name)
    };
    assert!(has("scenarios", "quick") && has("systems", "synthetic"), "{listed}");
    let output = finish(&mut bench(&["list", "scenarios", "--json"]));
    let listed: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON alone");
    assert!(listed.get("systems").is_none() && listed["scenarios"].is_array());
}

#[test]
fn names_are_completed() {
    let completed = |words: &[&str]| {
        let words = [&["--", "myelin", "bench"], words].concat();
        let mut command = myelin(&words);
        command.env("MYELIN_COMPLETE", "bash").env("_CLAP_IFS", "\n");
        command.env("_CLAP_COMPLETE_INDEX", (words.len() - 2).to_string());
        String::from_utf8_lossy(&finish(&mut command).stdout).into_owned()
    };
    assert!(completed(&["run", "roundtrip-s"]).contains("roundtrip-sizes"));
    for before in [&["run", "quick", "--system"][..], &["ping"], &["pub"], &["sub"]] {
        assert!(completed(&[before, &["synth"]].concat()).contains("synthetic"), "{before:?}");
    }
    let place = tempfile::tempdir().unwrap();
    fs::create_dir_all(place.path().join("results/one")).unwrap();
    let begin = place.path().join("results/o");
    assert!(completed(&["report", begin.to_str().unwrap()]).contains("results/one"));
}
