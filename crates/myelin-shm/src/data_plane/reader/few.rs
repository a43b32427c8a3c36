//! The choice among a few publishers: each in turn.

use crate::data_plane::publisher_cursor::PublisherCursor;

/// Where the next take begins to look.
#[derive(Default)]
pub(super) struct Few {
    turn: usize,
}

impl Few {
    /// The next of so many.
    #[inline(always)]
    pub(super) fn next(&mut self, cursors: usize) -> usize {
        let at = if self.turn < cursors { self.turn } else { 0 };
        self.turn = at + 1;
        at
    }

    /// Makes the next take begin with this one.
    pub(super) fn turn_to(&mut self, at: usize) {
        self.turn = at;
    }

    /// Makes the next take begin with the cursor whose sample has been there longest; returns since
    /// when.
    pub(super) fn turn_to_oldest(&mut self, cursors: &mut [PublisherCursor]) -> Option<u64> {
        let since_ns = |(at, cursor): (usize, &mut PublisherCursor)| Some((cursor.since_ns()?, at));
        let (since_ns, at) = cursors.iter_mut().enumerate().filter_map(since_ns).min()?;
        self.turn = at;
        Some(since_ns)
    }
}
