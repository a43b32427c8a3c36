//! The programs are in `examples/`; `tests/pairs.rs` runs each of them.
