//! The callbacks of a topic in this process, as its publishers here find them:
//! `docs/explanation/shared-memory.md` section 13.
//!
//! While a callback's thread sleeps, its handler lies in its entry; otherwise the thread has it. A
//! publisher that enters the dispatcher runs the handlers in their entries. If the dispatcher is
//! taken, or a handler is away, the publisher leaves the sample in its ring, where the callback's
//! thread finds it. So one thread at a time runs a handler, and no publisher waits for another.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Weak};

use crate::data_plane::publication::{PublicationState, Writer};
use crate::dispatch::callback::{Concurrent, Dispatched, Handler};
use crate::dispatch::handlers::{Entered, Handlers};
use crate::os::fork;
use crate::sync::{Mutex, MutexGuard, lock};
use crate::topic::{EndpointId, Topic};
use crate::user_code::Inside;

/// The meeting point of a topic's publishers and callbacks in this process, for all its nodes.
pub(crate) struct Dispatcher {
    key: Key,
    entries: Handlers<Handler>,
    /// The subscribers with an entry.
    callers: Mutex<Vec<EndpointId>>,
    concurrent: Mutex<Vec<Arc<Concurrent>>>,
    publishers: Mutex<Vec<Weak<PublicationState>>>,
}

/// The folder of a domain, and a topic's name and type hash.
type Key = (PathBuf, String, u64);

impl Dispatcher {
    /// The dispatcher of a topic in the domain of this folder.
    pub(crate) fn of(domain: &Path, topic: &Topic) -> Arc<Dispatcher> {
        let key = (domain.to_owned(), topic.name.clone(), topic.type_hash);
        let mut dispatchers = lock(&registry().dispatchers);
        if let Some(dispatcher) = dispatchers.get(&key).and_then(Weak::upgrade) {
            return dispatcher;
        }
        let dispatcher = Arc::new(Dispatcher {
            key: key.clone(),
            entries: Handlers::new(),
            callers: Mutex::new(Vec::new()),
            concurrent: Mutex::new(Vec::new()),
            publishers: Mutex::new(Vec::new()),
        });
        dispatchers.insert(key, Arc::downgrade(&dispatcher));
        dispatcher
    }

    /// Makes a publisher of the topic in this process run the callbacks.
    pub(crate) fn enter(self: &Arc<Self>, writer: &mut Writer) {
        let mut publishers = lock(&self.publishers);
        publishers.retain(|known| known.strong_count() > 0);
        publishers.push(Arc::downgrade(writer.shared()));
        drop(publishers);
        writer.set_callbacks(self.clone());
    }

    /// Whether this publisher belongs to this process.
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
        self.refresh_publishers();
    }

    pub(crate) fn remove_concurrent(&self, subscriber: EndpointId) {
        lock(&self.concurrent).retain(|callback| callback.id() != subscriber);
        self.refresh_publishers();
    }

    /// The entries with the handlers.
    #[inline(always)]
    pub(crate) fn entries(&self) -> &Handlers<Handler> {
        &self.entries
    }

    /// Adds an entry for a subscriber's callback; the handler is still away.
    pub(crate) fn join(&self, entered: &mut Entered<'_, Handler>, subscriber: EndpointId) {
        entered.join(subscriber);
        self.callers().push(subscriber);
        self.refresh_publishers();
    }

    /// Removes an entry.
    pub(crate) fn leave(&self, subscriber: EndpointId) {
        self.remove(self.entries.enter(), subscriber);
    }

    /// The same, for who has entered.
    pub(crate) fn remove(&self, mut entered: Entered<'_, Handler>, subscriber: EndpointId) {
        entered.leave(subscriber);
        self.callers().retain(|caller| *caller != subscriber);
        self.refresh_publishers();
    }

    fn refresh_publishers(&self) {
        for publisher in lock(&self.publishers).iter().filter_map(Weak::upgrade) {
            publisher.look_again();
        }
    }
}

impl Drop for Dispatcher {
    fn drop(&mut self) {
        let mut dispatchers = lock(&registry().dispatchers);
        // Another dispatcher may have been made since the last handle of this one was dropped.
        if dispatchers.get(&self.key).is_some_and(|dispatcher| dispatcher.strong_count() == 0) {
            dispatchers.remove(&self.key);
        }
    }
}

/// Runs all handlers in their entries with a sample that has just been published, each by
/// `dispatch`. `defer` gets those that could not take it: their threads have to be woken.
#[inline(always)]
pub(crate) fn run(
    entered: &mut Entered<'_, Handler>,
    mut dispatch: impl FnMut(&mut Handler) -> Dispatched,
    mut defer: impl FnMut(EndpointId),
) {
    let _inside = Inside::new();
    let (entries, called) = entered.called();
    let mut at = 0;
    while at < entries.len() {
        let ran = catch_unwind(AssertUnwindSafe(|| {
            while let Some(entry) = entries.get_mut(at) {
                if let Some(handler) = &mut entry.handler {
                    called.set(entry.subscriber);
                    if let Dispatched::Deferred = dispatch(handler) {
                        defer(entry.subscriber);
                    }
                }
                at += 1;
            }
        }));
        if let Err(panic) = ran {
            let entry = &mut entries[at];
            if let Some(handler) = &mut entry.handler {
                handler.count_panic(&*panic);
                if handler.has_more() {
                    defer(entry.subscriber);
                }
            }
            at += 1;
        }
    }
    called.set(0);
}

/// All dispatchers of this process.
struct Registry {
    generation: u32,
    dispatchers: std::sync::Mutex<BTreeMap<Key, Weak<Dispatcher>>>,
}

/// The registry. A child of `fork` gets a new one: a lock in its parent's may have been held.
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
        let dispatchers = std::sync::Mutex::default();
        let made = Box::into_raw(Box::new(Registry { generation, dispatchers }));
        let (done, seen) = (Ordering::AcqRel, Ordering::Acquire);
        match CURRENT.compare_exchange(current, made, done, seen) {
            Ok(_) => current = made,
            Err(theirs) => {
                // SAFETY: it was made above and no other thread has seen it.
                drop(unsafe { Box::from_raw(made) });
                current = theirs;
            }
        }
    }
}
