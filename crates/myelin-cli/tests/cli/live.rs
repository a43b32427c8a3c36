//! The live view in a user's environment: on a pseudo-terminal, whose screen an emulator draws.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::support::own_host;
use crate::support::pty::Session;
use crate::support::{bench, process_of, runs, scenario};

/// Like [`crate::support::wait_for`], with a far longer limit: the drawing thread has the lowest
/// priority, and has to wait for all other work.
fn wait_for<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(600);
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(Instant::now() < deadline, "waited ten minutes for: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// `myelin bench run` of one cell of a pipe.
fn run(folder: &Path, rate_hz: Option<f64>, seconds: f64, runs: u32) -> Command {
    let path = scenario(folder, &["os.pipe"], 64, seconds, runs);
    if let Some(rate_hz) = rate_hz {
        let text = std::fs::read_to_string(&path).unwrap();
        let rate = format!("rate_hz = [{rate_hz:?}]\nduration_s");
        std::fs::write(&path, text.replace("duration_s", &rate)).unwrap();
    }
    let mut command = bench(&["run", &path, "--out", folder.join("out").to_str().unwrap()]);
    command.env("TERM", "xterm-256color").env_remove("NO_COLOR");
    command
}

#[test]
fn progress_is_shown_and_ctrl_c_restores_the_terminal() {
    let _host = own_host::enter();
    let folder = tempfile::tempdir().unwrap();
    // Far longer than the test waits: Ctrl-C ends it.
    let mut session = Session::start(&mut run(folder.path(), Some(1000.0), 3600.0, 3), 30, 100);
    wait_for("messages of the run", || {
        let text = session.text();
        let made = text.split("  messages ").nth(1)?;
        made.starts_with(char::is_numeric).then_some(())
    });
    let text = session.text();
    assert!(text.contains("▸ test os.pipe default 64B-1000Hz, run 1 of 3"), "{text}");
    assert!(text.contains("0/3 runs") && text.contains(" left"), "{text}");
    assert_eq!(text.matches("▸ test").count(), 1, "drawn in place:\n{text}");
    assert!(text.contains("3 runs, about "), "the log stays above:\n{text}");

    let driver = |role| process_of(session.process.id(), &["myelin-driver-os", role]);
    let drivers = ["ping", "pong"].map(|role| driver(role).expect("it runs"));

    session.resize(12, 40);
    wait_for("the view in 40 columns", || {
        let text = session.text();
        (text.matches("▸ test").count() == 1 && text.contains(" left")).then_some(())
    });
    session.press("\x03");
    let status = session.finish_with("interrupted; continue with");
    assert_eq!(status.code(), Some(130), "{}", session.text());
    assert!(!session.text().contains("▸ test"), "{}", session.text());
    assert!(session.raw().contains("report: "));
    for driver in drivers {
        let gone = || (!Path::new(&format!("/proc/{driver}")).exists()).then_some(());
        wait_for("the drivers to be gone", gone);
    }
}

#[test]
fn the_last_runs_are_shown_with_their_figures_and_the_report_comes_last() {
    let _host = own_host::enter();
    let folder = tempfile::tempdir().unwrap();
    let mut command = run(folder.path(), None, 0.3, 3);
    let mut session = Session::start(command.env("NO_COLOR", "1"), 50, 120);
    let status = session.finish_with("report.html");
    let text = session.text();
    assert_eq!(status.code(), Some(0), "{text}");
    assert!(text.trim_end().lines().last().unwrap().starts_with("report: "), "{text}");
    assert!(!text.contains("last runs") && !text.contains('▸'), "{text}");
    let raw = session.raw();
    assert!(raw.contains("last runs") && raw.contains("os.pipe default 64B 2/3"), "{raw:?}");
    let colours = raw.split("\x1b[").skip(1).filter(|rest| {
        rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';').starts_with('m')
    });
    assert_eq!(colours.count(), 0, "NO_COLOR: {raw:?}");
    assert_eq!(runs(&folder.path().join("out")).len(), 3);
}

#[test]
fn an_invalid_run_is_reported_when_it_ends() {
    let _host = own_host::enter();
    let folder = tempfile::tempdir().unwrap();
    // More than a pipe carries.
    let mut command = run(folder.path(), Some(1e6), 0.01, 1);
    let mut session = Session::start(&mut command, 50, 200);
    let status = session.finish_with("report.html");
    assert_eq!(status.code(), Some(1), "{}", session.text());
    let raw = session.raw();
    assert!(raw.contains("run 1 of os.pipe default 64B-1000000Hz is not valid: reached "), "{raw}");
    assert!(raw.contains("! p50 ") && raw.contains("os.pipe default 64B-1000000Hz 1/1"), "{raw}");
}

#[test]
fn plain_lines_are_used_on_request_and_on_dumb_terminals() {
    let _host = own_host::enter();
    for (option, kind) in [(Some("--plain"), "xterm-256color"), (None, "dumb")] {
        let folder = tempfile::tempdir().unwrap();
        let mut command = run(folder.path(), None, 0.2, 2);
        command.args(option).env("TERM", kind).env("NO_COLOR", "1");
        let mut session = Session::start(&mut command, 50, 120);
        let status = session.finish_with("report.html");
        assert_eq!(status.code(), Some(0), "{}", session.text());
        let raw = session.raw();
        assert!(!raw.contains('\x1b'), "{kind}: {raw:?}");
        assert!(raw.contains("1/2 runs, ") && raw.contains("2/2 runs, "), "{kind}: {raw:?}");
    }
}
