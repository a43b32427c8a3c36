//! The player, with real subscribers: what they get is what was recorded.

mod control;
mod files;
mod lateness;
mod robot;
mod round_trip;
mod samples;
#[path = "../bag/support.rs"]
#[allow(dead_code)]
mod support;
