//! The table of all handles. A handle is no address: it is a place in this table and the number of the
//! place's use, so one that was closed is known as such, also when the place is used again.

use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};
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

/// A sample, or room for one.
pub type Buffer = SampleBuffer<[u8]>;

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
    Sample: Buffer, "sample";
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
    /// It belongs to a [`Pool`], which finds it when it is free. Changed while it is.
    is_pooled: AtomicBool,
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
    let index = shared().take()?;
    let place = place(index).expect("it was free");
    // SAFETY: the place is this thread's, and free: no handle of it is valid.
    unsafe { *place.object.get() = object.wrap() };
    let handle = place.next_handle(index);
    place.use_by(handle);
    Ok(handle)
}

impl Place {
    /// The handle of its next use.
    #[inline(always)]
    fn next_handle(&self, index: u32) -> u64 {
        // Relaxed: whoever has a free place got it by way of a lock, or has acquired `uses`.
        u64::from(next_use(self.uses.load(Ordering::Relaxed))) << 32 | u64::from(index + 1)
    }

    /// From now on the handle is valid.
    #[inline(always)]
    fn use_by(&self, handle: u64) {
        // ORDER: Release pairs with the acquire in `look_up`: the object is there. No other thread writes to
        // a free place.
        self.uses.store((handle >> 32) as u32, Ordering::Release);
    }

    /// Of a pooled place: whether no handle of it is valid.
    #[inline(always)]
    fn is_free(&self) -> bool {
        // ORDER: Acquire pairs with the release in `release`: the buffer is empty.
        self.uses.load(Ordering::Acquire).is_multiple_of(2)
    }
}

/// Places of one owner, with empty buffers that samples are taken into where they lie: who uses one thread locks
/// nothing. Any thread may [`release`] what has been given out, also after the pool is gone.
#[derive(Default)]
pub struct Pool {
    places: Vec<(&'static Place, u32)>,
    /// Which was free the last time.
    at: usize,
}

impl Pool {
    /// An empty buffer.
    ///
    /// # Errors
    /// [`Error::TooMany`].
    #[inline(always)]
    pub fn spare(&mut self) -> Result<Spare<'_>, Failure> {
        let (place, index) = match self.places.get(self.at) {
            Some((place, index)) if place.is_free() => (*place, *index),
            _ => self.look_for_one()?,
        };
        Ok(Spare { place, handle: place.next_handle(index), pool: PhantomData })
    }

    /// One after the other: what was given out first is likely to come back first. Where more than half of them
    /// are passed, they are too few.
    #[cold]
    #[inline(never)]
    fn look_for_one(&mut self) -> Result<(&'static Place, u32), Failure> {
        let count = self.places.len();
        let from_here = (self.at..count).chain(0..self.at);
        let free = from_here.take(count.div_ceil(2)).find(|at| self.places[*at].0.is_free());
        self.at = free.unwrap_or(count);
        if free.is_none() {
            self.grow(count.max(1))?;
        }
        Ok(self.places[self.at])
    }

    fn grow(&mut self, count: usize) -> Result<(), Failure> {
        let mut shared = shared();
        for _ in 0..count {
            let index = shared.take()?;
            let place = place(index).expect("it was free");
            // SAFETY: as in `insert`.
            unsafe { *place.object.get() = Buffer::new().wrap() };
            place.is_pooled.store(true, Ordering::Relaxed); // until it is no longer ours
            self.places.push((place, index));
        }
        Ok(())
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // Those that are still given out are found again when places are short.
        shared().left.extend(self.places.iter().map(|(_, index)| *index));
    }
}

/// An empty buffer of a pool, which [`give`](Self::give) gives out; otherwise it stays there.
pub struct Spare<'a> {
    place: &'static Place,
    handle: u64,
    pool: PhantomData<&'a mut Pool>,
}

impl Spare<'_> {
    #[inline(always)]
    pub fn buffer(&mut self) -> &mut Buffer {
        // SAFETY: the place is free and its pool borrowed: nobody else reaches the buffer.
        Buffer::find_mut(unsafe { &mut *self.place.object.get() })
            .expect("a pool has one kind alone")
    }

    /// The handle that it will have.
    #[inline(always)]
    pub fn handle(&self) -> u64 {
        self.handle
    }

    /// From now on the handle is valid.
    #[inline(always)]
    pub fn give(self) {
        self.place.use_by(self.handle);
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
    let uses = (handle >> 32) as u32;
    // ORDER: Acquire as in `look_up`.
    let closed =
        place.uses.compare_exchange(uses, next_use(uses), Ordering::Acquire, Ordering::Relaxed);
    closed.map_err(|_| is_closed::<T>())?;
    // SAFETY: no handle of it is valid any more, and it is not in the list of free ones yet.
    let object = unsafe { place.object.get().replace(Object::Nothing) };
    shared().free.push(handle as u32 - 1);
    Ok(T::unwrap(object).expect("it was of this kind"))
}

/// Closes the handle of a sample that was inserted or comes of a [`Pool`], to which its buffer goes back empty.
///
/// # Safety
/// As [`remove`].
///
/// # Errors
/// As [`remove`].
#[inline]
pub unsafe fn release(handle: u64) -> Result<(), Failure> {
    let place = look_up::<Buffer>(handle)?;
    if !place.is_pooled.load(Ordering::Relaxed) {
        // SAFETY: as the caller promises.
        return unsafe { remove::<Buffer>(handle) }.map(drop);
    }
    // SAFETY: the place is in use, and nobody else uses or closes it meanwhile.
    let buffer = Buffer::find_mut(unsafe { &mut *place.object.get() });
    buffer.ok_or_else(other_kind::<Buffer>)?.clear();
    // ORDER: Release pairs with the acquire in `is_free`. A store alone: an exchange would take longer than the
    // rest.
    place.uses.store(next_use((handle >> 32) as u32), Ordering::Release);
    Ok(())
}

/// The count after this one: a handle becomes valid or is closed.
#[inline(always)]
fn next_use(uses: u32) -> u32 {
    uses.wrapping_add(1)
}

#[inline]
fn look_up<T: Kind>(handle: u64) -> Result<&'static Place, Failure> {
    let place = (handle as u32).checked_sub(1).and_then(place);
    let place = place.ok_or_else(|| is_none::<T>(handle))?;
    let uses = (handle >> 32) as u32;
    // ORDER: Acquire pairs with the release in `use_by`.
    if uses.is_multiple_of(2) || place.uses.load(Ordering::Acquire) != uses {
        return Err(is_closed::<T>());
    }
    Ok(place)
}

#[cold]
#[inline(never)]
fn is_none<T: Kind>(handle: u64) -> Failure {
    let noun = T::NOUN;
    let message =
        if handle == 0 { format!("the {noun} is NULL") } else { format!("this is no {noun}") };
    Failure::handle(message)
}

#[cold]
#[inline(never)]
fn is_closed<T: Kind>() -> Failure {
    Failure::handle(format!("this {} is closed, or was never one", T::NOUN))
}

#[cold]
#[inline(never)]
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

/// The places that nobody has.
struct Shared {
    free: Vec<u32>,
    /// Of pools that are gone; some may still be in use.
    left: Vec<u32>,
}

impl Shared {
    fn take(&mut self) -> Result<u32, Failure> {
        if self.free.is_empty() {
            self.collect();
        }
        if self.free.is_empty() {
            self.grow()?;
        }
        Ok(self.free.pop().expect("there is one at least"))
    }

    /// What is free of pools that are gone.
    fn collect(&mut self) {
        self.free.extend(self.left.extract_if(.., |index| {
            let place = place(*index).expect("it was a pool's");
            let is_free = place.is_free();
            if is_free {
                place.is_pooled.store(false, Ordering::Relaxed);
            }
            is_free
        }));
    }

    fn grow(&mut self) -> Result<(), Failure> {
        let chunk = CHUNKS_USED.load(Ordering::Relaxed); // under the lock
        if chunk == CHUNKS_MAX {
            let (what, limit) = ("handles of this process", (CHUNKS_MAX * CHUNK) as u64);
            return Err(Error::TooMany { topic: None, what, limit }.into());
        }
        let place = || Place {
            uses: AtomicU32::new(0),
            is_pooled: AtomicBool::new(false),
            object: UnsafeCell::new(Object::Nothing),
        };
        let places: Box<Chunk> = Box::new(std::array::from_fn(|_| place()));
        // ORDER: Release pairs with the acquire in `place`.
        CHUNKS[chunk].store(Box::into_raw(places), Ordering::Release);
        CHUNKS_USED.store(chunk + 1, Ordering::Relaxed);
        self.free.extend((0..CHUNK).rev().map(|index| (chunk * CHUNK + index) as u32));
        Ok(())
    }
}

fn shared() -> MutexGuard<'static, Shared> {
    SHARED.lock().unwrap_or_else(PoisonError::into_inner)
}

static SHARED: Mutex<Shared> = Mutex::new(Shared { free: Vec::new(), left: Vec::new() });
static CHUNKS: [AtomicPtr<Chunk>; CHUNKS_MAX] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; CHUNKS_MAX];
static CHUNKS_USED: AtomicUsize = AtomicUsize::new(0);

const CHUNK: usize = 64;
const CHUNKS_MAX: usize = 4096;

const _: () = assert!(size_of::<usize>() == 8, "a handle has the size of a pointer");

#[cfg(test)]
mod tests {
    use super::*;

    fn is_valid(handle: u64) -> bool {
        // SAFETY: the test alone uses its handles, one thread at a time.
        unsafe { get::<Buffer>(handle) }.is_ok()
    }

    fn end(handle: u64) {
        // SAFETY: as above.
        unsafe { release(handle) }.expect("it is valid");
    }

    fn give(pool: &mut Pool) -> u64 {
        let spare = pool.spare().expect("there are enough");
        let handle = spare.handle();
        assert!(!is_valid(handle), "before it is given");
        spare.give();
        assert!(is_valid(handle));
        handle
    }

    /// One test, as there is one table.
    #[test]
    fn places_of_a_pool_come_back() {
        let mut pool = Pool::default();
        let mut out = Vec::new();
        let mut closed = Vec::new();
        for round in 0..2000 {
            out.push(give(&mut pool));
            if out.len() > 40 {
                let handle = out.swap_remove(round * 7 % 40);
                std::thread::spawn(move || end(handle)).join().expect("it is valid");
                closed.push(handle);
            }
        }
        assert!(pool.places.len() <= 128, "{} places for 41 that are out", pool.places.len());
        assert!(out.iter().all(|handle| is_valid(*handle)));
        assert!(
            closed.iter().all(|handle| !is_valid(*handle)),
            "also when their place is used again"
        );

        drop(pool);
        let index = |handle: u64| handle as u32 - 1;
        let kept = out.pop().expect("there are 40");
        out.iter().for_each(|handle| end(*handle));
        let mut shared = shared();
        shared.collect();
        assert!(out.iter().all(|handle| shared.free.contains(&index(*handle))));
        assert!(!shared.free.contains(&index(kept)) && is_valid(kept), "it outlives its pool");
        drop(shared);
        end(kept);
        assert!(!is_valid(kept));
    }
}
