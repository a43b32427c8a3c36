//! A node: a process of `node.py`.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use crate::host::Host;
use crate::library::library;

/// The ROS 2 middleware of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rmw {
    Myelin,
    /// The middleware of the wheels.
    FastRtps,
}

/// A running node; killed when dropped.
pub struct Node {
    child: Child,
    lines: Receiver<String>,
    /// Its standard error: ROS 2's log.
    log: Receiver<String>,
}

impl Node {
    /// Starts it on a host, to be found on the loopback interface; node.py's usage text describes
    /// `words`.
    pub fn start(host: &Host, rmw: Rmw, words: &[&str]) -> Node {
        Node::start_by(host, rmw, &[], words)
    }

    /// The same, started by a command, such as [`ANYWHERE`].
    pub fn start_by(host: &Host, rmw: Rmw, by: &[&str], words: &[&str]) -> Node {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rmw/node.py");
        Node::start_script(host, rmw, by, &script, words)
    }

    /// The same for another program in Python.
    pub fn start_script(host: &Host, rmw: Rmw, by: &[&str], script: &Path, words: &[&str]) -> Node {
        let (venv, library) = library().expect("asked for before");
        let python = venv.join("bin/python");
        let program = by.first().map_or(python.as_path(), Path::new);
        let mut command = host.command(program);
        command.args(by.iter().skip(1));
        if !by.is_empty() {
            command.arg(&python);
        }
        command.arg(script).args(words).env("AMENT_PREFIX_PATH", venv);
        command.env("PYTHONDONTWRITEBYTECODE", "1").env("ROS_LOG_DIR", "/dev/shm/log");
        if rmw == Rmw::Myelin {
            // By its name alone: the loader splits the variable at the spaces of a folder.
            command.env("LD_PRELOAD", library.file_name().expect("it has one"));
            command.env("LD_LIBRARY_PATH", library.parent().expect("it has one"));
        }
        command.env("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = read(child.stdout.take().unwrap());
        let log = read(child.stderr.take().unwrap());
        Node { child, lines, log }
    }

    /// The next line that it says.
    pub fn line(&self) -> String {
        self.lines.recv_timeout(WATCHDOG).unwrap_or_else(|_| {
            let log: Vec<String> = self.log.try_iter().collect();
            panic!("the node is silent; its log: {log:#?}")
        })
    }

    /// All lines that it has printed meanwhile.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        self.lines.try_iter()
    }

    /// All lines that it has logged meanwhile.
    pub fn log_lines(&self) -> impl Iterator<Item = String> {
        self.log.try_iter()
    }

    /// Waits for a line that `is_wanted` accepts.
    pub fn wait_for(&self, what: &str, is_wanted: impl Fn(&str) -> bool) -> String {
        let mut seen = Vec::new();
        loop {
            let line = self.lines.recv_timeout(WATCHDOG).unwrap_or_else(|_| {
                let log: Vec<String> = self.log.try_iter().collect();
                panic!("{what} does not come; it said {seen:#?}, its log: {log:#?}")
            });
            if is_wanted(&line) {
                return line;
            }
            seen.push(line);
        }
    }

    /// Waits for a line of its log that contains this.
    pub fn logged(&self, part: &str) -> String {
        let mut seen = Vec::new();
        loop {
            let line = self.log.recv_timeout(WATCHDOG);
            let line = line.unwrap_or_else(|_| panic!("{part:?} is not in its log: {seen:#?}"));
            if line.contains(part) {
                return line;
            }
            seen.push(line);
        }
    }

    /// How many descriptors and threads it has.
    pub fn holds(&self) -> [usize; 2] {
        let count = |what: &str| {
            let folder = std::fs::read_dir(format!("/proc/{}/{what}", self.child.id()));
            folder.unwrap().count()
        };
        ["fd", "task"].map(count)
    }

    /// Its memory that belongs to no file.
    pub fn memory_kib(&self) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let is_it = |line: &&str| line.starts_with("RssAnon:") || line.starts_with("RssShmem:");
        let kib = |line: &str| line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap();
        status.lines().filter(is_it).map(kib).sum()
    }

    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// `kill -9`.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Ends it by closing its input, and checks that it ended well.
    pub fn end(mut self) {
        drop(self.child.stdin.take());
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}: {:#?}", self.log.iter().collect::<Vec<_>>());
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read(from: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (to, lines) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            let _ = to.send(line);
        }
    });
    lines
}

/// A node finds others by multicast: ROS 2's default.
pub const ANYWHERE: &[&str] = &["env", "ROS_AUTOMATIC_DISCOVERY_RANGE=SUBNET"];
/// Nothing in these tests takes nearly so long.
pub const WATCHDOG: Duration = Duration::from_secs(120);
