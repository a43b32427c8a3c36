//! A command on a pseudo-terminal, whose screen an emulator draws.

use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZero;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A terminal and the command that runs on it.
pub struct Session {
    /// The command.
    pub process: Child,
    /// `None`: it has been closed.
    master: Option<File>,
    /// Kept open, so that the last output is not lost.
    slave: Option<OwnedFd>,
    screen: Arc<Mutex<vt100::Parser>>,
    raw: Arc<Mutex<Vec<u8>>>,
    begin: Vec<u8>,
    is_closed: Arc<AtomicBool>,
    reader: Option<JoinHandle<()>>,
}

impl Session {
    /// Starts `command` on a terminal of so many rows and columns.
    pub fn start(command: &mut Command, rows: u16, columns: u16) -> Self {
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
        let process = command.spawn().expect("it starts");
        // The command keeps copies of the terminal until it is dropped or used again.
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let (height, width) = (number(rows), number(columns));
        let screen = Arc::new(Mutex::new(vt100::Parser::new(height, width, SCROLLED_MAX)));
        let raw = Arc::new(Mutex::new(Vec::new()));
        let mut output = master.try_clone().unwrap();
        let (shown, kept) = (Arc::clone(&screen), Arc::clone(&raw));
        let is_closed = Arc::new(AtomicBool::new(false));
        let has_to_end = Arc::clone(&is_closed);
        let reader = std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while !has_to_end.load(Ordering::Relaxed) {
                if !is_readable(&output) {
                    continue;
                }
                let Ok(count @ 1..) = output.read(&mut buffer) else { break };
                kept.lock().unwrap().extend_from_slice(&buffer[..count]);
                shown.lock().unwrap().process(&buffer[..count]);
            }
        });
        let (master, slave, reader) = (Some(master), Some(slave), Some(reader));
        Session { process, master, slave, screen, raw, begin, is_closed, reader }
    }

    /// The screen.
    pub fn text(&self) -> String {
        self.screen.lock().unwrap().screen().contents()
    }

    /// All output so far.
    pub fn raw(&self) -> String {
        String::from_utf8_lossy(&self.raw.lock().unwrap()).into_owned()
    }

    /// Presses keys.
    pub fn press(&mut self, keys: &str) {
        let master = self.master.as_mut().expect("the terminal is open");
        master.write_all(keys.as_bytes()).unwrap();
    }

    /// Changes the size of the terminal.
    pub fn resize(&mut self, rows: u16, columns: u16) {
        let size = libc::winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        let master = self.master.as_ref().expect("the terminal is open");
        self.screen.lock().unwrap().screen_mut().set_size(number(rows), number(columns));
        // SAFETY: the size is valid for the call.
        assert_eq!(unsafe { libc::ioctl(master.as_raw_fd(), libc::TIOCSWINSZ, &size) }, 0);
    }

    /// Waits until the screen is so, under a watchdog, and gives it.
    pub fn wait(&self, what: &str, is_so: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let text = self.text();
            if is_so(&text) {
                return text;
            }
            assert!(Instant::now() < deadline, "waited a minute for: {what}\n{text}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until the command has ended and a prompt would begin a line. The terminal is in its
    /// old state.
    pub fn finish(&mut self) -> ExitStatus {
        self.finish_with("")
    }

    /// The same, with `last` on the screen.
    pub fn finish_with(&mut self, last: &str) -> ExitStatus {
        // The drawing thread of the lab has the lowest priority, and has to wait for all other work.
        let deadline = Instant::now() + Duration::from_secs(600);
        let status = loop {
            if let Some(status) = self.process.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < deadline, "it does not end:\n{}", self.text());
            std::thread::sleep(Duration::from_millis(5));
        };
        // Its output takes a moment to arrive here.
        let deadline = Instant::now() + Duration::from_secs(60);
        let at_rest = || self.screen.lock().unwrap().screen().cursor_position().1 == 0;
        while !(self.text().contains(last) && at_rest() && self.has_old_screen()) {
            assert!(Instant::now() < deadline, "no {last:?}, {status}:\n{}", self.text());
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(self.has_old_settings(), "the terminal's settings have changed");
        status
    }

    /// Whether the terminal has the settings that it had before.
    pub fn has_old_settings(&self) -> bool {
        settings(self.slave.as_ref().expect("the terminal is open")) == self.begin
    }

    /// Whether the old screen is shown, and the cursor.
    pub fn has_old_screen(&self) -> bool {
        let screen = self.screen.lock().unwrap();
        !screen.screen().hide_cursor() && !screen.screen().alternate_screen()
    }

    /// Closes the terminal, as a window that is closed.
    pub fn hang_up(&mut self) {
        (self.slave, self.master) = (None, None);
        self.is_closed.store(true, Ordering::Relaxed);
        self.reader.take().expect("the terminal is open").join().unwrap();
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn number(count: u16) -> NonZero<u16> {
    NonZero::new(count).expect("a screen has a size")
}

/// The two ends of a pseudo-terminal.
pub fn terminal(rows: u16, columns: u16) -> (File, OwnedFd) {
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

/// Whether there is something to read soon, or the terminal has gone.
fn is_readable(master: &File) -> bool {
    let mut poll = libc::pollfd { fd: master.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: the one entry is valid for the call.
    unsafe { libc::poll(&mut poll, 1, 20) > 0 }
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

/// Lines kept above the screen.
const SCROLLED_MAX: usize = 1000;
