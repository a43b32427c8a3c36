//! The errors of parsing a schema, reading a value and writing one.

use std::fmt;

use crate::limits::{
    DEPTH_MAX, NAME_BYTES_MAX, NODES_MAX, SAMPLE_BYTES_MAX, SCHEMA_BYTES_MAX, TEXT_BYTES_MAX,
    TYPE_BYTES_MAX,
};

/// A schema that is not understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {kind}")]
#[non_exhaustive]
pub struct SchemaError {
    /// Where in the schema.
    pub place: String,
    /// What is wrong there.
    pub kind: SchemaErrorKind,
}

/// What is wrong with a schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaErrorKind {
    /// Read such samples by [`Type::any_bytes`](crate::Type::any_bytes).
    #[error("there is no reader for this; read the samples as bytes")]
    Unsupported,
    /// A schema of more than [`SCHEMA_BYTES_MAX`](crate::limits::SCHEMA_BYTES_MAX).
    #[error("the schema has more than {SCHEMA_BYTES_MAX} B")]
    TooLong,
    /// Text was needed.
    #[error("the schema is not UTF-8")]
    NotUtf8,
    /// The text does not follow the grammar.
    #[error("{0} is needed here")]
    Expected(&'static str),
    /// A type that is not defined.
    #[error("there is no type {0:?}")]
    UnknownType(String),
    /// A message that contains itself.
    #[error("{0} contains itself")]
    Cycle(String),
    /// Two definitions or fields of one name.
    #[error("{0} is defined twice")]
    Twice(String),
    /// A name with forbidden characters, or a too long one.
    #[error(
        "{0:?} cannot be a name: at most {NAME_BYTES_MAX} B, no control characters, no .[]{{}}:@ in a field's"
    )]
    BadName(String),
    /// More than [`DEPTH_MAX`] levels.
    #[error("types are nested more than {DEPTH_MAX} deep")]
    TooDeep,
    /// More than [`NODES_MAX`] parts.
    #[error("the type has more than {NODES_MAX} parts")]
    TooManyNodes,
    /// More than [`TYPE_BYTES_MAX`].
    #[error("the type has more than {TYPE_BYTES_MAX} B")]
    TooLarge,
    /// Elements without bytes have no places.
    #[error("an array of elements without bytes")]
    NoBytes,
    /// CDR has no arrays of no elements.
    #[error("an array of no elements")]
    NoElements,
    /// A field that begins before the end of the previous one.
    #[error("field {0:?} begins before the end of the previous field")]
    Overlap(String),
    /// Fields that end behind the struct.
    #[error("the fields end at byte {end} of a struct of {bytes} B")]
    Outside {
        /// Where they end.
        end: usize,
        /// The size of the struct.
        bytes: usize,
    },
}

impl SchemaErrorKind {
    pub(crate) fn at(self, place: impl fmt::Display) -> SchemaError {
        SchemaError { place: place.to_string(), kind: self }
    }
}

/// A value that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{kind}", prefix(path))]
#[non_exhaustive]
pub struct ReadError {
    /// The part of the value, as a path from the value that was asked; empty for the value itself.
    pub path: String,
    /// What is wrong with it.
    pub kind: ReadErrorKind,
}

/// What is wrong with a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadErrorKind {
    /// There is no such field.
    #[error("there is no field {name:?}{}", did_you_mean(nearest))]
    NoField {
        /// The name that was asked for.
        name: String,
        /// The most similar name, if one is similar.
        nearest: Option<String>,
    },
    /// There is no such element.
    #[error("there is no element {index}, the length is {length}")]
    NoElement {
        /// The index that was asked for.
        index: usize,
        /// How many elements there are.
        length: usize,
    },
    /// A text that is not a path.
    #[error("{0:?} is not a path; write a path like pose.points[3].x")]
    BadPath(String),
    /// The value is of another kind.
    #[error("this is a {ty}, not {wanted}")]
    WrongKind {
        /// What was asked for.
        wanted: &'static str,
        /// The name of its type.
        ty: String,
    },
    /// A number that does not fit into the type that was asked for.
    #[error("{value} does not fit into {into}")]
    OutOfRange {
        /// The number.
        value: String,
        /// The type.
        into: &'static str,
    },
    /// The bytes end too early.
    #[error("{needed} B are needed at byte {at}, and {left} B are left")]
    TooShort {
        /// Where, in the sample.
        at: usize,
        /// How many are needed.
        needed: usize,
        /// How many there are.
        left: usize,
    },
    /// A length that is beyond the bound, or a sample of a length that its type does not have.
    #[error("a length of {length} is not possible; {rule}")]
    BadLength {
        /// The length.
        length: usize,
        /// What is possible.
        rule: String,
    },
    /// A string that is not UTF-8.
    #[error("the string is not UTF-8")]
    BadUtf8,
    /// A string in CDR that does not end with a NUL.
    #[error("the string does not end with a NUL")]
    NoNul,
    /// A byte that is no truth value in CDR.
    #[error("a boolean is 0 or 1, not {0}")]
    BadBool(u8),
    /// Another encoding in the header of CDR.
    #[error("encoding {0:#06x} is not plain CDR (0x0000, 0x0001)")]
    BadEncoding(u16),
    /// A text of more than [`TEXT_BYTES_MAX`].
    #[error("the text has more than {TEXT_BYTES_MAX} B; take a smaller limit")]
    TooLong,
}

/// An input that is not a value of the type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{kind}", prefix(path))]
#[non_exhaustive]
pub struct EncodeError {
    /// The part of the input, as a path; empty for all of it.
    pub path: String,
    /// What is wrong with it.
    pub kind: EncodeErrorKind,
}

/// What is wrong with an input.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeErrorKind {
    /// The type has no such field.
    #[error("there is no field {name:?}{}", did_you_mean(nearest))]
    NoField {
        /// The name in the input.
        name: String,
        /// The most similar name, if one is similar.
        nearest: Option<String>,
    },
    /// Something else is needed.
    #[error("{wanted} is needed, not {given}")]
    WrongKind {
        /// What the type needs.
        wanted: String,
        /// What the input is.
        given: &'static str,
    },
    /// A number that the type cannot hold.
    #[error("{value} does not fit into {into}")]
    OutOfRange {
        /// The number.
        value: String,
        /// The type.
        into: &'static str,
    },
    /// Another number of elements or bytes.
    #[error("{wanted} are needed, not {given}")]
    BadLength {
        /// What the type needs.
        wanted: String,
        /// How many there are.
        given: usize,
    },
    /// A string with a NUL, which ends a string in CDR.
    #[error("the string has a NUL in it, which ends a string in CDR")]
    Nul,
    /// A sample of more than [`SAMPLE_BYTES_MAX`].
    #[error("the sample has more than {SAMPLE_BYTES_MAX} B")]
    TooLong,
}

macro_rules! with_path {
    ($error:ident, $kind:ident) => {
        impl From<$kind> for $error {
            fn from(kind: $kind) -> Self {
                $error { path: String::new(), kind }
            }
        }

        impl $error {
            /// The error of a part, seen from the whole.
            pub(crate) fn within(mut self, part: impl fmt::Display) -> Self {
                let dot = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
                self.path = format!("{part}{dot}{}", self.path);
                self
            }

            pub(crate) fn within_element(self, index: usize) -> Self {
                self.within(format_args!("[{index}]"))
            }
        }
    };
}

with_path!(ReadError, ReadErrorKind);
with_path!(EncodeError, EncodeErrorKind);

fn prefix(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!("{path}: ") }
}

fn did_you_mean(nearest: &Option<String>) -> String {
    nearest.as_ref().map(|name| format!("; did you mean {name:?}?")).unwrap_or_default()
}

/// The most similar of the names, if one is similar.
pub(crate) fn nearest<'a>(name: &str, of: impl Iterator<Item = &'a str>) -> Option<String> {
    if name.len() > NAME_BYTES_MAX {
        return None; // The effort grows with the product of the lengths.
    }
    let similar = of.map(|each| (strsim::jaro_winkler(name, each), each));
    let best = similar.max_by(|(one, _), (other, _)| one.total_cmp(other));
    best.filter(|(similarity, _)| *similarity > 0.7).map(|(_, name)| name.to_owned())
}
