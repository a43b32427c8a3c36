//! What scripts and files of users rely on (docs/reference/compatibility.md): the results folder in
//! `results-0.1.0`, which the program of 0.1.0 wrote; the keys of JSON files, the columns and the
//! options in `compatibility.txt`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use myelin_bench_lab::input_error::Source;
use myelin_bench_lab::scenario::Scenario;
use serde_json::Value;

use crate::damaged::copy;
use crate::kept_list;
use crate::support::own_host;
use crate::support::{bench, complaint, finish, myelin, summary};

#[test]
fn what_scripts_rely_on_is_there() {
    let place = tempfile::tempdir().unwrap();
    let folders = ["a", "b"].map(|name| folder_of_0_1_0(place.path(), name));
    let [a, b] = folders.each_ref().map(|folder| folder.to_str().unwrap());
    // The folder holds a run that is not valid.
    let reported = finish(&mut bench(&["report", a]));
    assert_eq!(reported.status.code(), Some(1), "{}", complaint(&reported));
    for name in ["report.html", "report.md"] {
        assert!(folders[0].join(name).exists(), "{name}");
    }
    let exported = finish(&mut bench(&["export", a]));
    let said = String::from_utf8_lossy(&exported.stdout).into_owned();
    assert!(said.contains("1699 rows of 17 runs"), "{said}{}", complaint(&exported));
    let compared = finish(&mut bench(&["compare", a, b, "--json"]));
    assert_eq!(compared.status.code(), Some(0), "{}", complaint(&compared));

    let mut lines = BTreeSet::new();
    let now = summary(&folders[0]);
    keys("summary.json", &now, &mut lines);
    let comparison = serde_json::from_slice(&compared.stdout).expect("JSON and nothing else");
    keys("compare --json", &comparison, &mut lines);
    let table = fs::read_to_string(folders[0].join("summary.csv")).unwrap();
    let columns = table.lines().next().unwrap().split(',');
    lines.extend(columns.map(|column| format!("summary.csv {column}")));
    options(place.path(), &mut lines);
    kept_list::check(&tests().join("compatibility.txt"), &lines);

    // The figures mean what they meant.
    let before = summary(&tests().join(NAME));
    let mut differences = Vec::new();
    differ("summary.json", &before, &now, &mut differences);
    assert!(
        differences.is_empty(),
        "figures of the same records; with another meaning `schema` grows:\n{}",
        differences.join("\n")
    );
}

/// A round trip has each key that it had in 0.1.0, and can be compared with one of 0.1.0.
#[test]
fn a_new_folder_has_the_keys_of_an_old_one() {
    let _host = own_host::enter();
    let place = tempfile::tempdir().unwrap();
    let old = folder_of_0_1_0(place.path(), "old");
    let (scenario, new) = (old.join("scenarios/roundtrip.toml"), place.path().join("new"));
    let words = ["run", scenario.to_str().unwrap(), "--out", new.to_str().unwrap()];
    let output = finish(&mut bench(&words));
    // A loaded machine may spoil a run.
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", complaint(&output));
    let of = |folder: &Path| {
        let summary = summary(folder);
        let mut cells = summary["cells"].as_array().unwrap().iter();
        let cell = cells.find(|cell| cell["scenario"] == "roundtrip").unwrap();
        let mut lines = BTreeSet::new();
        keys("", cell, &mut lines);
        // Whether a figure or an interval is withheld depends on the run.
        let paths = lines.iter().map(|line| line.rsplit_once(": ").unwrap().0.to_owned());
        paths.filter(|path| !path.contains("interval_us []")).collect()
    };
    let (before, now): (BTreeSet<String>, BTreeSet<String>) = (of(&old), of(&new));
    let gone: Vec<_> = before.difference(&now).collect();
    assert!(gone.is_empty(), "{gone:?}");
    let words = ["compare", old.to_str().unwrap(), new.to_str().unwrap(), "--json"];
    let compared = finish(&mut bench(&words));
    let comparison: Value = serde_json::from_slice(&compared.stdout).unwrap();
    let is_there = |cell: &Value| cell["scenario"] == "roundtrip";
    assert!(comparison["cells"].as_array().unwrap().iter().any(is_there), "{comparison}");
}

#[test]
fn a_scenario_of_0_1_0_is_valid() {
    let files = fs::read_dir(tests().join(NAME).join("scenarios")).unwrap();
    let files: Vec<PathBuf> = files.map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 8);
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let parsed = Scenario::parse(Source::new(file.to_str().unwrap(), &text));
        assert!(parsed.is_ok(), "{}", parsed.unwrap_err());
    }
}

/// A copy of the kept folder, without the summary that belongs to it.
fn folder_of_0_1_0(place: &Path, name: &str) -> PathBuf {
    let folder = place.join(name);
    copy(&tests().join(NAME), &folder);
    folder
}

/// A line for each key: its path and the type of its value.
fn keys(path: &str, value: &Value, lines: &mut BTreeSet<String>) {
    let kind = match value {
        Value::Object(members) => {
            for (key, value) in members {
                keys(&format!("{path} {key}"), value, lines);
            }
            "object"
        }
        Value::Array(entries) => {
            for entry in entries {
                keys(&format!("{path} []"), entry, lines);
            }
            "array"
        }
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
    };
    lines.insert(format!("{path}: {kind}"));
}

/// A line for each option and argument of each verb, and for each word that an option takes, from the
/// pages of the manual.
fn options(place: &Path, lines: &mut BTreeSet<String>) {
    let folder = place.join("manual");
    fs::create_dir(&folder).unwrap();
    let output = finish(&mut myelin(&["man", folder.to_str().unwrap()]));
    assert_eq!(output.status.code(), Some(0), "{}", complaint(&output));
    for page in fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
        let verb = page.file_stem().unwrap().to_str().unwrap().replace('-', " ");
        lines.insert(format!("command {verb}"));
        let mut text = fs::read_to_string(&page).unwrap().replace("\\-", "-");
        ["\\fB", "\\fI", "\\fR"].iter().for_each(|font| text = text.replace(font, ""));
        let mut arguments = 0;
        for part in text.split("\n.TP\n").skip(1) {
            let head = part.lines().next().unwrap();
            let option = match head.strip_prefix('-') {
                // The name of a value is for people.
                Some(_) => head.split('<').next().unwrap().trim().to_owned(),
                None if head.starts_with(['<', '[']) => {
                    arguments += 1;
                    format!("argument {arguments}")
                }
                None => continue,
            };
            let takes = if head.starts_with('-') && head.contains('<') { " VALUE" } else { "" };
            lines.insert(format!("command {verb} {option}{takes}"));
            for word in part.split(".IP \\(bu 2\n").skip(1) {
                let word = word.split([':', '\n']).next().unwrap();
                lines.insert(format!("command {verb} {option} {word}"));
            }
        }
    }
}

/// What is not the same in both; texts for people may change.
fn differ(path: &str, before: &Value, now: &Value, differences: &mut Vec<String>) {
    match (before, now) {
        (Value::Object(before), Value::Object(now)) => {
            for (key, before) in before {
                let was_mended = UNMEASURED.contains(&&**key) && *before == 0.0;
                if was_mended && !now.contains_key(key) {
                    continue;
                }
                let now = now.get(key).unwrap_or(&Value::Null);
                if !TEXTS.contains(&&**key) {
                    differ(&format!("{path} {key}"), before, now, differences);
                }
            }
        }
        (Value::Array(before), Value::Array(now)) if before.len() == now.len() => {
            for (index, (before, now)) in before.iter().zip(now).enumerate() {
                differ(&format!("{path} [{index}]"), before, now, differences);
            }
        }
        (Value::Number(a), Value::Number(b)) => {
            let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
            // Another processor may round otherwise.
            if (a - b).abs() > 1e-9 * a.abs() {
                differences.push(format!("{path}: {a} was, {b} is"));
            }
        }
        _ if before == now => {}
        _ => differences.push(format!("{path}: {before} was, {now} is")),
    }
}

fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

const NAME: &str = "results-0.1.0";
/// Rates over no time, as those of a start-up, which 0.1.0 gave as 0.
const UNMEASURED: [&str; 2] = ["cpu_percent", "throughput_per_s"];
/// Keys whose texts are for people.
const TEXTS: [&str; 4] = ["about", "command", "invalid_reasons", "notes"];
