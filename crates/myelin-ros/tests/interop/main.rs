//! Myelin and real DDS programs, `tests/peers`, talk to each other.

mod bytes;
mod corner;
mod host;
mod kind;
mod pattern;
mod peer;
mod talk;
