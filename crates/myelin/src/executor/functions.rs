//! The functions that an executor calls.

use std::thread::ThreadId;

use crate::Error;
use crate::payload::Payload;
use crate::sample::{Sample, SampleBuffer};
use crate::subscriber::Subscriber;
use crate::wait_set::{Key, KeyMap};

/// A function with its source of calls.
pub(super) trait Callee: Send {
    /// Calls it, if there is something to do. True: there was a sample, and there may be more.
    fn call(&mut self) -> Result<bool, Error>;

    /// Since when the next sample has been there, by the monotonic clock in ns. The next call is
    /// with that sample.
    fn since_ns(&mut self) -> Option<u64>;
}

/// A function that is called with samples.
pub(super) struct OnSample<T: Payload + ?Sized, F> {
    subscriber: Subscriber<T>,
    /// Keeps the sample in place: moving it costs as much as a take.
    buffer: SampleBuffer<T>,
    call: F,
}

impl<T: Payload + ?Sized, F: FnMut(&Sample<T>)> OnSample<T, F> {
    pub(super) fn new(subscriber: Subscriber<T>, call: F) -> Self {
        OnSample { subscriber, buffer: SampleBuffer::new(), call }
    }
}

impl<T: Payload + ?Sized, F: FnMut(&Sample<T>) + Send> Callee for OnSample<T, F> {
    fn call(&mut self) -> Result<bool, Error> {
        let taken = Lent(&mut self.buffer);
        let sample = self.subscriber.take_into(taken.0)?;
        if let Some(sample) = sample {
            (self.call)(sample);
        }
        Ok(sample.is_some())
    }

    fn since_ns(&mut self) -> Option<u64> {
        self.subscriber.turn_to_oldest()
    }
}

/// Releases the sample after the call, also after a panic.
struct Lent<'a, T: Payload + ?Sized>(&'a mut SampleBuffer<T>);

impl<T: Payload + ?Sized> Drop for Lent<'_, T> {
    fn drop(&mut self) {
        self.0.clear();
    }
}

/// A function that is called at intervals.
pub(super) struct OnTimer<F>(pub(super) F);

impl<F: FnMut() + Send> Callee for OnTimer<F> {
    fn call(&mut self) -> Result<bool, Error> {
        (self.0)();
        Ok(false)
    }

    fn since_ns(&mut self) -> Option<u64> {
        None
    }
}

#[derive(Default)]
pub(super) struct Functions {
    /// With gaps. A function that is removed during its call stays until the call ends.
    pub(super) all: Vec<Option<Function>>,
    /// The places of the functions that have not been removed.
    places: KeyMap<usize>,
}

pub(super) struct Function {
    pub(super) key: Key,
    /// `None` while it is being called.
    pub(super) callee: Option<Box<dyn Callee>>,
    pub(super) is_timer: bool,
    pub(super) is_removed: bool,
    /// The thread that calls it.
    pub(super) thread: Option<ThreadId>,
    /// The function that this call removes and whose end it waits for.
    pub(super) removes: Option<Key>,
}

impl Functions {
    pub(super) fn insert(&mut self, key: Key, callee: Box<dyn Callee>, is_timer: bool) {
        let (callee, is_removed) = (Some(callee), false);
        let new = Function { key, callee, is_timer, is_removed, thread: None, removes: None };
        let place = self.all.iter().position(Option::is_none).unwrap_or(self.all.len());
        match self.all.get_mut(place) {
            Some(gap) => *gap = Some(new),
            None => self.all.push(Some(new)),
        }
        self.places.insert(key, place);
    }

    pub(super) fn place(&self, key: Key) -> Option<usize> {
        self.places.get(&key).copied()
    }

    /// The function of a job, unless it has been removed.
    #[inline]
    pub(super) fn at(&mut self, place: usize, key: Key) -> Option<&mut Function> {
        let its = self.all.get_mut(place)?.as_mut();
        its.filter(|its| its.key == key && !its.is_removed)
    }

    /// `None`: it is not there. A function that is being called is dropped at the end of that call.
    #[expect(clippy::option_option, reason = "existence and idleness are two questions")]
    pub(super) fn remove(&mut self, key: Key) -> Option<Option<Function>> {
        let place = self.places.remove(&key)?;
        let function = self.all[place].as_mut()?;
        function.is_removed = true;
        Some(if function.callee.is_some() { self.all[place].take() } else { None })
    }

    /// The functions that are not being called.
    pub(super) fn remove_all(&mut self) -> Vec<Function> {
        let keys: Vec<Key> = self.places.keys().copied().collect();
        keys.into_iter().filter_map(|key| self.remove(key).flatten()).collect()
    }

    pub(super) fn called(&self, mut is_it: impl FnMut(&Function) -> bool) -> Option<usize> {
        let is_it = |its: &Option<Function>| {
            its.as_ref().is_some_and(|its| its.thread.is_some() && is_it(its))
        };
        self.all.iter().position(is_it)
    }

    pub(super) fn called_by(&self, thread: ThreadId) -> Option<usize> {
        self.called(|its| its.thread == Some(thread))
    }

    /// Whether the call of `key` waits for the end of the call of `other`.
    pub(super) fn waits_for(&self, key: Key, other: Key) -> bool {
        let mut at = Some(key);
        while let Some(key) = at {
            let place = self.called(|its| its.key == key);
            at = place.and_then(|place| self.all[place].as_ref()?.removes);
            if at == Some(other) {
                return true;
            }
        }
        false
    }
}
