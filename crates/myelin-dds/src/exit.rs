//! The end of a process that has secured participants. OpenSSL frees what it has when a process ends, and a
//! thread of CycloneDDS that encrypts or decrypts meanwhile would crash. So they are closed before.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::ffi;

/// A call of CycloneDDS while it runs; whether it is counted.
pub(crate) struct Call(bool);

/// Begins a call; `None` if the process ends, and nothing of CycloneDDS may be used any more.
pub(crate) fn enter() -> Option<Call> {
    // ORDER: Relaxed: calls for secured participants come after their `insert`.
    if PROCESS.load(Ordering::Relaxed) == 0 {
        return Some(Call(false));
    }
    // ORDER: SeqCst, as in `close_all`: it sees this call, or this call sees that the process ends.
    CALLS.fetch_add(1, Ordering::SeqCst);
    let call = Call(true);
    (!has_ended()).then_some(call)
}

impl Drop for Call {
    fn drop(&mut self) {
        if self.0 {
            CALLS.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// Whether the process ends: what is left is the kernel's.
pub(crate) fn has_ended() -> bool {
    HAS_ENDED.load(Ordering::SeqCst)
}

/// Closes this entity, of a secured participant, when the process ends.
pub(crate) fn insert(root: i32) {
    secured().insert(root);
    let known = PROCESS.swap(std::process::id(), Ordering::Relaxed);
    if known == 0 {
        // OpenSSL is in use, and has registered its own function before: the last one runs first.
        // SAFETY: the function stays as long as what this is linked into.
        unsafe { libc::atexit(close_all) };
    } else if known != std::process::id() {
        CALLS.store(0, Ordering::SeqCst); // those that ran while it was forked
    }
}

/// It is closed.
pub(crate) fn remove(root: i32) {
    secured().remove(&root);
}

extern "C" fn close_all() {
    // A child of `fork` has none of the threads, and the lock may be held there for ever.
    if PROCESS.load(Ordering::Relaxed) != std::process::id() || secured().is_empty() {
        return;
    }
    HAS_ENDED.store(true, Ordering::SeqCst);
    let until = Instant::now() + LIMIT;
    while CALLS.load(Ordering::SeqCst) > 0 {
        if Instant::now() > until {
            return; // one that hangs: closing would hang, too
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let (roots, (to, closed)) = (secured().clone(), channel::<()>());
    // In another thread, which may be left behind.
    let closing = std::thread::Builder::new().name("myelin-close".to_owned()).spawn(move || {
        // SAFETY: no preconditions; no other call runs, nor begins.
        roots.into_iter().for_each(|root| _ = unsafe { ffi::bridge::myelin_dds_delete(root) });
        drop(to);
    });
    if closing.is_ok() {
        let _ = closed.recv_timeout(LIMIT);
    }
}

fn secured() -> MutexGuard<'static, BTreeSet<i32>> {
    static SECURED: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());
    SECURED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How long the end of a process waits at most; closing takes some milliseconds.
const LIMIT: Duration = Duration::from_secs(2);
/// Calls that run.
static CALLS: AtomicUsize = AtomicUsize::new(0);
static HAS_ENDED: AtomicBool = AtomicBool::new(false);
/// The process that has opened the last secured participant; 0: none was opened.
static PROCESS: AtomicU32 = AtomicU32::new(0);
