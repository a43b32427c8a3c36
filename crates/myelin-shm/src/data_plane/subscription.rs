//! A subscriber's announcements, and the state that it shares with its node and its samples.
//! `reader` takes the samples.

mod holds;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock, PoisonError};

use crate::data_plane::publisher_cursor::PublisherCursor;
pub use crate::data_plane::raw_sample::RawSample;
pub use crate::data_plane::reader::Reader;
use crate::data_plane::ready_list::ReadyList;
use crate::data_plane::remote_publisher::RemotePublisher;
use crate::data_plane::remote_subscriber::WakeDescriptors;
use crate::error::Error;
use crate::event::{Event, Inbox};
use crate::layout::{
    CONNECTION_BYTES, CONNECTION_WORDS, Connection, FINISHED, NOT_BEGUN, SUBSCRIPTION_HEAD_BYTES,
    SUBSCRIPTION_MAGIC, SubscriptionHead, VERSION, WAKE_SEGMENT_BYTES, WakeWord,
    connections_offset, held_of, hold_marks, subscription_begin, subscription_bytes,
};
use crate::limits::{CONNECTIONS_MAX, SEQUENCE_MAX};
use crate::os::descriptor::duplicate;
use crate::os::fork;
use crate::os::prefetch;
use crate::os::segment::{Segment, Writers};
use crate::record::Counters;
use crate::sync::{
    AtomicBool, AtomicU32, AtomicU64, Mutex, MutexGuard, Ordering, Step, is_taken, lock,
};
use crate::topic::{EndpointId, SubscriberQos, Topic};
use crate::waiting::interrupt::{Interrupter, SubscriberWaker};
use crate::waiting::remote_wake_table::WakeTableDescriptors;
use crate::waiting::sleep::{self, Sleep};
use crate::waiting::subscriber_descriptor::SubscriberDescriptor;
use crate::waiting::wait;
use crate::waiting::wake_table::{ReadyBit, WakeTable};

type OnCorrupt = Box<dyn Fn(EndpointId) + Send + Sync>;
type OnLastDrop = Box<dyn FnOnce() + Send + Sync>;

/// State shared by the node, the reader and the held samples. Any thread may call it.
#[repr(C)] // A look and a take read the first fields, on a few lines: see `prefetch`.
pub struct SubscriptionState {
    waker: Arc<SubscriberWaker>,
    inbox: Arc<Inbox>,
    sources: Mutex<Connections>,
    segment: Segment,
    /// For each hold: 0 if it is free, 1 while it is being released, otherwise 1 + the clones of
    /// its sample. `ORPHAN` is added when the reader has been dropped. From then on the sample owns
    /// a strong reference to this object; before, the reader's reference keeps it alive.
    clones: Box<[AtomicU32]>,
    descriptor: Option<Arc<SubscriberDescriptor>>,
    /// The addresses of the reader and its publishers, when these changed last.
    reader: [AtomicUsize; 2],
    fork: u32,
    /// Set when the reader has to look at `sources`.
    pub(crate) changed: AtomicBool,
    qos: SubscriberQos,
    /// The publishers to look at, if they are many.
    ready_list: ReadyList,
    id: EndpointId,
    topic: Topic,
    fd: OwnedFd,
    wake_word_fd: OwnedFd,
    /// Counts all its sleeps.
    sleeps: AtomicU64,
    /// How many samples it has lost, for any reason.
    lost: AtomicU64,
    /// Whether a new publisher ends the wait, too.
    interrupted_by_matches: AtomicBool,
    on_corrupt: OnceLock<OnCorrupt>,
    on_last_drop: Mutex<Option<OnLastDrop>>,
}

/// How many lines hold the fields that are read first, and the reference count before them.
const HOT_LINES: usize = 5;

/// Addresses that the next look at a subscriber and the take after it will read. A topic that has
/// been quiet for a while has none of them in the caches, and each leads to the next. These are
/// hints: any may be stale.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PrefetchList([usize; 14]);

impl PrefetchList {
    /// Fetches all of them at once.
    #[inline(always)]
    pub(crate) fn prefetch(&self) {
        self.0.iter().for_each(|address| prefetch::to_read(std::ptr::without_provenance(*address)));
    }
}

/// A subscriber that has said that it sleeps, and found no sample after that.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asleep {
    /// The wake word's count to sleep on.
    count: u32,
    /// When to look again without a notification.
    until_ns: u64,
}

impl Asleep {
    /// `publishers`: how many could notify. One of several publishers could reset the wake word
    /// just when another has notified it, so no subscriber sleeps long on their word:
    /// `docs/explanation/shared-memory.md` section 10.
    pub(crate) fn new(count: u32, publishers: usize) -> Asleep {
        let until_ns = match publishers {
            0 | 1 => wait::NEVER,
            _ => wait::now_ns() + TRUST_NS,
        };
        Asleep { count, until_ns }
    }

    /// Limits the sleep to this time.
    pub(crate) fn until(self, until_ns: u64) -> Asleep {
        Asleep { until_ns: self.until_ns.min(until_ns), ..self }
    }
}

/// How long a subscriber of several publishers, or a wait set, sleeps without a look.
pub(crate) const TRUST_NS: u64 = 100_000_000;

pub(crate) struct Connections {
    /// All mapped publishers, by connection, including those not yet matched; the list ends at the
    /// last connection in use, because each wait looks through it.
    known: Vec<Option<Arc<RemotePublisher>>>,
    /// Publishers matched since the reader last looked.
    pub(crate) begun: Vec<Arc<RemotePublisher>>,
    finished: bool,
    /// How much of the subscription segment has memory.
    bytes: u64,
    /// Removed publishers of which samples are still held, by the mark of these holds.
    borrowed: Vec<(u64, Arc<RemotePublisher>)>,
}

impl Connections {
    fn known(&self) -> impl Iterator<Item = &Arc<RemotePublisher>> {
        self.known.iter().flatten()
    }

    fn of(&self, publisher: EndpointId) -> Option<&Arc<RemotePublisher>> {
        self.known().find(|source| source.id == publisher)
    }

    /// A free connection out of so many.
    fn free_connection(&self, connections: u32) -> Option<u32> {
        let used = self.known.len();
        let free = self.known.iter().position(Option::is_none).unwrap_or(used) as u32;
        (free < connections).then_some(free)
    }

    fn enter(&mut self, source: RemotePublisher) {
        let at = source.connection as usize;
        if at == self.known.len() {
            self.known.push(None);
        }
        self.known[at] = Some(Arc::new(source));
    }

    fn leave(&mut self, connection: u32) -> Option<Arc<RemotePublisher>> {
        let left = self.known[connection as usize].take();
        while self.known.pop_if(|last| last.is_none()).is_some() {}
        left
    }
}

impl SubscriptionState {
    pub(crate) fn create(
        id: EndpointId,
        topic: &Topic,
        qos: SubscriberQos,
        table: &Arc<WakeTable>,
    ) -> Result<Arc<SubscriptionState>, Error> {
        topic.check()?;
        qos.check(topic)?;
        let (holds, begin) = (u64::from(qos.held_max), subscription_begin(id));
        let bytes = |connections| begin + subscription_bytes(holds, u64::from(connections));
        let (segment, fd, bytes) =
            Segment::create_growing("myelin-subscription", bytes(1), bytes(qos.publishers_max))?;
        let segment = segment.beginning_at(begin)?;
        let (wake_segment, wake_word_fd) =
            Segment::create("myelin-wake-word", WAKE_SEGMENT_BYTES, Writers::Everyone)?;
        let descriptor = qos.descriptor.then(SubscriberDescriptor::new).transpose()?.map(Arc::new);
        let waker = Arc::new(SubscriberWaker {
            segment: wake_segment,
            descriptor: descriptor.clone(),
            ready_bit: Arc::new(ReadyBit::take(table)?),
            set: AtomicU32::new(0),
            interrupted: AtomicBool::new(false),
        });
        let sources = Connections {
            known: Vec::new(),
            begun: Vec::new(),
            finished: false,
            bytes,
            borrowed: Vec::new(),
        };
        let shared = SubscriptionState {
            id,
            topic: topic.clone(),
            qos,
            segment,
            fd,
            wake_word_fd,
            descriptor,
            waker,
            ready_list: ReadyList::new(qos.publishers_max),
            sleeps: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            inbox: Arc::default(),
            sources: Mutex::new(sources),
            changed: AtomicBool::new(false),
            interrupted_by_matches: AtomicBool::new(false),
            clones: (0..holds).map(|_| AtomicU32::new(0)).collect(),
            on_corrupt: OnceLock::new(),
            on_last_drop: Mutex::new(None),
            fork: fork::mark(),
            reader: [const { AtomicUsize::new(0) }; 2],
        };
        write_head(shared.head(), id, topic, &shared.qos, bytes, shared.ready_bit().number());
        if cfg!(loom) {
            // Initialises the memory early, as in a publication.
            shared.holds();
            shared.wake_word();
            (0..qos.publishers_max).for_each(|number| _ = shared.connection(number));
        }
        Ok(Arc::new(shared))
    }

    /// Its endpoint id.
    pub fn id(&self) -> EndpointId {
        self.id
    }

    /// Its topic.
    pub fn topic(&self) -> &Topic {
        &self.topic
    }

    /// Its settings.
    pub fn qos(&self) -> &SubscriberQos {
        &self.qos
    }

    /// Subscription segment and wake word.
    pub fn descriptors(&self) -> (BorrowedFd<'_>, BorrowedFd<'_>) {
        (self.fd.as_fd(), self.wake_word_fd.as_fd())
    }

    /// The descriptors for the publisher of a connection: the subscription segment, and the means
    /// to wake the subscriber.
    pub fn passed_to(&self, connection: u32) -> Result<(OwnedFd, WakeDescriptors), Error> {
        let own = |fd: BorrowedFd<'_>| duplicate(fd, "passing a subscriber on");
        let publisher = self.connection(connection).publisher.load(Ordering::Relaxed);
        let [heads, ready, pipe] = self.ready_bit().table().passed_to(publisher);
        let table =
            WakeTableDescriptors { heads: own(heads)?, ready: own(ready)?, pipe: own(pipe)? };
        let wake_pipe = self.descriptor.as_ref().map(|fd| fd.connect(connection)).transpose()?;
        Ok((
            own(self.fd.as_fd())?,
            WakeDescriptors { wake_word: own(self.wake_word_fd.as_fd())?, table, wake_pipe },
        ))
    }

    /// Readable when there may be a sample to take, or an event; if the settings request it.
    pub fn event(&self) -> Option<BorrowedFd<'_>> {
        self.descriptor.as_deref().map(SubscriberDescriptor::fd)
    }

    #[inline(always)]
    pub(crate) fn descriptor(&self) -> Option<&SubscriberDescriptor> {
        self.descriptor.as_deref()
    }

    /// The events for its user.
    pub(crate) fn inbox(&self) -> &Arc<Inbox> {
        &self.inbox
    }

    /// Passes an event to the user, who may be waiting: makes the descriptor readable and, if the
    /// user wants to know about silence, ends the wait for it.
    pub(crate) fn deliver(&self, event: Event) {
        let watched = self.qos.deadline.is_some() || self.qos.liveliness.is_some();
        let is_silence = matches!(
            event,
            Event::DeadlineMissed { .. } | Event::LivelinessLost { .. } | Event::Unmatched { .. }
        );
        self.inbox.push(event);
        if watched && is_silence {
            self.inbox.set_urgent(true);
        }
        if is_silence {
            self.look_again();
        }
    }

    /// Accepts a publisher: maps its memory and returns the number of the connection.
    pub fn reserve(
        &self,
        publisher: EndpointId,
        publication: OwnedFd,
        segments: Vec<(u32, u64, u32, OwnedFd)>,
    ) -> Result<u32, Error> {
        let mut sources = self.sources();
        self.forget_finished_of(&mut sources);
        if let Some(known) = sources.of(publisher) {
            return match known.gone.load(Ordering::Relaxed) {
                false => Ok(known.connection),
                // It is asked again when the rest of the previous match has been read.
                true => Err(self.too_many_publishers()),
            };
        }
        let max = self.qos.publishers_max;
        sources.free_connection(max).ok_or_else(|| self.too_many_publishers())?;
        drop(sources);
        // Without the lock: a take needs it, and mapping waits for page faults.
        let mut source = RemotePublisher::map(publisher, &self.topic, 0, publication)?;
        for (number, slot_bytes, slots, fd) in segments {
            source.add_segment(number, slot_bytes, slots, fd)?;
        }
        let mut sources = self.sources();
        let connection = sources.free_connection(max).ok_or_else(|| self.too_many_publishers())?;
        self.reach(&mut sources, connection)?;
        source.connection = connection;
        let words = self.connection(connection);
        let reading = if sources.finished { FINISHED } else { NOT_BEGUN };
        if is_taken(Step::NotBegun) {
            words.reading.store(reading, Ordering::Relaxed);
        }
        words.publisher.store(publisher, Ordering::Release);
        sources.enter(source);
        Ok(connection)
    }

    /// Allocates the memory for the announcements of a connection.
    fn reach(&self, sources: &mut Connections, connection: u32) -> Result<(), Error> {
        let content = subscription_bytes(u64::from(self.qos.held_max), u64::from(connection) + 1);
        let bytes = subscription_begin(self.id) + content;
        if bytes > sources.bytes {
            sources.bytes = self.segment.grow(self.fd.as_fd(), sources.bytes, bytes)?;
            self.head().bytes.store(sources.bytes, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Whether a publisher that was declined could be accepted now.
    pub(crate) fn has_room_for(&self, publisher: EndpointId) -> bool {
        let mut sources = self.sources();
        self.forget_finished_of(&mut sources);
        sources.of(publisher).is_none()
            && sources.free_connection(self.qos.publishers_max).is_some()
    }

    fn too_many_publishers(&self) -> Error {
        let what = match self.qos.publishers_max {
            CONNECTIONS_MAX => "publishers of one subscriber",
            _ => {
                "publishers of one subscriber (raise publishers_max; publishers that have gone \
                 count until all their samples are read)"
            }
        };
        let (topic, limit) = (Some(self.topic.name.clone()), u64::from(self.qos.publishers_max));
        Error::TooMany { topic, what, limit }
    }

    /// The publisher now looks at this subscriber: the subscriber reads samples from `start` on.
    pub fn start(&self, publisher: EndpointId, start: u64) {
        let mut sources = self.sources();
        let Some(source) = sources.of(publisher) else { return };
        source.start.store(start, Ordering::Relaxed);
        let source = source.clone();
        sources.begun.push(source);
        drop(sources);
        if self.interrupted_by_matches.load(Ordering::Relaxed) {
            self.waker.interrupted.store(true, Ordering::Release);
        }
        self.look_again();
    }

    /// The publisher has a further slot segment.
    pub fn add_segment(
        &self,
        publisher: EndpointId,
        number: u32,
        slot_bytes: u64,
        slots: u32,
        fd: OwnedFd,
    ) -> Result<(), Error> {
        self.map_segment(publisher, number, slot_bytes, slots, fd)?;
        self.look_again();
        Ok(())
    }

    /// Like [`add_segment`](Self::add_segment), without notice to the reader.
    pub(crate) fn map_segment(
        &self,
        publisher: EndpointId,
        number: u32,
        slot_bytes: u64,
        slots: u32,
        fd: OwnedFd,
    ) -> Result<(), Error> {
        let known = self.sources().of(publisher).cloned();
        known.map_or(Ok(()), |source| source.add_segment(number, slot_bytes, slots, fd))
    }

    /// Cancels the match with a publisher that has a connection. The reader has not seen the
    /// publisher.
    pub(crate) fn publisher_never_came(&self, publisher: EndpointId) {
        let removed = self.remove(&mut self.sources(), publisher);
        drop(removed); // not under the lock: its drop unmaps it
    }

    /// The publisher has left or died. Its published samples can still be read.
    pub fn publisher_gone(&self, publisher: EndpointId) {
        let sources = self.sources();
        if let Some(source) = sources.of(publisher) {
            source.gone.store(true, Ordering::Release);
        }
        drop(sources);
        self.look_again();
    }

    /// Calls `tell` in the taking thread for a publisher that wrote invalid data.
    pub fn on_corrupt(&self, tell: OnCorrupt) {
        let _ = self.on_corrupt.set(tell);
    }

    /// Calls `tell` when the reader and all held samples have been dropped.
    pub fn on_last_drop(&self, tell: OnLastDrop) {
        *lock(&self.on_last_drop) = Some(tell);
    }

    /// How many samples the publisher has published, and how often it has asserted itself.
    pub fn progress(&self, publisher: EndpointId) -> Option<(u64, u64)> {
        let sources = self.sources();
        let source = sources.of(publisher)?;
        let head = source.head();
        let asserted = head.asserted.load(Ordering::Relaxed);
        Some((head.published.load(Ordering::Relaxed), asserted))
    }

    /// Ends the running wait in another thread, or else the next one: it returns false.
    pub fn interrupt(&self) {
        self.waker.interrupted.store(true, Ordering::Release);
        self.look_again();
    }

    /// The interrupter, which ends its waits from other threads.
    pub fn interrupter(&self) -> Interrupter {
        Interrupter::new(&self.waker)
    }

    /// Sleeps until it has been woken since the subscriber fell asleep. False if the time was over.
    pub(crate) fn sleep(&self, asleep: Asleep) -> bool {
        wait::sleep(&self.wake_word().wakes, asleep.count, asleep.until_ns)
    }

    /// The same, and until `word` is no longer `value`.
    pub(crate) fn sleep_also_on(&self, asleep: Asleep, word: &AtomicU64, value: u32) -> bool {
        let wake_word = (&self.wake_word().wakes as _, asleep.count);
        wait::sleep_on_two([wake_word, (word, value)], asleep.until_ns)
    }

    /// The subscriber's thread runs again after [`Reader::fall_asleep`].
    pub(crate) fn wake_up(&self) {
        sleep::wake_up(&self.head().asleep);
    }

    /// From now on a wait ends when a publisher comes.
    pub(crate) fn interrupt_by_matches(&self) {
        self.interrupted_by_matches.store(true, Ordering::Relaxed);
    }

    /// Whether a thread has requested the end of the wait.
    #[inline(always)]
    pub(crate) fn is_interrupted(&self) -> bool {
        self.waker.interrupted.load(Ordering::Acquire) || self.inbox.is_urgent()
    }

    /// Resets the request after the wait has ended.
    pub(crate) fn end_interrupt(&self) {
        if self.is_interrupted() {
            self.waker.interrupted.store(false, Ordering::Relaxed);
            self.inbox.set_urgent(false);
        }
    }

    /// Makes the reader update its publishers if this one has gone, so that its connection can be
    /// used again.
    #[inline(always)]
    pub(crate) fn has_read_all_of(&self, source: &RemotePublisher) {
        if source.gone.load(Ordering::Relaxed) {
            self.changed.store(true, Ordering::Relaxed);
        }
    }

    pub(crate) fn report_corrupt(&self, publisher: EndpointId) {
        if let Some(tell) = self.on_corrupt.get() {
            tell(publisher);
        }
    }

    /// Frees the connections of publishers that have gone and have been read to the end. Held
    /// samples stay mapped.
    pub(crate) fn forget_finished(&self) {
        self.forget_finished_of(&mut self.sources());
    }

    fn forget_finished_of(&self, sources: &mut Connections) {
        let is_held = |mark| self.holds().iter().any(|hold| hold.load(Ordering::Relaxed) == mark);
        sources.borrowed.retain(|(mark, _)| is_held(*mark));
        // ORDER: acquire pairs with the release in `Reader`: the reader takes no hold of it any
        // more, and the holds it took are announced.
        let finished = sources.known().filter(|known| known.finished.load(Ordering::Acquire));
        for source in finished.cloned().collect::<Vec<_>>() {
            let is_free = |mark: &u64| sources.borrowed.iter().all(|(used, _)| used != mark);
            let Some(mark) = hold_marks().find(is_free) else { return };
            if self.mark_holds(source.connection, mark) {
                sources.borrowed.push((mark, source.clone()));
            }
            self.remove(sources, source.id);
        }
    }

    /// Marks the held samples of a publisher that has gone: they protect nothing any more, and must
    /// not be taken for a sample of the next publisher with this connection. Returns whether
    /// anything is held.
    fn mark_holds(&self, connection: u32, mark: u64) -> bool {
        let is_marked = |hold: &AtomicU64| {
            // ORDER: Relaxed, both: it has no meaning for its publisher. A hold that is released
            // meanwhile is 0.
            let (word, order) = (hold.load(Ordering::Relaxed), Ordering::Relaxed);
            let is_its = word & SEQUENCE_MAX != 0 && held_of(word) == connection;
            is_its && hold.compare_exchange(word, mark, order, order).is_ok()
        };
        self.holds().iter().filter(|hold| is_marked(hold)).count() > 0
    }

    fn remove(
        &self,
        sources: &mut Connections,
        publisher: EndpointId,
    ) -> Option<Arc<RemotePublisher>> {
        let number = sources.of(publisher)?.connection;
        let removed = sources.leave(number);
        self.connection(number).publisher.store(0, Ordering::Relaxed);
        if let Some(fd) = &self.descriptor {
            fd.disconnect(number);
        }
        removed
    }

    /// Ends the reading: reliable publishers need not wait. Held samples stay announced.
    pub(crate) fn finish(&self) {
        let mut sources = self.sources();
        sources.finished = true;
        for source in sources.known() {
            let reading = &self.connection(source.connection).reading;
            reading.store(FINISHED, Ordering::Release);
            wait::wake(reading);
        }
    }

    /// Samples lost so far, of all publishers.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Counts lost samples.
    pub fn count_lost(&self, samples: u64) {
        // ORDER: Relaxed, here and above: a number for people; nothing depends on it.
        self.lost.fetch_add(samples, Ordering::Relaxed);
    }

    /// Its counters, read from words that exist for other reasons.
    pub(crate) fn counters(&self) -> Counters {
        // ORDER: Relaxed: as above.
        let is_held = |word: &&AtomicU64| word.load(Ordering::Relaxed) != 0;
        let held = self.holds().iter().filter(is_held).count() as u64;
        let memory_bytes = self.sources().bytes + self.waker.segment.bytes();
        Counters::Subscriber { lost: self.lost(), held, memory_bytes }
    }

    /// Whether there is something to take, or an event for which a wait has to end; an event ends
    /// one wait only. Any thread may ask while another one takes. `see` gets the connections that
    /// have a sample; `next` gets the addresses that the next look will read, if there is none.
    #[inline]
    pub(crate) fn take_news(&self, next: &mut PrefetchList, mut see: impl FnMut(u32)) -> bool {
        let sources = self.sources();
        let mut is_news = !sources.begun.is_empty() && self.has_begun(&sources);
        if self.ready_list.is_used() {
            let numbers = self.ready_list.or_ready(self.ready());
            for source in numbers.filter_map(|it| sources.known.get(it as usize)?.as_ref()) {
                is_news |= self.look_at(&sources, source, next, &mut see);
            }
        } else {
            for source in sources.known() {
                is_news |= self.look_at(&sources, source, next, &mut see);
            }
        }
        if self.inbox.is_urgent() {
            self.inbox.set_urgent(false);
            is_news = true;
        }
        is_news
    }

    /// Whether a publisher that the reader has not looked at yet has something.
    #[cold]
    fn has_begun(&self, sources: &Connections) -> bool {
        sources.begun.iter().any(|source| {
            let start = source.start.load(Ordering::Relaxed);
            let transient_local = source.transient_local.min(u64::from(self.qos.transient_local));
            source.has_beyond(start) || transient_local.min(start) > 0
        })
    }

    #[inline(always)]
    fn look_at(
        &self,
        sources: &Connections,
        source: &Arc<RemotePublisher>,
        next: &mut PrefetchList,
        see: &mut impl FnMut(u32),
    ) -> bool {
        let has_more = self.has_more_of(source);
        match has_more {
            true => see(source.connection),
            false => *next = self.read_next(sources, source),
        }
        has_more
    }

    /// The addresses that the look and the take will read when this source has its next sample.
    fn read_next(&self, sources: &Connections, source: &Arc<RemotePublisher>) -> PrefetchList {
        let [reader, connections] = [0, 1].map(|at| self.reader[at].load(Ordering::Relaxed));
        let source_at = Arc::as_ptr(source).addr();
        PrefetchList([
            Arc::as_ptr(&self.waker).addr(),
            sources.known.as_ptr().addr(),
            source_at,
            source_at + 64,
            (&raw const self.connection(source.connection).reading).addr(),
            source.cell(self.reading_of(source)).addr(),
            Arc::as_ptr(&self.inbox).addr(),
            reader,
            reader + 64,
            connections,
            connections + 64,
            (&raw const source.head().published).addr(),
            self.clones.as_ptr().addr(),
            self.holds().as_ptr().addr(),
        ])
    }

    #[inline(always)]
    fn reading_of(&self, source: &RemotePublisher) -> u64 {
        // ORDER: Relaxed: only the reader, of this process, writes it; a thread that has taken
        // looks again.
        self.connection(source.connection).reading.load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn has_more_of(&self, source: &RemotePublisher) -> bool {
        let reading = self.reading_of(source);
        reading < NOT_BEGUN && source.has_beyond(reading)
    }

    /// The CPU that a publisher last ran on.
    pub(crate) fn cpu_of(&self, connection: u32) -> Option<u64> {
        let sources = self.sources();
        let source = sources.known.get(connection as usize)?.as_ref()?;
        Some(source.head().cpu.load(Ordering::Relaxed))
    }

    /// Notes the addresses of the reader and its publishers.
    pub(crate) fn note_reader(&self, reader: *const Reader, connections: *const PublisherCursor) {
        self.reader[0].store(reader.addr(), Ordering::Relaxed);
        self.reader[1].store(connections.addr(), Ordering::Relaxed);
    }

    /// Fetches into the caches everything that a look and a take read.
    #[inline(always)]
    pub(crate) fn prefetch(this: *const SubscriptionState) {
        prefetch::lines_to_read(this.cast::<u8>().wrapping_sub(2 * size_of::<usize>()), HOT_LINES);
    }

    /// Marks publishers with unread samples, whatever their ready bits say: publishers may have
    /// taken bits away from each other. Any thread may call it.
    pub(crate) fn look_for_overlooked(&self) {
        if self.ready_list.is_used() {
            let sources = self.sources();
            let overlooked = sources.known().filter(|source| self.has_more_of(source));
            overlooked.for_each(|source| self.ready_list.overlook(source.connection));
        }
    }

    /// The publishers to look at, if they are many.
    pub(crate) fn ready_list(&self) -> &ReadyList {
        &self.ready_list
    }

    /// Makes its publishers set their ready bits: those of `numbers` are due now. None: they are
    /// few. Only the reader calls it. A publisher that has not seen it has published before the
    /// caller's next fence.
    pub(crate) fn use_ready(&self, numbers: &[u64]) {
        self.ready_list.use_for(numbers);
        sleep::set_many(&self.head().asleep, !numbers.is_empty());
    }

    /// The number of its next sleep.
    pub(crate) fn next_sleep(&self) -> u64 {
        if !is_taken(Step::S1) {
            return 1;
        }
        // ORDER: Relaxed: the numbers only have to differ.
        self.sleeps.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Its number in the node whose wait sets it can be in, and its bit there.
    pub(crate) fn ready_bit(&self) -> &Arc<ReadyBit> {
        &self.waker.ready_bit
    }

    /// The wait set it is in.
    pub(crate) fn set(&self) -> Option<u32> {
        self.waker.set()
    }

    /// Enters a wait set; false if it is in another one.
    pub(crate) fn enter(&self, set: u32) -> bool {
        let (its, order) = (&self.waker.set, Ordering::Relaxed);
        its.compare_exchange(0, set + 1, order, order).is_ok()
    }

    /// Leaves a wait set.
    pub(crate) fn leave(&self, set: u32) {
        let (its, order) = (&self.waker.set, Ordering::Relaxed);
        if its.compare_exchange(set + 1, 0, order, order).is_ok() {
            sleep::disarm(&self.head().asleep, set);
        }
    }

    /// Leaves the wait set it is in, if any, because it will be waited for in another way.
    pub(crate) fn leave_set(&self) {
        if let Some(set) = self.set() {
            self.leave(set);
            self.ready_bit().notify(set as usize);
        }
    }

    /// Says that its set must be woken when something comes.
    pub(crate) fn arm(&self, set: u32) {
        sleep::arm(&self.head().asleep, Sleep::new(self.next_sleep(), Some(set)));
    }

    /// Makes its wait set look at it, if it is in one.
    pub(crate) fn notify_set(&self) {
        self.waker.notify_set();
    }

    #[inline(always)]
    pub(crate) fn sources(&self) -> MutexGuard<'_, Connections> {
        lock(&self.sources)
    }

    pub(crate) fn head(&self) -> &SubscriptionHead {
        // SAFETY: atomics and padding in our own mapping.
        unsafe { self.segment.at(0) }
    }

    pub(crate) fn wake_word(&self) -> &WakeWord {
        self.waker.wake_word()
    }

    /// The ready bits of its publishers, which all of them may write.
    pub(crate) fn ready(&self) -> &[AtomicU64; CONNECTION_WORDS] {
        &self.waker.words().ready
    }

    pub(crate) fn holds(&self) -> &[AtomicU64] {
        // SAFETY: as above; the segment was made for so many holds.
        unsafe { self.segment.array(SUBSCRIPTION_HEAD_BYTES, u64::from(self.qos.held_max)) }
    }

    /// A connection that has memory, because it has been reserved once.
    #[inline(always)]
    pub(crate) fn connection(&self, number: u32) -> &Connection {
        assert!(number < self.qos.publishers_max);
        let offset =
            connections_offset(u64::from(self.qos.held_max)) + u64::from(number) * CONNECTION_BYTES;
        // SAFETY: as above.
        unsafe { self.segment.at(offset) }
    }

    pub(crate) fn is_forked(&self) -> bool {
        fork::is_forked(self.fork)
    }

    /// Makes the reader look at its publishers, and wakes it if it sleeps.
    pub(crate) fn look_again(&self) {
        self.changed.store(true, Ordering::Release);
        self.waker.wake();
    }
}

/// Writes the head, which publishers check.
pub(super) fn write_head(
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

impl Drop for SubscriptionState {
    fn drop(&mut self) {
        if self.is_forked() {
            return;
        }
        let tell = self.on_last_drop.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(tell) = tell {
            tell();
        }
    }
}
