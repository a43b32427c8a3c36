//! How many samples of a publisher may be under way to other hosts, and the wait for room.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use myelin_dds::{Guid, Release};

use super::lock;

/// Samples that CycloneDDS has not let go of, and subscribers that have no room. CycloneDDS 0.10
/// heeds no limit at a writer that keeps all, so it is kept here.
///
/// ORDER: all of it is SeqCst: whoever waits has said so before it looks, whoever changes something
/// looks for a waiter after that; so one sees the other.
#[derive(Debug, Default)]
pub(super) struct Room {
    alive: AtomicU32,
    /// Readers whose subscribers are full.
    full: Mutex<BTreeSet<Guid>>,
    full_count: AtomicU32,
    waiting: AtomicU32,
    turn: Mutex<()>,
    changed: Condvar,
}

impl Room {
    /// Whether one more than fits `limit` samples.
    pub(super) fn has(&self, limit: u32) -> bool {
        self.alive.load(Ordering::SeqCst) < limit && self.full_count.load(Ordering::SeqCst) == 0
    }

    /// A sample is written.
    pub(super) fn enter(&self) {
        self.alive.fetch_add(1, Ordering::SeqCst);
    }

    /// Waits until `is_there`, for `limit` at most; false then.
    pub(super) fn wait(&self, limit: Duration, is_there: impl Fn() -> bool) -> bool {
        let begin = Instant::now();
        let mut turn = lock(&self.turn);
        self.waiting.store(1, Ordering::SeqCst);
        let came = loop {
            if is_there() {
                break true;
            }
            let Some(left) = limit.checked_sub(begin.elapsed()) else { break false };
            let woken = self.changed.wait_timeout(turn, left);
            turn = woken.unwrap_or_else(PoisonError::into_inner).0;
        };
        self.waiting.store(0, Ordering::SeqCst);
        came
    }

    /// Something has changed that the publisher may be waiting for.
    pub(super) fn stir(&self) {
        if self.waiting.load(Ordering::SeqCst) > 0 {
            drop(lock(&self.turn));
            self.changed.notify_all();
        }
    }

    /// A reader's subscriber is full, or no longer.
    pub(super) fn set_full(&self, reader: Guid, is_full: bool) {
        self.change(|full| match is_full {
            true => drop(full.insert(reader)),
            false => drop(full.remove(&reader)),
        });
    }

    /// Forgets readers that are not there.
    pub(super) fn retain(&self, is_there: impl Fn(&Guid) -> bool) {
        self.change(|full| full.retain(is_there));
    }

    /// Whether this reader's subscriber is full.
    pub(super) fn is_full(&self, reader: &Guid) -> bool {
        lock(&self.full).contains(reader)
    }

    fn change(&self, change: impl FnOnce(&mut BTreeSet<Guid>)) {
        let mut full = lock(&self.full);
        change(&mut full);
        self.full_count.store(full.len() as u32, Ordering::SeqCst);
        drop(full);
        self.stir();
    }
}

impl Release for Room {
    fn released(&self) {
        self.alive.fetch_sub(1, Ordering::SeqCst);
        self.stir();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn it_is_full_of_what_is_under_way_and_of_what_others_cannot_take() {
        let room = Room::default();
        assert!(room.has(1) && !room.has(0));
        room.enter();
        assert!(!room.has(1) && room.has(2));
        room.released();
        room.set_full([1; 16], true);
        room.set_full([2; 16], true);
        room.set_full([1; 16], false);
        assert!(!room.has(1) && room.is_full(&[2; 16]));
        room.retain(|reader| *reader != [2; 16]);
        assert!(room.has(1));
        assert!(!room.wait(Duration::ZERO, || false));
    }

    #[test]
    fn who_waits_is_woken() {
        let room = Arc::new(Room::default());
        for _ in 0..1_000 {
            room.enter();
            let other = room.clone();
            let thread = std::thread::spawn(move || other.released());
            assert!(room.wait(Duration::from_secs(60), || room.has(1)));
            thread.join().unwrap();
        }
    }
}
