//! A callback that publishers may run several times at once.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::{AfterReader, CATCH_UP_MAX, CallbackState, Dispatched, Lengths};
use crate::data_plane::subscription::{RawSample, Reader, SubscriptionState};
use crate::dispatch::dispatcher::Dispatcher;
use crate::error::Error;
use crate::sync::{Ordering, lock};
use crate::topic::{EndpointId, Topic};
use crate::user_code::Inside;

/// The function with its subscriber. A publisher takes under the lock, and calls without it.
pub(crate) struct Concurrent {
    id: EndpointId,
    topic: Topic,
    lengths: Lengths,
    shared: Arc<CallbackState>,
    taking: Mutex<Taking>,
    ended: Condvar,
}

struct Taking {
    /// `None` after the calls have ended.
    reader: Option<(Reader, AfterReader)>,
    call: Option<Call>,
    /// How many calls are running.
    calls: u32,
}

type Call = Arc<dyn Fn(&RawSample) + Send + Sync>;

impl Concurrent {
    pub(super) fn new(
        reader: Reader,
        after: AfterReader,
        call: Box<dyn Fn(&RawSample) + Send + Sync>,
        lengths: Lengths,
        shared: Arc<CallbackState>,
    ) -> Arc<Concurrent> {
        let (id, topic) = (reader.shared().id(), reader.shared().topic().clone());
        let (reader, call) = (Some((reader, after)), Some(Arc::from(call)));
        let taking = Mutex::new(Taking { reader, call, calls: 0 });
        Arc::new(Concurrent { id, topic, lengths, shared, taking, ended: Condvar::new() })
    }

    /// The subscriber's id.
    pub(crate) fn id(&self) -> EndpointId {
        self.id
    }

    /// Calls the function with the samples there are, in this thread, which is that of `publisher`.
    /// The number is limited, because the samples may be other publishers'.
    pub(crate) fn run(&self, publisher: EndpointId) -> Dispatched {
        let _inside = Inside::new();
        let mut publisher = Some(publisher);
        for _ in 0..CATCH_UP_MAX {
            match self.take(publisher.take()) {
                Ok(Some((taken, call))) => self.call(taken, call),
                Ok(None) => return Dispatched::Done,
                Err(error) => {
                    self.shared.keep(error);
                    return Dispatched::Deferred; // the thread can pause
                }
            }
        }
        Dispatched::Deferred
    }

    /// Runs its thread: for samples of other processes, and for samples that a publisher could not
    /// take.
    pub(super) fn attend(&self, dispatcher: &Dispatcher, subscription: &SubscriptionState) {
        while !self.shared.is_stopping() {
            if let Err(error) = self.deliver() {
                self.shared.note(error);
                continue;
            }
            // ORDER: its fence pairs with the publisher's: a publisher that leaves a sample sees
            // this thread asleep, or this thread sees the sample.
            let asleep = match &mut self.taking().reader {
                Some((reader, _)) => {
                    reader.look_at_all(); // one publisher may have taken away another's ready bit
                    reader.fall_asleep()
                }
                None => break,
            };
            if let Some(asleep) = asleep.filter(|_| !self.shared.is_stopping()) {
                subscription.sleeper.sleep(asleep);
            }
            subscription.sleeper.wake_up();
        }
        dispatcher.remove_concurrent(self.id);
        let ended = self.ended.wait_while(self.taking(), |taking| taking.calls > 0);
        // Publishers release this object at their next publish; the match ends now, and the
        // function is dropped here, with no lock held.
        let mut taking = ended.unwrap_or_else(PoisonError::into_inner);
        let its = (taking.reader.take(), taking.call.take());
        drop(taking);
        let _inside = Inside::new();
        drop(its);
    }

    fn deliver(&self) -> Result<(), Error> {
        let _inside = Inside::new();
        while let Some((taken, call)) = self.take(None)? {
            self.call(taken, call);
        }
        Ok(())
    }

    fn call(&self, taken: RawSample, call: Call) {
        let called = catch_unwind(AssertUnwindSafe(|| call(&taken)));
        self.shared.calls.fetch_add(1, Ordering::Release);
        if let Err(panic) = called {
            self.shared.count_panic(&self.topic, &*panic);
        }
        drop((taken, call)); // not the last: the thread waits for the call
        self.taking().calls -= 1;
        if self.shared.is_stopping() {
            self.ended.notify_all();
        }
    }

    /// The next sample; its call counts as running. `publisher`: a publisher of this thread, if
    /// any.
    fn take(&self, publisher: Option<EndpointId>) -> Result<Option<(RawSample, Call)>, Error> {
        let mut taking = self.taking();
        // Checked under the lock: once the thread has seen no call running, there will be none.
        if self.shared.is_stopping() {
            return Ok(None);
        }
        let Taking { reader: Some((reader, _)), call: Some(call), .. } = &mut *taking else {
            return Ok(None);
        };
        if let Some(publisher) = publisher {
            reader.look_at(publisher);
        }
        let taken = self.shared.take(reader, self.lengths)?.map(|taken| (taken, call.clone()));
        taking.calls += u32::from(taken.is_some());
        Ok(taken)
    }

    fn taking(&self) -> MutexGuard<'_, Taking> {
        lock(&self.taking)
    }
}
