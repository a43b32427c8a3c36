//! The choice among many publishers: those with a ready bit, in turn. If none of them has anything,
//! one more publisher is looked at, so that a hostile one cannot silence another.

use crate::data_plane::publisher_cursor::PublisherCursor;
use crate::data_plane::subscription::SubscriptionState;
use crate::sync::{Ordering, fence};

/// A reader's knowledge about many publishers, besides which ones are due.
pub(super) struct Many {
    /// A bit for each connection.
    numbers: Vec<u64>,
    /// The position of each publisher in the reader's cursors, by connection.
    places: Vec<u16>,
    /// The number from which the current round goes on.
    turn: u32,
    /// The last publisher without a ready bit that was looked at.
    swept: usize,
    /// The cursor of the last sample.
    pub(super) last: usize,
}

impl Many {
    /// All of them are due. `before`: of the publishers before a change.
    pub(super) fn new(
        cursors: &[PublisherCursor],
        shared: &SubscriptionState,
        before: Option<&Many>,
    ) -> Many {
        let all = cursors.iter().map(|cursor| cursor.connection() as usize);
        let end = all.max().map_or(0, |last| last + 1);
        let (mut numbers, mut places) = (vec![0; end.div_ceil(64)], vec![0; end]);
        for (cursor, place) in cursors.iter().zip(0..) {
            let number = cursor.connection() as usize;
            numbers[number / 64] |= 1 << (number % 64);
            places[number] = place;
        }
        shared.use_ready(&numbers);
        // ORDER: pairs with P7: either a publisher has seen that it must set its bit, or we see its
        // sample.
        fence(Ordering::SeqCst);
        let (turn, swept, last) =
            before.map_or((0, 0, 0), |many| (many.turn, many.swept, many.last));
        Many { numbers, places, turn, swept, last }
    }

    fn place(&self, number: u32) -> usize {
        usize::from(self.places[number as usize])
    }

    /// Goes on to the next publisher that has something.
    #[inline(never)]
    pub(super) fn next(
        &mut self,
        cursors: &mut [PublisherCursor],
        shared: &SubscriptionState,
    ) -> Option<usize> {
        let number = self.find_due(cursors, shared)?;
        self.turn = number + 1;
        self.last = self.place(number);
        Some(self.last)
    }

    /// Whether a take would find something.
    #[inline(never)]
    pub(super) fn is_ready(
        &mut self,
        cursors: &mut [PublisherCursor],
        shared: &SubscriptionState,
    ) -> bool {
        self.find_due(cursors, shared).is_some()
    }

    /// Turns to the publisher whose sample has been there longest; returns since when.
    pub(super) fn turn_to_oldest(
        &mut self,
        cursors: &mut [PublisherCursor],
        shared: &SubscriptionState,
    ) -> Option<u64> {
        let ready = shared.readiness.ready_list();
        ready.take_ready(shared.sleeper.ready(), &self.numbers);
        let (mut oldest, mut from) = (None, 0);
        while let Some(number) = ready.first_from(from) {
            let since_ns = cursors[self.place(number)].since_ns();
            oldest = oldest.into_iter().chain(since_ns.map(|since_ns| (since_ns, number))).min();
            from = number + 1;
        }
        if let Some((since_ns, number)) = oldest {
            self.turn = number;
            return Some(since_ns);
        }
        // A publisher without samples is not due any more.
        let number = self.find_due(cursors, shared)?;
        self.turn = number;
        cursors[self.place(number)].since_ns()
    }

    /// The next publisher that has something: first in the rest of the current round, then among
    /// all that have set their bits meanwhile.
    #[inline(always)]
    fn find_due(
        &mut self,
        cursors: &mut [PublisherCursor],
        shared: &SubscriptionState,
    ) -> Option<u32> {
        let ready = shared.readiness.ready_list();
        let mut find_from = |first| {
            let mut from = first;
            while let Some(number) = ready.first_from(from) {
                let cursor = &mut cursors[self.place(number)];
                if cursor.is_ready(false) {
                    return Some(number);
                }
                // A publisher whose slot segment has not come yet has something nevertheless.
                if !cursor.lacks_memory() {
                    ready.remove(number);
                    shared.has_read_all_of(cursor.remote());
                }
                from = number + 1;
            }
            None
        };
        if let Some(number) = find_from(self.turn) {
            return Some(number);
        }
        ready.take_ready(shared.sleeper.ready(), &self.numbers);
        find_from(0).or_else(|| self.sweep(cursors, shared))
    }

    /// Looks at a publisher that is not due, another one each time. In a model it looks at none,
    /// because the model must show that the bits are needed.
    #[inline(always)]
    fn sweep(
        &mut self,
        cursors: &mut [PublisherCursor],
        shared: &SubscriptionState,
    ) -> Option<u32> {
        self.swept = if self.swept + 1 < cursors.len() { self.swept + 1 } else { 0 };
        let cursor = &mut cursors[self.swept];
        if cfg!(loom) || !cursor.is_ready(false) {
            return None;
        }
        let number = cursor.connection();
        shared.readiness.ready_list().insert(number);
        Some(number)
    }

    /// Whether this is the connection of one of them.
    pub(super) fn has(&self, number: u32) -> bool {
        let bits = self.numbers.get(number as usize / 64).copied().unwrap_or(0);
        bits >> (number % 64) & 1 != 0
    }

    /// Makes the next take look at all publishers, with or without ready bits.
    pub(super) fn look_at_all(&self, shared: &SubscriptionState) {
        shared.readiness.ready_list().fill(&self.numbers);
    }
}
