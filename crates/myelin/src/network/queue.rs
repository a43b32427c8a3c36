//! What CycloneDDS's threads leave for the node's: they must not wait, nor end anything.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, PoisonError, Weak};
use std::time::Duration;

use super::{inlet, lock, outlet};

/// Something to be looked at.
pub(super) enum Task {
    /// A publisher's matches.
    Outlet(Weak<outlet::Shared>),
    /// A subscriber's matches, and what has come.
    Inlet(Weak<inlet::Shared>),
    /// A subscriber has no room.
    Full(Weak<inlet::Shared>),
    /// One of the other side does not fit: the number of the policy.
    OutletPolicy(Weak<outlet::Shared>, u32),
    InletPolicy(Weak<inlet::Shared>, u32),
    /// What is discovered.
    Discovery,
    /// Other nodes have said that a subscriber is full, or no longer.
    Flow,
}

/// The tasks. Any thread may add one.
#[derive(Default)]
pub(super) struct Queue {
    content: Mutex<Content>,
    changed: Condvar,
}

#[derive(Default)]
struct Content {
    tasks: VecDeque<Task>,
    /// One [`Task::Discovery`] is enough.
    has_discovery: bool,
    stop: bool,
}

impl Queue {
    pub(super) fn ask(&self, task: Task) {
        let mut content = lock(&self.content);
        if matches!(task, Task::Discovery) && std::mem::replace(&mut content.has_discovery, true) {
            return;
        }
        content.tasks.push_back(task);
        drop(content);
        self.changed.notify_one();
    }

    /// Ends the thread.
    pub(super) fn stop(&self) {
        lock(&self.content).stop = true;
        self.changed.notify_one();
    }

    /// All tasks there are; waits for one, for `limit` at most. `None`: stop.
    pub(super) fn take(&self, limit: Option<Duration>) -> Option<VecDeque<Task>> {
        let mut content = lock(&self.content);
        let is_idle = |content: &mut Content| content.tasks.is_empty() && !content.stop;
        content = match limit {
            None => {
                self.changed.wait_while(content, is_idle).unwrap_or_else(PoisonError::into_inner)
            }
            Some(limit) => {
                let waited = self.changed.wait_timeout_while(content, limit, is_idle);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
        };
        content.has_discovery = false;
        (!content.stop).then(|| std::mem::take(&mut content.tasks))
    }
}
