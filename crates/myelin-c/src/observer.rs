//! Observers: for tools that look at a topic without being known to its publishers.

use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::ptr::null;

use myelin::{Interrupter, Missing, ObservedHeader, ObservedPublisher, ObservedSample, Observer};

use crate::error::{Failure, MYELIN_NOTHING, MYELIN_OK, enter, myelin_code};
use crate::sized::{self, sized};
use crate::topic::{TopicHandle, myelin_topic};
use crate::{handle, text};

/// Looks at the samples of a topic on this host, while its publishers do nothing for it. One thread
/// at a time uses it; any thread may interrupt it.
pub enum myelin_observer {}

pub struct ObserverHandle {
    inner: UnsafeCell<Inner>,
    interrupter: Interrupter,
}

struct Inner {
    observer: Observer<[u8]>,
    /// The publishers that the program reads.
    publishers: Vec<ObservedPublisher>,
    /// The payload that the program looks at.
    sample: ObservedSample<[u8]>,
}

/// Why a sample has no payload.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum myelin_missing {
    /// There is one, or only the header was taken.
    MYELIN_MISSING_NOTHING = 0,
    /// Its publisher used the memory for another sample before the payload was copied.
    MYELIN_MISSING_REUSED = 1,
    /// Its memory could not be mapped.
    MYELIN_MISSING_UNMAPPED = 2,
}

/// A sample as an observer has seen it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct myelin_observed {
    /// sizeof(struct myelin_observed): MYELIN_INIT(myelin_observed).
    pub size: usize,
    /// Its publisher's endpoint id, as in graphs.
    pub publisher: u64,
    /// How many samples its publisher published before it.
    pub sequence: u64,
    /// When it was published, by `myelin_now`; 0 if its publisher adds no timestamps.
    pub published_ns: u64,
    /// How many bytes the payload has, also if it is missing.
    pub length: u64,
    /// How many samples of the same publisher, between the previous one and this one, were
    /// overwritten before the observer looked.
    pub overwritten_before: u64,
    /// A copy of the payload, aligned as in `myelin_sample.data`; valid until the next take of this
    /// observer, or its close. NULL if it is missing, or only the header was taken.
    pub data: *const c_void,
    /// Bytes of `data`; 0 if it is NULL.
    pub bytes: usize,
    /// `enum myelin_missing`: why there is no payload.
    pub missing: i32,
}

/// A publisher of an observer, and what was seen of it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct myelin_observed_publisher {
    /// sizeof(struct myelin_observed_publisher): MYELIN_INIT(myelin_observed_publisher).
    pub size: usize,
    /// Its endpoint id, as in graphs.
    pub publisher: u64,
    /// The first sample that counts: 0 if the publisher came after the observer.
    pub first: u64,
    /// Samples that it has published: `first`, `seen`, `overwritten`, and those to be taken.
    pub published: u64,
    /// Samples that were given, with or without payload.
    pub seen: u64,
    /// Samples that were overwritten before the observer looked.
    pub overwritten: u64,
    /// Samples, among those seen, whose payload was gone.
    pub without_payload: u64,
    /// Whether it has left or died, and everything is read.
    pub has_gone: bool,
}

sized! {
    myelin_observed up to missing: i32;
    myelin_observed_publisher up to has_gone: bool;
}

impl ObserverHandle {
    /// # Safety
    /// One thread at a time uses it, and no reference of an earlier call is left.
    #[allow(clippy::mut_from_ref, reason = "the caller sees to it")]
    unsafe fn inner(&self) -> &mut Inner {
        // SAFETY: as the caller promises.
        unsafe { &mut *self.inner.get() }
    }

    /// Takes a sample with its payload.
    ///
    /// # Safety
    /// As [`inner`](Self::inner); `to` has been checked.
    unsafe fn give(&self, to: *mut myelin_observed) -> Result<myelin_code, Failure> {
        // SAFETY: as the caller promises, here and below.
        let Inner { observer, sample, .. } = unsafe { self.inner() };
        if !observer.take_into(sample)? {
            return Ok(MYELIN_NOTHING);
        }
        let missing = match sample.missing() {
            None => myelin_missing::MYELIN_MISSING_NOTHING,
            Some(Missing::Reused) => myelin_missing::MYELIN_MISSING_REUSED,
            Some(_) => myelin_missing::MYELIN_MISSING_UNMAPPED,
        };
        let mut seen = observed(sample.header());
        seen.missing = missing as i32;
        if let Some(bytes) = sample.as_bytes() {
            (seen.data, seen.bytes) = (bytes.as_ptr().cast(), bytes.len());
        }
        // SAFETY: as the caller promises.
        unsafe { sized::fill(to, seen) };
        Ok(MYELIN_OK)
    }
}

fn observed(header: &ObservedHeader) -> myelin_observed {
    myelin_observed {
        size: size_of::<myelin_observed>(),
        publisher: header.publisher,
        sequence: header.sequence,
        published_ns: header.published_ns,
        length: header.length,
        overwritten_before: header.overwritten_before,
        data: null(),
        bytes: 0,
        missing: myelin_missing::MYELIN_MISSING_NOTHING as i32,
    }
}

/// Makes an observer of a topic: it looks at the samples of the publishers on this host without
/// being known to them, for tools. A publisher does not count it as matched, does not wait for it or
/// wake it, and keeps no memory for it. Of the topic's settings only `history` has an effect.
///
/// # Safety
/// Pointers are NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_observer_open(
    topic: *mut myelin_topic,
    observer: *mut *mut myelin_observer,
) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        text::put(observer, std::ptr::null_mut(), "observer")?;
        let made = handle::get::<TopicHandle>(handle::of_pointer(topic))?.topic.observer()?;
        let interrupter = made.interrupter();
        let sample = ObservedSample::new();
        let inner = Inner { observer: made, publishers: Vec::new(), sample };
        let made = ObserverHandle { inner: UnsafeCell::new(inner), interrupter };
        observer.write(handle::to_pointer(handle::insert(Box::new(made))?));
        Ok(MYELIN_OK)
    })
}

/// Closes it.
///
/// # Safety
/// No other thread uses the handle meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_observer_close(observer: *mut myelin_observer) -> myelin_code {
    // SAFETY: as the caller promises.
    enter(|| unsafe {
        drop(handle::remove::<ObserverHandle>(handle::of_pointer(observer))?);
        Ok(MYELIN_OK)
    })
}

/// The next sample, if there is one; never waits. MYELIN_NOTHING if there is none. Samples of one
/// publisher come in order.
///
/// # Safety
/// Pointers are NULL or valid; one thread at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_observer_take(
    observer: *mut myelin_observer,
    sample: *mut myelin_observed,
) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        let observer = of(observer)?;
        sized::check(sample)?;
        observer.give(sample)
    })
}

/// The header of the next sample, if there is one, without looking at its payload. The sample is
/// then taken.
///
/// # Safety
/// As `myelin_observer_take`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_observer_take_header(
    observer: *mut myelin_observer,
    header: *mut myelin_observed,
) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        let observer = of(observer)?;
        sized::check(header)?;
        let Some(seen) = observer.inner().observer.take_header()? else {
            return Ok(MYELIN_NOTHING);
        };
        sized::fill(header, observed(&seen));
        Ok(MYELIN_OK)
    })
}

/// Waits until there is a sample to take, for at most `limit_ns` (MYELIN_FOREVER: no limit): looks
/// at intervals of 1 to 100 ms, by depth and rate of the publishers. MYELIN_NOTHING if the time is
/// over, or if the wait was interrupted.
///
/// # Safety
/// As `myelin_observer_take`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_observer_wait(
    observer: *mut myelin_observer,
    limit_ns: u64,
) -> myelin_code {
    // SAFETY: as the caller promises.
    enter(|| unsafe {
        let is_there = of(observer)?.inner().observer.wait(text::duration(limit_ns))?;
        Ok(if is_there { MYELIN_OK } else { MYELIN_NOTHING })
    })
}

/// Ends the running wait, or else the next one. Any thread, and a signal handler.
///
/// # Safety
/// No other thread closes it meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_observer_interrupt(observer: *mut myelin_observer) -> myelin_code {
    // SAFETY: as the caller promises.
    enter(|| unsafe {
        of(observer)?.interrupter.interrupt();
        Ok(MYELIN_OK)
    })
}

/// How long to wait before the next look, in ns, for a loop of your own.
///
/// # Safety
/// As `myelin_observer_take`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_observer_interval(
    observer: *mut myelin_observer,
    interval_ns: *mut u64,
) -> myelin_code {
    // SAFETY: as the caller promises.
    enter(|| unsafe {
        let interval = of(observer)?.inner().observer.interval();
        text::put(interval_ns, interval.as_nanos() as u64, "interval_ns")?;
        Ok(MYELIN_OK)
    })
}

/// One of its publishers, by an index from 0 on; MYELIN_NOTHING behind the last one. Index 0 looks,
/// and the other indices belong to the same look. Publishers that have gone since the look before
/// are listed once more.
///
/// # Safety
/// As `myelin_observer_take`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_observer_publisher(
    observer: *mut myelin_observer,
    index: usize,
    publisher: *mut myelin_observed_publisher,
) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        let inner = of(observer)?.inner();
        sized::check(publisher)?;
        if index == 0 {
            inner.publishers = inner.observer.publishers();
        }
        let Some(it) = inner.publishers.get(index) else { return Ok(MYELIN_NOTHING) };
        let seen = myelin_observed_publisher {
            size: size_of::<myelin_observed_publisher>(),
            publisher: it.publisher,
            first: it.first,
            published: it.published,
            seen: it.seen,
            overwritten: it.overwritten,
            without_payload: it.without_payload,
            has_gone: it.has_gone,
        };
        sized::fill(publisher, seen);
        Ok(MYELIN_OK)
    })
}

/// # Safety
/// As [`handle::get`].
unsafe fn of<'a>(observer: *mut myelin_observer) -> Result<&'a ObserverHandle, Failure> {
    // SAFETY: as the caller promises.
    unsafe { handle::get::<ObserverHandle>(handle::of_pointer(observer)) }
}
