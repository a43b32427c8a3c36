//! The shipping callbacks with the publishers of their process: the publisher runs the handler, or
//! its thread does, and no sample is left untaken; sleepers elsewhere and newcomers are seen.

// loom's `Arc` panics when a deadlock unwinds.
use std::sync::{Arc, Mutex as Plain};

use loom::sync::{Condvar, Mutex};
use loom::thread;
use myelin_shm::Step;
use myelin_shm::data_plane::publication::Writer;
use myelin_shm::data_plane::subscription::{RawSample, Reader};
use myelin_shm::dispatch::callback::model::{Callback, Process};
use myelin_shm::dispatch::callback::{Function, Lengths};
use myelin_shm::topic::{PublisherQos, SubscriberQos};
use myelin_shm::waiting::wait::{NEVER, Wait};
use myelin_shm::waiting::wake_table::WakeTable;

use crate::endpoints::{matched, reader, subscriber};
use crate::support::topic;
use crate::{Kept, PREEMPTIONS, explore, mutant};

/// The calls of a callback.
struct Calls {
    count: Mutex<u64>,
    called: Condvar,
    /// Publishers and sequences, in the order of the calls.
    samples: Plain<Vec<(u64, u64)>>,
}

impl Calls {
    fn new() -> Arc<Calls> {
        let (count, called) = (Mutex::new(0), Condvar::new());
        Arc::new(Calls { count, called, samples: Plain::default() })
    }

    fn call(&self, taken: &RawSample) {
        self.samples.lock().unwrap().push((taken.publisher, taken.sequence));
        *self.count.lock().unwrap() += 1;
        self.called.notify_all();
    }

    fn wait_for(&self, count: u64) {
        let mut calls = self.count.lock().unwrap();
        while *calls < count {
            calls = self.called.wait(calls).unwrap();
        }
    }
}

/// A callback of so many publishers of its process, each of which has called it once.
fn callback(publishers: u64) -> (Kept<Vec<Writer>>, Callback, impl FnOnce() + Send, Arc<Calls>) {
    let (process, calls) = (Process::new(&topic()), Calls::new());
    let qos = SubscriberQos { publishers_max: publishers as u32, ..subscriber(0) };
    let reader = reader(qos);
    let mut writers: Vec<_> = (0..publishers)
        .map(|number| {
            let qos = PublisherQos { transient_local: 1, ..PublisherQos::default() };
            let (mut writer, publication) = Writer::create(10 + number, &topic(), qos).unwrap();
            matched(&publication, reader.shared());
            process.enter(&mut writer);
            writer
        })
        .collect();
    let calling = calls.clone();
    let function = Function {
        call: Box::new(move |taken| calling.call(taken)),
        lengths: Lengths::Exactly(1),
        align: 1,
    };
    let (callback, attend) = process.start(reader, function);
    writers.iter_mut().for_each(|writer| _ = writer.publish_copy(&[0]).unwrap());
    assert_eq!(calls.samples.lock().unwrap().len() as u64, publishers, "in the publish");
    (Kept::new(writers), callback, attend, calls)
}

fn publish(writer: &mut Writer, samples: u64) {
    (0..samples).for_each(|_| _ = writer.publish_copy(&[1]).unwrap());
}

/// `samples` of each publisher; all must be passed to a call, or this never ends.
fn all_are_called(samples: &[u64]) {
    let (mut writers, callback, attend, calls) = callback(samples.len() as u64);
    let attending = thread::spawn(attend);
    let others: Vec<_> = writers
        .drain(1..)
        .zip(samples[1..].to_owned())
        .map(|(writer, samples)| {
            let mut writer = Kept::new(writer);
            thread::spawn(move || {
                publish(&mut writer, samples);
                writer
            })
        })
        .collect();
    publish(&mut writers[0], samples[0]);
    let total = samples.iter().sum::<u64>() + samples.len() as u64;
    calls.wait_for(total);
    others.into_iter().for_each(|other| drop(other.join().unwrap()));
    callback.stop();
    attending.join().unwrap();
    for publisher in 0..samples.len() {
        let seen = calls.samples.lock().unwrap();
        let its = seen.iter().filter(|(id, _)| *id == 10 + publisher as u64);
        let its: Vec<_> = its.map(|(_, sequence)| *sequence).collect();
        let all: Vec<_> = (0..=samples[publisher]).collect();
        assert_eq!(its, all, "each is called once, in order");
    }
}

/// Two threads that share a publisher, whose lock neither holds while it calls.
fn all_of_a_shared_publisher_are_called() {
    let (mut writers, callback, attend, calls) = callback(1);
    let attending = thread::spawn(attend);
    let mut writer = Kept::new(writers.pop().unwrap());
    writer.defer_callbacks();
    let writer = Arc::new(Mutex::new(writer));
    let share = |writer: &Mutex<Kept<Writer>>| {
        let mut locked = writer.lock().unwrap();
        locked.publish_copy(&[1]).unwrap();
        let dispatch = locked.take_dispatch();
        drop(locked);
        if let Some(dispatch) = dispatch {
            dispatch.run(Some(&[1]))
        };
    };
    let its = writer.clone();
    let other = thread::spawn(move || share(&its));
    share(&writer);
    calls.wait_for(3);
    other.join().unwrap();
    callback.stop();
    attending.join().unwrap();
    let sequences: Vec<_> = calls.samples.lock().unwrap().iter().map(|(_, it)| *it).collect();
    assert_eq!(sequences, [0, 1, 2], "each is called once, in order");
}

/// A subscriber elsewhere, which a publisher that has called must notify: it is known to the
/// publisher, or just coming. It sleeps until the one sample is there, or this never ends.
fn others_are_seen(is_known: bool) {
    let (mut writers, callback, attend, _) = callback(1);
    let table = WakeTable::create().unwrap();
    let (other, _) = Reader::create(3, &topic(), subscriber(1), &table).unwrap();
    let mut other = Kept::new(other);
    let publication = writers[0].shared().clone();
    if is_known {
        matched(&publication, other.shared());
        writers[0].publish_copy(&[1]).unwrap();
    }
    let last = publication.published();
    let waiting = thread::spawn(move || {
        if !is_known {
            matched(&publication, other.shared());
        }
        loop {
            assert!(other.wait(Wait::Block, NEVER).unwrap());
            if other.take().unwrap().is_some_and(|taken| taken.sequence == last) {
                return other;
            }
        }
    });
    writers[0].publish_copy(&[2]).unwrap();
    drop(waiting.join().unwrap());
    callback.stop();
    attend();
}

#[test]
fn every_sample_is_delivered_once_by_any_publisher() {
    explore("dispatcher: two publishers", PREEMPTIONS, 500, || all_are_called(&[1, 1]));
    explore("dispatcher: two publishers", PREEMPTIONS, 500, || all_are_called(&[2, 1]));
}

#[test]
fn every_sample_of_a_shared_publisher_is_delivered_once() {
    explore("dispatcher: shared", PREEMPTIONS, 500, all_of_a_shared_publisher_are_called);
}

#[test]
#[should_panic(expected = "deadlock")]
fn mutant_of_a_shared_publisher_without_notification_after_a_rejection() {
    mutant(Step::Away, all_of_a_shared_publisher_are_called);
}

#[test]
fn every_sample_of_one_publisher_is_delivered_once() {
    explore("dispatcher: one publisher", 3, 50, || all_are_called(&[2]));
}

#[test]
fn a_sleeper_in_another_thread_is_woken() {
    explore("dispatcher: a sleeper elsewhere", PREEMPTIONS, 40, || others_are_seen(true));
}

#[test]
fn a_new_sleeper_is_woken() {
    explore("dispatcher: a newcomer", PREEMPTIONS, 40, || others_are_seen(false));
}

#[test]
#[should_panic(expected = "deadlock")]
fn mutant_without_p7_for_a_sleeper_elsewhere() {
    mutant(Step::P7, || others_are_seen(true));
}

#[test]
#[should_panic(expected = "deadlock")]
fn mutant_without_p7_for_a_newcomer() {
    mutant(Step::P7, || others_are_seen(false));
}

#[test]
#[should_panic(expected = "deadlock")]
fn mutant_without_notification_after_a_rejection() {
    mutant(Step::Away, || all_are_called(&[1, 1]));
}

#[test]
#[should_panic(expected = "deadlock")]
fn mutant_in_which_the_thread_does_not_look_again() {
    mutant(Step::S3, || all_are_called(&[2, 1]));
}

#[test]
#[should_panic(expected = "each is called once, in order")]
fn mutant_in_which_a_publisher_calls_out_of_turn() {
    mutant(Step::Turn, || all_are_called(&[2, 1]));
}
