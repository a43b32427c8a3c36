//! Shared by all parts: an end, a clock, and texts for the events of a topic.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use myelin::{EndpointId, Event};
use signal_hook::consts::{SIGINT, SIGTERM};

/// Any error that ends a part. The supervisor starts the part again.
pub type Failure = Box<dyn std::error::Error>;

/// Set by Ctrl-C and SIGTERM. A part then leaves its loop and returns, so that everything is closed
/// in order. Without this nothing would break, but the others would report a death.
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    pub fn at_signals() -> std::io::Result<Stop> {
        let stop = Arc::default();
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&stop))?;
        }
        Ok(Stop(stop))
    }

    pub fn is_set(&self) -> bool {
        // ORDER: Relaxed; no other data depends on the flag.
        self.0.load(Ordering::Relaxed)
    }
}

/// No part waits for longer than this without checking [`Stop`] and its events.
pub const LOOK_AROUND: Duration = Duration::from_millis(100);

/// A fixed rate without drift: each tick is due one period after the previous due time.
pub struct Ticker {
    due: Instant,
    period: Duration,
}

impl Ticker {
    pub fn new(rate_hz: u32) -> Ticker {
        Ticker { due: Instant::now(), period: Duration::from_secs(1) / rate_hz }
    }

    pub fn wait(&mut self) {
        let now = Instant::now();
        // A small delay is made up for; ticks missed in a long stop are not.
        if self.due + Duration::from_millis(100) < now {
            self.due = now;
        }
        self.due += self.period;
        std::thread::sleep(self.due.saturating_duration_since(now));
    }
}

/// The monotonic clock: the same for all processes of a host, and never set back.
pub fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Reports which publisher's samples come: the first one's, and after a restart the next one's.
#[derive(Default)]
pub struct Source {
    known: Vec<EndpointId>,
}

impl Source {
    pub fn came_from(&mut self, publisher: EndpointId, part: &str, topic: &str) {
        if self.known.contains(&publisher) {
            return;
        }
        println!("{part}: {topic} comes from {publisher:x}");
        self.known.insert(0, publisher);
        self.known.truncate(KNOWN_MAX);
    }
}

/// Prints the events of a topic, and their meaning.
pub fn report(part: &str, topic: &str, events: &[Event]) {
    for event in events {
        let text = match event {
            Event::Matched { pid, .. } => format!("matched with {}", process(*pid)),
            Event::Unmatched { pid, died: false, .. } => format!("{} has left", process(*pid)),
            Event::Unmatched { pid, died: true, .. } => format!("{} has died", process(*pid)),
            Event::Incompatible { pid, reason, .. } | Event::Refused { pid, reason, .. } => {
                format!("{} cannot be matched: {reason}", process(*pid))
            }
            Event::DeadlineMissed { .. } => "nothing came in time".to_string(),
            Event::PassedOver { pid, .. } => format!("{} is late: passed over", process(*pid)),
            Event::CaughtUp { pid, .. } => format!("{} has caught up", process(*pid)),
            Event::Lost { samples, .. } => format!("{samples} samples lost"),
            Event::QosReduced { pid, reason, .. } => {
                format!("{} offers less: {reason}", process(*pid))
            }
            other => format!("{other:?}"),
        };
        println!("{part}: {topic}: {text}");
    }
}

fn process(pid: u32) -> String {
    match pid {
        0 => "a process on another host".to_string(),
        pid => format!("process {pid}"),
    }
}

/// How many lives of a publisher are remembered; a life that comes back after so many others is
/// reported again.
const KNOWN_MAX: usize = 16;
