//! The descriptor of a subscriber in a user's epoll loop: readable when a publisher, or the
//! subscriber's own node, has news. It is an epoll of its own with an eventfd for this process and
//! a pipe for each publisher.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Mutex;

use rustix::event::{Timespec, epoll};

use crate::error::Error;
use crate::sync::lock;
use crate::waiting::event_fd::EventFd;
use crate::waiting::wake_pipe::WakePipe;

/// The descriptor.
#[derive(Debug)]
pub(crate) struct SubscriberDescriptor {
    epoll: OwnedFd,
    /// For this process only.
    own: EventFd,
    /// The publishers' pipes, with the numbers of their connections.
    pipes: Mutex<Vec<(u32, WakePipe)>>,
}

impl SubscriberDescriptor {
    pub(crate) fn new() -> Result<SubscriberDescriptor, Error> {
        let failed = |error| Error::system("making a subscriber's descriptor", error);
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(failed)?;
        let own = EventFd::new().map_err(failed)?;
        let data = epoll::EventData::new_u64(OWN);
        epoll::add(&epoll, &own, data, epoll::EventFlags::IN).map_err(failed)?;
        Ok(SubscriberDescriptor { epoll, own, pipes: Mutex::default() })
    }

    /// The descriptor for the user's epoll.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    /// A new pipe for the publisher of a connection, in place of an earlier one; returns the end to
    /// pass to the publisher.
    pub(crate) fn connect(&self, connection: u32) -> Result<OwnedFd, Error> {
        let (ours, theirs) = WakePipe::new()?;
        self.disconnect(connection);
        let data = epoll::EventData::new_u64(u64::from(connection));
        let added = epoll::add(&self.epoll, ours.fd(), data, epoll::EventFlags::IN);
        added.map_err(|error| Error::system("adding a publisher's pipe", error))?;
        lock(&self.pipes).push((connection, ours));
        Ok(theirs)
    }

    /// Forgets the pipe of a connection, if there is one.
    pub(crate) fn disconnect(&self, connection: u32) {
        let mut pipes = lock(&self.pipes);
        for (_, pipe) in pipes.extract_if(.., |(number, _)| *number == connection) {
            // Closing it would not be enough if a child of `fork` has it.
            let _ = epoll::delete(&self.epoll, pipe.fd());
        }
    }

    /// Makes it readable.
    pub(crate) fn wake(&self) {
        self.own.raise();
    }

    /// Reads everything, so that it is no longer readable; whether there was anything. `see` gets
    /// the connections that have written. A publisher that never stops writing cannot keep the
    /// caller here.
    pub(crate) fn drain(&self, mut see: impl FnMut(u32)) -> bool {
        let mut events = [const { std::mem::MaybeUninit::uninit() }; EVENTS_A_TURN];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let Ok((events, _)) = epoll::wait(&self.epoll, &mut events, Some(&now)) else {
            return false;
        };
        for event in &*events {
            match event.data.u64() {
                OWN => self.own.lower(),
                connection => {
                    self.drain_pipe(connection as u32);
                    see(connection as u32);
                }
            }
        }
        !events.is_empty()
    }

    fn drain_pipe(&self, connection: u32) {
        let pipes = lock(&self.pipes);
        if let Some((_, pipe)) = pipes.iter().find(|(number, _)| *number == connection) {
            pipe.empty();
        }
    }
}

/// The eventfd's key; connections have small numbers.
const OWN: u64 = u64::MAX;
const EVENTS_A_TURN: usize = 16;
#[cfg(test)]
mod tests {
    use super::*;
    use crate::waiting::wake_pipe::WakePipeWriter;
    use rustix::fs::OFlags;

    fn is_readable(fd: &SubscriberDescriptor) -> bool {
        let mut polled = [rustix::event::PollFd::new(&fd.epoll, rustix::event::PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        rustix::event::poll(&mut polled, Some(&now)).unwrap() == 1
    }

    #[test]
    fn the_descriptor_is_readable_from_a_wake_up_until_drained() {
        let fd = SubscriberDescriptor::new().unwrap();
        let ends: Vec<_> =
            (0..40).map(|at| WakePipeWriter::check(fd.connect(at).unwrap()).unwrap()).collect();
        assert!(!is_readable(&fd) && !fd.drain(|_| ()));
        fd.wake();
        assert!(ends[7].wake() && ends[8].wake());
        assert!(is_readable(&fd) && fd.drain(|_| ()));
        assert!(!is_readable(&fd));
        assert!(ends.iter().all(WakePipeWriter::wake));
        while fd.drain(|_| ()) {}
        assert!(!is_readable(&fd));
        drop(ends);
        assert!(!is_readable(&fd), "the end of a publisher makes nothing readable");
    }

    /// What the publisher and the subscriber can do to the descriptor that both have had.
    #[test]
    fn a_process_can_damage_only_its_own_end_of_a_pipe() {
        let fd = SubscriberDescriptor::new().unwrap();
        let (passed, other) = (fd.connect(0).unwrap(), fd.connect(1).unwrap());
        let honest = WakePipeWriter::check(other).unwrap();
        let end = WakePipeWriter::check(passed.try_clone().unwrap()).unwrap();
        rustix::fs::fcntl_setfl(&passed, OFlags::empty()).unwrap(); // blocking
        for _ in 0..100_000 {
            assert!(end.wake(), "a full pipe is readable");
        }
        assert!(honest.wake());
        while fd.drain(|_| ()) {}
        assert!(!is_readable(&fd));
        // The pipe has no reader any more: this causes neither a signal nor a wait.
        fd.disconnect(0);
        for _ in 0..100_000 {
            end.wake();
        }
        assert!(!is_readable(&fd));
        assert!(honest.wake() && is_readable(&fd));
    }
}
