//! Examples of the library in Rust. The programs are in `examples/`; `tests/pairs.rs` runs each of them, and
//! `tests/guide.rs` compares the guide with them. The README's program is the example of this crate.

/// Compiles the Rust in README.md.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
pub struct Readme;
