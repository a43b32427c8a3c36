//! One thread that waits for many topics.

use std::os::fd::OwnedFd;
use std::time::Duration;

use myelin_shm::waiting::wait_set as shm;
pub(crate) use myelin_shm::waiting::wait_set::Paused;
pub use myelin_shm::waiting::wait_set::{Guard, Key};

use crate::payload::Payload;
use crate::subscriber::{Subscriber, until_ns};
use crate::{Error, Wait};

/// Waits for any number of things at once: subscribers of its node, guards, timers. Made by
/// [`Node::wait_set`](crate::Node::wait_set).
///
/// It only waits: the subscribers stay the user's own, to be taken from in any way, while they are in
/// the set too. A wait costs what is ready, whatever the number of what is watched. One thread at a
/// time uses it, and it can be sent to another.
///
/// ```
/// # fn main() -> Result<(), myelin::Error> {
/// # use std::time::Duration;
/// # let folder = tempfile::tempdir().unwrap();
/// # let node = myelin::Node::builder("doc").folder(folder.path()).open()?;
/// let mut imu = node.topic::<[f64; 6]>("imu").subscriber()?;
/// let mut goals = node.topic::<[f64; 2]>("goals").subscriber()?;
/// let mut set = node.wait_set()?;
/// let (of_imu, of_goals) = (set.add(&imu)?, set.add(&goals)?);
/// let tick = set.timer(Duration::from_millis(100))?;
/// let stop = set.guard()?; // to be triggered by another thread, or by a signal handler
/// # let publisher = node.topic::<[f64; 6]>("imu").publisher()?;
/// # publisher.wait_for_match(1, Duration::from_secs(60));
/// # publisher.publish_copy(&[0.5; 6])?;
/// # std::thread::scope(|scope| -> Result<(), myelin::Error> {
/// # scope.spawn({ let stop = stop.clone(); move || stop.trigger() });
/// loop {
///     let ready = set.wait(Duration::MAX)?;
///     if ready.contains(&of_imu) {
///         while let Some(sample) = imu.take()? {
///             println!("{sample:?}");
///         }
///     }
///     if ready.contains(&of_goals) {
///         while let Some(goal) = goals.take()? {
///             println!("{goal:?}");
///         }
///     }
///     if ready.contains(&tick) {
///         println!("still here");
///     }
///     if ready.contains(&stop.key()) {
///         break;
///     }
/// }
/// # Ok(()) })?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct WaitSet {
    inner: shm::WaitSet,
    wait: Wait,
}

impl WaitSet {
    pub(crate) fn new(inner: shm::WaitSet) -> WaitSet {
        WaitSet { inner, wait: Wait::default() }
    }

    /// Watches a subscriber, until it is [removed](WaitSet::remove), dropped or turned into a callback.
    /// It is ready while there is a sample to take, and once for each event that its own
    /// [`wait`](Subscriber::wait) would end for.
    ///
    /// # Errors
    /// [`Error::Setting`] if it is of another node, or in a wait set already.
    pub fn add<T: Payload + ?Sized>(&mut self, subscriber: &Subscriber<T>) -> Result<Key, Error> {
        self.inner.add(subscriber.reader())
    }

    /// A guard: triggering it ends a wait.
    ///
    /// # Errors
    /// [`Error::TooMany`]: subscribers and guards of a node are 16,384 at most.
    pub fn guard(&mut self) -> Result<Guard, Error> {
        self.inner.guard()
    }

    /// A timer: ready once every `period`, the first time one period from now. Periods that have
    /// passed while nobody waited count as one.
    ///
    /// # Errors
    /// [`Error::Setting`] for a period of 0.
    pub fn timer(&mut self, period: Duration) -> Result<Key, Error> {
        self.inner.timer(period)
    }

    /// Watches it no longer. False if it did not.
    pub fn remove(&mut self, key: Key) -> bool {
        self.inner.remove(key)
    }

    /// Waits until something is ready, for `limit` at most (`Duration::MAX`: for ever), and says what
    /// is. Nothing by then: empty. A subscriber from which not all has been taken is ready again in the
    /// next wait.
    ///
    /// # Errors
    /// [`Error::Forked`].
    #[inline]
    pub fn wait(&mut self, limit: Duration) -> Result<&[Key], Error> {
        self.inner.wait(self.wait, until_ns(limit))
    }

    /// A descriptor for somebody's epoll, which is the caller's own: one, whatever the set watches. It is
    /// readable while a [`wait`](WaitSet::wait) may have something to report, and until one has reported
    /// nothing:
    ///
    /// 1. wait for the descriptor, level- or edge-triggered;
    /// 2. `set.wait(Duration::ZERO)`, and work on what it reports, until it reports nothing.
    ///
    /// It may be readable for nothing: another set of the node was woken, a publisher is hostile, or it is
    /// time to look whether one has hidden another's sample (ten times a second, if publishers of several
    /// nodes are matched with this one's subscribers). It is an epoll itself: poll it or add it to another
    /// epoll, and do nothing else with it. From the first call on a wait costs a system call or two more.
    ///
    /// # Errors
    /// What the limit of open files forbids; [`Error::Forked`].
    pub fn descriptor(&mut self) -> Result<OwnedFd, Error> {
        self.inner.descriptor()
    }

    /// Somebody works on it: not reported before what is returned is dropped.
    pub(crate) fn pause(&mut self, key: Key) -> Option<Paused> {
        self.inner.pause(key)
    }

    /// How [`wait`](WaitSet::wait) waits; by default [`Wait::Adaptive`].
    pub fn set_wait(&mut self, wait: Wait) {
        self.wait = wait;
    }
}
