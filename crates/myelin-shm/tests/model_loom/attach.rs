//! `PublicationShared::attach` against `Writer::reclaim` and `Writer::refresh`, re-expressed (the
//! types themselves need the system): what a newcomer begins with is not freed.

use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use loom::sync::{Arc, Mutex};
use loom::thread;
use myelin_shm::data_plane::layout::NOT_BEGUN;
use myelin_shm::data_plane::reclaim::{self, Announced};

use crate::reclaim::{Publisher, REAL, Shared, read};
use crate::{explore, load_acquire};

const PREEMPTIONS: usize = 3;

struct Publication {
    shared: Shared,
    /// Whether the one subscriber is in the list.
    subscribers: Mutex<bool>,
    changed: AtomicBool,
    begins_at: AtomicU64,
}

#[derive(Clone, Copy)]
struct Steps {
    /// Between `changed` and `published`.
    fence: fn(),
    /// `published` is read before the list is changed.
    too_early: bool,
    /// What the newcomer asks for beyond the publisher's history.
    beyond: u64,
}

const REAL_ATTACH: Steps = Steps { fence: || fence(Ordering::SeqCst), too_early: false, beyond: 0 };

impl Publication {
    fn attach(&self, history: u64, steps: Steps) -> u64 {
        let early = load_acquire(&self.shared.published);
        let mut subscribers = self.subscribers.lock().unwrap();
        *subscribers = true;
        self.changed.store(true, Ordering::Relaxed);
        (steps.fence)();
        let start = match steps.too_early {
            true => early,
            false => self.shared.published.load(Ordering::Acquire),
        };
        let begins_at = start.saturating_sub(history + steps.beyond);
        self.begins_at.store(begins_at, Ordering::Release);
        begins_at
    }

    /// `Writer::refresh`, if there is a reason, and then what `reclaim` looks at.
    fn refresh(&self, known: &mut bool) {
        if self.changed.load(Ordering::Relaxed) {
            self.changed.store(false, Ordering::Relaxed);
            fence(Ordering::SeqCst);
            *known = *self.subscribers.lock().unwrap();
        }
    }

    fn announced(&self) -> Announced<'_> {
        let Shared { reading, holds, .. } = &self.shared;
        let start = self.begins_at.load(Ordering::Acquire);
        Announced { reading, holds, connection: 0, start }
    }
}

/// `before` samples, then the publisher goes on to sample `last` while somebody attaches and reads.
fn newcomer(history: u64, slots: usize, before: u64, last: u64, steps: Steps) {
    let publication = Arc::new(Publication {
        shared: Shared::new(2, NOT_BEGUN),
        subscribers: Mutex::new(false),
        changed: AtomicBool::new(false),
        begins_at: AtomicU64::new(u64::MAX),
    });
    let mut publisher = Publisher::new(slots, history);
    for _ in 0..before {
        publisher.publish(&publication.shared, REAL, || None);
    }
    let attaching = publication.clone();
    let subscriber = thread::spawn(move || {
        let begins_at = attaching.attach(history, steps);
        reclaim::go_on(&attaching.shared.reading, begins_at);
        read(&attaching.shared, begins_at, 2, REAL);
    });
    let mut known = false;
    while publisher.next <= last {
        let published = publisher.publish(&publication.shared, REAL, || {
            publication.refresh(&mut known);
            known.then(|| publication.announced())
        });
        if !published {
            break;
        }
        publication.refresh(&mut known); // in `finish`, after P7
    }
    subscriber.join().unwrap();
}

#[test]
fn what_a_newcomer_begins_with_is_not_freed() {
    explore("attach: without history", PREEMPTIONS, 1_000, || newcomer(0, 2, 1, 4, REAL_ATTACH));
}

#[test]
fn the_history_a_newcomer_asks_for_is_not_freed() {
    explore("attach: history", PREEMPTIONS, 1_000, || newcomer(1, 3, 2, 4, REAL_ATTACH));
}

#[test]
#[should_panic(expected = "another sample's payload")]
fn mutant_without_the_fence() {
    let steps = Steps { fence: || (), ..REAL_ATTACH };
    explore("mutant attach", PREEMPTIONS, 0, move || newcomer(0, 2, 1, 4, steps));
}

#[test]
#[should_panic(expected = "another sample's payload")]
fn mutant_that_chooses_the_start_too_early() {
    let steps = Steps { too_early: true, ..REAL_ATTACH };
    explore("mutant start", PREEMPTIONS, 0, move || newcomer(0, 2, 1, 4, steps));
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_that_begins_before_the_history() {
    let steps = Steps { beyond: 1, ..REAL_ATTACH };
    explore("mutant history", PREEMPTIONS, 0, move || newcomer(0, 2, 1, 4, steps));
}
