//! The shipping P7 and P8 against S1 to S3, with bad peers and many subscribers: another publisher
//! may write anything to the wake word, and one call wakes many. `sleep` has the plain case.

use std::sync::Arc;

use loom::sync::atomic::Ordering;
use loom::thread;
use myelin_shm::Step;
use myelin_shm::data_plane::publication::Writer;
use myelin_shm::data_plane::subscription::{Reader, SubscriptionState};
use myelin_shm::layout::{
    SUBSCRIPTION_HEAD_BYTES, SubscriptionHead, WAKE_SEGMENT_BYTES, WakeSegment, WakeWord,
    subscription_begin,
};
use myelin_shm::os::segment::Segment;
use myelin_shm::topic::PublisherQos;
use myelin_shm::waiting::notify;
use myelin_shm::waiting::wait::{NEVER, Wait};

use crate::endpoints::{matched, reader, subscriber};
use crate::sleep::endpoints;
use crate::support::topic;
use crate::{Kept, PREEMPTIONS, explore, mutant};

/// The memory that another publisher of the subscriber has mapped.
struct Other {
    subscription: Segment,
    wake_word: Segment,
}

impl Other {
    fn of(subscription: &SubscriptionState) -> Other {
        let (its, word) = subscription.descriptors();
        Other {
            subscription: Segment::map_theirs(its, SUBSCRIPTION_HEAD_BYTES)
                .and_then(|segment| segment.beginning_at(subscription_begin(subscription.id())))
                .unwrap(),
            wake_word: Segment::map_shared(word, WAKE_SEGMENT_BYTES).unwrap(),
        }
    }

    fn is_asleep(&self) -> bool {
        // SAFETY: it is only loaded.
        let head: &SubscriptionHead = unsafe { self.subscription.at(0) };
        head.asleep.load(Ordering::Relaxed) != 0
    }

    fn wake_word(&self) -> &WakeWord {
        // SAFETY: atomics.
        let segment: &WakeSegment = unsafe { self.wake_word.at(0) };
        &segment.wake_word
    }
}

/// Waits until `samples` have been taken.
fn take(reader: &mut Reader, samples: u64) {
    for _ in 0..samples {
        assert!(reader.wait(Wait::Block, NEVER).unwrap());
        assert!(reader.take().unwrap().is_some(), "the wait has said so");
    }
}

/// A hostile publisher resets the wake word, at any moment; an honest one publishes twice. The
/// sleeper may miss the first wake-up, but not both.
fn set_back() {
    let (mut writers, mut reader) = endpoints(1);
    let other = Other::of(reader.shared());
    let before = other.wake_word().wakes.load(Ordering::Relaxed);
    let hostile = thread::spawn(move || other.wake_word().wakes.store(before, Ordering::Relaxed));
    let mut writer = writers.pop().unwrap();
    let publisher = thread::spawn(move || {
        writer.publish_copy(&[1]).unwrap();
        // All its resets came before this point.
        hostile.join().unwrap();
        writer.publish_copy(&[2]).unwrap();
        writer
    });
    take(&mut reader, 1);
    drop(publisher.join().unwrap());
}

/// Another publisher is stopped for ever (SIGSTOP) before it wakes: other publishers' samples
/// arrive nevertheless.
fn stopped() {
    let (mut writers, mut reader) = endpoints(1);
    let other = Other::of(reader.shared());
    let stopped = thread::spawn(move || {
        if other.is_asleep() {
            notify::count_up(&other.wake_word().wakes);
        }
    });
    let mut writer = writers.pop().unwrap();
    let publisher = thread::spawn(move || {
        writer.publish_copy(&[1]).unwrap();
        writer
    });
    take(&mut reader, 1);
    drop((publisher.join().unwrap(), stopped.join().unwrap()));
}

/// A publisher and so many subscribers that they sleep on `published`.
fn many_sleepers() -> (Writer, Vec<Kept<Reader>>) {
    let (mut writer, publication) = Writer::create(1, &topic(), PublisherQos::default()).unwrap();
    let mut readers: Vec<_> = (0..2).map(|_| Kept::new(reader(subscriber(0)))).collect();
    readers.iter().for_each(|reader| matched(&publication, reader.shared()));
    // The first publish adds its subscribers.
    writer.publish_copy(&[0]).unwrap();
    readers.iter_mut().for_each(|reader| assert!(reader.take().unwrap().is_some()));
    (writer, readers)
}

/// So many of many sleep until each has taken so many samples.
fn many(sleeping: usize, samples: u64) {
    let (mut writer, mut readers) = many_sleepers();
    let idle = readers.split_off(sleeping);
    let others: Vec<_> = readers
        .into_iter()
        .map(|mut reader| {
            thread::spawn(move || {
                take(&mut reader, samples);
                reader
            })
        })
        .collect();
    (0..samples).for_each(|_| _ = writer.publish_copy(&[1]).unwrap());
    others.into_iter().for_each(|other| drop(other.join().unwrap()));
    drop((idle, writer));
}

/// One of many is woken by its own process, which cannot change `published`.
fn interrupted() {
    let (_writer, mut readers) = many_sleepers();
    let its: Arc<SubscriptionState> = readers[0].shared().clone();
    let interrupting = thread::spawn(move || its.interrupt());
    assert!(!readers[0].wait(Wait::Block, NEVER).unwrap());
    interrupting.join().unwrap();
}

#[test]
fn a_wake_word_that_is_reset_silences_no_other() {
    explore("notify: set back", PREEMPTIONS, 500, set_back);
}

#[test]
fn a_stopped_publisher_does_not_keep_others_from_waking() {
    explore("notify: one is stopped", PREEMPTIONS, 100, stopped);
}

#[test]
fn no_wake_up_of_many_is_lost() {
    explore("notify: one of many", PREEMPTIONS, 100, || many(1, 2));
    explore("notify: two of many", PREEMPTIONS, 500, || many(2, 1));
}

#[test]
fn one_of_many_is_woken_by_its_own_process() {
    explore("notify: interrupted", PREEMPTIONS, 10, interrupted);
}

/// A publisher that has notified a sleep is silent for the rest of it, whether or not a thread was
/// woken.
#[test]
#[should_panic(expected = "deadlock")]
fn mutant_that_does_not_ask_the_kernel() {
    mutant(Step::Certain, set_back);
}

/// A subscriber on its way into the kernel does not notice.
#[test]
#[should_panic(expected = "deadlock")]
fn mutant_that_wakes_without_counting() {
    mutant(Step::Count, stopped);
}

/// A sleeper on the present value counts as woken by it.
#[test]
#[should_panic(expected = "deadlock")]
fn mutant_that_counts_readers_of_the_sample_as_woken() {
    mutant(Step::Value, || many(1, 2));
}

#[test]
#[should_panic(expected = "deadlock")]
fn mutant_that_does_not_count_samples() {
    mutant(Step::P6, || many(1, 1));
}
