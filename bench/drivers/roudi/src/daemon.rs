//! Starts, watches and stops RouDi, the daemon of iceoryx.
//!
//! RouDi is ready after 43 ms. It spends nearly all of that on touching its 63 MiB of bookkeeping
//! (which no flag or configuration makes smaller), and 1 ms more for each 1.5 MiB of pools. It
//! stops in 120 ms, two periods of its threads.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufRead, BufReader, PipeReader, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use myelin_bench_kit::protocol::Prepare;
use myelin_bench_kit::{Daemon, Error};

use crate::leftovers;
use crate::pools::{self, Pool};

/// Version of the installed RouDi as it reports it; an error says what is missing.
pub fn version() -> Result<String, String> {
    let program = program().ok_or(NOT_INSTALLED)?;
    let output = Command::new(&program).arg("--version").stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("{}: {error}", program.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let version = text.lines().find_map(|line| line.strip_prefix("RouDi version: "));
    Ok(version.unwrap_or("of unknown version").trim().to_owned())
}

/// A RouDi that is ready.
pub struct RouDi {
    child: Child,
    /// Reads RouDi's output and ends with it.
    reader: Option<JoinHandle<()>>,
    last_words: LastWords,
}

impl RouDi {
    /// Starts RouDi with `pools` and returns when it reports that it is ready. Its configuration
    /// and its output are stored in the run's folder.
    pub fn start(prepare: &Prepare, pools: &[Pool]) -> Result<RouDi, Error> {
        let until = Instant::now() + Duration::from_nanos(prepare.match_timeout_ns);
        pools::check_room(pools)?;
        let program = program().ok_or_else(|| Error::new(format!("iox-roudi: {NOT_INSTALLED}")))?;
        // The RouDi of a killed session takes a moment to end.
        let patience = Instant::now() + STOPS_WITHIN;
        while let Some(pid) = leftovers::living_daemon() {
            if Instant::now() >= patience {
                return Err(another_lives(pid));
            }
            std::thread::sleep(STOP_CHECK);
        }
        leftovers::clean()?;
        let configuration = prepare.directory.join("roudi.toml");
        std::fs::write(&configuration, pools::toml(pools))?;
        let log = File::create(prepare.directory.join("roudi.log"))?;
        let (output, child) = spawn(&program, &configuration)?;
        let (ready, is_ready) = channel();
        let last_words = LastWords::default();
        let reader = std::thread::spawn({
            let last_words = last_words.clone();
            move || follow(output, log, &last_words, &ready)
        });
        let mut roudi = RouDi { child, reader: Some(reader), last_words };
        match roudi.wait_until_ready(&is_ready, until) {
            Ok(()) => Ok(roudi),
            Err(error) => {
                let _ = roudi.stop();
                Err(error)
            }
        }
    }

    fn wait_until_ready(&mut self, is_ready: &Receiver<()>, until: Instant) -> Result<(), Error> {
        match is_ready.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(()) => Ok(()),
            Err(RecvTimeoutError::Timeout) => {
                let words = self.last_words.quote();
                Err(Error::new(format!("RouDi was not ready in time; its last output: {words}"))
                    .remedy("see roudi.log in the run's folder; match_timeout_ms sets the limit"))
            }
            Err(RecvTimeoutError::Disconnected) => {
                let status = self.child.wait()?;
                if self.last_words.contain(LOCKED) {
                    return Err(another_lives(leftovers::living_daemon().unwrap_or(0)));
                }
                Err(self.ended(status))
            }
        }
    }

    fn ended(&self, status: ExitStatus) -> Error {
        let how = match (status.signal(), status.code()) {
            (Some(signal), _) => format!("was killed by signal {signal}"),
            (None, code) => format!("ended with status {}", code.unwrap_or(-1)),
        };
        let words = self.last_words.quote();
        Error::new(format!("RouDi {how}; its last output: {words}"))
            .remedy("see roudi.log in the run's folder")
    }

    /// Waits until it has ended, at most until `until`.
    fn wait(&mut self, until: Instant) -> Result<bool, Error> {
        while self.child.try_wait()?.is_none() {
            if Instant::now() >= until {
                return Ok(false);
            }
            std::thread::sleep(STOP_CHECK);
        }
        Ok(true)
    }
}

impl Daemon for RouDi {
    fn pids(&self) -> Vec<u32> {
        vec![self.child.id()]
    }

    fn check(&mut self) -> Result<(), Error> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => Err(self.ended(status)),
        }
    }

    fn stop(&mut self) -> Result<(), Error> {
        if self.child.try_wait()?.is_none() {
            // SAFETY: the child has not been waited for, so its process id is still its own.
            unsafe { libc::kill(self.child.id() as libc::pid_t, libc::SIGTERM) };
            if !self.wait(Instant::now() + STOPS_WITHIN)? {
                self.child.kill()?;
                self.child.wait()?;
            }
        }
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
        leftovers::clean()
    }
}

impl Drop for RouDi {
    fn drop(&mut self) {
        let _ = self.stop();
    }
}

/// Starts RouDi; its standard output and standard error go into the returned pipe.
fn spawn(program: &Path, configuration: &Path) -> Result<(PipeReader, Child), Error> {
    let (output, input) = std::io::pipe()?;
    let mut command = Command::new(program);
    command.arg("-c").arg(configuration).args(FLAGS);
    command.stdin(Stdio::null()).stdout(input.try_clone()?).stderr(input);
    // Not reached by Ctrl-C at the terminal, because it must outlive ping and pong.
    command.process_group(0);
    let parent = std::process::id() as libc::pid_t;
    let die_with_us = move || {
        // SAFETY: both calls are async-signal-safe and access no memory of ours.
        let (set, orphan) = unsafe {
            (libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM), libc::getppid() != parent)
        };
        if set != 0 || orphan {
            return Err(std::io::Error::from_raw_os_error(libc::ESRCH));
        }
        Ok(())
    };
    // SAFETY: the closure only makes the two system calls above.
    unsafe { command.pre_exec(die_with_us) };
    let child = command.spawn();
    let child = child.map_err(|error| Error::new(format!("{}: {error}", program.display())))?;
    // `command` is dropped here, and with it our ends for writing: the pipe ends with RouDi.
    Ok((output, child))
}

/// Copies RouDi's output into the log and reports when it is ready.
fn follow(output: PipeReader, mut log: File, last_words: &LastWords, ready: &Sender<()>) {
    for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
        let _ = log.write_all(&line).and_then(|()| log.write_all(b"\n"));
        let line = plain(&String::from_utf8_lossy(&line));
        last_words.push(&line);
        if line.contains(READY) {
            let _ = ready.send(());
        }
    }
}

/// The last lines of RouDi's output.
#[derive(Clone, Default)]
struct LastWords(Arc<Mutex<VecDeque<String>>>);

impl LastWords {
    fn push(&self, line: &str) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == LAST_LINES {
            lines.pop_front();
        }
        lines.push_back(line.to_owned());
    }

    fn contain(&self, text: &str) -> bool {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().any(|line| line.contains(text))
    }

    fn quote(&self) -> String {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.back().map_or("none".to_owned(), |line| format!("\"{line}\""))
    }
}

/// `line` without the colours of a terminal.
fn plain(line: &str) -> String {
    let mut parts = line.split('\x1b');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once('m').map_or(part, |(_, rest)| rest))
}

fn another_lives(pid: u32) -> Error {
    let (who, remedy) = match pid {
        0 => ("another RouDi".to_owned(), "stop it".to_owned()),
        pid => (format!("another RouDi (pid {pid})"), format!("stop it: kill {pid}")),
    };
    Error::new(format!("{who} is running; iceoryx allows only one on a host")).remedy(remedy)
}

/// The path of RouDi.
fn program() -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders)
        .map(|folder| folder.join("iox-roudi"))
        .find(|file| file.is_file())
}

const NOT_INSTALLED: &str = "not installed: apt-get install iceoryx";
/// `-m on`: RouDi takes back what a killed process held, 1.5 s later; without it, it never would.
/// That has no measurable cost: start, matching and exit take as long without it, and processes
/// send signs of life in either case. `-k 1`: when RouDi ends, it sends SIGTERM to every process
/// still registered and waits for them; the default is 45 s. A process that has just died and is
/// not yet waited for is still registered.
const FLAGS: [&str; 4] = ["-m", "on", "-k", "1"];
/// RouDi's output, which it flushes, when it accepts registrations.
const READY: &str = "RouDi is ready for clients";
/// RouDi's output if another one is running.
const LOCKED: &str = "Could not acquire lock, is RouDi still running?";
const LAST_LINES: usize = 8;
const STOPS_WITHIN: Duration = Duration::from_secs(3);
const STOP_CHECK: Duration = Duration::from_millis(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_left_out() {
        assert_eq!(plain("\x1b[0;90m12:00 \x1b[0;1;93m[Warning]\x1b[m: no"), "12:00 [Warning]: no");
        assert_eq!(plain("as it is"), "as it is");
        assert_eq!(plain("broken \x1b"), "broken ");
    }

    #[test]
    fn only_the_last_lines_of_output_are_kept() {
        let words = LastWords::default();
        assert_eq!(words.quote(), "none");
        for line in 0..2 * LAST_LINES {
            words.push(&format!("line {line}"));
        }
        assert!(!words.contain("line 0"));
        assert!(words.contain("line 10"));
        assert_eq!(words.quote(), "\"line 15\"");
    }
}
