//! Room in the ring of a reliable publisher: P1, and what becomes of subscribers that are late.

use crate::sync::{Ordering, Step, fence_of};
use std::sync::Arc;
use std::time::Duration;

use super::Writer;
use crate::data_plane::remote_subscriber::RemoteSubscriber;
use crate::error::Error;
use crate::event::Event;
use crate::os::fork;
use crate::topic::{Late, Reliability};
use crate::waiting::{cancel, wait};

impl Writer {
    /// P1.
    #[inline(always)]
    pub(super) fn make_room(&mut self) -> Result<(), Error> {
        if fork::is_forked(self.fork) {
            return Err(Error::Forked);
        }
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

    /// Whether the cell of the next sample may be written if `least_reading` is next to be read.
    /// The newest `depth` samples stay, so the ring is full one cell early.
    fn has_room(&self, least_reading: u64) -> bool {
        self.behind(least_reading) < u64::from(self.shared.qos().depth)
    }

    /// How many samples are still to be read by who reads `reading` next.
    fn behind(&self, reading: u64) -> u64 {
        self.next - reading.min(self.next)
    }

    #[cold]
    fn wait_for_room(&mut self) -> Result<(), Error> {
        let limit = self.shared.qos().block_max;
        let until_ns = wait::now_ns().saturating_add(limit.as_nanos() as u64);
        loop {
            self.look_who_caught_up();
            let Some((slowest, reading)) = self.slowest() else {
                self.least_reading = self.look_again_at(u64::MAX);
                return Ok(());
            };
            self.least_reading = self.look_again_at(reading);
            if self.has_room(reading) {
                return Ok(());
            }
            let waiting = &self.shared.head().waiting;
            let waits_for = &self.shared.waits_for;
            waiting.store(1, Ordering::Relaxed);
            waits_for.store(slowest.id(), Ordering::Relaxed);
            // ORDER: pairs with the subscriber's fence T8 and with the one in `detach`.
            fence_of(Step::P1);
            let word = slowest.reading().load(Ordering::Relaxed);
            let changed = self.shared.changed.load(Ordering::Relaxed);
            if slowest.announced().reading() == reading && !changed {
                wait::sleep(slowest.reading(), word as u32, cancel::slice_end_ns(until_ns));
            }
            waiting.store(0, Ordering::Relaxed);
            waits_for.store(0, Ordering::Relaxed);
            let changed = self.shared.changed.load(Ordering::Relaxed);
            if changed {
                self.refresh();
            } else if cancel::is_cancelled() {
                return Err(self.timed_out(&slowest, limit));
            } else if wait::now_ns() >= until_ns {
                match self.shared.qos().late {
                    Late::PassOver => self.pass_over(&slowest),
                    Late::Fail => return Err(self.timed_out(&slowest, limit)),
                }
            }
        }
    }

    /// The slowest of those that are waited for.
    fn slowest(&self) -> Option<(Arc<RemoteSubscriber>, u64)> {
        let waited_for = self.reliable().filter(|view| !view.is_late());
        let read = waited_for.map(|view| (view, view.announced().reading()));
        read.min_by_key(|(_, reading)| *reading).map(|(view, reading)| (view.clone(), reading))
    }

    /// From now on nobody waits for it.
    fn pass_over(&mut self, view: &RemoteSubscriber) {
        view.set_late(true);
        self.late += 1;
        let (endpoint, pid) = (view.id(), view.pid());
        self.shared.inbox().push(Event::PassedOver { endpoint, pid });
    }

    /// Waits again for those that have read half of the ring. With less they would be late again at
    /// once, and hold all others up each time.
    fn look_who_caught_up(&mut self) {
        if self.late == 0 {
            return;
        }
        let depth = u64::from(self.shared.qos().depth);
        for view in self.reliable().filter(|view| view.is_late()) {
            // What it announced last may be far behind what it can still read.
            if self.behind(view.announced().reading()) <= depth / 2 {
                view.set_late(false);
                let (endpoint, pid) = (view.id(), view.pid());
                self.shared.inbox().push(Event::CaughtUp { endpoint, pid });
            }
        }
        self.count_late();
    }

    /// After the list of subscribers has changed, or one of them.
    pub(super) fn count_late(&mut self) {
        self.late = self.reliable().filter(|view| view.is_late()).count() as u32;
    }

    fn reliable(&self) -> impl Iterator<Item = &Arc<RemoteSubscriber>> {
        self.views.iter().filter(|view| view.is_reliable())
    }

    /// The least reading to go by: that of those that are in time, but no later than that those that
    /// are late are looked at after a quarter of the ring.
    fn look_again_at(&self, least_reading: u64) -> u64 {
        if self.late == 0 {
            return least_reading;
        }
        let depth = u64::from(self.shared.qos().depth);
        least_reading.min((self.next + (depth / 4).max(1)).saturating_sub(depth))
    }

    fn timed_out(&self, slowest: &RemoteSubscriber, waited: Duration) -> Error {
        let (topic, subscriber, pid) =
            (self.shared.topic().name.clone(), slowest.id(), slowest.pid());
        Error::ReliableTimeout { topic, subscriber, pid, waited }
    }
}
