//! The additional functions of a callback's reader: it takes a sample that its publisher has just
//! published in this thread, and falls asleep without waiting.

use crate::sync::Ordering;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::sync::Arc;

use super::Reader;
use crate::data_plane::publisher_cursor::PublisherCursor;
use crate::data_plane::raw_sample::Payload;
use crate::data_plane::raw_sample::PublishedSample;
use crate::data_plane::subscription::{RawSample, SubscriptionState};
use crate::topic::EndpointId;

/// A sample in a slot, lent for the length of a call.
pub(crate) struct LentSample<'a> {
    taken: ManuallyDrop<RawSample>,
    shared: &'a SubscriptionState,
    hold: u32,
}

impl Deref for LentSample<'_> {
    type Target = RawSample;

    #[inline(always)]
    fn deref(&self) -> &RawSample {
        &self.taken
    }
}

impl Drop for LentSample<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.shared.drop_lent(self.hold);
    }
}

impl Reader {
    /// Whether a sample that has just been published in this thread is the next one to take; it
    /// then counts as taken. Otherwise [`take`](Reader::take) finds it in its turn, if it is for
    /// this subscriber at all.
    #[inline(always)]
    pub(crate) fn pass(&mut self, fresh: &PublishedSample) -> bool {
        let incoming = self.connections.iter_mut().find(|it| it.is_next(fresh));
        incoming.map(PublisherCursor::go_on).is_some()
    }

    /// Like [`pass`](Self::pass) for a sample in a slot, which is held meanwhile.
    #[inline(always)]
    pub(crate) fn lend(
        &mut self,
        fresh: &PublishedSample,
        length: u64,
        place: u64,
    ) -> Option<LentSample<'_>> {
        let Reader { shared, connections, .. } = self;
        let incoming = connections.iter_mut().find(|it| it.is_next(fresh))?;
        let pointer = incoming.slot(length, place)?;
        let hold = shared.free_hold()?;
        shared.take_hold(hold, incoming.source.connection, fresh.sequence);
        incoming.go_on();
        let payload = Payload::Slot { pointer, hold, shared: Arc::as_ptr(shared) };
        let taken = RawSample::lent(fresh, length as usize, payload);
        Some(LentSample { taken: ManuallyDrop::new(taken), shared, hold })
    }

    /// Whether publishers have come or gone, or another thread has requested a look.
    #[inline(always)]
    pub(crate) fn has_news(&self) -> bool {
        // ORDER: acquire pairs with the release in `look_again`: everything done before is seen.
        self.shared.changed.load(Ordering::Acquire)
    }

    /// Whether a take would find something.
    pub(crate) fn has_more(&mut self) -> bool {
        self.is_ready(false)
    }

    /// Updates the list of publishers; returns a number that changes when the list does.
    pub(crate) fn look_at_publishers(&mut self) -> u32 {
        self.keep_up();
        self.changes
    }

    /// Whether `is_such` is true for one of its publishers.
    pub(crate) fn has_publisher(&self, is_such: impl Fn(EndpointId) -> bool) -> bool {
        self.connections.iter().any(|publisher| is_such(publisher.source.id))
    }
}
