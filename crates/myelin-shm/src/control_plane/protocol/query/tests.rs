//! Valid and invalid queries and answers of a peer.

use super::*;
use crate::control_plane::directory::NODE_SHIFT;
use crate::control_plane::protocol::Input;
use crate::control_plane::protocol::graph::{Graph, MatchState};
use crate::control_plane::protocol::hostile::{LINK, Met, PEER, PUBLISHER, SUBSCRIBER};

/// After a graph query, the last of `answers` ends the link, and those before do not.
fn is_dropped_for_the_last_of(answers: Vec<ControlMessage>) {
    let mut met = Met::new();
    assert_eq!(met.handle(Input::QueryGraph), [query(0)]);
    for answer in answers {
        assert!(met.is_linked(), "before {answer:?}");
        met.receives(answer);
    }
    assert!(!met.is_linked());
    let graph = met.protocol.graph(&Counted::new(), Some(1));
    assert_eq!(graph, Graph { nodes: graph.nodes.clone(), ..Graph::default() });
}

fn counted(endpoints: &[EndpointId]) -> ControlMessage {
    ControlMessage::Counted { endpoints: endpoints.to_vec() }
}

fn query(from: EndpointId) -> ControlMessage {
    ControlMessage::Query { from }
}

fn matched(endpoint: EndpointId, other: EndpointId) -> ControlMessage {
    matches_of(endpoint, [other])
}

fn matches_of(
    endpoint: EndpointId,
    others: impl IntoIterator<Item = EndpointId>,
) -> ControlMessage {
    let info = |other| MatchInfo { endpoint, other, state: MatchState::Matched };
    ControlMessage::MatchesReported { matches: others.into_iter().map(info).collect() }
}

fn layout(type_hash: u64, text: &str, is_last: bool) -> ControlMessage {
    let encoding = "myelin-layout".to_owned();
    ControlMessage::Schema { type_hash, encoding, part: text.into(), is_last }
}

const END: ControlMessage = ControlMessage::Answered { is_complete: true };

#[test]
fn answers_of_a_peer_are_in_the_graph_during_the_query() {
    let mut met = Met::new();
    assert_eq!(met.handle(Input::QueryGraph), [query(0)]);
    let graph_query = met.protocol.graph_query();
    for answer in [
        counted(&[PUBLISHER]),
        counted(&[SUBSCRIBER, PEER | 3]),
        matched(PUBLISHER, 1),
        matched(PUBLISHER, 2),
        matched(SUBSCRIBER, 1),
        layout(7, "T{a: ", false),
        layout(7, "u8 @0} 1", true),
    ] {
        assert!(met.receives(answer).is_empty());
        assert!(met.protocol.is_awaited(graph_query));
    }
    let silent = met.protocol.graph(&Counted::new(), Some(graph_query));
    assert_eq!((silent.silent, silent.matches.len()), (vec![PEER], 0));
    met.receives(ControlMessage::Answered { is_complete: false });
    assert!(met.is_linked() && !met.protocol.is_awaited(graph_query));
    let graph = met.protocol.graph(&Counted::new(), Some(graph_query));
    assert_eq!((&graph.silent[..], &graph.incomplete[..]), (&[][..], &[PEER][..]));
    assert_eq!(graph.matches.len(), 3);
    assert_eq!(graph.types[0].schema.as_ref().unwrap().layout(), Some("T{a: u8 @0} 1"));
    assert!(
        met.protocol.graph(&Counted::new(), None).matches.is_empty(),
        "no peer was queried for this one"
    );
    met.protocol.end_query();
    assert_eq!(met.protocol.answers(graph_query).count(), 0);
    let again = met.handle(Input::QueryGraph);
    assert_eq!(again, [query(PEER | 4)], "it is queried again, for newer endpoints");
}

/// What a peer answers to a query that began before may be older than this one.
#[test]
fn a_query_during_another_one_gets_an_answer_of_its_own() {
    let mut met = Met::new();
    assert_eq!(met.handle(Input::QueryGraph), [query(0)]);
    let first = met.protocol.graph_query();
    assert!(met.handle(Input::QueryGraph).is_empty(), "the peer has not answered the first");
    let second = met.protocol.graph_query();
    assert!(met.handle(Input::QueryGraph).is_empty());
    let third = met.protocol.graph_query();
    met.receives(counted(&[PUBLISHER]));
    assert_eq!(met.receives(END), [query(PUBLISHER + 1)], "one for both of the others");
    assert!(!met.protocol.is_awaited(first) && met.protocol.is_awaited(second));
    assert_eq!((met.protocol.answers(first).count(), met.protocol.answers(second).count()), (1, 0));
    assert!(met.receives(END).is_empty());
    assert!(!met.protocol.is_awaited(third));
    for _ in 0..2 {
        met.protocol.end_query();
        assert_eq!(met.protocol.answers(third).count(), 1);
    }
    met.protocol.end_query();
    assert_eq!(met.protocol.answers(third).count(), 0);
}

#[test]
fn an_unexpected_late_answer_is_dropped() {
    let mut met = Met::new();
    met.handle(Input::QueryGraph);
    met.protocol.end_query();
    met.receives(counted(&[PUBLISHER]));
    met.receives(END);
    assert_eq!(met.protocol.answers(0).count(), 0);
    met.handle(Input::QueryGraph);
    assert!(met.protocol.is_awaited(met.protocol.graph_query()), "it is queried anew");
}

#[test]
fn unrequested_answers_end_the_link() {
    for answer in [counted(&[PUBLISHER]), matched(PUBLISHER, 1), layout(7, "u8", true), END] {
        let mut met = Met::new();
        met.receives(answer);
        assert!(!met.is_linked());
    }
    is_dropped_for_the_last_of(vec![END, END]);
}

#[test]
fn answers_out_of_order_or_about_others_end_the_link() {
    is_dropped_for_the_last_of(vec![counted(&[PUBLISHER]), counted(&[PUBLISHER])]);
    is_dropped_for_the_last_of(vec![counted(&[PUBLISHER, PUBLISHER])]);
    is_dropped_for_the_last_of(vec![counted(&[SUBSCRIBER]), counted(&[PUBLISHER])]);
    is_dropped_for_the_last_of(vec![counted(&[SUBSCRIBER, PUBLISHER])]);
    is_dropped_for_the_last_of(vec![counted(&[3 << NODE_SHIFT | 1])]);
    is_dropped_for_the_last_of(vec![counted(&[1 << NODE_SHIFT | 1])]);
    is_dropped_for_the_last_of(vec![matched(PUBLISHER, 2), matched(PUBLISHER, 2)]);
    is_dropped_for_the_last_of(vec![matched(SUBSCRIBER, 1), matched(PUBLISHER, 2)]);
    is_dropped_for_the_last_of(vec![matches_of(PUBLISHER, [2, 1])]);
    is_dropped_for_the_last_of(vec![matched(3 << NODE_SHIFT | 1, PUBLISHER)]);
    is_dropped_for_the_last_of(vec![layout(7, "a", false), layout(8, "b", true)]);
    is_dropped_for_the_last_of(vec![layout(7, "a", true), layout(7, "b", true)]);
    is_dropped_for_the_last_of(vec![layout(7, "", false)]);
    is_dropped_for_the_last_of(vec![layout(7, "a", false), END]);
    let encoded = |encoding: &str| ControlMessage::Schema {
        type_hash: 7,
        encoding: encoding.to_owned(),
        part: vec![1],
        is_last: false,
    };
    is_dropped_for_the_last_of(vec![encoded("a"), encoded("b")]);
    is_dropped_for_the_last_of(vec![encoded(&"x".repeat(33))]);
}

#[test]
fn answers_without_end_are_bounded() {
    let text = "x".repeat(MESSAGE_SCHEMA_BYTES_MAX);
    let parts = SCHEMA_BYTES_MAX / text.len();
    let mut long = vec![layout(7, &text, false); parts + 1];
    is_dropped_for_the_last_of(long.clone());
    long.truncate(parts);
    let types = SCHEMAS_BYTES_MAX / (parts * text.len());
    let of_type = |hash| {
        let last = parts - 1;
        (0..parts).map(|part| layout(hash, &text, part == last)).collect::<Vec<_>>()
    };
    let mut many: Vec<_> = (0..types as u64).flat_map(of_type).collect();
    let rest = SCHEMAS_BYTES_MAX - many.len() * text.len();
    many.extend(of_type(types as u64).into_iter().take(rest / text.len() + 1));
    is_dropped_for_the_last_of(many);
    let matches = 0..=MATCHES_REPORTED_MAX as u64;
    is_dropped_for_the_last_of(matches.map(|other| matched(PUBLISHER, other)).collect());
    // A peer may report endpoints that have left for ever; nothing is kept about them.
    let mut met = Met::new();
    met.handle(Input::QueryGraph);
    for count in 0..100_000 {
        let sent = met.receives(counted(&[PEER | (100 + count)]));
        assert!(sent.is_empty() && met.is_linked());
    }
}

#[test]
fn a_peer_gets_the_whole_graph_and_may_ask_again() {
    let mut met = Met::new();
    let long = "ü".repeat(SCHEMA_BYTES_MAX / 2);
    met.protocol.describe(7, Schema::of_layout(long.clone()));
    met.protocol.describe(8, Schema::of_layout(format!("{long}ü")));
    met.protocol.describe(9, Schema::of_layout(String::new()));
    for _ in 0..2 {
        let sent = met.receives(query(0));
        let (end, schemas) = sent.split_last().unwrap();
        assert_eq!(*end, END);
        let parts = schemas.iter().map(|message| match message {
            ControlMessage::Schema { type_hash: 7, part, .. } => &part[..],
            other => panic!("{other:?}: the others are too long, or nothing"),
        });
        assert_eq!(parts.collect::<Vec<_>>().concat(), long.as_bytes());
    }
}

#[test]
fn a_peer_that_asks_again_before_its_answer_is_dropped() {
    let mut met = Met::new();
    for count in 0..40 {
        met.protocol.describe(count, Schema::of_layout("u8".to_owned()));
    }
    let received = || Input::Received { link: LINK, message: query(0), descriptors: Vec::new() };
    met.protocol.handle(0, received());
    assert!(met.is_linked());
    met.protocol.handle(0, received());
    assert!(!met.is_linked());
}

#[test]
fn a_peer_gets_the_segments_of_all_endpoints_once_and_then_those_of_newer_ones() {
    let mut met = Met::new();
    let counted = |sent: &[ControlMessage]| -> Vec<Vec<EndpointId>> {
        let endpoints = sent.iter().filter_map(|message| match message {
            ControlMessage::Counted { endpoints } => Some(endpoints.clone()),
            _ => None,
        });
        endpoints.collect()
    };
    assert!(counted(&met.receives(query(0))).is_empty(), "there are none");
    let made: Vec<_> = (0..40).map(|_| met.makes_publisher()).collect();
    let sent = counted(&met.receives(query(0)));
    assert_eq!(sent.iter().map(Vec::len).collect::<Vec<_>>(), [32, 8]);
    assert_eq!(sent.concat(), made);
    let next = made.last().unwrap() + 1;
    assert!(counted(&met.receives(query(next))).is_empty(), "they have been sent");
    let newer = met.makes_publisher();
    assert_eq!(counted(&met.receives(query(next))), [[newer]]);
    met.handle(Input::Dropped { id: newer });
    assert!(counted(&met.receives(query(next))).is_empty(), "it has gone");
}

#[test]
fn a_segment_that_was_not_mapped_is_asked_for_again() {
    let mut met = Met::new();
    met.handle(Input::QueryGraph);
    met.receives(counted(&[PUBLISHER, SUBSCRIBER]));
    met.receives(END);
    assert_eq!(met.handle(Input::QueryGraph), [query(SUBSCRIBER + 1)]);
    met.receives(END);
    met.handle(Input::NotCounted { endpoint: SUBSCRIBER });
    met.handle(Input::NotCounted { endpoint: PUBLISHER });
    assert_eq!(met.handle(Input::QueryGraph), [query(PUBLISHER)]);
    let endpoints = vec![PUBLISHER, SUBSCRIBER];
    let message = ControlMessage::Counted { endpoints };
    // Without descriptors: this process can open no more files.
    let received = Input::Received { link: LINK, message, descriptors: Vec::new() };
    let actions = met.protocol.handle(0, received);
    let lacks =
        |action: &Action<()>| matches!(action, Action::MapCounters { descriptor: None, .. });
    assert!(actions.len() == 2 && actions.iter().all(lacks), "{actions:?}");
}

/// The type of the peer's endpoints.
const TYPE: u64 = 7;
const QUERY_SCHEMA: ControlMessage = ControlMessage::QuerySchema { type_hash: TYPE };

fn queries_schema(met: &mut Met) -> Vec<ControlMessage> {
    met.handle(Input::QuerySchema { node: PEER, type_hash: TYPE })
}

#[test]
fn a_schema_query_gets_one_schema_and_runs_once_for_all_who_wait() {
    let mut met = Met::new();
    assert_eq!(queries_schema(&mut met), [QUERY_SCHEMA]);
    assert!(queries_schema(&mut met).is_empty(), "another thread waits for the same answer");
    met.receives(layout(TYPE, "u", false));
    met.receives(layout(TYPE, "8", true));
    assert!(met.protocol.is_awaiting_schema(PEER, TYPE));
    met.receives(END);
    assert!(!met.protocol.is_awaiting_schema(PEER, TYPE));
    assert!(queries_schema(&mut met).is_empty(), "it has come");
    for _ in 0..3 {
        assert_eq!(met.protocol.sent_schema(PEER, TYPE).unwrap().layout(), Some("u8"));
        met.protocol.end_query();
    }
    assert!(met.protocol.sent_schema(PEER, TYPE).is_none(), "nothing is kept");
    assert_eq!(queries_schema(&mut met), [QUERY_SCHEMA]);
    met.receives(END);
    assert!(!met.protocol.is_awaiting_schema(PEER, TYPE), "it has none");
    assert!(met.protocol.sent_schema(PEER, TYPE).is_none());
}

#[test]
fn answers_other_than_the_requested_schema_end_the_link() {
    let part = "x".repeat(MESSAGE_SCHEMA_BYTES_MAX);
    let too_long = vec![layout(TYPE, &part, false); SCHEMA_BYTES_MAX / part.len() + 1];
    for answers in [
        vec![layout(TYPE + 1, "u8", true)],
        vec![layout(TYPE, "u8", true), layout(TYPE + 1, "u8", true)],
        vec![layout(TYPE, "u8", true), layout(TYPE, "u8", true)],
        vec![layout(TYPE, "u", false), END],
        vec![layout(TYPE, "", false)],
        vec![counted(&[PUBLISHER])],
        vec![matched(PUBLISHER, 1)],
        vec![END, END],
        too_long,
    ] {
        let mut met = Met::new();
        queries_schema(&mut met);
        let (last, before) = answers.split_last().unwrap();
        before.iter().for_each(|answer| drop(met.receives(answer.clone())));
        assert!(met.is_linked(), "before {last:?}");
        met.receives(last.clone());
        assert!(!met.is_linked() && !met.protocol.is_awaiting_schema(PEER, TYPE), "{last:?}");
    }
}

#[test]
fn a_peer_that_never_sends_a_schema_costs_one_message_and_keeps_nothing() {
    let mut met = Met::new();
    assert_eq!(queries_schema(&mut met), [QUERY_SCHEMA]);
    met.protocol.end_query();
    for type_hash in 0..1_000 {
        assert!(met.handle(Input::QuerySchema { node: PEER, type_hash }).is_empty());
        assert!(met.protocol.is_awaiting_schema(PEER, type_hash));
        met.protocol.end_query();
    }
    let query = &met.protocol.greeted().next().unwrap().query;
    assert!(query.waiting.is_empty() && query.schemas.is_empty());
    // Its late answer is for nobody.
    met.receives(layout(TYPE, "u8", true));
    assert!(met.receives(END).is_empty());
    assert!(met.protocol.sent_schema(PEER, TYPE).is_none());
}

#[test]
fn a_peer_answers_one_query_after_the_other() {
    let mut met = Met::new();
    queries_schema(&mut met);
    assert!(met.handle(Input::QueryGraph).is_empty());
    let graph_query = met.protocol.graph_query();
    assert_eq!(met.receives(END), [query(0)]);
    assert!(queries_schema(&mut met).is_empty() && met.protocol.is_awaited(graph_query));
    assert_eq!(met.receives(END), [QUERY_SCHEMA]);
    assert!(!met.protocol.is_awaited(graph_query), "the schema is another query");
    met.receives(layout(TYPE, "u8", true));
    met.receives(END);
    assert!(met.protocol.sent_schema(PEER, TYPE).is_some());
}

#[test]
fn a_peer_gets_the_schema_that_it_asks_for() {
    let mut met = Met::new();
    met.protocol.describe(8, Schema::of_layout("u8".to_owned()));
    met.protocol.describe(9, Schema::of_layout("u16".to_owned()));
    let sent = met.receives(ControlMessage::QuerySchema { type_hash: 9 });
    assert_eq!(sent, [layout(9, "u16", true), END]);
    assert_eq!(met.receives(ControlMessage::QuerySchema { type_hash: 10 }), [END]);
}

#[test]
fn a_peer_that_asks_for_schemas_without_reading_is_dropped() {
    let mut met = Met::with_peer_that_reads(false);
    met.makes_publisher(); // a burst that it does not read
    met.receives(QUERY_SCHEMA);
    assert!(met.is_linked());
    met.receives(QUERY_SCHEMA);
    assert!(!met.is_linked());
}
