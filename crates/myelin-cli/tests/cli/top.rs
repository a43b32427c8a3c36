//! `myelin top` on a robot of small processes: on a pseudo-terminal, whose screen an emulator draws,
//! and as text.

use std::io::Read;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use myelin::{Matching, Node, PlainData};
use myelin_tools::top::terminal::OwnScreen;
use serde_json::Value;

use crate::support::pty::Session;
use crate::support::{finish, myelin, signal, wait_for};

/// A node in a process of its own, which ends with the test.
struct Peer {
    process: Child,
    _output: ChildStdout,
}

impl Peer {
    /// Starts it; it is ready on return.
    fn start(runtime_dir: &Path, role: &str, name: &str) -> Peer {
        let mut command = peer_command(runtime_dir, role, name);
        let mut process =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut output = process.stdout.take().unwrap();
        let mut text = String::new();
        while !text.contains("ready") {
            let mut byte = [0];
            assert_eq!(output.read(&mut byte).unwrap(), 1, "{role} has ended: {text}");
            text.push(byte[0] as char);
        }
        Peer { process, _output: output }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn peer_command(runtime_dir: &Path, role: &str, name: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["top::peer", "--exact", "--ignored", "--nocapture"]);
    command.env("MYELIN_RUNTIME_DIR", runtime_dir).env(ROLE, format!("{role} {name}"));
    command
}

#[derive(Clone, Copy, PlainData)]
#[repr(C)]
struct Imu {
    stamp_ns: u64,
    acceleration: [f64; 3],
}

/// A process of the robot: its standard input ends with the test.
#[test]
#[ignore = "it is a process of other tests"]
fn peer() {
    let role = std::env::var(ROLE).expect("it is started by a test");
    let (role, name) = role.split_once(' ').unwrap();
    let node = Node::new(name).unwrap();
    match role {
        "imu" => {
            let topic = node.topic::<Imu>("imu").depth(64);
            let publisher = topic.publisher_builder().timestamps(true).open().unwrap();
            ready();
            for stamp_ns in 0.. {
                let imu = Imu { stamp_ns, acceleration: [0.0, 0.5, 9.81] };
                publisher.publish_copy(&imu).unwrap();
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        "bystander" => {
            let publisher = node.topic::<u64>("battery").publisher().unwrap();
            let monitor = Node::new("monitor").unwrap();
            let reliable = monitor.topic::<u64>("battery").reliable(Duration::from_millis(10));
            let reliable = reliable.matching(Matching::RequestedOffered);
            let subscriber = reliable.subscriber().unwrap();
            ready();
            let _ = std::io::stdin().read(&mut [0]);
            drop((publisher, subscriber));
        }
        "many" => {
            let topic = |index| format!("{name}/topic{index:03}");
            let topics: Vec<_> = (0..100).map(|it| node.topic::<Imu>(&topic(it))).collect();
            let publishers: Vec<_> = topics.iter().map(|it| it.publisher().unwrap()).collect();
            let other = Node::new(&format!("{name}.subscriber")).unwrap();
            let topics = (0..100).map(|it| other.topic::<Imu>(&topic(it)));
            let mut subscribers: Vec<_> = topics.map(|it| it.subscriber().unwrap()).collect();
            ready();
            loop {
                for (publisher, subscriber) in publishers.iter().zip(&mut subscribers) {
                    let imu = Imu { stamp_ns: 0, acceleration: [0.0; 3] };
                    publisher.publish_copy(&imu).unwrap();
                    while subscriber.take().unwrap().is_some() {}
                }
                std::thread::sleep(Duration::from_millis(100));
            }
        }
        // In another thread than the one that draws.
        "panic" => {
            let mut screen = OwnScreen::enter().unwrap();
            screen.terminal().draw(|frame| frame.render_widget("drawn", frame.area())).unwrap();
            let _ = std::io::stdin().read(&mut [0]);
            std::thread::spawn(|| panic!("as the test wants")).join().unwrap_err();
            std::mem::forget(screen);
        }
        // It takes one sample in a while, and loses the others.
        "slow" => {
            let mut subscriber = node.topic::<Imu>("imu").subscriber().unwrap();
            ready();
            loop {
                subscriber.take().unwrap();
                std::thread::sleep(Duration::from_millis(500));
            }
        }
        other => panic!("no role {other}"),
    }
}

fn ready() {
    println!("ready");
}

/// A robot: an IMU at 200 Hz, a logger that is too slow, and two nodes that do not match.
fn robot() -> (tempfile::TempDir, [Peer; 3]) {
    let folder = tempfile::tempdir().unwrap();
    let start = |role, name| Peer::start(folder.path(), role, name);
    let peers = [start("imu", "driver"), start("slow", "logger"), start("bystander", "power")];
    (folder, peers)
}

fn top(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = myelin(&["top"]);
    if !arguments.contains(&"--interval") {
        command.args(["--interval", "200ms"]);
    }
    command.args(arguments).env("MYELIN_RUNTIME_DIR", folder);
    command.env("TERM", "xterm-256color").env_remove("NO_COLOR").env("LC_ALL", "C.UTF-8");
    command
}

fn row(text: &str, name: &str) -> Option<Vec<String>> {
    let line =
        text.lines().find(|it| it.trim_start_matches("> ").trim_start().starts_with(name))?;
    Some(line.trim_start_matches('>').split_whitespace().map(str::to_owned).collect())
}

#[test]
fn keys_change_what_is_shown() {
    let (folder, _peers) = robot();
    let mut session = Session::start(&mut top(folder.path(), &[]), 24, 80);
    let rate = |text: &str| row(text, "imu")?.get(2)?.parse::<f64>().ok();
    let text = session.wait("the rate of the topic", |it| rate(it).is_some_and(|it| it > 50.0));
    assert!(text.contains("> battery"), "{text}");
    session.wait("bandwidth: 32 bytes a sample", |it| {
        let kilobytes = |text: &str| text.strip_suffix('k')?.parse::<f64>().ok();
        row(it, "imu").is_some_and(|it| kilobytes(&it[3]).is_some_and(|it| it > 1.0))
    });
    // The publisher adds timestamps, so the subscriber knows how late it is.
    let text = session.wait("latency and losses", |it| {
        let is_slow = |text: &str| text.ends_with("ms") || text.ends_with('s');
        row(it, "imu").is_some_and(|it| it.len() > 7 && is_slow(&it[4]) && is_slow(&it[5]))
    });
    assert!(text.contains("1/1!"), "{text}");
    assert!(text.contains("not matched: power and monitor: "), "{text}");

    session.press("r");
    session.wait("the fastest first", |it| {
        it.contains("[r:rate]") && it.find("imu") < it.find("battery")
    });
    let text = session.text();
    assert!(row(&text, "battery").is_some() && text.contains("> battery"), "{text}");
    session.press("/im?");
    session.wait("a filter", |it| it.contains("/im?_") && it.contains("> imu"));
    session.press("\r");
    session.wait("one row", |it| it.contains("/im?  Esc clear") && row(it, "battery").is_none());
    session.wait("losses by subscriber", |it| it.contains("lost: logger "));
    session.press("\x1b");
    session.wait("all rows", |it| row(it, "battery").is_some());

    session.press("\t");
    let text =
        session.wait("nodes", |it| it.contains("NODES topics") && row(it, "driver").is_some());
    let driver = row(&text, "driver").unwrap();
    let pid = driver[1].parse::<u32>();
    assert!(pid.is_ok() && driver[4].parse::<u32>().is_ok_and(|it| it > 0), "{text}");
    session.press("?");
    session.wait("the help", |it| it.contains("Ctrl-Z"));
    session.press("q");
    assert_eq!(session.finish().code(), Some(0));
}

#[test]
fn details_show_periods_samples_and_who_is_not_matched() {
    let (folder, _peers) = robot();
    let mut session = Session::start(&mut top(folder.path(), &["--sort", "rate"]), 40, 100);
    session.wait("the topics", |it| row(it, "battery").is_some() && row(it, "imu").is_some());
    session.press("/imu\r\r");
    session.wait("a histogram of periods and the fields of samples", |it| {
        it.contains("p99")
            && it.contains("% \u{2588}")
            && it.contains("\"acceleration\": [0.0, 0.5, 9.81]")
    });
    let text = session.text();
    assert!(text.contains("driver") && text.contains("-> logger"), "{text}");
    session.press("\x1b");
    session.wait("the table", |it| it.contains("TOPICS"));
    session.press("\x1b");
    // Otherwise the two keys could be one, with Alt.
    session.wait("no filter", |it| !it.contains("Esc clear"));
    session.press("/bat\r\r");
    session.wait("the reason", |it| it.contains("not monitor: ") && it.contains("reliab"));
    session.press("\x03");
    assert_eq!(session.finish().code(), Some(0));
}

#[test]
fn a_frozen_screen_stays_and_dead_and_stopped_nodes_are_seen() {
    let (folder, mut peers) = robot();
    let mut session = Session::start(&mut top(folder.path(), &[]), 24, 80);
    session.wait("the topics", |it| row(it, "imu").is_some());
    session.press("\t");
    session.wait("all nodes", |it| {
        ["driver", "logger", "power"].iter().all(|name| row(it, name).is_some())
    });
    session.wait("the first one is selected", |it| it.contains("> driver"));
    session.press(" ");
    session.wait("frozen", |it| it.contains("FROZEN"));
    peers[0].process.kill().unwrap();
    peers[0].process.wait().unwrap();
    // What another observer sees, this screen does not.
    wait_for("the node to be gone", || {
        let text = String::from_utf8(finish(&mut top(folder.path(), &["--once"])).stdout).unwrap();
        row(&text, "driver").is_none().then_some(())
    });
    assert!(session.text().contains("> driver"), "{}", session.text());
    session.press(" ");
    let text = session.wait("it has gone", |it| row(it, "driver").is_none());
    assert!(text.contains("> logger"), "the row at its place is selected:\n{text}");
    // A stopped one is named, and holds up nothing.
    signal(peers[1].process.id(), libc::SIGSTOP);
    let text = session.wait("stopped", |it| it.contains("logger is stopped by a signal"));
    assert!(row(&text, "logger").unwrap().contains(&"stopped".to_owned()), "{text}");
    session.press("q");
    assert_eq!(session.finish().code(), Some(0));
}

#[test]
fn a_small_terminal_and_one_without_colour_are_enough() {
    let (folder, _peers) = robot();
    let mut session = Session::start(top(folder.path(), &[]).env("NO_COLOR", "1"), 24, 80);
    session.wait("the topics", |it| row(it, "imu").is_some() && it.contains("MEM"));
    session.resize(15, 40);
    let text =
        session.wait("40 columns", |it| it.contains("sort [n] e") && row(it, "imu").is_some());
    assert!(text.contains("LOST") && !text.contains("MEM"), "{text}");
    session.press("q");
    assert_eq!(session.finish().code(), Some(0));
    let raw = session.raw();
    let colours = raw.split("\x1b[").skip(1).filter(|it| {
        let end = it.find(|c: char| !c.is_ascii_digit() && c != ';').unwrap_or(0);
        let codes = it[..end].split(';').filter_map(|code| code.parse::<u32>().ok());
        it[end..].starts_with('m') && { codes }.any(|it| matches!(it, 30..=38 | 40..=48 | 90..))
    });
    assert_eq!(colours.count(), 0, "{raw:?}");
}

#[test]
fn signals_leave_the_terminal_as_it_was() {
    let (folder, _peers) = robot();
    for (number, name) in [(libc::SIGTERM, "TERM"), (libc::SIGHUP, "HUP"), (libc::SIGQUIT, "QUIT")]
    {
        let mut session = Session::start(&mut top(folder.path(), &[]), 24, 80);
        session.wait("the topics", |it| row(it, "imu").is_some());
        signal(session.process.id(), number);
        let status = session.finish();
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(number), "{name}");
    }
    let mut session = Session::start(&mut top(folder.path(), &[]), 24, 80);
    session.wait("the topics", |it| row(it, "imu").is_some());
    signal(session.process.id(), libc::SIGINT);
    assert_eq!(session.finish().code(), Some(0));
}

#[test]
fn a_panic_leaves_its_message_on_the_old_screen() {
    let folder = tempfile::tempdir().unwrap();
    let mut session = Session::start(&mut peer_command(folder.path(), "panic", "top"), 24, 80);
    session.wait("its own screen", |it| it.contains("drawn"));
    assert!(!session.has_old_screen() && !session.has_old_settings());
    session.press("x");
    session.wait("the message", |it| it.contains("as the test wants"));
    wait_for("the old state", || {
        (session.has_old_screen() && session.has_old_settings()).then_some(())
    });
}

#[test]
fn it_stops_as_the_shell_wants_and_goes_on() {
    let (folder, _peers) = robot();
    let command = top(folder.path(), &[]);
    // A shell starts it, as its job: a group without one cannot be stopped.
    let mut shell = Command::new("sh");
    shell.args(["-mc", "\"$@\"; echo stopped; read -r _; fg >/dev/null; echo ended", "sh"]);
    shell.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        shell.env(name, value.unwrap_or_default());
    }
    shell.env_remove("NO_COLOR");
    let mut session = Session::start(&mut shell, 24, 80);
    session.wait("the topics", |it| row(it, "imu").is_some());
    session.press("\x1a");
    session.wait("the shell's own screen", |it| it.contains("stopped") && row(it, "imu").is_none());
    assert!(session.has_old_screen());
    session.press("\n");
    session.wait("the topics again", |it| row(it, "imu").is_some());
    session.press("q");
    session.wait("the end", |it| it.contains("ended"));
    assert_eq!(session.finish().code(), Some(0));
}

#[test]
fn a_closed_terminal_ends_it() {
    let (folder, _peers) = robot();
    let mut session = Session::start(&mut top(folder.path(), &[]), 24, 80);
    session.wait("the topics", |it| row(it, "imu").is_some());
    session.hang_up();
    wait_for("the end of top", || session.process.try_wait().unwrap());
}

#[test]
fn text_comes_without_a_terminal_and_repeats_on_a_dumb_one() {
    let (folder, _peers) = robot();
    let output = finish(&mut top(folder.path(), &["--sort", "rate"]));
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8(output.stdout).unwrap();
    let imu = row(&text, "imu").unwrap_or_else(|| panic!("{text}"));
    assert!(imu[2].parse::<f64>().is_ok_and(|it| it > 0.0), "{text}");
    assert!(text.find("imu") < text.find("battery"), "{text}");
    assert!(text.contains("! battery: not matched: power and monitor: "), "{text}");
    assert!(row(&text, "logger").is_some() && !text.contains('\x1b'), "{text}");
    assert!(text.lines().filter(|it| !it.starts_with('!')).all(|it| it.len() <= 80), "{text}");

    let mut session = Session::start(top(folder.path(), &[]).env("TERM", "dumb"), 60, 80);
    wait_for("the text twice", || (session.raw().matches("TOPIC").count() > 1).then_some(()));
    signal(session.process.id(), libc::SIGINT);
    assert_eq!(session.finish().code(), Some(0));
    assert!(!session.raw().contains('\x1b'), "{:?}", session.raw());
}

#[test]
fn json_has_an_object_a_line() {
    let (folder, _peers) = robot();
    let mut command = top(folder.path(), &["--json"]);
    let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut reader = std::io::BufReader::new(process.stdout.take().unwrap());
    // Until the subscriber has taken samples.
    let (mut count, mut last) = (0, Value::Null);
    let is_measured = |last: &Value| {
        let topics = last["topics"].as_array().into_iter().flatten();
        topics.filter(|it| it["name"] == "imu").any(|it| it["latency_us"].is_object())
    };
    while count < 2 || !is_measured(&last) {
        let mut line = String::new();
        std::io::BufRead::read_line(&mut reader, &mut line).unwrap();
        last = serde_json::from_str(&line).unwrap();
        count += 1;
        assert!(count < 300, "a minute: {last}");
    }
    // Its reader goes: the command has done its work.
    drop(reader);
    let status = wait_for("its end", || process.try_wait().unwrap());
    assert_eq!(status.code(), Some(0));
    assert!(last["interval_s"].as_f64().is_some_and(|it| it > 0.0), "{last}");
    let named = |of: &str, name: &str| {
        let all = last[of].as_array().unwrap();
        all.iter().find(|it| it["name"] == name).unwrap_or_else(|| panic!("{last}")).clone()
    };
    let imu = named("topics", "imu");
    assert!(imu["rate_hz"].as_f64().is_some_and(|it| it > 0.0), "{imu}");
    assert!(imu["type"].as_str().is_some_and(|it| it.ends_with("Imu")), "{imu}");
    assert!(imu["memory_bytes"].as_u64().is_some_and(|it| it > 0), "{imu}");
    assert!(imu["latency_us"]["p50"].as_f64().is_some_and(|it| it > 0.0), "{imu}");
    assert_eq!(imu["subscribers"][0]["node_name"], "logger");
    let lost = imu["subscribers"][0]["losses"]["overwritten"].as_u64();
    assert_eq!(lost, imu["subscribers"][0]["lost_total"].as_u64());
    assert_eq!(imu["publishers"][0]["matches"][0]["is_matched"], true);
    let battery = named("topics", "battery");
    assert_eq!(battery["refused"], 1);
    assert!(battery["subscribers"][0]["matches"][0]["refusal"].is_string(), "{battery}");
    assert!(named("nodes", "driver")["pid"].as_u64().is_some_and(|it| it > 0));
}

#[test]
fn names_are_those_of_ros_2() {
    let folder = tempfile::tempdir().unwrap();
    let node = myelin::Node::builder("rmw").runtime_dir(folder.path()).open().unwrap();
    // As `rmw_myelin` makes them: two nodes in one process, and a service.
    let topic = |name: &str, of: &str| {
        let topic = node.topic::<[u8]>(name).dds_cdr("std_msgs::msg::dds_::String_");
        topic.attribute("ros.node", of.as_bytes())
    };
    let _ends = (
        topic("rt/chatter", "/front/talker").publisher().unwrap(),
        topic("rt/chatter", "/listener").subscriber().unwrap(),
        topic("rq/talker/get_parametersRequest", "/front/talker").subscriber().unwrap(),
    );
    let output = finish(&mut top(folder.path(), &["--json", "--once"]));
    let all: Value = serde_json::from_slice(&output.stdout).unwrap();
    let [topic] = &all["topics"].as_array().unwrap()[..] else { panic!("{all}") };
    assert_eq!((&topic["name"], &topic["wire_name"]), (&"/chatter".into(), &"rt/chatter".into()));
    assert_eq!(topic["type"], "std_msgs/msg/String");
    let publisher = &topic["publishers"][0];
    assert_eq!(publisher["node_name"], "/front/talker");
    assert_eq!(publisher["matches"][0]["node_name"], "/listener");
    let nodes = all["nodes"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap());
    assert_eq!(nodes.collect::<Vec<_>>(), ["/front/talker", "/listener", "myelin top"]);
    let text = finish(&mut top(folder.path(), &["--once"])).stdout;
    let text = String::from_utf8(text).unwrap();
    assert!(row(&text, "/chatter").is_some() && row(&text, "/front/talker").is_some(), "{text}");
}

#[test]
fn mistakes_are_named() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, part) in [
        (["--sort", "colour"], "use one of bw, cpu"),
        (["--interval", "1ms"], "use a time from 100ms"),
    ] {
        let output = finish(&mut top(folder.path(), &arguments));
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{complaint}");
        assert!(complaint.contains(part), "{complaint}");
    }
}

/// The share of a core that `myelin top` takes with 1,000 topics, and the time from a key to what it
/// draws. `MYELIN_PROGRAM` is the program, so that it can be one of a release.
#[test]
#[ignore = "measures: run it alone, with --ignored --nocapture"]
fn cost_of_a_thousand_topics() {
    let folder = tempfile::tempdir().unwrap();
    let peers: Vec<_> =
        (0..10).map(|it| Peer::start(folder.path(), "many", &format!("node{it}"))).collect();
    let program = std::env::var("MYELIN_PROGRAM");
    let mut command = Command::new(program.as_deref().unwrap_or(env!("CARGO_BIN_EXE_myelin")));
    let sort = ["top", "--sort", "rate"];
    command.args(sort).env("MYELIN_RUNTIME_DIR", folder.path()).env("TERM", "xterm-256color");
    let mut session = Session::start(&mut command, 24, 80);
    session.wait("all topics", |it| it.contains("1000 topics") && it.contains("/topic"));
    let cpu_s = |pid: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let fields: Vec<_> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) / 100.0
    };
    let all = || peers.iter().map(|it| cpu_s(it.process.id())).sum::<f64>();
    let pid = session.process.id();
    let (before, begin, of_peers) = (cpu_s(pid), Instant::now(), all());
    std::thread::sleep(Duration::from_secs(20));
    let passed = begin.elapsed().as_secs_f64();
    let share = 100.0 * (cpu_s(pid) - before) / passed;
    println!(
        "top: {share:.1} % of a core; the peers: {:.1} %",
        100.0 * (all() - of_peers) / passed
    );
    let mut times_ms = Vec::new();
    for _ in 0..50 {
        for key in ["n", "r"] {
            let begin = Instant::now();
            session.press(key);
            let is_drawn = |it: &str| it.contains(&format!("[{key}:"));
            while !is_drawn(&session.text()) {
                std::thread::sleep(Duration::from_micros(200));
            }
            times_ms.push(begin.elapsed().as_secs_f64() * 1e3);
        }
    }
    times_ms.sort_by(f64::total_cmp);
    println!(
        "a key: p50 {:.1} ms, p99 {:.1} ms, max {:.1} ms",
        times_ms[50], times_ms[98], times_ms[99]
    );
    let written = session.raw().len();
    println!("written to the terminal: {written} bytes");
}

/// What a process of the robot does.
const ROLE: &str = "MYELIN_TEST_ROLE";
