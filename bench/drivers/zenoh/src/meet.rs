//! How pings find the endpoints of pongs, and the removal of what killed processes leave.
//!
//! A pong lets Zenoh choose a free port, so that simultaneous runs do not collide. It tells the
//! port to each ping through an abstract socket, which vanishes with the process. Across hosts it
//! listens on the run's port with its index, so there is nothing to tell. Over shared memory it
//! listens on a socket with a path:
//!
//! ```text
//! @myelin-zenoh-<tag>-<index>                  where pong <index> of a run tells its endpoint
//! /tmp/myelin-zenoh-<pid>-<tag>.sock, ….lock   Zenoh's socket and its lock; removed once matched
//! /dev/shm/<number>.zenoh                      Zenoh's memory, locked while anyone has it mapped
//! ```

use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use myelin_bench_kit::protocol::Prepare;
use myelin_bench_kit::run_folder::{self, remove};
use myelin_bench_kit::{Error, clock};

/// Sends `endpoint` to all pings of pong `prepare.index`, from a thread that then ends.
pub fn tell(prepare: &Prepare, endpoint: String) -> Result<(), Error> {
    let listener = UnixListener::bind_addr(&address(prepare, prepare.index)?)
        .map_err(|error| Error::new(format!("two pongs in run {}? {error}", prepare.run)))?;
    let pings = prepare.publishers;
    let serve = move || {
        for _ in 0..pings {
            // If a ping has ended meanwhile, matching will miss it.
            let told = listener.accept().map(|(mut ping, _)| ping.write_all(endpoint.as_bytes()));
            drop(told);
        }
    };
    std::thread::Builder::new().name("meet".into()).spawn(serve)?;
    Ok(())
}

/// The endpoint of pong `index`; retries until the clock reads `until_ns`. `None` if the pong does
/// not come.
pub fn ask(prepare: &Prepare, index: u32, until_ns: u64) -> Result<Option<String>, Error> {
    let address = address(prepare, index)?;
    while clock::monotonic_ns() < until_ns {
        match UnixStream::connect_addr(&address) {
            Ok(mut pong) => {
                let mut endpoint = String::new();
                pong.read_to_string(&mut endpoint)?;
                return Ok(Some(endpoint));
            }
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                std::thread::sleep(LOOK_AGAIN);
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(None)
}

fn address(prepare: &Prepare, index: u32) -> Result<SocketAddr, Error> {
    Ok(SocketAddr::from_abstract_name(format!("{PREFIX}{}-{index}", tag(prepare)))?)
}

/// The socket of this process; Zenoh makes two files for it.
pub fn socket_path(prepare: &Prepare) -> PathBuf {
    Path::new(SOCKETS).join(format!("{PREFIX}{}-{}{SOCKET}", std::process::id(), tag(prepare)))
}

/// Removes the named files; nobody connects any more.
pub fn remove_socket(path: &Path) -> Result<(), Error> {
    remove(path)?;
    remove(&lock_of(path))
}

/// Ensures that this process leaves no shared memory behind when it ends, unless it is killed.
/// Zenoh itself leaves segments that two processes had locked when they ended at the same time.
pub fn leave_nothing() {
    // SAFETY: the handler is a function of this program and has no preconditions.
    unsafe { libc::atexit(at_exit) };
}

extern "C" fn at_exit() {
    for entry in fs::read_dir("/proc/self/fd").into_iter().flatten().map_while(Result::ok) {
        let is_memory = fs::read_link(entry.path()).is_ok_and(|file| {
            file.starts_with(MEMORY) && file.extension().is_some_and(|it| it == "zenoh")
        });
        let descriptor = entry.file_name().to_str().and_then(|name| name.parse().ok());
        if let (true, Some(descriptor)) = (is_memory, descriptor) {
            // SAFETY: this only releases a lock. The number may refer to another file now, but no
            // memory depends on that.
            unsafe { libc::flock(descriptor, libc::LOCK_UN) };
        }
    }
    // If several processes end at once, the last one to unlock finds no lock.
    let _gate = gate();
    zenoh::shm::cleanup_orphaned_shm_segments();
}

/// Lets the driver's processes pass one at a time, until the returned file is dropped. Zenoh makes
/// a segment and then locks it, and each process that begins or ends removes segments without a
/// lock. It could remove a segment that is just being made. The two ends would then not agree on
/// shared memory, or a subscriber would silently receive nothing from a publisher.
pub fn gate() -> Result<File, Error> {
    let gate = File::open(MEMORY)?;
    gate.lock()?;
    Ok(gate)
}

/// Removes what dead processes have left.
pub fn clean() -> Result<(), Error> {
    let gate = gate()?;
    zenoh::shm::cleanup_orphaned_shm_segments();
    drop(gate);
    let entries = fs::read_dir(SOCKETS)?.filter_map(Result::ok);
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let (is_gone, socket) = (
        |pid| !Path::new("/proc").join(pid).exists(),
        |name: &String| {
            let name = name.strip_suffix(LOCK).unwrap_or(name);
            let pid = name.strip_prefix(PREFIX)?.split('-').next()?;
            name.ends_with(SOCKET).then(|| (Path::new(SOCKETS).join(name), pid.to_owned()))
        },
    );
    for (path, pid) in names.filter_map(|name| socket(&name)) {
        // The lock covers owners that are not visible from here (containers with a common /tmp).
        let is_held = File::open(lock_of(&path)).is_ok_and(|lock| lock.try_lock().is_err());
        if is_gone(pid) && !is_held {
            remove_socket(&path)?;
        }
    }
    Ok(())
}

fn lock_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(LOCK);
    name.into()
}

/// A run's name is longer than an address allows.
fn tag(prepare: &Prepare) -> String {
    run_folder::tag(&format!("{}/{}", prepare.system, prepare.run))
}

const PREFIX: &str = "myelin-zenoh-";
const SOCKETS: &str = "/tmp";
/// The folder of segments.
const MEMORY: &str = "/dev/shm";
const SOCKET: &str = ".sock";
/// Zenoh's suffix of lock files.
const LOCK: &str = ".lock";
const LOOK_AGAIN: Duration = Duration::from_micros(200);
