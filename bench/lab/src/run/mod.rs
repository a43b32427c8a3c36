//! Executing a plan: fresh processes for every run, watched, and never left behind.

mod cast;
pub mod execute;
pub mod order;
pub mod tuning;
pub mod watch;
