//! Whatever dies in mid-run: a clear message, a run marked, earlier results intact, nothing left.

use std::path::Path;
use std::process::{Child, Command, Output};

use crate::support::own_host;
use crate::support::{
    Traces, bench, complaint, finish, has_system, process_of, runs, scenario, signal, start,
    summary, wait_for,
};
use libc::{SIGINT, SIGKILL, SIGSTOP};

/// Starts three runs of `system` and does `harm` in the second, once it is measuring.
fn second_run_harmed(system: &str, folder: &Path, harm: impl FnOnce(&Child)) -> Output {
    let file = scenario(folder, &[system], 64, 1.5, 3);
    let out = folder.join("out");
    let lab = start(&mut bench(&["run", &file, "--out", out.to_str().unwrap()]));
    wait_for("the first run", || (!runs(&out).is_empty()).then_some(()));
    wait_for("the second run to measure", || {
        let ping = process_of(lab.id(), &["myelin-driver", "run ping"])?;
        is_measuring(ping).then_some(())
    });
    harm(&lab);
    lab.wait_with_output().expect("the lab ends")
}

/// A ping that exchanges messages sleeps and wakes thousands of times a second; one that is still
/// getting there does not.
fn is_measuring(ping: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{ping}/status")).unwrap_or_default();
    let switches = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    switches.and_then(|count| count.trim().parse::<u64>().ok()).is_some_and(|count| count > 1_000)
}

fn assert_one_run_failed(folder: &Path, output: &Output, expected: &str) {
    let out = folder.join("out");
    let complaint = complaint(output);
    assert!(complaint.contains(expected), "{expected:?} is not in {complaint:?}");
    let runs = runs(&out);
    assert_eq!(runs.len(), 3, "{complaint}");
    let failures: Vec<&str> = runs.iter().filter_map(|run| run["failure"].as_str()).collect();
    assert_eq!(failures.len(), 1, "{failures:?}");
    assert!(failures[0].contains(expected), "{failures:?}");
    let cell = &summary(&out)["cells"][0];
    assert_eq!(cell["valid"], true);
    assert_eq!(cell["runs"], 2);
    assert!(cell["invalid_reasons"][0].as_str().unwrap().contains(expected), "{cell}");
    assert!(out.join("report.html").exists() && out.join("report.md").exists());
    assert_eq!(output.status.code(), Some(0), "{complaint}");
}

fn harm_role(role: &str, harm: i32) -> impl FnOnce(&Child) {
    let words = format!("run {role}");
    move |lab| signal(process_of(lab.id(), &["myelin-driver", &words]).expect(&words), harm)
}

#[test]
fn a_killed_ping_makes_its_run_fail() {
    let _host = own_host::enter();
    let (folder, before) = (tempfile::tempdir().unwrap(), Traces::look());
    let output = second_run_harmed("os.pipe", folder.path(), harm_role("ping", SIGKILL));
    assert_one_run_failed(folder.path(), &output, "ping was killed by signal 9");
    before.assert_unchanged();

    let out = folder.path().join("out");
    let output = finish(&mut bench(&["run", "--resume", out.to_str().unwrap()]));
    assert_eq!(output.status.code(), Some(0), "{}", complaint(&output));
    let cell = &summary(&out)["cells"][0];
    assert_eq!(cell["runs"], 3, "the failed run is made up for: {cell}");
    assert_eq!(cell["invalid_reasons"].as_array().unwrap().len(), 0);
}

#[test]
fn a_killed_pong_makes_its_run_fail() {
    let _host = own_host::enter();
    let (folder, before) = (tempfile::tempdir().unwrap(), Traces::look());
    let output = second_run_harmed("os.futex", folder.path(), harm_role("pong", SIGKILL));
    assert_one_run_failed(folder.path(), &output, "pong was killed by signal 9");
    before.assert_unchanged();
}

#[test]
fn a_pong_that_never_answers_makes_its_run_fail() {
    let _host = own_host::enter();
    let (folder, before) = (tempfile::tempdir().unwrap(), Traces::look());
    let output = second_run_harmed("os.unix-dgram", folder.path(), harm_role("pong", SIGSTOP));
    assert_one_run_failed(folder.path(), &output, "pong did not answer 5 messages in a row");
    before.assert_unchanged();
}

#[test]
fn a_dead_roudi_makes_its_run_fail() {
    let _host = own_host::enter();
    if !has_system("cyclonedds.iceoryx") {
        return;
    }
    let (folder, before) = (tempfile::tempdir().unwrap(), Traces::look());
    let output = second_run_harmed("cyclonedds.iceoryx", folder.path(), |lab| {
        signal(process_of(lab.id(), &["iox-roudi"]).expect("RouDi runs"), SIGKILL);
    });
    assert_one_run_failed(folder.path(), &output, "oudi");
    before.assert_unchanged();
}

#[test]
fn ctrl_c_keeps_finished_runs_and_resume_makes_the_others() {
    let _host = own_host::enter();
    let (folder, before) = (tempfile::tempdir().unwrap(), Traces::look());
    let odd = folder.path().join("my robot's mÿelin");
    std::fs::create_dir(&odd).unwrap();
    let output = second_run_harmed("os.unix-stream", &odd, |lab| signal(lab.id(), SIGINT));
    before.assert_unchanged();
    let out = odd.join("out");
    assert_eq!(output.status.code(), Some(130), "{}", complaint(&output));
    let said = complaint(&output);
    let line = said.lines().find_map(|line| line.strip_prefix("interrupted; continue with: "));
    assert_eq!(runs(&out).len(), 1);
    assert!(out.join("report.html").exists());
    let notes = summary(&out)["notes"].to_string();
    assert!(notes.contains("1 of 3 runs"), "{notes}");

    let first = runs(&out)[0].clone();
    let mut pasted = Command::new("sh");
    pasted.args(["-c", line.expect(&said)]);
    pasted.envs(bench(&[]).get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = finish(&mut pasted);
    assert_eq!(output.status.code(), Some(0), "{line:?}: {}", complaint(&output));
    assert_eq!(runs(&out).len(), 3);
    assert_eq!(runs(&out)[0], first, "a finished run was measured again");
    assert_eq!(summary(&out)["cells"][0]["runs"], 3);
}

#[test]
fn a_killed_lab_leaves_nothing_and_can_be_resumed() {
    let _host = own_host::enter();
    let system =
        if has_system("cyclonedds.iceoryx") { "cyclonedds.iceoryx" } else { "os.spin-futex" };
    let (folder, before) = (tempfile::tempdir().unwrap(), Traces::look());
    second_run_harmed(system, folder.path(), |lab| signal(lab.id(), SIGKILL));
    before.assert_unchanged();
    let out = folder.path().join("out");
    assert_eq!(runs(&out).len(), 1);
    let output = finish(&mut bench(&["run", "--resume", out.to_str().unwrap()]));
    assert_eq!(output.status.code(), Some(0), "{}", complaint(&output));
    assert_eq!(runs(&out).len(), 3);
    before.assert_unchanged();
}

#[test]
fn a_full_disk_ends_the_session_and_keeps_finished_runs() {
    let _host = own_host::enter();
    let (folder, before) = (tempfile::tempdir().unwrap(), Traces::look());
    let disk = folder.path().join("disk");
    std::fs::create_dir(&disk).unwrap();
    let mounted = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=256k", "tmpfs"])
        .arg(&disk)
        .status();
    if !mounted.is_ok_and(|status| status.success()) {
        println!("skipped: mounting a small file system needs root");
        return;
    }
    // Every record kept, and random enough not to compress: the third run or so does not fit.
    let file = scenario(folder.path(), &["os.futex"], 64, 0.2, 30);
    let text = std::fs::read_to_string(&file).unwrap().replace("record_every = 100", "");
    std::fs::write(&file, text).unwrap();
    let out = disk.join("out");
    let output = finish(&mut bench(&["run", &file, "--out", out.to_str().unwrap()]));
    let complaint = complaint(&output);
    let kept = runs(&out);
    let samples = |run: &serde_json::Value| {
        let directory = out.join(run["directory"].as_str().unwrap());
        directory.join("ping.samples.zst").metadata().map(|data| data.len())
    };
    let intact = kept.iter().all(|run| samples(run).is_ok_and(|bytes| bytes > 0));
    let unmounted = std::process::Command::new("umount").arg(&disk).status();
    assert!(unmounted.is_ok_and(|status| status.success()));
    assert_eq!(output.status.code(), Some(1), "{complaint}");
    assert!(complaint.contains("No space left"), "{complaint}");
    assert!(complaint.contains("intact"), "{complaint}");
    assert!(kept.len() < 30 && intact);
    before.assert_unchanged();
}
