//! Writers and readers matched without a node: plain calls in place of the messages of
//! `docs/explanation/shared-memory.md` section 8.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use myelin_shm::data_plane::publication::{
    PublicationState, RemoteSubscriber, SlotSegment, Writer,
};
use myelin_shm::data_plane::subscription::{Reader, SubscriptionState};
use myelin_shm::topic::{PublisherQos, Reliability, SubscriberQos, Topic};
use myelin_shm::waiting::remote_wake_table::RemoteWakeTables;
use myelin_shm::waiting::wake_table::WakeTable;

pub fn topic() -> Topic {
    Topic { name: "test".into(), type_name: "bytes".into(), type_hash: 7 }
}

pub fn pair(publisher: PublisherQos, subscriber: SubscriberQos) -> (Writer, Reader) {
    let (writer, publication) = Writer::create(1, &topic(), publisher).unwrap();
    let (reader, subscription) =
        Reader::create(2, &topic(), subscriber, &WakeTable::create().unwrap()).unwrap();
    matched(&publication, &subscription);
    (writer, reader)
}

fn dup(fd: BorrowedFd<'_>) -> OwnedFd {
    fd.try_clone_to_owned().unwrap()
}

pub fn matched(publication: &Arc<PublicationState>, subscription: &Arc<SubscriptionState>) {
    let start = publication.attach(offered(publication, subscription)).unwrap();
    subscription.start(publication.id(), start);
}

/// The subscriber has mapped the publisher's memory, and the publisher the subscriber's.
pub fn offered(
    publication: &Arc<PublicationState>,
    subscription: &Arc<SubscriptionState>,
) -> RemoteSubscriber {
    let of =
        |slots: SlotSegment| (slots.number, slots.slot_bytes, slots.slots, dup(slots.fd.as_fd()));
    let weak = Arc::downgrade(subscription);
    let id = publication.id();
    publication.on_growth(Box::new(move |slots| {
        if let Some(subscription) = weak.upgrade() {
            let (number, slot_bytes, count, fd) = of(slots);
            subscription.add_segment(id, number, slot_bytes, count, fd).unwrap();
        }
    }));
    let segments = publication.segments().into_iter().map(of).collect();
    let connection = subscription.reserve(id, dup(publication.descriptor()), segments).unwrap();
    let (segment, wake_descriptors) = subscription.passed_to(connection).unwrap();
    RemoteSubscriber::map(
        subscription.id(),
        std::process::id(),
        publication.topic(),
        subscription.qos().reliability == Reliability::Reliable,
        subscription.qos().transient_local,
        connection,
        id,
        segment,
        wake_descriptors,
        &mut RemoteWakeTables::default(),
    )
    .unwrap()
}
