//! User's functions that a node calls after an event of an endpoint or a change of the graph. One
//! thread of the node calls them, and does nothing else. So it holds no lock of the library
//! meanwhile, and a slow function delays only the other functions.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::error::Error;
use crate::os::fork;
use crate::os::thread::{Thread, Threads};
use crate::sync::lock;
use crate::user_code::{Inside, is_inside};
use crate::warnings::report_panic;

/// A user's function.
pub(crate) type Call = Box<dyn Fn() + Send + Sync>;

/// A function that its node calls each time it was raised; several raises in a row count once.
/// Dropping the listener ends the calls: the drop waits for a running call, unless a user's
/// function drops it.
#[derive(Debug)]
pub(crate) struct Listener(Arc<ListenerState>);

struct ListenerState {
    queue: Arc<Queue>,
    /// For the report of a panic.
    topic: String,
    function: &'static str,
    state: Mutex<CallState>,
    ended: Condvar,
    mark: u32,
}

struct CallState {
    call: Option<Arc<dyn Fn() + Send + Sync>>,
    /// Whether it is in the queue.
    is_due: bool,
    /// Whether a call is running.
    is_called: bool,
    has_panicked: bool,
}

/// The listeners to be called.
#[derive(Debug, Default)]
struct Queue {
    due: Mutex<Due>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Due {
    listeners: VecDeque<Arc<ListenerState>>,
    stop: bool,
}

/// The node's thread that calls its listeners. It starts with the first one and ends when this is
/// dropped.
#[derive(Debug)]
pub(crate) struct ListenerThread {
    queue: Arc<Queue>,
    thread: Option<Thread>,
    mark: u32,
}

impl ListenerThread {
    /// # Errors
    /// [`Error::System`] if no further thread can be started.
    pub(crate) fn start(threads: &Threads) -> Result<ListenerThread, Error> {
        let (queue, mark) = (Arc::<Queue>::default(), fork::mark());
        let its = queue.clone();
        let thread = Some(threads.spawn("events", move || its.run())?);
        Ok(ListenerThread { queue, thread, mark })
    }

    /// A listener. `topic` (empty: of all topics) and `function` name it in the report of a panic.
    pub(crate) fn listen(&self, topic: String, function: &'static str, call: Call) -> Listener {
        let (queue, call) = (self.queue.clone(), Some(Arc::from(call)));
        let state = CallState { call, is_due: false, is_called: false, has_panicked: false };
        let (state, ended, mark) = (Mutex::new(state), Condvar::new(), fork::mark());
        Listener(Arc::new(ListenerState { queue, topic, function, state, ended, mark }))
    }
}

impl Drop for ListenerThread {
    fn drop(&mut self) {
        let thread = self.thread.take();
        if fork::is_forked(self.mark) {
            std::mem::forget(thread); // the thread does not exist in this process
            return;
        }
        self.queue.due().stop = true;
        self.queue.changed.notify_all();
        // A function may drop the last handle of its node.
        if let Some(thread) = thread
            && !is_inside()
        {
            thread.join();
        }
    }
}

impl Listener {
    /// Requests a call by the node's thread, soon. Holds locks for a moment; the call itself runs
    /// without them.
    pub(crate) fn raise(&self) {
        let mut state = self.0.state();
        if !state.is_due && state.call.is_some() {
            state.is_due = true;
            self.0.queue.due().listeners.push_back(self.0.clone());
            self.0.queue.changed.notify_one();
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let ListenerState { ended, mark, .. } = &*self.0;
        if fork::is_forked(*mark) {
            std::mem::forget(self.0.clone()); // a thread of the parent may have the lock
            return;
        }
        let mut state = self.0.state();
        let call = state.call.take();
        if !is_inside() {
            let ended = ended.wait_while(state, |state| state.is_called);
            state = ended.unwrap_or_else(PoisonError::into_inner);
        }
        drop(state);
        drop(call); // not under the lock: it is user code
    }
}

impl Queue {
    fn due(&self) -> MutexGuard<'_, Due> {
        lock(&self.due)
    }

    fn run(&self) {
        let _inside = Inside::new();
        loop {
            let is_idle = |due: &mut Due| !due.stop && due.listeners.is_empty();
            let due = self.changed.wait_while(self.due(), is_idle);
            let mut due = due.unwrap_or_else(PoisonError::into_inner);
            if due.stop {
                return;
            }
            let listener = due.listeners.pop_front();
            drop(due);
            listener.into_iter().for_each(|listener| listener.call());
        }
    }
}

impl ListenerState {
    fn state(&self) -> MutexGuard<'_, CallState> {
        lock(&self.state)
    }

    fn call(&self) {
        let mut state = self.state();
        state.is_due = false;
        let Some(call) = state.call.clone() else { return };
        state.is_called = true;
        drop(state);
        // Also dropped there: if it has been removed meanwhile, its drop is user code.
        let called = catch_unwind(AssertUnwindSafe(move || call()));
        if let Err(panic) = called {
            let is_first = !std::mem::replace(&mut self.state().has_panicked, true);
            if is_first {
                report_panic(&self.topic, self.function, &*panic);
            }
        }
        self.state().is_called = false;
        self.ended.notify_all();
    }
}

impl std::fmt::Debug for ListenerState {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ListenerState { topic, function, .. } = self;
        to.debug_struct("Listener").field("topic", topic).field("function", function).finish()
    }
}
