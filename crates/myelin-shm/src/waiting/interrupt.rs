//! Ending a subscriber's wait from elsewhere: another thread, the node's own, a signal handler.

use crate::sync::{AtomicBool, AtomicU32, Ordering, fence};
use std::sync::Arc;

use crate::data_plane::layout::{WakeSegment, WakeWord};
use crate::os::segment::Segment;
use crate::waiting::wait;
use crate::waiting::wake_fd::WakeFd;
use crate::waiting::wake_table::Number;

/// By what a subscriber is woken in its own process. It outlives the subscriber with its interrupters, for
/// a signal handler must not be the one that frees a subscriber.
#[derive(Debug)]
pub(crate) struct WakeUp {
    pub(crate) segment: Segment,
    pub(crate) wake_fd: Option<Arc<WakeFd>>,
    pub(crate) number: Arc<Number>,
    /// 0, or the number of the wait set it is in, and 1.
    pub(crate) set: AtomicU32,
    /// The wait under way, or the next one, is to end.
    pub(crate) interrupted: AtomicBool,
}

impl WakeUp {
    /// What publishers write, too.
    pub(crate) fn words(&self) -> &WakeSegment {
        // SAFETY: atomics and padding in our own mapping.
        unsafe { self.segment.at(0) }
    }

    pub(crate) fn wake_word(&self) -> &WakeWord {
        &self.words().wake_word
    }

    /// The wait set it is in.
    pub(crate) fn set(&self) -> Option<u32> {
        // ORDER: Relaxed: who enters or leaves a set has it looked at afterwards.
        self.set.load(Ordering::Relaxed).checked_sub(1)
    }

    /// Wakes whoever waits for it. What it is woken for has been written before. Neither locks nor
    /// allocates.
    pub(crate) fn wake(&self) {
        // ORDER: pairs with the fence in `fall_asleep`.
        fence(Ordering::SeqCst);
        // Also if a publisher has notified it before: it may have died before waking.
        wait::count_and_wake(&self.wake_word().wakes);
        if let Some(fd) = &self.wake_fd {
            fd.wake();
        }
        self.tell_set();
    }

    /// Has its wait set look at it, if it is in one.
    pub(crate) fn tell_set(&self) {
        if let Some(set) = self.set() {
            self.number.tell(set as usize);
        }
    }

    pub(crate) fn interrupt(&self) {
        self.interrupted.store(true, Ordering::Release);
        self.wake();
    }
}

/// Ends the waits of one subscriber. Clones are the same one. Any thread may use it, and a signal handler.
#[derive(Clone, Debug)]
pub struct Interrupter(Arc<WakeUp>);

impl Interrupter {
    pub(crate) fn new(wake_up: &Arc<WakeUp>) -> Interrupter {
        Interrupter(wake_up.clone())
    }

    /// Ends the wait of the subscriber that is under way, or else the next one that would block. Neither
    /// waits nor allocates. Nothing happens if the subscriber is gone, or in a child of `fork`.
    pub fn interrupt(&self) {
        if !self.0.number.table().is_forked() {
            self.0.interrupt();
        }
    }
}
