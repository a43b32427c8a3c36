//! Graph watchers in C and C++: one process of a program publishes, another one watches it.

mod support;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};
use support::{Place, WATCHDOG};

#[test]
fn a_watcher_in_c_sees_rates_mismatches_silence_and_ends() {
    watch("tests/programs/graph_watcher.c");
}

#[test]
fn a_watcher_in_cpp_sees_rates_mismatches_silence_and_ends() {
    watch("tests/programs/graph_watcher.cpp");
}

fn watch(source: &str) {
    let place = Place::new();
    let program = place.compile(source, &[]);
    let mut watcher = Talker::start(&place, &program);
    let mut other = Talker::start(&place, &program);
    assert_eq!(other.ask("publish 5"), "published");
    let node = place.node();
    let reliable = node.topic::<[u8]>("imu").reliable(WATCHDOG);
    let _refused = reliable.matching(myelin::Matching::RequestedOffered).subscriber().unwrap();
    watcher.until("publishers 1 subscribers 1 refused 1 silent 0 stopped 0", "offered best effort");
    assert_eq!(other.ask("publish 7"), "published");
    let here = "publishers 1 subscribers 1 refused 1 silent 0 stopped 0 found 0 gone 0 ";
    let seen = watcher.ask("update 60000");
    assert_eq!(seen, format!("{here}published 12 since 7 offered best effort"));
    let seen = watcher.ask("update 60000");
    assert_eq!(seen, format!("{here}published 12 since 0 offered best effort"));

    other.signal(Signal::STOP);
    watcher.until_with("update 20", "publishers 1 subscribers 1 refused 1 silent 1 stopped 1", "");
    let seen = watcher.ask("update 20");
    assert!(seen.contains("published 12") && !seen.contains("since 12"), "{seen}");
    other.signal(Signal::CONT);
    watcher.until(here, "published 12");

    drop(other);
    watcher.until("publishers 0 subscribers 1 refused 0 silent 0 stopped 0 found 0 gone 1", "");
    let mut again = Talker::start(&place, &program);
    assert_eq!(again.ask("publish 3"), "published");
    let found =
        "publishers 1 subscribers 1 refused 1 silent 0 stopped 0 found 1 gone 0 published 3";
    let seen = watcher.until(found, "");
    assert!(!seen.contains("since"), "it is another publisher: {seen}");
    watcher.end();
}

/// A program that answers lines. It is killed if the test fails.
struct Talker {
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
}

impl Talker {
    fn start(place: &Place, program: &Path) -> Talker {
        let mut command = place.command(program);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it runs");
        let (to, from) = (child.stdin.take(), child.stdout.take().unwrap());
        Talker { child, to, from: BufReader::new(from) }
    }

    fn ask(&mut self, line: &str) -> String {
        writeln!(self.to.as_mut().unwrap(), "{line}").unwrap();
        let mut answer = String::new();
        self.from.read_line(&mut answer).unwrap();
        answer.trim_end().to_owned()
    }

    /// Updates until the answer begins and ends so.
    fn until(&mut self, begin: &str, end: &str) -> String {
        self.until_with("update 60000", begin, end)
    }

    fn until_with(&mut self, line: &str, begin: &str, end: &str) -> String {
        let begun = Instant::now();
        loop {
            let answer = self.ask(line);
            if answer.starts_with(begin) && answer.contains(end) {
                return answer;
            }
            assert!(begun.elapsed() < WATCHDOG, "{answer}, not {begin} {end}");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    fn end(mut self) {
        self.to = None;
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Talker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
