//! The maximum of everything that a schema, a sample or an input can make large.

/// Bytes of a schema.
pub const SCHEMA_BYTES_MAX: usize = 65_536;
/// How deep types are nested.
pub const DEPTH_MAX: usize = 64;
/// Nodes of a type as a tree: a message that is used twice counts twice.
pub const NODES_MAX: usize = 65_536;
/// Bytes of a name.
pub const NAME_BYTES_MAX: usize = 255;
/// Bytes of the smallest value of a type: the largest payload of a Myelin topic.
pub const TYPE_BYTES_MAX: usize = (1 << 40) - 1;
/// Bytes of a sample that is written.
pub const SAMPLE_BYTES_MAX: usize = 1 << 30;
/// Bytes of the text of a value.
pub const TEXT_BYTES_MAX: usize = 1 << 28;
