//! What differs between two recordings, as text and JSON: `myelin bag diff`.

use myelin_bag::{Diff, FieldDiff, TopicDiff};
use serde_json::{Value, json};

use crate::table::Table;
use crate::text::{counted, printable};

/// The topics that differ, as wide as `room`; with `all` also those that are the same.
pub fn text(diff: &Diff, all: bool, room: Option<usize>) -> String {
    let mut table = Table::new(&["TOPIC", "A", "B", "PAIRS", "DIFFER", "ONLY A", "ONLY B"]);
    let shown = diff.topics.iter().filter(|(_, topic)| all || !topic.is_same());
    for (name, topic) in shown.clone() {
        table.row([
            name.clone(),
            topic.messages[0].to_string(),
            topic.messages[1].to_string(),
            topic.pairs.to_string(),
            topic.different.to_string(),
            topic.only_in[0].to_string(),
            topic.only_in[1].to_string(),
        ]);
        for note in notes(topic) {
            table.note(note);
        }
    }
    let mut text = String::new();
    if shown.count() > 0 {
        text += &table.text(room);
    }
    for (chunks, side) in diff.losses.iter().zip(["A", "B"]) {
        if *chunks > 0 {
            text += &format!("{side}: {} cannot be read\n", counted(*chunks, "part"));
        }
    }
    let differ = diff.topics.values().filter(|topic| !topic.is_same()).count();
    text += &match (differ, diff.is_same()) {
        (_, true) => format!("the same: {}\n", counted(diff.topics.len(), "topic")),
        _ => format!("different: {differ} of {}\n", counted(diff.topics.len(), "topic")),
    };
    text
}

fn notes(topic: &TopicDiff) -> Vec<String> {
    let mut notes = Vec::new();
    match topic.is_in {
        [true, false] => notes.push("it is only in A".to_owned()),
        [false, true] => notes.push("it is only in B".to_owned()),
        _ => {}
    }
    if topic.schemas_differ && topic.is_in == [true; 2] {
        let [one, other] = &topic.types;
        notes.push(match one == other {
            true => format!("{one} is defined in two ways"),
            false => format!("the types differ: {one}, {other}"),
        });
    }
    for (missing, side) in topic.missing.iter().zip(["A", "B"]) {
        if let Some(missing @ 1..) = missing {
            notes.push(format!("{side} lacks {missing} sequence numbers"));
        }
    }
    if topic.skipped > 0 {
        notes.push(format!("{} pairs are too far apart to be compared", topic.skipped));
    }
    for (path, field) in &topic.fields {
        notes.push(field_text(path, field));
    }
    if let Some(why) = &topic.not_read {
        notes.push(format!("compared byte by byte: {why}"));
    }
    notes
}

fn field_text(path: &str, field: &FieldDiff) -> String {
    let path = if path.is_empty() { "the message" } else { path };
    let by = field.largest.map(|by| format!(" by up to {by}")).unwrap_or_default();
    let (pair, [one, other]) = &field.first;
    format!("{path}: {} differ{by}; first pair {pair}: {one}, {other}", field.messages)
}

/// One object for each topic.
pub fn json(diff: &Diff, all: bool) -> Vec<Value> {
    let shown = diff.topics.iter().filter(|(_, topic)| all || !topic.is_same());
    let topics = shown.map(|(name, topic)| {
        let fields = topic.fields.iter().map(|(path, field)| {
            let (pair, [one, other]) = &field.first;
            // JSON has no other way to say that a number is none.
            let by = field.largest.map(|by| match by.is_finite() {
                true => json!(by),
                false => json!(by.to_string()),
            });
            json!({
                "field": path,
                "messages": field.messages,
                "largest": by,
                "first_pair": pair,
                "a": printable(one),
                "b": printable(other),
            })
        });
        json!({
            "topic": name,
            "is_same": topic.is_same(),
            "is_in": topic.is_in,
            "types": topic.types,
            "schemas_differ": topic.schemas_differ,
            "messages": topic.messages,
            "missing": topic.missing,
            "pairs": topic.pairs,
            "by_sequence": topic.by_sequence,
            "only_in": topic.only_in,
            "skipped": topic.skipped,
            "different": topic.different,
            "fields": fields.collect::<Vec<_>>(),
            "not_read": topic.not_read,
        })
    });
    topics.collect()
}
