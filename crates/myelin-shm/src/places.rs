//! Where the bodies of a topic's callbacks lie while their threads sleep, and the steps by which
//! threads and publishers of a process meet there: `docs/shared-memory.md` section 13. Generic over
//! the body, so that the model checker runs what ships (`tests/model_loom/stage.rs`).
//!
//! Happens-before: the bodies are under the lock. Two things are not: who sleeps elsewhere, and who
//! has come or gone. For these a publisher that has entered has executed P7, as any other.

use crate::sync::{AtomicBool, Mutex, MutexGuard, Ordering, fence, lock};
use crate::topic::EndpointId;

/// The places of a topic's callbacks, in the order of registration. Locked by a publisher while it
/// runs the bodies, by a callback's thread for a moment.
#[derive(Debug)]
pub struct Places<B>(Mutex<Vec<Place<B>>>);

/// Where a callback's body lies while its thread sleeps.
#[derive(Debug)]
pub struct Place<B> {
    /// The callback's subscriber.
    pub subscriber: EndpointId,
    /// `None` while its thread has it.
    pub body: Option<B>,
}

/// Places that are entered: the bodies stay where they are, and nobody else runs them.
#[derive(Debug)]
pub struct Entered<'a, B>(MutexGuard<'a, Vec<Place<B>>>);

impl<B> Places<B> {
    /// None yet.
    #[expect(clippy::new_without_default, reason = "loom's mutex has no default")]
    pub fn new() -> Self {
        Places(Mutex::new(Vec::new()))
    }

    /// `None` if somebody else is there, be it a publisher further down this thread's stack.
    #[inline(always)]
    pub fn try_enter(&self) -> Option<Entered<'_, B>> {
        match self.0.try_lock() {
            Ok(places) => Some(Entered(places)),
            Err(std::sync::TryLockError::Poisoned(places)) => Some(Entered(places.into_inner())),
            Err(std::sync::TryLockError::WouldBlock) => None,
        }
    }

    /// Waits until nobody else is there.
    pub fn enter(&self) -> Entered<'_, B> {
        Entered(lock(&self.0))
    }
}

impl<B> Entered<'_, B> {
    /// All places, those whose bodies are away included.
    #[inline(always)]
    pub fn places(&mut self) -> &mut [Place<B>] {
        &mut self.0
    }

    /// A place for a subscriber's callback, its body still away.
    pub fn join(&mut self, subscriber: EndpointId) {
        self.0.push(Place { subscriber, body: None });
    }

    /// The end of a place.
    pub fn leave(&mut self, subscriber: EndpointId) {
        self.0.retain(|place| place.subscriber != subscriber);
    }

    /// From now on publishers may run the body, unless there is something to do for its thread,
    /// which then has it back. `fall_asleep` is S1 and S2, and looks: what to sleep on, `None` if
    /// there is something. It runs under the lock: who is turned away after that rings.
    pub fn put_down<S>(
        mut self,
        subscriber: EndpointId,
        mut body: B,
        fall_asleep: impl FnOnce(&mut B) -> Option<S>,
    ) -> Result<S, B> {
        let Some(asleep) = fall_asleep(&mut body) else { return Err(body) };
        let place = self.0.iter_mut().find(|place| place.subscriber == subscriber);
        place.expect("it has joined").body = Some(body);
        Ok(asleep)
    }

    /// From now on the body is its thread's again.
    pub fn pick_up(mut self, subscriber: EndpointId) -> B {
        let place = self.0.iter_mut().find(|place| place.subscriber == subscriber);
        place.and_then(|place| place.body.take()).expect("its thread has put it here")
    }
}

/// P7 and P8 of a publisher with callbacks in its process, after P6. `changed` says that somebody
/// has come or gone: nothing has been done then, and the caller looks who, and calls again. `wake`
/// rings for those that sleep; it is told whether the bodies are run here, or else are to be rung
/// for as well. `run` runs them.
#[inline(always)]
#[must_use = "if it is false, look who has come or gone, and call again"]
pub fn publish<B>(
    places: Option<&Places<B>>,
    changed: &AtomicBool,
    wake: impl FnOnce(bool),
    run: impl FnOnce(&mut Entered<'_, B>),
) -> bool {
    let entered = try_enter_fenced(places);
    // ORDER: Relaxed after the fence, which pairs with the one in `PublicationShared::attach`.
    if changed.load(Ordering::Relaxed) {
        return false;
    }
    // Sleepers first: callbacks may take long.
    wake(entered.is_some());
    if let Some(mut entered) = entered {
        run(&mut entered);
    }
    true
}

/// Tries to enter, and then executes a seq-cst fence: P7.
#[cfg(any(not(target_arch = "x86_64"), loom, miri))]
#[inline(always)]
fn try_enter_fenced<B>(places: Option<&Places<B>>) -> Option<Entered<'_, B>> {
    let entered = places.and_then(Places::try_enter);
    // ORDER: P7, pairs with S2 in `bell::fall_asleep` and with the fence in `attach`.
    fence(Ordering::SeqCst);
    entered
}

/// As above. Having entered is the fence, which saves some 20 ns of 85 from publish to callback:
///
/// 1. Who has entered has executed a locked instruction on the word of the mutex: without one, two
///    could have entered.
/// 2. On x86-64 that is a full fence: no load or store passes a locked instruction in either
///    direction, and it waits for all stores before it to be visible (Intel SDM volume 3, 9.2.3.9
///    "Loads and Stores Are Not Reordered with Locked Instructions"; AMD APM volume 2, 7.1.3). A
///    `fence(SeqCst)` compiles to `mfence` or to a locked instruction, and to nothing stronger.
/// 3. The compiler fences keep the stores of P5 and P6 before it and the loads that follow behind
///    it: the language itself orders a store before an acquire in neither direction.
///
/// Who has not entered may have executed no locked instruction, and fences.
#[cfg(all(target_arch = "x86_64", not(any(loom, miri))))]
#[inline(always)]
fn try_enter_fenced<B>(places: Option<&Places<B>>) -> Option<Entered<'_, B>> {
    use std::sync::atomic::compiler_fence;

    compiler_fence(Ordering::SeqCst);
    let entered = places.and_then(Places::try_enter);
    match entered {
        Some(_) => compiler_fence(Ordering::SeqCst),
        // ORDER: P7, as above.
        None => fence(Ordering::SeqCst),
    }
    entered
}

#[cfg(all(test, not(loom)))]
mod tests {
    use crate::sync::AtomicU32;

    use super::*;

    /// The litmus test of store buffers, on this machine: two threads each store to their own word
    /// and then read the other's, one after entering, one after a fence. One of them must see the
    /// other's store.
    #[test]
    fn who_has_entered_has_its_stores_visible_before_it_reads() {
        const ROUNDS: u32 = if cfg!(miri) { 50 } else { 5_000 };
        let (places, words) = (Places::<()>::new(), [AtomicU32::new(0), AtomicU32::new(0)]);
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
        let run = |own: usize, order: fn(&Places<()>)| -> Vec<bool> {
            let round = |round: u32| {
                meet(own, 2 * round - 1);
                words[own].store(round, Ordering::Relaxed);
                order(&places);
                let seen = words[1 - own].load(Ordering::Relaxed);
                meet(own, 2 * round);
                seen == round
            };
            (1..=ROUNDS).map(round).collect()
        };
        let enter = |places: &Places<()>| assert!(try_enter_fenced(Some(places)).is_some());
        let (entering, fencing) = std::thread::scope(|scope| {
            let entering = scope.spawn(|| run(0, enter));
            let fencing = run(1, |_| fence(Ordering::SeqCst));
            (entering.join().unwrap(), fencing)
        });
        let both = entering.iter().zip(&fencing);
        assert_eq!(both.filter(|(one, other)| !**one && !**other).count(), 0, "of {ROUNDS}");
    }
}
