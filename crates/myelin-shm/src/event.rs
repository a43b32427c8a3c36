//! Events: news for an endpoint's user about the other side, and their queue.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::limits::{EVENTS_MAX, EVENTS_UNTAKEN_MAX};
use crate::listener::Listener;
use crate::record::Mismatch;
use crate::sync::lock;
use crate::topic::EndpointId;
use crate::waiting::cancel;

/// An event of a match. `endpoint` is the other side's id, `pid` its process: 0 if the process is
/// in a process namespace that is not visible here, or on another host.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// Samples flow from now on.
    Matched {
        /// The other side.
        endpoint: EndpointId,
        /// Its process.
        pid: u32,
    },
    /// No more samples flow.
    Unmatched {
        /// The other side.
        endpoint: EndpointId,
        /// Its process.
        pid: u32,
        /// The process crashed or was killed. For an endpoint of another host this is unknown, and
        /// false.
        died: bool,
    },
    /// At a subscriber: samples flow, but the publisher offers less than requested.
    QosReduced {
        /// The publisher.
        endpoint: EndpointId,
        /// Its process.
        pid: u32,
        /// The reduced setting.
        mismatch: Mismatch,
        /// The same for people, and what to do.
        reason: String,
    },
    /// At a reliable subscriber: samples were lost, because it was late and its publisher has
    /// passed it over, or because the publisher is best effort. The event comes when the next
    /// sample is taken.
    Lost {
        /// The publisher.
        endpoint: EndpointId,
        /// How many.
        samples: u64,
    },
    /// At a reliable publisher: a subscriber has not read for the time limit. No publish waits for
    /// it until it has caught up, and it loses the samples that it misses meanwhile. Once each
    /// time.
    PassedOver {
        /// The subscriber.
        endpoint: EndpointId,
        /// Its process.
        pid: u32,
    },
    /// At a reliable publisher: a subscriber that was passed over has caught up; from now on it
    /// loses nothing.
    CaughtUp {
        /// The subscriber.
        endpoint: EndpointId,
        /// Its process.
        pid: u32,
    },
    /// The other side is on the same topic and cannot be matched: it has another type, requests
    /// more than the publisher offers, or has another version.
    Incompatible {
        /// The other side; its node if the version differs.
        endpoint: EndpointId,
        /// Its process.
        pid: u32,
        /// The setting that differs: the same at both ends. `None`: the version, or a reason of
        /// another route.
        mismatch: Option<Mismatch>,
        /// Why, and what to do.
        reason: String,
    },
    /// The two sides fit, and one has no room for the match: it has as many publishers or
    /// subscribers as it can have, or lacks memory or file descriptors. The match is tried again
    /// when there is room.
    Refused {
        /// The other side.
        endpoint: EndpointId,
        /// Its process.
        pid: u32,
        /// Why, and what to do.
        reason: String,
    },
    /// No sample was published within the deadline. Once for each silence. At a publisher, the
    /// endpoint is the publisher itself.
    DeadlineMissed {
        /// The publisher.
        endpoint: EndpointId,
    },
    /// The publisher has neither published nor asserted its liveliness within the lease. Once for
    /// each silence.
    LivelinessLost {
        /// The publisher.
        endpoint: EndpointId,
    },
    /// The publisher is back.
    LivelinessRegained {
        /// The publisher.
        endpoint: EndpointId,
    },
    /// A best-effort sample is larger than a subscriber's host can receive at once: it may always
    /// be lost there. Once for each match, at the publisher.
    BufferTooSmall {
        /// The subscriber.
        endpoint: EndpointId,
        /// Bytes of the sample.
        bytes: u64,
        /// What to do.
        remedy: String,
    },
    /// The other side wrote invalid data and has been disconnected.
    Corrupt {
        /// The other side.
        endpoint: EndpointId,
    },
}

/// A function of the library that gets each event as it comes, with locks held.
pub(crate) type OnEvent = Box<dyn Fn(&Event) + Send + Sync>;

/// An endpoint's events and the number of its matches. Any thread may call it.
#[derive(Default)]
pub(crate) struct Inbox {
    content: Mutex<Content>,
    changed: Condvar,
    /// Whether there is an event for which the subscriber's wait has to end.
    urgent: AtomicBool,
}

#[derive(Default)]
struct Content {
    events: VecDeque<Event>,
    /// Whether its user has taken events, or listens for them.
    is_used: bool,
    lost: u64,
    matched: usize,
    on_event: Option<Arc<OnEvent>>,
    listener: Option<Listener>,
}

impl Inbox {
    /// Adds an event; a match or its end is also counted.
    pub(crate) fn push(&self, event: Event) {
        let mut content = self.content();
        match event {
            Event::Matched { .. } => content.matched += 1,
            Event::Unmatched { .. } => {
                content.matched = content
                    .matched
                    .checked_sub(1)
                    .expect("an endpoint matches before it unmatches");
            }
            _ => {}
        }
        // A match that fails again and again for the same reason is reported once.
        let is_again = matches!(event, Event::Incompatible { .. } | Event::Refused { .. });
        if is_again && content.events.back() == Some(&event) {
            return;
        }
        let max = if content.is_used { EVENTS_MAX } else { EVENTS_UNTAKEN_MAX };
        if content.events.len() == max {
            content.events.pop_front();
            content.lost += 1;
        }
        let on_event = content.on_event.clone().map(|call| (call, event.clone()));
        content.events.push_back(event);
        content.listener.iter().for_each(Listener::raise);
        drop(content);
        self.changed.notify_all();
        if let Some((call, event)) = on_event {
            call(&event);
        }
    }

    /// Calls `call` with every event from now on, once it can be taken. The newest call counts.
    pub(crate) fn on_event(&self, call: OnEvent) {
        let mut content = self.content();
        content.is_used = true;
        let before = content.on_event.replace(Arc::new(call));
        drop(content);
        drop(before); // not under the lock
    }

    /// Raises the listener from now on when there is an event to take, and now if there are events
    /// already. The previous listener ends, as described at its drop.
    pub(crate) fn listen(&self, listener: Option<Listener>) {
        let mut content = self.content();
        if !content.events.is_empty() {
            listener.iter().for_each(Listener::raise);
        }
        content.is_used |= listener.is_some();
        let before = std::mem::replace(&mut content.listener, listener);
        drop(content);
        drop(before); // not under the lock: it waits for the user's function
    }

    /// Takes all events, oldest first.
    pub(crate) fn drain(&self) -> Vec<Event> {
        let mut content = self.content();
        self.set_urgent(false);
        content.is_used = true;
        std::mem::take(&mut content.events).into()
    }

    /// Marks that a pushed event must end a wait, or that a wait has been ended by it.
    pub(crate) fn set_urgent(&self, urgent: bool) {
        // ORDER: Release pairs with the acquire in `is_urgent`: the event is there.
        self.urgent.store(urgent, Ordering::Release);
    }

    /// Whether a wait has to end.
    #[inline(always)]
    pub(crate) fn is_urgent(&self) -> bool {
        self.urgent.load(Ordering::Acquire)
    }

    /// How many events were dropped untaken.
    pub(crate) fn lost(&self) -> u64 {
        self.content().lost
    }

    /// How many matches there are now.
    pub(crate) fn matched(&self) -> usize {
        self.content().matched
    }

    /// Waits until there are `count` matches. False if there are not after `limit`.
    pub(crate) fn wait_for_match(&self, count: usize, limit: Duration) -> bool {
        let begin = Instant::now();
        let is_missing = |content: &mut Content| content.matched < count;
        loop {
            let left = limit.saturating_sub(begin.elapsed());
            let slice = cancel::slice(left);
            let waited = self.changed.wait_timeout_while(self.content(), slice, is_missing);
            let (content, ended) = waited.unwrap_or_else(PoisonError::into_inner);
            drop(content);
            if !ended.timed_out() {
                return true;
            }
            if slice == left || cancel::is_cancelled() {
                return false;
            }
        }
    }

    fn content(&self) -> MutexGuard<'_, Content> {
        lock(&self.content)
    }
}

impl std::fmt::Debug for Inbox {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Content { events, lost, matched, .. } = &*self.content();
        let mut to = to.debug_struct("Inbox");
        to.field("events", events).field("lost", lost).field("matched", matched);
        to.finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_events_are_dropped_and_counted() {
        let inbox = Inbox::default();
        for (lost_before, max) in [(0, EVENTS_UNTAKEN_MAX), (3, EVENTS_MAX)] {
            for endpoint in 0..max as u64 + 3 {
                inbox.push(Event::Corrupt { endpoint });
            }
            assert_eq!(inbox.lost(), lost_before + 3);
            let events = inbox.drain();
            assert_eq!(events.len(), max);
            assert_eq!(events[0], Event::Corrupt { endpoint: 3 });
            assert!(inbox.drain().is_empty());
        }
        let awaited = Inbox::default();
        awaited.on_event(Box::new(|_| {}));
        (0..EVENTS_MAX as u64).for_each(|endpoint| awaited.push(Event::Corrupt { endpoint }));
        assert_eq!((awaited.lost(), awaited.drain().len()), (0, EVENTS_MAX));
    }

    #[test]
    fn matches_are_counted_whether_or_not_events_are_taken() {
        let inbox = Inbox::default();
        assert!(!inbox.wait_for_match(1, Duration::ZERO));
        inbox.push(Event::Matched { endpoint: 1, pid: 1 });
        assert!(inbox.wait_for_match(1, Duration::ZERO));
        inbox.push(Event::Unmatched { endpoint: 1, pid: 1, died: false });
        assert_eq!(inbox.matched(), 0);
    }
}
