//! The namespaces of a run, tested with processes that leave behind what CyberRT leaves: a segment
//! that nobody removes. These tests require root, but not CyberRT.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Instant;

use myelin_bench_kit::protocol::{Prepare, Role};
use myelin_driver_cyberrt::own_space;

use crate::support::{self, prepare};

#[test]
fn killed_processes_leave_no_segment_and_send_nothing() {
    if !own_space::may_enter() {
        return println!("skipped: namespaces take root");
    }
    let folder = tempfile::tempdir().unwrap();
    let mut fakes = ["ping", "pong"].map(|role| Fake::start(role, folder.path()));
    let [ping, pong] = [0, 1].map(|index| fakes[index].spaces());
    assert_eq!(ping, pong, "they have met");
    for (theirs, ours) in ping.iter().zip(spaces_of("self")) {
        assert_ne!(theirs, &ours);
    }
    // The segment still exists, but in this namespace no segment has that key.
    assert_eq!(fs::read_to_string(folder.path().join("pong.found")).unwrap(), SEGMENT_TEXT);
    // SAFETY: the call takes only integers.
    assert_eq!(unsafe { libc::shmget(key_of(folder.path()), 0, 0) }, -1);
    for fake in &mut fakes {
        fake.child.kill().unwrap();
        fake.child.wait().unwrap();
    }
    // System V objects vanish with their namespace, and that with its last process.
    let [_, ipc] = ping;
    let is_inside = |entry: &fs::DirEntry| {
        fs::read_link(entry.path().join("ns/ipc")).is_ok_and(|space| space == ipc)
    };
    assert!(!fs::read_dir("/proc").unwrap().flatten().any(|entry| is_inside(&entry)));
}

#[test]
fn a_pong_without_a_ping_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let pong = Prepare { match_timeout_ns: 1_000_000, ..run(Role::Pong, folder.path()) };
    let error = own_space::enter(&pong).unwrap_err();
    assert!(error.message.contains("did not make its namespaces"), "{}", error.message);
    assert!(error.remedy.contains("log"), "{}", error.remedy);
}

#[test]
fn an_ended_ping_is_named_in_the_error() {
    let folder = tempfile::tempdir().unwrap();
    let pong = run(Role::Pong, folder.path());
    let meeting = folder.path().join(format!("{}.namespaces", pong.run));
    fs::write(meeting, "/proc/4194305/task/4194305/ns").unwrap();
    let error = own_space::enter(&pong).unwrap_err();
    assert!(error.message.contains("/proc/4194305"), "{}", error.message);
    assert!(error.remedy.contains("has ended"), "{}", error.remedy);
}

/// Not a test: the first test starts it as ping and as pong.
#[test]
#[ignore = "started by killed_processes_leave_no_segment_and_send_nothing"]
fn fake_role() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let (folder, is_ping) = (Path::new(&folder), std::env::var(ROLE).unwrap() == "ping");
    own_space::enter(&run(if is_ping { Role::Ping } else { Role::Pong }, folder)).unwrap();
    // SAFETY: the calls take integers, and the attached segment is never detached and large enough
    // for the text.
    let segment = unsafe {
        let create = if is_ping { libc::IPC_CREAT | libc::IPC_EXCL } else { 0 };
        // Ping's segment exists once ping has written that it is ready.
        until(|| is_ping || folder.join("ping.ready").exists());
        let id = libc::shmget(key_of(folder), 1 << 20, 0o600 | create);
        assert!(id >= 0, "{}", std::io::Error::last_os_error());
        let memory = libc::shmat(id, std::ptr::null(), 0).cast::<u8>();
        assert_ne!(memory as isize, -1, "{}", std::io::Error::last_os_error());
        std::slice::from_raw_parts_mut(memory, SEGMENT_TEXT.len())
    };
    if is_ping {
        segment.copy_from_slice(SEGMENT_TEXT.as_bytes());
        fs::write(folder.join("ping.ready"), "").unwrap();
    } else {
        fs::write(folder.join("pong.found"), segment).unwrap();
        fs::write(folder.join("pong.ready"), "").unwrap();
    }
    // Until it is killed.
    loop {
        std::thread::park();
    }
}

/// A process that is killed when dropped.
struct Fake {
    child: Child,
    ready: PathBuf,
}

impl Fake {
    fn start(role: &str, folder: &Path) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "own_space::fake_role", "--ignored", "--test-threads=1"]);
        let child = command.env(FOLDER, folder).env(ROLE, role).spawn().unwrap();
        Fake { child, ready: folder.join(format!("{role}.ready")) }
    }

    /// Its network and System V objects, once it has the segment. A test runs in its own thread,
    /// and only that thread has entered.
    fn spaces(&mut self) -> [PathBuf; 2] {
        until(|| {
            assert!(self.child.try_wait().unwrap().is_none(), "it has ended");
            self.ready.exists()
        });
        let threads = fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap().flatten();
        let outside = spaces_of("self");
        let mut inside = threads.map(|thread| spaces_in(&thread.path()));
        inside.find(|spaces| *spaces != outside).expect("a thread that has entered")
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spaces_of(process: &str) -> [PathBuf; 2] {
    spaces_in(&Path::new("/proc").join(process))
}

fn spaces_in(process: &Path) -> [PathBuf; 2] {
    ["net", "ipc"].map(|name| fs::read_link(process.join("ns").join(name)).unwrap())
}

fn run(role: Role, folder: &Path) -> Prepare {
    Prepare { directory: folder.into(), ..prepare("cyberrt.shm", role) }
}

/// A key that no other test on this host uses, derived from the folder, which has a random name.
fn key_of(folder: &Path) -> libc::key_t {
    let name = folder.as_os_str().as_encoded_bytes();
    name.iter().fold(17, |key: i32, byte| key.wrapping_mul(31).wrapping_add(i32::from(*byte)))
}

fn until(mut is_so: impl FnMut() -> bool) {
    let give_up = Instant::now() + support::WATCHDOG;
    while !is_so() {
        assert!(Instant::now() < give_up, "it has not come to be");
        std::thread::yield_now();
    }
}

const SEGMENT_TEXT: &str = "what CyberRT leaves";
const FOLDER: &str = "MYELIN_TEST_FOLDER";
const ROLE: &str = "MYELIN_TEST_ROLE";
