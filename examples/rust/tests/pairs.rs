//! Each example's two programs together: both end by themselves and print the right text.

mod support;

use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;

use support::{Domain, WATCHDOG, executable};

#[test]
fn hello() {
    let said = pair("hello");
    assert_eq!(said.lines().count(), 5, "{said}");
    assert!(said.ends_with("4: hello, number 5\n"), "{said}");
}

#[test]
fn image() {
    let said = pair("image");
    assert_eq!(said.lines().count(), 10, "{said}");
    assert!(said.ends_with("image 9: 4665600 B, brightness 9\n"), "{said}");
}

#[test]
fn typed() {
    let said = pair("typed");
    assert_eq!(said.lines().count(), 5, "{said}");
    assert!(said.contains("40000000 ns: [0.0, 0.0, 9.81] m/s², 21.5 °C"), "{said}");
}

#[test]
fn typed_with_another_idea_of_the_type() {
    let domain = Domain::new();
    let subscribe = || program("typed", "subscribe", &domain).spawn().unwrap();
    let mut subscriber = subscribe();
    let refusal = loop {
        // The second one is refused, and that may have been the right one.
        if subscriber.try_wait().unwrap().is_some() {
            subscriber = subscribe();
        }
        let wrong = end(program("typed", "subscribe-wrong", &domain).spawn().unwrap());
        let said = String::from_utf8(wrong.stdout).unwrap();
        if !said.contains("no other program") {
            break said;
        }
    };
    assert!(refusal.contains("carries Imu") && refusal.contains("not [f32; 3]"), "{refusal}");
    let published = end(program("typed", "publish", &domain).spawn().unwrap());
    assert!(published.status.success() && end(subscriber).status.success());
}

#[test]
fn queue() {
    assert_eq!(pair("queue"), "did 100000 jobs, lost 0, sum 4999950000\n");
}

#[test]
fn service() {
    let domain = Domain::new();
    let server = program("service", "serve", &domain).spawn().unwrap();
    let client = end(program("service", "call", &domain).spawn().unwrap());
    let said = String::from_utf8(client.stdout).unwrap();
    assert!(client.status.success() && said.ends_with("25601 points to 15 m, 20 m\n"), "{said}");
    assert_eq!(String::from_utf8(end(server).stdout).unwrap(), "planned 5 paths\n");
}

#[test]
fn epoll() {
    let said = pair("epoll");
    assert_eq!(said.lines().count(), 10, "{said}");
    assert!(said.ends_with("at 9 m, 0.5 m/s\n"), "{said}");
}

#[test]
fn wait_set() {
    let said = pair("wait_set");
    assert_eq!(said.lines().count(), 11, "{said}");
    assert!(said.contains("wheels at 9 m, 9.5 m\n"), "{said}");
    assert!(said.contains("5 m to the goal\n"), "{said}");
}

#[test]
fn two_hosts() {
    if !has_cyclonedds() {
        return;
    }
    let said = pair_in(Domain::for_the_network(), "two_hosts");
    assert_eq!(said.lines().count(), 10, "{said}");
    assert!(said.ends_with("at 9 m, 4.5 m, heading 0.25 rad\n"), "{said}");
}

#[test]
fn ros_image() {
    if !has_cyclonedds() {
        return;
    }
    let said = pair_in(Domain::for_the_network(), "ros_image");
    assert_eq!(said.lines().count(), 30, "{said}");
    assert!(said.ends_with(": 640x480 rgb8, brightness 29\n"), "{said}");
}

#[test]
fn without_a_word_what_to_do_it_says_how_to_call_it() {
    let output = end(program("hello", "", &Domain::new()).spawn().unwrap());
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("publish|subscribe"));
}

fn has_cyclonedds() -> bool {
    let has = std::path::Path::new("/usr/include/dds/dds.h").exists();
    if !has {
        println!("skipped: CycloneDDS is not installed: apt-get install cyclonedds-dev");
    }
    has
}

/// Runs both programs of an example in a domain of their own; returns the subscriber's output.
fn pair(example: &str) -> String {
    pair_in(Domain::new(), example)
}

fn pair_in(domain: Domain, example: &str) -> String {
    let subscriber = program(example, "subscribe", &domain).spawn().unwrap();
    let publisher = program(example, "publish", &domain).spawn().unwrap();
    let (published, taken) = (end(publisher), end(subscriber));
    let said = String::from_utf8_lossy(&published.stdout);
    assert!(published.status.success() && said.contains("published"), "{published:?}");
    assert!(taken.status.success(), "{taken:?}");
    String::from_utf8(taken.stdout).unwrap()
}

fn program(example: &str, role: &str, domain: &Domain) -> Command {
    let mut program = Command::new(executable(example));
    program.arg(role).env("MYELIN_DOMAIN", domain.0.to_string());
    // Nothing leaves the host.
    program.env("MYELIN_INTERFACE", "lo").env("MYELIN_PEERS", "127.0.0.1");
    program.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    program
}

/// Waits for its end; fails the test if that does not come.
fn end(child: Child) -> Output {
    let pid = rustix::process::Pid::from_child(&child);
    let (to, from) = mpsc::channel();
    std::thread::spawn(move || to.send(child.wait_with_output().unwrap()));
    from.recv_timeout(WATCHDOG).unwrap_or_else(|_| {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        panic!("the example has not ended after {WATCHDOG:?}: {:?}", from.recv());
    })
}
