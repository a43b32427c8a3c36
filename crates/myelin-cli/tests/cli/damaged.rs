//! Results folders that are damaged, of another version, of two machines, or not finished: whole
//! parts are reported, others are named with their remedy, and the exit status shows it.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use crate::support::own_host;
use crate::support::{bench, complaint, finish, runs, scenario, start, summary, wait_for};
use serde_json::Value;

/// Two systems, three runs each, measured once; each test harms a copy.
fn whole() -> &'static Path {
    static WHOLE: OnceLock<PathBuf> = OnceLock::new();
    WHOLE.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("damaged");
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let file = scenario(&folder, &["os.pipe", "os.futex"], 64, 0.1, 3);
        let out = folder.join("out");
        let output = finish(&mut bench(&["run", &file, "--out", out.to_str().unwrap()]));
        assert_eq!(output.status.code(), Some(0), "{}", complaint(&output));
        out
    })
}

type Harm<Of> = fn(&Of);

/// A copy of a whole folder, to be harmed.
struct Copy(tempfile::TempDir);

impl Copy {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        copy(whole(), folder.path());
        Copy(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn words(&self) -> &str {
        self.0.path().to_str().unwrap()
    }

    /// The file of samples of a run of the first cell, and the run's folder.
    fn samples(&self) -> PathBuf {
        let run = runs(self.0.path()).into_iter().find(|run| run["cell"] == 0).unwrap();
        self.path(run["directory"].as_str().unwrap()).join("ping.samples.zst")
    }

    fn replace(&self, name: &str, from: &str, to: &str) {
        let text = fs::read_to_string(self.path(name)).unwrap();
        assert!(text.contains(from), "{from} is not in {name}");
        fs::write(self.path(name), text.replace(from, to)).unwrap();
    }

    fn report(&self) -> Output {
        finish(&mut bench(&["report", "--verbose", self.words()]))
    }

    fn resume(&self) -> Output {
        finish(&mut bench(&["run", "--resume", self.words()]))
    }

    /// A report is made from the given numbers of runs, and it mentions the damage in each of
    /// `words`.
    fn assert_reported_but(&self, runs: [u64; 2], words: &[&str]) {
        let output = self.report();
        let said = complaint(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        let told = |text: &str| words.iter().all(|word| text.contains(word));
        let lines: Vec<&str> = said.lines().filter(|line| line.starts_with("damaged: ")).collect();
        assert_eq!(lines.len(), 1, "{said}");
        assert!(told(lines[0]), "{words:?}: {said}");
        let summary = summary(self.0.path());
        assert!(told(summary["damage"][0].as_str().unwrap()), "{}", summary["damage"]);
        assert_eq!(runs_of(&summary), runs, "{said}");
        assert!(fs::read_to_string(self.path("report.md")).unwrap().contains("1 place damaged"));
        assert!(self.path("report.html").exists());
    }
}

pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), target).unwrap()),
        }
    }
}

fn runs_of(summary: &Value) -> Vec<u64> {
    let cells = summary["cells"].as_array().unwrap().iter();
    cells.map(|cell| cell["runs"].as_u64().unwrap()).collect()
}

#[test]
fn a_damaged_or_missing_sample_file_makes_its_run_fail() {
    let _host = own_host::enter();
    let harms: [(&str, Harm<Path>); 3] = [
        ("incomplete frame", |file| {
            let bytes = fs::read(file).unwrap();
            fs::write(file, &bytes[..bytes.len() / 2]).unwrap();
        }),
        ("Unknown frame descriptor", |file| fs::write(file, b"no such frame").unwrap()),
        ("No such file", |file| fs::remove_file(file).unwrap()),
    ];
    for (what, harm) in harms {
        let folder = Copy::new();
        let file = folder.samples();
        harm(&file);
        let path = file.to_string_lossy();
        folder.assert_reported_but([2, 3], &[&path, what, "--resume measures it again"]);
        let exported = finish(&mut bench(&["export", folder.words()]));
        let (said, error) = (String::from_utf8_lossy(&exported.stdout), complaint(&exported));
        assert_eq!(exported.status.code(), Some(1), "{error}");
        assert!(said.contains("of 5 runs") && error.contains(&*path), "{said}{error}");
    }
    let folder = Copy::new();
    fs::write(folder.samples(), b"").unwrap();
    let resumed = folder.resume();
    assert_eq!(resumed.status.code(), Some(0), "{}", complaint(&resumed));
    assert_eq!(runs_of(&summary(folder.0.path())), [3, 3]);
}

#[test]
fn a_lost_time_series_does_not_affect_other_figures() {
    let _host = own_host::enter();
    let folder = Copy::new();
    let file = folder.samples().with_file_name("observed.json.zst");
    fs::write(&file, b"no").unwrap();
    folder.assert_reported_but([3, 3], &[&file.to_string_lossy(), "no figures over time"]);
}

#[test]
fn invalid_lines_are_skipped_and_a_partial_last_line_is_no_damage() {
    let _host = own_host::enter();
    let folder = Copy::new();
    let cell = runs(folder.0.path())[1]["cell"].as_u64().unwrap();
    let text = fs::read_to_string(folder.path("runs.jsonl")).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines[1] = "{\"order\": 1, \"cell\"";
    fs::write(folder.path("runs.jsonl"), lines.join("\n") + "\n").unwrap();
    let left = if cell == 0 { [2, 3] } else { [3, 2] };
    folder.assert_reported_but(left, &["runs.jsonl:2: ", "left out; delete it", "--resume"]);

    let cut = text.trim_end().len() - 20;
    fs::write(folder.path("runs.jsonl"), &text[..cut]).unwrap();
    let output = folder.report();
    assert_eq!(output.status.code(), Some(0), "{}", complaint(&output));
    let notes = summary(folder.0.path())["notes"].to_string();
    assert!(notes.contains("incomplete: 5 of 6 runs were done"), "{notes}");
}

#[test]
fn runs_of_two_machines_are_not_mixed() {
    let _host = own_host::enter();
    let folder = Copy::new();
    let before = summary(folder.0.path())["cells"].clone();
    let text = fs::read_to_string(folder.path("runs.jsonl")).unwrap();
    let model = runs(folder.0.path())[0]["host"]["cpu_model"].to_string();
    assert!(text.contains(&model), "{model}");
    let others = text.replace(&model, "\"Imaginary 9000\"");
    fs::write(folder.path("runs.jsonl"), text + &others).unwrap();
    let words = ["runs.jsonl:7 and 5 more lines", "another machine", "Imaginary 9000", "compare"];
    folder.assert_reported_but([3, 3], &words);
    assert_eq!(summary(folder.0.path())["cells"], before);

    let folder = Copy::new();
    folder.replace("host.json", &model, "\"Imaginary 9000\"");
    let output = folder.resume();
    let said = complaint(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("started on another machine") && said.contains("start a new session"),
        "{said}"
    );
}

#[test]
fn a_folder_without_host_json_is_reported_but_not_resumed() {
    let _host = own_host::enter();
    let folder = Copy::new();
    fs::remove_file(folder.path("host.json")).unwrap();
    folder.assert_reported_but([3, 3], &["host.json", "summary.json"]);
    let host = |path: &Path| summary(path)["host"]["cpu_model"].clone();
    assert_eq!(host(folder.0.path()), host(whole()));
    let output = folder.resume();
    assert_eq!(output.status.code(), Some(2));
    assert!(complaint(&output).contains("host.json"), "{}", complaint(&output));
}

#[test]
fn a_folder_without_a_readable_plan_shows_its_last_summary() {
    let _host = own_host::enter();
    let harms: [(&str, &str, Harm<Copy>); 4] = [
        ("plan.json", "No such file", |it| fs::remove_file(it.path("plan.json")).unwrap()),
        ("plan.json", "damaged", |it| fs::write(it.path("plan.json"), "{\"cells\": [").unwrap()),
        ("runs.jsonl", "No such file", |it| fs::remove_file(it.path("runs.jsonl")).unwrap()),
        ("plan.json", "schema 0, but this program reads 1 to 2", |it| {
            it.replace("plan.json", "\"schema\": 2", "\"schema\": 0");
        }),
    ];
    for (name, what, harm) in harms {
        let folder = Copy::new();
        harm(&folder);
        let page = fs::read(folder.path("report.html")).unwrap();
        let output = folder.report();
        let (said, shown) = (complaint(&output), String::from_utf8_lossy(&output.stdout));
        assert!(matches!(output.status.code(), Some(1 | 2)), "{said}");
        for word in [name, what, "the tables come from", "not written again"] {
            assert!(said.contains(word), "{word}: {said}");
        }
        assert!(shown.contains("os.futex") && shown.contains("os.pipe"), "{shown}");
        assert_eq!(fs::read(folder.path("report.html")).unwrap(), page);

        folder.replace("summary.json", "\"schema\": 2", "\"schema\": 7");
        let output = folder.report();
        assert!(output.stdout.is_empty(), "figures of a layout that is not known");
        assert!(complaint(&output).contains(name), "{}", complaint(&output));
    }
}

#[test]
fn a_folder_of_the_previous_version_is_read() {
    let _host = own_host::enter();
    let folder = Copy::new();
    let strip = |name: &str, keys: &[&str]| {
        let text = fs::read_to_string(folder.path(name)).unwrap();
        let old = |line: &str| {
            let mut value: Value = serde_json::from_str(line).unwrap();
            keys.iter().for_each(|key| drop(value.as_object_mut().unwrap().remove(*key)));
            value.to_string() + "\n"
        };
        let lines: String = match name.ends_with("jsonl") {
            true => text.lines().map(old).collect(),
            false => old(&text),
        };
        fs::write(folder.path(name), lines).unwrap();
    };
    strip("plan.json", &["schema"]);
    strip("host.json", &["machine", "busy_percent"]);
    strip("runs.jsonl", &["host"]);
    let before = summary(folder.0.path())["cells"].clone();
    let output = folder.report();
    assert_eq!(output.status.code(), Some(0), "{}", complaint(&output));
    assert_eq!(summary(folder.0.path())["cells"], before);
}

#[test]
fn a_session_in_progress_is_reported_with_its_finished_runs() {
    let _host = own_host::enter();
    let folder = tempfile::tempdir().unwrap();
    let file = scenario(folder.path(), &["os.pipe"], 64, 1.0, 4);
    let out = folder.path().join("out");
    let lab = start(&mut bench(&["run", &file, "--out", out.to_str().unwrap()]));
    wait_for("the first run", || (!runs(&out).is_empty()).then_some(()));
    let output = finish(&mut bench(&["report", "--verbose", out.to_str().unwrap()]));
    let (said, shown) = (complaint(&output), String::from_utf8_lossy(&output.stdout));
    let seen = summary(&out);
    let lab = lab.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    let notes = seen["notes"].to_string();
    assert!(notes.contains("in progress: ") && notes.contains(" of 4 runs are done"), "{notes}");
    assert!(shown.contains("in progress: "), "{shown}");
    assert!((1..4).contains(&runs_of(&seen)[0]), "{seen}");
    assert_eq!(lab.status.code(), Some(0), "not disturbed: {}", complaint(&lab));
    assert_eq!(runs_of(&summary(&out)), [4]);
    assert!(!summary(&out)["notes"].to_string().contains("progress"));
}

#[test]
fn a_folder_without_results_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a-file");
    fs::write(&file, "").unwrap();
    for (path, what) in [(folder.path(), "No such file"), (&file, "Not a directory")] {
        for verb in ["report", "export"] {
            let output = finish(&mut bench(&[verb, path.to_str().unwrap()]));
            let said = complaint(&output);
            assert_eq!(output.status.code(), Some(2), "{said}");
            for word in ["plan.json", what, "name a results folder of `myelin bench run`"] {
                assert!(said.contains(word), "{word}: {said}");
            }
        }
    }
}

#[test]
fn a_read_only_folder_is_reported() {
    let _host = own_host::enter();
    let folder = Copy::new();
    let program = folder.path("myelin");
    fs::copy(env!("CARGO_BIN_EXE_myelin"), &program).unwrap();
    fs::remove_file(folder.path("summary.json")).unwrap();
    let mode = |path: &Path, mode| {
        let rights = std::os::unix::fs::PermissionsExt::from_mode(mode);
        fs::set_permissions(path, rights).unwrap();
    };
    mode(folder.0.path(), 0o555);
    let mut command = Command::new(&program);
    command.args(["bench", "report", "--verbose", folder.words()]);
    // SAFETY: geteuid has no arguments and cannot fail.
    if unsafe { libc::geteuid() } == 0 {
        command.uid(NOBODY).gid(NOBODY);
    }
    let output = finish(&mut command);
    mode(folder.0.path(), 0o755);
    let (said, shown) = (complaint(&output), String::from_utf8_lossy(&output.stdout));
    assert_eq!(output.status.code(), Some(1), "{said}");
    for word in ["summary.json", "ermission denied", "the records are intact"] {
        assert!(said.contains(word), "{word}: {said}");
    }
    assert!(shown.contains("os.futex"), "{shown}");
}

/// A user that owns nothing.
const NOBODY: u32 = 65534;
