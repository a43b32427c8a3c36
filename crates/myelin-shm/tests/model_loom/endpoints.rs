//! The shipping writer and readers, on memory of the model: the initial state of each model of a
//! whole path.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use loom::cell::UnsafeCell;
use myelin_shm::data_plane::publication::{PublicationState, Writer};
use myelin_shm::data_plane::subscription::{RawSample, Reader};
use myelin_shm::topic::{PublisherQos, SubscriberQos};
use myelin_shm::waiting::wake_table::WakeTable;

use crate::support::topic;
pub use crate::support::{matched, pair};

/// More than fits into a cell: such a payload lies in a slot.
pub const SLOT_BYTES: u64 = 128;

/// The payloads in slots, as plain memory of which loom checks every access: it finds a write that
/// is not ordered after every read of the previous sample, and a read that is not ordered after its
/// write.
#[derive(Clone, Default)]
pub struct Payloads(Arc<Mutex<BTreeMap<usize, Arc<Slot>>>>);

struct Slot(UnsafeCell<u64>);

// SAFETY: loom checks every access.
unsafe impl Sync for Slot {}
// SAFETY: as above.
unsafe impl Send for Slot {}

impl Payloads {
    fn slot(&self, address: usize) -> Arc<Slot> {
        let mut slots = self.0.lock().unwrap();
        slots.entry(address).or_insert_with(|| Arc::new(Slot(UnsafeCell::new(0)))).clone()
    }

    /// Publishes the next sample in a slot; false if it would have to make a segment.
    pub fn publish(&self, writer: &mut Writer, sequence: u64) -> bool {
        let Ok(mut loan) = writer.loan(SLOT_BYTES) else { return false };
        // SAFETY: the writer lives.
        let address = unsafe { loan.bytes_mut() }.as_ptr().addr();
        // SAFETY: the loan is ours alone; loom checks that.
        self.slot(address).0.with_mut(|payload| unsafe { *payload = sequence });
        // SAFETY: the loan is this writer's.
        assert_eq!(unsafe { writer.publish(loan) }.unwrap().sequence, sequence);
        true
    }

    /// Reads the payload of a sample that is held.
    pub fn check(&self, taken: &RawSample) {
        // SAFETY: it is held; loom checks that nobody writes it meanwhile.
        let found = self.slot(taken.bytes().as_ptr().addr()).0.with(|payload| unsafe { *payload });
        assert_eq!(found, taken.sequence, "another sample's payload");
    }
}

/// Takes up to `samples` in `looks` looks and reads each; holds each, if `late`, until the next one
/// has been taken. The caller checks the sequences.
pub fn read(reader: &mut Reader, payloads: &Payloads, looks: usize, late: bool) -> Vec<u64> {
    let (mut seen, mut held) = (Vec::new(), None);
    for _ in 0..looks {
        let Some(taken) = reader.take().unwrap() else { break };
        seen.push(taken.sequence);
        payloads.check(&taken);
        let before = if late { held.replace(taken) } else { Some(taken) };
        if let Some(before) = before {
            payloads.check(&before);
        }
    }
    if let Some(held) = held {
        payloads.check(&held);
    }
    seen
}

/// A best-effort publisher's settings: `depth`, and memory for `slots` slots and no more.
pub fn publisher(depth: u32, slots: u64, transient_local: u32) -> PublisherQos {
    PublisherQos {
        depth,
        transient_local,
        memory_max: slots * SLOT_BYTES,
        ..PublisherQos::default()
    }
}

/// A subscriber's settings: few holds, so that there is little to look at.
pub fn subscriber(transient_local: u32) -> SubscriberQos {
    SubscriberQos { held_max: 2, publishers_max: 1, transient_local, ..SubscriberQos::default() }
}

/// A publisher with so many slots, and `before` samples.
pub fn writer(
    qos: PublisherQos,
    slots: u32,
    payloads: &Payloads,
    before: u64,
) -> (Writer, Arc<PublicationState>) {
    let (mut writer, publication) = Writer::create(1, &topic(), qos).unwrap();
    writer.reserve(slots, SLOT_BYTES).unwrap();
    (0..before).for_each(|sequence| assert!(payloads.publish(&mut writer, sequence)));
    (writer, publication)
}

/// A subscriber without publishers.
pub fn reader(qos: SubscriberQos) -> Reader {
    Reader::create(2, &topic(), qos, &WakeTable::create().unwrap()).unwrap().0
}
