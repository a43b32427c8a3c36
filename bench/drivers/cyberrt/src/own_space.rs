//! Private namespaces of a run: a network with only `lo`, and System V objects.
//!
//! CyberRT's discovery and its multicast notifier use the default interface, even on a single host.
//! When a process is killed, its segments stay behind, with the locks in them. In these namespaces
//! they reach no other process, and vanish with the last process of the run, however that ends. So
//! nothing needs cleaning, even after `kill -9` of the lab.
//!
//! The first ping makes the namespaces and writes into a file of the run's folder where they are;
//! the others join. Across hosts the network is the host's, and each process has its own System V
//! objects.

use std::ffi::c_int;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use myelin_bench_kit::protocol::{Prepare, Role};
use myelin_bench_kit::{Error, clock, loopback};

/// Moves the calling thread, and threads that it starts from now on, into the namespaces of the
/// run.
pub fn enter(prepare: &Prepare) -> Result<(), Error> {
    if prepare.network.is_some() {
        return unshare(libc::CLONE_NEWIPC).map_err(denied);
    }
    let meeting = prepare.directory.join(format!("{}.namespaces", prepare.run));
    if (prepare.role, prepare.index) == (Role::Ping, 0) {
        unshare(libc::CLONE_NEWNET | libc::CLONE_NEWIPC)
            .and_then(|()| loopback::up())
            .map_err(denied)?;
        return announce(&meeting)
            .map_err(|error| Error::new(format!("{}: {error}", meeting.display())));
    }
    let spaces = await_announced(&meeting, prepare.match_timeout_ns)?;
    join(&spaces).map_err(|error| {
        Error::new(format!(
            "cannot join the first ping's namespaces, {}: {error}",
            spaces.display()
        ))
        .remedy("it has ended; its error is in this run's log")
    })
}

/// Whether this process may make namespaces and set up a network in them.
pub fn may_enter() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let held = line.and_then(|set| u64::from_str_radix(set.trim(), 16).ok()).unwrap_or(0);
    held & NEEDED == NEEDED
}

/// Renames the file into place, so that nobody reads half of it.
fn announce(meeting: &Path) -> io::Result<()> {
    // SAFETY: no arguments.
    let thread = unsafe { libc::gettid() };
    let unfinished = meeting.with_extension("unfinished");
    fs::write(&unfinished, format!("/proc/{}/task/{thread}/ns", std::process::id()))?;
    fs::rename(unfinished, meeting)
}

/// The folder of the first ping's namespaces; waits for its file.
fn await_announced(meeting: &Path, timeout_ns: u64) -> Result<PathBuf, Error> {
    let until_ns = clock::monotonic_ns().saturating_add(timeout_ns);
    loop {
        match fs::read_to_string(meeting) {
            Ok(spaces) => return Ok(spaces.into()),
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Error::new(format!("{}: {error}", meeting.display())));
            }
            Err(_) if clock::monotonic_ns() >= until_ns => {
                return Err(Error::new(
                    "the other side did not match: the first ping did not make its namespaces \
                     within match_timeout_ms",
                )
                .remedy("see this run's log"));
            }
            Err(_) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}

fn join(spaces: &Path) -> io::Result<()> {
    let kinds = [("net", libc::CLONE_NEWNET), ("ipc", libc::CLONE_NEWIPC)];
    for (name, kind) in kinds {
        let space = File::open(spaces.join(name))?;
        // SAFETY: a descriptor that is open during the call, and a flag.
        check(unsafe { libc::setns(space.as_raw_fd(), kind) })?;
    }
    Ok(())
}

fn unshare(spaces: c_int) -> io::Result<()> {
    // SAFETY: the call takes only flags.
    check(unsafe { libc::unshare(spaces) })
}

fn check(status: c_int) -> io::Result<()> {
    if status < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn denied(error: io::Error) -> Error {
    Error::new(format!("cannot make namespaces for the run: {error}"))
        .remedy("run as root, with CAP_SYS_ADMIN and CAP_NET_ADMIN")
}

/// Bits of CAP_NET_ADMIN and CAP_SYS_ADMIN in `/proc/PID/status`.
const NEEDED: u64 = 1 << 12 | 1 << 21;
