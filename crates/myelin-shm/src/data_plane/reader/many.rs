//! A reader of many publishers. It looks at those with a ready bit, in turn. If none of them has
//! anything, it looks at one more publisher, so that a hostile one cannot silence another.

use crate::sync::{Ordering, fence, few};

use super::Reader;
use crate::topic::EndpointId;

/// A reader's knowledge about many publishers, besides which ones are due.
pub(super) struct Many {
    /// A bit for each connection.
    numbers: Vec<u64>,
    /// The position of each publisher in the reader's `connections`, by connection.
    places: Vec<u16>,
    /// The number from which the current round goes on.
    turn: u32,
    /// The last publisher without a ready bit that was looked at.
    swept: usize,
    /// The publisher of the last sample.
    pub(super) last: usize,
}

impl Many {
    fn place(&self, number: u32) -> usize {
        usize::from(self.places[number as usize])
    }
}

impl Reader {
    /// Tells many publishers from few, after `connections` has changed. All of many publishers are
    /// due.
    pub(super) fn sort_out(&mut self) {
        if self.connections.len() <= few() {
            self.many = None;
            self.shared.use_ready(&[]);
            return;
        }
        let all = self.connections.iter().map(|publisher| publisher.source.connection as usize);
        let end = all.max().map_or(0, |last| last + 1);
        let (mut numbers, mut places) = (vec![0; end.div_ceil(64)], vec![0; end]);
        for (publisher, place) in self.connections.iter().zip(0..) {
            let number = publisher.source.connection as usize;
            numbers[number / 64] |= 1 << (number % 64);
            places[number] = place;
        }
        self.shared.use_ready(&numbers);
        let (turn, swept, last) =
            self.many.as_ref().map_or((0, 0, 0), |many| (many.turn, many.swept, many.last));
        self.many = Some(Box::new(Many { numbers, places, turn, swept, last }));
        // ORDER: pairs with P7: either a publisher has seen that it must set its bit, or we see its
        // sample.
        fence(Ordering::SeqCst);
    }

    /// Goes on to the next publisher that has something; false if none has.
    #[inline(never)]
    pub(super) fn turn_to_due(&mut self) -> bool {
        let found = self.find_due();
        let (Some(number), Some(many)) = (found, &mut self.many) else { return false };
        many.turn = number + 1;
        many.last = many.place(number);
        self.turn = many.last;
        true
    }

    /// Turns to the publisher whose sample has been there longest; returns since when.
    pub(super) fn turn_to_oldest_of_many(&mut self) -> Option<u64> {
        let Reader { shared, connections, many: Some(many), .. } = self else { return None };
        let ready = shared.ready_list();
        ready.take_ready(shared.ready(), &many.numbers);
        let (mut oldest, mut from) = (None, 0);
        while let Some(number) = ready.first_from(from) {
            let since_ns = connections[many.place(number)].since_ns();
            oldest = oldest.into_iter().chain(since_ns.map(|since_ns| (since_ns, number))).min();
            from = number + 1;
        }
        if let Some((since_ns, number)) = oldest {
            many.turn = number;
            return Some(since_ns);
        }
        // A publisher without samples is not due any more.
        let number = self.find_due()?;
        let Reader { connections, many: Some(many), .. } = self else { return None };
        many.turn = number;
        connections[many.place(number)].since_ns()
    }

    /// Whether a take would find something.
    #[inline(never)]
    pub(super) fn is_ready_of_many(&mut self) -> bool {
        self.find_due().is_some()
    }

    /// The next publisher that has something: first in the rest of the current round, then among
    /// all that have set their bits meanwhile.
    #[inline(always)]
    fn find_due(&mut self) -> Option<u32> {
        let Reader { shared, connections, many: Some(many), .. } = self else { return None };
        let ready = shared.ready_list();
        let mut find_from = |first| {
            let mut from = first;
            while let Some(number) = ready.first_from(from) {
                let publisher = &mut connections[many.place(number)];
                if publisher.is_ready(false) {
                    return Some(number);
                }
                // A publisher whose slot segment has not come yet has something nevertheless.
                if !publisher.lacks_memory() {
                    ready.remove(number);
                    shared.has_read_all_of(&publisher.source);
                }
                from = number + 1;
            }
            None
        };
        if let Some(number) = find_from(many.turn) {
            return Some(number);
        }
        ready.take_ready(shared.ready(), &many.numbers);
        find_from(0).or_else(|| self.sweep())
    }

    /// Looks at a publisher that is not due, another one each time. In a model it looks at none,
    /// because the model must show that the bits are needed.
    #[inline(always)]
    fn sweep(&mut self) -> Option<u32> {
        let Reader { shared, connections, many: Some(many), .. } = self else { return None };
        many.swept = if many.swept + 1 < connections.len() { many.swept + 1 } else { 0 };
        let publisher = &mut connections[many.swept];
        if cfg!(loom) || !publisher.is_ready(false) {
            return None;
        }
        let number = publisher.source.connection;
        shared.ready_list().insert(number);
        Some(number)
    }

    /// Marks the publisher of this connection as due.
    pub(super) fn mark_due(&self, number: u32) {
        let is_it = |many: &Many| {
            let bits = many.numbers.get(number as usize / 64).copied().unwrap_or(0);
            bits >> (number % 64) & 1 != 0
        };
        if self.many.as_deref().is_some_and(is_it) {
            self.shared.ready_list().insert(number);
        }
    }

    /// Makes the next take look at all publishers, with or without ready bits.
    pub(crate) fn look_at_all(&self) {
        if let Some(many) = &self.many {
            self.shared.ready_list().fill(&many.numbers);
        }
    }

    /// Makes the next take look at a publisher without a ready bit: it may have published in this
    /// thread.
    pub(crate) fn look_at(&self, publisher: EndpointId) {
        if self.many.is_some() {
            let its = self.connections.iter().find(|it| it.source.id == publisher);
            its.into_iter().for_each(|it| self.shared.ready_list().insert(it.source.connection));
        }
    }
}
