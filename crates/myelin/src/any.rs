//! Topics whose type a program learns when it meets them, by the schema that other nodes announce.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use myelin_value::{EncodeError, Kind, ReadError, SchemaError, Type, Value};

use crate::dynamic::DynamicType;
use crate::network::{Shape, private_type};
use crate::node::Node;
use crate::pattern::is_match;
use crate::topic::Topic;
use crate::{Change, EndpointId, EndpointInfo, Error, Graph, Location, Schema};

/// A topic of a type that the program does not know: its samples are bytes, and
/// [`value`](AnyTopic::value) reads their fields. Made by [`Node::any_topic`].
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use std::time::Duration;
/// # let folder = tempfile::tempdir().unwrap();
/// # let node = myelin::Node::builder("doc").runtime_dir(folder.path()).open()?;
/// # #[derive(Clone, Copy, myelin::PlainData)]
/// # #[repr(C)]
/// # struct Imu { stamp_ns: u64, acceleration: [f64; 3] }
/// # let publisher = node.topic::<Imu>("imu").publisher()?;
/// let topic = node.any_topic("imu", Duration::from_secs(1))?;
/// let mut subscriber = topic.topic().subscriber()?;
/// # publisher.wait_for_match(1, Duration::from_secs(60));
/// # publisher.publish_copy(&Imu { stamp_ns: 1, acceleration: [0.0, 0.0, 9.81] })?;
/// if let Some(sample) = subscriber.receive(Duration::from_secs(1))? {
///     let imu = topic.value(&sample)?;
///     assert_eq!(imu.get("acceleration[2]")?.as_f64()?, 9.81);
///     println!("{}", imu.to_json(100)?);
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct AnyTopic {
    topic: Topic<[u8]>,
    payload: DynamicType,
    ty: Arc<Type>,
    schema: Option<Schema>,
    problem: Option<SchemaError>,
}

/// The endpoints of the topics that a pattern names, as they come and go. Made by
/// [`Node::discover`].
#[derive(Debug)]
pub struct Discovery {
    node: Node,
    pattern: String,
    known: BTreeMap<EndpointId, EndpointInfo>,
    /// Whether it has not looked yet.
    is_new: bool,
}

impl Node {
    /// The publishers and subscribers on topics whose names match `pattern`: `*` stands for any text
    /// and `?` for one character. The first call of [`changes`](Discovery::changes) gives those that
    /// are there. With a [`network`](crate::NodeBuilder::network), those of other hosts and of DDS
    /// programs come as they are found.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let node = myelin::Node::builder("doc").runtime_dir(folder.path()).open()?;
    /// use myelin::Change;
    ///
    /// let publisher = node.topic::<[u8]>("camera/left").publisher()?;
    /// let mut cameras = node.discover("camera/*");
    /// for change in cameras.changes()? {
    ///     if let Change::Found(endpoint) = change {
    ///         println!("{} carries {}", endpoint.topic, endpoint.type_name);
    ///     }
    /// }
    /// # Ok::<(), myelin::Error>(())
    /// ```
    pub fn discover(&self, pattern: &str) -> Discovery {
        let (node, pattern) = (self.clone(), pattern.to_owned());
        Discovery { node, pattern, known: BTreeMap::new(), is_new: true }
    }

    /// A topic that another node has, with the type that it has there. A node of such an endpoint is
    /// asked for the schema of the type, and the next one if it has none; in all for at most `limit`.
    /// If there is none, or it cannot be read, values are
    /// bytes, and [`problem`](AnyTopic::problem) says why. The topics of other hosts count if they
    /// have been found: see [`discover`](Node::discover).
    ///
    /// # Errors
    /// [`Error::Setting`] if no known endpoint of Myelin has a topic of this name, or if endpoints of
    /// several types have it: then take [`any_topic_of`](Node::any_topic_of).
    pub fn any_topic(&self, name: &str, limit: Duration) -> Result<AnyTopic, Error> {
        let begin = Instant::now();
        self.start_network()?;
        // A node that never greets, such as a stopped one, leaves time for the schema.
        self.inner.wait_for_peers(limit / 2)?;
        let graph = self.graph()?;
        let is_of_myelin = |it: &&EndpointInfo| it.location != Location::Dds;
        let found = || graph.endpoints.iter().filter(is_of_myelin).filter(|it| it.topic == name);
        let Some(first) = found().next() else {
            let value = format!("{name:?}, which no known endpoint has");
            return Err(wrong_topic(value, "name a topic of the graph; Node::discover lists them"));
        };
        if found().any(|it| it.type_hash != first.type_hash) {
            let types: BTreeSet<_> = found().map(|it| &it.type_name).collect();
            let value = format!("{name:?}, which has the types {types:?}");
            return Err(wrong_topic(value, "choose an endpoint, with any_topic_of"));
        }
        let schema = self.schema_of(found(), limit.saturating_sub(begin.elapsed()))?;
        AnyTopic::of(self, first, schema.as_deref())
    }

    /// The topic of an endpoint, with its type: its node alone is asked. As for
    /// [`any_topic`](Node::any_topic).
    ///
    /// # Errors
    /// Those of [`graph_within`](Node::graph_within); [`Error::Setting`] for a topic of a service, or
    /// of a DDS program, which announces no schema.
    pub fn any_topic_of(
        &self,
        endpoint: &EndpointInfo,
        limit: Duration,
    ) -> Result<AnyTopic, Error> {
        let begin = Instant::now();
        self.start_network()?;
        let limit = limit.saturating_sub(begin.elapsed());
        let schema = self.schema_of([endpoint].into_iter(), limit)?;
        AnyTopic::of(self, endpoint, schema.as_deref())
    }

    /// The schema of the type of these endpoints, which all have the same. Their nodes are asked one
    /// after the other, those of this host first. Each gets an equal part of the time that is left: a
    /// stopped one does not use up all of it.
    fn schema_of<'a>(
        &self,
        endpoints: impl Iterator<Item = &'a EndpointInfo>,
        limit: Duration,
    ) -> Result<Option<Arc<Schema>>, Error> {
        let begin = Instant::now();
        let nodes = endpoints.map(|it| (it.location != Location::ThisHost, it.node, it.type_hash));
        let nodes: BTreeSet<_> = nodes.collect();
        for (asked, (is_elsewhere, node, type_hash)) in nodes.iter().copied().enumerate() {
            if let Some(own) = self.inner.schema(type_hash)? {
                return Ok(Some(own));
            }
            let limit = limit.saturating_sub(begin.elapsed()) / (nodes.len() - asked) as u32;
            let schema = match &self.network {
                Some(network) if is_elsewhere => network.schema(type_hash, limit),
                _ => self.inner.schema_from(node, type_hash, limit)?,
            };
            if schema.is_some() {
                return Ok(schema);
            }
        }
        Ok(None)
    }
}

impl AnyTopic {
    /// The topic of an endpoint, with the schema that a graph has of its type: for many topics of one
    /// graph, as of [`graph_within`](Node::graph_within).
    ///
    /// # Errors
    /// As for [`any_topic_of`](Node::any_topic_of).
    pub fn from_graph(node: &Node, found: &EndpointInfo, graph: &Graph) -> Result<AnyTopic, Error> {
        let of_type = graph.types.iter().find(|it| it.hash == found.type_hash);
        AnyTopic::of(node, found, of_type.and_then(|it| it.schema.as_deref()))
    }

    /// The topic of an endpoint, with the schema of its type.
    fn of(node: &Node, found: &EndpointInfo, schema: Option<&Schema>) -> Result<AnyTopic, Error> {
        if found.type_name.contains(" -> ") {
            let value = format!("{:?}, which belongs to a service", found.topic);
            return Err(wrong_topic(value, "name a topic of samples"));
        }
        if found.location == Location::Dds {
            let value = format!("{:?}, which belongs to a DDS program", found.topic);
            return Err(wrong_topic(value, "name a topic of Myelin, or make it with dds_cdr"));
        }
        let message = myelin_shm::topic::message_type(&found.type_name);
        let name = ros_name(message.unwrap_or(&found.type_name));
        let parsed = schema.map(|schema| {
            myelin_value::Schema::new(&schema.encoding, &name, &schema.content).parse()
        });
        let (ty, problem) = match parsed {
            Some(Ok(ty)) => (ty, None),
            Some(Err(problem)) => (Type::any_bytes(), Some(problem)),
            None => (Type::any_bytes(), None),
        };
        let bytes = ty.bytes().filter(|_| message.is_none());
        let shape = shape_of(&ty).filter(|_| schema.is_some() && problem.is_none());
        if shape.is_none() && message.is_none() && found.location != Location::ThisHost {
            let value =
                format!("{:?}, whose type {} is not described", found.topic, found.type_name);
            return Err(wrong_topic(value, "wait longer for the schema that its host sends"));
        }
        let shape = shape.unwrap_or(Shape::Bytes);
        let payload = DynamicType::learnt(&found.type_name, found.type_hash, bytes, shape);
        let mut topic = match message {
            Some(name) => node.topic(&found.topic).dds_cdr(name),
            None => node.dynamic_topic(&found.topic, &payload),
        };
        if let Some(dds) = &found.dds {
            topic = topic.dds_name(&dds.topic);
            if message.is_none() && dds.type_name != private_type(found.type_hash) {
                topic = topic.dds_type(&dds.type_name);
            }
        }
        if let Some(schema) = schema {
            topic = topic.schema(&schema.encoding, &schema.content);
        }
        let (ty, schema) = (Arc::new(ty), schema.cloned());
        Ok(AnyTopic { topic, payload, ty, schema, problem })
    }

    /// The topic, with default settings: its samples are bytes.
    pub fn topic(&self) -> Topic<[u8]> {
        self.topic.clone()
    }

    /// The type of its payload, for bindings of other languages.
    #[doc(hidden)]
    pub fn dynamic_type(&self) -> DynamicType {
        self.payload.clone()
    }

    /// The type of its samples: `[u8]` if the schema is missing or cannot be read.
    pub fn ty(&self) -> &Type {
        &self.ty
    }

    /// How its samples are to be read; `None` if no node has reported it.
    pub fn schema(&self) -> Option<&Schema> {
        self.schema.as_ref()
    }

    /// Why the schema cannot be read; `None` also if no node has reported one.
    pub fn problem(&self) -> Option<&SchemaError> {
        self.problem.as_ref()
    }

    /// A view of a sample's fields: it copies nothing.
    ///
    /// # Errors
    /// Bytes that are no value of the type.
    pub fn value<'a>(&'a self, sample: &'a [u8]) -> Result<Value<'a>, ReadError> {
        Value::new(&self.ty, sample)
    }

    /// The bytes of a sample, to be published on [`topic`](AnyTopic::topic), from JSON. A
    /// missing field has the default of its definition, or is zero or empty.
    ///
    /// # Errors
    /// A value that does not fit the type, with the path of the field.
    pub fn encode_json(&self, json: &serde_json::Value) -> Result<Vec<u8>, EncodeError> {
        myelin_value::encode_json(&self.ty, json)
    }
}

impl Discovery {
    /// What has come and gone since the last call, by id. The first call waits until all nodes of this
    /// host have announced themselves, for at most 0.5 s. [`Node::trigger_on_graph_change`] wakes a
    /// thread when there may be something.
    ///
    /// # Errors
    /// Those of [`Node::graph`].
    pub fn changes(&mut self) -> Result<Vec<Change>, Error> {
        self.node.start_network()?;
        if std::mem::take(&mut self.is_new) {
            // A fresh node knows nobody yet.
            self.node.inner.wait_for_peers(FIRST_LOOK_LIMIT)?;
        }
        let endpoints = self.node.graph()?.endpoints.into_iter();
        let now: BTreeMap<_, _> = endpoints
            .filter(|it| is_match(&self.pattern, &it.topic))
            .map(|it| (it.id, it))
            .collect();
        let before = std::mem::replace(&mut self.known, now);
        let gone = before.iter().filter(|(id, _)| !self.known.contains_key(id));
        let found = self.known.iter().filter(|(id, _)| !before.contains_key(id));
        let gone = gone.map(|(_, it)| Change::Gone(it.clone()));
        Ok(gone.chain(found.map(|(_, it)| Change::Found(it.clone()))).collect())
    }

    /// The endpoints of the last call of [`changes`](Discovery::changes), by id.
    pub fn endpoints(&self) -> impl Iterator<Item = &EndpointInfo> {
        self.known.values()
    }
}

fn wrong_topic(value: String, remedy: &'static str) -> Error {
    Error::Setting { topic: None, field: "the topic", value, remedy }
}

/// The shape of plain data in CDR; `None` if its alignment is not known.
fn shape_of(ty: &Type) -> Option<Shape> {
    match (ty.kind(), ty.bytes()) {
        (_, Some(bytes)) => Some(Shape::Value { bytes }),
        (Kind::Sequence { element, .. }, None) => {
            let (align, first_align) = (align_of(element)?, first_align_of(element)?);
            Some(Shape::Sequence {
                element: element.bytes()?,
                align: align.min(8),
                first_align: first_align.min(8),
            })
        }
        _ => Some(Shape::Bytes),
    }
}

/// The alignment of the largest number of plain data.
fn align_of(ty: &Type) -> Option<usize> {
    match ty.kind() {
        Kind::Primitive(primitive) => Some(primitive.bytes()),
        Kind::String { .. } => Some(1),
        Kind::Array { element, .. } => align_of(element),
        Kind::Sequence { element, .. } => Some(align_of(element)?.max(LENGTH_BYTES)),
        Kind::Struct { fields, .. } => {
            fields.iter().try_fold(1, |align, field| Some(align.max(align_of(&field.ty)?)))
        }
        _ => None,
    }
}

/// The alignment of the first number of plain data.
fn first_align_of(ty: &Type) -> Option<usize> {
    match ty.kind() {
        Kind::Array { element, .. } => first_align_of(element),
        Kind::Sequence { .. } => Some(LENGTH_BYTES),
        Kind::Struct { fields, .. } => first_align_of(&fields.first()?.ty),
        _ => align_of(ty),
    }
}

/// The name in ROS 2 of a type with this name in DDS; other names stay.
fn ros_name(dds: &str) -> String {
    let name = dds.replace("::dds_::", "::").replace("::", "/");
    if dds.contains("::dds_::") { name.strip_suffix('_').unwrap_or(&name).to_owned() } else { name }
}

/// How long the first look waits for the other nodes.
const FIRST_LOOK_LIMIT: Duration = Duration::from_millis(500);
/// The count in front of a `BoundedVec`.
const LENGTH_BYTES: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::sealed::Raw;
    use crate::{BoundedVec, FixedString, PlainData};

    #[derive(Clone, Copy, PlainData)]
    #[repr(C)]
    struct Part {
        name: FixedString<4>,
        weights: [f32; 2],
    }

    #[derive(Clone, Copy, PlainData)]
    #[repr(C)]
    struct Parts {
        stamp: u64,
        parts: BoundedVec<Part, 2>,
    }

    #[test]
    fn the_shape_of_a_learnt_type_is_that_of_the_type() {
        fn check<T: Raw + ?Sized>() {
            let layout = T::layout();
            let schema = myelin_value::Schema::new("myelin-layout", "", layout.as_bytes());
            assert_eq!(shape_of(&schema.parse().unwrap()), Some(T::SHAPE), "{layout}");
        }
        check::<f64>();
        check::<Parts>();
        check::<[u8]>();
        check::<[u128]>();
        check::<[[u16; 3]]>();
        check::<[Part]>();
        check::<[Parts]>();
        check::<(Part, [u64])>();
    }

    #[test]
    fn the_encoding_of_layouts_has_one_name() {
        assert_eq!(myelin_value::Schema::LAYOUT, crate::Schema::LAYOUT);
    }

    #[test]
    fn names_of_ros_come_from_those_of_dds() {
        assert_eq!(ros_name("std_msgs::msg::dds_::String_"), "std_msgs/msg/String");
        assert_eq!(ros_name("HelloWorld_"), "HelloWorld_");
    }
}
