//! Running the callbacks of this process inside the publish.

use std::sync::atomic::{Ordering, compiler_fence, fence};

use super::{Published, Writer};
use crate::callback::{Fresh, Payload};
use crate::stage::Entered;
use crate::topic::EndpointId;

impl Writer {
    /// P7 and P8 with callbacks in this process: they are called, all others are rung for.
    #[inline(never)]
    pub(super) fn call_back(&mut self, sequence: u64, published: Published<'_>) {
        if let Published::Inline(bytes) = published {
            self.copy.renew(sequence, bytes);
        }
        while let Some(stage) = self.stage.as_ref().filter(|_| self.rung < self.views.len()) {
            let entered = stage.try_enter();
            order_after_entering(entered.as_ref());
            if !self.shared.changed.load(Ordering::Relaxed) {
                let Some(mut entered) = entered else { break };
                let fresh = Fresh { publisher: self.shared.id(), sequence };
                let payload = match published {
                    Published::Inline(_) => Payload::Inline(&self.copy),
                    Published::Slot { length, place } => Payload::Slot { length, place },
                };
                // Sleepers first: callbacks may take long.
                let (rung, called) = self.views.split_at(self.rung);
                rung.iter().for_each(|view| view.ring());
                let ring = |subscriber: EndpointId| {
                    let its = called.iter().filter(|view| view.id() == subscriber);
                    its.for_each(|view| view.ring());
                };
                entered.run(&fresh, payload, ring);
                return;
            }
            drop(entered);
            self.refresh();
        }
        self.views.iter().for_each(|view| view.ring());
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
