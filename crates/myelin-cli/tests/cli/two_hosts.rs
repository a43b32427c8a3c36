//! Runs across hosts: two namespaces of this one, joined by a cable. The results, the message where
//! namespaces cannot be made, and that nothing is left after a death of any process.

use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::time::{Duration, Instant};

use crate::support;
use crate::support::own_host;
use crate::support::own_host::NET;
use crate::support::{
    Traces, bench, complaint, finish, process_of, runs, signal, start, summary, wait_for,
};
use libc::{SIGKILL, SIGSTOP};
use serde_json::Value;

/// A scenario across hosts with one cell for each of `systems`: `runs` runs of `seconds` each.
fn scenario(folder: &Path, systems: &[&str], seconds: f64, runs: u32, network: &str) -> String {
    let text = format!(
        "name = \"test\"\nabout = \"a test\"\n\n[workload]\nkind = \"stream\"\n\
         payload_bytes = [4096]\nrate_hz = [100]\nduration_s = {seconds}\nwarmup_messages = 10\n\n\
         [plan]\nsystems = {systems:?}\ntunings = [\"default\"]\ntopology = \"two-hosts\"\n\
         runs = {runs}\n\n{network}\n"
    );
    let path = folder.join("scenario.toml");
    fs::write(&path, text).expect("a scenario file");
    path.to_string_lossy().into_owned()
}

fn run(folder: &Path, file: &str) -> (Output, PathBuf) {
    let out = folder.join("out");
    (finish(&mut bench(&["run", file, "--out", out.to_str().unwrap()])), out)
}

/// Whether this process may make namespaces; says so if not.
pub fn may_make_hosts() -> bool {
    let mut command = Command::new("true");
    // SAFETY: one async-signal-safe system call between fork and exec.
    unsafe {
        command.pre_exec(|| match libc::unshare(libc::CLONE_NEWNET | libc::CLONE_NEWNS) {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        });
    }
    let may = command.status();
    if let Err(error) = &may {
        println!("skipped: network namespaces need root: {error}");
    }
    may.is_ok()
}

/// The agent of `myelin-a` or `myelin-b`.
fn agent_of(lab: &Child, host: &str) -> Option<u32> {
    process_of(lab.id(), &["bench agent", &format!("/dev/shm/{host}")])
}

/// A network namespace, and the interfaces of this one.
fn network_of(pid: u32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/ns/net")).ok()
}

/// Interfaces that have the name of the lab's.
fn interfaces() -> Vec<String> {
    let table = fs::read_to_string(format!("{NET}/dev")).expect("/proc");
    let names = table.lines().filter_map(|line| line.split_once(':'));
    names.map(|(name, _)| name.trim().to_owned()).filter(|name| name == "link0").collect()
}

/// Whether a process is in one of these network namespaces, or holds it open.
fn is_alive(networks: &[PathBuf]) -> bool {
    let processes = fs::read_dir("/proc").expect("/proc").flatten().map(|entry| entry.path());
    processes.into_iter().any(|process| {
        let descriptors = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
        let links = descriptors.map(|entry| entry.path()).chain([process.join("ns/net")]);
        links.filter_map(|link| fs::read_link(link).ok()).any(|link| networks.contains(&link))
    })
}

/// Both namespaces of a session, once its pong is there.
fn networks(lab: &Child) -> [PathBuf; 2] {
    ["myelin-a", "myelin-b"]
        .map(|host| wait_for("the agents", || agent_of(lab, host).and_then(network_of)))
}

/// The state before: no process, namespace, interface or file may be left in addition.
struct Before {
    traces: Traces,
    interfaces: Vec<String>,
}

impl Before {
    fn look() -> Self {
        Before { traces: Traces::look(), interfaces: interfaces() }
    }

    fn assert_nothing_left(&self, networks: &[PathBuf]) {
        self.traces.assert_unchanged();
        let deadline = Instant::now() + Duration::from_secs(30);
        while is_alive(networks) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(!is_alive(networks), "{networks:?} are still there");
        assert_eq!(interfaces(), self.interfaces);
    }
}

/// Starts three runs and does `harm` in the second, once its pong is there.
fn second_run_harmed(folder: &Path, harm: impl FnOnce(&Child)) -> (Output, PathBuf, [PathBuf; 2]) {
    let file = scenario(folder, &["os.tcp"], 1.5, 3, "");
    let out = folder.join("out");
    let lab = start(&mut bench(&["run", &file, "--out", out.to_str().unwrap()]));
    let networks = networks(&lab);
    wait_for("the first run", || (!runs(&out).is_empty()).then_some(()));
    wait_for("the second run", || process_of(lab.id(), &["myelin-driver-os", "run ping"]));
    harm(&lab);
    (lab.wait_with_output().expect("the lab ends"), out, networks)
}

fn assert_one_run_failed(out: &Path, output: &Output, expected: &str) {
    let complaint = complaint(output);
    assert_eq!(output.status.code(), Some(0), "{complaint}");
    let failures: Vec<Value> =
        runs(out).iter().filter(|run| !run["failure"].is_null()).cloned().collect();
    assert_eq!((runs(out).len(), failures.len()), (3, 1), "{complaint}");
    let failure = failures[0]["failure"].as_str().unwrap();
    assert_eq!(failure, expected);
    assert!(complaint.contains(expected), "{complaint}");
    let cell = &summary(out)["cells"][0];
    assert_eq!((&cell["valid"], &cell["runs"]), (&true.into(), &2.into()), "{cell}");
}

#[test]
fn two_hosts_are_measured_and_leave_nothing() {
    let _host = own_host::enter();
    if !may_make_hosts() {
        return;
    }
    let (folder, before) = (tempfile::tempdir().unwrap(), Before::look());
    let file = scenario(folder.path(), &["os.udp", "os.tcp"], 1.0, 1, "[network]\nmtu = 1500");
    let (output, out) = run(folder.path(), &file);
    assert_eq!(output.status.code(), Some(0), "{}", complaint(&output));
    before.assert_nothing_left(&[]);
    let summary = summary(&out);
    let cells = summary["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 2);
    for cell in cells {
        assert_eq!(cell["topology"], "two-hosts");
        assert_eq!((&cell["received"], &cell["lost"]), (&100.into(), &0.into()), "{cell}");
        // 4 KiB and its number leave in three packets, and the answer to them need not.
        assert!(cell["loopback_packets_per_message"].as_f64().unwrap() >= 1.0, "{cell}");
        assert!(cell["loopback_bytes_per_byte"].as_f64().unwrap() >= 1.0, "{cell}");
    }
    for run in runs(&out) {
        let processes = run["observation"]["processes"].as_array().unwrap();
        let names: Vec<&str> = processes.iter().map(|it| it["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["ping", "pong"]);
        for process in processes {
            assert!(process["cpu_ns"].as_u64().unwrap() > 0, "{process}");
            assert!(process["rss_bytes"].as_u64().unwrap() > 0, "{process}");
            assert!(process["voluntary_switches"].as_u64().unwrap() > 50, "{process}");
        }
        let directory = out.join(run["directory"].as_str().unwrap());
        for name in ["ping.log", "pong.log", "ping.samples.zst", "pong.samples.zst"] {
            assert!(directory.join(name).exists(), "{name} of both hosts is fetched");
        }
    }
    let plan: Value = serde_json::from_slice(&fs::read(out.join("plan.json")).unwrap()).unwrap();
    assert_eq!(plan["hosts"], "netns");
}

#[test]
fn a_link_has_the_rate_it_is_given() {
    let _host = own_host::enter();
    if !may_make_hosts() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = scenario(folder.path(), &["os.tcp"], 2.0, 1, "[network]\nlink = \"100mbit\"");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("4096", "250000").replace("[100]", "[5]")).unwrap();
    let (output, out) = run(folder.path(), &file);
    assert_eq!(output.status.code(), Some(0), "{}", complaint(&output));
    // 250 kB at 100 Mbit/s take 20 ms, of which 1 ms was saved up before.
    let fastest = &summary(&out)["cells"][0]["one_way_us"]["min"];
    assert!(fastest.as_f64().unwrap() > 18_500.0, "{fastest}");
}

#[test]
fn a_cut_is_recorded_and_a_tcp_stream_loses_nothing() {
    let _host = own_host::enter();
    if !may_make_hosts() {
        return;
    }
    let (folder, before) = (tempfile::tempdir().unwrap(), Before::look());
    let network = "[network]\ncut = { at_s = 1.0, for_s = 1.0 }";
    let file = scenario(folder.path(), &["os.tcp"], 6.0, 1, network);
    let (output, out) = run(folder.path(), &file);
    assert_eq!(output.status.code(), Some(0), "{}", complaint(&output));
    let runs = runs(&out);
    let (cut, ping) = (&runs[0]["cut"], &runs[0]["ping"]);
    let (at_ns, for_ns) = (cut["at_ns"].as_u64().unwrap(), cut["for_ns"].as_u64().unwrap());
    assert!(for_ns >= 1_000_000_000, "{cut}");
    let [begin_ns, end_ns] = ["begin_ns", "end_ns"].map(|key| ping[key].as_u64().unwrap());
    assert!(begin_ns < at_ns && at_ns + for_ns < end_ns, "{cut} {ping}");
    assert_eq!(runs[0]["pong"]["received"], 600, "{}", runs[0]["pong"]);
    // Messages that were due when the link went down came when it was back.
    let slowest = &summary(&out)["cells"][0]["one_way_us"]["max"];
    assert!(slowest.as_f64().unwrap() > 0.9e6, "{slowest}");
    before.assert_nothing_left(&[]);
}

#[test]
fn a_lost_host_makes_its_run_fail() {
    let _host = own_host::enter();
    if !may_make_hosts() {
        return;
    }
    let (folder, before) = (tempfile::tempdir().unwrap(), Before::look());
    let (output, out, networks) = second_run_harmed(folder.path(), |lab| {
        signal(agent_of(lab, "myelin-b").expect("the agent of pong's host"), SIGKILL);
    });
    let expected = "the connection to host myelin-b is lost: its agent was killed by signal 9";
    assert_one_run_failed(&out, &output, expected);
    before.assert_nothing_left(&networks);

    let output = finish(&mut bench(&["run", "--resume", out.to_str().unwrap()]));
    assert_eq!(output.status.code(), Some(0), "{}", complaint(&output));
    assert_eq!(summary(&out)["cells"][0]["runs"], 3, "the failed run is made up for");
    before.assert_nothing_left(&[]);
}

#[test]
fn a_silent_host_makes_its_run_fail() {
    let _host = own_host::enter();
    if !may_make_hosts() {
        return;
    }
    let (folder, before) = (tempfile::tempdir().unwrap(), Before::look());
    let (output, out, networks) = second_run_harmed(folder.path(), |lab| {
        signal(agent_of(lab, "myelin-a").expect("the agent of ping's host"), SIGSTOP);
    });
    assert_one_run_failed(
        &out,
        &output,
        "the connection to host myelin-a is lost: no message from it for 15 s",
    );
    before.assert_nothing_left(&networks);
}

#[test]
fn a_driver_that_dies_is_named_as_on_one_host() {
    let _host = own_host::enter();
    if !may_make_hosts() {
        return;
    }
    let (folder, before) = (tempfile::tempdir().unwrap(), Before::look());
    let (output, out, networks) = second_run_harmed(folder.path(), |lab| {
        signal(process_of(lab.id(), &["myelin-driver-os", "run ping"]).unwrap(), SIGKILL);
    });
    assert_one_run_failed(&out, &output, "ping was killed by signal 9");
    before.assert_nothing_left(&networks);
}

/// Sends the first part of a datagram from ping's host, and never the rest, for which the kernel of pong's waits.
fn lose_a_fragment(agents: [u32; 2]) {
    let space = fs::File::open(format!("/proc/{}/ns/net", agents[0])).expect("a network");
    // Version and length; id; more fragments follow; time to live, UDP; addresses.
    let mut packet = [0; 20 + 16];
    packet[0] = 0x45;
    packet[4..8].copy_from_slice(&[0x12, 0x34, 0x20, 0]);
    packet[8..10].copy_from_slice(&[64, libc::IPPROTO_UDP as u8]);
    packet[12..20].copy_from_slice(&[198, 18, 0, 1, 198, 18, 0, 2]);
    let sent = std::thread::spawn(move || {
        // SAFETY: all zeros is an address; the packet is valid for its length, as is the address; the thread, which
        // alone changes its network, ends, and its socket with the call after that.
        unsafe {
            let mut to: libc::sockaddr_in = std::mem::zeroed();
            to.sin_family = libc::AF_INET as libc::sa_family_t;
            to.sin_addr.s_addr = u32::from_ne_bytes([198, 18, 0, 2]);
            assert_eq!(libc::setns(space.as_raw_fd(), libc::CLONE_NEWNET), 0);
            let socket = libc::socket(libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_RAW);
            let (to, bytes) = ((&raw const to).cast(), size_of::<libc::sockaddr_in>() as u32);
            let sent = libc::sendto(socket, packet.as_ptr().cast(), packet.len(), 0, to, bytes);
            libc::close(socket);
            sent
        }
    });
    assert_eq!(sent.join().expect("it is sent"), 36, "{}", std::io::Error::last_os_error());
    wait_for("the fragment", || {
        let statistics = fs::read_to_string(format!("/proc/{}/net/sockstat", agents[1])).ok()?;
        statistics.contains("FRAG: inuse 1 ").then_some(())
    });
}

#[test]
fn fragments_of_a_lost_datagram_are_gone_in_the_next_run() {
    let _host = own_host::enter();
    if !may_make_hosts() {
        return;
    }
    let (folder, before) = (tempfile::tempdir().unwrap(), Before::look());
    let (output, out, networks) = second_run_harmed(folder.path(), |lab| {
        let agents = ["myelin-a", "myelin-b"].map(|host| agent_of(lab, host).expect("an agent"));
        let old = network_of(agents[1]).expect("its network");
        lose_a_fragment(agents);
        wait_for("the third run's network", || {
            agent_of(lab, "myelin-b").and_then(network_of).filter(|network| *network != old)
        });
    });
    assert_eq!(output.status.code(), Some(0), "{}", complaint(&output));
    assert_eq!(summary(&out)["cells"][0]["runs"], 3);
    before.assert_nothing_left(&networks);
}

#[test]
fn a_killed_lab_leaves_neither_process_nor_namespace() {
    let _host = own_host::enter();
    if !may_make_hosts() {
        return;
    }
    let (folder, before) = (tempfile::tempdir().unwrap(), Before::look());
    let harm = |lab: &Child| signal(lab.id(), SIGKILL);
    let (_, out, networks) = second_run_harmed(folder.path(), harm);
    before.assert_nothing_left(&networks);
    assert_eq!(runs(&out).len(), 1);
    let output = finish(&mut bench(&["run", "--resume", out.to_str().unwrap()]));
    assert_eq!(output.status.code(), Some(0), "{}", complaint(&output));
    assert_eq!(runs(&out).len(), 3);
}

#[test]
fn without_permission_two_hosts_are_refused_or_left_out() {
    let _host = own_host::enter();
    let folder = tempfile::tempdir().unwrap();
    let file = scenario(folder.path(), &["os.udp"], 0.2, 1, "");
    let out = folder.path().join("out");
    let out = out.to_str().unwrap();
    let without = |arguments: &[&str]| {
        let mut command = bench(arguments);
        // SAFETY: one async-signal-safe system call between fork and exec; of a process without
        // the right nothing is taken.
        unsafe {
            command.pre_exec(|| {
                libc::prctl(libc::PR_CAPBSET_DROP, CAP_SYS_ADMIN, 0, 0, 0);
                Ok(())
            });
        }
        finish(&mut command)
    };
    let output = without(&["run", &file, "--out", out]);
    let complaint_alone = complaint(&output);
    assert_eq!(output.status.code(), Some(2), "{complaint_alone}");
    assert_eq!(complaint_alone.lines().count(), 1, "{complaint_alone}");
    let expected = "no permission to make network namespaces: run as root (CAP_SYS_ADMIN), or use \
                    real hosts with --hosts ssh:a,ssh:b";
    assert!(complaint_alone.contains(expected), "{complaint_alone}");
    assert!(!Path::new(out).exists(), "a results folder was made");

    let other = tempfile::tempdir().unwrap();
    let here = support::scenario(other.path(), &["os.futex"], 64, 0.2, 1);
    let output = without(&["run", &file, &here, "--out", out]);
    let notes = summary(Path::new(out))["notes"].to_string();
    assert!(notes.contains(&format!("`test` left out: {expected}")), "{notes}");
    assert_eq!(output.status.code(), Some(0), "{}", complaint(&output));
}

/// The counts of frames of each link and direction in a run.
fn frames(run: &Value) -> Vec<Value> {
    let links = run["link"]["frames"].as_array().unwrap_or_else(|| panic!("{run}"));
    links.iter().flat_map(|link| link.as_array().unwrap().clone()).collect()
}

#[test]
fn a_lossy_link_delays_and_loses_and_a_tcp_stream_loses_nothing() {
    let _host = own_host::enter();
    if !may_make_hosts() {
        return;
    }
    let (folder, before) = (tempfile::tempdir().unwrap(), Before::look());
    let network = "[network]\nrate_mbit = 50\ndelay_ms = 20\njitter_ms = 2\nloss_percent = 5\n\
                   reorder_percent = 1";
    let file = scenario(folder.path(), &["os.tcp"], 3.0, 1, network);
    let (output, out) = run(folder.path(), &file);
    assert_eq!(output.status.code(), Some(0), "{}", complaint(&output));
    let runs = runs(&out);
    assert_eq!(runs[0]["pong"]["received"], 300, "{}", runs[0]);
    let fastest = &summary(&out)["cells"][0]["one_way_us"]["min"];
    assert!(
        fastest.as_f64().unwrap() > 17_900.0,
        "three frames, of which one is delayed: {fastest}"
    );
    let directions = frames(&runs[0]);
    assert_eq!(directions.len(), 2);
    for counts in &directions {
        let count = |name: &str| counts[name].as_u64().unwrap();
        let fates = ["delivered", "lost", "overflowed", "cut", "refused", "waiting"].map(count);
        assert_eq!(count("sent"), fates.iter().sum::<u64>(), "{counts}");
    }
    let (sent, lost) = (&directions[0]["sent"], &directions[0]["lost"]);
    assert!(sent.as_u64() > Some(900) && lost.as_u64() > Some(10), "{directions:?}");
    assert!(runs[0]["link"]["cpu_ns"].as_u64() > Some(0));
    before.assert_nothing_left(&[]);
}

#[test]
fn a_cut_of_a_lossy_link_is_survived() {
    let _host = own_host::enter();
    if !may_make_hosts() {
        return;
    }
    let (folder, before) = (tempfile::tempdir().unwrap(), Before::look());
    let network = "[network]\ndelay_ms = 1\ncut = { at_s = 0.5, for_s = 0.5 }";
    let file = scenario(folder.path(), &["os.tcp"], 3.0, 1, network);
    let (output, out) = run(folder.path(), &file);
    assert_eq!(output.status.code(), Some(0), "{}", complaint(&output));
    let runs = runs(&out);
    assert_eq!(runs[0]["pong"]["received"], 300, "{}", runs[0]);
    assert!(runs[0]["cut"]["for_ns"].as_u64() >= Some(500_000_000), "{}", runs[0]["cut"]);
    before.assert_nothing_left(&[]);
}

#[test]
fn a_router_joins_hosts_of_two_subnets() {
    let _host = own_host::enter();
    if !may_make_hosts() {
        return;
    }
    let (folder, before) = (tempfile::tempdir().unwrap(), Before::look());
    let direct = scenario(folder.path(), &["os.udp", "os.tcp"], 0.5, 1, "");
    let text = fs::read_to_string(&direct).unwrap().replace("\"test\"", "\"routed\"");
    let [routed, both] = ["routed.toml", "both.toml"].map(|name| folder.path().join(name));
    fs::write(&routed, format!("{text}[network]\nlink = \"1gbit\"\nrouted = true\n")).unwrap();
    let text = text.replace("\"routed\"", "\"both\"");
    fs::write(&both, format!("{text}[network]\nrouted = true\ndelay_ms = 10\n")).unwrap();
    // In one session, so that one path replaces the other.
    let out = folder.path().join("out");
    let (routed, both) = (routed.to_str().unwrap(), both.to_str().unwrap());
    let arguments = ["run", &direct, routed, both, "--out", out.to_str().unwrap()];
    let output = finish(&mut bench(&arguments));
    assert_eq!(output.status.code(), Some(0), "{}", complaint(&output));
    let summary = summary(&out);
    let cells = summary["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 6);
    for cell in cells {
        assert_eq!((&cell["received"], &cell["lost"]), (&50.into(), &0.into()), "{cell}");
        let fastest = cell["one_way_us"]["min"].as_f64().unwrap();
        assert!(cell["scenario"] != "both" || fastest > 20_000.0, "two links of 10 ms: {cell}");
    }
    assert!(
        runs(&out).iter().any(|run| run["link"]["frames"][1][0]["delivered"].as_u64() > Some(0))
    );
    before.assert_nothing_left(&[]);
}

#[test]
fn invalid_hosts_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = scenario(folder.path(), &["os.udp"], 0.2, 1, "[network]\nlink = \"1gbit\"");
    for (arguments, expected) in [
        (
            ["quick", "--hosts", "netns"],
            "error: --hosts netns: no scenario needs them; only scenarios with",
        ),
        ([&file, "--hosts", "a,b"], "error: --hosts: \"a\" is not a host; use netns, or two of"),
        ([&file, "--hosts", "local,local"], "error: --hosts: local is given twice"),
        (
            [&file, "--hosts", "local,ssh:b"],
            "[network]: this program does not change the link between local,ssh:b",
        ),
    ] {
        let output = finish(&mut bench(&[&["run"], &arguments[..]].concat()));
        let complaint = complaint(&output);
        assert_eq!(output.status.code(), Some(2), "{complaint}");
        assert!(complaint.contains(expected), "{complaint}");
    }
}

/// See capabilities(7).
const CAP_SYS_ADMIN: libc::c_ulong = 21;
