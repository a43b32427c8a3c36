//! Baselines: kept, listed, compared with, removed, and refused on another machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use crate::damaged::copy;
use crate::support::{bench, complaint, finish};
use serde_json::Value;

/// Folders of a user who has none of them yet.
struct User(tempfile::TempDir);

impl User {
    fn new() -> Self {
        User(tempfile::tempdir().unwrap())
    }

    fn bench(&self, words: &[&str]) -> Output {
        finish(bench(words).env("XDG_DATA_HOME", self.0.path().join("data")))
    }

    /// A results folder, of the machine with this processor.
    fn results(&self, name: &str, processor: &str) -> PathBuf {
        let folder = self.0.path().join(name);
        copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/results-0.1.0"), &folder);
        let file = folder.join("host.json");
        let mut host: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        host["cpu_model"] = processor.into();
        fs::write(&file, host.to_string()).unwrap();
        folder
    }

    fn list(&self) -> Vec<Value> {
        let output = self.bench(&["baseline", "list", "--json"]);
        assert_eq!(output.status.code(), Some(0), "{}", complaint(&output));
        serde_json::from_slice(&output.stdout).expect("JSON and nothing else")
    }
}

fn refused(output: &Output, words: &[&str]) {
    let said = complaint(output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    for word in words {
        assert!(said.contains(word), "{word:?} is not in {said}");
    }
}

#[test]
fn a_baseline_outlives_its_folder_and_is_replaced_and_removed() {
    let user = User::new();
    assert_eq!(user.list(), [] as [Value; 0]);
    let (old, new) = (user.results("old", "A"), user.results("new", "A"));
    let [old, new] = [old, new].map(|path| path.to_str().unwrap().to_owned());
    let set = user.bench(&["baseline", "set", "main", &old]);
    assert_eq!(set.status.code(), Some(0), "{}", complaint(&set));
    fs::remove_dir_all(&old).unwrap();
    let compared = user.bench(&["compare", &new, "--baseline", "main", "--json"]);
    assert_eq!(compared.status.code(), Some(0), "{}", complaint(&compared));
    let comparison: Value = serde_json::from_slice(&compared.stdout).unwrap();
    assert_eq!(comparison["b"]["folder"], new.as_str());
    assert!(comparison["a"]["folder"].as_str().unwrap().ends_with("/main/1"), "{comparison}");
    assert!(!comparison["cells"].as_array().unwrap().is_empty());

    let again = user.bench(&["baseline", "set", "main", &new]);
    assert_eq!(again.status.code(), Some(0), "{}", complaint(&again));
    let all = user.list();
    assert_eq!((all.len(), &all[0]["name"]), (1, &"main".into()));
    assert!(all[0]["bytes"].as_u64().unwrap() > 1000, "{all:?}");
    let copies: Vec<String> = ["plan.json", "runs.jsonl", "summary.json"]
        .into_iter()
        .filter(|file| Path::new(all[0]["sessions"][0].as_str().unwrap()).join(file).exists())
        .map(str::to_owned)
        .collect();
    assert_eq!(copies, ["plan.json", "runs.jsonl"], "records, not reports");

    let removed = user.bench(&["baseline", "rm", "main"]);
    assert_eq!(removed.status.code(), Some(0), "{}", complaint(&removed));
    assert_eq!(user.list(), [] as [Value; 0]);
    refused(&user.bench(&["baseline", "rm", "main"]), &["no baseline `main`", "baseline list"]);
}

#[test]
fn a_baseline_of_another_machine_is_refused_and_each_machine_has_its_own() {
    let user = User::new();
    let [here, there] = ["A", "B"].map(|it| user.results(it, it).to_str().unwrap().to_owned());
    let set = user.bench(&["baseline", "set", "main", &here]);
    assert_eq!(set.status.code(), Some(0), "{}", complaint(&set));
    let words =
        ["baseline `main` is of another machine: A, ", " was measured on B, ", "baseline set"];
    refused(&user.bench(&["compare", &there, "--baseline", "main"]), &words);
    refused(
        &user.bench(&["baseline", "set", "both", &here, &there]),
        &["a baseline has one machine"],
    );
    let own = user.bench(&["baseline", "set", "main", &there]);
    assert_eq!(own.status.code(), Some(0), "{}", complaint(&own));
    let again = user.results("again", "B");
    let words = ["compare", again.to_str().unwrap(), "--baseline", "main", "--json"];
    let compared = user.bench(&words);
    assert_eq!(compared.status.code(), Some(0), "{}", complaint(&compared));
}

#[test]
fn what_is_no_baseline_is_said_in_one_line() {
    let user = User::new();
    let folder = user.results("old", "A");
    let folder = folder.to_str().unwrap();
    refused(&user.bench(&["baseline", "set", "../x", folder]), &["not a plain word", "letters"]);
    refused(&user.bench(&["baseline", "set", "x", "/nonexistent"]), &["/nonexistent"]);
    let set = user.bench(&["baseline", "set", "main", folder]);
    assert_eq!(set.status.code(), Some(0), "{}", complaint(&set));
    let words = ["no baseline `mian`", "`main`"];
    refused(&user.bench(&["compare", folder, "--baseline", "mian"]), &words);
    let names = fs::read_dir(user.0.path().join("data/myelin/baselines")).unwrap();
    let of_machine = names.flatten().next().unwrap().path();
    let left: Vec<_> = fs::read_dir(of_machine).unwrap().flatten().collect();
    assert_eq!(left.len(), 1, "nothing unfinished: {left:?}");
}
