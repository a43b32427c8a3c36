//! The ways in which a reader waits for a sample: it looks again and again, or says that it sleeps
//! and sleeps (S1 to S3 of `docs/explanation/shared-memory.md` section 4).

use std::sync::Arc;
use std::task::Waker;

use super::choice::Choice;
use super::{PublisherCursor, Reader};
use crate::data_plane::raw_sample::RawSample;
use crate::data_plane::subscription::{Asleep, SubscriptionState};
use crate::error::Error;
use crate::layout::PublicationHead;
use crate::sync::{Ordering, Step, is_taken, load_acquire, spin_loop};
use crate::waiting::cancel;
use crate::waiting::sleep::Sleep;
use crate::waiting::strategy::{Ended, Waiter};
use crate::waiting::subscriber_descriptor::SubscriberDescriptor;
use crate::waiting::wait::{self, LOOKS_PER_CLOCK_READ, NEVER, Wait};

impl Reader {
    /// Waits until there is a sample to take; false once `CLOCK_MONOTONIC` reads `until_ns`
    /// ([`NEVER`] for no limit).
    #[inline]
    pub fn wait(&mut self, how: Wait, until_ns: u64) -> Result<bool, Error> {
        if self.shared.is_forked() {
            return Err(Error::Forked);
        }
        let mut strategy = std::mem::take(&mut self.strategy);
        let came = strategy.wait(how, self, until_ns);
        self.strategy = strategy;
        if !came {
            self.shared.end_interrupt();
        }
        Ok(came)
    }

    /// Looks for a sample to take, for about a microsecond: before a polling wait, which then reads
    /// no clock if the sample comes soon. False in a child of `fork`, too.
    #[inline]
    pub fn comes_soon(&mut self) -> bool {
        !self.shared.is_forked() && (self.is_ready(false) || self.look_on())
    }

    /// The next sample, if there is one; otherwise `waker` is woken once when there may be one. The
    /// subscriber is in the wait set `set`; `watch` makes its thread wake the waker.
    ///
    /// # Errors
    /// As for [`take`](Self::take).
    pub(crate) fn take_or_wake(
        &mut self,
        set: u32,
        watch: impl FnOnce(&Arc<SubscriptionState>),
        waker: &Waker,
    ) -> Result<Option<RawSample>, Error> {
        let mut taken = RawSample::empty();
        if self.take_in_turn(&mut taken)? {
            return Ok(Some(taken));
        }
        watch(&self.shared);
        if self.fall_asleep_in(Some(set)).is_some() {
            return Ok(None);
        }
        if self.take_in_turn(&mut taken)? {
            return Ok(Some(taken));
        }
        // The sample was overwritten in between, or never existed.
        waker.wake_by_ref();
        Ok(None)
    }

    #[inline(always)]
    fn look_on(&mut self) -> bool {
        (0..LOOKS_PER_CLOCK_READ).any(|_| {
            let is_ready = self.is_ready(true);
            if !is_ready {
                spin_loop();
            }
            is_ready
        })
    }

    #[inline(always)]
    fn spin(&mut self, until_ns: u64) -> Ended {
        if self.is_ready(false) {
            return Ended::Sample;
        }
        let mut slice_end_ns = None;
        loop {
            if self.look_on() {
                return Ended::Sample;
            }
            let end_ns = *slice_end_ns.get_or_insert_with(|| cancel::slice_end_ns(until_ns));
            let is_over = end_ns != NEVER && wait::now_ns() >= end_ns;
            let is_late = is_over && end_ns == until_ns;
            let is_cancelled = is_over && !is_late && cancel::is_cancelled();
            let is_stopped = is_cancelled || self.shared.is_interrupted();
            if is_late || is_stopped {
                let ended = if is_stopped { Ended::Stopped } else { Ended::Time };
                return if self.is_ready(false) { Ended::Sample } else { ended };
            }
            if is_over {
                slice_end_ns = None;
            }
        }
    }

    /// Whether a publisher last ran on the CPU that we are on: it cannot publish while we spin.
    fn shares_a_core(&self) -> bool {
        let cpu = wait::cpu();
        self.has_such(|head| head.cpu.load(Ordering::Relaxed) == cpu)
    }

    /// Whether `is_such` is true for a publisher. With many publishers, only the publisher of the
    /// last sample counts.
    fn has_such(&self, is_such: impl Fn(&PublicationHead) -> bool) -> bool {
        let is_such = |cursor: &PublisherCursor| is_such(cursor.remote().head());
        match &self.choice {
            Choice::Many(many) => self.cursors.get(many.last).is_some_and(is_such),
            Choice::Few(_) => self.cursors.iter().any(is_such),
        }
    }

    /// S1 to S3.
    fn sleep(&mut self, until_ns: u64) -> Ended {
        loop {
            let published = self.published_to_sleep_on();
            let changes = self.changes;
            let asleep = match published {
                None => self.fall_asleep(),
                Some(value) if is_taken(Step::Value) => {
                    self.fall_asleep_as(Sleep::on_published(value))
                }
                Some(_) => {
                    self.fall_asleep_as(Sleep::on_published(self.shared.sleeper.next_sleep() << 32))
                }
            };
            let stop = self.shared.is_interrupted();
            let is_late = || until_ns != NEVER && wait::now_ns() >= until_ns;
            let timer = match asleep {
                Some(asleep) if !stop => {
                    let asleep = asleep.until(cancel::slice_end_ns(until_ns));
                    let slept = match published {
                        None => self.shared.sleeper.sleep(asleep),
                        // Otherwise its publisher has changed, or is not the only one any more.
                        Some(value) if changes == self.changes => {
                            self.sleep_on_published(asleep, value)
                        }
                        Some(_) => true,
                    };
                    if !slept {
                        self.look_at_all();
                    }
                    !slept && is_late()
                }
                _ => false,
            };
            self.shared.sleeper.wake_up();
            // Its set has not been woken for samples that came meanwhile.
            self.shared.sleeper.notify_set();
            if asleep.is_none() || self.is_ready(false) {
                return if timer { Ended::SampleAtTime } else { Ended::Sample };
            }
            if stop || self.shared.is_forked() || cancel::is_cancelled() {
                return Ended::Stopped;
            }
            if timer || is_late() {
                return Ended::Time;
            }
        }
    }

    /// The value of its publisher's `published` to sleep on, read before it says that it sleeps.
    /// `None` if that would be wrong: it does not have exactly one publisher, or that publisher has
    /// few subscribers, or writes to a descriptor.
    fn published_to_sleep_on(&self) -> Option<u64> {
        let [cursor] = &self.cursors[..] else { return None };
        let head = cursor.remote().head();
        let is_one_of_many = head.subscribers.load(Ordering::Relaxed) >= MANY_MIN;
        if !is_one_of_many
            || self.shared.sleeper.descriptor().is_some()
            || !wait::can_sleep_on_two()
        {
            return None;
        }
        // ORDER: read before `asleep` is stored: a publisher that sees us asleep has written a
        // later value than this one (P6), which the kernel finds; one that does not see it has
        // published before our look.
        Some(load_acquire(&head.published))
    }

    /// Also sleeps on the wake word, because the node's own process cannot change `published`.
    fn sleep_on_published(&self, asleep: Asleep, value: u64) -> bool {
        let published = &self.cursors[0].remote().head().published;
        self.shared.sleeper.sleep_also_on(asleep, published, value as u32)
    }

    /// S1, S2: says that the subscriber sleeps. `None` if there is a sample.
    pub(crate) fn fall_asleep(&mut self) -> Option<Asleep> {
        self.fall_asleep_in(None)
    }

    /// The same, but its wait set must be woken.
    fn fall_asleep_in(&mut self, set: Option<u32>) -> Option<Asleep> {
        self.fall_asleep_as(Sleep::new(self.shared.sleeper.next_sleep(), set))
    }

    fn fall_asleep_as(&mut self, sleep: Sleep) -> Option<Asleep> {
        self.sleep = sleep.or_of_many(self.shared.readiness.ready_list().is_used());
        self.count = self.shared.sleeper.fall_asleep(self.sleep);
        let asleep = Asleep::new(self.count, self.cursors.len());
        (!is_taken(Step::S3) || !self.is_ready(false)).then_some(asleep)
    }

    /// Empties the descriptor and makes publishers write to it at the next sample. True if a sample
    /// has come meanwhile.
    pub(super) fn arm(&mut self) -> bool {
        // Also when it is armed: a publisher may have counted the wake word up, been overtaken by
        // us, and written only then.
        let drain = |fd: &SubscriberDescriptor| fd.drain(|connection| self.mark_due(connection));
        let was_readable = self.shared.sleeper.descriptor().is_some_and(drain);
        let set = self.shared.sleeper.set();
        let is_armed = self.shared.sleeper.is_still(self.sleep, self.count)
            && self.sleep != Sleep::AWAKE
            && set.is_none();
        if is_armed && !was_readable {
            return false; // no publisher has notified it since
        }
        self.fall_asleep_in(set).is_none()
    }

    /// The publisher of this connection has written to the descriptor: it is due.
    fn mark_due(&self, number: u32) {
        if let Choice::Many(many) = &self.choice
            && many.has(number)
        {
            self.shared.readiness.ready_list().insert(number);
        }
    }
}

/// Waits for a sample of this reader.
impl Waiter for Reader {
    #[inline(always)]
    fn is_ready(&mut self) -> bool {
        Reader::is_ready(self, false)
    }

    fn now_ns(&self) -> u64 {
        wait::now_ns()
    }

    fn sleep(&mut self, until_ns: u64) -> Ended {
        Reader::sleep(self, until_ns)
    }

    #[inline(always)]
    fn spin(&mut self, until_ns: u64) -> Ended {
        Reader::spin(self, until_ns)
    }

    fn may_spin(&self) -> bool {
        !self.shares_a_core()
    }

    fn is_one_too_many(&self) -> bool {
        let cpus = wait::cpus();
        self.has_such(|head| head.subscribers.load(Ordering::Relaxed) >= cpus)
    }
}

/// The number of subscribers from which one call wakes them all: with fewer, a sleep on two words
/// costs more than it saves. In a model the number is small, so that all orders can be run.
const MANY_MIN: u64 = if cfg!(loom) { 2 } else { 4 };
