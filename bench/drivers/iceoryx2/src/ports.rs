//! iceoryx2's ports with the kit's interfaces.

use std::collections::VecDeque;
use std::mem::MaybeUninit;
use std::rc::Rc;
use std::time::Duration;

use iceoryx2::port::SendError;
use iceoryx2::port::listener::{Listener, ListenerWaitError};
use iceoryx2::port::notifier::Notifier;
use iceoryx2::port::publisher::Publisher;
use iceoryx2::port::subscriber::Subscriber;
use iceoryx2::prelude::{EventActivation, EventId, ipc};
use iceoryx2::sample::Sample;
use iceoryx2::sample_mut_uninit::SampleMutUninit;
use myelin_bench_kit::{Error, clock};

use crate::place::Place;

type Port = Publisher<ipc::Service, [u8], ()>;

/// Publishes, and notifies the other side if it sleeps.
pub struct Outbox {
    // Dropped in this order; the place is dropped after everything of iceoryx2.
    loan: Option<SampleMutUninit<ipc::Service, [MaybeUninit<u8>], ()>>,
    /// One for each topic.
    publishers: Vec<Port>,
    notifier: Option<Notifier<ipc::Service>>,
    /// The topic of the next loan; also the number of its event.
    topic: usize,
    other: &'static str,
    _place: Rc<Place>,
}

impl Outbox {
    /// An outbox; `other` is the role that receives.
    pub fn new(
        publishers: Vec<Port>,
        notifier: Option<Notifier<ipc::Service>>,
        other: &'static str,
        place: Rc<Place>,
    ) -> Self {
        Outbox { loan: None, publishers, notifier, topic: 0, other, _place: place }
    }

    /// Takes a message through the steps of `pass`.
    ///
    /// Only this function calls iceoryx2's loan and send, and it is not inlined. They are long, and
    /// a compiler inlines a long function only if it is called from a single place, as in a plain
    /// program. Without inlining, each moves its sample through memory.
    #[inline(never)]
    fn pass(&mut self, pass: Pass<'_>) -> Result<(), Error> {
        let len = match pass {
            Pass::Loan(len) => Some(len),
            Pass::Whole(message, _) => Some(message.len()),
            Pass::OnLoan => None,
        };
        let mut sample = match len {
            None => self.loan.take().ok_or_else(|| Error::new("nothing is on loan"))?,
            Some(len) => {
                // A loan that was never published is returned first: there can be only one.
                if self.loan.is_some() {
                    self.loan = None;
                }
                match self.publishers[self.topic].loan_slice_uninit(len) {
                    Ok(sample) => sample,
                    Err(error) => return Err(Error::new(format!("iceoryx2: loan: {error:?}"))),
                }
            }
        };
        match pass {
            Pass::Loan(_) => {
                self.loan = Some(sample);
                return Ok(());
            }
            Pass::Whole(message, filled) => {
                sample.payload_mut()[..filled].write_copy_of_slice(&message[..filled]);
            }
            Pass::OnLoan => {}
        }
        // SAFETY: the bytes are mapped shared memory, so each has some value, from the kit or from
        // an earlier message; any value is a valid u8.
        match unsafe { sample.assume_init() }.send() {
            Ok(0) => return Err(self.gone()),
            Ok(_) => {}
            Err(SendError::UnableToDeliver) => return Err(self.stuck()),
            Err(error) => return Err(Error::new(format!("iceoryx2: send: {error:?}"))),
        }
        let event = EventId::new(self.topic);
        match self.notifier.as_ref().map(|to| to.notify_with_custom_event_id(event)) {
            Some(Ok(0)) => Err(self.gone()),
            Some(Err(error)) => Err(Error::new(format!("iceoryx2: notify: {error:?}"))),
            Some(Ok(_)) | None => Ok(()),
        }
    }

    #[cold]
    fn gone(&self) -> Error {
        let other = self.other;
        Error::new(format!("{other} left the service"))
            .remedy(format!("see {other}'s log in the results folder"))
    }

    #[cold]
    fn stuck(&self) -> Error {
        let other = self.other;
        Error::new(format!("{other} takes no messages, so the reliable publisher waits")).remedy(
            format!("see {other}'s log in the results folder; reply_timeout_ms sets the limit"),
        )
    }
}

impl myelin_bench_kit::Publisher for Outbox {
    fn has_loans(&self) -> bool {
        true
    }

    #[inline]
    fn loan(&mut self, len: usize) -> Result<&mut [u8], Error> {
        self.pass(Pass::Loan(len))?;
        let memory = self.loan.as_mut().map_or(&mut [] as &mut [_], |loan| loan.payload_mut());
        // SAFETY: as in `pass`, every byte has a value. The borrow is that of the slice it
        // replaces.
        Ok(unsafe { &mut *(std::ptr::from_mut(memory) as *mut [u8]) })
    }

    #[inline]
    fn publish_loan(&mut self) -> Result<(), Error> {
        self.pass(Pass::OnLoan)
    }

    fn publish(&mut self, message: &[u8]) -> Result<(), Error> {
        self.pass(Pass::Whole(message, message.len()))
    }

    #[inline]
    fn publish_filled(&mut self, message: &[u8], filled: usize) -> Result<(), Error> {
        self.pass(Pass::Whole(message, filled))
    }

    #[inline]
    fn select(&mut self, topic: u32) {
        self.topic = topic as usize;
    }
}

/// The steps through which to take a message.
#[derive(Clone, Copy)]
enum Pass<'a> {
    /// Loans memory for this many bytes.
    Loan(usize),
    /// Publishes the loan.
    OnLoan,
    /// Loans and publishes a message of which this many bytes are written.
    Whole(&'a [u8], usize),
}

/// What both ways to wait have in common: samples are read in place.
pub struct Inbox {
    // Dropped in this order.
    sample: Option<Sample<ipc::Service, [u8], ()>>,
    /// One for each topic.
    subscribers: Vec<Subscriber<ipc::Service, [u8], ()>>,
    /// The topic to take from.
    topic: usize,
    _place: Rc<Place>,
}

impl Inbox {
    /// An inbox of these subscribers.
    pub fn new(subscribers: Vec<Subscriber<ipc::Service, [u8], ()>>, place: &Rc<Place>) -> Self {
        Inbox { sample: None, subscribers, topic: 0, _place: Rc::clone(place) }
    }

    #[inline(always)]
    fn has_samples(&self, topic: usize) -> Result<bool, Error> {
        let has = self.subscribers[topic].has_samples();
        has.map_err(|error| Error::new(format!("iceoryx2: has_samples: {error:?}")))
    }

    /// Whether [`Self::topic`] had a sample, which is then kept. Not inlined, for the reason given
    /// at [`Outbox::pass`].
    #[inline(never)]
    fn receive(&mut self) -> Result<bool, Error> {
        match self.subscribers[self.topic].receive() {
            // The most frequent case, in which nothing is moved.
            Ok(None) => Ok(false),
            Ok(Some(sample)) => {
                self.sample = Some(sample);
                Ok(true)
            }
            Err(error) => Err(Error::new(format!("iceoryx2: receive: {error:?}"))),
        }
    }

    /// Like [`Self::receive`], for the first topic with a sample, beginning after the last used
    /// topic, so that they take turns.
    #[inline(always)]
    fn receive_any(&mut self) -> Result<bool, Error> {
        for _ in 0..self.subscribers.len() {
            self.topic = if self.topic + 1 < self.subscribers.len() { self.topic + 1 } else { 0 };
            if self.receive()? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    #[inline(always)]
    fn payload(&self) -> Option<&[u8]> {
        self.sample.as_ref().map(|sample| sample.payload())
    }

    #[inline(always)]
    fn release(&mut self) {
        self.sample = None;
    }
}

/// `iceoryx2.poll`: receives without pause, from one topic after the other, like iceoryx2's own
/// benchmark.
pub struct Polling {
    inbox: Inbox,
}

impl Polling {
    /// A polling subscriber of `inbox`.
    pub fn new(inbox: Inbox) -> Self {
        Polling { inbox }
    }
}

impl myelin_bench_kit::Subscriber for Polling {
    #[inline]
    fn wait(&mut self, _until_ns: u64) -> Result<Option<bool>, Error> {
        Ok(None)
    }

    #[inline]
    fn take(&mut self, until_ns: u64) -> Result<Option<&[u8]>, Error> {
        loop {
            for _ in 0..LOOKS_PER_CLOCK {
                if self.inbox.receive_any()? {
                    return Ok(self.inbox.payload());
                }
                std::hint::spin_loop();
            }
            if clock::monotonic_ns() >= until_ns {
                return Ok(None);
            }
        }
    }

    #[inline]
    fn release(&mut self) {
        self.inbox.release();
    }
}

/// `iceoryx2.event`: sleeps in a listener.
///
/// `README.md` compares ways to wait.
pub struct Blocking {
    // Dropped in this order.
    listener: Listener<ipc::Service>,
    inbox: Inbox,
    /// Topics with notifications, which may have more samples.
    pending: VecDeque<usize>,
    is_pending: Vec<bool>,
}

impl Blocking {
    /// A blocking subscriber of `inbox`, woken through `listener`.
    pub fn new(inbox: Inbox, listener: Listener<ipc::Service>) -> Self {
        let topics = inbox.subscribers.len();
        let pending = VecDeque::with_capacity(topics);
        Blocking { listener, inbox, pending, is_pending: vec![false; topics] }
    }

    /// Whether a topic with a notification has a sample; that topic is then the one to take from.
    #[inline(always)]
    fn look(&mut self) -> Result<bool, Error> {
        while let Some(topic) = self.pending.pop_front() {
            if self.inbox.has_samples(topic)? {
                self.pending.push_back(topic);
                self.inbox.topic = topic;
                return Ok(true);
            }
            self.is_pending[topic] = false;
        }
        Ok(false)
    }

    /// Sleeps until there are notifications, at most for `limit`.
    fn sleep(&mut self, limit: Duration) -> Result<(), Error> {
        let Blocking { listener, pending, is_pending, .. } = self;
        let note = |event: EventActivation| {
            let topic = event.id.as_value();
            if is_pending.get(topic).is_some_and(|is| !is) {
                is_pending[topic] = true;
                pending.push_back(topic);
            }
        };
        match listener.timed_wait(note, limit) {
            Ok(_) | Err(ListenerWaitError::InterruptSignal) => Ok(()),
            Err(error) => Err(Error::new(format!("iceoryx2: wait: {error:?}"))),
        }
    }
}

impl myelin_bench_kit::Subscriber for Blocking {
    /// The number of notifications is not the number of messages: iceoryx2 merges uncollected ones.
    /// So existing samples are found before the sleep. A notification is not checked against its
    /// message: if the message was taken before, there is nothing to take, and the next wait
    /// sleeps.
    #[inline]
    fn wait(&mut self, until_ns: u64) -> Result<Option<bool>, Error> {
        while !self.look()? {
            let left_ns = until_ns.saturating_sub(clock::monotonic_ns());
            if left_ns == 0 {
                return Ok(Some(false));
            }
            self.sleep(Duration::from_nanos(left_ns.max(SLEEP_NS_MIN)))?;
            if let Some(topic) = self.pending.front() {
                self.inbox.topic = *topic;
                break;
            }
        }
        Ok(Some(true))
    }

    #[inline]
    fn take(&mut self, _until_ns: u64) -> Result<Option<&[u8]>, Error> {
        Ok(if self.inbox.receive()? { self.inbox.payload() } else { None })
    }

    #[inline]
    fn release(&mut self) {
        self.inbox.release();
    }
}

/// Polls between two reads of the clock.
const LOOKS_PER_CLOCK: u32 = 1024;
/// A socket's time limit counts microseconds, and 0 would be no limit.
const SLEEP_NS_MIN: u64 = 10_000;
