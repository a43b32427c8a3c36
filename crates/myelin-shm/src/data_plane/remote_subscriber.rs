//! The publisher's side of one subscriber: its announcements, and the wake word to wake it.

use crate::sync::{AtomicBool, AtomicU64, Ordering, Step, is_taken};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use crate::data_plane::ready_list::bit_of;
use crate::data_plane::reclaim::Announced;
use crate::error::Error;
use crate::layout::{
    CONNECTION_BYTES, Connection, SUBSCRIPTION_HEAD_BYTES, SUBSCRIPTION_MAGIC, SubscriptionHead,
    VERSION, WAKE_SEGMENT_BYTES, WakeSegment, connections_offset, subscription_begin,
    subscription_bytes,
};
use crate::limits::{CONNECTIONS_MAX, ENDPOINTS_MAX, HOLDS_MAX};
use crate::os::segment::Segment;
use crate::topic::{EndpointId, Topic};
use crate::waiting::notify::Notifier;
use crate::waiting::remote_wake_table::{RemoteWakeTable, RemoteWakeTables, WakeTableDescriptors};
use crate::waiting::sleep::WakeBy;
use crate::waiting::wait;
use crate::waiting::wake_pipe::WakePipeWriter;

/// No value read from the subscriber's memory is used as an index or a length; the geometry is
/// checked once and kept here.
#[derive(Debug)]
#[repr(C, align(64))] // each publish reads only the first line
pub struct RemoteSubscriber {
    /// In `segment`: looked up once and not at each publish.
    asleep: *const AtomicU64,
    notifier: Notifier,
    table: Arc<RemoteWakeTable>,
    number: u32,
    connection: u32,
    wake_pipe: Option<WakePipeWriter>,
    /// Whether the writer does not wait for it. Only the writer uses this.
    late: AtomicBool,
    reliable: bool,
    id: EndpointId,
    pid: u32,
    transient_local: u32,
    holds: u64,
    begins_at: AtomicU64,
    segment: Segment,
    wake_word: Segment,
}

// SAFETY: `asleep` points to an atomic in a mapping, which belongs to the process.
unsafe impl Send for RemoteSubscriber {}
// SAFETY: as above.
unsafe impl Sync for RemoteSubscriber {}

/// The means to wake a subscriber, which it passes to a publisher.
#[derive(Debug)]
pub struct WakeDescriptors {
    /// Its wake word.
    pub wake_word: OwnedFd,
    /// Its node's [`WakeTable`](crate::waiting::wake_table::WakeTable).
    pub table: WakeTableDescriptors,
    /// Makes its descriptor readable, if it has one.
    pub wake_pipe: Option<OwnedFd>,
}

impl RemoteSubscriber {
    /// Maps and checks the descriptors of a subscriber: `connection` is its number for `publisher`.
    #[expect(clippy::too_many_arguments, reason = "they are the fields of one message")]
    pub fn map(
        id: EndpointId,
        pid: u32,
        topic: &Topic,
        reliable: bool,
        transient_local: u32,
        connection: u32,
        publisher: EndpointId,
        subscription: OwnedFd,
        wake_descriptors: WakeDescriptors,
        tables: &mut RemoteWakeTables,
    ) -> Result<RemoteSubscriber, Error> {
        let begin = subscription_begin(id);
        let bytes = begin + SUBSCRIPTION_HEAD_BYTES;
        let segment = Segment::map_theirs(subscription.as_fd(), bytes)?.beginning_at(begin)?;
        let wake_word =
            Segment::map_shared(wake_descriptors.wake_word.as_fd(), WAKE_SEGMENT_BYTES)?;
        let table = tables.map(wake_descriptors.table)?;
        let (holds, number) = check(&segment, id, topic, connection)?;
        let wake_pipe = wake_descriptors.wake_pipe.map(WakePipeWriter::check).transpose()?;
        let begins_at = AtomicU64::new(0);
        // SAFETY: the head is atomics and padding, and lies within its checked segment; it is only
        // loaded from.
        let asleep = &raw const unsafe { segment.at::<SubscriptionHead>(0) }.asleep;
        let view = RemoteSubscriber {
            id,
            pid,
            reliable,
            transient_local,
            connection,
            holds,
            number,
            begins_at,
            late: AtomicBool::new(false),
            notifier: Notifier::new(),
            asleep,
            segment,
            wake_word,
            table,
            wake_pipe,
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

    pub(crate) fn transient_local(&self) -> u32 {
        self.transient_local
    }

    /// Sets the first sample that it may read.
    pub(crate) fn begin_at(&self, sequence: u64) {
        // ORDER: Release: the writer may read it without the list's lock; a lower value only
        // protects more samples.
        self.begins_at.store(sequence, Ordering::Release);
    }

    pub(crate) fn reading(&self) -> &AtomicU64 {
        &self.connection().reading
    }

    /// How many words a reclaim reads.
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

    /// P8 for some subscribers of the publisher of `published`, which has executed a seq-cst fence
    /// since its sample was visible. Those that sleep on `published` are woken with one call.
    #[inline(always)]
    pub(crate) fn notify_each<'a>(
        views: impl Iterator<Item = &'a Arc<RemoteSubscriber>>,
        published: &AtomicU64,
    ) {
        if !is_taken(Step::P8) {
            return;
        }
        let mut are_on_published = false;
        for view in views {
            // SAFETY: it lies in the segment, which is the view's.
            let asleep = unsafe { &*view.asleep };
            // ORDER: Relaxed: the publisher's own word.
            let value = || published.load(Ordering::Relaxed);
            let ready = || bit_of(&view.wake_segment().ready, view.connection);
            // Whether a thread was certainly woken.
            let wake = |by: WakeBy| {
                let woken = match by {
                    WakeBy::WaitSet(set) => view.table.notify(set, view.number),
                    _ => wait::count_and_wake(&view.wake_segment().wake_word.wakes),
                };
                let is_readable = view.wake_pipe.as_ref().is_some_and(WakePipeWriter::wake);
                woken || is_readable
            };
            if view.notifier.notify(asleep, value, ready, wake) {
                are_on_published = true;
            }
        }
        if are_on_published {
            wait::wake(published);
        }
    }

    /// The address that a publish reads.
    pub(crate) fn read_at_publish(this: &Arc<RemoteSubscriber>) -> [*const u8; 2] {
        [Arc::as_ptr(this).cast(), this.asleep.cast()]
    }

    /// Whether the writer has passed it over and it has not caught up.
    pub(crate) fn is_late(&self) -> bool {
        // ORDER: Relaxed, here and below: only the writer uses it.
        self.late.load(Ordering::Relaxed)
    }

    pub(crate) fn set_late(&self, late: bool) {
        self.late.store(late, Ordering::Relaxed);
    }

    fn wake_segment(&self) -> &WakeSegment {
        // SAFETY: atomics and padding within the checked segment.
        unsafe { self.wake_word.at(0) }
    }

    fn connection(&self) -> &Connection {
        let offset = connections_offset(self.holds) + u64::from(self.connection) * CONNECTION_BYTES;
        // SAFETY: atomics; the connection's number was checked when it was mapped.
        unsafe { self.segment.at(offset) }
    }
}

/// Returns the number of holds, and the subscriber's number in its node.
pub(super) fn check(
    segment: &Segment,
    id: EndpointId,
    topic: &Topic,
    connection: u32,
) -> Result<(u64, u32), Error> {
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
    let number = read(&head.number);
    let in_range = (1..=u64::from(HOLDS_MAX)).contains(&holds)
        && (1..=u64::from(CONNECTIONS_MAX)).contains(&connections)
        && u64::from(connection) < connections
        && number < ENDPOINTS_MAX as u64
        && subscription_begin(id) + subscription_bytes(holds, u64::from(connection) + 1)
            <= segment.bytes();
    if !in_range || read(&head.endpoint) != id || read(&head.type_hash) != topic.type_hash {
        return Err(Error::PeerCorrupt { what: "a subscription's head" });
    }
    Ok((holds, number as u32))
}
