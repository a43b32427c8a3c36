//! The endpoints of all nodes, by id and by topic. The cost of a look-up for an announced endpoint
//! does not grow with the number of other endpoints.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::topic::{AnnouncedQos, EndpointId, Topic};

/// An endpoint, as its node announces it.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    pub(crate) topic: SharedTopic,
    pub(crate) kind: Kind,
    pub(crate) qos: AnnouncedQos,
}

/// A [`Topic`] whose texts are shared: by the endpoints of one name, and by those of one type.
#[derive(Clone, Debug)]
pub(crate) struct SharedTopic {
    pub(crate) name: Arc<str>,
    of_type: Arc<Type>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Type {
    hash: u64,
    name: Box<str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Publisher,
    Subscriber,
}

/// All endpoints that a node knows, including its own. Other processes choose the names, and all
/// look-ups use trees, so that no process can make them slow. An endpoint on a topic of its own
/// takes 270 B of the heap, one among others of its topic 170.
#[derive(Debug, Default)]
pub(crate) struct Directory {
    /// The endpoints of a node are neighbours: their ids begin with its id.
    endpoints: BTreeMap<EndpointId, Endpoint>,
    on_topics: BTreeSet<OnTopic>,
    /// How many endpoints on a topic have a type.
    counts: BTreeMap<(Arc<str>, u64), u32>,
    types: BTreeSet<Arc<Type>>,
    changes: u64,
}

/// An endpoint on a topic.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct OnTopic {
    name: Arc<str>,
    kind: Kind,
    id: EndpointId,
    type_hash: u64,
}

impl Kind {
    /// The kind that it is matched with.
    pub(crate) fn other(self) -> Kind {
        match self {
            Kind::Publisher => Kind::Subscriber,
            Kind::Subscriber => Kind::Publisher,
        }
    }
}

impl SharedTopic {
    pub(crate) fn type_name(&self) -> &str {
        &self.of_type.name
    }

    pub(crate) fn type_hash(&self) -> u64 {
        self.of_type.hash
    }

    /// Whether endpoints of the two topics can match.
    pub(crate) fn fits(&self, other: &SharedTopic) -> bool {
        self.name == other.name && self.type_hash() == other.type_hash()
    }

    pub(crate) fn to_topic(&self) -> Topic {
        let (name, type_name) = (self.name.to_string(), self.type_name().to_owned());
        Topic { name, type_name, type_hash: self.type_hash() }
    }
}

impl Directory {
    /// Adds a new endpoint; returns its topic, shared.
    pub(crate) fn insert(
        &mut self,
        id: EndpointId,
        topic: Topic,
        kind: Kind,
        qos: AnnouncedQos,
    ) -> SharedTopic {
        self.changes += 1;
        let Topic { name, type_name, type_hash } = topic;
        let name = Arc::from(name);
        let known = self.counts.range(types_of(&name)).next();
        let name = known.map_or(name, |((known, _), _)| known.clone());
        // The name of a type is for people: endpoints that match may have different names for it.
        let new = Type { hash: type_hash, name: type_name.into() };
        let of_type = match self.types.get(&new) {
            Some(known) => known.clone(),
            None => Arc::new(new),
        };
        self.types.insert(of_type.clone());
        *self.counts.entry((name.clone(), type_hash)).or_default() += 1;
        self.on_topics.insert(OnTopic { name: name.clone(), kind, id, type_hash });
        let topic = SharedTopic { name, of_type };
        self.endpoints.insert(id, Endpoint { topic: topic.clone(), kind, qos });
        topic
    }

    pub(crate) fn remove(&mut self, id: EndpointId) -> Option<Endpoint> {
        let removed = self.endpoints.remove(&id)?;
        self.changes += 1;
        let SharedTopic { name, of_type } = &removed.topic;
        let (name, type_hash, kind) = (name.clone(), of_type.hash, removed.kind);
        let count = self
            .counts
            .get_mut(&(name.clone(), type_hash))
            .expect("each endpoint in the directory is counted");
        *count -= 1;
        if *count == 0 {
            self.counts.remove(&(name.clone(), type_hash));
        }
        self.on_topics.remove(&OnTopic { name, kind, id, type_hash });
        if Arc::strong_count(of_type) == 2 {
            self.types.remove(of_type); // the other reference is the removed endpoint's
        }
        Some(removed)
    }

    /// How often an endpoint has come or gone.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    pub(crate) fn get(&self, id: EndpointId) -> Option<&Endpoint> {
        self.endpoints.get(&id)
    }

    /// All, by id.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (EndpointId, &Endpoint)> {
        self.endpoints.iter().map(|(id, endpoint)| (*id, endpoint))
    }

    /// The endpoints of a node that come after `id`, by id.
    pub(crate) fn of_node_after(
        &self,
        node: u64,
        id: EndpointId,
    ) -> impl Iterator<Item = (EndpointId, &Endpoint)> {
        debug_assert!(ids_of(node).contains(&id));
        let range = id + 1..=*ids_of(node).end();
        self.endpoints.range(range).map(|(id, endpoint)| (*id, endpoint))
    }

    /// The endpoints of a kind that fit a topic: with its name and its type.
    pub(crate) fn fitting(&self, topic: &SharedTopic, kind: Kind) -> Vec<EndpointId> {
        self.select(topic, kind, 0..=EndpointId::MAX, true)
    }

    /// Those of them that belong to one node.
    pub(crate) fn fitting_of(&self, node: u64, topic: &SharedTopic, kind: Kind) -> Vec<EndpointId> {
        self.select(topic, kind, ids_of(node), true)
    }

    /// A node's endpoints of a kind on the topic with another type.
    pub(crate) fn misfits_of(&self, node: u64, topic: &SharedTopic, kind: Kind) -> Vec<EndpointId> {
        self.select(topic, kind, ids_of(node), false)
    }

    /// The same for all nodes.
    pub(crate) fn misfits(&self, topic: &SharedTopic, kind: Kind) -> Vec<EndpointId> {
        self.select(topic, kind, 0..=EndpointId::MAX, false)
    }

    /// An endpoint on the topic that has another type, unless both are types of messages.
    pub(crate) fn misfit(&self, topic: &Topic) -> Option<(EndpointId, &Endpoint)> {
        let name = Arc::from(topic.name.as_str());
        let mut types = self.counts.range(types_of(&name));
        types.find(|((_, type_hash), _)| *type_hash != topic.type_hash)?;
        let all = [Kind::Publisher, Kind::Subscriber];
        let mut all = all.into_iter().flat_map(|kind| self.on(&name, kind, 0..=EndpointId::MAX));
        let is_of_messages = Topic::is_of_messages(&topic.type_name);
        all.find_map(|it| {
            let endpoint = &self.endpoints[&it.id];
            let may_be_there = is_of_messages && Topic::is_of_messages(endpoint.topic.type_name());
            (it.type_hash != topic.type_hash && !may_be_there).then_some((it.id, endpoint))
        })
    }

    fn select(
        &self,
        topic: &SharedTopic,
        kind: Kind,
        ids: RangeInclusive<EndpointId>,
        fits: bool,
    ) -> Vec<EndpointId> {
        let all = self.on(&topic.name, kind, ids);
        all.filter(|it| (it.type_hash == topic.type_hash()) == fits).map(|it| it.id).collect()
    }

    fn on(
        &self,
        name: &Arc<str>,
        kind: Kind,
        ids: RangeInclusive<EndpointId>,
    ) -> impl Iterator<Item = &OnTopic> {
        let at = |id, type_hash| OnTopic { name: name.clone(), kind, id, type_hash };
        self.on_topics.range(at(*ids.start(), 0)..=at(*ids.end(), u64::MAX))
    }
}

/// The types on a topic, as keys.
fn types_of(name: &Arc<str>) -> RangeInclusive<(Arc<str>, u64)> {
    (name.clone(), 0)..=(name.clone(), u64::MAX)
}

/// The node that an endpoint belongs to.
pub(crate) fn node_of(id: EndpointId) -> u64 {
    id >> NODE_SHIFT << NODE_SHIFT
}

/// The ids that a node's endpoints can have, and the node's own id, which is the first.
fn ids_of(node: u64) -> RangeInclusive<EndpointId> {
    node..=node | ((1 << NODE_SHIFT) - 1)
}

/// A node's id has zeros below this bit.
pub(crate) const NODE_SHIFT: u32 = 24;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topic::Reliability;

    const QOS: AnnouncedQos =
        AnnouncedQos { depth: 1, reliability: Reliability::BestEffort, history: 0 };

    fn topic(name: &str, type_hash: u64) -> Topic {
        Topic { name: name.into(), type_name: format!("T{type_hash}"), type_hash }
    }

    #[test]
    fn endpoints_are_found_by_topic_type_and_node() {
        let mut directory = Directory::default();
        let (one, other) = (1 << NODE_SHIFT, 2 << NODE_SHIFT);
        let first = directory.insert(one | 1, topic("a", 1), Kind::Publisher, QOS);
        let second = directory.insert(other | 1, topic("a", 1), Kind::Subscriber, QOS);
        assert!(Arc::ptr_eq(&first.name, &second.name), "names are kept once");
        let misfit = directory.insert(other | 2, topic("a", 2), Kind::Subscriber, QOS);
        let elsewhere = directory.insert(other | 3, topic("b", 1), Kind::Subscriber, QOS);
        assert!(Arc::ptr_eq(&first.name, &misfit.name));
        assert!(Arc::ptr_eq(&first.of_type, &elsewhere.of_type), "and those of types");
        assert_eq!(directory.fitting(&first, Kind::Subscriber), [other | 1]);
        assert_eq!(directory.fitting_of(one, &first, Kind::Publisher), [one | 1]);
        assert!(directory.fitting_of(other, &first, Kind::Publisher).is_empty());
        assert_eq!(directory.misfits_of(other, &first, Kind::Subscriber), [other | 2]);
        assert_eq!(directory.misfit(&topic("a", 1)).unwrap().0, other | 2);
        let after = directory.of_node_after(other, other | 1).map(|(id, _)| id);
        assert_eq!(after.collect::<Vec<_>>(), [other | 2, other | 3]);
        directory.remove(other | 2).unwrap();
        assert!(directory.misfit(&topic("a", 1)).is_none());
        assert!(directory.misfit(&topic("c", 1)).is_none());
    }

    #[test]
    fn a_name_has_several_types_of_messages() {
        let mut directory = Directory::default();
        let of = |name: &str| Topic::of_messages("a".to_owned(), name);
        let first = directory.insert(1, of("m::A"), Kind::Publisher, QOS);
        assert!(directory.misfit(&of("m::A")).is_none());
        assert!(directory.misfit(&of("m::B")).is_none());
        assert_eq!(directory.misfit(&topic("a", 1)).unwrap().0, 1);
        directory.insert(2, of("m::B"), Kind::Subscriber, QOS);
        assert!(directory.fitting(&first, Kind::Subscriber).is_empty());
        directory.insert(3, topic("a", 1), Kind::Subscriber, QOS);
        assert_eq!(directory.misfit(&of("m::A")).unwrap().0, 3);
    }

    #[test]
    fn a_removed_endpoint_leaves_no_entry() {
        let mut directory = Directory::default();
        for id in 1..6 {
            directory.insert(id, topic("a", id / 2), Kind::Publisher, QOS);
        }
        assert!((1..6).all(|id| directory.remove(id).is_some()));
        let Directory { endpoints, on_topics, counts, types, changes: _ } = &directory;
        assert!(endpoints.is_empty() && on_topics.is_empty());
        assert!(counts.is_empty() && types.is_empty());
        assert!(directory.remove(1).is_none());
    }
}
