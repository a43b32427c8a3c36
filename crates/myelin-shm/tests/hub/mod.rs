//! One publisher and any number of subscribers that come and go, matched without a node.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, Weak};

use myelin_shm::data_plane::publication::{
    PublicationState, RemoteSubscriber, SlotSegment, Writer,
};
use myelin_shm::data_plane::subscription::SubscriptionState;
use myelin_shm::topic::{PublisherQos, Reliability, Topic};
use myelin_shm::waiting::remote_wake_table::RemoteWakeTables;

type Matched = Arc<Mutex<Vec<Weak<SubscriptionState>>>>;

/// A publisher's part of a node.
pub struct Hub {
    publication: Arc<PublicationState>,
    matched: Matched,
    tables: Mutex<RemoteWakeTables>,
}

pub fn topic() -> Topic {
    Topic { name: "test".into(), type_name: "bytes".into(), type_hash: 7 }
}

impl Hub {
    pub fn create(id: u64, qos: PublisherQos) -> (Writer, Hub) {
        let (writer, publication) = Writer::create(id, &topic(), qos).unwrap();
        let matched = Matched::default();
        let told = matched.clone();
        publication.on_growth(Box::new(move |slots| {
            for subscription in told.lock().unwrap().iter().filter_map(Weak::upgrade) {
                let (number, slot_bytes, count, fd) = parts(&slots);
                subscription.add_segment(id, number, slot_bytes, count, fd).unwrap();
            }
        }));
        (writer, Hub { publication, matched, tables: Mutex::default() })
    }

    /// The four messages of `docs/explanation/shared-memory.md` section 8.
    pub fn connect(&self, subscription: &Arc<SubscriptionState>) {
        let id = self.publication.id();
        self.matched.lock().unwrap().push(Arc::downgrade(subscription));
        let segments = self.publication.segments().iter().map(parts).collect();
        let publication = dup(self.publication.descriptor());
        let connection = subscription.reserve(id, publication, segments).unwrap();
        // Segments that the arena has added meanwhile; a known segment is ignored.
        for (number, slot_bytes, slots, fd) in self.publication.segments().iter().map(parts) {
            subscription.add_segment(id, number, slot_bytes, slots, fd).unwrap();
        }
        let (segment, wake_descriptors) = subscription.passed_to(connection).unwrap();
        let view = RemoteSubscriber::map(
            subscription.id(),
            std::process::id(),
            &topic(),
            subscription.qos().reliability == Reliability::Reliable,
            subscription.qos().transient_local,
            connection,
            id,
            segment,
            wake_descriptors,
            &mut self.tables.lock().unwrap(),
        );
        let start = self.publication.attach(view.unwrap()).unwrap();
        subscription.start(id, start);
    }

    /// The subscriber has left or died.
    pub fn disconnect(&self, subscriber: u64) {
        if let Some(detached) = self.publication.detach(subscriber) {
            while !detached.is_noticed(&self.publication) {
                std::thread::yield_now();
            }
        }
    }
}

fn parts(slots: &SlotSegment) -> (u32, u64, u32, OwnedFd) {
    (slots.number, slots.slot_bytes, slots.slots, dup(slots.fd.as_fd()))
}

fn dup(fd: BorrowedFd<'_>) -> OwnedFd {
    fd.try_clone_to_owned().unwrap()
}
