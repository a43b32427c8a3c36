//! What waits for its turn on the link to a peer: endpoints of ours to announce, offers, the memory
//! of a publisher for its observers, and the answer to a query, in this order, because a message names only endpoints that have been
//! announced.
//!
//! It is sent in bursts: the next burst comes when the peer has made room for the whole last one.
//! So the link's own queue stays short however much waits, and a peer that is stopped for a while
//! costs no memory. Messages that a peer must get at once, such as the answer to an offer, do not
//! wait here: a peer that causes them without reading fills the queue of its link, and the link
//! ends.
//!
//! | waits | memory |
//! |---|---|
//! | endpoints | the id of the last one announced |
//! | offers | one for each match that is `Queued` |
//! | reply to a request for a publisher | one: until it is sent, another request ends the link |
//! | answer | one: until it is sent, another query ends the link |

use std::collections::BTreeSet;

use crate::control_plane::message::ControlMessage;
use crate::control_plane::protocol::observe::Reply;
use crate::control_plane::protocol::query::Report;
use crate::control_plane::protocol::{OutOfOrder, Pair};
use crate::topic::EndpointId;

#[derive(Debug)]
pub(super) struct Outbox {
    /// Endpoints of ours up to this id have been announced.
    announced: EndpointId,
    /// Whether all endpoints that we had when we met have been announced.
    is_ready: bool,
    /// All that are [`Queued`](super::matches::State::Queued), and no others.
    offers: BTreeSet<Pair>,
    reply: Option<Reply>,
    answer: Option<Box<Report>>,
    /// Whether a burst is on its way.
    is_draining: bool,
}

/// What is sent next.
pub(super) enum Next {
    /// The announcement of an endpoint of ours.
    Endpoint(EndpointId),
    /// The offer of a publisher of ours.
    Offer(Pair),
    /// The next part of the memory of a publisher of ours.
    Reply(Reply),
    /// The segments of endpoints of ours from this id on, the next part of the answer to a query.
    Segments(EndpointId),
    Message(ControlMessage),
}

impl Outbox {
    /// For a peer of `node`, which knows no endpoint of it.
    pub(super) fn new(node: u64) -> Outbox {
        let (announced, offers) = (node, BTreeSet::new());
        Outbox { announced, is_ready: false, offers, reply: None, answer: None, is_draining: false }
    }

    /// Takes what is sent next; `endpoint_after` is our endpoint with the next id.
    pub(super) fn next(
        &mut self,
        endpoint_after: impl FnOnce(EndpointId) -> Option<EndpointId>,
    ) -> Option<Next> {
        if let Some(id) = endpoint_after(self.announced) {
            self.announced = id;
            return Some(Next::Endpoint(id));
        }
        if !self.is_ready {
            self.is_ready = true;
            return Some(Next::Message(ControlMessage::Ready));
        }
        if let Some(pair) = self.offers.pop_first() {
            return Some(Next::Offer(pair));
        }
        if let Some(reply) = self.reply.take() {
            return Some(Next::Reply(reply));
        }
        let answer = self.answer.as_mut()?;
        if let Some(from) = answer.segments_from() {
            return Some(Next::Segments(from));
        }
        let message = answer.next();
        // After the last part, the peer may query again.
        self.answer.take_if(|answer| answer.is_sent());
        message.map(Next::Message)
    }

    /// Whether the peer has been informed of an endpoint of ours, and must be informed of its end.
    pub(super) fn has_announced(&self, id: EndpointId) -> bool {
        id <= self.announced
    }

    pub(super) fn add_offer(&mut self, pair: Pair) {
        self.offers.insert(pair);
    }

    /// Cancels an offer, if it still waits.
    pub(super) fn cancel_offer(&mut self, pair: Pair) {
        self.offers.remove(&pair);
    }

    /// Fails while the last query is not answered.
    pub(super) fn check_may_query(&self) -> Result<(), OutOfOrder> {
        if self.answer.is_some() { Err(OutOfOrder) } else { Ok(()) }
    }

    /// Fails while the last request for a publisher is not answered.
    pub(super) fn check_may_observe(&self) -> Result<(), OutOfOrder> {
        if self.reply.is_some() { Err(OutOfOrder) } else { Ok(()) }
    }

    /// The memory of a publisher, or the rest of it.
    pub(super) fn add_reply(&mut self, reply: Reply) {
        self.reply = Some(reply);
    }

    pub(super) fn add_answer(&mut self, answer: Report) {
        self.answer = Some(Box::new(answer));
    }

    /// The segments of endpoints before this id have been sent; `None`: all of them.
    pub(super) fn continue_segments(&mut self, from: Option<EndpointId>) {
        if let Some(answer) = &mut self.answer {
            answer.continue_segments(from);
        }
    }

    /// Whether a burst is on its way: nothing is sent meanwhile.
    pub(super) fn is_draining(&self) -> bool {
        self.is_draining
    }

    pub(super) fn set_draining(&mut self, is_draining: bool) {
        self.is_draining = is_draining;
    }

    /// How much waits beside announcements.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        let others = [self.is_draining, self.reply.is_some(), self.answer.is_some()];
        self.offers.len() + others.into_iter().filter(|it| *it).count()
    }

    #[cfg(test)]
    pub(super) fn offers(&self) -> impl Iterator<Item = Pair> {
        self.offers.iter().copied()
    }
}

/// How many messages are sent before the other side has to make room.
pub(super) const BURST_MESSAGES: usize = 32;
