//! The player, with real subscribers: what they get is what was recorded.

mod control;
mod files;
mod lateness;
mod robot;
mod samples;
