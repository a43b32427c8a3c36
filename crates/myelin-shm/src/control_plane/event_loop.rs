//! A node's thread. It sleeps until a peer calls, speaks or goes, or a handle asks for it; it ticks
//! only while a deadline or liveliness is to be watched or something is to be tried again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;

use crate::control_plane::state::{LISTENER, State};
use crate::error::Error;
use crate::os::fork;
use crate::os::poll::{Poll, WAKER};
use crate::os::thread::Threads;
use crate::sync::lock;
use crate::topic::EndpointId;

/// What a node's handles and its thread share.
pub(crate) struct Core {
    state: Mutex<State>,
    /// For the thread, from where the state must not be locked. No lock is taken under its lock.
    notices: Mutex<Vec<Notice>>,
    /// Signalled when the thread has acted on what came.
    pub(crate) acted: Condvar,
    poll: Arc<Poll>,
    stop: AtomicBool,
    mark: u32,
}

/// Told by whoever takes or drops a sample, which may happen anywhere.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Notice {
    /// A subscriber and all its samples are gone.
    Gone { subscriber: EndpointId },
    /// A subscriber has found a publisher corrupt.
    Corrupt { publisher: EndpointId, subscriber: EndpointId },
}

impl Core {
    pub(crate) fn new(state: State, mark: u32) -> Core {
        Core {
            poll: state.poll.clone(),
            state: Mutex::new(state),
            notices: Mutex::default(),
            acted: Condvar::new(),
            stop: AtomicBool::new(false),
            mark,
        }
    }

    /// Whether this is a child of the process that made the node. Nothing else may be called then.
    pub(crate) fn is_forked(&self) -> bool {
        fork::is_forked(self.mark)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Changes the state, and sees to what follows from it.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.lock();
        let result = change(&mut state);
        state.apply_pending();
        result
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

    fn attend(&self) {
        let mut keys = Vec::new();
        loop {
            let limit = self.lock().next_look();
            self.poll.wait(&mut keys, limit);
            let stop = self.stop.load(Ordering::Acquire);
            self.change(|state| {
                for key in &keys {
                    match *key {
                        LISTENER => state.answer_calls(),
                        WAKER => {}
                        key => state.serve(key),
                    }
                    state.apply_pending();
                }
                state.try_again();
                state.check_deadlines();
                self.act_on_notices(state);
            });
            self.acted.notify_all();
            if stop {
                return self.leave();
            }
        }
    }

    fn act_on_notices(&self, state: &mut State) {
        let notices = std::mem::take(&mut *lock(&self.notices));
        for notice in notices {
            match notice {
                Notice::Gone { subscriber } => state.remove_subscription(subscriber),
                Notice::Corrupt { publisher, subscriber } => {
                    let error = Error::PeerCorrupt { what: "a sample" };
                    state.decline(publisher, subscriber, &error);
                }
            }
        }
    }

    fn leave(&self) {
        let mut state = self.lock();
        state.registry.leave(state.node);
        state.listener = None;
        state.leave_all();
    }
}

/// Starts a node's thread.
pub(crate) fn start(core: &Arc<Core>, threads: &Threads) -> Result<JoinHandle<()>, Error> {
    let core = core.clone();
    threads.spawn("node", move || core.attend())
}
