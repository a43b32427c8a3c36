//! Errors of writing and reading CDR.

use std::fmt;

/// A message without a CDR form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} {what}")]
pub struct EncodeError {
    pub(super) field: String,
    pub(super) what: &'static str,
}

impl EncodeError {
    pub(super) fn new(what: &'static str) -> Self {
        EncodeError { field: String::new(), what }
    }

    /// The field, such as `header.frame_id`.
    pub fn field(&self) -> &str {
        &self.field
    }
}

/// Bytes that are not the message they should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} at byte {at}: {what}")]
pub struct DecodeError {
    pub(super) field: String,
    pub(super) at: usize,
    pub(super) what: What,
}

impl DecodeError {
    /// The field, such as `header.frame_id`; `(header)` for the encoding.
    pub fn field(&self) -> &str {
        &self.field
    }
}

/// The fault in the bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What {
    Short { wanted: usize, left: usize },
    Encoding(u16),
    Boolean(u8),
    NoNul,
    NotUtf8,
}

impl fmt::Display for What {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            What::Short { wanted, left } => {
                write!(to, "{wanted} B are needed and {left} B are left")
            }
            What::Encoding(id) => write!(
                to,
                "encoding {id:#06x} is not plain CDR (0x0000, 0x0001); let the writer use XCDR1 \
                 and a final type, as ROS 2 does"
            ),
            What::Boolean(value) => write!(to, "a boolean is 0 or 1, not {value}"),
            What::NoNul => write!(to, "the string does not end with a NUL"),
            What::NotUtf8 => write!(to, "the string is not UTF-8"),
        }
    }
}
