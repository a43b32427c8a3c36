//! Late reliable subscribers: only they lose samples, they learn of it, and they come back.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use myelin::{Error, Event, Node, Published, Topic, cancel};

use crate::support::{WATCHDOG, until};
use crate::two::{Host, Hosts, Process, heard, say};
use crate::{node, unmatched};

#[test]
fn a_stopped_subscriber_does_not_delay_others() {
    let stop = |logger: &mut Process| logger.signal(libc::SIGSTOP);
    past_a_late_logger(LONG_LEASE, stop, |mut logger| {
        logger.say("go on");
        logger.signal(libc::SIGCONT);
        logger.ends();
    });
}

#[test]
fn a_full_subscriber_does_not_delay_others() {
    past_a_late_logger(
        "",
        |_| {},
        |mut logger| {
            logger.say("go on");
            logger.ends();
        },
    );
}

#[test]
fn a_killed_subscriber_does_not_delay_others() {
    past_a_late_logger("", |logger| logger.signal(libc::SIGKILL), drop);
}

/// A publisher, a subscriber on its host, one on the other host, and there the logger, which does
/// not take from `hold` on, until `let_go`.
fn past_a_late_logger(configuration: &str, hold: impl Fn(&mut Process), let_go: impl Fn(Process)) {
    let Some(hosts) = Hosts::new() else { return };
    let run = |host: &Host, role| host.run_with(role, configuration);
    let mut takers = [run(&hosts.one, "take_in_time"), run(&hosts.other, "take_in_time")];
    let mut logger = run(&hosts.other, "log_late");
    takers.iter_mut().for_each(|taker| taker.hears("ready"));
    logger.hears("ready");
    let mut publisher = run(&hosts.one, "publish_past_the_late");
    logger.hears("heard");
    hold(&mut logger);
    publisher.say("held");
    publisher.hears("passed over");
    let_go(logger);
    takers.into_iter().for_each(Process::ends);
    publisher.ends();
}

/// A robot's program is started again and again while the operator's program does not take.
#[test]
fn a_restarted_publisher_finds_room_at_a_subscriber_that_does_not_take() {
    let Some(hosts) = Hosts::new() else { return };
    let mut taker = hosts.other.run("take_after_restarts");
    taker.hears("ready");
    for _ in 0..RESTARTS {
        hosts.one.run("publish_some_and_end").ends();
    }
    taker.say("take");
    taker.ends();
}

/// Three threads and one publisher: one waits for the stopped host, one for that thread; neither
/// holds up the third.
#[test]
fn publishes_that_wait_for_a_stopped_host_are_cancelled_each_for_itself() {
    let Some(hosts) = Hosts::new() else { return };
    let mut taker = hosts.other.run_with("stand_still", LONG_LEASE);
    taker.hears("ready");
    let mut publisher = hosts.one.run_with("publish_until_cancelled", LONG_LEASE);
    taker.hears("heard");
    taker.stop();
    publisher.say("stopped");
    publisher.ends();
}

thread_local! {
    /// Ends this thread's waits on request, and shows that it waits.
    static STOP: Cell<Option<&'static Stop>> = const { Cell::new(None) };
}

struct Stop {
    waits: AtomicBool,
    ends: AtomicBool,
}

fn is_cancelled() -> bool {
    STOP.get().is_some_and(|stop| {
        stop.waits.store(true, Ordering::Relaxed);
        stop.ends.load(Ordering::Relaxed)
    })
}

pub(crate) fn publish_until_cancelled() {
    static STOPS: [Stop; 2] =
        [const { Stop { waits: AtomicBool::new(false), ends: AtomicBool::new(false) } }; 2];
    let interval = || STOP.get().map(|_| Duration::from_millis(10));
    cancel::install(cancel::Checks { interval, is_cancelled });
    let node = node("publisher");
    let topic = node.topic::<u64>("still").depth(4).reliable(10 * WATCHDOG);
    let publisher = topic.publisher().unwrap().shared();
    assert!(publisher.wait_for_match(1, WATCHDOG));
    publisher.publish_copy(&0).unwrap();
    heard("stopped");
    std::thread::scope(|scope| {
        let threads = STOPS.each_ref().map(|stop| {
            let thread = scope.spawn(|| {
                STOP.set(Some(stop));
                std::iter::repeat_with(|| publisher.publish_copy(&1)).find_map(Result::err)
            });
            until("it to wait", || stop.waits.load(Ordering::Relaxed));
            thread
        });
        // No thread holds the lock while they wait.
        publisher.assert_liveliness().unwrap();
        drop(publisher.loan().unwrap());
        // The later thread first: it waits for the other.
        for (stop, thread) in STOPS.iter().zip(threads).rev() {
            stop.ends.store(true, Ordering::Relaxed);
            until("its end", || thread.is_finished());
            let error = thread.join().unwrap();
            assert!(matches!(error, Some(Error::ReliableTimeout { .. })), "{error:?}");
        }
    });
    // Then it does not wait for missing acknowledgements either.
    STOP.set(Some(&STOPS[0]));
    drop(publisher);
}

pub(crate) fn stand_still() {
    let node = node("taker");
    let topic = node.topic::<u64>("still").depth(4).reliable(WATCHDOG);
    let mut subscriber = topic.subscriber().unwrap();
    say("ready");
    subscriber.receive(WATCHDOG).unwrap().unwrap();
    say("heard");
    heard("never");
}

/// A stopped process stays alive for DDS for this long. The rest is as without a configuration.
pub(crate) const LONG_LEASE: &str = r#"<CycloneDDS><Domain>
    <Discovery><LeaseDuration>60 s</LeaseDuration></Discovery>
    <Internal>
        <Watermarks>
            <WhcHigh>2000000000B</WhcHigh>
            <WhcHighInit>2000000000B</WhcHighInit>
            <WhcAdaptive>false</WhcAdaptive>
        </Watermarks>
        <HeartbeatInterval min="1 ms" minsched="1 ms" max="1 s">2 ms</HeartbeatInterval>
    </Internal>
</Domain></CycloneDDS>"#;

fn numbers(node: &Node) -> Topic<[u64]> {
    node.topic("numbers").depth(16).reliable(Duration::from_secs(2))
}

pub(crate) fn publish_past_the_late() {
    let node = node("publisher");
    let publisher = numbers(&node).publisher().unwrap();
    assert!(publisher.wait_for_match(3, WATCHDOG));
    let (mut number, mut events) = (0, Vec::new());
    let mut publish = |events: &mut Vec<Event>| {
        let published = publisher.publish_copy(&message(number, 0)).unwrap();
        number += 1;
        events.extend(publisher.events());
        std::thread::sleep(Duration::from_millis(1));
        published
    };
    let held = std::thread::spawn(|| heard("held"));
    while !held.is_finished() {
        publish(&mut events);
    }
    // A dead one may be noticed first.
    while passed_over(&events) + unmatched(&events) == 0 {
        publish(&mut events);
    }
    for _ in 0..500 {
        let Published { passed_over, .. } = publish(&mut events);
        assert!(passed_over == 1 || unmatched(&events) == 1);
    }
    say("passed over");
    while caught_up(&events) + unmatched(&events) == 0 {
        publish(&mut events);
    }
    assert_eq!(publish(&mut events).passed_over, 0);
    assert_eq!(caught_up(&events) + unmatched(&events), 1, "once");
    assert!(passed_over(&events) == 1 || unmatched(&events) == 1, "once");
    publisher.publish_copy(&message(number, LAST)).unwrap();
    until("all to have gone", || publisher.matched() == 0);
}

pub(crate) fn publish_some_and_end() {
    let node = node("publisher");
    let publisher = restarted(&node).publisher().unwrap();
    assert!(publisher.wait_for_match(1, WATCHDOG));
    (0..SOME).for_each(|number| _ = publisher.publish_copy(&number).unwrap());
}

pub(crate) fn take_after_restarts() {
    let node = node("taker");
    let builder = restarted(&node).subscriber_builder();
    let mut subscriber = builder.publishers_max(2).open().unwrap();
    say("ready");
    heard("take");
    let mut taken = 0;
    until("all samples are taken or lost", || {
        while subscriber.take().unwrap().is_some() {
            taken += 1;
        }
        taken + subscriber.lost() >= RESTARTS * SOME
    });
    assert_eq!(taken + subscriber.lost(), RESTARTS * SOME);
    assert!((2..=2 * SOME).contains(&taken), "some of the last two, at most all: {taken}");
}

/// The subscriber has less room than one publisher needs.
fn restarted(node: &Node) -> Topic<u64> {
    node.topic("restarted").depth(2).reliable(Duration::from_millis(100))
}

fn passed_over(events: &[Event]) -> usize {
    events.iter().filter(|event| matches!(event, Event::PassedOver { .. })).count()
}

fn caught_up(events: &[Event]) -> usize {
    events.iter().filter(|event| matches!(event, Event::CaughtUp { .. })).count()
}

pub(crate) fn take_in_time() {
    let node = node("taker");
    let mut subscriber = numbers(&node).subscriber().unwrap();
    say("ready");
    for number in 0.. {
        let sample = subscriber.receive(WATCHDOG).unwrap().expect("it goes on");
        assert_eq!(sample[0], number);
        if sample[1] == LAST {
            break;
        }
    }
    assert_eq!((subscriber.lost(), lost(&subscriber.events())), (0, 0));
}

pub(crate) fn log_late() {
    let node = node("logger");
    let mut subscriber = numbers(&node).subscriber().unwrap();
    say("ready");
    let (mut next, mut missed) = (1, 0);
    assert_eq!(subscriber.receive(WATCHDOG).unwrap().unwrap()[0], 0);
    say("heard");
    heard("go on");
    loop {
        let sample = subscriber.receive(WATCHDOG).unwrap().expect("it comes back");
        assert!(sample[0] >= next, "{} after {next}", sample[0]);
        missed += sample[0] - next;
        next = sample[0] + 1;
        if sample[1] == LAST {
            break;
        }
    }
    assert!(missed > 0);
    assert_eq!((subscriber.lost(), lost(&subscriber.events())), (missed, missed));
}

fn lost(events: &[Event]) -> u64 {
    let samples = |event: &Event| match event {
        Event::Lost { samples, .. } => *samples,
        _ => 0,
    };
    events.iter().map(samples).sum()
}

/// 8 KiB: the socket of a stopped process cannot hold 500 of them.
fn message(number: u64, what: u64) -> [u64; 1024] {
    let mut words = [0; 1024];
    (words[0], words[1]) = (number, what);
    words
}

const LAST: u64 = 1;
const RESTARTS: u64 = 6;
const SOME: u64 = 3;
