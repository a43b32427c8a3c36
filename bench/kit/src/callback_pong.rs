//! Pong of a round trip for systems that call a function: it answers within the call.
//!
//! Timing and records are as in `pingpong`, except that there is no wait and thus no `wake_ns`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::calls::CallbackHandle;
use crate::clock::Clock;
use crate::driver::{Answerer, CallSource, Publisher};
use crate::error::Error;
use crate::pingpong;
use crate::process;
use crate::protocol::{Done, Prepare};
use crate::samples::SampleFile;
use crate::transfer::Arrival;

/// Pong's end of a round trip; see the module.
pub(crate) struct CallbackPong {
    /// Set until the run.
    ready: Option<(Box<dyn CallSource>, Responder)>,
    /// Set from the run on. A link closes with its last end, and the lab observes this process,
    /// including its mapped memory, after the run.
    _over: Option<Box<dyn Publisher + Send>>,
}

/// The state that the function owns.
struct Responder {
    publisher: Box<dyn Publisher + Send>,
    clock: Clock,
    samples: SampleFile,
    prepare: Prepare,
    done: Done,
    failed: Option<Error>,
}

impl CallbackPong {
    pub(crate) fn new(answerer: Answerer, prepare: &Prepare, samples: SampleFile) -> Self {
        let Answerer { publisher, source, clock } = answerer;
        let (prepare, done) = (prepare.clone(), Done::default());
        let responder = Responder { publisher, clock, samples, prepare, done, failed: None };
        CallbackPong { ready: Some((source, responder)), _over: None }
    }

    /// Answers until ping sends its last message, an answer fails or `stop` is set. May be called only
    /// once.
    pub(crate) fn run(&mut self, stop: &AtomicBool) -> Result<Done, Error> {
        let Some((source, mut responder)) = self.ready.take() else {
            return Err(Error::new("a pong runs once"));
        };
        responder.done.begin_ns = responder.clock.now();
        let (call, handle) = CallbackHandle::new(responder, Responder::answer);
        let calling = source.start(call)?;
        // ORDER: Relaxed, the flag carries nothing else.
        while !stop.load(Ordering::Relaxed) && !handle.is_over() {
            std::thread::park_timeout(STOP_CHECK);
        }
        drop(calling);
        let (done, publisher) = handle.back()?.close()?;
        self._over = Some(publisher);
        Ok(done)
    }
}

impl Responder {
    /// Answers one message; returns whether it was the last. Reads the clock first.
    fn answer(&mut self, message: &[u8]) -> bool {
        let arrival = Arrival { message, wake_ns: 0, return_ns: self.clock.now() };
        let Responder { publisher, clock, samples, prepare, done, .. } = self;
        match pingpong::answer(publisher.as_mut(), &arrival, done, prepare, samples, clock) {
            Ok(true) => return false,
            Ok(false) => {}
            Err(error) => self.failed = Some(error),
        }
        true
    }

    fn close(mut self) -> Result<(Done, Box<dyn Publisher + Send>), Error> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        self.done.end_ns = self.clock.now();
        self.done.cpu_ns = self.done.cpu_ns.map(|before| process::cpu_ns() - before);
        Ok((self.done, self.publisher))
    }
}

/// How often it checks whether to stop, unless it is woken; rarely, like every pong.
const STOP_CHECK: Duration = Duration::from_secs(1);
