//! The table of all handles. A handle is no address: it is a place in this table and the number of the
//! place's use, so one that was closed is known as such, also when the place is used again.

use std::cell::{RefCell, UnsafeCell};
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use myelin::{Callback, Error, Guard, Node, Reply, SampleBuffer};

use crate::client::ClientHandle;
use crate::error::Failure;
use crate::graph::GraphHandle;
use crate::publisher::PublisherHandle;
use crate::server::{RequestHandle, ServerHandle};
use crate::subscriber::SubscriberHandle;
use crate::topic::TopicHandle;
use crate::wait_set::WaitSetHandle;

macro_rules! kinds {
    ($($kind:ident: $object:ty, $noun:literal;)*) => {
        /// What a place of the table holds.
        pub enum Object {
            Nothing,
            $($kind($object),)*
        }

        $(impl Kind for $object {
            const NOUN: &'static str = $noun;

            fn wrap(self) -> Object {
                Object::$kind(self)
            }

            fn find(object: &Object) -> Option<&Self> {
                if let Object::$kind(it) = object { Some(it) } else { None }
            }

            fn unwrap(object: Object) -> Option<Self> {
                if let Object::$kind(it) = object { Some(it) } else { None }
            }
        })*
    };
}

kinds! {
    Node: Node, "node";
    Topic: Box<TopicHandle>, "topic";
    Publisher: Box<PublisherHandle>, "publisher";
    Subscriber: Box<SubscriberHandle>, "subscriber";
    Sample: SampleBuffer<[u8]>, "sample";
    Callback: Box<Callback>, "callback";
    WaitSet: Box<WaitSetHandle>, "wait set";
    Guard: Guard, "guard";
    Client: Box<ClientHandle>, "client";
    Server: Box<ServerHandle>, "server";
    Request: Box<RequestHandle>, "request";
    Reply: Reply<[u8]>, "reply";
    Graph: Box<GraphHandle>, "graph";
}

/// What can be in the table.
pub trait Kind: Sized {
    /// For messages.
    const NOUN: &'static str;
    fn wrap(self) -> Object;
    fn find(object: &Object) -> Option<&Self>;
    fn unwrap(object: Object) -> Option<Self>;
}

/// A place, and what it holds while it is in use. One that is free may hold an empty sample, so that the
/// next sample need not make one.
struct Place {
    /// How often it was taken or freed, so odd while it is in use; [`OWNED`] and [`CLOSING`] above.
    uses: AtomicU64,
    object: UnsafeCell<Object>,
}

// SAFETY: a place's object is made and dropped by whoever takes or frees the place, which one thread
// does; between, it is only shared. What is not `Sync` in it the header gives to one thread at a time.
unsafe impl Sync for Place {}

impl Place {
    /// Its `uses` if it is free.
    #[inline(always)]
    fn free(&self) -> Option<u64> {
        // ORDER: Acquire pairs with the release in `end`: what was there is gone.
        Some(self.uses.load(Ordering::Acquire)).filter(|uses| uses & (1 | CLOSING) == 0)
    }
}

/// As a pointer of the header's.
pub fn to_pointer<P>(handle: u64) -> *mut P {
    std::ptr::without_provenance_mut(handle as usize)
}

/// Of a pointer of the header's.
pub fn of_pointer<P>(pointer: *const P) -> u64 {
    pointer.addr() as u64
}

/// Puts an object into the table; what the program gets.
///
/// # Errors
/// [`Error::TooMany`].
pub fn insert<T: Kind>(object: T) -> Result<u64, Failure> {
    let mut reserved = reserve()?;
    reserved.put(object);
    Ok(reserved.keep())
}

/// A place of the table that is free and this thread's.
///
/// # Errors
/// [`Error::TooMany`].
#[inline]
pub fn reserve() -> Result<Reserved, Failure> {
    let index = free_place()?;
    let place = place(index).expect("it was free");
    // Relaxed: who had the place before has given it back to this thread, or by way of a lock.
    let uses = place.uses.load(Ordering::Relaxed);
    Ok(Reserved { place, index, uses })
}

/// See [`reserve`] and [`OwnPlaces`]; dropped, it is free again, and what was put there is dropped.
pub struct Reserved {
    place: &'static Place,
    index: u32,
    /// Of the place while it is free.
    uses: u64,
}

impl Reserved {
    /// Puts an object there.
    fn put<T: Kind>(&mut self, object: T) {
        // SAFETY: the place is free and this thread's; what was put there before is dropped.
        unsafe { *self.place.object.get() = object.wrap() };
    }

    /// An empty sample there, to be taken into.
    #[inline(always)]
    pub fn sample(&mut self) -> &mut SampleBuffer<[u8]> {
        // SAFETY: the place is free and this thread's, and `self` is borrowed for as long.
        let object = unsafe { &mut *self.place.object.get() };
        if !matches!(object, Object::Sample(_)) {
            *object = Object::Sample(SampleBuffer::new());
        }
        let Object::Sample(sample) = object else { unreachable!("it was put there") };
        sample
    }

    /// The handle that it will have.
    #[inline(always)]
    pub fn handle(&self) -> u64 {
        next(self.uses) << PLACE_BITS | u64::from(self.index + 1)
    }

    /// From now on the handle is valid.
    #[inline(always)]
    pub fn keep(self) -> u64 {
        let handle = self.handle();
        // ORDER: Release pairs with the acquire in `look_up`: the object is there. No other thread writes
        // to a place that is reserved.
        self.place.uses.store(next(self.uses), Ordering::Release);
        std::mem::forget(self);
        handle
    }
}

impl Drop for Reserved {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: as in `put`.
        let object = unsafe { &mut *self.place.object.get() };
        match object {
            Object::Sample(sample) => sample.clear(),
            other => *other = Object::Nothing,
        }
        if self.uses & OWNED == 0 {
            give_back(self.index);
        }
    }
}

/// Places of one subscriber, in which its samples lie in turns: as long as a program that takes the next
/// sample still has one of it at most, no list of free places is asked. For one thread at a time.
#[derive(Default)]
pub struct OwnPlaces([Option<(u32, &'static Place)>; 2]);

impl OwnPlaces {
    /// One of them if it is free, or any other that is.
    ///
    /// # Errors
    /// [`Error::TooMany`].
    #[inline(always)]
    pub fn reserve(&mut self) -> Result<Reserved, Failure> {
        for own in &mut self.0 {
            let Some((index, place)) = *own else { return take_over(own) };
            if let Some(uses) = place.free() {
                return Ok(Reserved { place, index, uses });
            }
        }
        reserve()
    }
}

#[cold]
fn take_over(own: &mut Option<(u32, &'static Place)>) -> Result<Reserved, Failure> {
    let mut reserved = reserve()?;
    reserved.uses |= OWNED;
    reserved.place.uses.store(reserved.uses, Ordering::Relaxed);
    *own = Some((reserved.index, reserved.place));
    Ok(reserved)
}

impl Drop for OwnPlaces {
    fn drop(&mut self) {
        for (index, place) in self.0.iter().flatten() {
            match place.free() {
                Some(uses) => {
                    place.uses.store(uses & !OWNED, Ordering::Relaxed);
                    give_back(*index);
                }
                None => shared().orphans.push(*index),
            }
        }
    }
}

/// The object of a handle.
///
/// # Safety
/// What the header demands: no other thread closes it meanwhile.
///
/// # Errors
/// That it is none, closed, or of another kind.
#[inline]
pub unsafe fn get<'a, T: Kind>(handle: u64) -> Result<&'a T, Failure> {
    let place = look_up::<T>(handle)?;
    // SAFETY: the place is in use, and nobody ends that meanwhile.
    T::find(unsafe { &*place.object.get() }).ok_or_else(other_kind::<T>)
}

/// Takes the object of a handle out of the table: the handle is closed.
///
/// # Safety
/// As [`get`], and no other thread uses it meanwhile.
///
/// # Errors
/// As [`get`].
pub unsafe fn remove<T: Kind>(handle: u64) -> Result<T, Failure> {
    // SAFETY: as the caller promises.
    let place = unsafe { close_place::<T>(handle)? };
    // SAFETY: no handle of it is valid any more, and it is not free yet.
    let object = unsafe { place.object.get().replace(Object::Nothing) };
    end(place, handle);
    Ok(T::unwrap(object).expect("it was of this kind"))
}

/// As [`remove`], of a sample, which is released where it is.
///
/// # Safety
/// As [`remove`].
///
/// # Errors
/// As [`remove`].
#[inline]
pub unsafe fn release(handle: u64) -> Result<(), Failure> {
    // SAFETY: as the caller promises.
    let place = unsafe { close_place::<SampleBuffer<[u8]>>(handle)? };
    // SAFETY: as in `remove`.
    if let Object::Sample(sample) = unsafe { &mut *place.object.get() } {
        sample.clear();
    }
    end(place, handle);
    Ok(())
}

/// # Safety
/// As [`remove`].
#[inline]
unsafe fn close_place<T: Kind>(handle: u64) -> Result<&'static Place, Failure> {
    let place = look_up::<T>(handle)?;
    // SAFETY: as in `get`.
    T::find(unsafe { &*place.object.get() }).ok_or_else(other_kind::<T>)?;
    // Who is first: of two that close it one alone gets it.
    let uses = handle >> PLACE_BITS;
    // ORDER: Acquire as in `look_up`.
    let (closing, order) = (next(uses) | CLOSING, Ordering::Acquire);
    let closed = place.uses.compare_exchange(uses, closing, order, Ordering::Relaxed);
    closed.map_err(|_| is_closed::<T>())?;
    Ok(place)
}

/// The place of a handle that was closed is free, now that the object is gone.
#[inline]
fn end(place: &Place, handle: u64) {
    let uses = next(handle >> PLACE_BITS);
    // ORDER: Release pairs with the acquire in `Place::free`.
    place.uses.store(uses, Ordering::Release);
    if uses & OWNED == 0 {
        give_back(index_of(handle).expect("it had a place"));
    }
}

/// `uses` after a place was taken or freed.
#[inline(always)]
fn next(uses: u64) -> u64 {
    uses & OWNED | (uses + 1) & (OWNED - 1)
}

/// The number of the place that a handle names.
#[inline(always)]
fn index_of(handle: u64) -> Option<u32> {
    ((handle & ((1 << PLACE_BITS) - 1)) as u32).checked_sub(1)
}

#[inline]
fn look_up<T: Kind>(handle: u64) -> Result<&'static Place, Failure> {
    let place = index_of(handle).and_then(place);
    let place = place.ok_or_else(|| is_none::<T>(handle))?;
    let uses = handle >> PLACE_BITS;
    // ORDER: Acquire pairs with the release in `Reserved::keep`.
    if uses.is_multiple_of(2) || place.uses.load(Ordering::Acquire) != uses {
        return Err(is_closed::<T>());
    }
    Ok(place)
}

#[cold]
fn is_none<T: Kind>(handle: u64) -> Failure {
    let noun = T::NOUN;
    let message =
        if handle == 0 { format!("the {noun} is NULL") } else { format!("this is no {noun}") };
    Failure::handle(message)
}

#[cold]
fn is_closed<T: Kind>() -> Failure {
    Failure::handle(format!("this {} is closed, or was never one", T::NOUN))
}

#[cold]
fn other_kind<T: Kind>() -> Failure {
    Failure::handle(format!("this handle is not of a {}", T::NOUN))
}

type Chunk = [Place; CHUNK];

/// The place of this number, if there is one.
#[inline]
fn place(index: u32) -> Option<&'static Place> {
    let chunk = CHUNKS.get(index as usize / CHUNK)?;
    // ORDER: Acquire pairs with the release in `grow`: the places are there.
    let chunk = chunk.load(Ordering::Acquire);
    // SAFETY: a chunk is never freed.
    unsafe { chunk.as_ref() }.map(|chunk| &chunk[index as usize % CHUNK])
}

/// A free place, the thread's own first: taking and releasing samples locks nothing.
#[inline]
fn free_place() -> Result<u32, Failure> {
    let own = FREE.try_with(|own| own.borrow_mut().0.pop()).ok().flatten();
    own.map_or_else(shared_place, Ok)
}

/// One of all threads', and some for later.
#[cold]
fn shared_place() -> Result<u32, Failure> {
    let mut places = shared();
    if places.free.is_empty() {
        places.adopt();
    }
    if places.free.is_empty() {
        grow(&mut places.free)?;
    }
    let rest = places.free.len().saturating_sub(BATCH);
    let mut batch = places.free.split_off(rest);
    drop(places);
    let place = batch.pop().expect("there is one at least");
    let kept = FREE.try_with(|own| own.borrow_mut().0.append(&mut batch));
    if kept.is_err() {
        share(batch);
    }
    Ok(place)
}

fn grow(free: &mut Vec<u32>) -> Result<(), Failure> {
    let chunk = CHUNKS_USED.load(Ordering::Relaxed); // under the lock
    if chunk == CHUNKS_MAX {
        let (what, limit) = ("handles of this process", (CHUNKS_MAX * CHUNK) as u64);
        return Err(Error::TooMany { topic: None, what, limit }.into());
    }
    let place = || Place { uses: AtomicU64::new(0), object: UnsafeCell::new(Object::Nothing) };
    let places: Box<Chunk> = Box::new(std::array::from_fn(|_| place()));
    // ORDER: Release pairs with the acquire in `place`.
    CHUNKS[chunk].store(Box::into_raw(places), Ordering::Release);
    CHUNKS_USED.store(chunk + 1, Ordering::Relaxed);
    free.extend((0..CHUNK).rev().map(|index| (chunk * CHUNK + index) as u32));
    Ok(())
}

#[inline]
fn give_back(index: u32) {
    let kept = FREE.try_with(|own| {
        let own = &mut own.borrow_mut().0;
        own.push(index);
        if own.len() >= 2 * BATCH {
            share(own.split_off(BATCH));
        }
    });
    if kept.is_err() {
        share(vec![index]);
    }
}

#[cold]
fn share(places: Vec<u32>) {
    shared().free.extend(places);
}

fn shared() -> MutexGuard<'static, Shared> {
    SHARED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What no thread keeps.
struct Shared {
    free: Vec<u32>,
    /// Of subscribers that were closed while a sample lay there.
    orphans: Vec<u32>,
}

impl Shared {
    /// Orphans whose sample has been released are free.
    fn adopt(&mut self) {
        let Shared { free, orphans } = self;
        orphans.retain(|index| {
            let place = place(*index).expect("it was taken");
            let Some(uses) = place.free() else { return true };
            place.uses.store(uses & !OWNED, Ordering::Relaxed);
            free.push(*index);
            false
        });
    }
}

/// Free places that one thread keeps.
struct Free(Vec<u32>);

impl Drop for Free {
    fn drop(&mut self) {
        shared().free.append(&mut self.0);
    }
}

thread_local! {
    static FREE: RefCell<Free> = RefCell::new(Free(Vec::with_capacity(2 * BATCH)));
}
static SHARED: Mutex<Shared> = Mutex::new(Shared { free: Vec::new(), orphans: Vec::new() });
static CHUNKS: [AtomicPtr<Chunk>; CHUNKS_MAX] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; CHUNKS_MAX];
static CHUNKS_USED: AtomicUsize = AtomicUsize::new(0);

const CHUNK: usize = 64;
const CHUNKS_MAX: usize = 4096;
/// Places that a thread gets or gives back at once.
const BATCH: usize = 16;

/// Bits of a handle that say its place, counted from 1; above are the place's `uses`.
const PLACE_BITS: u32 = 20;
/// Bit of `uses`: the place is a subscriber's own, and in no list of free ones.
const OWNED: u64 = 1 << (63 - PLACE_BITS);
/// Bit of `uses`, in no handle: the place was closed, and is not free yet.
const CLOSING: u64 = OWNED << 1;
const _: () = assert!(CHUNKS_MAX * CHUNK < (1 << PLACE_BITS));
const _: () = assert!(size_of::<usize>() == 8, "a handle has the size of a pointer");

#[cfg(test)]
mod tests {
    use super::*;

    fn take(places: &mut OwnPlaces) -> u64 {
        let mut reserved = places.reserve().unwrap();
        assert!(reserved.sample().sample().is_none());
        reserved.keep()
    }

    fn is_open(handle: u64) -> bool {
        // SAFETY: this thread's.
        unsafe { get::<SampleBuffer<[u8]>>(handle) }.is_ok()
    }

    /// Whether it was there.
    fn close(handle: u64) -> bool {
        // SAFETY: this thread's.
        unsafe { release(handle) }.is_ok()
    }

    #[test]
    fn a_subscribers_samples_take_turns_in_its_places() {
        let mut places = OwnPlaces::default();
        let held: Vec<u64> = (0..3).map(|_| take(&mut places)).collect();
        assert!(held.iter().all(|handle| is_open(*handle)));
        for handle in [held[1], held[2], held[0]] {
            assert!(close(handle) && !is_open(handle) && !close(handle));
        }
        let again = [take(&mut places), take(&mut places)];
        assert_eq!(again.map(index_of), [held[0], held[1]].map(index_of));
        assert!(held.iter().all(|handle| !is_open(*handle)), "of an earlier use");
        assert!(again.into_iter().all(close));
        // An empty take leaves all as it is.
        drop(places.reserve().unwrap());
        let next = take(&mut places);
        assert!(index_of(next) == index_of(held[0]) && close(next));
    }

    #[test]
    fn a_sample_outlives_its_subscriber_and_its_place_is_free_after_it() {
        let mut places = OwnPlaces::default();
        let handle = take(&mut places);
        drop(places);
        let is_orphan = || shared().orphans.contains(&index_of(handle).unwrap());
        assert!(is_open(handle) && is_orphan());
        shared().adopt();
        assert!(is_open(handle) && is_orphan());
        assert!(close(handle));
        shared().adopt();
        assert!(!is_open(handle) && !is_orphan());
    }
}
