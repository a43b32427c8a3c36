//! The memory of a subscription, which its publishers map: a head, the holds, the connections.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use crate::error::Error;
use crate::layout::{
    CONNECTION_BYTES, Connection, SUBSCRIPTION_HEAD_BYTES, SUBSCRIPTION_MAGIC, SubscriptionHead,
    VERSION, connections_offset, subscription_begin, subscription_bytes,
};
use crate::os::segment::Segment;
use crate::sync::{AtomicU64, Ordering, Step, is_taken};
use crate::topic::{EndpointId, SubscriberQos, Topic};

/// The segment. It grows with the connections in use.
#[repr(C)] // a look and a take read the first fields
pub(crate) struct SubscriptionMemory {
    segment: Segment,
    holds: u64,
    connections: u32,
    /// Where its content begins in the file.
    begin: u64,
    fd: Arc<OwnedFd>,
}

impl SubscriptionMemory {
    /// The memory of a subscriber with this number in its node, and how many bytes it has.
    pub(super) fn create(
        id: EndpointId,
        topic: &Topic,
        qos: &SubscriberQos,
        number: u32,
    ) -> Result<(SubscriptionMemory, u64), Error> {
        let (holds, connections, begin) =
            (u64::from(qos.held_max), qos.publishers_max, subscription_begin(id));
        let bytes = |connections| begin + subscription_bytes(holds, u64::from(connections));
        let (segment, fd, bytes) =
            Segment::create_growing("myelin-subscription", bytes(1), bytes(connections))?;
        let segment = segment.beginning_at(begin)?;
        let fd = Arc::new(fd);
        let memory = SubscriptionMemory { segment, holds, connections, begin, fd };
        write_head(memory.head(), id, topic, qos, bytes, number);
        if cfg!(loom) {
            // Initialises the memory early, as in a publication.
            memory.holds();
            (0..connections).for_each(|number| _ = memory.connection(number));
        }
        Ok((memory, bytes))
    }

    /// The segment's descriptor.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// The same, for its node to keep.
    pub(super) fn shared_descriptor(&self) -> Arc<OwnedFd> {
        self.fd.clone()
    }

    /// How many connections there can be.
    pub(super) fn connections(&self) -> u32 {
        self.connections
    }

    /// Allocates the memory of a connection; the segment has `bytes` bytes. Returns how many it has
    /// now.
    pub(super) fn reach(&self, bytes: u64, connection: u32) -> Result<u64, Error> {
        let wanted = self.begin + subscription_bytes(self.holds, u64::from(connection) + 1);
        if wanted <= bytes {
            return Ok(bytes);
        }
        let bytes = self.segment.grow(self.fd.as_fd(), bytes, wanted)?;
        self.head().bytes.store(bytes, Ordering::Relaxed);
        Ok(bytes)
    }

    pub(crate) fn head(&self) -> &SubscriptionHead {
        // SAFETY: atomics and padding in our own mapping.
        unsafe { self.segment.at(0) }
    }

    pub(crate) fn holds(&self) -> &[AtomicU64] {
        // SAFETY: as above; the segment was made for so many holds.
        unsafe { self.segment.array(SUBSCRIPTION_HEAD_BYTES, self.holds) }
    }

    /// A connection that has memory, because it has been reserved once.
    #[inline(always)]
    pub(crate) fn connection(&self, number: u32) -> &Connection {
        assert!(number < self.connections);
        let offset = connections_offset(self.holds) + u64::from(number) * CONNECTION_BYTES;
        // SAFETY: as above.
        unsafe { self.segment.at(offset) }
    }
}

/// Writes the head, which publishers check.
pub(in crate::data_plane) fn write_head(
    head: &SubscriptionHead,
    id: EndpointId,
    topic: &Topic,
    qos: &SubscriberQos,
    bytes: u64,
    number: u32,
) {
    let is_last = is_taken(Step::Magic);
    if !is_last {
        head.magic.store(SUBSCRIPTION_MAGIC, Ordering::Release);
    }
    head.version.store(VERSION, Ordering::Relaxed);
    head.bytes.store(bytes, Ordering::Relaxed);
    head.endpoint.store(id, Ordering::Relaxed);
    head.type_hash.store(topic.type_hash, Ordering::Relaxed);
    head.connections.store(u64::from(qos.publishers_max), Ordering::Relaxed);
    head.holds.store(u64::from(qos.held_max), Ordering::Relaxed);
    head.number.store(u64::from(number), Ordering::Relaxed);
    if is_last {
        // ORDER: last, as in a publication.
        head.magic.store(SUBSCRIPTION_MAGIC, Ordering::Release);
    }
}
