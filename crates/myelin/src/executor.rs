//! Functions that are called with the samples of many topics, in one thread.

use std::os::fd::OwnedFd;
use std::time::Duration;

use crate::payload::Payload;
use crate::sample::Sample;
use crate::subscriber::Subscriber;
use crate::wait_set::{Guard, Key, WaitSet};
use crate::{Error, Wait};

type Call = Box<dyn FnMut() -> Result<(), Error> + Send>;

/// Calls functions with the samples of any number of topics, and at intervals, in the one thread that
/// runs it: no two of them at once, so they need no locks among themselves. Made by
/// [`Node::executor`](crate::Node::executor).
///
/// It has no thread of its own: name, affinity and scheduling policy are those of the thread that you
/// run it in. For several threads make several executors.
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

    /// Waits for something to call, for `limit` at most, and calls all that is due: for who has a loop of
    /// his own. False if the stop guard was triggered.
    ///
    /// # Errors
    /// The first of what [`Subscriber::take`] says; everything else that was due has been called. It can
    /// go on with the next turn.
    pub fn turn(&mut self, limit: Duration) -> Result<bool, Error> {
        let Executor { set, calls, stop } = self;
        let (mut goes_on, mut done) = (true, Ok(()));
        for key in set.wait(limit)? {
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

impl std::fmt::Debug for Executor {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Executor").field("set", &self.set).finish_non_exhaustive()
    }
}

/// Samples of one subscriber that are worked on before others have their turn.
const TURN_MAX: usize = 64;
