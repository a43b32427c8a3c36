//! Systems that authenticate and encrypt, on the test's own host ([`own_host`](crate::own_host)), whose wire is
//! captured.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use myelin_bench_kit::message::Outgoing;
use myelin_bench_kit::protocol::{Identity, Prepare, Reliability, Role};
use myelin_keystore::{Keystore, Rights};
use tempfile::TempDir;

use crate::support::streams::{at_rate, finish};
use crate::support::{Pair, Process, prepare};

/// The identities of ping and of pong, of a new authority.
pub struct Identities([Identity; 2]);

impl Identities {
    pub fn new() -> Self {
        let folder = folder();
        let place = folder.path().join("keystore");
        let keystore = Keystore::create(&place).expect("a keystore");
        Identities(["ping", "pong"].map(|name| {
            keystore.add(&format!("/{name}"), &Rights::default(), 1).expect("an enclave");
            Identity::read(&place.join("enclaves").join(name)).expect("its files")
        }))
    }

    pub fn of(&self, role: Role) -> Identity {
        self.0[usize::from(role != Role::Ping)].clone()
    }
}

/// Round trips and reliable streams of small and large messages arrive, and no payload can be read on the wire.
/// That of `plain` can: the same system without encryption, if the driver has it.
pub fn no_payload_is_on_the_wire(executable: &Path, system: &str, plain: Option<&str>) {
    let identities = Identities::new();
    let both = |role| Some(identities.of(role));
    let folder = folder();
    let in_folder = |prepare| Prepare { directory: folder.path().into(), ..prepare };
    for payload_bytes in [64, 70_000] {
        let text = tell_tale(payload_bytes);
        for (system, is_plain) in [(system, false)].into_iter().chain(plain.map(|it| (it, true))) {
            let what = format!("{system} with {payload_bytes} B");
            let Some(wire) = wire() else { return };
            let messages = 20;
            let prepare = in_folder(prepare(system, Role::Ping));
            let prepare = Prepare { payload_bytes, messages, ..prepare };
            let (ping, pong) = open(executable, &prepare, both).finish();
            assert_eq!((ping.sent, ping.received, ping.corrupt), (messages, messages, 0), "{what}");
            assert_eq!((pong.received, pong.corrupt), (messages, 0), "{what}");
            let sent = packets(wire);
            assert!(sent.len() as u64 > 2 * messages * payload_bytes, "{what}: {} B", sent.len());
            let is_readable = sent.windows(text.len()).any(|part| part == text);
            assert_eq!(is_readable, is_plain, "{what}");
        }
        let (reliability, rate_hz, messages) = (Reliability::Reliable, Some(500.0), 50);
        let stream = Prepare { payload_bytes, rate_hz, messages, ..in_folder(at_rate(system)) };
        let stream = Prepare { reliability, depth: 50, ..stream };
        let ran = finish(open(executable, &stream, both), &stream);
        assert_eq!((ran.pong.received, ran.pong.lost), (messages, 0), "{system}");
    }
}

/// The errors of ping and of pong, if ping has an identity of another authority. They match within `limit`, or
/// never.
pub fn strangers(executable: &Path, system: &str, limit: Duration) -> [[String; 3]; 2] {
    let (stranger, identities) = (Identities::new(), Identities::new());
    let of = |role| match role {
        Role::Ping => stranger.of(role),
        _ => identities.of(role),
    };
    let (folder, match_timeout_ns) = (folder(), limit.as_nanos() as u64);
    let prepare = prepare(system, Role::Ping);
    let prepare = Prepare { directory: folder.path().into(), match_timeout_ns, ..prepare };
    let mut pair = start(executable, &prepare, |role| Some(of(role)));
    let said = [pair.ping.expect_error(), pair.pong.expect_error()];
    assert!(!pair.ping.expect_end().success() && !pair.pong.expect_end().success());
    said
}

/// The error of a ping with a file of its identity that is not what it should be.
pub fn broken(executable: &Path, system: &str, file: &str) -> [String; 3] {
    let mut identity = Identities::new().of(Role::Ping);
    identity.0.insert(file.into(), "nonsense".into()).expect("the file is one of its");
    one_error(executable, system, Some(identity))
}

/// The error of a ping without an identity.
pub fn nobody(executable: &Path, system: &str) -> [String; 3] {
    one_error(executable, system, None)
}

/// That of ping. Pong is valid, and ends with the pair.
fn one_error(executable: &Path, system: &str, identity: Option<Identity>) -> [String; 3] {
    let pongs = Identities::new().of(Role::Pong);
    let folder = folder();
    let prepare = Prepare { directory: folder.path().into(), ..prepare(system, Role::Ping) };
    let mut pair = start(executable, &prepare, |role| match role {
        Role::Ping => identity.clone(),
        _ => Some(pongs.clone()),
    });
    let said = pair.ping.expect_error();
    assert!(!pair.ping.expect_end().success());
    said
}

fn open(executable: &Path, prepare: &Prepare, identity: impl Fn(Role) -> Option<Identity>) -> Pair {
    let pair = start(executable, prepare, identity);
    pair.ping.expect_ready();
    pair.pong.expect_ready();
    pair
}

fn start(
    executable: &Path,
    prepare: &Prepare,
    identity: impl Fn(Role) -> Option<Identity>,
) -> Pair {
    Pair::start(prepare, prepare.messages, |prepare| {
        let identity = identity(prepare.role);
        Process::start(executable, &Prepare { identity, ..prepare.clone() })
    })
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

/// Bytes that are in each message of this size, and in no other one of these tests.
fn tell_tale(payload_bytes: u64) -> Vec<u8> {
    let at = if payload_bytes < 1_000 { 16 } else { 2_000 };
    Outgoing::new(payload_bytes as usize).stamp(0)[at..at + 40].to_vec()
}

/// All packets of this host from now on; `None`, with a message, if this process may not see them.
fn wire() -> Option<File> {
    // SAFETY: no preconditions.
    let socket = unsafe {
        let protocol = i32::from((libc::ETH_P_ALL as u16).to_be());
        let flags = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        libc::socket(libc::AF_PACKET, flags, protocol)
    };
    let error = std::io::Error::last_os_error();
    if socket < 0 && error.kind() == ErrorKind::PermissionDenied {
        eprintln!("skipped, a capture takes root: {error}");
        return None;
    }
    assert!(socket >= 0, "{error}");
    // SAFETY: it is ours.
    let socket = File::from(unsafe { OwnedFd::from_raw_fd(socket) });
    let bytes = 64_i32 << 20;
    // SAFETY: a value of this size that lives for the call.
    let set = unsafe {
        let (value, size) = ((&raw const bytes).cast(), size_of_val(&bytes) as u32);
        let (level, option) = (libc::SOL_SOCKET, libc::SO_RCVBUFFORCE);
        libc::setsockopt(socket.as_raw_fd(), level, option, value, size)
    };
    assert_eq!(set, 0);
    Some(socket)
}

/// The bytes of the packets that have come.
fn packets(mut wire: File) -> Vec<u8> {
    let (mut all, mut packet) = (Vec::new(), vec![0; 1 << 18]);
    loop {
        match wire.read(&mut packet) {
            Ok(bytes) => all.extend_from_slice(&packet[..bytes]),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                return all;
            }
        }
    }
}
