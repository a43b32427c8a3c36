//! The programs are in `examples/`; `tests/pairs.rs` runs each of them.

/// Compiles the Rust in README.md.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
pub struct Readme;
