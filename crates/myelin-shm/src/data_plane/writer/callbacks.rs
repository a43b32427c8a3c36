//! Runs the callbacks of this process inside the publish.

use std::sync::Arc;

use super::{Payload as Published, Writer};
use crate::data_plane::publication::PublicationState;
use crate::data_plane::raw_sample::{self, PublishedSample, RawSample};
use crate::data_plane::remote_subscriber::RemoteSubscriber;
use crate::dispatch::callback::{Concurrent, Dispatched, Handler, Payload};
use crate::dispatch::dispatcher::{self, Dispatcher};
use crate::dispatch::handlers::{self, Entered};
use crate::sync::{Ordering, Step, fence_of, is_taken};
use crate::topic::EndpointId;

impl Writer {
    /// P7 and P8 with callbacks in this process: they are called, all other subscribers are
    /// notified.
    #[inline(never)]
    pub(super) fn call_back(&mut self, sequence: u64, time_ns: u64, published: Published<'_>) {
        let fresh = PublishedSample { publisher: self.shared.id(), sequence, time_ns };
        if self.defers {
            return self.defer(fresh, matches!(published, Published::Inline(_)));
        }
        let lent;
        let payload = match published {
            Published::Slot { length, place } => Payload::Slot { length, place },
            Published::Inline(bytes) => {
                let at = raw_sample::Payload::Lent { pointer: bytes.as_ptr() };
                lent = RawSample::lent(&fresh, bytes.len(), at);
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
                let hand_over = |handler: &mut Handler| handler.hand_over(&fresh, payload);
                dispatcher::run(entered, hand_over, |subscriber| self.notify(subscriber));
            };
            if handlers::publish(entries, &self.shared.changed, wake, run) {
                break;
            }
            self.refresh();
        }
        for callback in &self.concurrent {
            if let Dispatched::Deferred = callback.run(self.shared.id()) {
                self.notify(callback.id());
            }
        }
    }

    /// From now on the caller, which shares the writer, runs the callbacks of this process. After
    /// each publish it calls [`take_dispatch`](Self::take_dispatch), and runs the result when it
    /// has released the lock around the writer.
    pub fn defer_callbacks(&mut self) {
        self.defers = true;
        self.shared.look_again();
    }

    /// The callbacks to run after the last publish.
    #[inline]
    pub fn take_dispatch(&mut self) -> Option<Dispatch> {
        self.due.take()
    }

    /// P7 and P8 without the callbacks of this process, which the caller must run.
    fn defer(&mut self, fresh: PublishedSample, is_inline: bool) {
        loop {
            // ORDER: P7, as in `finish`.
            fence_of(Step::P7);
            if !self.shared.changed.load(Ordering::Relaxed) {
                break;
            }
            self.refresh();
        }
        self.shared.notify(self.views[..self.notified].iter());
        self.due = self.local.clone().map(|local| Dispatch { local, fresh, is_inline });
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
        let has_callbacks = self.defers && self.notified < self.views.len();
        self.local = has_callbacks.then(|| {
            let views = self.views[self.notified..].to_vec();
            Arc::new(Local {
                shared: self.shared.clone(),
                dispatcher: self.dispatcher.clone(),
                exclusive: self.exclusive - self.notified,
                views,
                concurrent: self.concurrent.clone(),
            })
        });
    }
}

/// The callbacks of this process for a shared publisher's sample. No lock is held while they run,
/// so the publisher may have published more by then: each is called with the samples that are next
/// for it.
#[must_use = "its callbacks are yet to be run"]
pub struct Dispatch {
    local: Arc<Local>,
    fresh: PublishedSample,
    /// Whether the sample lies in the ring itself.
    is_inline: bool,
}

/// A writer's callbacks, as the writer saw them last.
pub(super) struct Local {
    shared: Arc<PublicationState>,
    dispatcher: Option<Arc<Dispatcher>>,
    /// First the `exclusive` ones of the dispatcher, then those of `concurrent`.
    views: Vec<Arc<RemoteSubscriber>>,
    exclusive: usize,
    concurrent: Vec<Arc<Concurrent>>,
}

impl Dispatch {
    /// Runs them, in this thread. Callbacks that another thread is running are left to their own
    /// threads. `copied`: the published payload, if the caller still has it. If it is small enough,
    /// they are called with it, and nothing is taken.
    pub fn run(self, copied: Option<&[u8]>) {
        let Dispatch { local, fresh, is_inline } = self;
        let Local { shared, dispatcher, views, exclusive, concurrent } = &*local;
        let defer = |subscriber| {
            shared.notify(views.iter().filter(|view| view.id() == subscriber));
        };
        let lent = copied.filter(|_| is_inline).map(|bytes| {
            let at = raw_sample::Payload::Lent { pointer: bytes.as_ptr() };
            RawSample::lent(&fresh, bytes.len(), at)
        });
        if *exclusive > 0 {
            let entries = dispatcher.as_ref().map(|dispatcher| dispatcher.entries());
            // P7 once more: the sample has been visible since the publish.
            match handlers::try_enter_fenced(entries) {
                Some(mut entered) => {
                    let call = |handler: &mut Handler| match &lent {
                        Some(lent) => handler.hand_over(&fresh, Payload::Inline(lent)),
                        None => handler.catch_up(fresh.publisher),
                    };
                    dispatcher::run(&mut entered, call, defer);
                }
                None if is_taken(Step::Away) => shared.notify(views[..*exclusive].iter()),
                None => {}
            }
        }
        for callback in concurrent {
            if let Dispatched::Deferred = callback.run(fresh.publisher) {
                defer(callback.id());
            }
        }
    }
}
