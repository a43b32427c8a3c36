//! A node's answer to a query: the segments in which its endpoints count, the states of their
//! matches, and the schemas of its types; or one schema alone.
//!
//! The segments are sent once: a node keeps them mapped (`counters`), reads them without the peer, and
//! asks only for those of newer endpoints, which have greater ids.
//!
//! A *graph query* goes to all peers, a *schema query* to one. Each peer has one query at a time, and
//! answers in bursts like all messages, so neither side has more messages on the way than the other has room for. Answers come
//! in the order of their ids and within limits, otherwise the peer is dropped; a peer that does not
//! answer gets no further query.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::vec::IntoIter;

use crate::control_plane::directory::node_of;
use crate::control_plane::message::{ControlMessage, fitting_matches};
use crate::control_plane::protocol::graph::{Counters, MatchInfo};
use crate::control_plane::protocol::links::Peer;
use crate::control_plane::protocol::{Action, OutOfOrder, Protocol};
use crate::limits::{
    ENCODING_BYTES_MAX, MATCHES_REPORTED_MAX, MESSAGE_SCHEMA_BYTES_MAX, MESSAGE_SEGMENTS_MAX,
    SCHEMA_BYTES_MAX, SCHEMAS_BYTES_MAX,
};
use crate::record::Schema;
use crate::topic::EndpointId;

/// Counters of endpoints, by id.
pub(crate) type Counted = BTreeMap<EndpointId, Counters>;

/// The rest of the answer to a peer's query.
#[derive(Debug)]
pub(super) struct Report {
    /// The segments of endpoints from this id on are still to be sent, if there are any.
    segments_from: Option<EndpointId>,
    matches: IntoIter<MatchInfo>,
    schemas: IntoIter<(u64, Arc<Schema>)>,
    /// A schema, of which this rest must be sent.
    schema: Option<(u64, Arc<Schema>, usize)>,
    /// The last message, until it is sent.
    end: Option<ControlMessage>,
}

/// The state of our queries to a peer.
#[derive(Debug, Default)]
pub(super) struct Query {
    /// The query that it has not answered completely, and its answer so far.
    pending: Option<(Question, Answer)>,
    /// The queries that it gets after that.
    waiting: VecDeque<Question>,
    /// The newest graph query when the peer was queried for the graph last.
    begun: u64,
    /// The newest complete answer to a graph query, and [`begun`](Self::begun) of it.
    answered: Option<(u64, Answer)>,
    /// The segments of its endpoints before this id have come.
    segments_from: EndpointId,
    /// The answers to schema queries.
    schemas: BTreeMap<u64, Arc<Schema>>,
}

/// What a query asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Question {
    Graph,
    /// The schema of the type with this hash.
    Schema(u64),
}

/// A peer's answer.
#[derive(Debug, Default)]
pub(super) struct Answer {
    pub(super) matches: Vec<MatchInfo>,
    pub(super) schemas: BTreeMap<u64, Arc<Schema>>,
    /// The beginning of the next schema.
    schema: Option<(u64, String, Vec<u8>)>,
    schemas_bytes: usize,
    /// Whether it was not cut off at a limit.
    pub(super) is_complete: bool,
}

/// The queries of this node's users.
#[derive(Debug, Default)]
pub(super) struct Queries {
    /// How many graph queries have begun.
    begun: u64,
    /// How many queries of both kinds run.
    pub(super) open: usize,
}

impl Report {
    fn new(
        segments_from: Option<EndpointId>,
        mut matches: Vec<MatchInfo>,
        schemas: &BTreeMap<u64, Arc<Schema>>,
    ) -> Self {
        let mut is_complete = matches.len() <= MATCHES_REPORTED_MAX;
        matches.truncate(MATCHES_REPORTED_MAX);
        let mut sent = Vec::new();
        let mut bytes = 0;
        for (type_hash, schema) in schemas {
            bytes += schema.content.len();
            if bytes > SCHEMAS_BYTES_MAX {
                is_complete = false;
                break;
            }
            sent.push((*type_hash, schema.clone()));
        }
        Report {
            segments_from,
            matches: matches.into_iter(),
            schemas: sent.into_iter(),
            schema: None,
            end: Some(ControlMessage::Answered { is_complete }),
        }
    }

    /// The answer to a schema query.
    fn of_schema(type_hash: u64, schema: Option<Arc<Schema>>) -> Self {
        Report::new(None, Vec::new(), &schema.map(|it| (type_hash, it)).into_iter().collect())
    }

    pub(super) fn is_sent(&self) -> bool {
        self.end.is_none()
    }

    pub(super) fn segments_from(&self) -> Option<EndpointId> {
        self.segments_from
    }

    pub(super) fn continue_segments(&mut self, from: Option<EndpointId>) {
        self.segments_from = from;
    }

    /// The next message after the segments; `None` at the end.
    pub(super) fn next(&mut self) -> Option<ControlMessage> {
        let count = fitting_matches(self.matches.as_slice());
        if count > 0 {
            let matches = self.matches.by_ref().take(count).collect();
            return Some(ControlMessage::MatchesReported { matches });
        }
        let begun = self.schema.take();
        let next = begun.or_else(|| self.schemas.next().map(|(hash, schema)| (hash, schema, 0)));
        let Some((type_hash, schema, from)) = next else { return self.end.take() };
        let rest = &schema.content[from..];
        let part = rest[..rest.len().min(MESSAGE_SCHEMA_BYTES_MAX)].to_vec();
        let to = from + part.len();
        let (encoding, is_last) = (schema.encoding.to_string(), to == schema.content.len());
        self.schema = (!is_last).then_some((type_hash, schema, to));
        Some(ControlMessage::Schema { type_hash, encoding, part, is_last })
    }
}

impl Query {
    /// Adds a query; `begun` is the newest graph query. Returns the message for it, unless the peer
    /// has to answer another one before.
    fn add(&mut self, question: Question, begun: u64) -> Option<ControlMessage> {
        // What the peer has answered so far of the graph may be older than this query.
        let is_asked = question != Question::Graph && self.is_unanswered(question);
        if is_asked || self.waiting.contains(&question) {
            return None;
        }
        self.waiting.push_back(question);
        self.next(begun)
    }

    /// The message for the next query, if the peer has answered the last one.
    fn next(&mut self, begun: u64) -> Option<ControlMessage> {
        if self.pending.is_some() {
            return None;
        }
        let question = self.waiting.pop_front()?;
        self.pending = Some((question, Answer::default()));
        Some(match question {
            Question::Graph => {
                self.begun = begun;
                ControlMessage::Query { from: self.segments_from }
            }
            Question::Schema(type_hash) => ControlMessage::QuerySchema { type_hash },
        })
    }

    fn is_unanswered(&self, question: Question) -> bool {
        let is_pending = self.pending.as_ref().is_some_and(|(pending, _)| *pending == question);
        is_pending || self.waiting.contains(&question)
    }

    /// It may never answer.
    fn is_silent(&self, graph_query: u64) -> bool {
        self.is_unanswered(Question::Graph) && self.answer(graph_query).is_none()
    }

    /// The answer since the graph query began.
    fn answer(&self, graph_query: u64) -> Option<&Answer> {
        self.answered.as_ref().filter(|(begun, _)| *begun >= graph_query).map(|(_, answer)| answer)
    }

    #[cfg(test)]
    pub(super) fn is_pending(&self) -> bool {
        self.pending.is_some()
    }
}

impl Answer {
    fn add_match(&mut self, new: MatchInfo) -> Result<(), OutOfOrder> {
        let ids = |each: &MatchInfo| (each.endpoint, each.other);
        let is_next = self.matches.last().is_none_or(|last| ids(last) < ids(&new));
        if !is_next || self.matches.len() == MATCHES_REPORTED_MAX {
            return Err(OutOfOrder);
        }
        self.matches.push(new);
        Ok(())
    }

    fn add_schema(
        &mut self,
        hash: u64,
        encoding: String,
        part: &[u8],
        is_last: bool,
    ) -> Result<(), OutOfOrder> {
        let new = (hash, encoding.clone(), Vec::new());
        let (begun, its_encoding, mut content) = self.schema.take().unwrap_or(new);
        let is_next = self.schemas.last_key_value().is_none_or(|(last, _)| *last < hash);
        content.extend(part);
        self.schemas_bytes += part.len();
        let fits = content.len() <= SCHEMA_BYTES_MAX
            && self.schemas_bytes <= SCHEMAS_BYTES_MAX
            && encoding.len() <= ENCODING_BYTES_MAX;
        let is_same = begun == hash && its_encoding == encoding;
        // Parts without content would never come to an end.
        if !is_same || !is_next || !fits || part.is_empty() {
            return Err(OutOfOrder);
        }
        if is_last {
            let schema = Schema { encoding: encoding.into(), content: content.into() };
            self.schemas.insert(hash, schema.into());
        } else {
            self.schema = Some((hash, encoding, content));
        }
        Ok(())
    }
}

impl<D: Clone> Protocol<D> {
    /// Whether the schema of a type is known.
    pub(crate) fn is_described(&self, type_hash: u64) -> bool {
        self.schemas.contains_key(&type_hash)
    }

    /// The schema of a type of this node.
    pub(crate) fn schema(&self, type_hash: u64) -> Option<Arc<Schema>> {
        self.schemas.get(&type_hash).cloned()
    }

    /// Registers the schema of a type of this node.
    pub(crate) fn describe(&mut self, type_hash: u64, schema: Schema) {
        let is_short = schema.encoding.len() <= ENCODING_BYTES_MAX;
        if is_short && (1..=SCHEMA_BYTES_MAX).contains(&schema.content.len()) {
            self.schemas.insert(type_hash, schema.into());
        }
    }

    /// The number of the newest graph query.
    pub(crate) fn graph_query(&self) -> u64 {
        self.queries.begun
    }

    /// Whether a peer has not answered since a graph query began.
    pub(crate) fn is_awaited(&self, graph_query: u64) -> bool {
        self.silent(graph_query).next().is_some()
    }

    /// The peers that have not answered since a graph query began.
    pub(super) fn silent(&self, graph_query: u64) -> impl Iterator<Item = u64> {
        let silent = self.greeted().filter(move |peer| peer.query.is_silent(graph_query));
        silent.map(|peer| peer.node)
    }

    /// The answer of each peer since a graph query began.
    pub(super) fn answers(&self, graph_query: u64) -> impl Iterator<Item = (u64, &Answer)> {
        self.greeted().filter_map(move |peer| Some((peer.node, peer.query.answer(graph_query)?)))
    }

    /// Ends a query: answers are kept for the queries that still run.
    pub(crate) fn end_query(&mut self) {
        self.queries.open -= 1;
        if self.queries.open == 0 {
            for peer in self.links.values_mut().filter_map(Peer::greeted_mut) {
                peer.query.answered = None;
                peer.query.schemas.clear();
                peer.query.waiting.clear();
            }
        }
    }

    /// Queries all peers; those that have not answered the last graph query afterwards.
    pub(super) fn begin_graph_query(&mut self) {
        self.queries.begun += 1;
        self.queries.open += 1;
        for link in self.links.keys().copied().collect::<Vec<_>>() {
            self.query(link, Question::Graph);
        }
    }

    /// Queries one peer for the schema of a type, unless it has sent it for another query.
    pub(super) fn begin_schema_query(&mut self, node: u64, type_hash: u64) {
        self.queries.open += 1;
        let Some(link) = self.nodes.get(&node).copied() else { return };
        if self.sent_schema(node, type_hash).is_none() {
            self.query(link, Question::Schema(type_hash));
        }
    }

    /// Whether a peer has not answered the query for the schema of a type.
    pub(crate) fn is_awaiting_schema(&self, node: u64, type_hash: u64) -> bool {
        let query = self.query_of(node);
        query.is_some_and(|query| query.is_unanswered(Question::Schema(type_hash)))
    }

    /// The schema of a type that a peer has sent since a schema query began.
    pub(crate) fn sent_schema(&self, node: u64, type_hash: u64) -> Option<Arc<Schema>> {
        self.query_of(node)?.schemas.get(&type_hash).cloned()
    }

    fn query_of(&self, node: u64) -> Option<&Query> {
        let peer = self.links.get(self.nodes.get(&node)?)?.greeted()?;
        Some(&peer.query)
    }

    fn query(&mut self, link: u64, question: Question) {
        let begun = self.queries.begun;
        let message = self.greeted_mut(link).and_then(|peer| peer.query.add(question, begun));
        let send = |message| Action::Send { link, message, descriptors: Vec::new() };
        self.actions.extend(message.map(send));
    }

    /// A peer queries.
    pub(super) fn query_received(&mut self, link: u64, from: EndpointId) -> Result<(), OutOfOrder> {
        self.greeted_mut(link).ok_or(OutOfOrder)?.outbox.check_may_query()?;
        self.answer(link, Report::new(Some(from), self.own_matches(), &self.schemas));
        Ok(())
    }

    /// The next segments in the answer to a peer's query; `None` if no more endpoint is there.
    pub(super) fn next_segments(
        &mut self,
        link: u64,
        from: EndpointId,
    ) -> Option<(ControlMessage, Vec<D>)> {
        let publishers = self.publishers.range(from..).map(|(id, it)| (*id, it.publication()));
        let subscribers = self.subscribers.range(from..).map(|(id, it)| (*id, &it.subscription));
        // Of each kind, no more than one message has.
        let publishers = publishers.take(MESSAGE_SEGMENTS_MAX);
        let mut next: Vec<_> = publishers.chain(subscribers.take(MESSAGE_SEGMENTS_MAX)).collect();
        next.sort_unstable_by_key(|(id, _)| *id);
        next.truncate(MESSAGE_SEGMENTS_MAX);
        let (endpoints, descriptors): (Vec<_>, Vec<D>) =
            next.into_iter().map(|(id, descriptor)| (id, descriptor.clone())).unzip();
        let peer = self.greeted_mut(link)?;
        let rest = endpoints.last().map(|last| last + 1);
        peer.outbox.continue_segments(rest);
        rest.map(|_| (ControlMessage::Counted { endpoints }, descriptors))
    }

    /// A part of a peer's answer: segments in which its endpoints count.
    pub(super) fn counted(
        &mut self,
        link: u64,
        endpoints: &[EndpointId],
        descriptors: Vec<D>,
    ) -> Result<(), OutOfOrder> {
        let peer = self.links.get_mut(&link).and_then(Peer::greeted_mut).ok_or(OutOfOrder)?;
        let is_pending = matches!(peer.query.pending, Some((Question::Graph, _)));
        let mut descriptors = descriptors.into_iter();
        for id in endpoints {
            let is_next = *id >= peer.query.segments_from && node_of(*id) == peer.node;
            if !is_pending || !is_next {
                return Err(OutOfOrder);
            }
            peer.query.segments_from = id.saturating_add(1);
            let descriptor = descriptors.next();
            // Otherwise it has left meanwhile.
            if let Some(known) = self.directory.get(*id) {
                let (endpoint, kind) = (*id, known.kind);
                self.actions.push(Action::MapCounters { endpoint, kind, descriptor });
            }
        }
        Ok(())
    }

    /// A segment could not be mapped: the next query asks for it again.
    pub(super) fn not_counted(&mut self, endpoint: EndpointId) {
        let link = self.link_of(endpoint).and_then(|link| self.links.get_mut(&link));
        if let Some(peer) = link.and_then(Peer::greeted_mut) {
            peer.query.segments_from = peer.query.segments_from.min(endpoint);
        }
    }

    /// A peer queries the schema of one type.
    pub(super) fn schema_query_received(
        &mut self,
        link: u64,
        type_hash: u64,
    ) -> Result<(), OutOfOrder> {
        self.greeted_mut(link).ok_or(OutOfOrder)?.outbox.check_may_query()?;
        self.answer(link, Report::of_schema(type_hash, self.schema(type_hash)));
        Ok(())
    }

    /// Sends the answer to a peer's query, when it is its turn.
    fn answer(&mut self, link: u64, report: Report) {
        if let Some(peer) = self.greeted_mut(link) {
            peer.outbox.add_answer(report);
            self.send_burst(link);
        }
    }

    /// A part of a peer's answer.
    pub(super) fn answer_received(
        &mut self,
        link: u64,
        message: ControlMessage,
    ) -> Result<(), OutOfOrder> {
        let Queries { begun, open } = self.queries;
        let peer = self.links.get_mut(&link).and_then(Peer::greeted_mut).ok_or(OutOfOrder)?;
        let node = peer.node;
        let (question, answer) = peer.query.pending.as_mut().ok_or(OutOfOrder)?;
        if let Question::Schema(asked) = *question {
            match message {
                ControlMessage::Schema { type_hash, .. } if type_hash == asked => {}
                ControlMessage::Answered { .. } => {}
                _ => return Err(OutOfOrder),
            }
        }
        match message {
            ControlMessage::MatchesReported { matches }
                if matches.iter().all(|each| node_of(each.endpoint) == node) =>
            {
                matches.into_iter().try_for_each(|each| answer.add_match(each))
            }
            ControlMessage::Schema { type_hash, encoding, part, is_last } => {
                answer.add_schema(type_hash, encoding, &part, is_last)
            }
            ControlMessage::Answered { is_complete } if answer.schema.is_none() => {
                answer.is_complete = is_complete;
                match peer.query.pending.take() {
                    _ if open == 0 => {} // nobody waits for it any more
                    Some((Question::Graph, answer)) => {
                        peer.query.answered = Some((peer.query.begun, answer));
                    }
                    Some((Question::Schema(_), answer)) => {
                        peer.query.schemas.extend(answer.schemas)
                    }
                    None => {}
                }
                let next = peer.query.next(begun);
                let send = |message| Action::Send { link, message, descriptors: Vec::new() };
                self.actions.extend(next.map(send));
                Ok(())
            }
            _ => Err(OutOfOrder),
        }
    }
}

#[cfg(test)]
mod tests;
