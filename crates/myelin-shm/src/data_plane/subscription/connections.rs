//! The publishers of a subscriber: each has a number, a connection, from the time it is accepted
//! until it has gone and has been read to the end.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::borrowed::Borrowed;
use super::memory::SubscriptionMemory;
use crate::counters::LossCause;
use crate::data_plane::remote_publisher::RemotePublisher;
use crate::error::Error;
use crate::layout::{FINISHED, NOT_BEGUN, SubscriptionHead, hold_marks};
use crate::limits::CONNECTIONS_MAX;
use crate::sync::{Mutex, MutexGuard, Ordering, Step, is_taken, lock};
use crate::topic::{EndpointId, SubscriberQos, Topic};
use crate::waiting::subscriber_descriptor::SubscriberDescriptor;
use crate::waiting::wait;

/// The publishers. The node's thread adds and removes them; the reader learns of it by a look.
#[repr(C)] // a look reads the first fields
pub(crate) struct Connections {
    list: Mutex<List>,
    memory: Arc<SubscriptionMemory>,
    descriptor: Option<Arc<SubscriberDescriptor>>,
    qos: SubscriberQos,
}

/// The publishers, locked.
pub(crate) struct List {
    /// All mapped publishers, by connection, including those not yet matched; the list ends at the
    /// last connection in use, because each wait looks through it.
    known: Vec<Option<Arc<RemotePublisher>>>,
    /// Publishers matched since the reader last looked.
    pub(crate) begun: Vec<Arc<RemotePublisher>>,
    finished: bool,
    /// How much of the subscription segment has memory.
    bytes: u64,
    /// Removed publishers of which samples are still borrowed, by the mark of these holds.
    lenders: Vec<(u64, Arc<RemotePublisher>)>,
}

impl List {
    pub(super) fn known(&self) -> impl Iterator<Item = &Arc<RemotePublisher>> {
        self.known.iter().filter_map(Option::as_ref)
    }

    #[inline(always)]
    pub(super) fn at(&self, connection: u32) -> Option<&Arc<RemotePublisher>> {
        self.known.get(connection as usize)?.as_ref()
    }

    /// The address that a look reads.
    pub(super) fn address(&self) -> usize {
        self.known.as_ptr().addr()
    }

    fn of(&self, publisher: EndpointId) -> Option<&Arc<RemotePublisher>> {
        self.known().find(|known| known.id == publisher)
    }

    /// The first publisher that has gone and that the reader has not seen, in `begun`.
    fn unseen_and_gone(&self) -> Option<usize> {
        // ORDER: acquire pairs with the release in `publisher_gone`: it publishes no more.
        self.begun.iter().position(|publisher| publisher.gone.load(Ordering::Acquire))
    }

    /// A free connection out of so many.
    fn free_connection(&self, connections: u32) -> Option<u32> {
        let used = self.known.len();
        let free = self.known.iter().position(Option::is_none).unwrap_or(used) as u32;
        (free < connections).then_some(free)
    }

    fn enter(&mut self, publisher: RemotePublisher) {
        let at = publisher.connection as usize;
        if at == self.known.len() {
            self.known.push(None);
        }
        self.known[at] = Some(Arc::new(publisher));
    }

    fn leave(&mut self, connection: u32) -> Option<Arc<RemotePublisher>> {
        let left = self.known[connection as usize].take();
        while self.known.pop_if(|last| last.is_none()).is_some() {}
        left
    }
}

impl Connections {
    /// None yet; the memory has so many bytes.
    pub(super) fn new(
        memory: &Arc<SubscriptionMemory>,
        bytes: u64,
        descriptor: Option<Arc<SubscriberDescriptor>>,
        qos: SubscriberQos,
    ) -> Connections {
        let (known, begun, lenders) = (Vec::new(), Vec::new(), Vec::new());
        let list = Mutex::new(List { known, begun, finished: false, bytes, lenders });
        Connections { list, memory: memory.clone(), descriptor, qos }
    }

    #[inline(always)]
    pub(crate) fn list(&self) -> MutexGuard<'_, List> {
        lock(&self.list)
    }

    /// Accepts a publisher: maps its memory and returns the number of the connection.
    pub(super) fn reserve(
        &self,
        publisher: EndpointId,
        topic: &Topic,
        borrowed: &Borrowed,
        publication: OwnedFd,
        segments: Vec<(u32, u64, u32, OwnedFd)>,
    ) -> Result<u32, Error> {
        let mut list = self.list();
        self.forget_finished_of(&mut list, borrowed);
        if let Some(known) = list.of(publisher) {
            return match known.gone.load(Ordering::Relaxed) {
                false => Ok(known.connection),
                // It is asked again when the rest of the previous match has been read.
                true => Err(self.too_many_publishers(topic)),
            };
        }
        let max = self.memory.connections();
        if list.free_connection(max).is_none() {
            self.give_up(&mut list);
        }
        list.free_connection(max).ok_or_else(|| self.too_many_publishers(topic))?;
        drop(list);
        // Without the lock: a take needs it, and mapping waits for page faults.
        let mut mapped = RemotePublisher::map(publisher, topic, 0, publication)?;
        for (number, slot_bytes, slots, fd) in segments {
            mapped.add_segment(number, slot_bytes, slots, fd)?;
        }
        let mut list = self.list();
        let free = list.free_connection(max);
        let connection = free.ok_or_else(|| self.too_many_publishers(topic))?;
        list.bytes = self.memory.reach(list.bytes, connection)?;
        mapped.connection = connection;
        let words = self.memory.connection(connection);
        let reading = if list.finished { FINISHED } else { NOT_BEGUN };
        if is_taken(Step::NotBegun) {
            words.reading.store(reading, Ordering::Relaxed);
        }
        words.publisher.store(publisher, Ordering::Release);
        list.enter(mapped);
        Ok(connection)
    }

    /// Whether a publisher that was declined could be accepted now.
    pub(super) fn has_room_for(&self, publisher: EndpointId, borrowed: &Borrowed) -> bool {
        let mut list = self.list();
        self.forget_finished_of(&mut list, borrowed);
        let is_free = list.free_connection(self.memory.connections()).is_some();
        list.of(publisher).is_none() && (is_free || list.unseen_and_gone().is_some())
    }

    /// Frees the connection of the publisher that has gone first and that the reader has not seen,
    /// as it does not take: its samples are lost. Without it, a publisher that is started again and
    /// again would find no room at last.
    #[cold]
    fn give_up(&self, list: &mut List) {
        let Some(at) = list.unseen_and_gone() else { return };
        let publisher = list.begun.remove(at);
        let SubscriptionHead { counters, .. } = self.memory.head();
        counters.count_lost(publisher.offered(&self.qos), LossCause::Overwritten);
        self.remove(list, publisher.id);
    }

    fn too_many_publishers(&self, topic: &Topic) -> Error {
        let limit = self.memory.connections();
        let what = match limit {
            CONNECTIONS_MAX => "publishers of one subscriber",
            _ => {
                "publishers of one subscriber (raise publishers_max; publishers that have gone \
                 and whose samples the subscriber has begun to take count until it has taken all)"
            }
        };
        Error::TooMany { topic: Some(topic.name.clone()), what, limit: u64::from(limit) }
    }

    /// The publisher of a connection.
    pub(super) fn publisher_of(&self, connection: u32) -> EndpointId {
        self.memory.connection(connection).publisher.load(Ordering::Relaxed)
    }

    /// The publisher now looks at this subscriber: the subscriber reads samples from `start` on.
    /// False if it is not known.
    pub(super) fn begin(&self, publisher: EndpointId, start: u64) -> bool {
        let mut list = self.list();
        let Some(known) = list.of(publisher).cloned() else { return false };
        known.start.store(start, Ordering::Relaxed);
        list.begun.push(known);
        true
    }

    /// The publisher has a further slot segment. The reader gets no notice.
    pub(crate) fn map_segment(
        &self,
        publisher: EndpointId,
        number: u32,
        slot_bytes: u64,
        slots: u32,
        fd: OwnedFd,
    ) -> Result<(), Error> {
        let known = self.list().of(publisher).cloned();
        known.map_or(Ok(()), |known| known.add_segment(number, slot_bytes, slots, fd))
    }

    /// Cancels the match with a publisher that has a connection. The reader has not seen the
    /// publisher.
    pub(crate) fn publisher_never_came(&self, publisher: EndpointId) {
        let removed = self.remove(&mut self.list(), publisher);
        drop(removed); // not under the lock: its drop unmaps it
    }

    /// The publisher has left or died. Its published samples can still be read.
    pub(super) fn publisher_gone(&self, publisher: EndpointId) {
        if let Some(known) = self.list().of(publisher) {
            known.gone.store(true, Ordering::Release);
        }
    }

    /// How many samples the publisher has published, and how often it has asserted itself.
    pub(super) fn progress(&self, publisher: EndpointId) -> Option<(u64, u64)> {
        let list = self.list();
        let head = list.of(publisher)?.head();
        let asserted = head.asserted.load(Ordering::Relaxed);
        Some((head.published.load(Ordering::Relaxed), asserted))
    }

    /// The CPU that a publisher last ran on.
    pub(crate) fn cpu_of(&self, connection: u32) -> Option<u64> {
        Some(self.list().at(connection)?.head().cpu.load(Ordering::Relaxed))
    }

    /// Frees the connections of publishers that have gone and have been read to the end. Borrowed
    /// samples stay mapped.
    pub(super) fn forget_finished(&self, borrowed: &Borrowed) {
        self.forget_finished_of(&mut self.list(), borrowed);
    }

    fn forget_finished_of(&self, list: &mut List, borrowed: &Borrowed) {
        list.lenders.retain(|(mark, _)| borrowed.has_mark(*mark));
        // ORDER: acquire pairs with the release in `Reader`: the reader takes no hold of it any
        // more, and the holds it took are announced.
        let finished = list.known().filter(|known| known.finished.load(Ordering::Acquire));
        for publisher in finished.cloned().collect::<Vec<_>>() {
            let is_free = |mark: &u64| list.lenders.iter().all(|(used, _)| used != mark);
            let Some(mark) = hold_marks().find(is_free) else { return };
            if borrowed.mark(publisher.connection, mark) {
                list.lenders.push((mark, publisher.clone()));
            }
            self.remove(list, publisher.id);
        }
    }

    fn remove(&self, list: &mut List, publisher: EndpointId) -> Option<Arc<RemotePublisher>> {
        let number = list.of(publisher)?.connection;
        let removed = list.leave(number);
        self.memory.connection(number).publisher.store(0, Ordering::Relaxed);
        if let Some(fd) = &self.descriptor {
            fd.disconnect(number);
        }
        removed
    }

    /// Ends the reading: reliable publishers need not wait. Borrowed samples stay announced.
    pub(crate) fn finish(&self) {
        let mut list = self.list();
        list.finished = true;
        for publisher in list.known() {
            let reading = &self.memory.connection(publisher.connection).reading;
            reading.store(FINISHED, Ordering::Release);
            wait::wake(reading);
        }
    }
}
