//! Wait sets and guards.

use std::cell::UnsafeCell;
use std::collections::HashMap;
use std::ffi::c_int;
use std::os::fd::IntoRawFd;

use myelin::{Guard, Key, Node, WaitSet};

use crate::error::{Failure, MYELIN_NOTHING, MYELIN_OK, enter, myelin_code};
use crate::node::{self, myelin_node};
use crate::server::{ServerHandle, myelin_server};
use crate::subscriber::{SubscriberHandle, myelin_subscriber};
use crate::{handle, text};

/// One thread that waits for many things: subscribers and servers of its node, guards, timers. One thread
/// at a time uses it.
pub enum myelin_wait_set {}

/// Ends a wait from elsewhere. Any thread may trigger it, and a signal handler.
pub enum myelin_guard {}

pub struct WaitSetHandle(UnsafeCell<Watched>);

struct Watched {
    set: WaitSet,
    /// What the program calls them.
    keys: HashMap<Key, u64>,
    /// Reported by the set, and not to the program yet.
    left: Vec<u64>,
}

/// Makes a wait set of a node; that has 31 at most.
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
        let made = Watched { set: made, keys: HashMap::new(), left: Vec::new() };
        let made = Box::new(WaitSetHandle(UnsafeCell::new(made)));
        set.write(handle::to_pointer(handle::insert(made)?));
        Ok(MYELIN_OK)
    })
}

/// Closes it; what it watched goes on.
///
/// # Safety
/// No other thread uses the handle meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_wait_set_close(set: *mut myelin_wait_set) -> myelin_code {
    // SAFETY: as the caller promises.
    enter(|| unsafe {
        drop(handle::remove::<WaitSetHandle>(handle::of_pointer(set))?);
        Ok(MYELIN_OK)
    })
}

/// Watches a subscriber of the set's node until it is removed or closed: `key`, of the program's choice,
/// is reported while there is a sample to take.
///
/// # Safety
/// Handles are used by this thread alone.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_wait_set_add(
    set: *mut myelin_wait_set,
    subscriber: *mut myelin_subscriber,
    key: u64,
) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        let watched = of(set)?;
        let subscriber = handle::get::<SubscriberHandle>(handle::of_pointer(subscriber))?;
        let added = subscriber.watch(&mut watched.set)?;
        watched.keys.insert(added, key);
        Ok(MYELIN_OK)
    })
}

/// As `myelin_wait_set_add`, of a server: `key` is reported while there is a request to take.
///
/// # Safety
/// As `myelin_wait_set_add`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_wait_set_add_server(
    set: *mut myelin_wait_set,
    server: *mut myelin_server,
    key: u64,
) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        let watched = of(set)?;
        let server = handle::get::<ServerHandle>(handle::of_pointer(server))?;
        let added = server.watch(&mut watched.set)?;
        watched.keys.insert(added, key);
        Ok(MYELIN_OK)
    })
}

/// Makes a guard, to be closed: triggering it reports `key`.
///
/// # Safety
/// As `myelin_wait_set_add`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_wait_set_guard(
    set: *mut myelin_wait_set,
    key: u64,
    guard: *mut *mut myelin_guard,
) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        text::put(guard, std::ptr::null_mut(), "guard")?;
        let watched = of(set)?;
        let made = watched.set.guard()?;
        watched.keys.insert(made.key(), key);
        guard.write(handle::to_pointer(handle::insert(Box::new(made))?));
        Ok(MYELIN_OK)
    })
}

/// Ends the wait that is under way, or else the next one. Any thread, and a signal handler.
///
/// # Safety
/// No other thread closes it meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_guard_trigger(guard: *mut myelin_guard) -> myelin_code {
    // SAFETY: as the caller promises.
    enter(|| unsafe {
        handle::get::<Guard>(handle::of_pointer(guard))?.trigger();
        Ok(MYELIN_OK)
    })
}

/// Closes a guard.
///
/// # Safety
/// No other thread uses the handle meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_guard_close(guard: *mut myelin_guard) -> myelin_code {
    // SAFETY: as the caller promises.
    enter(|| unsafe {
        drop(handle::remove::<Guard>(handle::of_pointer(guard))?);
        Ok(MYELIN_OK)
    })
}

/// Reports `key` once every `period_ns`, the first time one period from now.
///
/// # Safety
/// As `myelin_wait_set_add`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_wait_set_timer(
    set: *mut myelin_wait_set,
    period_ns: u64,
    key: u64,
) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        let watched = of(set)?;
        let added = watched.set.timer(text::duration(period_ns))?;
        watched.keys.insert(added, key);
        Ok(MYELIN_OK)
    })
}

/// Watches no longer what has this key. MYELIN_NOTHING if nothing had.
///
/// # Safety
/// As `myelin_wait_set_add`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_wait_set_remove(
    set: *mut myelin_wait_set,
    key: u64,
) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        let watched = of(set)?;
        let its: Vec<Key> =
            watched.keys.iter().filter(|(_, its)| **its == key).map(|(its, _)| *its).collect();
        for its in &its {
            watched.set.remove(*its);
            watched.keys.remove(its);
        }
        watched.left.retain(|left| *left != key);
        Ok(if its.is_empty() { MYELIN_NOTHING } else { MYELIN_OK })
    })
}

/// Waits until something is ready, for `limit_ns` at most (MYELIN_FOREVER: no limit), and writes the keys
/// of what is, `capacity` at most, and their number. More are reported by the next wait. MYELIN_NOTHING if
/// nothing is. A subscriber from which not all has been taken is ready again.
///
/// # Safety
/// `keys` has room for `capacity`, and as `myelin_wait_set_add`.
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
        let Watched { set, keys: names, left } = of(set)?;
        text::put(count, 0, "count")?;
        if capacity == 0 || keys.is_null() {
            return Err(Failure::setting("keys has no room; pass an array of at least one"));
        }
        if left.is_empty() {
            let ready = set.wait(text::duration(limit_ns))?;
            left.extend(ready.iter().filter_map(|key| names.get(key)));
        }
        let told = left.len().min(capacity);
        std::ptr::copy_nonoverlapping(left.as_ptr(), keys, told);
        left.drain(..told);
        count.write(told);
        Ok(if told == 0 { MYELIN_NOTHING } else { MYELIN_OK })
    })
}

/// A descriptor for somebody's epoll, one, whatever the set watches. It is the program's: close it. When
/// it is readable, wait with a limit of 0 until nothing is reported.
///
/// # Safety
/// As `myelin_wait_set_add`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_wait_set_descriptor(
    set: *mut myelin_wait_set,
    descriptor: *mut c_int,
) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        let watched = of(set)?;
        text::put(descriptor, -1, "descriptor")?;
        descriptor.write(watched.set.descriptor()?.into_raw_fd());
        Ok(MYELIN_OK)
    })
}

/// How it waits: `enum myelin_wait`.
///
/// # Safety
/// As `myelin_wait_set_add`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_wait_set_set_wait(
    set: *mut myelin_wait_set,
    wait: i32,
) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        of(set)?.set.set_wait(node::wait(wait)?);
        Ok(MYELIN_OK)
    })
}

/// # Safety
/// One thread at a time uses a set, and no reference of an earlier call is left.
unsafe fn of<'a>(set: *mut myelin_wait_set) -> Result<&'a mut Watched, Failure> {
    // SAFETY: as the caller promises.
    let set = unsafe { handle::get::<WaitSetHandle>(handle::of_pointer(set))? };
    // SAFETY: as the caller promises.
    Ok(unsafe { &mut *set.0.get() })
}
