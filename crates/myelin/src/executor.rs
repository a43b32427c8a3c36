//! Functions that are called with the samples of many topics, in one thread or in a few.

use std::collections::VecDeque;
use std::ops::Deref;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::Duration;

use crate::payload::Payload;
use crate::sample::Sample;
use crate::subscriber::Subscriber;
use crate::wait_set::{Guard, Key, KeyMap, Paused, WaitSet, WaitSetHandle};
use crate::{Error, Wait, cancel};

/// True: it has called with a sample, and there may be more.
type Call = Box<dyn FnMut() -> Result<bool, Error> + Send>;

/// Calls functions with the samples of any number of topics, and at intervals. [Run](Executor::run) in one
/// thread it calls no two of them at once, so they need no locks among themselves; run
/// [on several](Executor::run_on) it calls none twice at once. Made by
/// [`Node::executor`](crate::Node::executor).
///
/// Functions take turns: each that has something is called once, with one sample, before any is called
/// again. Timers that are due come between two of these calls.
///
/// One thread runs it. Any thread changes it meanwhile, and the functions themselves do, by its
/// [handle](Executor::handle), which has all methods but [`run`](Executor::run),
/// [`run_on`](Executor::run_on) and [`turn`](Executor::turn). No lock is held while a function is called.
///
/// Affinity and scheduling policy are those of the thread that you run it in, also of the further ones.
///
/// ```
/// # fn main() -> Result<(), myelin::Error> {
/// # use std::time::Duration;
/// # let folder = tempfile::tempdir().unwrap();
/// # let node = myelin::Node::builder("doc").folder(folder.path()).open()?;
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

/// Changes an [`Executor`] from any thread, while it runs, and from the functions that it calls. What is
/// added or removed counts from the next call on. Clones are of the same executor. A handle does not keep
/// the executor: once that is dropped it is closed, and so a function may own a handle of its own executor.
///
/// ```
/// # fn main() -> Result<(), myelin::Error> {
/// # use std::time::Duration;
/// # let folder = tempfile::tempdir().unwrap();
/// # let node = myelin::Node::builder("doc").folder(folder.path()).open()?;
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

struct Shared {
    set: WaitSetHandle,
    stop: Guard,
    state: Mutex<State>,
    /// There is something to call, or to wait in, or it is over.
    work: Condvar,
    /// A call has ended.
    ended: Condvar,
}

struct State {
    /// Nobody has it while a thread waits in it, nor once it is closed.
    set: Option<Box<WaitSet>>,
    functions: Functions,
    /// What is to be called next, and after all of that.
    round: VecDeque<Job>,
    again: VecDeque<Job>,
    /// Since the last look at the set.
    rounds: u32,
    /// Samples come faster than they are worked on.
    has_backlog: bool,
    /// A timer may be due: nobody has looked since the last call.
    looks_at_timers: bool,
    /// Calls under way.
    calls: usize,
    /// Threads that wait for `work`, and for `ended`.
    idle: usize,
    removers: usize,
    is_over: bool,
    is_closed: bool,
    /// The first one.
    error: Option<Error>,
}

#[derive(Default)]
struct Functions {
    /// With gaps. One that is removed while it is being called stays until then.
    all: Vec<Option<Function>>,
    /// Where those are that have not been removed.
    places: KeyMap<usize>,
}

struct Function {
    key: Key,
    /// `None` while it is being called.
    call: Option<Call>,
    is_timer: bool,
    is_removed: bool,
    /// Who calls it.
    thread: Option<ThreadId>,
    /// The function that this call removes, and for whose end it waits.
    removes: Option<Key>,
}

struct Job {
    key: Key,
    /// Of its function, if that has not been removed meanwhile.
    place: usize,
    /// Its subscriber, which the set does not report meanwhile, if further threads wait in that.
    _paused: Option<Paused>,
}

impl Executor {
    pub(crate) fn new(set: WaitSet) -> Result<Executor, Error> {
        let state = State {
            set: None,
            functions: Functions::default(),
            round: VecDeque::new(),
            again: VecDeque::new(),
            rounds: 0,
            has_backlog: false,
            looks_at_timers: false,
            calls: 0,
            idle: 0,
            removers: 0,
            is_over: false,
            is_closed: false,
            error: None,
        };
        // A wait that has reported it must not hide it from the threads that look between calls.
        let (handle, stop) = (set.handle(), set.guard_until_reset()?);
        let state = Mutex::new(State { set: Some(Box::new(set)), ..state });
        let (work, ended) = (Condvar::new(), Condvar::new());
        let shared = Shared { set: handle, stop, state, work, ended };
        Ok(Executor { handle: ExecutorHandle(Arc::new(shared)) })
    }

    /// For its functions, and for other threads.
    pub fn handle(&self) -> ExecutorHandle {
        self.handle.clone()
    }

    /// Calls until its [stop guard](ExecutorHandle::stop_guard) is triggered. It can be run again: what was
    /// due then is called first.
    ///
    /// # Errors
    /// As [`turn`](Executor::turn).
    pub fn run(&mut self) -> Result<(), Error> {
        self.run_on(1)
    }

    /// As [`run`](Executor::run), in this thread and in so many more that there are `threads`, at least
    /// one. Whichever is free makes the next call that is due: different functions are called at the same
    /// time, each by one thread at a time. A timer that is due while its function is being called waits
    /// for the next period. The further threads have this one's CPUs and policy, and end before it returns.
    ///
    /// # Errors
    /// As [`run`](Executor::run), once all calls under way have returned. [`Error::System`] if there can be no
    /// further thread.
    ///
    /// # Panics
    /// As a function does, when all have ended.
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
        // Nobody works on them any more: the set may report them.
        let State { round, again, .. } = &mut *state;
        round.iter_mut().chain(again).for_each(|job| job._paused = None);
        shared.end(state).map(|_| ())
    }

    /// Waits for something to call, for `limit` at most, and calls each function that is due once, with one
    /// sample: for a program that has a loop of its own. False if the stop guard was triggered, after the
    /// call that was under way.
    ///
    /// # Errors
    /// The first of what [`Subscriber::take`] says; the other functions are called by the next turn.
    /// [`Error::Closed`] once it is closed. [`Error::Forked`].
    pub fn turn(&mut self, limit: Duration) -> Result<bool, Error> {
        let shared = &*self.handle.0;
        let mut state = shared.begin()?;
        if state.round.is_empty() {
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
    /// Calls `call` with each sample of `subscriber`. A sample is lent for the length of the call; to
    /// keep it, clone it.
    ///
    /// # Errors
    /// As [`WaitSetHandle::add`].
    pub fn on_sample<T, F>(&self, mut subscriber: Subscriber<T>, mut call: F) -> Result<Key, Error>
    where
        T: Payload + ?Sized + 'static,
        F: FnMut(&Sample<T>) + Send + 'static,
    {
        let mut state = self.0.open()?;
        let key = self.0.set.add(&subscriber)?;
        let take = move || {
            let sample = subscriber.take()?;
            if let Some(sample) = &sample {
                call(sample);
            }
            Ok(sample.is_some())
        };
        state.functions.insert(key, Box::new(take), false);
        Ok(key)
    }

    /// Calls `call` every `period`, the first time one period from now. Periods that have passed while
    /// something else was called count as one.
    ///
    /// # Errors
    /// As [`WaitSetHandle::timer`].
    pub fn on_timer<F>(&self, period: Duration, mut call: F) -> Result<Key, Error>
    where
        F: FnMut() + Send + 'static,
    {
        let mut state = self.0.open()?;
        let key = self.0.set.timer(period)?;
        let call = move || {
            call();
            Ok(false)
        };
        state.functions.insert(key, Box::new(call), true);
        Ok(key)
    }

    /// Calls it no more, and drops its function and its subscriber. A call of it that is under way in
    /// another thread has ended when this returns; do not hold a lock that it waits for. A function may
    /// remove itself: it is dropped when it returns. Of two functions that remove each other at the same
    /// time, the later one does not wait. False if it was not there.
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

    /// Triggering it ends [`run`](Executor::run) and [`turn`](Executor::turn): the call that is under way is
    /// the last one, and no sample is taken that no function has seen. Any thread, a function, and a signal
    /// handler.
    pub fn stop_guard(&self) -> Guard {
        self.0.stop.clone()
    }

    /// A descriptor for somebody's epoll, as that of a [wait set](WaitSetHandle::descriptor): when it is
    /// readable, `turn(Duration::ZERO)`.
    ///
    /// # Errors
    /// As [`WaitSetHandle::descriptor`].
    pub fn descriptor(&self) -> Result<OwnedFd, Error> {
        drop(self.0.open()?);
        self.0.set.descriptor()
    }

    /// How it waits; by default [`Wait::Adaptive`].
    pub fn set_wait(&self, wait: Wait) {
        self.0.set.set_wait(wait);
    }

    /// Calls nothing any more, and drops all functions and subscribers. The run or turn under way ends with
    /// [`Error::Closed`] after the calls that are under way, and so does each later one. From a thread that
    /// is in none of its functions this waits for these calls.
    pub fn close(&self) {
        let Ok(mut state) = self.0.open() else { return };
        state.is_closed = true;
        state.is_over = true;
        let gone = (
            state.functions.remove_all(),
            std::mem::take(&mut state.round),
            std::mem::take(&mut state.again),
            state.set.take(),
        );
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

    /// Whether it is closed, or its [`Executor`] is gone.
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

impl State {
    /// What is to be called next in this round.
    #[inline]
    fn next_job(&mut self) -> Option<Job> {
        if self.looks_at_timers
            && !self.round.is_empty()
            && let Some(set) = &mut self.set
        {
            self.looks_at_timers = false;
            for key in set.due_timers().iter().rev() {
                if let Some(place) = self.functions.place(*key) {
                    self.round.push_front(Job { key: *key, place, _paused: None });
                }
            }
        }
        self.round.pop_front()
    }
}

impl Functions {
    fn insert(&mut self, key: Key, call: Call, is_timer: bool) {
        let (call, is_removed) = (Some(call), false);
        let new = Function { key, call, is_timer, is_removed, thread: None, removes: None };
        let place = self.all.iter().position(Option::is_none).unwrap_or(self.all.len());
        match self.all.get_mut(place) {
            Some(gap) => *gap = Some(new),
            None => self.all.push(Some(new)),
        }
        self.places.insert(key, place);
    }

    fn place(&self, key: Key) -> Option<usize> {
        self.places.get(&key).copied()
    }

    /// The function of a job, unless it has been removed.
    #[inline]
    fn at(&mut self, place: usize, key: Key) -> Option<&mut Function> {
        let its = self.all.get_mut(place)?.as_mut();
        its.filter(|its| its.key == key && !its.is_removed)
    }

    /// `None`: it is not there. What is being called goes with the end of that call.
    #[expect(clippy::option_option, reason = "they are two questions")]
    fn remove(&mut self, key: Key) -> Option<Option<Function>> {
        let place = self.places.remove(&key)?;
        let function = self.all[place].as_mut()?;
        function.is_removed = true;
        Some(if function.call.is_some() { self.all[place].take() } else { None })
    }

    /// Those that are not being called.
    fn remove_all(&mut self) -> Vec<Function> {
        let keys: Vec<Key> = self.places.keys().copied().collect();
        keys.into_iter().filter_map(|key| self.remove(key).flatten()).collect()
    }

    fn called(&self, mut is_it: impl FnMut(&Function) -> bool) -> Option<usize> {
        let is_it = |its: &Option<Function>| {
            its.as_ref().is_some_and(|its| its.thread.is_some() && is_it(its))
        };
        self.all.iter().position(is_it)
    }

    fn called_by(&self, thread: ThreadId) -> Option<usize> {
        self.called(|its| its.thread == Some(thread))
    }

    /// Whether the call of `key` waits for the end of the call of `other`.
    fn waits_for(&self, key: Key, other: Key) -> bool {
        let mut at = Some(key);
        while let Some(key) = at {
            let place = self.called(|its| its.key == key);
            at = place.and_then(|place| self.all[place].as_ref()?.removes);
            if at == Some(other) {
                return true;
            }
        }
        false
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self) -> Result<MutexGuard<'_, State>, Error> {
        if self.set.is_forked() {
            return Err(Error::Forked); // another thread may have had the lock
        }
        let state = self.lock();
        if state.is_closed { Err(CLOSED) } else { Ok(state) }
    }

    /// A run or a turn begins.
    fn begin(&self) -> Result<MutexGuard<'_, State>, Error> {
        let mut state = self.open()?;
        state.is_over = false;
        Ok(state)
    }

    /// It ends; false if it was stopped.
    fn end(&self, mut state: MutexGuard<'_, State>) -> Result<bool, Error> {
        let is_over = self.is_over(&state);
        if is_over {
            self.stop.reset();
        }
        match state.error.take() {
            Some(error) => Err(error),
            None if state.is_closed => Err(CLOSED),
            None => Ok(!is_over),
        }
    }

    /// Whether nothing more is to be called.
    #[inline]
    fn is_over(&self, state: &State) -> bool {
        state.is_over || self.stop.is_triggered()
    }

    fn fail(&self, error: Error) {
        let mut state = self.lock();
        state.error.get_or_insert(error);
        state.is_over = true;
    }

    /// Calls what is due until it is over. `shares`: other threads do the same.
    fn work(&self, shares: bool) {
        let _others = EndOthers { shared: self, shares };
        let (thread, mut calls) = (std::thread::current().id(), 0u32);
        // Whether this thread asks now and then if it is to go on.
        let asks = cancel::slice(Duration::MAX) < Duration::MAX;
        let mut state = self.lock();
        while !self.is_over(&state) {
            let job = state.next_job();
            let has_job = job.is_some();
            state = match job {
                Some(job) => self.call(state, job, thread, true),
                None => self.refill(state, shares, Duration::MAX),
            };
            calls = calls.wrapping_add(1);
            if asks && (!has_job || calls.is_multiple_of(CALLS_PER_CHECK)) {
                drop(state);
                let is_cancelled = cancel::is_cancelled();
                state = self.lock();
                state.is_over |= is_cancelled;
            }
        }
    }

    /// The next round, from those that may have more, and from the set: waits there for `limit` at most.
    fn refill<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        shares: bool,
        limit: Duration,
    ) -> MutexGuard<'a, State> {
        let State { set, round, again, rounds, has_backlog, .. } = &mut *state;
        // A look costs as much as a call with a sample: not before somebody has something new.
        if !again.is_empty() && (shares || *has_backlog) {
            let is_told = set.as_ref().is_some_and(|set| set.has_been_told());
            if !is_told && *rounds < ROUNDS_MAX {
                *rounds += 1;
                std::mem::swap(round, again);
                return state;
            }
        }
        let has_more = shares && !again.is_empty();
        let Some(mut set) = set.take() else {
            if has_more {
                std::mem::swap(round, again);
                return state;
            }
            return self.idle(state, limit); // another thread waits in it
        };
        *rounds = 0;
        drop(state);
        let waited = set.wait(if has_more { Duration::ZERO } else { limit }).map(|_| ());
        let mut state = self.lock();
        let State { functions, round, again, has_backlog, looks_at_timers, .. } = &mut *state;
        *looks_at_timers = false;
        if shares {
            round.append(again); // they are paused, and so not reported
        }
        let mut is_stopped = false;
        for key in if waited.is_ok() { set.ready() } else { &[] } {
            is_stopped |= *key == self.stop.key();
            *has_backlog |= again.iter().any(|job| job.key == *key);
            let Some(place) = functions.place(*key) else { continue };
            let _paused = if shares { set.pause(*key) } else { None };
            round.push_back(Job { key: *key, place, _paused });
        }
        again.clear();
        state.is_over |= is_stopped || waited.is_err();
        match waited {
            Ok(()) | Err(Error::Closed { .. }) => {}
            Err(error) => _ = state.error.get_or_insert(error),
        }
        if state.idle > 0 {
            self.work.notify_all(); // for the rest of the round, or for the set
        }
        if state.is_closed {
            drop(state);
            drop(set);
            return self.lock();
        }
        state.set = Some(set);
        state
    }

    fn idle<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        limit: Duration,
    ) -> MutexGuard<'a, State> {
        state.idle += 1;
        let waited = match cancel::slice(limit) {
            Duration::MAX => self.work.wait(state),
            limit => self
                .work
                .wait_timeout(state, limit)
                .map(|(state, _)| state)
                .map_err(|error| PoisonError::new(error.into_inner().0)),
        };
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        state.idle -= 1;
        state
    }

    /// Calls a function; `again`: with one sample after the other, as long as nobody else has a turn.
    fn call<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        job: Job,
        thread: ThreadId,
        again: bool,
    ) -> MutexGuard<'a, State> {
        // It may have been removed, or be a timer's whose call is under way.
        let Some(function) = state.functions.at(job.place, job.key) else { return state };
        let Some(mut call) = function.call.take() else { return state };
        function.thread = Some(thread);
        let is_timer = function.is_timer;
        state.calls += 1;
        let called = loop {
            drop(state);
            let called = catch_unwind(AssertUnwindSafe(&mut call));
            state = self.lock();
            let may_again = again && matches!(called, Ok(Ok(true))) && self.is_alone(&mut state);
            if !may_again || state.functions.at(job.place, job.key).is_none() {
                break called;
            }
        };
        let is_removed = match state.functions.at(job.place, job.key) {
            Some(function) => {
                function.call = Some(call);
                function.thread = None;
                false
            }
            None => {
                drop(state);
                drop(call);
                state = self.lock();
                state.functions.all[job.place] = None;
                true
            }
        };
        state.calls -= 1;
        if state.removers > 0 {
            self.ended.notify_all();
        }
        state.looks_at_timers = !is_timer;
        match called {
            Ok(Ok(true)) if !is_removed => state.again.push_back(job),
            Ok(Ok(_)) => state.has_backlog &= is_timer,
            Ok(Err(error)) => {
                state.error.get_or_insert(error);
                state.is_over = true;
            }
            Err(panic) => {
                drop(state);
                resume_unwind(panic);
            }
        }
        state
    }

    /// Whether nobody but the function that has just been called has something, as far as is known.
    #[inline]
    fn is_alone(&self, state: &mut State) -> bool {
        if !state.round.is_empty() || !state.again.is_empty() || self.is_over(state) {
            return false;
        }
        let Some(set) = &state.set else { return true }; // another thread waits in it
        state.rounds += 1;
        state.has_backlog && state.rounds < ROUNDS_MAX && !set.has_timers() && !set.has_been_told()
    }

    /// Waits for the end of a call of a function that has been removed; not if that waits for us.
    fn wait_for_end(&self, mut state: MutexGuard<'_, State>, key: Key) {
        let thread = std::thread::current().id();
        let functions = &mut state.functions;
        let own = functions.called_by(thread).and_then(|place| functions.all[place].as_mut());
        let own = own.map(|own| {
            own.removes = Some(key);
            own.key
        });
        let is_cycle = own.is_some_and(|own| own == key || state.functions.waits_for(key, own));
        while !is_cycle && state.functions.called(|its| its.key == key).is_some() {
            state = self.wait_for_some_end(state);
        }
        if let Some(place) = state.functions.called_by(thread)
            && let Some(own) = &mut state.functions.all[place]
        {
            own.removes = None;
        }
    }

    fn wait_for_some_end<'a>(&self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        state.removers += 1;
        let mut state = self.ended.wait(state).unwrap_or_else(PoisonError::into_inner);
        state.removers -= 1;
        state
    }
}

/// Ends the other threads when this one ends, also by a panic.
struct EndOthers<'a> {
    shared: &'a Shared,
    shares: bool,
}

impl Drop for EndOthers<'_> {
    fn drop(&mut self) {
        if self.shares {
            self.shared.lock().is_over = true;
            self.shared.work.notify_all();
            self.shared.stop.trigger(); // wakes the one that waits in the set
        }
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

const CLOSED: Error = Error::Closed { what: "executor" };
/// Rounds without a look at what nobody has told of: publishers can take such words from each other.
const ROUNDS_MAX: u32 = 64;
/// Calls between two checks, if there is always something to call.
const CALLS_PER_CHECK: u32 = 64;
