//! Warnings that a program gets without asking: endpoints of a topic are not matched, or not with
//! the settings that one of them requests. They go to the program's own `tracing` subscriber if it
//! has set one, otherwise to stderr.
//!
//! A node's thread writes them, with no lock held: a `tracing` subscriber is user code, and may
//! publish the warning.

use std::any::Any;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::limits::{WARNINGS_A_SECOND_MAX, WARNINGS_MAX};
use crate::topic::EndpointId;

/// The reason why two endpoints do not match, or match with reduced settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Warning {
    /// The endpoints, in any order; for a node that is refused, 0 and its process. If both are 0,
    /// the warning is written once for the topic, whichever the endpoints are.
    pub(crate) pair: (EndpointId, EndpointId),
    /// Empty if it concerns all endpoints of a node.
    pub(crate) topic: String,
    /// The endpoints and their settings.
    pub(crate) sides: String,
    /// The reason, and what to do.
    pub(crate) reason: String,
}

/// A node's warnings.
#[derive(Debug)]
pub(crate) struct Warnings {
    written: &'static Written,
    /// How many were written in the current second.
    second: (u64, u32),
    pending: Vec<Warning>,
}

/// The warnings written so far by any node of the process: two of its nodes can be both sides of a
/// pair. It is a hash table of hashes of pairs and reasons; 0 is an empty place. It is not behind a
/// lock, which a child of `fork` could find taken for ever.
#[derive(Debug)]
struct Written([AtomicU64; WARNINGS_MAX]);

impl Written {
    const fn new() -> Written {
        Written([const { AtomicU64::new(0) }; WARNINGS_MAX])
    }

    /// Whether the key is new. If the table is full, another key is forgotten.
    fn insert(&self, key: u64) -> bool {
        let places = (0..PROBES_MAX).map(|probe| &self.0[(key as usize + probe) % WARNINGS_MAX]);
        for place in places {
            // ORDER: Relaxed, here and below: no other data depends on the number.
            let order = Ordering::Relaxed;
            match place.compare_exchange(0, key, order, order) {
                Ok(_) => return true,
                Err(there) if there == key => return false,
                Err(_) => {}
            }
        }
        let oldest = key.rotate_left(32) as usize % PROBES_MAX; // any of them
        self.0[(key as usize + oldest) % WARNINGS_MAX].store(key, Ordering::Relaxed);
        true
    }
}

static WRITTEN: Written = Written::new();

/// How many places there are for a key.
const PROBES_MAX: usize = 16;

impl Default for Warnings {
    fn default() -> Warnings {
        Warnings { written: &WRITTEN, second: (0, 0), pending: Vec::new() }
    }
}

impl Warnings {
    /// Adds a warning, unless it was written before, or there are too many others.
    pub(crate) fn add(&mut self, mut warning: Warning, now_ns: u64) {
        // The text comes from a peer, which could otherwise write control characters to a terminal.
        warning.reason = warning.reason.replace(char::is_control, "\u{fffd}");
        let (one, other) = warning.pair;
        let mut hasher = DefaultHasher::new();
        (one.min(other), one.max(other), &warning.topic, &warning.reason).hash(&mut hasher);
        let second = now_ns / 1_000_000_000;
        if self.second.0 != second {
            self.second = (second, 0);
        }
        if self.second.1 < WARNINGS_A_SECOND_MAX && self.written.insert(hasher.finish().max(1)) {
            self.second.1 += 1;
            self.pending.push(warning);
        }
    }

    /// Whether there are warnings to write.
    pub(crate) fn are_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// The warnings to write.
    pub(crate) fn take(&mut self) -> Vec<Warning> {
        std::mem::take(&mut self.pending)
    }
}

impl Warning {
    /// Writes the warning. No lock may be held: a `tracing` subscriber is user code.
    pub(crate) fn write(&self) {
        warn(&self.topic, &self.sides, &self.reason);
    }
}

/// Warns about `sides`: to the program's own `tracing` subscriber if it has set one, otherwise to
/// stderr. No lock may be held: that subscriber is user code.
pub fn warn(topic: &str, sides: &str, reason: &str) {
    let is_unset = |to: &tracing::Dispatch| to.is::<tracing::subscriber::NoSubscriber>();
    let trace = || {
        let is_set = !tracing::dispatcher::get_default(is_unset);
        if is_set {
            tracing::warn!(target: "myelin", topic, sides, "{reason}");
        }
        is_set
    };
    if !catch_unwind(AssertUnwindSafe(trace)).unwrap_or(false) {
        // `eprintln` would panic if stderr is closed.
        let _ = writeln!(std::io::stderr(), "myelin: {sides}: {reason}");
    }
}

/// Reports a panic of a user's function.
#[cold]
pub(crate) fn report_panic(topic: &str, function: &str, panic: &(dyn Any + Send)) {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let text = text.unwrap_or("without a message");
    report_failure(topic, function, &format!("it panicked: {text}; the function stays registered"));
}

/// Reports a failure of a user's function, in the same way as a mismatch. `topic` is empty if the
/// function belongs to no topic. No lock may be held: a `tracing` subscriber is user code.
#[cold]
pub fn report_failure(topic: &str, function: &str, reason: &str) {
    let of_topic = if topic.is_empty() { String::new() } else { format!(" of topic `{topic}`") };
    let sides = format!("{function}{of_topic}");
    let reason = reason.replace(char::is_control, "\u{fffd}");
    Warning { pair: (0, 0), topic: topic.to_owned(), sides, reason }.write();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warning(pair: (EndpointId, EndpointId), reason: &str) -> Warning {
        let (topic, sides) = ("t".to_owned(), "two".to_owned());
        Warning { pair, topic, sides, reason: reason.to_owned() }
    }

    /// The warnings of a process of their own.
    fn warnings() -> Warnings {
        Warnings { written: Box::leak(Box::new(Written::new())), ..Warnings::default() }
    }

    #[test]
    fn each_pair_and_reason_is_reported_once_per_process() {
        let mut warnings = warnings();
        let mut of_another = Warnings { written: warnings.written, ..Warnings::default() };
        for pair in [(1, 2), (2, 1), (1, 3)] {
            warnings.add(warning(pair, "a"), 0);
        }
        warnings.add(warning((1, 2), "b"), 0);
        warnings.add(warning((1, 2), "a"), 5_000_000_000);
        // A warning for another topic is a different one, even if the pair does not count.
        let of_another_topic = Warning { topic: "u".to_owned(), ..warning((0, 0), "c") };
        for each in [warning((0, 0), "c"), of_another_topic.clone(), warning((0, 0), "c")] {
            warnings.add(each, 0);
        }
        let mut expected = vec![warning((1, 2), "a"), warning((1, 3), "a"), warning((1, 2), "b")];
        expected.extend([warning((0, 0), "c"), of_another_topic]);
        assert_eq!(warnings.take(), expected);
        assert!(warnings.take().is_empty());
        expected.into_iter().for_each(|warning| of_another.add(warning, 0));
        assert!(of_another.take().is_empty());
    }

    #[test]
    fn control_characters_of_a_peer_are_replaced() {
        let mut warnings = warnings();
        warnings.add(warning((1, 2), "\u{1b}[2J\nü"), 0);
        assert_eq!(warnings.take()[0].reason, "\u{fffd}[2J\u{fffd}ü");
    }

    #[test]
    fn a_flood_of_warnings_is_cut_and_later_ones_are_reported_once() {
        let mut warnings = warnings();
        for second in 0..100 {
            for pair in 0..1_000 {
                warnings.add(warning((second, pair), "a"), second * 1_000_000_000);
            }
            assert_eq!(warnings.take().len(), WARNINGS_A_SECOND_MAX as usize);
        }
        warnings.add(warning((99, 1_000), "the newest"), 100_000_000_000);
        warnings.add(warning((99, 1_000), "the newest"), 101_000_000_000);
        assert_eq!(warnings.take().len(), 1, "only the newest are known");
    }
}
