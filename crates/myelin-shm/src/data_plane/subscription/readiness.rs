//! Which publishers have something to take, as any thread may ask while another one takes.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use super::connections::List;
use super::memory::SubscriptionMemory;
use crate::data_plane::publisher_cursor::PublisherCursor;
use crate::data_plane::reader::Reader;
use crate::data_plane::ready_list::ReadyList;
use crate::data_plane::remote_publisher::RemotePublisher;
use crate::layout::{CONNECTION_WORDS, NOT_BEGUN};
use crate::os::prefetch;
use crate::sync::{AtomicU64, Ordering};

/// What a look needs besides the list of publishers.
#[repr(C)] // a look reads the first fields
pub(crate) struct Readiness {
    memory: Arc<SubscriptionMemory>,
    /// The publishers to look at, if they are many.
    ready_list: ReadyList,
    /// The addresses of the reader and its cursors, when these changed last.
    reader: [AtomicUsize; 2],
    /// Other addresses that a look and a take read; they do not change.
    fixed: [usize; 5],
    /// The subscriber's history.
    transient_local: u64,
}

/// Addresses that the next look at a subscriber and the take after it will read. A topic that has
/// been quiet for a while has none of them in the caches, and each leads to the next. These are
/// hints: any may be stale.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PrefetchList([usize; 15]);

impl PrefetchList {
    /// Fetches all of them at once.
    #[inline(always)]
    pub(crate) fn prefetch(&self) {
        self.0.iter().for_each(|address| prefetch::to_read(std::ptr::without_provenance(*address)));
    }
}

impl Readiness {
    /// Of a subscriber with this memory; `fixed` are addresses that a look and a take read.
    pub(super) fn new(
        memory: &Arc<SubscriptionMemory>,
        transient_local: u32,
        [a, b, c, d]: [usize; 4],
    ) -> Readiness {
        Readiness {
            memory: memory.clone(),
            ready_list: ReadyList::new(memory.connections()),
            reader: [const { AtomicUsize::new(0) }; 2],
            fixed: [Arc::as_ptr(memory).addr(), a, b, c, d],
            transient_local: u64::from(transient_local),
        }
    }

    /// The publishers to look at, if they are many.
    pub(crate) fn ready_list(&self) -> &ReadyList {
        &self.ready_list
    }

    /// Whether a publisher has something to take. `ready` are the publishers' bits; `see` gets the
    /// connections that have a sample; `next` gets the addresses that the next look will read, if
    /// there is none.
    #[inline(always)]
    pub(super) fn look<'a>(
        &self,
        list: &List,
        ready: impl FnOnce() -> &'a [AtomicU64; CONNECTION_WORDS],
        next: &mut PrefetchList,
        mut see: impl FnMut(u32),
    ) -> bool {
        let mut is_news = !list.begun.is_empty() && self.has_begun(list);
        if self.ready_list.is_used() {
            for publisher in self.ready_list.or_ready(ready()).filter_map(|it| list.at(it)) {
                is_news |= self.look_at(list, publisher, next, &mut see);
            }
        } else {
            for publisher in list.known() {
                is_news |= self.look_at(list, publisher, next, &mut see);
            }
        }
        is_news
    }

    /// Whether a publisher that the reader has not looked at yet has something.
    #[cold]
    fn has_begun(&self, list: &List) -> bool {
        list.begun.iter().any(|publisher| {
            let start = publisher.start.load(Ordering::Relaxed);
            let transient_local = publisher.transient_local.min(self.transient_local);
            publisher.has_beyond(start) || transient_local.min(start) > 0
        })
    }

    #[inline(always)]
    fn look_at(
        &self,
        list: &List,
        publisher: &Arc<RemotePublisher>,
        next: &mut PrefetchList,
        see: &mut impl FnMut(u32),
    ) -> bool {
        let reading = self.reading(publisher);
        let has_more = has_more(publisher, reading);
        match has_more {
            true => see(publisher.connection),
            false => *next = self.read_next(list, publisher, reading),
        }
        has_more
    }

    /// The addresses that the look and the take will read when this publisher has its next sample.
    fn read_next(
        &self,
        list: &List,
        publisher: &Arc<RemotePublisher>,
        reading: &AtomicU64,
    ) -> PrefetchList {
        let [reader, cursors] = [0, 1].map(|at| self.reader[at].load(Ordering::Relaxed));
        let [a, b, c, d, e] = self.fixed;
        let publisher_at = Arc::as_ptr(publisher).addr();
        PrefetchList([
            a,
            b,
            list.address(),
            publisher_at,
            publisher_at + 64,
            (&raw const *reading).addr(),
            publisher.cell(reading.load(Ordering::Relaxed)).addr(),
            c,
            reader,
            reader + 64,
            cursors,
            cursors + 64,
            (&raw const publisher.head().published).addr(),
            d,
            e,
        ])
    }

    /// The word by which the reader announces what it reads of a publisher.
    #[inline(always)]
    fn reading(&self, publisher: &RemotePublisher) -> &AtomicU64 {
        &self.memory.connection(publisher.connection).reading
    }

    /// Marks publishers with unread samples, whatever their ready bits say: publishers may have
    /// taken bits away from each other. Any thread may call it.
    pub(super) fn overlook(&self, list: &List) {
        let has_more = |it: &&Arc<RemotePublisher>| has_more(it, self.reading(it));
        let overlooked = list.known().filter(has_more);
        overlooked.for_each(|publisher| self.ready_list.overlook(publisher.connection));
    }

    /// Notes the addresses of the reader and its cursors.
    pub(crate) fn note_reader(&self, reader: *const Reader, cursors: *const PublisherCursor) {
        self.reader[0].store(reader.addr(), Ordering::Relaxed);
        self.reader[1].store(cursors.addr(), Ordering::Relaxed);
    }
}

/// Whether a publisher has a sample beyond what the reader announces by `reading`.
#[inline(always)]
fn has_more(publisher: &RemotePublisher, reading: &AtomicU64) -> bool {
    // ORDER: Relaxed: only the reader, of this process, writes it; a thread that has taken looks
    // again.
    let reading = reading.load(Ordering::Relaxed);
    reading < NOT_BEGUN && publisher.has_beyond(reading)
}
