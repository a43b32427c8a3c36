//! A subscriber as its publisher sees it: what it announces, and the bell to wake it by.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::bell::Ringer;
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
use crate::wake_fd::WakeEnd;

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
    /// The writer does not wait for it. The writer's own.
    late: AtomicBool,
    ringer: Ringer,
    segment: Segment,
    bell: Segment,
    wake_end: Option<WakeEnd>,
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
        wake_end: Option<OwnedFd>,
    ) -> Result<SubscriberView, Error> {
        let segment = Segment::map_theirs(subscription.as_fd(), SUBSCRIPTION_HEAD_BYTES)?;
        let bell = Segment::map_shared(bell.as_fd(), BELL_BYTES)?;
        let holds = check(&segment, id, topic, connection)?;
        let wake_end = wake_end.map(WakeEnd::check).transpose()?;
        let begins_at = AtomicU64::new(0);
        let view = SubscriberView {
            id,
            pid,
            reliable,
            history,
            connection,
            holds,
            begins_at,
            late: AtomicBool::new(false),
            ringer: Ringer::new(),
            segment,
            bell,
            wake_end,
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
        self.ringer.ring(&head.asleep, &bell.rings, || self.wake(bell));
    }

    /// Whether somebody was woken for certain.
    #[cold]
    fn wake(&self, bell: &Bell) -> bool {
        let woken = wait::wake(&bell.rings) > 0;
        let is_readable = self.wake_end.as_ref().is_some_and(WakeEnd::wake);
        woken || is_readable
    }

    /// Whether the writer has passed it over and it has not caught up.
    pub(crate) fn is_late(&self) -> bool {
        // ORDER: Relaxed, here and below: the writer's own.
        self.late.load(Ordering::Relaxed)
    }

    pub(crate) fn set_late(&self, late: bool) {
        self.late.store(late, Ordering::Relaxed);
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
