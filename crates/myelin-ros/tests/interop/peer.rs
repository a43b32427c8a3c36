//! The programs of the other side, `tests/peers`: built here, started and listened to.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use crate::host::Host;

/// A middleware that is not ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Middleware {
    CycloneDds,
    FastDds,
}

impl Middleware {
    /// Its program; `None`, with the reason printed, where it cannot be built.
    pub fn program(self) -> Option<PathBuf> {
        static PROGRAMS: [OnceLock<Option<PathBuf>>; 2] = [OnceLock::new(), OnceLock::new()];
        let program = PROGRAMS[self as usize].get_or_init(|| self.build());
        if program.is_none() {
            let packages = match self {
                Middleware::CycloneDds => "gcc cyclonedds-dev cyclonedds-tools",
                Middleware::FastDds => "g++ libfastrtps-dev libfastcdr-dev",
            };
            println!("skipped: {self:?} is not installed: apt-get install {packages}");
        }
        program.clone()
    }

    fn build(self) -> Option<PathBuf> {
        let needed = match self {
            Middleware::CycloneDds => ["/usr/include/dds/dds.h", "/usr/bin/idlc"],
            Middleware::FastDds => {
                ["/usr/include/fastrtps/fastrtps_dll.h", "/usr/include/fastcdr/Cdr.h"]
            }
        };
        if !needed.iter().all(|file| Path::new(file).exists()) {
            return None;
        }
        // Tests of one run build one after the other, of several runs beside each other.
        let built = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{self:?}"));
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers");
        if is_newer(&built, &sources) {
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
                // Its headers have both.
                compile.args(["-Wno-unused-parameter", "-Wno-deprecated-declarations", "-o"]);
                compile.arg(&fresh).arg(sources.join("fastdds.cpp"));
                run(compile.args(["-lfastrtps", "-lfastcdr", "-lpthread"]));
            }
        }
        std::fs::rename(fresh, &built).unwrap();
        Some(built)
    }

    /// Message `n` as its serialiser writes it; `None` where it cannot be built.
    pub fn bytes(self, kind: &str, n: u32) -> Option<Vec<u8>> {
        let mut command = Command::new(self.program()?);
        command.args(["bytes", kind, &n.to_string()]).env("CYCLONEDDS_URI", cyclonedds_on("lo"));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        Some(output.stdout)
    }
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

/// A program of the other side that runs; killed when dropped.
pub struct Peer {
    child: Child,
    lines: Mutex<Receiver<String>>,
}

impl Peer {
    /// Starts it on a host. `words` are as its usage says, without the domain.
    pub fn start(host: &Host, middleware: Middleware, words: &[&str]) -> Peer {
        let mut command = host.command(&middleware.program().expect("asked for before"));
        let [role, rest @ ..] = words else { panic!("a role") };
        command.arg(role).arg("0").args(rest);
        command.env("CYCLONEDDS_URI", cyclonedds_on(host.interface()));
        command.env("PEER_ADDRESS", host.address());
        if host.interface() == "lo" {
            command.env("PEER_PEERS", "127.0.0.1");
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (to, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let _ = to.send(line);
            }
        });
        Peer { child, lines: Mutex::new(lines) }
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

    /// Ends it by closing its input, and looks whether that went well.
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

/// On `lo` there is no multicast, and the peers of a host are looked for.
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

/// Long enough for a machine that is busy with other things.
pub const WATCHDOG: Duration = Duration::from_secs(100);
