//! The callbacks of a topic in this process, as its publishers here find them: `docs/shared-memory.md`
//! section 13.
//!
//! A callback's body is either in its place, while its thread sleeps, or with that thread. A
//! publisher that enters the stage runs the bodies that are in their places; one that finds the
//! stage taken, or a body away, leaves the sample in its ring, where the callback's thread finds it.
//! So a body is run by one thread at a time, and no publisher waits for another.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use crate::callback::{Body, Concurrent, Fresh, Handed, Payload};
use crate::fork;
use crate::places::{Entered, Places};
use crate::publication::PublicationShared;
use crate::sync::lock;
use crate::topic::{EndpointId, Topic};

/// Where the publishers and the callbacks of a topic in this process meet, whatever their nodes.
pub(crate) struct Stage {
    key: Key,
    places: Places<Body>,
    /// The subscribers that have a place.
    callers: Mutex<Vec<EndpointId>>,
    concurrent: Mutex<Vec<Arc<Concurrent>>>,
    publishers: Mutex<Vec<Weak<PublicationShared>>>,
}

/// The folder of a domain, and a topic's name and type hash.
type Key = (PathBuf, String, u64);

impl Stage {
    /// The stage of a topic in the domain of this folder.
    pub(crate) fn of(domain: &Path, topic: &Topic) -> Arc<Stage> {
        let key = (domain.to_owned(), topic.name.clone(), topic.type_hash);
        let mut stages = lock(&registry().stages);
        if let Some(stage) = stages.get(&key).and_then(Weak::upgrade) {
            return stage;
        }
        let stage = Arc::new(Stage {
            key: key.clone(),
            places: Places::new(),
            callers: Mutex::default(),
            concurrent: Mutex::default(),
            publishers: Mutex::default(),
        });
        stages.insert(key, Arc::downgrade(&stage));
        stage
    }

    /// A publisher of the topic in this process.
    pub(crate) fn add_publisher(&self, publisher: &Arc<PublicationShared>) {
        let mut publishers = lock(&self.publishers);
        publishers.retain(|known| known.strong_count() > 0);
        publishers.push(Arc::downgrade(publisher));
    }

    /// Whether this publisher is one of this process.
    pub(crate) fn has_publisher(&self, id: EndpointId) -> bool {
        let publishers = lock(&self.publishers);
        publishers.iter().filter_map(Weak::upgrade).any(|publisher| publisher.id() == id)
    }

    /// The subscribers whose callbacks are run here.
    pub(crate) fn callers(&self) -> MutexGuard<'_, Vec<EndpointId>> {
        lock(&self.callers)
    }

    /// The callbacks that may run several times at once.
    pub(crate) fn concurrent(&self) -> Vec<Arc<Concurrent>> {
        lock(&self.concurrent).clone()
    }

    pub(crate) fn add_concurrent(&self, callback: &Arc<Concurrent>) {
        lock(&self.concurrent).push(callback.clone());
        self.tell_publishers();
    }

    pub(crate) fn remove_concurrent(&self, subscriber: EndpointId) {
        lock(&self.concurrent).retain(|callback| callback.id() != subscriber);
        self.tell_publishers();
    }

    /// Where the bodies lie.
    #[inline(always)]
    pub(crate) fn places(&self) -> &Places<Body> {
        &self.places
    }

    /// A place for a subscriber's callback, its body still away.
    pub(crate) fn join(&self, entered: &mut Entered<'_, Body>, subscriber: EndpointId) {
        entered.join(subscriber);
        self.callers().push(subscriber);
        self.tell_publishers();
    }

    /// The end of a place.
    pub(crate) fn leave(&self, subscriber: EndpointId) {
        let mut entered = self.places.enter();
        entered.leave(subscriber);
        self.callers().retain(|caller| *caller != subscriber);
        self.tell_publishers();
    }

    fn tell_publishers(&self) {
        for publisher in lock(&self.publishers).iter().filter_map(Weak::upgrade) {
            publisher.look_again();
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let mut stages = lock(&registry().stages);
        // Another may have been made since the last handle of this one went.
        if stages.get(&self.key).is_some_and(|stage| stage.strong_count() == 0) {
            stages.remove(&self.key);
        }
    }
}

/// Runs all bodies that are here with a sample that has just been published. `defer` is told of
/// those that could not take it: their threads have to be woken.
#[inline(always)]
pub(crate) fn run(
    entered: &mut Entered<'_, Body>,
    fresh: &Fresh,
    payload: Payload<'_>,
    mut defer: impl FnMut(EndpointId),
) {
    let _inside = Inside::new();
    let places = entered.places();
    let mut at = 0;
    while at < places.len() {
        let ran = catch_unwind(AssertUnwindSafe(|| {
            while let Some(place) = places.get_mut(at) {
                if let Some(body) = &mut place.body
                    && let Handed::Deferred = body.hand_over(fresh, payload)
                {
                    defer(place.subscriber);
                }
                at += 1;
            }
        }));
        if ran.is_err() {
            let place = &mut places[at];
            if let Some(body) = &mut place.body {
                body.count_panic();
                if body.has_more() {
                    defer(place.subscriber);
                }
            }
            at += 1;
        }
    }
}

/// Marks this thread as one that runs callbacks inside a publish.
pub(crate) struct Inside;

impl Inside {
    #[inline(always)]
    pub(crate) fn new() -> Inside {
        DEPTH.set(DEPTH.get() + 1);
        Inside
    }
}

impl Drop for Inside {
    #[inline(always)]
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}

/// Whether the caller is a callback that is run inside a publish. Such a one must not wait for a
/// callback's thread, which may be waiting for the stage.
pub(crate) fn is_inside() -> bool {
    DEPTH.get() > 0
}

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// The stages of this process.
struct Registry {
    generation: u32,
    stages: Mutex<BTreeMap<Key, Weak<Stage>>>,
}

/// A child of `fork` gets one of its own: a lock in its parent's may have been held.
fn registry() -> &'static Registry {
    static CURRENT: AtomicPtr<Registry> = AtomicPtr::new(std::ptr::null_mut());
    let generation = fork::mark();
    // ORDER: acquire pairs with the release below: the registry is complete.
    let mut current = CURRENT.load(Ordering::Acquire);
    loop {
        // SAFETY: null, or a registry that was leaked below.
        if let Some(known) = unsafe { current.as_ref() }.filter(|it| it.generation == generation) {
            return known;
        }
        let made = Box::into_raw(Box::new(Registry { generation, stages: Mutex::default() }));
        let (done, seen) = (Ordering::AcqRel, Ordering::Acquire);
        match CURRENT.compare_exchange(current, made, done, seen) {
            Ok(_) => current = made,
            Err(theirs) => {
                // SAFETY: it was made above and nobody else has seen it.
                drop(unsafe { Box::from_raw(made) });
                current = theirs;
            }
        }
    }
}
