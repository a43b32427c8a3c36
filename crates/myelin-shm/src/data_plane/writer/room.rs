//! Room in the ring of a reliable publisher: P1, and the handling of late subscribers.

use crate::sync::{Ordering, Step, fence_of};
use std::sync::Arc;

use super::Writer;
use crate::data_plane::publication::address;
use crate::data_plane::remote_subscriber::RemoteSubscriber;
use crate::error::Error;
use crate::event::Event;
use crate::topic::{Late, Reliability};
use crate::waiting::{cancel, wait};

/// A wait for room in a ring: for the slowest subscriber.
#[derive(Debug)]
pub struct RoomWait {
    slowest: Arc<RemoteSubscriber>,
    /// The subscriber's count of reads at the last look.
    word: u64,
    /// Whether it has read meanwhile, or the list of subscribers has changed.
    is_over: bool,
}

/// The end of a sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slept {
    /// There may be room.
    InTime,
    /// The limit has passed.
    TooLong,
    /// The wait of this thread [was cancelled](cancel).
    Cancelled,
}

impl RoomWait {
    /// Sleeps until there may be room, or `CLOCK_MONOTONIC` reads `until_ns`.
    pub fn sleep(&self, until_ns: u64) -> Slept {
        if !self.is_over {
            let slice_end_ns = cancel::slice_end_ns(until_ns);
            wait::sleep(self.slowest.reading(), self.word as u32, slice_end_ns);
        }
        if cancel::is_cancelled() {
            return Slept::Cancelled;
        }
        if wait::now_ns() < until_ns { Slept::InTime } else { Slept::TooLong }
    }
}

impl Writer {
    /// P1.
    #[inline(always)]
    pub(super) fn make_room(&mut self) -> Result<(), Error> {
        self.check_fork()?;
        if self.shared.qos().reliability == Reliability::BestEffort {
            return Ok(());
        }
        if self.shared.changed.load(Ordering::Relaxed) {
            self.refresh();
        }
        match self.has_room(self.least_reading) {
            true => Ok(()),
            false => self.wait_for_room(),
        }
    }

    /// Whether the cell of the next sample may be written if `least_reading` is the next to be
    /// read. The newest `depth` samples stay, so the ring is full one cell early.
    fn has_room(&self, least_reading: u64) -> bool {
        self.behind(least_reading) < u64::from(self.shared.qos().depth)
    }

    /// How many samples a subscriber still has to read whose next one is `reading`.
    fn behind(&self, reading: u64) -> u64 {
        self.next - reading.min(self.next)
    }

    #[cold]
    fn wait_for_room(&mut self) -> Result<(), Error> {
        let until_ns = self.shared.wait_limit_ns();
        while let Some(wait) = self.begin_wait() {
            let slept = wait.sleep(until_ns);
            self.end_wait(wait, slept)?;
        }
        Ok(())
    }

    /// Whether a publish would wait for a subscriber now. Then a caller that shares the writer
    /// waits for the subscriber without its lock, by [`begin_wait`](Self::begin_wait),
    /// [`RoomWait::sleep`] and [`end_wait`](Self::end_wait), again and again; one thread at a time.
    #[inline]
    pub fn is_full(&mut self) -> bool {
        if self.shared.qos().reliability == Reliability::BestEffort {
            return false;
        }
        if self.shared.changed.load(Ordering::Relaxed) {
            self.refresh();
        }
        !self.has_room(self.least_reading)
    }

    /// The wait for room; `None` if there is room.
    pub fn begin_wait(&mut self) -> Option<RoomWait> {
        self.readmit_late();
        let Some((slowest, reading)) = self.slowest() else {
            self.least_reading = self.look_again_at(u64::MAX);
            return None;
        };
        self.least_reading = self.look_again_at(reading);
        if self.has_room(reading) {
            return None;
        }
        self.shared.head().waiting.store(1, Ordering::Relaxed);
        self.shared.waits_for.store(address(&slowest), Ordering::Relaxed);
        // ORDER: pairs with the subscriber's fence T8 and with the one in `detach`.
        fence_of(Step::P1);
        let word = slowest.reading().load(Ordering::Relaxed);
        let changed = self.shared.changed.load(Ordering::Relaxed);
        let is_over = slowest.announced().reading() != reading || changed;
        Some(RoomWait { slowest, word, is_over })
    }

    /// Continues after a sleep.
    ///
    /// # Errors
    /// The time limit of a publisher that must not pass over; a cancelled sleep.
    pub fn end_wait(&mut self, wait: RoomWait, slept: Slept) -> Result<(), Error> {
        self.shared.head().waiting.store(0, Ordering::Relaxed);
        self.shared.waits_for.store(0, Ordering::Relaxed);
        if self.shared.changed.load(Ordering::Relaxed) {
            self.refresh();
            return Ok(());
        }
        match (slept, self.shared.qos().late) {
            (Slept::InTime, _) => {}
            (Slept::TooLong, Late::PassOver) => self.pass_over(&wait.slowest),
            (Slept::TooLong, Late::Fail) | (Slept::Cancelled, _) => {
                return Err(self.timed_out(&wait.slowest));
            }
        }
        Ok(())
    }

    /// The slowest of the subscribers that the publisher waits for.
    fn slowest(&self) -> Option<(Arc<RemoteSubscriber>, u64)> {
        let waited_for = self.reliable().filter(|view| !view.is_late());
        let read = waited_for.map(|view| (view, view.announced().reading()));
        read.min_by_key(|(_, reading)| *reading).map(|(view, reading)| (view.clone(), reading))
    }

    /// Stops waiting for a subscriber.
    fn pass_over(&mut self, view: &RemoteSubscriber) {
        view.set_late(true);
        self.late += 1;
        let (endpoint, pid) = (view.id(), view.pid());
        self.shared.inbox().push(Event::PassedOver { endpoint, pid });
    }

    /// Waits again for subscribers that have read half of the ring. With less they would be late
    /// again at once, and hold up all others each time.
    fn readmit_late(&mut self) {
        if self.late == 0 {
            return;
        }
        let depth = u64::from(self.shared.qos().depth);
        for view in self.reliable().filter(|view| view.is_late()) {
            // Its last announcement may be far behind the samples that it can still read.
            if self.behind(view.announced().reading()) <= depth / 2 {
                view.set_late(false);
                let (endpoint, pid) = (view.id(), view.pid());
                self.shared.inbox().push(Event::CaughtUp { endpoint, pid });
            }
        }
        self.count_late();
    }

    /// Counts the late subscribers, after the list of subscribers or one of them has changed.
    pub(super) fn count_late(&mut self) {
        self.late = self.reliable().filter(|view| view.is_late()).count() as u32;
    }

    fn reliable(&self) -> impl Iterator<Item = &Arc<RemoteSubscriber>> {
        self.views.iter().filter(|view| view.is_reliable())
    }

    /// The least reading to use: that of the subscribers in time, limited so that late subscribers
    /// are looked at again after a quarter of the ring.
    fn look_again_at(&self, least_reading: u64) -> u64 {
        if self.late == 0 {
            return least_reading;
        }
        let depth = u64::from(self.shared.qos().depth);
        least_reading.min((self.next + (depth / 4).max(1)).saturating_sub(depth))
    }

    fn timed_out(&self, slowest: &RemoteSubscriber) -> Error {
        let waited = self.shared.qos().block_max;
        let (topic, subscriber, pid) =
            (self.shared.topic().name.clone(), slowest.id(), slowest.pid());
        Error::ReliableTimeout { topic, subscriber, pid, waited }
    }
}
