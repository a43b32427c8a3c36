//! The callbacks of this process, which run inside the publish. `dispatch` has them; a writer knows
//! them by two traits.

use std::sync::Arc;

use super::Writer;
use crate::data_plane::publication::PublicationState;
use crate::data_plane::remote_subscriber::RemoteSubscriber;

/// The callbacks of a topic in this process.
pub(crate) trait FindCallbacks: Send + Sync {
    /// Finds the callbacks among a publisher's subscribers, and moves their views to the end.
    /// Returns how many other views there are, and the callbacks, if there are any.
    fn find(
        self: Arc<Self>,
        publication: &Arc<PublicationState>,
        views: &mut [Arc<RemoteSubscriber>],
    ) -> (usize, Option<Arc<dyn RunCallbacks>>);
}

/// The callbacks of this process among a publisher's subscribers.
pub(crate) trait RunCallbacks: Send + Sync {
    /// P7 and P8 for a sample that has just been published in this thread: notifies `others`, and
    /// calls the callbacks. False if subscribers have come or gone: then nothing has been done.
    fn publish(
        &self,
        others: &[Arc<RemoteSubscriber>],
        sequence: u64,
        time_ns: u64,
        payload: Payload<'_>,
    ) -> bool;

    /// Calls them when others have been notified. `copied`: the payload, if the caller still has it
    /// and it lies in the ring itself.
    fn run(&self, sequence: u64, time_ns: u64, copied: Option<&[u8]>);
}

/// The payload of a sample that has just been published in this thread.
#[derive(Clone, Copy)]
pub(crate) enum Payload<'a> {
    /// Up to 104 B.
    Inline(&'a [u8]),
    /// In a slot.
    Slot { length: u64, place: u64 },
}

/// The callbacks of this process for a shared publisher's sample. No lock is held while they run,
/// so the publisher may have published more by then: each is called with the samples that are next
/// for it.
#[must_use = "its callbacks are yet to be run"]
pub struct Dispatch {
    pub(super) callbacks: Arc<dyn RunCallbacks>,
    pub(super) sequence: u64,
    pub(super) time_ns: u64,
    /// Whether the sample lies in the ring itself.
    pub(super) is_inline: bool,
}

impl Dispatch {
    /// Runs them, in this thread. Callbacks that another thread is running are left to their own
    /// threads. `copied`: the published payload, if the caller still has it. If it is small enough,
    /// they are called with it, and nothing is taken.
    pub fn run(self, copied: Option<&[u8]>) {
        let copied = copied.filter(|_| self.is_inline);
        self.callbacks.run(self.sequence, self.time_ns, copied);
    }
}

impl Writer {
    /// From now on runs these callbacks inside its publishes.
    pub(crate) fn set_callbacks(&mut self, callbacks: Arc<dyn FindCallbacks>) {
        self.callbacks = Some(callbacks);
    }

    /// From now on the caller, which shares the writer, runs the callbacks of this process. After
    /// each publish it calls [`take_dispatch`](Self::take_dispatch), and runs the result when it
    /// has released the lock around the writer.
    pub fn defer_callbacks(&mut self) {
        self.defers = true;
        self.shared.look_again();
    }

    /// The callbacks to run after the last publish.
    #[inline]
    pub fn take_dispatch(&mut self) -> Option<Dispatch> {
        self.due.take()
    }

    /// Finds out which subscribers are callbacks of this process.
    pub(super) fn find_local(&mut self) {
        let callbacks = self.callbacks.clone();
        (self.notified, self.local) = callbacks.map_or((self.views.len(), None), |callbacks| {
            callbacks.find(&self.shared, &mut self.views)
        });
    }
}
