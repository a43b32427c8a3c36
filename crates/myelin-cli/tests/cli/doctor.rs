//! `myelin doctor` names the leftovers of a killed process, removes them, and spares live nodes.

use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use myelin_shm::node::{Node, NodeOptions};

const FOLDER: &str = "MYELIN_DOCTOR_TEST_FOLDER";

#[test]
fn leftovers_of_dead_nodes_are_named_and_removed() {
    if let Ok(folder) = std::env::var(FOLDER) {
        let _node = open(Path::new(&folder));
        loop {
            std::thread::park();
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let clean = doctor(folder.path(), false);
    assert!(clean.status.success(), "{clean:?}");

    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "doctor::leftovers_of_dead_nodes_are_named_and_removed"])
        .env(FOLDER, folder.path())
        .spawn()
        .unwrap();
    let end = Instant::now() + Duration::from_secs(20);
    while !text(&doctor(folder.path(), false)).contains(&format!("process {}", child.id())) {
        assert!(Instant::now() < end, "the node never came");
    }
    child.kill().unwrap();
    child.wait().unwrap();

    let found = doctor(folder.path(), false);
    assert_eq!(found.status.code(), Some(1), "{found:?}");
    assert!(text(&found).contains("dead     1 socket left behind by a dead node"), "{found:?}");
    assert!(text(&found).contains("myelin doctor --fix"), "{found:?}");
    let report = json(folder.path());
    let dead = &report["leftovers"]["dead"];
    assert_eq!((&report["wrong"], dead.as_array().unwrap().len()), (&true.into(), 1), "{report}");
    assert_eq!((&dead[0]["removed"], &dead[0]["domain"]), (&false.into(), &0.into()), "{report}");
    assert!(report.get("findings").is_none() && report.get("measured").is_none(), "{report}");
    let fixed = doctor(folder.path(), true);
    assert!(fixed.status.success(), "{fixed:?}");
    assert!(std::fs::read_dir(folder.path()).unwrap().next().is_none());

    let _living = open(folder.path());
    let spared = doctor(folder.path(), true);
    let alive = format!("alive    \"camera\", process {}, domain 0\n", std::process::id());
    assert!(spared.status.success() && text(&spared).contains(&alive), "{spared:?}");
}

fn open(folder: &Path) -> Node {
    let folder = Some(folder.to_owned());
    let name = "camera".to_owned();
    Node::open(NodeOptions { name, runtime_dir: folder, ..NodeOptions::default() }).unwrap()
}

fn doctor(folder: &Path, fix: bool) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_myelin"));
    command.args(["doctor", "--only", "leftovers", "--runtime-dir"]).arg(folder);
    if fix {
        command.arg("--fix");
    }
    command.output().unwrap()
}

fn json(folder: &Path) -> serde_json::Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_myelin"));
    command.args(["doctor", "--only", "leftovers", "--json"]).env("MYELIN_RUNTIME_DIR", folder);
    serde_json::from_slice(&command.output().unwrap().stdout).unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}
