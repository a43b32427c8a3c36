//! Ctrl-C ends a wait at once, as does any signal that Python handles: Python runs its handlers in the
//! main thread, once that is back from the wait.
//!
//! While the main thread waits, the handler in front of Python's wakes it by the library's own interrupter,
//! which holds for a wait that is about to begin as well; so no signal comes too early.

use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};

use myelin::Interrupter;

/// What ends a wait.
pub enum Wakes {
    Interrupter(Interrupter),
}

impl Wakes {
    pub fn wake(&self) {
        match self {
            Wakes::Interrupter(interrupter) => interrupter.interrupt(),
        }
    }
}

/// A wait that signals end, if this is the main thread.
pub struct Scope<'a> {
    wait: Box<Wait<'a>>,
    /// The wait around this one, in whose callback we are.
    outer: *mut Wait<'static>,
    is_main: bool,
}

struct Wait<'a> {
    wakes: &'a Wakes,
    has_fired: AtomicBool,
}

impl<'a> Scope<'a> {
    /// Begins; to be followed by a look for signals that came before.
    pub fn enter(wakes: &'a Wakes) -> Scope<'a> {
        let mut wait = Box::new(Wait { wakes, has_fired: AtomicBool::new(false) });
        let is_main = is_main_thread();
        let mut outer = null_mut();
        if is_main {
            stand_in_front();
            outer = WAIT.swap((&raw mut *wait).cast(), Ordering::SeqCst);
        }
        Scope { wait, outer, is_main }
    }

    /// Whether a signal has come.
    pub fn has_fired(&self) -> bool {
        self.wait.has_fired.load(Ordering::SeqCst)
    }
}

impl Drop for Scope<'_> {
    fn drop(&mut self) {
        if !self.is_main {
            return;
        }
        WAIT.store(self.outer, Ordering::SeqCst);
        // ORDER: SeqCst, with the handler's: one that has seen the wait is counted before, and has let go
        // of it when the count is 0.
        while HANDLERS.load(Ordering::SeqCst) > 0 {
            std::hint::spin_loop();
        }
    }
}

extern "C" fn handle(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    HANDLERS.fetch_add(1, Ordering::SeqCst);
    let wait = WAIT.load(Ordering::SeqCst);
    if !wait.is_null() {
        // SAFETY: the scope that has put it there takes it back, and then waits for this handler.
        let wait = unsafe { &*wait };
        wait.has_fired.store(true, Ordering::SeqCst);
        wait.wakes.wake();
    }
    HANDLERS.fetch_sub(1, Ordering::SeqCst);
    let before = &BEFORE[signal as usize];
    let handler = before.handler.load(Ordering::SeqCst);
    // SAFETY: what the kernel would have called, with the arguments that its flag says.
    unsafe {
        if before.takes_info.load(Ordering::SeqCst) {
            let call: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) =
                std::mem::transmute(handler);
            call(signal, info, context);
        } else {
            let call: extern "C" fn(libc::c_int) = std::mem::transmute(handler);
            call(signal);
        }
    }
}

/// Puts our handler in front of those that there are. Whoever sets another one later is in front of ours
/// until the next wait.
fn stand_in_front() {
    for signal in SIGNALS {
        // SAFETY: both are valid for the call; the handler is one that a signal may run.
        unsafe {
            let mut action = std::mem::zeroed::<libc::sigaction>();
            let asked = libc::sigaction(signal, std::ptr::null(), &raw mut action);
            let handler = action.sa_sigaction;
            let is_ours = handler == handle as *const () as usize;
            if asked != 0 || is_ours || handler == libc::SIG_DFL || handler == libc::SIG_IGN {
                continue;
            }
            let before = &BEFORE[signal as usize];
            before.takes_info.store(action.sa_flags & libc::SA_SIGINFO != 0, Ordering::SeqCst);
            before.handler.store(handler, Ordering::SeqCst);
            action.sa_sigaction = handle as *const () as usize;
            action.sa_flags |= libc::SA_SIGINFO;
            libc::sigaction(signal, &raw const action, null_mut());
        }
    }
}

fn is_main_thread() -> bool {
    // SAFETY: no preconditions.
    unsafe { libc::syscall(libc::SYS_gettid) == libc::c_long::from(libc::getpid()) }
}

/// The handler that was there.
struct Before {
    handler: AtomicUsize,
    takes_info: AtomicBool,
}

/// By signal.
static BEFORE: [Before; 65] =
    [const { Before { handler: AtomicUsize::new(0), takes_info: AtomicBool::new(false) } }; 65];
/// The main thread's wait, or null.
static WAIT: AtomicPtr<Wait<'static>> = AtomicPtr::new(null_mut());
/// Handlers that may be looking at it.
static HANDLERS: AtomicU32 = AtomicU32::new(0);

/// Those that programs have handlers for.
const SIGNALS: [libc::c_int; 8] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGALRM,
    libc::SIGTERM,
    libc::SIGCHLD,
];
