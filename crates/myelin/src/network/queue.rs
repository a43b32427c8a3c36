//! The tasks that CycloneDDS's threads leave for the node's thread: they must neither wait nor end
//! any object.

use std::collections::{BTreeSet, VecDeque};
use std::os::fd::OwnedFd;
use std::sync::{Mutex, Weak};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::{Errno, read, write};

use super::flow::Word;
use super::interface::Watch;
use super::{inlet, lock, outlet};
use crate::Error;

/// A task for the node's thread.
pub(super) enum Task {
    /// A publisher's matches.
    Outlet(Weak<outlet::Shared>),
    /// A subscriber's matches, and its new samples.
    Inlet(Weak<inlet::Shared>),
    /// A subscriber has no room.
    Full(Weak<inlet::Shared>),
    /// An endpoint of the other side does not fit: the number of the policy.
    OutletPolicy(Weak<outlet::Shared>, u32),
    InletPolicy(Weak<inlet::Shared>, u32),
    /// Endpoints were discovered.
    Discovery,
    /// Other nodes have sent words.
    Flow,
    /// Other nodes have come, and need the earlier words.
    Peers,
    /// Network interfaces have changed.
    Interfaces,
    /// A publisher has a word to send.
    Say(Word),
}

impl Task {
    /// Two tasks with the same key are handled as one, because the handler reads the current state.
    /// `None`: each counts.
    fn key(&self) -> Option<(u8, usize, u32)> {
        let of = |shared: *const ()| shared.addr();
        Some(match self {
            Task::Outlet(shared) => (0, of(shared.as_ptr().cast()), 0),
            Task::Inlet(shared) => (1, of(shared.as_ptr().cast()), 0),
            Task::Full(shared) => (2, of(shared.as_ptr().cast()), 0),
            Task::OutletPolicy(shared, policy) => (3, of(shared.as_ptr().cast()), *policy),
            Task::InletPolicy(shared, policy) => (4, of(shared.as_ptr().cast()), *policy),
            Task::Discovery => (5, 0, 0),
            Task::Flow => (6, 0, 0),
            Task::Peers => (7, 0, 0),
            Task::Interfaces => (8, 0, 0),
            Task::Say(_) => return None,
        })
    }
}

/// The tasks. Any thread may add one, one thread takes them. However much comes from the network,
/// there is one of each kind for each endpoint of this process.
pub(super) struct Queue {
    content: Mutex<Content>,
    /// Counted up to wake the taker.
    event: OwnedFd,
    /// `None` where the kernel gives no notices.
    interfaces: Option<Watch>,
}

#[derive(Default)]
struct Content {
    tasks: VecDeque<Task>,
    /// The keys of the tasks.
    keys: BTreeSet<(u8, usize, u32)>,
    stop: bool,
    /// Whether the taker sleeps, or is about to.
    asleep: bool,
}

impl Queue {
    /// A queue with notices of changes from `interfaces`.
    pub(super) fn new(interfaces: Option<Watch>) -> Result<Queue, Error> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let event =
            event.map_err(|error| Error::system("preparing the network's thread", error))?;
        Ok(Queue { content: Mutex::default(), event, interfaces })
    }

    pub(super) fn ask(&self, task: Task) {
        let mut content = lock(&self.content);
        if task.key().is_some_and(|key| !content.keys.insert(key)) {
            return;
        }
        content.tasks.push_back(task);
        self.wake(&mut content);
    }

    /// Ends the thread.
    pub(super) fn stop(&self) {
        let mut content = lock(&self.content);
        content.stop = true;
        self.wake(&mut content);
    }

    fn wake(&self, content: &mut Content) {
        if std::mem::take(&mut content.asleep) {
            let _ = write(&self.event, &1_u64.to_ne_bytes()); // it cannot be full: one for each sleep
        }
    }

    /// All tasks; waits for one, for at most `limit`. `None`: stop.
    pub(super) fn take(&self, limit: Option<Duration>) -> Option<VecDeque<Task>> {
        if self.falls_asleep() {
            self.sleep(limit);
        }
        let mut content = lock(&self.content);
        content.asleep = false;
        content.keys.clear();
        (!content.stop).then(|| std::mem::take(&mut content.tasks))
    }

    /// Falls asleep if there is nothing to take.
    fn falls_asleep(&self) -> bool {
        let mut content = lock(&self.content);
        content.asleep = content.tasks.is_empty() && !content.stop;
        content.asleep
    }

    /// Sleeps until there is a task, or for `limit`.
    fn sleep(&self, limit: Option<Duration>) {
        let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
        let mut sources = vec![PollFd::new(&self.event, PollFlags::IN)];
        sources.extend(self.interfaces.as_ref().map(|watch| PollFd::new(watch, PollFlags::IN)));
        while poll(&mut sources, limit.as_ref()) == Err(Errno::INTR) {}
        let _ = read(&self.event, &mut [0; 8]);
        let has_changed = sources.get(1).is_some_and(|source| !source.revents().is_empty());
        if let Some(watch) = self.interfaces.as_ref().filter(|_| has_changed) {
            watch.drain();
            self.ask(Task::Interfaces);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::network::flow::Says;

    #[test]
    fn a_flood_is_one_task() {
        let queue = Queue::new(None).unwrap();
        for _ in 0..2 {
            for policy in 0..10_000 {
                queue.ask(Task::Flow);
                queue.ask(Task::Inlet(Weak::new()));
                queue.ask(Task::InletPolicy(Weak::new(), policy % 3));
            }
            assert_eq!(queue.take(None).unwrap().len(), 5);
        }
    }

    #[test]
    fn every_task_wakes_and_none_is_lost() {
        let queue = Arc::new(Queue::new(None).unwrap());
        assert!(queue.take(Some(Duration::ZERO)).unwrap().is_empty());
        let asking = queue.clone();
        let says = Says::Room;
        let word = Word { writer: [1; 16], reader: [2; 16], says, count: 0 };
        let thread = std::thread::spawn(move || {
            (0..10_000).for_each(|_| asking.ask(Task::Say(word)));
        });
        let mut taken = 0;
        while taken < 10_000 {
            taken += queue.take(Some(Duration::from_secs(60))).unwrap().len();
        }
        thread.join().unwrap();
        queue.stop();
        assert!(queue.take(None).is_none());
    }
}
