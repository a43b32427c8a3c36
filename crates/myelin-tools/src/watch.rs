//! What a command shows again and again.

use serde_json::{Map, Value, json};

use crate::Error;
use crate::report_table::ReportTable;

/// Something that looks at topics and reports what it saw. One thread does both.
pub trait Watch {
    /// Looks, and sleeps between its looks, until `until_ns` by [`myelin::now`].
    ///
    /// # Errors
    /// Those of observers and subscribers. A publisher with invalid data is a note of the next
    /// report.
    fn look(&mut self, until_ns: u64) -> Result<(), Error>;

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
    pub table: ReportTable,
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
