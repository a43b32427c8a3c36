//! The handle of a subscriber's callback.

use crate::data_plane::subscription::RawSample;
use crate::dispatch::callback::{Function, Lengths, RunningCallback};
use crate::endpoint::{EndpointHandle, Subscriber};
use crate::error::Error;
use crate::waiting::wait::Wait;

/// The handle of a function that is being called. Dropping it ends the calls: the drop waits for a
/// running call, unless a callback or another function that a node calls drops it. Any thread may
/// use it.
pub struct Callback {
    running: RunningCallback,
    handle: EndpointHandle,
}

impl Callback {
    /// Calls `function` with every sample of `subscriber` from now on. Its thread waits for samples
    /// of other processes as `wait` says.
    ///
    /// # Errors
    /// [`Error::System`] if no further thread can be started.
    pub fn start(
        subscriber: Subscriber,
        wait: Wait,
        function: Function,
    ) -> Result<Callback, Error> {
        let handle = EndpointHandle::clone(&subscriber);
        let Subscriber { reader, after } = subscriber;
        let dispatcher = handle.node().dispatcher(reader.shared().topic());
        let threads = handle.node().threads();
        let after = Box::new(after);
        let running = RunningCallback::start(reader, after, dispatcher, threads, wait, function)?;
        Ok(Callback { running, handle })
    }

    /// Like [`start`](Self::start), with a function that may run several times at once: every
    /// publisher of this process runs it in its own thread. The callback's thread, for samples of
    /// other processes, sleeps in the kernel.
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    pub fn start_concurrent(
        subscriber: Subscriber,
        call: Box<dyn Fn(&RawSample) + Send + Sync>,
        lengths: Lengths,
    ) -> Result<Callback, Error> {
        let handle = EndpointHandle::clone(&subscriber);
        let Subscriber { reader, after } = subscriber;
        let dispatcher = handle.node().dispatcher(reader.shared().topic());
        let threads = handle.node().threads();
        let after = Box::new(after);
        let running =
            RunningCallback::start_concurrent(reader, after, dispatcher, threads, call, lengths)?;
        Ok(Callback { running, handle })
    }

    /// How many calls have returned or panicked so far.
    pub fn calls(&self) -> u64 {
        self.running.calls()
    }

    /// How many calls have panicked so far.
    pub fn panics(&self) -> u64 {
        self.running.panics()
    }

    /// How many samples were lost so far, counted when the next one is taken.
    pub fn lost(&self) -> u64 {
        self.running.lost()
    }

    /// The latest error of a take, once; the calls go on after it.
    pub fn error(&self) -> Option<Error> {
        self.running.error()
    }

    /// The subscriber's matches and events.
    pub fn handle(&self) -> &EndpointHandle {
        &self.handle
    }
}

impl Drop for Callback {
    fn drop(&mut self) {
        // Ended here, because its function may be the caller; the thread that the caller waits for
        // would wait for it.
        self.handle.end_listening();
    }
}

impl std::fmt::Debug for Callback {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Callback")
            .field("calls", &self.calls())
            .field("panics", &self.panics())
            .finish_non_exhaustive()
    }
}
