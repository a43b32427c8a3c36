//! A node's thread. It sleeps until a peer calls, sends or leaves, or a handle wakes it; once a
//! second it checks the node's socket. It wakes more often only while it watches a deadline or
//! liveliness, or has to repeat an attempt.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::ThreadId;
use std::time::Duration;

use crate::control_plane::protocol::Input;
use crate::control_plane::reactor::{LISTENER, Reactor};
use crate::error::Error;
use crate::listener::{Call, Listener};
use crate::os::fork;
use crate::os::poll::{Poll, WAKER};
use crate::os::thread::{Thread, Threads};
use crate::sync::lock;
use crate::topic::EndpointId;
use crate::waiting::wait::now_ns;
use crate::warnings::Warning;

/// State shared by a node's handles and its thread.
pub(crate) struct Core {
    reactor: Mutex<Reactor>,
    /// For the thread, from code that must not lock the reactor. No other lock is taken under this
    /// lock.
    notices: Mutex<Vec<Notice>>,
    /// Signalled when a thread has acted on new messages.
    acted: Condvar,
    thread: OnceLock<ThreadId>,
    /// Called when an endpoint has come or gone.
    on_graph_change: Mutex<OnGraphChange>,
    /// How often the graph has changed.
    graph_changes: AtomicU64,
    poll: Arc<Poll>,
    stop: AtomicBool,
    mark: u32,
}

/// The functions to call when the graph has changed.
#[derive(Default)]
struct OnGraphChange {
    /// The library's own function, which wakes a thread.
    call: Option<Call>,
    listener: Option<Listener>,
}

/// News from threads that take or drop a sample, or from another route: the sender may hold any
/// lock.
#[derive(Clone, Debug)]
pub(crate) enum Notice {
    /// A subscriber and all its samples have been dropped.
    Gone { subscriber: EndpointId },
    /// A subscriber has found a publisher corrupt.
    Corrupt { publisher: EndpointId, subscriber: EndpointId },
    /// Another route could not match an endpoint.
    Warn(Warning),
}

impl Core {
    pub(crate) fn new(reactor: Reactor, mark: u32) -> Core {
        Core {
            poll: reactor.poll.clone(),
            reactor: Mutex::new(reactor),
            notices: Mutex::default(),
            acted: Condvar::new(),
            thread: OnceLock::new(),
            on_graph_change: Mutex::default(),
            graph_changes: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            mark,
        }
    }

    /// Whether this is a child of the process that made the node. Nothing else may be called then.
    pub(crate) fn is_forked(&self) -> bool {
        fork::is_forked(self.mark)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Reactor> {
        lock(&self.reactor)
    }

    /// Changes the node's state. The thread is woken if it has work sooner than expected, or
    /// warnings to write: the caller may hold locks, and a `tracing` subscriber is user code.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut Reactor) -> T) -> T {
        let mut reactor = self.lock();
        let (before, changes) = (reactor.due_ns(), reactor.protocol.directory().changes());
        let result = change(&mut reactor);
        let after = reactor.due_ns();
        let has_changed = reactor.protocol.directory().changes() != changes;
        let has_warnings = reactor.warnings.are_pending();
        drop(reactor);
        if has_changed {
            self.report_graph_change();
        }
        if has_warnings || after.is_some_and(|after| before.is_none_or(|before| after < before)) {
            self.poll.wake();
        }
        result
    }

    /// Like `change`, after all messages that have arrived by now were read.
    pub(crate) fn change_caught_up<T>(&self, change: impl FnOnce(&mut Reactor) -> T) -> T {
        let (result, is_awaited) = self.change(|reactor| {
            reactor.catch_up();
            (change(reactor), reactor.waiting > 0)
        });
        if is_awaited {
            self.acted.notify_all();
        }
        result
    }

    /// Waits while `is_awaited` returns true, checked after each change by the thread, for at most
    /// `limit`.
    pub(crate) fn wait_while(
        &self,
        limit: Duration,
        is_awaited: impl FnMut(&mut Reactor) -> bool,
    ) -> MutexGuard<'_, Reactor> {
        let mut reactor = self.lock();
        reactor.waiting += 1;
        let waited = self.acted.wait_timeout_while(reactor, limit, is_awaited);
        let mut reactor = waited.unwrap_or_else(PoisonError::into_inner).0;
        reactor.waiting -= 1;
        reactor
    }

    /// Whether this is the node's own thread, which must not wait for itself.
    pub(crate) fn is_own_thread(&self) -> bool {
        self.thread.get() == Some(&std::thread::current().id())
    }

    /// Replaces the function for changes of the graph.
    pub(crate) fn on_graph_change(&self, call: Call) {
        let before = lock(&self.on_graph_change).call.replace(call);
        drop(before); // not under the lock
    }

    /// Replaces the user's function. The previous one ends, as described at its drop.
    pub(crate) fn listen(&self, listener: Option<Listener>) {
        let before = std::mem::replace(&mut lock(&self.on_graph_change).listener, listener);
        drop(before); // not under the lock: it waits for the user's function
    }

    /// How often the graph has changed so far.
    pub(crate) fn graph_changes(&self) -> u64 {
        // ORDER: Acquire pairs with the Release of `report_graph_change`: who reads the number of a
        // change finds the change in the graph. The graph's own lock orders the rest.
        self.graph_changes.load(Ordering::Acquire)
    }

    /// Reports that the graph has changed.
    pub(crate) fn report_graph_change(&self) {
        // ORDER: Release, as `graph_changes` explains.
        self.graph_changes.fetch_add(1, Ordering::Release);
        let on_change = lock(&self.on_graph_change);
        on_change.call.iter().for_each(|call| call());
        on_change.listener.iter().for_each(Listener::raise);
    }

    /// Leaves a notice for the thread.
    pub(crate) fn notify(&self, notice: Notice) {
        lock(&self.notices).push(notice);
        self.poll.wake();
    }

    /// Makes the thread send farewell and end.
    pub(crate) fn stop(&self) {
        // ORDER: Release pairs with the thread's Acquire: it reads the notices left before.
        self.stop.store(true, Ordering::Release);
        self.poll.wake();
    }

    fn run(&self) {
        let _ = self.thread.set(std::thread::current().id());
        let mut keys = Vec::new();
        loop {
            let limit = self.lock().next_look();
            self.poll.wait(&mut keys, limit);
            let stop = self.stop.load(Ordering::Acquire);
            let mut reactor = self.lock();
            let changes = reactor.protocol.directory().changes();
            for key in &keys {
                match *key {
                    LISTENER => reactor.accept_links(),
                    WAKER => {}
                    key => {
                        reactor.serve(key);
                    }
                }
            }
            reactor.do_due();
            self.act_on_notices(&mut reactor);
            let warnings = reactor.warnings.take();
            let has_changed = reactor.protocol.directory().changes() != changes;
            let is_awaited = reactor.waiting > 0;
            drop(reactor);
            if has_changed {
                self.report_graph_change();
            }
            if is_awaited {
                self.acted.notify_all();
            }
            warnings.iter().for_each(Warning::write);
            if stop {
                return self.lock().leave();
            }
        }
    }

    fn act_on_notices(&self, reactor: &mut Reactor) {
        let notices = std::mem::take(&mut *lock(&self.notices));
        for notice in notices {
            match notice {
                Notice::Gone { subscriber } => reactor.remove_endpoint(subscriber),
                Notice::Corrupt { publisher, subscriber } => {
                    reactor.drive(Input::Corrupt { publisher, subscriber });
                }
                Notice::Warn(warning) => reactor.warnings.add(warning, now_ns()),
            }
        }
    }
}

/// Starts a node's thread.
pub(crate) fn start(core: &Arc<Core>, threads: &Threads) -> Result<Thread, Error> {
    let core = core.clone();
    threads.spawn_small("node", move || core.run())
}
