//! The end of an endless command: Ctrl-C, `kill`, a closed terminal.

use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::{flag, low_level};

/// The signals that end a command and that it waits for: SIGINT, SIGTERM and SIGHUP, without those that the
/// process was started to ignore. `nohup` ignores SIGHUP, and a script SIGINT in what it starts with `&`.
pub fn ending() -> impl Iterator<Item = i32> {
    [SIGINT, SIGHUP, SIGTERM].into_iter().filter(|signal| !is_ignored(*signal))
}

/// Whether this process ignores a signal, as it does if it was started so and nothing has changed it.
pub fn is_ignored(signal: i32) -> bool {
    let mut now = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: with a null action the call only writes the current one, which is read on success.
    unsafe {
        libc::sigaction(signal, std::ptr::null(), now.as_mut_ptr()) == 0
            && now.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

/// A flag that the [`ending`] signals set from now on, each time.
pub fn interruption() -> Arc<AtomicBool> {
    let interrupted = Arc::default();
    for signal in ending() {
        // The kernel refuses none of these; without them the signal ends the process.
        let _ = flag::register(signal, Arc::clone(&interrupted));
    }
    interrupted
}

/// Whether the user wants the end.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Set by the [`ending`] signals from now on. A second one ends the process at once.
    pub fn on_signals() -> Stop {
        let stop = Stop::default();
        for signal in ending() {
            // The kernel refuses none of these; without them the signal ends the process.
            let _ = flag::register_conditional_default(signal, stop.0.clone());
            let _ = flag::register(signal, stop.0.clone());
        }
        stop
    }

    /// Whether it is set.
    pub fn is_set(&self) -> bool {
        // ORDER: Relaxed: no other data depends on it.
        self.0.load(Ordering::Relaxed)
    }
}

/// How often the user has asked for the end of a command that has something to finish.
#[derive(Clone, Debug, Default)]
pub struct Stops(Arc<AtomicU32>);

impl Stops {
    /// Counts the [`ending`] signals from now on. The third one ends the process at once.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn on_signals() -> std::io::Result<Stops> {
        let stops = Stops::default();
        let mut signals = Signals::new(ending())?;
        let count = stops.0.clone();
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            for signal in signals.forever() {
                if count.fetch_add(1, Ordering::Relaxed) + 1 >= STOPS_MAX {
                    let _ = low_level::emulate_default_handler(signal);
                }
            }
        })?;
        Ok(stops)
    }

    /// How many there were.
    pub fn count(&self) -> u32 {
        // ORDER: Relaxed: no other data depends on it.
        self.0.load(Ordering::Relaxed)
    }
}

/// Whether somebody has sent SIGUSR1, which ends no process that has this.
#[derive(Clone, Debug, Default)]
pub struct Asked(Arc<AtomicBool>);

impl Asked {
    /// From now on.
    pub fn on_signal() -> Asked {
        let asked = Asked::default();
        // The kernel refuses it for no other signals than those that cannot be caught.
        let _ = flag::register(libc::SIGUSR1, asked.0.clone());
        asked
    }

    /// Whether there was one since the last call.
    pub fn take(&self) -> bool {
        // ORDER: Relaxed: no other data depends on it.
        self.0.swap(false, Ordering::Relaxed)
    }
}

/// A file that would become longer than the process may write (`RLIMIT_FSIZE`) is an error from now
/// on, and no signal that ends the process.
pub fn outlive_file_size_limit() {
    // The kernel refuses it for no other signals than those that cannot be caught.
    let _ = flag::register(libc::SIGXFSZ, Arc::default());
}

const STOPS_MAX: u32 = 3;
