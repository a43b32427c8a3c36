//! The ends of a topic: a publisher with its frame, callbacks, and subscribers that wait.

use std::any::Any;
use std::cell::UnsafeCell;
use std::ffi::{CString, c_void};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use myelin_bench_kit::message::HEADER_BYTES;
use myelin_bench_kit::{CallSource, Error, Publisher, Subscriber, clock};

use crate::link::{self, Table};

/// A topic for messages of the table's size. LibXR keeps it until the process ends.
#[derive(Clone, Copy)]
pub(crate) struct Topic {
    table: &'static Table,
    handle: NonNull<c_void>,
}

// SAFETY: a topic is only published to by its one `FramePublisher`, which is not `Send`; the rest
// (attaching to its list of subscribers, reading its lock) LibXR does by atomics.
unsafe impl Send for Topic {}

impl Topic {
    pub(crate) fn create(table: &'static Table, name: &str) -> Result<Self, Error> {
        let name_c = CString::new(name).map_err(|_| Error::new("a NUL character in the run"))?;
        // LibXR's register of topics is a tree without a lock.
        static REGISTER: Mutex<()> = Mutex::new(());
        let _alone = REGISTER.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: a string with its NUL, which LibXR does not keep; nobody else uses the register.
        let handle = NonNull::new(unsafe { (table.create)(name_c.as_ptr()) });
        let handle = handle.ok_or_else(|| {
            Error::new(format!("a topic {name}, or one with the same CRC32, is there already"))
                .remedy("LibXR tells topics apart by the CRC32 of their names; rename the run")
        })?;
        Ok(Topic { table, handle })
    }

    /// Once for each topic.
    pub(crate) fn publisher(self) -> Result<FramePublisher, Error> {
        let frame = Frame::new(self.table)?;
        Ok(FramePublisher { publish: self.table.publish, handle: self.handle, frame })
    }

    pub(crate) fn callback(self) -> Callback {
        Callback { topic: self }
    }

    pub(crate) fn waiting(self) -> Result<Waiting, Error> {
        let frame = Frame::new(self.table)?;
        // SAFETY: topic and frame are of this table; `Waiting` keeps the frame.
        let subscriber =
            unsafe { (self.table.subscribe)(self.handle.as_ptr(), frame.memory.as_ptr()) };
        let subscriber = NonNull::new(subscriber).expect("new never returns null");
        Ok(Waiting { subscriber, frame })
    }
}

/// A C++ object of the type that a topic carries. Its bytes are all initialised.
struct Frame {
    table: &'static Table,
    memory: NonNull<c_void>,
    len: usize,
}

impl Frame {
    fn new(table: &'static Table) -> Result<Self, Error> {
        // SAFETY: asks nothing of its caller.
        let memory = NonNull::new(unsafe { (table.new_frame)() });
        let memory = memory.ok_or_else(|| {
            Error::new(format!("no memory for a frame of {} B", table.payload_bytes))
        })?;
        Ok(Frame { table, memory, len: HEADER_BYTES + table.payload_bytes })
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: the object starts with so many bytes; whoever writes it borrows it mutably.
        unsafe { std::slice::from_raw_parts(self.memory.as_ptr().cast(), self.len) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`.
        unsafe { std::slice::from_raw_parts_mut(self.memory.as_ptr().cast(), self.len) }
    }
}

impl Drop for Frame {
    fn drop(&mut self) {
        // SAFETY: made by this table's `new_frame`; nobody else has it.
        unsafe { (self.table.delete_frame)(self.memory.as_ptr()) }
    }
}

/// Publishes its frame. The loan is the frame itself: the object that a user of LibXR would fill.
///
/// What a publish call needs stands together: after a period's sleep each further cache line is a
/// miss, and would be measured.
pub(crate) struct FramePublisher {
    publish: unsafe extern "C" fn(*mut c_void, *mut c_void),
    handle: NonNull<c_void>,
    frame: Frame,
}

impl Publisher for FramePublisher {
    #[inline]
    fn has_loans(&self) -> bool {
        true
    }

    #[inline]
    fn loan(&mut self, len: usize) -> Result<&mut [u8], Error> {
        let own = self.frame.len;
        if len != own {
            return Err(Error::new(format!("messages here are of {own} B; {len} B do not fit")));
        }
        Ok(self.frame.bytes_mut())
    }

    #[inline]
    fn publish_loan(&mut self) -> Result<(), Error> {
        // SAFETY: topic and frame are of this table; one thread publishes, as this is the topic's
        // one publisher and `&mut`; callbacks read the frame during the call, and nobody later.
        unsafe { (self.publish)(self.handle.as_ptr(), self.frame.memory.as_ptr()) };
        Ok(())
    }

    fn publish(&mut self, message: &[u8]) -> Result<(), Error> {
        self.loan(message.len())?.copy_from_slice(message);
        self.publish_loan()
    }
}

/// A callback that is not registered yet.
pub(crate) struct Callback {
    topic: Topic,
}

impl CallSource for Callback {
    /// LibXR cannot unregister: what is registered stays, and calls nothing any more once the
    /// returned handle has been dropped. It must not be dropped within the call.
    fn start(self: Box<Self>, call: Function) -> Result<Box<dyn Any>, Error> {
        let slot = Slot { live: AtomicBool::new(true), call: UnsafeCell::new(Some(call)) };
        let slot: &'static Slot = Box::leak(Box::new(slot));
        let context: *const Slot = slot;
        // SAFETY: `enter` takes a slot, which is never freed; a topic of this table.
        unsafe {
            (self.topic.table.listen)(self.topic.handle.as_ptr(), enter, context.cast_mut().cast());
        }
        Ok(Box::new(Registered { topic: self.topic, slot }))
    }
}

type Function = Box<dyn FnMut(&[u8]) + Send>;

/// What LibXR is given to call; for ever.
struct Slot {
    /// Whether `call` is to be called.
    live: AtomicBool,
    /// Belongs to the publish call under way while `live`, then to the handle.
    call: UnsafeCell<Option<Function>>,
}

/// Runs in the publisher's thread, while LibXR holds the topic's lock.
unsafe extern "C" fn enter(context: *mut c_void, bytes: *const u8, length: usize) {
    // SAFETY: `start` registered this function together with a slot that lives for ever.
    let slot = unsafe { &*context.cast::<Slot>() };
    // ORDER: SeqCst, see `Registered::drop`.
    if !slot.live.load(Ordering::SeqCst) {
        return;
    }
    // SAFETY: a topic has one publisher, so this runs once at a time; as the slot is live, the
    // handle keeps its hands off until this publish call is over.
    let call = unsafe { &mut *slot.call.get() };
    // SAFETY: LibXR passes the published frame, which lives until the publish call returns.
    let message = unsafe { std::slice::from_raw_parts(bytes, length) };
    if let Some(call) = call {
        call(message);
    }
}

/// Keeps a callback being called.
struct Registered {
    topic: Topic,
    slot: &'static Slot,
}

impl Drop for Registered {
    fn drop(&mut self) {
        // ORDER: SeqCst, all four of: this store, the look at the topic's lock below, the taking of
        // that lock in a publish call, and the load of `live` in `enter` after it. If we find the
        // lock free, a publish call either takes it later, and then finds `live` false; or has
        // released it, and then its calls are over (its release pairs with our load).
        self.slot.live.store(false, Ordering::SeqCst);
        let deadline = Instant::now() + CALL_LIMIT;
        // SAFETY: a topic that `create` made.
        while unsafe { link::is_publishing(self.topic.handle.as_ptr()) } {
            if Instant::now() >= deadline {
                // Rather never free it than under its feet.
                return;
            }
            std::thread::yield_now();
        }
        // SAFETY: no call is running, and none will come, as shown above.
        drop(unsafe { (*self.slot.call.get()).take() });
    }
}

/// A subscriber that waits inside `take`, and has its copy in a frame of its own. LibXR drops, and
/// does not count, what is published while it is not waiting.
pub(crate) struct Waiting {
    subscriber: NonNull<c_void>,
    frame: Frame,
}

// SAFETY: LibXR's subscriber is bound to no thread, as long as one waits at a time (`&mut`); the
// publisher writes the frame only while somebody waits.
unsafe impl Send for Waiting {}

impl Subscriber for Waiting {
    fn wait(&mut self, _until_ns: u64) -> Result<Option<bool>, Error> {
        Ok(None)
    }

    fn take(&mut self, until_ns: u64) -> Result<Option<&[u8]>, Error> {
        let left_ns = until_ns.saturating_sub(clock::monotonic_ns());
        let timeout_ms = left_ns.div_ceil(NS_PER_MS).min(TIMEOUT_MS_MAX);
        // SAFETY: a subscriber of this table, and its only waiter; its frame is not borrowed.
        let came = unsafe { (self.frame.table.wait)(self.subscriber.as_ptr(), timeout_ms as u32) };
        match came {
            1 => Ok(Some(self.frame.bytes())),
            0 => Ok(None),
            _ => Err(Error::new("LibXR: SyncSubscriber::Wait failed")),
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // What is left of the subscriber in the topic's list points to our frame, but LibXR writes
        // there only while somebody waits, and nobody will again.
        // SAFETY: a subscriber of this table, with nobody waiting.
        unsafe { (self.frame.table.unsubscribe)(self.subscriber.as_ptr()) }
    }
}

/// How long a call may still take when its handle is dropped.
const CALL_LIMIT: Duration = Duration::from_secs(10);
const NS_PER_MS: u64 = 1_000_000;
/// One more would mean for ever.
const TIMEOUT_MS_MAX: u64 = u32::MAX as u64 - 1;
