//! The callbacks of this process among one publisher's subscribers, as the publisher saw them last:
//! it runs them inside its publish.

use std::mem::ManuallyDrop;
use std::sync::Arc;

use crate::data_plane::publication::PublicationState;
use crate::data_plane::raw_sample::{self, PublishedSample, RawSample};
use crate::data_plane::remote_subscriber::RemoteSubscriber;
use crate::data_plane::writer::{FindCallbacks, Payload as Published, RunCallbacks};
use crate::dispatch::callback::{Concurrent, Dispatched, Handler, Payload};
use crate::dispatch::dispatcher::{self, Dispatcher};
use crate::dispatch::handlers::{self, Entered, Handlers};
use crate::sync::{AtomicU64, Step, is_taken};
use crate::topic::EndpointId;

/// A publisher's callbacks.
struct LocalCallbacks {
    publication: Arc<PublicationState>,
    dispatcher: Arc<Dispatcher>,
    /// First the `exclusive` ones of the dispatcher, then those of `concurrent`.
    views: Vec<Arc<RemoteSubscriber>>,
    exclusive: usize,
    concurrent: Vec<Arc<Concurrent>>,
}

impl FindCallbacks for Dispatcher {
    fn find(
        self: Arc<Self>,
        publication: &Arc<PublicationState>,
        views: &mut [Arc<RemoteSubscriber>],
    ) -> (usize, Option<Arc<dyn RunCallbacks>>) {
        let pid = std::process::id();
        let callers = self.callers();
        let mut concurrent = self.concurrent();
        let kind = |view: &Arc<RemoteSubscriber>| match view.pid() == pid {
            true if callers.contains(&view.id()) => 1,
            true if concurrent.iter().any(|callback| callback.id() == view.id()) => 2,
            _ => 0,
        };
        views.sort_by_key(kind);
        let others = views.partition_point(|view| kind(view) < 1);
        let exclusive = views.partition_point(|view| kind(view) < 2) - others;
        drop(callers);
        if others == views.len() {
            return (others, None);
        }
        let (publication, views) = (publication.clone(), views[others..].to_vec());
        concurrent.retain(|callback| views.iter().any(|view| view.id() == callback.id()));
        let dispatcher = self;
        let local = LocalCallbacks { publication, dispatcher, views, exclusive, concurrent };
        (others, Some(Arc::new(local)))
    }
}

impl RunCallbacks for LocalCallbacks {
    fn publish(
        &self,
        others: &[Arc<RemoteSubscriber>],
        sequence: u64,
        time_ns: u64,
        payload: Published<'_>,
    ) -> bool {
        let published = PublishedSample { publisher: self.publication.id(), sequence, time_ns };
        let lent;
        let payload = match payload {
            Published::Slot { length, place } => Payload::Slot { length, place },
            Published::Inline(bytes) => {
                lent = lend(&published, bytes);
                Payload::Inline(&lent)
            }
        };
        let wake = |has_entered: bool| {
            RemoteSubscriber::notify_each(others.iter(), self.published());
            if !has_entered {
                self.notify_exclusive();
            }
        };
        let run = |entered: &mut Entered<'_, Handler>| {
            let dispatch = |handler: &mut Handler| handler.dispatch(&published, payload);
            dispatcher::run(entered, dispatch, |subscriber| self.notify(subscriber));
        };
        if !handlers::publish(self.entries(), &self.publication.changed, wake, run) {
            return false;
        }
        self.run_concurrent();
        true
    }

    fn run(&self, sequence: u64, time_ns: u64, copied: Option<&[u8]>) {
        let published = PublishedSample { publisher: self.publication.id(), sequence, time_ns };
        let lent = copied.map(|bytes| lend(&published, bytes));
        // P7 once more: the sample has been visible since the publish.
        match handlers::try_enter_fenced(self.entries()) {
            Some(mut entered) => {
                let dispatch = |handler: &mut Handler| match &lent {
                    Some(lent) => handler.dispatch(&published, Payload::Inline(lent)),
                    None => handler.catch_up(published.publisher),
                };
                dispatcher::run(&mut entered, dispatch, |subscriber| self.notify(subscriber));
            }
            None => self.notify_exclusive(),
        }
        self.run_concurrent();
    }
}

impl LocalCallbacks {
    /// The handlers, if any of them is this publisher's.
    #[inline(always)]
    fn entries(&self) -> Option<&Handlers<Handler>> {
        (self.exclusive > 0).then(|| self.dispatcher.entries())
    }

    #[inline(always)]
    fn run_concurrent(&self) {
        for callback in &self.concurrent {
            if let Dispatched::Deferred = callback.run(self.publication.id()) {
                self.notify(callback.id());
            }
        }
    }

    /// Another thread runs the handlers.
    #[cold]
    fn notify_exclusive(&self) {
        if is_taken(Step::Away) {
            let exclusive = self.views[..self.exclusive].iter();
            RemoteSubscriber::notify_each(exclusive, self.published());
        }
    }

    fn notify(&self, subscriber: EndpointId) {
        let its = self.views.iter().filter(|view| view.id() == subscriber);
        RemoteSubscriber::notify_each(its, self.published());
    }

    fn published(&self) -> &AtomicU64 {
        &self.publication.head().published
    }
}

/// The sample, in its publisher's memory: there is nothing to release.
#[inline(always)]
fn lend(published: &PublishedSample, bytes: &[u8]) -> ManuallyDrop<RawSample> {
    let payload = raw_sample::Payload::Lent { pointer: bytes.as_ptr() };
    ManuallyDrop::new(RawSample::lent(published, bytes.len(), payload))
}
