//! The end of an endless command: Ctrl-C, `kill`, a closed terminal.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

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
