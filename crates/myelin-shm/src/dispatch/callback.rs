//! A function that is called with every sample of a subscriber: inside the publish for a publisher
//! of this process, otherwise in a thread of its own. `dispatcher` describes which thread runs it
//! when.

mod concurrent;
mod handler;
#[cfg(loom)]
pub mod model;
mod thread;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::compiler_fence;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub(crate) use concurrent::Concurrent;
pub(crate) use handler::{Dispatched, Handler, Payload};
use thread::{At, CallbackThread};

use crate::data_plane::subscription::{RawSample, Reader, SubscriptionState};
use crate::dispatch::dispatcher::Dispatcher;
use crate::error::Error;
use crate::os::thread::{Thread, Threads, barrier};
use crate::sync::{AtomicBool, AtomicU64, Ordering, lock};
use crate::topic::Topic;
use crate::user_code::{Inside, is_inside};
use crate::waiting::wait::Wait;
use crate::warnings::report_panic;

/// A function of samples, and the payloads that it accepts.
pub struct Function {
    /// Called with every sample that fits, never twice at once.
    pub call: Box<dyn FnMut(&RawSample) + Send>,
    /// A publisher whose sample does not fit is disconnected.
    pub lengths: Lengths,
    /// The alignment of a payload: a power of two up to 64.
    pub align: usize,
}

/// How many bytes a payload may have.
#[derive(Clone, Copy)]
pub enum Lengths {
    /// Exactly so many bytes.
    Exactly(usize),
    /// A first part, and elements of a fixed size.
    Elements {
        /// Bytes of the first part.
        first: usize,
        /// Bytes of an element; not 0.
        element: usize,
    },
    /// All sizes for which the function is true.
    Such(fn(usize) -> bool),
}

impl Lengths {
    #[inline(always)]
    fn fit(self, bytes: usize) -> bool {
        match self {
            Lengths::Exactly(expected) => bytes == expected,
            Lengths::Elements { first, element } => {
                bytes.checked_sub(first).is_some_and(|all| all.is_multiple_of(element))
            }
            Lengths::Such(fits) => fits(bytes),
        }
    }
}

/// Dropped after the reader of a callback: what its node needs to know of its end.
pub(crate) type AfterReader = Box<dyn Any + Send>;

/// A function that is being called. Dropping it ends the calls: the drop waits for a running call,
/// unless a callback or another function that a node calls drops it. Any thread may use it.
pub(crate) struct RunningCallback {
    shared: Arc<CallbackState>,
    subscription: Arc<SubscriptionState>,
    thread: Option<Thread>,
    /// The dispatcher through which publishers of this process call it; none for a concurrent one.
    dispatcher: Option<Arc<Dispatcher>>,
}

/// State shared by a callback's runners and its handle.
#[derive(Default)]
pub(crate) struct CallbackState {
    stopping: AtomicBool,
    /// Whether its thread calls the function, or is about to.
    delivers: Delivers,
    /// Whether the thread is about to end.
    ended: (Mutex<bool>, Condvar),
    calls: AtomicU64,
    panics: AtomicU64,
    error: Mutex<Option<Error>>,
    stopped: Condvar,
}

impl RunningCallback {
    /// Calls `function` with every sample of `reader` from now on. Its thread waits for samples of
    /// other processes as `wait` says.
    ///
    /// # Errors
    /// [`Error::System`] if no further thread can be started.
    pub(crate) fn start(
        reader: Reader,
        after: AfterReader,
        dispatcher: Arc<Dispatcher>,
        threads: &Threads,
        wait: Wait,
        function: Function,
    ) -> Result<RunningCallback, Error> {
        let Begun { shared, subscription, thread, at } =
            begin(reader, Some(after), &dispatcher, wait, function);
        let has_joined = thread.has_joined();
        let its = shared.clone();
        let attend = move || {
            let _ending = Ending(its);
            thread.attend(at);
        };
        let thread = threads.spawn("callback", attend).inspect_err(|_| {
            if has_joined {
                dispatcher.leave(subscription.id());
            }
        })?;
        let (thread, dispatcher) = (Some(thread), Some(dispatcher));
        Ok(RunningCallback { shared, subscription, thread, dispatcher })
    }

    /// Like [`start`](Self::start), with a function that may run several times at once: every
    /// publisher of this process runs it in its own thread. The callback's thread, for samples of
    /// other processes, sleeps in the kernel.
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    pub(crate) fn start_concurrent(
        reader: Reader,
        after: AfterReader,
        dispatcher: Arc<Dispatcher>,
        threads: &Threads,
        call: Box<dyn Fn(&RawSample) + Send + Sync>,
        lengths: Lengths,
    ) -> Result<RunningCallback, Error> {
        let shared = Arc::new(CallbackState::default());
        let subscription = reader.shared().clone();
        subscription.sleeper.leave_set();
        let concurrent = Concurrent::new(reader, after, call, lengths, shared.clone());
        dispatcher.add_concurrent(&concurrent);
        let its = (dispatcher.clone(), subscription.clone());
        let thread = threads
            .spawn("callback", move || concurrent.attend(&its.0, &its.1))
            .inspect_err(|_| dispatcher.remove_concurrent(subscription.id()))?;
        Ok(RunningCallback { shared, subscription, thread: Some(thread), dispatcher: None })
    }

    /// How many calls have returned or panicked so far.
    pub(crate) fn calls(&self) -> u64 {
        self.shared.calls.load(Ordering::Acquire)
    }

    /// How many calls have panicked so far.
    pub(crate) fn panics(&self) -> u64 {
        self.shared.panics.load(Ordering::Acquire)
    }

    /// How many samples were lost so far, counted when the next one is taken.
    pub(crate) fn lost(&self) -> u64 {
        self.subscription.lost()
    }

    /// The latest error of a take, once; the calls go on after it.
    pub(crate) fn error(&self) -> Option<Error> {
        // In a child of `fork` the lock may be held for ever.
        let is_ours = !self.subscription.is_forked();
        is_ours.then(|| self.shared.error().take()).flatten()
    }

    /// Waits until no call is running, and none can begin. False if the thread has yet to end
    /// nevertheless: it waits for a publisher that calls another callback, which may in turn wait
    /// for the caller.
    fn has_ended(&self, thread: &Thread) -> bool {
        let Some(dispatcher) = &self.dispatcher else { return true };
        let (ended, change) = &self.shared.ended;
        loop {
            if self.has_ended_before_it_began(thread, dispatcher) {
                return false; // the rest of its end is not waited for
            }
            let has_ended = lock(ended);
            if *has_ended {
                return true;
            }
            let waited = change.wait_timeout(has_ended, PATIENCE);
            let (has_ended, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            // A publisher that sees that it is stopping calls it no more (`Handler::dispatch`, by
            // `changed`), and the same holds for its thread. After the barrier each runner has
            // either seen that, or its call is seen here.
            let is_called = || {
                let called = dispatcher.entries().called();
                called.is(self.subscription.id()) || self.shared.delivers.get()
            };
            if timeout.timed_out() && barrier() && !is_called() {
                return *has_ended;
            }
        }
    }
}

impl RunningCallback {
    /// Ends the callback if its thread has not begun: that may first need the loader's lock, which
    /// the caller may hold. Never waits: a publisher in the dispatcher may wait for the caller.
    fn has_ended_before_it_began(&self, thread: &Thread, dispatcher: &Dispatcher) -> bool {
        let Some(mut entered) = dispatcher.entries().try_enter() else { return false };
        let Some(work) = thread.take_work() else { return false };
        let handler = entered.take(self.subscription.id());
        dispatcher.remove(entered, self.subscription.id());
        if handler.is_some() {
            self.subscription.sleeper.wake_up();
        }
        let _inside = Inside::new();
        // Outside the dispatcher: the function's own `Drop` is user code. A panic ends here.
        let _ = catch_unwind(AssertUnwindSafe(|| drop((work, handler))));
        true
    }
}

impl Drop for RunningCallback {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        if self.subscription.is_forked() {
            std::mem::forget(thread); // the thread does not exist in this process
            return;
        }
        self.shared.stop();
        self.subscription.interrupt();
        if !is_inside() && self.has_ended(&thread) {
            thread.join();
        }
    }
}

/// Whether a callback's thread calls the function.
#[derive(Default)]
struct Delivers(std::sync::atomic::AtomicBool);

impl Delivers {
    fn set(&self, delivers: bool) {
        // ORDER: as in `Called::set`.
        self.0.store(delivers, Ordering::Release);
        compiler_fence(Ordering::SeqCst);
    }

    fn get(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// Reports that the thread ends, also by a panic.
struct Ending(Arc<CallbackState>);

impl Drop for Ending {
    fn drop(&mut self) {
        *lock(&self.0.ended.0) = true;
        self.0.ended.1.notify_all();
    }
}

/// A callback whose thread has not been started yet.
struct Begun {
    shared: Arc<CallbackState>,
    subscription: Arc<SubscriptionState>,
    thread: CallbackThread,
    at: At,
}

/// Enters the dispatcher, so that the very next publish here runs the callback. If the dispatcher
/// is taken, the thread enters it later: one callback may register another.
fn begin(
    reader: Reader,
    after: Option<AfterReader>,
    dispatcher: &Arc<Dispatcher>,
    wait: Wait,
    function: Function,
) -> Begun {
    let shared = Arc::new(CallbackState::default());
    let subscription = reader.shared().clone();
    subscription.sleeper.leave_set();
    subscription.sleeper.interrupt_by_matches();
    let handler = Handler::new(reader, after, function, shared.clone());
    let mut thread = CallbackThread::new(dispatcher, &subscription, &shared, wait);
    let at = thread.begin(handler);
    Begun { shared, subscription, thread, at }
}

impl CallbackState {
    fn stop(&self) {
        // Set under the lock, so that `note` either sees it or is woken.
        let error = self.error();
        // ORDER: SeqCst: followed by the wake word's fence, see `CallbackThread::park`.
        self.stopping.store(true, Ordering::SeqCst);
        drop(error);
        self.stopped.notify_all();
    }

    #[inline(always)]
    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// The next sample, if there is one. A publisher whose sample does not fit is disconnected.
    fn take(&self, reader: &mut Reader, lengths: Lengths) -> Result<Option<RawSample>, Error> {
        let Some(taken) = reader.take()? else { return Ok(None) };
        if !lengths.fit(taken.bytes().len()) {
            reader.reject(taken.publisher);
            return Err(Error::PeerCorrupt { what: "a sample's length does not fit its type" });
        }
        Ok(Some(taken))
    }

    /// Counts a panic of a call. It is reported once.
    fn count_panic(&self, topic: &Topic, panic: &(dyn Any + Send)) {
        if self.panics.fetch_add(1, Ordering::Release) == 0 {
            report_panic(&topic.name, "on_sample", panic);
        }
    }

    /// Keeps the error for the user.
    fn keep(&self, error: Error) {
        *self.error() = Some(error);
    }

    /// Keeps the error for the user, and pauses, because it is likely to come again at once.
    fn note(&self, error: Error) {
        let mut kept = self.error();
        *kept = Some(error);
        if !self.is_stopping() {
            let waited = self.stopped.wait_timeout(kept, PAUSE);
            drop(waited.unwrap_or_else(PoisonError::into_inner));
        }
    }

    fn error(&self) -> MutexGuard<'_, Option<Error>> {
        lock(&self.error)
    }
}

/// How many samples a publish delivers in place of a callback's thread that has fallen behind.
const CATCH_UP_MAX: u32 = 64;
/// How long a drop waits before it checks what the ending thread of a callback waits for.
const PATIENCE: Duration = Duration::from_millis(10);
/// How long the thread pauses after an error.
const PAUSE: Duration = Duration::from_millis(1);
