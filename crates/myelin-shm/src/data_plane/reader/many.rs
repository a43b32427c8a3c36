//! A reader of many publishers: it looks at those that have said that they have published, in turn, and
//! at each empty take at one more, lest a hostile one silence another.

use crate::sync::{Ordering, fence, few};

use super::Reader;
use crate::data_plane::ready::Numbers;
use crate::data_plane::taken::Taken;
use crate::error::Error;
use crate::limits::CONNECTIONS_MAX;
use crate::topic::EndpointId;

/// What a reader knows of them besides who is due.
pub(super) struct Many {
    numbers: Numbers,
    /// Where in the reader's `connections` each of them is.
    places: [u16; CONNECTIONS_MAX as usize],
    /// The number from which the round under way goes on.
    turn: u32,
    /// Where the last look was at one that had said nothing.
    swept: usize,
    /// Where the last sample came from.
    pub(super) last: usize,
}

impl Many {
    fn has(&self, number: u32) -> bool {
        self.numbers[number as usize / 64] >> (number % 64) & 1 != 0
    }

    /// The next one to be looked at though it has said nothing. None in a model, which has to see that
    /// they do not do without their bits.
    fn sweep(&mut self, publishers: usize) -> Option<usize> {
        self.swept = if self.swept + 1 < publishers { self.swept + 1 } else { 0 };
        (!cfg!(loom)).then_some(self.swept)
    }
}

impl Reader {
    /// After `connections` has changed: tells many publishers from few. All of many are due.
    pub(super) fn sort_out(&mut self) {
        if self.connections.len() <= few() {
            self.many = None;
            self.shared.use_ready(None);
            return;
        }
        let (mut numbers, mut places) = (Numbers::default(), [0; CONNECTIONS_MAX as usize]);
        for (publisher, place) in self.connections.iter().zip(0..) {
            let number = publisher.source.connection as usize;
            numbers[number / 64] |= 1 << (number % 64);
            places[number] = place;
        }
        self.shared.use_ready(Some(&numbers));
        let (turn, swept, last) =
            self.many.as_ref().map_or((0, 0, 0), |many| (many.turn, many.swept, many.last));
        self.many = Some(Box::new(Many { numbers, places, turn, swept, last }));
        // ORDER: pairs with P7: a publisher has seen that it is to set its bit, or we see its sample.
        fence(Ordering::SeqCst);
    }

    #[inline(never)]
    pub(super) fn take_of_many(&mut self) -> Result<Option<Taken>, Error> {
        if let Some(taken) = self.take_due()? {
            return Ok(Some(taken));
        }
        // The next round, of those that have said something meanwhile.
        let Some(many) = &mut self.many else { return Ok(None) };
        many.turn = 0;
        self.shared.due().take_ready(self.shared.ready(), &many.numbers);
        if let Some(taken) = self.take_due()? {
            return Ok(Some(taken));
        }
        self.take_untold()
    }

    /// Takes from the next that is due and has something.
    #[inline(always)]
    fn take_due(&mut self) -> Result<Option<Taken>, Error> {
        while let Some(many) = &mut self.many
            && let Some(number) = self.shared.due().first_from(many.turn)
        {
            let at = usize::from(many.places[number as usize]);
            (many.turn, many.last) = (number + 1, at);
            if let Some(taken) = self.take_from(at)? {
                return Ok(Some(taken));
            }
            // One of which a slot segment has not come yet has something all the same.
            if !self.connections[at].lacks_memory() {
                self.shared.due().remove(number);
            }
        }
        Ok(None)
    }

    /// It is the same one's turn again.
    pub(super) fn give_turn_back(&mut self) {
        if let Some(many) = &mut self.many {
            many.turn = many.turn.saturating_sub(1);
        }
    }

    /// Takes from one of those that are not due, another one each time.
    fn take_untold(&mut self) -> Result<Option<Taken>, Error> {
        let publishers = self.connections.len();
        let swept = self.many.as_mut().and_then(|many| many.sweep(publishers));
        match swept {
            Some(at) if self.is_untold(at) => self.take_from(at),
            _ => Ok(None),
        }
    }

    /// Whether a publisher has something without having said so; then it is due.
    #[inline(always)]
    fn is_untold(&mut self, at: usize) -> bool {
        let Some(publisher) = self.connections.get_mut(at) else { return false };
        let is_untold = publisher.is_ready(false);
        if is_untold {
            self.shared.due().insert(publisher.source.connection);
        }
        is_untold
    }

    /// Whether a take would find something.
    #[inline(never)]
    pub(super) fn is_ready_of_many(&mut self) -> bool {
        if self.is_due_ready() {
            return true;
        }
        let publishers = self.connections.len();
        let Some(many) = &mut self.many else { return false };
        self.shared.due().take_ready(self.shared.ready(), &many.numbers);
        let swept = many.sweep(publishers);
        self.is_due_ready() || swept.is_some_and(|at| self.is_untold(at))
    }

    fn is_due_ready(&mut self) -> bool {
        let Reader { shared, connections, many: Some(many), .. } = self else { return false };
        let mut next = 0;
        while let Some(number) = shared.due().first_from(next) {
            let at = usize::from(many.places[number as usize]);
            if connections[at].is_ready(false) {
                return true;
            }
            if !connections[at].lacks_memory() {
                shared.due().remove(number);
            }
            next = number + 1;
        }
        false
    }

    /// The publisher of this connection is due.
    pub(super) fn is_told_of(&self, number: u32) {
        if self.many.as_ref().is_some_and(|many| many.has(number)) {
            self.shared.due().insert(number);
        }
    }

    /// Looks at all of its publishers next, whatever they have said.
    pub(crate) fn look_at_all(&mut self) {
        if let Some(many) = &self.many {
            self.shared.due().fill(&many.numbers);
        }
    }

    /// Looks at a publisher next that may have published without saying so: it is in this very thread.
    pub(crate) fn look_at(&mut self, publisher: EndpointId) {
        if self.many.is_some() {
            let its = self.connections.iter().find(|it| it.source.id == publisher);
            its.into_iter().for_each(|it| self.shared.due().insert(it.source.connection));
        }
    }
}
