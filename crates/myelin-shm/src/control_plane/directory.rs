//! Everybody's endpoints, by id and by topic: what a node asks for each endpoint that it hears of costs
//! no more however many others there are.

use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::topic::{AnnouncedQos, EndpointId, Topic};

/// An endpoint, as its node tells all others.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    /// Shared by the endpoints of a topic and type.
    pub(crate) topic: Arc<Topic>,
    pub(crate) kind: Kind,
    pub(crate) qos: AnnouncedQos,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Publisher,
    Subscriber,
}

/// All endpoints that a node knows of, its own included.
#[derive(Debug, Default)]
pub(crate) struct Directory {
    /// Those of a node lie together: their ids begin with its.
    endpoints: BTreeMap<EndpointId, Endpoint>,
    /// By name. Names are chosen by others; the map's hash has a key.
    topics: HashMap<String, OnTopic>,
}

/// The endpoints of one topic, with the hashes of their types.
#[derive(Debug, Default)]
struct OnTopic {
    publishers: BTreeMap<EndpointId, u64>,
    subscribers: BTreeMap<EndpointId, u64>,
    /// How many endpoints have a type, and its first one's topic.
    types: BTreeMap<u64, (usize, Arc<Topic>)>,
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

impl Directory {
    /// Enters an endpoint that is not there yet; returns its topic, shared.
    pub(crate) fn insert(
        &mut self,
        id: EndpointId,
        topic: Topic,
        kind: Kind,
        qos: AnnouncedQos,
    ) -> Arc<Topic> {
        let on_topic = match self.topics.get_mut(&topic.name) {
            Some(on_topic) => on_topic,
            None => self.topics.entry(topic.name.clone()).or_default(),
        };
        on_topic.of_mut(kind).insert(id, topic.type_hash);
        let of_type = on_topic.types.entry(topic.type_hash);
        let (count, first) = of_type.or_insert_with(|| (0, Arc::new(topic.clone())));
        *count += 1;
        // The name of a type is for people: endpoints that match may call it differently.
        let topic = if **first == topic { first.clone() } else { Arc::new(topic) };
        self.endpoints.insert(id, Endpoint { topic: topic.clone(), kind, qos });
        topic
    }

    pub(crate) fn remove(&mut self, id: EndpointId) -> Option<Endpoint> {
        let removed = self.endpoints.remove(&id)?;
        let Topic { name, type_hash, .. } = &*removed.topic;
        let on_topic = self.topics.get_mut(name).expect("it was entered there");
        on_topic.of_mut(removed.kind).remove(&id);
        let (count, _) = on_topic.types.get_mut(type_hash).expect("it was counted");
        *count -= 1;
        if *count == 0 {
            on_topic.types.remove(type_hash);
        }
        if on_topic.types.is_empty() {
            self.topics.remove(name);
        }
        Some(removed)
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

    /// The endpoints of a kind that fit a topic: of its name, and of its type.
    pub(crate) fn fitting(&self, topic: &Topic, kind: Kind) -> Vec<EndpointId> {
        self.select(topic, kind, 0..=EndpointId::MAX, |type_hash| type_hash == topic.type_hash)
    }

    /// Those among them that are a node's.
    pub(crate) fn fitting_of(&self, node: u64, topic: &Topic, kind: Kind) -> Vec<EndpointId> {
        self.select(topic, kind, ids_of(node), |type_hash| type_hash == topic.type_hash)
    }

    /// A node's endpoints of a kind that are on the topic and have another type.
    pub(crate) fn misfits_of(&self, node: u64, topic: &Topic, kind: Kind) -> Vec<EndpointId> {
        self.select(topic, kind, ids_of(node), |type_hash| type_hash != topic.type_hash)
    }

    /// An endpoint on the topic that has another type.
    pub(crate) fn misfit(&self, topic: &Topic) -> Option<(EndpointId, &Endpoint)> {
        let OnTopic { publishers, subscribers, types } = self.topics.get(&topic.name)?;
        let other = types.keys().find(|type_hash| **type_hash != topic.type_hash)?;
        let mut all = publishers.iter().chain(subscribers);
        let id = *all.find(|(_, type_hash)| *type_hash == other)?.0;
        Some((id, &self.endpoints[&id]))
    }

    fn select(
        &self,
        topic: &Topic,
        kind: Kind,
        ids: RangeInclusive<EndpointId>,
        is_wanted: impl Fn(u64) -> bool,
    ) -> Vec<EndpointId> {
        let all = self.topics.get(&topic.name).map(|on_topic| on_topic.of(kind).range(ids));
        let wanted = all.into_iter().flatten().filter(|(_, type_hash)| is_wanted(**type_hash));
        wanted.map(|(id, _)| *id).collect()
    }
}

impl OnTopic {
    fn of(&self, kind: Kind) -> &BTreeMap<EndpointId, u64> {
        match kind {
            Kind::Publisher => &self.publishers,
            Kind::Subscriber => &self.subscribers,
        }
    }

    fn of_mut(&mut self, kind: Kind) -> &mut BTreeMap<EndpointId, u64> {
        match kind {
            Kind::Publisher => &mut self.publishers,
            Kind::Subscriber => &mut self.subscribers,
        }
    }
}

/// The node that an endpoint belongs to.
pub(crate) fn node_of(id: EndpointId) -> u64 {
    id >> NODE_SHIFT << NODE_SHIFT
}

/// The ids that a node's endpoints can have, and the node's own, which is the first.
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
        assert!(Arc::ptr_eq(&first, &second), "names are kept once");
        directory.insert(other | 2, topic("a", 2), Kind::Subscriber, QOS);
        directory.insert(other | 3, topic("b", 1), Kind::Subscriber, QOS);
        let a = topic("a", 1);
        assert_eq!(directory.fitting(&a, Kind::Subscriber), [other | 1]);
        assert_eq!(directory.fitting_of(one, &a, Kind::Publisher), [one | 1]);
        assert!(directory.fitting_of(other, &a, Kind::Publisher).is_empty());
        assert_eq!(directory.misfits_of(other, &a, Kind::Subscriber), [other | 2]);
        assert_eq!(directory.misfit(&a).unwrap().0, other | 2);
        let after = directory.of_node_after(other, other | 1).map(|(id, _)| id);
        assert_eq!(after.collect::<Vec<_>>(), [other | 2, other | 3]);
        directory.remove(other | 2).unwrap();
        assert!(directory.misfit(&a).is_none());
    }

    #[test]
    fn what_leaves_leaves_nothing() {
        let mut directory = Directory::default();
        for id in 1..4 {
            directory.insert(id, topic("a", id), Kind::Publisher, QOS);
        }
        assert!((1..4).all(|id| directory.remove(id).is_some()));
        assert!(directory.endpoints.is_empty() && directory.topics.is_empty());
        assert!(directory.remove(1).is_none());
    }
}
