//! What a program is told without asking: that endpoints of a topic are not matched, or not as one of
//! them wants. To the program's own `tracing` subscriber if it has set one, else on stderr.
//!
//! A node's thread says it, with no lock held: a `tracing` subscriber is code of the user's, and may publish what
//! it is given.

use std::any::Any;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::limits::{WARNINGS_A_SECOND_MAX, WARNINGS_MAX};
use crate::topic::EndpointId;

/// Why two endpoints do not match, or match and differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Warning {
    /// The endpoints, in any order; of a node that is refused itself 0 and its process. Both 0: whichever they
    /// are, it is said once for the topic.
    pub(crate) pair: (EndpointId, EndpointId),
    /// Empty if it concerns all of a node's.
    pub(crate) topic: String,
    /// Who they are, and their settings.
    pub(crate) sides: String,
    /// Why, and what to do.
    pub(crate) reason: String,
}

/// A node's warnings.
#[derive(Debug)]
pub(crate) struct Warnings {
    said: &'static Said,
    /// How many were said in the current second.
    second: (u64, u32),
    pending: Vec<Warning>,
}

/// What has been said, by whichever node of the process: two of them can be both sides of a pair. A hash
/// table of hashes of pairs and reasons, 0 where there is none. Not behind a lock, which a child of `fork`
/// could find taken for ever.
#[derive(Debug)]
struct Said([AtomicU64; WARNINGS_MAX]);

impl Said {
    const fn new() -> Said {
        Said([const { AtomicU64::new(0) }; WARNINGS_MAX])
    }

    /// Whether it is new. Where it is full, something else is forgotten.
    fn insert(&self, key: u64) -> bool {
        let places = (0..PROBES_MAX).map(|probe| &self.0[(key as usize + probe) % WARNINGS_MAX]);
        for place in places {
            // ORDER: Relaxed, here and below: a number that stands for itself.
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

static SAID: Said = Said::new();

/// Places that a key can be at.
const PROBES_MAX: usize = 16;

impl Default for Warnings {
    fn default() -> Warnings {
        Warnings { said: &SAID, second: (0, 0), pending: Vec::new() }
    }
}

impl Warnings {
    /// Takes a warning in, unless it has been before, or others would drown in so many.
    pub(crate) fn add(&mut self, mut warning: Warning, now_ns: u64) {
        // Of a peer's, which could write to a terminal what it likes.
        warning.reason = warning.reason.replace(char::is_control, "\u{fffd}");
        let (one, other) = warning.pair;
        let mut hasher = DefaultHasher::new();
        (one.min(other), one.max(other), &warning.topic, &warning.reason).hash(&mut hasher);
        let second = now_ns / 1_000_000_000;
        if self.second.0 != second {
            self.second = (second, 0);
        }
        if self.second.1 < WARNINGS_A_SECOND_MAX && self.said.insert(hasher.finish().max(1)) {
            self.second.1 += 1;
            self.pending.push(warning);
        }
    }

    /// Whether there are some to be said.
    pub(crate) fn are_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Those that are to be said.
    pub(crate) fn take(&mut self) -> Vec<Warning> {
        std::mem::take(&mut self.pending)
    }
}

impl Warning {
    /// Says it. No lock may be held: a `tracing` subscriber is the user's code.
    pub(crate) fn say(&self) {
        say(&self.topic, &self.sides, &self.reason);
    }
}

/// Warns of something about `sides`: to the program's own `tracing` subscriber if it has set one, else on
/// stderr. No lock may be held: that subscriber is the user's code.
pub fn say(topic: &str, sides: &str, reason: &str) {
    let is_unset = |to: &tracing::Dispatch| to.is::<tracing::subscriber::NoSubscriber>();
    let trace = || {
        let is_set = !tracing::dispatcher::get_default(is_unset);
        if is_set {
            tracing::warn!(target: "myelin", topic, sides, "{reason}");
        }
        is_set
    };
    if !catch_unwind(AssertUnwindSafe(trace)).unwrap_or(false) {
        // Not `eprintln`: it panics if stderr is closed.
        let _ = writeln!(std::io::stderr(), "myelin: {sides}: {reason}");
    }
}

/// Says that a function of the user's has panicked.
#[cold]
pub(crate) fn report_panic(topic: &str, function: &str, panic: &(dyn Any + Send)) {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let text = text.unwrap_or("without a message");
    report_failure(topic, function, &format!("it panicked: {text}; it stays set"));
}

/// Says that a function of the user's has failed, as a node says that endpoints do not match. `topic` is empty
/// if it is of no topic. No lock may be held: a `tracing` subscriber is the user's code.
#[cold]
pub fn report_failure(topic: &str, function: &str, reason: &str) {
    let of_topic = if topic.is_empty() { String::new() } else { format!(" of topic `{topic}`") };
    let sides = format!("{function}{of_topic}");
    let reason = reason.replace(char::is_control, "\u{fffd}");
    Warning { pair: (0, 0), topic: topic.to_owned(), sides, reason }.say();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warning(pair: (EndpointId, EndpointId), reason: &str) -> Warning {
        let (topic, sides) = ("t".to_owned(), "two".to_owned());
        Warning { pair, topic, sides, reason: reason.to_owned() }
    }

    /// Of a process of its own.
    fn warnings() -> Warnings {
        Warnings { said: Box::leak(Box::new(Said::new())), ..Warnings::default() }
    }

    #[test]
    fn each_pair_and_reason_is_said_once_by_all_nodes_of_a_process() {
        let mut warnings = warnings();
        let mut of_another = Warnings { said: warnings.said, ..Warnings::default() };
        for pair in [(1, 2), (2, 1), (1, 3)] {
            warnings.add(warning(pair, "a"), 0);
        }
        warnings.add(warning((1, 2), "b"), 0);
        warnings.add(warning((1, 2), "a"), 5_000_000_000);
        // Of another topic it is another one, also if the pair does not count.
        let of_another_topic = Warning { topic: "u".to_owned(), ..warning((0, 0), "c") };
        for each in [warning((0, 0), "c"), of_another_topic.clone(), warning((0, 0), "c")] {
            warnings.add(each, 0);
        }
        let mut said = vec![warning((1, 2), "a"), warning((1, 3), "a"), warning((1, 2), "b")];
        said.extend([warning((0, 0), "c"), of_another_topic]);
        assert_eq!(warnings.take(), said);
        assert!(warnings.take().is_empty());
        said.into_iter().for_each(|warning| of_another.add(warning, 0));
        assert!(of_another.take().is_empty());
    }

    #[test]
    fn a_peers_words_move_no_cursor() {
        let mut warnings = warnings();
        warnings.add(warning((1, 2), "\u{1b}[2J\nü"), 0);
        assert_eq!(warnings.take()[0].reason, "\u{fffd}[2J\u{fffd}ü");
    }

    #[test]
    fn a_flood_is_cut_and_what_comes_after_it_is_said_once() {
        let mut warnings = warnings();
        for second in 0..100 {
            for pair in 0..1_000 {
                warnings.add(warning((second, pair), "a"), second * 1_000_000_000);
            }
            assert_eq!(warnings.take().len(), WARNINGS_A_SECOND_MAX as usize);
        }
        warnings.add(warning((99, 1_000), "the newest"), 100_000_000_000);
        warnings.add(warning((99, 1_000), "the newest"), 101_000_000_000);
        assert_eq!(warnings.take().len(), 1, "of all that was said the newest is known");
    }
}
