//! The settings of Rust's builders exist in C, C++ and Python, and those of the network do the same in each.
//!
//! Python is run if `MYELIN_PYTHON` names an interpreter that has the module, as in `scripts/python`.

mod support;
#[allow(dead_code, reason = "the library's own tests use all of it")]
#[path = "../../myelin/tests/support/hosts.rs"]
mod two;

use std::collections::BTreeSet;
use std::time::Instant;

use support::{Place, WATCHDOG, crate_folder, end, said, start};
use two::{Hosts, LINK};

#[test]
fn the_other_side() {
    match two::role().as_deref() {
        Some("take_by_tcp") => take(true),
        Some("take_by_rtps") => take(false),
        Some(_) => two::be_a_host(),
        None => {}
    }
}

/// The lists are those that other tests compare with the code.
#[test]
fn each_setting_exists_in_each_language() {
    let read = |path: &str| std::fs::read_to_string(crate_folder().join(path)).unwrap();
    let (rust, c) = (read("../myelin/public-api.txt"), read("abi.txt"));
    let (cpp, python) = (read("include/myelin.hpp"), read("../myelin-python/api.txt"));
    let mut missing = Vec::new();
    for (builder, in_c, in_python) in [
        ("NodeBuilder", "myelin_node_options", "argument Node.__init__ keyword_only"),
        ("PublisherBuilder", "myelin_publisher_options", "argument Topic.publisher keyword_only"),
        (
            "SubscriberBuilder",
            "myelin_subscriber_options",
            "argument Topic.subscriber keyword_only",
        ),
        ("Topic", "myelin_topic_options", "value _Settings"),
    ] {
        let settings = settings_of(&rust, builder);
        assert!(settings.len() > 4, "{builder} is not read: {settings:?}");
        for setting in settings {
            let renamed = RENAMED.iter().find(|(name, ..)| *name == setting);
            let (_, c_name, python_name) = renamed.copied().unwrap_or((setting, setting, setting));
            // Structs of C are those of C++, but for a topic's.
            let as_call = format!(" Topic &{setting}(");
            let has_cpp = builder != "Topic" || setting == DEFAULT || cpp.contains(&as_call);
            let has_python = [" ", "."].iter().any(|dot| {
                let line = format!("{in_python}{dot}{python_name}");
                python.lines().any(|it| it.split([':', '=']).next().unwrap().trim_end() == line)
            });
            let is_lower = builder == "Topic" && LOWER_LAYERS.contains(&setting);
            for (language, has_it) in [
                ("C", c.contains(&format!("\nmember {in_c}.{c_name} "))),
                ("C++", has_cpp || is_lower),
                ("Python", has_python || is_lower),
            ] {
                if !has_it {
                    missing.push(format!("{builder}::{setting} in {language}"));
                }
            }
        }
    }
    assert_eq!(missing, [""; 0]);
}

/// The methods of a builder that return it.
fn settings_of<'a>(rust: &'a str, builder: &str) -> BTreeSet<&'a str> {
    let begins = format!("fn myelin::{builder}");
    let own = rust.lines().filter_map(|line| line.strip_prefix(&begins)?.strip_suffix(" -> Self"));
    let calls = own.filter_map(|line| line.split_once("::"));
    let calls = calls.filter(|(of, _)| of.is_empty() || of.starts_with('<'));
    calls.map(|(_, call)| call.split(['(', '<']).next().unwrap()).collect()
}

/// In Rust, C and Python.
const RENAMED: [(&str, &str, &str); 11] = [
    ("attribute", "attributes", "attributes"),
    ("best_effort", "reliability", "reliable"),
    ("deadline", "deadline_ns", "deadline"),
    ("lease", "lease_ns", "lease"),
    ("liveliness", "liveliness_ns", "liveliness"),
    ("match_limit", "match_limit_ns", "match_limit"),
    ("namespace", "node_namespace", "namespace"),
    ("reliable", "reliability", "reliable"),
    ("reliable_keep_last", "reliability", "reliable_keep_last"),
    ("reliable_or_fail", "reliability", "reliable_or_fail"),
    ("threads", "thread_cpus", "thread_cpus"),
];
/// What a topic is without a setting.
const DEFAULT: &str = "best_effort";
/// Of middlewares that stand on Myelin, which are written in Rust or C.
const LOWER_LAYERS: [&str; 3] = ["dds_user_data", "dds_vendor", "schema"];

/// A packet of the link has room for a datagram of the requested size and no byte more, so that the kernel
/// counts the fragments of larger ones. By TCP the hosts are named by addresses of IPv6, and use it.
#[test]
fn the_network_s_settings_do_the_same_in_each_language() {
    let Some(hosts) = Hosts::new() else { return };
    let mtu = (DATAGRAM_BYTES + UDP_BYTES).to_string();
    let datagram_bytes = DATAGRAM_BYTES.to_string();
    for (host, address) in [(&hosts.one, "fd00::1/64"), (&hosts.other, "fd00::2/64")] {
        host.ip(&["link", "set", LINK, "mtu", &mtu]);
        host.ip(&["addr", "add", address, "dev", LINK, "nodad"]);
    }
    let place = Place::new();
    let source = |language| format!("tests/programs/network_settings.{language}");
    let python = std::env::var_os("MYELIN_PYTHON");
    let script = crate_folder().join(source("py"));
    let programs = match &python {
        Some(python) => vec![(python.into(), vec![script.to_str().unwrap()])],
        None => ["c", "cpp"].map(|it| (place.compile(&source(it), &[]), Vec::new())).into(),
    };
    for (program, mut arguments) in programs {
        let words = arguments.len();
        for (role, bulk_lane, peers) in
            [("take_by_rtps", "-1", ["", ""]), ("take_by_tcp", "1", ["fd00::2", "fd00::1"])]
        {
            println!("{}: {role}", program.display());
            let mut taker = hosts.other.run_with_peers(role, peers[1]);
            taker.hears("ready");
            arguments.truncate(words);
            arguments.extend([bulk_lane, &datagram_bytes]);
            let mut command = hosts.one.command(&program);
            command.env("MYELIN_PEERS", peers[0]);
            let publishing = start(command, &arguments);
            taker.ends();
            said(end(publishing));
        }
    }
}

fn take(by_tcp: bool) {
    let before = Arrived::now();
    let node = myelin::Node::builder("taker").network(true).open().unwrap();
    let topic = node.topic::<[u8]>("large").depth(8).reliable(WATCHDOG);
    let mut subscriber = topic.subscriber().unwrap();
    two::say("ready");
    let (begin, mut taken) = (Instant::now(), 0);
    let arrived = loop {
        let arrived = Arrived::now().since(&before);
        // The lane begins with the first large sample, and DDS serves the next ones.
        if taken >= SAMPLES && (!by_tcp || arrived.by_tcp >= SAMPLES) {
            break arrived;
        }
        assert!(begin.elapsed() < WATCHDOG, "{taken} samples, {arrived:?}");
        subscriber.receive(WATCHDOG).unwrap().expect("a sample");
        taken += 1;
    };
    assert_eq!(arrived.connections > 0, by_tcp, "{arrived:?}");
    assert_eq!(arrived.fragments, 0, "datagrams of more than {DATAGRAM_BYTES} B: {arrived:?}");
    let least = if by_tcp { 0 } else { SAMPLES * LARGE_BYTES / DATAGRAM_BYTES };
    assert!(arrived.datagrams >= least, "{arrived:?}");
}

/// What the kernel has counted on this host.
#[derive(Debug)]
struct Arrived {
    /// Of TCP, opened from either side.
    connections: u64,
    /// Segments of TCP.
    by_tcp: u64,
    /// Datagrams of UDP.
    datagrams: u64,
    /// Parts of datagrams.
    fragments: u64,
}

impl Arrived {
    fn now() -> Arrived {
        let text = std::fs::read_to_string("/proc/self/net/snmp").unwrap();
        let of = |protocol: &str, counter: &str| -> u64 {
            let mut lines = text.lines().filter_map(|line| line.strip_prefix(protocol));
            let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
            let mut pairs = names.split(' ').zip(values.split(' '));
            pairs.find(|(name, _)| *name == counter).unwrap().1.parse().unwrap()
        };
        Arrived {
            connections: of("Tcp: ", "ActiveOpens") + of("Tcp: ", "PassiveOpens"),
            by_tcp: of("Tcp: ", "InSegs"),
            datagrams: of("Udp: ", "InDatagrams"),
            fragments: of("Ip: ", "ReasmReqds"),
        }
    }

    fn since(&self, before: &Arrived) -> Arrived {
        Arrived {
            connections: self.connections - before.connections,
            by_tcp: self.by_tcp - before.by_tcp,
            datagrams: self.datagrams - before.datagrams,
            fragments: self.fragments - before.fragments,
        }
    }
}

const DATAGRAM_BYTES: u64 = 1_400;
/// Headers of IP and UDP.
const UDP_BYTES: u64 = 28;
/// As the programs publish them.
const LARGE_BYTES: u64 = 64 << 10;
const SAMPLES: u64 = 64;
