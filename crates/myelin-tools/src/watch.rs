//! What a command shows again and again.

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::Error;
use crate::table::Table;

/// What to watch.
#[derive(Clone, Debug)]
pub struct Options {
    /// Names of topics, and patterns.
    pub topics: Vec<String>,
    /// The time that each report is about.
    pub window: Duration,
    /// Waits for topics that are not there.
    pub wait: bool,
}

/// Something that looks at topics and reports what it saw. One thread does both.
pub trait Watch {
    /// Looks, and sleeps between its looks, until `until_ns` by [`myelin::now`].
    ///
    /// # Errors
    /// Those of observers and subscribers. A publisher with invalid data is a note of the next
    /// report.
    fn look(&mut self, until_ns: u64) -> Result<(), Error>;

    /// Whether one of the topics has been there.
    fn has_topics(&self) -> bool;

    /// Whether a sample has come.
    fn has_samples(&self) -> bool;

    /// The state now.
    fn report(&mut self) -> Output;

    /// Everything since it began.
    fn total(&mut self) -> Output;
}

/// The same for people and for programs.
#[derive(Clone, Debug, Default)]
pub struct Output {
    /// For people.
    pub table: Table,
    /// For programs: objects.
    pub objects: Vec<Value>,
}

impl Output {
    /// Adds problems, each once.
    pub(crate) fn problems(&mut self, problems: &mut Vec<String>) {
        for problem in problems.drain(..) {
            self.objects.push(json!({ "problem": &problem }));
            self.table.note(problem);
        }
    }
}

/// An object for programs. That of a summary is marked.
pub(crate) fn finish(mut object: Map<String, Value>, is_total: bool) -> Value {
    if is_total {
        object.insert("summary".to_owned(), true.into());
    }
    Value::Object(object)
}

/// Microseconds with one digit behind the point.
pub(crate) fn us(ns: f64) -> f64 {
    (ns / 100.0).round() / 10.0
}
