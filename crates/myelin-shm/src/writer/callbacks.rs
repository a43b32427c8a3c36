//! Running the callbacks of this process inside the publish.

use std::sync::Arc;
use std::sync::atomic::{Ordering, compiler_fence, fence};

use super::{Published, Writer};
use crate::callback::{Fresh, Handed, Payload};
use crate::stage::Entered;
use crate::subscriber_view::SubscriberView;
use crate::taken::Taken;
use crate::topic::EndpointId;

impl Writer {
    /// P7 and P8 with callbacks in this process: they are called, all others are rung for.
    #[inline(never)]
    pub(super) fn call_back(&mut self, sequence: u64, published: Published<'_>) {
        let lent;
        let payload = match published {
            Published::Slot { length, place } => Payload::Slot { length, place },
            Published::Inline(bytes) => {
                lent = Taken::lent(self.shared.id(), sequence, bytes);
                Payload::Inline(&lent)
            }
        };
        loop {
            let has_exclusive = self.rung < self.exclusive;
            let stage = self.stage.as_ref().filter(|_| has_exclusive);
            let entered = stage.and_then(|stage| stage.try_enter());
            order_after_entering(entered.as_ref());
            if self.shared.changed.load(Ordering::Relaxed) {
                drop(entered);
                self.refresh();
                continue;
            }
            // Sleepers first: callbacks may take long.
            let rung = if entered.is_some() { self.rung } else { self.exclusive };
            self.views[..rung].iter().for_each(|view| view.ring());
            if let Some(mut entered) = entered {
                let fresh = Fresh { publisher: self.shared.id(), sequence };
                entered.run(&fresh, payload, |subscriber| self.ring(subscriber));
            }
            break;
        }
        for callback in &self.concurrent {
            if let Handed::Deferred = callback.run() {
                self.ring(callback.id());
            }
        }
    }

    fn ring(&self, subscriber: EndpointId) {
        let its = self.views.iter().filter(|view| view.id() == subscriber);
        its.for_each(|view| view.ring());
    }

    /// Finds out which subscribers are callbacks of this process.
    pub(super) fn sort_views(&mut self) {
        let pid = std::process::id();
        let callers = self.stage.as_ref().map(|stage| stage.callers());
        let mut concurrent = self.stage.as_ref().map_or_else(Vec::new, |stage| stage.concurrent());
        let kind = |view: &Arc<SubscriberView>| {
            let is_exclusive = callers.as_ref().is_some_and(|all| all.contains(&view.id()));
            let is_concurrent = || concurrent.iter().any(|callback| callback.id() == view.id());
            match view.pid() == pid {
                true if is_exclusive => 1,
                true if is_concurrent() => 2,
                _ => 0,
            }
        };
        self.views.sort_by_key(kind);
        self.rung = self.views.partition_point(|view| kind(view) < 1);
        self.exclusive = self.views.partition_point(|view| kind(view) < 2);
        concurrent.retain(|callback| self.views.iter().any(|view| view.id() == callback.id()));
        self.concurrent = concurrent;
    }
}

/// Has the sample visible before what comes now is read, as the fence in `finish`.
#[inline(always)]
fn order_after_entering(entered: Option<&Entered<'_>>) {
    match entered {
        // ORDER: entering was a locked instruction, which on x86-64 is such a fence (Intel SDM
        // volume 3, 9.2.3.9 "Loads and Stores Are Not Reordered with Locked Instructions").
        Some(_) if cfg!(target_arch = "x86_64") => compiler_fence(Ordering::SeqCst),
        _ => fence(Ordering::SeqCst),
    }
}
