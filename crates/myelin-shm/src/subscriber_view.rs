//! A subscriber as its publisher sees it: what it announces, and the bell to wake it by.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::bell;
use crate::error::Error;
use crate::layout::{
    BELL_BYTES, Bell, Connection, SUBSCRIPTION_HEAD_BYTES, SUBSCRIPTION_MAGIC, SubscriptionHead,
    VERSION, connections_offset, subscription_bytes,
};
use crate::limits::{CONNECTIONS_MAX, HOLDS_MAX};
use crate::reclaim::Announced;
use crate::segment::Segment;
use crate::topic::{EndpointId, Topic};
use crate::wait;

/// Nothing of what it reads from the subscriber's memory is used as an index or a length; the
/// geometry is checked once and kept here.
#[derive(Debug)]
pub struct SubscriberView {
    id: EndpointId,
    pid: u32,
    reliable: bool,
    history: u32,
    connection: u32,
    holds: u64,
    begins_at: AtomicU64,
    /// The value of `asleep` for which the writer has rung last: one system call a sleep.
    rung_for: AtomicU64,
    segment: Segment,
    bell: Segment,
    event: Option<OwnedFd>,
}

impl SubscriberView {
    /// Maps and checks what a subscriber has passed: `connection` is its number for `publisher`.
    #[expect(clippy::too_many_arguments, reason = "they are the fields of one message")]
    pub fn map(
        id: EndpointId,
        pid: u32,
        topic: &Topic,
        reliable: bool,
        history: u32,
        connection: u32,
        publisher: EndpointId,
        subscription: OwnedFd,
        bell: OwnedFd,
        event: Option<OwnedFd>,
    ) -> Result<SubscriberView, Error> {
        let segment = Segment::map_theirs(subscription.as_fd(), SUBSCRIPTION_HEAD_BYTES)?;
        let bell = Segment::map_shared(bell.as_fd(), BELL_BYTES)?;
        let holds = check(&segment, id, topic, connection)?;
        let begins_at = AtomicU64::new(0);
        let view = SubscriberView {
            id,
            pid,
            reliable,
            history,
            connection,
            holds,
            begins_at,
            rung_for: AtomicU64::new(0),
            segment,
            bell,
            event,
        };
        if view.connection().publisher.load(Ordering::Relaxed) != publisher {
            return Err(Error::PeerCorrupt { what: "a connection with another publisher" });
        }
        Ok(view)
    }

    /// Its endpoint id.
    pub fn id(&self) -> EndpointId {
        self.id
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    pub(crate) fn is_reliable(&self) -> bool {
        self.reliable
    }

    pub(crate) fn history(&self) -> u32 {
        self.history
    }

    /// The first sample it may read.
    pub(crate) fn begin_at(&self, sequence: u64) {
        // ORDER: Release: the writer may read it without the list's lock; a lower value only
        // protects more.
        self.begins_at.store(sequence, Ordering::Release);
    }

    pub(crate) fn reading(&self) -> &AtomicU64 {
        &self.connection().reading
    }

    /// Words that a reclaim reads.
    pub(crate) fn announcements(&self) -> usize {
        1 + self.holds as usize
    }

    #[inline(always)]
    pub(crate) fn announced(&self) -> Announced<'_> {
        Announced {
            reading: self.reading(),
            // SAFETY: atomics; `holds` was checked against the segment when it was mapped.
            holds: unsafe { self.segment.array(SUBSCRIPTION_HEAD_BYTES, self.holds) },
            connection: self.connection,
            start: self.begins_at.load(Ordering::Acquire),
        }
    }

    /// P8 for this subscriber. The caller has executed a seq-cst fence since its sample was visible.
    #[inline(always)]
    pub(crate) fn ring(&self) {
        // SAFETY: head and bell are atomics and padding, and lie within their checked segments.
        let (head, bell): (&SubscriptionHead, &Bell) =
            unsafe { (self.segment.at(0), self.bell.at(0)) };
        // ORDER: Relaxed after the caller's fence; `rung_for` is the writer's own.
        let asleep = head.asleep.load(Ordering::Relaxed);
        if asleep != 0 && asleep != self.rung_for.load(Ordering::Relaxed) {
            self.wake(head, bell, asleep);
        }
    }

    #[cold]
    fn wake(&self, head: &SubscriptionHead, bell: &Bell, asleep: u64) {
        if !bell::must_wake(&head.asleep, &bell.rings) {
            return;
        }
        self.rung_for.store(asleep, Ordering::Relaxed);
        wait::wake(&bell.rings);
        if let Some(event) = &self.event {
            // A full counter is readable already; a closed one has nobody to wake.
            let _ = rustix::io::write(event, &1u64.to_ne_bytes());
        }
    }

    fn connection(&self) -> &Connection {
        let offset = connections_offset(self.holds)
            + u64::from(self.connection) * size_of::<Connection>() as u64;
        // SAFETY: atomics; the connection's number was checked when it was mapped.
        unsafe { self.segment.at(offset) }
    }
}

/// Returns the number of holds.
fn check(segment: &Segment, id: EndpointId, topic: &Topic, connection: u32) -> Result<u64, Error> {
    // SAFETY: atomics and padding; the segment is at least a head long.
    let head: &SubscriptionHead = unsafe { segment.at(0) };
    let read = |word: &AtomicU64| word.load(Ordering::Relaxed);
    if read(&head.magic) != SUBSCRIPTION_MAGIC {
        return Err(Error::PeerCorrupt { what: "a segment that is no subscription" });
    }
    if read(&head.version) != VERSION {
        return Err(Error::LayoutVersion { ours: VERSION, theirs: read(&head.version) });
    }
    let (holds, connections) = (read(&head.holds), read(&head.connections));
    let in_range = (1..=u64::from(HOLDS_MAX)).contains(&holds)
        && (1..=u64::from(CONNECTIONS_MAX)).contains(&connections)
        && u64::from(connection) < connections
        && subscription_bytes(holds, connections) <= segment.bytes();
    if !in_range || read(&head.endpoint) != id || read(&head.type_hash) != topic.type_hash {
        return Err(Error::PeerCorrupt { what: "a subscription's head" });
    }
    Ok(holds)
}
