//! One thread that waits for many topics.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Deref;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use myelin_shm::wait_set as shm;
pub(crate) use myelin_shm::wait_set::Paused;
pub use myelin_shm::wait_set::{GuardCondition, Key};

use crate::payload::Payload;
use crate::subscriber::{Subscriber, until_ns};
use crate::{Error, Wait};

/// Waits for any number of things at once: subscribers of its node, guard conditions, timers. Made by
/// [`Node::wait_set`](crate::Node::wait_set).
///
/// It only waits: the user keeps the subscribers and takes from them as usual while they are in the
/// set. The cost of a wait depends on what is ready, not on how much is watched.
///
/// One thread waits, and the set can be sent to another one. Any thread changes it meanwhile, by
/// its [handle](WaitSet::handle), which has all methods except [`wait`](WaitSet::wait): the running
/// wait takes the change into account. A node has at most 1,024 wait sets.
///
/// ```
/// # fn main() -> Result<(), myelin::Error> {
/// # use std::time::Duration;
/// # let folder = tempfile::tempdir().unwrap();
/// # let node = myelin::Node::builder("doc").runtime_dir(folder.path()).open()?;
/// let mut imu = node.topic::<[f64; 6]>("imu").subscriber()?;
/// let mut goals = node.topic::<[f64; 2]>("goals").subscriber()?;
/// let mut set = node.wait_set()?;
/// let (of_imu, of_goals) = (set.add(&imu)?, set.add(&goals)?);
/// let tick = set.timer(Duration::from_millis(100))?;
/// let stop = set.guard_condition()?; // to be triggered by another thread, or by a signal handler
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
    handle: WaitSetHandle,
}

/// Changes a [`WaitSet`] from any thread, also while another one waits in it. Clones belong to the
/// same set.
///
/// ```
/// # fn main() -> Result<(), myelin::Error> {
/// # use std::time::Duration;
/// # let folder = tempfile::tempdir().unwrap();
/// # let node = myelin::Node::builder("doc").runtime_dir(folder.path()).open()?;
/// let mut set = node.wait_set()?;
/// let handle = set.handle();
/// let thread = std::thread::spawn(move || set.wait(Duration::MAX).map(|ready| ready.len()));
/// let tick = handle.timer(Duration::from_millis(10))?; // ends the wait 10 ms from now
/// assert_eq!(thread.join().expect("no panic")?, 1);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct WaitSetHandle {
    inner: shm::WaitSetHandle,
    wait: Arc<AtomicU32>,
}

impl WaitSet {
    pub(crate) fn new(inner: shm::WaitSet) -> WaitSet {
        let wait = Arc::new(AtomicU32::new(code_of(Wait::default())));
        let handle = WaitSetHandle { inner: inner.handle().clone(), wait };
        WaitSet { inner, handle }
    }

    /// The handle for other threads.
    pub fn handle(&self) -> WaitSetHandle {
        self.handle.clone()
    }

    /// Waits until something is ready, for at most `limit` (`Duration::MAX`: for ever), and returns
    /// what is ready. Empty if the time is over. A subscriber with samples left is ready again in
    /// the next wait.
    ///
    /// # Errors
    /// [`Error::Closed`] once it is closed, also by another thread meanwhile. [`Error::Forked`].
    #[inline]
    pub fn wait(&mut self, limit: Duration) -> Result<&[Key], Error> {
        self.wait_until(until_ns(limit))
    }

    /// Like `wait`, until [`now`](crate::now) is `until_ns`: for callers that wait again after a
    /// wait without a result.
    ///
    /// # Errors
    /// As for [`wait`](WaitSet::wait).
    #[doc(hidden)]
    #[inline]
    pub fn wait_until(&mut self, until_ns: u64) -> Result<&[Key], Error> {
        let how = &self.handle.wait;
        // ORDER: Relaxed: no other data depends on the number.
        self.inner.wait_by(|| wait_of(how.load(Ordering::Relaxed)), until_ns)
    }

    /// The members that the last wait has reported.
    pub(crate) fn ready(&self) -> &[Key] {
        self.inner.ready()
    }

    /// Whether something may be ready that the last wait has not reported.
    #[inline]
    pub(crate) fn has_news(&self) -> bool {
        self.inner.has_news()
    }

    /// Whether a timer is due. The clock is read only if there are timers.
    #[inline]
    pub(crate) fn has_due_timer(&self) -> bool {
        self.inner.has_due_timer()
    }

    /// The timers that are due.
    #[inline]
    pub(crate) fn due_timers(&mut self) -> &[Key] {
        self.inner.due_timers()
    }

    /// When a timer that was reported last was due, in ns.
    pub(crate) fn due_ns(&self, key: Key) -> Option<u64> {
        self.inner.due_ns(key)
    }

    /// Stops reporting a subscriber, because a thread works on it, until the result is dropped.
    pub(crate) fn pause(&self, key: Key) -> Option<Paused> {
        self.inner.pause(key)
    }
}

impl Deref for WaitSet {
    type Target = WaitSetHandle;

    fn deref(&self) -> &WaitSetHandle {
        &self.handle
    }
}

impl WaitSetHandle {
    /// Watches a subscriber, until it is [removed](Self::remove), dropped or turned into a
    /// callback. It is ready while there is a sample to take, and once for each event that would
    /// end its own [`wait`](Subscriber::wait).
    ///
    /// # Errors
    /// [`Error::Setting`] if it belongs to another node, or is in a wait set already.
    /// [`Error::Closed`].
    pub fn add<T: Payload + ?Sized>(&self, subscriber: &Subscriber<T>) -> Result<Key, Error> {
        self.inner.add(subscriber.reader())
    }

    /// A guard condition: triggering it ends a wait.
    ///
    /// # Errors
    /// [`Error::TooMany`]: a node has at most 16,384 subscribers and guards. [`Error::Closed`].
    pub fn guard_condition(&self) -> Result<GuardCondition, Error> {
        self.inner.guard_condition()
    }

    /// A guard condition that waits report until it is reset, and whose state can be read meanwhile.
    pub(crate) fn guard_until_reset(&self) -> Result<GuardCondition, Error> {
        self.inner.guard_until_reset()
    }

    /// A timer: ready once every `period`, the first time one period from now. Periods that pass
    /// while no thread waits count as one.
    ///
    /// # Errors
    /// [`Error::Setting`] for a period of 0. [`Error::Closed`].
    pub fn timer(&self, period: Duration) -> Result<Key, Error> {
        self.inner.timer(period)
    }

    /// Stops watching a member: it may be added to another set at once. A wait that is just ending
    /// in another thread may still report it. False if it is not in the set.
    pub fn remove(&self, key: Key) -> bool {
        self.inner.remove(key)
    }

    /// Whether it is in the set. For an object dropped without a [`remove`](Self::remove) this
    /// becomes false at the set's next look, or when others are added.
    pub fn contains(&self, key: Key) -> bool {
        self.inner.contains(key)
    }

    /// A descriptor for your own epoll, owned by the caller: one for everything that the set
    /// watches. It is readable while a [`wait`](WaitSet::wait) may have something to report, and
    /// until a wait has reported nothing:
    ///
    /// 1. wait for the descriptor, level- or edge-triggered;
    /// 2. call `set.wait(Duration::ZERO)`, and work on what it reports, until it reports nothing.
    ///
    /// It may be readable without need: another set of the node was woken, a publisher is hostile,
    /// or the set must check whether one publisher has hidden another's sample (ten times a second,
    /// if publishers of several nodes are matched with this node's subscribers). It is an epoll
    /// itself: poll it or add it to another epoll, and do nothing else with it. From the first call
    /// on a wait costs one or two more system calls.
    ///
    /// # Errors
    /// Errors of the limit of open files; [`Error::Closed`]; [`Error::Forked`].
    pub fn descriptor(&self) -> Result<OwnedFd, Error> {
        self.inner.descriptor()
    }

    /// How [`wait`](WaitSet::wait) waits; by default [`Wait::Adaptive`]. A running wait goes on in
    /// this way.
    pub fn set_wait(&self, wait: Wait) {
        // ORDER: Relaxed: as in `wait`.
        self.wait.store(code_of(wait), Ordering::Relaxed);
        self.inner.wait_anew();
    }

    /// Stops watching everything. A running wait ends at once with [`Error::Closed`], and so does
    /// each later one. The watched objects go on.
    pub fn close(&self) {
        self.inner.close();
    }

    /// Whether this is a child of the process that made it.
    #[doc(hidden)]
    pub fn is_forked(&self) -> bool {
        self.inner.is_forked()
    }

    /// Whether it is closed, or its [`WaitSet`] has been dropped.
    pub fn is_closed(&self) -> bool {
        self.inner.is_closed()
    }
}

/// A map by keys: their hash takes an instruction or two.
#[doc(hidden)]
pub type KeyMap<V> = HashMap<Key, V, BuildHasherDefault<KeyHasher>>;

/// Keys are consecutive numbers.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

fn code_of(wait: Wait) -> u32 {
    match wait {
        Wait::Adaptive => 0,
        Wait::Block => 1,
        Wait::Poll => 2,
        Wait::Predictive => 3,
        Wait::PredictiveWithin { cpu_permille } => 4 | u32::from(cpu_permille) << 8,
    }
}

#[inline]
fn wait_of(code: u32) -> Wait {
    match code & 0xff {
        0 => Wait::Adaptive,
        1 => Wait::Block,
        2 => Wait::Poll,
        3 => Wait::Predictive,
        _ => Wait::PredictiveWithin { cpu_permille: (code >> 8) as u16 },
    }
}
