//! Room in the ring of a reliable publisher: P1.

use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::time::Duration;

use super::Writer;
use crate::error::Error;
use crate::fork;
use crate::subscriber_view::SubscriberView;
use crate::topic::Reliability;
use crate::wait;

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
        self.next - least_reading.min(self.next) < u64::from(self.shared.qos().depth)
    }

    #[cold]
    fn wait_for_room(&mut self) -> Result<(), Error> {
        let limit = self.shared.qos().block_max;
        let until_ns = wait::now_ns().saturating_add(limit.as_nanos() as u64);
        loop {
            let Some((slowest, reading)) = self.slowest() else {
                self.least_reading = u64::MAX;
                return Ok(());
            };
            self.least_reading = reading;
            if self.has_room(reading) {
                return Ok(());
            }
            let waiting = &self.shared.head().waiting;
            let waits_for = &self.shared.waits_for;
            waiting.store(1, Ordering::Relaxed);
            waits_for.store(slowest.id(), Ordering::Relaxed);
            // ORDER: pairs with the subscriber's fence T8 and with the one in `detach`.
            fence(Ordering::SeqCst);
            let word = slowest.reading().load(Ordering::Relaxed);
            let changed = self.shared.changed.load(Ordering::Relaxed);
            let in_time = slowest.announced().reading() != reading
                || changed
                || wait::sleep(wait::low_half(slowest.reading()), word as u32, until_ns);
            waiting.store(0, Ordering::Relaxed);
            waits_for.store(0, Ordering::Relaxed);
            let changed = self.shared.changed.load(Ordering::Relaxed);
            if changed {
                self.refresh();
            } else if !in_time || wait::now_ns() >= until_ns {
                return Err(self.timed_out(&slowest, limit));
            }
        }
    }

    fn slowest(&self) -> Option<(Arc<SubscriberView>, u64)> {
        let reliable = self.views.iter().filter(|view| view.is_reliable());
        let read = reliable.map(|view| (view, view.announced().reading()));
        read.min_by_key(|(_, reading)| *reading).map(|(view, reading)| (view.clone(), reading))
    }

    fn timed_out(&self, slowest: &SubscriberView, waited: Duration) -> Error {
        Error::ReliableTimeout { subscriber: slowest.id(), pid: slowest.pid(), waited }
    }
}
