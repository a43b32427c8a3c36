//! One thread that waits for many things: subscribers, guard conditions, timers.
//!
//! The cost of a wait depends on what is ready and not on what is watched. A member is *armed* once
//! nothing of it is left to take: its `asleep` names the set, and the next publisher sets its bit
//! in the node's ready table and notifies the set. Members whose bit is set, or that were reported
//! by the previous wait, are *looked at*: either they have news and are reported, or they are armed
//! again. No other member is looked at.
//!
//! One thread waits ([`WaitSet`]); any thread adds and removes meanwhile ([`WaitSetHandle`]).

mod guard;
mod handle;
mod member;
mod timers;

use std::ops::Deref;
use std::sync::Arc;

use crate::data_plane::subscription::TRUST_NS;
use crate::error::Error;
use crate::node::Node;
use crate::sync::{Ordering, Step, fence_of, is_taken, spin_loop};
pub use crate::wait_set::guard::GuardCondition;
pub use crate::wait_set::handle::WaitSetHandle;
use crate::wait_set::handle::{CLOSED, Change};
pub use crate::wait_set::member::Paused;
use crate::wait_set::member::{Member, MemberTable, Watched};
use crate::wait_set::timers::Timers;
use crate::waiting::cancel;
use crate::waiting::set_descriptor::SetDescriptor;
use crate::waiting::strategy::{Ended, Strategy, Waiter};
use crate::waiting::wait::{self, LOOKS_PER_CLOCK_READ, NEVER, Wait};
use crate::waiting::wake_table::{WaitSetSlot, WakeTable};

/// Identifies a member of a wait set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(u64);

impl Key {
    /// How many members had been added to the set before this one, including those that have gone.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Waits for any number of subscribers of its node, of guard conditions and of timers. One thread waits; the
/// set dereferences to its [handle](WaitSetHandle), by which any thread changes the members.
pub struct WaitSet {
    slot: WaitSetSlot,
    handle: WaitSetHandle,
    members: MemberTable,
    /// Members that are not armed; and those that a look is about to arm.
    loose: Vec<u32>,
    quiet: Vec<u32>,
    timers: Timers,
    /// Whether a look has found changes to apply.
    has_changes: bool,
    is_closed: bool,
    strategy: Strategy,
    /// The members that the running wait, or the last one, reports.
    ready: Vec<Key>,
    /// The subscribers, if they are few: the next sample of each is predicted.
    streams: Vec<Key>,
    sweep: Sweep,
    /// The publisher that is to publish next, for all we know: the last one, by member and connection.
    last: Option<(u32, u32)>,
    descriptor: Option<SetDescriptor>,
}

/// Looks at all members once in a while, a few at a time: with publishers in several processes, one
/// could take away another's bit (`docs/explanation/shared-memory.md` section 10).
#[derive(Default)]
struct Sweep {
    /// The position and the time of the last part.
    at: usize,
    at_ns: u64,
}

/// The result of a look at a member.
enum News {
    Some,
    None,
    /// The member is paused.
    Paused,
    /// The member does not exist any more.
    Gone,
}

impl WaitSet {
    /// A set without members.
    ///
    /// # Errors
    /// [`Error::TooMany`]: a node has at most 1,024. Errors of memory and of the limit of open
    /// files.
    pub fn create(node: &Node) -> Result<WaitSet, Error> {
        WaitSet::of(&node.wake_table()?)
    }

    /// A set without members, of the node that `table` belongs to.
    ///
    /// # Errors
    /// As for [`create`](Self::create).
    pub fn of(table: &Arc<WakeTable>) -> Result<WaitSet, Error> {
        let slot = WaitSetSlot::take(table)?;
        let handle = WaitSetHandle::new(table, slot.set())?;
        let own = Member::new(OWN, handle.own().clone(), Watched::Changes);
        let mut set = WaitSet {
            slot,
            handle,
            members: MemberTable::default(),
            loose: Vec::new(),
            quiet: Vec::new(),
            timers: Timers::default(),
            has_changes: false,
            is_closed: false,
            strategy: Strategy::default(),
            ready: Vec::new(),
            streams: Vec::new(),
            sweep: Sweep::default(),
            last: None,
            descriptor: None,
        };
        set.insert(own);
        Ok(set)
    }

    /// The handle for other threads, which changes the members.
    pub fn handle(&self) -> &WaitSetHandle {
        &self.handle
    }

    /// Stops reporting a member until the result is dropped. `None` if it is not a subscriber of
    /// the set.
    pub fn pause(&self, key: Key) -> Option<Paused> {
        let member = self.members.get(self.members.number_of(key)?)?;
        if !matches!(member.what, Watched::Subscriber(_)) {
            return None;
        }
        let (ready_bit, is_paused) = (member.ready_bit.clone(), member.is_paused.clone());
        is_paused.store(true, Ordering::Relaxed);
        Some(Paused { ready_bit, set: self.slot.set(), is_paused })
    }

    /// Waits until at least one member has news; reports all that have. The next wait reports a
    /// member again as long as something of it is left to take. Empty once `CLOCK_MONOTONIC` reads
    /// `until_ns`.
    ///
    /// # Errors
    /// [`Error::Closed`], [`Error::Forked`].
    pub fn wait(&mut self, how: Wait, until_ns: u64) -> Result<&[Key], Error> {
        self.wait_by(|| how, until_ns)
    }

    /// Like `wait`; `how` is called again if the [handle](WaitSetHandle::wait_anew) requests it.
    ///
    /// # Errors
    /// As for [`wait`](Self::wait).
    #[inline]
    pub fn wait_by(&mut self, how: impl Fn() -> Wait, until_ns: u64) -> Result<&[Key], Error> {
        if self.is_closed || self.slot.table().is_forked() {
            return Err(if self.is_closed { CLOSED } else { Error::Forked });
        }
        self.ready.clear();
        self.timers.begin();
        loop {
            if until_ns != NEVER && wait::now_ns() >= until_ns {
                self.glance();
            } else {
                let mut strategy = std::mem::take(&mut self.strategy);
                strategy.wait(how(), self, until_ns);
                self.strategy = strategy;
            }
            if !self.has_changes {
                break;
            }
            self.take_changes()?;
            if !self.ready.is_empty() {
                break;
            }
        }
        if self.descriptor.is_some() {
            self.settle_descriptor();
        }
        Ok(&self.ready)
    }

    /// The members that the last wait, or the last look at the timers, has reported.
    pub fn ready(&self) -> &[Key] {
        &self.ready
    }

    /// Whether news has come since the last wait. Members that the last wait has reported do not
    /// count.
    #[inline]
    pub fn has_news(&self) -> bool {
        self.has_ready_bits()
    }

    /// Whether a timer is due. The clock is read only if there are timers.
    #[inline]
    pub fn has_due_timer(&self) -> bool {
        self.timers.are_due()
    }

    /// The timers that are due, without a look at anything else.
    #[inline]
    pub fn due_timers(&mut self) -> &[Key] {
        self.ready.clear();
        self.timers.begin();
        self.timers.look(&mut self.ready);
        &self.ready
    }

    /// When a timer that the last wait, or the last look at the timers, has reported was due: by
    /// `CLOCK_MONOTONIC`, in ns.
    pub fn due_ns(&self, key: Key) -> Option<u64> {
        self.timers.due_ns(key)
    }

    #[cold]
    fn take_changes(&mut self) -> Result<(), Error> {
        self.has_changes = false;
        let Some(changes) = self.handle.take_changes() else {
            self.is_closed = true;
            self.ready.clear();
            self.members.clear();
            return Err(CLOSED);
        };
        for change in changes {
            match change {
                Change::Insert(member) => self.insert(member),
                Change::Timer(timer) => self.timers.add(timer),
                Change::Remove(key) => {
                    self.timers.remove(key);
                    self.ready.retain(|ready| *ready != key);
                    if let Some(number) = self.members.number_of(key) {
                        self.forget(number);
                    }
                }
                Change::Descriptor(descriptor) => self.descriptor = Some(descriptor),
            }
        }
        self.reset_predictions();
        // A new member is not armed before a wait has looked at it.
        if let Some(descriptor) = &mut self.descriptor {
            descriptor.raise();
        }
        Ok(())
    }

    /// Makes the descriptor readable while something is left to report; arms it otherwise.
    #[cold]
    fn settle_descriptor(&mut self) {
        let timer_ns = match self.sweeps() {
            true => self.timers.next_ns().min(wait::now_ns() + TRUST_NS),
            false => self.timers.next_ns(),
        };
        let Some(descriptor) = self.descriptor.as_mut() else { return };
        if self.ready.is_empty() {
            descriptor.lower(timer_ns);
            self.slot.fall_asleep_by_descriptor();
            // S2: a publisher that has not seen that has set a bit before.
            if !self.has_ready_bits() || !self.look() {
                return;
            }
        }
        self.descriptor.as_mut().expect("the wait set has a descriptor").raise();
    }

    /// A look without a wait.
    fn glance(&mut self) {
        if self.sweeps() {
            self.sweep(wait::now_ns());
        }
        self.look();
    }

    fn insert(&mut self, member: Member) {
        let number = self.members.insert(member);
        self.loose.push(number);
    }

    /// The members have changed: the predictions start from the beginning.
    fn reset_predictions(&mut self) {
        self.streams = self.members.subscribers().take(STREAMS_MAX + 1).collect();
        if self.streams.len() > STREAMS_MAX {
            self.streams.clear();
        }
        self.strategy = Strategy::default();
    }

    fn forget(&mut self, number: u32) {
        let Some(member) = self.members.remove(number) else { return };
        self.loose.retain(|at| *at != number);
        member.pass_on(self.slot.set());
    }

    /// A look has found that a member is gone.
    #[cold]
    fn lose(&mut self, number: u32) {
        if let Some(member) = self.members.get(number) {
            self.handle.forget(member.key);
            self.forget(number);
            self.reset_predictions();
        }
    }

    /// Whether news has been reported to the set.
    #[inline]
    fn has_ready_bits(&self) -> bool {
        self.members.have_ready_bits(self.slot.table().ready())
    }

    /// Looks at the members that are not armed, and at those with news. True if there is something
    /// to report, or a change to apply.
    fn look(&mut self) -> bool {
        self.timers.look(&mut self.ready);
        self.members.collect(self.slot.table().ready(), &mut self.loose);
        if !self.loose.is_empty() {
            self.look_at_loose();
        }
        !self.ready.is_empty() || self.has_changes
    }

    fn look_at_loose(&mut self) {
        let (mut loose, mut quiet) =
            (std::mem::take(&mut self.loose), std::mem::take(&mut self.quiet));
        loose.sort_unstable();
        loose.dedup();
        let mut stay = 0;
        for at in 0..loose.len() {
            let number = loose[at];
            match self.take_news(number) {
                // A member with news is not armed before the next wait.
                News::Some => {
                    loose[stay] = number;
                    stay += 1;
                }
                News::None => {
                    self.arm(number);
                    quiet.push(number);
                }
                News::Paused => {} // the thread that resumes it wakes the set
                News::Gone => self.lose(number),
            }
        }
        loose.truncate(stay);
        // ORDER: pairs with the publisher's fence P7: either the publisher sees that the member is
        // armed, or we see its sample.
        fence_of(Step::Arm);
        for number in quiet.drain(..) {
            if matches!(self.take_news(number), News::Some) {
                loose.push(number);
            }
        }
        (self.loose, self.quiet) = (loose, quiet);
    }

    /// Whether a member has news; if so, it is reported.
    fn take_news(&mut self, number: u32) -> News {
        let Some(member) = self.members.get_mut(number) else { return News::Gone };
        // ORDER: Acquire pairs with the release in `Paused`.
        if member.is_paused.load(Ordering::Acquire) {
            return News::Paused;
        }
        let is_news = match &member.what {
            Watched::Subscriber(shared) => {
                let shared = shared.upgrade();
                let Some(shared) = shared.filter(|it| it.sleeper.set() == Some(self.slot.set()))
                else {
                    return News::Gone;
                };
                shared.take_news(&mut member.next, |connection| {
                    self.last = Some((number, connection));
                })
            }
            Watched::GuardCondition(triggered) => {
                let Some(triggered) = triggered.upgrade() else { return News::Gone };
                triggered.take_news()
            }
            Watched::Changes => {
                self.has_changes |= self.handle.is_changed();
                false
            }
        };
        match is_news {
            true => {
                self.ready.push(member.key);
                News::Some
            }
            false => News::None,
        }
    }

    fn arm(&self, number: u32) {
        if let Some(Member { what: Watched::Subscriber(shared), .. }) = self.members.get(number)
            && let Some(shared) = shared.upgrade()
        {
            shared.sleeper.arm(self.slot.set());
        }
    }

    /// Whether one publisher's node could take away another's bits.
    fn sweeps(&self) -> bool {
        self.slot.table().has_several_publishers()
    }

    /// Adds the members that are due to those to be looked at.
    fn sweep(&mut self, now_ns: u64) {
        let elapsed_ns = now_ns.saturating_sub(self.sweep.at_ns).min(TRUST_NS);
        let end = self.members.numbers_end();
        let due = end as u64 * elapsed_ns / TRUST_NS;
        if due == 0 {
            return;
        }
        self.sweep.at_ns = now_ns;
        for _ in 0..due {
            self.sweep.at = (self.sweep.at + 1) % end;
            let number = self.sweep.at as u32;
            if let Some(member) = self.members.get(number) {
                member.look_for_overlooked();
                self.loose.push(number);
            }
        }
    }
}

/// The key of the set's own bit, which is never reported.
const OWN: Key = Key(u64::MAX);
/// So many subscribers are predicted separately. Each takes a fit, some µs, for each of its
/// samples.
const STREAMS_MAX: usize = 8;

/// Waiting for any of its members.
impl Waiter for WaitSet {
    fn is_ready(&mut self) -> bool {
        self.look()
    }

    fn now_ns(&self) -> u64 {
        wait::now_ns()
    }

    /// S1 to S3.
    fn sleep(&mut self, until_ns: u64) -> Ended {
        loop {
            let count = self.slot.fall_asleep();
            let mut bound_ns = until_ns.min(self.timers.next_ns());
            if self.sweeps() {
                bound_ns = bound_ns.min(wait::now_ns() + TRUST_NS);
            }
            let has_ready_bits = is_taken(Step::S3) && self.has_ready_bits();
            let slept = has_ready_bits || self.slot.sleep(count, cancel::slice_end_ns(bound_ns));
            self.slot.wake_up();
            if self.sweeps() {
                self.sweep(wait::now_ns());
            }
            if self.look() {
                return if slept { Ended::Sample } else { Ended::SampleAtTime };
            }
            if cancel::is_cancelled() {
                return Ended::Stopped;
            }
            // Checked even after a notification: notifications may never end.
            if wait::now_ns() >= until_ns || self.slot.table().is_forked() {
                return Ended::Time;
            }
        }
    }

    fn spin(&mut self, until_ns: u64) -> Ended {
        if self.look() {
            return Ended::Sample;
        }
        let mut slice_end_ns = cancel::slice_end_ns(until_ns);
        loop {
            for _ in 0..LOOKS_PER_CLOCK_READ {
                if self.has_ready_bits() && self.look() {
                    return Ended::Sample;
                }
                spin_loop();
            }
            let now_ns = wait::now_ns();
            if self.sweeps() {
                self.sweep(now_ns);
            }
            let is_late = now_ns >= until_ns;
            let may_be_more = is_late || !self.loose.is_empty() || now_ns >= self.timers.next_ns();
            if may_be_more && self.look() {
                return Ended::Sample;
            }
            if is_late {
                return Ended::Time;
            }
            if now_ns >= slice_end_ns {
                if cancel::is_cancelled() {
                    return Ended::Stopped;
                }
                slice_end_ns = cancel::slice_end_ns(until_ns);
            }
        }
    }

    /// Whether the last publisher ran on the CPU we are on: it cannot publish while we spin.
    fn may_spin(&self) -> bool {
        let cpu_of_last = || {
            let (number, connection) = self.last?;
            let Watched::Subscriber(last) = &self.members.get(number)?.what else { return None };
            last.upgrade()?.connections.cpu_of(connection)
        };
        cpu_of_last() != Some(wait::cpu())
    }

    fn streams(&self) -> usize {
        self.streams.len().max(1)
    }

    fn has_come(&self, stream: usize) -> bool {
        self.streams.get(stream).is_none_or(|key| self.ready.contains(key))
    }
}

impl Deref for WaitSet {
    type Target = WaitSetHandle;

    fn deref(&self) -> &WaitSetHandle {
        &self.handle
    }
}

impl Drop for WaitSet {
    fn drop(&mut self) {
        self.handle.close();
    }
}

impl std::fmt::Debug for WaitSet {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("WaitSet").field("members", &self.members).finish_non_exhaustive()
    }
}
