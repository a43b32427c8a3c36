//! The programs of the other side, `tests/peers`: built here, started and listened to.

#[path = "../../../myelin/tests/support/cache.rs"]
mod cache;

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use self::cache::cache;
use crate::host::Host;

/// A middleware of another project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Middleware {
    CycloneDds,
    FastDds,
    /// A ROS 2 node, on `rmw_fastrtps`.
    Ros2,
}

impl Middleware {
    /// The words that start it; `None`, with the reason printed, where it is not installed.
    pub fn program(self) -> Option<Vec<PathBuf>> {
        static PROGRAMS: [OnceLock<Option<Vec<PathBuf>>>; 3] = [const { OnceLock::new() }; 3];
        let program = PROGRAMS[self as usize].get_or_init(|| match self {
            Middleware::Ros2 => ros2(),
            _ => self.build().map(|program| vec![program]),
        });
        if program.is_none() {
            println!("skipped: {self:?} is not installed: scripts/setup test");
        }
        program.clone()
    }

    fn build(self) -> Option<PathBuf> {
        let needed = match self {
            Middleware::CycloneDds => ["/usr/include/dds/dds.h", "/usr/bin/idlc"],
            Middleware::FastDds => {
                ["/usr/include/fastdds/dds/topic/TopicDataType.hpp", "/usr/include/fastcdr/Cdr.h"]
            }
            Middleware::Ros2 => unreachable!("it comes as it is"),
        };
        if !needed.iter().all(|file| Path::new(file).exists()) {
            return None;
        }
        // The tests of one run build one after the other, those of several runs at the same time.
        let built = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{self:?}"));
        let sources = Path::new(SOURCES);
        if is_newer(&built, sources) {
            return Some(built);
        }
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let fresh = folder.path().join("peer");
        match self {
            Middleware::CycloneDds => {
                let generated = folder.path().join("types.c");
                let mut idlc = Command::new("idlc");
                run(idlc.arg("-o").arg(folder.path()).arg(sources.join("types.idl")));
                let mut compile = Command::new("cc");
                compile.args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-I"]);
                compile.arg(folder.path()).arg("-o").arg(&fresh).arg(sources.join("cyclonedds.c"));
                run(compile.arg(generated).arg("-lddsc"));
            }
            Middleware::FastDds => {
                let mut compile = Command::new("c++");
                compile.args(["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror"]);
                // Its headers cause both warnings.
                compile.args(["-Wno-unused-parameter", "-Wno-deprecated-declarations", "-o"]);
                compile.arg(&fresh).arg(sources.join("fastdds.cpp"));
                let is_2 = Path::new("/usr/include/fastrtps").exists();
                compile.arg(if is_2 { "-lfastrtps" } else { "-lfastdds" });
                run(compile.args(["-lfastcdr", "-lpthread"]));
            }
            Middleware::Ros2 => unreachable!("it comes as it is"),
        }
        std::fs::rename(fresh, &built).unwrap();
        Some(built)
    }

    /// Message `n` as its serialiser writes it; `None` where it cannot be built.
    pub fn bytes(self, kind: &str, n: u32) -> Option<Vec<u8>> {
        let mut command = Command::new(&self.program()?[0]);
        command.args(["bytes", kind, &n.to_string()]).env("CYCLONEDDS_URI", cyclonedds_on("lo"));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        Some(output.stdout)
    }
}

/// The interpreter that has `rclpy`, and the node: the one of the environment that scripts/setup
/// makes, or the system's, where a ROS 2 installation has been sourced.
fn ros2() -> Option<Vec<PathBuf>> {
    let own = cache()?.join("ros2/bin/python");
    let python = [own, PathBuf::from("python3")].into_iter().find(|python| {
        let import = Command::new(python).args(["-c", "import rclpy, sensor_msgs"]).output();
        import.is_ok_and(|output| output.status.success())
    })?;
    Some(vec![python, Path::new(SOURCES).join("ros2.py")])
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Whether a file is there and newer than all files of a folder.
fn is_newer(file: &Path, folder: &Path) -> bool {
    let changed = |path: &Path| path.metadata().and_then(|data| data.modified());
    let Ok(built) = changed(file) else { return false };
    let mut sources = folder.read_dir().unwrap();
    sources.all(|source| changed(&source.unwrap().path()).unwrap() < built)
}

/// A running program of the other side; killed when dropped.
pub struct Peer {
    child: Child,
    /// The time within which a publisher has sent a heartbeat.
    heartbeat: Duration,
    lines: Mutex<Receiver<String>>,
}

impl Peer {
    /// Starts it on a host. Its usage text describes `words`, except the domain.
    pub fn start(host: &Host, middleware: Middleware, words: &[&str]) -> Peer {
        let program = middleware.program().expect("asked for before");
        let mut command = host.command(&program[0]);
        command.args(&program[1..]);
        let [role, rest @ ..] = words else { panic!("a role") };
        command.arg(role).arg("0").args(rest);
        command.env("CYCLONEDDS_URI", cyclonedds_on(host.interface()));
        command.env("PEER_ADDRESS", host.address());
        if host.interface() == "lo" {
            command.env("PEER_PEERS", "127.0.0.1");
            command.env("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST");
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (to, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let _ = to.send(line);
            }
        });
        let heartbeat = Duration::from_secs(if middleware == Middleware::Ros2 { 4 } else { 0 });
        Peer { child, heartbeat, lines: Mutex::new(lines) }
    }

    /// The next line that it says.
    pub fn line(&self) -> String {
        let lines = self.lines.lock().unwrap();
        lines.recv_timeout(WATCHDOG).unwrap_or_else(|_| panic!("the peer is silent"))
    }

    /// The next line, if there is one already.
    pub fn line_so_far(&self) -> Option<String> {
        self.lines.lock().unwrap().try_recv().ok()
    }

    /// Lets a reliable publisher begin. Until then it publishes [`PREAMBLE`]s; `next` takes one. A
    /// volatile reader of CycloneDDS begins with the first heartbeat of a writer that is not
    /// CycloneDDS's, so until then samples may be lost (its `ddsi_entity_match.c` says so).
    pub fn begin(&mut self, mut next: impl FnMut()) {
        assert_eq!(self.line(), "matched 1");
        let until = Instant::now() + self.heartbeat;
        (0..3).for_each(|_| next());
        while Instant::now() < until {
            next();
        }
        writeln!(self.child.stdin.as_ref().expect("it has not ended"), "begin").unwrap();
    }

    /// Ends it by closing its input, and checks that it ended well.
    pub fn end(mut self) {
        drop(self.child.stdin.take());
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}");
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `lo` has no multicast, so the peers of a host are looked for by address.
fn cyclonedds_on(interface: &str) -> String {
    let discovery = match interface {
        "lo" => {
            "<General><AllowMulticast>false</AllowMulticast></General><Discovery><Peers><Peer \
             Address=\"127.0.0.1\"/></Peers><ParticipantIndex>auto</ParticipantIndex></Discovery>"
        }
        _ => "",
    };
    format!(
        "<Domain id=\"any\"><General><Interfaces><NetworkInterface name=\"{interface}\"/>\
         </Interfaces></General>{discovery}</Domain>"
    )
}

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/peers");
/// As in pattern.h.
pub const PREAMBLE: u32 = 1000;
/// Long enough for a machine that is busy with other things.
pub const WATCHDOG: Duration = Duration::from_secs(100);
