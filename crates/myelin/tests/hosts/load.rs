//! A machine under load is not considered dead.

use std::time::{Duration, Instant};

use crate::node;
use crate::support::WATCHDOG;
use crate::two::{Hosts, heard, say};

#[test]
#[ignore = "long: loads all cores for 20 s; part of `make test-long`"]
fn no_host_is_reported_missing_on_busy_cores() {
    let Some(hosts) = Hosts::new() else { return };
    let mut all = [hosts.one.run("stay_matched"), hosts.other.run("stay_matched")];
    all.iter_mut().for_each(|each| each.hears("matched"));
    let mut load = hosts.one.run("take_all_cores");
    load.hears("20 s");
    all.iter_mut().for_each(|each| each.say("still?"));
    all.iter_mut().for_each(|each| each.hears("matched still"));
    for mut each in all {
        each.say("end");
        each.ends();
    }
    load.kill();
}

/// Four busy threads for each core.
pub(crate) fn take_all_cores() {
    let cores = std::thread::available_parallelism().unwrap().get();
    for _ in 0..4 * cores {
        std::thread::spawn(|| {
            loop {
                std::hint::spin_loop();
            }
        });
    }
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(100));
    }
    say("20 s");
    heard("never");
}

/// Publishes nothing: only the announcements show that it is alive.
pub(crate) fn stay_matched() {
    let node = node("silent");
    let publisher = node.topic::<u64>("silence").reliable(WATCHDOG).publisher().unwrap();
    let subscriber = node.topic::<u64>("silence").reliable(WATCHDOG).subscriber().unwrap();
    // Its own host's and the other host's.
    assert!(publisher.wait_for_match(2, WATCHDOG) && subscriber.wait_for_match(2, WATCHDOG));
    let _ = (publisher.events(), subscriber.events());
    say("matched");
    heard("still?");
    assert_eq!((publisher.events(), subscriber.events()), (Vec::new(), Vec::new()));
    say("matched still");
    heard("end");
}
