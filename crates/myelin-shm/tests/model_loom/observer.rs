//! R4 and P2 against O1 to O4: an observer, which announces nothing, gives a whole payload, or
//! says that it is gone; and it counts each sample.

use std::os::fd::AsFd;
use std::sync::Arc;

use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;
use myelin_shm::Step;
use myelin_shm::data_plane::observer::{ObservedSample, ObserverReader, ObserverState};
use myelin_shm::data_plane::publication::{PublicationState, Writer};
use myelin_shm::os::segment::Segment;

use crate::endpoints::{SLOT_BYTES, publisher};
use crate::support::topic;
use crate::{PREEMPTIONS, explore, mutant};

const WORDS: u64 = SLOT_BYTES / 8;

/// The publisher, and its slots as the model's words: it writes them without an order, as a
/// program writes a loan.
struct Publisher {
    writer: Writer,
    slots: Arc<Segment>,
    /// The address of the first slot.
    first: usize,
}

impl Publisher {
    fn new(depth: u32, slots: u32) -> (Publisher, Arc<PublicationState>) {
        let qos = publisher(depth, u64::from(slots), 0);
        let (mut writer, publication) = Writer::create(1, &topic(), qos).unwrap();
        writer.reserve(slots, SLOT_BYTES).unwrap();
        let segments = publication.segments();
        let bytes = SLOT_BYTES * u64::from(slots);
        let slots = Arc::new(Segment::map_theirs(segments[0].fd.as_fd(), bytes).unwrap());
        let first = slots.pointer().addr();
        let publisher = Publisher { writer, slots, first };
        // In a model, this memory must be initialised before there are two threads.
        for slot in 0..bytes / SLOT_BYTES {
            let _ = publisher.words(slot * SLOT_BYTES);
        }
        (publisher, publication)
    }

    fn words(&self, offset: u64) -> &[AtomicU64] {
        // SAFETY: none is needed in a model.
        unsafe { self.slots.array(offset, WORDS) }
    }

    /// Publishes its sequence, in the first word and the last.
    fn publish(&mut self, sequence: u64) {
        let mut loan = self.writer.loan(SLOT_BYTES).unwrap();
        // SAFETY: the writer lives.
        let address = unsafe { loan.bytes_mut() }.as_ptr().addr();
        let words = self.words((address - self.first) as u64);
        words[0].store(sequence + 1, Ordering::Relaxed);
        words[WORDS as usize - 1].store(sequence + 1, Ordering::Relaxed);
        // SAFETY: the loan is this writer's.
        assert_eq!(unsafe { self.writer.publish(loan) }.unwrap().sequence, sequence);
    }
}

impl Publisher {
    /// The same in the cell.
    fn publish_inline(&mut self, sequence: u64) {
        let published = self.writer.publish_copy(&(sequence + 1).to_ne_bytes()).unwrap();
        assert_eq!(published.sequence, sequence);
    }
}

fn observer(publication: &PublicationState) -> ObserverReader {
    let state = ObserverState::new(topic(), 0, 0);
    let own = publication.descriptor().try_clone_to_owned().unwrap();
    state.map_ring(publication.id(), 1, own).unwrap();
    for it in publication.segments() {
        let fd = it.fd.try_clone().unwrap();
        state.map_segment(publication.id(), it.number, it.slot_bytes, it.slots, fd).unwrap();
    }
    ObserverReader::new(state)
}

fn word(payload: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(payload[8 * at..][..8].try_into().unwrap())
}

/// The publisher publishes some samples, and then more while an observer takes up to two.
fn run(depth: u32, before: impl FnOnce(&mut Publisher), more: impl FnOnce(&mut Publisher)) {
    let (mut publisher, publication) = Publisher::new(depth, 2);
    before(&mut publisher);
    let mut observer = observer(&publication);
    let observing = thread::spawn(move || {
        let (mut sample, mut next) = (ObservedSample::new(), 0);
        for _ in 0..2 {
            if !observer.take_into(&mut sample).unwrap() {
                break;
            }
            let header = sample.header;
            assert_eq!(header.sequence, next + header.overwritten_before, "not counted");
            next = header.sequence + 1;
            let payload = sample.bytes();
            if sample.missing.is_none() {
                assert_eq!(header.length, payload.len() as u64, "a torn header");
                let found = [word(payload, 0), word(payload, payload.len() / 8 - 1)];
                assert_eq!(found, [next; 2], "another sample's payload");
            }
        }
    });
    more(&mut publisher);
    observing.join().unwrap();
}

/// More cells than samples: a slot is used again while its sample's cell still names it.
fn withdrawn() {
    run(7, |publisher| publisher.publish(0), |publisher| publisher.publish(1));
}

/// Two cells: the cell has been written again before the slot is.
fn overwritten() {
    let before = |publisher: &mut Publisher| {
        publisher.publish(0);
        publisher.publish_inline(1);
    };
    run(1, before, |publisher| {
        publisher.publish_inline(2);
        publisher.publish(3);
    });
}

#[test]
fn an_observer_gives_whole_payloads_or_none() {
    explore("observer: withdrawn", PREEMPTIONS, 100, withdrawn);
    explore("observer: overwritten", PREEMPTIONS, 100, overwritten);
}

#[test]
#[should_panic(expected = "another sample's payload")]
fn mutant_that_does_not_withdraw() {
    mutant(Step::R4, withdrawn);
}

#[test]
#[should_panic(expected = "another sample's payload")]
fn mutant_without_the_fence_after_withdrawing() {
    mutant(Step::Withdrawn, withdrawn);
}

#[test]
#[should_panic(expected = "another sample's payload")]
fn mutant_without_the_fence_of_o4() {
    mutant(Step::O4, withdrawn);
}
