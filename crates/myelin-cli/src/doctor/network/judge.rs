//! The findings about a path, and the setting that fits each.

use std::net::{IpAddr, SocketAddr};

use myelin_dds::DATAGRAMS;

use super::figures::{Answered, Arrivals, Bandwidth, ClockOffset, Figures, RoundTrips};
use super::listener::{group, multicast_port};
use super::measure::udp_header_bytes;
use crate::doctor::finding::{Finding, State};

/// All findings, the worst first.
pub fn findings(figures: &Figures) -> Vec<Finding> {
    let judged = |cause, finding: Result<Finding, String>| match finding {
        Ok(finding) => Finding { cause, ..finding },
        Err(because) => Finding::unknown(cause, because),
    };
    let large = figures.large.clone();
    let arrivals = figures.arrivals.as_ref().map_err(Clone::clone);
    let mut findings = vec![
        judged("round_trip", figures.round_trip.as_ref().map(round_trip).map_err(Clone::clone)),
        judged("loss", figures.round_trip.as_ref().map_err(Clone::clone).and_then(loss)),
        judged("large_datagrams", large.map(large_datagrams)),
        judged("bandwidth", figures.bandwidth.clone().map(bandwidth)),
        judged("mtu", Ok(mtu(figures))),
        judged("clock_offset", figures.clock.clone().map(clock_offset)),
        judged("udp_ports", arrivals.clone().map(|it| udp_ports(it, figures))),
        judged("multicast", arrivals.and_then(|it| multicast(it, figures))),
        judged("ip_version", Ok(ip_version(figures))),
    ];
    findings.sort_by_key(Finding::rank);
    findings
}

fn round_trip(trips: &RoundTrips) -> Finding {
    let times = &trips.times_us;
    let (p50, most) = (times[times.len() / 2], times[times.len() - 1]);
    let Answered { sent, answered } = trips.answered;
    let is_slow = most > LATE_US;
    let found = format!(
        "p50 {}, max {} by {}, {answered} of {sent} answered",
        millis(p50),
        millis(most),
        trips.by
    );
    let finding = Finding::new(if is_slow { State::Note } else { State::Ok }, found)
        .value("round_trip_p50_us", rounded(p50))
        .value("round_trip_max_us", rounded(most));
    if !is_slow {
        return finding;
    }
    let what = "a node counts as gone when nothing has arrived from it for its lease, by default \
                1 s; announcements that are late or lost end it";
    finding
        .expects(what, None, "Myelin's default lease")
        .mend("export MYELIN_LEASE_MS=3000", None)
        .remark("on both hosts; a killed node is missed as much later")
}

fn loss(trips: &RoundTrips) -> Result<Finding, String> {
    if trips.by == "TCP" {
        return Err("TCP sends lost packets again, and ICMP is not answered or not permitted; a \
                    partner tells: `myelin doctor --serve`"
            .into());
    }
    let Answered { sent, answered } = trips.answered;
    let percent = 100.0 * (sent - answered) as f64 / sent as f64;
    let found = match trips.arrived {
        _ if sent == answered => format!("none of {sent} packets there and back"),
        None => format!("{} of {sent} packets there and back ({percent:.1} %)", sent - answered),
        Some(arrived) => format!(
            "{} of {sent} packets on the way there, {} of {arrived} on the way back",
            sent.saturating_sub(arrived),
            arrived.saturating_sub(answered)
        ),
    };
    let state = if sent == answered { State::Ok } else { State::Costs };
    let finding = Finding::new(state, found).value("loss_percent", rounded(percent));
    if sent == answered {
        return Ok(finding);
    }
    let what = "a best-effort topic loses such a share of its small samples; a reliable one sends \
                them again, a round trip later";
    Ok(finding.expects(what, None, "DDS").remark(
        "make topics reliable whose samples may not be lost, with a depth for the time of a gap; \
         look for the cause with `iw dev` (Wi-Fi) or `ip -s link` (errors of a cable)",
    ))
}

fn large_datagrams(Answered { sent, answered }: Answered) -> Finding {
    let found = format!("{answered} of {sent} datagrams of 65,000 B were answered");
    let state = if sent == answered { State::Ok } else { State::Costs };
    let finding = Finding::new(state, found)
        .value("large_datagrams", sent)
        .value("large_datagrams_answered", answered);
    if sent == answered {
        return finding;
    }
    let what = "DDS sends samples in such datagrams, each of which is 44 packets: one lost packet \
                loses all of them";
    finding
        .expects(what, None, "IP fragmentation")
        .mend("export MYELIN_DATAGRAM_BYTES=1400", None)
        .remark("on both hosts: datagrams of one packet each")
}

fn bandwidth(Bandwidth { to_mbit, from_mbit }: Bandwidth) -> Finding {
    let least = to_mbit.min(from_mbit);
    let found = format!(
        "{to_mbit:.0} Mbit/s there, {from_mbit:.0} Mbit/s back by one TCP connection; a sample of \
         1 MiB takes {}",
        millis(8.0 * (1 << 20) as f64 / least.max(1e-3))
    );
    let finding = Finding::new(if least < SLOW_MBIT { State::Note } else { State::Ok }, found)
        .value("to_mbit", rounded(to_mbit))
        .value("from_mbit", rounded(from_mbit));
    if least >= SLOW_MBIT {
        return finding;
    }
    let what = "pictures and point clouds that do not fit are late or lost";
    finding
        .expects(what, None, "their size times their rate")
        .remark("compress pictures, lower their rate, or send them when asked for")
}

fn mtu(figures: &Figures) -> Finding {
    let interface = figures.mtu.interface;
    let path = match &figures.mtu.path {
        Ok(path) => *path,
        Err(because) => {
            let found = format!("{interface} bytes at this host's interface; the path {because}");
            return Finding::new(State::Ok, found).value("interface_mtu_bytes", interface);
        }
    };
    let is_whole = path >= interface.min(ETHERNET_MTU);
    let found = if is_whole {
        format!("packets of {path} bytes arrive whole, there and back")
    } else {
        format!(
            "packets of more than {path} bytes do not arrive whole; this host sends {interface}"
        )
    };
    let finding = Finding::new(if is_whole { State::Ok } else { State::Costs }, found)
        .value("interface_mtu_bytes", interface)
        .value("path_mtu_bytes", path);
    if is_whole {
        return finding;
    }
    let what = "larger packets are fragmented on the way, or vanish where a firewall drops ICMP";
    let finding = finding.expects(what, None, "RFC 8899");
    let (datagram, name) = (path - udp_header_bytes(figures.peer), &figures.interface);
    if DATAGRAMS.contains(&datagram) {
        return finding.mend(&format!("export MYELIN_DATAGRAM_BYTES={datagram}"), None).remark(
            format!("on both hosts; or the MTU of the interface: `ip link set {name} mtu {path}`"),
        );
    }
    finding
        .mend(&format!("sudo ip link set {name} mtu {path}"), None)
        .remark("on both hosts; datagrams of DDS have at least 1,350 B")
}

fn clock_offset(ClockOffset { offset_us, error_us }: ClockOffset) -> Finding {
    let is_off = offset_us.abs() > CLOCK_OFF_US.max(error_us);
    let ahead = if offset_us < 0.0 { "behind" } else { "ahead" };
    let found = format!(
        "the other host's clock is {} {ahead}, ± {}",
        millis(offset_us.abs()),
        millis(error_us)
    );
    let finding = Finding::new(if is_off { State::Costs } else { State::Ok }, found)
        .value("clock_offset_us", rounded(offset_us))
        .value("clock_error_us", rounded(error_us));
    if !is_off {
        return finding;
    }
    let what = "`myelin topic delay` and recordings across the hosts are wrong by as much";
    finding
        .measures(what, offset_us.abs())
        .mend("sudo apt-get install chrony", None)
        .remark("on both hosts, with one of them as the other's server; for microseconds PTP")
}

fn udp_ports(arrivals: &Arrivals, figures: &Figures) -> Finding {
    let tried = |ports: &[u16]| -> Vec<u16> {
        let is_tried = |port: &u16| *port != multicast_port(figures.domain);
        ports.iter().copied().filter(is_tried).collect()
    };
    let missing = |(ports, heard): &(Vec<u16>, super::listener::Heard)| -> Vec<u16> {
        tried(ports).into_iter().filter(|port| !heard.ports.contains_key(port)).collect()
    };
    let (there, here) = (missing(&arrivals.there), missing(&arrivals.here));
    let opened = tried(&arrivals.there.0).len() + tried(&arrivals.here.0).len();
    let list = |ports: &[u16]| {
        let names: Vec<String> = ports.iter().map(u16::to_string).collect();
        names.join(", ")
    };
    let mut found = Vec::new();
    for (ports, place) in [(&there, figures.host.as_str()), (&here, "this host")] {
        if !ports.is_empty() {
            found.push(format!("nothing arrives at {place} on UDP {}", list(ports)));
        }
    }
    let is_open = found.is_empty();
    if is_open {
        found.push(format!("datagrams arrive on all {opened} ports that were tried"));
    }
    let finding = Finding::new(if is_open { State::Ok } else { State::Costs }, found.join("; "))
        .value("blocked_there", there.clone())
        .value("blocked_here", here);
    if is_open {
        return finding;
    }
    let (place, from) = if there.is_empty() {
        ("on this host", figures.peer())
    } else {
        ("on the other host", figures.own())
    };
    finding
        .expects("nodes of the two hosts do not find or hear each other", None, "DDS")
        .mend(&format!("sudo ufw allow proto udp from {from}"), None)
        .remark(format!("{place}, and likewise on the other; without ufw: `sudo nft list ruleset`"))
}

fn multicast(arrivals: &Arrivals, figures: &Figures) -> Result<Finding, String> {
    let port = multicast_port(figures.domain);
    if !arrivals.there.0.contains(&port) || !arrivals.here.0.contains(&port) {
        return Err(format!("a program that does not share UDP port {port} has it open"));
    }
    let (there, here) = (arrivals.there.1.multicast > 0, arrivals.here.1.multicast > 0);
    let yes = |arrives| if arrives { "arrives" } else { "does not arrive" };
    let group = SocketAddr::from((group(figures.own), port));
    let found = format!("what is sent to {group} {} there and {} here", yes(there), yes(here));
    let works = there && here;
    let finding = Finding::new(if works { State::Ok } else { State::Costs }, found)
        .value("multicast_there", there)
        .value("multicast_here", here);
    if works {
        return Ok(finding);
    }
    let what = "nodes that are not given the other host's address do not find it";
    Ok(by_peers(finding.expects(what, None, "DDS"), figures))
}

/// The hosts name each other, if they can: peers are named without an interface.
fn by_peers(finding: Finding, figures: &Figures) -> Finding {
    let Figures { host, interface, peer, .. } = figures;
    if is_link_local(*peer) {
        let command = format!("sudo ip address add fd00::1/64 dev {interface}");
        return finding.mend(&command, None).remark(format!(
            "and fd00::2/64 on {host}, or addresses of IPv4: nodes cannot name a link-local one. Then \
             examine that path"
        ));
    }
    finding
        .mend(&format!("export MYELIN_PEERS={}", figures.peer()), None)
        .remark(format!("here, and MYELIN_PEERS={} on {host}", figures.own()))
}

fn is_link_local(address: SocketAddr) -> bool {
    matches!(address, SocketAddr::V6(it) if it.ip().is_unicast_link_local())
}

/// A node uses one version of IP: 4, unless a peer or its interface is named by an address of 6.
fn ip_version(figures: &Figures) -> Finding {
    let Figures { host, peer, nodes_use_ipv6, .. } = figures;
    let version = |is_6| if is_6 { 6 } else { 4 };
    let (path, nodes) = (version(peer.is_ipv6()), version(*nodes_use_ipv6));
    let fits = path == nodes;
    let found = match (path, nodes) {
        _ if fits => format!("this path and the topics of this host use IPv{path}"),
        (6, _) if host.parse::<IpAddr>().is_err() && !host.contains('%') => format!(
            "{host} has only an IPv6 address; topics go by IPv4, unless MYELIN_PEERS or \
             MYELIN_INTERFACE has an IPv6 address"
        ),
        (6, _) => {
            "this path is IPv6; topics go by IPv4, unless MYELIN_PEERS or MYELIN_INTERFACE has \
                   an IPv6 address"
                .to_owned()
        }
        _ => {
            "this path is IPv4; topics go by IPv6, because MYELIN_PEERS or MYELIN_INTERFACE has an \
              IPv6 address"
                .to_owned()
        }
    };
    let finding = Finding::new(if fits { State::Ok } else { State::Costs }, found)
        .value("path_ip_version", path)
        .value("topics_ip_version", nodes);
    if fits {
        return finding;
    }
    let what = "nodes of the two hosts do not find each other on this path";
    by_peers(finding.expects(what, None, "CycloneDDS"), figures)
}

fn millis(us: f64) -> String {
    match us {
        _ if us < 1_000.0 => format!("{us:.0} µs"),
        _ if us < 100_000.0 => format!("{:.1} ms", us / 1e3),
        _ => format!("{:.0} ms", us / 1e3),
    }
}

/// To a tenth.
fn rounded(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// A tenth of the default lease.
const LATE_US: f64 = 100_000.0;
/// A fast Ethernet's.
const SLOW_MBIT: f64 = 90.0;
/// What a figure in milliseconds shows.
const CLOCK_OFF_US: f64 = 1_000.0;
const ETHERNET_MTU: u32 = 1_500;

#[cfg(test)]
mod tests {
    use super::super::figures::Mtu;
    use super::super::listener::Heard;
    use super::*;

    fn good() -> Figures {
        let ports = vec![7_400, 7_410, 40_000];
        let all = ports.iter().map(|port| (*port, 5)).collect();
        let heard = Heard { ports: all, multicast: 5, echoed: 200 };
        let answered = Answered { sent: 200, answered: 200 };
        let times_us = vec![200.0; 200];
        let arrivals = Arrivals { there: (ports.clone(), heard.clone()), here: (ports, heard) };
        Figures {
            host: "robot".into(),
            peer: "10.0.0.2:7390".parse().unwrap(),
            own: "10.0.0.1:7390".parse().unwrap(),
            nodes_use_ipv6: false,
            interface: "eth0".into(),
            domain: 0,
            round_trip: Ok(RoundTrips { by: "UDP", answered, arrived: Some(200), times_us }),
            large: Ok(Answered { sent: 20, answered: 20 }),
            bandwidth: Ok(Bandwidth { to_mbit: 940.0, from_mbit: 938.0 }),
            mtu: Mtu { interface: 1_500, path: Ok(1_500) },
            partner_missing: None,
            clock: Ok(ClockOffset { offset_us: -40.0, error_us: 100.0 }),
            arrivals: Ok(arrivals),
        }
    }

    /// The finding about `cause`, and the texts of its repair.
    fn of(figures: &Figures, cause: &str) -> (State, String, String) {
        let finding = findings(figures).into_iter().find(|it| it.cause == cause).unwrap();
        let mend = finding.mend.unwrap_or_default();
        let words = format!("{} {}", mend.now.unwrap_or_default(), mend.remark.unwrap_or_default());
        (finding.state, finding.found.or(finding.because).unwrap(), words)
    }

    #[test]
    fn a_good_path_has_nothing_to_repair() {
        let findings = findings(&good());
        assert_eq!(findings.len(), 9);
        for finding in findings {
            assert_eq!((finding.state, finding.mend), (State::Ok, None), "{}", finding.cause);
        }
    }

    #[test]
    fn each_fault_is_named_with_its_setting() {
        let mut bad = good();
        let Ok(trips) = &mut bad.round_trip else { unreachable!() };
        (trips.arrived, trips.answered.answered) = (Some(197), 195);
        trips.times_us.push(150_000.0);
        bad.large = Ok(Answered { sent: 20, answered: 12 });
        bad.bandwidth = Ok(Bandwidth { to_mbit: 48.0, from_mbit: 500.0 });
        bad.mtu.path = Ok(1_400);
        bad.clock = Ok(ClockOffset { offset_us: -25_000.0, error_us: 300.0 });
        let Ok(arrivals) = &mut bad.arrivals else { unreachable!() };
        arrivals.there.1.ports.remove(&7_410);
        arrivals.there.1.multicast = 0;
        for (cause, state, found, mend) in [
            ("round_trip", State::Note, "max 150 ms by UDP, 195 of 200", "MYELIN_LEASE_MS"),
            ("loss", State::Costs, "3 of 200 packets on the way there, 2 of 197", "reliable"),
            (
                "large_datagrams",
                State::Costs,
                "12 of 20 datagrams of 65,000 B",
                "MYELIN_DATAGRAM_BYTES=1400",
            ),
            ("bandwidth", State::Note, "48 Mbit/s there, 500 Mbit/s back", "compress"),
            ("mtu", State::Costs, "of more than 1400 bytes", "MYELIN_DATAGRAM_BYTES=1372"),
            ("clock_offset", State::Costs, "25.0 ms behind, ± 300 µs", "chrony"),
            ("udp_ports", State::Costs, "nothing arrives at robot on UDP 7410", "from 10.0.0.1"),
            ("multicast", State::Costs, "239.255.0.1:7400 does not arrive there and arrives", ""),
        ] {
            let (was, text, words) = of(&bad, cause);
            assert_eq!(was, state, "{cause}: {text}");
            assert!(text.contains(found) && words.contains(mend), "{cause}: {text} / {words}");
        }
        let (.., words) = of(&bad, "multicast");
        assert!(words.contains("MYELIN_PEERS=10.0.0.2") && words.contains("MYELIN_PEERS=10.0.0.1"));
    }

    #[test]
    fn a_path_with_small_packets_needs_an_interface_with_them() {
        let mut small = good();
        small.mtu.path = Ok(1_280);
        assert!(of(&small, "mtu").2.starts_with("sudo ip link set eth0 mtu 1280"));
        small.mtu.path = Ok(1_398);
        assert!(of(&small, "mtu").2.contains("MYELIN_DATAGRAM_BYTES=1370"));
        small.peer = "[fd00::2]:7390".parse().unwrap();
        assert!(of(&small, "mtu").2.contains("MYELIN_DATAGRAM_BYTES=1350"));
    }

    #[test]
    fn topics_need_the_version_of_the_path() {
        let mut figures = good();
        figures.nodes_use_ipv6 = true;
        let (state, text, words) = of(&figures, "ip_version");
        assert!(
            state == State::Costs && words.contains("MYELIN_PEERS=10.0.0.2"),
            "{text} / {words}"
        );
        (figures.peer, figures.own) =
            ("[fd00::2]:7390".parse().unwrap(), "[fd00::1]:7390".parse().unwrap());
        assert_eq!(of(&figures, "ip_version").0, State::Ok);
        figures.nodes_use_ipv6 = false;
        let (state, text, words) = of(&figures, "ip_version");
        assert!(
            state == State::Costs && text.starts_with("robot has only an IPv6 address; "),
            "{text}"
        );
        assert!(words.contains("MYELIN_PEERS=fd00::2") && words.contains("MYELIN_PEERS=fd00::1"));
        "fe80::2%eth0".clone_into(&mut figures.host);
        figures.peer = "[fe80::2%2]:7390".parse().unwrap();
        let (_, text, words) = of(&figures, "ip_version");
        assert!(text.starts_with("this path is IPv6; "), "{text}");
        assert!(words.starts_with("sudo ip address add fd00::1/64 dev eth0 and"), "{words}");
    }

    #[test]
    fn without_a_partner_the_rest_is_unknown_and_says_why() {
        let mut alone = good();
        let missing = || "it needs a partner".to_owned();
        alone.large = Err(missing());
        (alone.bandwidth, alone.clock, alone.arrivals) =
            (Err(missing()), Err(missing()), Err(missing()));
        alone.mtu.path = Err(missing());
        for cause in ["large_datagrams", "bandwidth", "clock_offset", "udp_ports", "multicast"] {
            let (state, text, _) = of(&alone, cause);
            assert_eq!((state, text), (State::Unknown, missing()), "{cause}");
        }
        assert_eq!(of(&alone, "mtu").0, State::Ok);
        let Ok(trips) = &mut alone.round_trip else { unreachable!() };
        trips.by = "TCP";
        assert_eq!(of(&alone, "loss").0, State::Unknown);
        alone.round_trip = Err("no answer".into());
        assert_eq!(of(&alone, "loss"), (State::Unknown, "no answer".into(), " ".into()));
    }
}
