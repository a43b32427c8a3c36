//! Myelin's C ABI: cbindgen makes `include/myelin.h` from this crate, and `include/myelin.hpp`
//! wraps it for C++17. The guide is `docs/reference/c.md`.
//!
//! Every `extern "C"` function runs its Rust code in [`error::enter`], which catches panics. All
//! handles are looked up in one table ([`handle`]), so a handle that is null, closed, of another
//! kind or invalid gives an error code. Structs that may grow begin with their size ([`sized`]).

#![allow(non_camel_case_types, reason = "they are named as in the header")]

mod callback;
mod client;
mod error;
mod event;
mod graph;
mod graph_watcher;
mod handle;
mod node;
mod observer;
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
