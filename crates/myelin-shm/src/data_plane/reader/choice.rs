//! The choice of the publisher that a take looks at next.

use super::few::Few;
use super::many::Many;
use crate::data_plane::publisher_cursor::PublisherCursor;
use crate::data_plane::subscription::SubscriptionState;
use crate::sync::few;

/// A few publishers are all looked at; of many, those that have set their ready bits.
pub(super) enum Choice {
    Few(Few),
    Many(Box<Many>),
}

impl Choice {
    /// Updates itself after `cursors` has changed.
    pub(super) fn update(&mut self, cursors: &[PublisherCursor], shared: &SubscriptionState) {
        if cursors.len() > few() {
            let before = if let Choice::Many(many) = self { Some(&**many) } else { None };
            *self = Choice::Many(Box::new(Many::new(cursors, shared, before)));
            return;
        }
        shared.use_ready(&[]);
        if let Choice::Many(_) = self {
            *self = Choice::Few(Few::default());
        }
    }

    /// The cursor to take from next; `None` if none has anything.
    #[inline(always)]
    pub(super) fn next(
        &mut self,
        cursors: &mut [PublisherCursor],
        shared: &SubscriptionState,
    ) -> Option<usize> {
        match self {
            Choice::Few(few) => Some(few.next(cursors.len())),
            Choice::Many(many) => many.next(cursors, shared),
        }
    }

    /// Whether a take would find something. `again`: it found nothing a moment ago.
    #[inline(always)]
    pub(super) fn is_ready(
        &mut self,
        cursors: &mut [PublisherCursor],
        shared: &SubscriptionState,
        again: bool,
    ) -> bool {
        match self {
            Choice::Few(_) => cursors.iter_mut().any(|cursor| cursor.is_ready(again)),
            Choice::Many(many) => many.is_ready(cursors, shared),
        }
    }

    /// Makes [`next`](Self::next) return the cursor whose sample has been there longest; returns
    /// since when.
    pub(super) fn turn_to_oldest(
        &mut self,
        cursors: &mut [PublisherCursor],
        shared: &SubscriptionState,
    ) -> Option<u64> {
        match self {
            Choice::Few(few) => few.turn_to_oldest(cursors),
            Choice::Many(many) => many.turn_to_oldest(cursors, shared),
        }
    }
}
