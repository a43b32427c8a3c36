//! A real link between two namespaces: what was sent, lost and delivered adds up, and a seed gives
//! the same losses again. Needs root.

use std::io;
use std::net::UdpSocket;
use std::process::Command;
use std::time::{Duration, Instant};

use myelin_bench_link::{Conditions, Counts, EmulatedLink, End, Namespace};

const ADDRESSES: [&str; 2] = ["10.78.0.1", "10.78.0.2"];
const LINK: &str = "link0";
const FRAMES: u32 = 1_000;
const WATCHDOG: Duration = Duration::from_secs(60);

struct Network {
    hosts: [Namespace; 2],
    link: EmulatedLink,
}

impl Network {
    /// `None`, with a message, without permission to make namespaces or interfaces.
    fn new() -> Option<Self> {
        let make = || -> io::Result<Network> {
            let hosts = [Namespace::new()?, Namespace::new()?];
            let ends = hosts.each_ref().map(|namespace| End { namespace, interface: LINK });
            let link = EmulatedLink::between(ends)?;
            Ok(Network { hosts, link })
        };
        let network = match make() {
            Ok(network) => network,
            Err(error) => {
                println!("skipped: {error}");
                return None;
            }
        };
        for (host, address) in network.hosts.iter().zip(ADDRESSES) {
            // Nothing but the test's datagrams is to be on the link: no IPv6, no ARP.
            host.run(&format!("ip link set {LINK} addrgenmode none")).unwrap();
            host.run(&format!("ip link set {LINK} arp off")).unwrap();
            host.run(&format!("ip address add {address}/24 dev {LINK}")).unwrap();
        }
        network.up();
        Some(network)
    }

    /// Without ARP the hosts need each other's hardware address, which are the same.
    fn up(&self) {
        for (host, peer) in self.hosts.iter().zip([ADDRESSES[1], ADDRESSES[0]]) {
            host.run(&format!("ip link set {LINK} address 02:00:00:00:00:01")).unwrap();
            host.run(&format!("ip link set {LINK} up")).unwrap();
            let neighbour = format!("ip neighbour replace {peer} lladdr 02:00:00:00:00:01");
            host.run(&format!("{neighbour} dev {LINK}")).unwrap();
        }
    }

    /// A socket of each host, connected to that of the other.
    fn sockets(&self) -> [UdpSocket; 2] {
        let sockets = [0, 1]
            .map(|at| self.hosts[at].enter(|| UdpSocket::bind((ADDRESSES[at], 4_000))).unwrap());
        for (socket, peer) in sockets.iter().zip([ADDRESSES[1], ADDRESSES[0]]) {
            socket.connect((peer, 4_000)).unwrap();
            socket.set_read_timeout(Some(WATCHDOG)).unwrap();
        }
        sockets
    }

    /// The counts from the first host, once no frame is on its way.
    fn settled(&self, sent: u64) -> Counts {
        let begin = Instant::now();
        loop {
            let counts = self.link.counts()[0];
            if counts.sent == sent && counts.waiting == 0 {
                return counts;
            }
            assert!(begin.elapsed() < WATCHDOG, "{counts:?}");
            std::thread::yield_now();
        }
    }

    /// Sends numbered datagrams from the first host; returns the numbers that arrive.
    fn exchange(&self, [from, to]: &[UdpSocket; 2], datagrams: u32) -> Vec<u32> {
        let mut arrived = Vec::new();
        for number in 0..datagrams {
            from.send(&number.to_ne_bytes()).unwrap();
            // No more at a time than a socket holds.
            if number % 100 == 99 {
                let delivered = self.settled(u64::from(number) + 1).delivered;
                while (arrived.len() as u64) < delivered {
                    let mut datagram = [0; 4];
                    to.recv(&mut datagram).unwrap();
                    arrived.push(u32::from_ne_bytes(datagram));
                }
            }
        }
        arrived
    }
}

#[test]
fn a_lossy_link_delivers_the_same_frames_for_the_same_seed() {
    let Some(network) = Network::new() else { return };
    let sockets = network.sockets();
    let ms = Duration::from_millis;
    let lossy =
        Conditions { delay: ms(5), jitter: ms(2), loss_percent: 10.0, ..Conditions::default() };
    let exchange = |seed| {
        network.link.shape(lossy, seed).unwrap();
        let arrived = network.exchange(&sockets, FRAMES);
        let counts = network.link.counts()[0];
        assert_eq!(counts.delivered + counts.lost, u64::from(FRAMES), "{counts:?}");
        assert!((50..150).contains(&counts.lost), "{counts:?}");
        assert!(arrived.is_sorted(), "without reordering frames stay in order");
        arrived
    };
    let first = exchange(1);
    assert_eq!(first, exchange(1));
    assert_ne!(first, exchange(2));
    // The other direction has had nothing, and has lost nothing.
    assert_eq!(network.link.counts()[1], Counts::default());
}

#[test]
fn a_cut_takes_every_frame_and_a_mended_link_none() {
    let Some(network) = Network::new() else { return };
    let sockets = network.sockets();
    let has_carrier = |host: &Namespace| {
        let mut command = Command::new("ip");
        let output = host.host(command.args(["link", "show", LINK])).output().unwrap();
        !String::from_utf8_lossy(&output.stdout).contains("NO-CARRIER")
    };
    assert!(network.hosts.iter().all(has_carrier));
    network.link.set_up(false).unwrap();
    assert!(!network.hosts.iter().any(has_carrier));
    // The kernel may refuse them; none arrives.
    (0..100_u32).for_each(|number| drop(sockets[0].send(&number.to_ne_bytes())));
    sockets[1].set_nonblocking(true).unwrap();
    let nothing = sockets[1].recv(&mut [0; 4]).unwrap_err();
    assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
    assert_eq!(network.link.counts()[0].delivered, 0);
    network.link.set_up(true).unwrap();
    network.link.shape(Conditions::default(), 0).unwrap();
    network.up();
    sockets[1].set_nonblocking(false).unwrap();
    assert_eq!(network.exchange(&sockets, 100).len(), 100);
}

#[test]
fn a_rate_limits_what_waits_and_counts_what_does_not_fit() {
    let Some(network) = Network::new() else { return };
    let [from, to] = network.sockets();
    // 1,000 frames of 1,042 bytes take 8.5 s at 1 Mbit/s: all of them wait, none has arrived.
    let slow = Conditions { rate_mbit: 1.0, ..Conditions::default() };
    network.link.shape(slow, 1).unwrap();
    let mut sent = 0;
    let begin = Instant::now();
    while network.link.counts()[0].overflowed < 100 {
        from.send(&[0; 1_000]).unwrap();
        sent += 1;
        assert!(begin.elapsed() < WATCHDOG && sent < 1_000_000, "{:?}", network.link.counts());
    }
    let Counts { sent, delivered, overflowed, waiting, .. } = network.link.counts()[0];
    assert_eq!(sent, delivered + overflowed + waiting);
    assert!((990..=1_000).contains(&waiting), "{waiting} wait");
    to.recv(&mut [0; 1_000]).unwrap();
    drop(network);
}

#[test]
fn names_that_cannot_be_and_wrong_conditions_are_refused() {
    let Some(network) = Network::new() else { return };
    let [one, other] = network.hosts.each_ref();
    let end = |namespace, interface| End { namespace, interface };
    for name in ["", "a-name-that-is-too-long", LINK] {
        let Err(_) = EmulatedLink::between([end(one, "other0"), end(other, name)]) else {
            panic!("{name:?} was accepted")
        };
    }
    // What was made for the refused ones is gone: its name is free.
    assert!(EmulatedLink::between([end(one, "other0"), end(other, "other0")]).is_ok());
    let wrong = Conditions { jitter: Duration::from_millis(1), ..Conditions::default() };
    assert_eq!(network.link.shape(wrong, 0).unwrap_err().0, "jitter_ms");
}
