//! The table of all handles. A handle is no address: it is a place in this table and the number of the
//! place's use, so one that was closed is known as such, also when the place is used again.

use std::cell::{RefCell, UnsafeCell};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

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

            fn find_mut(object: &mut Object) -> Option<&mut Self> {
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
    fn find_mut(object: &mut Object) -> Option<&mut Self>;
    fn unwrap(object: Object) -> Option<Self>;
}

/// A place: what it holds while its use is odd.
struct Place {
    /// How often it was taken or freed.
    uses: AtomicU32,
    object: UnsafeCell<Object>,
}

// SAFETY: a place's object is made and dropped by whoever takes or frees the place, which one thread
// does; between, it is only shared. What is not `Sync` in it the header gives to one thread at a time.
unsafe impl Sync for Place {}

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
    let uses = place.uses.load(Ordering::Relaxed).wrapping_add(1);
    Ok(Reserved { place, handle: u64::from(uses) << 32 | u64::from(index + 1) })
}

/// See [`reserve`]; dropped, it is free again, and what was put there is dropped.
pub struct Reserved {
    place: &'static Place,
    handle: u64,
}

impl Reserved {
    /// Puts the object there, once; where it then is.
    #[inline(always)]
    pub fn put<T: Kind>(&mut self, object: T) -> &mut T {
        let at = self.place.object.get();
        // SAFETY: the place is this thread's, and free: there is nothing to drop.
        unsafe { at.write(object.wrap()) };
        // SAFETY: nobody else has its handle, and `self` is borrowed for as long.
        T::find_mut(unsafe { &mut *at }).expect("it was put there")
    }

    /// The handle that it will have.
    #[inline(always)]
    pub fn handle(&self) -> u64 {
        self.handle
    }

    /// From now on the handle is valid.
    #[inline(always)]
    pub fn keep(self) -> u64 {
        let handle = self.handle;
        // ORDER: Release pairs with the acquire in `look_up`: the object is there. No other thread writes
        // to a place that is reserved.
        self.place.uses.store((handle >> 32) as u32, Ordering::Release);
        std::mem::forget(self);
        handle
    }
}

impl Drop for Reserved {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: as in `put`.
        unsafe { *self.place.object.get() = Object::Nothing };
        give_back(self.handle as u32 - 1);
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
    let place = look_up::<T>(handle)?;
    // SAFETY: as in `get`.
    T::find(unsafe { &*place.object.get() }).ok_or_else(other_kind::<T>)?;
    // Who is first: of two that close it one alone gets it.
    let (uses, next) = ((handle >> 32) as u32, next_use(handle));
    // ORDER: Acquire as in `look_up`; Release pairs with the next use of the place.
    let closed = place.uses.compare_exchange(uses, next, Ordering::AcqRel, Ordering::Relaxed);
    closed.map_err(|_| is_closed::<T>())?;
    // SAFETY: no handle of it is valid any more, and it is not in the list of free ones yet.
    let object = unsafe { place.object.get().replace(Object::Nothing) };
    give_back(handle as u32 - 1);
    Ok(T::unwrap(object).expect("it was of this kind"))
}

/// As [`remove`], of an object that is dropped where it is.
///
/// # Safety
/// As [`remove`].
///
/// # Errors
/// As [`remove`].
#[inline]
pub unsafe fn close<T: Kind>(handle: u64) -> Result<(), Failure> {
    let place = look_up::<T>(handle)?;
    // SAFETY: the place is in use, and nobody else uses or closes it meanwhile.
    let object = T::find_mut(unsafe { &mut *place.object.get() }).ok_or_else(other_kind::<T>)?;
    // ORDER: Relaxed: who has the place next gets it from this thread, or by way of a lock. A store alone: an
    // exchange would take longer than the rest.
    place.uses.store(next_use(handle), Ordering::Relaxed);
    // SAFETY: dropped once: then there is nothing in the place.
    unsafe {
        std::ptr::drop_in_place(object);
        place.object.get().write(Object::Nothing);
    }
    give_back(handle as u32 - 1);
    Ok(())
}

/// Of a place whose handle is closed.
#[inline]
fn next_use(handle: u64) -> u32 {
    ((handle >> 32) as u32).wrapping_add(1)
}

#[inline]
fn look_up<T: Kind>(handle: u64) -> Result<&'static Place, Failure> {
    let place = (handle as u32).checked_sub(1).and_then(place);
    let place = place.ok_or_else(|| is_none::<T>(handle))?;
    let uses = (handle >> 32) as u32;
    // ORDER: Acquire pairs with the release in `fill`.
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
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    if shared.is_empty() {
        grow(&mut shared)?;
    }
    let rest = shared.len().saturating_sub(BATCH);
    let mut batch = shared.split_off(rest);
    drop(shared);
    let place = batch.pop().expect("there is one at least");
    let kept = FREE.try_with(|own| own.borrow_mut().0.append(&mut batch));
    if kept.is_err() {
        SHARED.lock().unwrap_or_else(PoisonError::into_inner).append(&mut batch);
    }
    Ok(place)
}

fn grow(shared: &mut Vec<u32>) -> Result<(), Failure> {
    let chunk = CHUNKS_USED.load(Ordering::Relaxed); // under the lock
    if chunk == CHUNKS_MAX {
        let (what, limit) = ("handles of this process", (CHUNKS_MAX * CHUNK) as u64);
        return Err(Error::TooMany { topic: None, what, limit }.into());
    }
    let place = || Place { uses: AtomicU32::new(0), object: UnsafeCell::new(Object::Nothing) };
    let places: Box<Chunk> = Box::new(std::array::from_fn(|_| place()));
    // ORDER: Release pairs with the acquire in `place`.
    CHUNKS[chunk].store(Box::into_raw(places), Ordering::Release);
    CHUNKS_USED.store(chunk + 1, Ordering::Relaxed);
    shared.extend((0..CHUNK).rev().map(|index| (chunk * CHUNK + index) as u32));
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
    SHARED.lock().unwrap_or_else(PoisonError::into_inner).extend(places);
}

/// Free places that one thread keeps.
struct Free(Vec<u32>);

impl Drop for Free {
    fn drop(&mut self) {
        SHARED.lock().unwrap_or_else(PoisonError::into_inner).append(&mut self.0);
    }
}

thread_local! {
    static FREE: RefCell<Free> = RefCell::new(Free(Vec::with_capacity(2 * BATCH)));
}
static SHARED: Mutex<Vec<u32>> = Mutex::new(Vec::new());
static CHUNKS: [AtomicPtr<Chunk>; CHUNKS_MAX] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; CHUNKS_MAX];
static CHUNKS_USED: AtomicUsize = AtomicUsize::new(0);

const CHUNK: usize = 64;
const CHUNKS_MAX: usize = 4096;
/// Places that a thread gets or gives back at once.
const BATCH: usize = 16;

const _: () = assert!(size_of::<usize>() == 8, "a handle has the size of a pointer");
