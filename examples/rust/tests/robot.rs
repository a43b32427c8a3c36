//! The robot of `examples/robot` from its user's view: each part is killed or stopped in turn, on
//! one host and on two. The test checks the flow of samples, the log and the leftovers.

#[path = "../../../crates/myelin/tests/support/hosts.rs"]
#[allow(dead_code, reason = "roles of this executable are for the library's own tests")]
mod hosts;
mod support;
#[path = "../examples/robot/topics.rs"]
#[allow(dead_code, reason = "the test takes the IMU's alone")]
mod topics;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, PipeWriter};
use std::mem::offset_of;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use hosts::Hosts;
use myelin::Node;
use rustix::process::{Pid, Signal};
use support::{Domain, WATCHDOG, executable};
use tempfile::TempDir;
use topics::Imu;

#[test]
fn each_dies_in_turn_on_one_host() {
    let domain = Domain::new();
    let mut robot = Robot::new();
    robot.supervise(on_this_host(&domain, &robot, &[]));
    let observer = Observer::new(&domain);
    robot.all_flows();
    for part in ["camera", "detector", "imu", "controller", "logger"].repeat(2) {
        robot.kill(part);
    }
    let observed = observer.end();
    robot.has_logged(&observed);
    robot.ends();
    assert!(!domain.runtime_dir().exists(), "sockets are left");

    let log = robot.log();
    assert_eq!(log.len(), 3, "three lives of the IMU's driver");
    for (life, (first, last)) in observed {
        assert!(log[&life][0].number <= first && last <= log[&life].last().unwrap().number);
    }
    for (life, records) in log {
        assert_eq!(records[0].number, 0, "life {life}: the history is missing");
        assert!(records.iter().all(|record| record.missing == 0), "life {life}");
    }
    robot.nobody_has_lost(&["controller", "logger"]);
}

#[test]
fn each_dies_in_turn_on_two_hosts() {
    let (one, other) = (["camera", "detector"], ["imu", "controller", "logger"]);
    in_turn_on_two_hosts(&one, &other, &["controller", "logger"]);
}

#[test]
fn each_dies_in_turn_with_the_logger_on_another_host_than_the_imu() {
    // The controller takes the IMU best effort, and a network may lose samples that are not sent
    // again.
    let (one, other) = (["camera", "detector", "imu"], ["controller", "logger"]);
    in_turn_on_two_hosts(&one, &other, &["logger"]);
}

#[test]
fn a_logger_on_another_host_that_stands_still_holds_nobody_up() {
    on_two_hosts(&["camera", "detector", "imu"], &["controller", "logger"], |robot| {
        // The controller's match and the logger's. To a host that it knows already, the driver
        // sends samples that can reach a logger before the driver knows of the logger, and the
        // driver would not wait for that logger.
        robot.has_heard("imu: imu: matched with a process on another host", 2);
        robot.signal("logger", Signal::STOP);
        // It is passed over, or, if it gives no sign of life for longer, considered dead.
        robot.hear_any(&[
            "another host is late: passed over",
            "imu: imu: a process on another host has left",
        ]);
        robot.signal("logger", Signal::CONT);
        robot.hear(" written, ");
        assert_eq!((robot.lives("imu"), robot.lives("controller")), (1, 1));
        robot.log(); // each gap is reported
    });
}

fn in_turn_on_two_hosts(one: &[&str], other: &[&str], lossless: &[&str]) {
    on_two_hosts(one, other, |robot| {
        for part in ["camera", "detector", "imu", "controller", "logger"] {
            robot.kill(part);
        }
        for (life, records) in robot.log() {
            assert!(records.iter().all(|record| record.missing == 0), "life {life}");
        }
        robot.nobody_has_lost(lossless);
    });
}

/// Starts a robot on two hosts; after the test nothing of it is left.
fn on_two_hosts(one: &[&str], other: &[&str], test: impl FnOnce(&mut Robot)) {
    if !std::path::Path::new("/usr/include/dds/dds.h").exists() {
        println!("skipped: CycloneDDS is not installed: apt-get install cyclonedds-dev");
        return;
    }
    let Some(hosts) = Hosts::new() else { return };
    let mut robot = Robot::new();
    for (host, parts) in [(&hosts.one, one), (&hosts.other, other)] {
        // A process enters the namespaces at their root.
        let mut command = host.command("env");
        command.arg("--chdir").arg(robot.folder.path()).arg(executable("robot"));
        command.arg("supervise").args(parts).env("MYELIN_NETWORK", "1").env("MYELIN_DOMAIN", "7");
        robot.supervise(command);
    }
    robot.all_flows();
    test(&mut robot);
    robot.ends();
    for host in [&hosts.one, &hosts.other] {
        assert!(host.leftovers().is_empty(), "{:?}", host.leftovers());
    }
}

#[test]
fn who_hangs_is_killed_and_comes_again() {
    let domain = Domain::new();
    let mut robot = Robot::new();
    robot.supervise(on_this_host(&domain, &robot, &[]));
    robot.all_flows();
    for part in ["camera", "detector", "imu", "controller"] {
        robot.signal(part, Signal::STOP);
        robot.hear(&format!("supervisor: {part} hangs and is killed"));
        robot.is_back(part);
    }
    robot.ends();
    for part in ["camera", "detector", "imu", "controller"] {
        assert_eq!(robot.lives(part), 2, "{part} was killed although it was well");
    }
    robot.nobody_has_lost(&["controller", "logger"]);
}

#[test]
fn who_does_not_come_up_is_killed_and_comes_again() {
    let domain = Domain::new();
    let mut robot = Robot::new();
    robot.supervise(on_this_host(&domain, &robot, &["imu"]));
    robot.hear("supervisor: imu is process");
    robot.signal("imu", Signal::STOP); // maybe it is up already
    robot.hear_any(&["supervisor: imu does not come up and is killed", "supervisor: imu hangs"]);
    robot.hear("supervisor: imu is process");
    robot.ends();
}

#[test]
fn a_logger_that_stands_still_is_passed_over_and_says_what_it_lost() {
    let domain = Domain::new();
    let mut robot = Robot::new();
    robot.supervise(on_this_host(&domain, &robot, &[]));
    let observer = Observer::new(&domain);
    robot.all_flows();
    robot.signal("logger", Signal::STOP);
    let process = format!("imu: imu: process {}", robot.pid("logger").as_raw_nonzero());
    robot.hear(&format!("{process} is late: passed over"));
    robot.kill("camera"); // a while
    robot.signal("logger", Signal::CONT);
    robot.hear_all(&[&format!("{process} has caught up"), " samples lost"]);
    robot.hear(" written, "); // and how many were lost
    let observed = observer.end();
    robot.has_logged(&observed);
    robot.ends();

    let gaps: Vec<u64> = robot.log().into_values().flatten().map(|record| record.missing).collect();
    let lost: u64 = gaps.iter().sum();
    assert!(gaps.iter().filter(|gap| **gap > 0).count() == 1, "{gaps:?}");
    let says = |words: &str| robot.said.iter().any(|line| line.contains(words));
    assert!(says(&format!("logger: imu: {lost} lost before number")));
    assert!(says(&format!("logger: imu: {lost} samples lost")));
    assert!(says(&format!(", {lost} lost ({lost})")));
    robot.nobody_has_lost(&["controller"]);
}

#[test]
fn who_cannot_even_start_is_tried_ever_less_often_and_the_others_go_on() {
    let domain = Domain::new();
    let mut robot = Robot::new();
    std::fs::create_dir(robot.folder.path().join("robot.log")).unwrap();
    robot.supervise(on_this_host(&domain, &robot, &[]));
    let said = robot.hear("logger: Is a directory");
    assert!(said.contains("start it where it may write robot.log"), "{said}");
    for delay in ["100ms", "200ms", "400ms"] {
        robot.hear(&format!("supervisor: logger has ended (exit status: 1), again in {delay}"));
    }
    robot.kill("camera");
    robot.ends();
}

#[test]
fn nothing_is_left_of_a_supervisor_that_is_killed() {
    let domain = Domain::new();
    let mut robot = Robot::new();
    robot.supervise(on_this_host(&domain, &robot, &[]));
    robot.all_flows();
    robot.supervisors.pop().unwrap().end(Signal::KILL);
    robot.parts_are_gone();
    // The next node removes its socket.
    robot.supervise(on_this_host(&domain, &robot, &[]));
    robot.all_flows();
    robot.ends();
    assert!(!domain.runtime_dir().exists(), "sockets are left");
}

#[test]
fn nothing_is_left_of_who_does_not_end() {
    let domain = Domain::new();
    let mut robot = Robot::new();
    robot.supervise(on_this_host(&domain, &robot, &[]));
    robot.all_flows();
    robot.signal("imu", Signal::STOP);
    let mut supervisor = robot.supervisors.pop().unwrap();
    rustix::process::kill_process(Pid::from_child(&supervisor.0), Signal::INT).unwrap();
    robot.hear("supervisor: imu does not end and is killed");
    assert!(supervisor.0.wait().unwrap().success());
    robot.parts_are_gone();
    assert!(!domain.runtime_dir().exists(), "sockets are left");
}

#[test]
fn a_part_that_does_not_exist_is_an_error_that_names_those_that_do() {
    let domain = Domain::new();
    let mut robot = Robot::new();
    robot.supervise(on_this_host(&domain, &robot, &["arm"]));
    let said = robot.hear("supervise: there is no part \"arm\"");
    assert!(said.contains("camera, detector, imu, controller, logger"), "{said}");
    assert_eq!(robot.supervisors.pop().unwrap().0.wait().unwrap().code(), Some(1));
}

/// The hosts' own processes are this executable again.
#[test]
fn the_other_side() {
    if hosts::role().as_deref() == Some("be_a_host") {
        hosts::be_a_host();
    }
}

fn on_this_host(domain: &Domain, robot: &Robot, parts: &[&str]) -> Command {
    let mut command = Command::new(executable("robot"));
    command.arg("supervise").args(parts).current_dir(robot.folder.path());
    command.env("MYELIN_NETWORK", "0").env("MYELIN_DOMAIN", domain.0.to_string());
    command
}

/// A robot, and the output of its processes.
struct Robot {
    supervisors: Vec<Supervisor>,
    writer: PipeWriter,
    lines: Receiver<String>,
    said: Vec<String>,
    /// The parts that have been started, the latest life last.
    parts: Vec<(String, Pid)>,
    /// The log is there.
    folder: TempDir,
}

impl Robot {
    fn new() -> Robot {
        let (reader, writer) = std::io::pipe().unwrap();
        let (to, lines) = channel();
        std::thread::spawn(move || {
            let all = BufReader::new(reader).lines().map_while(Result::ok);
            all.take_while(|line| to.send(line.clone()).is_ok()).for_each(drop);
        });
        let (supervisors, said, parts) = (Vec::new(), Vec::new(), Vec::new());
        Robot { supervisors, writer, lines, said, parts, folder: tempfile::tempdir().unwrap() }
    }

    fn supervise(&mut self, mut command: Command) {
        let (out, err) = (self.writer.try_clone().unwrap(), self.writer.try_clone().unwrap());
        command.stdin(Stdio::null()).stdout(out).stderr(err);
        let child = command.process_group(0).spawn().unwrap();
        self.supervisors.push(Supervisor(child));
    }

    /// Waits for a line with these words.
    fn hear(&mut self, words: &str) -> String {
        self.hear_all(&[words]).remove(0)
    }

    /// Waits for lines with these words, in any order.
    fn hear_all(&mut self, wanted: &[&str]) -> Vec<String> {
        let mut heard = vec![None; wanted.len()];
        let end = Instant::now() + WATCHDOG;
        while heard.contains(&None) {
            let left = end.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left).unwrap_or_else(|error| {
                panic!("waited in vain for {wanted:?} ({heard:?}): {error}")
            });
            self.note(&line);
            for (words, heard) in wanted.iter().zip(&mut heard) {
                if heard.is_none() && line.contains(words) {
                    *heard = Some(line.clone());
                }
            }
        }
        heard.into_iter().flatten().collect()
    }

    /// Waits for a line with any of these words.
    fn hear_any(&mut self, wanted: &[&str]) {
        let end = Instant::now() + WATCHDOG;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left);
            let line =
                line.unwrap_or_else(|error| panic!("waited in vain for {wanted:?}: {error}"));
            self.note(&line);
            if wanted.iter().any(|words| line.contains(words)) {
                return;
            }
        }
    }

    /// Waits until so many lines with these words have come since the beginning.
    fn has_heard(&mut self, words: &str, times: usize) {
        while self.said.iter().filter(|line| line.contains(words)).count() < times {
            self.hear(words);
        }
    }

    fn note(&mut self, line: &str) {
        let start =
            line.strip_prefix("supervisor: ").and_then(|line| line.split_once(" is process "));
        if let Some((part, pid)) = start {
            let pid = pid.parse().ok().and_then(Pid::from_raw).unwrap();
            self.parts.push((part.to_string(), pid));
        }
        println!("{line}"); // seen if the test fails
        self.said.push(line.to_string());
    }

    /// Waits until each consumer has samples.
    fn all_flows(&mut self) {
        self.hear_all(&[
            "detector: image comes from",
            "controller: detections comes from",
            "controller: imu comes from",
            " commands, reaction p50",
            "logger: imu comes from",
        ]);
    }

    /// The process of its latest life.
    fn pid(&self, part: &str) -> Pid {
        self.parts.iter().rfind(|(name, _)| name == part).unwrap().1
    }

    fn lives(&self, part: &str) -> usize {
        self.parts.iter().filter(|(name, _)| name == part).count()
    }

    fn signal(&self, part: &str, signal: Signal) {
        rustix::process::kill_process(self.pid(part), signal).unwrap();
    }

    /// Kills a part and waits until it is back and takes part in everything.
    fn kill(&mut self, part: &str) {
        self.signal(part, Signal::KILL);
        self.is_back(part);
    }

    fn is_back(&mut self, part: &str) {
        let topics: &[&str] = match part {
            "camera" => &["detector: image"],
            "detector" => &["detector: image", "controller: detections"],
            "imu" => &["controller: imu", "logger: imu"],
            "controller" => &["controller: imu", "controller: detections"],
            _ => &["logger: imu"],
        };
        let before = self.said.clone();
        let mut wanted = vec![format!("supervisor: {part} is process ")];
        wanted.extend(topics.iter().map(|topic| format!("{topic} comes from ")));
        let wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
        for line in self.hear_all(&wanted) {
            // A restarted publisher has a new name.
            assert!(
                line.starts_with(part) || !before.contains(&line),
                "{part} was restarted: {line}"
            );
        }
    }

    /// Waits until the log has all observed samples.
    fn has_logged(&self, observed: &Observed) {
        let is_there = || {
            let log = self.log();
            observed.iter().all(|(life, (_, last))| {
                log.get(life).is_some_and(|log| log.last().unwrap().number >= *last)
            })
        };
        until("the log to have what others have", is_there);
    }

    /// The log, by lives of the driver; fails if it is not in order or a gap is not reported.
    fn log(&self) -> BTreeMap<u64, Vec<Record>> {
        let bytes = std::fs::read(self.folder.path().join("robot.log")).unwrap();
        let mut log: BTreeMap<u64, Vec<Record>> = BTreeMap::new();
        for record in bytes.chunks_exact(8 + size_of::<Imu>()) {
            let word = |at: usize| u64::from_ne_bytes(record[at..at + 8].try_into().unwrap());
            let (life_at, number_at) = (offset_of!(Imu, life), offset_of!(Imu, number));
            let record = Record { missing: word(0), number: word(8 + number_at) };
            let records = log.entry(word(8 + life_at)).or_default();
            if let Some(last) = records.last() {
                assert_eq!(record.number, last.number + 1 + record.missing, "a gap is not told");
            }
            records.push(record);
        }
        log
    }

    /// Checks that none of these parts has reported a loss.
    fn nobody_has_lost(&self, parts: &[&str]) {
        for line in &self.said {
            let lost = line.contains(" lost") || line.contains("lost:");
            let is_theirs = parts.iter().any(|part| line.starts_with(part));
            let none = [", 0 lost (0)", "lost: imu 0, detections 0"];
            assert!(!(lost && is_theirs) || none.iter().any(|none| line.contains(none)), "{line}");
        }
    }

    /// Ctrl-C: a terminal sends it to all processes at once.
    fn ends(&mut self) {
        for supervisor in &self.supervisors {
            let group = Pid::from_child(&supervisor.0);
            rustix::process::kill_process_group(group, Signal::INT).unwrap();
        }
        for mut supervisor in std::mem::take(&mut self.supervisors) {
            until("the end of a supervisor", || supervisor.0.try_wait().unwrap().is_some());
            assert!(supervisor.0.wait().unwrap().success());
        }
        while let Ok(line) = self.lines.try_recv() {
            self.note(&line);
        }
        let is_forced = |line: &&String| line.contains("does not end and is killed");
        assert_eq!(self.said.iter().find(is_forced), None);
        self.parts_are_gone();
    }

    fn parts_are_gone(&self) {
        for (part, pid) in &self.parts {
            let command = PathBuf::from(format!("/proc/{}/cmdline", pid.as_raw_nonzero()));
            let is_it = || {
                std::fs::read_to_string(&command)
                    .is_ok_and(|words| words.ends_with(&format!("{part}\0")))
            };
            until(&format!("the end of {part}"), || !is_it());
        }
    }
}

/// Killed, if the test fails.
struct Supervisor(Child);

impl Supervisor {
    fn end(mut self, signal: Signal) {
        rustix::process::kill_process(Pid::from_child(&self.0), signal).unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        let _ = self.0.kill(); // its parts end with it
        let _ = self.0.wait();
    }
}

#[derive(Debug)]
struct Record {
    missing: u64,
    number: u64,
}

/// First and last number of each life of the IMU.
type Observed = BTreeMap<u64, (u64, u64)>;

/// Another subscriber of the IMU: it must miss nothing while others are dead.
struct Observer {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Observed>,
}

impl Observer {
    fn new(domain: &Domain) -> Observer {
        let node = Node::builder("observer").domain(domain.0).network(false).open().unwrap();
        let mut imu = topics::imu(&node).best_effort().transient_local(0).subscriber().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let is_over = stop.clone();
        let thread = std::thread::spawn(move || {
            let mut observed = Observed::new();
            while !is_over.load(Ordering::Relaxed) {
                let Some(sample) = imu.receive(Duration::from_millis(100)).unwrap() else {
                    continue;
                };
                let seen = observed.entry(sample.life).or_insert((sample.number, sample.number));
                assert!(sample.number - seen.1 <= 1, "{} after {}", sample.number, seen.1);
                seen.1 = sample.number;
            }
            assert_eq!(imu.lost(), 0);
            observed
        });
        Observer { stop, thread }
    }

    fn end(self) -> Observed {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

/// Waits for a condition; fails the test if it does not come true.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < WATCHDOG, "waited in vain for: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
