//! The promises of the API across processes: the test starts itself again as the other side.
//!
//! `MYELIN_TEST_OTHER` is the command that starts another build of it as the other side instead. Each
//! line is a word of it.

#[path = "../../myelin-shm/tests/itself/mod.rs"]
mod itself;
mod support;

use std::path::Path;
use std::process::Command;

use myelin::{Error, Event, Node, PlainData};
use support::other_side::{FOLDER, Other, ROLE};
use support::{WATCHDOG, until};

#[derive(Clone, Copy, Debug, PartialEq, PlainData)]
#[repr(C)]
struct Ball {
    hits: u64,
    cells: [u64; 64],
}

#[test]
fn two_processes_play_ping_pong() {
    let (folder, node) = support::node();
    let _other = other_side("return_the_ball", folder.path());
    let there = node.topic::<Ball>("there").publisher().unwrap();
    let mut back = node.topic::<Ball>("back").subscriber().unwrap();
    assert!(there.wait_for_match(1, WATCHDOG) && back.wait_for_match(1, WATCHDOG));
    for round in 0..BALLS {
        there.publish_copy(&Ball { hits: 2 * round, cells: [round; 64] }).unwrap();
        let ball = back.receive(WATCHDOG).unwrap().expect("the ball comes back");
        assert_eq!(*ball, Ball { hits: 2 * round + 1, cells: [round; 64] });
    }
}

fn return_the_ball(node: &Node) {
    let mut there = node.topic::<Ball>("there").subscriber().unwrap();
    let back = node.topic::<Ball>("back").publisher().unwrap();
    while let Some(ball) = there.receive(WATCHDOG).unwrap() {
        let mut hit = back.loan().unwrap();
        *hit = *ball;
        hit.hits += 1;
        hit.publish().unwrap();
    }
}

#[test]
fn samples_of_a_killed_publisher_can_be_taken_and_its_death_is_an_event() {
    let (folder, node) = support::node();
    let mut subscriber = node.topic::<[u8]>("image").subscriber().unwrap();
    let mut other = other_side("publish_and_wait", folder.path());
    assert!(subscriber.wait(WATCHDOG).unwrap());
    until("the third image", || {
        let third = node.topic::<u8>("third").subscriber().unwrap();
        third.wait_for_match(1, WATCHDOG)
    });
    other.0.kill().unwrap();
    until("the end of the match", || subscriber.matched() == 0);
    let mut died = false;
    for event in subscriber.events() {
        died |= matches!(event, Event::Unmatched { died: true, pid, .. } if pid == other.0.id());
    }
    assert!(died);
    for value in 0..3 {
        let sample = subscriber.take().unwrap().expect("it was published");
        assert!(sample.len() == 100_000 && sample.iter().all(|byte| *byte == value));
    }
    assert!(subscriber.take().unwrap().is_none());
}

fn publish_and_wait(node: &Node) {
    let publisher = node.topic::<[u8]>("image").publisher().unwrap();
    assert!(publisher.wait_for_match(1, WATCHDOG));
    for value in 0..3 {
        publisher.publish_copy(&[value; 100_000]).unwrap();
    }
    let _third = node.topic::<u8>("third").publisher().unwrap();
    std::thread::sleep(WATCHDOG);
}

#[test]
fn another_type_in_another_process_is_an_error_that_names_both() {
    let (folder, node) = support::node();
    let other = other_side("publish_balls", folder.path());
    let known = node.topic::<u8>("ready").subscriber().unwrap();
    assert!(known.wait_for_match(1, WATCHDOG));
    let error = node.topic::<[Ball]>("ball").subscriber().unwrap_err();
    assert!(matches!(error, Error::TypeMismatch { .. }), "{error:?}");
    let text = error.to_string();
    for part in ["carries Ball", "[Ball]", &other.0.id().to_string()] {
        assert!(text.contains(part), "{text}");
    }
}

fn publish_balls(node: &Node) {
    let _ball = node.topic::<Ball>("ball").publisher().unwrap();
    let _ready = node.topic::<u8>("ready").publisher().unwrap();
    std::thread::sleep(WATCHDOG);
}

#[test]
fn in_a_child_of_fork_every_call_is_an_error_and_the_parent_goes_on() {
    let (_folder, node) = support::node();
    let topic = node.topic::<[u8]>("image");
    let (publisher, mut subscriber) = support::ends(&topic);
    let loan = publisher.loan(1000).unwrap();
    publisher.publish_copy(&[0; 500]).unwrap();
    let sample = subscriber.receive(WATCHDOG).unwrap().unwrap();

    // SAFETY: the child calls this library and `_exit`.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let forked = [
            matches!(publisher.publish_copy(&[1]), Err(Error::Forked)),
            matches!(publisher.publish_copy(&[1; 500]), Err(Error::Forked)),
            matches!(publisher.loan(500), Err(Error::Forked)),
            matches!(loan.publish(), Err(Error::Forked)),
            matches!(publisher.assert_liveliness(), Err(Error::Forked)),
            matches!(subscriber.take(), Err(Error::Forked)),
            matches!(subscriber.receive(WATCHDOG), Err(Error::Forked)),
            matches!(topic.publisher(), Err(Error::Forked)),
            matches!(topic.subscriber(), Err(Error::Forked)),
        ];
        drop((sample, publisher, subscriber, topic, node));
        let wrong = forked.iter().position(|forked| !forked).map_or(0, |at| at as i32 + 1);
        // SAFETY: it ends the child.
        unsafe { libc::_exit(wrong) };
    }
    let status = status_of(child);
    assert_eq!(status >> 8, 0, "call number {} of the list is no error", status >> 8);
    assert_eq!(status, 0);

    assert!(sample.iter().all(|byte| *byte == 0));
    loan.publish().unwrap();
    assert_eq!(subscriber.receive(WATCHDOG).unwrap().unwrap().len(), 1000);
}

/// An inherited handle leads neither to the parent's memory nor to the child's own mappings.
#[test]
fn in_a_child_of_fork_loans_and_samples_are_zeros_of_its_own() {
    let (_folder, node) = support::node();
    let (publisher, mut subscriber) = support::ends(&node.topic::<[u8]>("image"));
    publisher.publish_copy(&[7; BYTES]).unwrap();
    let sample = subscriber.receive(WATCHDOG).unwrap().unwrap();
    let shared = node.topic::<[u8]>("shared").publisher().unwrap().shared();
    let mut shared_loan = shared.loan(BYTES).unwrap();
    let mut loan = publisher.loan(BYTES).unwrap();
    loan.fill(1);
    shared_loan.fill(1);

    // SAFETY: the child calls this library and `_exit`.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // A node of its own, as the rule demands; its mappings would go where there is room.
        let folder = tempfile::tempdir().unwrap();
        let own = Node::builder("child").runtime_dir(folder.path()).open().unwrap();
        let (own_publisher, mut own_subscriber) = support::ends(&own.topic::<[u8]>("own"));
        own_publisher.publish_copy(&[3; BYTES]).unwrap();
        let own_sample = own_subscriber.receive(WATCHDOG).unwrap().unwrap();
        assert!(sample.iter().all(|byte| *byte == 0));
        assert!(loan.iter().all(|byte| *byte == 0));
        loan.fill(9);
        shared_loan.fill(9);
        assert!(own_sample.iter().all(|byte| *byte == 3));
        // And in a child of the child.
        // SAFETY: as above.
        let grandchild = unsafe { libc::fork() };
        if grandchild == 0 {
            loan.fill(10);
            assert!(own_sample.iter().all(|byte| *byte == 0));
            // SAFETY: it ends the process.
            unsafe { libc::_exit(0) };
        }
        assert_eq!(status_of(grandchild), 0);
        drop((loan, shared_loan, sample, subscriber, shared));
        own_publisher.publish_copy(&[4; BYTES]).unwrap();
        assert_eq!(own_subscriber.receive(WATCHDOG).unwrap().unwrap()[BYTES - 1], 4);
        // SAFETY: it ends the process.
        unsafe { libc::_exit(0) };
    }
    assert_eq!(status_of(child), 0);
    assert!(sample.iter().all(|byte| *byte == 7));
    assert!(loan.iter().chain(shared_loan.iter()).all(|byte| *byte == 1));
    loan.publish().unwrap();
    assert_eq!(subscriber.receive(WATCHDOG).unwrap().unwrap()[0], 1);
}

fn status_of(child: i32) -> i32 {
    let mut status = -1;
    // SAFETY: the pointer is valid.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    status
}

const BYTES: usize = 100_000;

fn other_side(role: &str, folder: &Path) -> Other {
    let command = match std::env::var(OTHER) {
        Err(_) => itself::itself(),
        Ok(words) => {
            let mut command = Command::new("env");
            command.args(words.lines());
            command
        }
    };
    Other::start(command, role, folder)
}

#[test]
fn the_other_side() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let folder = std::env::var_os(FOLDER).unwrap();
    let node = Node::builder(&role).runtime_dir(folder).open().unwrap();
    match role.as_str() {
        "return_the_ball" => return_the_ball(&node),
        "publish_and_wait" => publish_and_wait(&node),
        "publish_balls" => publish_balls(&node),
        _ => panic!("{role}"),
    }
}

const OTHER: &str = "MYELIN_TEST_OTHER";
const BALLS: u64 = 2_000;
