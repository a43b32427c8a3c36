//! Malformed packets from the network: the packets of a real peer, captured and changed by a seed.
//! They harm neither the process nor its other topics.
//!
//! They are those of one peer, the decoy: without a keystore anybody can speak in the name of another
//! process, and end its topics. The topic with the partner must go on. With a keystore the packets are
//! announcements, handshakes, encrypted ones, and TLS.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream, UdpSocket};
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use myelin::{Node, Topic};
use myelin_keystore::{Keystore, Rights};

use crate::support::WATCHDOG;
use crate::two::{Host, Hosts, ONE, heard, say};
use crate::{node, nothing_is_left};

#[test]
#[ignore = "long: sends packets for 10 s, or MYELIN_MALFORMED_S; part of `make test-long`"]
fn malformed_packets_harm_no_other_topic() {
    harm_no_other_topic(None, setting("MYELIN_MALFORMED_S").unwrap_or(10));
}

#[test]
#[ignore = "long: sends packets for 10 s; part of `make test-long`"]
fn with_a_keystore_malformed_packets_harm_no_other_topic() {
    let folder = tempfile::tempdir().unwrap();
    let keystore = Keystore::create(&folder.path().join("keystore")).unwrap();
    for enclave in ["/victim", "/decoy", "/partner"] {
        keystore.add(enclave, &Rights::default(), 1).unwrap();
    }
    harm_no_other_topic(Some(&folder.path().join("keystore")), 10);
}

fn harm_no_other_topic(keystore: Option<&Path>, seconds: u64) {
    let Some(hosts) = Hosts::new() else { return };
    let run = |host: &Host, role, enclave: &str, stderr: Stdio| {
        let keystore = keystore.map(Path::as_os_str);
        let variables =
            keystore.map(|it| [("MYELIN_KEYSTORE", it), ("MYELIN_ENCLAVE", enclave.as_ref())]);
        host.run_as(role, variables.as_ref().map_or(&[][..], |it| it), stderr)
    };
    let seconds = seconds.to_string();
    let time = [("MYELIN_MALFORMED_S", seconds.as_ref())];
    let mut attacker = hosts.other.run_as("send_malformed_packets", &time, Stdio::inherit());
    attacker.hears("ready");
    let said = Said(tempfile::NamedTempFile::new().unwrap());
    let stderr = said.0.reopen().unwrap().into();
    let mut victim = run(&hosts.one, "be_attacked", "/victim", stderr);
    victim.hears("ready");
    let mut decoy = run(&hosts.other, "be_a_decoy", "/decoy", Stdio::inherit());
    decoy.hears("done");
    attacker.say("capture no more");
    attacker.hears("captured");
    let mut partner = run(&hosts.other, "talk_under_attack", "/partner", Stdio::inherit());
    partner.hears("talks");
    // What the process keeps for reuse has its size after the first half.
    for half in ["first half", "second half"] {
        attacker.say(half);
        attacker.hears("sent");
        partner.say(half);
        partner.hears("talks");
        victim.say(half);
        victim.hears(half);
    }
    attacker.ends();
    decoy.ends();
    partner.say("end");
    partner.ends();
    victim.say("end");
    victim.ends();
    nothing_is_left(&hosts);
}

/// What a process writes to stderr: CycloneDDS a line for each malformed packet. Shown if the test
/// fails.
struct Said(tempfile::NamedTempFile);

impl Drop for Said {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let said = std::fs::read(self.0.path()).unwrap_or_default();
            let newest = &said[said.len().saturating_sub(4_096)..];
            eprintln!("the victim wrote at last:\n{}", String::from_utf8_lossy(newest));
        }
    }
}

fn talk(node: &Node, name: &str) -> Topic<u64> {
    node.topic(name).depth(4).reliable(WATCHDOG)
}

fn large(node: &Node, name: &str) -> Topic<[u8]> {
    node.topic(name).depth(2).best_effort()
}

pub(crate) fn be_attacked() {
    let node = node("victim");
    let answers = talk(&node, "answers").publisher().unwrap();
    let questions = talk(&node, "questions").subscriber().unwrap();
    // These are attacked in the name of the decoy.
    let decoys: Vec<_> =
        ["small", "more"].map(|name| talk(&node, name).subscriber().unwrap()).into();
    let images = large(&node, "images").publisher().unwrap();
    let pictures = large(&node, "pictures").subscriber().unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (answers, images) = (answers, images);
            let (mut questions, mut decoys, mut pictures) = (questions, decoys, pictures);
            while !is_over.load(Ordering::Relaxed) {
                if let Some(question) = questions.receive(Duration::from_millis(1)).unwrap() {
                    assert!(answers.wait_for_match(1, WATCHDOG)); // the partner may see it first
                    answers.publish_copy(&question).unwrap();
                }
                for decoy in &mut decoys {
                    while decoy.take().unwrap().is_some() {}
                }
                while pictures.take().unwrap().is_some() {}
                images.publish_copy(&[7; LARGE]).unwrap();
            }
        });
        say("ready");
        heard("first half");
        let (before, counted) = (resident_bytes(), threads_and_descriptors());
        say("first half");
        heard("second half");
        let grown = resident_bytes().saturating_sub(before);
        assert!(grown < GROWTH_MAX, "{grown} B more than after the first half");
        let counts = std::iter::zip(counted, threads_and_descriptors());
        assert!(
            counts.clone().all(|(before, now)| now <= before + 8),
            "{:?}",
            Vec::from_iter(counts)
        );
        say("second half");
        heard("end");
        is_over.store(true, Ordering::Relaxed);
    });
}

pub(crate) fn be_a_decoy() {
    let node = node("decoy");
    let small = ["small", "more"].map(|name| talk(&node, name).publisher().unwrap());
    let pictures = large(&node, "pictures").publisher().unwrap();
    let mut images = large(&node, "images").subscriber().unwrap();
    assert!(pictures.wait_for_match(1, WATCHDOG));
    for number in 0..20 {
        for each in &small {
            assert!(each.wait_for_match(1, WATCHDOG));
            each.publish_copy(&number).unwrap();
        }
        pictures.publish_copy(&[1; LARGE]).unwrap();
        assert!(images.receive(WATCHDOG).unwrap().is_some());
    }
    say("done");
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

pub(crate) fn talk_under_attack() {
    let node = node("partner");
    let questions = talk(&node, "questions").publisher().unwrap();
    let mut answers = talk(&node, "answers").subscriber().unwrap();
    assert!(questions.wait_for_match(1, WATCHDOG) && answers.wait_for_match(1, WATCHDOG));
    let mut numbers = 0..;
    for next in ["first half", "second half", "end"] {
        for number in numbers.by_ref().take(100) {
            questions.publish_copy(&number).unwrap();
            assert_eq!(*answers.receive(WATCHDOG).unwrap().expect("an answer"), number);
        }
        say("talks");
        heard(next);
    }
}

/// What a peer sends: datagrams by address, and the bytes of TCP connections by port.
#[derive(Default)]
struct Captured {
    datagrams: Vec<(SocketAddrV4, Vec<u8>)>,
    connections: BTreeMap<u16, Vec<Vec<u8>>>,
}

impl Captured {
    /// Adds an IPv4 packet of this host; fragments are left out.
    fn add(&mut self, packet: &[u8]) -> Option<()> {
        let header = usize::from(packet.first()? & 15) * 4;
        let is_fragment = u16::from_be_bytes([*packet.get(6)?, *packet.get(7)?]) & 0x3fff > 0;
        let address = |at: usize| Some(Ipv4Addr::from(*packet.get(at..)?.first_chunk::<4>()?));
        let (from, to) = (address(12)?, address(16)?);
        let length = usize::from(u16::from_be_bytes([packet[2], packet[3]]));
        let body = packet.get(header..length)?;
        let port = u16::from_be_bytes([*body.get(2)?, *body.get(3)?]);
        match i32::from(packet[9]) {
            _ if is_fragment || from.to_string() == ONE => {}
            libc::IPPROTO_UDP if body.get(8..12)? == b"RTPS" => {
                self.datagrams.push((SocketAddrV4::new(to, port), body[8..].to_vec()));
            }
            libc::IPPROTO_TCP if to.to_string() == ONE => {
                let data = body.get(usize::from(body.get(12)? >> 4) * 4..)?;
                if !data.is_empty() && data.len() < 1_024 {
                    self.connections.entry(port).or_default().push(data.to_vec());
                }
            }
            _ => {}
        }
        Some(())
    }
}

pub(crate) fn send_malformed_packets() {
    // SAFETY: no preconditions; the descriptor is ours.
    let wire = unsafe {
        let protocol = i32::from((libc::ETH_P_ALL as u16).to_be());
        let wire = libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, protocol);
        assert!(wire >= 0, "{}", std::io::Error::last_os_error());
        OwnedFd::from_raw_fd(wire)
    };
    let mut wire = File::from(wire);
    rustix::net::sockopt::set_socket_recv_buffer_size_force(&wire, 64 << 20).unwrap();
    say("ready");
    heard("capture no more");
    rustix::io::ioctl_fionbio(&wire, true).unwrap();
    let (mut captured, mut packet) = (Captured::default(), vec![0; 1 << 17]);
    while let Ok(bytes) = wire.read(&mut packet) {
        if packet[..bytes].get(12..14) == Some(&[8, 0]) {
            captured.add(&packet[14..bytes]);
        }
    }
    drop(wire);
    assert!(captured.datagrams.len() > 20, "{} datagrams", captured.datagrams.len());
    assert!(!captured.connections.is_empty(), "no connection of the lane");
    say("captured");
    let seconds = setting("MYELIN_MALFORMED_S").unwrap() as f64;
    let mut random = Random(setting("MYELIN_MALFORMED_SEED").unwrap_or(1));
    for half in ["first half", "second half"] {
        heard(half);
        attack(&captured, &mut random, Duration::from_secs_f64(seconds / 2.0));
        say("sent");
    }
}

fn attack(captured: &Captured, random: &mut Random, time: Duration) {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    // The newest packets, for who looks for the one that did harm: its bytes from each 2,048th on.
    let kept = std::env::var_os("MYELIN_MALFORMED_KEEP").map(|path| File::create(path).unwrap());
    let all: Vec<&[u8]> = captured.datagrams.iter().map(|(_, bytes)| &bytes[..]).collect();
    let (begun, mut sent) = (Instant::now(), 0);
    while begun.elapsed() < time {
        let (to, bytes) = &captured.datagrams[random.below(captured.datagrams.len())];
        let mut bytes = bytes.clone();
        random.change(&mut bytes, &all);
        if let Some(kept) = &kept {
            let record = [&(bytes.len() as u16).to_le_bytes(), &bytes[..bytes.len().min(2_046)]];
            kept.write_at(&record.concat(), sent % 1_024 * 2_048).unwrap();
        }
        let _ = socket.send_to(&bytes, to); // it may have grown too long
        sent += 1;
        if sent % 64 == 0 {
            connect(captured, random);
            std::thread::sleep(Duration::from_millis(5)); // the victim's sockets must not overflow
        }
    }
    say(&format!("{sent} packets"));
}

/// A connection to the lane with the bytes of the decoy, changed. It ends at once, or when the
/// victim ends it.
fn connect(captured: &Captured, random: &mut Random) {
    let (port, all) =
        captured.connections.iter().nth(random.below(captured.connections.len())).unwrap();
    let Ok(mut stream) = TcpStream::connect((ONE, *port)) else { return };
    let all: Vec<&[u8]> = all.iter().map(|bytes| &bytes[..]).collect();
    for bytes in all.iter().take(1 + random.below(4)) {
        let mut bytes = bytes.to_vec();
        if random.below(3) > 0 {
            random.change(&mut bytes, &all);
        }
        if stream.write_all(&bytes).is_err() {
            return;
        }
    }
}

/// A linear congruential generator: the same numbers for the same seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn below(&mut self, limit: usize) -> usize {
        self.next() as usize % limit.max(1)
    }

    /// Changes bytes in up to four places, as those who look for faults do: bits, lengths and numbers
    /// at their limits, cuts, and parts of other packets.
    fn change(&mut self, bytes: &mut Vec<u8>, others: &[&[u8]]) {
        for _ in 0..1 + self.below(4) {
            if bytes.is_empty() {
                return;
            }
            let at = self.below(bytes.len());
            match self.below(8) {
                0 | 1 => bytes[at] ^= 1 << self.below(8),
                2 | 3 => {
                    let word = EDGES[self.below(EDGES.len())].to_le_bytes();
                    let size = [1, 2, 4][self.below(3)];
                    let (at, word) = (at & !(size - 1), &word[..size]);
                    let room = bytes.len().min(at + size) - at;
                    bytes[at..at + room].copy_from_slice(&word[..room]);
                }
                4 => bytes.truncate(at),
                5 => {
                    let noise: Vec<u8> = (0..self.below(64)).map(|_| self.next() as u8).collect();
                    bytes.splice(at..at, noise);
                }
                6 => {
                    let other = others[self.below(others.len())];
                    let from = self.below(other.len()) & !3;
                    bytes.truncate(at & !3);
                    bytes.extend(&other[from..]);
                }
                _ => {
                    let end = (at + self.below(64)).min(bytes.len());
                    let part = bytes[at..end].to_vec();
                    bytes.splice(at..at, part);
                }
            }
        }
        bytes.truncate(60_000);
    }
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

fn threads_and_descriptors() -> [usize; 2] {
    ["/proc/self/task", "/proc/self/fd"].map(|folder| std::fs::read_dir(folder).unwrap().count())
}

fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = text.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4_096
}

/// Of the lane.
const LARGE: usize = 64 << 10;
/// Peers that never existed live for their lease.
const GROWTH_MAX: u64 = 32 << 20;
const EDGES: [u32; 10] = [0, 1, 3, 4, 0x7f, 0xff, 0x7fff, 0xffff, 0x7fff_ffff, 0xffff_fffc];
