//! The thread that refreshes the view of a run in progress.
//!
//! It runs under SCHED_IDLE and stays off the CPUs of real-time threads, as the one that observes
//! (`observe::sampler`). A run that is over before its first refresh is not disturbed at all. What a
//! refresh costs is measured: after a dear one it sleeps so much longer that all of them stay below
//! [`COST_PERCENT_MAX`].

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;

use super::eta::Eta;
use crate::observe::sampler::{come_last, stay_off_real_time_cpus, thread_cpu_ns};
use crate::report::format::count;
use crate::run::watch::Running;

pub(super) struct Viewer {
    stop: Sender<()>,
    thread: JoinHandle<u64>,
}

impl Viewer {
    /// Shows `running` in `bar`, until it is told to stop or dropped; `eta` is the session's. When it
    /// returns, the thread is ready and asleep. `None` if there is no memory for one.
    pub(super) fn start(bar: ProgressBar, running: Running, eta: Eta) -> Option<Self> {
        let (stop, stopped) = mpsc::channel();
        let (ready, readiness) = mpsc::channel();
        let view = move || {
            stay_off_real_time_cpus(running.processes.iter().map(|(_, pid)| *pid));
            come_last();
            let _ = ready.send(());
            view(&bar, &running, &eta, &stopped)
        };
        let thread = std::thread::Builder::new().name("view".into()).spawn(view).ok()?;
        // Fails at once if it has panicked.
        let _ = readiness.recv();
        Some(Viewer { stop, thread })
    }

    /// The CPU time that refreshing took, in ns; `None` if it has panicked. Neither its beginning
    /// nor its end, which is when the run is over, counts.
    pub(super) fn stop(self) -> Option<u64> {
        drop(self.stop);
        self.thread.join().ok()
    }
}

fn view(bar: &ProgressBar, running: &Running, eta: &Eta, stopped: &Receiver<()>) -> u64 {
    let (begin_ns, run_begin) = (thread_cpu_ns(), Instant::now());
    let (mut spent_ns, mut pause) = (0, FIRST_REFRESH);
    while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
        let before_ns = thread_cpu_ns();
        let exchanges = running.exchanges();
        let part = running.part(exchanges, run_begin.elapsed());
        eta.show(bar, part, &messages(running, exchanges));
        let now_ns = thread_cpu_ns();
        let cost_ns = now_ns - before_ns;
        let cheap_ns = cost_ns as f64 * 100.0 / COST_PERCENT_MAX;
        pause = PAUSE.max(Duration::from_nanos(cheap_ns as u64));
        spent_ns = now_ns - begin_ns;
    }
    spent_ns
}

/// How far the run is.
fn messages(running: &Running, exchanges: u64) -> String {
    match (exchanges.checked_sub(running.warmup_messages()), running.messages()) {
        (None, _) => "  warming up".to_owned(),
        (Some(made), 0) => format!("  messages {}", count(made)),
        (Some(made), all) => format!("  messages {} of {}", count(made), count(all)),
    }
}

/// Runs shorter than this are left alone.
const FIRST_REFRESH: Duration = Duration::from_millis(500);
/// Between two of them, at least.
const PAUSE: Duration = Duration::from_millis(250);
/// What refreshing may cost, in per cent of a core; it comes on top of observing.
const COST_PERCENT_MAX: f64 = 0.1;
