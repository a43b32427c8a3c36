//! A wait set's interface for any thread: add and remove members, close, and make guards. The set
//! applies the changes in its next look. If it sleeps, a change wakes it by a bit of the ready
//! table, like a guard condition; so checking for changes costs a look nothing.

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::Key;
use super::guard::{GuardCondition, Triggered};
use super::member::{Member, Watched};
use super::timers::Timer;
use crate::data_plane::subscription::{Reader, SubscriptionState};
use crate::error::Error;
use crate::os::descriptor::duplicate;
use crate::sync::{AtomicBool, Mutex, MutexGuard, Ordering, lock};
use crate::waiting::event_fd::EventFd;
use crate::waiting::set_descriptor::SetDescriptor;
use crate::waiting::wait::{self, NEVER};
use crate::waiting::wake_table::{ReadyBit, WakeTable};

/// Changes a wait set from any thread, also while another one waits in it. Clones belong to the
/// same set.
#[derive(Clone)]
pub struct WaitSetHandle(Arc<WaitSetState>);

struct WaitSetState {
    table: Arc<WakeTable>,
    set: u32,
    /// The bit that makes the set look for changes.
    own: Arc<ReadyBit>,
    is_changed: AtomicBool,
    members: Mutex<Members>,
}

#[derive(Default)]
struct Members {
    keys: u64,
    watched: HashMap<Key, Registered>,
    /// The changes that the set has not applied, in order.
    changes: Vec<Change>,
    descriptor: Option<(OwnedFd, Arc<EventFd>)>,
    is_closed: bool,
    /// At this number of members, the next addition looks for members that have gone.
    prune_at: usize,
}

enum Registered {
    Subscriber(Weak<SubscriptionState>),
    GuardCondition(Weak<Triggered>),
    Timer,
}

pub(super) enum Change {
    Insert(Member),
    Timer(Timer),
    Remove(Key),
    Descriptor(SetDescriptor),
}

impl Change {
    fn inserts(&self, key: Key) -> bool {
        match self {
            Change::Insert(member) => member.key == key,
            Change::Timer(timer) => timer.key == key,
            Change::Remove(_) | Change::Descriptor(_) => false,
        }
    }
}

impl Registered {
    /// Its subscriber, if the set must stop watching it.
    fn leave(self, set: u32) -> Option<Arc<SubscriptionState>> {
        let Registered::Subscriber(shared) = self else { return None };
        let shared = shared.upgrade()?;
        shared.sleeper.leave(set);
        Some(shared)
    }

    /// Whether it still exists; and the subscriber that was locked to find out, if any.
    fn is_there(&self, set: u32) -> (bool, Option<Arc<SubscriptionState>>) {
        match self {
            Registered::Subscriber(shared) => {
                let shared = shared.upgrade();
                (shared.as_ref().is_some_and(|it| it.sleeper.set() == Some(set)), shared)
            }
            Registered::GuardCondition(triggered) => (triggered.strong_count() > 0, None),
            Registered::Timer => (true, None),
        }
    }
}

impl Members {
    fn next_key(&mut self) -> Key {
        self.keys += 1;
        Key(self.keys - 1)
    }

    /// Makes the set forget a member, or never learn of it.
    fn withdraw(&mut self, key: Key) {
        match self.changes.iter().position(|change| change.inserts(key)) {
            Some(at) => drop(self.changes.remove(at)),
            None => self.changes.push(Change::Remove(key)),
        }
    }

    /// Forgets members that have gone if there are many members: they may come and go although no
    /// thread waits. Returns objects that must not be dropped under the lock.
    fn prune(&mut self, set: u32) -> Vec<Arc<SubscriptionState>> {
        let mut seen = Vec::new();
        if self.watched.len() < self.prune_at.max(PRUNE_MIN) {
            return seen;
        }
        let is_gone = |(key, its): (&Key, &Registered)| {
            let (is_there, shared) = its.is_there(set);
            seen.extend(shared);
            (!is_there).then_some(*key)
        };
        let gone: Vec<Key> = self.watched.iter().filter_map(is_gone).collect();
        for key in gone {
            self.watched.remove(&key);
            self.withdraw(key);
        }
        self.prune_at = 2 * self.watched.len();
        seen
    }
}

impl WaitSetHandle {
    pub(super) fn new(table: &Arc<WakeTable>, set: u32) -> Result<WaitSetHandle, Error> {
        Ok(WaitSetHandle(Arc::new(WaitSetState {
            table: table.clone(),
            set,
            own: Arc::new(ReadyBit::take(table)?),
            is_changed: AtomicBool::new(false),
            members: Mutex::new(Members::default()),
        })))
    }

    pub(super) fn own(&self) -> &Arc<ReadyBit> {
        &self.0.own
    }

    /// Whether there are changes to apply.
    pub(super) fn is_changed(&self) -> bool {
        // ORDER: Relaxed: the lock in `take_changes` acquires.
        self.0.is_changed.load(Ordering::Relaxed)
    }

    /// The changes to apply, once. `None`: the set is closed.
    pub(super) fn take_changes(&self) -> Option<Vec<Change>> {
        let mut members = lock(&self.0.members);
        self.0.is_changed.store(false, Ordering::Relaxed);
        (!members.is_closed).then(|| std::mem::take(&mut members.changes))
    }

    /// Removes a member that the set has found gone.
    pub(super) fn forget(&self, key: Key) {
        lock(&self.0.members).watched.remove(&key);
    }

    fn open(&self) -> Result<MutexGuard<'_, Members>, Error> {
        if self.is_forked() {
            return Err(Error::Forked);
        }
        let members = lock(&self.0.members);
        if members.is_closed { Err(CLOSED) } else { Ok(members) }
    }

    /// Makes the set apply the changes.
    fn notify(&self) {
        // ORDER: Relaxed: the set, which is woken below, takes the lock under which the change was
        // made.
        self.0.is_changed.store(true, Ordering::Relaxed);
        self.0.own.notify(self.0.set as usize);
    }

    /// Watches a subscriber, until it is removed, dropped or becomes a callback.
    ///
    /// # Errors
    /// [`Error::Setting`] if it belongs to another node, or is in a wait set already.
    /// [`Error::Closed`], [`Error::Forked`].
    pub fn add(&self, subscriber: &Reader) -> Result<Key, Error> {
        let shared = subscriber.shared();
        let wrong = |value: &str, remedy| Error::Setting {
            topic: Some(shared.topic().name.clone()),
            field: "the subscriber of a wait set",
            value: value.to_owned(),
            remedy,
        };
        if !Arc::ptr_eq(shared.sleeper.ready_bit().table(), &self.0.table) {
            return Err(wrong("of another node", "make the wait set of the subscriber's own node"));
        }
        let _seen; // dropped after the lock
        let mut members = self.open()?;
        if !shared.sleeper.enter(self.0.set) {
            return Err(wrong("in a wait set already", "remove it from that one first"));
        }
        subscriber.note_place();
        _seen = members.prune(self.0.set);
        let (key, weak) = (members.next_key(), Arc::downgrade(shared));
        let what = Watched::Subscriber(weak.clone());
        members.watched.insert(key, Registered::Subscriber(weak));
        members.changes.push(Change::Insert(Member::new(
            key,
            shared.sleeper.ready_bit().clone(),
            what,
        )));
        drop(members);
        self.notify();
        Ok(key)
    }

    /// A guard condition of this set. It may outlive the set: triggering it then does nothing.
    ///
    /// # Errors
    /// [`Error::TooMany`], [`Error::Closed`], [`Error::Forked`].
    pub fn guard_condition(&self) -> Result<GuardCondition, Error> {
        self.make_guard(false)
    }

    /// A guard condition that waits report until it is [reset](GuardCondition::reset).
    ///
    /// # Errors
    /// As for [`guard`](Self::guard).
    pub fn guard_until_reset(&self) -> Result<GuardCondition, Error> {
        self.make_guard(true)
    }

    fn make_guard(&self, is_kept: bool) -> Result<GuardCondition, Error> {
        let _seen; // as above
        let mut members = self.open()?;
        _seen = members.prune(self.0.set);
        let ready_bit = Arc::new(ReadyBit::take(&self.0.table)?);
        let (set, key, is_set) = (self.0.set, members.next_key(), AtomicBool::new(false));
        let triggered = Arc::new(Triggered { ready_bit: ready_bit.clone(), set, is_set, is_kept });
        let weak = Arc::downgrade(&triggered);
        let what = Watched::GuardCondition(weak.clone());
        members.watched.insert(key, Registered::GuardCondition(weak));
        members.changes.push(Change::Insert(Member::new(key, ready_bit, what)));
        drop(members);
        self.notify();
        Ok(GuardCondition { key, triggered })
    }

    /// Ends a wait every `period`, the first time after one period. Periods that pass while no
    /// thread waits are reported once.
    ///
    /// # Errors
    /// [`Error::Setting`] for a period of 0. [`Error::Closed`], [`Error::Forked`].
    pub fn timer(&self, period: Duration) -> Result<Key, Error> {
        let period_ns = u64::try_from(period.as_nanos()).unwrap_or(NEVER);
        if period_ns == 0 {
            let (field, value) = ("period", "0".to_owned());
            let remedy = "a timer's period is at least a nanosecond";
            return Err(Error::Setting { topic: None, field, value, remedy });
        }
        let mut members = self.open()?;
        let key = members.next_key();
        let due_ns = wait::now_ns().saturating_add(period_ns);
        members.watched.insert(key, Registered::Timer);
        members.changes.push(Change::Timer(Timer { due_ns, period_ns, key }));
        drop(members);
        self.notify();
        Ok(key)
    }

    /// Stops watching a member: it may go into another set at once. A wait that is just ending in
    /// another thread may still report it. False if it is not in the set.
    pub fn remove(&self, key: Key) -> bool {
        let _left; // dropped after the lock
        let Ok(mut members) = self.open() else { return false };
        let Some(registered) = members.watched.remove(&key) else { return false };
        _left = registered.leave(self.0.set);
        members.withdraw(key);
        drop(members);
        self.notify();
        true
    }

    /// Whether it is in the set, as far as is known: a member that has gone may not have been
    /// noticed yet.
    pub fn contains(&self, key: Key) -> bool {
        self.open().is_ok_and(|members| members.watched.contains_key(&key))
    }

    /// A descriptor for a user's epoll, owned by the caller: readable when a wait may have
    /// something to report, until a wait has reported nothing. A wait whose limit is over says what
    /// is ready. Each call duplicates the same descriptor.
    ///
    /// # Errors
    /// Errors of the limit of open files. [`Error::Closed`], [`Error::Forked`].
    pub fn descriptor(&self) -> Result<OwnedFd, Error> {
        let mut members = self.open()?;
        if members.descriptor.is_none() {
            let made = SetDescriptor::new(&self.0.table)?;
            members.descriptor = Some((made.duplicate()?, made.event_fd()));
            members.changes.push(Change::Descriptor(made));
        }
        let (descriptor, event_fd) =
            members.descriptor.as_ref().expect("the descriptor was made above");
        event_fd.raise(); // members have not been looked at yet
        let own = duplicate(descriptor.as_fd(), "making a wait set's descriptor")?;
        drop(members);
        self.notify();
        Ok(own)
    }

    /// Restarts the running wait, or the next one: one of its parameters has changed.
    pub fn wait_anew(&self) {
        if !self.is_forked() {
            self.notify();
        }
    }

    /// Stops watching everything, for ever. The running wait ends with [`Error::Closed`], and so
    /// does each later one. The watched members go on.
    pub fn close(&self) {
        let Ok(mut members) = self.open() else { return };
        members.is_closed = true;
        let (watched, changes, descriptor) = (
            std::mem::take(&mut members.watched),
            std::mem::take(&mut members.changes),
            members.descriptor.take(),
        );
        drop(members);
        if let Some((_, event_fd)) = &descriptor {
            event_fd.raise(); // a thread that polls it then waits, and learns of the end
        }
        self.notify();
        watched.into_values().for_each(|its| drop(its.leave(self.0.set)));
        drop(changes);
    }

    /// Whether it is closed.
    pub fn is_closed(&self) -> bool {
        !self.is_forked() && lock(&self.0.members).is_closed
    }

    /// Whether this is a child of the process that made it, where the state of other threads is
    /// unknown.
    pub fn is_forked(&self) -> bool {
        self.0.table.is_forked()
    }
}

/// The error of a closed set.
pub(super) const CLOSED: Error = Error::Closed { what: "wait set" };
/// With fewer members, a search for those that have gone is not worth while.
const PRUNE_MIN: usize = 64;

impl std::fmt::Debug for WaitSetHandle {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("WaitSetHandle").field("set", &self.0.set).finish_non_exhaustive()
    }
}
