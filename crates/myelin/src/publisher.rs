//! The publishing side of a topic.

use std::cell::{Cell, UnsafeCell};
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use myelin_shm::data_plane::publication::{PublicationState, Writer};
use myelin_shm::layout::INLINE_BYTES_MAX;
use myelin_shm::node as shm;

use crate::header_slice::HeaderSlice;
use crate::loan::{Loan, Memory};
use crate::network::{NetworkWait, NetworkWriter};
use crate::payload::Payload;
use crate::plain_data::PlainData;
use crate::shared_publisher::SharedPublisher;
use crate::{EndpointId, Error, Event, GuardCondition, Published};

/// Publishes samples of a topic. Made by [`Topic::publisher`](crate::Topic::publisher).
///
/// One thread at a time uses it: it can be sent to another thread, but not shared. Make a publisher
/// for each thread, or a [shared](Publisher::shared) one. Once it has the memory it needs,
/// publishing neither allocates nor locks, and makes no system call unless a subscriber sleeps.
/// When it is dropped, subscribers can still take the samples that they have not read yet.
///
/// ```compile_fail
/// # fn not_shared(publisher: myelin::Publisher<u64>) {
/// std::thread::scope(|scope| {
///     scope.spawn(|| publisher.publish_copy(&1)); // `Cell` cannot be shared between threads
/// });
/// # }
/// ```
pub struct Publisher<T: Payload + ?Sized> {
    /// Only `with_writer` borrows its writer mutably.
    inner: UnsafeCell<shm::Publisher>,
    /// Set within `with_writer`, because callbacks inside a publish may use this publisher again.
    busy: Cell<bool>,
    /// The writer to other hosts, if the node has a network.
    network_writer: Option<Box<NetworkWriter>>,
    publication: Arc<PublicationState>,
    handle: shm::EndpointHandle,
    payload: PhantomData<fn() -> PhantomData<T>>,
}

impl<T: Payload + ?Sized> Publisher<T> {
    pub(crate) fn new(inner: shm::Publisher, network_writer: Option<NetworkWriter>) -> Self {
        let handle = shm::EndpointHandle::clone(&inner);
        let publication = inner.writer.shared().clone();
        let (inner, busy) = (UnsafeCell::new(inner), Cell::new(false));
        let network_writer = network_writer.map(Box::new);
        Publisher { inner, busy, network_writer, publication, handle, payload: PhantomData }
    }

    /// Publishes a copy of `payload`. For payloads of up to 104 bytes this is the fastest way; write
    /// larger ones into a loan.
    ///
    /// # Errors
    /// [`Error::PayloadTooLarge`]; [`Error::MemoryLimit`], [`Error::NoMemory`];
    /// [`Error::ReliableTimeout`]; [`Error::Forked`]; [`Error::Reentered`] from a callback that this very
    /// publisher runs: give the callback a publisher of its own, or [share](Self::shared) this one. Nothing
    /// was published then.
    #[inline]
    pub fn publish_copy(&self, payload: &T::View) -> Result<Published, Error> {
        self.publish_copy_by(payload, NetworkWriter::make_room)
    }

    /// Like `publish_copy`; `make_room` waits for room on the way to other hosts.
    #[inline(always)]
    pub(crate) fn publish_copy_by(
        &self,
        payload: &T::View,
        make_room: impl FnOnce(&NetworkWriter) -> Result<u32, Error>,
    ) -> Result<Published, Error> {
        let payload = T::as_bytes(payload);
        match &self.network_writer {
            None => self.with_writer(|writer| writer.publish_copy(payload)),
            Some(network_writer) => self.publish_copy_with(network_writer, payload, make_room),
        }
    }

    /// Publishes a copy here and on other hosts. A function of its own, so that publishers of one
    /// host do not save the registers that it needs.
    #[inline(never)]
    fn publish_copy_with(
        &self,
        network_writer: &NetworkWriter,
        payload: &[u8],
        make_room: impl FnOnce(&NetworkWriter) -> Result<u32, Error>,
    ) -> Result<Published, Error> {
        self.with_writer(|writer| {
            let late = make_room(network_writer)?;
            let (published, hold) = match network_writer.holds(payload.len()) {
                true => writer.publish_copy_held(payload)?,
                false => (writer.publish_copy(payload)?, None),
            };
            network_writer.write(payload, hold).map(|()| with_late(published, late))
        })
    }

    /// Publishes a loan of this publisher, here and on other hosts. [`Loan`] and
    /// [`SharedLoan`](crate::SharedLoan) pass only its own loans.
    #[inline]
    pub(crate) fn publish_memory(&self, memory: Memory) -> Result<Published, Error> {
        self.publish_memory_by(memory, NetworkWriter::make_room)
    }

    /// Like `publish_memory`; `make_room` waits for room on the way to other hosts.
    #[inline(always)]
    pub(crate) fn publish_memory_by(
        &self,
        memory: Memory,
        make_room: impl FnOnce(&NetworkWriter) -> Result<u32, Error>,
    ) -> Result<Published, Error> {
        let Some(network_writer) = &self.network_writer else {
            // SAFETY: it is a loan of this publisher.
            return self.with_writer(|writer| unsafe { writer.publish(memory.into_raw()) });
        };
        self.publish_memory_with(network_writer, memory, make_room)
    }

    /// Publishes a loan here and on other hosts. A function of its own, as above.
    #[inline(never)]
    fn publish_memory_with(
        &self,
        network_writer: &NetworkWriter,
        memory: Memory,
        make_room: impl FnOnce(&NetworkWriter) -> Result<u32, Error>,
    ) -> Result<Published, Error> {
        self.with_writer(|writer| {
            let late = match make_room(network_writer) {
                Ok(late) => late,
                Err(error) => {
                    // SAFETY: it is a loan of this publisher, as below.
                    unsafe { writer.discard(memory.into_raw()) };
                    return Err(error);
                }
            };
            let (pointer, bytes) = (memory.bytes().as_ptr(), memory.bytes().len());
            if bytes <= INLINE_BYTES_MAX {
                // A copy is published, and the loan's memory goes back to the writer.
                let mut copy = [0; INLINE_BYTES_MAX];
                copy[..bytes].copy_from_slice(memory.bytes());
                // SAFETY: as above.
                let published = unsafe { writer.publish(memory.into_raw()) }?;
                let written = network_writer.write(&copy[..bytes], None);
                return written.map(|()| with_late(published, late));
            }
            let (published, hold) = match network_writer.holds(bytes) {
                // SAFETY: as above.
                true => unsafe { writer.publish_held(memory.into_raw()) }?,
                // SAFETY: as above.
                false => (unsafe { writer.publish(memory.into_raw()) }?, None),
            };
            // SAFETY: the slot keeps its bytes until a later loan reuses it, and there is none
            // before this call ends: a callback that uses this publisher meanwhile gets an error
            // (`busy`).
            let payload = unsafe { std::slice::from_raw_parts(pointer, bytes) };
            network_writer.write(payload, hold).map(|()| with_late(published, late))
        })
    }

    /// Memory for a payload.
    ///
    /// # Safety
    /// The publisher outlives the returned memory.
    #[inline]
    pub(crate) unsafe fn loan_memory(&self, bytes: usize) -> Result<Memory, Error> {
        let raw = self.with_writer(|writer| writer.loan(bytes as u64))?;
        // SAFETY: the writer is the publisher's.
        Ok(unsafe { Memory::new(raw, bytes) })
    }

    /// Takes a loan of this publisher back.
    #[inline]
    pub(crate) fn discard(&self, memory: Memory) {
        let raw = memory.into_raw();
        if self.busy.get() {
            // In a callback inside a publish of this publisher.
            // SAFETY: it is a loan of this publisher.
            return unsafe { self.publication.discard_later(raw) };
        }
        let _ = self.with_writer(|writer| {
            // SAFETY: as above.
            unsafe { writer.discard(raw) };
            Ok(())
        });
    }

    /// A publisher for several threads, which take turns. A publisher that is not shared pays
    /// nothing for it.
    pub fn shared(self) -> SharedPublisher<T> {
        SharedPublisher::new(self)
    }

    pub(crate) fn writer_mut(&mut self) -> &mut Writer {
        &mut self.inner.get_mut().writer
    }

    pub(crate) fn handle(&self) -> &shm::EndpointHandle {
        &self.handle
    }

    /// How many subscribers of other hosts a publish does not wait for now; or the wait that it has
    /// to make.
    #[inline]
    pub(crate) fn try_make_room(&self) -> Result<u32, NetworkWait> {
        self.network_writer.as_ref().map_or(Ok(0), |network_writer| network_writer.try_make_room())
    }

    /// How many it does not wait for after a wait without success.
    pub(crate) fn late(&self) -> u32 {
        self.network_writer.as_ref().map_or(0, |network_writer| network_writer.late())
    }

    /// Allocates memory for `count` payloads of `bytes` bytes, so that the first loans need not
    /// allocate it: such a loan takes about 100 µs longer, and its subscribers take as long to map
    /// the new memory. `count` should be the number of payloads that are loaned, held and unread at
    /// once: three, if subscribers keep up and hold none. Payloads of up to 104 bytes need no
    /// memory.
    ///
    /// # Errors
    /// As for a loan of that size; memory made by then stays.
    pub fn reserve(&self, count: u32, bytes: usize) -> Result<(), Error> {
        self.with_writer(|writer| writer.reserve(count, bytes as u64))
    }

    /// Whether a publish is running, which a callback runs inside: the publisher must not be
    /// dropped then.
    pub fn is_publishing(&self) -> bool {
        self.busy.get()
    }

    /// How many subscribers it is matched with now.
    pub fn matched(&self) -> usize {
        self.handle.matched()
    }

    /// Waits until it is matched with at least `subscribers`, for at most `limit`. False if the
    /// time is over.
    pub fn wait_for_match(&self, subscribers: usize, limit: Duration) -> bool {
        self.handle.wait_for_match(subscribers, limit)
    }

    /// Tells subscribers with a [`liveliness`](crate::SubscriberBuilder::liveliness) lease that
    /// this publisher is alive, without publishing. Publishing does so, too.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn assert_liveliness(&self) -> Result<(), Error> {
        self.with_writer(Writer::assert_liveliness)
    }

    /// Waits until other hosts and DDS programs have acknowledged all samples published for them,
    /// for at most `limit`; false if the time is over. It does not wait for subscribers on this
    /// host, which can take a sample as soon as it is published. Only reliable publishers and those
    /// that [`reliable_keep_last`](crate::Topic::reliable_keep_last) get acknowledgements; for others it returns
    /// true.
    pub fn wait_for_acknowledgements(&self, limit: Duration) -> bool {
        self.network_writer
            .as_ref()
            .is_none_or(|network_writer| network_writer.wait_for_acknowledgements(limit))
    }

    /// Its id in graphs and in the other side's events.
    pub fn id(&self) -> EndpointId {
        self.handle().id()
    }

    /// The events of its matches since the last call, oldest first. At most 1,024 are
    /// kept, and at most 32 until the first call; beyond that the oldest are dropped.
    pub fn events(&self) -> Vec<Event> {
        self.handle.events()
    }

    /// Calls `call` from now on whenever [`events`](Self::events) has something new, and once soon
    /// for events that exist already. A thread of the node (`myelin-events`) calls it, one such
    /// function at a time. It holds no lock of the library, so `call` may call anything of this
    /// library. The calls end with the publisher.
    ///
    /// A second call replaces the first. When it returns, or when the publisher has been dropped,
    /// the previous function is not running any more. Only inside such a function or a callback
    /// they do not wait for it. So do not hold a lock then that the function takes. A panic of the
    /// function is contained and reported once.
    ///
    /// [`trigger_on_event`](Self::trigger_on_event) wakes a wait set without this thread.
    ///
    /// # Errors
    /// [`Error::Forked`]; [`Error::System`] if no further thread can be started.
    pub fn on_event(&self, call: impl Fn() + Send + Sync + 'static) -> Result<(), Error> {
        self.handle().listen(&self.publication.topic().name, Box::new(call))
    }

    /// Triggers the guard from now on whenever [`events`](Self::events) has something new. A second
    /// call replaces the first.
    pub fn trigger_on_event(&self, guard: &GuardCondition) {
        let guard = guard.clone();
        self.handle().on_event(Box::new(move |_| guard.trigger()));
    }

    pub(crate) fn loan_bytes(&self, bytes: usize) -> Result<Loan<'_, T>, Error> {
        Loan::new(self, bytes)
    }

    #[inline(always)]
    pub(crate) fn with_writer<R>(
        &self,
        act: impl FnOnce(&mut Writer) -> Result<R, Error>,
    ) -> Result<R, Error> {
        if self.busy.replace(true) {
            return Err(Error::Reentered);
        }
        let _idle = Idle(&self.busy);
        // SAFETY: the cell makes this type `!Sync`, so no other thread is in a method of it; if this
        // thread is in this one already, `busy` is set. Nothing else borrows the writer.
        act(unsafe { &mut (*self.inner.get()).writer })
    }
}

/// Ends the use of the writer, also when a callback's panic unwinds.
struct Idle<'a>(&'a Cell<bool>);

impl Drop for Idle<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.set(false);
    }
}

/// Adds the subscribers of other hosts that were passed over.
#[inline]
fn with_late(published: Published, late: u32) -> Published {
    Published { passed_over: published.passed_over + late, ..published }
}

impl<T: PlainData> Publisher<T> {
    /// Memory for the next sample, in place. It contains zeros, or bytes of an earlier sample of
    /// this publisher. Write to it and [`publish`](Loan::publish) it. If it is dropped, it is
    /// discarded.
    ///
    /// # Errors
    /// As [`publish_copy`](Publisher::publish_copy), and [`Error::TooManyLoans`].
    ///
    /// ```
    /// # fn main() -> Result<(), myelin::Error> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let node = myelin::Node::builder("doc").runtime_dir(folder.path()).open()?;
    /// let publisher = node.topic::<[f32; 3]>("position").publisher()?;
    /// let mut loan = publisher.loan()?;
    /// *loan = [1.0, 2.0, 3.0];
    /// assert_eq!(loan.publish()?.sequence, 0);
    /// # Ok(()) }
    /// ```
    #[inline]
    pub fn loan(&self) -> Result<Loan<'_, T>, Error> {
        self.loan_bytes(size_of::<T>())
    }
}

impl<T: PlainData> Publisher<[T]> {
    /// Memory for the next sample of `len` elements, in place. It contains zeros, or bytes of an
    /// earlier sample of this publisher. Write to it and [`publish`](Loan::publish) it. If it is
    /// dropped, it is discarded.
    ///
    /// # Errors
    /// As [`publish_copy`](Publisher::publish_copy), and [`Error::TooManyLoans`].
    ///
    /// ```
    /// # fn main() -> Result<(), myelin::Error> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let node = myelin::Node::builder("doc").runtime_dir(folder.path()).open()?;
    /// let publisher = node.topic::<[u8]>("image").publisher()?;
    /// let mut next = publisher.loan(320 * 240 * 3)?;
    /// let mut after = publisher.loan(10)?; // several may be out at once
    /// next.fill(128);
    /// after.fill(0);
    /// next.publish()?;
    /// after.publish()?;
    /// # Ok(()) }
    /// ```
    #[inline]
    pub fn loan(&self, len: usize) -> Result<Loan<'_, [T]>, Error> {
        // A size too large for a number is above the limit, too.
        self.loan_bytes(len.saturating_mul(size_of::<T>()))
    }
}

impl<H: PlainData, T: PlainData> Publisher<(H, [T])> {
    /// Memory for the next sample, a header and `len` elements, in place. It contains zeros, or
    /// bytes of an earlier sample of this publisher. Write to both and [`publish`](Loan::publish)
    /// it. If it is dropped, it is discarded. See [`HeaderSlice`] for an example.
    ///
    /// # Errors
    /// As for [`publish_copy`](Publisher::publish_copy), and [`Error::TooManyLoans`].
    #[inline]
    pub fn loan(&self, len: usize) -> Result<Loan<'_, (H, [T])>, Error> {
        self.loan_bytes(HeaderSlice::<H, T>::bytes_of(len))
    }
}

impl<T: Payload + ?Sized> std::fmt::Debug for Publisher<T> {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Publisher").field("type", &T::type_name()).finish_non_exhaustive()
    }
}
