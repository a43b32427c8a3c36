//! Signals as messages: so that a terminal is in its old state when the program stops or ends.

use std::mem::MaybeUninit;

use crate::signals::is_ignored;

/// Signals that are blocked in this thread and in all threads that it starts.
pub struct Blocked(libc::sigset_t);

/// Blocks these signals, without those that this process was started to ignore, as under `nohup`.
/// To be called before any thread is started.
pub fn block(signals: &[i32]) -> Blocked {
    let mut set = MaybeUninit::uninit();
    // SAFETY: the set is initialised by the first call. The others take valid numbers and pointers.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for &signal in signals.iter().filter(|it| !is_ignored(**it)) {
            libc::sigaddset(set.as_mut_ptr(), signal);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut());
        Blocked(set.assume_init())
    }
}

impl Blocked {
    /// Calls `send` in a thread of its own with each of them that comes, until it returns false.
    pub fn forward(self, send: impl Fn(i32) -> bool + Send + 'static) {
        std::thread::spawn(move || {
            let mut signal = 0;
            // SAFETY: set and number are valid for the call.
            while unsafe { libc::sigwait(&self.0, &mut signal) } == 0 && send(signal) {}
        });
    }
}

/// Does what the signal does without this module: stops or ends the process. Returns when it is
/// continued.
pub fn default_action(signal: i32) {
    let mut set = MaybeUninit::uninit();
    // SAFETY: the set is initialised by the first call. The others take valid numbers and pointers.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), signal);
        libc::raise(signal); // For this thread, which still blocks it.
        libc::pthread_sigmask(libc::SIG_UNBLOCK, set.as_ptr(), std::ptr::null_mut());
        libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut());
    }
}
