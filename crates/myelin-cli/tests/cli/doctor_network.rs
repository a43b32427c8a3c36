//! `myelin doctor --network` between namespaces: a good path, a bad one behind a router, one of IPv6, and
//! one without a partner. Needs root.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{TcpStream, UdpSocket};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use myelin_bench_link::{Conditions, EmulatedLink, End, Namespace};
use serde_json::Value;

const OWN: &str = "10.79.0.1";
const PEER: &str = "10.79.0.2";
const ROUTED_PEER: &str = "10.79.1.2";
const LINK: &str = "link0";

/// A new namespace with its loopback up; `None`, with a message, without permission.
fn namespace() -> Option<Namespace> {
    let made = Namespace::new();
    if let Err(error) = &made {
        println!("skipped: network namespaces need root: {error}");
    }
    let made = made.ok()?;
    made.run("ip link set lo up").unwrap();
    Some(made)
}

/// Joins two namespaces; the interfaces have these names and addresses.
fn join(ends: [(&Namespace, &str, &str); 2]) -> EmulatedLink {
    let link = ends.map(|(namespace, interface, _)| End { namespace, interface });
    let link = EmulatedLink::between(link).unwrap();
    for (namespace, interface, address) in ends {
        namespace.run(&format!("ip address add {address}/24 dev {interface}")).unwrap();
        namespace.run(&format!("ip link set {interface} up")).unwrap();
    }
    link
}

fn doctor() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_myelin"));
    command.arg("doctor");
    command
}

/// The partner in a namespace, and its port. Killed when it is dropped.
struct Partner(Child, String);

impl Partner {
    fn start(namespace: &Namespace) -> Self {
        let mut command = doctor();
        let command = command.args(["--serve", "--port", "0"]).stdout(Stdio::piped());
        let mut child = namespace.host(command).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port = line.split("at port ").nth(1).and_then(|rest| rest.split(',').next());
        Partner(child, port.unwrap_or_else(|| panic!("{line}")).to_owned())
    }
}

impl Drop for Partner {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn examine(from: &Namespace, host: &str, port: &str) -> (Output, Value) {
    examine_by(from, doctor().args(["--network", host, "--port", port]))
}

fn examine_by(from: &Namespace, command: &mut Command) -> (Output, Value) {
    let output = from.host(command.arg("--json")).output().unwrap();
    let report = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    (output, report)
}

/// The state of a finding, and its values.
fn finding<'a>(report: &'a Value, cause: &str) -> (&'a str, &'a Value) {
    let findings = report["network"]["findings"].as_array().unwrap();
    let found = findings.iter().find(|finding| finding["cause"] == cause);
    let found = found.unwrap_or_else(|| panic!("{cause}: {report}"));
    (found["state"].as_str().unwrap(), &found["values"])
}

#[test]
fn a_good_path_costs_nothing() {
    let (Some(here), Some(there)) = (namespace(), namespace()) else { return };
    let _link = join([(&here, LINK, OWN), (&there, LINK, PEER)]);
    let partner = Partner::start(&there);
    let (output, report) = examine(&here, PEER, &partner.1);
    assert_eq!(output.status.code(), Some(0), "{report}");
    let network = &report["network"];
    assert_eq!((&network["own_address"], &network["interface"]), (&OWN.into(), &LINK.into()));
    for cause in ["loss", "large_datagrams", "mtu", "clock_offset", "udp_ports", "multicast"] {
        assert_eq!(finding(&report, cause).0, "ok", "{report}");
    }
    assert_eq!(finding(&report, "mtu").1["path_mtu_bytes"], 1_500);
    assert!(finding(&report, "bandwidth").1["to_mbit"].as_f64() > Some(1.0), "{report}");
    assert!(report.get("findings").is_none() && report.get("leftovers").is_none(), "{report}");

    // The partner serves one after the other, also by name and as text.
    let mut command = doctor();
    let arguments = ["--network", PEER, "--port", &partner.1];
    let output = here.host(command.args(arguments)).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.starts_with("path to 10.79.0.2 by link0, from 10.79.0.1\n"), "{text}");
    assert!(text.ends_with("nothing on this path needs to change\n"), "{text}");
}

#[test]
fn a_bad_path_behind_a_router_is_named() {
    let (Some(here), Some(router), Some(there)) = (namespace(), namespace(), namespace()) else {
        return;
    };
    let near = join([(&here, LINK, OWN), (&router, LINK, PEER)]);
    let _far = join([(&router, "link1", "10.79.1.1"), (&there, LINK, ROUTED_PEER)]);
    router.enter(|| std::fs::write("/proc/sys/net/ipv4/ip_forward", "1")).unwrap();
    here.run(&format!("ip route add default via {PEER}")).unwrap();
    there.run("ip route add default via 10.79.1.1").unwrap();
    // Each size that does not pass takes time; halving meets no other.
    router.run("ip link set link1 mtu 1499").unwrap();
    let ms = Duration::from_millis;
    let conditions =
        Conditions { delay: ms(5), jitter: ms(2), loss_percent: 5.0, ..Conditions::default() };
    near.shape(conditions, 1).unwrap();
    let partner = Partner::start(&there);
    let (output, report) = examine(&here, ROUTED_PEER, &partner.1);
    assert_eq!(output.status.code(), Some(1), "{report}");
    // Of 200 packets and their answers 5 % each way.
    let (state, values) = finding(&report, "loss");
    let percent = values["loss_percent"].as_f64().unwrap();
    assert!(state == "costs" && (3.0..20.0).contains(&percent), "{report}");
    let (_, values) = finding(&report, "round_trip");
    assert!(values["round_trip_p50_us"].as_f64() >= Some(6_000.0), "{values}");
    for cause in ["large_datagrams", "mtu", "multicast"] {
        assert_eq!(finding(&report, cause).0, "costs", "{cause}: {report}");
    }
    assert_eq!(finding(&report, "mtu").1["path_mtu_bytes"], 1_499);
    // Each port was tried five times, so that the loss is not taken for a firewall.
    assert_eq!(finding(&report, "udp_ports").0, "ok", "{report}");
}

/// Behind a router, which forwards no link-local multicast and has a smaller MTU on its other side.
#[test]
fn a_path_of_ipv6_is_measured_and_topics_need_a_setting_for_it() {
    let (Some(here), Some(router), Some(there)) = (namespace(), namespace(), namespace()) else {
        return;
    };
    // Otherwise a router finds no neighbour while its link-local addresses are tentative.
    for namespace in [&here, &router, &there] {
        let off = || std::fs::write("/proc/sys/net/ipv6/conf/default/dad_transmits", "0");
        namespace.enter(off).unwrap();
    }
    let _near = join([(&here, LINK, OWN), (&router, LINK, PEER)]);
    let _far = join([(&router, "link1", "10.79.1.1"), (&there, LINK, ROUTED_PEER)]);
    router.enter(|| std::fs::write("/proc/sys/net/ipv6/conf/all/forwarding", "1")).unwrap();
    router.run("ip link set link1 mtu 1499").unwrap();
    for (namespace, interface, address) in [
        (&here, LINK, "fd00::1/64"),
        (&router, LINK, "fd00::ff/64"),
        (&router, LINK, "fe80::ff/64"),
        (&router, "link1", "fd01::ff/64"),
        (&there, LINK, "fd01::2/64"),
    ] {
        namespace.run(&format!("ip address add {address} dev {interface} nodad")).unwrap();
    }
    here.run("ip route add fd01::/64 via fd00::ff").unwrap();
    there.run("ip route add fd00::/64 via fd01::ff").unwrap();

    let partner = Partner::start(&there);
    let host = format!("[fd01::2]:{}", partner.1);
    let (output, report) = examine_by(&here, doctor().args(["--network", &host]));
    assert_eq!(output.status.code(), Some(1), "{report}");
    let network = &report["network"];
    assert_eq!(
        (&network["address"], &network["own_address"]),
        (&"fd01::2".into(), &"fd00::1".into())
    );
    for cause in ["loss", "clock_offset", "udp_ports"] {
        assert_eq!(finding(&report, cause).0, "ok", "{cause}: {report}");
    }
    // The first large datagram tells this host what the router lets through.
    assert!(finding(&report, "large_datagrams").1["large_datagrams_answered"].as_u64() >= Some(18));
    for cause in ["mtu", "multicast", "ip_version"] {
        assert_eq!(finding(&report, cause).0, "costs", "{cause}: {report}");
    }
    assert_eq!(finding(&report, "mtu").1["path_mtu_bytes"], 1_499);
    assert!(finding(&report, "bandwidth").1["to_mbit"].as_f64() > Some(1.0), "{report}");
    assert!(report.to_string().contains("export MYELIN_PEERS=fd01::2"), "{report}");

    // The router's link-local address, by ICMP. A node with such a setting uses IPv6.
    let mut command = doctor();
    command.args(["--network", "fe80::ff%link0"]).env("MYELIN_INTERFACE", "fd00::1");
    let (output, report) = examine_by(&here, &mut command);
    assert_eq!(output.status.code(), Some(0), "{report}");
    assert_eq!(report["network"]["address"], "fe80::ff%link0");
    let own = report["network"]["own_address"].as_str().unwrap();
    assert!(own.starts_with("fe80::") && own.ends_with("%link0"), "{report}");
    for cause in ["round_trip", "loss", "ip_version"] {
        assert_eq!(finding(&report, cause).0, "ok", "{cause}: {report}");
    }
    assert!(report.to_string().contains("by ICMP, 100 of 100 answered"), "{report}");
}

#[test]
fn without_a_partner_the_path_is_measured_as_far_as_it_can_be() {
    let (Some(here), Some(there)) = (namespace(), namespace()) else { return };
    let _link = join([(&here, LINK, OWN), (&there, LINK, PEER)]);
    let (output, report) = examine(&here, PEER, "7390");
    assert_eq!(output.status.code(), Some(0), "{report}");
    let (state, values) = finding(&report, "round_trip");
    assert_eq!(state, "ok", "{report}");
    let of = |name: &str| values[name].as_f64().expect("a number");
    assert!(of("round_trip_p50_us") <= of("round_trip_max_us"), "{values}");
    for cause in ["large_datagrams", "bandwidth", "clock_offset", "udp_ports", "multicast"] {
        assert_eq!(finding(&report, cause).0, "unknown", "{cause}: {report}");
    }
    assert!(report.to_string().contains("run `myelin doctor --serve` on 10.79.0.2"), "{report}");
}

#[test]
fn a_partner_outlives_strangers() {
    let (Some(here), Some(there)) = (namespace(), namespace()) else { return };
    let _link = join([(&here, LINK, OWN), (&there, LINK, PEER)]);
    let mut partner = Partner::start(&there);
    let address = format!("{PEER}:{}", partner.1);
    here.enter(|| {
        // More than it serves, and silent.
        let silent: io::Result<Vec<_>> = (0..100).map(|_| TcpStream::connect(&address)).collect();
        let datagrams = UdpSocket::bind("0.0.0.0:0")?;
        let mut random = 1_u64;
        let mut below = |limit: usize| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) as usize % limit
        };
        drop(silent?);
        for number in 0..300 {
            let mut line = REQUESTS[below(REQUESTS.len())].as_bytes().to_vec();
            for _ in 0..below(4) {
                let at = below(line.len());
                match below(3) {
                    0 => line[at] ^= 1 << below(8),
                    1 => line.truncate(at.max(1)),
                    _ => line.splice(at..at, b"99999999999".iter().copied()).for_each(drop),
                }
            }
            let _ = datagrams.send_to(&line, &address);
            let Ok(mut stream) = TcpStream::connect(&address) else { continue };
            let _ = stream.write_all(&line);
            if number % 10 == 0 {
                let _ = stream.write_all(&vec![b'{'; 1 << 20]); // a line without an end
            }
        }
        Ok(())
    })
    .unwrap();
    assert_eq!(partner.0.try_wait().unwrap(), None, "it has ended");
    let tasks = format!("/proc/{}/task", partner.0.id());
    let begin = Instant::now();
    while std::fs::read_dir(&tasks).unwrap().count() > 33 {
        assert!(begin.elapsed() < Duration::from_secs(60), "it has a thread for each stranger");
        std::thread::sleep(Duration::from_millis(10));
    }
    let (_, report) = examine(&here, PEER, &partner.1);
    assert_eq!(finding(&report, "large_datagrams").0, "ok", "{report}");
}

/// What a partner is asked for.
const REQUESTS: [&str; 5] = [
    "{\"hello\":{\"version\":1,\"domain\":0}}\n\"time\"\n\"heard\"\n",
    "{\"hello\":{\"version\":1,\"domain\":4294967295}}\n{\"send\":{\"ports\":[7400,0,65535]}}\n",
    "\"time\"\n{\"send\":{\"ports\":[1]}}\n",
    "{\"source\":{\"ms\":1}}\n",
    "\"sink\"\nbytes",
];

#[test]
fn mistakes_in_the_arguments_are_named() {
    for (arguments, expected) in [
        (&["--network", "no.such.host.invalid"][..], "error: --network no.such.host.invalid: "),
        (
            &["--network", "[::1"],
            "error: --network [::1: it is neither a host nor one with a port; ",
        ),
        (
            &["--network", "fe80::1"],
            "error: --network fe80::1: a link-local address needs the interface",
        ),
        (&["--network", "fe80::1%none9"], "is none9 one?"),
        (&["--network", "[::1]:1", "--port", "2"], "--port 2 is not the port of --network"),
        (&["--network", "127.0.0.1", "--domain", "231"], "231 is not in 0..=230"),
        (&["--network", "127.0.0.1", "--fix"], "cannot be used with"),
        (&["--serve", "--network", "127.0.0.1"], "cannot be used with"),
        (&["--port", "7390"], "--network HOST or --serve"),
    ] {
        let output = doctor().args(arguments).output().unwrap();
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {complaint}");
        assert!(complaint.contains(expected), "{arguments:?}: {complaint}");
    }
}
