//! Repeats that go on until medians are known, and sessions that are cut off meanwhile. The
//! synthetic driver's delays follow from the seed, so the right behaviour of a session is known
//! exactly.

use std::fs;
use std::path::Path;
use std::process::Output;

use crate::support::own_host;
use crate::support::{bench, complaint, finish, runs, signal, start, summary, wait_for};
use libc::SIGKILL;

/// Three cells. With a number of messages the delays of every run have the same quantiles; with a
/// duration alone each run draws its own, and medians differ by some per cent.
fn scenario(folder: &Path, extent: &str, plan: &str) -> String {
    let path = folder.join("scenario.toml");
    let text = format!(
        "name = \"test\"\nabout = \"a test\"\n\n[workload]\nkind = \"roundtrip\"\n\
         payload_bytes = [0, 64, 128]\n{extent}\nwarmup_messages = 10\n\n[plan]\n\
         systems = [\"synthetic\"]\ntunings = [\"default\"]\ntopology = \"two-processes\"\n{plan}\n\
         \n[options.synthetic]\nclock = \"virtual\"\n"
    );
    fs::write(&path, text).expect("a scenario file");
    path.to_string_lossy().into_owned()
}

/// Some 200 messages.
const VARYING: &str = "duration_s = 0.005";
const FIXED: &str = "messages = 500";

/// Starts with 15 runs; cells become narrow after different numbers of runs, or never.
const ADAPTIVE: &str = "runs = 5\nruns_max = 12\ninterval_percent = 4";

fn run(file: &str, out: &Path, more: &[&str]) -> Output {
    let out = out.to_str().unwrap();
    finish(bench(&["run", "--verbose", file, "--out", out, "--seed", "11"]).args(more))
}

fn succeed(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", complaint(output));
    complaint(output)
}

/// Order, cell and repeat of each run kept.
fn plan_of(out: &Path) -> Vec<[u64; 3]> {
    let number = |run: &serde_json::Value, key: &str| run[key].as_u64().expect(key);
    runs(out).iter().map(|run| ["order", "cell", "repeat"].map(|key| number(run, key))).collect()
}

fn counts(out: &Path) -> [usize; 3] {
    [0, 1, 2].map(|cell| plan_of(out).iter().filter(|run| run[1] == cell).count())
}

#[test]
fn varying_delays_reach_the_limit_and_the_report_says_so() {
    let _alone = own_host::alone();
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let plan = "runs = 5\nruns_max = 8\ninterval_percent = 0.01";
    let output = run(&scenario(folder.path(), VARYING, plan), &out, &[]);
    let said = succeed(&output);
    assert!(said.contains("15 runs, about ") && said.contains("; up to 24 runs, "), "{said}");
    assert!(said.contains("test: warm-up 10 messages before each run: back to back"), "{said}");
    assert!(
        said.contains("3 of 3 cells have an interval wider than requested: another block of 3"),
        "{said}"
    );
    assert!(said.contains("24/24 runs, "), "{said}");
    assert_eq!(counts(&out), [8; 3]);
    for cell in summary(&out)["cells"].as_array().unwrap() {
        assert_eq!(cell["repeats"]["is_narrow"], false, "{cell}");
        assert!(cell["repeats"]["reached_percent"].as_f64() > Some(0.01), "{cell}");
        assert_eq!(cell["runs"], 8);
    }
    let notes = summary(&out)["notes"].to_string();
    assert!(!notes.contains("incomplete"), "the limit is an end: {notes}");
    let expected = "interval of the median wider than requested after 8 runs: synthetic";
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    let words = table.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(expected), "{table}");
    assert!(fs::read_to_string(out.join("report.md")).unwrap().contains(expected));
    let csv = fs::read_to_string(out.join("summary.csv")).unwrap();
    assert!(csv.lines().next().unwrap().contains(",interval_is_narrow,"), "{csv}");
}

#[test]
fn a_number_of_runs_on_the_command_line_is_exact() {
    let _alone = own_host::alone();
    let folder = tempfile::tempdir().unwrap();
    let file = scenario(folder.path(), VARYING, "runs = 5\nruns_max = 8\ninterval_percent = 0.01");
    for (more, expected) in [(&["--runs", "3"][..], [3; 3]), (&["--quick"][..], [2; 3])] {
        let out = folder.path().join(more[0]);
        succeed(&run(&file, &out, more));
        assert_eq!(counts(&out), expected);
        assert!(summary(&out)["cells"][0].get("repeats").is_none());
    }
}

/// The runs of a session that is never cut off.
fn whole(file: &str) -> Vec<[u64; 3]> {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("whole");
    succeed(&run(file, &out, &[]));
    let counts = counts(&out);
    let differ = counts.contains(&12) && counts.iter().any(|count| *count < 12);
    assert!(differ && plan_of(&out).len() > 20, "{counts:?}: nothing is decided in mid-way");
    plan_of(&out)
}

/// Starts or resumes, and kills it once `after` runs are kept.
fn kill(file: &str, out: &Path, after: usize) {
    let path = out.to_str().unwrap();
    let mut command = match out.exists() {
        true => bench(&["run", "--resume", path]),
        false => bench(&["run", file, "--out", path, "--seed", "11"]),
    };
    let lab = start(&mut command);
    wait_for("enough runs", || (runs(out).len() >= after).then_some(()));
    signal(lab.id(), SIGKILL);
    lab.wait_with_output().expect("the lab ends");
}

fn assert_the_rest_is_made_once(out: &Path, made: &[[u64; 3]]) {
    let before = fs::read(out.join("runs.jsonl")).unwrap();
    let kept = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    succeed(&finish(&mut bench(&["run", "--resume", out.to_str().unwrap()])));
    let after = fs::read(out.join("runs.jsonl")).unwrap();
    assert!(after.starts_with(&before[..kept]), "a line was rewritten");
    assert_eq!(plan_of(out), made, "not the runs of a session that was never cut off");
    let directories = fs::read_dir(out.join("runs")).unwrap().count();
    assert_eq!(directories, made.len(), "a run was measured and forgotten");
    assert!(!summary(out)["notes"].to_string().contains("incomplete"));
    // Resumed again, it has nothing left to do.
    succeed(&finish(&mut bench(&["run", "--resume", out.to_str().unwrap()])));
    assert_eq!(fs::read(out.join("runs.jsonl")).unwrap(), after);
}

#[test]
fn a_session_killed_at_any_point_measures_no_run_twice() {
    let _alone = own_host::alone();
    let folder = tempfile::tempdir().unwrap();
    let file = scenario(folder.path(), VARYING, ADAPTIVE);
    let made = whole(&file);
    let out = folder.path().join("out");
    // In the planned runs, and in the middle of a further block; at every other point: the tests of
    // the lab's session.
    for after in [4, 17] {
        kill(&file, &out, after);
    }
    assert_the_rest_is_made_once(&out, &made);
}

#[test]
fn a_drifting_run_is_valid_and_noted() {
    let _alone = own_host::alone();
    let folder = tempfile::tempdir().unwrap();
    let file = scenario(folder.path(), FIXED, "runs = 2");
    let text = fs::read_to_string(&file).unwrap() + "drift_percent = 90\n";
    fs::write(&file, text).unwrap();
    let out = folder.path().join("out");
    succeed(&run(&file, &out, &[]));
    let cell = &summary(&out)["cells"][0];
    assert_eq!((&cell["valid"], &cell["unsettled_runs"]), (&true.into(), &2.into()), "{cell}");
    assert!(cell.get("repeats").is_none(), "nobody has asked: {cell}");
    let notes: Vec<&str> =
        cell["notes"].as_array().unwrap().iter().filter_map(|note| note.as_str()).collect();
    let drift = notes.iter().find_map(|note| {
        let figures = note.strip_prefix("run 1 never settled: median drifted from ")?;
        let (from, to) = figures.strip_suffix(" µs")?.split_once(" to ")?;
        Some((from.parse::<f64>().unwrap(), to.parse::<f64>().unwrap()))
    });
    // 20 µs at first and 38 µs at last; the values at a sixth and five sixths of the way represent
    // the thirds.
    let (from, to) = drift.unwrap_or_else(|| panic!("{notes:?}"));
    assert!((20.0..27.0).contains(&from) && (31.0..40.0).contains(&to), "{from} {to}");
}
