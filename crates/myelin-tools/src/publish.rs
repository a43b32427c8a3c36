//! A publisher on a topic whose type this program learns: `myelin topic pub`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use myelin::{
    AnyTopic, DynamicType, EndpointInfo, Graph, Matching, Publisher, Reliability, TypeInfo,
};
use myelin_shm::topic::message_type;
use myelin_value::Schema;
use serde_json::Value as Json;

use crate::document::Format;
use crate::info::format_of;
use crate::select::{self, is_meant, missing};
use crate::session::{Place, Session};
use crate::signals::Stop;
use crate::text::{counted, printable};
use crate::{Error, discovery, names, protobuf, ros};

/// A publisher with the type and the settings that the topic's subscribers need.
#[derive(Debug)]
pub struct Target {
    session: Session,
    name: String,
    type_name: String,
    topic: AnyTopic,
    format: Format,
    publisher: Publisher<[u8]>,
}

impl Target {
    /// Opens the topic that somebody typed. Its type is that of its subscribers, else of its
    /// publishers; `ty` chooses another one, or the type of a new topic: the name of a type that
    /// the domain has, or a layout such as `f64` or `Point{x: f32 @0, y: f32 @4} 8`.
    ///
    /// # Errors
    /// No such topic and no type; several types; a type that is not known.
    pub fn open(
        session: Session,
        place: &Place,
        typed: &str,
        ty: Option<&str>,
    ) -> Result<Target, Error> {
        let mut graph = discovery::graph(&session, ANSWER_LIMIT)?;
        let endpoint = endpoint_for(&mut graph, &session, place, typed, ty)?;
        let topic = ros::any_topic(session.node(), &endpoint, &graph)?;
        let format = format_of(&graph, &endpoint);
        let publisher = with_qos_for(topic.topic(), &graph, &endpoint)?;
        let (name, type_name) = (ros::topic_name(&endpoint), ros::type_name(&endpoint));
        let (name, type_name) = (printable(name).into_owned(), printable(&type_name).into_owned());
        Ok(Target { session, name, type_name, topic, format, publisher })
    }

    /// The bytes of a sample.
    ///
    /// # Errors
    /// A value that does not fit the type, with the path of the field.
    pub fn encode(&self, value: &Json) -> Result<Vec<u8>, Error> {
        let (name, ty) = (&self.name, &self.type_name);
        let bytes = match (&self.format, value) {
            (Format::Protobuf(message), value) => protobuf::encode(message, value),
            (Format::Json, value) => return Ok(value.to_string().into_bytes()),
            (Format::Text | Format::Bytes, Json::String(text)) => return Ok(text.clone().into()),
            (Format::Text, _) => Err("a text is needed".to_owned()),
            _ => {
                self.topic.encode_json(value).map_err(|error| printable(&error.to_string()).into())
            }
        };
        bytes.map_err(|error: String| {
            let hint = format!("`myelin topic info {name}` shows the fields of {ty}");
            Error::BadInput(format!("the value does not fit {ty}: {error}; {hint}"))
        })
    }

    /// Waits for so many subscribers.
    ///
    /// # Errors
    /// Fewer within `limit`, with the reason if one is refused.
    pub fn wait_for(&self, subscribers: usize, limit: Duration, stop: &Stop) -> Result<(), Error> {
        let begin = Instant::now();
        while !stop.is_set() {
            let left = limit.saturating_sub(begin.elapsed());
            if self.publisher.wait_for_match(subscribers, left.min(SLICE)) {
                return Ok(());
            }
            if left.is_zero() {
                let matched = self.publisher.matched();
                let mut text = format!(
                    "{}: {matched} of {} within {limit:?}; wait longer (--wait-limit), or for none \
                     (--wait 0)",
                    self.name,
                    counted(subscribers, "subscriber")
                );
                let graph = self.session.node().graph()?;
                let reasons: BTreeMap<&str, u64> = crate::list::refusals(&graph)
                    .filter(|(one, other, _)| [*one, *other].contains(&self.publisher.id()))
                    .map(|(one, _, reason)| (reason, one))
                    .collect();
                for reason in reasons.keys().take(1) {
                    text += &format!(". A subscriber is refused: {}", printable(reason));
                }
                return Err(Error::NotFound(text));
            }
        }
        Ok(())
    }

    /// Publishes a sample; returns how many late subscribers were not waited for.
    ///
    /// # Errors
    /// Those of [`Publisher::publish_copy`].
    pub fn publish(&self, sample: &[u8]) -> Result<u32, Error> {
        Ok(self.publisher.publish_copy(sample)?.passed_over)
    }

    /// Waits until other hosts have acknowledged the samples, for a limited time.
    pub fn finish(&self) -> bool {
        self.publisher.wait_for_acknowledgements(FINISH_LIMIT)
    }

    /// The topic's name, as people write it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The number of its subscribers.
    pub fn matched(&self) -> usize {
        self.publisher.matched()
    }
}

/// An endpoint with the topic and type to publish; a new type is added to the graph.
fn endpoint_for(
    graph: &mut Graph,
    session: &Session,
    place: &Place,
    typed: &str,
    ty: Option<&str>,
) -> Result<EndpointInfo, Error> {
    if names::is_pattern(typed) {
        return Err(Error::BadInput(format!("{typed:?} is a pattern; name one topic")));
    }
    let all = select::all(graph);
    let meant = all.iter().find(|(name, _)| is_meant(typed, **name, &all));
    let Some(((shown, _), endpoints)) = meant else {
        return match ty {
            Some(ty) => of_type(graph, typed, ty),
            None => {
                let names = all.keys().map(|(shown, _)| *shown);
                let error = missing(typed, names, session, place).to_string();
                Err(Error::NotFound(format!("{error} A new topic needs its type: --type")))
            }
        };
    };
    if ros::is_of_service(endpoints[0]) {
        let what = format!("{typed:?} belongs to a service; use `myelin service call`");
        return Err(Error::BadInput(what));
    }
    let has_subscriber = endpoints.iter().any(|it| !it.is_publisher);
    let of_kind = || endpoints.iter().filter(|it| it.is_publisher != has_subscriber);
    if let Some(ty) = ty {
        let is_it = |it: &&&EndpointInfo| ros::type_name(it) == ty || it.type_name == ty;
        if let Some(found) = endpoints.iter().find(is_it) {
            return Ok((*found).clone());
        }
        let raw = endpoints[0].topic.clone();
        return of_type(graph, &raw, ty);
    }
    let first = of_kind().next().expect("a topic has endpoints");
    if let Some(other) = of_kind().find(|it| it.type_hash != first.type_hash) {
        let types = [first, other].map(|it| printable(&ros::type_name(it)).into_owned());
        return Err(Error::BadInput(format!(
            "{} has several types; choose one: --type {:?} or --type {:?}",
            printable(shown),
            types[0],
            types[1]
        )));
    }
    Ok((*first).clone())
}

/// A new topic of a type: one that the domain has, or a layout.
fn of_type(graph: &mut Graph, topic: &str, ty: &str) -> Result<EndpointInfo, Error> {
    let is_it = |it: &&EndpointInfo| ros::type_name(it) == ty || it.type_name == ty;
    if let Some(like) = graph.endpoints.iter().find(is_it) {
        let mut endpoint = EndpointInfo::default();
        // As ROS 2 does it.
        let is_of_ros = message_type(&like.type_name).is_some() && topic.starts_with('/');
        endpoint.topic = format!("{}{topic}", if is_of_ros { "rt" } else { "" });
        (endpoint.type_name, endpoint.type_hash) = (like.type_name.clone(), like.type_hash);
        return Ok(endpoint);
    }
    let described = DynamicType::from_layout(ty);
    let described = described.map_err(|error| {
        let names = graph.endpoints.iter().map(|it| ros::type_name(it).into_owned());
        let names: Vec<String> = names.collect();
        let nearest = names::nearest(ty, names.iter().map(|it| &**it));
        let hint = nearest.map(|it| format!("; did you mean {:?}?", printable(it)));
        Error::BadInput(format!(
            "--type {ty:?}: no node has a type of this name; {}{}",
            printable(&error.to_string()),
            hint.unwrap_or_default()
        ))
    })?;
    let mut endpoint = EndpointInfo::default();
    endpoint.topic = topic.to_owned();
    endpoint.type_name = described.type_name().to_owned();
    endpoint.type_hash = described.hash();
    let schema = Schema::layout(described.layout());
    let schema = myelin::Schema { encoding: schema.encoding.into(), content: schema.text.into() };
    graph.types.push(TypeInfo {
        hash: endpoint.type_hash,
        name: endpoint.type_name.clone(),
        schema: Some(Arc::new(schema)),
    });
    Ok(endpoint)
}

/// A publisher that offers what the subscribers of its topic and type request.
fn with_qos_for(
    topic: myelin::Topic<[u8]>,
    graph: &Graph,
    endpoint: &EndpointInfo,
) -> Result<Publisher<[u8]>, Error> {
    let is_of_it = |it: &&EndpointInfo| {
        it.topic == endpoint.topic && it.type_hash == endpoint.type_hash && !it.is_publisher
    };
    let subscribers: Vec<&EndpointInfo> = graph.endpoints.iter().filter(is_of_it).collect();
    let qos = || subscribers.iter().map(|it| &it.qos);
    let history = qos().map(|it| it.transient_local).max().unwrap_or(0);
    let depth =
        qos().map(|it| it.depth).max().unwrap_or(0).max(history).clamp(DEPTH_MIN, DEPTH_MAX);
    let mut topic = topic.depth(depth).transient_local(history.min(depth));
    if qos().any(|it| it.reliability == Reliability::Reliable) {
        topic = topic.reliable(BLOCK_MAX);
    } else if qos().any(|it| it.is_reliable()) {
        topic = topic.reliable_keep_last();
    }
    if let Some(deadline) = qos().filter_map(|it| it.deadline).min() {
        topic = topic.deadline(deadline);
    }
    topic = topic.announced_only(None, qos().any(|it| it.is_alive_by_topic));
    if subscribers.iter().any(|it| it.matching == Matching::RequestedOffered) {
        topic = topic.matching(Matching::RequestedOffered);
    }
    let mut builder = topic.publisher_builder().timestamps(true);
    if let Some(lease) = qos().filter_map(|it| it.liveliness).min() {
        builder = builder.liveliness(lease);
    }
    Ok(builder.open()?)
}

/// How long to wait for the nodes' answers.
const ANSWER_LIMIT: Duration = Duration::from_secs(1);
/// How long a wait is at most, so that Ctrl-C is noticed.
const SLICE: Duration = Duration::from_millis(100);
/// How long a publish waits for late subscribers that are reliable.
const BLOCK_MAX: Duration = Duration::from_secs(1);
const FINISH_LIMIT: Duration = Duration::from_secs(2);
const DEPTH_MIN: u32 = 16;
const DEPTH_MAX: u32 = 65_535;
