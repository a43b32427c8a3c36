//! The states of the matches of one endpoint of ours. Each side of a match has its own state; both
//! use the same names.

use std::collections::BTreeMap;

use crate::control_plane::protocol::{Timer, Timers};
use crate::error::Error;
use crate::topic::EndpointId;

/// A match with another endpoint, and its state.
#[derive(Debug)]
pub(super) struct Match {
    pub(super) state: State,
    /// The other side's process.
    pub(super) pid: u32,
    /// How long the next attempt is delayed; 0 if no attempt has failed.
    pause_ns: u64,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum State {
    /// At a publisher: the two fit, and the offer waits for room on the link.
    Queued,
    /// At a publisher: the offer has been sent. At a subscriber: it has come, and memory is being
    /// mapped.
    Offered,
    /// At a publisher: the subscriber has accepted, and its memory is being mapped. At a
    /// subscriber: it has accepted, and waits for the publisher to look at it.
    Accepted,
    /// Samples flow.
    Matched,
    /// One side has ended or refused the match: the reason, and when this side tries again. If it
    /// does not, the other side does, or neither.
    Refused { reason: String, again_ns: Option<u64> },
}

/// Why a side refuses a match.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    /// What is wrong, and what to do.
    pub(crate) reason: String,
    /// Whether the other side wrote invalid data.
    pub(crate) is_corrupt: bool,
    /// The match may be possible later.
    pub(crate) may_pass: bool,
}

/// The matches of one endpoint of ours, by the other side.
#[derive(Debug, Default)]
pub(super) struct Matches(BTreeMap<EndpointId, Match>);

impl Match {
    /// Whether it has not been refused.
    pub(super) fn is_active(&self) -> bool {
        !matches!(self.state, State::Refused { .. })
    }

    fn timer(&self, ours: EndpointId, other: EndpointId) -> Option<(u64, Timer)> {
        let State::Refused { again_ns, .. } = &self.state else { return None };
        again_ns.map(|due_ns| (due_ns, Timer::Match(ours, other)))
    }
}

impl Refusal {
    pub(crate) fn corrupt(what: &'static str) -> Refusal {
        Refusal::from(&Error::PeerCorrupt { what })
    }
}

impl From<&Error> for Refusal {
    fn from(error: &Error) -> Refusal {
        let is_corrupt = matches!(error, Error::PeerCorrupt { .. });
        let may_pass = !is_corrupt && !matches!(error, Error::LayoutVersion { .. });
        Refusal { reason: error.to_string(), is_corrupt, may_pass }
    }
}

impl Matches {
    pub(super) fn get(&self, other: EndpointId) -> Option<&Match> {
        self.0.get(&other)
    }

    /// Whether there is a match, or one is being made.
    pub(super) fn is_active(&self, other: EndpointId) -> bool {
        self.get(other).is_some_and(Match::is_active)
    }

    pub(super) fn is_in(&self, other: EndpointId, state: &State) -> bool {
        self.get(other).is_some_and(|each| each.state == *state)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (EndpointId, &Match)> {
        self.0.iter().map(|(other, each)| (*other, each))
    }

    /// Sets a match, new or not, to a state other than refused.
    pub(super) fn enter(
        &mut self,
        timers: &mut Timers,
        (ours, other): (EndpointId, EndpointId),
        state: State,
        pid: u32,
    ) {
        let is_matched = state == State::Matched;
        let new = || Match { state: State::Queued, pid, pause_ns: 0 };
        let each = self.0.entry(other).or_insert_with(new);
        cancel(timers, each.timer(ours, other));
        each.state = state;
        if is_matched {
            each.pause_ns = 0;
        }
    }

    /// Refuses an existing or pending match. Returns its previous state.
    pub(super) fn refuse(
        &mut self,
        timers: &mut Timers,
        (ours, other): (EndpointId, EndpointId),
        reason: String,
        now_ns: Option<u64>,
    ) -> Option<State> {
        let each = self.0.get_mut(&other)?;
        each.pause_ns = each.pause_ns.max(PAUSE_NS_MIN);
        let again_ns = now_ns.map(|now_ns| now_ns + each.pause_ns);
        let before = std::mem::replace(&mut each.state, State::Refused { reason, again_ns });
        timers.extend(each.timer(ours, other));
        Some(before)
    }

    /// The timer of a refused match is due. It is set again, with a longer delay after each
    /// attempt. False if there will be no further attempt.
    pub(super) fn put_off(
        &mut self,
        timers: &mut Timers,
        (ours, other): (EndpointId, EndpointId),
        now_ns: u64,
        tried: bool,
    ) -> bool {
        let Some(each) = self.0.get_mut(&other) else { return false };
        let before = each.timer(ours, other);
        let State::Refused { again_ns: Some(again_ns), .. } = &mut each.state else {
            return false;
        };
        let mut pause_ns = PAUSE_NS_MIN;
        if tried {
            each.pause_ns = (2 * each.pause_ns).min(PAUSE_NS_MAX);
            pause_ns = each.pause_ns;
        }
        *again_ns = now_ns + pause_ns;
        cancel(timers, before);
        timers.extend(each.timer(ours, other));
        true
    }

    pub(super) fn remove(
        &mut self,
        timers: &mut Timers,
        (ours, other): (EndpointId, EndpointId),
    ) -> Option<Match> {
        let removed = self.0.remove(&other)?;
        cancel(timers, removed.timer(ours, other));
        Some(removed)
    }

    /// Removes them all.
    pub(super) fn clear(
        &mut self,
        ours: EndpointId,
        timers: &mut Timers,
    ) -> BTreeMap<EndpointId, Match> {
        let all = std::mem::take(&mut self.0);
        all.iter().for_each(|(other, each)| cancel(timers, each.timer(ours, *other)));
        all
    }
}

fn cancel(timers: &mut Timers, timer: Option<(u64, Timer)>) {
    if let Some(timer) = timer {
        timers.remove(&timer);
    }
}

pub(super) const PAUSE_NS_MIN: u64 = 50_000_000;
pub(super) const PAUSE_NS_MAX: u64 = 1_000_000_000;
