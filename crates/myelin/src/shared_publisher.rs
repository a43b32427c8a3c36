//! A publisher that several threads use.

use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use myelin_shm::node as shm;

use crate::header_slice::HeaderSlice;
use crate::loan::Memory;
use crate::payload::Payload;
use crate::plain_data::PlainData;
use crate::publisher::Publisher;
use crate::{Error, Event, Published};

/// A publisher for several threads, which take turns: made by [`Publisher::shared`]. Clones are the same
/// publisher, with one sequence of samples.
///
/// It is a [`Publisher`] behind a mutex. A call holds that as long as it takes, a publish while it runs
/// the callbacks of this process or waits for a reliable subscriber; a loan is filled without it. The
/// mutex does not know of priorities: a thread that must be in time can wait for one of low priority
/// that was preempted inside a call. Give the former a publisher of its own.
///
/// ```
/// # fn main() -> Result<(), myelin::Error> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let node = myelin::Node::builder("doc").folder(folder.path()).open()?;
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
    /// The thread that has the lock, or 0.
    owner: AtomicUsize,
    observer: shm::Observer,
}

impl<T: Payload + ?Sized> SharedPublisher<T> {
    pub(crate) fn new(publisher: Publisher<T>) -> Self {
        let observer = publisher.observer().clone();
        let (publisher, owner) = (Mutex::new(publisher), AtomicUsize::new(0));
        SharedPublisher(Arc::new(Shared { publisher, owner, observer }))
    }

    /// As [`Publisher::publish_copy`].
    ///
    /// # Errors
    /// As [`Publisher::publish_copy`].
    pub fn publish_copy(&self, payload: &T::View) -> Result<Published, Error> {
        self.with(|publisher| publisher.publish_copy(payload))
    }

    /// As [`Publisher::reserve`].
    ///
    /// # Errors
    /// As [`Publisher::reserve`].
    pub fn reserve(&self, count: u32, bytes: usize) -> Result<(), Error> {
        self.with(|publisher| publisher.reserve(count, bytes))
    }

    /// As [`Publisher::assert_liveliness`].
    ///
    /// # Errors
    /// [`Error::Forked`]; [`Error::Reentered`] from a callback inside a publish of its own.
    pub fn assert_liveliness(&self) -> Result<(), Error> {
        self.with(Publisher::assert_liveliness)
    }

    /// How many subscribers it is matched with now.
    pub fn matched(&self) -> usize {
        self.0.observer.matched()
    }

    /// As [`Publisher::wait_for_match`]. Others can publish meanwhile.
    pub fn wait_for_match(&self, subscribers: usize, limit: Duration) -> bool {
        self.0.observer.wait_for_match(subscribers, limit)
    }

    /// As [`Publisher::events`]; each event is for one of those who ask.
    pub fn events(&self) -> Vec<Event> {
        self.0.observer.events()
    }

    /// `bytes` must be a length that fits `T`.
    pub(crate) fn loan_bytes(&self, bytes: usize) -> Result<SharedLoan<T>, Error> {
        // SAFETY: the loan has a clone of `self`, which keeps the publisher.
        let memory = self.with(|publisher| unsafe { publisher.loan_memory(bytes) })?;
        Ok(SharedLoan { publisher: self.clone(), memory: ManuallyDrop::new(memory) })
    }

    fn with<R>(&self, act: impl FnOnce(&Publisher<T>) -> Result<R, Error>) -> Result<R, Error> {
        let Shared { publisher, owner, observer } = &*self.0;
        let thread = this_thread();
        // A callback inside a publish of this very publisher: it would wait for itself.
        // ORDER: Relaxed: only this thread stores its own number.
        if owner.load(Ordering::Relaxed) == thread {
            return Err(Error::Reentered);
        }
        // Another thread may have had the lock when the process forked.
        if observer.is_forked() {
            return Err(Error::Forked);
        }
        // A panic of a callback has left the publisher as it should be (`Publisher::with_writer`).
        let publisher = publisher.lock().unwrap_or_else(PoisonError::into_inner);
        owner.store(thread, Ordering::Relaxed);
        let _owned = Owned(owner);
        act(&publisher)
    }
}

/// Ends the ownership before the lock is let go, also when a panic goes through.
struct Owned<'a>(&'a AtomicUsize);

impl Drop for Owned<'_> {
    fn drop(&mut self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

/// A number that no other thread has at the same time; not 0.
fn this_thread() -> usize {
    thread_local!(static HERE: u8 = const { 0 });
    HERE.with(|here| std::ptr::from_ref(here).addr())
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

/// As [`Loan`](crate::Loan), of a [`SharedPublisher`]: it can be sent to another thread, and filled
/// while others publish. It keeps the publisher.
pub struct SharedLoan<T: Payload + ?Sized> {
    publisher: SharedPublisher<T>,
    memory: ManuallyDrop<Memory>,
}

impl<T: Payload + ?Sized> SharedLoan<T> {
    /// Publishes it.
    ///
    /// # Errors
    /// As [`Loan::publish`](crate::Loan::publish).
    pub fn publish(self) -> Result<Published, Error> {
        let mut loan = ManuallyDrop::new(self);
        // SAFETY: `loan` is not dropped, so this is the only time; and the publisher is dropped below.
        let (memory, publisher) = unsafe {
            (ManuallyDrop::take(&mut loan.memory), std::ptr::read(&raw const loan.publisher))
        };
        publisher.with(|publisher| publisher.publish_memory(memory))
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
        // SAFETY: `publish` does not drop the loan it takes from, so this is the only time.
        let memory = unsafe { ManuallyDrop::take(&mut self.memory) };
        let _ = self.publisher.with(|publisher| {
            publisher.discard(memory);
            Ok(())
        });
    }
}

impl<T: Payload<View: fmt::Debug> + ?Sized> fmt::Debug for SharedLoan<T> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_tuple("SharedLoan").field(&&**self).finish()
    }
}

impl<T: PlainData> SharedPublisher<T> {
    /// As [`Publisher<T>::loan`](Publisher#method.loan).
    ///
    /// # Errors
    /// As [`publish_copy`](SharedPublisher::publish_copy), and [`Error::TooManyLoans`].
    pub fn loan(&self) -> Result<SharedLoan<T>, Error> {
        self.loan_bytes(size_of::<T>())
    }
}

impl<T: PlainData> SharedPublisher<[T]> {
    /// As [`Publisher<[T]>::loan`](Publisher#method.loan-1).
    ///
    /// # Errors
    /// As [`publish_copy`](SharedPublisher::publish_copy), and [`Error::TooManyLoans`].
    pub fn loan(&self, len: usize) -> Result<SharedLoan<[T]>, Error> {
        self.loan_bytes(len.saturating_mul(size_of::<T>()))
    }
}

impl<H: PlainData, T: PlainData> SharedPublisher<(H, [T])> {
    /// As [`Publisher<(H, [T])>::loan`](Publisher#method.loan-2).
    ///
    /// # Errors
    /// As [`publish_copy`](SharedPublisher::publish_copy), and [`Error::TooManyLoans`].
    pub fn loan(&self, len: usize) -> Result<SharedLoan<(H, [T])>, Error> {
        self.loan_bytes(HeaderSlice::<H, T>::bytes_of(len))
    }
}
