//! The shipping writer and reader, in two threads, where the reader holds the last three samples:
//! for Miri, which checks every access under many schedules and gets memory of this process instead
//! of segments.
//!
//! `MIRIFLAGS="-Zmiri-disable-isolation -Zmiri-many-seeds=0..8" cargo +nightly miri test -p myelin-shm --test two_threads`

mod support;

use std::collections::VecDeque;

use myelin_shm::data_plane::publication::Writer;
use myelin_shm::data_plane::subscription::{RawSample, Reader};
use myelin_shm::topic::{PublisherQos, SubscriberQos};
use support::pair;

const SAMPLES: u64 = if cfg!(miri) { 60 } else { 200_000 };
const SLOT_BYTES: usize = 256;

/// Every third sample in the cell, the others in slots.
fn publish(writer: &mut Writer) {
    for sequence in 0..SAMPLES {
        let length = if sequence.is_multiple_of(3) { 100 } else { SLOT_BYTES };
        let mut loan = writer.loan(length as u64).unwrap();
        // SAFETY: the writer lives.
        unsafe { loan.bytes_mut() }.fill(sequence as u8);
        // SAFETY: the loan is this writer's.
        assert_eq!(unsafe { writer.publish(loan) }.unwrap().sequence, sequence);
        if cfg!(miri) {
            std::thread::yield_now();
        }
    }
}

fn check(taken: &RawSample) {
    let length = if taken.sequence.is_multiple_of(3) { 100 } else { SLOT_BYTES };
    assert_eq!(taken.bytes(), vec![taken.sequence as u8; length]);
}

/// Takes until all samples have been taken or lost; returns how many of each.
fn read(reader: &mut Reader) -> (u64, u64) {
    let (mut held, mut next, mut taken, mut lost) = (VecDeque::new(), 0, 0, 0);
    while next < SAMPLES {
        let Some(sample) = reader.take().unwrap() else {
            std::thread::yield_now();
            continue;
        };
        assert_eq!(sample.sequence, next + sample.lost_before);
        next = sample.sequence + 1;
        (taken, lost) = (taken + 1, lost + sample.lost_before);
        check(&sample);
        held.push_back(sample);
        if held.len() > 3 {
            held.pop_front().iter().for_each(check);
        }
    }
    held.iter().for_each(check);
    (taken, lost)
}

#[test]
fn held_samples_are_not_overwritten_and_none_is_torn() {
    let publisher = PublisherQos { depth: 3, ..PublisherQos::default() };
    let (mut writer, mut reader) = pair(publisher, SubscriberQos::default());
    let (taken, lost) = std::thread::scope(|scope| {
        scope.spawn(|| publish(&mut writer));
        read(&mut reader)
    });
    assert_eq!(taken + lost, SAMPLES);
    assert!(taken > 0);
}
