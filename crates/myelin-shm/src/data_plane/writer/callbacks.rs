//! Running the callbacks of this process inside the publish.

use std::sync::Arc;

use super::{Payload as Published, Writer};
use crate::data_plane::remote_subscriber::RemoteSubscriber;
use crate::data_plane::taken::{self, Taken};
use crate::dispatch::callback::{Fresh, Handed, Handler, Payload};
use crate::dispatch::dispatcher;
use crate::dispatch::handlers::{self, Entered};
use crate::sync::{Step, is_taken};
use crate::topic::EndpointId;

impl Writer {
    /// P7 and P8 with callbacks in this process: they are called, all others are notified.
    #[inline(never)]
    pub(super) fn call_back(&mut self, sequence: u64, time_ns: u64, published: Published<'_>) {
        let fresh = Fresh { publisher: self.shared.id(), sequence, time_ns };
        let lent;
        let payload = match published {
            Published::Slot { length, place } => Payload::Slot { length, place },
            Published::Inline(bytes) => {
                let at = taken::Payload::Lent { pointer: bytes.as_ptr() };
                lent = Taken::lent(&fresh, bytes.len(), at);
                Payload::Inline(&lent)
            }
        };
        loop {
            let has_exclusive = self.notified < self.exclusive;
            let dispatcher = self.dispatcher.as_ref().filter(|_| has_exclusive);
            let entries = dispatcher.map(|dispatcher| dispatcher.entries());
            let wake = |has_entered: bool| {
                let leaves_out = has_entered || !is_taken(Step::Away);
                let notified = if leaves_out { self.notified } else { self.exclusive };
                self.shared.notify(self.views[..notified].iter());
            };
            let run = |entered: &mut Entered<'_, Handler>| {
                dispatcher::run(entered, &fresh, payload, |subscriber| self.notify(subscriber));
            };
            if handlers::publish(entries, &self.shared.changed, wake, run) {
                break;
            }
            self.refresh();
        }
        for callback in &self.concurrent {
            if let Handed::Deferred = callback.run(self.shared.id()) {
                self.notify(callback.id());
            }
        }
    }

    fn notify(&self, subscriber: EndpointId) {
        self.shared.notify(self.views.iter().filter(|view| view.id() == subscriber));
    }

    /// Finds out which subscribers are callbacks of this process.
    pub(super) fn sort_views(&mut self) {
        let pid = std::process::id();
        let callers = self.dispatcher.as_ref().map(|dispatcher| dispatcher.callers());
        let mut concurrent =
            self.dispatcher.as_ref().map_or_else(Vec::new, |dispatcher| dispatcher.concurrent());
        let kind = |view: &Arc<RemoteSubscriber>| {
            let is_exclusive = callers.as_ref().is_some_and(|all| all.contains(&view.id()));
            let is_concurrent = || concurrent.iter().any(|callback| callback.id() == view.id());
            match view.pid() == pid {
                true if is_exclusive => 1,
                true if is_concurrent() => 2,
                _ => 0,
            }
        };
        self.views.sort_by_key(kind);
        self.notified = self.views.partition_point(|view| kind(view) < 1);
        self.exclusive = self.views.partition_point(|view| kind(view) < 2);
        concurrent.retain(|callback| self.views.iter().any(|view| view.id() == callback.id()));
        self.concurrent = concurrent;
    }
}
