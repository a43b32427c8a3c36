//! The life of a sample between one writer and its readers, without a node. Miri runs it, too:
//! `MIRIFLAGS=-Zmiri-disable-isolation cargo +nightly miri test -p myelin-shm --test sample_life`

mod support;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use myelin_shm::Error;
use myelin_shm::data_plane::publication::{SlotSegment, Writer};
use myelin_shm::data_plane::subscription::{RawSample, Reader, SubscriptionState};
use myelin_shm::topic::{Late, PublisherQos, Reliability, SubscriberQos};
use myelin_shm::waiting::wait::{NEVER, Wait};
use myelin_shm::waiting::wake_table::WakeTable;
use support::{matched, pair, topic};

#[test]
#[cfg_attr(miri, ignore = "megabytes, byte by byte")]
fn any_length_arrives_as_it_was_sent() {
    let (mut writer, mut reader) = pair(PublisherQos::default(), SubscriberQos::default());
    for length in [0usize, 1, 7, 8, 40, 103, 104, 105, 128, 129, 4096, 65_536, 1 << 20, 5_000_001] {
        let payload: Vec<u8> = (0..length).map(|at| (at * 31 + length) as u8).collect();
        let sequence = writer.publish_copy(&payload).unwrap().sequence;
        let taken = reader.take().unwrap().expect("it was published");
        assert_eq!(taken.bytes(), payload);
        assert_eq!((taken.sequence, taken.lost_before), (sequence, 0));
        assert!(taken.bytes().as_ptr().addr().is_multiple_of(64));
        assert!(reader.take().unwrap().is_none());
    }
}

#[test]
fn a_held_sample_is_unchanged_and_its_slot_reused_after() {
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

/// Of the four slots, the loan gets the one that is still in the caches.
#[test]
fn a_large_slot_that_has_been_read_is_the_next_loan_again() {
    let (mut writer, mut reader) = pair(PublisherQos::default(), SubscriberQos::default());
    let mut publish = |length: u64| {
        let mut loan = writer.loan(length).unwrap();
        // SAFETY: the writer lives.
        let pointer = unsafe { loan.bytes_mut() }.as_mut_ptr();
        // SAFETY: the loan is this writer's.
        unsafe { writer.publish(loan) }.unwrap();
        pointer
    };
    let first = publish(128 << 10);
    assert_ne!(publish(128 << 10), first, "it has not been read yet");
    while reader.take().unwrap().is_some() {}
    for _ in 0..10 {
        let next = publish(128 << 10);
        drop(reader.take().unwrap().expect("it was published"));
        assert_eq!(publish(128 << 10), next);
        drop(reader.take().unwrap().expect("it was published"));
    }
}

#[test]
fn a_loan_is_written_by_a_pointer_made_before_it_was_moved() {
    let (mut writer, mut reader) = pair(PublisherQos::default(), SubscriberQos::default());
    for length in [40, 1000] {
        let mut loan = writer.loan(length).unwrap();
        // SAFETY: the writer lives.
        let pointer = unsafe { loan.bytes_mut() }.as_mut_ptr();
        let moved = vec![loan];
        // SAFETY: the loan lives, and nothing else looks at its bytes.
        unsafe { pointer.write_bytes(7, length as usize) };
        for loan in moved {
            // SAFETY: the loan is this writer's.
            unsafe { writer.publish(loan) }.unwrap();
        }
        let taken = reader.take().unwrap().expect("it was published");
        assert_eq!(taken.bytes(), vec![7; length as usize]);
    }
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
    assert!(matches!(reader.take(), Err(Error::TooManyHeld { held: 2, .. })));
    drop(first);
    assert_eq!(reader.take().unwrap().unwrap().bytes(), [2; 200]);
}

/// Large and small samples in turn, with room for one held sample: each take gives the previous one
/// back.
#[test]
fn take_into_releases_the_previous_sample() {
    let qos = SubscriberQos { held_max: 1, ..SubscriberQos::default() };
    let (mut writer, mut reader) = pair(PublisherQos::default(), qos);
    let mut taken = RawSample::empty();
    assert_eq!(taken.bytes(), []);
    for round in 0..20u8 {
        let bytes = [vec![round; 40], vec![round; 400], vec![], vec![round; 4]];
        for bytes in &bytes {
            writer.publish_copy(bytes).unwrap();
        }
        for bytes in &bytes {
            assert!(reader.take_into(&mut taken).unwrap());
            assert_eq!(taken.bytes(), bytes);
            assert_eq!(taken.clone().bytes(), bytes);
        }
        assert!(!reader.take_into(&mut taken).unwrap());
        assert_eq!(taken.bytes(), []);
    }
    writer.publish_copy(&[1; 200]).unwrap();
    writer.publish_copy(&[2; 200]).unwrap();
    let first = reader.take().unwrap().unwrap();
    assert!(matches!(reader.take_into(&mut taken), Err(Error::TooManyHeld { held: 1, .. })));
    assert_eq!(taken.bytes(), []);
    drop(first);
    assert!(reader.take_into(&mut taken).unwrap());
    taken.release();
    assert_eq!((taken.bytes(), reader.take().unwrap().is_none()), (&[][..], true));
    let counts = writer.slot_counts();
    assert_eq!(counts.free, counts.total, "every slot is back");
}

#[test]
fn the_oldest_sample_is_dropped_and_the_loss_is_exact() {
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
fn a_late_subscriber_gets_its_history_and_counts_no_loss() {
    let publisher = PublisherQos { depth: 8, transient_local: 3, ..PublisherQos::default() };
    let (mut writer, _reader) = pair(publisher, SubscriberQos::default());
    for round in 0..10u8 {
        writer.publish_copy(&[round; 300]).unwrap();
    }
    let late = SubscriberQos { transient_local: 5, ..SubscriberQos::default() };
    let (mut reader, subscription) =
        Reader::create(3, &topic(), late, &WakeTable::create().unwrap()).unwrap();
    matched(writer.shared(), &subscription);
    for round in 7..10 {
        assert_eq!(reader.take().unwrap().unwrap().bytes(), [round; 300]);
    }
    assert!(reader.take().unwrap().is_none());
    assert_eq!(reader.lost(), 0);
}

#[test]
#[cfg_attr(miri, ignore = "Miri takes the kernel's look at half a word for ours")]
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
    let late = Late::Fail;
    let publisher =
        PublisherQos { depth: 2, reliability, block_max, late, ..PublisherQos::default() };
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
    assert!(matches!(writer.loan(200), Err(Error::TooManyLoans { loans: 2, .. })));
    let small: Vec<_> = (0..10).map(|_| writer.loan(10).unwrap()).collect();
    // SAFETY: the loan is this writer's.
    small.into_iter().for_each(|loan| unsafe { writer.discard(loan) });
    // SAFETY: the loan is this writer's.
    unsafe { writer.discard(first) };
    // SAFETY: the loan is this writer's.
    unsafe { writer.publish(second) }.unwrap();
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
#[cfg_attr(miri, ignore = "Miri takes the kernel's look at half a word for ours")]
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
#[cfg_attr(miri, ignore = "Miri takes the kernel's look at half a word for ours")]
fn a_wait_ends_at_its_time_limit() {
    let (_writer, mut reader) = pair(PublisherQos::default(), SubscriberQos::default());
    for how in [Wait::Poll, Wait::Block, Wait::Adaptive, Wait::Predictive] {
        let until_ns = myelin_shm::waiting::wait::now_ns() + 2_000_000;
        assert!(!reader.wait(how, until_ns).unwrap());
        assert!(myelin_shm::waiting::wait::now_ns() >= until_ns);
    }
}

#[test]
fn a_closed_publisher_frees_its_place_when_read_to_the_end() {
    let qos = SubscriberQos { publishers_max: 1, ..SubscriberQos::default() };
    let (mut reader, subscription) =
        Reader::create(2, &topic(), qos, &WakeTable::create().unwrap()).unwrap();
    for publisher in 10..20 {
        let (mut writer, publication) =
            Writer::create(publisher, &topic(), PublisherQos::default()).unwrap();
        matched(&publication, &subscription);
        writer.publish_copy(&publisher.to_le_bytes()).unwrap();
        subscription.publisher_gone(publisher);
        // The publisher's end is seen before its sample is taken.
        assert!(reader.wait(Wait::Poll, 0).unwrap());
        assert_eq!(reader.take().unwrap().unwrap().bytes(), publisher.to_le_bytes());
        assert!(reader.take().unwrap().is_none());
        assert!(!reader.wait(Wait::Poll, 0).unwrap());
    }
}

/// Losses of the history count as well: a subscriber cannot tell them from the rest. A writer of id
/// 1 whose slot segments are passed on only by the test, and its reliable reader.
fn pair_without_segments() -> (Writer, Reader, Arc<Mutex<Vec<SlotSegment>>>) {
    let (writer, publication) = Writer::create(1, &topic(), PublisherQos::default()).unwrap();
    let made = Arc::new(Mutex::new(Vec::new()));
    let segments = made.clone();
    publication.on_growth(Box::new(move |segment| made.lock().unwrap().push(segment)));
    let qos = SubscriberQos { reliability: Reliability::Reliable, ..SubscriberQos::default() };
    let (reader, subscription) =
        Reader::create(2, &topic(), qos, &WakeTable::create().unwrap()).unwrap();
    matched(&publication, &subscription);
    (writer, reader, segments)
}

fn comes(subscription: &SubscriptionState, segment: SlotSegment) {
    let SlotSegment { number, slot_bytes, slots, fd } = segment;
    let fd = fd.try_clone().unwrap();
    subscription.add_segment(1, number, slot_bytes, slots, fd).unwrap();
}

/// A node's thread maps a slot segment while other threads take, and other parts may report
/// meanwhile that the publisher has ended.
#[test]
fn a_sample_is_unread_until_its_memory_has_come_and_it_is_taken() {
    let (mut writer, mut reader, segments) = pair_without_segments();
    let subscription = reader.shared().clone();
    assert!(!reader.has_unread());
    writer.publish_copy(&[1; 8]).unwrap();
    assert!(reader.has_unread());
    assert_eq!(reader.take().unwrap().unwrap().bytes(), [1; 8]);
    assert!(!reader.has_unread());
    (2..5).for_each(|number| _ = writer.publish_copy(&[number; 1_000]).unwrap());
    assert!(reader.take().unwrap().is_none() && !reader.wait(Wait::Poll, 0).unwrap());
    assert!(reader.has_unread());
    segments.lock().unwrap().drain(..).for_each(|segment| comes(&subscription, segment));
    for number in 2..5 {
        assert!(reader.has_unread() && reader.wait(Wait::Poll, NEVER).unwrap());
        assert_eq!(reader.take().unwrap().unwrap().bytes(), [number; 1_000]);
    }
    assert!(!reader.has_unread());
}

#[test]
fn samples_whose_memory_never_comes_are_lost_with_their_publisher() {
    let (mut writer, mut reader, segments) = pair_without_segments();
    let subscription = reader.shared().clone();
    writer.publish_copy(&[1; 8]).unwrap();
    (2..5).for_each(|number| _ = writer.publish_copy(&[number; 1_000]).unwrap());
    subscription.publisher_gone(1);
    assert_eq!(reader.take().unwrap().unwrap().bytes(), [1; 8]);
    assert!(reader.take().unwrap().is_none() && reader.take().unwrap().is_none());
    assert_eq!((reader.has_unread(), reader.lost()), (false, 3));
    drop(segments);
}

#[test]
fn losses_are_exact_where_history_meets_what_is_live() {
    for depth in 2..9u32 {
        let publisher = PublisherQos { depth: 8, transient_local: 3, ..PublisherQos::default() };
        let (mut writer, _reader) = pair(publisher, SubscriberQos::default());
        for _ in 0..10 {
            writer.publish_copy(&[0; 8]).unwrap();
        }
        let late = SubscriberQos { transient_local: 3, depth, ..SubscriberQos::default() };
        let (mut reader, subscription) =
            Reader::create(3, &topic(), late, &WakeTable::create().unwrap()).unwrap();
        matched(&writer.shared().clone(), &subscription);
        let first = reader.take().unwrap().unwrap();
        let begin = 10 - u64::from(depth.min(3));
        assert_eq!((first.sequence, first.lost_before), (begin, 0), "depth {depth}");
        for _ in 0..12 {
            writer.publish_copy(&[0; 8]).unwrap();
        }
        let next = reader.take().unwrap().unwrap();
        assert_eq!(next.lost_before, next.sequence - first.sequence - 1, "depth {depth}");
        assert!(next.lost_before > 0 && next.sequence == 22 - u64::from(depth));
        assert_eq!(reader.lost(), next.lost_before);
    }
}

#[test]
fn each_late_subscriber_costs_one_time_limit_and_its_own_samples() {
    let reliability = Reliability::Reliable;
    let block_max = Duration::from_micros(100);
    let publisher = PublisherQos { depth: 8, reliability, block_max, ..PublisherQos::default() };
    let subscriber = SubscriberQos { reliability, ..SubscriberQos::default() };
    let (mut writer, mut prompt) = pair(publisher, subscriber);
    let mut late = [3, 4].map(|id| {
        let (reader, subscription) =
            Reader::create(id, &topic(), subscriber, &WakeTable::create().unwrap()).unwrap();
        matched(&writer.shared().clone(), &subscription);
        reader
    });
    let mut publish = |sequence: u64| {
        let published = writer.publish_copy(&sequence.to_le_bytes()).unwrap();
        assert_eq!(published.sequence, sequence);
        let taken = prompt.take().unwrap().expect("who reads misses nothing");
        assert_eq!((taken.sequence, taken.lost_before), (sequence, 0));
        published.passed_over
    };
    let over: Vec<_> = (0..100).map(&mut publish).collect();
    assert_eq!((over[7], over[8], over[99]), (0, 2, 2));
    // One comes back: it has lost the overwritten samples, and then nothing more.
    let taken = late[0].take().unwrap().unwrap();
    assert_eq!((taken.sequence, taken.lost_before), (92, 92));
    while late[0].take().unwrap().is_some() {}
    let over: Vec<_> = (100..108).map(&mut publish).collect();
    assert_eq!(over[7], 1);
    while late[0].take().unwrap().is_some() {}
    assert_eq!(late[0].lost(), 92);
    // The other goes: no subscriber is late.
    let gone = late[1].shared().id();
    drop(late);
    assert!(writer.shared().detach(gone).is_none(), "nobody waits for it");
    assert_eq!(writer.publish_copy(&[0; 8]).unwrap().passed_over, 0);
}

/// A publisher counts the wake word up, the reader takes the sample and arms the descriptor again,
/// and only then the publisher writes to it.
#[test]
#[cfg_attr(miri, ignore = "Miri has no pipes to open anew")]
fn a_write_to_the_descriptor_that_comes_late_is_seen_once() {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let qos = SubscriberQos { descriptor: true, ..SubscriberQos::default() };
    let (mut writer, mut reader) = pair(PublisherQos::default(), qos);
    let late = reader.shared().passed_to(7).unwrap().1.wake_pipe.unwrap();
    let is_readable = |reader: &Reader| {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let event = reader.event().unwrap();
        poll(&mut [PollFd::new(&event, PollFlags::IN)], Some(&now)).unwrap() == 1
    };
    for _ in 0..3 {
        assert!(reader.take().unwrap().is_none());
        writer.publish_copy(&[1]).unwrap();
        assert!(is_readable(&reader));
        assert!(reader.take().unwrap().is_some() && reader.take().unwrap().is_none());
        assert!(!is_readable(&reader));
        rustix::io::write(&late, &[1]).unwrap();
        assert!(is_readable(&reader), "once");
        assert!(reader.take().unwrap().is_none());
        assert!(!is_readable(&reader), "and not for ever");
    }
}
