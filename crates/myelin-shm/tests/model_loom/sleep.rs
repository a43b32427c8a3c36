//! P7 and P8 against S1 to S3, with a whole publish and a whole wait: no wake-up is lost.

use loom::thread;
use myelin_shm::Step;
use myelin_shm::data_plane::publication::Writer;
use myelin_shm::data_plane::subscription::Reader;
use myelin_shm::topic::{PublisherQos, SubscriberQos};
use myelin_shm::waiting::wait::{NEVER, Wait};

use crate::endpoints::{matched, reader, subscriber};
use crate::support::topic;
use crate::{Kept, PREEMPTIONS, explore, mutant};

/// A subscriber of `publishers` publishers.
pub fn endpoints(publishers: u64) -> (Vec<Writer>, Kept<Reader>) {
    let qos = SubscriberQos { publishers_max: publishers as u32, ..subscriber(0) };
    let mut reader = reader(qos);
    let writers = (0..publishers).map(|number| {
        let (writer, publication) =
            Writer::create(10 + number, &topic(), PublisherQos::default()).unwrap();
        matched(&publication, reader.shared());
        writer
    });
    let mut writers: Vec<_> = writers.collect();
    // The first publish adds its subscribers, which orders more than the steps do.
    writers.iter_mut().for_each(|writer| _ = writer.publish_copy(&[0]).unwrap());
    (0..publishers).for_each(|_| assert!(reader.take().unwrap().is_some()));
    (writers, Kept::new(reader))
}

/// Each publisher publishes so many samples; the subscriber sleeps until it has taken all of them.
fn run(publishers: u64, samples: u64, how: Wait) {
    let (writers, mut reader) = endpoints(publishers);
    let publishing: Vec<_> = writers
        .into_iter()
        .map(|mut writer| {
            thread::spawn(move || {
                for sample in 0..samples {
                    writer.publish_copy(&[sample as u8]).unwrap();
                }
                writer
            })
        })
        .collect();
    for _ in 0..publishers * samples {
        assert!(reader.wait(how, NEVER).unwrap());
        assert!(reader.take().unwrap().is_some(), "the wait has said so");
    }
    let writers: Vec<_> = publishing.into_iter().map(|it| it.join().unwrap()).collect();
    drop((reader, writers));
}

#[test]
fn no_wake_up_is_lost() {
    explore("sleep: one publisher", PREEMPTIONS, 100, || run(1, 2, Wait::Block));
}

#[test]
fn no_wake_up_is_lost_between_two_publishers() {
    explore("sleep: two publishers", 2, 500, || run(2, 1, Wait::Block));
}

/// Runs `handler` with subscribers that treat any number of publishers as many: these set their
/// ready bits, and are looked at only then.
pub fn of_many(handler: impl FnOnce()) {
    struct Restore;
    impl Drop for Restore {
        fn drop(&mut self) {
            myelin_shm::set_few(FEW);
        }
    }
    let _restore = Restore;
    myelin_shm::set_few(0);
    handler();
}

const FEW: usize = 4;

#[test]
fn no_ready_bit_is_lost() {
    of_many(|| {
        explore("sleep: a ready bit", PREEMPTIONS, 100, || run(1, 2, Wait::Block));
        explore("sleep: two ready bits", 2, 500, || run(2, 1, Wait::Block));
    });
}

/// The publisher sets its bit just when the subscriber has looked for it and goes to sleep.
#[test]
#[should_panic(expected = "deadlock")]
fn mutant_without_the_fence_of_b2() {
    of_many(|| mutant(Step::B2, || run(1, 1, Wait::Block)));
}

/// The publisher sees its own bit, which the subscriber has taken just before it looks for the
/// sample.
#[test]
#[should_panic(expected = "deadlock")]
fn mutant_without_the_fence_of_b4() {
    of_many(|| mutant(Step::B4, || run(1, 2, Wait::Block)));
}

#[test]
#[should_panic(expected = "deadlock")]
fn mutant_without_the_fence_of_p7_among_many() {
    of_many(|| mutant(Step::P7, || run(1, 2, Wait::Block)));
}

#[test]
#[should_panic(expected = "deadlock")]
fn mutant_without_the_fence_of_p7() {
    mutant(Step::P7, || run(1, 1, Wait::Block));
}

#[test]
#[should_panic(expected = "deadlock")]
fn mutant_without_the_fence_of_s2() {
    mutant(Step::S2, || run(1, 1, Wait::Block));
}

/// A publisher that has woken the first sleep is silent in the second.
#[test]
#[should_panic(expected = "deadlock")]
fn mutant_in_which_all_sleeps_are_one() {
    mutant(Step::S1, || run(1, 2, Wait::Block));
}

/// A subscriber on its way into the kernel does not notice.
#[test]
#[should_panic(expected = "deadlock")]
fn mutant_that_wakes_without_counting() {
    mutant(Step::Count, || run(1, 1, Wait::Block));
}
