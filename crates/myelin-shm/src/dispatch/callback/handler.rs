//! A callback's function with its subscriber: the object that runs it.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::{AfterReader, CATCH_UP_MAX, CallbackState, Function};
use crate::data_plane::raw_sample::PublishedSample;
use crate::data_plane::subscription::{Asleep, RawSample, Reader};
use crate::dispatch::dispatcher::Dispatcher;
use crate::error::Error;
use crate::sync::Ordering;
use crate::topic::EndpointId;
use crate::user_code::Inside;
use crate::waiting::wait::{NEVER, Wait};

/// A callback's function and its subscriber. The thread that owns it may take and call.
pub(crate) struct Handler {
    reader: Reader,
    /// `None` without a node.
    _after: Option<AfterReader>,
    function: Function,
    shared: Arc<CallbackState>,
    calls: u64,
    /// Whether a publisher of this process is among its publishers, and for which state of the list
    /// this was found.
    has_local_publisher: bool,
    changes_seen: Option<u32>,
}

/// Its payload.
#[derive(Clone, Copy)]
pub(crate) enum Payload<'a> {
    /// Up to 104 B, in the publisher's memory.
    Inline(&'a RawSample),
    /// In a slot.
    Slot { length: u64, place: u64 },
}

/// The result of dispatching a sample.
pub(crate) enum Dispatched {
    /// The function has been called with all samples, or there was none for it.
    Done,
    /// Some samples are left for its thread.
    Deferred,
}

impl Handler {
    pub(super) fn new(
        reader: Reader,
        after: Option<AfterReader>,
        function: Function,
        shared: Arc<CallbackState>,
    ) -> Handler {
        let (calls, has_local_publisher, changes_seen) = (0, false, None);
        Handler {
            reader,
            _after: after,
            function,
            shared,
            calls,
            has_local_publisher,
            changes_seen,
        }
    }

    /// Calls the function with a sample that has just been published in this thread, and before it
    /// with all earlier samples that it has not taken yet. A panic of the function unwinds further;
    /// the sample is then given back.
    #[inline(always)]
    pub(crate) fn dispatch(
        &mut self,
        published: &PublishedSample,
        payload: Payload<'_>,
    ) -> Dispatched {
        let reader = &mut self.reader;
        if reader.has_news() {
            return self.catch_up(published.publisher);
        }
        match payload {
            Payload::Inline(taken) => {
                let fits = self.function.lengths.fit(taken.bytes().len());
                // A sample that is misaligned for this type is copied from the ring.
                let is_aligned = taken.address() & (self.function.align - 1) == 0;
                if !fits || !is_aligned || !reader.pass(published) {
                    return self.catch_up(published.publisher);
                }
                (self.function.call)(taken);
            }
            Payload::Slot { length, place } => {
                if !self.function.lengths.fit(length as usize) {
                    return self.catch_up(published.publisher);
                }
                let Some(lent) = reader.lend(published, length, place) else {
                    return self.catch_up(published.publisher);
                };
                (self.function.call)(&lent);
            }
        }
        self.count_call();
        Dispatched::Done
    }

    /// Calls the function with all samples that it has not taken yet, including that of
    /// `publisher`, which has published in this thread: earlier samples are still untaken, or the
    /// sample cannot be passed directly.
    #[cold]
    pub(crate) fn catch_up(&mut self, publisher: EndpointId) -> Dispatched {
        self.reader.look_at(publisher);
        for _ in 0..CATCH_UP_MAX {
            if self.shared.is_stopping() {
                return Dispatched::Done;
            }
            match self.take() {
                Ok(Some(taken)) => self.call(&taken),
                Ok(None) => return Dispatched::Done,
                Err(error) => {
                    self.shared.keep(error);
                    return Dispatched::Deferred; // the thread can pause
                }
            }
        }
        Dispatched::Deferred
    }

    /// Calls the function with all samples that there are.
    pub(super) fn deliver(&mut self) -> Result<(), Error> {
        let _inside = Inside::new();
        self.shared.delivers.set(true);
        let delivered = self.deliver_all();
        self.shared.delivers.set(false);
        delivered
    }

    fn deliver_all(&mut self) -> Result<(), Error> {
        while !self.shared.is_stopping() {
            let Some(taken) = self.take()? else { break };
            let called = catch_unwind(AssertUnwindSafe(|| self.call(&taken)));
            if let Err(panic) = called {
                self.count_panic(&*panic);
            }
        }
        Ok(())
    }

    /// Waits until there may be something to deliver.
    pub(super) fn wait(&mut self, wait: Wait) -> Result<(), Error> {
        self.reader.wait(wait, NEVER).map(drop)
    }

    /// Says that the subscriber sleeps. `None` if there is a sample. A publisher that has found the
    /// handler away has not notified.
    pub(super) fn fall_asleep(&mut self) -> Option<Asleep> {
        self.reader.look_at_all();
        self.reader.fall_asleep()
    }

    /// Whether there are samples left to deliver.
    pub(crate) fn has_more(&mut self) -> bool {
        let has_more = self.reader.is_ready(false);
        if self.shared.is_stopping() {
            self.reader.shared().look_again(); // the look has cleared the mark by which publishers go
        }
        has_more
    }

    fn take(&mut self) -> Result<Option<RawSample>, Error> {
        self.shared.take(&mut self.reader, self.function.lengths)
    }

    fn call(&mut self, taken: &RawSample) {
        (self.function.call)(taken);
        self.count_call();
    }

    /// Ends a call.
    #[inline(always)]
    fn count_call(&mut self) {
        self.calls += 1;
        self.shared.calls.store(self.calls, Ordering::Release);
    }

    /// Ends a call that has panicked.
    #[cold]
    pub(crate) fn count_panic(&mut self, panic: &(dyn Any + Send)) {
        self.count_call();
        self.shared.count_panic(self.reader.shared().topic(), panic);
    }

    /// Whether a publisher of this process is among its publishers.
    pub(super) fn has_local_publisher(&mut self, dispatcher: &Dispatcher) -> bool {
        let reader = &mut self.reader;
        let at = Some(reader.look_at_publishers());
        if self.changes_seen != at {
            (self.has_local_publisher, self.changes_seen) =
                (reader.has_publisher(|id| dispatcher.has_publisher(id)), at);
        }
        self.has_local_publisher
    }
}
