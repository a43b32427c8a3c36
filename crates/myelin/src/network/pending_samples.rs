//! Samples from other hosts that wait for room in a subscriber's queue.

use std::collections::VecDeque;

/// A queue with a maximum of messages and one of bytes. A publisher that ignores the request to
/// wait fills it, and nothing more.
#[derive(Debug)]
pub(super) struct PendingSamples<M> {
    messages: VecDeque<(M, usize)>,
    bytes: usize,
}

impl<M> Default for PendingSamples<M> {
    fn default() -> Self {
        PendingSamples { messages: VecDeque::new(), bytes: 0 }
    }
}

impl<M> PendingSamples<M> {
    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.messages.len()
    }

    /// Whether no further sample may wait.
    pub(super) fn is_full(&self) -> bool {
        self.len() >= WAITING_MAX || self.bytes >= WAITING_BYTES_MAX
    }

    pub(super) fn front(&self) -> Option<&M> {
        self.messages.front().map(|(message, _)| message)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &M> {
        self.messages.iter().map(|(message, _)| message)
    }

    pub(super) fn pop_front(&mut self) -> Option<M> {
        let (message, bytes) = self.messages.pop_front()?;
        self.bytes -= bytes;
        Some(message)
    }

    pub(super) fn push_front(&mut self, message: M, bytes: usize) {
        self.messages.push_front((message, bytes));
        self.bytes += bytes;
    }

    pub(super) fn push_back(&mut self, message: M, bytes: usize) {
        self.messages.push_back((message, bytes));
        self.bytes += bytes;
    }

    /// Keeps those of the first `count` for which `stays` is true, and all others. Returns how many
    /// were removed.
    pub(super) fn retain_of_first(&mut self, count: usize, stays: impl Fn(&M) -> bool) -> usize {
        let (before, mut at) = (self.len(), 0);
        let bytes = &mut self.bytes;
        self.messages.retain(|(message, its)| {
            at += 1;
            let stays = at > count || stays(message);
            *bytes -= if stays { 0 } else { *its };
            stays
        });
        before - self.len()
    }
}

/// An honest publisher stops on request, and has less than this under way.
const WAITING_MAX: usize = 65_536;
const WAITING_BYTES_MAX: usize = 256 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queue_is_bounded_by_messages_and_bytes() {
        let mut small = PendingSamples::default();
        let count = (0..).take_while(|number| {
            let has_room = !small.is_full();
            small.push_back(*number, 100);
            has_room
        });
        assert_eq!(count.count(), WAITING_MAX);
        let mut large = PendingSamples::default();
        while !large.is_full() {
            large.push_back((), 100 << 20);
        }
        assert_eq!(large.len(), 3, "one may exceed it, so that any fits");
        large.pop_front();
        assert!(!large.is_full());
    }

    #[test]
    fn removed_messages_are_not_counted() {
        let mut waiting = PendingSamples::default();
        (0..6).for_each(|number| waiting.push_back(number, 1 << number));
        assert_eq!(waiting.retain_of_first(4, |number| number % 2 == 0), 2);
        assert_eq!((waiting.len(), waiting.bytes), (4, 1 + 4 + 16 + 32));
        let first = waiting.pop_front().unwrap();
        waiting.push_front(first, 1);
        assert_eq!((waiting.front(), waiting.bytes), (Some(&0), 53));
        while waiting.pop_front().is_some() {}
        assert!(waiting.is_empty() && waiting.bytes == 0);
    }
}
