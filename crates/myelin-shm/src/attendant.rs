//! A node's thread. It sleeps until a peer calls, speaks or goes, or a handle asks for it; it ticks
//! only while a deadline or liveliness is to be watched or something is to be tried again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;

use crate::error::Error;
use crate::fork;
use crate::poll::{Poll, WAKER};
use crate::state::{LISTENER, State};
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
        state.settle();
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
                    state.settle();
                }
                state.try_again();
                state.keep_vigil();
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

/// Starts a node's thread. It takes no signals; they are for the program's own.
pub(crate) fn start(core: &Arc<Core>) -> Result<JoinHandle<()>, Error> {
    let core = core.clone();
    let builder =
        std::thread::Builder::new().name("myelin-node".to_owned()).stack_size(STACK_BYTES);
    let started = without_signals(|| builder.spawn(move || core.attend()));
    started.map_err(|error| Error::system("starting the node's thread", error))
}

/// All of it is resident in a process that locks its memory, as one that is real-time does. The thread
/// runs nothing of the user's, and has no more than some kilobytes on its stack.
const STACK_BYTES: usize = 256 << 10;

/// Calls `spawn` with all signals blocked; a thread inherits that.
fn without_signals<T>(spawn: impl FnOnce() -> T) -> T {
    // SAFETY: both sets are plain data that the calls fill in before they are read.
    unsafe {
        let (mut all, mut before) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        let result = spawn();
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
        result
    }
}
