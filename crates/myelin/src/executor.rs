//! Functions that are called with the samples of many topics, in one thread or in a few.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::payload::Payload;
use crate::sample::Sample;
use crate::subscriber::Subscriber;
use crate::wait_set::{Guard, Key, Paused, WaitSet};
use crate::{Error, Wait, cancel};

type Call = Box<dyn FnMut() -> Result<(), Error> + Send>;

/// Calls functions with the samples of any number of topics, and at intervals. [Run](Executor::run) in one
/// thread it calls no two of them at once, so they need no locks among themselves; run
/// [on several](Executor::run_on) it calls none twice at once. Made by
/// [`Node::executor`](crate::Node::executor).
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
    set: WaitSet,
    /// By the keys' index; what is no more is empty.
    calls: Vec<Option<Call>>,
    stop: Guard,
}

impl Executor {
    pub(crate) fn new(mut set: WaitSet) -> Result<Executor, Error> {
        let stop = set.guard()?;
        Ok(Executor { set, calls: Vec::new(), stop })
    }

    /// Calls `call` with each sample of `subscriber`. A sample is lent for the length of the call; to
    /// keep it, clone it. If samples come faster than they are worked on, others have their turn after
    /// 64 of them.
    ///
    /// # Errors
    /// As [`WaitSet::add`].
    pub fn on_sample<T, F>(
        &mut self,
        mut subscriber: Subscriber<T>,
        mut call: F,
    ) -> Result<Key, Error>
    where
        T: Payload + ?Sized + 'static,
        F: FnMut(&Sample<T>) + Send + 'static,
    {
        let key = self.set.add(&subscriber)?;
        let take = move || {
            for _ in 0..TURN_MAX {
                let Some(sample) = subscriber.take()? else { break };
                call(&sample);
            }
            Ok(())
        };
        self.insert(key, Box::new(take));
        Ok(key)
    }

    /// Calls `call` every `period`, the first time one period from now. Periods that have passed while
    /// something else was called count as one.
    ///
    /// # Errors
    /// As [`WaitSet::timer`].
    pub fn on_timer<F>(&mut self, period: Duration, mut call: F) -> Result<Key, Error>
    where
        F: FnMut() + Send + 'static,
    {
        let key = self.set.timer(period)?;
        let call = move || {
            call();
            Ok(())
        };
        self.insert(key, Box::new(call));
        Ok(key)
    }

    /// Calls it no more, and drops its function and its subscriber. False if it was not there.
    pub fn remove(&mut self, key: Key) -> bool {
        let is_ours = key != self.stop.key() && self.set.remove(key);
        if is_ours {
            self.calls[key.index()] = None;
        }
        is_ours
    }

    /// Triggering it ends [`run`](Executor::run), after the call that is under way.
    pub fn stop_guard(&self) -> Guard {
        self.stop.clone()
    }

    /// A descriptor for somebody's epoll, as that of a [wait set](WaitSet::descriptor): when it is readable,
    /// `turn(Duration::ZERO)`.
    ///
    /// # Errors
    /// As [`WaitSet::descriptor`].
    pub fn descriptor(&mut self) -> Result<OwnedFd, Error> {
        self.set.descriptor()
    }

    /// How it waits; by default [`Wait::Adaptive`].
    pub fn set_wait(&mut self, wait: Wait) {
        self.set.set_wait(wait);
    }

    /// Calls until its [stop guard](Executor::stop_guard) is triggered. It can be run again.
    ///
    /// # Errors
    /// As [`turn`](Executor::turn).
    pub fn run(&mut self) -> Result<(), Error> {
        while self.turn(Duration::MAX)? {}
        Ok(())
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
    /// If a function does, when all have ended.
    pub fn run_on(&mut self, threads: usize) -> Result<(), Error> {
        let Executor { set, calls, stop } = self;
        let calls: Vec<_> = calls.iter_mut().map(|call| call.as_mut().map(Mutex::new)).collect();
        let queue = Mutex::new(Queue { set, jobs: VecDeque::new(), is_over: false });
        let shared = Shared { queue, calls: &calls, stop, error: Mutex::default() };
        std::thread::scope(|scope| {
            for number in 2..=threads {
                let builder = std::thread::Builder::new().name(format!("executor-{number}"));
                if let Err(error) = builder.spawn_scoped(scope, || shared.work()) {
                    shared.end(Error::system("starting an executor's thread", error));
                }
            }
            shared.work();
        });
        let error = shared.error.into_inner().unwrap_or_else(PoisonError::into_inner);
        error.map_or(Ok(()), Err)
    }

    /// Waits for something to call, for `limit` at most, and calls all that is due: for who has a loop of
    /// his own. False if the stop guard was triggered.
    ///
    /// # Errors
    /// The first of what [`Subscriber::take`] says; everything else that was due has been called. It can
    /// go on with the next turn.
    pub fn turn(&mut self, limit: Duration) -> Result<bool, Error> {
        let Executor { set, calls, stop } = self;
        let (mut goes_on, mut done) = (true, Ok(()));
        let ready = set.wait(limit)?;
        if ready.is_empty() && cancel::is_cancelled() {
            return Ok(false);
        }
        for key in ready {
            if *key == stop.key() {
                goes_on = false;
            } else if let Some(call) = calls.get_mut(key.index()).and_then(Option::as_mut) {
                let called = call();
                done = done.and(called);
            }
        }
        done.map(|()| goes_on)
    }

    fn insert(&mut self, key: Key, call: Call) {
        self.calls.resize_with(key.index() + 1, || None);
        self.calls[key.index()] = Some(call);
    }
}

/// What the threads of an executor share.
struct Shared<'a> {
    /// Who has it and finds nothing that is due waits for something; the others wait for it.
    queue: Mutex<Queue<'a>>,
    calls: &'a [Option<Mutex<&'a mut Call>>],
    stop: &'a Guard,
    /// The first one.
    error: Mutex<Option<Error>>,
}

struct Queue<'a> {
    set: &'a mut WaitSet,
    /// What is to be called, and its subscriber, which the set does not report meanwhile.
    jobs: VecDeque<(Key, Option<Paused>)>,
    is_over: bool,
}

impl Shared<'_> {
    /// Calls what is due until the end.
    fn work(&self) {
        // Others would wait for ever for the end of this thread.
        let _panicking = EndAll(self.stop);
        while let Some((key, _paused)) = self.next() {
            let call = self.calls.get(key.index()).and_then(Option::as_ref);
            // A timer's function may be under way.
            if let Some(Ok(mut call)) = call.map(Mutex::try_lock)
                && let Err(error) = call()
            {
                self.end(error);
            }
        }
    }

    /// The next call that is due. `None`: the end.
    fn next(&self) -> Option<(Key, Option<Paused>)> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        while !queue.is_over {
            let Queue { set, jobs, is_over } = &mut *queue;
            if let Some(job) = jobs.pop_front() {
                return Some(job);
            }
            match set.wait(Duration::MAX).map(<[Key]>::to_vec) {
                Ok(ready) if ready.contains(&self.stop.key()) => *is_over = true,
                Ok(ready) if ready.is_empty() && cancel::is_cancelled() => *is_over = true,
                Ok(ready) => jobs.extend(ready.into_iter().map(|key| (key, set.pause(key)))),
                Err(error) => {
                    *is_over = true;
                    self.note(error);
                }
            }
        }
        None
    }

    /// Ends all threads, after what is due has been called.
    fn end(&self, error: Error) {
        self.note(error);
        self.stop.trigger();
    }

    fn note(&self, error: Error) {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }
}

/// Ends all threads if this one panics.
struct EndAll<'a>(&'a Guard);

impl Drop for EndAll<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.trigger();
        }
    }
}

impl std::fmt::Debug for Executor {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Executor").field("set", &self.set).finish_non_exhaustive()
    }
}

/// Samples of one subscriber that are worked on before others have their turn.
const TURN_MAX: usize = 64;
