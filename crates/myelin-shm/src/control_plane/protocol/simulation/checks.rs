//! Properties that hold when nothing happens any more.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::memory::Observer;
use super::world::{Node, World};
use crate::control_plane::protocol::matches::{Matches, State};
use crate::control_plane::protocol::{Input, Pair, Timer};
use crate::record::EndpointRecord;
use crate::topic::{EndpointId, Topic};

type Finding = Result<(), String>;

impl World {
    /// The first fault, if there is one.
    pub(super) fn check(&self) -> Finding {
        self.check_links()?;
        let all: BTreeSet<_> = self.nodes.values().flat_map(endpoints).collect();
        for (id, node) in &self.nodes {
            let known: BTreeSet<_> = node.protocol.directory.iter().map(|(id, _)| id).collect();
            require(known == all, || format!("node {id:x} knows {known:x?} of {all:x?}"))?;
            let records = self.nodes.values().flat_map(records);
            for (endpoint, record) in records {
                let known = node.protocol.directory.get(endpoint).map(|it| it.to_record());
                require(known.as_ref() == Some(record), || {
                    format!("node {id:x} knows of {endpoint:x} {known:?}, not {record:?}")
                })?;
            }
            check_nothing_waits(node)?;
        }
        self.check_pairs()?;
        self.check_observers()?;
        self.check_tokens()
    }

    /// An observer has the rings of all publishers of its topic, and no others.
    fn check_observers(&self) -> Finding {
        for (id, observer) in self.observers() {
            let publishers = self.nodes.values().flat_map(|node| &node.memory.publishers);
            let fits = |topic: &Topic| {
                topic.name == observer.topic.name && topic.type_hash == observer.topic.type_hash
            };
            let expected = publishers.filter(|(_, made)| fits(&made.record.topic));
            let expected: BTreeSet<_> = expected.map(|(publisher, _)| *publisher).collect();
            let mapped: BTreeSet<_> = observer.rings.keys().copied().collect();
            require(mapped == expected, || {
                format!("an observer of {id:x} has {mapped:x?}, not {expected:x?}")
            })?;
        }
        Ok(())
    }

    fn observers(&self) -> impl Iterator<Item = (u64, &Observer)> {
        self.nodes
            .iter()
            .flat_map(|(id, node)| node.memory.observers.values().map(move |it| (*id, it)))
    }

    /// Each node has one link to each other node, and no further links.
    fn check_links(&self) -> Finding {
        let count = self.nodes.len();
        for (id, node) in &self.nodes {
            let others = self.nodes.keys().filter(|other| *other != id);
            let linked = others.filter(|other| node.protocol.nodes.contains_key(*other)).count();
            let (links, keys) = (node.protocol.links.len(), node.keys.len());
            require((linked, links, keys) == (count - 1, count - 1, count - 1), || {
                format!("node {id:x} has {linked} peers, {links} links, {keys} sockets of {count}")
            })?;
        }
        let expected = count * (count - 1) / 2;
        let (open, closed) = (self.links.len(), self.links.values().flatten());
        let closed = closed.filter(|end| end.is_closed).count();
        require((open, closed) == (expected, 0), || format!("{open} links, {closed} half closed"))
    }

    /// Every pair that fits is matched on both sides, unless there is a reason that both know.
    fn check_pairs(&self) -> Finding {
        for node in self.nodes.values() {
            for (id, publisher) in &node.memory.publishers {
                let matches = &node.protocol.publishers[id].matches;
                for (other, their_node, subscriber) in self.subscribers() {
                    let pair = Pair { publisher: *id, subscriber: other };
                    let answers = &their_node.protocol.subscribers[&other].matches;
                    let same_topic = publisher.record.topic.name == subscriber.record.topic.name;
                    if !publisher.fits(subscriber) {
                        let none = matches.get(other).is_none() && answers.get(*id).is_none();
                        require(none, || format!("{pair:x?} do not fit"))?;
                        let (ours, theirs) = (&publisher.events, &subscriber.events);
                        let (ours, theirs) = (ours.refusals.get(&other), theirs.refusals.get(id));
                        let both = ours.is_some() && ours == theirs;
                        require(both || !same_topic, || {
                            format!("{pair:x?}: the reasons are {ours:?} and {theirs:?}")
                        })?;
                        continue;
                    }
                    let attached = publisher.attached.get(&other).map(|it| it.start);
                    let connection = subscriber.connections.get(id);
                    let begun = connection.and_then(|it| it.begun);
                    let reported = publisher.events.matched.contains(&other)
                        && subscriber.events.matched.contains(id);
                    if matches.is_in(other, &State::Matched) {
                        let both = answers.is_in(*id, &State::Matched) && reported;
                        require(both && attached.is_some() && attached == begun, || {
                            format!("{pair:x?} is matched on one side: {attached:?} {begun:?}")
                        })?;
                        let mapped: Option<BTreeSet<u32>> =
                            connection.map(|it| it.segments.keys().copied().collect());
                        require(mapped.as_ref() == Some(&publisher.segments), || {
                            format!("{pair:x?}: segments {mapped:?}, not {:?}", publisher.segments)
                        })?;
                        continue;
                    }
                    let used = subscriber.connections.len();
                    let may_not = used == subscriber.publishers_max || self.corrupt.contains(&pair);
                    let refused = is_refused(matches, other) && is_refused(answers, *id);
                    require(may_not && refused && attached.is_none() && begun.is_none(), || {
                        let sides = (matches.get(other), answers.get(*id));
                        format!("{pair:x?} fits and is not matched: {sides:?}")
                    })?;
                    let is_reported = publisher.events.refusals.contains_key(&other)
                        && subscriber.events.refusals.contains_key(id);
                    require(is_reported, || format!("{pair:x?} is refused without a reason"))?;
                }
            }
        }
        self.check_nobody_else()
    }

    /// All matches are with live endpoints.
    fn check_nobody_else(&self) -> Finding {
        let all: BTreeSet<_> = self.nodes.values().flat_map(endpoints).collect();
        for node in self.nodes.values() {
            let attached = node.memory.publishers.values().flat_map(|it| it.attached.keys());
            let connected = node.memory.subscribers.values().flat_map(|it| it.connections.keys());
            let publishers = node.memory.publishers.values().flat_map(|it| &it.events.matched);
            let subscribers = node.memory.subscribers.values().flat_map(|it| &it.events.matched);
            let mut others = attached.chain(connected).chain(publishers).chain(subscribers);
            let dead = others.find(|other| !all.contains(*other));
            require(dead.is_none(), || format!("a match with {dead:x?}, which is dead"))?;
        }
        Ok(())
    }

    /// All descriptors are where they belong, and only there.
    fn check_tokens(&self) -> Finding {
        let mut expected = 1;
        for node in self.nodes.values() {
            for publisher in node.memory.publishers.values() {
                let passed = publisher.attached.values().map(|it| it.passed.len());
                expected += 1 + publisher.segments.len() + passed.sum::<usize>();
            }
            for subscriber in node.memory.subscribers.values() {
                let mapped = subscriber.connections.values().map(|it| 1 + it.segments.len());
                expected += 1 + mapped.sum::<usize>();
            }
            expected += node.memory.counters.len();
            let rings = node.memory.observers.values().flat_map(|it| it.rings.values());
            expected += rings.map(|ring| 1 + ring.segments.len()).sum::<usize>();
        }
        let tokens = Rc::strong_count(&self.token);
        require(tokens == expected, || format!("{tokens} descriptors, not {expected}"))
    }

    fn subscribers(&self) -> impl Iterator<Item = (EndpointId, &Node, &super::memory::Subscriber)> {
        self.nodes.values().flat_map(|node| {
            node.memory.subscribers.iter().map(move |(id, subscriber)| (*id, node, subscriber))
        })
    }
}

impl World {
    /// An observer gets every slot segment that it requests.
    pub(super) fn check_requests(&mut self) -> Finding {
        for id in self.nodes.keys().copied().collect::<Vec<_>>() {
            self.request_segments(id);
            while self.step() {}
        }
        let publishers = self.nodes.values().flat_map(|node| &node.memory.publishers);
        let made: BTreeMap<_, _> =
            publishers.map(|(publisher, made)| (*publisher, &made.segments)).collect();
        for (id, observer) in self.observers() {
            for (publisher, ring) in &observer.rings {
                let mapped: BTreeSet<u32> = ring.segments.keys().copied().collect();
                require(made.get(publisher) == Some(&&mapped), || {
                    format!("an observer of {id:x} has segments {mapped:?} of {publisher:x}")
                })?;
            }
        }
        self.check_tokens()
    }

    /// A graph query by any node finds each node's own data.
    pub(super) fn check_graph_queries(&mut self) -> Finding {
        for asking in self.nodes.keys().copied().collect::<Vec<_>>() {
            self.drive(asking, Input::QueryGraph);
            while self.step() {}
            let protocol = &self.nodes[&asking].protocol;
            let graph =
                protocol.graph(&self.nodes[&asking].memory.counted(), Some(protocol.graph_query()));
            require(graph.silent.is_empty() && graph.incomplete.is_empty(), || {
                format!("node {asking:x} receives nothing of {:x?}", graph.silent)
            })?;
            let counted = self.nodes.values().flat_map(|node| node.memory.counted());
            let counted: BTreeMap<_, _> = counted.collect();
            let reported =
                graph.endpoints.iter().filter_map(|each| Some((each.id, each.counters?)));
            let reported: BTreeMap<_, _> = reported.collect();
            require(reported == counted, || format!("node {asking:x} receives {reported:x?}"))?;
            let mut matches: Vec<_> =
                self.nodes.values().flat_map(|node| node.protocol.own_matches()).collect();
            matches.sort_unstable_by_key(|each| (each.endpoint, each.other));
            require(graph.matches == matches, || format!("node {asking:x}: other matches"))?;
            self.nodes.get_mut(&asking).expect("it lives").protocol.end_query();
        }
        Ok(())
    }
}

/// A node's endpoints with their records.
fn records(node: &Node) -> impl Iterator<Item = (EndpointId, &EndpointRecord)> {
    let publishers = node.memory.publishers.iter().map(|(id, it)| (*id, &it.record));
    publishers.chain(node.memory.subscribers.iter().map(|(id, it)| (*id, &it.record)))
}

/// No message, no attempt to connect, and no timer except those of refused matches.
fn check_nothing_waits(node: &Node) -> Finding {
    let protocol = &node.protocol;
    let waiting = protocol.to_ourselves.len() + protocol.actions.len() + protocol.connecting.len();
    require(waiting == 0, || {
        format!("{waiting} messages, actions or attempts to connect are left")
    })?;
    let queued: usize = protocol.greeted().map(|peer| peer.outbox.len()).sum();
    require(queued == 0, || format!("{queued} offers or reports are left"))?;
    let pending = protocol.greeted().filter(|peer| peer.query.is_pending()).count();
    require(pending == 0, || format!("{pending} peers have not answered"))?;
    let requested = protocol.greeted().filter(|peer| !peer.requests.is_idle()).count();
    require(requested == 0, || format!("{requested} peers owe memory to observers"))?;
    let late = protocol.links.values().filter(|peer| peer.late.is_some()).count();
    require(late == 0, || format!("{late} peers are late for ever"))?;
    let offers = protocol.publishers.iter().map(|(id, it)| (*id, &it.matches));
    let answers = protocol.subscribers.iter().map(|(id, it)| (*id, &it.matches));
    let mut timers = BTreeSet::new();
    for (ours, matches) in offers.chain(answers) {
        for (other, each) in matches.iter() {
            if let State::Refused { again_ns: Some(due_ns), .. } = each.state {
                timers.insert((due_ns, Timer::Match(ours, other)));
            }
        }
    }
    let kept = &protocol.timers;
    require(*kept == timers, || format!("timers {kept:x?}, not {timers:x?}"))
}

pub(super) fn is_refused(matches: &Matches, other: EndpointId) -> bool {
    let reason = matches.get(other).map(|each| &each.state);
    matches!(reason, Some(State::Refused { reason, .. }) if !reason.is_empty())
}

fn endpoints(node: &Node) -> impl Iterator<Item = EndpointId> {
    node.memory.publishers.keys().chain(node.memory.subscribers.keys()).copied()
}

fn require(holds: bool, otherwise: impl FnOnce() -> String) -> Finding {
    if holds { Ok(()) } else { Err(otherwise()) }
}
