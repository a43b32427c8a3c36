//! What a program is told without asking: that endpoints of a topic are not matched, or not as one of
//! them wants. To the program's own `tracing` subscriber if it has set one, else on stderr.
//!
//! It is said by whoever has let go of the node's lock: a subscriber may publish what it is told.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;

use crate::limits::{WARNINGS_A_SECOND_MAX, WARNINGS_MAX};
use crate::topic::EndpointId;

/// Why two endpoints do not match, or match and differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Warning {
    /// The endpoints, in any order; of a node that is refused itself 0 and its process.
    pub(crate) pair: (EndpointId, EndpointId),
    /// Empty if it concerns all of a node's.
    pub(crate) topic: String,
    /// Who they are, and their settings.
    pub(crate) sides: String,
    /// Why, and what to do.
    pub(crate) reason: String,
}

/// What has been said, so that nothing is said twice, and not too much.
#[derive(Debug, Default)]
pub(crate) struct Warnings {
    /// The newest: pairs and hashes of reasons.
    said: VecDeque<(EndpointId, EndpointId, u64)>,
    /// How many were said in the current second.
    second: (u64, u32),
    pending: Vec<Warning>,
}

impl Warnings {
    /// Takes a warning in, unless it has been before, or others would drown in so many.
    pub(crate) fn add(&mut self, mut warning: Warning, now_ns: u64) {
        // Of a peer's, which could write to a terminal what it likes.
        warning.reason = warning.reason.replace(char::is_control, "\u{fffd}");
        let (one, other) = warning.pair;
        let mut hasher = DefaultHasher::new();
        warning.reason.hash(&mut hasher);
        let key = (one.min(other), one.max(other), hasher.finish());
        let second = now_ns / 1_000_000_000;
        if self.second.0 != second {
            self.second = (second, 0);
        }
        if self.said.contains(&key) || self.second.1 == WARNINGS_A_SECOND_MAX {
            return;
        }
        self.second.1 += 1;
        if self.said.len() == WARNINGS_MAX {
            self.said.pop_front();
        }
        self.said.push_back(key);
        self.pending.push(warning);
    }

    /// Those that are to be said.
    pub(crate) fn take(&mut self) -> Vec<Warning> {
        std::mem::take(&mut self.pending)
    }
}

impl Warning {
    /// Says it. Not to be called with a lock held that a publisher may want.
    pub(crate) fn say(&self) {
        let Warning { topic, sides, reason, .. } = self;
        let is_unset = |to: &tracing::Dispatch| to.is::<tracing::subscriber::NoSubscriber>();
        if tracing::dispatcher::get_default(is_unset) {
            // Not `eprintln`: it panics if stderr is closed.
            let _ = writeln!(std::io::stderr(), "myelin: {sides}: {reason}");
        } else {
            tracing::warn!(target: "myelin", topic, sides, "{reason}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warning(pair: (EndpointId, EndpointId), reason: &str) -> Warning {
        let (topic, sides) = ("t".to_owned(), "two".to_owned());
        Warning { pair, topic, sides, reason: reason.to_owned() }
    }

    #[test]
    fn each_pair_and_reason_is_said_once() {
        let mut warnings = Warnings::default();
        for pair in [(1, 2), (2, 1), (1, 3)] {
            warnings.add(warning(pair, "a"), 0);
        }
        warnings.add(warning((1, 2), "b"), 0);
        warnings.add(warning((1, 2), "a"), 5_000_000_000);
        let said = [warning((1, 2), "a"), warning((1, 3), "a"), warning((1, 2), "b")];
        assert_eq!(warnings.take(), said);
        assert!(warnings.take().is_empty());
    }

    #[test]
    fn a_peers_words_move_no_cursor() {
        let mut warnings = Warnings::default();
        warnings.add(warning((1, 2), "\u{1b}[2J\nü"), 0);
        assert_eq!(warnings.take()[0].reason, "\u{fffd}[2J\u{fffd}ü");
    }

    #[test]
    fn a_flood_is_cut_and_takes_no_memory() {
        let mut warnings = Warnings::default();
        for second in 0..100 {
            for pair in 0..1_000 {
                warnings.add(warning((second, pair), "a"), second * 1_000_000_000);
            }
            assert_eq!(warnings.take().len(), WARNINGS_A_SECOND_MAX as usize);
        }
        assert_eq!(warnings.said.len(), WARNINGS_MAX);
    }
}
