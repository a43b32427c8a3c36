//! A stream or image run with both ends in one process. Either a thread of the kit named [`THREAD`]
//! takes messages, or the system calls a function of the kit.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::accounting::Accounting;
use crate::calls::CallbackHandle;
use crate::clock::Clock;
use crate::driver::{CallSource, Receiver, Stream, Subscriber};
use crate::error::Error;
use crate::process;
use crate::protocol::{Done, Prepare};
use crate::samples::SampleFile;
use crate::stream::{StreamPublisher, check_rate, listen, the_one};
use crate::trace::Trace;

/// Both ends of the run.
pub(crate) struct OneProcess {
    publisher: StreamPublisher,
    /// Set until the run; if it takes, set again after the run.
    receiver: Option<Receiver>,
    /// Set until the run.
    accounting: Option<Accounting>,
    clock: Clock,
}

impl OneProcess {
    pub(crate) fn new(stream: Stream, prepare: &Prepare) -> Result<Self, Error> {
        let Stream { publisher, receivers, clock } = stream;
        let publisher = publisher.ok_or_else(|| Error::new("this driver opened no publisher"))?;
        let receiver = the_one(receivers)?;
        check_rate(prepare, matches!(receiver, Receiver::Calls(_)))?;
        let path = prepare.pong_samples.as_ref();
        let path = path.ok_or_else(|| Error::new("protocol: no pong_samples for one process"))?;
        let (trace, samples) = (Trace::of(prepare)?, SampleFile::open(path)?);
        let accounting = Accounting::new(prepare, trace.clone(), samples, clock.clone());
        let accounting = Some(accounting);
        let publisher = StreamPublisher::with(publisher, clock.clone(), prepare, trace);
        Ok(OneProcess { publisher, receiver: Some(receiver), accounting, clock })
    }

    /// Like [`StreamPublisher::run`]; the receiving end's counts are in [`Done::pong`]. May be called only
    /// once.
    pub(crate) fn run(
        &mut self,
        prepare: &Prepare,
        samples: &mut SampleFile,
        start_ns: u64,
        stop: &AtomicBool,
    ) -> Result<Done, Error> {
        let once = || Error::new("a receiving end runs once");
        let accounting = self.accounting.take().ok_or_else(once)?;
        let (publisher, clock) = (&mut self.publisher, &self.clock);
        let publish = || publisher.run(prepare, samples, start_ns, stop);
        let (mut done, mut pong) = match self.receiver.take().ok_or_else(once)? {
            Receiver::Calls(source) => call(source, accounting, clock, publish)?,
            Receiver::Takes(mut subscriber) => {
                let taker = subscriber.as_mut();
                let taken = take(Taking { taker, accounting, clock }, prepare, stop, publish)?;
                self.receiver = Some(Receiver::Takes(subscriber));
                taken
            }
            Receiver::TakesHere(_) => {
                let text = "this driver's subscriber stays in its thread, which publishes";
                return Err(Error::new(text).remedy("open it as Receiver::Takes"));
            }
        };
        pong.lost = done.sent.saturating_sub(pong.received);
        done.pong = Some(Box::new(pong));
        Ok(done)
    }
}

fn call(
    source: Box<dyn CallSource>,
    accounting: Accounting,
    clock: &Clock,
    publish: impl FnOnce() -> Result<Done, Error>,
) -> Result<(Done, Done), Error> {
    let (call, handle) = CallbackHandle::listening(accounting, clock);
    let calling = source.start(call)?;
    let done = publish()?;
    handle.await_last(clock);
    drop(calling);
    Ok((done, handle.back()?.close()))
}

/// The state of the taking thread.
struct Taking<'a> {
    taker: &'a mut (dyn Subscriber + Send),
    accounting: Accounting,
    clock: &'a Clock,
}

/// Publishes while another thread takes; that thread has ended in any case when this returns.
fn take(
    taking: Taking<'_>,
    prepare: &Prepare,
    stop: &AtomicBool,
    publish: impl FnOnce() -> Result<Done, Error>,
) -> Result<(Done, Done), Error> {
    let (begun, ended) = (Barrier::new(2), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name(THREAD.into());
        let taker = thread.spawn_scoped(scope, || {
            // If this thread fails, publishing must stop.
            let stopping = SetOnDrop(stop);
            let settled = settle(prepare);
            begun.wait();
            settled?;
            let Taking { taker, mut accounting, clock } = taking;
            listen(taker, &mut accounting, clock, &ended)?;
            std::mem::forget(stopping);
            Ok(accounting.close())
        })?;
        begun.wait();
        let ending = SetOnDrop(&ended);
        let done = publish();
        drop(ending);
        let pong =
            taker.join().unwrap_or_else(|_| Err(Error::new("pong's thread has panicked")))?;
        Ok((done?, pong))
    })
}

/// Sets CPU and scheduling class of the taking thread.
fn settle(prepare: &Prepare) -> Result<(), Error> {
    if let Some(cpu) = prepare.pong_cpu {
        process::pin_thread(cpu)?;
    }
    if let Some(priority) = prepare.pong_fifo {
        process::set_thread_fifo(priority)?;
    }
    Ok(())
}

/// Sets the flag when the scope is left, even by a panic.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        // ORDER: Relaxed, the flag carries nothing else; the end of the thread orders the rest.
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The name of the taking thread in lists of threads.
pub(crate) const THREAD: &str = "pong";

#[cfg(test)]
mod tests;
