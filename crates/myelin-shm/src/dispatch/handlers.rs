//! The entries of a topic's callbacks, in which the handlers lie while their threads sleep, and the
//! steps by which threads and publishers of a process meet there:
//! `docs/explanation/shared-memory.md` section 13. The model `dispatcher` in `tests/model_loom`
//! runs them.
//!
//! Happens-before: the handlers are under the lock. Two things are not: the sleepers of other
//! processes, and the list of subscribers that came or went. For these a publisher that has entered
//! has executed P7, like any other publisher.

use std::sync::atomic::compiler_fence;

use crate::sync::{AtomicBool, Mutex, MutexGuard, Ordering, lock};
use crate::topic::EndpointId;

/// The entries of a topic's callbacks, in the order of registration. A publisher locks it while it
/// runs the handlers, a callback's thread for a moment.
#[derive(Debug)]
pub struct Handlers<H> {
    entries: Mutex<Vec<Entry<H>>>,
    called: Called,
}

/// The subscriber whose handler a publisher calls now. A thread that ends one callback checks it,
/// and so does not wait for calls of the others.
#[derive(Debug, Default)]
pub(crate) struct Called(std::sync::atomic::AtomicU64);

impl Called {
    /// Sets the subscriber, unless its callback is to end: the caller checks that afterwards.
    #[inline(always)]
    pub(crate) fn set(&self, subscriber: EndpointId) {
        // ORDER: Release pairs with the acquire in `is`: the effects of one call come before the
        // next one. The asking thread's `barrier` ensures that the caller's check comes after this
        // store.
        self.0.store(subscriber, Ordering::Release);
        compiler_fence(Ordering::SeqCst);
    }

    /// Whether it is this subscriber; ask after a [`barrier`](crate::os::thread::barrier).
    pub(crate) fn is(&self, subscriber: EndpointId) -> bool {
        self.0.load(Ordering::Acquire) == subscriber
    }
}

/// The entry in which a callback's handler lies while its thread sleeps.
#[derive(Debug)]
pub struct Entry<H> {
    /// The callback's subscriber.
    pub subscriber: EndpointId,
    /// `None` while its thread has it.
    pub handler: Option<H>,
}

/// The entered handlers: they stay where they are, and no other thread runs them.
#[derive(Debug)]
pub struct Entered<'a, H>(MutexGuard<'a, Vec<Entry<H>>>, &'a Called);

impl<H> Handlers<H> {
    /// No entries yet.
    #[expect(clippy::new_without_default, reason = "loom's mutex has no default")]
    pub fn new() -> Self {
        Handlers { entries: Mutex::new(Vec::new()), called: Called::default() }
    }

    /// `None` if it is entered already, maybe by a publisher further down this thread's stack.
    #[inline(always)]
    pub fn try_enter(&self) -> Option<Entered<'_, H>> {
        match self.entries.try_lock() {
            Ok(entries) => Some(Entered(entries, &self.called)),
            Err(std::sync::TryLockError::Poisoned(entries)) => {
                Some(Entered(entries.into_inner(), &self.called))
            }
            Err(std::sync::TryLockError::WouldBlock) => None,
        }
    }

    /// Waits until it is free, then enters it.
    pub fn enter(&self) -> Entered<'_, H> {
        Entered(lock(&self.entries), &self.called)
    }

    /// The subscriber whose handler a publisher calls now.
    pub(crate) fn called(&self) -> &Called {
        &self.called
    }
}

impl<H> Entered<'_, H> {
    /// All entries, including those whose handlers are away.
    #[inline(always)]
    pub fn entries(&mut self) -> &mut [Entry<H>] {
        &mut self.0
    }

    /// All entries, and where to note whose handler is called.
    #[inline(always)]
    pub(crate) fn called(&mut self) -> (&mut [Entry<H>], &Called) {
        (&mut self.0, self.1)
    }

    /// Adds an entry for a subscriber's callback; the handler is still away.
    pub fn join(&mut self, subscriber: EndpointId) {
        self.0.push(Entry { subscriber, handler: None });
    }

    /// Removes an entry.
    pub fn leave(&mut self, subscriber: EndpointId) {
        self.0.retain(|entry| entry.subscriber != subscriber);
    }

    /// Puts the handler into its entry, so that publishers may run it from now on. If there is work
    /// for its thread, the thread gets it back. `fall_asleep` is S1 and S2, and looks: it returns
    /// what to sleep on, or `None` if there is work. It runs under the lock: a publisher that finds
    /// the lock taken later notifies.
    pub fn park<S>(
        mut self,
        subscriber: EndpointId,
        mut handler: H,
        fall_asleep: impl FnOnce(&mut H) -> Option<S>,
    ) -> Result<S, H> {
        let Some(asleep) = fall_asleep(&mut handler) else { return Err(handler) };
        let entry = self.0.iter_mut().find(|entry| entry.subscriber == subscriber);
        entry.expect("the subscriber has joined").handler = Some(handler);
        Ok(asleep)
    }

    /// Takes the handler back to its thread.
    pub fn unpark(mut self, subscriber: EndpointId) -> H {
        self.take(subscriber).expect("the thread has put its handler here")
    }

    /// Takes the handler out of its entry, if it is there.
    pub(crate) fn take(&mut self, subscriber: EndpointId) -> Option<H> {
        self.0.iter_mut().find(|entry| entry.subscriber == subscriber)?.handler.take()
    }
}

/// P7 and P8 of a publisher with callbacks in its process, after P6. `changed` says that a
/// subscriber has come or gone: then nothing has been done, and the caller updates its list and
/// calls again. `wake` notifies the sleepers; its argument says whether the handlers are run here,
/// or must be notified as well. `run` runs them.
#[inline(always)]
#[must_use = "if it is false, look who has come or gone, and call again"]
pub fn publish<H>(
    entries: Option<&Handlers<H>>,
    changed: &AtomicBool,
    wake: impl FnOnce(bool),
    run: impl FnOnce(&mut Entered<'_, H>),
) -> bool {
    let entered = try_enter_fenced(entries);
    // ORDER: Relaxed after the fence, which pairs with the one in `PublicationState::attach`.
    if changed.load(Ordering::Relaxed) {
        return false;
    }
    // Sleepers first, because callbacks may take long.
    wake(entered.is_some());
    if let Some(mut entered) = entered {
        run(&mut entered);
    }
    true
}

/// Tries to enter, and then executes a seq-cst fence: P7.
#[cfg(any(not(target_arch = "x86_64"), loom, miri))]
#[inline(always)]
pub(crate) fn try_enter_fenced<H>(entries: Option<&Handlers<H>>) -> Option<Entered<'_, H>> {
    use crate::sync::{Step, fence_of};

    let entered = entries.and_then(Handlers::try_enter);
    // ORDER: P7, pairs with S2 in `sleep::fall_asleep` and with the fence in `attach`.
    fence_of(Step::P7);
    entered
}

/// Enters like the function above. On x86-64 entering is the fence, which saves some 20 ns of 85
/// from publish to callback:
///
/// 1. A thread that has entered has executed a locked instruction on the word of the mutex: without one, two
///    threads could have entered.
/// 2. On x86-64 that is a full fence: no load or store passes a locked instruction in either
///    direction, and it waits for all stores before it to be visible (Intel SDM volume 3, 9.2.3.9
///    "Loads and Stores Are Not Reordered with Locked Instructions"; AMD APM volume 2, 7.1.3). A
///    `fence(SeqCst)` compiles to `mfence` or to a locked instruction, and to nothing stronger.
/// 3. The compiler fences keep the stores of P5 and P6 before it and the loads that follow behind
///    it: the language itself orders a store before an acquire in neither direction.
///
/// A thread that has not entered may have executed no locked instruction, so it executes a fence.
#[cfg(all(target_arch = "x86_64", not(any(loom, miri))))]
#[inline(always)]
pub(crate) fn try_enter_fenced<H>(entries: Option<&Handlers<H>>) -> Option<Entered<'_, H>> {
    use crate::sync::fence;

    compiler_fence(Ordering::SeqCst);
    let entered = entries.and_then(Handlers::try_enter);
    match entered {
        Some(_) => compiler_fence(Ordering::SeqCst),
        // ORDER: P7, as above.
        None => fence(Ordering::SeqCst),
    }
    entered
}

#[cfg(all(test, not(loom)))]
mod tests {
    use crate::sync::{AtomicU32, fence};

    use super::*;

    /// The litmus test of store buffers, on this machine: two threads each store to their own word
    /// and then read the other's, one after entering, one after a fence. One of them must see the
    /// other's store.
    #[test]
    fn stores_before_entering_are_visible_to_readers() {
        const ROUNDS: u32 = if cfg!(miri) { 50 } else { 5_000 };
        let (entries, words) = (Handlers::<()>::new(), [AtomicU32::new(0), AtomicU32::new(0)]);
        let turns = [AtomicU32::new(0), AtomicU32::new(0)];
        let meet = |own: usize, turn: u32| {
            turns[own].store(turn, Ordering::Release);
            let mut looks = 0_u32;
            while turns[1 - own].load(Ordering::Acquire) < turn {
                looks += 1;
                match looks.is_multiple_of(1_000) || cfg!(miri) {
                    true => std::thread::yield_now(),
                    false => std::hint::spin_loop(),
                }
            }
        };
        // Whether it saw the other's store, for each round.
        let run = |own: usize, order: fn(&Handlers<()>)| -> Vec<bool> {
            let round = |round: u32| {
                meet(own, 2 * round - 1);
                words[own].store(round, Ordering::Relaxed);
                order(&entries);
                let seen = words[1 - own].load(Ordering::Relaxed);
                meet(own, 2 * round);
                seen == round
            };
            (1..=ROUNDS).map(round).collect()
        };
        let enter = |entries: &Handlers<()>| assert!(try_enter_fenced(Some(entries)).is_some());
        let (entering, fencing) = std::thread::scope(|scope| {
            let entering = scope.spawn(|| run(0, enter));
            let fencing = run(1, |_| fence(Ordering::SeqCst));
            (entering.join().unwrap(), fencing)
        });
        let both = entering.iter().zip(&fencing);
        assert_eq!(both.filter(|(one, other)| !**one && !**other).count(), 0, "of {ROUNDS}");
    }
}
