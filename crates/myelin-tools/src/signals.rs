//! The end of an endless command: Ctrl-C, `kill`, a closed terminal.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::{flag, low_level};

/// Whether the user wants the end.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Set by SIGINT, SIGTERM and SIGHUP from now on. A second one ends the process at once.
    pub fn on_signals() -> Stop {
        let stop = Stop::default();
        for signal in [SIGINT, SIGTERM, SIGHUP] {
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
    /// Counts SIGINT, SIGTERM and SIGHUP from now on. The third one ends the process at once.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn on_signals() -> std::io::Result<Stops> {
        let stops = Stops::default();
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
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
