//! Myelin's C ABI: `include/myelin.h` is made of this crate by cbindgen, and `include/myelin.hpp` wraps
//! it for C++17. The guide is `docs/reference/c.md`.
//!
//! Every function of `extern "C"` runs its Rust code in [`error::enter`]: a panic ends there. A handle is
//! looked up in one table ([`handle`]), so one that is null, closed, of another kind or none at all is an
//! error code. Structs that may grow begin with their size ([`sized`]).

#![allow(non_camel_case_types, reason = "they are named as in the header")]

mod callback;
mod client;
mod error;
mod event;
mod graph;
mod handle;
mod node;
mod payload;
mod publisher;
mod sample;
mod server;
mod sized;
mod slots;
mod subscriber;
mod text;
mod topic;
mod wait_set;
