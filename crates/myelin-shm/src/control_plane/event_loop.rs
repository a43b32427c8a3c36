//! A node's thread. It sleeps until a peer calls, speaks or goes, or a handle asks for it; once a second it
//! looks whether the node's socket is there. It ticks faster only while a deadline or liveliness is to be
//! watched or something is to be tried again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::ThreadId;
use std::time::Duration;

use crate::control_plane::protocol::Input;
use crate::control_plane::reactor::{LISTENER, Reactor};
use crate::control_plane::warnings::Warning;
use crate::error::Error;
use crate::listener::{Call, Listener};
use crate::os::fork;
use crate::os::poll::{Poll, WAKER};
use crate::os::thread::{Thread, Threads};
use crate::sync::lock;
use crate::topic::EndpointId;
use crate::waiting::wait::now_ns;

/// What a node's handles and its thread share.
pub(crate) struct Core {
    reactor: Mutex<Reactor>,
    /// For the thread, from where the reactor must not be locked. No lock is taken under its lock.
    notices: Mutex<Vec<Notice>>,
    /// Signalled when somebody has acted on what came.
    acted: Condvar,
    thread: OnceLock<ThreadId>,
    /// Called when an endpoint has come or gone.
    on_graph_change: Mutex<OnGraphChange>,
    poll: Arc<Poll>,
    stop: AtomicBool,
    mark: u32,
}

/// What is done when the graph has changed.
#[derive(Default)]
struct OnGraphChange {
    /// The library's own, which wakes somebody.
    call: Option<Call>,
    listener: Option<Listener>,
}

/// Told by whoever takes or drops a sample, or by another route: that may happen anywhere.
#[derive(Clone, Debug)]
pub(crate) enum Notice {
    /// A subscriber and all its samples are gone.
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

    /// Changes what the node knows or has. The thread is woken if it has to do something sooner than it
    /// thought, or to say warnings: the caller may hold locks, and a `tracing` subscriber is the user's code.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut Reactor) -> T) -> T {
        let mut reactor = self.lock();
        let (before, changes) = (reactor.due_ns(), reactor.protocol.directory().changes());
        let result = change(&mut reactor);
        let after = reactor.due_ns();
        let has_changed = reactor.protocol.directory().changes() != changes;
        let has_warnings = reactor.warnings.are_pending();
        drop(reactor);
        if has_changed {
            self.tell_graph_change();
        }
        if has_warnings || after.is_some_and(|after| before.is_none_or(|before| after < before)) {
            self.poll.wake();
        }
        result
    }

    /// As `change`, when all is known that others have said by now.
    pub(crate) fn change_caught_up<T>(&self, change: impl FnOnce(&mut Reactor) -> T) -> T {
        let result = self.change(|reactor| {
            reactor.catch_up();
            change(reactor)
        });
        self.acted.notify_all();
        result
    }

    /// Waits while `is_awaited` says so of what the thread brings, for `limit` at most.
    pub(crate) fn wait_while(
        &self,
        limit: Duration,
        is_awaited: impl FnMut(&mut Reactor) -> bool,
    ) -> MutexGuard<'_, Reactor> {
        let waited = self.acted.wait_timeout_while(self.lock(), limit, is_awaited);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Whether this is the node's own thread, which has nobody to wait for.
    pub(crate) fn is_own_thread(&self) -> bool {
        self.thread.get() == Some(&std::thread::current().id())
    }

    /// Replaces what is called when an endpoint has come or gone.
    pub(crate) fn on_graph_change(&self, call: Call) {
        let before = lock(&self.on_graph_change).call.replace(call);
        drop(before); // not under the lock
    }

    /// Replaces the user's function. The one before it ends, as its drop says.
    pub(crate) fn listen(&self, listener: Option<Listener>) {
        let before = std::mem::replace(&mut lock(&self.on_graph_change).listener, listener);
        drop(before); // not under the lock: it waits for the user's function
    }

    /// The graph has changed.
    pub(crate) fn tell_graph_change(&self) {
        let on_change = lock(&self.on_graph_change);
        on_change.call.iter().for_each(|call| call());
        on_change.listener.iter().for_each(Listener::raise);
    }

    /// Leaves word for the thread.
    pub(crate) fn notify(&self, notice: Notice) {
        lock(&self.notices).push(notice);
        self.poll.wake();
    }

    /// Makes the thread say farewell and end.
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
                    LISTENER => reactor.answer_calls(),
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
            drop(reactor);
            if has_changed {
                self.tell_graph_change();
            }
            self.acted.notify_all();
            warnings.iter().for_each(Warning::say);
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
