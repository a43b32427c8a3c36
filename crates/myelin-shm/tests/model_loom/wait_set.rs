//! A shipping wait set, with the writers and readers of its members: it reports published samples
//! and deaths.

use std::os::fd::OwnedFd;

use loom::thread;
use myelin_shm::Step;
use myelin_shm::data_plane::publication::Writer;
use myelin_shm::data_plane::subscription::Reader;
use myelin_shm::topic::PublisherQos;
use myelin_shm::wait_set::{GuardCondition, Key, WaitSet};
use myelin_shm::waiting::wait::{NEVER, Wait};
use myelin_shm::waiting::wake_table::WakeTable;
use rustix::event::{PollFd, PollFlags, Timespec};

use crate::endpoints::{matched, subscriber};
use crate::sleep::of_many;
use crate::support::topic;
use crate::{Kept, PREEMPTIONS, explore, mutant};

/// A set and its possible members: so many subscribers of its node, each with a publisher of its
/// own.
fn members(count: u64) -> (Kept<WaitSet>, Kept<Vec<Reader>>, Vec<Writer>) {
    let table = WakeTable::create().unwrap();
    let member = |number: u64| {
        let (mut reader, _) = Reader::create(20 + number, &topic(), subscriber(0), &table).unwrap();
        let (mut writer, publication) =
            Writer::create(10 + number, &topic(), PublisherQos::default()).unwrap();
        matched(&publication, reader.shared());
        // The first publish adds its subscribers, which orders more than the steps do.
        writer.publish_copy(&[0]).unwrap();
        assert!(reader.take().unwrap().is_some());
        // Members are then looked at only if they have reported something.
        assert!(reader.take().unwrap().is_none());
        (reader, writer)
    };
    let (readers, writers) = (0..count).map(member).unzip();
    (Kept::new(WaitSet::of(&table).unwrap()), Kept::new(readers), writers)
}

fn publish(mut writer: Writer, samples: u8) -> thread::JoinHandle<Writer> {
    thread::spawn(move || {
        (0..samples).for_each(|sample| _ = writer.publish_copy(&[sample]).unwrap());
        writer
    })
}

/// Waits until `samples` samples of the members in `keys` have been taken. If it waits for ever,
/// one was forgotten.
fn take(set: &mut WaitSet, keys: &[Key], readers: &mut [Reader], samples: u64) {
    let mut taken = 0;
    while taken < samples {
        let reported = set.wait(Wait::Block, NEVER).unwrap().to_vec();
        assert!(!reported.is_empty());
        for key in reported {
            let at = keys.iter().position(|known| *known == key).expect("it is watched");
            while readers[at].take().unwrap().is_some() {
                taken += 1;
            }
        }
    }
}

/// Each publisher publishes so many samples.
fn run(publishers: u64, samples: u8) {
    let (mut set, mut readers, writers) = members(publishers);
    let keys: Vec<_> = readers.iter().map(|reader| set.add(reader).unwrap()).collect();
    assert!(set.wait(Wait::Block, 0).unwrap().is_empty());
    let publishing: Vec<_> = writers.into_iter().map(|it| publish(it, samples)).collect();
    take(&mut set, &keys, &mut readers, publishers * u64::from(samples));
    publishing.into_iter().for_each(|it| drop(it.join().unwrap()));
}

/// A member comes while its publisher publishes.
fn comes() {
    let (mut set, mut readers, mut writers) = members(1);
    let publishing = publish(writers.pop().unwrap(), 1);
    let keys = [set.add(&readers[0]).unwrap()];
    take(&mut set, &keys, &mut readers, 1);
    drop(publishing.join().unwrap());
}

/// A member goes while its publisher publishes, and is then waited for alone; the other stays.
fn goes() {
    let (mut set, mut readers, mut writers) = members(2);
    let keys: Vec<_> = readers.iter().map(|reader| set.add(reader).unwrap()).collect();
    assert!(set.wait(Wait::Block, 0).unwrap().is_empty());
    let [second, first] = [writers.pop().unwrap(), writers.pop().unwrap()];
    let publishing = publish(first, 1);
    assert!(set.remove(keys[0]));
    assert!(readers[0].wait(Wait::Block, NEVER).unwrap());
    assert!(readers[0].take().unwrap().is_some());
    let second = publish(second, 1);
    take(&mut set, &keys[1..], &mut readers[1..], 1);
    drop((publishing.join().unwrap(), second.join().unwrap()));
}

/// A publisher dies before it has notified (section 9 of `docs/explanation/shared-memory.md`); the
/// subscriber's node learns of the end of its node.
fn dies() {
    let (mut set, mut readers, mut writers) = members(1);
    let keys = [set.add(&readers[0]).unwrap()];
    assert!(set.wait(Wait::Block, 0).unwrap().is_empty());
    let (publication, its) = (writers[0].shared().clone(), readers[0].shared().clone());
    let publishing = publish(writers.pop().unwrap(), 1);
    let node = thread::spawn(move || {
        let dead = publishing.join().unwrap();
        its.publisher_gone(publication.id());
        dead
    });
    take(&mut set, &keys, &mut readers, 1);
    drop(node.join().unwrap());
}

/// A guard is triggered while the set falls asleep.
fn is_triggered() {
    let (mut set, ..) = members(0);
    let guard = Kept::new(set.guard_condition().unwrap());
    let its = GuardCondition::clone(&guard);
    let triggering = thread::spawn(move || {
        its.trigger();
        its
    });
    assert_eq!(set.wait(Wait::Block, NEVER).unwrap(), [guard.key()]);
    drop(triggering.join().unwrap());
}

/// Another thread adds a member that has a sample, while the set falls asleep.
fn is_added_to() {
    let (mut set, mut readers, mut writers) = members(1);
    writers[0].publish_copy(&[1]).unwrap();
    let (handle, reader) = (set.handle().clone(), Kept::new(readers.pop().unwrap()));
    let adding = thread::spawn(move || {
        let key = handle.add(&reader).unwrap();
        (handle, reader, key)
    });
    let reported = set.wait(Wait::Block, NEVER).unwrap().to_vec();
    let (handle, reader, key) = adding.join().unwrap();
    assert_eq!(reported, [key]);
    drop((handle, reader));
}

/// Another thread closes the set while it falls asleep.
fn is_closed() {
    let (mut set, ..) = members(0);
    let handle = set.handle().clone();
    let closing = thread::spawn(move || {
        handle.close();
        handle
    });
    assert!(set.wait(Wait::Block, NEVER).is_err());
    drop(closing.join().unwrap());
}

/// The set is in a user's epoll: its descriptor, a real one, is readable when something is left.
fn by_descriptor() {
    let (mut set, mut readers, mut writers) = members(1);
    let keys = [set.add(&readers[0]).unwrap()];
    let descriptor = set.descriptor().unwrap();
    let publishing = publish(writers.pop().unwrap(), 1);
    let mut taken = 0;
    while taken == 0 {
        if set.wait(Wait::Block, 0).unwrap() == keys {
            taken += u64::from(readers[0].take().unwrap().is_some());
        } else if !is_readable(&descriptor) {
            break; // a publisher makes it readable
        }
    }
    let writer = publishing.join().unwrap();
    if taken == 0 {
        assert!(is_readable(&descriptor), "nobody has told");
        assert_eq!(set.wait(Wait::Block, 0).unwrap(), keys);
    }
    drop(writer);
}

fn is_readable(descriptor: &OwnedFd) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    rustix::event::poll(&mut [PollFd::new(descriptor, PollFlags::IN)], Some(&now)).unwrap() > 0
}

#[test]
fn no_sample_of_a_member_is_forgotten() {
    explore("wait set: one publisher", PREEMPTIONS, 100, || run(1, 2));
    explore("wait set: two publishers", PREEMPTIONS, 500, || run(2, 1));
}

#[test]
fn no_ready_bit_of_a_member_is_forgotten() {
    of_many(|| {
        explore("wait set: a publisher of many", PREEMPTIONS, 100, || run(1, 2));
        explore("wait set: two members of many", PREEMPTIONS, 500, || run(2, 1));
    });
}

#[test]
#[should_panic(expected = "deadlock")]
fn mutant_without_the_fence_after_a_ready_bit() {
    of_many(|| mutant(Step::B2, comes));
}

#[test]
fn members_come_and_go_while_their_publishers_publish() {
    explore("wait set: comes", PREEMPTIONS, 50, comes);
    explore("wait set: goes", PREEMPTIONS, 100, goes);
}

#[test]
fn samples_of_dead_publishers_are_reported() {
    myelin_shm::leave_out(Some(Step::P8));
    explore("wait set: dies", PREEMPTIONS, 20, dies);
    myelin_shm::leave_out(None);
}

#[test]
fn a_guard_ends_a_wait() {
    explore("wait set: guard", PREEMPTIONS, 10, is_triggered);
}

#[test]
fn changes_of_another_thread_are_taken_up() {
    explore("wait set: added to", PREEMPTIONS, 20, is_added_to);
    explore("wait set: closed", PREEMPTIONS, 10, is_closed);
}

#[test]
#[should_panic(expected = "deadlock")]
fn mutant_without_s2_when_it_is_closed() {
    mutant(Step::S2, is_closed);
}

#[test]
fn a_descriptor_is_readable_while_something_is_left() {
    explore("wait set: descriptor", PREEMPTIONS, 20, by_descriptor);
}

#[test]
#[should_panic(expected = "deadlock")]
fn mutant_without_the_fence_after_arming() {
    mutant(Step::Arm, comes);
}

#[test]
#[should_panic(expected = "deadlock")]
fn mutant_without_p7() {
    mutant(Step::P7, comes);
}

#[test]
#[should_panic(expected = "deadlock")]
fn mutant_that_sleeps_without_a_last_look() {
    mutant(Step::S3, || run(1, 1));
}

#[test]
#[should_panic(expected = "deadlock")]
fn mutant_without_s2() {
    mutant(Step::S2, || run(1, 1));
}

#[test]
#[should_panic(expected = "deadlock")]
fn mutant_without_the_fence_between_the_bit_and_the_look() {
    mutant(Step::Ready, || run(1, 1));
}

#[test]
#[should_panic(expected = "deadlock")]
fn mutant_that_does_not_count() {
    mutant(Step::Count, || run(1, 1));
}

#[test]
#[should_panic(expected = "nobody has told")]
fn mutant_without_s2_by_descriptor() {
    mutant(Step::S2, by_descriptor);
}
