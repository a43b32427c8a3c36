//! Functions for systems that call, and the publish workload of a system in one process.
//!
//! A function owns its state, so a call takes no lock and allocates nothing. When the system drops
//! the function, the state comes back.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver as Returned, Sender, channel};
use std::time::Duration;

use crate::accounting::{Accounted, Accounting};
use crate::clock::Clock;
use crate::driver::{Call, Fan, Receiver, Stream};
use crate::error::Error;
use crate::fan::{self, Expected, QUIET_NS, SILENT};
use crate::message;
use crate::pingpong::END_OF_STREAM;
use crate::protocol::{Done, Prepare};
use crate::samples::SampleFile;

/// Access to the state of a function until the function is dropped.
pub(crate) struct CallbackHandle<T> {
    returned: Returned<T>,
    over: Arc<AtomicBool>,
}

impl CallbackHandle<Accounting> {
    /// A function that accounts for each message. It reads the clock first.
    pub(crate) fn listening(accounting: Accounting, clock: &Clock) -> (Call, Self) {
        let clock = clock.clone();
        CallbackHandle::new(accounting, move |accounting, message| {
            let entry_ns = clock.now();
            accounting.account(message, 0, entry_ns) == Accounted::EndOfStream
        })
    }
}

impl CallbackHandle<Tally> {
    /// A function that only counts.
    fn counting(expected: Expected) -> (Call, Self) {
        // Without CPU time: it runs in ping's process, and ping counts that time.
        let done = Done { cpu_ns: Some(0), ..Done::default() };
        CallbackHandle::new(Tally { done, next: 0, expected }, |tally, message| {
            fan::note(&mut tally.done, &tally.expected, message, &mut tally.next);
            message::sequence(message) == Some(END_OF_STREAM)
        })
    }
}

impl<T: Send + 'static> CallbackHandle<T> {
    /// Makes a function of `call`, which returns whether a message was the last.
    pub(crate) fn new(
        owned: T,
        mut call: impl FnMut(&mut T, &[u8]) -> bool + Send + 'static,
    ) -> (Call, Self) {
        let (sender, returned) = channel();
        let over = Arc::new(AtomicBool::new(false));
        let its_over = Arc::clone(&over);
        // The thread that makes the function also waits for the last message.
        let waiting = std::thread::current();
        let mut keeper = Keeper { owned: Some(owned), sender };
        let function = move |message: &[u8]| {
            if let Some(owned) = &mut keeper.owned
                && call(owned, message)
            {
                // ORDER: Relaxed, the written state comes back through the channel.
                its_over.store(true, Ordering::Relaxed);
                waiting.unpark();
            }
        };
        (Box::new(function), CallbackHandle { returned, over })
    }

    /// Waits until the last message has arrived, up to a limit.
    pub(crate) fn await_last(&self, clock: &Clock) {
        let until_ns = clock.now() + LAST_NS_MAX;
        while !self.is_over() && clock.now() < until_ns {
            clock.sleep_until(clock.now() + LOOK_AGAIN_NS);
        }
    }

    /// Whether the last message has arrived.
    pub(crate) fn is_over(&self) -> bool {
        // ORDER: Relaxed, see above.
        self.over.load(Ordering::Relaxed)
    }

    /// Returns the state. The system must have dropped the function, or do so soon.
    pub(crate) fn back(self) -> Result<T, Error> {
        self.returned.recv_timeout(BACK_MAX).map_err(|_| {
            Error::new("this driver did not drop the function in time")
                .remedy("`CallSource::start` says when it must be dropped")
        })
    }
}

/// Sends the state back when it is dropped.
struct Keeper<T> {
    owned: Option<T>,
    sender: Sender<T>,
}

impl<T> Drop for Keeper<T> {
    fn drop(&mut self) {
        if let Some(owned) = self.owned.take() {
            // After a failed run there may be no receiver.
            let _ = self.sender.send(owned);
        }
    }
}

/// The counts of one subscriber.
struct Tally {
    done: Done,
    /// The highest sequence number so far plus one; 0 if there is none.
    next: u64,
    expected: Expected,
}

/// A publish run in one process: the publish call lasts until all subscribers have been called.
pub(crate) struct Audience {
    // Dropped in this order, so that the calls end first.
    calling: Vec<Box<dyn Any>>,
    fan: Fan,
    handles: Vec<CallbackHandle<Tally>>,
}

impl Audience {
    pub(crate) fn new(stream: Stream, prepare: &Prepare) -> Result<Self, Error> {
        let (found, asked) = (stream.receivers.len(), prepare.subscribers as usize);
        if found != asked {
            return Err(Error::new(format!("this driver opened {found} receivers, not {asked}")));
        }
        let fan = Fan { publisher: stream.publisher, subscribers: Vec::new(), clock: stream.clock };
        let mut audience = Audience { calling: Vec::new(), fan, handles: Vec::new() };
        for receiver in stream.receivers {
            let Receiver::Calls(source) = receiver else {
                return Err(Error::new("publish in one process needs subscribers with callbacks"));
            };
            let (call, handle) = CallbackHandle::counting(Expected::of(prepare));
            audience.calling.push(source.start(call)?);
            audience.handles.push(handle);
        }
        Ok(audience)
    }

    /// Like [`fan::ping`], with the subscribers' counts in [`Done::pong`].
    pub(crate) fn run(
        &mut self,
        prepare: &Prepare,
        samples: &mut SampleFile,
        start_ns: u64,
        stop: &AtomicBool,
    ) -> Result<Done, Error> {
        let mut done = fan::ping(&mut self.fan, prepare, samples, start_ns, stop)?;
        self.fan.clock.sleep_until(self.fan.clock.now() + QUIET_NS);
        drop(std::mem::take(&mut self.calling));
        let mut pong = Done { begin_ns: done.begin_ns, end_ns: done.end_ns, ..Done::default() };
        let mut silent = 0;
        for handle in self.handles.drain(..) {
            let Tally { done: one, next, .. } = handle.back()?;
            silent += u64::from(next == 0);
            pong.received += one.received;
            pong.duplicates += one.duplicates;
            pong.out_of_order += one.out_of_order;
            pong.corrupt += one.corrupt;
        }
        pong.more.insert(SILENT.into(), silent);
        done.pong = Some(Box::new(pong));
        Ok(done)
    }
}

/// How long the last message of a run may be on its way.
const LAST_NS_MAX: u64 = 1_000_000_000;
const LOOK_AGAIN_NS: u64 = 200_000;
/// How long a driver may take to drop a function.
const BACK_MAX: Duration = Duration::from_secs(5);
