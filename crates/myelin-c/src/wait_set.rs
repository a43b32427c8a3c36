//! Wait sets and guards.

use std::ffi::c_int;
use std::os::fd::IntoRawFd;
use std::sync::atomic::{AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use myelin::{Error, GuardCondition, Key, KeyMap, Node, WaitSet, until_ns};

use crate::error::{Failure, MYELIN_NOTHING, MYELIN_OK, enter, myelin_code};
use crate::node::{self, myelin_node};
use crate::server::{ServerHandle, myelin_server};
use crate::subscriber::{SubscriberHandle, myelin_subscriber};
use crate::{handle, text};

/// One thread waits for many things: subscribers and servers of its node, guard conditions, timers. Any
/// thread adds, removes and closes meanwhile: a running wait takes it into account at once.
pub enum myelin_wait_set {}

/// Ends a wait from another thread. Any thread may trigger it, and a signal handler.
pub enum myelin_guard_condition {}

pub struct WaitSetHandle(Arc<Shared>);

struct Shared {
    handle: myelin::WaitSetHandle,
    /// The program's keys. Locked while a member is added, so that no wait reports a member without
    /// a key.
    names: Mutex<Names>,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Names {
    keys: KeyMap<u64>,
    /// At this number of members, the set looks for members that have gone.
    prune_at: usize,
}

struct Waiting {
    set: WaitSet,
    /// Members reported by the set, and not to the program yet.
    left: Vec<u64>,
}

impl Shared {
    fn new(set: WaitSet) -> Shared {
        Shared {
            handle: set.handle(),
            names: Mutex::default(),
            waiting: Mutex::new(Waiting { set, left: Vec::new() }),
        }
    }

    fn names(&self) -> MutexGuard<'_, Names> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The keys, to change them. In a child of `fork` the lock is never released if another thread
    /// had it.
    fn to_change(&self) -> Result<MutexGuard<'_, Names>, Failure> {
        if self.handle.is_forked() { Err(Error::Forked.into()) } else { Ok(self.names()) }
    }

    /// The waiting side; `None` if another thread waits.
    fn waiting(&self) -> Option<MutexGuard<'_, Waiting>> {
        match self.waiting.try_lock() {
            Ok(waiting) => Some(waiting),
            Err(TryLockError::Poisoned(waiting)) => Some(waiting.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Waits until a member with a key is ready: a member that has just been removed has no key any
    /// more.
    fn wait(&self, waiting: &mut Waiting, limit: Duration) -> Result<(), Error> {
        let Waiting { set, left } = waiting;
        if !left.is_empty() {
            return Ok(());
        }
        let until_ns = until_ns(limit);
        while left.is_empty() {
            let ready = set.wait_until(until_ns)?;
            if ready.is_empty() {
                break;
            }
            let names = self.names();
            left.extend(ready.iter().filter_map(|key| names.keys.get(key)));
        }
        Ok(())
    }

    /// Adds a member for which `key` is reported.
    fn add<R>(
        &self,
        key: u64,
        add: impl FnOnce(&myelin::WaitSetHandle) -> Result<(Key, R), Failure>,
    ) -> Result<R, Failure> {
        let mut names = self.to_change()?;
        let (added, made) = add(&self.handle)?;
        let Names { keys, prune_at } = &mut *names;
        if keys.len() >= *prune_at {
            keys.retain(|known, _| self.handle.contains(*known));
            *prune_at = 2 * keys.len().max(32);
        }
        keys.insert(added, key);
        Ok(made)
    }
}

/// Makes a wait set of a node, which can have at most 1,024.
///
/// # Safety
/// Pointers are NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_wait_set_open(
    node: *mut myelin_node,
    set: *mut *mut myelin_wait_set,
) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        text::put(set, std::ptr::null_mut(), "set")?;
        let made = handle::get::<Node>(handle::of_pointer(node))?.wait_set()?;
        let made = Box::new(WaitSetHandle(Arc::new(Shared::new(made))));
        set.write(handle::to_pointer(handle::insert(made)?));
        Ok(MYELIN_OK)
    })
}

/// Closes it; the watched objects go on. Other threads may be inside calls with it: a wait ends
/// with MYELIN_ERROR_CLOSED.
///
/// # Safety
/// Pointers are NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_wait_set_close(set: *mut myelin_wait_set) -> myelin_code {
    // SAFETY: as the caller promises.
    enter(|| unsafe {
        let set = handle::remove_after::<WaitSetHandle>(handle::of_pointer(set), || {
            // ORDER: pairs with the fence in `of`: a call that has not seen that the handle is closed is counted.
            fence(Ordering::SeqCst);
            while ENTERING.load(Ordering::Acquire) > 0 {
                std::hint::spin_loop();
            }
        })?;
        set.0.handle.close();
        Ok(MYELIN_OK)
    })
}

/// Watches a subscriber of the set's node until it is removed or closed: `key`, chosen by the
/// program, is reported while there is a sample to take.
///
/// # Safety
/// No other thread uses the subscriber meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_wait_set_add(
    set: *mut myelin_wait_set,
    subscriber: *mut myelin_subscriber,
    key: u64,
) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        let set = of(set)?;
        let subscriber = handle::get::<SubscriberHandle>(handle::of_pointer(subscriber))?;
        set.add(key, |set| Ok((subscriber.watch(set)?, ())))?;
        Ok(MYELIN_OK)
    })
}

/// Like `myelin_wait_set_add`, for a server: `key` is reported while there is a request to take.
///
/// # Safety
/// No other thread uses the server meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_wait_set_add_server(
    set: *mut myelin_wait_set,
    server: *mut myelin_server,
    key: u64,
) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        let set = of(set)?;
        let server = handle::get::<ServerHandle>(handle::of_pointer(server))?;
        set.add(key, |set| Ok((server.watch(set)?, ())))?;
        Ok(MYELIN_OK)
    })
}

/// Makes a guard condition: triggering it reports `key`. Close the guard condition when you are done.
///
/// # Safety
/// Pointers are NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_wait_set_guard_condition(
    set: *mut myelin_wait_set,
    key: u64,
    guard: *mut *mut myelin_guard_condition,
) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        text::put(guard, std::ptr::null_mut(), "guard")?;
        let made = of(set)?.add(key, |set| {
            let made = set.guard_condition()?;
            Ok((made.key(), made))
        })?;
        guard.write(handle::to_pointer(handle::insert(Box::new(made))?));
        Ok(MYELIN_OK)
    })
}

/// Ends the running wait, or else the next one. Any thread, and a signal handler.
///
/// # Safety
/// No other thread closes it meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_guard_condition_trigger(
    guard: *mut myelin_guard_condition,
) -> myelin_code {
    // SAFETY: as the caller promises.
    enter(|| unsafe {
        handle::get::<GuardCondition>(handle::of_pointer(guard))?.trigger();
        Ok(MYELIN_OK)
    })
}

/// Closes a guard condition.
///
/// # Safety
/// No other thread uses the handle meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_guard_condition_close(
    guard: *mut myelin_guard_condition,
) -> myelin_code {
    // SAFETY: as the caller promises.
    enter(|| unsafe {
        drop(handle::remove::<GuardCondition>(handle::of_pointer(guard))?);
        Ok(MYELIN_OK)
    })
}

/// Reports `key` once every `period_ns`, the first time one period from now.
///
/// # Safety
/// Pointers are NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_wait_set_timer(
    set: *mut myelin_wait_set,
    period_ns: u64,
    key: u64,
) -> myelin_code {
    enter(|| {
        of(set)?.add(key, |set| Ok((set.timer(text::duration(period_ns))?, ())))?;
        Ok(MYELIN_OK)
    })
}

/// Stops watching the member with this key. MYELIN_NOTHING if there is none.
///
/// # Safety
/// Pointers are NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_wait_set_remove(
    set: *mut myelin_wait_set,
    key: u64,
) -> myelin_code {
    enter(|| {
        let set = of(set)?;
        let mut names = set.to_change()?;
        let its = names.keys.iter().filter(|(_, its)| **its == key).map(|(its, _)| *its);
        let its: Vec<Key> = its.collect();
        for its in &its {
            set.handle.remove(*its);
            names.keys.remove(its);
        }
        drop(names);
        if let Some(mut waiting) = set.waiting() {
            waiting.left.retain(|left| *left != key);
        }
        Ok(if its.is_empty() { MYELIN_NOTHING } else { MYELIN_OK })
    })
}

/// Waits until something is ready, for at most `limit_ns` (MYELIN_FOREVER: no limit), and writes
/// the keys of the ready members, at most `capacity`, and their number. The next wait reports the
/// others. MYELIN_NOTHING if nothing is ready. A subscriber with samples left is ready again. One
/// thread at a time waits: another one gets MYELIN_ERROR_BUSY.
///
/// # Safety
/// `keys` has room for `capacity`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_wait_set_wait(
    set: *mut myelin_wait_set,
    limit_ns: u64,
    keys: *mut u64,
    capacity: usize,
    count: *mut usize,
) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        let shared = of(set)?;
        text::put(count, 0, "count")?;
        if capacity == 0 || keys.is_null() {
            return Err(Failure::setting("keys has no room; pass an array of at least one"));
        }
        let Some(mut waiting) = shared.waiting() else {
            drop(shared.to_change()?); // in a child of `fork` no thread waits
            return Err(Failure::busy(
                "another thread waits in this wait set; make one for each \
                                      thread",
            ));
        };
        shared.wait(&mut waiting, text::duration(limit_ns))?;
        let left = &mut waiting.left;
        let reported = left.len().min(capacity);
        std::ptr::copy_nonoverlapping(left.as_ptr(), keys, reported);
        left.drain(..reported);
        count.write(reported);
        Ok(if reported == 0 { MYELIN_NOTHING } else { MYELIN_OK })
    })
}

/// One descriptor for your own epoll, for everything that the set watches. The program owns it:
/// close it. When it is readable, wait with a limit of 0 until nothing is reported.
///
/// # Safety
/// Pointers are NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_wait_set_descriptor(
    set: *mut myelin_wait_set,
    descriptor: *mut c_int,
) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        let set = of(set)?;
        text::put(descriptor, -1, "descriptor")?;
        descriptor.write(set.handle.descriptor()?.into_raw_fd());
        Ok(MYELIN_OK)
    })
}

/// How it waits: `enum myelin_wait`.
///
/// # Safety
/// Pointers are NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_wait_set_set_wait(
    set: *mut myelin_wait_set,
    wait: i32,
) -> myelin_code {
    enter(|| {
        of(set)?.handle.set_wait(node::wait(wait)?);
        Ok(MYELIN_OK)
    })
}

/// The set of a handle. Another thread may close it from now on.
fn of(set: *mut myelin_wait_set) -> Result<Arc<Shared>, Failure> {
    // ORDER: Relaxed, and the fence: pairs with the one in `close`, which either finds this call
    // counted, or this call finds that the handle is closed.
    ENTERING.fetch_add(1, Ordering::Relaxed);
    fence(Ordering::SeqCst);
    // SAFETY: `close` waits for us before it takes the object out of its place and frees it.
    let found = unsafe { handle::get::<WaitSetHandle>(handle::of_pointer(set)) };
    let found = found.map(|set| set.0.clone());
    // ORDER: Release pairs with the acquire in `close`.
    ENTERING.fetch_sub(1, Ordering::Release);
    found
}

/// Resets the count in a child of `fork`, which has one thread.
pub fn forget_other_threads() {
    ENTERING.store(0, Ordering::Relaxed);
}

/// How many calls are just looking for the set of a handle.
static ENTERING: AtomicUsize = AtomicUsize::new(0);

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::time::Instant;

    use super::*;

    /// A program may add, trigger and remove without end.
    #[test]
    fn wake_ups_of_removed_guards_do_not_prolong_a_wait() {
        let folder = tempfile::tempdir().unwrap();
        let node = Node::builder("test").runtime_dir(folder.path()).open().unwrap();
        let shared = Shared::new(node.wait_set().unwrap());
        let nameless = shared.handle.guard_condition().unwrap();
        let has_ended = AtomicBool::new(false);
        let is_in_time = std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut waiting = shared.waiting().unwrap();
                shared.wait(&mut waiting, Duration::from_millis(50)).unwrap();
                assert!(waiting.left.is_empty());
                has_ended.store(true, Ordering::Relaxed);
            });
            let begin = Instant::now();
            while !has_ended.load(Ordering::Relaxed) {
                if begin.elapsed() > Duration::from_secs(20) {
                    return false;
                }
                nameless.trigger();
                std::thread::yield_now();
            }
            true
        });
        assert!(is_in_time);
    }
}
