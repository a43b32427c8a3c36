//! The publisher's side of a match.

use crate::control_plane::message::{ControlMessage, SegmentSize};
use crate::control_plane::protocol::matches::{Matches, Refusal, State};
use crate::control_plane::protocol::{Action, OURSELVES, Pair, Protocol, RemoteInfo};
use crate::event::Event;
use crate::limits::{MESSAGE_SEGMENTS_MAX, SUBSCRIBERS_MAX};
use crate::topic::EndpointId;

/// A publisher of this node.
#[derive(Debug)]
pub(super) struct LocalPublisher<D> {
    publication: D,
    segments: Vec<(SegmentSize, D)>,
    /// By subscriber.
    pub(super) matches: Matches,
}

impl<D> LocalPublisher<D> {
    pub(super) fn new(publication: D) -> Self {
        LocalPublisher { publication, segments: Vec::new(), matches: Matches::default() }
    }

    /// Its publication segment.
    pub(super) fn publication(&self) -> &D {
        &self.publication
    }

    /// Its slot segments, by number.
    pub(super) fn segments(&self) -> &[(SegmentSize, D)] {
        &self.segments
    }
}

impl<D: Clone> Protocol<D> {
    /// Offers a publisher of ours to a subscriber, unless this has been done, they do not fit, or
    /// the subscriber is ours, too, and ignores publishers of its own node.
    pub(super) fn offer(&mut self, pair: Pair) {
        let Pair { publisher, subscriber } = pair;
        let (pid, link) = (self.pid_of(subscriber), self.link_of(subscriber));
        let Some(theirs) = self.directory.get(subscriber) else { return };
        let Some(own) = self.directory.get(publisher) else { return };
        let Some(LocalPublisher { matches, .. }) = self.publishers.get_mut(&publisher) else {
            return;
        };
        let is_ignored = self.subscribers.get(&subscriber).is_some_and(|it| it.ignore_own_node);
        if !own.fits(theirs) || is_ignored || matches.is_active(subscriber) {
            return;
        }
        matches.enter(&mut self.timers, (publisher, subscriber), State::Queued, pid);
        match link {
            Some(OURSELVES) => drop(self.make_offer(pair)),
            Some(link) => self.offer_by(link, pair),
            None => {}
        }
    }

    /// Sends an offer that has waited for its turn. Returns how many messages it takes.
    pub(super) fn make_offer(&mut self, pair: Pair) -> usize {
        let Pair { publisher, subscriber } = pair;
        let Some(ours) = self.publishers.get_mut(&publisher) else { return 0 };
        let Some(pid) = ours.matches.get(subscriber).map(|each| each.pid) else { return 0 };
        if !ours.matches.is_in(subscriber, &State::Queued) {
            return 0;
        }
        ours.matches.enter(&mut self.timers, (publisher, subscriber), State::Offered, pid);
        let (publication, segments) = (ours.publication.clone(), ours.segments.clone());
        self.send_to(subscriber, ControlMessage::Offer { pair }, vec![publication]);
        for some in segments.chunks(MESSAGE_SEGMENTS_MAX) {
            self.send_segments(subscriber, publisher, some);
        }
        1 + segments.len().div_ceil(MESSAGE_SEGMENTS_MAX)
    }

    /// The arena of a publisher of ours has grown.
    pub(super) fn grown(&mut self, publisher: EndpointId, size: SegmentSize, segment: D) {
        let Some(ours) = self.publishers.get_mut(&publisher) else { return };
        let new = (size, segment);
        ours.segments.push(new.clone());
        let was_offered =
            |state: &State| matches!(state, State::Offered | State::Accepted | State::Matched);
        let offered = ours.matches.iter().filter(|(_, each)| was_offered(&each.state));
        let mut subscribers: Vec<_> = offered.map(|(subscriber, _)| subscriber).collect();
        // One message for each node; the ids of a node's endpoints are neighbours.
        subscribers.dedup_by_key(|subscriber| self.link_of(*subscriber));
        for subscriber in subscribers {
            self.send_segments(subscriber, publisher, std::slice::from_ref(&new));
        }
    }

    fn send_segments(
        &mut self,
        subscriber: EndpointId,
        publisher: EndpointId,
        some: &[(SegmentSize, D)],
    ) {
        let (segments, descriptors) = some.iter().cloned().unzip();
        self.send_to(subscriber, ControlMessage::Segments { publisher, segments }, descriptors);
    }

    /// A subscriber has accepted the offer.
    pub(super) fn accepted(&mut self, pair: Pair, connection: u32, descriptors: Vec<D>) {
        let Pair { publisher, subscriber } = pair;
        let Some(qos) = self.directory.get(subscriber).map(|theirs| *theirs.qos()) else { return };
        let Some(LocalPublisher { matches, .. }) = self.publishers.get_mut(&publisher) else {
            return;
        };
        let Some(each) = matches.get(subscriber) else { return };
        let pid = each.pid;
        match each.state {
            State::Offered => {
                matches.enter(&mut self.timers, (publisher, subscriber), State::Accepted, pid);
                let subscriber = RemoteInfo { pid, qos };
                self.actions.push(Action::Attach { pair, subscriber, connection, descriptors });
            }
            // It declined the previous offer, which we have withdrawn; its message has crossed this
            // offer, and we treat this offer as declined. It may have requested the next offer
            // before it accepted this one.
            State::Refused { again_ns: None, .. } | State::Queued => {
                let crossed = Refusal {
                    reason: "the offer was withdrawn meanwhile, and is made again".to_owned(),
                    is_corrupt: false,
                    may_pass: true,
                };
                self.withdraw(pair, crossed);
            }
            State::Refused { ref reason, .. } => {
                let reason = reason.clone();
                let withdrawn = ControlMessage::Withdrawn { pair, reason };
                self.send_to(subscriber, withdrawn, Vec::new());
            }
            State::Accepted | State::Matched => {}
        }
    }

    /// The subscriber's memory is mapped, or cannot be.
    pub(super) fn attached(&mut self, pair: Pair, result: Result<u64, Refusal>) {
        let Pair { publisher, subscriber } = pair;
        let Some(LocalPublisher { matches, .. }) = self.publishers.get_mut(&publisher) else {
            return;
        };
        let accepted = matches.get(subscriber).filter(|each| each.state == State::Accepted);
        let Some(pid) = accepted.map(|each| each.pid) else {
            // Within one node the subscriber may have found meanwhile that it cannot map a segment.
            return self.actions.extend(result.is_ok().then_some(Action::Detach { pair }));
        };
        match result {
            Ok(start) => {
                matches.enter(&mut self.timers, (publisher, subscriber), State::Matched, pid);
                let event = Event::Matched { endpoint: subscriber, pid };
                self.deliver(publisher, event);
                let matched = ControlMessage::Matched { pair, start };
                self.send_to(subscriber, matched, Vec::new());
            }
            Err(refusal) => {
                self.report_refusal(publisher, subscriber, &refusal);
                self.withdraw(pair, refusal);
            }
        }
    }

    fn withdraw(&mut self, pair: Pair, Refusal { reason, may_pass, .. }: Refusal) {
        let Pair { publisher, subscriber } = pair;
        let Some(LocalPublisher { matches, .. }) = self.publishers.get_mut(&publisher) else {
            return;
        };
        let again = may_pass.then_some(self.now_ns);
        matches.refuse(&mut self.timers, (publisher, subscriber), reason.clone(), again);
        self.cancel_offer(pair);
        self.send_to(subscriber, ControlMessage::Withdrawn { pair, reason }, Vec::new());
    }

    /// The subscriber's side has ended or refused the match.
    pub(super) fn declined(&mut self, pair: Pair, reason: String) {
        let Pair { publisher, subscriber } = pair;
        let Some(LocalPublisher { matches, .. }) = self.publishers.get_mut(&publisher) else {
            return;
        };
        if !matches.is_active(subscriber) {
            return;
        }
        let pid = matches.get(subscriber).map_or(0, |each| each.pid);
        let ids = (publisher, subscriber);
        let before = matches.refuse(&mut self.timers, ids, reason.clone(), None);
        self.cancel_offer(pair);
        self.report_refused(publisher, subscriber, reason);
        if before == Some(State::Matched) {
            self.actions.push(Action::Detach { pair });
            self.report_end(publisher, subscriber, pid, false);
        }
    }

    /// The subscriber has left or died.
    pub(super) fn lose_subscriber(&mut self, pair: Pair, died: bool) {
        let Pair { publisher, subscriber } = pair;
        let Some(LocalPublisher { matches, .. }) = self.publishers.get_mut(&publisher) else {
            return;
        };
        let ended = matches.remove(&mut self.timers, (publisher, subscriber));
        self.cancel_offer(pair);
        if let Some(ended) = ended.filter(|ended| ended.state == State::Matched) {
            self.actions.push(Action::Detach { pair });
            self.report_end(publisher, subscriber, ended.pid, died);
        }
    }

    /// Repeats an attempt at a match that failed some time ago.
    pub(super) fn offer_again(&mut self, pair: Pair) {
        let Pair { publisher, subscriber } = pair;
        let Some(LocalPublisher { matches, .. }) = self.publishers.get_mut(&publisher) else {
            return;
        };
        let matched = matches.iter().filter(|(_, each)| each.state == State::Matched).count();
        let has_room = matched < SUBSCRIBERS_MAX;
        matches.put_off(&mut self.timers, (publisher, subscriber), self.now_ns, has_room);
        if has_room {
            self.offer(pair);
        }
    }
}
