//! Any order of calls on one writer and up to four readers gives the results of a list of all
//! published samples: the same samples, the same bytes, the same losses; and every slot comes back.

mod hub;

use std::time::Duration;

use hub::{Hub, topic};
use myelin_shm::Error;
use myelin_shm::data_plane::publication::{Published, RawLoan, Writer};
use myelin_shm::data_plane::subscription::{RawSample, Reader};
use myelin_shm::layout::INLINE_BYTES_MAX;
use myelin_shm::topic::{Late, PublisherQos, Reliability, SubscriberQos};
use myelin_shm::waiting::wake_table::WakeTable;
use proptest::prelude::*;
use proptest::sample::Index;

const READERS_MAX: usize = 4;
const LENGTH_MAX: usize = 1 << 20;

#[derive(Clone, Debug)]
enum Op {
    Loan(usize),
    Publish(Index),
    PublishCopy(usize),
    Discard(Index),
    /// Takes and drops.
    Take(Index),
    /// Takes and keeps.
    Hold(Index),
    Clone(Index),
    Release(Index),
    /// Its depth, history, maximum of held samples, and whether it is reliable.
    NewReader(u32, u32, u32, bool),
    DropReader(Index),
    DropWriter,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let length = || {
        prop_oneof![
            4 => 0..=INLINE_BYTES_MAX,
            4 => INLINE_BYTES_MAX + 1..3000usize,
            1 => 3000..=LENGTH_MAX
        ]
    };
    let index = any::<Index>;
    let reader = (1..12u32, 0..6u32, 1..6u32, any::<bool>());
    let op = prop_oneof![
        2 => length().prop_map(Op::Loan),
        3 => index().prop_map(Op::Publish),
        8 => length().prop_map(Op::PublishCopy),
        1 => index().prop_map(Op::Discard),
        6 => index().prop_map(Op::Take),
        3 => index().prop_map(Op::Hold),
        1 => index().prop_map(Op::Clone),
        3 => index().prop_map(Op::Release),
        2 => reader.prop_map(|(depth, transient_local, held, reliable)| {
            Op::NewReader(depth, transient_local, held, reliable)
        }),
        1 => index().prop_map(Op::DropReader),
    ];
    // The writer goes at the end, if at all: after that there is only reading.
    let (before, after) =
        (prop::collection::vec(op.clone(), 1..80), prop::collection::vec(op, 0..12));
    (before, any::<bool>(), after).prop_map(|(mut ops, dies, after)| {
        if dies {
            ops.push(Op::DropWriter);
            ops.extend(after);
        }
        ops
    })
}

/// The expected content of the sample with this sequence.
fn payload(sequence: u64, length: usize) -> Vec<u8> {
    (0..length).map(|at| (at as u64 * 31 + sequence * 7 + length as u64) as u8).collect()
}

/// A reader, and its expected results.
struct Both {
    name: u64,
    reader: Reader,
    next: u64,
    /// The last known value of `published`.
    seen: u64,
    depth: u64,
    held_max: u32,
    reliable: bool,
    /// Sequences in slots that it holds, with the clones of each.
    holds: Vec<(u64, usize)>,
    lost: u64,
    lost_in_all: u64,
}

struct World {
    writer: Option<Writer>,
    hub: Hub,
    qos: PublisherQos,
    loans: Vec<(RawLoan, usize)>,
    /// The lengths of all samples published.
    published: Vec<usize>,
    readers: Vec<Both>,
    /// Kept samples, with the number of their reader (which may be gone).
    held: Vec<(RawSample, u64)>,
    names: u64,
}

impl Both {
    /// The expected result of `take`: a sequence and its loss, and whether it needs a hold.
    fn expect(&mut self, published: &[usize], cells: u64) -> Result<Option<(u64, u64)>, Error> {
        let newest = published.len() as u64;
        let out_of_the_ring = |next: u64| next + cells < newest;
        if self.next >= newest {
            return Ok(None);
        }
        // It checks the publisher's progress when it has read all known samples, and when it is
        // overtaken.
        if self.next >= self.seen || out_of_the_ring(self.next) {
            self.seen = newest;
            let oldest = newest.saturating_sub(self.depth);
            if oldest > self.next {
                self.lost += oldest - self.next;
                self.next = oldest;
            }
        }
        let in_a_slot = published[self.next as usize] > INLINE_BYTES_MAX;
        if in_a_slot && self.holds.len() == self.held_max as usize {
            let (topic, held) = (topic().name, self.held_max);
            return Err(Error::TooManyHeld { topic, held });
        }
        self.next += 1;
        let lost = std::mem::take(&mut self.lost);
        self.lost_in_all += lost;
        Ok(Some((self.next - 1, lost)))
    }

    fn take(&mut self, published: &[usize], cells: u64) -> Option<RawSample> {
        let expected = self.expect(published, cells);
        let found = self.reader.take();
        assert_eq!(self.reader.lost(), self.lost_in_all);
        match (expected, found) {
            (Ok(None), Ok(None)) => None,
            (Err(_), Err(Error::TooManyHeld { held, .. })) if held == self.held_max => None,
            (Ok(Some(expected)), Ok(Some(taken))) => {
                assert_eq!((taken.sequence, taken.lost_before), expected);
                check(&taken, published);
                Some(taken)
            }
            (expected, found) => {
                let found = found.map(|taken| taken.map(|taken| taken.sequence));
                panic!("expected {expected:?}, found {found:?}");
            }
        }
    }

    fn count(&mut self, sequence: u64, by: isize) {
        match self.holds.iter_mut().find(|(held, _)| *held == sequence) {
            None => self.holds.push((sequence, by as usize)),
            Some((_, clones)) => *clones = clones.wrapping_add_signed(by),
        }
        self.holds.retain(|(_, clones)| *clones != 0);
        assert_eq!(self.reader.shared().borrowed(), self.holds.len());
    }
}

fn check(taken: &RawSample, published: &[usize]) {
    let length = published[taken.sequence as usize];
    assert!(taken.bytes() == payload(taken.sequence, length), "sample {}", taken.sequence);
    assert!(taken.bytes().as_ptr().addr().is_multiple_of(if length == 0 { 1 } else { 8 }));
}

impl World {
    fn new(qos: PublisherQos) -> Self {
        let (writer, hub) = Hub::create(1, qos);
        World {
            writer: Some(writer),
            hub,
            qos,
            loans: Vec::new(),
            published: Vec::new(),
            readers: Vec::new(),
            held: Vec::new(),
            names: 2,
        }
    }

    fn cells(&self) -> u64 {
        u64::from(self.qos.depth) + 1
    }

    /// Whether a publish must run into the time limit.
    fn is_full(&self) -> bool {
        let next = self.published.len() as u64;
        let waited_for = self.readers.iter().filter(|both| both.reliable);
        self.qos.reliability == Reliability::Reliable
            && waited_for.map(|both| next - both.next).max() >= Some(u64::from(self.qos.depth))
    }

    fn is_done(&mut self, published: Result<Published, Error>, length: usize, full: bool) {
        match published {
            Ok(Published { sequence, passed_over }) => {
                let is_told = passed_over > 0;
                assert!(
                    !full || is_told,
                    "published over a sample that a reliable one has not read"
                );
                assert!(!is_told || self.qos.late == Late::PassOver);
                assert_eq!(sequence, self.published.len() as u64);
                self.published.push(length);
            }
            Err(error) => {
                let is_late = full && self.qos.late == Late::Fail;
                assert!(is_late && matches!(error, Error::ReliableTimeout { .. }), "{error}");
            }
        }
    }

    fn apply(&mut self, op: &Op) {
        match op {
            Op::Loan(length) => self.loan(*length),
            Op::Publish(which) if !self.loans.is_empty() => self.publish(*which),
            Op::PublishCopy(length) => self.publish_copy(*length),
            Op::Discard(which) if !self.loans.is_empty() => {
                let (loan, _) = self.loans.remove(which.index(self.loans.len()));
                // SAFETY: the loan is this writer's.
                unsafe { self.writer.as_mut().unwrap().discard(loan) };
            }
            Op::Take(which) | Op::Hold(which) if !self.readers.is_empty() => {
                let keep = matches!(op, Op::Hold(_));
                self.take(which.index(self.readers.len()), keep);
            }
            Op::Clone(which) if !self.held.is_empty() => {
                let (taken, name) = self.held[which.index(self.held.len())].clone();
                self.count(&taken, name, 1);
                self.held.push((taken, name));
            }
            Op::Release(which) if !self.held.is_empty() => {
                let at = which.index(self.held.len());
                self.release(at);
            }
            Op::NewReader(depth, transient_local, held_max, reliable) => {
                self.new_reader(*depth, *transient_local, *held_max, *reliable);
            }
            Op::DropReader(which) if !self.readers.is_empty() => {
                let at = which.index(self.readers.len());
                let both = self.readers.remove(at);
                drop(both.reader);
                // Its samples stay until the last one is dropped.
                self.left(both.name);
            }
            Op::DropWriter => {
                self.loans.clear();
                self.writer = None;
                for both in &self.readers {
                    both.reader.shared().publisher_gone(1);
                }
            }
            _ => {}
        }
        for (taken, _) in &self.held {
            check(taken, &self.published);
        }
    }

    fn loan(&mut self, length: usize) {
        let Some(writer) = &mut self.writer else { return };
        match writer.loan(length as u64) {
            Ok(loan) => self.loans.push((loan, length)),
            Err(error) => {
                assert!(matches!(error, Error::TooManyLoans { .. }), "{error}");
                assert!(
                    length > INLINE_BYTES_MAX && self.slots_out() == self.qos.loans_max as usize
                );
            }
        }
    }

    /// Loans that count: those with a slot.
    fn slots_out(&self) -> usize {
        self.loans.iter().filter(|(_, length)| *length > INLINE_BYTES_MAX).count()
    }

    fn publish(&mut self, which: Index) {
        let (mut loan, length) = self.loans.remove(which.index(self.loans.len()));
        let full = self.is_full();
        let writer = self.writer.as_mut().unwrap();
        // SAFETY: the loan's writer exists.
        unsafe { loan.bytes_mut() }.copy_from_slice(&payload(self.published.len() as u64, length));
        // SAFETY: the loan is this writer's.
        let published = unsafe { writer.publish(loan) };
        self.is_done(published, length, full);
    }

    fn publish_copy(&mut self, length: usize) {
        let full = self.is_full();
        let too_many = length > INLINE_BYTES_MAX && self.slots_out() == self.qos.loans_max as usize;
        let Some(writer) = &mut self.writer else { return };
        let published = writer.publish_copy(&payload(self.published.len() as u64, length));
        if too_many {
            assert!(matches!(published, Err(Error::TooManyLoans { .. })));
            return;
        }
        self.is_done(published, length, full);
    }

    fn take(&mut self, at: usize, keep: bool) {
        let cells = self.cells();
        let Some(taken) = self.readers[at].take(&self.published, cells) else { return };
        let name = self.readers[at].name;
        if keep {
            self.count(&taken, name, 1);
            self.held.push((taken, name));
        }
    }

    fn count(&mut self, taken: &RawSample, name: u64, by: isize) {
        if taken.bytes().len() <= INLINE_BYTES_MAX {
            return;
        }
        if let Some(both) = self.readers.iter_mut().find(|both| both.name == name) {
            both.count(taken.sequence, by);
        }
    }

    fn release(&mut self, at: usize) {
        let (taken, name) = self.held.swap_remove(at);
        let (sequence, length) = (taken.sequence, taken.bytes().len());
        drop(taken);
        match self.readers.iter_mut().find(|both| both.name == name) {
            Some(both) if length > INLINE_BYTES_MAX => both.count(sequence, -1),
            Some(_) => {}
            None => self.left(name),
        }
    }

    /// The actions of its node once a reader and all its samples have been dropped.
    fn left(&self, name: u64) {
        if self.held.iter().all(|(_, known)| *known != name) {
            self.hub.disconnect(name);
        }
    }

    fn new_reader(&mut self, depth: u32, transient_local: u32, held_max: u32, reliable: bool) {
        if self.readers.len() == READERS_MAX || self.writer.is_none() {
            return;
        }
        let reliability = if reliable { Reliability::Reliable } else { Reliability::BestEffort };
        let qos = SubscriberQos {
            depth,
            transient_local,
            held_max,
            reliability,
            ..SubscriberQos::default()
        };
        let name = self.names;
        self.names += 1;
        let (reader, subscription) =
            Reader::create(name, &topic(), qos, &WakeTable::create().unwrap()).unwrap();
        self.hub.connect(&subscription);
        let depth = u64::from(if reliable { self.qos.depth } else { depth.min(self.qos.depth) });
        let transient_local = u64::from(transient_local.min(self.qos.transient_local)).min(depth);
        let next = (self.published.len() as u64).saturating_sub(transient_local);
        self.readers.push(Both {
            name,
            reader,
            next,
            seen: next,
            depth,
            held_max,
            reliable,
            holds: Vec::new(),
            lost: 0,
            lost_in_all: 0,
        });
    }

    /// Everything is read and released: every slot is free except the history.
    fn end(mut self) {
        while !self.held.is_empty() {
            self.release(0);
        }
        let cells = self.cells();
        for both in &mut self.readers {
            while both.take(&self.published, cells).is_some() {}
        }
        let Some(mut writer) = self.writer.take() else { return };
        for (loan, _) in self.loans.drain(..) {
            // SAFETY: the loan is this writer's.
            unsafe { writer.discard(loan) };
        }
        let kept = self.published.iter().rev().take(self.qos.transient_local as usize);
        let kept = kept.filter(|length| **length > INLINE_BYTES_MAX).count();
        let counts = writer.slot_counts();
        assert_eq!(counts.free + kept, counts.total, "every slot is back");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_call_agrees_with_the_oracle(
        depth in 1..9u32,
        transient_local in 0..9u32,
        loans_max in 1..4u32,
        reliable in any::<bool>(),
        passes_over in any::<bool>(),
        ops in ops(),
    ) {
        let reliability = if reliable { Reliability::Reliable } else { Reliability::BestEffort };
        let mut world = World::new(PublisherQos {
            depth,
            transient_local: transient_local.min(depth),
            loans_max,
            reliability,
            block_max: Duration::from_micros(200),
            late: if passes_over { Late::PassOver } else { Late::Fail },
            ..PublisherQos::default()
        });
        for op in &ops {
            world.apply(op);
        }
        world.end();
    }
}
