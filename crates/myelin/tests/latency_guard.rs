//! The latency guard is held while the node lives and released in every case. All cases are in one
//! test, because the request belongs to the machine.

#[path = "../../myelin-shm/tests/itself/mod.rs"]
mod itself;

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use myelin::{Error, Node};

#[test]
fn the_guard_is_held_while_the_node_lives_and_no_longer() {
    let (folder, before_us) = (tempfile::tempdir().unwrap(), least_us());
    let node = match open(folder.path()) {
        Err(Error::LatencyGuard { source, remedy }) => {
            let known = [ErrorKind::NotFound, ErrorKind::PermissionDenied];
            assert!(known.contains(&source.kind()), "{source}");
            println!("skipped: no latency guard here ({source}); {remedy}");
            return;
        }
        opened => opened.unwrap(),
    };
    let me = std::process::id();
    assert_eq!(requests(me), 1);
    assert!(least_us().is_none_or(|least_us| least_us == 0));
    drop(node);
    assert_eq!(requests(me), 0);
    until("the end of the dropped node's request", || is_as_before(before_us));

    killed(folder.path(), before_us);
    a_fork_does_not_hold_it(folder.path(), before_us);
    an_endpoint_keeps_it(folder.path());
    assert_eq!(requests(me), 0);
}

fn killed(folder: &Path, before_us: Option<i32>) {
    let mut holder = Holder::start(folder);
    until("the holder holds", || requests(holder.0.id()) == 1);
    // It has opened the device, and writes to it next.
    until("its request", || least_us().is_none_or(|least_us| least_us == 0));
    holder.0.kill().unwrap();
    holder.0.wait().unwrap();
    assert_eq!(requests(holder.0.id()), 0);
    until("the end of the killed holder's request", || is_as_before(before_us));
}

/// The child lives on when the parent releases it.
fn a_fork_does_not_hold_it(folder: &Path, before_us: Option<i32>) {
    let node = open(folder).unwrap();
    // SAFETY: the child calls only async-signal-safe functions.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: as above.
        unsafe {
            libc::pause();
            libc::_exit(0);
        }
    }
    until("the child has closed it", || requests(child as u32) == 0);
    assert_eq!(requests(std::process::id()), 1);
    drop(node);
    until("the end of the request while the child lives", || is_as_before(before_us));
    // SAFETY: our own child, not yet waited for; a null status is allowed.
    unsafe {
        libc::kill(child, libc::SIGKILL);
        libc::waitpid(child, std::ptr::null_mut(), 0);
    }
}

fn an_endpoint_keeps_it(folder: &Path) {
    let node = open(folder).unwrap();
    let publisher = node.topic::<u8>("kept").publisher().unwrap();
    drop(node);
    assert_eq!(requests(std::process::id()), 1);
    drop(publisher);
}

#[test]
fn without_the_option_no_guard_is_held() {
    let Some(_) = std::env::var_os(FOLDER) else {
        // In a process of its own, because another test could hold it, too.
        let folder = tempfile::tempdir().unwrap();
        let mut other = Holder::run("without_the_option_no_guard_is_held", folder.path());
        assert!(other.0.wait().unwrap().success());
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let _node = Node::builder("guard").runtime_dir(folder.path()).open().unwrap();
    assert_eq!(requests(std::process::id()), 0);
}

#[test]
fn the_holder() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let _node = open(Path::new(&folder)).unwrap();
    std::thread::sleep(WATCHDOG);
}

fn open(folder: &Path) -> Result<Node, Error> {
    Node::builder("guard").runtime_dir(folder).latency_guard(true).open()
}

/// A process that holds the guard; killed with the test.
struct Holder(Child);

impl Holder {
    fn start(folder: &Path) -> Holder {
        Holder::run("the_holder", folder)
    }

    fn run(test: &str, folder: &Path) -> Holder {
        let mut command = itself::itself();
        command.args(["--exact", test, "--nocapture"]).env(FOLDER, folder).stdout(Stdio::null());
        Holder(command.spawn().unwrap())
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// How many descriptors of a process are requests.
fn requests(process: u32) -> usize {
    let Ok(fds) = std::fs::read_dir(format!("/proc/{process}/fd")) else { return 0 };
    let target = |fd: std::io::Result<std::fs::DirEntry>| std::fs::read_link(fd.ok()?.path()).ok();
    fds.filter_map(target).filter(|target| target == Path::new(DEVICE)).count()
}

/// Whether no request of ours keeps the machine from sleeping any more: another program's request
/// would be visible instead.
fn is_as_before(before_us: Option<i32>) -> bool {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let processes = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut others = processes.filter(|process| *process != std::process::id());
    least_us() >= before_us || others.any(|process| requests(process) > 0)
}

/// The smallest of all requests on the machine, in µs, if it may be read.
fn least_us() -> Option<i32> {
    let mut bytes = [0; 4];
    File::open(DEVICE).and_then(|mut device| device.read_exact(&mut bytes)).ok()?;
    Some(i32::from_ne_bytes(bytes))
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < WATCHDOG, "waited in vain for: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

const DEVICE: &str = "/dev/cpu_dma_latency";
const FOLDER: &str = "MYELIN_GUARD_FOLDER";
const WATCHDOG: Duration = Duration::from_secs(60);
