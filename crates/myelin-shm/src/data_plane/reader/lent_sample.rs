//! A sample that its publisher has just published in this thread, lent to a callback without a take.

use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::sync::Arc;

use super::Reader;
use crate::data_plane::publisher_cursor::PublisherCursor;
use crate::data_plane::raw_sample::{Payload, PublishedSample, RawSample};
use crate::data_plane::subscription::SubscriptionState;

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
        self.shared.borrowed.drop_lent(self.hold);
    }
}

impl Reader {
    /// Whether a sample that has just been published in this thread is the next one to take; it
    /// then counts as taken. Otherwise [`take`](Reader::take) finds it in its turn, if it is for
    /// this subscriber at all.
    #[inline(always)]
    pub(crate) fn pass(&mut self, published: &PublishedSample) -> bool {
        let cursor = self.cursors.iter_mut().find(|cursor| cursor.is_next(published));
        let is_next = cursor.map(PublisherCursor::go_on).is_some();
        if is_next {
            self.takes.count(published.time_ns);
        }
        is_next
    }

    /// Like [`pass`](Self::pass) for a sample in a slot, which is held meanwhile.
    #[inline(always)]
    pub(crate) fn lend(
        &mut self,
        published: &PublishedSample,
        length: u64,
        place: u64,
    ) -> Option<LentSample<'_>> {
        let Reader { shared, cursors, takes, .. } = self;
        let cursor = cursors.iter_mut().find(|cursor| cursor.is_next(published))?;
        let pointer = cursor.slot(length, place)?;
        let hold = shared.borrowed.hold(cursor.connection(), published.sequence)?;
        cursor.go_on();
        takes.count(published.time_ns);
        let payload = Payload::Slot { pointer, hold, shared: Arc::as_ptr(shared) };
        let taken = RawSample::lent(published, length as usize, payload);
        Some(LentSample { taken: ManuallyDrop::new(taken), shared, hold })
    }
}
