//! Asynchronous tasks that wait for samples: one thread for each node wakes the tasks of all its
//! subscribers.
//!
//! A task has no thread to sleep in, and using a runtime's reactor would make the library depend on
//! that runtime. So this thread sleeps in place of the tasks, as a wait set does. It wakes a task
//! once for each time that its subscriber has announced that it sleeps.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::task::Waker;

use crate::data_plane::subscription::{PrefetchList, RawSample, SubscriptionState, TRUST_NS};
use crate::endpoint::Subscriber;
use crate::error::Error;
use crate::os::thread::{Thread, Threads};
use crate::sync::lock;
use crate::topic::EndpointId;
use crate::user_code::{Inside, is_inside};
use crate::waiting::notify;
use crate::waiting::wait::{self, NEVER};
use crate::waiting::wake_table::{ReadyBit, WaitSetSlot, WakeTable, word_and_bit};
use crate::warnings::report_panic;

/// A subscriber that asynchronous tasks take from.
#[derive(Debug)]
pub struct TaskSubscriber {
    subscriber: Subscriber,
    tasks: Arc<Tasks>,
}

impl TaskSubscriber {
    /// The subscriber leaves its wait set, if it is in one. The node's first one starts a thread,
    /// which ends with the last.
    ///
    /// # Errors
    /// [`Error::TooMany`]: they use one of the node's wait sets. [`Error::System`] if no further
    /// thread can be started.
    pub fn new(subscriber: Subscriber) -> Result<TaskSubscriber, Error> {
        let shared = subscriber.reader.shared();
        let tasks = subscriber.node().tasks(shared.sleeper.ready_bit().table())?;
        shared.sleeper.leave_set();
        // No other thread puts it into a set: we own it.
        let has_entered = shared.sleeper.enter(tasks.set());
        debug_assert!(has_entered);
        Ok(TaskSubscriber { subscriber, tasks })
    }

    /// The next sample, if there is one; otherwise `waker` is woken once when there may be one.
    ///
    /// # Errors
    /// As [`Reader::take`](crate::data_plane::subscription::Reader::take).
    #[inline]
    pub fn poll_take(&mut self, waker: &Waker) -> Result<Option<RawSample>, Error> {
        let TaskSubscriber { subscriber, tasks } = self;
        let watch = |subscription: &Arc<_>| tasks.watch(subscription, waker);
        subscriber.reader.take_or_wake(tasks.set(), watch, waker)
    }

    /// The subscriber.
    pub fn subscriber(&self) -> &Subscriber {
        &self.subscriber
    }

    /// Ends the match with a publisher whose samples are invalid.
    pub fn reject(&mut self, publisher: EndpointId) {
        self.subscriber.reader.reject(publisher);
    }
}

impl Drop for TaskSubscriber {
    fn drop(&mut self) {
        let shared = self.subscriber.reader.shared();
        if !shared.is_forked() {
            self.tasks.forget(shared);
        }
    }
}

/// The tasks of a node, and the thread that wakes them. The thread ends with the last handle.
#[derive(Debug)]
pub(crate) struct Tasks {
    shared: Arc<TasksState>,
    thread: Mutex<Option<Thread>>,
}

#[derive(Debug)]
struct TasksState {
    set: u32,
    /// Wakes the thread itself.
    own: ReadyBit,
    stop: AtomicBool,
    tasks: Mutex<HashMap<u32, Task>>,
}

#[derive(Debug)]
struct Task {
    subscription: Weak<SubscriptionState>,
    /// Set since the last poll that found nothing.
    waker: Option<Waker>,
}

impl Tasks {
    /// Those of a node, with the table that its wait sets sleep on.
    ///
    /// # Errors
    /// [`Error::TooMany`]: they use one of the node's wait sets. [`Error::System`] if no further
    /// thread can be started.
    pub(crate) fn start(table: &Arc<WakeTable>, threads: &Threads) -> Result<Arc<Tasks>, Error> {
        let (slot, own) = (WaitSetSlot::take(table)?, ReadyBit::take(table)?);
        let (set, stop) = (slot.set(), AtomicBool::new(false));
        let shared = Arc::new(TasksState { set, own, stop, tasks: Mutex::default() });
        let attending = shared.clone();
        let thread = threads.spawn("tasks", move || attending.attend(slot))?;
        Ok(Arc::new(Tasks { shared, thread: Mutex::new(Some(thread)) }))
    }

    /// The wait set that its subscribers are in.
    pub(crate) fn set(&self) -> u32 {
        self.shared.set
    }

    /// From now on wakes the task of a subscriber, once, when its set is notified of it.
    pub(crate) fn watch(&self, subscription: &Arc<SubscriptionState>, waker: &Waker) {
        // Cloned outside the lock, and dropped outside it below: a waker is user code, and its last
        // clone drops the task.
        let waker = waker.clone();
        let mut tasks = self.shared.tasks();
        let new = || Task { subscription: Arc::downgrade(subscription), waker: None };
        let task = tasks.entry(subscription.sleeper.ready_bit().number()).or_insert_with(new);
        let before = task.waker.replace(waker);
        drop(tasks);
        drop(before);
    }

    /// Removes a subscriber that is no task's any more.
    pub(crate) fn forget(&self, subscription: &SubscriptionState) {
        let task = self.shared.tasks().remove(&subscription.sleeper.ready_bit().number());
        drop(task); // not under the lock
    }
}

impl TasksState {
    fn tasks(&self) -> MutexGuard<'_, HashMap<u32, Task>> {
        lock(&self.tasks)
    }

    fn attend(&self, mut its: WaitSetSlot) {
        let mut woken = Vec::new();
        let mut sweep_ns = 0;
        while !self.stop.load(Ordering::Acquire) {
            let count = its.fall_asleep();
            self.collect(&its, &mut woken);
            // Another publisher's node could take a publisher's bit away.
            let is_bounded = its.table().has_several_publishers();
            let until_ns = if is_bounded { wait::now_ns() + TRUST_NS } else { NEVER };
            if woken.is_empty() && !self.stop.load(Ordering::Acquire) {
                its.sleep(count, until_ns);
            }
            its.wake_up();
            self.collect(&its, &mut woken);
            if is_bounded && wait::now_ns() >= sweep_ns {
                sweep_ns = wait::now_ns() + TRUST_NS;
                self.sweep(&mut woken);
            }
            // Woken without the lock: the task may run, and be dropped, at once.
            let _inside = Inside::new();
            for waker in woken.drain(..) {
                if let Err(panic) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
                    report_panic("", "a task's waker", &*panic);
                }
            }
        }
    }

    /// Collects the subscribers that have been reported.
    fn collect(&self, its: &WaitSetSlot, woken: &mut Vec<Waker>) {
        let (word, bit) = word_and_bit(self.own.number());
        notify::collect(&its.table().ready().ready[word], bit);
        for (number, task) in &mut *self.tasks() {
            let (word, bit) = word_and_bit(*number);
            if notify::collect(&its.table().ready().ready[word], bit) != 0 {
                woken.extend(task.waker.take());
            }
        }
    }

    /// Collects subscribers that have something although their bit is gone.
    fn sweep(&self, woken: &mut Vec<Waker>) {
        for task in self.tasks().values_mut().filter(|task| task.waker.is_some()) {
            let Some(subscription) = task.subscription.upgrade() else { continue };
            subscription.look_for_overlooked();
            if subscription.take_news(&mut PrefetchList::default(), |_| ()) {
                woken.extend(task.waker.take());
            }
        }
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        let thread = lock(&self.thread).take();
        if self.shared.own.table().is_forked() {
            std::mem::forget(thread); // the thread does not exist in this process
            return;
        }
        // ORDER: Release pairs with the acquire in `attend`; the bit is reported after it.
        self.shared.stop.store(true, Ordering::Release);
        self.shared.own.notify(self.shared.set as usize);
        // The thread itself may drop the last task.
        if let Some(thread) = thread
            && !is_inside()
        {
            thread.join();
        }
    }
}
