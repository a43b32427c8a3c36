//! How an executor's threads wait, and call the functions that are due.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::Duration;

use super::Order;
use super::functions::Functions;
use super::queue::{Job, Queue};
use crate::wait_set::{GuardCondition, Key, WaitSet, WaitSetHandle};
use crate::{Error, cancel, clock};

pub(super) struct Shared {
    pub(super) set: WaitSetHandle,
    pub(super) stop: GuardCondition,
    state: Mutex<State>,
    /// There is something to call, or to wait in, or the run is over.
    pub(super) work: Condvar,
    /// A call has ended.
    ended: Condvar,
}

pub(super) struct State {
    /// `None` while a thread waits in it, and after it is closed.
    pub(super) set: Option<Box<WaitSet>>,
    pub(super) functions: Functions,
    pub(super) queue: Queue,
    /// How many rounds since the last look at the set; if ordered by age, calls.
    rounds: u32,
    /// Whether samples come faster than they are handled.
    has_backlog: bool,
    /// Whether a timer may be due: no thread has looked since the last call.
    looks_at_timers: bool,
    /// How many calls are running.
    pub(super) calls: usize,
    /// How many threads wait for `work`, and for `ended`.
    idle: usize,
    removers: usize,
    pub(super) is_over: bool,
    pub(super) is_closed: bool,
    /// The first error.
    error: Option<Error>,
}

impl State {
    pub(super) fn new(set: WaitSet) -> State {
        State {
            set: Some(Box::new(set)),
            functions: Functions::default(),
            queue: Queue::default(),
            rounds: 0,
            has_backlog: false,
            looks_at_timers: false,
            calls: 0,
            idle: 0,
            removers: 0,
            is_over: false,
            is_closed: false,
            error: None,
        }
    }

    /// Sets the order. The set reports pending subscribers again; timers it would not report again.
    pub(super) fn set_order(&mut self, order: Order) {
        let jobs = self.queue.take_all();
        self.queue.set_order(order);
        for job in jobs {
            if self.functions.at(job.place, job.key).is_some_and(|function| function.is_timer) {
                self.queue.push(job);
            }
        }
    }

    /// The next call in this round.
    #[inline]
    pub(super) fn next_job(&mut self) -> Option<Job> {
        if self.looks_at_timers
            && !self.queue.is_empty()
            && let Some(set) = &mut self.set
        {
            self.looks_at_timers = false;
            if set.has_due_timer() {
                self.take_due_timers();
            }
        }
        self.queue.pop()
    }

    #[cold]
    fn take_due_timers(&mut self) {
        let State { set: Some(set), functions, queue, .. } = self else { return };
        set.due_timers();
        for key in set.ready().iter().rev() {
            let Some(place) = functions.place(*key) else { continue };
            let since_ns = set.due_ns(*key).unwrap_or(0);
            queue.push_timer(Job { key: *key, place, since_ns, paused: None });
        }
    }

    /// Whether another function may be due whose sample is older than those known.
    #[inline]
    fn may_be_older(&mut self) -> bool {
        if !self.queue.is_by_age() || self.queue.is_empty() {
            return false;
        }
        self.rounds += 1;
        let has_news = |set: &WaitSet| set.has_news() || self.rounds > ROUNDS_MAX;
        self.set.as_deref().is_some_and(has_news)
    }
}

impl Shared {
    pub(super) fn new(set: WaitSet) -> Result<Shared, Error> {
        // A wait that has reported the guard must not hide it from the threads that look between
        // calls.
        let (handle, stop) = (set.handle(), set.guard_until_reset()?);
        let state = Mutex::new(State::new(set));
        Ok(Shared { set: handle, stop, state, work: Condvar::new(), ended: Condvar::new() })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn open(&self) -> Result<MutexGuard<'_, State>, Error> {
        if self.set.is_forked() {
            return Err(Error::Forked); // another thread may have had the lock
        }
        let state = self.lock();
        if state.is_closed { Err(CLOSED) } else { Ok(state) }
    }

    /// Begins a run or a turn.
    pub(super) fn begin(&self) -> Result<MutexGuard<'_, State>, Error> {
        let mut state = self.open()?;
        state.is_over = false;
        Ok(state)
    }

    /// Ends it; false if it was stopped.
    pub(super) fn end(&self, mut state: MutexGuard<'_, State>) -> Result<bool, Error> {
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

    /// Whether there must be no further call.
    #[inline]
    pub(super) fn is_over(&self, state: &State) -> bool {
        state.is_over || self.stop.is_triggered()
    }

    pub(super) fn fail(&self, error: Error) {
        let mut state = self.lock();
        state.error.get_or_insert(error);
        state.is_over = true;
    }

    /// Makes the due calls until the run is over. `shares`: other threads do the same.
    pub(super) fn work(&self, shares: bool) {
        let _others = EndOthers { shared: self, shares };
        let (thread, mut calls) = (std::thread::current().id(), 0u32);
        // Whether this thread checks now and then whether its wait is cancelled.
        let may_cancel = cancel::slice(Duration::MAX) < Duration::MAX;
        let mut state = self.lock();
        while !self.is_over(&state) {
            let job = if state.may_be_older() { None } else { state.next_job() };
            let has_job = job.is_some();
            state = match job {
                Some(job) => self.call(state, job, thread, true),
                None => {
                    let looks_meanwhile = shares || state.queue.is_by_age();
                    self.refill(state, looks_meanwhile, Duration::MAX)
                }
            };
            calls = calls.wrapping_add(1);
            if may_cancel && (!has_job || calls.is_multiple_of(CALLS_PER_CHECK)) {
                drop(state);
                let is_cancelled = cancel::is_cancelled();
                state = self.lock();
                state.is_over |= is_cancelled;
            }
        }
    }

    /// Fills the next round, from the functions that may have more, and from the set: waits there
    /// for at most `limit`. `shares`: another thread looks at the set before the whole round has
    /// been called.
    pub(super) fn refill<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        shares: bool,
        limit: Duration,
    ) -> MutexGuard<'a, State> {
        let State { set, queue, rounds, has_backlog, .. } = &mut *state;
        // A look costs as much as a call with a sample: look only when there is something new.
        if queue.has_again() && (shares || *has_backlog) {
            let has_news = set.as_ref().is_some_and(|set| set.has_news());
            if !has_news && *rounds < ROUNDS_MAX {
                *rounds += 1;
                queue.next_round();
                return state;
            }
        }
        let has_more = !queue.is_empty() || (shares && queue.has_again());
        let Some(mut set) = set.take() else {
            if has_more {
                queue.next_round();
                return state;
            }
            return self.idle(state, limit); // another thread waits in it
        };
        *rounds = 0;
        drop(state);
        let waited = set.wait(if has_more { Duration::ZERO } else { limit }).map(|_| ());
        let mut state = self.lock();
        let State { functions, queue, has_backlog, looks_at_timers, .. } = &mut *state;
        *looks_at_timers = false;
        if shares {
            queue.next_round(); // they are paused, and so not reported
        }
        let mut is_stopped = false;
        for key in if waited.is_ok() { set.ready() } else { &[] } {
            is_stopped |= *key == self.stop.key();
            *has_backlog |= queue.is_again(*key);
            let Some(place) = functions.place(*key) else { continue };
            let since_ns = match queue.order() {
                Order::RoundRobin => 0,
                Order::OldestFirst => since_ns(functions, place, *key, &set),
            };
            let paused = if shares { set.pause(*key) } else { None };
            queue.push(Job { key: *key, place, since_ns, paused });
        }
        queue.clear_again();
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

    /// Calls a function; `again`: repeatedly, one sample after the other, as long as it is its
    /// turn.
    pub(super) fn call<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        job: Job,
        thread: ThreadId,
        again: bool,
    ) -> MutexGuard<'a, State> {
        // It may have been removed, or its timer's call may be running.
        let Some(function) = state.functions.at(job.place, job.key) else { return state };
        let Some(mut callee) = function.callee.take() else { return state };
        function.thread = Some(thread);
        let is_timer = function.is_timer;
        state.calls += 1;
        let by_age = state.queue.is_by_age();
        // Since when it has been due again, if it may be.
        let mut call = || match callee.call()? {
            true if by_age => Ok(callee.since_ns()),
            has_more => Ok(has_more.then_some(0)),
        };
        let called = loop {
            drop(state);
            let called = catch_unwind(AssertUnwindSafe(&mut call));
            state = self.lock();
            let Ok(Ok(Some(since_ns))) = called else { break called };
            let is_next = again && self.is_next(&mut state, since_ns);
            if !is_next || state.functions.at(job.place, job.key).is_none() {
                break called;
            }
        };
        let is_removed = match state.functions.at(job.place, job.key) {
            Some(function) => {
                function.callee = Some(callee);
                function.thread = None;
                false
            }
            None => {
                drop(state);
                drop(callee);
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
            Ok(Ok(Some(since_ns))) if !is_removed => {
                let job = Job { since_ns, ..job };
                match state.queue.order() {
                    Order::OldestFirst if again && job.paused.is_some() => state.queue.push(job),
                    Order::OldestFirst if again => {} // the set reports it
                    _ => state.queue.push_again(job),
                }
            }
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

    /// Whether the function that has just been called is the next one, as far as is known. It has
    /// been due again since then.
    #[inline]
    fn is_next(&self, state: &mut State, since_ns: u64) -> bool {
        if !state.queue.is_before_all(since_ns) || self.is_over(state) {
            return false;
        }
        let Some(set) = &state.set else { return true }; // another thread waits in it
        state.rounds += 1;
        let is_looked_at = state.has_backlog || state.queue.is_by_age();
        let may_be_more = set.has_news() || set.has_due_timer();
        is_looked_at && state.rounds < ROUNDS_MAX && !may_be_more
    }

    /// Waits for the end of a call of a removed function; not if that call waits for this one.
    pub(super) fn wait_for_end(&self, mut state: MutexGuard<'_, State>, key: Key) {
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

    pub(super) fn wait_for_some_end<'a>(
        &self,
        mut state: MutexGuard<'a, State>,
    ) -> MutexGuard<'a, State> {
        state.removers += 1;
        let mut state = self.ended.wait(state).unwrap_or_else(PoisonError::into_inner);
        state.removers -= 1;
        state
    }
}

/// Since when a function that the set has just reported has been due.
fn since_ns(functions: &mut Functions, place: usize, key: Key, set: &WaitSet) -> u64 {
    let mut of_sample = || functions.at(place, key)?.callee.as_mut()?.since_ns();
    set.due_ns(key).or_else(&mut of_sample).unwrap_or_else(clock::now)
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
            self.shared.stop.trigger(); // wakes the thread that waits in the set
        }
    }
}

pub(super) const CLOSED: Error = Error::Closed { what: "executor" };
/// Rounds without a look at members that nobody has reported: publishers can take such reports from
/// each other.
const ROUNDS_MAX: u32 = 64;
/// Calls between two checks, if there is always something to call.
const CALLS_PER_CHECK: u32 = 64;
