//! What a client has not been sent yet.
//!
//! A client that reads too slowly loses whole messages: of the topic that has too many, the oldest.
//! Nobody waits for it. A rare message is not pushed out by many large ones of another topic.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::channel::Message;

/// Of one client: filled by many threads, emptied by one.
#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Frames that are never dropped.
    control: VecDeque<Frame>,
    control_bytes: usize,
    /// The answer of the WebSocket's reader, of which only the newest counts: a pong may answer several
    /// pings (RFC 6455, 5.5.3), and nothing follows a close.
    answer: Option<Frame>,
    /// Of which only the newest counts.
    time: Option<Frame>,
    /// All messages, by their order.
    messages: BTreeMap<u64, (u32, Arc<Message>)>,
    channels: HashMap<u64, Waiting>,
    bytes: usize,
    next: u64,
    losses: BTreeMap<u64, Losses>,
    is_closed: bool,
}

/// The messages of a channel that wait.
#[derive(Default)]
struct Waiting {
    order: VecDeque<u64>,
    bytes: usize,
}

/// Messages of a channel that a client did not get.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Losses {
    /// The client read too slowly.
    pub(super) client: u64,
    /// They were overwritten before this program took them.
    pub(super) publisher: u64,
}

/// A frame, except for its head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    Text(Arc<str>),
    Binary(Vec<u8>),
    /// With its head.
    Raw(Vec<u8>),
}

/// What comes next.
pub(super) enum Next {
    Frame(Frame),
    /// Of the client's subscription.
    Message(u32, Arc<Message>),
    /// The time is over.
    Nothing,
    Closed,
}

impl Queue {
    /// A frame that has to arrive. A client that has too many of them is disconnected.
    pub(super) fn push_frame(&self, frame: Frame) {
        let mut state = self.state();
        state.control_bytes += frame.bytes();
        state.control.push_back(frame);
        if state.control_bytes > CONTROL_BYTES_MAX {
            (state.control_bytes, state.is_closed) = (0, true);
            state.control.clear();
        }
        self.changed.notify_one();
    }

    /// A frame that is dropped if the client reads none of those before it.
    pub(super) fn push_status(&self, frame: Frame) {
        if self.state().control_bytes < STATUS_BYTES_MAX {
            self.push_frame(frame);
        }
    }

    /// An answer of the WebSocket's reader, in whose place a later one is sent if the client is slow.
    pub(super) fn push_answer(&self, frame: Frame) {
        self.state().answer = Some(frame);
        self.changed.notify_one();
    }

    /// A frame in whose place a later one is sent if the client is slow.
    pub(super) fn push_time(&self, frame: Frame) {
        self.state().time = Some(frame);
        self.changed.notify_one();
    }

    /// A message for a subscription; the oldest ones are dropped where there is no room.
    pub(super) fn push(&self, subscription: u32, message: Arc<Message>) {
        let mut state = self.state();
        if state.is_closed {
            return;
        }
        let (channel, bytes, lost) = (message.channel.id, message.bytes(), message.lost_before);
        if lost > 0 {
            state.losses.entry(channel).or_default().publisher += lost;
        }
        while let Some(waiting) = state.channels.get(&channel)
            && (waiting.order.len() >= CHANNEL_MESSAGES_MAX
                || waiting.bytes + bytes > CHANNEL_BYTES_MAX)
        {
            state.drop_oldest(channel);
        }
        while state.bytes > 0 && state.bytes + bytes > CLIENT_BYTES_MAX {
            let most = state.channels.iter().max_by_key(|(_, it)| it.bytes).map(|(id, _)| *id);
            state.drop_oldest(most.unwrap_or(channel));
        }
        let order = state.next;
        state.next += 1;
        state.messages.insert(order, (subscription, message));
        state.bytes += bytes;
        let waiting = state.channels.entry(channel).or_default();
        waiting.order.push_back(order);
        waiting.bytes += bytes;
        self.changed.notify_one();
    }

    /// Forgets the messages of a channel that is no longer subscribed.
    pub(super) fn forget(&self, channel: u64) {
        let mut state = self.state();
        let Some(waiting) = state.channels.remove(&channel) else { return };
        state.bytes -= waiting.bytes;
        for order in waiting.order {
            state.messages.remove(&order);
        }
    }

    /// Forgets all messages: they are of another time of a file.
    pub(super) fn forget_all(&self) {
        let mut state = self.state();
        state.messages.clear();
        state.channels.clear();
        state.bytes = 0;
    }

    /// The next frame or message; waits for it for at most `limit`.
    pub(super) fn next(&self, limit: Duration) -> Next {
        let has_nothing = |state: &mut State| {
            let State { control, answer, time, .. } = &*state;
            let has_frame = !control.is_empty() || answer.is_some() || time.is_some();
            !has_frame && state.messages.is_empty() && !state.is_closed
        };
        let waited = self.changed.wait_timeout_while(self.state(), limit, has_nothing);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        if let Some(frame) = state.control.pop_front() {
            state.control_bytes -= frame.bytes();
            return Next::Frame(frame);
        }
        if let Some(answer) = state.answer.take() {
            return Next::Frame(answer);
        }
        if state.is_closed {
            return Next::Closed;
        }
        if let Some(time) = state.time.take() {
            return Next::Frame(time);
        }
        let Some((_, (subscription, message))) = state.messages.pop_first() else {
            return Next::Nothing;
        };
        state.bytes -= message.bytes();
        state.remove_first(message.channel.id, message.bytes());
        Next::Message(subscription, message)
    }

    /// What was lost so far, by channel.
    pub(super) fn losses(&self) -> BTreeMap<u64, Losses> {
        self.state().losses.clone()
    }

    /// Ends it: frames that are there still go out, and messages do not.
    pub(super) fn close(&self) {
        self.state().is_closed = true;
        self.changed.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn drop_oldest(&mut self, channel: u64) {
        let oldest = self.channels.get(&channel).and_then(|it| it.order.front().copied());
        let Some((_, message)) = oldest.and_then(|order| self.messages.remove(&order)) else {
            return;
        };
        self.bytes -= message.bytes();
        self.losses.entry(channel).or_default().client += 1;
        self.remove_first(channel, message.bytes());
    }

    /// Of the channel's own list.
    fn remove_first(&mut self, channel: u64, bytes: usize) {
        if let Some(waiting) = self.channels.get_mut(&channel) {
            waiting.order.pop_front();
            waiting.bytes -= bytes;
            if waiting.order.is_empty() {
                self.channels.remove(&channel);
            }
        }
    }
}

impl Frame {
    fn bytes(&self) -> usize {
        match self {
            Frame::Text(text) => text.len(),
            Frame::Binary(bytes) | Frame::Raw(bytes) => bytes.len(),
        }
    }
}

/// Messages of a channel that wait for a client.
const CHANNEL_MESSAGES_MAX: usize = 512;
/// Their bytes; one message may be larger.
const CHANNEL_BYTES_MAX: usize = 16 << 20;
/// Of all channels of a client.
const CLIENT_BYTES_MAX: usize = 64 << 20;
/// Of frames that are not dropped.
const CONTROL_BYTES_MAX: usize = 64 << 20;
/// Of these, when no answer to a wrong request is added.
const STATUS_BYTES_MAX: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::channel::Channel;

    fn message(channel: &Arc<Channel>, number: u64, bytes: usize) -> Arc<Message> {
        Arc::new(Message::copied(channel.clone(), number, 0, vec![0; bytes]))
    }

    fn drain(queue: &Queue) -> Vec<(u64, u64)> {
        let mut all = Vec::new();
        while let Next::Message(_, message) = queue.next(Duration::ZERO) {
            all.push((message.channel.id, message.log_ns));
        }
        all
    }

    #[test]
    fn the_oldest_of_the_channel_that_has_most_are_dropped_and_counted() {
        let (image, rare) = (Channel::test(1), Channel::test(2));
        let queue = Queue::default();
        queue.push(7, message(&rare, 0, 100));
        for number in 0..10 {
            queue.push(8, message(&image, number, 5 << 20));
        }
        assert_eq!(queue.losses(), [(1, Losses { client: 7, publisher: 0 })].into());
        assert_eq!(drain(&queue), [(2, 0), (1, 7), (1, 8), (1, 9)]);

        for number in 0..600 {
            queue.push(7, message(&rare, number, 1));
        }
        let left = drain(&queue);
        assert_eq!((left.len(), left[0], left[511]), (512, (2, 88), (2, 599)));
        assert_eq!(queue.losses()[&2], Losses { client: 88, publisher: 0 });
    }

    #[test]
    fn all_channels_of_a_client_are_bounded_together() {
        let queue = Queue::default();
        for channel in 0..10 {
            let channel = Channel::test(channel);
            for number in 0..3 {
                queue.push(0, message(&channel, number, 5 << 20));
            }
        }
        let kept = drain(&queue);
        assert!(kept.len() == (64 / 5), "{kept:?}");
        // The newest of each is there.
        assert!((0..10).all(|it| kept.contains(&(it, 2))), "{kept:?}");
        // A message that is larger than the bound goes alone.
        let channel = Channel::test(0);
        queue.push(0, message(&channel, 8, 1 << 20));
        queue.push(0, message(&channel, 9, 80 << 20));
        assert_eq!(drain(&queue), [(0, 9)]);
    }

    #[test]
    fn frames_go_first_and_what_was_unsubscribed_is_forgotten() {
        let channel = Channel::test(1);
        let queue = Queue::default();
        queue.push(0, message(&channel, 0, 10));
        queue.push_frame(Frame::Text("first".into()));
        assert!(matches!(queue.next(Duration::ZERO), Next::Frame(Frame::Text(_))));
        queue.forget(1);
        assert!(matches!(queue.next(Duration::ZERO), Next::Nothing));
        queue.push(0, Arc::new(Message::copied(channel, 1, 5, Vec::new())));
        assert_eq!(queue.losses()[&1], Losses { client: 0, publisher: 5 });
        queue.close();
        assert!(matches!(queue.next(Duration::ZERO), Next::Closed));
    }

    #[test]
    fn a_client_with_too_many_frames_is_closed() {
        let queue = Queue::default();
        for _ in 0..65 {
            queue.push_frame(Frame::Binary(vec![0; 1 << 20]));
        }
        assert!(matches!(queue.next(Duration::ZERO), Next::Closed));
    }
}
