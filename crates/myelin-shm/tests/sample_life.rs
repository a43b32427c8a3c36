//! The life of a sample between one writer and its readers, without a node.

mod support;

use std::time::Duration;

use myelin_shm::Error;
use myelin_shm::publication::Writer;
use myelin_shm::subscription::Reader;
use myelin_shm::topic::{PublisherQos, Reliability, SubscriberQos};
use myelin_shm::wait::{NEVER, Wait};
use support::{matched, pair, topic};

#[test]
fn any_length_arrives_as_it_was_sent() {
    let (mut writer, mut reader) = pair(PublisherQos::default(), SubscriberQos::default());
    for length in [0usize, 1, 7, 8, 40, 103, 104, 105, 128, 129, 4096, 65_536, 1 << 20, 5_000_001] {
        let payload: Vec<u8> = (0..length).map(|at| (at * 31 + length) as u8).collect();
        let sequence = writer.publish_copy(&payload).unwrap();
        let taken = reader.take().unwrap().expect("it was published");
        assert_eq!(taken.bytes(), payload);
        assert_eq!((taken.sequence, taken.lost_before), (sequence, 0));
        assert!(taken.bytes().as_ptr().addr().is_multiple_of(64));
        assert!(reader.take().unwrap().is_none());
    }
}

#[test]
fn what_is_held_stays_as_it_was_and_is_reused_after() {
    let (mut writer, mut reader) = pair(PublisherQos::default(), SubscriberQos::default());
    let mut held = Vec::new();
    for round in 0..10u8 {
        writer.publish_copy(&[round; 1000]).unwrap();
        held.push(reader.take().unwrap().unwrap());
    }
    for _ in 0..100 {
        writer.publish_copy(&[255; 1000]).unwrap();
        drop(reader.take().unwrap().unwrap());
    }
    for (round, taken) in held.iter().enumerate() {
        assert!(taken.bytes().iter().all(|byte| *byte == round as u8));
    }
    let clone = held[3].clone();
    held.clear();
    for _ in 0..100 {
        writer.publish_copy(&[255; 1000]).unwrap();
    }
    assert!(clone.bytes().iter().all(|byte| *byte == 3));
    drop(clone);
    while reader.take().unwrap().is_some() {}
    let counts = writer.slot_counts();
    assert_eq!(counts.free, counts.total, "every slot is back");
}

#[test]
fn the_limit_of_held_samples_is_an_error_and_loses_nothing() {
    let qos = SubscriberQos { held_max: 2, ..SubscriberQos::default() };
    let (mut writer, mut reader) = pair(PublisherQos::default(), qos);
    for round in 0..3u8 {
        writer.publish_copy(&[round; 200]).unwrap();
    }
    let first = reader.take().unwrap().unwrap();
    let _second = reader.take().unwrap().unwrap();
    assert!(matches!(reader.take(), Err(Error::TooManyHeld { held: 2 })));
    drop(first);
    assert_eq!(reader.take().unwrap().unwrap().bytes(), [2; 200]);
}

#[test]
fn the_oldest_goes_and_the_loss_is_exact() {
    let publisher = PublisherQos { depth: 4, ..PublisherQos::default() };
    let (mut writer, mut reader) = pair(publisher, SubscriberQos::default());
    for round in 0..20u64 {
        writer.publish_copy(&round.to_le_bytes()).unwrap();
    }
    let taken = reader.take().unwrap().unwrap();
    assert_eq!((taken.sequence, taken.lost_before), (16, 16));
    for sequence in 17..20 {
        assert_eq!(reader.take().unwrap().unwrap().sequence, sequence);
    }
    assert!(reader.take().unwrap().is_none());
    assert_eq!(reader.lost(), 16);
}

#[test]
fn a_depth_of_one_gives_the_newest() {
    let qos = SubscriberQos { depth: 1, ..SubscriberQos::default() };
    let (mut writer, mut reader) = pair(PublisherQos::default(), qos);
    assert!(reader.take().unwrap().is_none());
    for round in 0..5u64 {
        writer.publish_copy(&round.to_le_bytes()).unwrap();
    }
    assert_eq!(reader.take().unwrap().unwrap().sequence, 4);
    assert!(reader.take().unwrap().is_none());
    assert_eq!(reader.lost(), 4);
}

#[test]
fn who_comes_late_gets_the_history_it_asks_for_and_no_loss() {
    let publisher = PublisherQos { depth: 8, history: 3, ..PublisherQos::default() };
    let (mut writer, _reader) = pair(publisher, SubscriberQos::default());
    for round in 0..10u8 {
        writer.publish_copy(&[round; 300]).unwrap();
    }
    let late = SubscriberQos { history: 5, ..SubscriberQos::default() };
    let (mut reader, subscription) = Reader::create(3, &topic(), late).unwrap();
    matched(writer.shared(), &subscription);
    for round in 7..10 {
        assert_eq!(reader.take().unwrap().unwrap().bytes(), [round; 300]);
    }
    assert!(reader.take().unwrap().is_none());
    assert_eq!(reader.lost(), 0);
}

#[test]
fn a_reliable_publisher_waits_and_loses_nothing() {
    let reliability = Reliability::Reliable;
    let publisher = PublisherQos { depth: 4, reliability, ..PublisherQos::default() };
    let subscriber = SubscriberQos { reliability, ..SubscriberQos::default() };
    let (mut writer, mut reader) = pair(publisher, subscriber);
    let sender = std::thread::spawn(move || {
        for round in 0..50_000u64 {
            writer.publish_copy(&round.to_le_bytes()).unwrap();
        }
        writer
    });
    for sequence in 0..50_000 {
        while !reader.wait(Wait::Block, NEVER).unwrap() {}
        assert_eq!(reader.take().unwrap().unwrap().sequence, sequence);
    }
    drop(sender.join().unwrap());
    assert_eq!(reader.lost(), 0);
}

#[test]
fn a_reliable_publisher_gives_up_after_its_limit_and_names_the_subscriber() {
    let reliability = Reliability::Reliable;
    let block_max = Duration::from_millis(5);
    let publisher = PublisherQos { depth: 2, reliability, block_max, ..PublisherQos::default() };
    let subscriber = SubscriberQos { reliability, ..SubscriberQos::default() };
    let (mut writer, mut reader) = pair(publisher, subscriber);
    assert!(reader.take().unwrap().is_none());
    writer.publish_copy(&[1; 200]).unwrap();
    writer.publish_copy(&[2; 200]).unwrap();
    let error = writer.publish_copy(&[3; 200]).unwrap_err();
    assert!(matches!(error, Error::ReliableTimeout { subscriber: 2, .. }), "{error}");
    drop(reader);
    writer.publish_copy(&[3; 200]).expect("a subscriber that is gone is not waited for");
}

#[test]
fn limits_are_errors_that_change_nothing() {
    let publisher = PublisherQos {
        payload_bytes_max: 1 << 20,
        memory_max: 100_000,
        loans_max: 2,
        ..PublisherQos::default()
    };
    let (mut writer, _reader) = pair(publisher, SubscriberQos::default());
    assert!(matches!(writer.loan((1 << 20) + 1), Err(Error::PayloadTooLarge { .. })));
    assert!(matches!(writer.loan(1 << 20), Err(Error::MemoryLimit { .. })));
    let first = writer.loan(300).unwrap();
    let second = writer.loan(200).unwrap();
    assert!(matches!(writer.loan(200), Err(Error::TooManyLoans { loans: 2 })));
    let small: Vec<_> = (0..10).map(|_| writer.loan(10).unwrap()).collect();
    small.into_iter().for_each(|loan| writer.discard(loan));
    writer.discard(first);
    writer.publish(second).unwrap();
    writer.loan(200).unwrap();
}

#[test]
fn no_memory_is_an_error_and_not_a_signal() {
    let (mut writer, _reader) = pair(PublisherQos::default(), SubscriberQos::default());
    let error = writer.loan(1 << 39).unwrap_err();
    assert!(matches!(error, Error::NoMemory { .. }), "{error}");
    writer.publish_copy(&[0; 4096]).unwrap();
}

#[test]
fn a_sleeper_is_woken_however_it_waits() {
    for how in [Wait::Poll, Wait::Block, Wait::Adaptive, Wait::Predictive] {
        let publisher = PublisherQos { depth: 200, ..PublisherQos::default() };
        let subscriber = SubscriberQos { depth: 200, ..SubscriberQos::default() };
        let (mut writer, mut reader) = pair(publisher, subscriber);
        let waiter = std::thread::spawn(move || {
            for sequence in 0..200 {
                while !reader.wait(how, NEVER).unwrap() {}
                assert_eq!(reader.take().unwrap().unwrap().sequence, sequence);
            }
            reader
        });
        for round in 0..200u64 {
            std::thread::sleep(Duration::from_micros(50 * (round % 4)));
            writer.publish_copy(&[1; 150]).unwrap();
        }
        drop(waiter.join().unwrap());
    }
}

#[test]
fn a_wait_ends_at_its_time_limit() {
    let (_writer, mut reader) = pair(PublisherQos::default(), SubscriberQos::default());
    for how in [Wait::Poll, Wait::Block, Wait::Adaptive, Wait::Predictive] {
        let until_ns = myelin_shm::wait::now_ns() + 2_000_000;
        assert!(!reader.wait(how, until_ns).unwrap());
        assert!(myelin_shm::wait::now_ns() >= until_ns);
    }
}

#[test]
fn a_publisher_that_is_gone_makes_room_when_it_is_read_to_the_end() {
    let qos = SubscriberQos { publishers_max: 1, ..SubscriberQos::default() };
    let (mut reader, subscription) = Reader::create(2, &topic(), qos).unwrap();
    for publisher in 10..20 {
        let (mut writer, publication) =
            Writer::create(publisher, &topic(), PublisherQos::default()).unwrap();
        matched(&publication, &subscription);
        writer.publish_copy(&publisher.to_le_bytes()).unwrap();
        subscription.publisher_gone(publisher);
        // Its end is seen before its sample is taken.
        assert!(reader.wait(Wait::Poll, 0).unwrap());
        assert_eq!(reader.take().unwrap().unwrap().bytes(), publisher.to_le_bytes());
        assert!(reader.take().unwrap().is_none());
        assert!(!reader.wait(Wait::Poll, 0).unwrap());
    }
}
