//! iceoryx2's ports as the kit wants them.

use std::mem::MaybeUninit;
use std::rc::Rc;
use std::time::Duration;

use iceoryx2::port::listener::{Listener, ListenerWaitError};
use iceoryx2::port::notifier::Notifier;
use iceoryx2::port::publisher::Publisher;
use iceoryx2::port::subscriber::Subscriber;
use iceoryx2::prelude::ipc;
use iceoryx2::sample::Sample;
use iceoryx2::sample_mut_uninit::SampleMutUninit;
use myelin_bench_kit::{Error, clock};

use crate::place::Place;

/// Publishes, and notifies if the other side sleeps.
pub struct Outbox {
    // Dropped in this order; the place when nothing of iceoryx2 is left.
    loan: Option<SampleMutUninit<ipc::Service, [MaybeUninit<u8>], ()>>,
    publisher: Publisher<ipc::Service, [u8], ()>,
    notifier: Option<Notifier<ipc::Service>>,
    other: &'static str,
    _place: Rc<Place>,
}

impl Outbox {
    /// `other` is the role that receives.
    pub fn new(
        publisher: Publisher<ipc::Service, [u8], ()>,
        notifier: Option<Notifier<ipc::Service>>,
        other: &'static str,
        place: Rc<Place>,
    ) -> Self {
        Outbox { loan: None, publisher, notifier, other, _place: place }
    }

    #[cold]
    fn gone(&self) -> Error {
        let other = self.other;
        Error::new(format!("{other} has left the service"))
            .remedy(format!("see {other}'s log in the results folder"))
    }
}

impl myelin_bench_kit::Publisher for Outbox {
    fn has_loans(&self) -> bool {
        true
    }

    #[inline]
    fn loan(&mut self, len: usize) -> Result<&mut [u8], Error> {
        // One that was never published goes back first: only one is ours at a time.
        self.loan = None;
        let sample = self.publisher.loan_slice_uninit(len);
        let sample = sample.map_err(|error| Error::new(format!("iceoryx2: loan: {error:?}")))?;
        let memory = self.loan.insert(sample).payload_mut();
        // SAFETY: the bytes are shared memory, mapped and thus of some value each; any is a valid
        // u8. The borrow is that of the slice it replaces.
        Ok(unsafe { &mut *(std::ptr::from_mut(memory) as *mut [u8]) })
    }

    #[inline]
    fn publish_loan(&mut self) -> Result<(), Error> {
        let sample = self.loan.take().ok_or_else(|| Error::new("nothing is on loan"))?;
        // SAFETY: as in `loan`: every byte has a value, the kit's or one of an earlier message.
        let sample = unsafe { sample.assume_init() };
        match sample.send() {
            Ok(0) => return Err(self.gone()),
            Ok(_) => {}
            Err(error) => return Err(Error::new(format!("iceoryx2: send: {error:?}"))),
        }
        match self.notifier.as_ref().map(Notifier::notify) {
            Some(Ok(0)) => Err(self.gone()),
            Some(Err(error)) => Err(Error::new(format!("iceoryx2: notify: {error:?}"))),
            Some(Ok(_)) | None => Ok(()),
        }
    }

    fn publish(&mut self, message: &[u8]) -> Result<(), Error> {
        self.loan(message.len())?.copy_from_slice(message);
        self.publish_loan()
    }
}

/// What both ways to wait have in common: samples are read where they lie.
pub struct Inbox {
    // Dropped in this order.
    sample: Option<Sample<ipc::Service, [u8], ()>>,
    subscriber: Subscriber<ipc::Service, [u8], ()>,
    _place: Rc<Place>,
}

impl Inbox {
    /// Around `subscriber`.
    pub fn new(subscriber: Subscriber<ipc::Service, [u8], ()>, place: &Rc<Place>) -> Self {
        Inbox { sample: None, subscriber, _place: Rc::clone(place) }
    }

    #[inline(always)]
    fn has_samples(&self) -> Result<bool, Error> {
        let has = self.subscriber.has_samples();
        has.map_err(|error| Error::new(format!("iceoryx2: has_samples: {error:?}")))
    }

    #[inline(always)]
    fn take(&mut self) -> Result<Option<&[u8]>, Error> {
        let sample = self.subscriber.receive();
        self.sample =
            sample.map_err(|error| Error::new(format!("iceoryx2: receive: {error:?}")))?;
        Ok(self.sample.as_ref().map(|sample| sample.payload()))
    }

    #[inline(always)]
    fn release(&mut self) {
        self.sample = None;
    }
}

/// `iceoryx2.poll`: looks without pause.
pub struct Polling {
    inbox: Inbox,
}

impl Polling {
    /// Around `inbox`.
    pub fn new(inbox: Inbox) -> Self {
        Polling { inbox }
    }
}

impl myelin_bench_kit::Subscriber for Polling {
    #[inline]
    fn wait(&mut self, until_ns: u64) -> Result<Option<bool>, Error> {
        loop {
            for _ in 0..LOOKS_PER_CLOCK {
                if self.inbox.has_samples()? {
                    return Ok(Some(true));
                }
                std::hint::spin_loop();
            }
            if clock::monotonic_ns() >= until_ns {
                return Ok(Some(false));
            }
        }
    }

    #[inline]
    fn take(&mut self, _until_ns: u64) -> Result<Option<&[u8]>, Error> {
        self.inbox.take()
    }

    #[inline]
    fn release(&mut self) {
        self.inbox.release();
    }
}

/// `iceoryx2.event`: sleeps in a listener.
///
/// A hop by the listener's own timed wait makes 8 system calls (the socket's mode and time limit are
/// set each time), by a wait set 4, by `poll` on the listener's socket 3. With cores awake timed wait
/// and wait set took 10.5 and 11.7 µs; `poll` was not measured quietly enough to rank. The simplest
/// is used here.
pub struct Blocking {
    // Dropped in this order.
    listener: Listener<ipc::Service>,
    inbox: Inbox,
}

impl Blocking {
    /// Around `inbox`, woken through `listener`.
    pub fn new(inbox: Inbox, listener: Listener<ipc::Service>) -> Self {
        Blocking { listener, inbox }
    }
}

impl myelin_bench_kit::Subscriber for Blocking {
    /// Notifications do not count messages: iceoryx2 merges those that nobody has collected. So a
    /// message that is already there is found before the sleep, and a notification whose message
    /// has been taken ends the wait for nothing, which the kit repeats.
    #[inline]
    fn wait(&mut self, until_ns: u64) -> Result<Option<bool>, Error> {
        if self.inbox.has_samples()? {
            return Ok(Some(true));
        }
        loop {
            let left_ns = until_ns.saturating_sub(clock::monotonic_ns());
            if left_ns == 0 {
                return Ok(Some(false));
            }
            let limit = Duration::from_nanos(left_ns.max(SLEEP_NS_MIN));
            match self.listener.timed_wait(|_| (), limit) {
                Ok(0) | Err(ListenerWaitError::InterruptSignal) => {}
                Ok(_) => return Ok(Some(true)),
                Err(error) => return Err(Error::new(format!("iceoryx2: wait: {error:?}"))),
            }
        }
    }

    #[inline]
    fn take(&mut self, _until_ns: u64) -> Result<Option<&[u8]>, Error> {
        self.inbox.take()
    }

    #[inline]
    fn release(&mut self) {
        self.inbox.release();
    }
}

/// Looks between two looks at the clock.
const LOOKS_PER_CLOCK: u32 = 1024;
/// A socket's time limit counts microseconds, and none would be no limit.
const SLEEP_NS_MIN: u64 = 10_000;
