//! Events that a service or a client reads itself before it passes them to its user.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use myelin_shm::data_plane::subscription::SubscriptionState;
use myelin_shm::limits::{EVENTS_MAX, EVENTS_UNTAKEN_MAX};
use myelin_shm::node::EndpointHandle;

use super::SERVICE_CLIENTS_MAX;
use crate::{EndpointId, Event};

/// The events of one endpoint. An event ends the wait of a subscriber.
pub(super) struct Events {
    handle: EndpointHandle,
    /// Whether events have come since the last look.
    have_come: Arc<AtomicBool>,
    /// Events for the user.
    kept: VecDeque<Event>,
    /// Whether the user has taken some.
    is_used: bool,
    gone: Gone,
}

/// The peers that have gone last. Every thread sees a departure as soon as the node does.
#[derive(Clone, Default)]
pub(super) struct Gone(Arc<Mutex<VecDeque<EndpointId>>>);

impl Gone {
    pub(super) fn contains(&self, endpoint: EndpointId) -> bool {
        self.lock().contains(&endpoint)
    }

    fn push(&self, endpoint: EndpointId) {
        let mut gone = self.lock();
        if gone.len() == SERVICE_CLIENTS_MAX {
            gone.pop_front();
        }
        gone.push_back(endpoint);
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<EndpointId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Events {
    pub(super) fn new(handle: &EndpointHandle, waiting: &Arc<SubscriptionState>) -> Events {
        let have_come = Arc::new(AtomicBool::new(true));
        let (flag, waiting) = (have_come.clone(), Arc::downgrade(waiting));
        let gone = Gone::default();
        let its = gone.clone();
        handle.on_event(Box::new(move |event| {
            if let Event::Unmatched { endpoint, .. } = event {
                its.push(*endpoint);
            }
            // ORDER: Release pairs with the acquire in `fresh`: the event can be taken.
            flag.store(true, Ordering::Release);
            if let Some(waiting) = waiting.upgrade() {
                waiting.interrupt();
            }
        }));
        Events { handle: handle.clone(), have_come, kept: VecDeque::new(), is_used: false, gone }
    }

    /// The events since the last call, oldest first.
    pub(super) fn fresh(&mut self) -> Vec<Event> {
        if !self.have_come.swap(false, Ordering::Acquire) {
            return Vec::new();
        }
        let fresh = self.handle.events();
        self.kept.extend(fresh.iter().cloned());
        let max = if self.is_used { EVENTS_MAX } else { EVENTS_UNTAKEN_MAX };
        let excess = self.kept.len().saturating_sub(max);
        self.kept.drain(..excess);
        fresh
    }

    /// The peers that have gone.
    pub(super) fn gone(&self) -> &Gone {
        &self.gone
    }

    /// All events that the user has not seen, oldest first.
    pub(super) fn take(&mut self) -> Vec<Event> {
        self.is_used = true;
        std::mem::take(&mut self.kept).into()
    }
}
