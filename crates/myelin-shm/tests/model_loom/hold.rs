//! The end of a sample's clones and of its reader: their shared state ends with the last of them,
//! and the slot is released after the last read.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use loom::thread;
use myelin_shm::Step;

use crate::endpoints::{Payloads, matched, publisher, reader, subscriber, writer};
use crate::{PREEMPTIONS, explore, mutant};

/// A sample with `clones` clones, each read and dropped by a thread of its own, while the reader is
/// dropped and the publisher looks for a slot.
fn run(clones: usize) {
    let payloads = Payloads::default();
    let (mut writer, publication) = writer(publisher(1, 2, 0), 2, &payloads, 0);
    let mut reader = reader(subscriber(0));
    let ends = Arc::new(AtomicU32::new(0));
    let ended = ends.clone();
    let end = move || _ = ended.fetch_add(1, Ordering::Relaxed);
    reader.shared().on_last_drop(Box::new(end));
    matched(&publication, reader.shared());
    assert!(reader.take().unwrap().is_none());
    assert!(payloads.publish(&mut writer, 0));
    let taken = reader.take().unwrap().expect("it was published");
    let others: Vec<_> = (1..clones)
        .map(|_| {
            let (clone, payloads) = (taken.clone(), payloads.clone());
            thread::spawn(move || {
                payloads.check(&clone);
                drop(clone);
            })
        })
        .collect();
    let reader = thread::spawn(move || drop(reader));
    payloads.check(&taken);
    drop(taken);
    let mut next = 1;
    while next < 4 && payloads.publish(&mut writer, next) {
        next += 1;
    }
    assert!(next > 1, "there is a second slot");
    others.into_iter().for_each(|other| other.join().unwrap());
    reader.join().unwrap();
    assert_eq!(ends.load(Ordering::Relaxed), 1, "what they share ends once");
}

#[test]
fn a_shared_sample_is_released_once_after_the_last_read() {
    explore("hold: one", PREEMPTIONS, 30, || run(1));
    explore("hold: two clones", 2, 500, || run(2));
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_with_a_relaxed_end_of_a_clone() {
    mutant(Step::Clones, || run(2));
}
