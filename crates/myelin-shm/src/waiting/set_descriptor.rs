//! The descriptor of a wait set, for a user's epoll: one for everything that the set watches.
//!
//! It is an epoll of the set with three members: the node's pipe, by which publishers wake all sets
//! that sleep in such an epoll; an eventfd, by which the set itself reports that something is left;
//! and a timer. A publisher can make the descriptor readable without need, and could read another
//! one's byte away. The timer bounds the harm, as it bounds the sleep of a set
//! (`docs/explanation/shared-memory.md` section 10).

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{Timespec, epoll};
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags};

use crate::error::Error;
use crate::os::descriptor::duplicate;
use crate::waiting::event_fd::EventFd;
use crate::waiting::wait::NEVER;
use crate::waiting::wake_table::WakeTable;

/// Used only by the set's thread.
#[derive(Debug)]
pub(crate) struct SetDescriptor {
    table: Arc<WakeTable>,
    epoll: OwnedFd,
    /// By which this process makes it readable.
    event_fd: Arc<EventFd>,
    timer: OwnedFd,
    timer_ns: u64,
    is_raised: bool,
}

impl SetDescriptor {
    pub(crate) fn new(table: &Arc<WakeTable>) -> Result<SetDescriptor, Error> {
        let failed = |error| Error::system("making a wait set's descriptor", error);
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC);
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = rustix::time::timerfd_create(TimerfdClockId::Monotonic, flags);
        let (epoll, timer) = (epoll.map_err(failed)?, timer.map_err(failed)?);
        let event_fd = Arc::new(EventFd::new().map_err(failed)?);
        let members =
            [(table.pipe().fd().as_fd(), PIPE), (event_fd.as_fd(), OWN), (timer.as_fd(), TIMER)];
        for (fd, key) in members {
            let data = epoll::EventData::new_u64(key);
            let added = epoll::add(&epoll, fd, data, epoll::EventFlags::IN);
            added.map_err(failed)?;
        }
        table.add_descriptor(&event_fd);
        let table = table.clone();
        Ok(SetDescriptor { table, epoll, event_fd, timer, timer_ns: NEVER, is_raised: false })
    }

    /// For the user, who owns it: it stays open when the set has gone, and is then readable
    /// although nothing is ready.
    pub(crate) fn duplicate(&self) -> Result<OwnedFd, Error> {
        duplicate(self.epoll.as_fd(), "making a wait set's descriptor")
    }

    /// For other threads.
    pub(crate) fn event_fd(&self) -> Arc<EventFd> {
        self.event_fd.clone()
    }

    /// Makes it readable until it is [lowered](Self::lower).
    pub(crate) fn raise(&mut self) {
        if !std::mem::replace(&mut self.is_raised, true) {
            self.event_fd.raise();
        }
    }

    /// Makes it unreadable until the timer at `timer_ns`.
    pub(crate) fn lower(&mut self, timer_ns: u64) {
        self.is_raised = false;
        if timer_ns != self.timer_ns {
            self.timer_ns = timer_ns;
            self.set_timer(timer_ns);
        }
        let mut events = [const { std::mem::MaybeUninit::uninit() }; 3];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        // A caller cannot mend any failure of it: the descriptor then stays readable.
        let Ok((events, _)) = epoll::wait(&self.epoll, &mut events, Some(&now)) else { return };
        for event in &*events {
            match event.data.u64() {
                PIPE => self.table.empty_pipe(&self.event_fd),
                OWN => self.event_fd.lower(),
                // The timer is due: it stays readable, so that the next wait sees it.
                _ => {}
            }
        }
    }

    fn set_timer(&self, at_ns: u64) {
        let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
        let at_ns = if at_ns == NEVER { 0 } else { at_ns.max(1) }; // 0: never
        let (tv_sec, tv_nsec) = ((at_ns / 1_000_000_000) as i64, (at_ns % 1_000_000_000) as _);
        let at = Itimerspec { it_interval: zero, it_value: Timespec { tv_sec, tv_nsec } };
        // An absolute time that can be represented is not refused.
        let _ = rustix::time::timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &at);
    }
}

const PIPE: u64 = 0;
const OWN: u64 = 1;
const TIMER: u64 = 2;
