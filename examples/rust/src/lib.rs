//! The programs are in `examples/`; `tests/pairs.rs` runs each of them.

/// Compiles the Rust in docs/tutorials/first-topic.md.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/tutorials/first-topic.md")]
pub struct FirstTopic;
