//! The poll of a node's thread: its sockets, and an eventfd by which other threads wake it.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, epoll};
use rustix::io::Errno;

use crate::error::Error;
use crate::os::descriptor::NodeFd;

/// An epoll. Any thread may add to it and wake it; one thread waits.
#[derive(Debug)]
pub(crate) struct Poll {
    epoll: NodeFd,
    waker: NodeFd,
}

impl Poll {
    pub(crate) fn new() -> Result<Poll, Error> {
        let failed = |error| Error::system("making an epoll", error);
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC);
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let waker = rustix::event::eventfd(0, flags);
        let epoll = NodeFd::new(epoll.map_err(failed)?);
        let poll = Poll { epoll, waker: NodeFd::new(waker.map_err(failed)?) };
        poll.add(poll.waker.as_fd(), WAKER)?;
        Ok(poll)
    }

    /// Reports `key` when `fd` is readable or its other end is closed.
    pub(crate) fn add(&self, fd: BorrowedFd<'_>, key: u64) -> Result<(), Error> {
        epoll::add(&self.epoll, fd, epoll::EventData::new_u64(key), epoll::EventFlags::IN)
            .map_err(|error| Error::system("adding to an epoll", error))
    }

    /// Stops reporting `fd`. Closing it would not be enough if a child of `fork` has it.
    pub(crate) fn remove(&self, fd: BorrowedFd<'_>) {
        let removed = epoll::delete(&self.epoll, fd);
        debug_assert!(removed.is_ok(), "the descriptor was added before");
    }

    /// Reports `key` also when `fd` is writable, or stops doing so.
    pub(crate) fn watch_writable(&self, fd: BorrowedFd<'_>, key: u64, on: bool) {
        let writable = if on { epoll::EventFlags::OUT } else { epoll::EventFlags::empty() };
        self.modify(fd, key, epoll::EventFlags::IN | writable);
    }

    /// Stops reporting `fd` for now, or starts again to report that it is readable.
    pub(crate) fn pause(&self, fd: BorrowedFd<'_>, key: u64, on: bool) {
        self.modify(fd, key, if on { epoll::EventFlags::empty() } else { epoll::EventFlags::IN });
    }

    fn modify(&self, fd: BorrowedFd<'_>, key: u64, flags: epoll::EventFlags) {
        let modified = epoll::modify(&self.epoll, fd, epoll::EventData::new_u64(key), flags);
        debug_assert!(modified.is_ok(), "the descriptor was added before");
    }

    /// Makes [`wait`](Self::wait) return.
    pub(crate) fn wake(&self) {
        // If the counter is full, it wakes as well.
        let _ = rustix::io::write(&self.waker, &1u64.to_ne_bytes());
    }

    /// Sleeps until there is something to report or the time is over; fills `keys` with it.
    pub(crate) fn wait(&self, keys: &mut Vec<u64>, limit: Option<Duration>) {
        keys.clear();
        let mut events = [const { std::mem::MaybeUninit::uninit() }; EVENTS_A_TURN];
        let limit = limit.map(|limit| Timespec {
            tv_sec: limit.as_secs() as i64,
            tv_nsec: i64::from(limit.subsec_nanos()),
        });
        match epoll::wait(&self.epoll, &mut events, limit.as_ref()) {
            Ok((events, _)) => keys.extend(events.iter().map(|event| event.data.u64())),
            Err(Errno::INTR) => {}
            Err(error) => panic!("epoll_wait on our own epoll: {error}"),
        }
        if keys.contains(&WAKER) {
            let _ = rustix::io::read(&self.waker, &mut [0u8; 8]);
        }
    }
}

/// The keys of the descriptors that are readable now, or whose other end is closed: one system call
/// for all of them. Any thread may ask; the thread that waits in the epoll still gets its reports.
pub(crate) fn readable<'a>(all: impl Iterator<Item = (u64, BorrowedFd<'a>)>) -> Vec<u64> {
    let (mut keys, fds): (Vec<_>, Vec<_>) = all.unzip();
    let mut fds: Vec<_> = fds.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    loop {
        match rustix::event::poll(&mut fds, Some(&now)) {
            Ok(_) => break,
            Err(Errno::INTR) => {}
            Err(_) => return keys, // more than the process may open by now, or no memory
        }
    }
    let mut reports = fds.iter().map(|fd| !fd.revents().is_empty());
    keys.retain(|_| reports.next() == Some(true));
    keys
}

/// The waker's key.
pub(crate) const WAKER: u64 = 1;
const EVENTS_A_TURN: usize = 64;
