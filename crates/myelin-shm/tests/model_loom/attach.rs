//! `PublicationState::attach` against `Writer::reclaim` and `Writer::refresh`: the first samples
//! of a newcomer are not freed.

use loom::thread;
use myelin_shm::Step;

use crate::endpoints::{Payloads, matched, publisher, read, reader, subscriber, writer};
use crate::{PREEMPTIONS, explore, mutant};

/// `before` samples, then the publisher goes on to sample `last` while a subscriber comes and
/// reads.
fn newcomer(transient_local: u32, slots: u32, before: u64, last: u64) {
    let payloads = Payloads::default();
    let qos = publisher(1.max(transient_local), u64::from(slots), transient_local);
    let (mut writer, publication) = writer(qos, slots, &payloads, before);
    let mut reader = reader(subscriber(transient_local));
    let reading = payloads.clone();
    let subscriber = thread::spawn(move || {
        matched(&publication, reader.shared());
        read(&mut reader, &reading, 2, false);
        reader
    });
    let mut next = before;
    while next <= last && payloads.publish(&mut writer, next) {
        next += 1;
    }
    drop(subscriber.join().unwrap());
}

#[test]
fn the_first_samples_of_a_new_subscriber_are_not_freed() {
    explore("attach: without history", PREEMPTIONS, 500, || newcomer(0, 2, 1, 4));
}

#[test]
fn the_history_of_a_new_subscriber_is_not_freed() {
    explore("attach: history", PREEMPTIONS, 500, || newcomer(1, 4, 2, 5));
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_without_the_fence() {
    mutant(Step::Attach, || newcomer(0, 2, 1, 4));
}
