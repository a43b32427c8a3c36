//! What holds for each command that looks at a running robot, whatever it looks at: a name that is not
//! there, another domain, no right to look, a closed pipe, a dumb and narrow terminal of another
//! language; and for those that go on: Ctrl-C, a publisher that dies, one of another type.

use std::io::{BufRead, BufReader, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use myelin::{Node, PlainData};
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{complaint, finish, myelin, pty, signal, wait_for};

/// A command that ends by itself.
#[derive(Clone)]
struct Case {
    words: &'static str,
    /// The name in it, and the same misspelt.
    name: Option<[&'static str; 2]>,
}

const CASES: [Case; 16] = [
    case("topic list", None),
    case("topic list imu", IMU),
    case("topic info imu", IMU),
    case("topic echo imu --once", IMU),
    case("topic hz imu --once --interval 20ms", IMU),
    case("topic bw imu --once --interval 20ms", IMU),
    case("topic delay imu --once --interval 20ms", IMU),
    case("topic delay imu --subscribe --once --interval 20ms", IMU),
    case("topic delay imu --stamp stamp_ns --once --interval 20ms", IMU),
    case("topic pub goal 2", Some(["goal", "gaol"])),
    case("node list", None),
    case("node info driver", Some(["driver", "drivre"])),
    case("service list", None),
    case("service info square", Some(["square", "sqare"])),
    case("service call square 3", Some(["square", "sqare"])),
    case("top --once --interval 100ms", None),
];
const IMU: Option<[&str; 2]> = Some(["imu", "imo"]);
/// It ends with 1 if something is wrong, and says it on standard output.
const WHY: Case = case("why imu --within 300ms", IMU);

const fn case(words: &'static str, name: Option<[&'static str; 2]>) -> Case {
    Case { words, name }
}

#[derive(Clone, Copy, PlainData)]
#[repr(C)]
struct Imu {
    stamp_ns: u64,
    acceleration: [f64; 3],
}

/// The folder of a domain.
struct Robot(TempDir);

/// A domain with what the commands name, as long as the second part lives.
fn robot() -> (Robot, impl Sized) {
    let folder = tempfile::tempdir().unwrap();
    let node = |name| Node::builder(name).runtime_dir(folder.path()).open().unwrap();
    let (driver, planner) = (node("driver"), node("planner"));
    let imu = driver.topic::<Imu>("imu").transient_local(1);
    let publisher = imu.publisher_builder().timestamps(true).open().unwrap();
    let taker = planner.topic::<Imu>("imu").subscriber().unwrap().on_sample(|_| ()).unwrap();
    let goal = planner.topic::<f64>("goal").subscriber().unwrap();
    let square = planner.service::<f64, f64>("square").unwrap();
    let serving = square.on_request(|of| drop(of.reply(&(*of * *of)))).unwrap();
    // At 20 Hz, so that `why` has nothing to say.
    let (end, has_ended) = channel::<()>();
    thread::spawn(move || {
        while has_ended.recv_timeout(Duration::from_millis(50)) == Err(RecvTimeoutError::Timeout) {
            publisher.publish_copy(&Imu { stamp_ns: 1, acceleration: [0.0; 3] }).unwrap();
        }
    });
    (Robot(folder), (taker, goal, serving, end, driver, planner))
}

impl Robot {
    fn command(&self, words: &str, more: &[&str]) -> Command {
        let mut command = myelin(&words.split(' ').collect::<Vec<_>>());
        command.args(more).env("MYELIN_RUNTIME_DIR", self.0.path());
        for variable in ["MYELIN_DOMAIN", "MYELIN_NETWORK", "LC_ALL", "LANG"] {
            command.env_remove(variable);
        }
        command
    }

    fn run(&self, words: &str, more: &[&str]) -> Output {
        finish(&mut self.command(words, more))
    }
}

/// All at once: each has a process of its own.
fn for_each(cases: &[Case], check: impl Fn(&Case) + Sync) {
    thread::scope(|scope| cases.iter().for_each(|case| drop(scope.spawn(|| check(case)))));
}

/// One line, and nothing else.
fn one_line(words: &str, output: &Output, status: i32) -> String {
    let line = complaint(output);
    assert_eq!(output.status.code(), Some(status), "{words}: {line}");
    assert_eq!((line.lines().count(), output.stdout.len()), (1, 0), "{words}: {line}");
    line
}

#[test]
fn a_name_that_is_not_there_is_answered_by_the_nearest_one() {
    let (robot, _ends) = robot();
    for_each(&CASES, |case| {
        let Some([name, misspelt]) = case.name else { return };
        let words = case.words.replacen(name, misspelt, 1);
        let line = one_line(&words, &robot.run(&words, &[]), 3);
        assert!(line.contains(&format!("did you mean {name:?}?")), "{words}: {line}");
    });
    let output = robot.run(&WHY.words.replace("imu", "imo"), &[]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("driver publishes \"imu\"") && text.contains("[other_name]"), "{text}");
}

#[test]
fn another_domain_has_none_of_it_and_the_right_one_is_named() {
    let (robot, _ends) = robot();
    for_each(&CASES, |case| {
        let output = robot.run(case.words, &["--domain", "9"]);
        if case.name.is_some() {
            let line = one_line(case.words, &output, 3);
            assert!(line.contains("--domain 0 (2)"), "{}: {line}", case.words);
        } else {
            assert_eq!(output.status.code(), Some(0), "{}", complaint(&output));
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(!text.contains("imu") && !text.contains("driver"), "{}: {text}", case.words);
        }
    });
    // On a busy machine the other domain does not answer in time.
    wait_for("the domain", || {
        let output = robot.run(WHY.words, &["--domain", "9"]);
        let text = String::from_utf8_lossy(&output.stdout);
        (text.contains("[other_domain]") && text.contains("MYELIN_DOMAIN=9")).then_some(())
    });
}

#[test]
fn a_folder_of_somebody_else_is_refused() {
    let (robot, _ends) = robot();
    // SAFETY: no arguments.
    let own = robot.0.path().join(format!("myelin-{}", unsafe { libc::geteuid() }));
    std::fs::set_permissions(&own, std::fs::Permissions::from_mode(0o755)).unwrap();
    for_each(&[&CASES[..], &[WHY]].concat(), |case| {
        let line = one_line(case.words, &robot.run(case.words, &[]), 1);
        let parts = ["no permission", "chmod 700"];
        assert!(parts.iter().all(|part| line.contains(part)), "{}: {line}", case.words);
    });
}

#[test]
fn a_reader_that_has_gone_is_no_error() {
    let (robot, _ends) = robot();
    let endless = ENDLESS.map(|words| case(words, None));
    for_each(&[&CASES[..], &[WHY], &endless].concat(), |case| {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = robot.command(&case.words.replace("speed", "imu"), &[]);
        command.stdout(Stdio::from(OwnedFd::from(writer))).stderr(Stdio::piped());
        let output = command.spawn().unwrap().wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}: {}", case.words, complaint(&output));
        // On a busy machine the others of this test are slow, and so is the command.
        let complaint = complaint(&output);
        let is_busy = |line: &str| {
            line.contains("does not answer: it is stopped or busy") || line.contains("were missed")
        };
        assert!(complaint.lines().all(is_busy), "{}: {complaint}", case.words);
    });
}

#[test]
fn a_dumb_and_narrow_terminal_of_another_language_is_enough() {
    let (robot, _ends) = robot();
    for_each(&[&CASES[..], &[WHY]].concat(), |case| {
        let (mut master, slave) = pty::terminal(24, 40);
        let mut command = robot.command(case.words, &[]);
        command.env("TERM", "dumb").env("LC_ALL", "de_DE.ISO-8859-1");
        let mut process = command.stdout(Stdio::from(slave)).spawn().unwrap();
        drop(command);
        let mut text = Vec::new();
        // On Linux its end is an error.
        let _ = master.read_to_end(&mut text);
        assert_eq!(process.wait().unwrap().code(), Some(0), "{}", case.words);
        let text = String::from_utf8(text).unwrap();
        assert!(!text.is_empty() && text.is_ascii() && !text.contains('\x1b'), "{text:?}");
        // Sentences are as long as they are.
        let is_table = !case.words.contains(" info") && case.words != WHY.words;
        let fits = |line: &str| line.trim_end().len() <= 40;
        assert!(!is_table || text.lines().all(fits), "{}:\n{text}", case.words);
    });
}

/// Commands that go on until Ctrl-C.
const ENDLESS: [&str; 6] = [
    "topic echo speed --json",
    "topic hz speed --json --interval 20ms",
    "topic bw speed --json --interval 20ms",
    "topic delay imu --subscribe --json --interval 20ms",
    "topic delay imu --json --interval 20ms",
    "top --json --interval 100ms",
];

/// A command that goes on, and what it prints.
struct Running {
    words: &'static str,
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Running {
    fn start(robot: &Robot, words: &'static str) -> Running {
        let mut command = robot.command(words, &[]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Running { words, child, lines }
    }

    /// Reads until a line is as expected.
    fn until(&mut self, what: &str, is_so: impl Fn(&Value) -> bool) {
        wait_for(what, || {
            let mut line = String::new();
            let read = self.lines.read_line(&mut line).unwrap();
            assert!(read > 0, "{} has ended before {what}", self.words);
            is_so(&serde_json::from_str(&line).unwrap()).then_some(())
        });
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn those_that_go_on_follow_a_publisher_through_death_and_change_until_ctrl_c() {
    let (robot, _ends) = robot();
    let publish = |value: &str, ty: &str| {
        let more = [value, "--type", ty, "--rate", "200", "--wait", "0"];
        let mut command = robot.command("topic pub speed", &more);
        command.stdout(Stdio::null()).spawn().unwrap()
    };
    let end = |mut publisher: Child, number: i32| {
        signal(publisher.id(), number);
        publisher.wait().unwrap().code()
    };
    let mut first = publish("1.5", "f64");
    let node = Node::builder("test").runtime_dir(robot.0.path()).open().unwrap();
    wait_for("the publisher", || {
        node.graph().unwrap().endpoints.iter().any(|it| it.topic == "speed").then_some(())
    });
    let waits = ["topic echo later --json --wait", "topic hz later --wait"];
    let waits = waits.map(|words| Running::start(&robot, words));
    let all = ENDLESS.map(|words| Running::start(&robot, words));
    let of_topic = |it: &Value| {
        let of_top = it["topics"].as_array().into_iter().flatten();
        of_top.chain([it]).any(|it| it["name"] == "speed" || it["topic"].is_string())
    };
    let mut second = None;
    thread::scope(|scope| {
        let (begun, to_begin) = channel();
        let changed = |it: &Value| it.to_string().contains("Speed") || it["value"]["x"] == 3;
        for mut running in all {
            let begun = begun.clone();
            scope.spawn(move || {
                running.until("the topic", of_topic);
                begun.send(()).unwrap();
                // Where there is a subscriber, no publisher of another type is made.
                if !running.words.contains("delay") {
                    running.until("the new type", changed);
                }
                signal(running.child.id(), libc::SIGINT);
                let (mut rest, mut errors) = (String::new(), String::new());
                running.lines.read_to_string(&mut rest).unwrap();
                running.child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
                let status = running.child.wait().unwrap();
                assert_eq!(status.code(), Some(0), "{}: {errors}", running.words);
                assert!(errors.lines().count() <= 3, "{}: {errors}", running.words);
            });
        }
        drop(begun);
        (0..ENDLESS.len()).for_each(|_| to_begin.recv().expect("all have begun"));
        let _ = first.kill();
        first.wait().unwrap();
        second = Some(publish("{x: 3}", "Speed{x: u32 @0} 4"));
    });
    // It publishes until Ctrl-C.
    assert_eq!(end(second.unwrap(), libc::SIGINT), Some(0));
    for mut waiting in waits {
        assert!(waiting.child.try_wait().unwrap().is_none(), "{} has ended", waiting.words);
        signal(waiting.child.id(), libc::SIGINT);
        assert_eq!(waiting.child.wait().unwrap().code(), Some(0), "{}", waiting.words);
    }
}
