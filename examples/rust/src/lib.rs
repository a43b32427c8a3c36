//! Examples of the library in Rust. The programs are in `examples/`; `tests/pairs.rs` runs each of them, and
//! `tests/guide.rs` compares the guide with them. The README's program is the example of this crate.

/// Compiles the Rust in docs/tutorials/first-topic.md.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/tutorials/first-topic.md")]
pub struct FirstTopic;
