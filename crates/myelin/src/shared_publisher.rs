//! A publisher for several threads.

use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use myelin_shm::data_plane::publication::PublicationState;
use myelin_shm::node as shm;
use myelin_shm::waiting::cancel;

use crate::header_slice::HeaderSlice;
use crate::loan::Memory;
use crate::payload::Payload;
use crate::plain_data::PlainData;
use crate::publisher::Publisher;
use crate::{Error, Event, Published};

/// A publisher for several threads, which take turns. Made by [`Publisher::shared`]. Clones are the
/// same publisher, with one sequence of samples.
///
/// It is a [`Publisher`] behind a mutex. A publish holds the mutex while it writes the sample. It
/// holds no lock while it runs the callbacks of this process or waits for a reliable subscriber,
/// and a loan is filled without the mutex. So a callback may use the publisher that runs it: its
/// samples are delivered after the call. If another thread is running a callback, the publish does
/// not wait for that call; the callback's own thread delivers the sample.
///
/// The mutex ignores priorities: a thread with a deadline may wait for a low-priority thread that
/// was preempted inside a call. Give the thread with the deadline a publisher of its own.
///
/// ```
/// # fn main() -> Result<(), myelin::Error> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let node = myelin::Node::builder("doc").runtime_dir(folder.path()).open()?;
/// let log = node.topic::<[u8]>("log").publisher()?.shared();
/// std::thread::scope(|scope| {
///     for worker in 0..4 {
///         let log = log.clone();
///         scope.spawn(move || log.publish_copy(format!("worker {worker} begins").as_bytes()));
///     }
/// });
/// # Ok(()) }
/// ```
pub struct SharedPublisher<T: Payload + ?Sized>(Arc<Shared<T>>);

struct Shared<T: Payload + ?Sized> {
    publisher: Mutex<Publisher<T>>,
    /// The turn of the thread that waits for a reliable subscriber; taken before `publisher`.
    turn: Turn,
    publication: Arc<PublicationState>,
    handle: shm::EndpointHandle,
}

impl<T: Payload + ?Sized> SharedPublisher<T> {
    pub(crate) fn new(mut publisher: Publisher<T>) -> Self {
        let handle = publisher.handle().clone();
        let writer = publisher.writer_mut();
        writer.defer_callbacks();
        let publication = writer.shared().clone();
        let (publisher, turn) = (Mutex::new(publisher), Turn::default());
        SharedPublisher(Arc::new(Shared { publisher, turn, publication, handle }))
    }

    /// Like [`Publisher::publish_copy`].
    ///
    /// # Errors
    /// As for [`Publisher::publish_copy`].
    pub fn publish_copy(&self, payload: &T::View) -> Result<Published, Error> {
        let (publisher, late) = self.lock_with_room()?;
        publish(publisher, Some(T::as_bytes(payload)), |publisher| {
            publisher.publish_copy_by(payload, |_| Ok(late))
        })
    }

    /// Like [`Publisher::reserve`].
    ///
    /// # Errors
    /// As for [`Publisher::reserve`].
    pub fn reserve(&self, count: u32, bytes: usize) -> Result<(), Error> {
        self.lock()?.reserve(count, bytes)
    }

    /// Like [`Publisher::assert_liveliness`].
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn assert_liveliness(&self) -> Result<(), Error> {
        self.lock()?.assert_liveliness()
    }

    /// How many subscribers it is matched with now.
    pub fn matched(&self) -> usize {
        self.0.handle.matched()
    }

    /// Like [`Publisher::wait_for_match`]. Other threads can publish meanwhile.
    pub fn wait_for_match(&self, subscribers: usize, limit: Duration) -> bool {
        self.0.handle.wait_for_match(subscribers, limit)
    }

    /// Like [`Publisher::events`]; one of the callers gets each event.
    pub fn events(&self) -> Vec<Event> {
        self.0.handle.events()
    }

    /// `bytes` must be a length that fits `T`.
    pub(crate) fn loan_bytes(&self, bytes: usize) -> Result<SharedLoan<T>, Error> {
        // SAFETY: the loan has a clone of `self`, which keeps the publisher.
        let memory = unsafe { self.lock()?.loan_memory(bytes) }?;
        Ok(SharedLoan { publisher: self.clone(), memory: ManuallyDrop::new(memory) })
    }

    fn discard(&self, memory: Memory) {
        // In a child of `fork` the loan is not given back.
        if let Ok(publisher) = self.lock() {
            publisher.discard(memory);
        }
    }

    fn lock(&self) -> Result<MutexGuard<'_, Publisher<T>>, Error> {
        // Another thread may have had the lock when the process forked.
        if self.0.handle.is_forked() {
            return Err(Error::Forked);
        }
        Ok(self.0.publisher.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Locks the publisher, once a publish need not wait for a subscriber; and returns how many
    /// subscribers of other hosts it does not wait for.
    fn lock_with_room(&self) -> Result<WithRoom<'_, T>, Error> {
        let mut publisher = self.lock()?;
        if !publisher.writer_mut().is_full()
            && let Ok(late) = publisher.try_make_room()
        {
            return Ok((publisher, late));
        }
        drop(publisher);
        self.wait_for_room()
    }

    #[cold]
    fn wait_for_room(&self) -> Result<WithRoom<'_, T>, Error> {
        let (begin, until_ns) = (Instant::now(), self.0.publication.wait_limit_ns());
        let Some(_turn) = self.0.turn.take() else { return Err(self.timed_out(begin.elapsed())) };
        let mut goes_on = false;
        loop {
            let mut publisher = self.lock()?;
            if let Some(wait) = publisher.writer_mut().begin_wait() {
                drop(publisher);
                let slept = wait.sleep(until_ns);
                self.lock()?.writer_mut().end_wait(wait, slept)?;
                continue;
            }
            match publisher.try_make_room() {
                Ok(late) => return Ok((publisher, late)),
                Err(_) if goes_on => {
                    let late = publisher.late();
                    return Ok((publisher, late));
                }
                Err(wait) => {
                    drop(publisher);
                    goes_on = !wait.wait(begin)?;
                }
            }
        }
    }

    /// Another thread knows the subscriber that it waits for.
    fn timed_out(&self, waited: Duration) -> Error {
        let topic = self.0.publication.topic().name.clone();
        Error::ReliableTimeout { topic, subscriber: 0, pid: 0, waited }
    }
}

/// The publisher, and how many subscribers of other hosts are not waited for.
type WithRoom<'a, T> = (MutexGuard<'a, Publisher<T>>, u32);

/// The right of one thread at a time. A thread that waits for it stops when its wait [is
/// cancelled](cancel).
#[derive(Debug, Default)]
struct Turn {
    is_taken: Mutex<bool>,
    is_free: Condvar,
}

/// Gives the turn back.
struct TurnGuard<'a>(&'a Turn);

impl Turn {
    /// `None` if this thread's wait is cancelled.
    fn take(&self) -> Option<TurnGuard<'_>> {
        let mut is_taken = self.lock();
        while *is_taken {
            let slice = cancel::slice(Duration::MAX);
            is_taken = match slice {
                Duration::MAX => {
                    self.is_free.wait(is_taken).unwrap_or_else(PoisonError::into_inner)
                }
                slice => {
                    let woken = self.is_free.wait_timeout(is_taken, slice);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
            };
            if *is_taken {
                drop(is_taken); // a check may run signal handlers
                if cancel::is_cancelled() {
                    return None;
                }
                is_taken = self.lock();
            }
        }
        *is_taken = true;
        Some(TurnGuard(self))
    }

    fn lock(&self) -> MutexGuard<'_, bool> {
        self.is_taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for TurnGuard<'_> {
    fn drop(&mut self) {
        *self.0.lock() = false;
        self.0.is_free.notify_one();
    }
}

/// Publishes, releases the lock, and runs the callbacks of this process. `copied`: the payload,
/// unless it is a loan.
fn publish<T: Payload + ?Sized>(
    mut publisher: MutexGuard<'_, Publisher<T>>,
    copied: Option<&[u8]>,
    act: impl FnOnce(&Publisher<T>) -> Result<Published, Error>,
) -> Result<Published, Error> {
    let published = act(&publisher);
    let dispatch = publisher.writer_mut().take_dispatch();
    drop(publisher);
    if let Some(dispatch) = dispatch {
        dispatch.run(copied);
    }
    published
}

impl<T: Payload + ?Sized> Clone for SharedPublisher<T> {
    fn clone(&self) -> Self {
        SharedPublisher(self.0.clone())
    }
}

impl<T: Payload + ?Sized> fmt::Debug for SharedPublisher<T> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("SharedPublisher").field("type", &T::type_name()).finish_non_exhaustive()
    }
}

/// Like [`Loan`](crate::Loan), for a [`SharedPublisher`]: it can be sent to another thread, and
/// filled while other threads publish. It keeps the publisher alive.
pub struct SharedLoan<T: Payload + ?Sized> {
    publisher: SharedPublisher<T>,
    memory: ManuallyDrop<Memory>,
}

impl<T: Payload + ?Sized> SharedLoan<T> {
    /// Publishes it.
    ///
    /// # Errors
    /// As for [`Loan::publish`](crate::Loan::publish).
    pub fn publish(self) -> Result<Published, Error> {
        let loan = ManuallyDrop::new(self);
        // SAFETY: `loan` is not dropped, so this is the only take of both.
        let (memory, publisher) = unsafe {
            (std::ptr::read(&raw const loan.memory), std::ptr::read(&raw const loan.publisher))
        };
        let memory = ManuallyDrop::into_inner(memory);
        match publisher.lock_with_room() {
            Ok((locked, late)) => {
                publish(locked, None, |publisher| publisher.publish_memory_by(memory, |_| Ok(late)))
            }
            Err(error) => {
                publisher.discard(memory);
                Err(error)
            }
        }
    }

    /// The payload's bytes, aligned to 64.
    pub fn as_bytes_mut(&mut self) -> &mut [u8] {
        self.memory.bytes_mut()
    }

    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }

    pub(crate) fn memory_mut(&mut self) -> &mut Memory {
        &mut self.memory
    }
}

impl<T: Payload + ?Sized> Deref for SharedLoan<T> {
    type Target = T::View;

    fn deref(&self) -> &T::View {
        self.memory.view::<T>(0)
    }
}

impl<T: Payload + ?Sized> DerefMut for SharedLoan<T> {
    fn deref_mut(&mut self) -> &mut T::View {
        self.memory.view_mut::<T>(0)
    }
}

impl<T: Payload + ?Sized> Drop for SharedLoan<T> {
    fn drop(&mut self) {
        // SAFETY: `publish` does not drop the loan it takes from, so this is the only take.
        let memory = unsafe { ManuallyDrop::take(&mut self.memory) };
        self.publisher.discard(memory);
    }
}

impl<T: Payload<View: fmt::Debug> + ?Sized> fmt::Debug for SharedLoan<T> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_tuple("SharedLoan").field(&&**self).finish()
    }
}

impl<T: PlainData> SharedPublisher<T> {
    /// Like [`Publisher<T>::loan`](Publisher#method.loan).
    ///
    /// # Errors
    /// As for [`publish_copy`](SharedPublisher::publish_copy), and [`Error::TooManyLoans`].
    pub fn loan(&self) -> Result<SharedLoan<T>, Error> {
        self.loan_bytes(size_of::<T>())
    }
}

impl<T: PlainData> SharedPublisher<[T]> {
    /// Like [`Publisher<[T]>::loan`](Publisher#method.loan-1).
    ///
    /// # Errors
    /// As for [`publish_copy`](SharedPublisher::publish_copy), and [`Error::TooManyLoans`].
    pub fn loan(&self, len: usize) -> Result<SharedLoan<[T]>, Error> {
        self.loan_bytes(len.saturating_mul(size_of::<T>()))
    }
}

impl<H: PlainData, T: PlainData> SharedPublisher<(H, [T])> {
    /// Like [`Publisher<(H, [T])>::loan`](Publisher#method.loan-2).
    ///
    /// # Errors
    /// As for [`publish_copy`](SharedPublisher::publish_copy), and [`Error::TooManyLoans`].
    pub fn loan(&self, len: usize) -> Result<SharedLoan<(H, [T])>, Error> {
        self.loan_bytes(HeaderSlice::<H, T>::bytes_of(len))
    }
}
