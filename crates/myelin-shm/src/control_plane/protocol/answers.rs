//! The subscriber's side of a match.

use crate::control_plane::message::{ControlMessage, PASSED_MIN, SegmentSize};
use crate::control_plane::protocol::matches::{Matches, Refusal, State};
use crate::control_plane::protocol::{
    Action, LocalSubscriber, OutOfOrder, Pair, Protocol, Reservation,
};
use crate::event::Event;
use crate::record::AnnouncedQos;
use crate::topic::EndpointId;

impl<D: Clone> Protocol<D> {
    /// Handles a publisher's offer.
    pub(super) fn offered(&mut self, pair: Pair, descriptors: Vec<D>) -> Result<(), OutOfOrder> {
        let Pair { publisher, subscriber } = pair;
        let pid = self.pid_of(publisher);
        let Some(LocalSubscriber { matches, .. }) = self.subscribers.get_mut(&subscriber) else {
            return Ok(()); // the subscriber has been dropped
        };
        let (theirs, own) = (self.directory.get(publisher), self.directory.get(subscriber));
        let (theirs, own) = (theirs.ok_or(OutOfOrder)?, own.ok_or(OutOfOrder)?);
        if !own.fits(theirs) {
            return Err(OutOfOrder);
        }
        if !matches.is_active(publisher) {
            matches.enter(&mut self.timers, (subscriber, publisher), State::Offered, pid);
            self.actions.push(Action::Reserve { pair, descriptors });
        }
        Ok(())
    }

    /// The publisher's memory is mapped, or cannot be.
    pub(super) fn reserved(&mut self, pair: Pair, result: Result<Reservation<D>, Refusal>) {
        let Pair { publisher, subscriber } = pair;
        let Some(matches) = self.matches_of(subscriber) else { return };
        let offered = matches.get(publisher).filter(|each| each.state == State::Offered);
        let Some(pid) = offered.map(|each| each.pid) else {
            let release = Action::Release { pair, had_begun: false };
            return self.actions.extend(result.is_ok().then_some(release));
        };
        match result {
            Ok(Reservation { connection, passed }) => {
                self.enter_answer(pair, State::Accepted, pid);
                let wake_pipe = passed.len() == PASSED_MIN + 1;
                let accept = ControlMessage::Accept { pair, connection, wake_pipe };
                self.send_to(publisher, accept, passed);
            }
            Err(refusal) => self.decline(pair, refusal),
        }
    }

    /// Handles further slot segments of a publisher.
    pub(super) fn segments_came(
        &mut self,
        publisher: EndpointId,
        segments: &[SegmentSize],
        descriptors: &[D],
    ) {
        let Some(theirs) = self.directory.get(publisher) else { return };
        for subscriber in self.directory.fitting_of(self.node, theirs) {
            if self.matches_of(subscriber).is_some_and(|matches| matches.is_active(publisher)) {
                let pair = Pair { publisher, subscriber };
                let (segments, descriptors) = (segments.to_vec(), descriptors.to_vec());
                self.actions.push(Action::Map { pair, segments, descriptors });
            }
        }
    }

    /// Handles that the publisher looks at the subscriber now.
    pub(super) fn matched(&mut self, pair: Pair, start: u64) {
        let Pair { publisher, subscriber } = pair;
        let Some(qos) = self.directory.get(publisher).map(|theirs| *theirs.qos()) else { return };
        let Some(matches) = self.matches_of(subscriber) else { return };
        let accepted = matches.get(publisher).filter(|each| each.state == State::Accepted);
        let Some(pid) = accepted.map(|each| each.pid) else { return };
        self.begin(pair, Some(start), pid, qos);
    }

    /// Adds a proxy, which publishes to a subscriber of ours: its process has the number 0.
    pub(super) fn proxy_made(&mut self, pair: Pair, qos: AnnouncedQos) {
        let Some(own) = self.directory.get(pair.subscriber) else { return };
        if self.subscribers.contains_key(&pair.subscriber) {
            // A history comes from the other host; the proxy itself keeps none.
            let offered = AnnouncedQos { transient_local: own.qos().transient_local, ..qos };
            self.begin(pair, None, 0, offered);
        }
    }

    /// Begins the flow of samples.
    fn begin(&mut self, pair: Pair, start: Option<u64>, pid: u32, offered: AnnouncedQos) {
        let Pair { publisher, subscriber } = pair;
        self.enter_answer(pair, State::Matched, pid);
        self.actions.push(Action::Begin { pair, start });
        self.deliver(subscriber, Event::Matched { endpoint: publisher, pid });
        let Some(own) = self.directory.get(subscriber).filter(|it| !it.is_passive()) else {
            return;
        };
        for mismatch in AnnouncedQos::reductions(&offered, own.qos()) {
            let (endpoint, reason) = (publisher, mismatch.to_string());
            self.warn_of_topic(subscriber, publisher, reason.clone());
            let event = Event::QosReduced { endpoint, pid, mismatch, reason };
            self.deliver(subscriber, event);
        }
    }

    /// A subscriber of ours ends its match with a publisher, or does not begin it.
    pub(super) fn decline(&mut self, pair: Pair, refusal: Refusal) {
        let Pair { publisher, subscriber } = pair;
        let again = refusal.may_pass.then_some(self.now_ns);
        let reason = refusal.reason.clone();
        if self.refuse_answer(pair, reason.clone(), again, |protocol| {
            protocol.report_refusal(subscriber, publisher, &refusal);
        }) {
            let declined = ControlMessage::Declined { pair, reason };
            self.send_to(publisher, declined, Vec::new());
        }
    }

    /// Handles that the publisher's side has not begun the match after all.
    pub(super) fn withdrawn(&mut self, pair: Pair, reason: String) {
        let Pair { publisher, subscriber } = pair;
        self.refuse_answer(pair, reason.clone(), None, |protocol| {
            protocol.report_refused(subscriber, publisher, reason);
        });
    }

    /// The publisher has left or died.
    pub(super) fn lose_publisher(&mut self, pair: Pair, died: bool) {
        let Pair { publisher, subscriber } = pair;
        let Some(LocalSubscriber { matches, .. }) = self.subscribers.get_mut(&subscriber) else {
            return;
        };
        let ended = matches.remove(&mut self.timers, (subscriber, publisher));
        if let Some(ended) = ended {
            self.release(pair, ended.pid, &ended.state, died);
        }
    }

    /// Whether a connection is free for a publisher that was declined.
    pub(super) fn room_checked(&mut self, pair: Pair, is_free: bool) {
        let Pair { publisher, subscriber } = pair;
        let Some(LocalSubscriber { matches, .. }) = self.subscribers.get_mut(&subscriber) else {
            return;
        };
        let is_put_off =
            matches.put_off(&mut self.timers, (subscriber, publisher), self.now_ns, is_free);
        if is_put_off && is_free {
            self.send_to(publisher, ControlMessage::RequestOffer { pair }, Vec::new());
        }
    }

    fn matches_of(&self, subscriber: EndpointId) -> Option<&Matches> {
        self.subscribers.get(&subscriber).map(|ours| &ours.matches)
    }

    fn enter_answer(&mut self, Pair { publisher, subscriber }: Pair, state: State, pid: u32) {
        if let Some(LocalSubscriber { matches, .. }) = self.subscribers.get_mut(&subscriber) {
            matches.enter(&mut self.timers, (subscriber, publisher), state, pid);
        }
    }

    /// Refuses an existing or pending match, reports the reason, and ends the match. Whether there
    /// was one.
    fn refuse_answer(
        &mut self,
        pair: Pair,
        reason: String,
        again: Option<u64>,
        report: impl FnOnce(&mut Self),
    ) -> bool {
        let Pair { publisher, subscriber } = pair;
        let Some(LocalSubscriber { matches, .. }) = self.subscribers.get_mut(&subscriber) else {
            return false;
        };
        if !matches.is_active(publisher) {
            return false;
        }
        let pid = matches.get(publisher).map_or(0, |each| each.pid);
        let before = matches.refuse(&mut self.timers, (subscriber, publisher), reason, again);
        report(self);
        if let Some(before) = before {
            self.release(pair, pid, &before, false);
        }
        true
    }

    /// Releases the resources of a match in this state.
    fn release(&mut self, pair: Pair, pid: u32, state: &State, died: bool) {
        let had_begun = *state == State::Matched;
        // A match that was only offered has no resources yet: its reservation has failed.
        if had_begun || *state == State::Accepted {
            self.actions.push(Action::Release { pair, had_begun });
        }
        if had_begun {
            self.report_end(pair.subscriber, pair.publisher, pid, died);
        }
    }
}
