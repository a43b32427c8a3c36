//! Functions that are called with the samples of many topics, in one thread or in a few.

mod functions;
mod queue;
mod run;

use std::ops::Deref;
use std::os::fd::OwnedFd;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;

use self::functions::{OnSample, OnTimer};
use self::run::Shared;
use crate::payload::Payload;
use crate::sample::Sample;
use crate::subscriber::Subscriber;
use crate::wait_set::{GuardCondition, Key, WaitSet};
use crate::{Error, Wait};

/// Calls functions with the samples of any number of topics, and at intervals. [Run](Executor::run)
/// in one thread, it never calls two of them at once, so they need no locks between them. Run [on
/// several threads](Executor::run_on), it never calls the same function twice at once. Made by
/// [`Node::executor`](crate::Node::executor).
///
/// Functions take turns: each function with something to do is called once, with one sample, before
/// any is called again. Timers that are due come between two of these calls. [`Order`] has another
/// choice.
///
/// One thread runs it. Any thread may change it meanwhile, and so may the functions themselves, by
/// its [handle](Executor::handle), which has all methods except [`run`](Executor::run),
/// [`run_on`](Executor::run_on) and [`turn`](Executor::turn). No lock is held while a function is
/// called.
///
/// Affinity and scheduling policy are those of the thread that runs it, also for the additional
/// threads.
///
/// ```
/// # fn main() -> Result<(), myelin::Error> {
/// # use std::time::Duration;
/// # let folder = tempfile::tempdir().unwrap();
/// # let node = myelin::Node::builder("doc").runtime_dir(folder.path()).open()?;
/// let mut executor = node.executor()?;
/// executor.on_sample(node.topic::<[f64; 2]>("goals").subscriber()?, |goal| {
///     println!("to {} m, {} m", goal[0], goal[1]);
/// })?;
/// let stop = executor.stop_guard();
/// # let stop_after_one = stop.clone();
/// executor.on_timer(Duration::from_millis(10), move || {
///     println!("a step of control");
/// #   stop_after_one.trigger();
/// })?;
/// let thread = std::thread::Builder::new().name("control".into());
/// let thread = thread.spawn(move || executor.run()).expect("a thread");
/// // …
/// stop.trigger();
/// thread.join().expect("no panic")?;
/// # Ok(()) }
/// ```
pub struct Executor {
    handle: ExecutorHandle,
}

/// Changes an [`Executor`] from any thread, while it runs, and from the functions that it calls. A
/// change takes effect from the next call on. Clones belong to the same executor. A handle does not
/// keep the executor alive: once the executor is dropped it is closed. So a function may own a
/// handle of its own executor.
///
/// ```
/// # fn main() -> Result<(), myelin::Error> {
/// # use std::time::Duration;
/// # let folder = tempfile::tempdir().unwrap();
/// # let node = myelin::Node::builder("doc").runtime_dir(folder.path()).open()?;
/// let mut executor = node.executor()?;
/// let handle = executor.handle();
/// executor.on_timer(Duration::from_millis(1), move || {
///     let stop = handle.stop_guard();
///     let later = handle.on_timer(Duration::from_millis(1), move || stop.trigger());
///     // …
/// #   later.unwrap();
/// })?;
/// executor.run()?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct ExecutorHandle(Arc<Shared>);

/// The order in which an [`Executor`] calls the functions that are due. No function starves in
/// either order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Order {
    /// Functions take turns, with one sample each; timers that are due come first.
    #[default]
    RoundRobin,
    /// The function whose sample was published first comes first. The age of a timer counts from
    /// the time at which it was due.
    ///
    /// Times are nanoseconds of [`now`](crate::now). For a sample without a
    /// [timestamp](crate::PublisherBuilder::timestamps), a sample of another host and a request,
    /// the age counts from the time at which the executor finds them. No sample counts as more than
    /// 10 s old, or as newer than now: so a publisher with wrong times delays others for at most 10
    /// s.
    ///
    /// If a topic has several publishers, the oldest sample comes first, too. Samples of one
    /// publisher always come in order.
    ///
    /// Each call reads the clock once more, and looks once at each publisher of the topic that has
    /// something.
    OldestFirst,
}

impl Executor {
    pub(crate) fn new(set: WaitSet) -> Result<Executor, Error> {
        Ok(Executor { handle: ExecutorHandle(Arc::new(Shared::new(set)?)) })
    }

    /// The handle, for its functions and for other threads.
    pub fn handle(&self) -> ExecutorHandle {
        self.handle.clone()
    }

    /// Calls functions until its [stop guard](ExecutorHandle::stop_guard) is triggered. It can run
    /// again: the functions that were due then are called first.
    ///
    /// # Errors
    /// As for [`turn`](Executor::turn).
    pub fn run(&mut self) -> Result<(), Error> {
        self.run_on(1)
    }

    /// Like [`run`](Executor::run), in this thread and additional ones, `threads` in total, at
    /// least one. A free thread makes the next call that is due: different functions are called at
    /// the same time, each by one thread at a time. A timer that is due while its function is being
    /// called waits for the next period. The additional threads have this thread's CPUs and policy,
    /// and end before this function returns.
    ///
    /// # Errors
    /// As for [`run`](Executor::run), once all running calls have returned. [`Error::System`] if no
    /// further thread can be started.
    ///
    /// # Panics
    /// If a function panics, after all threads have ended.
    pub fn run_on(&mut self, threads: usize) -> Result<(), Error> {
        let shared = &*self.handle.0;
        drop(shared.begin()?);
        match threads {
            0 | 1 => shared.work(false),
            _ => std::thread::scope(|scope| {
                let start = |number| {
                    let builder = std::thread::Builder::new().name(format!("executor-{number}"));
                    let started = builder.spawn_scoped(scope, || shared.work(true));
                    let failed = |error| Error::system("starting an executor's thread", error);
                    started.map_err(|error| shared.fail(failed(error))).ok()
                };
                let others: Vec<_> = (2..=threads).filter_map(start).collect();
                shared.work(true);
                for other in others {
                    other.join().unwrap_or_else(|panic| resume_unwind(panic));
                }
            }),
        }
        let mut state = shared.lock();
        // No thread works on them any more: the set may report them.
        state.queue.resume_all();
        shared.end(state).map(|_| ())
    }

    /// Waits for something to call, for at most `limit`, and calls each function that is due once,
    /// with one sample: for a program with a loop of its own. False if the stop guard was
    /// triggered, after the running call.
    ///
    /// # Errors
    /// The first error of a [`Subscriber::take`]; the next turn calls the other functions.
    /// [`Error::Closed`] once it is closed. [`Error::Forked`].
    pub fn turn(&mut self, limit: Duration) -> Result<bool, Error> {
        let shared = &*self.handle.0;
        let mut state = shared.begin()?;
        if state.queue.is_empty() {
            state = shared.refill(state, false, limit);
        }
        let thread = std::thread::current().id();
        while !shared.is_over(&state)
            && let Some(job) = state.next_job()
        {
            state = shared.call(state, job, thread, false);
        }
        shared.end(state)
    }
}

impl Deref for Executor {
    type Target = ExecutorHandle;

    fn deref(&self) -> &ExecutorHandle {
        &self.handle
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        self.handle.close();
    }
}

impl ExecutorHandle {
    /// Calls `call` with each sample of `subscriber`. A sample is lent for the length of the call;
    /// to keep it, clone it.
    ///
    /// # Errors
    /// As for [`WaitSetHandle::add`](crate::WaitSetHandle::add).
    pub fn on_sample<T, F>(&self, subscriber: Subscriber<T>, call: F) -> Result<Key, Error>
    where
        T: Payload + ?Sized + 'static,
        F: FnMut(&Sample<T>) + Send + 'static,
    {
        let mut state = self.0.open()?;
        let key = self.0.set.add(&subscriber)?;
        state.functions.insert(key, Box::new(OnSample::new(subscriber, call)), false);
        Ok(key)
    }

    /// Calls `call` every `period`, the first time one period from now. Periods that pass during
    /// other calls count as one.
    ///
    /// # Errors
    /// As for [`WaitSetHandle::timer`](crate::WaitSetHandle::timer).
    pub fn on_timer<F>(&self, period: Duration, call: F) -> Result<Key, Error>
    where
        F: FnMut() + Send + 'static,
    {
        let mut state = self.0.open()?;
        let key = self.0.set.timer(period)?;
        state.functions.insert(key, Box::new(OnTimer(call)), true);
        Ok(key)
    }

    /// Stops calling a function, and drops it and its subscriber. When this returns, a running call
    /// of it in another thread has ended; do not hold a lock that it waits for. A function may
    /// remove itself: it is dropped when it returns. If two functions remove each other at the same
    /// time, the later one does not wait. False if the function was not there.
    pub fn remove(&self, key: Key) -> bool {
        let Ok(mut state) = self.0.open() else { return false };
        let Some(removed) = state.functions.remove(key) else { return false };
        self.0.set.remove(key);
        match removed {
            Some(function) => {
                drop(state);
                drop(function);
            }
            None => self.0.wait_for_end(state, key),
        }
        true
    }

    /// Triggering it ends [`run`](Executor::run) and [`turn`](Executor::turn): the running call is
    /// the last one, and every sample taken by then has been passed to a function. Any thread, a
    /// function, and a signal handler.
    pub fn stop_guard(&self) -> GuardCondition {
        self.0.stop.clone()
    }

    /// A descriptor for your own epoll, like that of a [wait set](crate::WaitSetHandle::descriptor):
    /// when it is readable, call `turn(Duration::ZERO)`.
    ///
    /// # Errors
    /// As for [`WaitSetHandle::descriptor`](crate::WaitSetHandle::descriptor).
    pub fn descriptor(&self) -> Result<OwnedFd, Error> {
        drop(self.0.open()?);
        self.0.set.descriptor()
    }

    /// How it waits; by default [`Wait::Adaptive`].
    pub fn set_wait(&self, wait: Wait) {
        self.0.set.set_wait(wait);
    }

    /// The order in which functions are called; by default [`Order::RoundRobin`]. It takes effect
    /// from the next call on. A closed executor ignores it.
    pub fn set_order(&self, order: Order) {
        if let Ok(mut state) = self.0.open() {
            state.set_order(order);
        }
    }

    /// Stops all calls, and drops all functions and subscribers. The running `run` or `turn` ends
    /// with [`Error::Closed`] after the running calls, and so does each later one. A thread outside
    /// the functions waits here for these calls.
    pub fn close(&self) {
        let Ok(mut state) = self.0.open() else { return };
        state.is_closed = true;
        state.is_over = true;
        let gone = (state.functions.remove_all(), state.queue.take_all(), state.set.take());
        self.0.work.notify_all();
        drop(state);
        self.0.set.close();
        drop(gone);
        let thread = std::thread::current().id();
        let mut state = self.0.lock();
        while state.calls > 0 && state.functions.called_by(thread).is_none() {
            state = self.0.wait_for_some_end(state);
        }
    }

    /// Whether it is closed, or its [`Executor`] has been dropped.
    pub fn is_closed(&self) -> bool {
        matches!(self.0.open(), Err(Error::Closed { .. }))
    }

    /// Whether this is a child of the process that made it.
    #[doc(hidden)]
    pub fn is_forked(&self) -> bool {
        self.0.set.is_forked()
    }

    /// Whether this thread is in one of its functions.
    #[doc(hidden)]
    pub fn is_called(&self) -> bool {
        let thread = std::thread::current().id();
        self.0.open().is_ok_and(|state| state.functions.called_by(thread).is_some())
    }
}

impl std::fmt::Debug for Executor {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Executor").field("set", &self.handle.0.set).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for ExecutorHandle {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("ExecutorHandle").field("set", &self.0.set).finish_non_exhaustive()
    }
}
