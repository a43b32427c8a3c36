//! The live view in a user's environment: on a pseudo-terminal, whose screen an emulator draws.

use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZero;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::support::own_host;
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

/// A terminal and the lab that runs on it.
struct Session {
    lab: Child,
    master: File,
    /// Kept open, so that the last output is not lost.
    slave: OwnedFd,
    screen: Arc<Mutex<vt100::Parser>>,
    raw: Arc<Mutex<Vec<u8>>>,
    begin: Vec<u8>,
}

impl Session {
    /// Starts `command` on a terminal of so many rows and columns; its report goes there too.
    fn start(command: &mut Command, rows: u16, columns: u16) -> Self {
        let (master, slave) = terminal(rows, columns);
        let end = |slave: &OwnedFd| Stdio::from(slave.try_clone().unwrap());
        command.stdin(end(&slave)).stdout(end(&slave)).stderr(end(&slave));
        // SAFETY: only async-signal-safe calls between fork and exec; descriptor 0 is the terminal.
        unsafe {
            command.pre_exec(|| {
                if libc::setsid() < 0 || libc::ioctl(0, libc::TIOCSCTTY, 0) < 0 {
                    return Err(std::io::Error::last_os_error());
                }
                Ok(())
            });
        }
        let begin = settings(&slave);
        let lab = command.spawn().expect("myelin starts");
        let (height, width) = (number(rows), number(columns));
        let screen = Arc::new(Mutex::new(vt100::Parser::new(height, width, SCROLLED_MAX)));
        let raw = Arc::new(Mutex::new(Vec::new()));
        let mut output = master.try_clone().unwrap();
        let (shown, kept) = (Arc::clone(&screen), Arc::clone(&raw));
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut buffer) {
                kept.lock().unwrap().extend_from_slice(&buffer[..count]);
                shown.lock().unwrap().process(&buffer[..count]);
            }
        });
        Session { lab, master, slave, screen, raw, begin }
    }

    fn text(&self) -> String {
        self.screen.lock().unwrap().screen().contents()
    }

    /// All output so far.
    fn raw(&self) -> String {
        String::from_utf8_lossy(&self.raw.lock().unwrap()).into_owned()
    }

    /// Waits until the lab has ended, `last` is on the screen and a prompt would begin a line. The
    /// terminal is in its old state.
    fn finish(&mut self, last: &str) -> ExitStatus {
        let status = wait_for("the end of the lab", || self.lab.try_wait().unwrap());
        // Its output takes a moment to arrive here.
        let deadline = Instant::now() + Duration::from_secs(60);
        let at_rest = || self.screen.lock().unwrap().screen().cursor_position().1 == 0;
        while !(self.text().contains(last) && at_rest()) {
            assert!(Instant::now() < deadline, "no {last:?}, {status}:\n{}", self.text());
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(settings(&self.slave), self.begin, "the terminal's settings have changed");
        let screen = self.screen.lock().unwrap();
        let screen = screen.screen();
        assert!(!screen.hide_cursor() && !screen.alternate_screen());
        status
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.lab.kill();
        let _ = self.lab.wait();
    }
}

fn number(count: u16) -> NonZero<u16> {
    NonZero::new(count).expect("a screen has a size")
}

/// The two ends of a pseudo-terminal.
fn terminal(rows: u16, columns: u16) -> (File, OwnedFd) {
    let size = libc::winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    let (mut master, mut slave) = (-1, -1);
    let (name, settings) = (std::ptr::null_mut(), std::ptr::null());
    // SAFETY: both integers and the size are valid for the call; null is allowed for the others.
    let status = unsafe { libc::openpty(&mut master, &mut slave, name, settings, &size) };
    assert_eq!(status, 0, "openpty");
    for end in [master, slave] {
        // SAFETY: a descriptor that is ours.
        unsafe { libc::fcntl(end, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
    // SAFETY: openpty has made both, and nobody else owns them.
    unsafe { (File::from_raw_fd(master), OwnedFd::from_raw_fd(slave)) }
}

/// The settings of `stty`: modes, and special characters.
fn settings(terminal: &OwnedFd) -> Vec<u8> {
    // SAFETY: a termios is plain data, and valid for the call.
    let seen = unsafe {
        let mut seen: libc::termios = std::mem::zeroed();
        assert_eq!(libc::tcgetattr(terminal.as_raw_fd(), &mut seen), 0);
        seen
    };
    let modes = [seen.c_iflag, seen.c_oflag, seen.c_cflag, seen.c_lflag];
    modes.iter().flat_map(|mode| mode.to_ne_bytes()).chain(seen.c_cc).collect()
}

fn resize(terminal: &File, rows: u16, columns: u16) {
    let size = libc::winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the size is valid for the call.
    assert_eq!(unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCSWINSZ, &size) }, 0);
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

    let driver = |role| process_of(session.lab.id(), &["myelin-driver-os", role]);
    let drivers = ["ping", "pong"].map(|role| driver(role).expect("it runs"));

    resize(&session.master, 12, 40);
    session.screen.lock().unwrap().screen_mut().set_size(number(12), number(40));
    wait_for("the view in 40 columns", || {
        let text = session.text();
        (text.matches("▸ test").count() == 1 && text.contains(" left")).then_some(())
    });
    session.master.write_all(b"\x03").unwrap();
    let status = session.finish("interrupted; continue with");
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
    let status = session.finish("report.html");
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
    let status = session.finish("report.html");
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
        let status = session.finish("report.html");
        assert_eq!(status.code(), Some(0), "{}", session.text());
        let raw = session.raw();
        assert!(!raw.contains('\x1b'), "{kind}: {raw:?}");
        assert!(raw.contains("1/2 runs, ") && raw.contains("2/2 runs, "), "{kind}: {raw:?}");
    }
}

/// Lines kept above the screen.
const SCROLLED_MAX: usize = 1000;
