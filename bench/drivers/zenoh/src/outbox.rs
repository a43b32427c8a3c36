//! Zenoh's publishers with the kit's interfaces, with loans if payloads are in shared memory.

use std::time::Duration;

use myelin_bench_kit::protocol::{Prepare, Reliability, Workload};
use myelin_bench_kit::{Error, clock, message};
use zenoh::pubsub::Publisher;
use zenoh::shm::{
    GarbageCollect, PosixShmProviderBackend, ShmProvider, ShmProviderBuilder, ZShmMut,
};
use zenoh::{Session, Wait};

use crate::peer::{Presence, failed};

/// Publishes to one topic or several.
pub struct Outbox {
    // Dropped in this order.
    publishers: Vec<Publisher<'static>>,
    topic: usize,
    pool: Option<Pool>,
    _presence: Presence,
    _session: Session,
}

impl Outbox {
    /// An outbox; with `pool`, messages are written into shared memory.
    pub fn new(
        session: &Session,
        publishers: Vec<Publisher<'static>>,
        pool: Option<Pool>,
        presence: Presence,
    ) -> Self {
        let _session = session.clone();
        Outbox { publishers, topic: 0, pool, _presence: presence, _session }
    }

    #[inline]
    fn put(&self, payload: impl Into<zenoh::bytes::ZBytes>) -> Result<(), Error> {
        let sent = self.publishers[self.topic].put(payload).wait();
        sent.map_err(|error| failed("publish", error))
    }
}

impl myelin_bench_kit::Publisher for Outbox {
    fn has_loans(&self) -> bool {
        self.pool.is_some()
    }

    #[inline]
    fn loan(&mut self, len: usize) -> Result<&mut [u8], Error> {
        let pool = self.pool.as_mut().ok_or_else(|| Error::new("zenoh.tcp has no loans"))?;
        pool.loan(len)
    }

    #[inline]
    fn publish_loan(&mut self) -> Result<(), Error> {
        match self.pool.as_mut().and_then(|pool| pool.loan.take()) {
            Some(Loan::Shared(memory)) => self.put(memory),
            Some(Loan::Lost) => Ok(()),
            None => Err(Error::new("nothing is on loan")),
        }
    }

    #[inline]
    fn publish(&mut self, message: &[u8]) -> Result<(), Error> {
        if self.pool.is_none() {
            return self.put(message);
        }
        self.loan(message.len())?.copy_from_slice(message);
        self.publish_loan()
    }

    fn select(&mut self, topic: u32) {
        self.topic = topic as usize;
    }
}

/// Shared memory for messages on loan, on their way, or kept by subscribers.
pub struct Pool {
    loan: Option<Loan>,
    /// Buffer for a message without room.
    lost: Vec<u8>,
    provider: ShmProvider<PosixShmProviderBackend>,
    waits: bool,
}

enum Loan {
    Shared(ZShmMut),
    /// Slow subscribers hold all memory: the message in [`Pool::lost`] is lost.
    Lost,
}

impl Pool {
    /// Memory for the messages of `prepare`. Zenoh locks it, so it is no larger than necessary.
    pub fn new(prepare: &Prepare) -> Result<Self, Error> {
        let is_round_trip = prepare.workload == Workload::Roundtrip;
        let kept = match is_round_trip {
            true => 1,
            false => prepare.depth as usize * prepare.topics as usize,
        };
        let message_bytes = message::HEADER_BYTES + prepare.payload_bytes as usize;
        let bytes = (kept + UNDER_WAY) * (message_bytes + CHUNK_OVERHEAD_BYTES);
        let bytes = bytes.clamp(BYTES_MIN, BYTES_MAX.max(UNDER_WAY * message_bytes));
        let provider = ShmProviderBuilder::default_backend(bytes).wait().map_err(|error| {
            failed(&format!("lock {bytes} B of shared memory"), error).remedy(
                "check the room in /dev/shm and `ulimit -l`, or use a smaller \
                         payload_bytes or depth",
            )
        })?;
        // The first loan makes further segments. This is done here, where no other process removes
        // them.
        drop(provider.alloc(message_bytes).wait());
        let waits = is_round_trip || prepare.reliability == Reliability::Reliable;
        Ok(Pool { loan: None, lost: vec![0; message_bytes], provider, waits })
    }

    #[inline]
    fn loan(&mut self, len: usize) -> Result<&mut [u8], Error> {
        // A loan that was never published is returned first.
        self.loan = None;
        self.loan = Some(match self.provider.alloc(len).with_policy::<GarbageCollect>().wait() {
            Ok(memory) => Loan::Shared(memory),
            Err(_) => self.when_empty(len)?,
        });
        match &mut self.loan {
            Some(Loan::Shared(memory)) => Ok(memory.as_mut()),
            _ => {
                self.lost.resize(len, 0);
                Ok(&mut self.lost)
            }
        }
    }

    /// Reliable publishers wait, like Zenoh's `BlockOn`, but not forever.
    #[cold]
    fn when_empty(&self, len: usize) -> Result<Loan, Error> {
        if !self.waits {
            return Ok(Loan::Lost);
        }
        let until_ns = clock::monotonic_ns() + WAIT_NS_MAX;
        loop {
            match self.provider.alloc(len).with_policy::<GarbageCollect>().wait() {
                Ok(memory) => return Ok(Loan::Shared(memory)),
                Err(error) if clock::monotonic_ns() >= until_ns => {
                    return Err(failed("lend memory: subscribers hold all of it", error));
                }
                Err(_) => std::thread::sleep(LOOK_AGAIN),
            }
        }
    }
}

/// Messages on loan, in a socket, or taken by a subscriber.
const UNDER_WAY: usize = 8;
/// More than Zenoh's allocator takes for each.
const CHUNK_OVERHEAD_BYTES: usize = 256;
const BYTES_MIN: usize = 1 << 20;
/// With deep queues of large messages, memory is smaller than the queues could keep: best effort
/// then loses messages, and reliable waits.
const BYTES_MAX: usize = 512 << 20;
const LOOK_AGAIN: Duration = Duration::from_micros(50);
/// The time for which a connection may be blocked.
const WAIT_NS_MAX: u64 = 60_000_000_000;
