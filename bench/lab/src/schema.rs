//! JSON Schemas, draft 2020-12, of the files that other programs read and write.

use schemars::generate::SchemaSettings;
use serde_json::Value;

use crate::scenario::plain;
pub use crate::scenario::schema as scenario;
use crate::summary::Summary;

/// The schema of `summary.json`. New fields may come, so it allows fields that it does not know.
pub fn summary() -> Value {
    let written = SchemaSettings::draft2020_12().for_serialize();
    let mut schema = written.into_generator().into_root_schema_for::<Summary>().to_value();
    plain(&mut schema);
    schema
}
