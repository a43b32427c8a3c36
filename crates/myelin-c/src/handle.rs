//! The table of all handles. A handle is not an address: it has a place in this table, the kind of
//! the object, and the number of uses of the place. So a closed handle is recognised, even when the
//! place is used again.

use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use myelin::{Callback, Error, GuardCondition, Node, Reply, SampleBuffer};

use crate::client::ClientHandle;
use crate::error::Failure;
use crate::graph::GraphHandle;
use crate::graph_watcher::GraphWatcherHandle;
use crate::observer::ObserverHandle;
use crate::publisher::PublisherHandle;
use crate::server::{RequestHandle, ServerHandle};
use crate::subscriber::SubscriberHandle;
use crate::topic::TopicHandle;
use crate::wait_set::{self, WaitSetHandle};

/// A sample, or room for a sample.
pub type Buffer = SampleBuffer<[u8]>;

macro_rules! kinds {
    ($($number:literal: $object:ty, $noun:literal;)*) => {$(
        impl Kind for $object {
            const NUMBER: u32 = $number;
            const NOUN: &'static str = $noun;
        }
    )*};
}

kinds! {
    1: Node, "node";
    2: TopicHandle, "topic";
    3: PublisherHandle, "publisher";
    4: SubscriberHandle, "subscriber";
    5: Buffer, "sample";
    6: Callback, "callback";
    7: WaitSetHandle, "wait set";
    8: GuardCondition, "guard";
    9: ClientHandle, "client";
    10: ServerHandle, "server";
    11: RequestHandle, "request";
    12: Reply<[u8]>, "reply";
    13: GraphHandle, "graph";
    14: ObserverHandle, "observer";
    15: GraphWatcherHandle, "graph watcher";
}

/// The kinds of objects in the table.
pub trait Kind: Sized {
    /// Not 0, and different for each kind.
    const NUMBER: u32;
    /// The name for messages.
    const NOUN: &'static str;
}

/// A place. A place that was never used is all zeros.
struct Place {
    /// The handle while it is valid; otherwise the number of uses, in the same bits as in the
    /// handle.
    word: AtomicU64,
    /// A box of the handle's kind. A pooled place keeps its box, empty, while there is no handle.
    object: AtomicPtr<()>,
}

/// The handle as a pointer for the header's functions.
pub fn to_pointer<P>(handle: u64) -> *mut P {
    std::ptr::without_provenance_mut(handle as usize)
}

/// The handle in a pointer from the program.
pub fn of_pointer<P>(pointer: *const P) -> u64 {
    pointer.addr() as u64
}

/// Puts an object into the table, where it stays, and returns the handle.
///
/// # Errors
/// [`Error::TooMany`].
pub fn insert<T: Kind>(object: Box<T>) -> Result<u64, Failure> {
    let index = shared().take()?;
    let place = place(index);
    place.object.store(Box::into_raw(object).cast(), Ordering::Relaxed); // by `use_by`
    let handle = place.next_handle(T::NUMBER << KIND_SHIFT | index);
    place.use_by(handle);
    Ok(handle)
}

impl Place {
    /// The handle of the next use of this place; `half` has its kind and place.
    #[inline(always)]
    fn next_handle(&self, half: u32) -> u64 {
        // Relaxed: the thread that owns a free place got it through a lock, or has acquired the
        // word.
        uses(self.word.load(Ordering::Relaxed)).wrapping_add(ONE_USE) | u64::from(half)
    }

    /// Makes the handle valid.
    #[inline(always)]
    fn use_by(&self, handle: u64) {
        // ORDER: Release pairs with the acquire in `look_up`: the object is there. No other thread
        // writes to a free place.
        self.word.store(handle, Ordering::Release);
    }

    /// Whether a pooled place has no valid handle.
    #[inline(always)]
    fn is_free(&self) -> bool {
        // ORDER: Acquire pairs with the release in `release`: the buffer is empty.
        self.word.load(Ordering::Acquire) as u32 == 0
    }
}

/// The number of uses in a handle: the word of a place whose handle is closed.
#[inline(always)]
fn uses(handle: u64) -> u64 {
    handle & !(ONE_USE - 1)
}

/// Places of one owner, with empty buffers that samples are taken into directly. An owner that uses
/// one thread locks nothing, and writes to no cache line of another owner's handles. Any thread may
/// [`release`] the handles, also after the pool is gone.
#[derive(Default)]
pub struct Pool {
    indices: Vec<u32>,
    /// Where the search for a free place goes on.
    at: usize,
}

impl Pool {
    /// An empty buffer.
    ///
    /// # Errors
    /// [`Error::TooMany`].
    #[inline(always)]
    pub fn spare(&mut self) -> Result<Spare<'_>, Failure> {
        let index = match self.indices.get(self.at) {
            Some(index) if place(*index).is_free() => *index,
            _ => self.look_for_one()?,
        };
        let handle = place(index).next_handle(Buffer::NUMBER << KIND_SHIFT | POOLED | index);
        Ok(Spare { place: place(index), handle, pool: PhantomData })
    }

    /// Searches in order: the handle that was given out first is likely to be released first. If
    /// the search passes more than half of the places, the pool is too small.
    #[cold]
    #[inline(never)]
    fn look_for_one(&mut self) -> Result<u32, Failure> {
        let count = self.indices.len();
        let from_here = (self.at..count).chain(0..self.at);
        let mut looked_at = from_here.take(count.div_ceil(2));
        let free = looked_at.find(|at| place(self.indices[*at]).is_free());
        self.at = free.unwrap_or(count);
        if free.is_none() {
            self.grow(count.max(1))?;
        }
        Ok(self.indices[self.at])
    }

    /// Grows by so many places, or somewhat more.
    fn grow(&mut self, count: usize) -> Result<(), Failure> {
        let mut shared = shared();
        for _ in 0..count.div_ceil(GROUP as usize) {
            for index in of_group(shared.take_group()?) {
                let buffer = Box::into_raw(Box::new(Buffer::new()));
                place(index).object.store(buffer.cast(), Ordering::Relaxed); // by `use_by`
                self.indices.push(index);
            }
        }
        Ok(())
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // Places still in use are collected when places are short.
        shared().left.extend(self.indices.iter().step_by(GROUP as usize).map(|it| it / GROUP));
    }
}

/// An empty buffer of a pool. [`give`](Self::give) gives it out; otherwise it stays in the pool.
pub struct Spare<'a> {
    place: &'static Place,
    handle: u64,
    pool: PhantomData<&'a mut Pool>,
}

impl Spare<'_> {
    #[inline(always)]
    pub fn buffer(&mut self) -> &mut Buffer {
        // SAFETY: a pool's places have a buffer; this one is free and its pool borrowed: no one
        // else reaches it.
        unsafe { &mut *self.place.object.load(Ordering::Relaxed).cast() }
    }

    /// The handle that the buffer will have.
    #[inline(always)]
    pub fn handle(&self) -> u64 {
        self.handle
    }

    /// Makes the handle valid.
    #[inline(always)]
    pub fn give(self) {
        self.place.use_by(self.handle);
    }
}

/// The object of a handle.
///
/// # Safety
/// As the header demands, no other thread closes it meanwhile.
///
/// # Errors
/// The handle is invalid, closed, or of another kind.
#[inline(always)]
pub unsafe fn get<'a, T: Kind>(handle: u64) -> Result<&'a T, Failure> {
    let object = look_up::<T>(handle)?.object.load(Ordering::Relaxed);
    // SAFETY: the place is in use and has an object of this kind, and no one closes it meanwhile.
    Ok(unsafe { &*object.cast() })
}

/// Takes the object of a handle out of the table: the handle is closed.
///
/// # Safety
/// As [`get`], and no other thread uses it meanwhile.
///
/// # Errors
/// As [`get`].
pub unsafe fn remove<T: Kind>(handle: u64) -> Result<Box<T>, Failure> {
    // SAFETY: as the caller promises.
    unsafe { remove_after(handle, || ()) }
}

/// Like [`remove`], while other threads may be in [`get`] with the handle. `others_have_left` is
/// called when no further [`get`] finds the handle, and returns when the threads that have found it
/// are done with the object. Until then the object stays in its place, and the place is not used
/// again.
///
/// # Safety
/// `others_have_left` does as it says.
///
/// # Errors
/// As [`get`].
pub unsafe fn remove_after<T: Kind>(
    handle: u64,
    others_have_left: impl FnOnce(),
) -> Result<Box<T>, Failure> {
    let place = look_up::<T>(handle)?;
    assert!(handle as u32 & POOLED == 0, "a pooled handle is not closed here");
    // ORDER: Acquire as in `look_up`. If two threads close a handle, the first one gets the object.
    let closed =
        place.word.compare_exchange(handle, uses(handle), Ordering::Acquire, Ordering::Relaxed);
    closed.map_err(|_| refused::<T>(handle))?;
    others_have_left();
    let object = place.object.swap(std::ptr::null_mut(), Ordering::Relaxed);
    shared().free.push(handle as u32 & INDEX);
    // SAFETY: it came from `insert`, is of this kind, and is ours alone: no handle of it is valid
    // any more.
    Ok(unsafe { Box::from_raw(object.cast()) })
}

/// Closes the handle of a sample. Its buffer is empty then, and goes back to its [`Pool`] if it
/// came from one.
///
/// # Safety
/// As [`remove`].
///
/// # Errors
/// As [`remove`].
#[inline(always)]
pub unsafe fn release(handle: u64) -> Result<(), Failure> {
    let place = look_up::<Buffer>(handle)?;
    if handle as u32 & POOLED == 0 {
        // SAFETY: as the caller promises.
        return unsafe { remove_sample(handle) };
    }
    // SAFETY: the place is in use and has a buffer, and nobody else uses or closes it meanwhile.
    let buffer: &mut Buffer = unsafe { &mut *place.object.load(Ordering::Relaxed).cast() };
    buffer.clear();
    // ORDER: Release pairs with the acquire in `is_free`. This is only a store: an exchange would
    // take longer than the rest.
    place.word.store(uses(handle), Ordering::Release);
    Ok(())
}

/// # Safety
/// As [`remove`].
#[inline(never)]
unsafe fn remove_sample(handle: u64) -> Result<(), Failure> {
    // SAFETY: as the caller promises.
    unsafe { remove::<Buffer>(handle) }.map(drop)
}

/// Two comparisons find every wrong handle; the reason is found out separately.
#[inline(always)]
fn look_up<T: Kind>(handle: u64) -> Result<&'static Place, Failure> {
    let place = place(handle as u32 & INDEX);
    // ORDER: Acquire pairs with the release in `use_by`.
    let is_valid = place.word.load(Ordering::Acquire) == handle;
    let is_such = handle as u32 >> KIND_SHIFT == T::NUMBER;
    if is_valid && is_such { Ok(place) } else { Err(refused::<T>(handle)) }
}

#[cold]
#[inline(never)]
fn refused<T: Kind>(handle: u64) -> Failure {
    let (noun, half) = (T::NOUN, handle as u32);
    let is_valid = place(half & INDEX).word.load(Ordering::Relaxed) == handle;
    let (before, after) = match half >> KIND_SHIFT {
        _ if handle == 0 => ("the ", " is NULL"),
        0 | KINDS.. => ("this is not a ", ""),
        kind if kind != T::NUMBER && is_valid => ("this handle does not belong to a ", ""),
        _ => ("this ", " is closed, or was never opened"),
    };
    Failure::handle(format_args!("{before}{noun}{after}"))
}

/// The place with this number; a number that is too large has no place.
#[inline(always)]
fn place(index: u32) -> &'static Place {
    &TABLE.0[(index & INDEX) as usize]
}

/// The numbers of a group's places.
fn of_group(group: u32) -> Range<u32> {
    group * GROUP..(group + 1) * GROUP
}

/// The places without an owner.
struct Shared {
    free: Vec<u32>,
    /// Groups that are wholly free.
    free_groups: Vec<u32>,
    /// Groups of pools that are gone; some of their places may still be in use.
    left: Vec<u32>,
    /// How many groups have ever been used: the first ones of the table.
    used: u32,
}

impl Shared {
    fn take(&mut self) -> Result<u32, Failure> {
        if self.free.is_empty() {
            let group = self.take_group()?;
            self.free.extend(of_group(group).rev());
        }
        Ok(self.free.pop().expect("the free list has a place"))
    }

    fn take_group(&mut self) -> Result<u32, Failure> {
        if self.free_groups.is_empty() {
            self.collect();
        }
        if let Some(group) = self.free_groups.pop() {
            return Ok(group);
        }
        if self.used == PLACES / GROUP {
            let (what, limit) = ("handles of this process", u64::from(PLACES));
            return Err(Error::TooMany { topic: None, what, limit }.into());
        }
        self.used += 1;
        Ok(self.used - 1)
    }

    /// Collects the free places of pools that are gone.
    fn collect(&mut self) {
        let is_free = |group: &mut u32| of_group(*group).all(|index| place(index).is_free());
        let free = self.left.extract_if(.., is_free);
        self.free_groups.extend(free.inspect(|group| {
            for index in of_group(*group) {
                let buffer = place(index).object.swap(std::ptr::null_mut(), Ordering::Relaxed);
                // SAFETY: it came from `Pool::grow`, and has no owner: its pool is gone, and no
                // handle of it is valid.
                drop(unsafe { Box::from_raw(buffer.cast::<Buffer>()) });
            }
        }));
    }
}

fn shared() -> MutexGuard<'static, Shared> {
    SHARED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on a child of `fork` finds the table consistent, even if other threads are changing it:
/// the forking thread holds the lock. Called before the first handle exists.
pub fn prepare_for_fork() {
    static REGISTER: Once = Once::new();
    REGISTER.call_once(|| {
        // SAFETY: `in_child` is async-signal-safe: it unlocks the lock of this thread, and stores.
        unsafe { libc::pthread_atfork(Some(before), Some(after), Some(in_child)) };
    });
}

extern "C" fn before() {
    let guard = shared();
    // SAFETY: only the holder of the lock uses this.
    unsafe { *HELD.0.get() = Some(guard) };
}

extern "C" fn after() {
    // SAFETY: `before` has taken the lock in this thread.
    drop(unsafe { (*HELD.0.get()).take() });
}

extern "C" fn in_child() {
    after();
    wait_set::forget_other_threads();
}

/// The lock guard while a thread forks.
static HELD: Held = Held(UnsafeCell::new(None));

struct Held(UnsafeCell<Option<MutexGuard<'static, Shared>>>);

// SAFETY: only the thread that holds the lock uses it.
unsafe impl Sync for Held {}

/// Groups begin at pairs of cache lines.
#[repr(C, align(128))]
struct Table([Place; PLACES as usize]);

static SHARED: Mutex<Shared> =
    Mutex::new(Shared { free: Vec::new(), free_groups: Vec::new(), left: Vec::new(), used: 0 });
/// 1 MB of zeros; only pages in use take memory. Its address is constant.
static TABLE: Table = Table(
    [const { Place { word: AtomicU64::new(0), object: AtomicPtr::new(std::ptr::null_mut()) } };
        PLACES as usize],
);

const PLACES: u32 = 1 << 16;
/// Places that share cache lines belong to one pool, or to no pool at all.
const GROUP: u32 = 128 / size_of::<Place>() as u32;
/// The parts of a handle: uses(32) | kind(15) | pooled(1) | index(16).
const INDEX: u32 = PLACES - 1;
const POOLED: u32 = PLACES;
const KIND_SHIFT: u32 = 17;
const ONE_USE: u64 = 1 << 32;
/// More than any kind's number.
const KINDS: u32 = 16;

const _: () = assert!(size_of::<usize>() == 8, "a handle has the size of a pointer");

#[cfg(test)]
mod tests {
    use super::*;

    fn is_valid(handle: u64) -> bool {
        // SAFETY: only this test uses its handles, one thread at a time.
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

    /// The tests run one after the other, because there is one table.
    #[test]
    fn released_handle_places_are_reused() {
        places_of_a_pool_come_back();
        a_place_is_kept_until_other_threads_have_left();
    }

    fn a_place_is_kept_until_other_threads_have_left() {
        let insert = || insert(Box::new(Buffer::new())).expect("there are enough places");
        let handle = insert();
        let object = |handle| place(handle as u32 & INDEX).object.load(Ordering::Relaxed);
        let found = object(handle);
        let others_have_left = || {
            assert!(!is_valid(handle), "no further call finds it");
            assert_eq!(object(handle), found, "a call that has found it reads where it is");
            let other = insert();
            assert_ne!(other as u32 & INDEX, handle as u32 & INDEX, "its place is not free yet");
            end(other);
        };
        // SAFETY: no other thread knows the handle.
        unsafe { remove_after::<Buffer>(handle, others_have_left) }.expect("it is valid");
        assert!(object(handle).is_null());
    }

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
        assert!(pool.indices.len() <= 128, "{} places for 41 that are out", pool.indices.len());
        assert!(out.iter().all(|handle| is_valid(*handle)));
        assert!(
            closed.iter().all(|handle| !is_valid(*handle)),
            "also when their place is used again"
        );

        drop(pool);
        let group = |handle: u64| (handle as u32 & INDEX) / GROUP;
        let kept = out.pop().expect("there are 40");
        out.iter().for_each(|handle| end(*handle));
        let mut shared = shared();
        shared.collect();
        let is_free = |shared: &Shared, handle| shared.free_groups.contains(&group(handle));
        let mut others = out.iter().filter(|handle| group(**handle) != group(kept));
        assert!(others.all(|handle| is_free(&shared, *handle)));
        assert!(!is_free(&shared, kept) && is_valid(kept), "it outlives its pool");
        drop(shared);
        end(kept);
        assert!(!is_valid(kept));
        let mut shared = super::shared();
        shared.collect();
        assert!(is_free(&shared, kept));
    }
}
