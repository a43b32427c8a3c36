//! The tasks that CycloneDDS's threads leave for the node's thread: they must neither wait nor end
//! any object.

use std::collections::{BTreeSet, VecDeque};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use myelin_dds::Guid;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::{Errno, read, write};

use super::flow_channel::FlowMessage;
use super::interface::Watch;
use super::lane::Link;
use super::lock;
use super::reader::ReaderState;
use super::writer::WriterState;
use crate::Error;

/// A task for the node's thread.
pub(super) enum Task {
    /// A publisher's matches.
    Writer(Weak<WriterState>),
    /// A subscriber's matches, and its new samples.
    Reader(Weak<ReaderState>),
    /// A subscriber has no room.
    Full(Weak<ReaderState>),
    /// An endpoint of the other side does not fit: the number of the policy.
    WriterPolicy(Weak<WriterState>, u32),
    ReaderPolicy(Weak<ReaderState>, u32),
    /// Endpoints were discovered.
    Discovery,
    /// Other nodes have sent messages.
    Flow,
    /// Other nodes have come, and need the earlier messages.
    Peers,
    /// Network interfaces have changed.
    Interfaces,
    /// A publisher has a message to send.
    Send(FlowMessage),
    /// A reader elsewhere takes a publisher's samples by the lane from now on.
    LaneSubscribed {
        link: Arc<Link>,
        writer: Guid,
        reader: Guid,
    },
    /// And not any more.
    LaneUnsubscribed {
        link: Arc<Link>,
        writer: Guid,
        reader: Guid,
    },
    /// A connection of the lane has gone.
    LaneClosed(Arc<Link>),
}

impl Task {
    /// Two tasks with the same key are handled as one, because the handler reads the current state.
    /// `None`: each counts.
    fn key(&self) -> Option<(u8, usize, u32)> {
        let of = |shared: *const ()| shared.addr();
        Some(match self {
            Task::Writer(shared) => (0, of(shared.as_ptr().cast()), 0),
            Task::Reader(shared) => (1, of(shared.as_ptr().cast()), 0),
            Task::Full(shared) => (2, of(shared.as_ptr().cast()), 0),
            Task::WriterPolicy(shared, policy) => (3, of(shared.as_ptr().cast()), *policy),
            Task::ReaderPolicy(shared, policy) => (4, of(shared.as_ptr().cast()), *policy),
            Task::Discovery => (5, 0, 0),
            Task::Flow => (6, 0, 0),
            Task::Peers => (7, 0, 0),
            Task::Interfaces => (8, 0, 0),
            Task::Send(_)
            | Task::LaneSubscribed { .. }
            | Task::LaneUnsubscribed { .. }
            | Task::LaneClosed(_) => return None,
        })
    }
}

/// The tasks. Any thread may add one, one thread takes them. However much comes from the network,
/// there is one of each kind for each endpoint of this process.
pub(super) struct TaskQueue {
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

impl TaskQueue {
    /// A queue with notices of changes from `interfaces`.
    pub(super) fn new(interfaces: Option<Watch>) -> Result<TaskQueue, Error> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let event =
            event.map_err(|error| Error::system("preparing the network's thread", error))?;
        Ok(TaskQueue { content: Mutex::default(), event, interfaces })
    }

    pub(super) fn push(&self, task: Task) {
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
        let mut publishers = vec![PollFd::new(&self.event, PollFlags::IN)];
        publishers.extend(self.interfaces.as_ref().map(|watch| PollFd::new(watch, PollFlags::IN)));
        while poll(&mut publishers, limit.as_ref()) == Err(Errno::INTR) {}
        let _ = read(&self.event, &mut [0; 8]);
        let has_changed =
            publishers.get(1).is_some_and(|publisher| !publisher.revents().is_empty());
        if let Some(watch) = self.interfaces.as_ref().filter(|_| has_changed) {
            watch.drain();
            self.push(Task::Interfaces);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::flow_channel::FlowKind;

    #[test]
    fn a_flood_is_one_task() {
        let queue = TaskQueue::new(None).unwrap();
        for _ in 0..2 {
            for policy in 0..10_000 {
                queue.push(Task::Flow);
                queue.push(Task::Reader(Weak::new()));
                queue.push(Task::ReaderPolicy(Weak::new(), policy % 3));
            }
            assert_eq!(queue.take(None).unwrap().len(), 5);
        }
    }

    #[test]
    fn every_task_wakes_and_none_is_lost() {
        let queue = Arc::new(TaskQueue::new(None).unwrap());
        assert!(queue.take(Some(Duration::ZERO)).unwrap().is_empty());
        let asking = queue.clone();
        let kind = FlowKind::Room;
        let message = FlowMessage { writer: [1; 16], reader: [2; 16], kind, count: 0 };
        let thread = std::thread::spawn(move || {
            (0..10_000).for_each(|_| asking.push(Task::Send(message)));
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
