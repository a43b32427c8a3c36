//! What endpoints count, where every node of their domain can read it: in the heads of their
//! segments, which others map read-only.
//!
//! | counter | written by |
//! |---|---|
//! | of a publisher: samples, bytes, time of the last one, refused loans | its thread |
//! | of a subscriber: takes, time of the last one, lateness | its thread |
//! | of a subscriber: losses | its thread; for those of the network, the threads of the network too |
//! | bytes of memory | of a publisher its thread, of a subscriber its node |
//!
//! The other numbers are words that exist for other reasons: `published` and the holds.
//!
//! A node that asks for them ([`Node::graph_within`](crate::node::Node::graph_within)) gets the
//! descriptors of a peer's segments once, maps the beginning of each, and closes the descriptor.
//! From then on it reads them without the peer. A segment belongs to one endpoint from its making to
//! its end, and is sealed against a change of size: so the counts of one endpoint are never taken for
//! those of another, and a read is never beyond the end. Values are copied and shown, and nothing
//! else depends on them.

use std::os::fd::AsFd;
use std::os::fd::OwnedFd;

use crate::error::Error;
use crate::layout::{
    PUBLICATION_HEAD_BYTES, PUBLICATION_MAGIC, PublicationHead, SUBSCRIPTION_HEAD_BYTES,
    SUBSCRIPTION_MAGIC, SubscriptionCounters, SubscriptionHead, VERSION, WAKE_SEGMENT_BYTES,
    connections_offset, subscription_begin,
};
use crate::limits::HOLDS_MAX;
use crate::os::segment::Segment;
use crate::record::{Counters, Kind, Lateness};
use crate::sync;
use crate::topic::EndpointId;
use crate::waiting::wait;

/// Why a subscriber has lost samples: the order of [`SubscriptionCounters::lost`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossCause {
    /// Newer samples have overwritten them: it was further behind than its depth.
    Overwritten,
    /// A reliable publisher did not wait for it any longer.
    PassedOver,
    /// They did not come from another host.
    Network,
    /// There was no memory for them: for a sample from another host, or to map a publisher's slots.
    Memory,
}

/// Counts the takes of a reader.
pub(crate) struct TakeCounter {
    /// In the segment of the reader's subscription, which the reader keeps.
    counters: *const SubscriptionCounters,
    /// The first sample that was published at this time or later is measured.
    due_ns: u64,
}

// SAFETY: the pointer leads into a mapping, which belongs to the process.
unsafe impl Send for TakeCounter {}

impl TakeCounter {
    /// For a reader, which must keep the subscription that has these counters.
    pub(crate) fn new(counters: &SubscriptionCounters) -> TakeCounter {
        TakeCounter { counters, due_ns: 1 }
    }

    /// A sample that was published at this time (0: unknown) has been taken.
    #[inline(always)]
    pub(crate) fn count(&mut self, published_ns: u64) {
        let counters = self.counters();
        counters.taken.add_own(1);
        counters.last_taken_ns.set(published_ns);
        if published_ns >= self.due_ns {
            self.measure(published_ns);
        }
    }

    /// A clock costs more than the rest of a take, so only some takes read it.
    #[cold]
    #[inline(never)]
    fn measure(&mut self, published_ns: u64) {
        let now_ns = wait::now_ns();
        let late_ns = now_ns.saturating_sub(published_ns);
        let counters = self.counters();
        counters.lateness_last_ns.set(late_ns);
        counters.lateness_max_ns.set(counters.lateness_max_ns.get().max(late_ns));
        counters.lateness[Lateness::bucket(late_ns)].add_own(1);
        // A publisher's time in the future must not end the measuring.
        self.due_ns = published_ns.min(now_ns) + MEASURE_NS;
    }

    #[inline(always)]
    fn counters(&self) -> &'static SubscriptionCounters {
        // SAFETY: the reader keeps the subscription; the lifetime is independent of `self` only
        // so that the callers can write its other field.
        unsafe { &*self.counters }
    }
}

/// The counters of a publisher.
pub(crate) fn of_publication(head: &PublicationHead) -> Counters {
    Counters::Publisher {
        published: head.published.load(sync::Ordering::Relaxed),
        published_bytes: head.published_bytes.get(),
        last_published_ns: head.last_published_ns.get(),
        refused_loans: head.refused_loans.get(),
        memory_bytes: head.memory_bytes.get(),
    }
}

/// The counters of a subscriber.
pub(crate) fn of_subscription(head: &SubscriptionHead, holds: &[sync::AtomicU64]) -> Counters {
    let counters = &head.counters;
    let [overwritten, passed_over, network, memory] =
        std::array::from_fn(|cause| counters.lost[cause].get());
    let is_held = |word: &&sync::AtomicU64| word.load(sync::Ordering::Relaxed) != 0;
    Counters::Subscriber {
        taken: counters.taken.get(),
        lost: counters.lost(),
        lost_overwritten: overwritten,
        lost_passed_over: passed_over,
        lost_network: network,
        lost_memory: memory,
        held: holds.iter().filter(is_held).count() as u64,
        last_taken_ns: counters.last_taken_ns.get(),
        lateness: Lateness {
            last_ns: counters.lateness_last_ns.get(),
            max_ns: counters.lateness_max_ns.get(),
            buckets: std::array::from_fn(|bucket| counters.lateness[bucket].get()),
        },
        memory_bytes: head.bytes.load(sync::Ordering::Relaxed).saturating_add(WAKE_BYTES),
    }
}

impl SubscriptionCounters {
    /// The lost samples, for any reason.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.iter().fold(0, |sum, lost| sum.saturating_add(lost.get()))
    }

    /// Counts lost samples.
    pub(crate) fn count_lost(&self, samples: u64, cause: LossCause) {
        self.lost[cause as usize].add(samples);
    }
}

/// The beginning of another process's segment, for its counters. It can be read as long as this
/// exists, whatever has become of that process.
#[derive(Debug)]
pub struct MappedCounters {
    segment: Segment,
    kind: Kind,
    /// The number of holds, checked against the segment.
    holds: u64,
}

impl MappedCounters {
    /// Maps and checks the segment of an endpoint.
    ///
    /// # Errors
    /// [`Error::PeerCorrupt`], [`Error::LayoutVersion`]; errors of memory.
    pub fn map(id: EndpointId, kind: Kind, fd: OwnedFd) -> Result<MappedCounters, Error> {
        let (begin, head_bytes, bytes_max) = match kind {
            Kind::Publisher => (0, PUBLICATION_HEAD_BYTES, PUBLICATION_HEAD_BYTES),
            Kind::Subscriber => {
                let holds_end = connections_offset(u64::from(HOLDS_MAX));
                (subscription_begin(id), SUBSCRIPTION_HEAD_BYTES, holds_end)
            }
        };
        let bytes = [head_bytes, bytes_max].map(|bytes| begin + bytes);
        let segment = Segment::map_beginning(fd.as_fd(), bytes)?.beginning_at(begin)?;
        let mut mapped = MappedCounters { segment, kind, holds: 0 };
        let (magic, [found, version, endpoint]) = mapped.head_words();
        if found != magic {
            return Err(Error::PeerCorrupt { what: "a segment that is not an endpoint's" });
        }
        if version != VERSION {
            return Err(Error::LayoutVersion { ours: VERSION, theirs: version });
        }
        if endpoint != id {
            return Err(Error::PeerCorrupt { what: "the head of another endpoint" });
        }
        if kind == Kind::Subscriber {
            let holds = mapped.subscription().holds.load(sync::Ordering::Relaxed);
            let fits = holds <= u64::from(HOLDS_MAX)
                && begin + SUBSCRIPTION_HEAD_BYTES + holds * 8 <= mapped.segment.bytes();
            if !fits {
                return Err(Error::PeerCorrupt { what: "a subscription's head" });
            }
            mapped.holds = holds;
        }
        Ok(mapped)
    }

    /// The counters now.
    pub fn read(&self) -> Counters {
        match self.kind {
            Kind::Publisher => of_publication(self.publication()),
            Kind::Subscriber => {
                // SAFETY: atomics, only loaded from; `map` has checked their number.
                let holds = unsafe { self.segment.array(SUBSCRIPTION_HEAD_BYTES, self.holds) };
                of_subscription(self.subscription(), holds)
            }
        }
    }

    /// The magic that the kind has, and the words that are there.
    fn head_words(&self) -> (u64, [u64; 3]) {
        let read = |words: [&sync::AtomicU64; 3]| words.map(|it| it.load(sync::Ordering::Relaxed));
        match self.kind {
            Kind::Publisher => {
                let head = self.publication();
                (PUBLICATION_MAGIC, read([&head.magic, &head.version, &head.endpoint]))
            }
            Kind::Subscriber => {
                let head = self.subscription();
                (SUBSCRIPTION_MAGIC, read([&head.magic, &head.version, &head.endpoint]))
            }
        }
    }

    fn publication(&self) -> &PublicationHead {
        // SAFETY: atomics and padding, only loaded from; the mapping has at least a head.
        unsafe { self.segment.at(0) }
    }

    fn subscription(&self) -> &SubscriptionHead {
        // SAFETY: as above.
        unsafe { self.segment.at(0) }
    }
}

/// Bytes of the memory of a wake word: pages.
const WAKE_BYTES: u64 = WAKE_SEGMENT_BYTES.next_multiple_of(4096);
/// The time between two measurements of lateness: a clock read in it costs nothing that a take
/// would notice. Not a multiple of usual periods, so that a periodic stutter is not overlooked.
const MEASURE_NS: u64 = 97_000_000;

#[cfg(all(test, not(any(miri, loom))))]
mod tests {
    use std::os::fd::BorrowedFd;

    use super::*;
    use crate::data_plane::subscription::{Reader, SubscriptionState};
    use crate::data_plane::writer::Writer;
    use crate::os::segment::Writers;
    use crate::sync::counter::Counter;
    use crate::topic::{PublisherQos, SubscriberQos, Topic};
    use crate::waiting::wake_table::WakeTable;

    const PUBLISHER: EndpointId = 5 << 24 | 1;
    const SUBSCRIBER: EndpointId = 6 << 24 | 31;

    fn topic() -> Topic {
        Topic { name: "t".into(), type_name: "T".into(), type_hash: 1 }
    }

    fn reader() -> (Reader, std::sync::Arc<SubscriptionState>) {
        let table = WakeTable::create().unwrap();
        Reader::create(SUBSCRIBER, &topic(), SubscriberQos::default(), &table).unwrap()
    }

    fn own(fd: BorrowedFd<'_>) -> OwnedFd {
        fd.try_clone_to_owned().unwrap()
    }

    /// A segment of a process that writes what it wants: these words from `begin` on.
    fn hostile(bytes: u64, begin: u64, words: &[(usize, u64)], rest: u64) -> OwnedFd {
        let (segment, fd) = Segment::create("hostile", begin + bytes, Writers::Owner).unwrap();
        // SAFETY: atomics in our own mapping.
        let all = unsafe { segment.array::<Counter>(begin, bytes / 8) };
        all.iter().for_each(|word| word.set(rest));
        words.iter().for_each(|(at, value)| all[*at].set(*value));
        fd
    }

    #[test]
    fn samples_whose_memory_never_came_and_those_of_the_network_have_causes_of_their_own() {
        let (mut reader, shared) = reader();
        let (mut writer, publication) =
            Writer::create(PUBLISHER, &topic(), PublisherQos::default()).unwrap();
        shared.reserve(PUBLISHER, own(publication.descriptor()), Vec::new()).unwrap();
        shared.start(PUBLISHER, 0);
        (0..3).for_each(|_| _ = writer.publish_copy(&[1; 200]).unwrap());
        assert!(reader.take().unwrap().is_none(), "their slots have not come");
        shared.publisher_gone(PUBLISHER);
        assert!(reader.take().unwrap().is_none());
        shared.count_lost(7, LossCause::Network);
        let Counters::Subscriber { taken: 0, lost: 10, lost_memory: 3, lost_network: 7, .. } =
            shared.counters()
        else {
            panic!("{:?}", shared.counters())
        };
        assert_eq!(reader.lost(), 10);
    }

    #[test]
    fn refused_loans_are_counted() {
        let qos = PublisherQos { loans_max: 1, memory_max: 1 << 20, ..PublisherQos::default() };
        let (mut writer, shared) = Writer::create(PUBLISHER, &topic(), qos).unwrap();
        let loan = writer.loan(200).unwrap();
        assert!(matches!(writer.loan(200), Err(Error::TooManyLoans { .. })));
        // SAFETY: the loan is this writer's.
        unsafe { writer.discard(loan) };
        assert!(matches!(writer.publish_copy(&[0; 2 << 20]), Err(Error::MemoryLimit { .. })));
        assert!(matches!(
            shared.counters(),
            Counters::Publisher { refused_loans: 2, published: 0, published_bytes: 0, .. }
        ));
    }

    #[test]
    fn mapped_counters_are_those_of_the_owner_and_stay_after_its_end() {
        let (mut writer, publication) =
            Writer::create(PUBLISHER, &topic(), PublisherQos::default()).unwrap();
        let (reader, subscription) = reader();
        let fd = own(publication.descriptor());
        let published = MappedCounters::map(PUBLISHER, Kind::Publisher, fd).unwrap();
        let fd = own(subscription.descriptors().0);
        let taken = MappedCounters::map(SUBSCRIBER, Kind::Subscriber, fd).unwrap();
        writer.publish_copy(&[1; 10]).unwrap();
        writer.publish_copy(&[1; 300]).unwrap();
        subscription.count_lost(2, LossCause::PassedOver);
        let last = (publication.counters(), subscription.counters());
        assert_eq!((published.read(), taken.read()), last);
        assert!(matches!(last.0, Counters::Publisher { published_bytes: 310, .. }));
        drop((writer, publication, reader, subscription));
        assert_eq!((published.read(), taken.read()), last);
    }

    #[test]
    fn segments_that_are_not_those_of_the_endpoint_are_refused() {
        let head =
            |bytes, magic, version, id| hostile(bytes, 0, &[(0, magic), (1, version), (3, id)], 0);
        let map = |fd| MappedCounters::map(PUBLISHER, Kind::Publisher, fd);
        let bytes = PUBLICATION_HEAD_BYTES;
        let good = || head(bytes, PUBLICATION_MAGIC, VERSION, PUBLISHER);
        assert!(map(good()).is_ok());
        assert!(map(head(bytes, SUBSCRIPTION_MAGIC, VERSION, PUBLISHER)).is_err());
        assert!(map(head(bytes, PUBLICATION_MAGIC, VERSION, PUBLISHER + 1)).is_err());
        assert!(matches!(
            map(head(bytes, PUBLICATION_MAGIC, VERSION + 1, PUBLISHER)),
            Err(Error::LayoutVersion { .. })
        ));
        // The head lies in a page behind the end.
        let other = MappedCounters::map(SUBSCRIBER, Kind::Subscriber, good());
        assert!(matches!(other, Err(Error::PeerCorrupt { .. })));
        // It could shrink while it is read.
        let loose = rustix::fs::memfd_create("loose", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        rustix::fs::ftruncate(&loose, 8192).unwrap();
        assert!(matches!(map(loose), Err(Error::PeerCorrupt { .. })));
        let fd = good();
        let mapped = map(own(fd.as_fd())).unwrap();
        assert!(rustix::fs::ftruncate(&fd, 0).is_err());
        mapped.read();
    }

    #[test]
    fn any_values_can_be_read() {
        let begin = subscription_begin(SUBSCRIBER);
        let words = |holds| [(0, SUBSCRIPTION_MAGIC), (1, VERSION), (3, SUBSCRIBER), (6, holds)];
        let map = |fd| MappedCounters::map(SUBSCRIBER, Kind::Subscriber, fd);
        let bytes = SUBSCRIPTION_HEAD_BYTES + 8 * u64::from(HOLDS_MAX);
        for rest in [u64::MAX, 1 << 63, 0x5555_5555_5555_5555] {
            for holds in [0, 7, u64::from(HOLDS_MAX)] {
                let read = map(hostile(bytes, begin, &words(holds), rest)).unwrap().read();
                let Counters::Subscriber { lost: u64::MAX, held, lateness, .. } = read else {
                    panic!("{read:?}")
                };
                assert_eq!(held, holds);
                assert_eq!(lateness.measured(), u64::MAX);
                for percent in [-1.0, 0.0, 50.0, 100.0, 1e9, f64::NAN] {
                    assert!(lateness.percentile_ns(percent).is_some());
                }
                assert_eq!(lateness.since(&lateness).measured(), 0);
            }
        }
        assert!(map(hostile(bytes, begin, &words(u64::from(HOLDS_MAX) + 1), 0)).is_err());
        assert!(map(hostile(bytes, begin, &words(u64::MAX), 0)).is_err());
        // The segment ends before its last hold.
        let short = hostile(4096 - begin % 4096 + 4096, begin, &words(1024), 0);
        assert!(map(short).is_err());
    }

    #[test]
    fn lateness_is_measured_at_most_once_in_an_interval() {
        let (_reader, shared) = reader();
        let counters = shared.count();
        let mut takes = TakeCounter::new(counters);
        takes.count(0);
        assert_eq!((counters.taken.get(), counters.last_taken_ns.get()), (1, 0));
        let measured = || {
            let Counters::Subscriber { lateness, .. } = shared.counters() else { unreachable!() };
            lateness.measured()
        };
        assert_eq!(measured(), 0, "it carries no time");
        let begin_ns = wait::now_ns();
        takes.count(begin_ns);
        assert_eq!((measured(), counters.last_taken_ns.get()), (1, begin_ns));
        assert!(counters.lateness_last_ns.get() <= wait::now_ns() - begin_ns);
        takes.count(begin_ns + MEASURE_NS - 1);
        assert_eq!(measured(), 1);
        takes.count(begin_ns + MEASURE_NS);
        assert_eq!(measured(), 2);
        // A time that has not come does not end the measuring.
        takes.count(u64::MAX);
        assert_eq!(measured(), 3);
        takes.count(wait::now_ns() + MEASURE_NS);
        assert_eq!(measured(), 4);
        assert_eq!(counters.taken.get(), 6);
    }

    #[test]
    fn percentiles_are_those_of_the_buckets() {
        assert_eq!([0, 127, 128, 255, 256, u64::MAX].map(Lateness::bucket), [0, 0, 1, 1, 2, 31]);
        let mut lateness = Lateness::default();
        assert_eq!(lateness.percentile_ns(50.0), None);
        (lateness.buckets[0], lateness.buckets[3], lateness.max_ns) = (98, 2, 700);
        assert!(lateness.percentile_ns(50.0).unwrap() < 128);
        assert_eq!(lateness.percentile_ns(100.0), Some(700), "no more than the longest");
        assert!((512..=700).contains(&lateness.percentile_ns(98.5).unwrap()));
        let mut later = lateness;
        (later.buckets[1], later.max_ns) = (1, 700);
        let new = later.since(&lateness);
        assert_eq!((new.measured(), new.max_ns), (1, 256));
    }
}
