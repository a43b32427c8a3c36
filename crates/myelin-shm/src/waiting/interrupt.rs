//! Ends the wait of a subscriber or an observer from another thread, the node's own thread, or a
//! signal handler.

use crate::sync::{AtomicBool, AtomicU32, Ordering, fence};
use std::sync::Arc;

use crate::layout::{WakeSegment, WakeWord};
use crate::os::segment::Segment;
use crate::waiting::subscriber_descriptor::SubscriberDescriptor;
use crate::waiting::wait;
use crate::waiting::wake_table::ReadyBit;

/// The wake-up words of a subscriber, for its own process. It outlives the subscriber as long as it
/// has interrupters, because a signal handler must not be the one that frees a subscriber.
#[derive(Debug)]
pub(crate) struct SubscriberWaker {
    pub(crate) segment: Segment,
    pub(crate) descriptor: Option<Arc<SubscriberDescriptor>>,
    pub(crate) ready_bit: Arc<ReadyBit>,
    /// 0, or 1 plus the number of the wait set that the subscriber is in.
    pub(crate) set: AtomicU32,
    /// Whether the running wait, or the next one, must end.
    pub(crate) interrupted: AtomicBool,
}

impl SubscriberWaker {
    /// The words that publishers write, too.
    pub(crate) fn words(&self) -> &WakeSegment {
        // SAFETY: atomics and padding in our own mapping.
        unsafe { self.segment.at(0) }
    }

    pub(crate) fn wake_word(&self) -> &WakeWord {
        &self.words().wake_word
    }

    /// The wait set that the subscriber is in.
    pub(crate) fn set(&self) -> Option<u32> {
        // ORDER: Relaxed: a thread that enters or leaves a set has the subscriber looked at
        // afterwards.
        self.set.load(Ordering::Relaxed).checked_sub(1)
    }

    /// Wakes the thread that waits for the subscriber. The reason has been written before. Neither
    /// locks nor allocates.
    pub(crate) fn wake(&self) {
        // ORDER: pairs with the fence in `fall_asleep`.
        fence(Ordering::SeqCst);
        // Also if a publisher has notified it before: the publisher may have died before it woke
        // it.
        wait::count_and_wake(&self.wake_word().wakes);
        if let Some(fd) = &self.descriptor {
            fd.wake();
        }
        self.notify_set();
    }

    /// Makes its wait set look at it, if it is in one.
    pub(crate) fn notify_set(&self) {
        if let Some(set) = self.set() {
            self.ready_bit.notify(set as usize);
        }
    }

    pub(crate) fn interrupt(&self) {
        self.interrupted.store(true, Ordering::Release);
        self.wake();
    }
}

/// The word that an observer sleeps on. Only its own process knows it.
#[derive(Debug)]
pub(crate) struct Changes {
    /// Counts what it has to look at: publishers that have come or gone, and interrupts.
    pub(crate) count: AtomicU32,
    interrupted: AtomicBool,
}

impl Changes {
    pub(crate) fn new() -> Changes {
        Changes { count: AtomicU32::new(0), interrupted: AtomicBool::new(false) }
    }

    /// Ends a sleep. The reason has been written before.
    pub(crate) fn wake(&self) {
        wait::count_and_wake(&self.count);
    }

    /// Whether the wait must end.
    pub(crate) fn take_interrupt(&self) -> bool {
        self.interrupted.swap(false, Ordering::Acquire)
    }
}

/// Ends the waits of one subscriber or observer. Clones are the same one. Any thread may use it,
/// and a signal handler.
#[derive(Clone, Debug)]
pub struct Interrupter(Waiter);

#[derive(Clone, Debug)]
enum Waiter {
    Subscriber(Arc<SubscriberWaker>),
    Observer(Arc<Changes>),
}

impl Interrupter {
    pub(crate) fn new(waker: &Arc<SubscriberWaker>) -> Interrupter {
        Interrupter(Waiter::Subscriber(waker.clone()))
    }

    pub(crate) fn of_observer(changes: &Arc<Changes>) -> Interrupter {
        Interrupter(Waiter::Observer(changes.clone()))
    }

    /// Ends the running wait, or else the next one that would block. Neither waits nor allocates.
    /// Does nothing if the subscriber or observer has gone, or in a child of `fork`.
    pub fn interrupt(&self) {
        match &self.0 {
            Waiter::Subscriber(waker) if !waker.ready_bit.table().is_forked() => {
                waker.interrupt();
            }
            Waiter::Subscriber(_) => {}
            Waiter::Observer(changes) => {
                changes.interrupted.store(true, Ordering::Release);
                changes.wake();
            }
        }
    }
}
