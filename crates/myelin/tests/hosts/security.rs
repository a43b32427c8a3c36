//! Hosts with a keystore: they talk to each other, strangers see nothing, and each refusal has its reason.

use std::ffi::{CStr, OsStr};
use std::fs::File;
use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use myelin::{Error, Event, Location, Node, Topic};
use myelin_keystore::{Keystore, Rights};
use tempfile::TempDir;

use crate::lane::sent_by_tcp;
use crate::support::{WATCHDOG, until};
use crate::two::{Host, Hosts, Process, heard, say};
use crate::{node, nothing_is_left};

/// A keystore with enclaves, and what processes write to stderr.
struct Place {
    folder: TempDir,
    keystore: Keystore,
}

impl Place {
    fn new() -> Place {
        let folder = tempfile::tempdir().unwrap();
        let keystore = Keystore::create(&folder.path().join("keystore")).unwrap();
        Place { folder, keystore }
    }

    fn keystore(&self) -> PathBuf {
        self.folder.path().join("keystore")
    }

    fn add(&self, enclave: &str, publish: &[&str], subscribe: &[&str]) {
        let [publish, subscribe] =
            [publish, subscribe].map(|topics| topics.iter().map(|it| it.to_string()).collect());
        self.keystore.add(enclave, &Rights { publish, subscribe }, 1).unwrap();
    }

    /// A copy, as another host has one.
    fn copy(&self, name: &str) -> PathBuf {
        let copy = self.folder.path().join(name);
        let mut command = std::process::Command::new("cp");
        let done = command.arg("-a").arg(self.keystore()).arg(&copy).status().unwrap();
        assert!(done.success());
        copy
    }

    /// Starts a role; its standard error is in a file of the enclave's name.
    fn run(&self, host: &Host, role: &str, keystore: &Path, enclave: &str) -> Process {
        let said = File::create(self.said(enclave)).unwrap();
        let variables = [(KEYSTORE, keystore.as_os_str()), (ENCLAVE, OsStr::new(enclave))];
        host.run_as(role, &variables, said)
    }

    fn said(&self, enclave: &str) -> PathBuf {
        self.folder.path().join(format!("said{}", enclave.replace('/', "-")))
    }

    /// Waits until one of them has written all of these.
    fn hears(&self, enclaves: &[&str], words: &[&str]) {
        until(&format!("{words:?} of {enclaves:?}"), || {
            let mut said =
                enclaves.iter().map(|it| std::fs::read_to_string(self.said(it)).unwrap());
            said.any(|said| words.iter().all(|word| said.contains(word)))
        });
    }
}

impl Drop for Place {
    /// Shows what the processes of a test that fails have written.
    fn drop(&mut self) {
        if std::thread::panicking() {
            for entry in std::fs::read_dir(self.folder.path()).unwrap().flatten() {
                let said = std::fs::read_to_string(entry.path()).unwrap_or_default();
                eprintln!("{}:\n{said}", entry.path().display());
            }
        }
    }
}

#[test]
fn what_secured_hosts_send_cannot_be_read_on_the_wire() {
    let Some(hosts) = Hosts::new() else { return };
    let place = Place::new();
    // The handshake sends the permissions, with the names in them, in clear.
    place.add("/camera", &["secret*"], &[]);
    place.add("/display", &[], &["secret*"]);
    for (keystore, is_seen) in [(place.keystore(), false), (PathBuf::new(), true)] {
        let mut wire = hosts.other.run("listen_to_the_wire");
        wire.hears("ready");
        let enclave = |name| if is_seen { "" } else { name };
        let mut publisher = place.run(&hosts.one, "publish_secret", &keystore, enclave("/camera"));
        let mut taker = place.run(&hosts.other, "take_secret", &keystore, enclave("/display"));
        taker.hears("taken");
        publisher.hears("published");
        wire.say("end");
        wire.hears(if is_seen { "payload and topic" } else { "packets alone" });
        publisher.say("end");
        publisher.ends();
        taker.ends();
    }
    nothing_is_left(&hosts);
}

pub(crate) fn publish_secret() {
    let node = node("publisher");
    let publisher = secret(&node).publisher().unwrap();
    assert!(publisher.wait_for_match(1, WATCHDOG));
    let before = sent_by_tcp();
    for sizes in SIZES {
        publisher.publish_copy(&SECRET.repeat(sizes)).unwrap();
    }
    assert!(publisher.wait_for_acknowledgements(WATCHDOG));
    let is_by_tcp = sent_by_tcp() - before > SECRET.len() * SIZES[2] / 2;
    assert!(is_by_tcp, "the large one goes by the lane");
    say("published");
    heard("end");
}

pub(crate) fn take_secret() {
    let node = node("taker");
    let mut subscriber = secret(&node).subscriber().unwrap();
    for size in SIZES {
        let sample = subscriber.receive(WATCHDOG).unwrap().unwrap();
        assert!(sample[..] == SECRET.repeat(size)[..]);
    }
    say("taken");
}

/// Looks for the payload, and the topic's name, in all packets of its host.
pub(crate) fn listen_to_the_wire() {
    let mut socket = wire();
    say("ready");
    heard("end");
    rustix::io::ioctl_fionbio(&socket, true).unwrap();
    let (mut packets, mut found, mut packet) = (0, [false; 2], vec![0; 1 << 17]);
    while let Ok(bytes) = socket.read(&mut packet) {
        packets += 1;
        for (found, text) in found.iter_mut().zip([SECRET, b"secret_5ftopic"]) {
            *found |= packet[..bytes].windows(text.len()).any(|part| part == text);
        }
    }
    assert!(packets > 20, "{packets} packets: this is not the wire");
    say(match found {
        [true, true] => "payload and topic",
        [false, false] => "packets alone",
        _ => panic!("{found:?}"),
    });
}

#[test]
fn large_samples_by_tls_come_once_and_in_order() {
    let Some(hosts) = Hosts::new() else { return };
    let place = Place::new();
    let enclaves = ["/camera", "/display", "/recorder"];
    enclaves.iter().for_each(|enclave| place.add(enclave, &["*"], &["*"]));
    let run = |host, role, enclave| place.run(host, role, &place.keystore(), enclave);
    let mut takers =
        ["/display", "/recorder"].map(|enclave| run(&hosts.other, "take_mixed", enclave));
    takers.iter_mut().for_each(|taker| taker.hears("ready"));
    let mut publisher = run(&hosts.one, "publish_mixed", "/camera");
    publisher.hears("by TCP");
    takers.into_iter().for_each(Process::ends);
    publisher.ends();
    nothing_is_left(&hosts);
}

/// All packets of this host.
fn wire() -> File {
    // SAFETY: no preconditions.
    let socket = unsafe {
        let protocol = i32::from((libc::ETH_P_ALL as u16).to_be());
        libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, protocol)
    };
    assert!(socket >= 0, "{}", std::io::Error::last_os_error());
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
    socket
}

/// A process that the publisher must not talk to.
struct Stranger {
    name: &'static str,
    keystore: PathBuf,
    enclave: &'static str,
    /// What the publisher writes of it, or itself: the one that has answered the handshake.
    reason: &'static [&'static str],
    /// What the publisher writes, and what it writes itself.
    both: [&'static [&'static str]; 2],
}

#[test]
fn strangers_are_refused_with_a_reason_and_see_nothing() {
    let Some(hosts) = Hosts::new() else { return };
    let place = Place::new();
    for enclave in ["/camera", "/friend", "/stolen"] {
        place.add(enclave, &["*"], &["*"]);
    }
    let before = place.copy("before");
    place.keystore.revoke("/stolen").unwrap();
    let elsewhere = place.folder.path().join("elsewhere");
    Keystore::create(&elsewhere).unwrap().add("/display", &Rights::default(), 1).unwrap();
    let strangers = [
        Stranger {
            name: "nobody",
            keystore: PathBuf::new(),
            enclave: "",
            reason: &[],
            both: [
                &["10.77.0.2 has no enclave and is refused", "MYELIN_ENCLAVE there"],
                &["10.77.0.1 with the enclave /camera is secured, and this program has no enclave"],
            ],
        },
        Stranger {
            name: "another authority",
            keystore: elsewhere,
            enclave: "/display",
            reason: &["Certificate not valid"],
            both: [
                &["10.77.0.2 with the enclave /display has its certificate from another authority"],
                &["10.77.0.1 with the enclave /camera has its certificate from another authority"],
            ],
        },
        Stranger {
            name: "revoked",
            keystore: before,
            enclave: "/stolen",
            reason: &["certificate revoked", "stolen"],
            both: [
                &["10.77.0.2 with the enclave /stolen is refused", "certificate revoked"],
                &["10.77.0.1 with the enclave /camera refuses this enclave", "certificate revoked"],
            ],
        },
    ];
    for Stranger { name, keystore, enclave, reason, both } in strangers {
        println!("{name}");
        let mut publisher =
            place.run(&hosts.one, "publish_to_friends", &place.keystore(), "/camera");
        publisher.hears("ready");
        let mut stranger = place.run(&hosts.other, "be_refused", &keystore, enclave);
        stranger.hears("ready");
        let friend = place.run(&hosts.other, "be_a_friend", &place.keystore(), "/friend");
        friend.ends();
        place.hears(&["/camera", enclave], reason);
        for (end, words) in ["/camera", enclave].into_iter().zip(both) {
            place.hears(&[end], words);
        }
        stranger.say("look");
        stranger.ends();
        publisher.say("end");
        publisher.ends();
    }
    nothing_is_left(&hosts);
}

pub(crate) fn publish_to_friends() {
    let node = node("publisher");
    let publisher = secret(&node).transient_local(1).publisher().unwrap();
    publisher.publish_copy(SECRET).unwrap();
    say("ready");
    heard("end");
    // The friend has gone.
    until("nobody is matched", || publisher.matched() == 0);
}

pub(crate) fn be_a_friend() {
    let node = node("friend");
    let mut subscriber = secret(&node).transient_local(1).subscriber().unwrap();
    assert!(subscriber.receive(WATCHDOG).unwrap().is_some());
}

pub(crate) fn be_refused() {
    let node = node("stranger");
    let mut subscriber = secret(&node).transient_local(1).subscriber().unwrap();
    let publisher = secret(&node).transient_local(1).publisher().unwrap();
    say("ready");
    heard("look");
    // Each other, on this host.
    assert_eq!((subscriber.matched(), publisher.matched()), (1, 1));
    assert!(subscriber.take().unwrap().is_none());
    let graph = node.graph().unwrap();
    let others = graph.endpoints.iter().filter(|it| it.location != Location::ThisHost);
    assert_eq!(others.count(), 0, "{graph:?}");
}

/// What a friend has sent, from its first packet on, comes again from another address.
#[test]
fn a_handshake_that_is_replayed_is_refused() {
    let Some(hosts) = Hosts::new() else { return };
    let place = Place::new();
    for enclave in ["/camera", "/friend"] {
        place.add(enclave, &["*"], &["*"]);
    }
    [&hosts.one, &hosts.other].iter().for_each(|host| host.send_whole_datagrams());
    let mut publisher =
        place.run(&hosts.one, "stay_and_be_replayed_to", &place.keystore(), "/camera");
    publisher.hears("ready");
    let mut recorder = hosts.other.run("record_and_replay");
    recorder.hears("ready");
    let friend = place.run(&hosts.other, "stay_until_killed", &place.keystore(), "/friend");
    publisher.hears("matched");
    // It says no goodbye, so the other side has nothing of it any more when its match has ended.
    friend.kill();
    publisher.hears("alone");
    hosts.other.address("add", "10.77.0.3");
    recorder.say("replay");
    // The old reply does not have the new random number.
    place.hears(&["/camera"], &["Process handshake failed", "challenge1 does not match"]);
    publisher.say("look");
    publisher.hears("alone");
    recorder.say("end");
    recorder.ends();
    // It goes on.
    place.run(&hosts.other, "be_a_friend", &place.keystore(), "/friend").ends();
    publisher.say("end");
    publisher.ends();
}

pub(crate) fn stay_and_be_replayed_to() {
    let node = node("publisher");
    let publisher = secret(&node).transient_local(1).publisher().unwrap();
    publisher.publish_copy(SECRET).unwrap();
    say("ready");
    assert!(publisher.wait_for_match(1, WATCHDOG));
    say("matched");
    until("nobody is matched", || publisher.matched() == 0);
    say("alone");
    heard("look");
    assert_eq!(publisher.matched(), 0);
    let graph = node.graph().unwrap();
    assert!(graph.endpoints.iter().all(|it| it.location == Location::ThisHost), "{graph:?}");
    say("alone");
    heard("end");
}

pub(crate) fn record_and_replay() {
    let mut wire = wire();
    rustix::io::ioctl_fionbio(&wire, true).unwrap();
    say("ready");
    heard("replay");
    let (mut recorded, mut packet) = (Vec::new(), vec![0; 1 << 17]);
    while let Ok(bytes) = wire.read(&mut packet) {
        recorded.extend(datagram(&packet[..bytes]));
    }
    let has = |text: &[u8]| {
        recorded.iter().any(|(_, it)| it.windows(text.len()).any(|part| part == text))
    };
    assert!(has(b"PKI-DH:1.0+Reply"), "a handshake in {} datagrams", recorded.len());
    let socket = UdpSocket::bind("10.77.0.3:0").unwrap();
    let address = libc::in_addr { s_addr: u32::from(Ipv4Addr::new(10, 77, 0, 3)).to_be() };
    // SAFETY: a value of this size that lives for the call.
    let set = unsafe {
        let (value, size) = ((&raw const address).cast(), size_of_val(&address) as u32);
        libc::setsockopt(socket.as_raw_fd(), libc::IPPROTO_IP, libc::IP_MULTICAST_IF, value, size)
    };
    assert_eq!(set, 0);
    let ends = std::thread::spawn(|| heard("end"));
    while !ends.is_finished() {
        for (to, bytes) in &recorded {
            let _ = socket.send_to(bytes, to);
            // The other side answers meanwhile.
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// A datagram that this host has sent, and where to.
fn datagram(packet: &[u8]) -> Option<(SocketAddr, Vec<u8>)> {
    let ip = packet.get(14..)?;
    let is_ours =
        packet[12..14] == [8, 0] && ip.get(9) == Some(&17) && ip.get(12..16)? == [10, 77, 0, 2];
    let udp = ip.get(usize::from(ip.first()? & 15) * 4..).filter(|_| is_ours)?;
    let to: [u8; 4] = ip.get(16..20)?.try_into().ok()?;
    let port = u16::from_be_bytes(udp.get(2..4)?.try_into().ok()?);
    Some((SocketAddr::from((to, port)), udp.get(8..)?.to_vec()))
}

#[test]
fn an_identity_that_runs_out_is_cut_off() {
    let Some(hosts) = Hosts::new() else { return };
    let place = Place::new();
    place.add("/camera", &["*"], &["*"]);
    let soon = SystemTime::now() + Duration::from_secs(8);
    place.keystore.add_until("/display", &Rights::default(), soon).unwrap();
    let mut publisher = place.run(&hosts.one, "lose_a_friend", &place.keystore(), "/camera");
    let friend = place.run(&hosts.other, "stay_until_killed", &place.keystore(), "/display");
    publisher.hears("lost");
    place.hears(&["/camera"], &["enclave /display is cut off: its certificate has run out"]);
    place.hears(&["/display"], &["no network any more", "enclaves/display", "expired"]);
    friend.kill();
    publisher.say("end");
    publisher.ends();
    // It does not come back.
    place.run(&hosts.other, "cannot_open", &place.keystore(), "/display").ends();
    place.hears(&["/display"], &["enclaves/display: ", "expired"]);
}

#[test]
fn an_identity_that_is_revoked_is_cut_off() {
    let Some(hosts) = Hosts::new() else { return };
    let place = Place::new();
    for enclave in ["/camera", "/display"] {
        place.add(enclave, &["*"], &["*"]);
    }
    let before = place.copy("before");
    let mut publisher = place.run(&hosts.one, "lose_a_friend", &place.keystore(), "/camera");
    let friend = place.run(&hosts.other, "stay_until_killed", &before, "/display");
    publisher.hears("matched");
    place.keystore.revoke("/display").unwrap();
    publisher.hears("lost");
    place.hears(&["/camera"], &["certificate revoked", "display"]);
    place.hears(&["/display"], &["/camera refuses this enclave", "certificate revoked"]);
    publisher.say("end");
    publisher.ends();
    friend.kill();
}

pub(crate) fn lose_a_friend() {
    let node = node("publisher");
    let publisher = secret(&node).publisher().unwrap();
    assert!(publisher.wait_for_match(1, WATCHDOG));
    say("matched");
    until("it is refused", || publisher.matched() == 0);
    say("lost");
    heard("end");
    assert_eq!(publisher.matched(), 0);
}

pub(crate) fn stay_until_killed() {
    let node = node("friend");
    let _subscriber = secret(&node).subscriber().unwrap();
    heard("never");
}

/// OpenSSL must not go before CycloneDDS's threads, which use it: also if the program has used it first.
#[test]
fn a_process_may_exit_while_it_receives_and_sends() {
    let Some(hosts) = Hosts::new() else { return };
    let place = Place::new();
    for enclave in ["/camera", "/display"] {
        place.add(enclave, &["*"], &["*"]);
    }
    let publisher = place.run(&hosts.one, "publish_without_end", &place.keystore(), "/camera");
    for role in ["exit_at_once", "use_openssl_and_exit"].iter().cycle().take(EXITS) {
        place.run(&hosts.other, role, &place.keystore(), "/display").ends();
    }
    publisher.kill();
}

pub(crate) fn publish_without_end() {
    let node = node("publisher");
    let publisher = node.topic::<[u8]>("flood").publisher().unwrap();
    let _subscriber = node.topic::<[u8]>("answers").subscriber().unwrap();
    loop {
        publisher.publish_copy(&SECRET.repeat(100)).unwrap();
        std::thread::sleep(Duration::from_micros(100));
    }
}

pub(crate) fn exit_at_once() {
    // Runs after those that are registered later.
    // SAFETY: the function stays.
    assert_eq!(unsafe { libc::atexit(check_that_nobody_receives) }, 0);
    let node = node("friend");
    let mut subscriber = node.topic::<[u8]>("flood").subscriber().unwrap();
    let publisher = node.topic::<[u8]>("answers").publisher().unwrap();
    std::thread::spawn(move || {
        loop {
            publisher.publish_copy(SECRET).unwrap();
        }
    });
    assert!(subscriber.receive(WATCHDOG).unwrap().is_some());
    std::process::exit(0);
}

/// A panic here ends the process by a signal.
extern "C" fn check_that_nobody_receives() {
    for thread in std::fs::read_dir("/proc/self/task").unwrap().flatten() {
        let name = std::fs::read_to_string(thread.path().join("comm")).unwrap_or_default();
        assert!(!name.starts_with("recv"), "CycloneDDS's thread {name}");
    }
}

/// As every Python program does that imports `hashlib`.
pub(crate) fn use_openssl_and_exit() {
    let libraries = [c"libcrypto.so.3", c"libcrypto.so.1.1"];
    // SAFETY: texts.
    let open = |name: &CStr| unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW) };
    let library = libraries.map(open).into_iter().find(|it| !it.is_null()).unwrap();
    // SAFETY: OpenSSL's function has this type, and has no preconditions.
    unsafe {
        let init = libc::dlsym(library, c"OPENSSL_init_crypto".as_ptr());
        assert!(!init.is_null());
        let init: extern "C" fn(u64, *const libc::c_void) -> i32 = std::mem::transmute(init);
        assert_eq!(init(0, std::ptr::null()), 1);
    }
    exit_at_once();
}

#[test]
fn without_the_right_to_a_topic_its_endpoint_is_refused_by_name() {
    let Some(hosts) = Hosts::new() else { return };
    let place = Place::new();
    place.add("/camera", &["image"], &["trigger"]);
    place.add("/display", &["*"], &["*"]);
    let mut other =
        place.run(&hosts.other, "miss_one_without_rights", &place.keystore(), "/display");
    other.hears("ready");
    let mut camera = place.run(&hosts.one, "have_few_rights", &place.keystore(), "/camera");
    other.hears("both");
    for does in
        ["may not publish DDS topic myelin/trigger", "may not subscribe to DDS topic myelin/image"]
    {
        place.hears(
            &["/display"],
            &[does, "node \"camera\"", "enclave \"/camera\"", "myelin keystore add"],
        );
    }
    other.say("end");
    other.ends();
    camera.say("end");
    camera.ends();
    nothing_is_left(&hosts);
}

/// Is where it could see what the other one may not publish, and what it may not subscribe to.
pub(crate) fn miss_one_without_rights() {
    let node = node("display");
    let publisher = node.topic::<u64>("image").publisher().unwrap();
    let subscriber = node.topic::<u64>("trigger").subscriber().unwrap();
    say("ready");
    let is_refused = |events: Vec<Event>| {
        let mut events = events.into_iter();
        events.any(|event| matches!(event, Event::Incompatible { reason, .. } if reason.contains("may not")))
    };
    until("both are refused", || is_refused(subscriber.events()));
    until("both are refused", || is_refused(publisher.events()));
    let graph = node.graph().unwrap();
    let camera = graph.nodes.iter().find(|node| node.name == "camera").unwrap();
    let attribute = |name| camera.record.attributes.get(name).map(String::from_utf8_lossy);
    assert_eq!(attribute("myelin.may_not_publish").unwrap(), "trigger");
    let denied = attribute("myelin.may_not_subscribe").unwrap();
    assert!(denied.split(' ').any(|topic| topic == "image"), "{denied}");
    say("both");
    heard("end");
}

pub(crate) fn have_few_rights() {
    let node = node("camera");
    let topic = |name| node.topic::<u64>(name);
    let _allowed = (topic("image").publisher().unwrap(), topic("trigger").subscriber().unwrap());
    for (error, does, name) in [
        (topic("trigger").publisher().unwrap_err(), "publish", "myelin/trigger"),
        (topic("image").subscriber().unwrap_err(), "subscribe to", "myelin/image"),
        (topic("other").subscriber().unwrap_err(), "subscribe to", "myelin/other"),
    ] {
        let said = error.to_string();
        let words = [does, name, "enclaves/camera/permissions.p7s", "myelin keystore add"];
        assert!(words.iter().all(|word| said.contains(word)), "{said}");
    }
    heard("end");
}

/// The other one has changed its own files, so that its own CycloneDDS accepts what it has signed.
#[test]
fn rights_that_an_enclave_has_signed_by_itself_are_refused() {
    let Some(hosts) = Hosts::new() else { return };
    let place = Place::new();
    place.add("/camera", &["image"], &[]);
    place.add("/display", &["*"], &["*"]);
    let forged = place.copy("forged");
    let enclave = forged.join("enclaves/camera");
    let authority = enclave.join("identity_ca.cert.pem").canonicalize().unwrap();
    std::fs::remove_file(enclave.join("permissions_ca.cert.pem")).unwrap();
    std::fs::copy(authority, enclave.join("permissions_ca.cert.pem")).unwrap();
    let rights = std::fs::read_to_string(forged.join("enclaves/display/permissions.xml")).unwrap();
    let rights = rights.replace("CN=/display", "CN=/camera");
    std::fs::write(enclave.join("permissions.xml"), rights).unwrap();
    std::fs::copy(forged.join("enclaves/governance.xml"), enclave.join("governance.xml")).unwrap();
    for document in ["permissions", "governance"] {
        let [xml, signed] = ["xml", "p7s"].map(|it| format!("{document}.{it}"));
        let _ = std::fs::remove_file(enclave.join(&signed));
        let mut openssl = std::process::Command::new("openssl");
        openssl.args(["smime", "-sign", "-text", "-signer", "cert.pem", "-inkey", "key.pem"]);
        openssl.args(["-in", &xml, "-out", &signed]).current_dir(&enclave);
        match openssl.status() {
            Ok(status) => assert!(status.success()),
            Err(_) => return println!("skipped: no openssl; apt-get install openssl"),
        }
    }
    let mut display = place.run(&hosts.one, "publish_to_friends", &place.keystore(), "/display");
    display.hears("ready");
    let mut camera = place.run(&hosts.other, "forge_rights", &forged, "/camera");
    // CycloneDDS 11 would not open it.
    camera.hears("opened");
    place.hears(&["/display"], &["permissions"]);
    camera.say("look");
    camera.ends();
    display.say("end");
    display.ends();
}

pub(crate) fn forge_rights() {
    let node = node("camera");
    let mut subscriber = secret(&node).transient_local(1).subscriber().unwrap();
    say("opened");
    heard("look");
    assert_eq!(subscriber.matched(), 0);
    assert!(subscriber.take().unwrap().is_none());
}

#[test]
fn a_broken_keystore_is_an_error_with_the_file() {
    let Some(hosts) = Hosts::new() else { return };
    let place = Place::new();
    for enclave in ["/camera", "/display"] {
        place.add(enclave, &["*"], &["*"]);
    }
    let broken = [
        ("cert.pem", "enclaves/camera/cert.pem: No such file", None),
        ("key.pem", "enclaves/camera/key.pem: there is no \"PRIVATE KEY\" in it", Some("none")),
        // Of another enclave: CycloneDDS says what it thinks of it.
        ("cert.pem", "enclaves/camera: ", Some("display")),
        ("permissions.p7s", "enclaves/camera: ", Some("display")),
    ];
    for (at, (file, reason, other)) in broken.into_iter().enumerate() {
        let keystore = place.copy(&format!("broken{at}"));
        let path = keystore.join("enclaves/camera").join(file);
        match other {
            None => std::fs::remove_file(&path).unwrap(),
            Some("none") => std::fs::write(&path, "none").unwrap(),
            Some(other) => {
                let other = keystore.join("enclaves").join(other).join(file);
                std::fs::copy(other, &path).unwrap();
            }
        }
        place.run(&hosts.one, "cannot_open", &keystore, "/camera").ends();
        place.hears(&["/camera"], &[reason, "nothing is sent without it", "myelin keystore"]);
    }
    for (keystore, enclave, reason) in [
        (place.keystore(), "", "MYELIN_ENCLAVE"),
        (PathBuf::new(), "/camera", "MYELIN_KEYSTORE"),
        (place.keystore(), "camera", "use a name such as /robot/camera"),
        (place.keystore(), "/../private", "use a name such as /robot/camera"),
        (place.keystore(), "/nobody", "enclaves/nobody/identity_ca.cert.pem: No such file"),
    ] {
        place.run(&hosts.one, "cannot_open", &keystore, enclave).ends();
        place.hears(&[enclave], &[reason]);
    }
}

pub(crate) fn cannot_open() {
    let error = Node::builder("broken").network(true).open().unwrap_err();
    assert!(matches!(error, Error::Network { .. } | Error::Setting { .. }), "{error:?}");
    eprintln!("{error}");
}

fn secret(node: &Node) -> Topic<[u8]> {
    node.topic::<[u8]>("secret_topic").depth(8).reliable(WATCHDOG)
}

const KEYSTORE: &str = "MYELIN_KEYSTORE";
const ENCLAVE: &str = "MYELIN_ENCLAVE";
const SECRET: &[u8] = b"the robot's payload ";
const EXITS: usize = 6;
/// Repetitions: a small one, a few fragments, many.
const SIZES: [usize; 3] = [1, 10_000, 200_000];
