//! Callbacks without a node, for a model; the model owns the threads.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Begun, CallbackState, Function, begin};
use crate::data_plane::publication::Writer;
use crate::data_plane::subscription::{Reader, SubscriptionState};
use crate::dispatch::dispatcher::Dispatcher;
use crate::topic::Topic;
use crate::waiting::wait::Wait;

/// A process with callbacks of one topic.
#[derive(Clone)]
pub struct Process(Arc<Dispatcher>);

/// The handle of a function that is being called.
pub struct Callback {
    shared: Arc<CallbackState>,
    subscription: Arc<SubscriptionState>,
}

impl Process {
    /// A process without publishers and callbacks.
    pub fn new(topic: &Topic) -> Process {
        // A count, so that objects left by an execution (one that ends in a deadlock leaves some)
        // are not used by the next one.
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        Process(Dispatcher::of(Path::new(&format!("model {number}")), topic))
    }

    /// Makes a publisher one of this process.
    pub fn enter(&self, writer: &mut Writer) {
        self.0.enter(writer);
    }

    /// Calls `function` with the samples of `reader`; returns the code that its thread is to run.
    pub fn start(
        &self,
        reader: Reader,
        function: Function,
    ) -> (Callback, impl FnOnce() + Send + use<>) {
        let Begun { shared, subscription, thread, at } =
            begin(reader, None, &self.0, Wait::Block, function);
        (Callback { shared, subscription }, move || thread.attend(at))
    }
}

impl Callback {
    /// Ends the calls.
    pub fn stop(&self) {
        self.shared.stop();
        self.subscription.interrupt();
    }
}
