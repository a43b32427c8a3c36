//! The ends of a stream of several topics.

use std::collections::VecDeque;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

use myelin_bench_kit::{Error, Publisher, Subscriber, clock};
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;

use crate::link::{LoanPublisher, Taker};

/// A publisher for each topic.
pub struct PublishedTopics {
    publishers: Vec<LoanPublisher>,
    selected: usize,
}

impl PublishedTopics {
    /// Topic n is that of publisher n.
    pub fn new(publishers: Vec<LoanPublisher>) -> Self {
        PublishedTopics { publishers, selected: 0 }
    }
}

impl Publisher for PublishedTopics {
    fn has_loans(&self) -> bool {
        self.publishers[self.selected].has_loans()
    }

    #[inline]
    fn loan(&mut self, len: usize) -> Result<&mut [u8], Error> {
        self.publishers[self.selected].loan(len)
    }

    #[inline]
    fn publish_loan(&mut self) -> Result<(), Error> {
        self.publishers[self.selected].publish_loan()
    }

    #[inline]
    fn publish(&mut self, message: &[u8]) -> Result<(), Error> {
        self.publishers[self.selected].publish(message)
    }

    #[inline]
    fn select(&mut self, topic: u32) {
        self.selected = topic as usize;
    }
}

/// Looks at one topic after the other, without pause. The library's look is a take, so what is
/// found is held from the wait on, and the take has only to hand it over.
pub struct PolledTopics {
    takers: Vec<Taker>,
    /// The one looked at last.
    at: usize,
}

impl PolledTopics {
    /// Around one taker for each topic.
    pub fn new(takers: Vec<Taker>) -> Self {
        PolledTopics { takers, at: 0 }
    }
}

impl Subscriber for PolledTopics {
    #[inline]
    fn wait(&mut self, until_ns: u64) -> Result<Option<bool>, Error> {
        loop {
            for _ in 0..self.takers.len() {
                self.at = if self.at + 1 < self.takers.len() { self.at + 1 } else { 0 };
                if self.takers[self.at].take_and_hold()? {
                    return Ok(Some(true));
                }
            }
            if clock::monotonic_ns() >= until_ns {
                return Ok(Some(false));
            }
        }
    }

    #[inline]
    fn take(&mut self, _until_ns: u64) -> Result<Option<&[u8]>, Error> {
        Ok(self.takers[self.at].held())
    }

    #[inline]
    fn release(&mut self) {
        self.takers[self.at].release();
    }
}

/// Sleeps in an epoll on the descriptors of all topics.
pub struct SleptTopics {
    takers: Vec<Taker>,
    epoll: OwnedFd,
    /// Topics that may have samples; a descriptor tells of more once a take has found none.
    pending: VecDeque<usize>,
    /// The one taken from last.
    at: usize,
}

impl SleptTopics {
    /// Around one taker for each topic, each with a descriptor.
    pub fn new(takers: Vec<Taker>) -> Result<Self, Error> {
        let failed = |error: Errno| Error::new(format!("epoll: {error}"));
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(failed)?;
        for (key, taker) in takers.iter().enumerate() {
            let event = taker.event().ok_or_else(|| Error::new("a taker without descriptor"))?;
            let data = epoll::EventData::new_u64(key as u64);
            // Once for each time the descriptor is written to: until a take has found nothing, it
            // stays readable.
            let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
            epoll::add(&epoll, event, data, flags).map_err(failed)?;
        }
        // The first take of each arms its descriptor.
        let pending = (0..takers.len()).collect();
        Ok(SleptTopics { takers, epoll, pending, at: 0 })
    }

    /// Sleeps until descriptors are written to, at most for `left_ns`.
    fn sleep(&mut self, left_ns: u64) -> Result<(), Error> {
        let limit = Timespec {
            tv_sec: (left_ns / 1_000_000_000) as i64,
            tv_nsec: (left_ns % 1_000_000_000) as _,
        };
        let mut events = [const { MaybeUninit::uninit() }; EVENTS_A_TURN];
        match epoll::wait(&self.epoll, &mut events, Some(&limit)) {
            Ok((events, _)) => {
                self.pending.extend(events.iter().map(|event| event.data.u64() as usize));
                Ok(())
            }
            Err(Errno::INTR) => Ok(()),
            Err(error) => Err(Error::new(format!("epoll: {error}"))),
        }
    }
}

impl Subscriber for SleptTopics {
    #[inline]
    fn wait(&mut self, until_ns: u64) -> Result<Option<bool>, Error> {
        while self.pending.is_empty() {
            let left_ns = until_ns.saturating_sub(clock::monotonic_ns());
            if left_ns == 0 {
                return Ok(Some(false));
            }
            self.sleep(left_ns)?;
        }
        Ok(Some(true))
    }

    #[inline]
    fn take(&mut self, _until_ns: u64) -> Result<Option<&[u8]>, Error> {
        while let Some(topic) = self.pending.pop_front() {
            if self.takers[topic].take_and_hold()? {
                self.pending.push_back(topic);
                self.at = topic;
                return Ok(self.takers[topic].held());
            }
        }
        Ok(None)
    }

    #[inline]
    fn release(&mut self) {
        self.takers[self.at].release();
    }
}

/// Descriptors that one wake-up tells of; the rest is told of by the next.
const EVENTS_A_TURN: usize = 64;
