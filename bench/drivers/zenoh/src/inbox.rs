//! Zenoh's subscribers with the kit's interfaces: a channel for the answers that ping waits for, a
//! callback for pong's messages.

use std::any::Any;
use std::collections::VecDeque;
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use myelin_bench_kit::{Call, CallSource, Error, clock};
use zenoh::bytes::ZBytes;
use zenoh::handlers::FifoChannelHandler;
use zenoh::pubsub::Subscriber;
use zenoh::sample::Sample;
use zenoh::{Session, Wait};

use crate::peer::{Presence, failed};

/// A subscriber that waits on a channel, like Zenoh's own `z_ping`.
pub struct Inbox {
    // Dropped in this order.
    taken: Option<ZBytes>,
    joined: Vec<u8>,
    subscriber: Subscriber<FifoChannelHandler<Sample>>,
    _session: Session,
}

impl Inbox {
    /// An inbox of `subscriber`.
    pub fn new(session: &Session, subscriber: Subscriber<FifoChannelHandler<Sample>>) -> Self {
        Inbox { taken: None, joined: Vec::new(), subscriber, _session: session.clone() }
    }
}

impl myelin_bench_kit::Subscriber for Inbox {
    fn wait(&mut self, _until_ns: u64) -> Result<Option<bool>, Error> {
        Ok(None)
    }

    #[inline]
    fn take(&mut self, until_ns: u64) -> Result<Option<&[u8]>, Error> {
        let left = Duration::from_nanos(until_ns.saturating_sub(clock::monotonic_ns()));
        let sample = self.subscriber.recv_deadline(Instant::now() + left);
        let Some(sample) = sample.map_err(|error| failed("receive", error))? else {
            return Ok(None);
        };
        let payload = self.taken.insert(sample.payload().clone());
        Ok(is_valid(payload).then(|| whole(payload, &mut self.joined)))
    }

    #[inline]
    fn release(&mut self) {
        self.taken = None;
    }
}

/// Whether the memory is valid; if Zenoh has taken shared memory back, that is counted.
#[inline]
fn is_valid(payload: &ZBytes) -> bool {
    use zenoh::shm::ShmBuf;
    let is_valid = payload.as_shm().is_none_or(|memory| memory.is_valid());
    if !is_valid {
        // ORDER: Relaxed, a count that guards nothing.
        TAKEN_BACK.fetch_add(1, Ordering::Relaxed);
    }
    is_valid
}

/// A remark on messages that Zenoh delivered but that were lost, if there are any.
pub fn taken_back() -> Option<String> {
    match TAKEN_BACK.load(Ordering::Relaxed) {
        0 => None,
        count => Some(format!(
            "{count} messages were lost, even if reliable: Zenoh's watchdog took back their shared \
             memory because this process did not run for about 100 ms"
        )),
    }
}

/// Messages of this process whose memory Zenoh had taken back.
static TAKEN_BACK: AtomicU64 = AtomicU64::new(0);

/// The payload in one piece: in place, or, if it arrived in fragments, assembled in `joined`.
#[inline]
fn whole<'a>(payload: &'a ZBytes, joined: &'a mut Vec<u8>) -> &'a [u8] {
    let mut slices = payload.slices();
    match (slices.next(), slices.next()) {
        (None, _) => &[],
        (Some(one), None) => one,
        _ => {
            joined.clear();
            payload.slices().for_each(|slice| joined.extend_from_slice(slice));
            joined
        }
    }
}

/// Subscribers that call a function, from a thread of Zenoh.
pub struct Source {
    // Dropped in this order.
    _subscribers: Vec<Subscriber<()>>,
    dispatcher: Arc<Dispatcher>,
    _presence: Option<Presence>,
    _session: Session,
}

/// Where all subscribers of a process call; one call at a time.
pub struct Dispatcher {
    state: Mutex<State>,
}

enum State {
    /// There is no function yet: the newest messages are kept, or all of them.
    Early {
        kept: VecDeque<ZBytes>,
        kept_max: usize,
    },
    Calling {
        call: Call,
        joined: Vec<u8>,
    },
    Over,
}

impl Dispatcher {
    /// Keeps up to `kept_max` messages until there is a function to call.
    pub fn new(kept_max: usize) -> Arc<Self> {
        let state = Mutex::new(State::Early { kept: VecDeque::new(), kept_max });
        Arc::new(Dispatcher { state })
    }

    /// Declares a subscriber that calls here.
    pub fn subscriber(
        self: &Arc<Self>,
        session: &Session,
        key: String,
    ) -> Result<Subscriber<()>, Error> {
        let dispatcher = Arc::clone(self);
        let subscriber = session
            .declare_subscriber(key)
            .callback(move |sample| dispatcher.deliver(sample.payload()));
        subscriber.wait().map_err(|error| failed("declare a subscriber", error))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    fn deliver(&self, payload: &ZBytes) {
        match &mut *self.lock() {
            State::Calling { call, joined } => {
                if is_valid(payload) {
                    call(whole(payload, joined));
                }
            }
            State::Early { kept, kept_max } => {
                kept.push_back(payload.clone());
                if kept.len() > *kept_max {
                    kept.pop_front();
                }
            }
            State::Over => {}
        }
    }
}

impl Source {
    /// From `subscribers`, declared by `dispatcher`; `presence` is kept elsewhere if there is a
    /// publisher.
    pub fn new(
        session: &Session,
        subscribers: Vec<Subscriber<()>>,
        dispatcher: Arc<Dispatcher>,
        presence: Option<Presence>,
    ) -> Self {
        let _session = session.clone();
        Source { _subscribers: subscribers, dispatcher, _presence: presence, _session }
    }
}

impl CallSource for Source {
    fn start(self: Box<Self>, mut call: Call) -> Result<Box<dyn Any>, Error> {
        let mut state = self.dispatcher.lock();
        let mut joined = Vec::new();
        if let State::Early { kept, .. } = &mut *state {
            for payload in kept.drain(..).filter(is_valid) {
                call(whole(&payload, &mut joined));
            }
        }
        *state = State::Calling { call, joined };
        drop(state);
        Ok(Box::new(Calling { source: *self }))
    }
}

/// Subscribers with a function.
struct Calling {
    source: Source,
}

impl Drop for Calling {
    fn drop(&mut self) {
        // Takes the function out of the lock before dropping it.
        let state = mem::replace(&mut *self.source.dispatcher.lock(), State::Over);
        drop(state);
    }
}
