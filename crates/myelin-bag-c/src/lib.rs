//! The C ABI of recordings: cbindgen makes `include/myelin_bag.h` from this crate, and
//! `include/myelin_bag.hpp` wraps it for C++17. The guide is `docs/reference/c.md`.
//!
//! It is apart from `libmyelin` because it is larger: robots that do not record pay nothing.

#![allow(non_camel_case_types, reason = "they are named as in the header")]

mod error;
mod input;
mod player;
mod reader;
mod recorder;
