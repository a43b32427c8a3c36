//! The endpoints of all nodes, by id and by topic. The cost of a look-up for an announced endpoint
//! does not grow with the number of other endpoints.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::record::{
    AnnouncedQos, Attributes, EndpointRecord, Kind, Matching, Mismatch, PASSIVE, Side, fits,
    mismatch, type_text,
};
use crate::topic::{EndpointId, Topic};

/// An endpoint, as its node announces it. Endpoints share what they have in common.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    pub(crate) topic: InternedTopic,
    pub(crate) kind: Kind,
    pub(crate) settings: Arc<Settings>,
    pub(crate) created_ns: u64,
    attributes: Option<Arc<Attributes>>,
}

/// The announced settings of some endpoints.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Settings {
    pub(crate) qos: AnnouncedQos,
    pub(crate) matching: Matching,
}

/// A [`Topic`] whose texts are shared: by the endpoints of one name, and by those of one type.
#[derive(Clone, Debug)]
pub(crate) struct InternedTopic {
    pub(crate) name: Arc<str>,
    of_type: Arc<Type>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Type {
    hash: u64,
    name: Box<str>,
}

/// Values that endpoints share: each is kept once.
#[derive(Debug)]
struct Interned<T>(BTreeSet<Arc<T>>);

/// All endpoints that a node knows, including its own. Other processes choose the names, and all
/// look-ups use trees, so that no process can make them slow. An endpoint on a topic of its own
/// takes 290 B of the heap, one among others of its topic 190; attributes come on top.
#[derive(Debug, Default)]
pub(crate) struct Directory {
    /// The endpoints of a node are neighbours: their ids begin with its id.
    endpoints: BTreeMap<EndpointId, Endpoint>,
    on_topics: BTreeSet<OnTopic>,
    /// How many endpoints on a topic have a type.
    counts: BTreeMap<(Arc<str>, u64), u32>,
    types: Interned<Type>,
    settings: Interned<Settings>,
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

impl Endpoint {
    /// Whether it matches another endpoint.
    pub(crate) fn fits(&self, other: &Endpoint) -> bool {
        self.kind != other.kind && self.topic.name == other.topic.name && {
            let (offering, requesting) = self.sides(other);
            fits(offering, requesting)
        }
    }

    /// Why it does not match an endpoint of the topic that has the other kind; `None`: they match.
    pub(crate) fn mismatch(&self, other: &Endpoint) -> Option<Mismatch> {
        let (offering, requesting) = self.sides(other);
        mismatch(offering, requesting)
    }

    /// What the publisher and the subscriber of the two say.
    fn sides<'a>(&'a self, other: &'a Endpoint) -> (Side<'a>, Side<'a>) {
        let (publisher, subscriber) = self.in_order(other);
        let (mut offering, mut requesting) = (publisher.side(), subscriber.side());
        if subscriber.is_passive() {
            // It takes what there is, also of a publisher that offers less than it requests.
            (offering.matching, requesting.matching) = (Matching::Exact, Matching::Exact);
        }
        (offering, requesting)
    }

    /// Whether it has no say in what its topic is: see [`PASSIVE`].
    pub(crate) fn is_passive(&self) -> bool {
        self.attributes.as_ref().is_some_and(|it| it.get(PASSIVE).is_some())
    }

    fn side(&self) -> Side<'_> {
        let Settings { qos, matching } = &*self.settings;
        let (type_name, type_hash) = (self.topic.type_name(), self.topic.type_hash());
        Side { type_name, type_hash, qos, matching: *matching }
    }

    /// The publisher and the subscriber of the two.
    fn in_order<'a>(&'a self, other: &'a Endpoint) -> (&'a Endpoint, &'a Endpoint) {
        debug_assert!(self.kind != other.kind);
        match self.kind {
            Kind::Publisher => (self, other),
            Kind::Subscriber => (other, self),
        }
    }

    pub(crate) fn qos(&self) -> &AnnouncedQos {
        &self.settings.qos
    }

    pub(crate) fn attributes(&self) -> Attributes {
        self.attributes.as_deref().cloned().unwrap_or_default()
    }

    pub(crate) fn to_record(&self) -> EndpointRecord {
        let Settings { qos, matching } = *self.settings;
        EndpointRecord {
            kind: self.kind,
            topic: self.topic.to_topic(),
            qos,
            matching,
            created_ns: self.created_ns,
            attributes: self.attributes(),
        }
    }
}

impl<T: Ord> Interned<T> {
    fn intern(&mut self, value: T) -> Arc<T> {
        if let Some(known) = self.0.get(&value) {
            return known.clone();
        }
        let new = Arc::new(value);
        self.0.insert(new.clone());
        new
    }

    /// An endpoint that has a value is removed.
    fn release(&mut self, value: &Arc<T>) {
        if Arc::strong_count(value) == 2 {
            self.0.remove(value); // the other reference is the removed endpoint's
        }
    }
}

impl<T> Default for Interned<T> {
    fn default() -> Self {
        Interned(BTreeSet::new())
    }
}

impl InternedTopic {
    pub(crate) fn type_name(&self) -> &str {
        &self.of_type.name
    }

    pub(crate) fn type_hash(&self) -> u64 {
        self.of_type.hash
    }

    /// Its type, for people.
    pub(crate) fn type_text(&self) -> String {
        type_text(self.type_name(), self.type_hash())
    }

    fn to_topic(&self) -> Topic {
        let (name, type_name) = (self.name.to_string(), self.type_name().to_owned());
        Topic { name, type_name, type_hash: self.type_hash() }
    }
}

impl Directory {
    /// Adds a new endpoint.
    pub(crate) fn insert(&mut self, id: EndpointId, record: EndpointRecord) -> Endpoint {
        self.changes += 1;
        let EndpointRecord { kind, topic, qos, matching, created_ns, attributes } = record;
        let Topic { name, type_name, type_hash } = topic;
        let name = Arc::from(name);
        let known = self.counts.range(types_of(&name)).next();
        let name = known.map_or(name, |((known, _), _)| known.clone());
        // The name of a type is for people: endpoints that match may have different names for it.
        let of_type = self.types.intern(Type { hash: type_hash, name: type_name.into() });
        *self.counts.entry((name.clone(), type_hash)).or_default() += 1;
        self.on_topics.insert(OnTopic { name: name.clone(), kind, id, type_hash });
        let endpoint = Endpoint {
            topic: InternedTopic { name, of_type },
            kind,
            settings: self.settings.intern(Settings { qos, matching }),
            created_ns,
            attributes: (!attributes.is_empty()).then(|| Arc::new(attributes)),
        };
        self.endpoints.insert(id, endpoint.clone());
        endpoint
    }

    pub(crate) fn remove(&mut self, id: EndpointId) -> Option<Endpoint> {
        let removed = self.endpoints.remove(&id)?;
        self.changes += 1;
        let InternedTopic { name, of_type } = &removed.topic;
        let (name, type_hash, kind) = (name.clone(), of_type.hash, removed.kind);
        let counted = (name.clone(), type_hash);
        let count =
            self.counts.get_mut(&counted).expect("each endpoint in the directory is counted");
        *count -= 1;
        if *count == 0 {
            self.counts.remove(&counted);
        }
        self.on_topics.remove(&OnTopic { name, kind, id, type_hash });
        self.types.release(of_type);
        self.settings.release(&removed.settings);
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

    /// The publishers of a topic and type.
    pub(crate) fn publishers_of(&self, name: &Arc<str>, type_hash: u64) -> Vec<EndpointId> {
        let all = self.on(name, Kind::Publisher, 0..=EndpointId::MAX);
        all.filter(|it| it.type_hash == type_hash).map(|it| it.id).collect()
    }

    /// The endpoints that match one.
    pub(crate) fn fitting(&self, own: &Endpoint) -> Vec<EndpointId> {
        self.fitting_in(own, 0..=EndpointId::MAX)
    }

    /// Those of them that belong to one node.
    pub(crate) fn fitting_of(&self, node: u64, own: &Endpoint) -> Vec<EndpointId> {
        self.fitting_in(own, ids_of(node))
    }

    fn fitting_in(&self, own: &Endpoint, ids: RangeInclusive<EndpointId>) -> Vec<EndpointId> {
        let fitting = self.facing(own, ids).filter(|(_, other)| own.fits(other));
        fitting.map(|(id, _)| id).collect()
    }

    /// The endpoints of the topic that one cannot match, and why.
    pub(crate) fn misfits(&self, own: &Endpoint) -> Vec<(EndpointId, Mismatch)> {
        self.misfits_in(own, 0..=EndpointId::MAX)
    }

    /// Those of them that belong to one node.
    pub(crate) fn misfits_of(&self, node: u64, own: &Endpoint) -> Vec<(EndpointId, Mismatch)> {
        self.misfits_in(own, ids_of(node))
    }

    fn misfits_in(
        &self,
        own: &Endpoint,
        ids: RangeInclusive<EndpointId>,
    ) -> Vec<(EndpointId, Mismatch)> {
        let others = self.facing(own, ids);
        let others = others.filter(|(_, other)| !own.is_passive() && !other.is_passive());
        others.filter_map(|(id, other)| Some((id, own.mismatch(other)?))).collect()
    }

    /// Whether an endpoint on the topic has its type.
    pub(crate) fn has_type(&self, topic: &Topic) -> bool {
        self.counts.contains_key(&(Arc::from(topic.name.as_str()), topic.type_hash))
    }

    /// An endpoint on the topic that has another type, unless both are types of messages. Passive ones
    /// do not count.
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
            let is_misfit = it.type_hash != topic.type_hash && !may_be_there;
            (is_misfit && !endpoint.is_passive()).then_some((it.id, endpoint))
        })
    }

    /// The endpoints of the other kind on the topic of one.
    fn facing(
        &self,
        own: &Endpoint,
        ids: RangeInclusive<EndpointId>,
    ) -> impl Iterator<Item = (EndpointId, &Endpoint)> {
        let others = self.on(&own.topic.name, own.kind.other(), ids);
        others.map(|it| (it.id, &self.endpoints[&it.id]))
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
    use crate::control_plane::protocol::hostile::record_of as record;
    use crate::record::Setting;

    fn topic(name: &str, type_hash: u64) -> Topic {
        Topic { name: name.into(), type_name: format!("T{type_hash}"), type_hash }
    }

    #[test]
    fn endpoints_are_found_by_topic_type_and_node() {
        let mut directory = Directory::default();
        let (one, other) = (1 << NODE_SHIFT, 2 << NODE_SHIFT);
        let first = directory.insert(one | 1, record(Kind::Publisher, topic("a", 1)));
        let second = directory.insert(other | 1, record(Kind::Subscriber, topic("a", 1)));
        assert!(Arc::ptr_eq(&first.topic.name, &second.topic.name), "names are kept once");
        let misfit = directory.insert(other | 2, record(Kind::Subscriber, topic("a", 2)));
        let elsewhere = directory.insert(other | 3, record(Kind::Subscriber, topic("b", 1)));
        assert!(Arc::ptr_eq(&first.topic.name, &misfit.topic.name));
        assert!(Arc::ptr_eq(&first.topic.of_type, &elsewhere.topic.of_type), "and types");
        assert!(Arc::ptr_eq(&first.settings, &elsewhere.settings), "and settings");
        assert_eq!(directory.fitting(&first), [other | 1]);
        assert_eq!(directory.fitting_of(one, &second), [one | 1]);
        assert!(directory.fitting_of(other, &second).is_empty());
        let [(id, mismatch)] = &directory.misfits_of(other, &first)[..] else { panic!("one") };
        assert_eq!((*id, mismatch.setting), (other | 2, Setting::Type));
        assert_eq!(directory.misfit(&topic("a", 1)).unwrap().0, other | 2);
        // It is observed all the same.
        assert!(directory.has_type(&topic("a", 1)) && !directory.has_type(&topic("b", 2)));
        let after = directory.of_node_after(other, other | 1).map(|(id, _)| id);
        assert_eq!(after.collect::<Vec<_>>(), [other | 2, other | 3]);
        directory.remove(other | 2).unwrap();
        assert!(directory.misfit(&topic("a", 1)).is_none());
        assert!(directory.misfit(&topic("c", 1)).is_none());
    }

    #[test]
    fn requested_settings_are_checked_if_one_side_chooses_it() {
        let mut directory = Directory::default();
        let mut requesting = record(Kind::Subscriber, topic("a", 1));
        requesting.qos.transient_local = 1;
        let publisher = directory.insert(1, record(Kind::Publisher, topic("a", 1)));
        directory.insert(2, requesting.clone());
        assert_eq!(directory.fitting(&publisher), [2], "by default any settings match");
        requesting.matching = Matching::RequestedOffered;
        let subscriber = directory.insert(3, requesting.clone());
        assert_eq!(directory.fitting(&publisher), [2]);
        assert!(directory.fitting(&subscriber).is_empty());
        let (ours, theirs) = (directory.misfits(&publisher), directory.misfits(&subscriber));
        assert_eq!((ours[0].0, theirs[0].0), (3, 1));
        assert_eq!((ours[0].1.setting, &ours[0].1), (Setting::Durability, &theirs[0].1));
        let mut offering = record(Kind::Publisher, topic("a", 1));
        offering.matching = Matching::RequestedOffered;
        let offering = directory.insert(4, offering);
        assert!(directory.fitting(&offering).is_empty(), "the publisher chooses it, too");
        requesting.attributes.insert(PASSIVE, b"").unwrap();
        let passive = directory.insert(5, requesting);
        assert_eq!(directory.fitting(&passive), [1, 4], "a recorder takes what is offered");
        assert_eq!(directory.fitting(&offering), [5]);
    }

    #[test]
    fn a_name_has_several_types_of_messages() {
        let mut directory = Directory::default();
        let of = |name: &str| Topic::of_messages("a".to_owned(), name);
        let first = directory.insert(1, record(Kind::Publisher, of("m::A")));
        assert!(directory.misfit(&of("m::A")).is_none());
        assert!(directory.misfit(&of("m::B")).is_none());
        assert_eq!(directory.misfit(&topic("a", 1)).unwrap().0, 1);
        directory.insert(2, record(Kind::Subscriber, of("m::B")));
        assert!(directory.fitting(&first).is_empty());
        directory.insert(3, record(Kind::Subscriber, topic("a", 1)));
        assert_eq!(directory.misfit(&of("m::A")).unwrap().0, 3);
    }

    #[test]
    fn a_removed_endpoint_leaves_no_entry() {
        let mut directory = Directory::default();
        for id in 1..6 {
            directory.insert(id, record(Kind::Publisher, topic("a", id / 2)));
        }
        assert!((1..6).all(|id| directory.remove(id).is_some()));
        let Directory { endpoints, on_topics, counts, types, settings, changes: _ } = &directory;
        assert!(endpoints.is_empty() && on_topics.is_empty() && counts.is_empty());
        assert!(types.0.is_empty() && settings.0.is_empty());
        assert!(directory.remove(1).is_none());
    }
}
