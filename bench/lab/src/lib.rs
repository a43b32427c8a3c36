//! The laboratory behind `myelin bench`: it reads a scenario, runs drivers in fresh processes, and reports the result.
//! Data flows one way: scenario → plan → run → record → analyse → report. `layers.rs` lists the modules in that order,
//! and a test checks that each imports only modules before it.

#![deny(unsafe_op_in_unsafe_fn)]

pub mod advise;
mod analyse;
pub mod baseline;
pub mod cgroup;
pub mod compare;
pub mod export;
mod figures;
mod ftrace;
mod host;
pub mod import;
pub mod input_error;
#[cfg(test)]
mod layers;
mod lists;
pub mod live;
pub mod machine;
mod observe;
mod parquet_file;
pub mod ping;
pub mod plan;
mod progress;
pub mod record;
mod recording;
pub mod registry;
pub mod report;
pub mod root;
mod run;
pub mod scenario;
pub mod schema;
pub mod score;
pub mod session;
pub mod shell;
pub mod side;
pub mod stats;
pub mod stderr;
pub mod summary;
pub mod trend;
pub mod tuning;

pub use host::agent;
