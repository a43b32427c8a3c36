//! R1 to R3 against T1 to T7: a slot that is being read is not written to.

use loom::thread;
use myelin_shm::Step;

use crate::endpoints::{Payloads, matched, publisher, read, reader, subscriber, writer};
use crate::{PREEMPTIONS, explore, mutant};

/// `before` samples lie in the ring; then the publisher publishes up to sample `last` while a
/// reader that has read nothing yet reads.
fn run(depth: u32, slots: u32, before: u64, last: u64, late: bool) {
    let payloads = Payloads::default();
    let (mut writer, publication) =
        writer(publisher(depth, u64::from(slots), 0), slots, &payloads, 0);
    let mut reader = reader(subscriber(0));
    matched(&publication, reader.shared());
    assert!(reader.take().unwrap().is_none());
    (0..before).for_each(|sequence| assert!(payloads.publish(&mut writer, sequence)));
    let reading = payloads.clone();
    let reader = thread::spawn(move || {
        let seen = read(&mut reader, &reading, 3, late);
        assert!(seen.is_sorted(), "{seen:?}");
        reader
    });
    let mut next = before;
    while next <= last && payloads.publish(&mut writer, next) {
        next += 1;
    }
    drop(reader.join().unwrap());
}

/// More cells than samples: a slot is freed only because every reading is beyond it.
fn early(late: bool) {
    run(7, 2, 1, 3, late);
}

/// Two cells, four slots: a slot is freed because its cell is written again, just when an overtaken
/// reader goes on there.
fn overwritten(late: bool) {
    run(1, 4, 3, 5, late);
}

#[test]
fn a_slot_is_reused_after_the_last_read() {
    explore("reclaim: early", PREEMPTIONS, 500, || early(false));
    explore("reclaim: early, held longer", PREEMPTIONS, 500, || early(true));
}

#[test]
fn a_slot_being_read_is_not_reused_for_a_new_cell() {
    explore("reclaim: overwritten", PREEMPTIONS, 1_000, || overwritten(false));
    explore("reclaim: overwritten, held longer", PREEMPTIONS, 1_000, || overwritten(true));
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_without_the_fence_of_t1() {
    mutant(Step::T1, || overwritten(false));
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_that_does_not_hold() {
    mutant(Step::T6, || early(true));
}

/// Frees slots that are not announced, even if they can still be found in the ring.
#[test]
#[should_panic(expected = "Concurrent read and write accesses")]
fn mutant_that_frees_what_is_still_to_be_read() {
    mutant(Step::R3, || early(false));
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_with_a_relaxed_t7() {
    mutant(Step::T7, || early(false));
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_with_a_relaxed_release() {
    mutant(Step::Release, || early(false));
}
