//! A thread that takes samples and calls a function with each.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use myelin_shm::limits::EVENTS_MAX;
use myelin_shm::subscription::SubscriptionShared;

use crate::payload::Payload;
use crate::sample::Sample;
use crate::subscriber::Subscriber;
use crate::{Error, Event};

/// A function that is called with every sample, in a thread of its own. Made by
/// [`Subscriber::on_sample`].
///
/// Dropping it stops the thread and waits until it has ended, after the call that is under way;
/// dropped by the function itself, the thread ends after this call. Any thread may use it.
///
/// A panic of the function is contained: it is counted and the next sample is delivered.
#[must_use = "dropping it stops the calls"]
pub struct Callback {
    shared: Arc<Shared>,
    subscription: Arc<SubscriptionShared>,
    thread: Option<JoinHandle<()>>,
    pid: u32,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    stopping: AtomicBool,
    calls: AtomicU64,
    panics: AtomicU64,
    lost: AtomicU64,
    matched: AtomicUsize,
}

#[derive(Default)]
struct State {
    error: Option<Error>,
    events: Vec<Event>,
}

impl Callback {
    pub(crate) fn start<T, F>(subscriber: Subscriber<T>, call: F) -> Result<Callback, Error>
    where
        T: Payload + ?Sized + 'static,
        F: FnMut(Sample<T>) + Send + 'static,
    {
        let shared = Arc::new(Shared::default());
        shared.report(&subscriber);
        let subscription = subscriber.subscription().clone();
        let its = shared.clone();
        let thread = thread::Builder::new()
            .name("myelin-callback".to_string())
            .spawn(move || its.run(subscriber, call))
            .map_err(|error| Error::system("starting a callback's thread", error))?;
        Ok(Callback { shared, subscription, thread: Some(thread), pid: std::process::id() })
    }

    /// Calls that have returned or panicked so far.
    pub fn calls(&self) -> u64 {
        self.shared.calls.load(Ordering::Acquire)
    }

    /// Calls that have panicked so far.
    pub fn panics(&self) -> u64 {
        self.shared.panics.load(Ordering::Acquire)
    }

    /// Samples lost so far, as [`Subscriber::lost`].
    pub fn lost(&self) -> u64 {
        self.shared.lost.load(Ordering::Acquire)
    }

    /// The latest error of taking, once. The thread goes on after it: most likely the function
    /// keeps too many samples ([`Error::TooManyHeld`]).
    pub fn error(&self) -> Option<Error> {
        self.state()?.error.take()
    }

    /// How many publishers the subscriber was matched with when its thread last looked: after the
    /// latest call, or within 50 ms.
    pub fn matched(&self) -> usize {
        self.shared.matched.load(Ordering::Acquire)
    }

    /// What has happened to the subscriber's matches since the last call, oldest first; at most
    /// 1,024, of more the oldest go.
    pub fn events(&self) -> Vec<Event> {
        self.state().map_or_else(Vec::new, |mut state| std::mem::take(&mut state.events))
    }

    /// None in a child of `fork`, where the lock may be held for ever.
    fn state(&self) -> Option<MutexGuard<'_, State>> {
        (!self.is_forked()).then(|| self.shared.state())
    }

    fn is_forked(&self) -> bool {
        std::process::id() != self.pid
    }
}

impl Drop for Callback {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        if self.is_forked() {
            std::mem::forget(thread); // there is no such thread here
            return;
        }
        self.shared.stop();
        self.subscription.interrupt();
        if thread.thread().id() != thread::current().id() {
            let _ = thread.join(); // a panic of the function's own `Drop` ends here
        }
    }
}

impl Shared {
    fn run<T, F>(&self, mut subscriber: Subscriber<T>, mut call: F)
    where
        T: Payload + ?Sized,
        F: FnMut(Sample<T>),
    {
        while !self.stopping.load(Ordering::Acquire) {
            match subscriber.receive(SLICE) {
                Ok(Some(sample)) => self.deliver(&mut call, sample),
                Ok(None) => {}
                Err(error) => self.note(error),
            }
            self.report(&subscriber);
        }
    }

    fn deliver<S>(&self, call: &mut impl FnMut(S), sample: S) {
        if catch_unwind(AssertUnwindSafe(|| call(sample))).is_err() {
            self.panics.fetch_add(1, Ordering::Release);
        }
        self.calls.fetch_add(1, Ordering::Release);
    }

    /// Tells the handle what only this thread can ask.
    fn report<T: Payload + ?Sized>(&self, subscriber: &Subscriber<T>) {
        // In this order, so that who sees the number change finds the event.
        let matched = subscriber.matched();
        let mut events = subscriber.events();
        if !events.is_empty() {
            let mut state = self.state();
            state.events.append(&mut events);
            let too_many = state.events.len().saturating_sub(EVENTS_MAX);
            state.events.drain(..too_many);
        }
        self.matched.store(matched, Ordering::Release);
        self.lost.store(subscriber.lost(), Ordering::Release);
    }

    /// Keeps the error for the user, and pauses: it is likely to come again at once.
    fn note(&self, error: Error) {
        let mut state = self.state();
        state.error = Some(error);
        if !self.stopping.load(Ordering::Acquire) {
            let waited = self.changed.wait_timeout(state, PAUSE);
            drop(waited.unwrap_or_else(PoisonError::into_inner));
        }
    }

    fn stop(&self) {
        // Under the lock, so that `note` either sees it or is woken.
        let state = self.state();
        self.stopping.store(true, Ordering::Release);
        drop(state);
        self.changed.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Callback {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Callback")
            .field("calls", &self.calls())
            .field("panics", &self.panics())
            .finish_non_exhaustive()
    }
}

/// How long the thread waits for a sample before it looks what has happened to the matches.
const SLICE: Duration = Duration::from_millis(50);
/// How long it pauses after an error.
const PAUSE: Duration = Duration::from_millis(1);
